//! Files below a folder, without being led out of it: [`Folder`].
//!
//! Whoever writes in a folder can put links into it, also while a path is being looked up: checking a path first and
//! opening it then loses that race about every other time. So nothing here is opened by its whole path. Windows has
//! no [`Folder`] yet.

#[cfg(unix)]
mod beneath;
mod fault;
#[cfg(unix)]
mod folder;
#[cfg(unix)]
mod save;

use std::path::{Path, PathBuf};

use sillage_core::ports::workspace::WorkspaceError;

pub use fault::{FileError, Kind, NoVersion, Version};
#[cfg(unix)]
pub use folder::{Content, Entry, Folder, Listing};

/// Which of `files` are not regular files with content below `folder`. Links are followed as long as they stay below.
///
/// # Errors
/// [`WorkspaceError::Io`] when the folder itself cannot be opened.
#[cfg(unix)]
pub(crate) fn missing(folder: &Path, files: &[PathBuf]) -> Result<Vec<PathBuf>, WorkspaceError> {
    let granted = Folder::open(folder).map_err(|error| WorkspaceError::Io {
        path: folder.to_owned(),
        words: error.to_string(),
    })?;
    let there = |file: &PathBuf| {
        let below = file.strip_prefix(folder).unwrap_or(file);
        granted.length(below).is_ok_and(|length| length > 0)
    };
    Ok(files.iter().filter(|file| !there(file)).cloned().collect())
}

/// The same, checked before it is looked at rather than while.
///
/// # Errors
/// [`WorkspaceError::Io`] when the folder itself cannot be opened.
#[cfg(not(unix))]
pub(crate) fn missing(folder: &Path, files: &[PathBuf]) -> Result<Vec<PathBuf>, WorkspaceError> {
    let root = folder
        .canonicalize()
        .map_err(|error| crate::folders::io(folder, &error))?;
    let there = |file: &PathBuf| {
        let found = root
            .join(file.strip_prefix(folder).unwrap_or(file))
            .canonicalize();
        found.is_ok_and(|found| {
            let stat = std::fs::symlink_metadata(&found);
            found.starts_with(&root) && stat.is_ok_and(|stat| stat.is_file() && stat.len() > 0)
        })
    };
    Ok(files.iter().filter(|file| !there(file)).cloned().collect())
}

/// Reads a regular file of at most `limit` bytes in a folder that others write to; none where there is no such file
/// or anything else in its place, e.g. a pipe that would never end.
#[cfg(unix)]
pub(crate) fn bounded(folder: &Path, file: impl AsRef<Path>, limit: u64) -> Option<Vec<u8>> {
    let read = Folder::open(folder).and_then(|folder| folder.read(file.as_ref(), limit));
    read.ok().map(|content| content.bytes)
}

/// The same, without a guard against what is put there meanwhile.
#[cfg(not(unix))]
pub(crate) fn bounded(folder: &Path, file: impl AsRef<Path>, limit: u64) -> Option<Vec<u8>> {
    let file = folder.join(file);
    let fits = |found: &std::fs::Metadata| found.is_file() && found.len() <= limit;
    std::fs::metadata(&file).ok().filter(fits)?;
    std::fs::read(file).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_that_leads_out_is_missing() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("inner");
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(outer.path().join("secret"), "s").unwrap();
        fs::write(folder.join("full"), "f").unwrap();
        fs::write(folder.join("empty"), "").unwrap();
        symlink("../secret", folder.join("out")).unwrap();
        symlink(outer.path().join("secret"), folder.join("absolute")).unwrap();
        symlink("../full", folder.join("sub/within")).unwrap();
        symlink("..", folder.join("up")).unwrap();
        let there = ["full", "sub/within", "sub/../full", "./full"];
        let gone = [
            "empty",
            "sub",
            "nothing",
            "out",
            "absolute",
            "up/secret",
            "../secret",
            "../inner/full",
            "",
        ];
        let files: Vec<PathBuf> = there.iter().chain(&gone).map(PathBuf::from).collect();
        let missing = missing(&folder, &files).unwrap();
        assert_eq!(missing, gone.map(PathBuf::from));
    }

    #[test]
    fn an_absolute_path_counts_when_it_lies_below() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        let files = [folder.path().join("a"), PathBuf::from("/etc/passwd")];
        assert_eq!(
            missing(folder.path(), &files).unwrap(),
            [PathBuf::from("/etc/passwd")]
        );
    }
}
