//! One session of the book.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sillage_core::id::ClientMessageId;
use sillage_core::ports::runtime::{
    FoundSession, MessageFate, MessageRequest, OpenedSession, PermissionRequest, RuntimeError, SessionEvent,
    SessionEventKind, Usage,
};
use sillage_core::time::Timestamp;
use uuid::Uuid;

use super::{Change, Found, Kept, Refusal, ends, fate_answer, for_runtime};
use crate::translate;
use crate::wire::{
    ContentBlock, CreateSession, Event, EventBody, LastMessage, MessageState, SendMessage, SessionState,
};

/// How a session stands: all that is kept of it but its request, its messages and its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) state: SessionState,
    pub(crate) opened: Option<OpenedSession>,
    pub(crate) created: Timestamp,
    pub(crate) last_activity: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) because: Option<String>,
    /// The number of the last event; 0 where there is none.
    pub(crate) last_event: u64,
    /// The runtime's number of the last of its events that is among ours.
    pub(crate) upstream: u64,
    pub(crate) usage: Usage,
    /// The message that is being answered.
    pub(crate) current: Option<Uuid>,
    pub(crate) last_message: Option<LastMessage>,
    pub(crate) permissions: Vec<PermissionRequest>,
}

/// A message that was taken: what its replays are compared with, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptMessage {
    pub(crate) digest: [u8; 32],
    pub(crate) text: String,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) request: Arc<CreateSession>,
    pub(super) head: Head,
    messages: HashMap<Uuid, [u8; 32]>,
    /// The message being answered, with its text.
    pub(super) in_hand: Option<MessageRequest>,
    /// Why it is being closed, when it is.
    pub(super) closing: Option<String>,
    /// The last words with which the session as a whole was said to be lost.
    last_words: Option<String>,
}

impl Entry {
    pub(super) fn new(request: CreateSession, now: Timestamp) -> Self {
        Self {
            request: Arc::new(request),
            head: Head {
                state: SessionState::Starting,
                opened: None,
                created: now,
                last_activity: now,
                ended_at: None,
                because: None,
                last_event: 0,
                upstream: 0,
                usage: Usage::default(),
                current: None,
                last_message: None,
                permissions: Vec::new(),
            },
            messages: HashMap::new(),
            in_hand: None,
            closing: None,
            last_words: None,
        }
    }

    pub(super) fn restored(kept: Kept, now: Timestamp) -> Self {
        let mut entry = Entry::new(kept.request, now);
        entry.head = kept.head;
        if !entry.head.state.is_over() {
            entry.touch(now);
        }
        for (id, message) in kept.messages {
            if entry.head.current == Some(id) {
                entry.in_hand = Some(MessageRequest {
                    client_message_id: ClientMessageId(id),
                    text: message.text,
                });
            }
            entry.messages.insert(id, message.digest);
        }
        entry
    }

    pub(super) fn kept_head(&self) -> Change {
        Change::Head(self.request.client_session_id, Box::new(self.head.clone()))
    }

    pub(super) fn touch(&mut self, now: Timestamp) {
        self.head.last_activity = self.head.last_activity.max(now);
    }

    /// When the session is closed if nobody uses it; none while it is at work, in use, not yet open, or over.
    pub(super) fn expiry(&self, used: bool) -> Option<Timestamp> {
        match self.head.state {
            SessionState::Idle | SessionState::Waiting if !used => {
                let ttl = Duration::from_secs(self.request.ttl_seconds);
                Some(self.head.last_activity.plus(ttl))
            }
            SessionState::Idle
            | SessionState::Waiting
            | SessionState::Starting
            | SessionState::Working
            | SessionState::Ended
            | SessionState::Lost => None,
        }
    }

    /// Refuses what a session cannot do that is over or not yet open.
    pub(super) fn alive(&self) -> Result<(), Refusal> {
        let id = self.request.client_session_id;
        match self.head.state {
            SessionState::Starting => Err(Refusal::Starting(id)),
            SessionState::Ended | SessionState::Lost => {
                let because = self.head.because.clone().unwrap_or_default();
                Err(Refusal::Over { id, because })
            }
            SessionState::Idle | SessionState::Working | SessionState::Waiting => Ok(()),
        }
    }

    /// Whether the message was taken before. Another one under its identifier is refused.
    pub(super) fn knows(&self, message: &SendMessage) -> Result<bool, Refusal> {
        let id = message.client_message_id;
        match self.messages.get(&id) {
            None => Ok(false),
            Some(kept) if *kept == digest(message) => Ok(true),
            Some(_) => Err(Refusal::Conflict {
                what: "message",
                id,
                fields: vec!["content".to_owned()],
            }),
        }
    }

    pub(super) fn opened(&mut self, opened: OpenedSession, now: Timestamp, changes: &mut Vec<Change>) {
        self.head.opened = Some(opened);
        self.touch(now);
        if self.head.state == SessionState::Starting {
            self.state(SessionState::Idle, now, changes);
        }
    }

    pub(super) fn take(&mut self, message: &SendMessage, now: Timestamp, changes: &mut Vec<Change>) {
        let id = message.client_message_id;
        let passed = for_runtime(message);
        let kept = KeptMessage {
            digest: digest(message),
            text: passed.text.clone(),
        };
        self.messages.insert(id, kept.digest);
        self.in_hand = Some(passed);
        self.head.current = Some(id);
        self.head.last_message = Some(LastMessage {
            client_message_id: id,
            state: MessageState::InHand,
        });
        changes.push(Change::Message(self.request.client_session_id, id, kept));
        self.state(SessionState::Working, now, changes);
    }

