//! sled, behind what the log needs of it. What sled does not promise is added here: a sync of its file after each flush,
//! and its panics as errors.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::JournalError;

/// How often sled's own lock is tried again: its threads may hold the file a moment longer than its handle.
const LOCK_TRIES: u32 = 500;

/// Memory for what is read again: the log is mostly written.
const CACHE_BYTES: u64 = 32 << 20;

/// How sled calls a snapshot of its log that it has not ended yet. It would take one for the newest, and call the log
/// damaged.
const UNFINISHED: &str = "generating";

/// Something to do in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    Put(Vec<u8>, Vec<u8>),
    /// Removes every key that starts so.
    Remove(Vec<u8>),
}

/// sled on its folder.
pub(super) struct Disk {
    folder: PathBuf,
    db: sled::Db,
    /// sled's file, opened once more: on Linux its flush alone does not reach the disk's promise.
    file: File,
}

impl Disk {
    /// Opens sled in the folder, which this process must have locked. Waits for the lock of sled's own: see
    /// [`super::Journal::open`].
    pub(super) fn open(folder: &Path) -> Result<Disk, JournalError> {
        let place = folder.join("sled");
        let config = sled::Config::new()
            .path(&place)
            .cache_capacity(CACHE_BYTES)
            .mode(sled::Mode::LowSpace)
            .flush_every_ms(None);
        let mut tries = 0;
        let db = loop {
            forget_unfinished(&place).map_err(|error| super::unusable(folder, &error))?;
            match catch_unwind(AssertUnwindSafe(|| config.open())) {
                Ok(Ok(db)) => break db,
                Ok(Err(sled::Error::Io(error)))
                    if error.to_string().contains("could not acquire lock") && tries < LOCK_TRIES =>
                {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(Err(error)) => return Err(unreadable(folder, &error)),
                Err(_) => return Err(damaged(folder, "sled panicked")),
            }
        };
        let file = settle(folder, &place).map_err(|error| super::unusable(folder, &error))?;
        Ok(Disk {
            folder: folder.to_path_buf(),
            db,
            file,
        })
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Does all of it or nothing, and makes it durable.
    pub(super) fn apply(&self, deeds: Vec<Deed>) -> Result<(), JournalError> {
        let apply = || -> Result<(), sled::Error> {
            let mut batch = sled::Batch::default();
            for deed in deeds {
                match deed {
                    Deed::Put(key, value) => batch.insert(key, value),
                    Deed::Remove(prefix) => {
                        for key in self.db.scan_prefix(prefix).keys() {
                            batch.remove(key?);
                        }
                    }
                }
            }
            self.db.apply_batch(batch)?;
            self.db.flush()?;
            Ok(self.file.sync_data()?)
        };
        match catch_unwind(AssertUnwindSafe(apply)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.cannot_write(&error.to_string())),
            Err(_) => Err(self.cannot_write("sled panicked")),
        }
    }

    /// Shows `take` each key that starts with `prefix` and is not below `from`, in order, until it says no.
    pub(super) fn scan(
        &self,
        prefix: &[u8],
        from: &[u8],
        mut take: impl FnMut(&[u8], &[u8]) -> Result<bool, JournalError>,
    ) -> Result<(), JournalError> {
        let mut scan = || -> Result<(), JournalError> {
            for found in self.db.range(from..) {
                let (key, value) = found.map_err(|error| unreadable(&self.folder, &error))?;
                if !key.starts_with(prefix) || !take(&key, &value)? {
                    break;
                }
            }
            Ok(())
        };
        catch_unwind(AssertUnwindSafe(&mut scan))
            .unwrap_or_else(|_| Err(damaged(&self.folder, "sled panicked")))
    }

    fn cannot_write(&self, why: &str) -> JournalError {
        JournalError::Write {
            path: self.folder.clone(),
            why: why.to_owned(),
        }
    }
}

fn forget_unfinished(place: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Makes sled's files readable to their owner alone, syncs what sled does not sync itself, and opens its file.
fn settle(folder: &Path, place: &Path) -> io::Result<File> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(place.join("db"))?;
    let conf = File::open(place.join("conf"))?;
    #[cfg(unix)]
    for file in [&file, &conf] {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    file.sync_all()?;
    conf.sync_all()?;
    // Elsewhere a folder cannot be opened as a file, and names are synced with the files.
    #[cfg(unix)]
    for name in [Some(place), Some(folder), folder.parent()].into_iter().flatten() {
        // A path of one part has an empty parent: the folder that this process works in.
        let name = if name.as_os_str().is_empty() {
            Path::new(".")
        } else {
            name
        };
        File::open(name)?.sync_all()?;
    }
    Ok(file)
}

/// What an error of reading means: only what sled read and does not believe is damage. A log that the system does not
/// give now is not to be moved away.
fn unreadable(folder: &Path, error: &sled::Error) -> JournalError {
    match error {
        sled::Error::Io(cause)
            if !matches!(
                cause.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
            ) =>
        {
            super::unusable(folder, cause)
        }
        sled::Error::Io(_)
        | sled::Error::Corruption { .. }
        | sled::Error::ReportableBug(_)
        | sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_) => damaged(folder, &error.to_string()),
    }
}

fn damaged(folder: &Path, what: &str) -> JournalError {
    JournalError::Damaged {
        path: folder.to_path_buf(),
        what: what.lines().next().unwrap_or_default().to_owned(),
    }
}
