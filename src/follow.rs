//! Following a run: its stored facts from a position, then what goes on, without gaps or repeats.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use sillage_core::id::{RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::run::{Recorded, codec};

use crate::engine::{EngineError, RunHandle};
use crate::feed::{FeedItem, FeedReader};

/// Bytes of events read from the store at once.
const PAGE: usize = 4 << 20;

/// What goes on in a run, from somebody who watches it. Ends when nobody drives the run any more.
pub type Followed<E> = BoxStream<'static, Result<FeedItem, E>>;

/// The facts of `run` from position `from` on, each once and in order, then, while `driven` is driven, the facts that
/// follow and agents' chatter. A run that nobody drives (`driven` is none) ends with its last stored fact.
///
/// A reader that is too slow for the chatter is told by [`FeedItem::Missed`]; facts are never missed.
///
/// # Errors
/// The stream ends with an [`EngineError`] when the log cannot be read.
#[must_use]
pub fn follow(
    store: Arc<dyn Store>,
    run: RunId,
    driven: Option<RunHandle>,
    from: Seq,
) -> Followed<EngineError> {
    // Subscribed before the first read: a fact is durable before it is told, so what the store does not show yet
    // is going to be told.
    let live = driven.map(|handle| Live {
        reader: handle.follow(),
        handle,
    });
    let follower = Follower {
        store,
        run,
        next: from,
        page: VecDeque::new(),
        live,
        stage: Stage::Reading,
    };
    stream::unfold(follower, |mut follower| async {
        let item = follower.next().await?;
        Some((item, follower))
    })
    .boxed()
}

struct Follower {
    store: Arc<dyn Store>,
    run: RunId,
    /// The position of the fact that is told next.
    next: Seq,
    /// Facts read from the store and not told yet.
    page: VecDeque<Recorded>,
    live: Option<Live>,
    stage: Stage,
}

struct Live {
    handle: RunHandle,
    reader: FeedReader,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The store may hold facts that were not told.
    Reading,
    /// All that is stored was told, and more may come.
    Listening,
    /// Nobody drives the run: what the store holds is all.
    Rest,
    /// Nothing follows.
    Over,
}

impl Follower {
    async fn next(&mut self) -> Option<Result<FeedItem, EngineError>> {
        loop {
            if let Some(fact) = self.page.pop_front() {
                return Some(Ok(self.told(fact)));
            }
            match self.stage {
                Stage::Reading | Stage::Rest => {
                    if let Err(error) = self.read().await {
                        self.stage = Stage::Over;
                        return Some(Err(error));
                    }
                }
                Stage::Listening => {
                    if let Some(item) = self.listen().await {
                        return Some(Ok(item));
                    }
                }
                Stage::Over => return None,
            }
        }
    }

    fn told(&mut self, fact: Recorded) -> FeedItem {
        self.next = fact.seq.next();
        FeedItem::Fact(Arc::new(fact))
    }

    /// Reads a page; an empty one takes the follower to its next stage.
    async fn read(&mut self) -> Result<(), EngineError> {
        self.page = read_page(&*self.store, &self.run, self.next).await?.into();
        if self.page.is_empty() {
            self.stage = match (self.stage, &self.live) {
                (Stage::Reading, Some(_)) => Stage::Listening,
                (Stage::Reading | Stage::Listening | Stage::Rest | Stage::Over, _) => Stage::Over,
            };
        }
        Ok(())
    }

    /// What the feed tells next; none where that is not to be told as it is.
    async fn listen(&mut self) -> Option<FeedItem> {
        let Some(live) = &mut self.live else {
            self.stage = Stage::Rest;
            return None;
        };
        let item = tokio::select! {
            biased;
            item = live.reader.next() => item,
            _ = live.handle.wait() => None,
        };
        match item {
            Some(FeedItem::Fact(fact)) if fact.seq < self.next => None,
            Some(FeedItem::Fact(fact)) if fact.seq == self.next => {
                self.next = fact.seq.next();
                Some(FeedItem::Fact(fact))
            }
            // Facts went by unheard: the store has them.
            Some(FeedItem::Fact(_)) => {
                self.stage = Stage::Reading;
                None
            }
            Some(FeedItem::Missed(count)) => {
                self.stage = Stage::Reading;
                Some(FeedItem::Missed(count))
            }
            Some(other @ (FeedItem::Chatter { .. } | FeedItem::DiskFull { .. } | FeedItem::DiskHasRoom)) => {
                Some(other)
            }
            None => {
                self.stage = Stage::Rest;
                None
            }
        }
    }
}

/// A page of a run's facts from position `from` on; empty when there are no more.
pub(crate) async fn read_page(
    store: &dyn Store,
    run: &RunId,
    from: Seq,
) -> Result<Vec<Recorded>, EngineError> {
    decode(run, store.read(run, from, PAGE).await?)
}

/// The fact that launched a run.
pub(crate) async fn read_launch(store: &dyn Store, run: &RunId) -> Result<Recorded, EngineError> {
    let first = decode(run, store.read(run, Seq::FIRST, 1).await?)?;
    first
        .into_iter()
        .next()
        .ok_or_else(|| EngineError::NoSuchRun(run.clone()))
}

fn decode(run: &RunId, page: Vec<(Seq, Vec<u8>)>) -> Result<Vec<Recorded>, EngineError> {
    let decode = |(seq, bytes): (Seq, Vec<u8>)| {
        codec::decode(&bytes).map_err(|source| EngineError::Codec {
            run: run.clone(),
            seq,
            source,
        })
    };
    page.into_iter().map(decode).collect()
}

/// All of a run's facts from position `from` on.
pub(crate) async fn read_all(
    store: &dyn Store,
    run: &RunId,
    from: Seq,
) -> Result<Vec<Recorded>, EngineError> {
    let mut facts: Vec<Recorded> = Vec::new();
    loop {
        let next = facts.last().map_or(from, |fact| fact.seq.next());
        let page = read_page(store, run, next).await?;
        if page.is_empty() {
            return Ok(facts);
        }
        facts.extend(page);
    }
}

#[cfg(all(test, feature = "store"))]
mod tests;
