//! Which places are granted, and which are not though they lie in a folder that is.

use std::ffi::OsStr;
use std::path::{Component, Path};

use super::Bounds;

/// What is to be done at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// Written, and what is in it goes with it.
    Remove,
    /// Read, and perhaps written: what a command does with it is not known.
    Command,
}

impl Access {
    fn may_write(self) -> bool {
        match self {
            Access::Read => false,
            Access::Write | Access::Remove | Access::Command => true,
        }
    }

    fn needs_write(self) -> bool {
        match self {
            Access::Read | Access::Command => false,
            Access::Write | Access::Remove => true,
        }
    }
}

impl Bounds<'_> {
    /// Whether a folder grants this at a real place.
    pub(super) fn grants(&self, place: &Path, access: Access) -> bool {
        if access.needs_write() {
            self.folders.may_write(place)
        } else {
            self.folders.may_read(place)
        }
    }

    /// Whether the place is kept from agents, whatever the folders grant (F6). Names decide, never what exists.
    pub(super) fn protects(&self, place: &Path, access: Access) -> bool {
        let grant = self.deepest_grant(place, access);
        let below = match grant {
            Some(grant) => place.strip_prefix(grant).unwrap_or(place),
            None => place,
        };
        if access.may_write()
            && below
                .components()
                .any(|component| reserved(component.as_os_str()))
        {
            return true;
        }
        let kept = if access.may_write() {
            &self.protected.kept[..]
        } else {
            &[]
        };
        let mut places = self.protected.closed.iter().chain(kept);
        let inside = |protected: &Path| {
            let granted_within = grant.is_some_and(|grant| grant != protected && holds(protected, grant));
            holds(protected, place) && !granted_within
        };
        if places.clone().any(|protected| inside(protected)) {
            return true;
        }
        // What holds such a place, or a whole folder that was granted, does not go with it.
        access == Access::Remove
            && (places.any(|protected| holds(place, protected))
                || self.folders.write.iter().any(|folder| holds(place, folder)))
    }

    /// The innermost folder that holds the place, of those that grant as much.
    fn deepest_grant(&self, place: &Path, access: Access) -> Option<&Path> {
        let readable = if access.may_write() {
            &[]
        } else {
            &self.folders.read[..]
        };
        let granted = self.folders.write.iter().chain(readable);
        granted
            .map(std::path::PathBuf::as_path)
            .filter(|folder| place.starts_with(folder))
            .max_by_key(|folder| folder.components().count())
    }
}

/// Whether the path is the folder or lies in it, were the file system to take capital and small letters for the same.
fn holds(folder: &Path, path: &Path) -> bool {
    let mut names = path.components();
    folder.components().all(|expected| {
        names
            .next()
            .is_some_and(|name| name == expected || same(name, expected))
    })
}

fn same(one: Component<'_>, other: Component<'_>) -> bool {
    plain(&one.as_os_str().to_string_lossy()) == plain(&other.as_os_str().to_string_lossy())
}

/// Whether a file or folder of this name is never written by an agent, wherever it lies: `.git` and `.sillage`, and
/// every other name by which some file system reaches them (capital letters, dots and blanks at the end, characters
/// that are not seen, streams, short names).
#[must_use]
pub fn reserved(name: &OsStr) -> bool {
    name.to_string_lossy().split('\\').any(|part| {
        let name = plain(part);
        let short = |start: &str| {
            let digits = name.strip_prefix(start).unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        matches!(name.as_str(), ".git" | ".sillage") || short("git~") || short("sillag~")
    })
}

/// A name as file systems that take several names for one compare it: small letters (APFS, NTFS), without characters
/// that HFS+ ignores, without a stream's name, dots and blanks at the end (NTFS).
fn plain(name: &str) -> String {
    let name = name.split(':').next().unwrap_or_default();
    let small: String = name
        .chars()
        .filter(|c| {
            !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
        })
        .flat_map(char::to_lowercase)
        .collect();
    small.trim_end_matches(['.', ' ']).to_owned()
}
