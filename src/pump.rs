//! Listening to one session: what decides goes to the driver, chatter to the feed and the transcript.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::Stream;
use sillage_core::id::{ClientSessionId, RunId, StepIndex};
use sillage_core::planted::{Bug, planted};
use sillage_core::ports::Clock;
use sillage_core::ports::runtime::{AgentRuntime, RuntimeError, SessionEvent, SessionEventKind, Usage};
use sillage_core::ports::store::Store;
use sillage_core::run::{AnsweredBy, Input};
use sillage_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::driver::Message;
use crate::effects::Files;
use crate::feed::Feed;

/// Bytes of chatter gathered before they are stored.
const CHUNK: usize = 16 << 10;

/// Shortest time between two usage totals of one session in the log.
const USAGE_EVERY: Duration = Duration::from_secs(1);

/// Listens to one session.
pub(crate) struct Pump {
    pub(crate) run: RunId,
    pub(crate) step: StepIndex,
    pub(crate) session: ClientSessionId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) runtime: Arc<dyn AgentRuntime>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) feed: Feed,
    pub(crate) files: Arc<Files>,
    pub(crate) sender: mpsc::UnboundedSender<Message>,
}

/// What is told at most once a while, or once a message.
#[derive(Default)]
struct Pending {
    usage: Option<Usage>,
    told: Option<Timestamp>,
    /// Whether it was told of the message being answered that its model uses tools.
    tool_told: bool,
}

impl Pump {
    /// Listens to the events after the one numbered `after`; those up to `heard` were shown before, and it follows.
    ///
    /// A stream that was cut is asked for once more, at once. Where that fails, or tells nothing, it is told that the
    /// session is out of reach: when to look for it is not decided here. Ends early when `stop` says so.
    pub(crate) async fn run(self, mut after: u64, heard: &AtomicU64, mut stop: oneshot::Receiver<()>) {
        let mut pending = Pending::default();
        loop {
            // Whoever is to stop asks for nothing more.
            let asked = tokio::select! {
                biased;
                _ = &mut stop => return,
                asked = self.runtime.events(self.session, after) => asked,
            };
            let events = match asked {
                Ok(events) => events,
                Err(error) => return self.out_of_reach(error),
            };
            let before = after;
            let mut events = events.take_until(&mut stop);
            let over = self.hear(&mut events, &mut after, heard, &mut pending).await;
            drop(events);
            // Nothing is ever sent: it is closed once it is to stop.
            if over || stop.try_recv() == Err(oneshot::error::TryRecvError::Closed) {
                return;
            }
            if after == before {
                let words = "the session's events ended before it did".to_owned();
                return self.out_of_reach(RuntimeError::Lost { words });
            }
        }
    }

    /// Hears a stream to its end; whether that was the session's.
    async fn hear(
        &self,
        events: &mut (impl Stream<Item = SessionEvent> + Unpin),
        last: &mut u64,
        heard: &AtomicU64,
        pending: &mut Pending,
    ) -> bool {
        let mut chunk = Vec::new();
        let mut over = false;
        while let Some(event) = events.next().await {
            *last = event.number;
            let new = event.number > heard.fetch_max(event.number, Ordering::Relaxed);
            let now = self.clock.now();
            self.feed.heard(self.step, now);
            over = event.kind == SessionEventKind::Ended;
            self.take(&event, now, pending);
            if !new {
                continue;
            }
            gather(&mut chunk, &event);
            let settled = matches!(
                event.kind,
                SessionEventKind::Answer { .. }
                    | SessionEventKind::Error { .. }
                    | SessionEventKind::Permission { .. }
            );
            if chunk.len() >= CHUNK || over || settled {
                self.keep(&mut chunk).await;
            }
            self.feed.chatter(self.step, self.session, event);
        }
        self.keep(&mut chunk).await;
        self.tell_usage(pending, None);
        over
    }

