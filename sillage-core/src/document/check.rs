//! From a tree to typed values, with every fault on the way.
//!
//! A value at fault is told once and replaced by a default, so that reading goes on; a reading with any fault
//! ends without a result, so that no such default is ever seen.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use super::{Node, Place, Value};
use crate::fault::{Fault, FaultCode, nearest};
use crate::time::parse_duration;

/// Faults beyond this many are not kept: nobody reads them, and a hostile text could make millions.
pub(crate) const MOST_FAULTS: usize = 10_000;

/// Names that may be compared in one reading in search of near ones, so that ten thousand wrong links to ten
/// thousand agents do not take quadratic work. The first faults get their suggestions.
const MOST_COMPARISONS: usize = 200_000;

/// A value with its JSON pointer (RFC 6901).
#[derive(Debug, Clone)]
pub(crate) struct Spot<'a> {
    pub(crate) node: &'a Node,
    pub(crate) path: String,
}

impl<'a> Spot<'a> {
    /// The whole document.
    pub(crate) fn root(node: &'a Node) -> Self {
        Spot {
            node,
            path: String::new(),
        }
    }

    /// The value of a key in this map.
    pub(crate) fn field(&self, name: &str, node: &'a Node) -> Self {
        Spot {
            node,
            path: field_path(&self.path, name),
        }
    }

    fn item(&self, index: usize, node: &'a Node) -> Self {
        Spot {
            node,
            path: format!("{}/{index}", self.path),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }

    /// What a message calls this value: its field, or its number in a list.
    pub(crate) fn label(&self) -> String {
        let mut segments = self.path.rsplit('/');
        match (segments.next(), segments.next()) {
            (None | Some(""), _) => "the document".to_owned(),
            (Some(last), Some(list)) if !list.is_empty() => match last.parse::<usize>() {
                Ok(index) => format!("entry {} of `{}`", index + 1, unescaped(list)),
                Err(_) => format!("`{}`", unescaped(last)),
            },
            (Some(last), _) => format!("`{}`", unescaped(last)),
        }
    }
}

/// The pointer of a field.
pub(crate) fn field_path(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// The entries of a map whose fields are known.
pub(crate) struct Fields<'a> {
    /// What has these fields, as a message calls it.
    what: &'static str,
    spot: Spot<'a>,
    entries: &'a [(super::Key, Node)],
}

impl<'a> Fields<'a> {
    /// The entries of a map whose fields were judged already.
    pub(crate) fn new(what: &'static str, spot: Spot<'a>, entries: &'a [(super::Key, Node)]) -> Self {
        Fields { what, spot, entries }
    }

    /// A field that may be left out; one that is empty counts as left out.
    pub(crate) fn optional(&self, name: &str) -> Option<Spot<'a>> {
        self.find(name).filter(|spot| !spot.is_null())
    }

    /// A field that must be there; one that is empty counts as left out.
    pub(crate) fn required(&self, name: &str, checker: &mut Checker) -> Option<Spot<'a>> {
        self.optional(name).or_else(|| self.missing(name, checker))
    }

    /// A field that must be there, if only as nothing.
    pub(crate) fn present(&self, name: &str, checker: &mut Checker) -> Option<Spot<'a>> {
        self.find(name).or_else(|| self.missing(name, checker))
    }

    /// Tells that a field is missing. Always none.
    fn missing(&self, name: &str, checker: &mut Checker) -> Option<Spot<'a>> {
        let message = format!("{} needs a field `{name}`", self.what);
        checker.fault_at(&self.spot, FaultCode::MissingField, message);
        None
    }

    fn find(&self, name: &str) -> Option<Spot<'a>> {
        let (_, node) = self.entries.iter().find(|(key, _)| key.name == name)?;
        Some(Spot {
            node,
            path: field_path(&self.spot.path, name),
        })
    }

    pub(crate) fn spot(&self) -> &Spot<'a> {
        &self.spot
    }
}

