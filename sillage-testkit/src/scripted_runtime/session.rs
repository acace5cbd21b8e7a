//! One scripted session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_core::stream::BoxStream;
use sillage_core::id::ClientMessageId;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, OpenedSession, PermissionPolicy, PermissionRequest, RuntimeError, SessionEvent,
    SessionEventKind, SessionRequest, StopReason, Usage,
};
use tokio::sync::Notify;

use super::{Reply, lock, play_later};

pub(super) struct Session {
    pub(super) request: SessionRequest,
    pub(super) opened: OpenedSession,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    /// The event at position `n` has number `n + 1`.
    events: Vec<SessionEventKind>,
    messages: HashMap<ClientMessageId, String>,
    current: Option<ClientMessageId>,
    permission: Option<OpenPermission>,
    usage: Usage,
    ended: bool,
}

struct OpenPermission {
    request: PermissionRequest,
    allowed: Reply,
    refused: Reply,
}

impl Session {
    pub(super) fn new(request: SessionRequest, agent: String) -> Self {
        let native = Some(format!("scripted-{}", request.client_session_id));
        Self {
            request,
            opened: OpenedSession {
                native,
                agent,
                pid: None,
            },
            state: Mutex::new(State::default()),
            news: Notify::new(),
        }
    }

    /// Refuses a request that differs from the one that opened the session, naming the fields, and any once it died.
    pub(super) fn same_request(&self, request: &SessionRequest) -> Result<(), RuntimeError> {
        let fields = self.request.differences(request);
        if fields.is_empty() {
            return lock(&self.state).alive();
        }
        let words = format!(
            "session {} came before with another {}",
            request.client_session_id,
            fields.join(", ")
        );
        Err(RuntimeError::Conflict { words, fields })
    }

    pub(super) fn knows(&self, message: ClientMessageId) -> bool {
        lock(&self.state).messages.contains_key(&message)
    }

    pub(super) fn current(&self) -> Option<ClientMessageId> {
        lock(&self.state).current
    }

    /// Takes a message in: its place among the session's, or none when it was accepted before.
    pub(super) fn accept(&self, message: &MessageRequest) -> Result<Option<usize>, RuntimeError> {
        let mut state = lock(&self.state);
        state.alive()?;
        let id = message.client_message_id;
        if let Some(text) = state.messages.get(&id) {
            if *text == message.text {
                return Ok(None);
            }
            let words = format!("message {id} came before with another text");
            return Err(RuntimeError::Conflict {
                words,
                fields: vec!["text".to_owned()],
            });
        }
        if let Some(other) = state.current {
            let words = format!("message {other} is being answered");
            return Err(RuntimeError::Conflict {
                words,
                fields: Vec::new(),
            });
        }
        let turn = state.messages.len();
        state.messages.insert(id, message.text.clone());
        state.current = Some(id);
        Ok(Some(turn))
    }

    /// Does what the script replied to the message being answered.
    pub(super) fn play(self: &Arc<Self>, message: ClientMessageId, reply: Reply) -> Result<(), RuntimeError> {
        let mut state = lock(&self.state);
        if state.current != Some(message) {
            return Ok(()); // cancelled or lost while the script thought
        }
        match reply {
            Reply::Answer { before, answer } => state.answer(message, before, answer),
            Reply::Fail(error) => state.fail(message, error),
            Reply::Refuse(error) => {
                state.messages.remove(&message);
                state.current = None;
                return Err(error);
            }
            Reply::Silent => {}
            Reply::Later(after, reply) => play_later(Arc::clone(self), message, after, *reply),
            Reply::Permission {
                request,
                allowed,
                refused,
            } => {
                let asked = OpenPermission {
                    request,
                    allowed: *allowed,
                    refused: *refused,
                };
                let Some(next) = state.ask(self.request.permissions, asked) else {
                    drop(state);
                    self.news.notify_waiters();
                    return Ok(());
                };
                drop(state);
                return self.play(message, next);
            }
            Reply::Die(words) => state.die(&words),
        }
        drop(state);
        self.news.notify_waiters();
        Ok(())
    }

    pub(super) fn answer_permission(self: &Arc<Self>, id: &str, option: &str) -> Result<(), RuntimeError> {
        let mut state = lock(&self.state);
        let Some(open) = state.permission.take_if(|open| open.request.id == id) else {
            return Err(RuntimeError::Permanent {
                words: format!("no permission request `{id}` is open"),
            });
        };
        let Some(taken) = open.request.options.iter().find(|offered| offered.id == option) else {
            let words = format!("permission request `{id}` has no option `{option}`");
            state.permission = Some(open);
            return Err(RuntimeError::Permanent { words });
        };
        let next = if taken.kind.starts_with("allow") {
            open.allowed
        } else {
            open.refused
        };
        state.note_permission(id, Some(option), "person");
        let current = state.current;
        drop(state);
        match current {
            Some(message) => self.play(message, next),
            None => Ok(()),
        }
    }

