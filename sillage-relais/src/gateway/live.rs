//! What the gateway holds of a session in memory: whether its runtime has it, its newest events, and who reads them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sillage_core::ports::runtime::RuntimeError;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::wire::Event;

/// The newest events that are kept in memory, for those who read as they come.
const EVENTS_KEPT: usize = 256;

/// The most bytes of text in them, roughly.
const BYTES_KEPT: usize = 256 << 10;

/// Whether the runtime has the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attachment {
    /// It was not looked for since the gateway was started.
    Unknown,
    /// It is being opened or looked for.
    Pending,
    /// It is there.
    Attached,
    /// It could not be opened, or not be looked for this time.
    Failed(RuntimeError),
    /// It is over.
    Over,
}

/// A session in memory.
pub(super) struct Live {
    pub(super) attachment: watch::Sender<Attachment>,
    /// The number of the last event that is durable.
    pub(super) published: watch::Sender<u64>,
    /// One message at a time is passed on, so that a replay learns what became of the first.
    pub(super) gate: tokio::sync::Mutex<()>,
    recent: Mutex<Recent>,
    users: AtomicUsize,
    pump: Mutex<Option<AbortHandle>>,
}

#[derive(Default)]
struct Recent {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
}

/// A use of a session that goes on until this is dropped (L8).
pub(super) struct InUse(Arc<Live>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Live {
    pub(super) fn new(attachment: Attachment, published: u64) -> Arc<Live> {
        Arc::new(Live {
            attachment: watch::Sender::new(attachment),
            published: watch::Sender::new(published),
            gate: tokio::sync::Mutex::default(),
            recent: Mutex::default(),
            users: AtomicUsize::new(0),
            pump: Mutex::default(),
        })
    }

    pub(super) fn use_it(self: &Arc<Self>) -> InUse {
        self.users.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
    }

    pub(super) fn used(&self) -> bool {
        self.users.load(Ordering::Relaxed) > 0
    }

    /// Keeps an event that was just written; readers see it once it is published.
    pub(super) fn remember(&self, event: &Arc<Event>) {
        let mut recent = self.recent();
        recent.bytes += size(event);
        recent.events.push_back(Arc::clone(event));
        while recent.events.len() > EVENTS_KEPT || (recent.bytes > BYTES_KEPT && recent.events.len() > 1) {
            if let Some(oldest) = recent.events.pop_front() {
                recent.bytes -= size(&oldest);
            }
        }
    }

    /// The events after number `after` up to `last`, where all of them are still in memory.
    pub(super) fn recent_after(&self, after: u64, last: u64) -> Option<Vec<Arc<Event>>> {
        let recent = self.recent();
        let first = recent.events.front()?.number;
        let skipped = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        let wanted = recent.events.iter().skip(skipped);
        Some(wanted.take_while(|event| event.number <= last).cloned().collect())
    }

    /// The task that listens to the runtime; the one before is over.
    pub(super) fn pumped_by(&self, pump: AbortHandle) {
        *self.pump.lock().unwrap_or_else(PoisonError::into_inner) = Some(pump);
    }

    /// Whether somebody still listens to the runtime.
    pub(super) fn is_pumped(&self) -> bool {
        let pump = self.pump.lock().unwrap_or_else(PoisonError::into_inner);
        pump.as_ref().is_some_and(|pump| !pump.is_finished())
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// About how much memory an event takes, by what may be large of it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others are small")]
fn size(event: &Event) -> usize {
    use crate::wire::EventBody;
    let words = match &event.body {
        EventBody::Text { text } | EventBody::Thought { text } | EventBody::Note { text } => text.len(),
        EventBody::Answer { text, .. } => text.len(),
        EventBody::Error { words, .. } => words.len(),
        EventBody::Tool { title, locations, .. } => {
            title.len() + locations.iter().map(String::len).sum::<usize>()
        }
        EventBody::Plan { entries } => entries.iter().map(String::len).sum(),
        _ => 0,
    };
    128 + words
}
