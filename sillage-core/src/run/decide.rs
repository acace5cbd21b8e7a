//! Deciding: what follows from an input, and why. Changes nothing.

mod by_hand;
mod check;
mod conflict;
mod ending;
mod gate;
mod hold;
mod permission;
mod plan;
mod schedule;
mod session;
mod wait;
mod work;

use std::collections::BTreeSet;

use super::event::{Event, Failure, FailureClass, LeftBehind, StepEnd};
use super::input::{Command, Input, Refused};
use super::step::{Phase, Step};
use super::{Run, Stage};
use crate::id::{ClientSessionId, StepIndex};
use crate::ports::Ids;
use crate::ports::workspace::WorkspaceError;
use crate::time::Timestamp;

impl Run {
    /// What follows from `input`, as facts. Late, repeated and foreign inputs yield nothing.
    ///
    /// # Errors
    /// [`Refused`] for a command that makes no sense in the run's state.
    pub fn decide(&self, now: Timestamp, ids: &mut dyn Ids, input: &Input) -> Result<Vec<Event>, Refused> {
        let mut decision = Decision {
            run: self,
            now,
            ids,
            events: Vec::new(),
            ended: BTreeSet::new(),
        };
        match input {
            Input::Command(command) => decision.command(command)?,
            Input::EngineStarted { pid, left } => decision.engine_started(*pid, left),
            _ if matches!(self.stage, Stage::Ended(_)) => {}
            Input::Tick => decision.tick(),
            Input::MachineSlept { slept } => decision.say(Event::MachineSlept { slept: *slept }),
            Input::ClockJumped { by_ms } => decision.say(Event::ClockJumped { by_ms: *by_ms }),
            Input::Leased { step, result } => decision.leased(*step, result),
            Input::Restarted { step, result } => decision.restarted(*step, result),
            Input::Opened { session, result } => decision.opened(*session, result),
            Input::Found { session, result } => decision.found(*session, result),
            Input::NotSent {
                session,
                message,
                error,
            } => decision.not_sent(*session, *message, error),
            Input::Answered {
                session,
                message,
                answer,
            } => decision.answered(*session, *message, answer),
            Input::Failed {
                session,
                message,
                error,
            } => decision.failed(*session, *message, error),
            Input::OutOfReach { session, error } => decision.out_of_reach(*session, error),
            Input::PermissionAsked { session, request } => decision.permission_asked(*session, request),
            Input::PermissionRefused {
                session,
                request,
                rule,
            } => decision.permission_refused(*session, request, rule),
            Input::PermissionSettled {
                session,
                permission,
                option,
                by,
            } => decision.permission_settled(*session, permission, option.as_deref(), *by),
            Input::PermissionNotPassed {
                session,
                asked,
                error,
            } => {
                decision.permission_not_passed(*session, *asked, error);
            }
            Input::ToolUsed { session } => decision.tool_used(*session),
            Input::AccountAvailable { account } => decision.account_available(account),
            Input::UsageCounted { session, usage } => decision.usage(*session, *usage),
            Input::Closed { session, result } => decision.closed(*session, result),
            Input::Verified { step, result } => decision.verified(*step, result),
            Input::Committed { step, result, seen } => decision.committed(*step, result, seen),
            Input::Merged { step, result } => decision.merged(*step, result),
            Input::MergeBegun { step, result } => decision.merge_begun(*step, result),
            Input::Inspected { step, result } => decision.inspected(*step, result),
            Input::MergeAbandoned { step, result } => decision.merge_abandoned(*step, result),
            Input::Checked(result) => decision.checked(result),
            Input::CheckCleared { result } => decision.check_cleared(result),
            Input::Removed { step, result } => decision.removed(*step, result),
        }
        Ok(decision.events)
    }
}

/// A decision being made: the run as it is, and the facts so far.
struct Decision<'a> {
    run: &'a Run,
    now: Timestamp,
    ids: &'a mut dyn Ids,
    events: Vec<Event>,
    /// The steps that end by it.
    ended: BTreeSet<StepIndex>,
}

