//! What ought to be going on outside, keyed, kept incrementally.

use std::collections::HashSet;

use crate::id::{ClientMessageId, ClientSessionId, Seq, StepIndex};

/// Names one thing that ought to be going on outside. Doing it twice under the same key is doing it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EffectKey {
    /// A worktree is to be made.
    Lease(StepIndex),
    /// A worktree is to be put back to its base.
    Restart(StepIndex),
    /// A session is to be opened.
    Open(StepIndex, ClientSessionId),
    /// A session is to be found again.
    Find(StepIndex, ClientSessionId),
    /// A message is to be sent, and its answer waited for.
    Send(StepIndex, ClientMessageId),
    /// A person's answer to the permission request asked at this position is to be passed on.
    AnswerPermission(StepIndex, Seq),
    /// A deliverable's files are to be looked at.
    Verify(StepIndex),
    /// What a step left is to be committed.
    Commit(StepIndex),
    /// A step's commit is to be merged.
    Merge(StepIndex),
    /// The integration branch is to be merged into a step's worktree.
    BeginMerge(StepIndex),
    /// Files that conflicted are to be looked at.
    Inspect(StepIndex),
    /// The merge in a step's worktree is to be given up.
    AbandonMerge(StepIndex),
    /// A session is to be asked to stop what it is doing.
    Cancel(StepIndex, ClientSessionId),
    /// A session is to be closed.
    Close(StepIndex, ClientSessionId),
    /// A worktree is to be removed.
    Remove(StepIndex),
    /// The task's check is to be run.
    Check,
    /// The folder made for the check is to be removed.
    ClearCheck,
}

/// What ought to be going on outside, and what changed of it since it was last asked.
#[derive(Debug, Clone, Default)]
pub struct Outbox {
    wanted: HashSet<EffectKey>,
    changed: Vec<EffectKey>,
}

impl Outbox {
    /// Everything that ought to be going on, in no order.
    pub fn iter(&self) -> impl Iterator<Item = EffectKey> + '_ {
        self.wanted.iter().copied()
    }

    /// Whether this ought to be going on.
    #[must_use]
    pub fn contains(&self, key: &EffectKey) -> bool {
        self.wanted.contains(key)
    }

    /// How much ought to be going on.
    #[must_use]
    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    /// Whether nothing ought to be going on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Keys that came or went since the last call, in order; one that came and went may stand twice.
    pub fn take_changes(&mut self) -> Vec<EffectKey> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn want(&mut self, key: EffectKey) {
        if self.wanted.insert(key) {
            self.changed.push(key);
        }
    }

    pub(super) fn drop_key(&mut self, key: EffectKey) {
        if self.wanted.remove(&key) {
            self.changed.push(key);
        }
    }
}
