//! [`MemoryStore`]: a store that ends with its process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError, Which};

/// A store in memory, for tests and for runs that nobody means to resume. It keeps every promise of [`Store`] but
/// the durable ones.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    runs: BTreeMap<RunId, Log>,
    documents: BTreeMap<(String, String), Vec<Vec<u8>>>,
    transcripts: BTreeMap<(RunId, ClientSessionId), Vec<Vec<u8>>>,
}

#[derive(Debug)]
struct Log {
    events: Vec<Vec<u8>>,
    summary: RunSummary,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn position(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(
        &self,
        run: &RunId,
        expected: Seq,
        events: Vec<Vec<u8>>,
        summary: &RunSummary,
    ) -> Result<(), StoreError> {
        let mut kept = self.kept();
        let found = Seq(kept.runs.get(run).map_or(0, |log| log.events.len()) as u64 + 1);
        if found != expected {
            return Err(StoreError::Sequence {
                run: run.clone(),
                expected,
                found,
            });
        }
        let last = Seq(found.0 + events.len() as u64 - 1);
        let summary = RunSummary {
            run: run.clone(),
            last,
            ..summary.clone()
        };
        match kept.runs.get_mut(run) {
            Some(log) => {
                log.events.extend(events);
                log.summary = summary;
            }
            None => {
                kept.runs.insert(run.clone(), Log { events, summary });
            }
        }
        Ok(())
    }

    async fn read(
        &self,
        run: &RunId,
        from: Seq,
        max_bytes: usize,
    ) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
        let kept = self.kept();
        let Some(log) = kept.runs.get(run) else {
            return Ok(Vec::new());
        };
        let from = from.0.max(1);
        let rest = log.events.get(position(from - 1)..).unwrap_or_default();
        let mut bytes = 0;
        let fits = |(event, index): &(&Vec<u8>, u64)| {
            bytes += event.len();
            *index == from || bytes <= max_bytes
        };
        Ok(rest
            .iter()
            .zip(from..)
            .take_while(fits)
            .map(|(event, at)| (Seq(at), event.clone()))
            .collect())
    }

    async fn runs(&self, which: Which, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let kept = self.kept();
        let wanted = |summary: &&RunSummary| match which {
            Which::All => true,
            Which::Unfinished => !summary.finished,
        };
        let mut runs: Vec<_> = kept
            .runs
            .values()
            .map(|log| &log.summary)
            .filter(wanted)
            .cloned()
            .collect();
        runs.sort_by(|a, b| b.launched.cmp(&a.launched).then_with(|| a.run.cmp(&b.run)));
        runs.truncate(limit);
        Ok(runs)
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        Ok(self.kept().runs.get(run).map(|log| log.summary.clone()))
    }

    async fn put(&self, kind: &str, name: &str, expected: u64, body: Vec<u8>) -> Result<u64, StoreError> {
        crate::name::check(Path::new("in memory"), kind, name)?;
        let mut kept = self.kept();
        let key = (kind.to_owned(), name.to_owned());
        let found = kept.documents.get(&key).map_or(0, Vec::len) as u64;
        if found != expected {
            let (kind, name) = key;
            return Err(StoreError::Version {
                kind,
                name,
                expected,
                found,
            });
        }
        kept.documents.entry(key).or_default().push(body);
        Ok(found + 1)
    }

    async fn get(&self, kind: &str, name: &str) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let kept = self.kept();
        let versions = kept.documents.get(&(kind.to_owned(), name.to_owned()));
        Ok(versions.and_then(|versions| Some((versions.len() as u64, versions.last()?.clone()))))
    }

    async fn version(&self, kind: &str, name: &str, version: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let kept = self.kept();
        let versions = kept.documents.get(&(kind.to_owned(), name.to_owned()));
        let index = version.checked_sub(1).map(position);
        Ok(versions
            .zip(index)
            .and_then(|(versions, index)| versions.get(index))
            .cloned())
    }

    async fn names(&self, kind: &str) -> Result<Vec<String>, StoreError> {
        let kept = self.kept();
        Ok(kept
            .documents
            .keys()
            .filter(|(of, _)| of == kind)
            .map(|(_, name)| name.clone())
            .collect())
    }

    async fn add_transcript(
        &self,
        run: &RunId,
        session: ClientSessionId,
        chunk: Vec<u8>,
    ) -> Result<(), StoreError> {
        self.kept()
            .transcripts
            .entry((run.clone(), session))
            .or_default()
            .push(chunk);
        Ok(())
    }

    async fn transcript(&self, run: &RunId, session: ClientSessionId) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(self
            .kept()
            .transcripts
            .get(&(run.clone(), session))
            .cloned()
            .unwrap_or_default())
    }
}
