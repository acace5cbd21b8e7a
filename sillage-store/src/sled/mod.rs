//! [`SledStore`]: the store on disk.

mod disk;
mod draft;
mod folder;
mod in_flight;
mod keys;
mod ledger;
mod lock;
mod panics;
mod reading;
mod record;
mod request;
mod view;
mod watch;
mod writer;

use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError, Which};
use tokio::sync::oneshot;

pub use self::panics::hush_caught_panics;

use self::disk::Disk;
use self::folder::Folder;
use self::in_flight::InFlight;
use self::lock::Lock;
use self::request::{Append, Chunk, Put, Reply, Request};
use self::view::View;
use self::writer::Writer;

/// How a [`SledStore`] is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the holder is called, for whoever finds the store held.
    pub program: String,
    /// About how many bytes of what is on disk are kept in memory. Reading a long log takes some 30 MB beyond it.
    pub cache_bytes: u64,
}

impl Default for Options {
    /// This program's own name, and 8 MiB: more makes nothing faster that was measured.
    fn default() -> Self {
        let name = std::env::current_exe()
            .ok()
            .and_then(|path| path.file_stem().map(|stem| stem.to_owned()));
        Options {
            program: name.map_or_else(
                || "sillage".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
            cache_bytes: 8 << 20,
        }
    }
}

/// A store on sled. The crate's documentation says how it keeps its promises and what lies on disk.
///
/// Its methods may be called from any executor; on a tokio runtime, reading is handed to the blocking pool. Dropping
/// it waits for what is being written.
#[derive(Debug)]
pub struct SledStore {
    requests: Option<Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

/// What readers and the writing thread share.
#[derive(Debug)]
struct Shared {
    disk: Disk,
    in_flight: InFlight,
    unread: Mutex<HashSet<RunId>>,
    // Freed last, when sled is closed.
    _lock: Lock,
}

impl Shared {
    /// Whether a run must be read before it is written.
    fn is_unread(&self, run: &RunId) -> bool {
        self.unread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(run)
    }

    fn mark_unread(&self, runs: &[RunId]) {
        self.unread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(runs.iter().cloned());
    }

    fn mark_read(&self, run: &RunId) {
        self.unread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(run);
    }
}

impl SledStore {
    /// Opens the store in `folder`, making both where they are missing, and holds it until it is dropped.
    ///
    /// # Errors
    /// [`StoreError::Held`] naming the holder, also when this process itself holds it; [`StoreError::Unusable`] for
    /// a folder that cannot be written; [`StoreError::Full`]; [`StoreError::Newer`]; [`StoreError::Damaged`] when
    /// sled cannot read its log or acknowledged writes are missing from it.
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<SledStore, StoreError> {
        let folder = Folder::create(folder.as_ref())?;
        let lock = Lock::take(&folder, &options.program)?;
        folder.check_format()?;
        let disk = Disk::open(folder, options.cache_bytes)?;
        let shared = Arc::new(Shared {
            disk,
            in_flight: InFlight::default(),
            unread: Mutex::new(HashSet::new()),
            _lock: lock,
        });
        let writer = Writer::new(Arc::clone(&shared))?;
        let (requests, waiting) = channel();
        let mut store = SledStore {
            requests: Some(requests),
            threads: Vec::new(),
            shared,
        };
        let watched = Arc::clone(&store.shared);
        store.spawn("sillage-watch", move || watched.disk.watch())?;
        store.spawn("sillage-store", move || writer.serve(&waiting))?;
        Ok(store)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads
            .push(thread.map_err(|e| self.shared.disk.folder().failed(&e))?);
        Ok(())
    }

    /// How often the disk was waited for since the store was opened: once a group of writes, however many wait.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.shared.disk.syncs()
    }

