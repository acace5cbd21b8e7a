//! What a task says of an agent's work, and a plan of a sub-agent's, in the same words (W6, W19).

use std::path::{Component, Path, PathBuf};

use super::super::{Deliverable, Resource};
use crate::document::Value;
use crate::document::check::{Checker, Fields, Spot, brief};
use crate::fault::FaultCode;

pub(in crate::task) const DELIVERABLE_FIELDS: &[&str] = &["text", "files"];

/// Whether this is an identifier; a fault if it is not.
pub(crate) fn check_id(checker: &mut Checker, spot: &Spot<'_>, id: &str) -> bool {
    if is_id(id) {
        return true;
    }
    let message = format!(
        "`{}` is no id: it takes 1 to 64 of a-z, 0-9, `_` and `-`, the first a letter or digit",
        brief(id)
    );
    checker.fault(
        FaultCode::BadId,
        message,
        &spot.path,
        Some(spot.node.place),
        as_id(id),
    );
    false
}

/// An optional text; one that is blank says nothing.
pub(crate) fn optional_text(checker: &mut Checker, fields: &Fields<'_>, name: &str) -> Option<String> {
    let text = checker.text(&fields.optional(name)?)?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// What an agent starts from; nothing where the field is left out.
pub(crate) fn resources(checker: &mut Checker, fields: &Fields<'_>) -> Vec<Resource> {
    let texts = fields.optional("resources").and_then(|spot| checker.texts(&spot));
    texts
        .unwrap_or_default()
        .into_iter()
        .map(|(_, text)| Resource(text.to_owned()))
        .collect()
}

/// What an agent must hand over: a text, or a text and files.
pub(crate) fn deliverable(checker: &mut Checker, fields: &Fields<'_>) -> Option<Deliverable> {
    let spot = fields.optional("deliverable")?;
    match &spot.node.value {
        Value::Map(_) => {}
        Value::Text(text) => {
            return Some(Deliverable {
                text: Some(text.clone()),
                files: Vec::new(),
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) => {
            return checker.bad_type(&spot, "a text, or a map of `text` and `files`");
        }
    }
    let fields = checker.fields(spot, "`deliverable`", DELIVERABLE_FIELDS)?;
    let files = fields
        .optional("files")
        .and_then(|spot| checker.texts(&spot))
        .unwrap_or_default();
    for (spot, file) in &files {
        if !stays_inside(Path::new(file)) {
            let message = format!(
                "`{}` must be a path to a file within the step's folder",
                brief(file)
            );
            checker.fault_at(spot, checker.wrong_value(), message);
        }
    }
    Some(Deliverable {
        text: optional_text(checker, &fields, "text"),
        files: files.into_iter().map(|(_, file)| PathBuf::from(file)).collect(),
    })
}

/// `[a-z0-9][a-z0-9_-]{0,63}` (W6).
pub(crate) fn is_id(text: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= 64
        && text.bytes().next().is_some_and(alphanumeric)
        && text.bytes().all(|b| alphanumeric(b) || b == b'_' || b == b'-')
}

/// The identifier that a text comes closest to: lower case, with hyphens for what does not fit.
fn as_id(text: &str) -> Option<String> {
    let fitting = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let id: String = text
        .trim()
        .chars()
        .map(fitting)
        .skip_while(|c| !c.is_ascii_alphanumeric())
        .take(64)
        .collect();
    let id = id.trim_end_matches('-');
    is_id(id).then(|| id.to_owned())
}

/// Whether a relative path names something in its folder wherever that is. No path of ours goes up and comes back.
fn stays_inside(path: &Path) -> bool {
    let mut names = 0;
    for component in path.components() {
        match component {
            Component::Normal(_) => names += 1,
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    names > 0
}