/// Gathers the faults of one reading.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    faults: Vec<Fault>,
    compared: usize,
    of: Author,
}

/// Who wrote what is read: their faults have different codes, and different words for the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Author {
    /// A person, in a file.
    #[default]
    Person,
    /// An agent, in its answer.
    Agent,
}

impl Checker {
    /// For the JSON of an agent's answer.
    pub(crate) fn of_answer() -> Checker {
        Checker {
            of: Author::Agent,
            ..Checker::default()
        }
    }

    /// The code of a value that is not what it must be.
    pub(crate) fn wrong_value(&self) -> FaultCode {
        match self.of {
            Author::Person => FaultCode::BadType,
            Author::Agent => FaultCode::BadValue,
        }
    }

    /// The value if nothing was at fault, else the faults in the order of the text.
    pub(crate) fn finish<T>(mut self, value: T) -> Result<T, Vec<Fault>> {
        if self.faults.is_empty() {
            return Ok(value);
        }
        self.faults.sort_by_key(|fault| (fault.line, fault.column));
        Err(self.faults)
    }

    pub(crate) fn fault(
        &mut self,
        code: FaultCode,
        message: impl Into<String>,
        path: impl Into<String>,
        place: Option<Place>,
        suggestion: Option<String>,
    ) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault {
                code,
                message: message.into(),
                path: path.into(),
                line: place.map(|place| place.line),
                column: place.map(|place| place.column),
                suggestion,
            });
        }
    }

    pub(crate) fn fault_at(&mut self, spot: &Spot<'_>, code: FaultCode, message: impl Into<String>) {
        self.fault(code, message, spot.path.clone(), Some(spot.node.place), None);
    }

    /// The nearest candidate to `name`, while comparisons last. The candidates must know how many they are.
    pub(crate) fn near<'c>(
        &mut self,
        name: &str,
        candidates: impl Iterator<Item = &'c str>,
    ) -> Option<String> {
        self.compared = self.compared.saturating_add(candidates.size_hint().0);
        if self.compared > MOST_COMPARISONS {
            return None;
        }
        nearest(name, candidates)
    }

    /// The fields of a map; those that are not `known` are faults.
    pub(crate) fn fields<'a>(
        &mut self,
        spot: Spot<'a>,
        what: &'static str,
        known: &[&str],
    ) -> Option<Fields<'a>> {
        let entries = self.entries(&spot)?;
        for (key, _) in entries {
            if known.contains(&key.name.as_str()) {
                continue;
            }
            let near = self.near(&key.name, known.iter().copied());
            let mut message = format!("{what} has no field `{}`", brief(&key.name));
            if near.is_none() {
                let _ = write!(message, ", only {}", known.join(", "));
            }
            let path = field_path(&spot.path, &key.name);
            self.fault(FaultCode::UnknownField, message, path, Some(key.place), near);
        }
        Some(Fields { what, spot, entries })
    }

    /// The entries of a map with free keys.
    pub(crate) fn entries<'a>(&mut self, spot: &Spot<'a>) -> Option<&'a [(super::Key, Node)]> {
        let Value::Map(entries) = &spot.node.value else {
            return self.bad_type(spot, "a map");
        };
        Some(entries)
    }

    pub(crate) fn list<'a>(&mut self, spot: &Spot<'a>) -> Option<Vec<Spot<'a>>> {
        let Value::List(items) = &spot.node.value else {
            return self.bad_type(spot, "a list");
        };
        Some(
            items
                .iter()
                .enumerate()
                .map(|(index, node)| spot.item(index, node))
                .collect(),
        )
    }

    pub(crate) fn text<'a>(&mut self, spot: &Spot<'a>) -> Option<&'a str> {
        let Value::Text(text) = &spot.node.value else {
            return self.bad_type(spot, "a text");
        };
        Some(text)
    }

    /// A list of texts, each with its place; entries that are none are faults and left out.
    pub(crate) fn texts<'a>(&mut self, spot: &Spot<'a>) -> Option<Vec<(Spot<'a>, &'a str)>> {
        let items = self.list(spot)?;
        Some(
            items
                .into_iter()
                .filter_map(|item| self.text(&item).map(|text| (item, text)))
                .collect(),
        )
    }

    /// A text that says something.
    pub(crate) fn filled_text<'a>(&mut self, spot: &Spot<'a>, code: FaultCode) -> Option<&'a str> {
        let text = self.text(spot)?;
        if text.trim().is_empty() {
            self.fault_at(spot, code, format!("{} is blank", spot.label()));
            return None;
        }
        Some(text)
    }

    pub(crate) fn flag(&mut self, spot: &Spot<'_>) -> Option<bool> {
        let Value::Bool(flag) = &spot.node.value else {
            return self.bad_type(spot, "true or false");
        };
        Some(*flag)
    }

    /// A number as it was written.
    pub(crate) fn number<'a>(&mut self, spot: &Spot<'a>) -> Option<&'a str> {
        let Value::Number(written) = &spot.node.value else {
            return self.bad_type(spot, "a number");
        };
        Some(written)
    }

    /// A whole number from 1 to 4,294,967,295.
    pub(crate) fn limit(&mut self, spot: &Spot<'_>) -> Option<NonZeroU32> {
        let written = self.number(spot)?;
        let limit = whole_number(written)
            .and_then(|n| u32::try_from(n).ok())
            .and_then(NonZeroU32::new);
        if limit.is_none() {
            let message = format!(
                "{} must be a whole number from 1 to {}, not {}",
                spot.label(),
                u32::MAX,
                brief(written)
            );
            self.fault_at(spot, FaultCode::BadLimit, message);
        }
        limit
    }

    pub(crate) fn duration(&mut self, spot: &Spot<'_>) -> Option<Duration> {
        let text = self.text(spot)?;
        match parse_duration(text) {
            Ok(span) => Some(span),
            Err(error) => {
                self.fault_at(spot, FaultCode::BadDuration, format!("{}: {error}", spot.label()));
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&mut self, spot: &Spot<'_>, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(spot)?;
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(*choice);
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let near = self.near(text, words.iter().copied());
        let message = format!(
            "{} must be one of {}, not `{}`",
            spot.label(),
            words.join(", "),
            brief(text)
        );
        self.fault(
            self.wrong_value(),
            message,
            spot.path.clone(),
            Some(spot.node.place),
            near,
        );
        None
    }

    /// Tells that a value is not what it must be. Always none.
    pub(crate) fn bad_type<T>(&mut self, spot: &Spot<'_>, expected: &str) -> Option<T> {
        let (map, nothing) = match self.of {
            Author::Person => ("a map", "nothing"),
            Author::Agent => ("an object", "null"),
        };
        let (found, hint) = match &spot.node.value {
            Value::Null => (nothing, ""),
            Value::Bool(_) => ("true or false", ", put it in quotes"),
            Value::Number(_) => ("a number", ", put it in quotes"),
            Value::Text(_) => ("a text", ""),
            Value::List(_) => ("a list", ""),
            Value::Map(_) => (map, ""),
        };
        let expected = if expected == "a map" { map } else { expected };
        let hint = if expected == "a text" { hint } else { "" };
        let message = format!("{} must be {expected}, not {found}{hint}", spot.label());
        self.fault_at(spot, self.wrong_value(), message);
        None
    }
}

/// The beginning of something that somebody wrote, short enough for a message.
pub(crate) fn brief(written: &str) -> String {
    const MOST: usize = 64;
    match written.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &written[..end]),
        None => written.to_owned(),
    }
}

/// A number without sign, fraction or exponent, in any base of YAML's core schema; none when it is out of range.
pub(crate) fn whole_number(written: &str) -> Option<u64> {
    if let Some(octal) = written.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok();
    }
    if let Some(hex) = written.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    written.parse().ok()
}
