//! What follows from news of permission requests, and from a person's answers.

use std::sync::Arc;

use super::Decision;
use crate::id::{ClientSessionId, Seq, StepIndex};
use crate::policy::option_for;
use crate::ports::runtime::{PermissionRequest, RuntimeError};
use crate::run::Refused;
use crate::run::event::{AnsweredBy, Event};
use crate::run::input::PermissionAnswer;
use crate::run::permissions::REFUSALS_TOLD;

impl Decision<'_> {
    pub(super) fn permission_asked(&mut self, session: ClientSessionId, request: &Arc<PermissionRequest>) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        let known = state.session.as_deref().is_some_and(|session| {
            let mut open = session.permissions.iter();
            open.any(|open| open.request.id == request.id)
        });
        // When the run stops, the cancel that is on its way answers it.
        let at_work = state.is_answering() || state.sends_again();
        if !known && at_work && !self.is_stopping() {
            self.say(Event::PermissionAsked {
                step,
                session,
                request: Arc::clone(request),
            });
            self.served(step);
        }
    }

    /// What a rule refused is told, as long as an agent that asks for ever does not fill the log.
    pub(super) fn permission_refused(
        &mut self,
        session: ClientSessionId,
        request: &Arc<PermissionRequest>,
        rule: &str,
    ) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        let told = state.session.as_deref().map_or(0, |session| session.refusals);
        if told < REFUSALS_TOLD {
            self.say(Event::PermissionRefused {
                step,
                session,
                request: Arc::clone(request),
                rule: rule.to_owned(),
            });
        }
    }

    /// A person's answer, as one of the options that the agent offers. The same answer again changes nothing.
    pub(super) fn answer_permission(&mut self, asked: Seq, answer: &PermissionAnswer) -> Result<(), Refused> {
        let (step, open) = self
            .run
            .open_permission(asked)
            .ok_or(Refused::NoSuchPermission(asked))?;
        let options = &open.request.options;
        let (option, wanted) = match answer {
            PermissionAnswer::Allow => (
                option_for(true, options),
                "permission for this once only".to_owned(),
            ),
            PermissionAnswer::Deny => (option_for(false, options), "refusal".to_owned()),
            PermissionAnswer::Option(id) => (
                options.iter().find(|option| option.id == *id),
                format!("option `{id}`"),
            ),
        };
        let Some(option) = option else {
            return Err(Refused::NoSuchOption {
                asked,
                wanted,
                offered: options.iter().map(|option| option.id.clone()).collect(),
            });
        };
        match &open.answer {
            Some(before) if *before == option.id => return Ok(()),
            Some(before) => {
                return Err(Refused::Answered {
                    asked,
                    option: before.clone(),
                });
            }
            None => {}
        }
        let (session, option) = (self.session_of(step), option.id.clone());
        if let Some(session) = session {
            self.say(Event::PermissionAnswered {
                step,
                session,
                asked,
                option,
            });
        }
        Ok(())
    }

    pub(super) fn permission_settled(
        &mut self,
        session: ClientSessionId,
        permission: &str,
        option: Option<&str>,
        by: AnsweredBy,
    ) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        let open = state.session.as_deref().and_then(|session| {
            let mut open = session.permissions.iter();
            open.find(|open| open.request.id == permission)
        });
        if let Some(open) = open {
            self.say(Event::PermissionSettled {
                step,
                session,
                asked: open.asked,
                option: option.map(str::to_owned),
                by,
            });
        }
    }

    /// What could not be told is not told again by itself: the request was cancelled meanwhile, or its session is gone,
    /// which is news of its own.
    pub(super) fn permission_not_passed(
        &mut self,
        session: ClientSessionId,
        asked: Seq,
        _error: &RuntimeError,
    ) {
        let Some((step, state)) = self.owner(session) else {
            return;
        };
        let open = state.session.as_deref().is_some_and(|session| {
            let mut open = session.permissions.iter();
            open.any(|open| open.asked == asked)
        });
        if open {
            self.say(cancelled(step, session, asked));
        }
    }

    /// Says of the step's open requests that they are answered `cancelled`, as closing the session does.
    pub(super) fn cancel_permissions(&mut self, step: StepIndex) {
        let state = &self.run.steps[step.position()];
        let Some(session) = state.session.as_deref().filter(|_| state.is_answering()) else {
            return;
        };
        for open in &session.permissions {
            self.say(cancelled(step, session.id(), open.asked));
        }
    }

    fn session_of(&self, step: StepIndex) -> Option<ClientSessionId> {
        let session = self.run.steps[step.position()].session.as_deref();
        session.map(crate::run::StepSession::id)
    }
}

fn cancelled(step: StepIndex, session: ClientSessionId, asked: Seq) -> Event {
    Event::PermissionSettled {
        step,
        session,
        asked,
        option: None,
        by: AnsweredBy::Cancel,
    }
}
