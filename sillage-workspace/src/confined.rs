//! Files below a folder, without being led out of it.

use std::path::{Path, PathBuf};

use sillage_core::ports::workspace::WorkspaceError;

/// Which of `files` are not regular files with content below `folder`. Links are followed as long as they stay
/// below; on Linux the kernel sees to that, and what is looked at is what was found, whatever moves meanwhile.
///
/// # Errors
/// [`WorkspaceError::Io`] when the folder itself cannot be opened.
pub(crate) fn missing(folder: &Path, files: &[PathBuf]) -> Result<Vec<PathBuf>, WorkspaceError> {
    let root = root::open(folder).map_err(|error| crate::folders::io(folder, &error))?;
    let there = |file: &PathBuf| {
        let below = file.strip_prefix(folder).unwrap_or(file);
        root::length_of(&root, below).is_some_and(|length| length > 0)
    };
    Ok(files.iter().filter(|file| !there(file)).cloned().collect())
}

#[cfg(target_os = "linux")]
mod root {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

    pub(super) type Root = OwnedFd;

    pub(super) fn open(folder: &Path) -> std::io::Result<Root> {
        Ok(openat(
            CWD,
            folder,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?)
    }

    /// The size in bytes of a regular file, which is not opened: a pipe would wait for a writer.
    pub(super) fn length_of(root: &Root, file: &Path) -> Option<u64> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let found = openat2(root, file, flags, Mode::empty(), within).ok()?;
        let stat = fstat(found).ok()?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        regular.then(|| u64::try_from(stat.st_size).unwrap_or(0))
    }
}

#[cfg(not(target_os = "linux"))]
mod root {
    use std::path::{Path, PathBuf};

    pub(super) type Root = PathBuf;

    pub(super) fn open(folder: &Path) -> std::io::Result<Root> {
        folder.canonicalize()
    }

    /// The size in bytes of a regular file. Who moves links between the two looks could lead it out of the folder:
    /// only Linux tells otherwise.
    pub(super) fn length_of(root: &Root, file: &Path) -> Option<u64> {
        let found = root.join(file).canonicalize().ok()?;
        let stat = std::fs::symlink_metadata(&found).ok()?;
        (found.starts_with(root) && stat.is_file()).then_some(stat.len())
    }
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
