//! The workspace of a simulated world: a repository in memory that is slow, fails, and loses folders.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{
    Checkout, Committed, DiffStat, MergeBegun, MergeOutcome, MergeWanted, Removal, Repository, Restarted,
    WorkspaceError, Worktree, WorktreeState, WorktreeWanted,
};

use super::doors::Life;
use super::faults::Fault;
use super::world::World;
use crate::workspace::MemoryWorkspace;

/// The workspace as an engine of one life sees it.
#[derive(Debug, Clone)]
pub struct SimWorkspace(pub Life);

fn failed(words: &str) -> WorkspaceError {
    WorkspaceError::Git {
        command: "simulated".to_owned(),
        words: words.to_owned(),
    }
}

impl World {
    /// A call on a repository in memory, which never waits.
    fn git<T, F>(&mut self, call: impl FnOnce(Arc<MemoryWorkspace>) -> F) -> Result<T, WorkspaceError>
    where
        F: Future<Output = Result<T, WorkspaceError>>,
    {
        if self.strikes_at(Fault::Workspace, self.story.per_mille / 3) {
            return Err(failed("it does not work"));
        }
        let workspace = Arc::clone(&self.workspace);
        call(workspace)
            .now_or_never()
            .unwrap_or_else(|| Err(failed("a repository in memory waited")))
    }

    fn may_lose(&mut self, worktree: &Worktree) {
        if self.strikes_at(Fault::Worktrees, self.story.per_mille / 4) {
            self.workspace.lose(&worktree.path);
        }
    }
}

#[async_trait]
impl Workspace for SimWorkspace {
    async fn inspect(&self, folder: &Path) -> Result<Option<Repository>, WorkspaceError> {
        let folder = folder.to_owned();
        let act = move |world: &mut World| world.git(|git| async move { git.inspect(&folder).await });
        self.0.call("a look at a repository", |_| {}, act).await
    }

    async fn lease(&self, wish: &WorktreeWanted) -> Result<Worktree, WorkspaceError> {
        let (wish, asked) = (wish.clone(), wish.clone());
        let act = move |world: &mut World| world.git(|git| async move { git.lease(&wish).await });
        self.0
            .call("a lease", move |world| world.judge_lease(&asked), act)
            .await
    }

    async fn commit(&self, worktree: &Worktree, message: &str) -> Result<Committed, WorkspaceError> {
        let (worktree, message) = (worktree.clone(), message.to_owned());
        let act = move |world: &mut World| {
            world.may_lose(&worktree);
            world.git(|git| async move { git.commit(&worktree, &message).await })
        };
        self.0.call("a commit", |_| {}, act).await
    }

    async fn merge(&self, wish: &MergeWanted) -> Result<MergeOutcome, WorkspaceError> {
        let (wish, asked) = (wish.clone(), wish.clone());
        let act = move |world: &mut World| world.git(|git| async move { git.merge(&wish).await });
        self.0
            .call("a merge", move |world| world.judge_merge(&asked), act)
            .await
    }

    async fn begin_merge(
        &self,
        worktree: &Worktree,
        wish: &MergeWanted,
    ) -> Result<MergeBegun, WorkspaceError> {
        let (worktree, wish) = (worktree.clone(), wish.clone());
        let act =
            move |world: &mut World| world.git(|git| async move { git.begin_merge(&worktree, &wish).await });
        self.0.call("the beginning of a merge", |_| {}, act).await
    }

    async fn unresolved(&self, worktree: &Worktree, files: &[String]) -> Result<Vec<String>, WorkspaceError> {
        let (worktree, files) = (worktree.clone(), files.to_vec());
        let act =
            move |world: &mut World| world.git(|git| async move { git.unresolved(&worktree, &files).await });
        self.0.call("a look at conflicts", |_| {}, act).await
    }

    async fn abandon_merge(
        &self,
        worktree: &Worktree,
        tip: &str,
        run: &str,
        step: &str,
    ) -> Result<Option<String>, WorkspaceError> {
        let (worktree, tip) = (worktree.clone(), tip.to_owned());
        let (run, step) = (run.to_owned(), step.to_owned());
        let act = move |world: &mut World| {
            world.git(|git| async move { git.abandon_merge(&worktree, &tip, &run, &step).await })
        };
        self.0.call("the end of a merge", |_| {}, act).await
    }

    async fn checkout(&self, repository: &Path, also: &[PathBuf]) -> Result<Checkout, WorkspaceError> {
        let (repository, also) = (repository.to_owned(), also.to_vec());
        let act =
            move |world: &mut World| world.git(|git| async move { git.checkout(&repository, &also).await });
        self.0.call("a look at the checkout", |_| {}, act).await
    }

    async fn check_folder(
        &self,
        _repository: &Path,
        _run: &str,
        _commit: &str,
    ) -> Result<PathBuf, WorkspaceError> {
        Err(failed("checks are not simulated"))
    }

    async fn clear_check(&self, repository: &Path, run: &str) -> Result<(), WorkspaceError> {
        let (repository, run) = (repository.to_owned(), run.to_owned());
        let act =
            move |world: &mut World| world.git(|git| async move { git.clear_check(&repository, &run).await });
        self.0.call("the removal of a check's folder", |_| {}, act).await
    }

    async fn restart(&self, worktree: &Worktree, run: &str, step: &str) -> Result<Restarted, WorkspaceError> {
        let (worktree, run, step) = (worktree.clone(), run.to_owned(), step.to_owned());
        let act = move |world: &mut World| {
            world.git(|git| async move { git.restart(&worktree, &run, &step).await })
        };
        self.0.call("a restart", |_| {}, act).await
    }

    async fn lost(&self, worktree: &Worktree) -> Result<Option<String>, WorkspaceError> {
        let worktree = worktree.clone();
        let act = move |world: &mut World| {
            world.may_lose(&worktree);
            world.git(|git| async move { git.lost(&worktree).await })
        };
        self.0.call("a look for a worktree", |_| {}, act).await
    }

    async fn missing(&self, folder: &Path, files: &[PathBuf]) -> Result<Vec<PathBuf>, WorkspaceError> {
        let (folder, files) = (folder.to_owned(), files.to_vec());
        let act = move |world: &mut World| world.git(|git| async move { git.missing(&folder, &files).await });
        self.0.call("a look at files", |_| {}, act).await
    }

    async fn list(&self, repository: &Path, integration: &str) -> Result<Vec<WorktreeState>, WorkspaceError> {
        let (repository, integration) = (repository.to_owned(), integration.to_owned());
        let act = move |world: &mut World| {
            world.git(|git| async move { git.list(&repository, &integration).await })
        };
        self.0.call("a list of worktrees", |_| {}, act).await
    }

    async fn remove(&self, worktree: &Worktree, integration: &str) -> Result<Removal, WorkspaceError> {
        let (worktree, integration) = (worktree.clone(), integration.to_owned());
        let act = move |world: &mut World| {
            world.git(|git| async move { git.remove(&worktree, &integration).await })
        };
        self.0.call("a removal", |_| {}, act).await
    }

    async fn diff(&self, repository: &Path, from: &str, to: &str) -> Result<DiffStat, WorkspaceError> {
        let (repository, from, to) = (repository.to_owned(), from.to_owned(), to.to_owned());
        let act =
            move |world: &mut World| world.git(|git| async move { git.diff(&repository, &from, &to).await });
        self.0.call("a difference", |_| {}, act).await
    }
}
