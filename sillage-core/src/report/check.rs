//! Whether an object is a report: every fault at once, each with its place (W15, W18).

use std::collections::BTreeMap;

use super::{
    Blocker, Check, CheckKind, CheckStatus, Decision, Expected, Outcome, Reference, ReferenceKind, Report,
};
use crate::document::{Key, Node, Place, Value};
use crate::fault::{Fault, FaultCode, nearest};

/// Most characters of a summary (W15).
pub const MAX_SUMMARY: usize = 2_000;
/// Most characters of a report's JSON text, as found (W15).
pub const MAX_REPORT: usize = 8_000;

const FIELDS: &[&str] = &[
    "outcome",
    "summary",
    "decisions",
    "checks",
    "blockers",
    "references",
    "outputs",
    "next_action",
];

/// Reads a report off its tree; `text` is what the tree was read from.
pub(super) fn check(root: &Node, text: &str, expected: &Expected<'_>) -> Result<Report, Vec<Fault>> {
    let mut checker = Checker { faults: Vec::new() };
    let report = checker.report(root, text, expected);
    match report {
        Some(report) if checker.faults.is_empty() => Ok(report),
        Some(_) | None => Err(checker.faults),
    }
}

/// Gathers faults. Its methods give `None` for what is at fault, after telling it.
struct Checker {
    faults: Vec<Fault>,
}

/// A value with its JSON pointer.
#[derive(Clone)]
struct At<'n> {
    node: &'n Node,
    path: String,
}

impl<'n> At<'n> {
    fn child(&self, name: &str, node: &'n Node) -> At<'n> {
        let mut path = String::with_capacity(self.path.len() + 1 + name.len());
        path.push_str(&self.path);
        push_pointer(&mut path, name);
        At { node, path }
    }
}

/// An object's fields. A field that is `null` counts as left out: models write it for "nothing to say".
struct Fields<'n> {
    at: At<'n>,
    entries: &'n [(Key, Node)],
}

impl<'n> Fields<'n> {
    fn optional(&self, name: &str) -> Option<At<'n>> {
        self.find(name).filter(|at| at.node.value != Value::Null)
    }

    fn find(&self, name: &str) -> Option<At<'n>> {
        let (_, node) = self.entries.iter().find(|(key, _)| key.name == name)?;
        Some(self.at.child(name, node))
    }
}

impl Checker {
    fn report(&mut self, root: &Node, text: &str, expected: &Expected<'_>) -> Option<Report> {
        let at = At {
            node: root,
            path: String::new(),
        };
        let length = text.chars().count();
        if length > MAX_REPORT {
            let message = format!("the report has {length} characters: at most {MAX_REPORT} are allowed");
            self.fault(FaultCode::TooLong, message, &at);
        }
        let fields = self.fields(&at, FIELDS)?;
        let outcome = self.word(&fields, "outcome", Outcome::ALL, Outcome::word);
        let summary = self.summary(&fields);
        let decisions = self.list(&fields, "decisions", Self::decision);
        let checks = self.list(&fields, "checks", Self::check);
        let blockers = self.list(&fields, "blockers", Self::blocker);
        let references = self.list(&fields, "references", Self::reference);
        let outputs = self.outputs(&fields, outcome, expected.outputs);
        let next_action = self.optional_text(&fields, "next_action");
        self.contradictions(&fields, outcome);
        Some(Report {
            outcome: outcome?,
            summary: summary?,
            decisions,
            checks,
            blockers,
            references,
            outputs,
            next_action,
        })
    }

    fn summary(&mut self, fields: &Fields<'_>) -> Option<String> {
        let summary = self.visible_text(fields, "summary")?;
        let length = summary.chars().count();
        if length > MAX_SUMMARY {
            let message = format!("`summary` has {length} characters: at most {MAX_SUMMARY} are allowed");
            self.fault(FaultCode::TooLong, message, &fields.find("summary")?);
            return None;
        }
        Some(summary)
    }

    /// A decision, which may be a plain string.
    fn decision(&mut self, at: &At<'_>) -> Option<Decision> {
        let (title, why) = self.titled(at, "why")?;
        Some(Decision { title, why })
    }

    /// A blocker, which may be a plain string.
    fn blocker(&mut self, at: &At<'_>) -> Option<Blocker> {
        let (title, needs) = self.titled(at, "needs")?;
        Some(Blocker { title, needs })
    }

