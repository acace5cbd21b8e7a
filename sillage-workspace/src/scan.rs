//! Looking through a worktree and at the processes that work there, without git.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use sillage_core::ports::workspace::WorkspaceError;

use crate::folders::io;

/// What git would trip over or not look into; paths are relative to the worktree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Folders that are repositories of their own. They are not looked into.
    pub(crate) nested: Vec<PathBuf>,
    /// Pipes, sockets and devices: reading one could wait for ever, and git refuses to add them.
    pub(crate) special: Vec<PathBuf>,
    /// Those of them that git reads by itself, wherever they are.
    pub(crate) blocking: Vec<PathBuf>,
    /// What another system could take for a git folder: git refuses to add anything there, and all else with it.
    pub(crate) refused: Vec<PathBuf>,
}

/// Files that git opens wherever it finds them.
const READ_BY_GIT: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// Whether NTFS or HFS+ would take this name for `.git`. A plain `.git` is a repository, or an empty folder that git
/// passes by.
fn looks_like_git(name: &OsStr, folder: bool) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    if name == ".git" {
        return !folder;
    }
    // HFS+ drops these when it compares.
    let ignored =
        |c: &char| matches!(u32::from(*c), 0x200c..=0x200f | 0x202a..=0x202e | 0x206a..=0x206f | 0xfeff);
    let plain: String = name.chars().filter(|c| !ignored(c)).collect();
    let plain = plain
        .split([':', '\\'])
        .next()
        .unwrap_or_default()
        .trim_end_matches([' ', '.']);
    plain.eq_ignore_ascii_case(".git") || plain.eq_ignore_ascii_case("git~1")
}

/// Looks through every folder of the worktree; links are not followed.
///
/// # Errors
/// [`WorkspaceError::Io`] for a folder that cannot be read.
pub(crate) fn oddities(worktree: &Path) -> Result<Oddities, WorkspaceError> {
    let mut found = Oddities::default();
    let mut left = vec![PathBuf::new()];
    while let Some(folder) = left.pop() {
        let here = worktree.join(&folder);
        for entry in fs::read_dir(&here).map_err(|error| io(&here, &error))? {
            let entry = entry.map_err(|error| io(&here, &error))?;
            let kind = entry.file_type().map_err(|error| io(&here, &error))?;
            let path = folder.join(entry.file_name());
            if path != Path::new(".git") && looks_like_git(&entry.file_name(), kind.is_dir()) {
                found.refused.push(path);
            } else if kind.is_dir() && path != Path::new(".git") {
                if is_repository(&worktree.join(&path)) {
                    found.nested.push(path)
                } else {
                    left.push(path)
                }
            } else if !(kind.is_file() || kind.is_symlink() || kind.is_dir()) {
                if READ_BY_GIT.iter().any(|name| *name == entry.file_name()) {
                    found.blocking.push(path.clone());
                }
                found.special.push(path);
            }
        }
    }
    found.nested.sort();
    found.special.sort();
    found.blocking.sort();
    found.refused.sort();
    Ok(found)
}

/// Whether git may take the folder for a repository: a `.git` file, or a `.git` folder with a head.
fn is_repository(folder: &Path) -> bool {
    let inner = folder.join(".git");
    fs::symlink_metadata(&inner).is_ok_and(|found| !found.is_dir() || inner.join("HEAD").exists())
}

/// Processes whose working folder is `folder` or below it. Elsewhere than on Linux none can be seen.
pub(crate) fn processes_in(folder: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let works_here =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    let mut all: Vec<u32> = pids.filter(works_here).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_repositories_within_and_does_not_look_into_them() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            ".git/hooks",
            "a/b/.git/refs",
            "a/b/c/.git",
            "module",
            "plain/.git",
            "x",
        ] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        fs::write(folder.path().join("a/b/.git/HEAD"), "").unwrap();
        fs::write(folder.path().join("module/.git"), "gitdir: elsewhere\n").unwrap();
        let found = oddities(folder.path()).unwrap();
        assert_eq!(found.nested, [PathBuf::from("a/b"), PathBuf::from("module")]);
        assert!(found.special.is_empty());
    }
}
