//! Believing facts: how each event changes the run. Decides nothing.

use std::sync::Arc;

use super::budget::Ceiling;
use super::event::{Event, MessagePurpose, Recorded, StepEnd};
use super::outbox::EffectKey;
use super::step::{Next, Phase, StepSession, Wait};
use super::{CorruptLog, Run, Stage};
use crate::id::{ClientSessionId, StepIndex};
use crate::planted::{Bug, planted};
use crate::ports::runtime::StopReason;
use crate::report::Outcome;
use crate::time::Timestamp;

impl Run {
    /// Believes one durable fact.
    ///
    /// # Errors
    /// [`CorruptLog`] when the fact cannot follow what came before; never for a log that `decide` made.
    pub fn apply(&mut self, fact: &Recorded) -> Result<(), CorruptLog> {
        let corrupt = |why: String| CorruptLog { seq: fact.seq, why };
        if fact.seq != self.last.next() {
            return Err(corrupt(format!("event {} was due", self.last.next())));
        }
        if let Some(step) = fact.event.step()
            && step.position() >= self.steps.len()
        {
            return Err(corrupt(format!("there is no step {}", step.0)));
        }
        self.believe_event(fact).map_err(corrupt)?;
        self.last = fact.seq;
        self.updated = fact.at;
        Ok(())
    }

