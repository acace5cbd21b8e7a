//! Listening to a session of the runtime: what it tells is numbered and kept, and only then shown.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use sillage_core::id::ClientSessionId;
use sillage_core::ports::runtime::{RuntimeError, SessionEvent, SessionEventKind};
use uuid::Uuid;

use super::Inner;
use super::journal::JournalError;
use super::live::{Attachment, Live};
use crate::wire::SessionState;

/// The most events that are kept at once.
const AT_ONCE: usize = 256;

/// How long after a runtime could not be listened to it is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens until the session is over.
pub(super) async fn pump(inner: Arc<Inner>, id: Uuid, live: Arc<Live>) {
    if let Err(error) = listen(&inner, id).await {
        // Nothing is kept any more, and so nothing is shown any more.
        return tracing::error!(session = %id, %error, "its events are not kept");
    }
    inner.put_away(id);
    live.attachment.send_replace(Attachment::Over);
}

async fn listen(inner: &Inner, id: Uuid) -> Result<(), JournalError> {
    loop {
        let Some(after) = inner.state().book.looked_up(id).map(|(_, head)| head.upstream) else {
            return Ok(());
        };
        let events = match inner.runtime.events(ClientSessionId(id), after).await {
            Ok(events) => events,
            Err(RuntimeError::Lost { words }) => return lost(inner, id, &words).await,
            Err(error) => {
                tracing::debug!(session = %id, %error, "the runtime cannot be listened to now");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let mut groups = events.ready_chunks(AT_ONCE);
        let mut told = false;
        while let Some(group) = groups.next().await {
            told = true;
            if keep(inner, id, group).await? {
                return Ok(());
            }
        }
        // It was cut, and is taken up again; one that tells nothing never will.
        if !told {
            return lost(inner, id, "its events ended before it did").await;
        }
    }
}

/// Keeps events that came together; whether the session is over with them.
async fn keep(inner: &Inner, id: Uuid, group: Vec<SessionEvent>) -> Result<bool, JournalError> {
    let over = group.iter().any(|event| event.kind == SessionEventKind::Ended);
    let kept = inner.commit(id, |book, now| {
        let changes = group.iter().flat_map(|event| book.event(id, event, now));
        ((), changes.collect())
    });
    kept.await?;
    Ok(over)
}

async fn lost(inner: &Inner, id: Uuid, words: &str) -> Result<(), JournalError> {
    inner
        .commit(id, |book, now| {
            ((), book.over(id, SessionState::Lost, words, now))
        })
        .await
}
