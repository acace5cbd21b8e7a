//! Writing below a folder: whole or not at all, and only over the version that was expected.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, fchown, flock, fstat, fsync, mkdirat,
    openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::beneath::{self, MOST_LINKS};
use super::fault::{FileError, Kind, Version};
use super::folder::{Folder, checked, io, kind, regular, split};

/// The largest file that is saved over, in bytes: its version has to be read.
const LARGEST: u64 = 256 * 1024 * 1024;
/// How long another save in the same folder is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries: no notice comes from another process.
const BETWEEN_TRIES: Duration = Duration::from_millis(2);
/// How what is being written is called until it is whole.
const START: &str = ".sillage-save-";
const END: &str = ".tmp";

/// Whether this is the name of something that a save had not finished.
pub(super) fn is_leftover(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    bytes.starts_with(START.as_bytes()) && bytes.ends_with(END.as_bytes())
}

/// Where a file lies in fact, links followed.
struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl Folder {
    /// Makes a file that is not there yet, as private as the person's usual new files. The folder that it lies in
    /// must be there.
    ///
    /// # Errors
    /// [`FileError::Exists`] when something has that name, be it a link that leads nowhere; the others by cause.
    pub fn create(&self, path: &Path, bytes: &[u8]) -> Result<Version, FileError> {
        let (folder, name) = split(path, &self.path)?;
        let folder = self.open_folder_at(folder, path)?;
        lock(&folder, path)?;
        sweep(folder.as_fd(), path)?;
        let new = New::write(folder.as_fd(), path, bytes, None)?;
        new.put_beside(&name, path)?;
        Ok(Version::of(bytes))
    }

    /// Makes a folder, of which the one above must be there.
    ///
    /// # Errors
    /// [`FileError::Exists`] and the others by cause.
    pub fn create_folder(&self, path: &Path) -> Result<(), FileError> {
        let (folder, name) = split(path, &self.path)?;
        let folder = self.open_folder_at(folder, path)?;
        match mkdirat(&folder, &name, Mode::from_raw_mode(0o777)) {
            Ok(()) => fsync(&folder).map_err(|error| io(path, error)),
            Err(Errno::EXIST) => Err(FileError::Exists(path.to_owned())),
            Err(error) => Err(self.told(path, error, OFlags::empty())),
        }
    }

    /// Writes a file over the version that was read before. Who reads at that moment, or after a crash, finds the
    /// old content or the new one, whole.
    ///
    /// A link that stays within the folder is followed: what it leads to is replaced and the link stays. The new
    /// file has the old one's permissions, without set-user and set-group, and its owner where that may be given, but no access
    /// lists or other attributes; another hard link to the old file keeps the old content. Of several saves over the same version by this
    /// library, in any process, exactly one succeeds. Other programs do not take part in that: one that writes in
    /// the moment between the last look and the rename is overwritten.
    ///
    /// # Errors
    /// [`FileError::Conflict`] with the version that is there instead, [`FileError::Busy`], and the others by cause.
    pub fn save(&self, path: &Path, bytes: &[u8], expected: Version) -> Result<Version, FileError> {
        let place = self.resolve(path)?;
        lock(&place.folder, path)?;
        sweep(place.folder.as_fd(), path)?;
        let old = self.expect(&place, path, expected)?;
        let new = New::write(place.folder.as_fd(), path, bytes, Some(&old))?;
        // Once more, now that all the slow work is done.
        self.expect(&place, path, expected)?;
        new.replace(&place.name, path)?;
        Ok(Version::of(bytes))
    }

    /// Removes a file of the version that was read before. Of a link it is the link that is removed.
    ///
    /// # Errors
    /// [`FileError::Conflict`] with the version that is there instead, and the others by cause.
    pub fn remove(&self, path: &Path, expected: Version) -> Result<(), FileError> {
        let (folder, name) = split(path, &self.path)?;
        let folder = self.open_folder_at(folder, path)?;
        lock(&folder, path)?;
        match self.read(path, LARGEST) {
            Ok(content) if content.version == expected => {}
            Ok(content) => return Err(conflict(path, Some(content.version))),
            Err(FileError::Missing(_)) => return Err(conflict(path, None)),
            Err(other) => return Err(other),
        }
        unlinkat(&folder, &name, AtFlags::empty())
            .map_err(|error| self.told(path, error, OFlags::empty()))?;
        fsync(&folder).map_err(|error| io(path, error))
    }

    /// Replaces a file of git as git does, by renaming its lock over it.
    pub(crate) fn replace_by_lock(&self, lock: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(&self.fd, lock, flags, Mode::from_raw_mode(0o666))?).write_all(bytes)?;
        Ok(renameat(&self.fd, lock, &self.fd, name)?)
    }

    /// Removes what saves that were cut left in a folder below. Each save does so in its own folder; this is for a
    /// program's start.
    ///
    /// # Errors
    /// By cause.
    pub fn sweep(&self, path: &Path) -> Result<(), FileError> {
        checked(path, &self.path)?;
        let folder = self.open_folder_at(path, path)?;
        lock(&folder, path)?;
        sweep(folder.as_fd(), path)
    }

    /// Finds the folder in which a file lies in fact. Each step is looked up from the granted folder again, so that
    /// none can lead out.
    fn resolve(&self, path: &Path) -> Result<Place, FileError> {
        let mut now = path.to_owned();
        for _ in 0..MOST_LINKS {
            let (parent, name) = split(&now, &self.path).map_err(|error| {
                if now == path {
                    return error;
                }
                FileError::Kind {
                    path: path.to_owned(),
                    is: Kind::Folder,
                    wanted: Kind::File,
                }
            })?;
            let folder = self.open_folder_at(parent, path)?;
            let stat = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW);
            match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
                Ok(FileType::Symlink) => {
                    let target = beneath::target(folder.as_fd(), &name).map_err(|error| io(path, error))?;
                    if target.is_absolute() {
                        return Err(self.told(path, Errno::XDEV, OFlags::empty()));
                    }
                    now = parent.join(target);
                }
                Ok(_) | Err(Errno::NOENT) => return Ok(Place { folder, name }),
                Err(error) => return Err(self.told(path, error, OFlags::empty())),
            }
        }
        Err(io(path, Errno::LOOP))
    }

    /// The file at a place, if it has the version that is expected.
    fn expect(&self, place: &Place, path: &Path, expected: Version) -> Result<Stat, FileError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&place.folder, &place.name, flags, Mode::empty()) {
            Ok(file) => file,
            // A link since it was resolved: another file than the one that was read.
            Err(Errno::NOENT | Errno::LOOP) => return Err(conflict(path, None)),
            Err(error) => return Err(self.told(path, error, OFlags::empty())),
        };
        let stat = fstat(&file).map_err(|error| io(path, error))?;
        if regular(path, &stat)? > LARGEST {
            return Err(FileError::TooLong {
                path: path.to_owned(),
                limit: LARGEST,
            });
        }
        let current = Version::of_reader(std::io::Read::take(File::from(file), LARGEST));
        let current = current.map_err(|source| FileError::Io {
            path: path.to_owned(),
            source,
        })?;
        if current == expected {
            Ok(stat)
        } else {
            Err(conflict(path, Some(current)))
        }
    }
}

