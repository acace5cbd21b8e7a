//! Believing what a person asked of the run as a whole, and that another engine took it up.

use super::step::{Next, Phase, StepSession};
use super::{Run, Stage};
use crate::id::StepIndex;
use crate::planted::{Bug, planted};
use crate::time::Timestamp;

impl Run {
    pub(super) fn engine_started(&mut self, at: Timestamp) {
        // What passed between the last event and now was nobody's work.
        let stopped_working = self.updated;
        if planted(Bug::WaitNotRearmed) {
            self.timers.clear();
        }
        for position in 0..self.steps.len() {
            let step = StepIndex(u32::try_from(position).unwrap_or(u32::MAX));
            let held_up =
                self.steps[position].is_answering() && self.steps[position].phase != Phase::Prompted;
            self.forget_permissions(step);
            let state = &mut self.steps[position];
            let Some(session) = state.session.as_deref_mut() else {
                continue;
            };
            session.attached = false;
            match state.phase {
                Phase::Prompted => {
                    self.leave(step, stopped_working);
                    self.enter(step, Phase::Finding, at);
                }
                // It holds no place to look for its session in.
                Phase::Ready | Phase::Asking(_) if held_up => {
                    self.leave(step, stopped_working);
                    self.step_mut(step).next = Next::Find;
                    self.enter(step, Phase::Ready, at);
                }
                // Whether it was opened is not known: it is looked for, so that its identifier starts nothing twice.
                Phase::Opening if planted(Bug::RestartOpensAnew) => {
                    state.next = Next::Begin;
                    self.pass_to(step, Phase::Ready, at);
                }
                Phase::Opening => self.pass_to(step, Phase::Finding, at),
                Phase::Pending
                | Phase::Ready
                | Phase::Leasing
                | Phase::Restarting
                | Phase::Finding
                | Phase::Verifying
                | Phase::Waiting(_)
                | Phase::Held(_)
                | Phase::Asking(_)
                | Phase::Gathering
                | Phase::Closing(_)
                | Phase::Committing(_)
                | Phase::BeginningMerge(_)
                | Phase::Inspecting(_)
                | Phase::Abandoning(_)
                | Phase::MergeQueued(_)
                | Phase::Merging(_)
                | Phase::Ended(_) => {
                    if state.next == Next::Open {
                        state.next = Next::Find;
                    }
                }
            }
        }
    }

    pub(super) fn stop_asked(&mut self, forced: bool, at: Timestamp) {
        let since = match self.stage {
            Stage::Stopping { since, .. } => since,
            Stage::Running | Stage::Ended(_) => at,
        };
        self.stage = Stage::Stopping { since, forced };
        self.stop_check();
        self.keep_worktrees();
        let mut live: Vec<StepIndex> = self.live.values().copied().collect();
        // The same log asks for the same things in the same order.
        live.sort_unstable();
        for step in live {
            self.drop_answers(step);
            // It has a message to be cancelled.
            if self.steps[step.position()].is_answering() && self.steps[step.position()].phase == Phase::Ready
            {
                self.pass_to(step, Phase::Asking(at), at);
            }
            self.want_cancel(step);
        }
    }

    /// Steps that did not succeed are pending again (R12); those cancelled look for their session first.
    pub(super) fn resume_asked(&mut self, at: Timestamp) {
        self.stage = Stage::Running;
        self.engine_started(at);
        for (of, sub) in self.reported_without() {
            self.gather_anew(of, sub, at);
        }
        let again: Vec<StepIndex> = (0..self.steps.len())
            .map(|position| StepIndex(u32::try_from(position).unwrap_or(u32::MAX)))
            .filter(|step| {
                let state = &self.steps[step.position()];
                matches!(state.phase, Phase::Ended(_)) && !state.succeeded() && !self.stays_lost(*step)
            })
            .collect();
        self.check_again(!again.is_empty());
        let (skipped, again): (Vec<StepIndex>, Vec<StepIndex>) = again
            .into_iter()
            .partition(|step| self.steps[step.position()].is_skipped());
        // What ran without them runs again.
        for step in &skipped {
            self.outdate_what_follows(*step);
        }
        for step in skipped {
            self.begin_anew(step, None, at);
        }
        for step in again
            .into_iter()
            .filter(|step| !self.outdated.contains_key(step) && !self.stays_lost(*step))
            .collect::<Vec<_>>()
        {
            self.leave(step, at);
            let to_synthesize = self.has_untold_group(step).then(|| self.next_to_synthesize(step));
            let state = self.step_mut(step);
            let has_session = state.session.as_deref().is_some_and(|s| s.opened.is_some());
            state.ended = None;
            state.report = None;
            state.tries = 0;
            state.next = match has_session {
                true => to_synthesize.unwrap_or(Next::Continue),
                // It was to be done again on what is merged by then, and never began.
                false if state.next == Next::Anew => Next::Anew,
                false => state.next_without_session(),
            };
            match state
                .session
                .as_deref()
                .map(StepSession::id)
                .filter(|_| has_session)
            {
                Some(session) => {
                    self.live.insert(session, step);
                }
                None => {
                    state.corrections = 0;
                    if !state.worked.is_zero() {
                        state.hand_mut().worked_before = state.worked;
                    }
                    if let Some(group) = state.group.as_deref_mut() {
                        group.returns = 0;
                    }
                    if let Some(work) = state.work.as_deref_mut() {
                        work.conflict_returns = 0;
                    }
                    self.drop_session(step);
                }
            }
        }
        self.gather_again(at);
        for node in 0..u32::try_from(self.steps.len()).unwrap_or(u32::MAX) {
            let parents = self.graph.parents(node);
            let unmet = parents
                .iter()
                .filter(|p| !self.steps[**p as usize].lets_follow())
                .count();
            let state = &mut self.steps[node as usize];
            state.unmet = u32::try_from(unmet).unwrap_or(u32::MAX);
            if state.phase == Phase::Pending && unmet == 0 {
                self.enter(StepIndex(node), Phase::Ready, at);
            }
        }
        self.gates_resumed(at);
    }
}
