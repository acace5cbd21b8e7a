//! What the judge expects of each fact.
// long: one match over every kind of fact, and what each arm asks.

use std::collections::BTreeMap;
use std::time::Duration;

use sillage_core::id::{ClientMessageId, ClientSessionId, StepIndex};
use sillage_core::ports::runtime::{Answer, StopReason};
use sillage_core::report::{Outcome, Report};
use sillage_core::run::{Event, MessagePurpose, Phase, Recorded, Run, StepEnd, WaitCause};
use sillage_core::time::Timestamp;

use super::book::{MessageBook, StepBook};
use super::{Judge, Promise};
use crate::simulator::sessions::Session;
use crate::workspace::MemoryWorkspace;

type Sessions = BTreeMap<ClientSessionId, Session>;

/// Whether a step that waits for a place is past it because the answer came after all to a message that was told as
/// not accepted. Its session was at work all the while.
fn is_by_a_late_answer(event: &Event) -> bool {
    let goes_back = [MessagePurpose::Correction, MessagePurpose::PlanCorrection];
    matches!(event, Event::ReportFound { .. } | Event::ReportAccepted { .. })
        || matches!(event, Event::MessagePlanned { purpose, .. } if goes_back.contains(purpose))
}

impl Judge {
    /// A fact is in the log.
    pub(crate) fn fact(
        &mut self,
        fact: &Recorded,
        sessions: &Sessions,
        workspace: &MemoryWorkspace,
        _now: Timestamp,
    ) {
        self.expect(Promise::Order, fact.seq.0 == self.last + 1, || {
            format!("event {} out of turn", fact.seq)
        });
        self.last = fact.seq.0;
        let ended = self.ended;
        let goes_on = matches!(
            fact.event,
            Event::ResumeAsked
                | Event::RetryAsked { .. }
                | Event::StepSkipped { .. }
                | Event::BudgetChanged { .. }
        );
        self.expect(Promise::Order, ended.is_none() || goes_on, || {
            format!("{:?} follows the run's end", fact.event)
        });
        let count = self.steps.len();
        if let Some(step) = fact.event.step().filter(|step| step.position() >= count) {
            return self.violated(Promise::Plans, || {
                format!("{:?} of step {}, which no plan made", fact.event, step.0)
            });
        }
        let before = fact.event.step().and_then(|step| self.phase_of(step));
        self.note(fact, sessions);
        self.fold(fact);
        self.taken_up(fact);
        if let (Some(step), Some(Phase::Ready)) = (fact.event.step(), before)
            && !is_by_a_late_answer(&fact.event)
        {
            self.took_place(step);
        }
        if let Event::Merged { step, tip } = &fact.event {
            self.merged(*step, tip, workspace);
        }
    }

    fn phase_of(&self, step: StepIndex) -> Option<Phase> {
        self.run.as_ref()?.step(step).map(|step| step.phase().clone())
    }

    fn fold(&mut self, fact: &Recorded) {
        let folded = match &mut self.run {
            Some(run) => run.apply(fact),
            None => Run::start(fact.clone()).map(|run| self.run = Some(run)),
        };
        if let Err(error) = folded {
            self.violated(Promise::Replays, || error.to_string());
        }
    }

