//! A conflict of a step's work, on its way to its agent and back (R17).
//!
//! The session of a step stays open until its work is merged. When the merge conflicts, the integration branch's tip
//! is merged into the step's worktree as far as it goes, and the step takes a place again to tell its agent. The agent
//! answers with a new report, the files are looked at, and the work is committed and merged as before. A session that
//! is lost meanwhile starts its step again like any other (R12). A failure meanwhile fails the step like any other;
//! the merge in its worktree is given up first.

use super::Run;
use super::event::StepEnd;
use super::step::{Conflict, Next, Phase};
use super::work::MergeDone;
use crate::id::StepIndex;
use crate::ports::workspace::MergedPart;
use crate::time::Timestamp;

/// Times that a conflict goes to its agent before the step is `partial` (R17).
pub const CONFLICT_RETURNS: u8 = 2;

impl Run {
    /// The end that the step was on its way to when its work conflicted.
    fn end_on_the_way(&self, step: StepIndex) -> Result<StepEnd, String> {
        match &self.steps[step.position()].phase {
            Phase::Merging(end) | Phase::BeginningMerge(end) | Phase::Inspecting(end) => Ok(end.clone()),
            Phase::Pending
            | Phase::Ready
            | Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Waiting(_)
            | Phase::Held(_)
            | Phase::Asking(_)
            | Phase::Gathering
            | Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Ended(_) => Err("nothing of the step is being merged".to_owned()),
        }
    }

    /// The integration branch holds the step's work. One that held it before was not changed.
    pub(super) fn merged(&mut self, step: StepIndex, tip: &str) {
        let repository = self.definition.repository.as_ref();
        let before = self.tip.take().or_else(|| repository.map(|one| one.base.clone()));
        let work = self.step_mut(step).work_mut();
        work.merged = true;
        if let (Some(onto), Some(committed)) = (before, work.committed.clone())
            && onto != tip
        {
            let tip = tip.to_owned();
            self.merges.push(MergeDone {
                step,
                part: MergedPart { onto, tip },
                work: committed,
            });
        }
        self.tip = Some(tip.to_owned());
    }

    pub(super) fn conflict_returned(&mut self, step: StepIndex, at: Timestamp) -> Result<(), String> {
        let end = self.end_on_the_way(step)?;
        self.pass_to(step, Phase::BeginningMerge(end), at);
        Ok(())
    }

    pub(super) fn merge_begun(
        &mut self,
        step: StepIndex,
        onto: &str,
        files: &[String],
        at: Timestamp,
    ) -> Result<(), String> {
        let end = self.end_on_the_way(step)?;
        if files.is_empty() {
            self.pass_to(step, Phase::MergeQueued(end), at);
            self.merge_queue.push_back(step);
            return Ok(());
        }
        let state = self.step_mut(step);
        // The report on the conflict is a report of its own.
        state.corrections = 0;
        let work = state.work_mut();
        work.conflicts = files.to_vec();
        work.conflict = Some(Conflict {
            onto: onto.to_owned(),
            files: files.to_vec(),
            told: false,
        });
        self.resolve_when_ready(step, at);
        Ok(())
    }

    pub(super) fn conflict_resolved(&mut self, step: StepIndex, at: Timestamp) -> Result<(), String> {
        let end = self.end_on_the_way(step)?;
        self.step_mut(step).work_mut().conflict = None;
        self.pass_to(step, Phase::Committing(end), at);
        Ok(())
    }

    pub(super) fn conflict_left(&mut self, step: StepIndex, files: &[String], at: Timestamp) {
        let state = self.step_mut(step);
        state.corrections = 0;
        let work = state.work_mut();
        work.conflicts = files.to_vec();
        if let Some(conflict) = &mut work.conflict {
            conflict.told = false;
        }
        self.resolve_when_ready(step, at);
    }

    fn resolve_when_ready(&mut self, step: StepIndex, at: Timestamp) {
        self.leave(step, at);
        self.step_mut(step).next = Next::Resolve;
        self.enter(step, Phase::Ready, at);
    }

    pub(super) fn conflict_given_up(
        &mut self,
        step: StepIndex,
        files: &[String],
        end: &StepEnd,
        at: Timestamp,
    ) {
        self.step_mut(step).work_mut().conflicts = files.to_vec();
        self.pass_to(step, Phase::Abandoning(end.clone()), at);
    }

    pub(super) fn merge_abandoned(&mut self, step: StepIndex, rescued: Option<&String>) {
        let work = self.step_mut(step).work_mut();
        work.conflict = None;
        work.keep_rescued(rescued);
    }

    /// The conflict was told to its agent.
    pub(super) fn conflict_told(&mut self, step: StepIndex) {
        let work = self.step_mut(step).work_mut();
        work.conflict_returns = work.conflict_returns.saturating_add(1);
        if let Some(conflict) = &mut work.conflict {
            conflict.told = true;
        }
    }
}
