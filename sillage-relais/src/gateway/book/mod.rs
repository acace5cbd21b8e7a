//! The book of sessions: a pure machine that is told what happened and when, and says what to answer and what to keep.
//!
//! Nothing here waits, reads a clock or touches a disk. Each input changes the book and gives back the [`Change`]s that
//! make it so on disk; whoever holds the book makes them durable before anybody is answered.

mod entry;
mod view;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use entry::Entry;
pub(crate) use entry::{Head, KeptMessage};
use serde::{Deserialize, Serialize};
use sillage_core::id::ClientMessageId;
use sillage_core::ports::runtime::{
    FoundSession, MessageFate, MessageRequest, OpenedSession, SessionEvent, SessionEventKind, StopReason,
};
use sillage_core::time::Timestamp;
use uuid::Uuid;

use crate::wire::{self, CreateSession, SendMessage, SessionState};

/// How long an identifier is remembered after its session ended (L3).
pub(crate) const MEMORY: Duration = Duration::from_secs(7 * 24 * 3600);

/// What is to be kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// A session was asked for with this.
    Request(Uuid, Arc<CreateSession>),
    /// A session stands so from now on.
    Head(Uuid, Box<Head>),
    /// A session took a message.
    Message(Uuid, Uuid, KeptMessage),
    /// A session did not take it after all.
    NoMessage(Uuid, Uuid),
    /// A session's next event.
    Event(Uuid, Arc<wire::Event>),
    /// An identifier was deleted before it was ever asked for.
    Deleted(Uuid, Timestamp),
    /// Nothing is kept of an identifier.
    Forgotten(Uuid),
}

/// What is kept of one session, as it is read back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kept {
    pub(crate) request: CreateSession,
    pub(crate) head: Head,
    pub(crate) messages: Vec<(Uuid, KeptMessage)>,
}

/// What is kept of an identifier that was deleted before it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tomb {
    pub(crate) at: Timestamp,
}

/// What follows from asking for a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Creation {
    /// It is new: its agent is to be started.
    Begin(Vec<Change>),
    /// It is there already, or was.
    Known,
}

/// What follows from a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Taking {
    /// It is new: it is to be passed on.
    Pass(Vec<Change>),
    /// It was taken before.
    Known,
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// There is no such session.
    #[error("there is no session {0}: ask for it by POST /api/sessions")]
    Unknown(Uuid),
    /// The identifier came before with another request.
    #[error("{what} {id} came before with another {}: choose a new identifier for a new request", fields.join(", "))]
    Conflict {
        /// `session` or `message`.
        what: &'static str,
        /// The identifier.
        id: Uuid,
        /// What differs.
        fields: Vec<String>,
    },
    /// Another message is being answered.
    #[error("message {0} is being answered: wait for its answer, or cancel it")]
    Busy(Uuid),
    /// The session is over.
    #[error("session {id} is over: {because}")]
    Over {
        /// The session.
        id: Uuid,
        /// Why.
        because: String,
    },
    /// Its agent is being started.
    #[error("session {0} is being started: wait for the answer to its creation")]
    Starting(Uuid),
    /// It was deleted before it was asked for.
    #[error("session {0} was deleted before it was asked for: choose a new identifier")]
    Deleted(Uuid),
    /// There is no place.
    #[error("{0} sessions are held, and no more can be: close one, or wait")]
    Full(usize),
}

/// What is to be done with the message in hand after its session was found again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: its answer is on its way, or there is none.
    Listen,
    /// It never arrived: it is to be passed on.
    PassOn(MessageRequest),
}

/// The book.
#[derive(Debug)]
pub(crate) struct Book {
    sessions: HashMap<Uuid, Entry>,
    tombs: HashMap<Uuid, Timestamp>,
    /// The most sessions that are not over.
    most: usize,
}

