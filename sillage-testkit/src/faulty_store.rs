//! [`FaultyStore`]: a store whose writes fail when they are told to.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError, Which};

/// How a write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written; the error says so.
    Before,
    /// All is written, and an error is told all the same, as when the disk's answer is lost.
    After,
    /// The disk is full; nothing is written.
    Full,
    /// All is written, and the disk is told to be full all the same.
    FullAfter,
    /// Only this many of the events are written. No good store does this; whoever reads must notice or cope.
    Torn(usize),
}

/// Passes everything on to another store but the writes that are to fail. As the contract asks, a run whose write
/// failed must be read before it is written again.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: S,
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    /// Writes until the fault, and the fault.
    faults: Vec<(u64, Fault)>,
    writes: u64,
    unread: HashSet<RunId>,
}

impl<S: Store> FaultyStore<S> {
    /// A store that passes everything on, until told otherwise.
    pub fn new(inner: S) -> FaultyStore<S> {
        FaultyStore {
            inner,
            plan: Mutex::default(),
        }
    }

    /// Lets the write numbered `nth` from now fail: 1 is the next append or document.
    pub fn fail(&self, nth: u64, fault: Fault) {
        let mut plan = self.plan();
        let at = plan.writes + nth;
        plan.faults.push((at, fault));
    }

    /// How many appends and documents were asked for so far.
    pub fn writes(&self) -> u64 {
        self.plan().writes
    }

    /// The store behind.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a write; tells the fault that it is to meet.
    fn count(&self) -> Option<Fault> {
        let mut plan = self.plan();
        plan.writes += 1;
        let now = plan.writes;
        let index = plan.faults.iter().position(|(at, _)| *at == now)?;
        Some(plan.faults.swap_remove(index).1)
    }
}

fn error(fault: Fault) -> StoreError {
    let path = PathBuf::from("a faulty store");
    match fault {
        Fault::Full | Fault::FullAfter => StoreError::Full { path },
        Fault::Before | Fault::After | Fault::Torn(_) => StoreError::Io {
            path,
            why: "input/output error, as was asked for".to_owned(),
        },
    }
}

#[async_trait]
impl<S: Store> Store for FaultyStore<S> {
    async fn append(
        &self,
        run: &RunId,
        expected: Seq,
        mut events: Vec<Vec<u8>>,
        summary: &RunSummary,
    ) -> Result<(), StoreError> {
        if self.plan().unread.contains(run) {
            return Err(StoreError::ReadAgain { run: run.clone() });
        }
        let Some(fault) = self.count() else {
            return self.inner.append(run, expected, events, summary).await;
        };
        match fault {
            Fault::Before | Fault::Full => {}
            Fault::After | Fault::FullAfter => self.inner.append(run, expected, events, summary).await?,
            Fault::Torn(whole) => {
                events.truncate(whole);
                self.inner.append(run, expected, events, summary).await?;
            }
        }
        self.plan().unread.insert(run.clone());
        Err(error(fault))
    }

    async fn read(
        &self,
        run: &RunId,
        from: Seq,
        max_bytes: usize,
    ) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
        let events = self.inner.read(run, from, max_bytes).await?;
        self.plan().unread.remove(run);
        Ok(events)
    }

    async fn runs(&self, which: Which, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.inner.runs(which, limit).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        self.inner.run(run).await
    }

    async fn put(&self, kind: &str, name: &str, expected: u64, body: Vec<u8>) -> Result<u64, StoreError> {
        match self.count() {
            None => self.inner.put(kind, name, expected, body).await,
            Some(fault @ (Fault::Before | Fault::Full | Fault::Torn(_))) => Err(error(fault)),
            Some(fault @ (Fault::After | Fault::FullAfter)) => {
                self.inner.put(kind, name, expected, body).await?;
                Err(error(fault))
            }
        }
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
