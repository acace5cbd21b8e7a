//! The store's folder: what lies where, who may read it, and what of it is synced when.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sillage_core::ports::store::StoreError;

/// The format that this version writes, and the newest that it knows.
pub(super) const FORMAT: u32 = 1;

/// Space that is set aside, so that a full disk can still be opened, read, and told that a run was stopped.
pub(super) const RESERVE: u64 = 4 << 20;

/// How sled calls a snapshot of its log that it has not ended yet: `snap.` and a number, then this.
const UNFINISHED: &str = "generating";

/// The files of a store.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    /// The folder itself.
    pub(super) path: PathBuf,
}

impl Folder {
    /// Makes the folder where it is missing, for its owner alone.
    pub(super) fn create(path: &Path) -> Result<Folder, StoreError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(|e| unusable(path, &e))?;
        let path = path.canonicalize().map_err(|e| unusable(path, &e))?;
        Ok(Folder { path })
    }

    /// sled's own folder.
    pub(super) fn sled(&self) -> PathBuf {
        self.path.join("sled")
    }

    /// The file that sled keeps its log in.
    pub(super) fn db(&self) -> PathBuf {
        self.sled().join("db")
    }

    /// Removes the snapshots of the log that sled had begun and not ended when it was killed or the disk was full. It
    /// gives a snapshot its name when it is whole, and removes the one before only then; but it looks for the newest
    /// by a pattern that takes an unfinished one for that, and calls the store damaged. Without it sled replays from
    /// the one before, or from the log alone.
    pub(super) fn forget_unfinished(&self) -> Result<(), StoreError> {
        let forget = || -> io::Result<()> {
            for entry in fs::read_dir(self.sled())? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == UNFINISHED) {
                    tracing::info!(path = %path.display(), "an unfinished snapshot of the log is forgotten");
                    fs::remove_file(path)?;
                }
            }
            Ok(())
        };
        match forget() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            told => told.map_err(|e| self.failed(&e)),
        }
    }

    /// Opens one of our files for reading and writing, for its owner alone, making it where it is missing.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path.join(name))
    }

    /// Checks the format number of a store that exists; writes it for a new one.
    pub(super) fn check_format(&self) -> Result<(), StoreError> {
        match fs::read_to_string(self.path.join("format")) {
            Ok(text) => self.check_number(&text),
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.db().exists() => self.write_format(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(self.damaged(format!(
                "its file `format` is missing; write the number {FORMAT} into it if no newer version was used, \
                 or restore the folder from a copy"
            ))),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => Err(self.bad_format()),
            Err(e) => Err(unusable(&self.path, &e)),
        }
    }

    fn check_number(&self, text: &str) -> Result<(), StoreError> {
        match text.trim().parse::<u32>() {
            Ok(found) if found > FORMAT => Err(StoreError::Newer {
                path: self.path.clone(),
                found,
                known: FORMAT,
            }),
            Ok(FORMAT) => Ok(()),
            Ok(_) | Err(_) => Err(self.bad_format()),
        }
    }

    fn bad_format(&self) -> StoreError {
        self.damaged(format!(
            "its file `format` holds no known number; write {FORMAT} into it if no newer version was used, or \
             restore the folder from a copy"
        ))
    }

    fn write_format(&self) -> Result<(), StoreError> {
        let write = || -> io::Result<()> {
            let mut file = self.file("format.new")?;
            file.set_len(0)?;
            writeln!(file, "{FORMAT}")?;
            file.sync_all()?;
            fs::rename(self.path.join("format.new"), self.path.join("format"))
        };
        write().map_err(|e| self.failed(&e))
    }

    /// Makes sled's files readable to their owner alone, and syncs everything that sled does not sync itself: its
    /// `conf`, and the names of files and folders. Gives back its `db` file, opened to be synced.
    pub(super) fn settle(&self) -> Result<File, StoreError> {
        let settle = || -> io::Result<File> {
            let db = OpenOptions::new().read(true).write(true).open(self.db())?;
            let conf = File::open(self.sled().join("conf"))?;
            #[cfg(unix)]
            for file in [&db, &conf] {
                file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            }
            db.sync_all()?;
            conf.sync_all()?;
            sync_folder(&self.sled())?;
            sync_folder(&self.path)?;
            if let Some(parent) = self.path.parent() {
                sync_folder(parent)?;
            }
            Ok(db)
        };
        settle().map_err(|e| self.failed(&e))
    }

    /// Writes all that sled's log holds once more and syncs it. After a failed sync the system takes pages for
    /// clean that never reached the disk: reading shows them, and a power cut would take them away.
    pub(super) fn rewrite(&self) -> Result<(), StoreError> {
        let rewrite = || -> io::Result<()> {
            let mut file = OpenOptions::new().read(true).write(true).open(self.db())?;
            let mut buffer = vec![0; 1 << 20];
            let mut at = 0;
            loop {
                file.seek(SeekFrom::Start(at))?;
                let read = io::Read::read(&mut file, &mut buffer)?;
                if read == 0 {
                    return file.sync_all();
                }
                file.seek(SeekFrom::Start(at))?;
                file.write_all(&buffer[..read])?;
                at += read as u64;
            }
        };
        rewrite().map_err(|e| self.failed(&e))
    }

    /// How many bytes can be written where the store lies; none where the system does not say.
    pub(super) fn room(&self) -> Option<u64> {
        #[cfg(unix)]
        {
            let told = rustix::fs::statvfs(&self.path).ok()?;
            Some(told.f_bavail.saturating_mul(told.f_frsize))
        }
        #[cfg(not(unix))]
        None
    }

    /// Sets space aside, where the system can, and tells whether there is some. Not having it is no fault.
    pub(super) fn reserve(&self) -> bool {
        let reserve = || -> io::Result<()> {
            let file = self.file("reserve")?;
            #[cfg(target_os = "linux")]
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE)?;
            #[cfg(not(target_os = "linux"))]
            file.set_len(RESERVE)?;
            Ok(())
        };
        match reserve() {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%error, "no space could be set aside");
                self.release();
                false
            }
        }
    }

    /// Gives the space back that was set aside. Tells whether there was any.
    pub(super) fn release(&self) -> bool {
        fs::remove_file(self.path.join("reserve")).is_ok()
    }

    /// An error of the system on a store that is open.
    pub(super) fn failed(&self, error: &io::Error) -> StoreError {
        let path = self.path.clone();
        if is_full(error) {
            StoreError::Full { path }
        } else if matches!(
            error.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        ) {
            unusable(&path, error)
        } else {
            StoreError::Io {
                path,
                why: error.to_string(),
            }
        }
    }

    /// There is no room.
    pub(super) fn full(&self) -> StoreError {
        let path = self.path.clone();
        StoreError::Full { path }
    }

    /// Damage, with `what` to do about it.
    pub(super) fn damaged(&self, what: String) -> StoreError {
        StoreError::Damaged {
            path: self.path.clone(),
            what,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Whatever else keeps a folder from being used, the person has to see to the folder.
fn unusable(path: &Path, error: &io::Error) -> StoreError {
    let path = path.to_path_buf();
    if is_full(error) {
        return StoreError::Full { path };
    }
    let why = format!("{error}; make it writable for this user, or choose another data folder");
    StoreError::Unusable { path, why }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file, and names are synced with the files.
    if cfg!(unix) {
        File::open(path)?.sync_all()
    } else {
        Ok(())
    }
}

/// How many commits were known to be durable when the file was last written. It is never synced itself, so after a
/// power cut it may be older than the store, never newer: a store with fewer commits has lost some.
#[derive(Debug)]
pub(super) struct Mark {
    file: File,
}

impl Mark {
    /// Opens the mark, and reads it; none where it was never written, was deleted or was torn.
    pub(super) fn open(folder: &Folder) -> Result<(Mark, Option<u64>), StoreError> {
        let open = || -> io::Result<(Mark, Option<u64>)> {
            let mut file = folder.file("mark")?;
            let mut bytes = Vec::with_capacity(12);
            io::Read::read_to_end(&mut io::Read::take(&mut file, 12), &mut bytes)?;
            let commits = bytes
                .first_chunk::<8>()
                .filter(|count| bytes[8..] == crc32c::crc32c(*count).to_be_bytes());
            Ok((Mark { file }, commits.map(|count| u64::from_be_bytes(*count))))
        };
        open().map_err(|e| folder.failed(&e))
    }

    /// Says that this many commits are durable.
    pub(super) fn write(&mut self, commits: u64) {
        let count = commits.to_be_bytes();
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&count);
        bytes[8..].copy_from_slice(&crc32c::crc32c(&count).to_be_bytes());
        let written = self
            .file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.write_all(&bytes));
        if let Err(error) = written {
            tracing::debug!(%error, "the mark could not be written; it stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_a_torn_one_is_none() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::create(home.path()).unwrap();
        let (mut mark, before) = Mark::open(&folder).unwrap();
        assert_eq!(before, None);
        mark.write(7);
        mark.write(8);
        assert_eq!(Mark::open(&folder).unwrap().1, Some(8));
        fs::write(home.path().join("mark"), [0; 11]).unwrap();
        assert_eq!(Mark::open(&folder).unwrap().1, None);
        fs::write(home.path().join("mark"), [0; 12]).unwrap();
        assert_eq!(Mark::open(&folder).unwrap().1, None);
    }

    #[test]
    fn a_newer_format_is_refused_and_a_missing_one_is_written() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::create(home.path()).unwrap();
        folder.check_format().unwrap();
        folder.check_format().unwrap();
        fs::write(home.path().join("format"), "7\n").unwrap();
        assert!(matches!(
            folder.check_format(),
            Err(StoreError::Newer {
                found: 7,
                known: FORMAT,
                ..
            })
        ));
        fs::write(home.path().join("format"), [0xff, 0xfe]).unwrap();
        assert!(matches!(folder.check_format(), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn rewriting_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::create(home.path()).unwrap();
        fs::create_dir(folder.sled()).unwrap();
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_be_bytes()[3]).collect();
        fs::write(folder.db(), &bytes).unwrap();
        folder.rewrite().unwrap();
        assert!(fs::read(folder.db()).unwrap() == bytes);
    }
}
