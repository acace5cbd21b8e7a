//! What clients may ask of sessions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sillage_core::id::ClientSessionId;
use uuid::Uuid;

use super::Inner;
use super::attach::settled;
use super::book::{Closing, Creation, Refusal, Taking, for_runtime};
use super::failure::Failure;
use super::live::{Attachment, Live};
use crate::wire::{CreateSession, LONGEST_TTL_SECONDS, ProblemKind, SendMessage, Session, SessionState};

/// How long after a close the end of its session's events is waited for.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// Whether something was done now, or had been before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Now,
    Before,
}

impl Inner {
    /// L3: opens a session, or gives back the one that was opened under its identifier.
    pub(super) async fn create(self: &Arc<Self>, request: CreateSession) -> Result<(Done, Session), Failure> {
        check(&request)?;
        let id = request.client_session_id;
        let done = loop {
            match self.begin(&request)? {
                Some(live) => {
                    settled(&live).await?;
                    break Done::Now;
                }
                // One that did not open after all, or was never known to have, is asked for anew.
                None => {
                    self.attached(id).await?;
                    if self.state().book.looked_up(id).is_some() {
                        break Done::Before;
                    }
                }
            }
        };
        self.settled().await?;
        Ok((done, self.session(id)?))
    }

    /// Begins to open a session; none when it is known already.
    fn begin(self: &Arc<Self>, request: &CreateSession) -> Result<Option<Arc<Live>>, Failure> {
        let id = request.client_session_id;
        let now = self.now();
        let state = &mut *self.state();
        if self.is_ending() {
            return Err(Failure::Ending);
        }
        match state.book.create(request, now)? {
            Creation::Begin(changes) => {
                let live = Live::new(Attachment::Pending, 0);
                state.lives.insert(id, Arc::clone(&live));
                let written = self.keep(state, id, changes);
                self.begin_opening(id, &live, written);
                Ok(Some(live))
            }
            Creation::Known => Ok(None),
        }
    }

    /// A session as it is.
    pub(super) fn session(&self, id: Uuid) -> Result<Session, Failure> {
        let state = self.state();
        let used = state.lives.get(&id).is_some_and(|live| live.used());
        Ok(state.book.session(id, used)?)
    }

    /// The session in memory once the runtime has it or it is over; a call on it, which renews it (L8).
    pub(super) async fn known(self: &Arc<Self>, id: Uuid) -> Result<Arc<Live>, Failure> {
        let now = self.now();
        self.state().book.touch(id, now);
        let live = self.attached(id).await?;
        Ok(live.ok_or(Refusal::Unknown(id))?)
    }

    /// L5: passes a message on, once.
    pub(super) async fn send(self: &Arc<Self>, id: Uuid, message: SendMessage) -> Result<Done, Failure> {
        if message.content.is_empty() {
            let words = "a message has at least one block: write one into `content`";
            return Err(Failure::problem(ProblemKind::Permanent, words));
        }
        let live = self.known(id).await?;
        let inner = Arc::clone(self);
        self.to_its_end(async move { inner.pass_on(id, &live, &message).await })
            .await
    }

    async fn pass_on(&self, id: Uuid, live: &Live, message: &SendMessage) -> Result<Done, Failure> {
        let _one_at_a_time = live.gate.lock().await;
        let taking = self.commit(id, |book, now| match book.message(id, message, now) {
            Ok(Taking::Pass(changes)) => (Ok(Done::Now), changes),
            Ok(Taking::Known) => (Ok(Done::Before), Vec::new()),
            Err(refusal) => (Err(refusal), Vec::new()),
        });
        if taking.await?? == Done::Before {
            return Ok(Done::Before);
        }
        let passed = for_runtime(message);
        if let Err(error) = self.runtime.send(ClientSessionId(id), &passed).await {
            let message = message.client_message_id;
            self.commit(id, |book, now| ((), book.not_taken(id, message, now)))
                .await?;
            return Err(error.into());
        }
        Ok(Done::Now)
    }

