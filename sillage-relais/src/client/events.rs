//! A session's events, taken up again where a connection was cut.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use sillage_core::ports::runtime::{RuntimeError, SessionEvent, SessionEventKind};
use tokio::time::Instant;

use super::frames::{Frame, Frames};
use super::http::{Http, Response};
use crate::translate::event_from_wire;
use crate::wire::Event;

/// The shortest and the longest wait before a stream is taken up again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How often in a row a stream may begin and tell nothing new before it is given up.
const VAIN_TRIES: u32 = 20;

/// How long a stream is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Without a sign of life from it.
    pub(super) silence: Duration,
    /// Once it was cut.
    pub(super) patience: Duration,
}

struct Stream {
    http: Arc<Http>,
    session: String,
    bounds: Bounds,
    /// The number of the last event that was told.
    last: u64,
    connection: Option<(Response, Frames)>,
    ready: VecDeque<SessionEvent>,
    /// Since when it is cut.
    cut: Option<Instant>,
    pause: Duration,
    vain: u32,
    over: bool,
}

/// The events after a number.
pub(super) async fn events(
    http: Arc<Http>,
    session: String,
    after: u64,
    bounds: Bounds,
) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
    let first = http.stream(&session, after, bounds.silence).await?;
    let stream = Stream {
        http,
        session,
        bounds,
        last: after,
        over: first.is_none(),
        connection: first.map(|first| (first, Frames::default())),
        ready: VecDeque::new(),
        cut: None,
        pause: PAUSES.0,
        vain: 0,
    };
    Ok(Box::pin(futures_util::stream::unfold(
        stream,
        |mut stream| async move {
            let event = stream.next().await?;
            Some((event, stream))
        },
    )))
}

impl Stream {
    async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.last = event.number;
                self.over = event.kind == SessionEventKind::Ended;
                return Some(event);
            }
            if self.over {
                return None;
            }
            match &mut self.connection {
                Some((answer, frames)) => {
                    match tokio::time::timeout(self.bounds.silence, answer.chunk()).await {
                        Ok(Ok(Some(bytes))) => match frames.take(&bytes) {
                            Ok(whole) => self.take(whole),
                            // It would be no other the next time.
                            Err(error) => self.give_up(&error.to_string()),
                        },
                        // Cut, ended by a gateway that ends, or silent though a sign of life was due.
                        Ok(Ok(None) | Err(_)) | Err(_) => self.connection = None,
                    }
                }
                None => self.take_up_again().await,
            }
        }
    }

    /// Takes in what follows the last event: each number once, without a gap.
    fn take(&mut self, whole: Vec<Frame>) {
        let mut next = self.last + 1;
        for frame in whole {
            if frame.number > next {
                // Something is missing: it is asked for again.
                self.connection = None;
                break;
            }
            if frame.number < next {
                continue;
            }
            let kind = match serde_json::from_str::<Event>(&frame.data) {
                Ok(event) => event_from_wire(event.body),
                // A kind of a later version.
                Err(_) => SessionEventKind::Note { text: frame.data },
            };
            self.ready.push_back(SessionEvent {
                number: frame.number,
                kind,
            });
            next += 1;
        }
        if !self.ready.is_empty() {
            self.pause = PAUSES.0;
            self.vain = 0;
            self.cut = None;
        }
    }

    /// Asks for what follows, once; the stream ends when that is hopeless or was tried for long enough.
    async fn take_up_again(&mut self) {
        let since = *self.cut.get_or_insert_with(Instant::now);
        let left = self.bounds.patience.saturating_sub(since.elapsed());
        if left.is_zero() {
            return self.end();
        }
        tokio::time::sleep(self.pause.min(left)).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        match self
            .http
            .stream(&self.session, self.last, self.bounds.silence)
            .await
        {
            Ok(Some(answer)) => {
                self.vain += 1;
                if self.vain > VAIN_TRIES {
                    return self.give_up("the gateway begins to tell of the session, and never does");
                }
                self.connection = Some((answer, Frames::default()));
            }
            Ok(None) => self.end(),
            Err(wrong) => {
                let error = RuntimeError::from(wrong);
                tracing::debug!(session = self.session, %error, "its events cannot be read now");
                if let RuntimeError::Lost { .. } | RuntimeError::Permanent { .. } = &error {
                    // Who asks for them again is told the same; what went with a gateway did not fail by itself.
                    self.end();
                }
            }
        }
    }

    fn give_up(&mut self, words: &str) {
        let error = RuntimeError::Lost {
            words: words.to_owned(),
        };
        self.connection = None;
        self.ready.push_back(SessionEvent {
            number: self.last + 1,
            kind: SessionEventKind::Error { message: None, error },
        });
        self.ready.push_back(SessionEvent {
            number: self.last + 2,
            kind: SessionEventKind::Ended,
        });
    }

    /// Nothing more comes by this stream: the session is over and that was told before, or it is out of reach.
    fn end(&mut self) {
        self.over = true;
    }
}
