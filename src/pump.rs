//! Listening to one session: what decides goes to the driver, chatter to the feed and the transcript.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use sillage_core::id::{ClientSessionId, RunId, StepIndex};
use sillage_core::ports::Clock;
use sillage_core::ports::runtime::{AgentRuntime, RuntimeError, SessionEvent, SessionEventKind, Usage};
use sillage_core::ports::store::Store;
use sillage_core::run::{AnsweredBy, Input};
use sillage_core::time::Timestamp;
use tokio::sync::mpsc;

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
    /// Listens to the events after the one numbered `after`; `heard` follows.
    pub(crate) async fn run(self, after: u64, heard: &AtomicU64) {
        let mut events = match self.runtime.events(self.session, after).await {
            Ok(events) => events,
            Err(error) => {
                return self.tell(Input::Failed {
                    session: self.session,
                    message: None,
                    error,
                });
            }
        };
        let mut chunk = Vec::new();
        let mut pending = Pending::default();
        let mut over = false;
        while let Some(event) = events.next().await {
            heard.store(event.number, Ordering::Relaxed);
            let now = self.clock.now();
            self.feed.heard(self.step, now);
            over = event.kind == SessionEventKind::Ended;
            self.take(&event, now, &mut pending);
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
        self.tell_usage(&mut pending, None);
        if !over {
            let words = "the session's events ended before it did".to_owned();
            self.tell(Input::Failed {
                session: self.session,
                message: None,
                error: RuntimeError::Lost { words },
            });
        }
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
