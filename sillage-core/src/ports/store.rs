//! [`Store`]: append-only run logs, versioned documents and transcripts.

use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::id::{ClientSessionId, RunId, Seq};
use crate::time::Timestamp;

/// Keeps what must not be lost. One writer at a time; events and documents are bytes whose meaning is the caller's.
///
/// After any error of a write, nothing may be concluded about whether it took place: the caller reads again, and
/// the store refuses further writes to that run until [`Store::read`] was called on it.
#[async_trait]
pub trait Store: Send + Sync {
    /// Appends events to a run's log, whole or not at all, and replaces the run's summary in the same step.
    /// Durable when it returns, also through a power cut. `expected` is the position that the first event takes.
    ///
    /// # Errors
    /// [`StoreError::Sequence`] when the log's next position is another; [`StoreError::Full`],
    /// [`StoreError::Io`] by what the system said.
    async fn append(
        &self,
        run: &RunId,
        expected: Seq,
        events: Vec<Vec<u8>>,
        summary: &RunSummary,
    ) -> Result<(), StoreError>;

    /// A run's events from position `from` on, in order: as many whole events as fit in about `max_bytes`, at least
    /// one where there is one. An empty answer means that there are no more.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] naming run and position when an event's checksum is wrong: no event of the page is
    /// then returned.
    async fn read(&self, run: &RunId, from: Seq, max_bytes: usize)
    -> Result<Vec<(Seq, Vec<u8>)>, StoreError>;

    /// Summaries of runs, newest launch first. Costs what it returns: `Unfinished` does not visit finished runs.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    async fn runs(&self, which: Which, limit: usize) -> Result<Vec<RunSummary>, StoreError>;

    /// One run's summary.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    async fn run(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError>;

    /// Writes a document's next version. `expected` is the version that it must have now: 0 for one that does not
    /// exist. Durable when it returns.
    ///
    /// # Errors
    /// [`StoreError::Version`] when the document has another version.
    async fn put(&self, kind: &str, name: &str, expected: u64, body: Vec<u8>) -> Result<u64, StoreError>;

    /// A document's newest version, with its number.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    async fn get(&self, kind: &str, name: &str) -> Result<Option<(u64, Vec<u8>)>, StoreError>;

    /// A document as it was at one version.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    async fn version(&self, kind: &str, name: &str, version: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// The names of the documents of a kind, in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    async fn names(&self, kind: &str) -> Result<Vec<String>, StoreError>;

    /// Adds a chunk to a session's transcript. Durable with the next append at the latest; a chunk may be lost by
    /// a crash before that.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Io`].
    async fn add_transcript(
        &self,
        run: &RunId,
        session: ClientSessionId,
        chunk: Vec<u8>,
    ) -> Result<(), StoreError>;

    /// A session's transcript: its chunks in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    async fn transcript(&self, run: &RunId, session: ClientSessionId) -> Result<Vec<Vec<u8>>, StoreError>;
}

/// What lists of runs show without reading their logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// Its task's title.
    pub title: String,
    /// Its task's canonical path.
    pub task_file: Option<PathBuf>,
    /// When it was launched.
    pub launched: Timestamp,
    /// When its log last grew.
    pub updated: Timestamp,
    /// Its state, as the core names it.
    pub state: String,
    /// Whether the state is final.
    pub finished: bool,
    /// Steps in all.
    pub steps: u32,
    /// Steps ended.
    pub ended: u32,
    /// Steps that succeeded: complete or partial, with nothing in the way of what follows.
    #[serde(default)]
    pub succeeded: u32,
    /// Steps that wait for a person.
    #[serde(default)]
    pub asking: u32,
    /// Whether it is over and something is left in it to be done again.
    #[serde(default)]
    pub resumable: bool,
    /// The position of the last event.
    pub last: Seq,
}

/// Which runs to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// Those whose state is not final.
    Unfinished,
}

/// Why the store did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process holds the store.
    #[error(
        "the store {path} is held by {program} (pid {pid} on {host}): wait for it or stop it, or use another data folder"
    )]
    Held {
        /// The store's folder.
        path: PathBuf,
        /// The holder's name.
        program: String,
        /// The holder's process.
        pid: u32,
        /// The holder's machine.
        host: String,
    },
    /// The log's next position is another: someone else appended, or an earlier write did take place.
    #[error("run {run} goes on at event {found}, not {expected}: read it again")]
    Sequence {
        /// The run.
        run: RunId,
        /// What the caller expected.
        expected: Seq,
        /// What the store has.
        found: Seq,
    },
    /// The document has another version.
    #[error("{kind} {name} is at version {found}, not {expected}: read it again")]
    Version {
        /// The document's kind.
        kind: String,
        /// The document's name.
        name: String,
        /// What the caller expected.
        expected: u64,
        /// What the store has.
        found: u64,
    },
    /// What was read is not what was written.
    #[error("the store {path} is damaged: {what}")]
    Damaged {
        /// The store's folder.
        path: PathBuf,
        /// What is damaged and what to do.
        what: String,
    },
    /// The disk is full.
    #[error("no space left for the store {path}: free some, then resume")]
    Full {
        /// The store's folder.
        path: PathBuf,
    },
    /// The store was written by a newer version.
    #[error("the store {path} has format {found}, this program knows up to {known}: use a newer version")]
    Newer {
        /// The store's folder.
        path: PathBuf,
        /// The store's format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The folder cannot be used.
    #[error("the data folder {path} cannot be used: {why}")]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// Another error of the system.
    #[error("the store {path} failed: {why}")]
    Io {
        /// The store's folder.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// A write failed earlier: read the run again before writing.
    #[error("an earlier write to run {run} failed: read it again before writing")]
    ReadAgain {
        /// The run.
        run: RunId,
    },
}
