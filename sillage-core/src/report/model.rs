//! What a report says, once found and checked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The short structured result of a step (W15). One that passed its checks: within bounds, without contradiction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How it went.
    pub outcome: Outcome,
    /// What was done, in at most 2,000 characters.
    pub summary: String,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// What was checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What stands in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// What it points at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// Declared outputs by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// What should come next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<String>,
}

/// How a step went, by its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All of the mission.
    Complete,
    /// Part of it.
    Partial,
    /// Something stands in the way; what follows is stopped.
    Blocked,
}

/// A decision taken on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was decided.
    pub title: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A check that was made, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What kind.
    pub kind: CheckKind,
    /// How it went.
    pub status: CheckStatus,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Kinds of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum CheckKind {
    Build,
    UnitTest,
    RuntimeTest,
    Lint,
    Review,
    Other,
}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum CheckStatus {
    Passed,
    Failed,
    NotRun,
}

/// Something that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// What it is.
    pub title: String,
    /// What would lift it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
}

/// Something that a report points at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// What kind.
    pub kind: ReferenceKind,
    /// The path, hash, name or address.
    pub value: String,
}

/// Kinds of reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ReferenceKind {
    File,
    Commit,
    Branch,
    Url,
}

/// Gives an enum its words in JSON, once, for reading and for writing by hand.
macro_rules! words {
    ($name:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The word that stands for it in a report.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }
        }
    };
}

words!(Outcome { Complete => "complete", Partial => "partial", Blocked => "blocked" });
words!(CheckKind {
    Build => "build",
    UnitTest => "unit_test",
    RuntimeTest => "runtime_test",
    Lint => "lint",
    Review => "review",
    Other => "other",
});
words!(CheckStatus { Passed => "passed", Failed => "failed", NotRun => "not_run" });
words!(ReferenceKind { File => "file", Commit => "commit", Branch => "branch", Url => "url" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w15_words_are_those_of_the_json_form() {
        fn check<T: Copy + Serialize>(all: &[T], word: fn(T) -> &'static str) {
            for value in all {
                assert_eq!(serde_json::to_value(value).expect("a word"), word(*value));
            }
        }
        check(Outcome::ALL, Outcome::word);
        check(CheckKind::ALL, CheckKind::word);
        check(CheckStatus::ALL, CheckStatus::word);
        check(ReferenceKind::ALL, ReferenceKind::word);
    }
}
