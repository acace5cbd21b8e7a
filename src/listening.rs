//! Who listens to which session, and from which of its events on.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use tokio::sync::oneshot;
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
    /// Dropped, it has the task keep what it gathered and end.
    stop: oneshot::Sender<()>,
    /// The number of the last event that was ever heard.
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
    /// Listens to the pump's session, which was opened or found: from its start, or from where its message was first sent
    /// where this engine had listened before. What was said since is heard again, for an answer may have come while none
    /// was waited for; what was shown is not shown again.
    pub(crate) fn begin(&mut self, pump: Pump) {
        let sent = self.sessions.get(&pump.session).and_then(|ear| ear.sent);
        let after = sent.map_or(0, |sent| sent.after);
        self.listen(pump, after, sent);
    }

    /// The session's events are numbered anew: what was heard of it was another's.
    pub(crate) fn restarted(&mut self, session: ClientSessionId) {
        self.end(session);
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
        let (stop, stopped) = oneshot::channel();
        let (heard, before) = match self.sessions.remove(&session) {
            Some(Ear {
                task, stop, heard, ..
            }) => {
                drop(stop);
                (heard, Some(task))
            }
            None => (Arc::default(), None),
        };
        let hears = Arc::clone(&heard);
        let listening = async move {
            if let Some(before) = before {
                // What was heard is shown by who heard it.
                let _ = before.await;
            }
            if let Err(panic) = AssertUnwindSafe(pump.run(after, &hears, stopped))
                .catch_unwind()
                .await
            {
                let what = format!("listening to session {session}");
                let _ = sender.send(Message::Panicked(what, words(panic)));
            }
        };
        let task = tokio::spawn(listening);
        self.sessions.insert(
            session,
            Ear {
                task,
                stop,
                heard,
                sent,
            },
        );
    }
}
