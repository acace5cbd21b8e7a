//! What people asked of a step, and what it took from an earlier run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ends::StepEnd;
use super::step::{Phase, Step};
use crate::id::{RunId, StepIndex};
use crate::ports::workspace::{Committed, MergedPart};
use crate::time::Timestamp;

/// What people asked of a step, and what came before that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hand {
    /// Times that it was begun anew, by hand or because of a step upstream.
    pub again: u32,
    /// The step upstream because of which it was begun anew at last; none: it was asked for itself.
    pub because: Option<StepIndex>,
    /// The commit of an earlier try that the integration branch holds.
    pub merged: Option<String>,
    /// The earlier run that its result is from (R13).
    pub taken: Option<RunId>,
    /// Whether it is to be skipped once its worktree is made.
    pub(super) skipping: bool,
    /// Time that earlier tries worked, which does not count against this one (R11).
    pub(super) worked_before: Duration,
}

impl Step {
    /// What people asked of it, if anything.
    #[must_use]
    pub fn hand(&self) -> Option<&Hand> {
        self.hand.as_deref()
    }

    pub(super) fn hand_mut(&mut self) -> &mut Hand {
        self.hand.get_or_insert_default()
    }

    /// Whether it is to be skipped once its worktree is made.
    pub(super) fn is_skipping(&self) -> bool {
        self.hand.as_deref().is_some_and(|hand| hand.skipping)
    }

    /// Whether a person skipped it.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        matches!(self.phase, Phase::Ended(StepEnd::Skipped))
    }

    /// Time that its sessions spent answering in this try, up to `now`: what `max_duration` counts (R11).
    pub(super) fn worked_in_this_try(&self, now: Timestamp) -> Duration {
        let before = self
            .hand
            .as_deref()
            .map_or(Duration::ZERO, |hand| hand.worked_before);
        self.worked(now).saturating_sub(before)
    }
}

/// Commits of an earlier run that a step takes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenWork {
    /// The branch that holds them, without `refs/heads/`.
    pub branch: String,
    /// The branch's tip and what it changes.
    pub committed: Committed,
    /// The files by which they conflicted there and were not merged; none: they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// What of them is taken, merge by merge; empty: all that they stand on. Named where they may stand on the work of
    /// a step that runs again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MergedPart>,
}

impl TakenWork {
    /// Whether the new run merges them.
    #[must_use]
    pub fn is_to_be_merged(&self) -> bool {
        self.conflicts.is_empty() && self.committed.commits > 0
    }
}
