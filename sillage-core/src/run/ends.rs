//! How steps and runs end.

use serde::{Deserialize, Serialize};

use super::Run;
use super::event::Failure;
use super::step::{Phase, Step};
use crate::id::StepIndex;
use crate::planted::{Bug, planted};

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

impl Step {
    /// Whether what follows may run: it is complete or partial, and nothing stands in the way; or it was skipped (W18).
    #[must_use]
    pub fn lets_follow(&self) -> bool {
        self.is_skipped() || self.succeeded()
    }

    /// Whether it is complete or partial, and nothing stands in the way.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        let passed = matches!(self.phase, Phase::Ended(StepEnd::Complete | StepEnd::Partial));
        passed && self.report.as_ref().is_none_or(|r| r.blockers.is_empty())
    }
}

impl Run {
    /// How the run ends when every step is over, by R2.
    pub(super) fn outcome(&self) -> RunEnd {
        match (self.outcome_of_steps(), self.check()) {
            (RunEnd::Complete, Some(check)) if !check.passed => RunEnd::Partial,
            (end, _) => end,
        }
    }

    pub(super) fn outcome_of_steps(&self) -> RunEnd {
        let mut end = RunEnd::Complete;
        // A sub-agent's end is told by its coordinator's.
        for step in &self.steps[..self.definition.task.agents.len()] {
            let this = match step.end() {
                Some(StepEnd::Failed(_)) => return RunEnd::Failed,
                Some(StepEnd::Blocked) if planted(Bug::BlockedAsComplete) => RunEnd::Complete,
                Some(StepEnd::Blocked) => RunEnd::Blocked,
                Some(StepEnd::Complete | StepEnd::Partial) if !step.lets_follow() => RunEnd::Blocked,
                Some(StepEnd::Partial | StepEnd::Cancelled | StepEnd::OverBudget | StepEnd::Skipped) => {
                    RunEnd::Partial
                }
                Some(StepEnd::Complete | StepEnd::NotRun(_) | StepEnd::FailedFast(_)) | None => {
                    RunEnd::Complete
                }
            };
            end = match (end, this) {
                (RunEnd::Blocked, _) | (_, RunEnd::Blocked) => RunEnd::Blocked,
                (RunEnd::Partial, _) | (_, RunEnd::Partial) => RunEnd::Partial,
                (end, _) => end,
            };
        }
        end
    }
}
