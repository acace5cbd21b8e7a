//! [`CrashingStore`]: a store that lets its process die at a chosen event.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError, Which};

/// On which side of the write the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Just before the event is durable.
    Before,
    /// Just after it is durable, and before anybody was told.
    After,
}

/// Passes everything on to another store. At the append that holds a chosen event it calls `die` with the positions
/// of that append, and never returns. `die` is expected to end the process, as `kill -9` does.
pub struct CrashingStore<S> {
    inner: S,
    at: u64,
    side: Side,
    die: Box<dyn Fn(RangeInclusive<u64>) + Send + Sync>,
}

impl<S: std::fmt::Debug> std::fmt::Debug for CrashingStore<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrashingStore")
            .field("inner", &self.inner)
            .field("at", &self.at)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

impl<S> CrashingStore<S> {
    /// A store that dies on this side of the event at position `at` of any run's log.
    pub fn new(
        inner: S,
        at: u64,
        side: Side,
        die: impl Fn(RangeInclusive<u64>) + Send + Sync + 'static,
    ) -> CrashingStore<S> {
        CrashingStore {
            inner,
            at,
            side,
            die: Box::new(die),
        }
    }

    async fn die(&self, events: RangeInclusive<u64>) -> Result<(), StoreError> {
        (self.die)(events);
        std::future::pending().await
    }
}

#[async_trait]
impl<S: Store> Store for CrashingStore<S> {
    async fn append(
        &self,
        run: &RunId,
        expected: Seq,
        events: Vec<Vec<u8>>,
        summary: &RunSummary,
    ) -> Result<(), StoreError> {
        let first = expected.0;
        let last = first + (events.len() as u64).saturating_sub(1);
        if !(first..=last).contains(&self.at) {
            return self.inner.append(run, expected, events, summary).await;
        }
        if self.side == Side::After {
            self.inner.append(run, expected, events, summary).await?;
        }
        self.die(first..=last).await
    }

    async fn read(
        &self,
        run: &RunId,
        from: Seq,
        max_bytes: usize,
    ) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
        self.inner.read(run, from, max_bytes).await
    }

    async fn runs(&self, which: Which, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.inner.runs(which, limit).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        self.inner.run(run).await
    }

    async fn put(&self, kind: &str, name: &str, expected: u64, body: Vec<u8>) -> Result<u64, StoreError> {
        self.inner.put(kind, name, expected, body).await
    }

    async fn get(&self, kind: &str, name: &str) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        self.inner.get(kind, name).await
    }

    async fn version(&self, kind: &str, name: &str, version: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.version(kind, name, version).await
    }

    async fn names(&self, kind: &str) -> Result<Vec<String>, StoreError> {
        self.inner.names(kind).await
    }

    async fn add_transcript(
        &self,
        run: &RunId,
        session: ClientSessionId,
        chunk: Vec<u8>,
    ) -> Result<(), StoreError> {
        self.inner.add_transcript(run, session, chunk).await
    }

    async fn transcript(&self, run: &RunId, session: ClientSessionId) -> Result<Vec<Vec<u8>>, StoreError> {
        self.inner.transcript(run, session).await
    }
}
