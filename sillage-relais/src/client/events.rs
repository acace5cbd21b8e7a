//! A session's events, taken up again where a connection was cut.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use sillage_core::ports::runtime::{RuntimeError, SessionEvent, SessionEventKind};

use super::frames::{Frame, Frames};
use super::http::{Http, Response};
use crate::translate::event_from_wire;
use crate::wire::Event;

/// The shortest and the longest wait before a stream is taken up again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How often in a row a stream may begin and tell nothing new before it is given up.
const VAIN_TRIES: u32 = 20;

struct Stream {
    http: Arc<Http>,
    session: String,
    silence: Duration,
    /// The number of the last event that was told.
    last: u64,
    connection: Option<(Response, Frames)>,
    ready: VecDeque<SessionEvent>,
    pause: Duration,
    vain: u32,
    over: bool,
}

/// The events after a number.
pub(super) async fn events(
    http: Arc<Http>,
    session: String,
    after: u64,
    silence: Duration,
) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
    let first = http.stream(&session, after, silence).await?;
    let stream = Stream {
        http,
        session,
        silence,
        last: after,
        over: first.is_none(),
        connection: first.map(|first| (first, Frames::default())),
        ready: VecDeque::new(),
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
                Some((answer, frames)) => match tokio::time::timeout(self.silence, answer.chunk()).await {
                    Ok(Ok(Some(bytes))) => match frames.take(&bytes) {
                        Ok(whole) => self.take(whole),
                        // It would be no other the next time.
                        Err(error) => self.give_up(&error.to_string()),
                    },
                    // Cut, ended by a gateway that ends, or silent though a sign of life was due.
                    Ok(Ok(None) | Err(_)) | Err(_) => self.connection = None,
                },
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
        }
    }

    async fn take_up_again(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        match self.http.stream(&self.session, self.last, self.silence).await {
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
                if let RuntimeError::Lost { words } | RuntimeError::Permanent { words } = &error {
                    // The gateway does not know the session any more, or will never tell of it.
                    return self.give_up(words);
                }
                // The session may live: it is neither lost nor told of until the gateway answers.
                tracing::debug!(session = self.session, %error, "its events cannot be read now");
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

    /// The gateway says that the session is over, and had said so before.
    fn end(&mut self) {
        self.over = true;
    }
}
