//! What goes on in a run, live: facts once they are durable, and agents' chatter.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sillage_core::id::{ClientSessionId, StepIndex};
use sillage_core::ports::runtime::SessionEvent;
use sillage_core::run::Recorded;
use sillage_core::time::Timestamp;
use tokio::sync::broadcast;

/// Items kept for a reader that is behind.
const KEPT: usize = 4096;

/// One thing that went on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FeedItem {
    /// A durable fact of the run.
    Fact(Arc<Recorded>),
    /// Something that an agent said or did; decides nothing.
    Chatter {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// What it was.
        event: Arc<SessionEvent>,
    },
    /// Nothing can be written: the disk is full. The run waits for room, and goes on by itself.
    DiskFull {
        /// The store's words.
        words: String,
        /// When its engine stops if there is no room by then.
        until: Timestamp,
    },
    /// There is room again, and all that had waited is written.
    DiskHasRoom,
    /// The reader was too slow and this many items are gone: facts are in the store.
    Missed(u64),
}

/// The live side of a run.
#[derive(Debug, Clone)]
pub struct Feed {
    sender: broadcast::Sender<FeedItem>,
    heard: Arc<Mutex<HashMap<StepIndex, Timestamp>>>,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::channel(KEPT).0,
            heard: Arc::default(),
        }
    }

    pub(crate) fn fact(&self, fact: Recorded) {
        // Nobody reads: nothing to tell.
        if self.sender.receiver_count() > 0 {
            let _ = self.sender.send(FeedItem::Fact(Arc::new(fact)));
        }
    }

    pub(crate) fn tell(&self, item: FeedItem) {
        if self.sender.receiver_count() > 0 {
            let _ = self.sender.send(item);
        }
    }

    pub(crate) fn chatter(&self, step: StepIndex, session: ClientSessionId, event: SessionEvent) {
        if self.sender.receiver_count() > 0 {
            let _ = self.sender.send(FeedItem::Chatter {
                step,
                session,
                event: Arc::new(event),
            });
        }
    }

    pub(crate) fn heard(&self, step: StepIndex, at: Timestamp) {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(step, at);
    }

    /// When the step's session last said or did anything, if this engine heard it.
    #[must_use]
    pub fn last_heard(&self, step: StepIndex) -> Option<Timestamp> {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&step)
            .copied()
    }

    /// When each step's session last said or did anything, as far as this engine heard it.
    #[must_use]
    pub fn all_heard(&self) -> Vec<(StepIndex, Timestamp)> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.iter().map(|(step, at)| (*step, *at)).collect()
    }

    /// Reads what goes on from now.
    #[must_use]
    pub fn subscribe(&self) -> FeedReader {
        FeedReader {
            receiver: self.sender.subscribe(),
        }
    }
}

/// Reads a [`Feed`].
#[derive(Debug)]
pub struct FeedReader {
    receiver: broadcast::Receiver<FeedItem>,
}

impl FeedReader {
    /// The next item; none once the run is over, every handle and feed of it was dropped, and everything was read.
    pub async fn next(&mut self) -> Option<FeedItem> {
        match self.receiver.recv().await {
            Ok(item) => Some(item),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(FeedItem::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