/// Keeps every other save out of a folder until `folder` is closed.
fn lock(folder: &OwnedFd, path: &Path) -> Result<(), FileError> {
    let start = Instant::now();
    loop {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if start.elapsed() < PATIENCE => std::thread::sleep(BETWEEN_TRIES),
            Err(Errno::WOULDBLOCK) => return Err(FileError::Busy(path.to_owned())),
            Err(error) => return Err(io(path, error)),
        }
    }
}

/// Removes what cut saves left in a folder of which the lock is held: no save is under way there.
fn sweep(folder: BorrowedFd<'_>, path: &Path) -> Result<(), FileError> {
    for entry in rustix::fs::Dir::read_from(folder).map_err(|error| io(path, error))? {
        let entry = entry.map_err(|error| io(path, error))?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let file = |stat: Stat| kind(&stat) == Kind::File;
        if is_leftover(name) && statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(file) {
            match unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(io(path, error)),
            }
        }
    }
    Ok(())
}

/// A file written whole under a name of its own, which goes away unless it is given its real one.
struct New<'a> {
    folder: BorrowedFd<'a>,
    name: Option<OsString>,
}

impl<'a> New<'a> {
    fn write(
        folder: BorrowedFd<'a>,
        path: &Path,
        bytes: &[u8],
        old: Option<&Stat>,
    ) -> Result<Self, FileError> {
        // Nobody can have put something there before: neither a file of theirs nor a link is written through.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        let mut tries = 0;
        let (file, name) = loop {
            let random = std::hash::RandomState::new().build_hasher().finish();
            let name = OsString::from(format!("{START}{random:016x}{END}"));
            match openat(folder, &name, flags, mode) {
                Ok(file) => break (File::from(file), name),
                Err(Errno::EXIST) if tries < 16 => tries += 1,
                Err(error) => return Err(io(path, error)),
            }
        };
        let new = Self {
            folder,
            name: Some(name),
        };
        if let Some(old) = old {
            // Only the system's own user may give files away; whose it is otherwise stays ours.
            let _ = fchown(
                &file,
                Some(Uid::from_raw(old.st_uid)),
                Some(Gid::from_raw(old.st_gid)),
            );
            let mode = Mode::from_raw_mode(old.st_mode & 0o777);
            fchmod(&file, mode).map_err(|error| io(path, error))?;
        }
        (&file)
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|source| FileError::Io {
                path: path.to_owned(),
                source,
            })?;
        Ok(new)
    }

    /// Takes the place of what is there.
    fn replace(mut self, name: &OsStr, path: &Path) -> Result<(), FileError> {
        if let Some(own) = &self.name {
            renameat(self.folder, own, self.folder, name).map_err(|error| io(path, error))?;
        }
        self.name = None;
        fsync(self.folder).map_err(|error| io(path, error))
    }

    /// Takes a name that nothing has.
    fn put_beside(mut self, name: &OsStr, path: &Path) -> Result<(), FileError> {
        let placed = match &self.name {
            Some(own) => rename_to_free(self.folder, own, name),
            None => Ok(()),
        };
        match placed {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(FileError::Exists(path.to_owned())),
            Err(Errno::NAMETOOLONG) => {
                return Err(FileError::Name {
                    path: path.to_owned(),
                    why: "it is too long: shorten it",
                });
            }
            Err(error) => return Err(io(path, error)),
        }
        self.name = None;
        fsync(self.folder).map_err(|error| io(path, error))
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // The next save there tries again.
            let _ = unlinkat(self.folder, name, AtFlags::empty());
        }
    }
}

/// Renames unless something has the name.
fn rename_to_free(folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
            // A file system or kernel that knows no such rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            other => return other,
        }
    }
    rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
    unlinkat(folder, from, AtFlags::empty())
}

fn conflict(path: &Path, current: Option<Version>) -> FileError {
    FileError::Conflict {
        path: path.to_owned(),
        current,
    }
}