impl Decision<'_> {
    fn say(&mut self, event: Event) {
        self.events.push(event);
    }

    fn command(&mut self, command: &Command) -> Result<(), Refused> {
        match (command, self.run.stage) {
            (Command::Stop, Stage::Running) => self.say(Event::StopAsked { forced: false }),
            (Command::Stop, Stage::Stopping { forced: false, .. }) => {
                self.say(Event::StopAsked { forced: true })
            }
            (Command::Stop, Stage::Stopping { forced: true, .. }) => {}
            (Command::Stop, Stage::Ended(end)) => return Err(Refused::Over(end.word())),
            (Command::AnswerPermission { asked, answer }, Stage::Running) => {
                self.answer_permission(*asked, answer)?;
            }
            (Command::AnswerPermission { asked, .. }, Stage::Stopping { .. } | Stage::Ended(_)) => {
                return Err(Refused::NoSuchPermission(*asked));
            }
            (Command::TryAccount { account }, Stage::Running) => self.try_account(account)?,
            (Command::TryAccount { .. }, Stage::Stopping { .. }) => return Err(Refused::Over("stopping")),
            (Command::TryAccount { .. }, Stage::Ended(end)) => return Err(Refused::Over(end.word())),
            (Command::Retry { step }, _) => self.retry(*step, false)?,
            (Command::Redo { step }, _) => self.retry(*step, true)?,
            (Command::Skip { step }, _) => self.skip(*step)?,
            (Command::Resume { .. }, Stage::Running | Stage::Stopping { .. }) => {
                return Err(Refused::UnderWay);
            }
            (Command::Resume { budget }, Stage::Ended(end)) => {
                if !self.run.can_resume() {
                    return Err(Refused::NothingLeft(end.word()));
                }
                self.change_budget_to_go_on(budget)?;
                self.say(Event::ResumeAsked);
            }
            (Command::ChangeBudget(change), Stage::Running | Stage::Stopping { .. }) => {
                self.change_budget(change);
            }
            (Command::ChangeBudget(_), Stage::Ended(end)) => return Err(Refused::Over(end.word())),
        }
        Ok(())
    }

    fn engine_started(&mut self, pid: u32, left: &[LeftBehind]) {
        if !matches!(self.run.stage, Stage::Ended(_)) {
            let left = left.to_vec();
            self.say(Event::EngineStarted { pid, left });
        }
    }

    /// The step that a live session belongs to.
    fn owner(&self, session: ClientSessionId) -> Option<(StepIndex, &Step)> {
        let step = *self.run.live.get(&session)?;
        let state = &self.run.steps[step.position()];
        state
            .session
            .as_deref()
            .is_some_and(|s| s.id() == session)
            .then_some((step, state))
    }

    fn in_phase(&self, step: StepIndex, phase: &Phase) -> bool {
        self.run.step(step).is_some_and(|state| state.phase == *phase)
    }

    fn is_stopping(&self) -> bool {
        matches!(self.run.stage, Stage::Stopping { .. })
    }

    /// The step cannot go on. Work in a worktree is committed on its branch before the step ends, once the session
    /// that may still write there is closed.
    fn fail(&mut self, step: StepIndex, class: FailureClass, words: impl Into<String>) {
        let failure = Failure {
            class,
            words: words.into(),
        };
        let state = &self.run.steps[step.position()];
        if state.worktree().is_some() && state.session.is_some() {
            self.cancel_permissions(step);
            self.say(Event::StepFailing { step, failure });
        } else {
            self.end(step, StepEnd::Failed(Box::new(failure)));
        }
    }

    fn fail_in_workspace(&mut self, step: StepIndex, error: &WorkspaceError) {
        let class = match error {
            WorkspaceError::WorktreeLost { .. } => FailureClass::WorktreeLost,
            WorkspaceError::Unsupported { .. } | WorkspaceError::Git { .. } | WorkspaceError::Io { .. } => {
                FailureClass::Workspace
            }
        };
        let failure = Failure {
            class,
            words: error.to_string(),
        };
        self.end(step, StepEnd::Failed(Box::new(failure)));
    }
}
