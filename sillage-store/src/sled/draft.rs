//! A group of requests being made into one batch.

use std::collections::HashMap;

use sillage_core::id::{RunId, Seq};
use sillage_core::ports::store::{RunSummary, StoreError};
use sled::Batch;

use super::folder::Folder;
use super::in_flight::Commit;
use super::keys;
use super::record::TooLong;
use super::request::{Answer, Append, Chunk, Put};
use super::view::{Piece, View, pieces};
use super::writer::GROUP_BYTES;

/// What is known of a run's end.
#[derive(Debug, Clone)]
pub(super) struct Known {
    next: Seq,
    summary: Option<RunSummary>,
}

/// One batch in the making, and what follows once it is written.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) batch: Batch,
    /// Further pieces of long records, to be written before the batch.
    pub(super) staged: Vec<Piece>,
    /// How many bytes the batch holds.
    pub(super) bytes: usize,
    /// What readers are not shown yet.
    pub(super) commit: Commit,
    /// Runs as they will be.
    pub(super) known: HashMap<RunId, Known>,
    /// Next chunks of transcripts, by prefix.
    pub(super) chunks: HashMap<Vec<u8>, u64>,
    /// Logs and documents for the ledger.
    pub(super) touched: Vec<(Vec<u8>, u64)>,
    pub(super) answers: Vec<Answer>,
    /// How many requests wait for the disk.
    pub(super) durable: usize,
    versions: HashMap<Vec<u8>, u64>,
}

impl Draft {
    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Adds events to a run's log. Nothing is added when it is refused.
    pub(super) fn append(
        &mut self,
        view: &View<'_>,
        remembered: Option<&Known>,
        append: &Append,
    ) -> Result<(), StoreError> {
        let run = &append.run;
        let before = match self.known.get(run).or(remembered) {
            Some(known) => known.clone(),
            None => known(view, run)?,
        };
        if before.next != append.expected {
            return Err(StoreError::Sequence {
                run: run.clone(),
                expected: append.expected,
                found: before.next,
            });
        }
        let next = Seq(before.next.0 + append.events.len() as u64);
        let summary = RunSummary {
            run: run.clone(),
            last: Seq(next.0 - 1),
            ..append.summary.clone()
        };
        let json = serde_json::to_vec(&summary).map_err(|e| StoreError::Io {
            path: view.folder.path.clone(),
            why: e.to_string(),
        })?;
        let record = match append.events.is_empty() {
            true => Vec::new(),
            false => self::record(view, &keys::record(run, before.next), &append.events)?,
        };
        let state = self::record(view, &keys::summary(run), &[json])?;

        self.insert(record);
        self.insert(state);
        self.list(before.summary.as_ref(), &summary);
        if !append.events.is_empty() {
            self.touched.push((keys::log(run), before.next.0));
        }
        self.commit
            .runs
            .entry(run.clone())
            .or_insert((before.next, before.summary));
        self.known.insert(
            run.clone(),
            Known {
                next,
                summary: Some(summary),
            },
        );
        self.durable += 1;
        Ok(())
    }

    /// Puts a run into the two lists, where it is not yet.
    fn list(&mut self, before: Option<&RunSummary>, after: &RunSummary) {
        let places = |summary: &RunSummary| {
            let all = keys::listed(keys::ALL, summary.launched, &summary.run);
            let unfinished = keys::listed(keys::UNFINISHED, summary.launched, &summary.run);
            (all, (!summary.finished).then_some(unfinished))
        };
        let (all, unfinished) = places(after);
        if let Some((old_all, old_unfinished)) = before.map(places) {
            if (&old_all, &old_unfinished) == (&all, &unfinished) {
                return;
            }
            self.batch.remove(old_all);
            if let Some(key) = old_unfinished {
                self.batch.remove(key);
            }
        }
        self.batch.insert(all, &[]);
        if let Some(key) = unfinished {
            self.batch.insert(key, &[]);
        }
    }

    /// Adds a document's next version, and tells its number.
    pub(super) fn put(&mut self, view: &View<'_>, put: &Put) -> Result<u64, StoreError> {
        let document = keys::document(&put.kind, &put.name);
        let found = match self.versions.get(&document) {
            Some(version) => *version,
            None => view.newest(&put.kind, &put.name, u64::MAX)?,
        };
        if found != put.expected {
            return Err(StoreError::Version {
                kind: put.kind.clone(),
                name: put.name.clone(),
                expected: put.expected,
                found,
            });
        }
        let version = found + 1;
        let record = record(view, &keys::version(&put.kind, &put.name, version), &[&put.body])?;
        self.insert(record);
        self.commit
            .documents
            .entry((put.kind.clone(), put.name.clone()))
            .or_insert(version);
        self.touched.push((document.clone(), version));
        self.versions.insert(document, version);
        self.durable += 1;
        Ok(version)
    }

    /// Adds a chunk to a transcript.
    pub(super) fn transcript(
        &mut self,
        view: &View<'_>,
        remembered: &HashMap<Vec<u8>, u64>,
        chunk: &Chunk,
    ) -> Result<(), StoreError> {
        let prefix = keys::transcript(&chunk.run, chunk.session);
        let number = match self.chunks.get(&prefix).or_else(|| remembered.get(&prefix)) {
            Some(number) => *number,
            None => view.next_chunk(&chunk.run, chunk.session)?,
        };
        let record = record(
            view,
            &keys::chunk(&chunk.run, chunk.session, number),
            &[&chunk.chunk],
        )?;
        self.insert(record);
        self.chunks.insert(prefix, number + 1);
        Ok(())
    }

    /// Adds a record's pieces to the batch; those of a long one but the first are written before it.
    fn insert(&mut self, pieces: Vec<Piece>) {
        let bytes: usize = pieces.iter().map(|(_, piece)| piece.len()).sum();
        let long = bytes > GROUP_BYTES;
        for (index, (key, piece)) in pieces.into_iter().enumerate() {
            if long && index > 0 {
                self.staged.push((key, piece));
            } else {
                self.bytes += piece.len();
                self.batch.insert(key, piece);
            }
        }
    }
}

fn known(view: &View<'_>, run: &RunId) -> Result<Known, StoreError> {
    let summary = view.known(run)?;
    let next = summary.as_ref().map_or(Seq::FIRST, |summary| summary.last.next());
    Ok(Known { next, summary })
}

fn record<B: AsRef<[u8]>>(view: &View<'_>, key: &[u8], parts: &[B]) -> Result<Vec<Piece>, StoreError> {
    pieces(key, parts).map_err(|TooLong| too_long(view.folder))
}

/// What a record is refused with that is longer than a record can be.
pub(super) fn too_long(folder: &Folder) -> StoreError {
    StoreError::Io {
        path: folder.path.clone(),
        why: "more than 4 GiB in one write: divide it".to_owned(),
    }
}