    /// L5: asks a session to stop what it does.
    pub(super) async fn cancel(self: &Arc<Self>, id: Uuid) -> Result<(), Failure> {
        self.known(id).await?;
        Ok(self.runtime.cancel(ClientSessionId(id)).await?)
    }

    /// L7: answers a permission request.
    pub(super) async fn answer_permission(
        self: &Arc<Self>,
        id: Uuid,
        permission: &str,
        option: &str,
    ) -> Result<(), Failure> {
        self.known(id).await?;
        let session = self.session(id)?;
        if session.state.is_over() {
            let because = session.because.unwrap_or_default();
            return Err(Refusal::Over { id, because }.into());
        }
        let answered = self
            .runtime
            .answer_permission(ClientSessionId(id), permission, option);
        Ok(answered.await?)
    }

    /// L4, L8: closes a session and what was started for it. One that nobody knows is closed already, and a request
    /// for it that is still on its way opens nothing.
    pub(super) async fn close(self: &Arc<Self>, id: Uuid, because: &'static str) -> Result<(), Failure> {
        let inner = Arc::clone(self);
        self.to_its_end(async move { inner.close_now(id, because).await })
            .await
    }

    async fn close_now(&self, id: Uuid, because: &str) -> Result<(), Failure> {
        let mark = || {
            self.commit(id, |book, now| {
                let (changes, closing) = book.closing(id, because, now);
                (closing, changes)
            })
        };
        if mark().await? == Closing::Nothing {
            return Ok(());
        }
        let live = self.live(id);
        if let Some(live) = &live {
            // Whatever comes of it, it is not being opened any more.
            let _ = settled(live).await;
        }
        if mark().await? == Closing::Nothing {
            return Ok(()); // it did not open, or is over
        }
        if let Err(error) = self.runtime.close(ClientSessionId(id)).await {
            self.state().book.not_closed(id);
            return Err(error.into());
        }
        if let Some(live) = &live
            && live.is_pumped()
        {
            let mut attachment = live.attachment.subscribe();
            let over = attachment.wait_for(|attachment| *attachment == Attachment::Over);
            // The runtime says that it is closed; what it does not tell any more is not waited for.
            let _ = tokio::time::timeout(LAST_EVENTS, over).await;
        }
        let over = self.commit(id, |book, now| {
            ((), book.over(id, SessionState::Ended, because, now))
        });
        over.await?;
        self.put_away(id);
        if let Some(live) = live {
            live.attachment.send_replace(Attachment::Over);
        }
        Ok(())
    }
}

/// Refuses what no runtime could be asked for.
fn check(request: &CreateSession) -> Result<(), Failure> {
    let permanent = |words: String| Err(Failure::problem(ProblemKind::Permanent, words));
    if request.application_name.is_empty() || request.application_name.chars().count() > 200 {
        return permanent("`application_name` has 1 to 200 characters".to_owned());
    }
    if request.model.is_empty() {
        return permanent("`model` is empty: GET /api/models names those on offer".to_owned());
    }
    if !(1..=LONGEST_TTL_SECONDS).contains(&request.ttl_seconds) {
        return permanent(format!("`ttl_seconds` is from 1 to {LONGEST_TTL_SECONDS}"));
    }
    let (scope, protected) = (&request.filesystem_scope, &request.protected);
    let folders = [
        ("workspace", std::slice::from_ref(&request.workspace)),
        ("filesystem_scope.read", &scope.read),
        ("filesystem_scope.write", &scope.write),
        ("protected.closed", &protected.closed),
        ("protected.kept", &protected.kept),
    ];
    for (field, paths) in folders {
        if let Some(relative) = paths.iter().find(|path| !Path::new(path).is_absolute()) {
            return permanent(format!("`{field}` holds `{relative}`: write paths from the root"));
        }
    }
    let missing = [
        ("working_context", request.working_context.is_some()),
        ("mcp_http", !request.mcp_servers.is_empty()),
    ];
    if let Some((capability, _)) = missing.into_iter().find(|(_, needed)| *needed) {
        let words = format!("this gateway has no `{capability}`: GET /api/status tells what it can do");
        return Err(Failure::problem(ProblemKind::Capability, words));
    }
    Ok(())
}