    fn believe_event(&mut self, fact: &Recorded) -> Result<(), String> {
        let at = fact.at;
        match &fact.event {
            Event::RunCreated(_) => return Err("a run is launched once".to_owned()),
            Event::EngineStarted { .. } => {
                // What passed between the last event and now was nobody's time.
                self.spending.pause(self.updated);
                self.spending.go_on(at);
                self.engine_started(at);
            }
            Event::StopAsked { forced } => self.stop_asked(*forced, at),
            Event::ResumeAsked => {
                self.resume_spending(at);
                self.resume_asked(at);
            }
            Event::BudgetChanged { budget } => self.spending.change_budget(*budget),
            Event::BudgetReached {
                kind,
                limit,
                currency,
                ..
            } => self.spending.reach(Ceiling {
                kind: *kind,
                limit: *limit,
                currency: *currency,
            }),
            Event::RetryAsked { step } => self.retry_asked(*step, at),
            Event::StepSkipped { step } => self.step_skipped(*step, at),
            Event::StepOutdated { step, by } => self.step_outdated(*step, *by, at),
            Event::StepTaken {
                step,
                from,
                end,
                report,
                work,
            } => self.step_taken(*step, from, end, report, work.as_ref(), at)?,
            Event::RunEnded { end } => {
                self.stage = Stage::Ended(*end);
                self.spending.pause(at);
                self.hold_nobody(at);
                self.leave_the_checks_folder();
            }
            Event::StepStarted { step } => self.step_started(*step, at)?,
            Event::WorktreePlanned { step, branch, base } => {
                let work = self.step_mut(*step).work_mut();
                work.planned = Some((branch.clone(), base.clone()));
                let phase = match &mut work.worktree {
                    // The one that it has is put there.
                    Some(worktree) => {
                        worktree.base.clone_from(base);
                        Phase::Restarting
                    }
                    None => Phase::Leasing,
                };
                self.pass_to(*step, phase, at);
            }
            Event::WorktreeReady { step, worktree } => {
                let step = self.step_mut(*step);
                step.next = Next::Begin;
                let work = step.work_mut();
                work.worktree = Some(worktree.clone());
                work.removed = false;
            }
            Event::WorktreeRestarted {
                step,
                worktree,
                rescued,
            } => {
                let step = self.step_mut(*step);
                // Only a coordinator has a session meanwhile: the one that made its plan.
                step.next = match &step.session {
                    Some(_) => Next::Synthesize,
                    None => Next::Begin,
                };
                let work = step.work_mut();
                work.worktree = Some(worktree.clone());
                work.committed = None;
                work.merged = false;
                work.removed = false;
                work.holds.clear();
                work.conflicts.clear();
                work.conflict = None;
                work.keep_rescued(rescued.as_ref());
            }
            Event::SessionPlanned { step, request } => {
                self.drop_session(*step);
                self.leave(*step, at);
                self.live.insert(request.client_session_id, *step);
                self.step_mut(*step).session = Some(Box::new(StepSession::planned(request)));
                self.enter_or_hold(*step, Phase::Opening, Next::Open, at);
            }
            Event::SessionOpened {
                step,
                session,
                opened,
            } => {
                let state = self.session_mut(*step, *session)?;
                state.opened = Some(opened.clone());
                state.attached = true;
                // Only an answer ends a series of failures: an agent that opens sessions and never answers is not to be
                // asked for ever at the first pace (R7).
            }
            Event::SessionFound {
                step,
                session,
                opened,
            } => {
                let state = self.session_mut(*step, *session)?;
                state.opened = Some(opened.clone());
                state.attached = true;
                if state.in_flight.is_some() {
                    self.pass_to(*step, Phase::Prompted, at);
                }
            }
            Event::SessionGone { step, session, .. } => {
                self.session_mut(*step, *session)?.attached = false;
            }
            Event::SessionLost { step, session, .. } => {
                self.session_mut(*step, *session)?;
                // One that is lost in a wait does not shorten it.
                let phase = &self.steps[step.position()].phase;
                let waits = matches!(phase, Phase::Waiting(_) | Phase::Held(_));
                if waits || *phase == Phase::Restarting {
                    self.close_session(*step);
                }
                if !waits {
                    self.leave(*step, at);
                }
                self.drop_session(*step);
                let state = self.step_mut(*step);
                state.next = if state.worktree().is_some() {
                    Next::Restart
                } else {
                    Next::Begin
                };
                state.report = None;
                if !waits {
                    self.enter(*step, Phase::Ready, at);
                }
            }
            Event::SessionClosed {
                step,
                session,
                trouble,
            } => {
                self.closing.remove(session);
                self.settle_usage(*step, *session);
                self.outbox.drop_key(EffectKey::Close(*step, *session));
                if let Some(trouble) = trouble {
                    self.step_mut(*step).ledger_mut().troubles.push(trouble.clone());
                }
                if let Phase::Closing(end) = &self.steps[step.position()].phase
                    && self.closing.values().all(|of| of != step)
                {
                    let end = end.clone();
                    let next = match self.steps[step.position()].conflict() {
                        Some(_) => Phase::Abandoning(end),
                        None => Phase::Committing(end),
                    };
                    self.pass_to(*step, next, at);
                }
                self.clean_when_done();
            }
            Event::UsageCounted { step, session, usage } => {
                self.count_usage(*step, Some(*session), *usage);
            }
            Event::MessagePlanned {
                step,
                session,
                purpose,
                message,
            } => {
                self.leave(*step, at);
                self.forget_permissions(*step);
                let state = self.session_mut(*step, *session)?;
                state.in_flight = Some(Arc::clone(message));
                state.answered = false;
                state.failed = false;
                state.purpose = *purpose;
                state.prompted = true;
                let attached = state.attached;
                if *purpose == MessagePurpose::Conflict {
                    self.conflict_told(*step);
                }
                let step_state = self.step_mut(*step);
                step_state.report = None;
                match purpose {
                    MessagePurpose::Correction => {
                        step_state.corrections = step_state.corrections.saturating_add(1);
                    }
                    MessagePurpose::PlanCorrection => {
                        let group = step_state.group.get_or_insert_default();
                        group.returns = group.returns.saturating_add(1);
                    }
                    MessagePurpose::Synthesis => self.group_told(*step),
                    MessagePurpose::Mission
                    | MessagePurpose::Continuation
                    | MessagePurpose::Conflict
                    | MessagePurpose::Plan => {}
                }
                let phase = if attached { Phase::Prompted } else { Phase::Finding };
                self.enter_or_hold(*step, phase, Next::Send, at);
            }
            Event::PermissionAsked {
                step,
                session,
                request,
            } => {
                self.session_mut(*step, *session)?;
                self.permission_asked(*step, fact.seq, request, at);
            }
            Event::PermissionRefused { step, session, .. } => {
                let state = self.session_mut(*step, *session)?;
                state.refusals = state.refusals.saturating_add(1);
            }
            Event::PermissionAnswered {
                step, asked, option, ..
            } => self.permission_answered(*step, *asked, option, at),
            Event::PermissionSettled { step, asked, .. } => self.permission_settled(*step, *asked, at),
            Event::Answered { step, answer, .. } => {
                if !planted(Bug::SeriesNotReset) {
                    self.step_mut(*step).tries = 0;
                }
                self.count_usage(*step, None, answer.usage);
                self.gates.answered(*step);
                if let Some(session) = self.step_mut(*step).session.as_deref_mut() {
                    session.answered = answer.stop != StopReason::Cancelled;
                }
            }
            Event::PlanRefused { step, faults } => {
                self.step_mut(*step).ledger_mut().faults.clone_from(faults);
            }
            Event::PlanAccepted { step, plan } => self.plan_accepted(*step, plan, at)?,
            Event::ReportFound { step, report } => {
                self.leave(*step, at);
                self.take_report(*step, report);
                self.enter(*step, Phase::Verifying, at);
            }
            Event::ReportRefused { step, faults } => {
                self.step_mut(*step).ledger_mut().faults.clone_from(faults);
            }
            Event::ReportAccepted { step, report } => {
                self.leave(*step, at);
                self.take_report(*step, report);
                let state = &self.steps[step.position()];
                let phase = match (state.worktree(), state.conflict()) {
                    (Some(_), Some(_)) => Phase::Inspecting(end_of(report.outcome)),
                    (Some(_), None) => Phase::Committing(end_of(report.outcome)),
                    (None, _) => Phase::Verifying,
                };
                self.enter(*step, phase, at);
            }
            Event::WaitStarted {
                step,
                cause,
                until,
                words,
                resend,
            } => {
                let wait = Wait {
                    cause: *cause,
                    since: at,
                    until: *until,
                    words: words.clone(),
                };
                self.wait(*step, wait, *resend, at);
            }
            Event::WaitEnded { step } => self.pass_to(*step, Phase::Ready, at),
            Event::GateClosed { account, wall, .. } => self.gate_closed(account, wall, at)?,
            Event::GateDated { account, step, wall } => self.gate_dated(account, *step, wall)?,
            Event::GateProbed { account, step } => self.gate_probed(account, *step, at)?,
            Event::GateOpened { account, .. } => self.gate_opened(account, at)?,
            Event::MachineSlept { slept } => self.machine_slept(*slept, at),
            Event::ClockJumped { by_ms } => self.clock_jumped(*by_ms, at),
            Event::StepFailing { step, failure } => {
                self.fail_fast(*step);
                self.leave(*step, at);
                self.close_session(*step);
                self.drop_session(*step);
                self.enter(
                    *step,
                    Phase::Closing(StepEnd::Failed(Box::new(failure.clone()))),
                    at,
                );
            }
            Event::WorkCommitted { step, work } => self.work_committed(*step, work, at),
            Event::MergePlanned { step, .. } => {
                let Phase::MergeQueued(end) = &self.steps[step.position()].phase else {
                    return Err("a merge was planned for a step whose work does not wait for one".to_owned());
                };
                let end = end.clone();
                self.merge_queue.retain(|queued| queued != step);
                self.merging = Some(*step);
                self.pass_to(*step, Phase::Merging(end), at);
            }
            Event::Merged { step, tip } => self.merged(*step, tip),
            Event::MergeConflicted { step, files } => {
                self.step_mut(*step).work_mut().conflicts.clone_from(files);
            }
            Event::ConflictReturned { step } => self.conflict_returned(*step, at)?,
            Event::MergeBegun { step, onto, files } => self.merge_begun(*step, onto, files, at)?,
            Event::ConflictResolved { step } => self.conflict_resolved(*step, at)?,
            Event::ConflictLeft { step, files } => self.conflict_left(*step, files, at),
            Event::ConflictGivenUp { step, files, end } => self.conflict_given_up(*step, files, end, at),
            Event::MergeAbandoned { step, rescued } => self.merge_abandoned(*step, rescued.as_ref()),
            Event::StrayWrites { step, writes } => self.step_mut(*step).work_mut().stray.clone_from(writes),
            Event::StepEnded { step, end } => self.step_ended(*step, end, at)?,
            Event::WorktreeRemoved { step } => {
                self.step_mut(*step).work_mut().removed = true;
                self.cleaned(*step);
            }
            Event::WorktreeHeld { step, holds } => {
                self.step_mut(*step).work_mut().holds.clone_from(holds);
                self.cleaned(*step);
            }
            Event::CheckStarted { commit } => self.check_started(commit.as_ref()),
            Event::CheckEnded { result } => self.check_ended(result),
            Event::CheckCleared => self.check_cleared(),
        }
        Ok(())
    }

