//! [`NoWorkspace`]: what the world looks like where no folder is in a repository.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{
    Checkout, Committed, DiffStat, MergeBegun, MergeOutcome, MergeWanted, Removal, Repository, Restarted,
    WorkspaceError, Worktree, WorktreeState, WorktreeWanted,
};

/// A workspace in which no folder is in a repository, and no declared file is missing: for runs and benches
/// without worktrees, in which any call that needs git is a defect and is answered with
/// [`WorkspaceError::Unsupported`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWorkspace;

fn refused<T>(path: &Path) -> Result<T, WorkspaceError> {
    Err(WorkspaceError::Unsupported {
        path: path.to_owned(),
        why: "it is not a git repository".to_owned(),
    })
}

#[async_trait]
impl Workspace for NoWorkspace {
    async fn inspect(&self, _folder: &Path) -> Result<Option<Repository>, WorkspaceError> {
        Ok(None)
    }

    async fn lease(&self, wish: &WorktreeWanted) -> Result<Worktree, WorkspaceError> {
        refused(&wish.repository)
    }

    async fn commit(&self, worktree: &Worktree, _message: &str) -> Result<Committed, WorkspaceError> {
        refused(&worktree.repository)
    }

    async fn merge(&self, wish: &MergeWanted) -> Result<MergeOutcome, WorkspaceError> {
        refused(&wish.repository)
    }

    async fn begin_merge(
        &self,
        worktree: &Worktree,
        _wish: &MergeWanted,
    ) -> Result<MergeBegun, WorkspaceError> {
        refused(&worktree.repository)
    }

    async fn unresolved(
        &self,
        worktree: &Worktree,
        _files: &[String],
    ) -> Result<Vec<String>, WorkspaceError> {
        refused(&worktree.repository)
    }

    async fn abandon_merge(
        &self,
        worktree: &Worktree,
        _tip: &str,
        _run: &str,
        _step: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        refused(&worktree.repository)
    }

    async fn checkout(&self, repository: &Path, _also: &[PathBuf]) -> Result<Checkout, WorkspaceError> {
        refused(repository)
    }

    async fn check_folder(
        &self,
        repository: &Path,
        _run: &str,
        _commit: &str,
    ) -> Result<PathBuf, WorkspaceError> {
        refused(repository)
    }

    async fn clear_check(&self, repository: &Path, _run: &str) -> Result<(), WorkspaceError> {
        refused(repository)
    }

    async fn restart(
        &self,
        worktree: &Worktree,
        _run: &str,
        _step: &str,
    ) -> Result<Restarted, WorkspaceError> {
        refused(&worktree.repository)
    }

    async fn lost(&self, worktree: &Worktree) -> Result<Option<String>, WorkspaceError> {
        refused(&worktree.repository)
    }

    async fn missing(&self, _folder: &Path, _files: &[PathBuf]) -> Result<Vec<PathBuf>, WorkspaceError> {
        Ok(Vec::new())
    }

    async fn list(
        &self,
        _repository: &Path,
        _integration: &str,
    ) -> Result<Vec<WorktreeState>, WorkspaceError> {
        Ok(Vec::new())
    }

    async fn remove(&self, worktree: &Worktree, _integration: &str) -> Result<Removal, WorkspaceError> {
        refused(&worktree.repository)
    }

    async fn diff(&self, repository: &Path, _from: &str, _to: &str) -> Result<DiffStat, WorkspaceError> {
        refused(repository)
    }
}
