//! How steps and runs end.

use serde::{Deserialize, Serialize};

use super::event::Failure;
use crate::id::StepIndex;

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// All of its mission.
    Complete,
    /// Part of it.
    Partial,
    /// Something stands in its way.
    Blocked,
    /// It failed.
    Failed(Box<Failure>),
    /// It was cancelled, and can be resumed.
    Cancelled,
    /// It was not run, because of this step upstream.
    NotRun(StepIndex),
    /// A person skipped it: what follows runs without it.
    Skipped,
    /// It was not run, because a ceiling of the run was reached before its turn, or before that of a step upstream.
    OverBudget,
    /// It was not run, because this step failed first and the run was to begin nothing more then.
    FailedFast(StepIndex),
}

impl StepEnd {
    /// The state's name, in the words of R2.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            StepEnd::Complete => "complete",
            StepEnd::Partial => "partial",
            StepEnd::Blocked => "blocked",
            StepEnd::Failed(_) => "failed",
            StepEnd::Cancelled => "cancelled",
            StepEnd::NotRun(_) | StepEnd::Skipped | StepEnd::OverBudget | StepEnd::FailedFast(_) => "not_run",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Every step is complete.
    Complete,
    /// Some step is partial.
    Partial,
    /// Some step is blocked.
    Blocked,
    /// Some step failed.
    Failed,
    /// A person stopped it.
    Stopped,
}

impl RunEnd {
    /// The state's name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            RunEnd::Complete => "complete",
            RunEnd::Partial => "partial",
            RunEnd::Blocked => "blocked",
            RunEnd::Failed => "failed",
            RunEnd::Stopped => "stopped",
        }
    }
}