    /// Asks the writing thread for something, and waits for its answer.
    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let sent = self
            .requests
            .as_ref()
            .is_some_and(|requests| requests.send(request(reply)).is_ok());
        let ended = || StoreError::Io {
            path: self.shared.disk.folder().path.clone(),
            why: "its writing thread has ended; start the program again".to_owned(),
        };
        if !sent {
            return Err(ended());
        }
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Reads something, off the executor's threads.
    async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View<'_>, &Shared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.shared.disk.is_closed() {
            self.ask(Request::Reopen).await?;
        }
        let shared = Arc::clone(&self.shared);
        let work = move || shared.disk.with(|view| work(view, &shared));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => runtime.spawn_blocking(work).await.unwrap_or_else(|e| {
                let path = self.shared.disk.folder().path.clone();
                Err(StoreError::Io {
                    path,
                    why: format!("reading was given up: {e}"),
                })
            }),
            Err(_) => work(),
        }
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        // Without a sender the writing thread ends, and with it the need to watch.
        self.requests.take();
        while let Some(thread) = self.threads.pop() {
            if thread.join().is_err() {
                tracing::error!("a thread of the store had ended with a panic");
            }
            self.shared.disk.end_watch();
        }
    }
}

#[async_trait]
impl Store for SledStore {
    async fn append(
        &self,
        run: &RunId,
        expected: Seq,
        events: Vec<Vec<u8>>,
        summary: &RunSummary,
    ) -> Result<(), StoreError> {
        let (run, summary) = (run.clone(), summary.clone());
        self.ask(|reply| {
            Request::Append(Append {
                run,
                expected,
                events,
                summary,
                reply,
            })
        })
        .await
    }

    async fn read(
        &self,
        run: &RunId,
        from: Seq,
        max_bytes: usize,
    ) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
        let run = run.clone();
        self.look(move |view, shared| {
            // Only a reading that began after the failure counts as having read again.
            let was_unread = shared.is_unread(&run);
            let events = view.events(&run, from, max_bytes, &shared.in_flight)?;
            if was_unread {
                shared.mark_read(&run);
            }
            Ok(events)
        })
        .await
    }

    async fn runs(&self, which: Which, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.look(move |view, shared| view.summaries(which, limit, &shared.in_flight))
            .await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        let run = run.clone();
        self.look(move |view, shared| Ok(shared.in_flight.summary(&run, view.summary(&run)?)))
            .await
    }

    async fn put(&self, kind: &str, name: &str, expected: u64, body: Vec<u8>) -> Result<u64, StoreError> {
        crate::name::check(&self.shared.disk.folder().path, kind, name)?;
        let (kind, name) = (kind.to_owned(), name.to_owned());
        self.ask(|reply| {
            Request::Put(Put {
                kind,
                name,
                expected,
                body,
                reply,
            })
        })
        .await
    }

    async fn get(&self, kind: &str, name: &str) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        self.look(
            move |view, shared| match view.newest_shown(&kind, &name, &shared.in_flight)? {
                0 => Ok(None),
                version => Ok(view.document(&kind, &name, version)?.map(|body| (version, body))),
            },
        )
        .await
    }

    async fn version(&self, kind: &str, name: &str, version: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        self.look(move |view, shared| {
            let body = view.document(&kind, &name, version)?;
            let hidden = shared.in_flight.first_hidden_version(&kind, &name);
            Ok(body.filter(|_| hidden.is_none_or(|hidden| version < hidden)))
        })
        .await
    }

    async fn names(&self, kind: &str) -> Result<Vec<String>, StoreError> {
        let kind = kind.to_owned();
        self.look(move |view, shared| view.names(&kind, &shared.in_flight))
            .await
    }

    async fn add_transcript(
        &self,
        run: &RunId,
        session: ClientSessionId,
        chunk: Vec<u8>,
    ) -> Result<(), StoreError> {
        let run = run.clone();
        self.ask(|reply| {
            Request::Transcript(Chunk {
                run,
                session,
                chunk,
                reply,
            })
        })
        .await
    }

    async fn transcript(&self, run: &RunId, session: ClientSessionId) -> Result<Vec<Vec<u8>>, StoreError> {
        let run = run.clone();
        self.look(move |view, _| view.transcript(&run, session)).await
    }
}
