//! [`GitWorkspace`].

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{
    Checkout, Committed, DiffStat, MergeBegun, MergeOutcome, MergeWanted, Removal, Repository, Restarted,
    WorkspaceError, Worktree, WorktreeState, WorktreeWanted,
};

use crate::folders::{create, io};
use crate::git::{Git, failed, names};
use crate::locks::Locks;
use crate::removal::{Insistence, TakenAway};
use crate::repository::Repo;
use crate::upkeep::Upkeep;

/// Worktrees, commits and merges by the git command line.
///
/// Worktrees lie in `worktrees/<repository>/<run>/<step>` of the data folder, what is known about them in
/// `git/<repository>`, and removed ones for seven days in `trash`.
///
/// Repositories that an agent makes within its worktree, and submodules, are not committed: they hold the worktree
/// when it is to be removed. Ignored files are neither committed nor lost: they hold it too.
#[derive(Debug)]
pub struct GitWorkspace {
    pub(crate) git: Git,
    pub(crate) data: PathBuf,
    pub(crate) locks: Locks,
    pub(crate) upkeep: Upkeep,
}

impl GitWorkspace {
    /// A workspace that keeps its things in `data_folder`, with the git found on `PATH`. Whether there is one, and
    /// whether it is new enough, is told by the first call.
    ///
    /// # Errors
    /// [`WorkspaceError::Io`] when the folder cannot be made.
    pub fn new(data_folder: &Path) -> Result<Self, WorkspaceError> {
        Self::with(Git::on_path(), data_folder)
    }

    /// The same, with this program as git.
    ///
    /// # Errors
    /// As [`GitWorkspace::new`].
    pub fn with_git(program: impl Into<PathBuf>, data_folder: &Path) -> Result<Self, WorkspaceError> {
        Self::with(Git::at(program.into()), data_folder)
    }

    /// Reads the person's global git settings in this home folder instead of `HOME`.
    #[must_use]
    pub fn with_home(mut self, home: &Path) -> Self {
        self.git.set_home(home);
        self
    }

    fn with(git: Git, data_folder: &Path) -> Result<Self, WorkspaceError> {
        create(data_folder)?;
        // git tells real paths: ours must compare with them.
        let data = data_folder
            .canonicalize()
            .map_err(|error| io(data_folder, &error))?;
        Ok(Self {
            git,
            data,
            locks: Locks::default(),
            upkeep: Upkeep::default(),
        })
    }

    pub(crate) async fn open(&self, repository: &Path) -> Result<Repo<'_>, WorkspaceError> {
        self.empty_trash_once();
        Repo::open(&self.git, &self.data, repository).await
    }
}

#[async_trait]
impl Workspace for GitWorkspace {
    async fn inspect(&self, folder: &Path) -> Result<Option<Repository>, WorkspaceError> {
        let found = crate::inspect::inspect(&self.git, folder).await?;
        let Some(mut found) = found else {
            return Ok(None);
        };
        found.uncommitted = self.open(&found.root).await?.uncommitted_by_person().await;
        Ok(Some(found))
    }

    async fn lease(&self, wish: &WorktreeWanted) -> Result<Worktree, WorkspaceError> {
        let repo = self.open(&wish.repository).await?;
        let _alone = self.locks.everywhere(&repo.folders.lock()).await?;
        repo.mend().await?;
        repo.lease(wish, None).await
    }

    async fn commit(&self, worktree: &Worktree, message: &str) -> Result<Committed, WorkspaceError> {
        let repo = self.open(&worktree.repository).await?;
        let _alone = self.locks.here(&worktree.path).await;
        repo.commit_left(worktree, message).await
    }

    async fn merge(&self, wish: &MergeWanted) -> Result<MergeOutcome, WorkspaceError> {
        self.open(&wish.repository).await?.merge(wish).await
    }

    async fn begin_merge(
        &self,
        worktree: &Worktree,
        wish: &MergeWanted,
    ) -> Result<MergeBegun, WorkspaceError> {
        let repo = self.open(&worktree.repository).await?;
        let _alone = self.locks.here(&worktree.path).await;
        repo.begin_merge(worktree, wish).await
    }

    async fn unresolved(&self, worktree: &Worktree, files: &[String]) -> Result<Vec<String>, WorkspaceError> {
        let repo = self.open(&worktree.repository).await?;
        let _alone = self.locks.here(&worktree.path).await;
        repo.unresolved(worktree, files).await
    }

    async fn abandon_merge(
        &self,
        worktree: &Worktree,
        tip: &str,
        run: &str,
        step: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        let repo = self.open(&worktree.repository).await?;
        let _alone = self.locks.everywhere(&repo.folders.lock()).await?;
        let _here = self.locks.here(&worktree.path).await;
        repo.abandon_merge(worktree, tip, run, step).await
    }

    async fn checkout(&self, repository: &Path, also: &[PathBuf]) -> Result<Checkout, WorkspaceError> {
        self.open(repository).await?.checkout(also).await
    }

    async fn check_folder(
        &self,
        repository: &Path,
        run: &str,
        commit: &str,
    ) -> Result<PathBuf, WorkspaceError> {
        let repo = self.open(repository).await?;
        let _alone = self.locks.everywhere(&repo.folders.lock()).await?;
        repo.check_folder(run, commit).await
    }

    async fn clear_check(&self, repository: &Path, run: &str) -> Result<(), WorkspaceError> {
        let repo = self.open(repository).await?;
        let _alone = self.locks.everywhere(&repo.folders.lock()).await?;
        repo.clear_check(run).await.map(drop)
    }

    async fn restart(&self, worktree: &Worktree, run: &str, step: &str) -> Result<Restarted, WorkspaceError> {
        let repo = self.open(&worktree.repository).await?;
        let _alone = self.locks.everywhere(&repo.folders.lock()).await?;
        let _here = self.locks.here(&worktree.path).await;
        repo.restart(worktree, run, step).await
    }

    async fn lost(&self, worktree: &Worktree) -> Result<Option<String>, WorkspaceError> {
        match self.open(&worktree.repository).await?.admin(&worktree.path) {
            Ok(_) => Ok(None),
            Err(WorkspaceError::WorktreeLost { why, .. }) => Ok(Some(why)),
            Err(error) => Err(error),
        }
    }

    async fn missing(&self, folder: &Path, files: &[PathBuf]) -> Result<Vec<PathBuf>, WorkspaceError> {
        let (folder, files) = (folder.to_owned(), files.to_vec());
        let looked = tokio::task::spawn_blocking(move || crate::confined::missing(&folder, &files)).await;
        looked.map_err(|error| failed("ls-files", format!("looking for files ended early: {error}")))?
    }

    async fn list(&self, repository: &Path, integration: &str) -> Result<Vec<WorktreeState>, WorkspaceError> {
        let repo = self.open(repository).await?;
        let _alone = self.locks.everywhere(&repo.folders.lock()).await?;
        repo.list(integration).await
    }

    async fn remove(&self, worktree: &Worktree, integration: &str) -> Result<Removal, WorkspaceError> {
        match self.take_away(worktree, integration, Insistence::None).await? {
            TakenAway::Gone(_) => Ok(Removal::Removed),
            TakenAway::Held(holds) => Ok(Removal::Held(holds)),
        }
    }

    async fn diff(&self, repository: &Path, from: &str, to: &str) -> Result<DiffStat, WorkspaceError> {
        let (from, to) = (names::full_hash(from)?, names::full_hash(to)?);
        self.open(repository).await?.diff(from, to).await
    }
}