    pub(super) fn cancel(&self) {
        let mut state = lock(&self.state);
        let Some(message) = state.current else { return };
        if let Some(open) = state.permission.take() {
            state.note_permission(&open.request.id, None, "cancel");
        }
        let answer = Answer {
            text: String::new(),
            stop: StopReason::Cancelled,
            usage: Usage::default(),
        };
        state.answer(message, Vec::new(), answer);
        drop(state);
        self.news.notify_waiters();
    }

    pub(super) fn die(&self, words: &str) {
        lock(&self.state).die(words);
        self.news.notify_waiters();
    }

    pub(super) fn end(&self) {
        lock(&self.state).end();
        self.news.notify_waiters();
    }

    pub(super) fn events(self: &Arc<Self>, after: u64) -> BoxStream<'static, SessionEvent> {
        let start = (Arc::clone(self), usize::try_from(after).unwrap_or(usize::MAX));
        Box::pin(futures_util::stream::unfold(
            start,
            |(session, position)| async move {
                let kind = session.event_at(position).await?;
                Some((
                    SessionEvent {
                        number: position as u64 + 1,
                        kind,
                    },
                    (session, position + 1),
                ))
            },
        ))
    }

    /// The event at `position`, waited for; none when the session ends before it.
    async fn event_at(&self, position: usize) -> Option<SessionEventKind> {
        loop {
            // Made before the look, so that news between the look and the wait wakes it.
            let news = self.news.notified();
            {
                let state = lock(&self.state);
                if let Some(kind) = state.events.get(position) {
                    return Some(kind.clone());
                }
                if state.ended {
                    return None;
                }
            }
            news.await;
        }
    }
}

impl State {
    fn alive(&self) -> Result<(), RuntimeError> {
        if self.ended {
            Err(RuntimeError::Lost {
                words: "the session is over".to_owned(),
            })
        } else {
            Ok(())
        }
    }

    fn answer(&mut self, message: ClientMessageId, before: Vec<SessionEventKind>, mut answer: Answer) {
        for kind in before {
            if let SessionEventKind::Usage { usage } = &kind {
                self.usage = self.usage.updated_by(*usage);
            }
            self.events.push(kind);
        }
        self.usage = self.usage.updated_by(answer.usage);
        answer.usage = self.usage;
        self.events.push(SessionEventKind::Answer { message, answer });
        self.current = None;
    }

    fn fail(&mut self, message: ClientMessageId, error: RuntimeError) {
        self.events.push(SessionEventKind::Error {
            message: Some(message),
            error,
        });
        self.current = None;
    }

    /// Asks, or decides by the policy: the reply that follows when it is decided.
    fn ask(&mut self, policy: PermissionPolicy, asked: OpenPermission) -> Option<Reply> {
        let (allow, next) = match policy {
            PermissionPolicy::Ask => {
                self.events.push(SessionEventKind::Permission {
                    request: asked.request.clone(),
                });
                self.permission = Some(asked);
                return None;
            }
            PermissionPolicy::AllowInFolders => (true, asked.allowed),
            PermissionPolicy::Deny => (false, asked.refused),
        };
        let options = &asked.request.options;
        let option = options
            .iter()
            .find(|option| option.kind.starts_with("allow") == allow);
        self.note_permission(
            &asked.request.id,
            option.map(|option| option.id.as_str()),
            "policy",
        );
        Some(next)
    }

    fn note_permission(&mut self, id: &str, option: Option<&str>, by: &str) {
        self.events.push(SessionEventKind::PermissionAnswered {
            id: id.to_owned(),
            option: option.map(str::to_owned),
            by: by.to_owned(),
        });
    }

    fn die(&mut self, words: &str) {
        if !self.ended {
            let error = RuntimeError::Lost {
                words: words.to_owned(),
            };
            self.events.push(SessionEventKind::Error {
                message: self.current,
                error,
            });
            self.end();
        }
    }

    fn end(&mut self) {
        if !self.ended {
            self.current = None;
            self.permission = None;
            self.ended = true;
            self.events.push(SessionEventKind::Ended);
        }
    }
}
