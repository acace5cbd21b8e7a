//! What is written and not yet durable: nobody is shown it, for nobody may act on it.
//!
//! A reader looks at sled first and here afterwards. What it saw and does not find here is durable by then; what it
//! finds here it leaves out. Readers thus never wait for a sync.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sillage_core::id::{RunId, Seq};
use sillage_core::ports::store::RunSummary;

/// The commit that is on its way.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    commit: Mutex<Commit>,
}

/// What a commit hides until it is durable.
#[derive(Debug, Default)]
pub(super) struct Commit {
    /// Each run's first event, and its summary as it was before.
    pub(super) runs: HashMap<RunId, (Seq, Option<RunSummary>)>,
    /// Each document's first version, by kind and name.
    pub(super) documents: HashMap<(String, String), u64>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, Commit> {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before a commit is written.
    pub(super) fn hide(&self, commit: Commit) {
        *self.lock() = commit;
    }

    /// When it is durable, or undone.
    pub(super) fn show(&self) {
        *self.lock() = Commit::default();
    }

    /// The first event of a run that may not be shown.
    pub(super) fn first_hidden(&self, run: &RunId) -> Option<Seq> {
        self.lock().runs.get(run).map(|(first, _)| *first)
    }

    /// A run's summary, `found` having been read.
    pub(super) fn summary(&self, run: &RunId, found: Option<RunSummary>) -> Option<RunSummary> {
        match self.lock().runs.get(run) {
            Some((_, before)) => before.clone(),
            None => found,
        }
    }

    /// The first version of a document that may not be shown.
    pub(super) fn first_hidden_version(&self, kind: &str, name: &str) -> Option<u64> {
        let commit = self.lock();
        if commit.documents.is_empty() {
            return None;
        }
        commit.documents.get(&(kind.to_owned(), name.to_owned())).copied()
    }
}
