//! Faults: what is wrong in something that a person or an agent wrote, each with its place.
//!
//! Faults are gathered and told all at once (W11). They are neither failures of a step nor errors of our own IO.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that is wrong in a task, a plan, a report or a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What kind of fault, for programs.
    pub code: FaultCode,
    /// What is wrong and what to do, for people. One sentence, lower case, no full stop.
    pub message: String,
    /// JSON pointer (RFC 6901) to the value at fault; empty for the whole document.
    pub path: String,
    /// Line of the value in its text, from 1, where the text is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in characters, from 1, where the text is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The nearest thing that would have been right, where one is near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}: ")?;
        } else if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let Some(near) = &self.suggestion {
            write!(f, " (did you mean `{near}`?)")?;
        }
        Ok(())
    }
}

/// Kinds of fault. The same names stand in the JSON answers of `check`, `report check` and `plan check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultCode {
    /// The text is not YAML or JSON, or gives a key twice. Ends the reading.
    Syntax,
    /// The text is over its size bound. Ends the reading.
    TooLarge,
    /// The text nests too deep. Ends the reading.
    TooDeep,
    /// The text's aliases would expand beyond any use. Ends the reading.
    AliasBomb,
    /// A value has the wrong type.
    BadType,
    /// A required field is not there.
    MissingField,
    /// A field that does not exist.
    UnknownField,
    /// A mission without a visible character.
    BlankMission,
    /// An identifier outside `[a-z0-9][a-z0-9_-]{0,63}`.
    BadId,
    /// An identifier given twice.
    DuplicateId,
    /// A task without agents.
    NoAgents,
    /// A link or setting names an agent that is not there.
    UnknownAgent,
    /// A link names an input or output that its agent does not declare.
    UnknownPort,
    /// The same link twice.
    DuplicateLink,
    /// A link from an agent to itself.
    SelfLink,
    /// Links that form a cycle.
    Cycle,
    /// A limit that is zero, negative, fractional or out of range.
    BadLimit,
    /// A duration that is not written as `1h30m`, or is zero.
    BadDuration,
    /// A model that no configured agent offers.
    UnknownModel,
    /// An effort that the model does not offer.
    UnknownEffort,
    /// Two statements that exclude each other.
    Contradiction,
    /// No report in an answer.
    NoReport,
    /// JSON that does not parse.
    BadJson,
    /// A value that is not among those allowed.
    BadValue,
    /// A text over its bound.
    TooLong,
    /// A deliverable's file that is missing or empty.
    MissingDeliverable,
    /// An answer cut by the model's limit.
    CutAnswer,
}

/// The candidate that `word` was probably meant to be: the nearest one, if a slip or two away whatever the case.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    /// Longer words are not slips of a name, and comparing costs the product of the lengths.
    const LONGEST: usize = 80;
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let slips = 1 + word.chars().count() / 4;
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= slips && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w11_suggests_what_is_near_and_nothing_else() {
        let models = ["opus", "sonnet", "haiku"];
        assert_eq!(nearest("sonet", models).as_deref(), Some("sonnet"));
        assert_eq!(nearest("SONNET", models).as_deref(), Some("sonnet"));
        assert_eq!(nearest("opsu", models).as_deref(), Some("opus"));
        assert_eq!(nearest("gpt", models), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest("x", ["a", "b"]), None);
        assert_eq!(nearest(&"s".repeat(1_000_000), models), None);
    }
}
