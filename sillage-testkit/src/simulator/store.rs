//! The store of a simulated world: one run's log, whose writes fail in every way.

use std::path::PathBuf;

use async_trait::async_trait;
use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError, Which};
use sillage_core::run::{Recorded, codec};

use super::doors::Life;
use super::faults::Fault;
use super::judge::Promise;
use super::world::World;

/// Events read at once.
const PAGE: usize = 40;

/// What is durable.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: Vec<Vec<u8>>,
    /// Whether a write failed and nobody read since.
    unread: bool,
}

impl Log {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn len(&self) -> u64 {
        self.events.len() as u64
    }

    /// Another process opened it.
    pub(crate) fn opened_anew(&mut self) {
        self.unread = false;
    }

    fn next(&self) -> Seq {
        Seq(self.len() + 1)
    }

    fn at(&self, seq: Seq) -> Option<&Vec<u8>> {
        let position = usize::try_from(seq.0).ok()?.checked_sub(1)?;
        self.events.get(position)
    }

    pub(crate) fn holds(&self, fact: &Recorded) -> bool {
        self.at(fact.seq)
            .and_then(|bytes| codec::decode(bytes).ok())
            .as_ref()
            == Some(fact)
    }
}

/// The store as an engine of one life sees it.
#[derive(Debug, Clone)]
pub struct SimStore(pub Life);

fn failed(words: &str) -> StoreError {
    StoreError::Io {
        path: PathBuf::from("/sim/store"),
        why: words.to_owned(),
    }
}

impl World {
    fn append(
        &mut self,
        expected: Seq,
        events: Vec<Vec<u8>>,
        summary: &RunSummary,
    ) -> Result<(), StoreError> {
        if self.log.unread {
            self.violated(Promise::ReadsAgain, || {
                "an append after one that failed, without a read".to_owned()
            });
            return Err(failed("read again"));
        }
        if expected != self.log.next() {
            let found = self.log.next();
            return Err(StoreError::Sequence {
                run: self.definition.run.clone(),
                expected,
                found,
            });
        }
        let now = self.now();
        if self.full_until <= now && self.strikes(Fault::DiskFull) {
            self.full_until = now + self.dice.between(Fault::DiskFull as usize, 1_000, 900_000);
        }
        if self.full_until > now && now < self.story.calm {
            self.log.unread = true;
            return Err(StoreError::Full {
                path: PathBuf::from("/sim/store"),
            });
        }
        if self.strikes_at(Fault::AppendFails, self.story.per_mille / 4) {
            self.log.unread = true;
            return Err(failed("not written"));
        }
        for bytes in events {
            self.keep(bytes);
        }
        let facts = self.judge.take_asked();
        for asked in facts {
            self.will_answer(asked);
        }
        self.judge.batch_written(summary);
        self.stop_if_violated();
        if self.strikes_at(Fault::AppendTorn, self.story.per_mille / 4) {
            self.log.unread = true;
            return Err(failed("written, or not"));
        }
        Ok(())
    }

    /// One event is durable from here on, whether anybody learns of it or not.
    fn keep(&mut self, bytes: Vec<u8>) {
        self.trace.mix_bytes(&bytes);
        let fact = codec::decode(&bytes);
        self.log.events.push(bytes);
        let fact = match fact {
            Ok(fact) => fact,
            Err(error) => {
                return self.violated(Promise::Replays, || format!("an event cannot be read: {error}"));
            }
        };
        let now = self.now();
        self.trace.tell(now, || {
            let mut words = format!("log {} {:?}", fact.seq.0, fact.event);
            if let Some((end, _)) = words.char_indices().nth(220) {
                words.truncate(end);
            }
            words
        });
        let wall = self.wall();
        let World {
            judge,
            sessions,
            workspace,
            ..
        } = self;
        judge.fact(&fact, sessions, workspace, wall);
    }
}

#[async_trait]
impl Store for SimStore {
    async fn append(
        &self,
        _run: &RunId,
        expected: Seq,
        events: Vec<Vec<u8>>,
        summary: &RunSummary,
    ) -> Result<(), StoreError> {
        let (summary, life) = (summary.clone(), self.0.clone());
        let act = move |world: &mut World| match life.was_followed(world) {
            // Who holds the store now has waited until the dead one let go of it: nothing of that one is written after.
            true => Err(failed("held by another process")),
            false => world.append(expected, events, &summary),
        };
        self.0.call("an append", |world| world.judge.decided(), act).await
    }

    async fn read(&self, _run: &RunId, from: Seq, _most: usize) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
        let act = move |world: &mut World| {
            world.log.unread = false;
            let mut page = Vec::new();
            let mut seq = from;
            while let Some(bytes) = world.log.at(seq).filter(|_| page.len() < PAGE) {
                page.push((seq, bytes.clone()));
                seq = seq.next();
            }
            Ok(page)
        };
        self.0.call("a read", |_| {}, act).await
    }

    async fn runs(&self, _which: Which, _limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        Err(failed("lists of runs are not simulated"))
    }

    async fn run(&self, _run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        Err(failed("lists of runs are not simulated"))
    }

    async fn put(&self, _kind: &str, _name: &str, _expected: u64, _body: Vec<u8>) -> Result<u64, StoreError> {
        Err(failed("documents are not simulated"))
    }

    async fn get(&self, _kind: &str, _name: &str) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        Err(failed("documents are not simulated"))
    }

    async fn version(&self, _kind: &str, _name: &str, _version: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Err(failed("documents are not simulated"))
    }

    async fn names(&self, _kind: &str) -> Result<Vec<String>, StoreError> {
        Err(failed("documents are not simulated"))
    }

    async fn add_transcript(
        &self,
        _run: &RunId,
        _session: ClientSessionId,
        _chunk: Vec<u8>,
    ) -> Result<(), StoreError> {
        let Some(world) = self.0.world() else {
            return std::future::pending().await;
        };
        match world.full_until > world.now() {
            true => Err(StoreError::Full {
                path: PathBuf::from("/sim/store"),
            }),
            false => Ok(()),
        }
    }

    async fn transcript(&self, _run: &RunId, _session: ClientSessionId) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(Vec::new())
    }
}
