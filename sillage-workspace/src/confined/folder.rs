//! [`Folder`]: reading and listing below a folder that is held open.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::beneath::{self, Way};
use super::fault::{FileError, Kind, Version};

/// The longest path that is looked up, in bytes: the longest that Linux takes.
const LONGEST_PATH: usize = 4095;

/// A folder that was granted, held open since.
///
/// Whatever is put in its place later, and wherever its parents are moved, this stays the folder that was granted:
/// nothing is looked up by its path again. Every path is relative to it and none leads out: not by `..`, not by a
/// link, not by one that is put there while the path is being looked up. Links that stay within are followed;
/// absolute ones never are, since what they name depends on where the folder lies.
///
/// A *hard* link to a file elsewhere cannot be told from any other file. It can be read; a save replaces the name in
/// this folder by a new file and leaves the other name with the old content.
///
/// All calls block for as long as the disk does, never for a writer of a pipe. Elsewhere than on Linux paths are
/// walked name by name, with the same promises.
#[derive(Debug)]
pub struct Folder {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) way: Way,
}

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// All of it.
    pub bytes: Vec<u8>,
    /// What a save of it has to expect.
    pub version: Version,
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name in the folder.
    pub name: OsString,
    /// What it is; links are not followed.
    pub kind: Kind,
    /// Its size in bytes; 0 for what is not a file.
    pub length: u64,
}

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// By name.
    pub entries: Vec<Entry>,
    /// Whether there is more than was asked for.
    pub more: bool,
}

