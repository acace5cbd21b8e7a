//! The trash: where removed worktrees stay for seven days, each with a note of what it was.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sillage_core::ports::workspace::WorkspaceError;
use sillage_core::time::Timestamp;

use crate::folders::{io, remove_file, replace};
use crate::survey;

/// How long what was removed can still be found in the trash.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What is known of a worktree in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashNote {
    /// The working tree of the repository that it belonged to.
    pub repository: PathBuf,
    /// Where it was.
    pub path: PathBuf,
    /// The run's name.
    pub run: String,
    /// The step's name.
    pub step: String,
    /// The branch that was made for it, and stays.
    pub branch: String,
    /// References under which work was kept that would have become unreachable.
    #[serde(default)]
    pub rescued: Vec<String>,
}

/// A folder in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// Where it is now.
    pub path: PathBuf,
    /// Since when.
    pub since: Timestamp,
    /// When it is deleted by whoever works with worktrees next.
    pub until: Timestamp,
    /// What it takes on the disk, in bytes.
    pub disk_bytes: u64,
    /// What it was; none for rests that nobody worked in.
    pub note: Option<TrashNote>,
}

/// What was deleted from the trash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Emptied {
    /// Folders.
    pub folders: u32,
    /// What they took on the disk, in bytes.
    pub disk_bytes: u64,
}

/// When a folder of the trash is deleted that came there at `since`.
pub(crate) fn until(since: Timestamp) -> Timestamp {
    since.plus(KEPT)
}

/// What the trash holds, the oldest first.
pub(crate) fn list(trash: &Path) -> Vec<Trashed> {
    let told = |(path, since): (PathBuf, Timestamp)| Trashed {
        disk_bytes: survey::disk_used(&path),
        note: fs::read(note_of(&path))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok()),
        until: until(since),
        path,
        since,
    };
    let mut all: Vec<Trashed> = entries(trash)
        .filter(|(path, _)| path.is_dir())
        .map(told)
        .collect();
    all.sort_by(|a, b| (a.since, &a.path).cmp(&(b.since, &b.path)));
    all
}

/// Deletes what has been there for seven days at `now`. What cannot be deleted will be tried again.
pub(crate) fn empty(trash: &Path, now: Timestamp) -> Emptied {
    let mut emptied = Emptied::default();
    for (path, _) in entries(trash).filter(|(_, since)| until(*since) <= now) {
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        let size = if is_folder { survey::disk_used(&path) } else { 0 };
        match delete(&path, is_folder) {
            Ok(()) if is_folder => {
                emptied.folders += 1;
                emptied.disk_bytes += size;
            }
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "old trash could not be deleted");
            }
        }
    }
    emptied
}

/// Writes down what a folder is before it comes to the trash under this name.
pub(crate) fn write_note(trashed: &Path, note: &TrashNote) -> Result<(), WorkspaceError> {
    let file = note_of(trashed);
    let bytes = serde_json::to_vec(note).map_err(|error| io(&file, &error.into()))?;
    replace(&file, &bytes)
}

/// Takes back what was written for a folder that did not come.
pub(crate) fn remove_note(trashed: &Path) -> Result<(), WorkspaceError> {
    remove_file(&note_of(trashed))
}

fn note_of(trashed: &Path) -> PathBuf {
    let mut name = trashed.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

/// What lies in the trash, with the date in its name. Anything that others put there has none and is left alone.
fn entries(trash: &Path) -> impl Iterator<Item = (PathBuf, Timestamp)> {
    let dated = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let (seconds, _) = name.to_str()?.split_once('-')?;
        let milliseconds = seconds.parse::<i64>().ok()?.checked_mul(1000)?;
        Some((entry.path(), Timestamp(milliseconds)))
    };
    fs::read_dir(trash)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(dated)
}

/// Deletes a file, or a folder with all that is below it, also where a program took away the right to do so.
fn delete(path: &Path, is_folder: bool) -> std::io::Result<()> {
    let once = || {
        if is_folder {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
    };
    match once() {
        // Another process empties it too.
        Err(error) if error.kind() == ErrorKind::NotFound && !path.exists() => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied && is_folder => {
            open_up(path)?;
            once()
        }
        other => other,
    }
}

/// Gives the owner all rights on every folder: module caches are often made read-only.
#[cfg(unix)]
fn open_up(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn open_up(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: i64) -> Timestamp {
        Timestamp(number * 24 * 60 * 60 * 1000)
    }

    fn folder(trash: &Path, name: &str) -> PathBuf {
        let path = trash.join(name);
        fs::create_dir_all(path.join("deep")).unwrap();
        fs::write(path.join("deep/file"), "x").unwrap();
        path
    }

    fn note() -> TrashNote {
        TrashNote {
            repository: "/repo".into(),
            path: "/worktrees/r1/a".into(),
            run: "r1".into(),
            step: "a".into(),
            branch: "sillage/steps/r1/a".into(),
            rescued: vec!["refs/sillage/rescue/r1/a/1".into()],
        }
    }

    #[test]
    fn r19_is_emptied_after_seven_days_and_of_nothing_else() {
        let trash = tempfile::tempdir().unwrap();
        let trash = trash.path();
        let old = folder(trash, "0-key-r1-a-0");
        write_note(&old, &note()).unwrap();
        let young = folder(trash, "86400-key-r1-b-0");
        let strange = folder(trash, "put-here-by-someone");
        let almost = Timestamp(day(7).0 - 1);
        assert_eq!(empty(trash, almost), Emptied::default());
        let listed = list(trash);
        assert_eq!(
            listed
                .iter()
                .map(|one| (&one.path, one.since, one.until))
                .collect::<Vec<_>>(),
            [(&old, day(0), day(7)), (&young, day(1), day(8))]
        );
        assert_eq!(
            (listed[0].note.clone(), listed[1].note.clone()),
            (Some(note()), None)
        );
        assert!(listed[0].disk_bytes > 0);
        let emptied = empty(trash, day(7));
        assert_eq!((emptied.folders, emptied.disk_bytes), (1, listed[0].disk_bytes));
        assert!(!old.exists() && !note_of(&old).exists() && young.exists() && strange.exists());
    }

    #[cfg(unix)]
    #[test]
    fn r19_deletes_folders_that_were_made_read_only() {
        use std::os::unix::fs::PermissionsExt;
        let trash = tempfile::tempdir().unwrap();
        let old = folder(trash.path(), "0-key-r1-a-0");
        fs::set_permissions(old.join("deep"), fs::Permissions::from_mode(0o500)).unwrap();
        open_up(&old).unwrap();
        let mode = fs::metadata(old.join("deep")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(empty(trash.path(), day(7)).folders, 1);
    }
}