    pub(super) fn not_taken(&mut self, message: Uuid, now: Timestamp, changes: &mut Vec<Change>) {
        if self.head.current != Some(message) {
            return; // it was answered after all
        }
        self.messages.remove(&message);
        self.head.last_message = None;
        changes.push(Change::NoMessage(self.request.client_session_id, message));
        self.at_rest(now, changes);
    }

    pub(super) fn event(&mut self, event: &SessionEvent, now: Timestamp, changes: &mut Vec<Change>) {
        if event.number <= self.head.upstream {
            return; // it is among ours already
        }
        self.head.upstream = event.number;
        self.kind(&event.kind, now, changes);
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "kinds that change nothing but the list of events, those of later versions too"
    )]
    pub(super) fn kind(&mut self, kind: &SessionEventKind, now: Timestamp, changes: &mut Vec<Change>) {
        if *kind == SessionEventKind::Ended {
            let state = if self.closing.is_some() {
                SessionState::Ended
            } else {
                SessionState::Lost
            };
            let because = self.closing.clone().or_else(|| self.last_words.clone());
            return self.over(
                state,
                &because.unwrap_or_else(|| "its agent ended".to_owned()),
                now,
                changes,
            );
        }
        self.push(translate::event_to_wire(kind), now, changes);
        match kind {
            SessionEventKind::Usage { usage } => self.head.usage = self.head.usage.updated_by(*usage),
            SessionEventKind::Answer { answer, .. } => {
                self.head.usage = self.head.usage.updated_by(answer.usage);
            }
            SessionEventKind::Permission { request } => {
                self.head.permissions.push(request.clone());
                self.state(SessionState::Waiting, now, changes);
            }
            SessionEventKind::PermissionAnswered { id, .. } => {
                let before = self.head.permissions.len();
                self.head.permissions.retain(|request| request.id != *id);
                if before > 0 && self.head.permissions.is_empty() && self.head.current.is_some() {
                    self.state(SessionState::Working, now, changes);
                }
            }
            SessionEventKind::Error {
                error: RuntimeError::Lost { words },
                ..
            } => self.last_words = Some(words.clone()),
            _ => {}
        }
        if let Some((message, end)) = ends(kind) {
            let message = message.map(|message| message.0);
            if self.head.current.is_some() && (message.is_none() || message == self.head.current) {
                self.told_end(end, now, changes);
            }
        }
    }

    fn told_end(&mut self, end: MessageState, now: Timestamp, changes: &mut Vec<Change>) {
        if let Some(last) = &mut self.head.last_message {
            last.state = end;
        }
        self.touch(now);
        self.at_rest(now, changes);
    }

    /// Nothing is being answered any more.
    fn at_rest(&mut self, now: Timestamp, changes: &mut Vec<Change>) {
        self.head.current = None;
        self.head.permissions.clear();
        self.in_hand = None;
        self.state(SessionState::Idle, now, changes);
    }

    pub(super) fn found(&mut self, found: FoundSession, now: Timestamp, changes: &mut Vec<Change>) -> Found {
        if found.restarted {
            self.head.upstream = 0;
            // The agent asks again for what it still wants.
            self.head.permissions.clear();
        }
        self.opened(found.opened, now, changes);
        let Some(current) = self.in_hand.clone() else {
            return Found::Listen;
        };
        if found.restarted && self.head.state == SessionState::Waiting {
            self.state(SessionState::Working, now, changes);
        }
        if found.in_flight == MessageFate::NotReceived {
            return Found::PassOn(current);
        }
        if let Some((text, stop_reason)) = fate_answer(&found.in_flight) {
            let answer = EventBody::Answer {
                client_message_id: current.client_message_id.0,
                text: text.to_owned(),
                stop_reason: stop_reason.to_owned(),
                usage: translate::usage_to_wire(&self.head.usage),
            };
            self.push(answer, now, changes);
            self.told_end(MessageState::Answered, now, changes);
        }
        Found::Listen
    }

    pub(super) fn over(
        &mut self,
        state: SessionState,
        because: &str,
        now: Timestamp,
        changes: &mut Vec<Change>,
    ) {
        if let Some(current) = self.head.current.take() {
            // Whoever waits for the answer is told, in words, that none comes.
            let error = EventBody::Error {
                client_message_id: Some(current),
                class: crate::wire::ErrorClass::Lost,
                words: because.to_owned(),
                retry_after: None,
                resets_at: None,
            };
            self.push(error, now, changes);
            if let Some(last) = &mut self.head.last_message {
                last.state = MessageState::Failed;
            }
        }
        self.head.permissions.clear();
        self.in_hand = None;
        self.head.ended_at = Some(now);
        self.head.because = Some(because.to_owned());
        self.state(state, now, changes);
    }

    fn state(&mut self, state: SessionState, now: Timestamp, changes: &mut Vec<Change>) {
        if self.head.state != state {
            self.head.state = state;
            self.push(EventBody::State { state }, now, changes);
        }
    }

    fn push(&mut self, body: EventBody, now: Timestamp, changes: &mut Vec<Change>) {
        self.head.last_event += 1;
        let event = Event {
            number: self.head.last_event,
            at: translate::instant(now),
            body,
        };
        changes.push(Change::Event(self.request.client_session_id, Arc::new(event)));
    }
}

/// What a message says, in 32 bytes: the same for the same content, whatever the order of its keys.
fn digest(message: &SendMessage) -> [u8; 32] {
    let mut hash = Sha256::new();
    for ContentBlock::Text { text } in &message.content {
        hash.update(text.len().to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}
