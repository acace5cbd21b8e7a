//! Having the runtime hold a session: opening it, or finding it again after a start.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use sillage_core::id::ClientSessionId;
use sillage_core::ports::runtime::{RuntimeError, SessionEventKind};
use uuid::Uuid;

use super::Inner;
use super::book::Found;
use super::failure::Failure;
use super::journal::{JournalError, Ticket};
use super::live::{Attachment, Live};
use super::pump::pump;
use crate::translate::request_from_wire;
use crate::wire::SessionState;

/// Sessions that are looked for at once.
const LOOKED_FOR_AT_ONCE: usize = 8;

/// How long after a session could not be looked for it is looked for again by itself; a call on it does so at once.
const LOOKED_FOR_EVERY: Duration = Duration::from_secs(30);

/// Looks for every session that is not over, and again from time to time for those that could not be looked for.
pub(super) async fn always(inner: Arc<Inner>) {
    loop {
        all(&inner).await;
        tokio::time::sleep(LOOKED_FOR_EVERY).await;
    }
}

/// Looks for every session that is not over, a few at once.
async fn all(inner: &Arc<Inner>) {
    let living = inner.state().book.living();
    let looking = living.into_iter().map(|id| {
        let inner = Arc::clone(inner);
        async move {
            if let Err(error) = inner.attached(id).await {
                tracing::warn!(session = %id, %error, "the session could not be looked for");
            }
        }
    });
    futures_util::stream::iter(looking)
        .buffer_unordered(LOOKED_FOR_AT_ONCE)
        .collect::<()>()
        .await;
}

impl Inner {
    /// Opens a session whose request is being written, in the background.
    pub(super) fn begin_opening(self: &Arc<Self>, id: Uuid, live: &Arc<Live>, written: Ticket) {
        let (inner, live) = (Arc::clone(self), Arc::clone(live));
        self.spawn(async move {
            // What is not durable is not begun.
            let told = match written.await {
                Ok(()) => inner.open(id, &live).await,
                Err(error) => Err(error),
            };
            inner.note(id, &live, told);
        });
    }

    async fn open(self: &Arc<Self>, id: Uuid, live: &Arc<Live>) -> Result<Attachment, JournalError> {
        let Some((request, _)) = self.state().book.looked_up(id) else {
            return Ok(Attachment::Over);
        };
        match self.runtime.open(&request_from_wire(&request)).await {
            Ok(opened) => {
                self.commit(id, |book, now| ((), book.opened(id, opened, now)))
                    .await?;
                self.listen(id, live);
                Ok(Attachment::Attached)
            }
            Err(error) => {
                self.forget(id).await?;
                Ok(Attachment::Failed(error))
            }
        }
    }

    /// Forgets a session that did not open.
    async fn forget(&self, id: Uuid) -> Result<(), JournalError> {
        let ticket = {
            let state = &mut *self.state();
            let changes = state.book.not_opened(id);
            if !changes.is_empty() {
                state.lives.remove(&id);
            }
            self.journal.write(changes, None)
        };
        ticket.await
    }

    fn note(&self, id: Uuid, live: &Live, told: Result<Attachment, JournalError>) {
        let attachment = told.unwrap_or_else(|error| {
            tracing::error!(session = %id, %error, "the session cannot be kept");
            let words = error.to_string();
            Attachment::Failed(RuntimeError::Temporary {
                words,
                retry_after: None,
            })
        });
        live.attachment.send_if_modified(|before| {
            // It may be over already: its events are heard before this is noted.
            let changes = *before != Attachment::Over;
            if changes {
                *before = attachment;
            }
            changes
        });
    }

    fn listen(self: &Arc<Self>, id: Uuid, live: &Arc<Live>) {
        live.pumped_by(self.spawn(pump(Arc::clone(self), id, Arc::clone(live))));
    }

