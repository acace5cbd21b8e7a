//! What the gateway acknowledged, kept through a kill and a power cut (L11).
//!
//! One thread writes: it takes all that waits, writes it as one batch, and flushes once. A write is asked for while the
//! book is locked, so that what is kept is in the order in which it happened; whoever asked then waits for its
//! [`Ticket`] before anybody is told. After an error nothing more is written: what was half done is known only by
//! reading it again, and that is what the next start does.
//!
//! Why sled, and not the engine's store: that one keeps runs, which are none of the gateway's business, and adapters do
//! not see each other. Why not files of our own: keys in order, batches that are there whole or not at all, and one
//! flush for many sessions are what sled is for.

mod records;
mod sled;

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sillage_core::time::Timestamp;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use self::sled::Disk;
use super::book::{Change, Kept, Tomb};
use crate::wire;

/// How long a gateway that is ending is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// The most changes that go into one batch.
const GROUP: usize = 4096;

/// Why something could not be kept or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process holds the folder.
    #[error("the folder {} is held by another gateway: stop that one, or name another folder", path.display())]
    Held {
        /// The folder.
        path: PathBuf,
    },
    /// The folder cannot be used.
    #[error("cannot use the folder {}: {why}; make it writable for this user, or name another", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// What was written cannot be trusted.
    #[error("the log in {} is damaged ({what}): move the folder away, and its sessions are forgotten", path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// Where, and how.
        what: String,
    },
    /// A write failed, and nothing is written any more.
    #[error("cannot write the log in {}: {why}; mend that and start the gateway again", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
}

/// What an earlier gateway kept.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) sessions: Vec<Kept>,
    pub(crate) tombs: Vec<(Uuid, Tomb)>,
}

/// Whom to tell of an event number once the event is durable.
pub(crate) type Announcement = (watch::Sender<u64>, u64);

struct Request {
    changes: Vec<Change>,
    announce: Option<Announcement>,
    done: oneshot::Sender<Result<(), JournalError>>,
}

/// The log.
pub(crate) struct Journal {
    disk: Arc<Disk>,
    sender: Option<mpsc::Sender<Request>>,
    writer: Option<std::thread::JoinHandle<()>>,
    failed: watch::Receiver<Option<JournalError>>,
    // Held until the last write is done.
    lock: File,
}

/// A write on its way: ready once it is durable.
#[must_use = "nobody may be told before it is durable"]
pub(crate) struct Ticket {
    done: oneshot::Receiver<Result<(), JournalError>>,
    path: PathBuf,
}

impl Future for Ticket {
    type Output = Result<(), JournalError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        std::pin::Pin::new(&mut self.done).poll(context).map(|told| {
            told.unwrap_or_else(|_| {
                let why = "it was closed".to_owned();
                Err(JournalError::Write {
                    path: self.path.clone(),
                    why,
                })
            })
        })
    }
}

impl Journal {
    /// Opens the log in a folder, which is made where it is missing, and reads what it keeps. Blocks: it reads the disk,
    /// and waits for a moment for a gateway that is just ending.
    pub(crate) fn open(folder: &Path) -> Result<(Journal, Loaded), JournalError> {
        let lock = locked(folder)?;
        let disk = Arc::new(Disk::open(folder)?);
        let loaded = records::load(&disk)?;
        let (sender, receiver) = mpsc::channel();
        let (failing, failed) = watch::channel(None);
        let writing = Arc::clone(&disk);
        let writer = std::thread::Builder::new()
            .name("relais-log".to_owned())
            .spawn(move || write(&writing, &receiver, &failing))
            .map_err(|error| unusable(folder, &error))?;
        let journal = Journal {
            disk,
            sender: Some(sender),
            writer: Some(writer),
            failed,
            lock,
        };
        Ok((journal, loaded))
    }

    /// Asks for these changes to be kept. With none, the ticket is ready once all that was asked for before is durable.
    /// What is to be announced is, whether or not the ticket is waited for.
    pub(crate) fn write(&self, changes: Vec<Change>, announce: Option<Announcement>) -> Ticket {
        let (done, ticket) = oneshot::channel();
        if let Some(sender) = &self.sender {
            // The writer ends only after this is dropped; if it is gone all the same, the ticket says so.
            let _ = sender.send(Request {
                changes,
                announce,
                done,
            });
        }
        Ticket {
            done: ticket,
            path: self.disk.folder().to_path_buf(),
        }
    }

    /// A session's events after number `after`, at most so many. Reads the disk.
    pub(crate) fn events(
        &self,
        id: Uuid,
        after: u64,
        most: usize,
    ) -> Result<Vec<Arc<wire::Event>>, JournalError> {
        records::events(&self.disk, id, after, most)
    }

    /// Set once a write has failed.
    pub(crate) fn failed(&self) -> watch::Receiver<Option<JournalError>> {
        self.failed.clone()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            // It panics only with sled, and what was not written was not acknowledged.
            let _ = writer.join();
        }
        let _ = self.lock.unlock();
    }
}

/// Writes until nobody can ask any more.
fn write(disk: &Disk, requests: &mpsc::Receiver<Request>, failing: &watch::Sender<Option<JournalError>>) {
    while let Ok(first) = requests.recv() {
        let mut group = vec![first];
        let mut size = group[0].changes.len();
        while size < GROUP
            && let Ok(next) = requests.try_recv()
        {
            size += next.changes.len();
            group.push(next);
        }
        let before = failing.borrow().clone();
        let outcome = match before {
            Some(error) => Err(error),
            None if size == 0 => Ok(()),
            None => records::write(disk, group.iter().flat_map(|request| &request.changes)),
        };
        if let Err(error) = &outcome {
            failing.send_if_modified(|told| {
                let first = told.is_none();
                told.get_or_insert_with(|| error.clone());
                first
            });
        }
        for request in group {
            if let (Ok(()), Some((published, number))) = (&outcome, request.announce) {
                published.send_if_modified(|told| std::mem::replace(told, number.max(*told)) < number);
            }
            // Whoever asked may have gone.
            let _ = request.done.send(outcome.clone());
        }
    }
}

/// The folder, made for its owner alone, and its lock.
fn locked(folder: &Path) -> Result<File, JournalError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| unusable(folder, &error))?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options
        .open(folder.join("lock"))
        .map_err(|error| unusable(folder, &error))?;
    let given_up = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => {
                // For people who look; the lock is the kernel's.
                let _ = file
                    .set_len(0)
                    .and_then(|()| writeln!(file, "{}", std::process::id()));
                return Ok(file);
            }
            Err(TryLockError::WouldBlock) if Instant::now() < given_up => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let path = folder.to_path_buf();
                return Err(JournalError::Held { path });
            }
            Err(TryLockError::Error(error)) => return Err(unusable(folder, &error)),
        }
    }
}

fn unusable(folder: &Path, error: &std::io::Error) -> JournalError {
    JournalError::Folder {
        path: folder.to_path_buf(),
        why: error.to_string(),
    }
}

impl Loaded {
    /// The newest instant that it knows of: the clock may have been set back since.
    pub(crate) fn newest(&self) -> Timestamp {
        let heads = self.sessions.iter().map(|kept| kept.head.last_activity);
        heads.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
