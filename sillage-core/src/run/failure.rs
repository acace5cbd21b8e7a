//! Why steps fail, and what they wait for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The class.
    pub class: FailureClass,
    /// The words of whoever said so, for people.
    pub words: String,
}

/// E.g. `timed out: after 10m`. Words that begin with the class do not have it before them again.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, words) = (self.class.word(), &self.words);
        match words.starts_with(class) {
            true => f.write_str(words),
            false => write!(f, "{class}: {words}"),
        }
    }
}

/// Classes of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The report was refused too often (W17).
    ReportRefused,
    /// The plan was refused too often (W21).
    PlanRefused,
    /// Every sub-agent was lost (W23).
    SubAgentsLost,
    /// The working time was used up (R11).
    TimedOut,
    /// A permanent error of the provider or the agent (R9).
    Permanent,
    /// The provider answered that an identifier came before with another request: a defect (R6).
    Conflict,
    /// The agent's process or session ended while it was answering.
    AgentLost,
    /// The step's worktree is gone.
    WorktreeLost,
    /// A worktree, commit or merge could not be made.
    Workspace,
    /// Too many temporary errors in a row.
    Attempts,
}

impl FailureClass {
    /// What it is called, for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            FailureClass::ReportRefused => "report refused",
            FailureClass::PlanRefused => "plan refused",
            FailureClass::SubAgentsLost => "sub-agents lost",
            FailureClass::TimedOut => "timed out",
            FailureClass::Permanent => "permanent error",
            FailureClass::Conflict => "identifier conflict",
            FailureClass::AgentLost => "agent lost",
            FailureClass::WorktreeLost => "worktree lost",
            FailureClass::Workspace => "workspace error",
            FailureClass::Attempts => "too many attempts",
        }
    }
}

/// What a step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// A temporary error to pass.
    Backoff,
    /// A quota to be given back.
    Quota,
    /// Someone to sign in.
    SignIn,
    /// The runtime, which is full, to have room.
    Capacity,
}

impl WaitCause {
    /// Whether its length is ours to choose: one that a step waits by itself, not with its account.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        match self {
            WaitCause::Backoff | WaitCause::Capacity => true,
            WaitCause::Quota | WaitCause::SignIn => false,
        }
    }

    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            WaitCause::Backoff => "backoff",
            WaitCause::Quota => "quota",
            WaitCause::SignIn => "sign-in",
            WaitCause::Capacity => "capacity",
        }
    }
}