impl Book {
    /// An empty book for at most so many living sessions.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            sessions: HashMap::new(),
            tombs: HashMap::new(),
            most,
        }
    }

    /// Takes in what an earlier gateway kept. What lives counts as used now.
    pub(crate) fn restore(&mut self, kept: Kept, now: Timestamp) {
        let id = kept.request.client_session_id;
        self.sessions.insert(id, Entry::restored(kept, now));
    }

    /// Takes in an identifier that was deleted before it was asked for.
    pub(crate) fn restore_tomb(&mut self, id: Uuid, tomb: Tomb) {
        self.tombs.insert(id, tomb.at);
    }

    /// The sessions that are not over, in no order.
    pub(crate) fn living(&self) -> Vec<Uuid> {
        let living = self
            .sessions
            .iter()
            .filter(|(_, entry)| !entry.head.state.is_over());
        living.map(|(id, _)| *id).collect()
    }

    /// L3: asks for a session.
    pub(crate) fn create(&mut self, request: &CreateSession, now: Timestamp) -> Result<Creation, Refusal> {
        let id = request.client_session_id;
        if let Some(entry) = self.sessions.get_mut(&id) {
            let fields = entry.request.differences(request);
            if !fields.is_empty() {
                let what = "session";
                return Err(Refusal::Conflict { what, id, fields });
            }
            entry.touch(now);
            return Ok(Creation::Known);
        }
        if self.tombs.contains_key(&id) {
            return Err(Refusal::Deleted(id));
        }
        if self.living().len() >= self.most {
            return Err(Refusal::Full(self.most));
        }
        let entry = Entry::new(request.clone(), now);
        let mut changes = vec![Change::Request(id, Arc::clone(&entry.request))];
        changes.push(entry.kept_head());
        self.sessions.insert(id, entry);
        Ok(Creation::Begin(changes))
    }

    /// A session's agent has started, now or before.
    pub(crate) fn opened(&mut self, id: Uuid, opened: OpenedSession, now: Timestamp) -> Vec<Change> {
        self.change(id, |entry, changes| entry.opened(opened, now, changes))
    }

    /// A session did not open: its identifier may be used again.
    pub(crate) fn not_opened(&mut self, id: Uuid) -> Vec<Change> {
        match self.sessions.get(&id) {
            Some(entry) if entry.head.state == SessionState::Starting => {
                self.sessions.remove(&id);
                vec![Change::Forgotten(id)]
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// L5: a message to a session.
    pub(crate) fn message(
        &mut self,
        id: Uuid,
        message: &SendMessage,
        now: Timestamp,
    ) -> Result<Taking, Refusal> {
        let entry = self.sessions.get_mut(&id).ok_or(Refusal::Unknown(id))?;
        entry.touch(now);
        if entry.knows(message)? {
            return Ok(Taking::Known);
        }
        entry.alive()?;
        if let Some(current) = entry.head.current {
            return Err(Refusal::Busy(current));
        }
        let mut changes = Vec::new();
        entry.take(message, now, &mut changes);
        changes.push(entry.kept_head());
        Ok(Taking::Pass(changes))
    }

    /// The runtime did not take a message: its identifier may be used again.
    pub(crate) fn not_taken(&mut self, id: Uuid, message: Uuid, now: Timestamp) -> Vec<Change> {
        self.change(id, |entry, changes| entry.not_taken(message, now, changes))
    }

    /// The runtime told of an event.
    pub(crate) fn event(&mut self, id: Uuid, event: &SessionEvent, now: Timestamp) -> Vec<Change> {
        self.change(id, |entry, changes| entry.event(event, now, changes))
    }

    /// Something happened in a session that no runtime numbers.
    pub(crate) fn told(&mut self, id: Uuid, kind: &SessionEventKind, now: Timestamp) -> Vec<Change> {
        self.change(id, |entry, changes| entry.kind(kind, now, changes))
    }

    /// A session was found again after the gateway was started again.
    pub(crate) fn found(&mut self, id: Uuid, found: FoundSession, now: Timestamp) -> (Vec<Change>, Found) {
        let mut next = Found::Listen;
        let changes = self.change(id, |entry, changes| {
            next = entry.found(found, now, changes);
        });
        (changes, next)
    }

    /// A session is over: `state` is [`SessionState::Ended`] or [`SessionState::Lost`].
    pub(crate) fn over(
        &mut self,
        id: Uuid,
        state: SessionState,
        because: &str,
        now: Timestamp,
    ) -> Vec<Change> {
        self.change(id, |entry, changes| entry.over(state, because, now, changes))
    }

    /// Somebody asked to close a session: how it will then be said to have ended. Keeps an identifier that nobody knows
    /// from being opened by a request that is still on its way.
    pub(crate) fn closing(&mut self, id: Uuid, because: &str, now: Timestamp) -> (Vec<Change>, Closing) {
        let Some(entry) = self.sessions.get_mut(&id) else {
            let new = self.tombs.insert(id, now).is_none();
            let changes = if new {
                vec![Change::Deleted(id, now)]
            } else {
                Vec::new()
            };
            return (changes, Closing::Nothing);
        };
        if entry.head.state.is_over() {
            return (Vec::new(), Closing::Nothing);
        }
        entry.closing = Some(because.to_owned());
        (Vec::new(), Closing::Close)
    }

    /// A session could not be closed after all.
    pub(crate) fn not_closed(&mut self, id: Uuid) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            entry.closing = None;
        }
    }

    /// A session was used by a call that changes nothing else (L8).
    pub(crate) fn touch(&mut self, id: Uuid, now: Timestamp) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            entry.touch(now);
        }
    }

    /// What is due: sessions to close because nobody used them, and what is forgotten of those that are long over.
    /// `used` says whether a session is in use by a call that goes on.
    pub(crate) fn due(&mut self, now: Timestamp, used: impl Fn(Uuid) -> bool) -> (Vec<Uuid>, Vec<Change>) {
        let expired = self.sessions.iter().filter(|(id, entry)| {
            let expiry = entry.expiry(used(**id));
            expiry.is_some_and(|expiry| now >= expiry) && entry.closing.is_none()
        });
        let expired = expired.map(|(id, _)| *id).collect();
        let past = |ended: Timestamp| now.since(ended) >= MEMORY;
        let over = self
            .sessions
            .iter()
            .filter(|(_, entry)| entry.head.ended_at.is_some_and(past));
        let mut gone: Vec<Uuid> = over.map(|(id, _)| *id).collect();
        gone.extend(self.tombs.iter().filter(|(_, at)| past(**at)).map(|(id, _)| *id));
        for id in &gone {
            self.sessions.remove(id);
            self.tombs.remove(id);
        }
        (expired, gone.into_iter().map(Change::Forgotten).collect())
    }

    /// The request that a session was asked for with, and its head.
    pub(crate) fn looked_up(&self, id: Uuid) -> Option<(Arc<CreateSession>, Head)> {
        let entry = self.sessions.get(&id)?;
        Some((Arc::clone(&entry.request), entry.head.clone()))
    }

    /// The message that a session is answering, with its text.
    pub(crate) fn in_hand(&self, id: Uuid) -> Option<MessageRequest> {
        self.sessions.get(&id)?.in_hand.clone()
    }

    fn change(&mut self, id: Uuid, work: impl FnOnce(&mut Entry, &mut Vec<Change>)) -> Vec<Change> {
        let mut changes = Vec::new();
        if let Some(entry) = self.sessions.get_mut(&id)
            && !entry.head.state.is_over()
        {
            work(entry, &mut changes);
            changes.push(entry.kept_head());
        }
        changes
    }
}

/// What follows from a wish to close a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Nothing: it is over, or never was.
    Nothing,
    /// It is to be closed.
    Close,
}

/// The message as a runtime takes it.
pub(crate) fn for_runtime(message: &SendMessage) -> MessageRequest {
    MessageRequest {
        client_message_id: ClientMessageId(message.client_message_id),
        text: message.text(),
    }
}

/// How a message ended, where this event says so.
fn ends(kind: &SessionEventKind) -> Option<(Option<ClientMessageId>, wire::MessageState)> {
    if let SessionEventKind::Answer { message, .. } = kind {
        return Some((Some(*message), wire::MessageState::Answered));
    }
    if let SessionEventKind::Error { message, .. } = kind {
        return Some((*message, wire::MessageState::Failed));
    }
    None
}

/// What a gateway says in an answer's place when the agent does not repeat it.
fn fate_answer(fate: &MessageFate) -> Option<(&str, &'static str)> {
    match fate {
        MessageFate::Replayed(text) => Some((text, StopReason::REPLAYED)),
        MessageFate::Unknown => Some(("", StopReason::CUT)),
        MessageFate::None | MessageFate::NotReceived | MessageFate::InHand => None,
    }
}

#[cfg(test)]
mod tests;
