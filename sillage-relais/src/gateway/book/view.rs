//! Sessions as clients are shown them.

use sillage_core::time::Timestamp;
use uuid::Uuid;

use super::entry::Entry;
use super::{Book, Refusal};
use crate::translate::{self, instant};
use crate::wire::{Session, SessionCounts, SessionState};

impl Book {
    /// A session as it is.
    pub(crate) fn session(&self, id: Uuid, used: bool) -> Result<Session, Refusal> {
        let entry = self.sessions.get(&id).ok_or(Refusal::Unknown(id))?;
        Ok(shown(entry, used))
    }

    /// The sessions that `wanted` accepts by their application and identifier, the oldest first.
    pub(crate) fn sessions(
        &self,
        wanted: impl Fn(&str, Uuid) -> bool,
        used: impl Fn(Uuid) -> bool,
    ) -> Vec<Session> {
        let found = self
            .sessions
            .iter()
            .filter(|(id, entry)| wanted(&entry.request.application_name, **id));
        let mut found: Vec<(Timestamp, Uuid, &Entry)> = found
            .map(|(id, entry)| (entry.head.created, *id, entry))
            .collect();
        found.sort_by_key(|(created, id, _)| (*created, *id));
        found
            .into_iter()
            .map(|(_, id, entry)| shown(entry, used(id)))
            .collect()
    }

    /// How many sessions there are, by state.
    pub(crate) fn counts(&self) -> SessionCounts {
        let mut counts = SessionCounts::default();
        for entry in self.sessions.values() {
            let count = match entry.head.state {
                SessionState::Starting => &mut counts.starting,
                SessionState::Idle => &mut counts.idle,
                SessionState::Working => &mut counts.working,
                SessionState::Waiting => &mut counts.waiting,
                SessionState::Ended => &mut counts.ended,
                SessionState::Lost => &mut counts.lost,
            };
            *count += 1;
        }
        counts
    }
}

fn shown(entry: &Entry, used: bool) -> Session {
    let (request, head) = (&entry.request, &entry.head);
    let opened = head.opened.as_ref();
    Session {
        id: request.client_session_id,
        client_session_id: request.client_session_id,
        application_name: request.application_name.clone(),
        state: head.state,
        because: head.because.clone(),
        model: request.model.clone(),
        effort: request.effort.clone(),
        workspace: request.workspace.clone(),
        filesystem_scope: request.filesystem_scope.clone(),
        protected: request.protected.clone(),
        permissions: request.permissions,
        autocompact_tokens: request.autocompact_tokens,
        ttl_seconds: request.ttl_seconds,
        agent: opened.map(|opened| opened.agent.clone()),
        pid: opened.and_then(|opened| opened.pid),
        usage: translate::usage_to_wire(&head.usage),
        created_at: instant(head.created),
        last_activity_at: instant(head.last_activity),
        expires_at: entry.expiry(used).map(instant),
        last_event: head.last_event,
        last_message: head.last_message.clone(),
        permission_requests: head
            .permissions
            .iter()
            .map(translate::permission_to_wire)
            .collect(),
    }
}
