//! Where things lie in the data folder, and writing there so that a crash leaves the old or the new.

use std::fs;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use sillage_core::ports::workspace::WorkspaceError;

/// An error of the system.
pub(crate) fn io(path: &Path, error: &std::io::Error) -> WorkspaceError {
    WorkspaceError::Io {
        path: path.to_owned(),
        words: error.to_string(),
    }
}

/// Our folders for one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folders {
    /// `git/<key>`: shadow, indexes, records of leases, the lock.
    pub(crate) own: PathBuf,
    /// `worktrees/<key>`: `<run>/<step>` below it.
    pub(crate) worktrees: PathBuf,
    /// `trash`.
    pub(crate) trash: PathBuf,
    key: String,
}

impl Folders {
    /// The folders for the repository with this git folder; makes them.
    pub(crate) fn of(data: &Path, common: &Path) -> Result<Self, WorkspaceError> {
        let key = key(common)?;
        let folders = Self {
            own: data.join("git").join(&key),
            worktrees: data.join("worktrees").join(&key),
            trash: data.join("trash"),
            key,
        };
        for folder in [&folders.own, &folders.worktrees, &folders.trash] {
            create(folder)?;
        }
        Ok(folders)
    }

    pub(crate) fn shadow(&self, format: &str) -> PathBuf {
        self.own.join(format!("shadow-{format}"))
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.own.join("lock")
    }

    /// The index of ours for a worktree, and the record of its lease.
    ///
    /// # Errors
    /// When the worktree is not `<run>/<step>` in our folder.
    pub(crate) fn place(&self, worktree: &Path) -> Result<Place, WorkspaceError> {
        let within = worktree.strip_prefix(&self.worktrees).ok();
        let parts: Vec<Component<'_>> = within.map(|path| path.components().collect()).unwrap_or_default();
        let [Component::Normal(run), Component::Normal(step)] = parts.as_slice() else {
            let why = format!("it does not lie in {}", self.worktrees.display());
            return Err(WorkspaceError::Unsupported {
                path: worktree.to_owned(),
                why,
            });
        };
        let file = |folder: &str, end: &str| {
            let mut name = step.to_os_string();
            name.push(end);
            self.own.join(folder).join(run).join(name)
        };
        Ok(Place {
            index: file("indexes", ".index"),
            fresh_index: file("indexes", ".fresh"),
            record: file("leases", ".json"),
        })
    }

    /// A new name in the trash; `seconds` since 1970 let it be emptied by age.
    pub(crate) fn trash_name(&self, worktree: &Path, seconds: u64) -> PathBuf {
        let within = worktree.strip_prefix(&self.worktrees).unwrap_or(worktree);
        let label = within.to_string_lossy().replace(['/', '\\'], "-");
        let names = (0_u32..).map(|n| self.trash.join(format!("{seconds}-{}-{label}-{n}", self.key)));
        names
            .into_iter()
            .find(|path| fs::symlink_metadata(path).is_err())
            .unwrap_or_else(|| self.trash.clone())
    }
}

/// Files of ours about one worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Kept between commits, for speed.
    pub(crate) index: PathBuf,
    /// Filled afresh to judge what a worktree holds.
    pub(crate) fresh_index: PathBuf,
    pub(crate) record: PathBuf,
}

/// The same for every path that leads to this git folder.
#[cfg(unix)]
fn key(common: &Path) -> Result<String, WorkspaceError> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(common).map_err(|error| io(common, &error))?;
    Ok(format!("{:x}-{:x}", found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn key(common: &Path) -> Result<String, WorkspaceError> {
    let hex = |text: &str| {
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    Ok(format!("{:x}", hex(&common.to_string_lossy())))
}

/// Makes a folder and those above it, for this person only.
pub(crate) fn create(folder: &Path) -> Result<(), WorkspaceError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| io(folder, &error))
}

/// Makes the folder that a file of ours lies in.
pub(crate) fn create_parent(file: &Path) -> Result<(), WorkspaceError> {
    file.parent().map_or(Ok(()), create)
}

/// Writes a file whole or not at all; what was there before is replaced.
pub(crate) fn replace(file: &Path, bytes: &[u8]) -> Result<(), WorkspaceError> {
    create_parent(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let write = || {
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(bytes)?;
        new.as_file().sync_all()?;
        new.persist(file).map_err(|error| error.error)
    };
    write().map(drop).map_err(|error| io(file, &error))
}

/// Reads a regular file of at most `limit` bytes, wherever links lead; none where there is nothing, or something that
/// is no file: a pipe would wait for a writer, a device might never end.
pub(crate) fn read_bounded(file: &Path, limit: u64) -> Result<Option<Vec<u8>>, WorkspaceError> {
    let mut options = fs::File::options();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let Ok(open) = options.open(file) else {
        return Ok(None);
    };
    if !open.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = open.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| io(file, &error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) {
        return Err(WorkspaceError::Io {
            path: file.to_owned(),
            words: format!("holds more than {limit} bytes: shorten it"),
        });
    }
    Ok(Some(bytes))
}

/// Removes a file that may be missing.
pub(crate) fn remove_file(file: &Path) -> Result<(), WorkspaceError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(file, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether something is there, a dangling link included.
pub(crate) fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}
