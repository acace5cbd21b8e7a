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

/// Faults that [`told`] names.
const TOLD: usize = 20;

/// Faults in one sentence: the first twenty, and how many more there are.
#[must_use]
pub fn told(faults: &[Fault]) -> String {
    let named: Vec<String> = faults.iter().take(TOLD).map(ToString::to_string).collect();
    let named = named.join("; ");
    match faults.len().saturating_sub(TOLD) {
        0 => named,
        1 => format!("{named}; and 1 more fault"),
        more => format!("{named}; and {more} more faults"),
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
    /// A folder that agents cannot be given: it is missing, cannot be read, or is never theirs to write.
    UnusableFolder,
    /// A value that is not among those allowed.
    BadValue,
    /// A text over its bound.
    TooLong,
    /// A deliverable's file that is missing or empty.
    MissingDeliverable,
    /// An answer cut by the model's limit.
    CutAnswer,
    /// No plan in an answer.
    NoPlan,
    /// A plan without units of work.
    NoUnits,
    /// More sub-agents than the dynamic agent may have.
    TooManySubAgents,
    /// A unit of work that no sub-agent has.
    UnitUncovered,
    /// A unit of work that stands more than once among those of the sub-agents.
    UnitCoveredTwice,
    /// A sub-agent's unit of work that the plan does not list.
    UnknownUnit,
    /// A sub-agent without units of work.
    EmptySubAgent,
    /// A field that exists, and that the dynamic agent's coordinator may not write for its sub-agents.
    FieldNotDelegated,
    /// A model and effort that sub-agents may not use together.
    PairNotAllowed,
    /// A sub-agent that is to follow one that is not in the plan.
    UnknownAfter,
}

/// Names longer than this are not compared: nobody means another name by one so long, and comparing costs the
/// product of the lengths.
const LONGEST_NAME: usize = 64;

/// The candidate that `name` was most likely meant to be, if one is near: the same but for case, at most a third
/// of the letters wrong (a swap of neighbours is one), or one name the beginning of the other.
/// The first of several equally near ones.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let length = name.chars().count();
    if length == 0 || length > LONGEST_NAME {
        return None;
    }
    let lower = name.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let Some(distance) = distance(&lower, length, candidate) else {
            continue;
        };
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate.to_owned())
}

/// How far `candidate` is from a name in lower case; none when it is not near.
fn distance(lower: &str, length: usize, candidate: &str) -> Option<usize> {
    let candidate_length = candidate.chars().count();
    let longer = length.max(candidate_length);
    if longer > LONGEST_NAME {
        return None;
    }
    let candidate = candidate.to_lowercase();
    let bound = (longer / 3).max(1);
    let distance = if length.abs_diff(candidate_length) > bound {
        usize::MAX
    } else {
        strsim::osa_distance(lower, &candidate)
    };
    // A name of one letter is no nearer to another of one letter than to any other.
    if distance <= bound && distance < longer {
        return Some(distance);
    }
    let shorter = length.min(candidate_length);
    let begins = candidate.starts_with(lower) || lower.starts_with(candidate.as_str());
    (shorter >= 3 && begins).then_some(LONGEST_NAME + longer - shorter)
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

    #[test]
    fn w11_slips_of_the_hand_are_seen_through() {
        let names = ["mission", "model", "max_duration", "kind"];
        for (slip, meant) in [
            ("modle", "model"),
            ("misson", "mission"),
            ("Model", "model"),
            ("maxduration", "max_duration"),
            ("max", "max_duration"),
            ("kinds", "kind"),
        ] {
            assert_eq!(nearest(slip, names).as_deref(), Some(meant), "{slip}");
        }
        for other in ["", "zed", "x", "timeout", &"m".repeat(100)] {
            assert_eq!(nearest(other, names), None, "{other}");
        }
    }

    #[test]
    fn w11_of_very_many_faults_the_first_are_named_and_the_rest_counted() {
        let faults = |count: usize| -> Vec<Fault> {
            let of = |number| Fault {
                code: FaultCode::UnknownField,
                message: format!("fault {number}"),
                path: String::new(),
                line: None,
                column: None,
                suggestion: None,
            };
            (1..=count).map(of).collect()
        };
        assert_eq!(told(&faults(2)), "fault 1; fault 2");
        assert!(told(&faults(20)).ends_with("; fault 20"));
        assert!(told(&faults(21)).ends_with("; fault 20; and 1 more fault"));
        assert!(told(&faults(2_000)).ends_with("; fault 20; and 1980 more faults"));
    }

    #[test]
    fn one_letter_is_no_hint_but_its_case_is() {
        assert_eq!(nearest("c", ["a", "b"]), None);
        assert_eq!(nearest("B", ["a", "b"]).as_deref(), Some("b"));
        assert_eq!(nearest("bb", ["a", "b"]).as_deref(), Some("b"));
    }

    #[test]
    fn the_nearest_wins_and_the_first_of_equals() {
        assert_eq!(
            nearest("sonet", ["sonnets", "sonnet", "sonnett"]).as_deref(),
            Some("sonnet")
        );
        assert_eq!(nearest("ab1", ["ab2", "ab3"]).as_deref(), Some("ab2"));
    }
}
