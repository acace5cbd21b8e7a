//! What a step leaves: its work in git, and what it has spent and suffered.

use std::time::Duration;

use super::stray::StrayWrite;
use crate::fault::Fault;
use crate::id::{ClientSessionId, StepIndex};
use crate::ports::runtime::Usage;
use crate::ports::workspace::{Committed, Hold, MergedPart, Worktree};

/// What became of a step's worktree and commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    /// Branch and base as planned.
    pub planned: Option<(String, String)>,
    /// The worktree, once made.
    pub worktree: Option<Worktree>,
    /// The branch's tip once committed.
    pub committed: Option<Committed>,
    /// What of it is merged, where it is taken from an earlier run; empty: all that it stands on.
    pub parts: Vec<MergedPart>,
    /// Whether the integration branch holds it.
    pub merged: bool,
    /// The files that conflicted when it was last tried or looked at.
    pub conflicts: Vec<String>,
    /// The merge begun in the worktree, while its agent is to resolve it.
    pub conflict: Option<Conflict>,
    /// Times that a conflict went to its agent.
    pub conflict_returns: u8,
    /// Files of the person's checkout that changed while it was at work.
    pub stray: Vec<StrayWrite>,
    /// Whether the worktree was removed.
    pub removed: bool,
    /// What held the worktree when it was last asked to go.
    pub holds: Vec<Hold>,
    /// Where earlier work was kept.
    pub rescued: Vec<String>,
}

impl Work {
    /// Where earlier work was kept, once: what is kept again, after a crash for one, is kept under the same name.
    pub(super) fn keep_rescued(&mut self, rescued: Option<&String>) {
        let new = rescued.filter(|name| !self.rescued.contains(name));
        self.rescued.extend(new.cloned());
    }
}

/// A merge that changed the integration branch.
#[derive(Debug, Clone)]
pub(super) struct MergeDone {
    /// Whose work it merged.
    pub(super) step: StepIndex,
    /// What it changed.
    pub(super) part: MergedPart,
    /// The work.
    pub(super) work: Committed,
}

/// A merge begun in a step's worktree, for its agent to resolve (R17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The integration branch's tip that is being merged.
    pub onto: String,
    /// The files that conflicted when it was begun.
    pub files: Vec<String>,
    /// Whether its agent was told of what conflicts now.
    pub told: bool,
}

/// What a step has spent and suffered; absent while there is nothing to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Usage of its sessions that are over, added up.
    pub earlier_usage: Usage,
    /// Usage of sessions that are not its own any more and are being closed: they may still tell more.
    pub leaving: Vec<(ClientSessionId, Usage)>,
    /// Time spent waiting, for a date or for a person.
    pub waited: Duration,
    /// Waits, for a date or for a person.
    pub waits: u32,
    /// The faults of its last refused report.
    pub faults: Vec<Fault>,
    /// Troubles in closing its sessions.
    pub troubles: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r12_where_work_was_kept_is_told_once() {
        let mut work = Work::default();
        let (one, two) = ("refs/1".to_owned(), "refs/2".to_owned());
        for kept in [Some(&one), None, Some(&one), Some(&two)] {
            work.keep_rescued(kept);
        }
        assert_eq!(work.rescued, [one, two]);
    }
}