    /// Waits until the runtime has the session or it is over, and looks for it where that was not done or failed.
    pub(super) async fn attached(self: &Arc<Self>, id: Uuid) -> Result<Option<Arc<Live>>, Failure> {
        let Some(live) = self.live(id) else {
            return Ok(None);
        };
        let begin = live.attachment.send_if_modified(|attachment| {
            let begins = matches!(attachment, Attachment::Unknown | Attachment::Failed(_));
            if begins {
                *attachment = Attachment::Pending;
            }
            begins
        });
        if begin {
            let (inner, live) = (Arc::clone(self), Arc::clone(&live));
            self.spawn(async move {
                let told = inner.look_for(id, &live).await;
                inner.note(id, &live, told);
            });
        }
        settled(&live).await?;
        Ok(Some(live))
    }

    async fn look_for(self: &Arc<Self>, id: Uuid, live: &Arc<Live>) -> Result<Attachment, JournalError> {
        let (looked_up, in_hand) = {
            let state = self.state();
            (state.book.looked_up(id), state.book.in_hand(id))
        };
        let Some((request, head)) = looked_up else {
            return Ok(Attachment::Over);
        };
        let native = head.opened.as_ref().and_then(|opened| opened.native.as_deref());
        let found = self
            .runtime
            .find(&request_from_wire(&request), native, in_hand.as_ref())
            .await;
        match found {
            Ok(found) => {
                let next = self.commit(id, |book, now| {
                    let (changes, next) = book.found(id, found, now);
                    (next, changes)
                });
                let next = next.await?;
                if self
                    .state()
                    .book
                    .looked_up(id)
                    .is_none_or(|(_, head)| head.state.is_over())
                {
                    // It was closed while it was looked for: what was brought back is nobody's.
                    if let Err(error) = self.runtime.close(ClientSessionId(id)).await {
                        tracing::warn!(session = %id, %error, "a session that was closed cannot be ended");
                    }
                    return Ok(Attachment::Over);
                }
                self.listen(id, live);
                if let Found::PassOn(message) = next
                    && let Err(error) = self.runtime.send(ClientSessionId(id), &message).await
                {
                    // It was acknowledged: whoever waits for its answer is told.
                    let message = Some(message.client_message_id);
                    let told = SessionEventKind::Error { message, error };
                    self.commit(id, |book, now| ((), book.told(id, &told, now)))
                        .await?;
                }
                Ok(Attachment::Attached)
            }
            // Nobody was told that it is there: it may be asked for again.
            Err(RuntimeError::Lost { .. }) if head.state == SessionState::Starting => {
                self.forget(id).await?;
                Ok(Attachment::Over)
            }
            Err(
                error @ (RuntimeError::Temporary { .. }
                | RuntimeError::Quota { .. }
                | RuntimeError::SignIn { .. }
                | RuntimeError::Capacity { .. }),
            ) => Ok(Attachment::Failed(error)),
            Err(error) => {
                let because = error.to_string();
                // What it was answering was cut by the gateway's own end: in a new session it may well be answered.
                let cut = in_hand.map(|message| SessionEventKind::Error {
                    message: Some(message.client_message_id),
                    error: RuntimeError::Temporary {
                        words: format!("the gateway was started again, and its session is lost: {because}"),
                        retry_after: None,
                    },
                });
                let over = self.commit(id, |book, now| {
                    let mut changes = cut.map_or_else(Vec::new, |cut| book.told(id, &cut, now));
                    changes.extend(book.over(id, SessionState::Lost, &because, now));
                    ((), changes)
                });
                over.await?;
                Ok(Attachment::Over)
            }
        }
    }
}

/// Waits until it is known whether the runtime has the session.
pub(super) async fn settled(live: &Live) -> Result<(), Failure> {
    let mut attachment = live.attachment.subscribe();
    let settled = attachment
        .wait_for(|attachment| *attachment != Attachment::Pending)
        .await;
    match settled.map(|attachment| attachment.clone()) {
        Ok(Attachment::Failed(error)) => Err(Failure::Runtime(error)),
        Ok(Attachment::Unknown | Attachment::Pending | Attachment::Attached | Attachment::Over) => Ok(()),
        Err(_) => Err(Failure::Ending),
    }
}
