//! Where the JSON object of an answer is (W16).
//!
//! The last fenced `json` block counts, whatever follows it; without one, the last object that lies in no other.
//! People and models write braces for many reasons, so the search tells three kinds of `{` apart:
//!
//! - an *object*: a key in double quotes and a colon follow, or `}`, or the text breaks off in the key;
//! - something *like an object*: `{outcome: "complete"}`, `{'outcome': …}`, `{"outcome", …}`. It is taken for the
//!   report where there is no object, so that the agent hears what is wrong with it rather than that it is missing;
//! - *prose*, such as `{placeholders}`.
//!
//! Every part of the search looks at each character a bounded number of times.

mod fence;

use std::ops::Range;

use self::fence::{Section, SectionKind, sections};
use crate::document::Place;

/// What an answer holds in the way of a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// Nothing that could be one.
    Nothing,
    /// An object that is opened here and never closed.
    Unclosed(Place),
    /// The text that ought to be one, without white space around it.
    Json {
        /// The text.
        text: &'a str,
        /// Where it starts in the answer.
        place: Place,
    },
}

/// Finds the object in which an agent hands over its report or its plan.
#[must_use]
pub fn find(answer: &str) -> Found<'_> {
    let answer = answer.strip_prefix('\u{feff}').unwrap_or(answer);
    let sections = sections(answer);
    if let Some(block) = sections.iter().rfind(|section| section.kind == SectionKind::Json) {
        return block_text(answer, block);
    }
    let mut seen = Seen::default();
    let (foreign, prose): (Vec<&Section>, Vec<&Section>) = sections
        .iter()
        .partition(|section| section.kind == SectionKind::Foreign);
    for section in prose {
        search(answer, section.content.clone(), &mut seen);
    }
    let object = seen
        .object
        .or_else(|| foreign.iter().rev().find_map(|block| only_object(answer, block)));
    match object.or(seen.like_object) {
        None => Found::Nothing,
        Some(Candidate { start, end: None }) => Found::Unclosed(Place::START.after(&answer[..start])),
        Some(Candidate {
            start,
            end: Some(end),
        }) => Found::Json {
            text: &answer[start..end],
            place: Place::START.after(&answer[..start]),
        },
    }
}

fn block_text<'a>(answer: &'a str, block: &Section) -> Found<'a> {
    let content = &answer[block.content.clone()];
    let start = block.content.start + (content.len() - content.trim_start().len());
    Found::Json {
        text: content.trim(),
        place: Place::START.after(&answer[..start]),
    }
}

/// Something that opens with a brace, and where it closes.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    start: usize,
    end: Option<usize>,
}

/// The last of each kind so far.
#[derive(Debug, Default)]
struct Seen {
    object: Option<Candidate>,
    like_object: Option<Candidate>,
}

fn search(answer: &str, range: Range<usize>, seen: &mut Seen) {
    let text = &answer[..range.end];
    let mut at = range.start;
    // Once one of them was not closed none of those in it will be looked at to the end again.
    let mut unclosed_like_object = false;
    while let Some(brace) = text[at..].find('{').map(|offset| at + offset) {
        let end = || closing(&text[brace..]).map(|length| brace + length);
        at = brace + 1;
        match Opening::of(&text[brace..]) {
            Opening::Object => {
                let end = end();
                seen.object = Some(Candidate { start: brace, end });
                at = end.unwrap_or(text.len());
            }
            Opening::LikeObject if !unclosed_like_object => {
                let end = end();
                seen.like_object = Some(Candidate { start: brace, end });
                unclosed_like_object = end.is_none();
                at = end.unwrap_or(at);
            }
            Opening::LikeObject | Opening::Prose => {}
        }
    }
}

/// The object of a block of another language that holds an object and nothing else.
fn only_object(answer: &str, block: &Section) -> Option<Candidate> {
    let content = answer[block.content.clone()].trim_end();
    let start = content.len() - content.trim_start().len();
    let object = &content[start..];
    if !object.starts_with('{') || Opening::of(object) != Opening::Object {
        return None;
    }
    let end = closing(object);
    let alone = end.is_none_or(|end| end == object.len());
    let place = block.content.start + start;
    alone.then_some(Candidate {
        start: place,
        end: end.map(|end| place + end),
    })
}

/// What an opening brace begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Object,
    LikeObject,
    Prose,
}

impl Opening {
    /// Judges by what follows the brace that `text` starts with: no further than the first key.
    fn of(text: &str) -> Opening {
        let inside = text[1..].trim_start();
        match inside.as_bytes().first() {
            None => Opening::LikeObject,
            Some(b'}') => Opening::Object,
            Some(b'"') => match after_key(&inside[1..], '"') {
                Some("") => Opening::Object,
                Some(rest) if rest.starts_with(':') => Opening::Object,
                Some(_) | None => Opening::LikeObject,
            },
            Some(b'\'') if after_key(&inside[1..], '\'').is_some_and(|rest| rest.starts_with(':')) => {
                Opening::LikeObject
            }
            Some(b'/') if inside.starts_with("//") || inside.starts_with("/*") => Opening::LikeObject,
            Some(_) => {
                let rest =
                    inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_-$".contains(c));
                let has_key = rest.len() < inside.len() && rest.trim_start().starts_with(':');
                if has_key {
                    Opening::LikeObject
                } else {
                    Opening::Prose
                }
            }
        }
    }
}

/// What follows a key that ends with `quote`: nothing when the text breaks off in it, none when the line ends first.
fn after_key(text: &str, quote: char) -> Option<&str> {
    let Some(end) = text.find([quote, '\n']) else {
        return Some("");
    };
    text[end..].strip_prefix(quote).map(str::trim_start)
}

/// The length of the object that `text` starts with: up to the brace that closes it, braces in double quotes apart.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
