//! A session's events as they come (L6).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use tokio::sync::watch;
use uuid::Uuid;

use super::body::{Asked, Named};
use super::{Desk, Refused};
use crate::gateway::Inner;
use crate::gateway::journal::JournalError;
use crate::gateway::live::{InUse, Live};
use crate::gateway::server::Ending;
use crate::wire::{Event, EventBody, Problem, ProblemKind};

/// The most events that are read from the log at once.
const AT_ONCE: usize = 256;

const LAST_EVENT_ID: &str = "last-event-id";

/// From where on events are wanted.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct From {
    /// The number of the last event that is known; 0 or none: from the first on. The header `Last-Event-ID` says it as
    /// well, and holds where both are there.
    after: Option<u64>,
}

/// A session's events after a number, going on until the session is over: server-sent events, each with its number as
/// `id`, its kind as `event`, and itself as `data`.
#[utoipa::path(get, path = "/api/sessions/{id}/events", tag = "sessions",
    params(("id" = Uuid, Path, description = "The session."), From,
        ("Last-Event-ID" = Option<u64>, Header, description = "As `after`.")), responses(
    (status = 200, description = "The events.", body = Event, content_type = "text/event-stream"),
    (status = 204, description = "The session is over, and nothing follows that number."),
    (status = 400, description = "The number is none, or higher than any that was told.", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such session.", body = Problem, content_type = "application/problem+json"),
    (status = 429, description = "A quota is used up.", body = Problem, content_type = "application/problem+json"),
    (status = 502, description = "Someone must sign in.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "It could not be looked for this time.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn events(
    State(desk): State<Desk>,
    Extension(Ending(ending)): Extension<Ending>,
    Named(id): Named,
    Asked(from): Asked<From>,
    headers: HeaderMap,
) -> Result<Response<Body>, Refused> {
    let after = last_event_id(&headers)?.or(from.after).unwrap_or(0);
    let live = desk.inner.known(id).await?;
    let session = desk.inner.session(id)?;
    if after > session.last_event {
        let words = format!(
            "session {id} has told {} events, and none is numbered {after}",
            session.last_event
        );
        return Err(Refused::new(ProblemKind::BadRequest, words));
    }
    if session.state.is_over() && after == session.last_event {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let reader = Reader {
        inner: Arc::clone(&desk.inner),
        id,
        published: live.published.subscribe(),
        _in_use: live.use_it(),
        live,
        ending,
        keep_alive: desk.bounds.keep_alive,
        last: after,
        unread: VecDeque::new(),
        begun: false,
        over: false,
    };
    let frames = futures_util::stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await?;
        Some((Ok::<_, JournalError>(frame), reader))
    });
    let mut answer = Body::from_stream(frames).into_response();
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refused> {
    let Some(told) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let number = told.to_str().ok().and_then(|told| told.parse().ok());
    number.map(Some).ok_or_else(|| {
        let words = "`Last-Event-ID` is no number of an event: write the `id` of the last one";
        Refused::new(ProblemKind::BadRequest, words)
    })
}

/// One who reads. Nothing is queued for it: it takes the next events when it has written those before.
struct Reader {
    inner: Arc<Inner>,
    id: Uuid,
    live: Arc<Live>,
    _in_use: InUse,
    published: watch::Receiver<u64>,
    ending: watch::Receiver<bool>,
    keep_alive: Duration,
    /// The number of the last event that it was given.
    last: u64,
    unread: VecDeque<Arc<Event>>,
    begun: bool,
    over: bool,
}

impl Reader {
    /// What is written next; none when nothing follows.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.begun, true) {
            // The client knows that it is heard before anything happens.
            return Some(Bytes::from_static(b"retry: 1000\n\n"));
        }
        if self.over {
            self.inner.state().book.touch(self.id, self.inner.now());
            return None;
        }
        loop {
            if !self.unread.is_empty() {
                return Some(self.frames());
            }
            let published = *self.published.borrow_and_update();
            if published > self.last {
                self.unread = self.read(published).await.ok()?.into();
                if self.unread.is_empty() {
                    return None; // it was forgotten meanwhile
                }
                continue;
            }
            let is_ending = async { self.ending.wait_for(|ending| *ending).await.map(drop) };
            tokio::select! {
                changed = self.published.changed() => changed.ok()?,
                _ = is_ending => return None,
                () = tokio::time::sleep(self.keep_alive) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    /// All that is unread, as one piece.
    fn frames(&mut self) -> Bytes {
        let mut text = String::new();
        for event in self.unread.drain(..) {
            self.last = event.number;
            self.over = matches!(&event.body, EventBody::State { state } if state.is_over());
            // Plain data is always JSON, and JSON as it is written here has no line end.
            let json = serde_json::to_string(&event).unwrap_or_default();
            let kind = event.body.kind();
            text.push_str(&format!("id: {}\nevent: {kind}\ndata: {json}\n\n", event.number));
        }
        Bytes::from(text)
    }

    async fn read(&self, published: u64) -> Result<Vec<Arc<Event>>, JournalError> {
        if let Some(recent) = self.live.recent_after(self.last, published) {
            return Ok(recent);
        }
        let (inner, id, after) = (Arc::clone(&self.inner), self.id, self.last);
        let read = tokio::task::spawn_blocking(move || inner.journal.events(id, after, AT_ONCE)).await;
        match read {
            Ok(Ok(mut events)) => {
                // What is written may be read before it is durable.
                events.retain(|event| event.number <= published);
                Ok(events)
            }
            Ok(Err(error)) => {
                tracing::error!(session = %id, %error, "events cannot be read");
                Err(error)
            }
            // The process is ending.
            Err(_) => Ok(Vec::new()),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // From now on it counts as unused.
        self.inner.state().book.touch(self.id, self.inner.now());
    }
}