    fn out_of_reach(&self, error: RuntimeError) {
        if planted(Bug::CutUnnoticed) {
            return;
        }
        self.tell(Input::OutOfReach {
            session: self.session,
            error,
        });
    }

    fn take(&self, event: &SessionEvent, now: Timestamp, pending: &mut Pending) {
        let session = self.session;
        if let SessionEventKind::Usage { usage } = &event.kind {
            pending.usage = Some(pending.usage.unwrap_or_default().updated_by(*usage));
            self.tell_usage(pending, Some(now));
        }
        if let SessionEventKind::Tool { locations, .. } = &event.kind {
            self.files.named.add(self.step, locations);
            if !std::mem::replace(&mut pending.tool_told, true) {
                self.tell(Input::ToolUsed { session });
            }
        }
        if matches!(
            event.kind,
            SessionEventKind::Answer { .. } | SessionEventKind::Error { .. }
        ) {
            pending.tool_told = false;
        }
        let news = match &event.kind {
            SessionEventKind::Answer { message, answer } => Input::Answered {
                session,
                message: *message,
                answer: answer.clone(),
            },
            SessionEventKind::Permission { request } => Input::PermissionAsked {
                session,
                request: Arc::new(request.clone()),
            },
            SessionEventKind::PermissionRefused { request, rule } => Input::PermissionRefused {
                session,
                request: Arc::new(request.clone()),
                rule: rule.clone(),
            },
            SessionEventKind::PermissionAnswered { id, option, by } => Input::PermissionSettled {
                session,
                permission: id.clone(),
                option: option.clone(),
                by: match by.as_str() {
                    "person" => AnsweredBy::Person,
                    "policy" => AnsweredBy::Policy,
                    _ => AnsweredBy::Cancel,
                },
            },
            SessionEventKind::Error { message, error } => Input::Failed {
                session,
                message: *message,
                error: error.clone(),
            },
            SessionEventKind::Ended => {
                let words = "the session ended".to_owned();
                Input::Failed {
                    session,
                    message: None,
                    error: RuntimeError::Lost { words },
                }
            }
            SessionEventKind::Text { .. }
            | SessionEventKind::Thought { .. }
            | SessionEventKind::Tool { .. }
            | SessionEventKind::Plan { .. }
            | SessionEventKind::Usage { .. }
            | SessionEventKind::Note { .. }
            | _ => return,
        };
        self.tell_usage(pending, None);
        self.tell(news);
    }

    /// Tells the totals, at most once a while unless something is about to end (`now` is none).
    fn tell_usage(&self, pending: &mut Pending, now: Option<Timestamp>) {
        let too_soon = now
            .zip(pending.told)
            .is_some_and(|(now, told)| now.since(told) < USAGE_EVERY);
        if too_soon {
            return;
        }
        if let Some(usage) = pending.usage.take() {
            pending.told = now.or(pending.told);
            self.tell(Input::UsageCounted {
                session: self.session,
                usage,
            });
        }
    }

    fn tell(&self, input: Input) {
        // The driver is gone: nobody is left to tell.
        let _ = self.sender.send(Message::Input(input));
    }

    async fn keep(&self, chunk: &mut Vec<u8>) {
        if chunk.is_empty() {
            return;
        }
        let chunk = std::mem::take(chunk);
        if let Err(error) = self.store.add_transcript(&self.run, self.session, chunk).await {
            // Chatter decides nothing: a run does not stop for it.
            tracing::warn!(run = %self.run, session = %self.session, %error, "transcript not kept");
        }
    }
}

/// Adds an event to the chunk as one JSON line. What the log holds in full is not said twice.
fn gather(chunk: &mut Vec<u8>, event: &SessionEvent) {
    if matches!(
        event.kind,
        SessionEventKind::Answer { .. } | SessionEventKind::Ended
    ) {
        return;
    }
    let start = chunk.len();
    if serde_json::to_writer(&mut *chunk, event).is_err() {
        chunk.truncate(start);
        return;
    }
    chunk.push(b'\n');
}