    fn titled(&mut self, at: &At<'_>, more: &str) -> Option<(String, Option<String>)> {
        match &at.node.value {
            Value::Text(title) => self.visible(title, at).map(|title| (title, None)),
            Value::Map(_) => {
                let fields = self.fields(at, &["title", more])?;
                let title = self.visible_text(&fields, "title");
                let more = self.optional_text(&fields, more);
                Some((title?, more))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) => {
                self.wrong_type(at, "a text, or an object with a `title`");
                None
            }
        }
    }

    fn check(&mut self, at: &At<'_>) -> Option<Check> {
        let fields = self.fields(at, &["kind", "status", "detail"])?;
        let kind = self.word(&fields, "kind", CheckKind::ALL, CheckKind::word);
        let status = self.word(&fields, "status", CheckStatus::ALL, CheckStatus::word);
        let detail = self.optional_text(&fields, "detail");
        Some(Check {
            kind: kind?,
            status: status?,
            detail,
        })
    }

    fn reference(&mut self, at: &At<'_>) -> Option<Reference> {
        let fields = self.fields(at, &["kind", "value"])?;
        let kind = self.word(&fields, "kind", ReferenceKind::ALL, ReferenceKind::word);
        let value = self.visible_text(&fields, "value");
        Some(Reference {
            kind: kind?,
            value: value?,
        })
    }

    /// The named outputs. A blocked step may leave out what it could not make: nothing that follows will read it.
    fn outputs(
        &mut self,
        fields: &Fields<'_>,
        outcome: Option<Outcome>,
        declared: &[String],
    ) -> BTreeMap<String, String> {
        let mut outputs = BTreeMap::new();
        let required = if outcome == Some(Outcome::Blocked) {
            &[]
        } else {
            declared
        };
        let Some(at) = fields.optional("outputs") else {
            self.missing_outputs(required, &[], fields.at.node.place);
            return outputs;
        };
        let Value::Map(entries) = &at.node.value else {
            self.wrong_type(&at, "an object of texts by name");
            return outputs;
        };
        self.missing_outputs(required, entries, at.node.place);
        for (key, node) in entries {
            let value = at.child(&key.name, node);
            if !declared.is_empty() && !declared.contains(&key.name) {
                self.unknown(
                    key,
                    value.path,
                    "output",
                    &mut declared.iter().map(String::as_str),
                );
            } else if let Some(text) = self.text(&value) {
                outputs.insert(key.name.clone(), text);
            }
        }
        outputs
    }

    fn missing_outputs(&mut self, required: &[String], entries: &[(Key, Node)], place: Place) {
        for name in required
            .iter()
            .filter(|name| !entries.iter().any(|(key, _)| key.name == **name))
        {
            let mut path = "/outputs".to_owned();
            push_pointer(&mut path, name);
            let message = format!("the declared output `{name}` is missing from `outputs`");
            self.faults
                .push(fault(FaultCode::MissingField, message, path, place));
        }
    }

    fn contradictions(&mut self, fields: &Fields<'_>, outcome: Option<Outcome>) {
        let blockers = fields.optional("blockers");
        let there = match blockers.as_ref().map(|at| &at.node.value) {
            None => Some(false),
            Some(Value::List(items)) => Some(!items.is_empty()),
            Some(_) => None,
        };
        match (outcome, there) {
            (Some(Outcome::Complete), Some(true)) => {
                let message = "`outcome` is `complete` and `blockers` is not empty: report `partial` or `blocked`, or drop the blockers";
                self.fault(
                    FaultCode::Contradiction,
                    message.to_owned(),
                    &blockers.unwrap_or_else(|| fields.at.clone()),
                );
            }
            (Some(Outcome::Blocked), Some(false)) => {
                let message = "`outcome` is `blocked` and no blocker is given: say in `blockers` what stands in the way";
                let outcome = fields.find("outcome").unwrap_or_else(|| fields.at.clone());
                self.fault(FaultCode::Contradiction, message.to_owned(), &outcome);
            }
            (Some(Outcome::Complete | Outcome::Partial | Outcome::Blocked) | None, _) => {}
        }
    }

