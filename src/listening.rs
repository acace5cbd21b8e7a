//! Who listens to which session, and from which of its events on.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use tokio::task::JoinHandle;

use crate::driver::{Message, words};
use crate::pump::Pump;

/// The sessions that are listened to.
#[derive(Default)]
pub(crate) struct Listening {
    sessions: HashMap<ClientSessionId, Ear>,
}

/// One session's.
struct Ear {
    task: JoinHandle<()>,
    /// The number of the last event that was heard.
    heard: Arc<AtomicU64>,
    sent: Option<Sent>,
}

/// The message that was sent last.
#[derive(Clone, Copy)]
struct Sent {
    message: ClientMessageId,
    /// What had been heard before it was sent first.
    after: u64,
    /// Whether its sending was told as failed.
    failed: bool,
}

impl Listening {
    /// Listens to the pump's session from its start.
    pub(crate) fn begin(&mut self, pump: Pump) {
        self.listen(pump, 0, None);
    }

    /// A message is about to be sent. Where that was tried before and told as failed, it may have arrived all the same and
    /// been answered while the step waited: its runtime takes the second try for the first and does not answer again, so
    /// what was said since is heard again, by this pump.
    pub(crate) fn sends(&mut self, message: ClientMessageId, pump: Pump) {
        let Some(ear) = self.sessions.get_mut(&pump.session) else {
            return;
        };
        let before = ear.sent.filter(|sent| sent.message == message);
        let sent = Sent {
            message,
            after: before.map_or_else(|| ear.heard.load(Ordering::Relaxed), |sent| sent.after),
            failed: false,
        };
        ear.sent = Some(sent);
        if before.is_some_and(|sent| sent.failed) {
            self.listen(pump, sent.after, Some(sent));
        }
    }

    /// A message was told as not sent.
    pub(crate) fn not_sent(&mut self, session: ClientSessionId, message: ClientMessageId) {
        let ear = self.sessions.get_mut(&session);
        if let Some(sent) = ear.and_then(|ear| ear.sent.as_mut())
            && sent.message == message
        {
            sent.failed = true;
        }
    }

    /// The session is over.
    pub(crate) fn end(&mut self, session: ClientSessionId) {
        if let Some(ear) = self.sessions.remove(&session) {
            ear.task.abort();
        }
    }

    /// Listens to nobody any more.
    pub(crate) fn end_all(&mut self) {
        for (_, ear) in self.sessions.drain() {
            ear.task.abort();
        }
    }

    fn listen(&mut self, pump: Pump, after: u64, sent: Option<Sent>) {
        let (session, sender) = (pump.session, pump.sender.clone());
        let heard = Arc::new(AtomicU64::new(after));
        let hears = Arc::clone(&heard);
        let listening = async move {
            if let Err(panic) = AssertUnwindSafe(pump.run(after, &hears)).catch_unwind().await {
                let what = format!("listening to session {session}");
                let _ = sender.send(Message::Panicked(what, words(panic)));
            }
        };
        let task = tokio::spawn(listening);
        if let Some(earlier) = self.sessions.insert(session, Ear { task, heard, sent }) {
            earlier.task.abort();
        }
    }
}
