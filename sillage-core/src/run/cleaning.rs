//! When the worktrees of a run are asked to go (R19).

use super::event::RunEnd;
use super::outbox::EffectKey;
use super::{Run, Stage};
use crate::id::StepIndex;

impl Run {
    /// At the end of a successful run, once its sessions are closed, each worktree is asked to go (R19).
    pub(super) fn clean_when_done(&mut self) {
        let over =
            self.ended as usize == self.steps.len() && self.closing.is_empty() && self.outdated.is_empty();
        if self.stage != Stage::Running || !over || self.removing > 0 {
            return;
        }
        if !matches!(self.outcome(), RunEnd::Complete | RunEnd::Partial) {
            return;
        }
        for position in 0..self.steps.len() {
            let step = StepIndex(u32::try_from(position).unwrap_or(u32::MAX));
            let state = &self.steps[position];
            if state.worktree().is_some() && state.work.as_deref().is_some_and(|w| !w.removed) {
                self.removing += 1;
                self.outbox.want(EffectKey::Remove(step));
            }
        }
    }

    /// Worktrees that were to go stay for now: a run that stops begins nothing more, and whoever cleans sees to them.
    pub(super) fn keep_worktrees(&mut self) {
        if self.removing == 0 {
            return;
        }
        self.removing = 0;
        for position in 0..self.steps.len() {
            let key = EffectKey::Remove(StepIndex(u32::try_from(position).unwrap_or(u32::MAX)));
            if self.outbox.contains(&key) {
                self.outbox.drop_key(key);
            }
        }
    }

    /// A worktree is gone, or is kept after all.
    pub(super) fn cleaned(&mut self, step: StepIndex) {
        self.removing = self.removing.saturating_sub(1);
        self.outbox.drop_key(EffectKey::Remove(step));
    }
}