    pub(super) fn step_mut(&mut self, step: StepIndex) -> &mut super::Step {
        &mut self.steps[step.position()]
    }

    fn session_mut(&mut self, step: StepIndex, session: ClientSessionId) -> Result<&mut StepSession, String> {
        match self.steps[step.position()].session.as_deref_mut() {
            Some(state) if state.id() == session => Ok(state),
            _ => Err(format!("session {session} is not the step's")),
        }
    }

    // --- Steps ---

    fn step_started(&mut self, step: StepIndex, at: Timestamp) -> Result<(), String> {
        let state = &self.steps[step.position()];
        let attached = state.session.as_deref().is_some_and(|s| s.attached);
        let phase = match state.next {
            Next::Lease => Phase::Leasing,
            Next::Restart => Phase::Restarting,
            Next::Open => Phase::Opening,
            Next::Send | Next::Answer if attached => Phase::Prompted,
            Next::Find | Next::Send | Next::Answer | Next::Continue | Next::Resolve | Next::Synthesize => {
                Phase::Finding
            }
            Next::Begin | Next::Anew => return Err("a step starts with a worktree or a session".to_owned()),
        };
        self.pass_to(step, phase, at);
        Ok(())
    }

    fn work_committed(&mut self, step: StepIndex, work: &crate::ports::workspace::Committed, at: Timestamp) {
        let known = self.step_mut(step).work_mut();
        // What a resumed step adds is not what was merged before.
        known.merged &= known
            .committed
            .as_ref()
            .is_some_and(|before| before.tip == work.tip);
        known.committed = Some(work.clone());
        known.parts.clear();
        if let Phase::Committing(end @ (StepEnd::Complete | StepEnd::Partial)) =
            &self.steps[step.position()].phase
            && work.commits > 0
            && !planted(Bug::MergeForgotten)
        {
            let end = end.clone();
            self.pass_to(step, Phase::MergeQueued(end), at);
            self.merge_queue.push_back(step);
        }
    }