impl Folder {
    /// Grants this folder: from here on it is held open. Links in `path` itself are followed, once.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Kind`] or [`FileError::Io`].
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, path, flags, Mode::empty()) {
            Ok(fd) => Ok(Self {
                fd,
                path: path.to_owned(),
                way: Way::Kernel,
            }),
            Err(Errno::NOENT) => Err(FileError::Missing(path.to_owned())),
            Err(Errno::NOTDIR) => Err(FileError::Kind {
                path: path.to_owned(),
                is: Kind::File,
                wanted: Kind::Folder,
            }),
            Err(error) => Err(io(path, error)),
        }
    }

    /// Looks paths up name by name from here on, as it is done where the kernel cannot do it at once. Slower, and with
    /// the same promises.
    #[must_use]
    pub fn walking(mut self) -> Self {
        self.way = Way::Walk;
        self
    }

    /// The path under which the folder was granted, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Grants a folder below this one.
    ///
    /// # Errors
    /// By cause.
    pub fn folder(&self, path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            fd: self.open_folder(path)?,
            path: self.path.join(path),
            way: self.way,
        })
    }

    /// Reads a regular file of at most `limit` bytes.
    ///
    /// # Errors
    /// [`FileError::TooLong`], [`FileError::Kind`] for anything but a file, and the others by cause.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Content, FileError> {
        let bytes = self.read_at(path, path, limit, OFlags::empty())?;
        let version = Version::of(&bytes);
        Ok(Content { bytes, version })
    }

    /// The size in bytes of a regular file, which is not opened for its content.
    ///
    /// # Errors
    /// [`FileError::Kind`] for anything but a file, and the others by cause.
    pub fn length(&self, path: &Path) -> Result<u64, FileError> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let flags = OFlags::PATH;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        checked(path, &self.path)?;
        let found = self.open_at(path, path, flags)?;
        let stat = fstat(found).map_err(|error| io(path, error))?;
        regular(path, &stat)
    }

    /// What a folder below holds, at most `limit` things; `.` is this folder itself. What a cut save left behind is
    /// not told.
    ///
    /// # Errors
    /// By cause.
    pub fn list(&self, path: &Path, limit: usize) -> Result<Listing, FileError> {
        let folder = self.open_folder(path)?;
        let mut listing = Listing::default();
        for entry in Dir::read_from(&folder).map_err(|error| io(path, error))? {
            let entry = entry.map_err(|error| io(path, error))?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." || super::save::is_leftover(&name) {
                continue;
            }
            if listing.entries.len() == limit {
                listing.more = true;
                break;
            }
            // Gone since it was listed: as good as never there.
            if let Ok(stat) = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                let kind = kind(&stat);
                let length = if kind == Kind::File { length(&stat) } else { 0 };
                listing.entries.push(Entry { name, kind, length });
            }
        }
        listing.entries.sort();
        Ok(listing)
    }

    /// Opens a folder below, to read names or to save in.
    pub(super) fn open_folder(&self, path: &Path) -> Result<OwnedFd, FileError> {
        checked(path, &self.path)?;
        self.open_folder_at(path, path)
    }

    pub(super) fn open_folder_at(&self, path: &Path, told: &Path) -> Result<OwnedFd, FileError> {
        self.open_at(path, told, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Reads what `path` names; errors speak of `told`.
    pub(super) fn read_at(
        &self,
        path: &Path,
        told: &Path,
        limit: u64,
        flags: OFlags,
    ) -> Result<Vec<u8>, FileError> {
        checked(path, &self.path)?;
        // A pipe would wait for a writer, a terminal would become ours.
        let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open_at(path, told, flags)?;
        let stat = fstat(&file).map_err(|error| io(told, error))?;
        let long = || FileError::TooLong {
            path: told.to_owned(),
            limit,
        };
        if regular(told, &stat)? > limit {
            return Err(long());
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        File::from(file)
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|source| FileError::Io {
                path: told.to_owned(),
                source,
            })?;
        if u64::try_from(bytes.len()).is_ok_and(|read| read > limit) {
            return Err(long());
        }
        Ok(bytes)
    }

    pub(super) fn open_at(&self, path: &Path, told: &Path, flags: OFlags) -> Result<OwnedFd, FileError> {
        let opened = beneath::open(self.fd.as_fd(), path, flags, Mode::empty(), self.way);
        opened.map_err(|error| self.told(told, error, flags))
    }

    /// An error of the system about a path below.
    pub(super) fn told(&self, path: &Path, error: Errno, flags: OFlags) -> FileError {
        let wanted = if flags.contains(OFlags::DIRECTORY) {
            Kind::Folder
        } else {
            Kind::File
        };
        match error {
            Errno::NOENT => FileError::Missing(path.to_owned()),
            Errno::XDEV => FileError::Outside {
                path: path.to_owned(),
                folder: self.path.clone(),
            },
            Errno::NOTDIR if wanted == Kind::Folder => FileError::Kind {
                path: path.to_owned(),
                is: Kind::File,
                wanted,
            },
            Errno::NOTDIR => FileError::Missing(path.to_owned()),
            Errno::ISDIR => FileError::Kind {
                path: path.to_owned(),
                is: Kind::Folder,
                wanted,
            },
            // A socket cannot be opened, nor a device without a driver.
            Errno::NXIO | Errno::NODEV => FileError::Kind {
                path: path.to_owned(),
                is: Kind::Special,
                wanted,
            },
            Errno::NAMETOOLONG => FileError::Name {
                path: path.to_owned(),
                why: "it is too long: shorten it",
            },
            other => io(path, other),
        }
    }
}

/// Fails for a path that cannot name anything below a folder. Nothing is decoded: `%2e`, `~` and `file:` are names
/// like any other.
pub(super) fn checked(path: &Path, folder: &Path) -> Result<(), FileError> {
    let bytes = path.as_os_str().as_bytes();
    let name = |why| {
        Err(FileError::Name {
            path: path.to_owned(),
            why,
        })
    };
    if bytes.is_empty() {
        return name("it is empty");
    }
    if bytes.contains(&0) {
        return name("it holds a NUL: leave it out");
    }
    if bytes.len() > LONGEST_PATH {
        return name("it is too long: shorten it");
    }
    if path.is_absolute() {
        return Err(FileError::Outside {
            path: path.to_owned(),
            folder: folder.to_owned(),
        });
    }
    Ok(())
}

/// The folder and the last name of a path that shall name a file.
pub(super) fn split<'a>(path: &'a Path, folder: &Path) -> Result<(&'a Path, OsString), FileError> {
    checked(path, folder)?;
    let bytes = path.as_os_str().as_bytes();
    let plain = !bytes.ends_with(b"/") && !bytes.ends_with(b"/.") && bytes != b".";
    match path.components().next_back() {
        Some(Component::Normal(name)) if plain => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok((parent.unwrap_or(Path::new(".")), name.to_owned()))
        }
        _ => Err(FileError::Name {
            path: path.to_owned(),
            why: "it names a folder: name a file in it",
        }),
    }
}

pub(super) fn kind(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Kind::Special,
    }
}

/// The size of a regular file.
///
/// # Errors
/// [`FileError::Kind`] for anything else.
pub(super) fn regular(path: &Path, stat: &Stat) -> Result<u64, FileError> {
    match kind(stat) {
        Kind::File => Ok(length(stat)),
        is @ (Kind::Folder | Kind::Link | Kind::Special) => Err(FileError::Kind {
            path: path.to_owned(),
            is,
            wanted: Kind::File,
        }),
    }
}

fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

pub(super) fn io(path: &Path, error: Errno) -> FileError {
    FileError::Io {
        path: path.to_owned(),
        source: error.into(),
    }
}
