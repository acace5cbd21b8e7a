//! A look at the person's checkout that leaves no trace there: the shadow's git compares it with a copy of its index.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sillage_core::ports::workspace::{Checkout, FileStamp, WorkspaceError};

use crate::folders::io;
use crate::git::failed;
use crate::repository::Repo;

/// Most files that are looked at.
const MOST_FILES: usize = 20_000;

impl Repo<'_> {
    /// What git takes for changed or new in the person's checkout, and the files of `also`.
    pub(crate) async fn checkout(&self, also: &[PathBuf]) -> Result<Checkout, WorkspaceError> {
        let at = nanoseconds(SystemTime::now());
        let aside = tempfile::tempdir_in(&self.folders.own).map_err(|error| io(&self.folders.own, &error))?;
        let index = aside.path().join("index");
        let names = match self.changes_by_their_index(&index).await {
            Ok(names) => names,
            // Their index can be of a kind that does not stand alone: every file is looked at then.
            Err(_) => self.changes_by_their_head(&index).await?,
        };
        let mut paths: BTreeSet<PathBuf> = names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(crate::worktree::as_path)
            .collect();
        if paths.len() > MOST_FILES {
            return Ok(Checkout {
                at,
                too_many: true,
                ..Checkout::default()
            });
        }
        paths.extend(also.iter().cloned());
        let root = self.root.clone();
        let stamped = tokio::task::spawn_blocking(move || {
            paths
                .into_iter()
                .map(|path| {
                    let stamp = stamp(&root.join(&path));
                    (path, stamp)
                })
                .collect()
        });
        let files = stamped
            .await
            .map_err(|error| failed("ls-files", format!("looking at files ended early: {error}")))?;
        Ok(Checkout {
            at,
            files,
            too_many: false,
        })
    }

    async fn changes_by_their_index(&self, index: &Path) -> Result<Vec<u8>, WorkspaceError> {
        let theirs = self.root_admin().join("index");
        fs::copy(&theirs, index).map_err(|error| io(&theirs, &error))?;
        self.changes(index).await
    }

    async fn changes_by_their_head(&self, index: &Path) -> Result<Vec<u8>, WorkspaceError> {
        let head = self.head_of(&self.root_admin()).await?;
        let commit = head
            .commit
            .ok_or_else(|| failed("rev-parse", "the checkout has no commit"))?;
        crate::folders::remove_file(index)?;
        self.files(&self.root, index, "read-tree --reset")
            .await?
            .arg(commit)
            .bytes()
            .await?;
        self.changes(index).await
    }

    async fn changes(&self, index: &Path) -> Result<Vec<u8>, WorkspaceError> {
        let changed = self
            .files(
                &self.root,
                index,
                "diff-files --name-only -z --ignore-submodules=all",
            )
            .await?;
        let new = self
            .files(&self.root, index, "ls-files --others --exclude-standard -z")
            .await?;
        let mut names = changed.bytes().await?;
        names.extend(new.bytes().await?);
        Ok(names)
    }

    /// The git folder of the working tree that was opened: its own part where it is a worktree of another.
    fn root_admin(&self) -> PathBuf {
        self.admin_of(&self.root).unwrap_or_else(|| self.common.clone())
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// What the file is now; a link is looked at itself.
fn stamp(path: &Path) -> Option<FileStamp> {
    let found = fs::symlink_metadata(path).ok()?;
    let modified = found.modified().map_or(0, nanoseconds);
    let (changed, number) = change_of(&found);
    Some(FileStamp {
        size: found.len(),
        modified,
        changed,
        number,
    })
}

#[cfg(unix)]
fn change_of(found: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let seconds = u64::try_from(found.ctime()).unwrap_or(0);
    let rest = u64::try_from(found.ctime_nsec()).unwrap_or(0);
    (
        seconds.saturating_mul(1_000_000_000).saturating_add(rest),
        found.ino(),
    )
}

#[cfg(not(unix))]
fn change_of(_found: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}
