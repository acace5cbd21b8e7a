//! What is kept in step with where each step stands: its place, its timer, its entry in the outbox, its session.

use std::sync::Arc;

use super::event::WaitCause;
use super::outbox::EffectKey;
use super::step::{Next, Phase, Wait};
use super::{Run, Stage};
use crate::id::StepIndex;
use crate::planted::{Bug, planted};
use crate::time::Timestamp;

impl Run {
    pub(super) fn pass_to(&mut self, step: StepIndex, phase: Phase, at: Timestamp) {
        self.leave(step, at);
        self.enter(step, phase, at);
    }

    /// Undoes the bookkeeping of the step's phase. What the phase's effect is keyed by must not change before.
    pub(super) fn leave(&mut self, step: StepIndex, at: Timestamp) {
        if let Some(key) = self.effect_key(step) {
            self.outbox.drop_key(key);
        }
        if let Some(session) = self.steps[step.position()].session.as_deref() {
            self.outbox.drop_key(EffectKey::Cancel(step, session.id()));
        }
        self.drop_answers(step);
        let position = step.position();
        let state = &mut self.steps[position];
        if let Some(since) = state.working_since.take() {
            state.worked += at.since(since);
        }
        if let Some(timer) = state.timer.take() {
            self.timers.remove(&(timer, step));
        }
        match &state.phase {
            Phase::Ready => self.places.not_ready(position),
            Phase::Ended(_) => self.ended -= 1,
            Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_) => self.ending -= 1,
            Phase::Merging(_) => {
                self.ending -= 1;
                self.merging = None;
            }
            Phase::Waiting(wait) => {
                let waited = at.since(wait.since);
                if wait.cause.is_ours() {
                    self.gates.ends_backoff(step);
                }
                state.ledger_mut().waited += waited;
            }
            Phase::Held(since) => {
                let waited = at.since(*since);
                state.ledger_mut().waited += waited;
                self.gates.let_go(step, self.places.key(position));
            }
            Phase::Asking(since) => {
                let waited = at.since(*since);
                state.ledger_mut().waited += waited;
                self.asking -= 1;
            }
            Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying => self.places.give_back(position),
            Phase::Pending | Phase::Gathering => {}
        }
        let was_over = matches!(state.phase, Phase::Ended(_));
        if state.succeeded() {
            self.succeeded -= 1;
        }
        state.phase = Phase::Pending;
        if was_over {
            self.one_more_to_gather(step);
        }
    }

    /// Takes up a phase from `Pending`, which has no bookkeeping.
    pub(super) fn enter(&mut self, step: StepIndex, phase: Phase, at: Timestamp) {
        let position = step.position();
        let held = phase == Phase::Ready && self.is_kept_out(step);
        let phase = if held { Phase::Held(at) } else { phase };
        let max_duration = self.agent(step).max_duration;
        let state = &mut self.steps[position];
        match &phase {
            Phase::Ready => self.places.ready(position),
            Phase::Ended(_) => {
                self.ended += 1;
                state.ended = Some(at);
            }
            Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_) => self.ending += 1,
            Phase::Waiting(wait) => {
                state.timer = Some(wait.until);
                if wait.cause.is_ours() {
                    self.gates.begins_backoff(step);
                }
            }
            Phase::Held(_) => self.gates.hold(step, self.places.key(position)),
            Phase::Asking(_) => self.asking += 1,
            Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying => {
                self.places.take(position);
                state.started.get_or_insert(at);
            }
            Phase::Pending | Phase::Gathering => {}
        }
        if !phase.may_try_its_account() {
            self.gates.no_probe(step);
        }
        let state = &mut self.steps[position];
        if phase == Phase::Prompted {
            state.working_since = Some(at);
            let worked = state.worked_in_this_try(at);
            state.timer = max_duration.map(|most| at.plus(most.saturating_sub(worked)));
        }
        if let Some(timer) = state.timer {
            self.timers.insert((timer, step));
        }
        let is_over = matches!(phase, Phase::Ended(_));
        state.phase = phase;
        if state.succeeded() {
            self.succeeded += 1;
        }
        if is_over {
            self.one_less_to_gather(step);
        }
        if let Some(key) = self.effect_key(step) {
            self.outbox.want(key);
        }
        self.want_answers(step);
        if matches!(self.stage, Stage::Stopping { .. }) {
            self.want_cancel(step);
        }
    }

    fn effect_key(&self, step: StepIndex) -> Option<EffectKey> {
        let state = &self.steps[step.position()];
        let session = state.session.as_deref();
        match &state.phase {
            Phase::Leasing => Some(EffectKey::Lease(step)),
            Phase::Restarting => Some(EffectKey::Restart(step)),
            Phase::Opening => session.map(|s| EffectKey::Open(step, s.id())),
            Phase::Finding => session.map(|s| EffectKey::Find(step, s.id())),
            Phase::Prompted => session
                .and_then(|s| s.in_flight.as_ref())
                .map(|message| EffectKey::Send(step, message.client_message_id)),
            Phase::Verifying => Some(EffectKey::Verify(step)),
            Phase::Committing(_) => Some(EffectKey::Commit(step)),
            Phase::BeginningMerge(_) => Some(EffectKey::BeginMerge(step)),
            Phase::Inspecting(_) => Some(EffectKey::Inspect(step)),
            Phase::Abandoning(_) => Some(EffectKey::AbandonMerge(step)),
            Phase::Merging(_) => Some(EffectKey::Merge(step)),
            Phase::Pending
            | Phase::Ready
            | Phase::Waiting(_)
            | Phase::Held(_)
            | Phase::Asking(_)
            | Phase::Gathering
            | Phase::Closing(_)
            | Phase::MergeQueued(_)
            | Phase::Ended(_) => None,
        }
    }

    pub(super) fn want_cancel(&mut self, step: StepIndex) {
        let state = &self.steps[step.position()];
        if matches!(state.phase, Phase::Prompted | Phase::Asking(_))
            && let Some(session) = state.session.as_deref()
        {
            self.outbox.want(EffectKey::Cancel(step, session.id()));
        }
    }

    // --- Sessions ---

    /// The session is to be closed, if there may be one.
    pub(super) fn close_session(&mut self, step: StepIndex) {
        if let Some(session) = self.steps[step.position()].session.as_deref_mut() {
            let id = session.id();
            session.attached = false;
            self.live.remove(&id);
            if planted(Bug::NotClosed) {
                return;
            }
            self.closing.insert(id, step);
            self.outbox.want(EffectKey::Close(step, id));
        }
    }

    /// Forgets the session; its usage stays counted.
    pub(super) fn drop_session(&mut self, step: StepIndex) {
        let state = &mut self.steps[step.position()];
        let Some(session) = state.session.take() else {
            return;
        };
        self.live.remove(&session.id());
        self.keep_usage(step, session.id(), session.usage);
    }

    pub(super) fn take_report(&mut self, step: StepIndex, report: &Arc<crate::report::Report>) {
        let state = self.step_mut(step);
        state.report = Some(Arc::clone(report));
        if let Some(session) = state.session.as_deref_mut() {
            session.in_flight = None;
        }
        self.forget_permissions(step);
    }

    pub(super) fn wait(&mut self, step: StepIndex, wait: Wait, resend: bool, at: Timestamp) {
        let state = &self.steps[step.position()];
        let next = match &state.phase {
            Phase::Leasing => Next::Lease,
            Phase::Restarting => Next::Restart,
            Phase::Opening => Next::Open,
            Phase::Finding => Next::Find,
            Phase::Pending
            | Phase::Ready
            | Phase::Prompted
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
            | Phase::Ended(_) => match resend {
                true => Next::Send,
                false => Next::Continue,
            },
        };
        self.leave(step, at);
        self.forget_permissions(step);
        let state = self.step_mut(step);
        state.next = next;
        if next == Next::Continue
            && let Some(session) = state.session.as_deref_mut()
        {
            session.failed = true;
        }
        if wait.cause == WaitCause::Backoff {
            state.tries = state.tries.saturating_add(1);
        }
        state.ledger_mut().waits += 1;
        // What closed the account's gate ends with it. Logs from before gates have a date for each such wait instead.
        let phase = match !wait.cause.is_ours() && self.is_kept_out(step) {
            true => Phase::Held(at),
            false => Phase::Waiting(Box::new(wait)),
        };
        self.enter(step, phase, at);
    }
}
