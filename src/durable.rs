//! Making what follows from a turn durable, also where the disk is full for a while.
//!
//! A write that failed may have taken place. Nothing of the turn is shown or done until the log was read again: either
//! it holds the turn whole, or the turn is written once more. Sessions go on meanwhile; what they say is kept for the
//! next turn.

use std::time::Duration;

use sillage_core::id::{RunId, Seq};
use sillage_core::planted::{Bug, planted};
use sillage_core::ports::store::{RunSummary, Store, StoreError};
use sillage_core::run::{Command, Input, Recorded};

use crate::driver::{Driver, Message};
use crate::engine::{EngineError, PAGE, encode};
use crate::feed::FeedItem;

/// How a full disk is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskPatience {
    /// How long until writing is tried again.
    pub every: Duration,
    /// How long in all, before the engine stops.
    pub within: Duration,
}

impl DiskPatience {
    /// Not at all: the engine stops at once, and the run can be resumed.
    pub const NONE: DiskPatience = DiskPatience {
        every: Duration::ZERO,
        within: Duration::ZERO,
    };

    /// For a night: a look every two seconds, for twelve hours. A look costs next to nothing.
    pub const LONG: DiskPatience = DiskPatience {
        every: Duration::from_secs(2),
        within: Duration::from_secs(12 * 3600),
    };
}

impl Driver {
    /// Returns once the facts are durable.
    pub(crate) async fn append(&mut self, facts: &[Recorded]) -> Result<(), EngineError> {
        let (run, first) = (self.run.id().clone(), facts[0].seq);
        let mut waited: Option<Duration> = None;
        loop {
            let summary = self.run.summary();
            let tried = waited.is_some();
            let why = match write_or_find(&*self.engine.store, &summary, first, facts, tried).await {
                Ok(()) => break,
                Err(EngineError::Store(why @ StoreError::Full { .. })) => why,
                Err(EngineError::Store(_)) if planted(Bug::FailedWriteTaken) => break,
                Err(error) => return Err(error),
            };
            let patience = self.engine.disk_patience;
            let so_far = waited.unwrap_or_default();
            if so_far >= patience.within {
                return Err(why.into());
            }
            if waited.is_none() {
                tracing::warn!(%run, %why, "waiting for room on the disk");
                let now = self.engine.clock.now();
                self.feed.tell(FeedItem::DiskFull {
                    words: why.to_string(),
                    until: now.plus(patience.within),
                });
            }
            if !self.pause(patience.every).await {
                return Err(why.into());
            }
            waited = Some(so_far + patience.every.max(Duration::from_millis(1)));
        }
        if waited.is_some() {
            self.feed.tell(FeedItem::DiskHasRoom);
        }
        Ok(())
    }

    /// Waits a while, and keeps what comes meanwhile. Not to the end where a person wants the run to stop: nothing can
    /// be written of that, and a resume takes it up.
    async fn pause(&mut self, every: Duration) -> bool {
        let over = tokio::time::sleep(every);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return true,
                Some(message) = self.receiver.recv() => {
                    let stop = is_stop(&message);
                    self.held.push(message);
                    if stop {
                        return false;
                    }
                }
            }
        }
    }
}

/// Writes the facts, unless an earlier try to did so although it failed.
async fn write_or_find(
    store: &dyn Store,
    summary: &RunSummary,
    first: Seq,
    facts: &[Recorded],
    tried: bool,
) -> Result<(), EngineError> {
    let run = &summary.run;
    let bytes = facts
        .iter()
        .map(|fact| encode(run, fact))
        .collect::<Result<Vec<_>, _>>()?;
    if tried && !planted(Bug::WritesBlindly) && is_written(store, run, first, &bytes).await? {
        return Ok(());
    }
    Ok(store.append(run, first, bytes, summary).await?)
}

/// Whether the log holds these events from `first` on.
async fn is_written(
    store: &dyn Store,
    run: &RunId,
    first: Seq,
    bytes: &[Vec<u8>],
) -> Result<bool, EngineError> {
    let (mut rest, mut next) = (bytes, first);
    loop {
        let page = store.read(run, next, PAGE).await?;
        let Some((last, _)) = page.last() else {
            // A batch is written whole or not at all.
            return Ok(rest.is_empty());
        };
        next = last.next();
        for (seq, found) in page {
            match rest.split_first() {
                Some((expected, more)) if *expected == found => rest = more,
                Some(_) | None => return Err(foreign(run, seq)),
            }
        }
    }
}

fn is_stop(message: &Message) -> bool {
    matches!(
        message,
        Message::Input(Input::Command(Command::Stop))
            | Message::Command(Command::Stop, _)
            | Message::Panicked(..)
    )
}

/// Somebody else wrote there, which the store's lock should not let happen.
fn foreign(run: &RunId, seq: Seq) -> EngineError {
    EngineError::Store(StoreError::Sequence {
        run: run.clone(),
        expected: seq,
        found: seq.next(),
    })
}