    /// What must hold of the fact, by the judge's own books; then the books are brought up to date.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is not named here is held to the promises about the whole state only"
    )]
    fn note(&mut self, fact: &Recorded, sessions: &Sessions) {
        if let Event::SessionPlanned { step, .. }
        | Event::SessionOpened { step, .. }
        | Event::SessionFound { step, .. }
        | Event::MessagePlanned { step, .. }
        | Event::StepStarted { step } = &fact.event
        {
            self.set_to_work(*step);
        }
        match &fact.event {
            Event::RunCreated(definition) => {
                self.steps = vec![StepBook::default(); definition.task.agents.len()];
                self.ceilings_changed(definition.policy.budget);
            }
            Event::EngineStarted { .. } => self.engine_started(),
            Event::StopAsked { .. } => self.stopping = true,
            Event::ResumeAsked => {
                self.undated_gates_are_tried(fact.at);
                self.resumed();
            }
            Event::ClockJumped { by_ms } => self.gates_in_a_clock_that_was_set(*by_ms, fact.at),
            Event::RetryAsked { step } => self.retried(*step),
            Event::StepSkipped { step } => self.skipped(*step),
            Event::StepOutdated { step, .. } => self.begun_anew(*step),
            Event::BudgetChanged { budget } => self.ceilings_changed(*budget),
            Event::BudgetReached {
                kind,
                limit,
                used,
                mode,
                ..
            } => self.ceiling_reached(*kind, *limit, *used, *mode),
            Event::PlanAccepted { step, plan } => self.plan_accepted(*step, plan, sessions),
            Event::RunEnded { end } => {
                self.ended = Some(*end);
                self.stopped = false;
            }
            Event::WorktreePlanned { step, .. } => self.begins(*step, "a worktree"),
            Event::SessionPlanned { step, request } => {
                self.begins(*step, "a session");
                self.session_planned(*step, request);
            }
            Event::SessionOpened { session, .. } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.opened = true;
                }
            }
            Event::SessionFound { session, .. } => self.session_found(*session, sessions),
            Event::SessionLost { step, session, .. } => {
                self.session_over(*session);
                if let Some(book) = self.sessions.get_mut(session) {
                    book.left = true;
                }
                // It starts again, and reports anew.
                self.steps[step.position()].accepted = None;
            }
            Event::MessagePlanned {
                step,
                session,
                purpose,
                message,
            } => {
                let id = message.client_message_id;
                self.message_planned(*step, *session, *purpose, id, &message.text);
            }
            Event::Answered {
                step,
                message,
                answer,
            } => self.answered(*step, *message, answer, sessions),
            Event::ReportAccepted { step, report } => self.accepted(*step, report, sessions),
            Event::GateClosed { account, step, wall } | Event::GateDated { account, step, wall } => {
                self.gate_closed(account, *step, wall, fact.at);
            }
            Event::GateProbed { account, step } => self.gate_probed(account, *step, fact.at),
            Event::GateOpened { account, by, .. } => self.gate_opened(account, *by, fact.at),
            Event::WaitStarted {
                step,
                cause,
                until,
                words,
                ..
            } => {
                self.waits(*step, *cause, fact.at, *until, words);
            }
            Event::PermissionAnswered { step, .. } => self.person_answered(*step),
            Event::PermissionAsked { session, .. } => {
                self.asked.push(fact.seq);
                // Its message is named again when it goes on.
                if let Some(session) = self.sessions.get_mut(session) {
                    session.excuses += 1;
                }
            }
            Event::StepFailing { step, .. } => {
                self.failed(*step);
                if let Some(session) = self.steps[step.position()].session {
                    self.session_over(session);
                }
            }
            Event::WorkCommitted { step, work } => {
                let book = &mut self.steps[step.position()];
                book.to_merge = work.commits > 0;
                book.merged = false;
            }
            Event::MergePlanned { step, .. } => self.merge_planned(*step),
            Event::MergeConflicted { step, .. } => {
                self.merging = None;
                self.steps[step.position()].conflicted = true;
            }
            Event::MergeAbandoned { .. }
            | Event::Merged { .. }
            | Event::StepStarted { .. }
            | Event::WorktreeReady { .. }
            | Event::WorktreeRestarted { .. }
            | Event::SessionGone { .. }
            | Event::SessionClosed { .. }
            | Event::UsageCounted { .. }
            | Event::PermissionSettled { .. }
            | Event::ReportFound { .. }
            | Event::ReportRefused { .. }
            | Event::WaitEnded { .. }
            | Event::ConflictReturned { .. }
            | Event::MergeBegun { .. }
            | Event::ConflictResolved { .. }
            | Event::ConflictLeft { .. }
            | Event::ConflictGivenUp { .. }
            | Event::StrayWrites { .. }
            | Event::WorktreeRemoved { .. }
            | Event::WorktreeHeld { .. }
            | Event::CheckStarted { .. }
            | Event::CheckEnded { .. }
            | Event::CheckCleared => {}
            Event::StepEnded { step, end } => self.step_ended(*step, end),
            _ => {}
        }
    }

    /// Something new begins for a step.
    fn begins(&mut self, step: StepIndex, what: &str) {
        let stopping = self.stopping;
        self.expect(Promise::StopWins, !stopping, || {
            format!("{what} of step {} after a stop", step.0)
        });
        let over = self.steps[step.position()].end.is_some();
        self.expect(Promise::EndsOnce, !over, || {
            format!("{what} of step {}, which is over", step.0)
        });
        self.sub_agent_begins(step, what);
        let parents: Vec<u32> = self
            .run
            .as_ref()
            .map(|run| run.graph().parents(step.0).to_vec())
            .unwrap_or_default();
        for parent in parents {
            let lets = self.steps[parent as usize].lets_follow;
            self.expect(Promise::Parents, lets, || {
                format!("{what} of step {} before step {parent} let it", step.0)
            });
        }
    }

    fn message_planned(
        &mut self,
        step: StepIndex,
        session: ClientSessionId,
        purpose: MessagePurpose,
        id: ClientMessageId,
        text: &str,
    ) {
        let stopping = self.stopping;
        self.expect(Promise::StopWins, !stopping, || {
            format!("message {id} was planned after a stop")
        });
        let new = !self.messages.contains_key(&id);
        self.expect(Promise::OneMessage, new, || {
            format!("message {id} was planned twice")
        });
        let accepted = self.steps[step.position()].accepted.is_some();
        let text = text.to_owned();
        let book = MessageBook {
            session,
            purpose,
            text,
            answered: false,
            sendings: 0,
            in_conflict: false,
        };
        self.messages.insert(id, book);
        let Some(book) = self.sessions.get_mut(&session) else {
            return self.violated(Promise::OneMessage, || {
                format!("message {id} is for an unknown session")
            });
        };
        match purpose {
            MessagePurpose::Mission => book.missions += 1,
            MessagePurpose::Correction => book.corrections += 1,
            MessagePurpose::Conflict => {
                book.conflicts += 1;
                book.corrections = 0;
                self.steps[step.position()].accepted = None;
            }
            MessagePurpose::Plan => book.missions += 1,
            MessagePurpose::PlanCorrection => book.plan_corrections += 1,
            // The one that made the plan was not told a mission; a new one is told everything.
            MessagePurpose::Synthesis | MessagePurpose::Continuation => {}
        }
        let (missions, corrections, conflicts) = (book.missions, book.corrections, book.conflicts);
        self.owes(step, session, purpose);
        self.expect(Promise::OneMessage, missions <= 1, || {
            format!("session {session} gets its mission again")
        });
        self.expect(Promise::Corrections, corrections <= 2, || {
            format!("correction {corrections} in {session}")
        });
        self.expect(
            Promise::Corrections,
            !(accepted && purpose == MessagePurpose::Correction),
            || format!("step {} is corrected after its report was accepted", step.0),
        );
        self.expect(Promise::Returns, conflicts <= 2, || {
            format!("conflict {conflicts} in {session}")
        });
    }

    /// Only what the world said in answer to that very message counts, and once.
    fn answered(&mut self, step: StepIndex, id: ClientMessageId, answer: &Answer, sessions: &Sessions) {
        self.steps[step.position()].tries = 0;
        let Some(book) = self.messages.get_mut(&id) else {
            return self.violated(Promise::OneMessage, || {
                format!("an answer to message {id}, which was not planned")
            });
        };
        let again = book.answered;
        // What was cancelled may be told again once its session is found.
        book.answered |= answer.stop != StopReason::Cancelled;
        let session = book.session;
        let received = sessions.get(&session).and_then(|session| session.message(id));
        let said = received.is_some_and(|received| {
            let given = received
                .given
                .as_ref()
                .is_some_and(|given| given.text == answer.text);
            given || received.replayed.as_ref() == Some(&answer.text)
        });
        let mine = self.steps[step.position()].session == Some(session);
        self.expect(Promise::HonestTotals, said, || {
            format!("nobody answered message {id} with `{}`", answer.text)
        });
        self.expect(Promise::HonestTotals, !again, || {
            format!("message {id} is answered twice")
        });
        self.expect(Promise::HonestTotals, mine, || {
            format!("message {id} is not of step {}'s session", step.0)
        });
    }

    fn accepted(&mut self, step: StepIndex, report: &Report, sessions: &Sessions) {
        let session = self.steps[step.position()].session;
        let misses = self.misses_somebody(step);
        let given = session.and_then(|id| sessions.get(&id)).is_some_and(|session| {
            let given = session.received.iter().filter_map(|r| r.given.as_ref());
            let reports = given.filter_map(|given| Some((given.report.as_ref()?, given.files_missing)));
            reports.into_iter().any(|((summary, outcome), files_missing)| {
                let whole = *outcome != Outcome::Complete || !files_missing;
                // A group that lost a sub-agent is partial, whatever its coordinator says.
                let same = *outcome == report.outcome && whole;
                let lost = report.outcome == Outcome::Partial && *outcome == Outcome::Complete;
                *summary == report.summary && (same || (lost && misses))
            })
        });
        self.expect(Promise::HonestTotals, given, || {
            format!(
                "step {}'s session never gave the report `{}`",
                step.0, report.summary
            )
        });
        self.steps[step.position()].accepted = Some((report.outcome, !report.blockers.is_empty()));
    }

    /// R7: 30 s, doubled to 240 s, a tenth less at most where others of the account wait too, or what the provider asks
    /// for where that is more; R8: until the date of the account's gate.
    fn waits(&mut self, step: StepIndex, cause: WaitCause, at: Timestamp, until: Timestamp, words: &str) {
        let book = &mut self.steps[step.position()];
        if cause == WaitCause::Backoff {
            book.tries += 1;
        }
        let tries = book.tries;
        if let Some(session) = book.session.and_then(|id| self.sessions.get_mut(&id)) {
            session.excuses += 1;
        }
        let Some(run) = &self.run else { return };
        let policy = run.definition().policy.clone();
        let number = |before: &str, after: &str| {
            let rest = words.split_once(before)?.1;
            rest.strip_suffix(after)?.parse::<u64>().ok()
        };
        let waited = until.since(at);
        let asked = number("retry after ", " s").map(Duration::from_secs);
        let right = match cause {
            WaitCause::Backoff => {
                let doubled = Duration::from_secs(30 << tries.saturating_sub(1).min(3));
                let least = asked.map_or(doubled * 9 / 10, |asked| asked.max(doubled * 9 / 10));
                let most = asked.map_or(doubled, |asked| asked.max(doubled));
                (least..=most).contains(&waited)
            }
            WaitCause::Capacity => {
                waited > Duration::ZERO && waited <= policy.backoff_first.max(asked.unwrap_or_default())
            }
            WaitCause::Quota | WaitCause::SignIn => self.closed_until(step) == Some(until),
        };
        self.expect(Promise::Waits, right, || {
            format!(
                "wait {tries} of step {} for {} is of {waited:?}",
                step.0,
                cause.word()
            )
        });
        let most = policy.attempts.map_or(u32::MAX, std::num::NonZeroU32::get);
        self.expect(
            Promise::Waits,
            tries < most || cause != WaitCause::Backoff,
            || {
                format!(
                    "wait {tries} of step {}: at most {most} tries are allowed",
                    step.0
                )
            },
        );
    }

    fn step_ended(&mut self, step: StepIndex, end: &StepEnd) {
        let book = &self.steps[step.position()];
        let again = book.end.is_some();
        let honest = match end {
            StepEnd::Complete => matches!(book.accepted, Some((Outcome::Complete, _))),
            StepEnd::Partial => book.accepted.is_some(),
            StepEnd::Blocked => matches!(book.accepted, Some((Outcome::Blocked, _))),
            StepEnd::Cancelled => self.stopping || self.is_waited_for_no_more(step),
            StepEnd::Failed(_) | StepEnd::NotRun(_) => true,
            StepEnd::OverBudget => self.is_held_by_ceiling() || self.follows_such_an_end(step, end),
            StepEnd::Skipped => book.skipping,
            StepEnd::FailedFast(first) => {
                self.failed_first == Some(*first) || self.follows_such_an_end(step, end)
            }
        };
        let merged = *end != StepEnd::Complete || !book.to_merge || book.merged;
        let blockers = book.accepted.is_some_and(|(_, blockers)| blockers);
        let session = book.session;
        self.expect(Promise::EndsOnce, !again, || {
            format!("step {} ends again", step.0)
        });
        self.expect(Promise::HonestTotals, honest, || {
            format!("step {} ends {end:?} without cause", step.0)
        });
        self.expect(Promise::NoWorkLost, merged, || {
            format!("step {} is complete, its work is not merged", step.0)
        });
        self.group_ended(step, end);
        if matches!(end, StepEnd::Failed(_)) {
            self.failed(step);
        }
        if self.merging == Some(step) {
            self.merging = None;
        }
        let book = &mut self.steps[step.position()];
        let passed = matches!(end, StepEnd::Complete | StepEnd::Partial) && !blockers;
        book.lets_follow = passed || *end == StepEnd::Skipped;
        book.end = Some(end.clone());
        if let Some(session) = session {
            self.session_over(session);
        }
    }
}
