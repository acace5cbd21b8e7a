//! What a person does with the worktrees that are left: seeing them, removing them, emptying the trash.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sillage_core::ports::workspace::{WorkspaceError, Worktree};
use sillage_core::time::Timestamp;

use crate::folders::io;
use crate::git::failed;
use crate::lease::Lease;
use crate::removal::{self, Insistence, TakenAway};
use crate::survey::{self, Surveyed};
use crate::trash::{self, Emptied, Trashed};
use crate::workspace::GitWorkspace;

/// When it is, and whether the trash was looked at.
#[derive(Clone)]
pub(crate) struct Upkeep {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    emptied: Arc<AtomicBool>,
    /// The data folder, where it is to go with the workspace.
    aside: Option<Arc<tempfile::TempDir>>,
}

impl Default for Upkeep {
    fn default() -> Self {
        let now = || {
            Timestamp(
                i64::try_from(removal::now())
                    .unwrap_or(i64::MAX)
                    .saturating_mul(1000),
            )
        };
        Self {
            now: Arc::new(now),
            emptied: Arc::default(),
            aside: None,
        }
    }
}

impl fmt::Debug for Upkeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upkeep").finish_non_exhaustive()
    }
}

impl GitWorkspace {
    /// A workspace to look at repositories with, whose own things go with it.
    ///
    /// # Errors
    /// [`WorkspaceError::Io`] when no temporary folder can be made.
    pub fn temporary() -> Result<Self, WorkspaceError> {
        let aside = tempfile::tempdir().map_err(|error| io(&std::env::temp_dir(), &error))?;
        let mut workspace = Self::new(aside.path())?;
        workspace.upkeep.aside = Some(Arc::new(aside));
        Ok(workspace)
    }

    /// Takes the time from here instead of the system: what is removed is kept in the trash for seven days by it.
    #[must_use]
    pub fn with_clock(mut self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.upkeep.now = Arc::new(now);
        self
    }

    /// The repositories that worktrees were made for with this data folder, each by a working tree of it. Those that
    /// are gone are told too.
    ///
    /// # Errors
    /// [`WorkspaceError::Io`] when the data folder cannot be read.
    pub fn repositories(&self) -> Result<Vec<PathBuf>, WorkspaceError> {
        let mut by_key: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        for own in entries(&self.data.join("git"))? {
            let roots = by_key.entry(own.clone()).or_default();
            for run in entries(&own.join("leases"))? {
                for record in entries(&run)? {
                    // A record that cannot be read names no repository; the list of worktrees tells of it.
                    let lease = fs::read(&record)
                        .ok()
                        .and_then(|bytes| serde_json::from_slice::<Lease>(&bytes).ok());
                    roots.extend(lease.map(|lease| lease.wish.repository));
                }
            }
        }
        let mut all: Vec<PathBuf> = Vec::new();
        for mut roots in by_key.into_values() {
            roots.sort();
            roots.dedup();
            let there = roots.iter().find(|root| root.is_dir()).or(roots.first());
            all.extend(there.cloned());
        }
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// The worktrees of this repository that lie in our own folder, with all that is known of each. `integration`
    /// gives the integration branch of a run by its name.
    ///
    /// # Errors
    /// By cause. A worktree that cannot be looked at is told as held by that.
    pub async fn survey(
        &self,
        repository: &Path,
        integration: impl Fn(&str) -> String,
    ) -> Result<Vec<Surveyed>, WorkspaceError> {
        let repo = self.open(repository).await?;
        let mut found = {
            let _alone = self.locks.everywhere(&repo.folders.lock()).await?;
            repo.survey(integration).await?
        };
        // Adding up sizes may take long, and keeps nobody from a worktree.
        let weighed = tokio::task::spawn_blocking(move || {
            for left in &mut found {
                left.disk_bytes = survey::disk_used(&left.path);
            }
            found
        });
        weighed
            .await
            .map_err(|error| failed("worktree list", format!("looking at sizes ended early: {error}")))
    }

    /// Removes a worktree as a person asks for it: into the trash, its branch stays. A missing one is already removed.
    ///
    /// # Errors
    /// By cause. Being held is an answer, not an error.
    pub async fn take_away(
        &self,
        worktree: &Worktree,
        integration: &str,
        insistence: Insistence,
    ) -> Result<TakenAway, WorkspaceError> {
        let repo = self.open(&worktree.repository).await?;
        let _alone = self.locks.everywhere(&repo.folders.lock()).await?;
        let _here = self.locks.here(&worktree.path).await;
        repo.remove(worktree, integration, insistence, (self.upkeep.now)())
            .await
    }

    /// What the trash holds, the oldest first.
    ///
    /// # Errors
    /// [`WorkspaceError::Git`] only when looking ended early.
    pub async fn trash(&self) -> Result<Vec<Trashed>, WorkspaceError> {
        let folder = self.trash_folder();
        let listed = tokio::task::spawn_blocking(move || trash::list(&folder)).await;
        listed.map_err(|error| {
            failed(
                "worktree list",
                format!("looking at the trash ended early: {error}"),
            )
        })
    }

    /// Deletes what has been in the trash for seven days. What cannot be deleted now will be tried again.
    ///
    /// # Errors
    /// [`WorkspaceError::Git`] only when deleting ended early.
    pub async fn empty_trash(&self) -> Result<Emptied, WorkspaceError> {
        self.upkeep.emptied.store(true, Ordering::Relaxed);
        let (folder, now) = (self.trash_folder(), (self.upkeep.now)());
        let emptied = tokio::task::spawn_blocking(move || trash::empty(&folder, now)).await;
        emptied.map_err(|error| {
            failed(
                "worktree remove",
                format!("emptying the trash ended early: {error}"),
            )
        })
    }

    /// The same beside whatever this workspace was opened for, the first time that it is.
    pub(crate) fn empty_trash_once(&self) {
        if !self.upkeep.emptied.swap(true, Ordering::Relaxed) {
            let (folder, now) = (self.trash_folder(), (self.upkeep.now)());
            tokio::task::spawn_blocking(move || trash::empty(&folder, now));
        }
    }

    fn trash_folder(&self) -> PathBuf {
        self.data.join("trash")
    }
}

/// The paths in a folder; none where there is no folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    match fs::read_dir(folder) {
        Ok(found) => Ok(found.flatten().map(|entry| entry.path()).collect()),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(io(folder, &error)),
    }
}