    /// The fields of an object, once those that do not exist were told.
    fn fields<'n>(&mut self, at: &At<'n>, known: &[&str]) -> Option<Fields<'n>> {
        let Value::Map(entries) = &at.node.value else {
            self.wrong_type(at, "an object");
            return None;
        };
        for (key, node) in entries
            .iter()
            .filter(|(key, _)| !known.contains(&key.name.as_str()))
        {
            self.unknown(
                key,
                at.child(&key.name, node).path,
                "field",
                &mut known.iter().copied(),
            );
        }
        Some(Fields {
            at: at.clone(),
            entries,
        })
    }

    /// The entries of an optional list.
    fn list<T>(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
        entry: fn(&mut Self, &At<'_>) -> Option<T>,
    ) -> Vec<T> {
        let Some(at) = fields.optional(name) else {
            return Vec::new();
        };
        let Value::List(items) = &at.node.value else {
            self.wrong_type(&at, "a list");
            return Vec::new();
        };
        items
            .iter()
            .enumerate()
            .filter_map(|(index, node)| entry(self, &at.child(&index.to_string(), node)))
            .collect()
    }

    /// A required field that holds one of a few words.
    fn word<T: Copy>(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Option<T> {
        let at = self.required(fields, name)?;
        let given = self.text(&at)?;
        let known = all.iter().copied().find(|value| word(*value) == given);
        if known.is_none() {
            let allowed: Vec<String> = all.iter().map(|value| format!("`{}`", word(*value))).collect();
            let message = format!(
                "`{name}` is `{}`: it must be one of {}",
                shown(&given),
                allowed.join(", ")
            );
            self.fault(FaultCode::BadValue, message, &at);
            self.suggest(nearest(&given, all.iter().map(|value| word(*value))));
        }
        known
    }

    fn required<'n>(&mut self, fields: &Fields<'n>, name: &str) -> Option<At<'n>> {
        let there = fields.find(name);
        if there.is_none() {
            let mut path = fields.at.path.clone();
            push_pointer(&mut path, name);
            let message = format!("the field `{name}` is missing");
            self.faults.push(fault(
                FaultCode::MissingField,
                message,
                path,
                fields.at.node.place,
            ));
        }
        there
    }

    /// A required text with a visible character.
    fn visible_text(&mut self, fields: &Fields<'_>, name: &str) -> Option<String> {
        let at = self.required(fields, name)?;
        let text = self.text(&at)?;
        self.visible(&text, &at)
    }

    fn visible(&mut self, text: &str, at: &At<'_>) -> Option<String> {
        if text.trim().is_empty() {
            self.fault(
                FaultCode::BadValue,
                format!("`{}` is blank", name_of(&at.path)),
                at,
            );
            return None;
        }
        Some(text.to_owned())
    }

    /// An optional text; a blank one says nothing.
    fn optional_text(&mut self, fields: &Fields<'_>, name: &str) -> Option<String> {
        let at = fields.optional(name)?;
        self.text(&at).filter(|text| !text.trim().is_empty())
    }

    fn text(&mut self, at: &At<'_>) -> Option<String> {
        if let Value::Text(text) = &at.node.value {
            return Some(text.clone());
        }
        self.wrong_type(at, "a text");
        None
    }

    fn wrong_type(&mut self, at: &At<'_>, wanted: &str) {
        let found = match at.node.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
        };
        let name = name_of(&at.path);
        let message = format!("`{name}` must be {wanted}, not {found}");
        self.fault(FaultCode::BadValue, message, at);
    }

    fn unknown(&mut self, key: &Key, path: String, what: &str, known: &mut dyn Iterator<Item = &str>) {
        let message = format!("there is no {what} `{}`", shown(&key.name));
        self.faults
            .push(fault(FaultCode::UnknownField, message, path, key.place));
        self.suggest(nearest(&key.name, known));
    }

    /// Adds a suggestion to the fault told last.
    fn suggest(&mut self, near: Option<String>) {
        if let Some(last) = self.faults.last_mut() {
            last.suggestion = near;
        }
    }

    fn fault(&mut self, code: FaultCode, message: String, at: &At<'_>) {
        self.faults
            .push(fault(code, message, at.path.clone(), at.node.place));
    }
}

pub(super) fn fault(code: FaultCode, message: String, path: String, place: Place) -> Fault {
    Fault {
        code,
        message,
        path,
        line: Some(place.line),
        column: Some(place.column),
        suggestion: None,
    }
}

/// Adds a step to a JSON pointer (RFC 6901, section 3).
fn push_pointer(path: &mut String, name: &str) {
    path.push('/');
    for character in name.chars() {
        match character {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            other => path.push(other),
        }
    }
}

/// What people call the value at a pointer.
fn name_of(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or("report")
}

/// The start of a text that somebody else wrote, short enough for a message.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
