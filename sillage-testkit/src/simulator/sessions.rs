//! The world's own table of sessions: what really happened in each.

use sillage_core::id::ClientMessageId;
use sillage_core::ports::runtime::{SessionEvent, SessionEventKind, SessionRequest};
use sillage_core::report::Outcome;
use tokio::sync::mpsc;

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It lives, and the present engine is attached to it.
    Attached,
    /// It lives, and no engine is attached to it.
    Apart,
    /// Its process is gone; its history may be there.
    Ended,
    /// Nothing of it is left.
    Lost,
}

/// What a session answered to a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) text: String,
    /// The report in it, if it can be read: summary and outcome.
    pub(crate) report: Option<(String, Outcome)>,
    /// Whether files are missing that it has to leave if it is `complete`.
    pub(crate) files_missing: bool,
    /// The plan in it, if it is a right one: its sub-agents, each with those that it waits for.
    pub(crate) plan: Option<Vec<(String, Vec<String>)>>,
}

/// A message that a session received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) id: ClientMessageId,
    pub(crate) text: String,
    pub(crate) given: Option<Given>,
    /// What was told of it when the session was found again.
    pub(crate) replayed: Option<String>,
}

/// A session as the world knows it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) request: SessionRequest,
    pub(crate) standing: Standing,
    pub(crate) received: Vec<Received>,
    pub(crate) in_hand: Option<ClientMessageId>,
    /// A permission request that waits for its answer.
    pub(crate) asks: Option<String>,
    /// Names what it is at: work that was begun before is over.
    pub(crate) work: u64,
    /// Wrong reports that are still to come.
    pub(crate) wrong: u64,
    /// Plans against the rules that are still to come.
    pub(crate) wrong_plans: u64,
    /// Times that an engine was told that it is found.
    pub(crate) found: u32,
    /// Times that it was brought back by another process.
    pub(crate) revivals: u32,
    /// Times that it was closed.
    pub(crate) closings: u32,
    events: Vec<SessionEvent>,
    listeners: Vec<mpsc::UnboundedSender<SessionEvent>>,
}

impl Session {
    pub(crate) fn new(request: SessionRequest) -> Session {
        Session {
            request,
            standing: Standing::Attached,
            received: Vec::new(),
            in_hand: None,
            asks: None,
            work: 0,
            wrong: 0,
            wrong_plans: 0,
            found: 0,
            revivals: 0,
            closings: 0,
            events: Vec::new(),
            listeners: Vec::new(),
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.standing, Standing::Attached | Standing::Apart)
    }

    pub(crate) fn message(&self, id: ClientMessageId) -> Option<&Received> {
        self.received.iter().find(|received| received.id == id)
    }

    pub(crate) fn message_mut(&mut self, id: ClientMessageId) -> Option<&mut Received> {
        self.received.iter_mut().find(|received| received.id == id)
    }

    /// The engine that held it is gone.
    pub(crate) fn engine_died(&mut self, survives: bool) {
        self.listeners.clear();
        if self.standing == Standing::Attached {
            if survives {
                self.standing = Standing::Apart;
            } else {
                self.end(Standing::Ended);
            }
        }
    }

    /// It ends with whatever it was at.
    pub(crate) fn end(&mut self, standing: Standing) {
        if self.is_alive() {
            self.say(SessionEventKind::Ended);
            self.listeners.clear();
        }
        self.standing = standing;
        self.in_hand = None;
        self.asks = None;
        self.work += 1;
    }

    /// It is brought back: its events begin anew.
    pub(crate) fn revive(&mut self) {
        self.standing = Standing::Attached;
        self.revivals += 1;
        self.events.clear();
        self.work += 1;
    }

    /// Whether the answer to a message is among its events.
    pub(crate) fn told_answer(&self, id: ClientMessageId) -> bool {
        let mut kinds = self.events.iter().map(|event| &event.kind);
        kinds.any(|kind| matches!(kind, SessionEventKind::Answer { message, .. } if *message == id))
    }

    /// Whoever listens hears nothing any more, and not that it goes on.
    pub(crate) fn cut(&mut self) {
        self.listeners.clear();
    }

    /// Says something to whoever listens; what was said, to be said again.
    pub(crate) fn say(&mut self, kind: SessionEventKind) -> SessionEvent {
        let event = SessionEvent {
            number: self.events.len() as u64 + 1,
            kind,
        };
        self.events.push(event.clone());
        self.say_again(&event);
        event
    }

    /// Says something that was said before.
    pub(crate) fn say_again(&mut self, event: &SessionEvent) {
        self.listeners
            .retain(|listener| listener.send(event.clone()).is_ok());
    }

    pub(crate) fn listen(&mut self, after: u64) -> mpsc::UnboundedReceiver<SessionEvent> {
        let (sender, receiver) = mpsc::unbounded_channel();
        for event in self.events.iter().filter(|event| event.number > after) {
            // The receiver is in our hands.
            let _ = sender.send(event.clone());
        }
        self.listeners.push(sender);
        receiver
    }
}
