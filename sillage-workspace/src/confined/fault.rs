//! What can be wrong with a file below a folder, and the version that a save expects.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// A file's content, told by its SHA-256: what a save expects to find. Reads and prints as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version([u8; 32]);

impl Version {
    /// The version of this content.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The version of everything that can be read.
    #[cfg(unix)]
    pub(super) fn of_reader(mut reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(Self(hash.finalize().into())),
                read => hash.update(&buffer[..read]),
            }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let mut bytes = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(NoVersion(text.chars().take(100).collect()));
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).map_err(|_| NoVersion(text.to_owned()))?;
        }
        Ok(Self(bytes))
    }
}

/// A text that is no [`Version`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version of a file: 64 hexadecimal digits")]
pub struct NoVersion(String);

/// What something in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, wherever it leads.
    Link,
    /// A pipe, a socket or a device: never opened for its content.
    Special,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a link",
            Self::Special => "a pipe, a socket or a device",
        })
    }
}

/// Why a file below a folder was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path cannot name anything below a folder.
    #[error("`{path}` cannot name a file in a folder: {why}", path = .path.display())]
    Name {
        /// The path as it was given.
        path: PathBuf,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The path, or a link on its way, leads out of the folder.
    #[error("{path} leads out of {folder}: name something within", path = .path.display(), folder = .folder.display())]
    Outside {
        /// The path as it was given.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// Nothing is there.
    #[error("{} is not there", .0.display())]
    Missing(PathBuf),
    /// Something is there already.
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    /// What is there is not what was asked for.
    #[error("{path} is {is}, not {wanted}", path = .path.display())]
    Kind {
        /// The path as it was given.
        path: PathBuf,
        /// What it is.
        is: Kind,
        /// What was asked for.
        wanted: Kind,
    },
    /// More than is read at once.
    #[error("{path} holds more than {limit} bytes", path = .path.display())]
    TooLong {
        /// The path as it was given.
        path: PathBuf,
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// The file is not the version that the save or removal expected; nothing was changed.
    #[error("{path} was changed meanwhile: read it again", path = .path.display())]
    Conflict {
        /// The path as it was given.
        path: PathBuf,
        /// What is there now; none: it is gone.
        current: Option<Version>,
    },
    /// Another save in the same folder takes too long.
    #[error("another program keeps {} locked: try again", .0.display())]
    Busy(PathBuf),
    /// Another error of the system; what was there before is there still.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The path as it was given.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}
