//! Whether a time is told as the one at which something can be tried again. A text is full of other times: how long a
//! limit counts, how long something took, when it was asked.

use super::words::{Kind, Words};

/// Pieces between a cue and its time.
const REACH: usize = 14;

/// Words that announce when it goes on.
const CUES: [&str; 62] = [
    "reset",
    "resets",
    "resetting",
    "retry",
    "retrying",
    "retries",
    "again",
    "available",
    "availability",
    "until",
    "till",
    "wait",
    "waiting",
    "renew",
    "renews",
    "renewed",
    "renewal",
    "refresh",
    "refreshes",
    "refreshed",
    "replenish",
    "replenishes",
    "replenished",
    "refill",
    "refills",
    "refilled",
    "restored",
    "restores",
    "resume",
    "resumes",
    "continue",
    "regain",
    "unlock",
    "unlocks",
    "unlocked",
    "unblock",
    "unblocked",
    "lifted",
    "lifts",
    "reopens",
    "returns",
    "return",
    "back",
    "cooldown",
    "cool",
    "cooling",
    "backoff",
    "delay",
    "expires",
    "expire",
    "ends",
    "recover",
    "recovers",
    "recovered",
    "next",
    "access",
    "usable",
    "starting",
    "allowed",
    "paused",
    "blocked",
    "sleeping",
];

/// Whether a word announces by itself.
pub(super) fn is_cue(word: &str) -> bool {
    CUES.contains(&word)
}

/// Cues that are told with `for` and a duration.
const PAUSES: [&str; 12] = [
    "wait",
    "waiting",
    "cooldown",
    "cool",
    "cooling",
    "backoff",
    "delay",
    "paused",
    "blocked",
    "sleeping",
    "again",
    "available",
];

/// Words that say that the time after them is another.
const OTHERWISE: [&str; 40] = [
    "since",
    "started",
    "began",
    "last",
    "previous",
    "previously",
    "was",
    "were",
    "ago",
    "per",
    "every",
    "each",
    "failed",
    "timeout",
    "timed",
    "took",
    "elapsed",
    "currently",
    "current",
    "now",
    "created",
    "received",
    "used",
    "hit",
    "reached",
    "exceeded",
    "than",
    "past",
    "spent",
    "over",
    "during",
    "id",
    "port",
    "version",
    "timestamp",
    "within_last",
    "attempted",
    "sent",
    "asked",
    "average",
];

/// What is counted: `100 requests in 60 s` is no wait.
const COUNTED: [&str; 16] = [
    "request", "requests", "message", "messages", "token", "tokens", "call", "calls", "attempt", "attempts",
    "time", "times", "prompts", "tries", "images", "files",
];

/// Words and signs that join a second time to the first: `between 3pm and 5pm`, `3:20pm (in 2h)`.
const JOINING: [&str; 9] = ["and", "or", "to", "in", "at", "on", "until", "ie", "about"];

/// Where a second time may lean on the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Earlier {
    /// The place after it.
    pub(super) end: usize,
    /// It was announced.
    pub(super) cued: bool,
}

/// Whether between the cue and the time that begins at `at` something is told that may belong to it and was not
/// understood, such as a date in another language.
pub(super) fn is_half_read(words: &Words, at: usize, earlier: Option<Earlier>) -> bool {
    let from = at
        .saturating_sub(REACH)
        .max(earlier.map_or(0, |earlier| earlier.end));
    let between = (from..at).rev().take_while(|place| {
        let cue = words.word(*place).is_some_and(is_cue);
        !cue && !words.is_break(*place)
    });
    between.filter(|place| words.is_number(*place)).any(|place| {
        let led = place > 0
            && matches!(
                words.word(place - 1),
                Some("at" | "on" | "by" | "de" | "am" | "um" | "le")
            );
        led || words
            .digits(place, 4..=4)
            .is_some_and(|year| (2000..2100).contains(&year))
    })
}

/// Whether the time that begins at `at` is announced by what is before it. `earlier` is the time before it.
pub(super) fn announced(words: &Words, at: usize, earlier: Option<Earlier>) -> bool {
    cue_before(words, at, earlier, &CUES)
}

/// The same for a duration after `for`.
pub(super) fn paused(words: &Words, at: usize, earlier: Option<Earlier>) -> bool {
    cue_before(words, at, earlier, &PAUSES)
}

fn cue_before(words: &Words, at: usize, earlier: Option<Earlier>, cues: &[&str]) -> bool {
    let mut joined = true;
    for place in (at.saturating_sub(REACH)..at).rev() {
        if let Some(earlier) = earlier
            && place < earlier.end
        {
            return joined && earlier.cued;
        }
        match words.pieces[place].kind {
            Kind::Break => return false,
            Kind::Word => {
                let word = words.pieces[place].text.as_str();
                if cues.contains(&word) && !is_otherwise_meant(words, place) {
                    return true;
                }
                if OTHERWISE.contains(&word)
                    || COUNTED.contains(&word) && place > 0 && words.is_number(place - 1)
                {
                    return false;
                }
                joined &= JOINING.contains(&word);
            }
            Kind::Mark(',') if words.mark(place + 1) == Some('"') => return false,
            Kind::Mark('}') => return false,
            Kind::Mark(mark) => joined &= matches!(mark, '-' | ',' | '(' | '/' | '~' | '"' | ':' | '['),
            Kind::Number { .. } | Kind::Dotted => joined = false,
        }
    }
    false
}

/// A cue in a place where it announces nothing: `last reset`, `5 retries`, `next Monday`.
fn is_otherwise_meant(words: &Words, at: usize) -> bool {
    let before = at.checked_sub(1);
    let word_before = before.and_then(|before| words.word(before));
    match words.word(at) {
        Some("next") => !matches!(
            words.word(at + 1),
            Some(
                "reset"
                    | "window"
                    | "available"
                    | "refill"
                    | "renewal"
                    | "request"
                    | "attempt"
                    | "retry"
                    | "try"
                    | "allowed"
            )
        ),
        Some("retries" | "attempts") => before.is_some_and(|before| words.is_number(before)),
        Some(
            "reset" | "refresh" | "renewal" | "refill" | "refreshed" | "renewed" | "restored" | "refilled",
        ) => {
            matches!(word_before, Some("last" | "previous" | "was" | "were"))
        }
        Some("expires" | "ends" | "back" | "access" | "continue" | "return" | "allowed" | "cool") => {
            matches!(
                word_before,
                Some("token" | "request" | "requests" | "call" | "tokens")
            )
        }
        _ => false,
    }
}

/// Whether the time that follows the word at `lead` begins a clause that says afterwards what it is for: `In 5 minutes
/// you can try again`. `end` is the place after the time.
pub(super) fn announced_after(words: &Words, lead: usize, end: usize) -> bool {
    if !matches!(
        words.word(lead),
        Some("in" | "at" | "on" | "after" | "from" | "until" | "within" | "by")
    ) {
        return false;
    }
    let begins = match lead.checked_sub(1) {
        None => true,
        Some(before) => match words.pieces[before].kind {
            Kind::Break | Kind::Mark(_) => true,
            Kind::Word => matches!(
                words.pieces[before].text.as_str(),
                "please" | "then" | "and" | "but" | "so" | "or"
            ),
            Kind::Number { .. } | Kind::Dotted => false,
        },
    };
    begins
        && (end..(end + REACH).min(words.pieces.len()))
            .take_while(|place| !words.is_break(*place))
            .any(|place| words.word(place).is_some_and(is_cue))
}