    fn step_ended(&mut self, step: StepIndex, end: &StepEnd, at: Timestamp) -> Result<(), String> {
        if matches!(self.steps[step.position()].phase, Phase::Ended(_)) && !planted(Bug::EndsTwice) {
            return Err(format!("step {} ended before", step.0));
        }
        self.leave(step, at);
        self.forget_permissions(step);
        self.close_session(step);
        // The session of a step that was cancelled, or whose wait a ceiling ended, is kept: a resume looks for it again.
        if !matches!(end, StepEnd::Cancelled | StepEnd::OverBudget) {
            self.drop_session(step);
        }
        // An answer that came while the run stopped, and was refused, is not asked for again.
        if let Some(session) = self.step_mut(step).session.as_deref_mut()
            && session.answered
        {
            session.in_flight = None;
        }
        if let Some(hand) = self.step_mut(step).hand.as_deref_mut() {
            hand.skipping = false;
        }
        // What a person skipped stays so, whatever is done again upstream.
        if *end == StepEnd::Skipped {
            self.outdated.remove(&step);
        }
        if matches!(end, StepEnd::Failed(_)) {
            self.fail_fast(step);
        }
        self.enter(step, Phase::Ended(end.clone()), at);
        if self.steps[step.position()].lets_follow() {
            self.let_children_follow(step, at);
        }
        if let Some(of) = self.coordinator_of(step) {
            self.go_on_when_gathered(of, at);
        }
        self.clean_when_done();
        Ok(())
    }

    fn let_children_follow(&mut self, step: StepIndex, at: Timestamp) {
        for index in 0..self.graph.children(step.0).len() {
            let child = StepIndex(self.graph.children(step.0)[index]);
            let state = self.step_mut(child);
            state.unmet = state.unmet.saturating_sub(1);
            if (state.unmet == 0 || planted(Bug::FirstParentEnough)) && state.phase == Phase::Pending {
                self.enter(child, Phase::Ready, at);
            }
        }
    }
}

/// The end that an outcome makes.
pub(super) fn end_of(outcome: Outcome) -> StepEnd {
    match outcome {
        Outcome::Complete => StepEnd::Complete,
        Outcome::Partial if planted(Bug::PartialAsComplete) => StepEnd::Complete,
        Outcome::Partial => StepEnd::Partial,
        Outcome::Blocked => StepEnd::Blocked,
    }
}
