//! What the judge expects of sessions: planned once, found when the world says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use sillage_core::id::{ClientSessionId, StepIndex};
use sillage_core::ports::runtime::SessionRequest;

use super::book::SessionBook;
use super::{Judge, Promise};
use crate::simulator::sessions::Session;

impl Judge {
    /// A step has one session at a time.
    pub(super) fn session_planned(&mut self, step: StepIndex, request: &Arc<SessionRequest>) {
        let id = request.client_session_id;
        self.may_open(step);
        let new = !self.sessions.contains_key(&id);
        self.expect(Promise::OneStart, new, || {
            format!("session {id} was planned twice")
        });
        let before = self.steps[step.position()].session;
        let over = before
            .and_then(|id| self.sessions.get(&id))
            .is_none_or(|session| session.over);
        self.expect(Promise::OneStart, over, || {
            format!(
                "session {id} was planned for step {}, whose session is not known to be lost",
                step.0
            )
        });
        self.steps[step.position()].session = Some(id);
        let book = SessionBook {
            step,
            request: Arc::clone(request),
            over: false,
            left: false,
            opened: false,
            corrections: 0,
            conflicts: 0,
            missions: 0,
            plan_corrections: 0,
            openings: 0,
            excuses: 0,
            found: 0,
        };
        self.sessions.insert(id, book);
    }

    /// No session is found more often than an engine was told so.
    pub(super) fn session_found(
        &mut self,
        id: ClientSessionId,
        sessions: &BTreeMap<ClientSessionId, Session>,
    ) {
        let Some(book) = self.sessions.get_mut(&id) else {
            return;
        };
        book.opened = true;
        book.found += 1;
        let found = book.found;
        let told = sessions.get(&id).map_or(0, |session| session.found);
        self.expect(Promise::AsTold, found <= told, || {
            format!("session {id} is found {found} times, and was told so {told} times")
        });
    }

    pub(super) fn session_over(&mut self, session: ClientSessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.over = true;
        }
    }
}
