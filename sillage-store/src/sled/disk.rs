//! sled, opened, closed and opened again: the only file that knows how it fails.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use sillage_core::ports::store::StoreError;

use super::folder::Folder;
use super::panics::caught;
use super::view::View;
use super::watch::Watch;

/// How often sled's own lock is tried again: its threads may hold the file a moment longer than its handle.
const LOCK_TRIES: u32 = 500;

/// sled on its folder.
#[derive(Debug)]
pub(super) struct Disk {
    folder: Folder,
    cache_bytes: u64,
    state: RwLock<State>,
    syncs: AtomicU64,
    watch: Watch,
}

#[derive(Debug)]
enum State {
    Open(Opened),
    Closed(StoreError),
}

/// sled, and its `db` file opened once more to be synced: sled's own flush does not reach the disk's promise.
struct Opened {
    db: Option<sled::Db>,
    file: File,
}

// sled's own `Debug` prints all that it holds.
impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let db = self.db.take();
        if let Err(words) = caught(|| drop(db)) {
            tracing::debug!(words, "sled panicked while it was closed");
        }
    }
}

impl Disk {
    /// Opens sled in the folder, which this process must have locked.
    pub(super) fn open(folder: Folder, cache_bytes: u64) -> Result<Disk, StoreError> {
        let opened = with_reserve(&folder, || open(&folder, cache_bytes))?;
        Ok(Disk {
            folder,
            cache_bytes,
            state: RwLock::new(State::Open(opened)),
            syncs: AtomicU64::new(0),
            watch: Watch::default(),
        })
    }

    /// The store's folder.
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How often the disk was waited for.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Whether it is closed after an error.
    pub(super) fn is_closed(&self) -> bool {
        matches!(
            *self.state.read().unwrap_or_else(PoisonError::into_inner),
            State::Closed(_)
        )
    }

    /// Does something with what is stored. A panic of sled is damage.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&View<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.opened(|opened| match &opened.db {
            Some(db) => work(&View::new(db, &self.folder)),
            None => Err(closed(&self.folder)),
        })
    }

    /// Makes all that was written durable.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.watch.during(|| self.with(|view| view.flush()))?;
        self.opened(|opened| opened.file.sync_data().map_err(|e| self.folder.failed(&e)))?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Watches the syncs until [`Disk::end_watch`], for a thread of its own.
    pub(super) fn watch(&self) {
        self.watch.serve(|| {
            if let Err(error) = self.with(|view| view.wake_failed_flush()) {
                tracing::debug!(%error, "a flush had failed without a word");
            }
        });
    }

    /// Ends the watching.
    pub(super) fn end_watch(&self) {
        self.watch.end();
    }

    fn opened<T>(&self, work: impl FnOnce(&Opened) -> Result<T, StoreError>) -> Result<T, StoreError> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Open(opened) => {
                caught(|| work(opened)).unwrap_or_else(|words| Err(damaged(&self.folder, &words)))
            }
            State::Closed(why) => Err(why.clone()),
        }
    }

    /// Closes sled because of `why`, which is what everyone is told until it is open again.
    pub(super) fn close(&self, why: StoreError) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = State::Closed(why);
    }

    /// Opens sled again after an error. What the system may have forgotten to write is written once more first.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let again = || {
            self.folder.rewrite()?;
            open(&self.folder, self.cache_bytes)
        };
        let opened = with_reserve(&self.folder, again);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match opened {
            Ok(opened) => {
                *state = State::Open(opened);
                Ok(())
            }
            Err(why) => {
                *state = State::Closed(why.clone());
                Err(why)
            }
        }
    }
}

/// Opens sled, on a full disk with the space that was set aside: sled writes when it is opened.
fn with_reserve(
    folder: &Folder,
    open: impl Fn() -> Result<Opened, StoreError>,
) -> Result<Opened, StoreError> {
    match open() {
        Err(StoreError::Full { .. }) if folder.release() => open(),
        opened => opened,
    }
}

fn open(folder: &Folder, cache_bytes: u64) -> Result<Opened, StoreError> {
    let config = sled::Config::new()
        .path(folder.sled())
        .cache_capacity(cache_bytes)
        .mode(sled::Mode::LowSpace)
        .flush_every_ms(None);
    let mut tries = 0;
    let db = loop {
        folder.forget_unfinished()?;
        match caught(|| config.open()) {
            Ok(Ok(db)) => break db,
            Ok(Err(sled::Error::Io(e))) if is_lock(&e) && tries < LOCK_TRIES => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(Err(error)) => return Err(translate(folder, error)),
            Err(words) => return Err(damaged(folder, &words)),
        }
    };
    let file = match folder.settle() {
        Ok(file) => file,
        Err(why) => {
            // Dropping sled can panic as well.
            let _ = caught(|| drop(db));
            return Err(why);
        }
    };
    Ok(Opened { db: Some(db), file })
}

fn is_lock(error: &io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

fn closed(folder: &Folder) -> StoreError {
    StoreError::Io {
        path: folder.path.clone(),
        why: "it is closed".to_owned(),
    }
}

fn damaged(folder: &Folder, words: &str) -> StoreError {
    let first_line = words.lines().next().unwrap_or_default();
    folder.damaged(format!(
        "its log cannot be read ({first_line}); restore the folder from a copy"
    ))
}

/// What an error of sled means.
pub(super) fn translate(folder: &Folder, error: sled::Error) -> StoreError {
    match error {
        sled::Error::Io(e)
            if matches!(
                e.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
            ) =>
        {
            damaged(folder, &e.to_string())
        }
        sled::Error::Io(e) => folder.failed(&e),
        sled::Error::Corruption { .. } => damaged(folder, "a checksum of sled's is wrong"),
        sled::Error::ReportableBug(words) => damaged(folder, &words),
        sled::Error::CollectionNotFound(_) => damaged(folder, "its tree is missing"),
        sled::Error::Unsupported(why) => StoreError::Unusable {
            path: folder.path.clone(),
            why,
        },
    }
}
