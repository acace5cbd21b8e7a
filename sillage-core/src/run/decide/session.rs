//! What follows from news of sessions: opened, found, lost, answered, failed, closed.

use std::sync::Arc;

use super::Decision;
use crate::fault;
use crate::id::{ClientMessageId, ClientSessionId, StepIndex};
use crate::planted::{Bug, planted};
use crate::ports::runtime::{
    Answer, FoundSession, MessageFate, MessageRequest, OpenedSession, RuntimeError, StopReason, Usage,
};
use crate::report::{self, Report};
use crate::run::compose;
use crate::run::event::{Event, FailureClass, MessagePurpose, StepEnd};
use crate::run::step::{Phase, Step};

impl Decision<'_> {
    pub(super) fn opened(&mut self, session: ClientSessionId, result: &Result<OpenedSession, RuntimeError>) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        if state.phase != Phase::Opening {
            return;
        }
        match result {
            Ok(opened) => {
                self.say(Event::SessionOpened {
                    step,
                    session,
                    opened: opened.clone(),
                });
                if self.is_stopping() {
                    self.end(step, StepEnd::Cancelled);
                } else {
                    self.served_at_opening(step);
                    self.plan_message(step, self.first_purpose(step), None);
                }
            }
            Err(error) => self.setback(step, error, true),
        }
    }

    pub(super) fn found(&mut self, session: ClientSessionId, result: &Result<FoundSession, RuntimeError>) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        if state.phase != Phase::Finding {
            return;
        }
        match result {
            Ok(found) => {
                let in_flight = state.session.as_deref().and_then(|s| s.in_flight.clone());
                let is_to_send = in_flight.is_some()
                    && matches!(found.in_flight, MessageFate::NotReceived | MessageFate::None);
                // Its account was closed while it was looked for: it is again when that opens, for what an engine before
                // this one sent may arrive meanwhile (R8).
                if is_to_send && self.run.gates.keeps_out(step) && !self.is_stopping() {
                    return self.wait_for_its_gate(step);
                }
                self.say(Event::SessionFound {
                    step,
                    session,
                    opened: found.opened.clone(),
                });
                self.after_finding(step, found, in_flight);
            }
            Err(RuntimeError::Lost { .. }) if planted(Bug::LostAsFound) => {
                let opened = OpenedSession {
                    native: None,
                    agent: String::new(),
                    pid: None,
                };
                let taken = FoundSession {
                    opened,
                    restarted: true,
                    in_flight: MessageFate::NotReceived,
                };
                self.found(session, &Ok(taken));
            }
            Err(RuntimeError::Lost { words }) => {
                self.say(Event::SessionLost {
                    step,
                    session,
                    words: words.clone(),
                });
                if self.is_stopping() {
                    self.end(step, StepEnd::Cancelled);
                }
            }
            Err(error) => self.setback(step, error, true),
        }
    }

    fn after_finding(
        &mut self,
        step: StepIndex,
        found: &FoundSession,
        in_flight: Option<Arc<MessageRequest>>,
    ) {
        if self.is_stopping() {
            return self.end(step, StepEnd::Cancelled);
        }
        let session = self.run.steps[step.position()].session.as_deref();
        let (prompted, failed) = session.map_or((false, false), |s| (s.prompted, s.failed));
        match (&found.in_flight, in_flight) {
            (MessageFate::Replayed(text), Some(message)) => {
                let stop = StopReason::Other(StopReason::REPLAYED.to_owned());
                let answer = Answer {
                    text: text.clone(),
                    stop,
                    usage: Usage::default(),
                };
                self.say(Event::Answered {
                    step,
                    message: message.client_message_id,
                    answer: answer.clone(),
                });
                match self.read_answer(step, &answer) {
                    Ok(owed) => self.take(step, owed),
                    // What was answered may be half of it: the agent is asked to go on, which costs no correction.
                    Err(_) => self.plan_message(step, MessagePurpose::Continuation, None),
                }
            }
            (MessageFate::Unknown, Some(_)) => self.plan_message(step, MessagePurpose::Continuation, None),
            // What is still to be heard of it is the failure that was waited for, and that counts once.
            (MessageFate::InHand, Some(_)) if failed => {
                self.plan_message(step, MessagePurpose::Continuation, None);
            }
            (_, None) if self.has_untold_conflict(step) => {
                self.plan_message(step, MessagePurpose::Conflict, None);
            }
            (_, None) if prompted && self.run.has_untold_group(step) => {
                self.plan_message(step, MessagePurpose::Synthesis, None);
            }
            // The message goes out under its own identifier, or its answer is on its way.
            (MessageFate::NotReceived | MessageFate::InHand | MessageFate::None, Some(_)) => {}
            (_, None) if prompted => self.plan_message(step, MessagePurpose::Continuation, None),
            (_, None) => self.plan_message(step, self.first_purpose(step), None),
        }
    }

    /// Whether a merge was begun in the step's worktree that its agent does not know of.
    fn has_untold_conflict(&self, step: StepIndex) -> bool {
        let conflict = self.run.steps[step.position()].conflict();
        conflict.is_some_and(|conflict| !conflict.told)
    }

    pub(super) fn not_sent(
        &mut self,
        session: ClientSessionId,
        message: ClientMessageId,
        error: &RuntimeError,
    ) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        if !state.session.as_deref().is_some_and(|s| s.answers(message)) {
            return;
        }
        if state.phase == Phase::Prompted && self.left_unasked(step, error) {
            self.look_for_it_later(step, session, error);
        } else if state.phase == Phase::Prompted || counts_late(state, error) {
            self.setback(step, error, true);
        }
    }

    pub(super) fn failed(
        &mut self,
        session: ClientSessionId,
        message: Option<ClientMessageId>,
        error: &RuntimeError,
    ) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        // What was to go on in it after the wait begins anew instead (R7, R12).
        if let (Phase::Waiting(_) | Phase::Held(_), RuntimeError::Lost { words }, None) =
            (&state.phase, error, message)
            && !self.is_stopping()
        {
            let words = words.clone();
            return self.say(Event::SessionLost { step, session, words });
        }
        let concerns = match (message, state.session.as_deref()) {
            (Some(message), Some(session)) => session.answers(message),
            (None, Some(session)) => session.in_flight.is_some(),
            (_, None) => false,
        };
        // An error that names no message: none was being answered.
        let untold = message.is_none() && state.phase == Phase::Prompted;
        if concerns && untold && self.left_unasked(step, error) {
            self.look_for_it_later(step, session, error);
        } else if concerns && (state.is_answering() || (message.is_some() && state.sends_again())) {
            self.setback(step, error, false);
        } else if matches!(error, RuntimeError::Lost { .. })
            && state.is_kept_open()
            && state.session.as_deref().is_some_and(|s| s.attached)
        {
            let words = error.to_string();
            self.say(Event::SessionGone { step, session, words });
        }
    }

    /// The session is not heard any more, and nothing is known of it: it is looked for after a wait that grows with each
    /// try, or when it is needed again where it has nothing to do now (R7). Should it be lost, the search tells, and the
    /// step begins anew (R12).
    pub(super) fn out_of_reach(&mut self, session: ClientSessionId, error: &RuntimeError) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        let (answering, attached) = (
            state.is_answering(),
            state.session.as_deref().is_some_and(|s| s.attached),
        );
        let for_good = match error {
            RuntimeError::Temporary { .. } | RuntimeError::Capacity { .. } | RuntimeError::Lost { .. } => {
                false
            }
            RuntimeError::Quota { .. }
            | RuntimeError::SignIn { .. }
            | RuntimeError::Permanent { .. }
            | RuntimeError::Conflict { .. }
            | RuntimeError::Unstoppable { .. } => true,
        };
        if answering && (for_good || self.is_stopping()) {
            self.setback(step, error, true);
        } else if answering {
            self.look_for_it_later(step, session, error);
        } else if attached {
            let words = error.to_string();
            self.say(Event::SessionGone { step, session, words });
        }
    }

    /// Whether the session ended while it had nothing to do, before it was told of its work's conflict or of what came of
    /// its sub-agents.
    fn left_unasked(&self, step: StepIndex, error: &RuntimeError) -> bool {
        let state = &self.run.steps[step.position()];
        let purpose = state.session.as_deref().map(|session| session.purpose);
        let was_kept = state.conflict().is_some() || purpose == Some(MessagePurpose::Synthesis);
        matches!(error, RuntimeError::Lost { .. }) && was_kept && !self.is_stopping()
    }

    /// The session is looked for, and told once it is found.
    fn look_for_it_later(&mut self, step: StepIndex, session: ClientSessionId, error: &RuntimeError) {
        let words = error.to_string();
        self.say(Event::SessionGone {
            step,
            session,
            words: words.clone(),
        });
        let retry_after = match error {
            RuntimeError::Temporary { retry_after, .. } | RuntimeError::Capacity { retry_after, .. } => {
                *retry_after
            }
            RuntimeError::Quota { .. }
            | RuntimeError::SignIn { .. }
            | RuntimeError::Permanent { .. }
            | RuntimeError::Conflict { .. }
            | RuntimeError::Lost { .. }
            | RuntimeError::Unstoppable { .. } => None,
        };
        self.wait_for_backoff(step, words, retry_after, true);
    }

    pub(super) fn usage(&mut self, session: ClientSessionId, usage: Usage) {
        let Some(step) = self.run.step_of(session) else {
            return;
        };
        self.say(Event::UsageCounted { step, session, usage });
        self.served_by(step, session, usage);
    }

    pub(super) fn closed(&mut self, session: ClientSessionId, result: &Result<(), RuntimeError>) {
        let Some(step) = self.run.closing.get(&session).copied() else {
            return;
        };
        let trouble = result.as_ref().err().map(ToString::to_string);
        self.say(Event::SessionClosed {
            step,
            session,
            trouble,
        });
    }

    pub(super) fn answered(&mut self, session: ClientSessionId, message: ClientMessageId, answer: &Answer) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        let sends_again = state.sends_again() && !planted(Bug::NotHeardAgain);
        let expected = state.is_answering() || sends_again;
        let expected = expected && state.session.as_deref().is_some_and(|s| s.answers(message));
        if !expected && !planted(Bug::LateAnswerTaken) {
            return;
        }
        let purpose = state.session.as_deref().map(|session| session.purpose);
        self.say(Event::Answered {
            step,
            message,
            answer: answer.clone(),
        });
        if answer.stop != StopReason::Cancelled {
            self.served(step);
        }
        match &answer.stop {
            StopReason::Cancelled if self.is_stopping() => self.end(step, StepEnd::Cancelled),
            StopReason::Refusal => self.fail(step, FailureClass::Permanent, refusal(answer)),
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::MaxTurnRequests
            | StopReason::Cancelled
            | StopReason::Other(_) => match self.read_answer(step, answer) {
                Ok(owed) => self.take(step, owed),
                // The runtime went down over it and brought the session back: as after a restart of ours, the agent is
                // asked to go on, at no cost. That happens once on end; then it is an answer like any other.
                Err(_) if answer.stop.was_interrupted() && purpose != Some(MessagePurpose::Continuation) => {
                    self.plan_message(step, MessagePurpose::Continuation, None);
                }
                Err(faults) => self.send_back(step, faults),
            },
        }
    }

    pub(super) fn read_report(
        &self,
        step: StepIndex,
        answer: &Answer,
    ) -> Result<Report, Vec<crate::fault::Fault>> {
        let agent = self.run.agent(step);
        let expected = report::Expected {
            outputs: &agent.outputs,
        };
        report::read(&answer.text, &expected, answer.stop == StopReason::MaxTokens)
    }

    /// A well-formed report: the files that it promises are looked at before it is believed.
    pub(super) fn judge(&mut self, step: StepIndex, report: Report) {
        let Some(report) = self.hold_to_its_group(step, report) else {
            return;
        };
        let files = self
            .run
            .agent(step)
            .deliverable
            .as_ref()
            .is_some_and(|d| !d.files.is_empty());
        if files && report.outcome == report::Outcome::Complete {
            self.say(Event::ReportFound {
                step,
                report: Arc::new(report),
            });
        } else {
            self.accept(step, report);
        }
    }

    /// The report goes back to its agent in the same session, twice at most (W17).
    pub(super) fn refuse(&mut self, step: StepIndex, faults: Vec<crate::fault::Fault>) {
        let corrections = self.run.steps[step.position()].corrections;
        self.say(Event::ReportRefused {
            step,
            faults: faults.clone(),
        });
        if self.is_stopping() {
            self.end(step, StepEnd::Cancelled);
        } else if corrections
            < self.run.definition.policy.corrections + u8::from(planted(Bug::ThirdCorrection))
        {
            let expected = report::Expected {
                outputs: &self.run.agent(step).outputs,
            };
            let text = report::correction(&faults, u32::from(corrections) + 1, &expected);
            self.plan_message(step, MessagePurpose::Correction, Some(text));
        } else {
            let words = format!(
                "its report was refused {} times, at last for: {}",
                corrections + 1,
                fault::told(&faults)
            );
            self.fail(step, FailureClass::ReportRefused, words);
        }
    }

    pub(super) fn plan_message(&mut self, step: StepIndex, purpose: MessagePurpose, text: Option<String>) {
        // The session may have been planned in this very decision's past only: it is in the state already.
        let Some(session) = self.run.steps[step.position()].session.as_deref() else {
            return;
        };
        let session = session.id();
        let text = text.unwrap_or_else(|| match purpose {
            MessagePurpose::Mission => compose::mission(self.run, step, self.now),
            MessagePurpose::Plan => compose::plan_request(self.run, step, self.now),
            MessagePurpose::Synthesis => {
                let worktree = self.run.steps[step.position()].worktree();
                let base = worktree.map(|worktree| worktree.base.as_str());
                compose::synthesis(self.run, step, self.now, base)
            }
            MessagePurpose::Correction | MessagePurpose::PlanCorrection | MessagePurpose::Continuation => {
                compose::continuation(self.run, step)
            }
            MessagePurpose::Conflict => compose::conflict(self.run, step),
        });
        let message = MessageRequest {
            client_message_id: self.ids.message(),
            text,
        };
        self.say(Event::MessagePlanned {
            step,
            session,
            purpose,
            message: Arc::new(message),
        });
    }
}

fn refusal(answer: &Answer) -> String {
    let said = answer.text.trim();
    if said.is_empty() {
        "the model refused, without a word".to_owned()
    } else {
        format!("the model refused: {said}")
    }
}

/// Whether what a sending came to still counts when its session went out of reach while it was on its way: the step
/// waits already, or looks for the session, so that news which time mends change nothing. What time does not mend, or
/// not that soon, counts all the same (R6, R8, R9).
fn counts_late(state: &Step, error: &RuntimeError) -> bool {
    let for_good = match error {
        RuntimeError::Temporary { .. } | RuntimeError::Capacity { .. } | RuntimeError::Lost { .. } => {
            return false;
        }
        RuntimeError::Quota { .. } | RuntimeError::SignIn { .. } => false,
        RuntimeError::Permanent { .. } | RuntimeError::Conflict { .. } | RuntimeError::Unstoppable { .. } => {
            true
        }
    };
    // The account of one that is held is closed to it already.
    let held = matches!(state.phase, Phase::Held(_));
    matches!(state.phase, Phase::Waiting(_) | Phase::Ready | Phase::Finding) || (held && for_good)
}
