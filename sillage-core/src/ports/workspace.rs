//! [`Workspace`]: worktrees, commits and merges for agents (R15–R20), and the files of deliverables.

use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use super::checkout::{Checkout, FileStamp};
use crate::plain;

/// Makes worktrees, commits and merges. Each call is idempotent by what it names, so that repeating it after a
/// crash does it once. Never writes to the person's checked-out branch, index or working tree, and runs nothing
/// that the repository or an agent planted.
#[async_trait]
pub trait Workspace: Send + Sync {
    /// What is known of the repository that holds `folder`; none where there is none.
    ///
    /// # Errors
    /// [`WorkspaceError::Unsupported`] for a repository that cannot be worked in (no commit yet, bare, …),
    /// [`WorkspaceError::Git`] when git is missing, too old or fails.
    async fn inspect(&self, folder: &Path) -> Result<Option<Repository>, WorkspaceError>;

    /// Makes the worktree, or gives back the one made before under the same wish. When the branch's name is taken by
    /// someone else, a fresh name is used and told.
    ///
    /// # Errors
    /// [`WorkspaceError::Git`] and the others by cause.
    async fn lease(&self, wish: &WorktreeWanted) -> Result<Worktree, WorkspaceError>;

    /// Commits what is left uncommitted in the worktree, as the repository's configured user, and tells the
    /// branch's tip. No new commit when nothing was left.
    ///
    /// # Errors
    /// [`WorkspaceError::WorktreeLost`] when the folder is gone or is no longer this worktree: nothing was
    /// committed anywhere.
    async fn commit(&self, worktree: &Worktree, message: &str) -> Result<Committed, WorkspaceError>;

    /// Merges a commit into the integration branch, making the branch at `base` when it does not exist, moving it by
    /// compare-and-swap. Does nothing when the branch contains the commit already. Where `parts` are named, they are
    /// what is merged, one after the other, and not all that the commit stands on.
    ///
    /// # Errors
    /// [`WorkspaceError::Git`] and the others by cause. A conflict is an answer, not an error.
    async fn merge(&self, wish: &MergeWanted) -> Result<MergeOutcome, WorkspaceError>;

    /// Merges the integration branch's tip into the worktree as far as it goes, and leaves the conflicts for its agent
    /// (R17): marks in the files, the conflicting entries in the worktree's index, the merge under way for the agent's
    /// own git. `wish` is the merge that conflicted, its commit the worktree's tip. Nothing is begun when nothing
    /// conflicts any more. Again after a crash, before anybody worked there: the same.
    ///
    /// # Errors
    /// [`WorkspaceError::WorktreeLost`], and the others by cause.
    async fn begin_merge(
        &self,
        worktree: &Worktree,
        wish: &MergeWanted,
    ) -> Result<MergeBegun, WorkspaceError>;

    /// Which of `files`, which conflicted, are still in conflict: a text shows the marks of one, or the worktree's
    /// index still holds several versions of what cannot show any.
    ///
    /// # Errors
    /// [`WorkspaceError::WorktreeLost`], and the others by cause.
    async fn unresolved(&self, worktree: &Worktree, files: &[String]) -> Result<Vec<String>, WorkspaceError>;

    /// Gives up a merge that was begun in the worktree: keeps everything that it holds as
    /// [`Workspace::restart`] does, then puts branch and files back to `tip`, the work as it was before the merge.
    /// Gives the reference under which it was kept; none where there was nothing to keep, or no worktree any more.
    ///
    /// # Errors
    /// By cause; nothing is put back before it is kept.
    async fn abandon_merge(
        &self,
        worktree: &Worktree,
        tip: &str,
        run: &str,
        step: &str,
    ) -> Result<Option<String>, WorkspaceError>;

    /// The person's checkout as it stands: the files that git takes for changed or new, ignored ones aside, and those
    /// of `also`. Nothing is written there, not even the index's knowledge of which files are unchanged.
    ///
    /// # Errors
    /// By cause.
    async fn checkout(&self, repository: &Path, also: &[PathBuf]) -> Result<Checkout, WorkspaceError>;

    /// A fresh folder with the files of a commit, in a git worktree of its own on no branch, for a run's check. What
    /// an earlier call for the same run left is removed first.
    ///
    /// # Errors
    /// By cause.
    async fn check_folder(
        &self,
        repository: &Path,
        run: &str,
        commit: &str,
    ) -> Result<PathBuf, WorkspaceError>;

    /// Removes what [`Workspace::check_folder`] made for the run, whatever it holds. What is missing is removed
    /// already.
    ///
    /// # Errors
    /// By cause.
    async fn clear_check(&self, repository: &Path, run: &str) -> Result<(), WorkspaceError>;

    /// Keeps everything that the worktree holds, committed or not, under `refs/sillage/rescue/<run>/<step>/<n>`, then
    /// puts it to its base, which may be another than it was made from: where it is, so that who works there finds it
    /// again. The reference is none when there was nothing to keep. A missing worktree is made anew.
    ///
    /// # Errors
    /// By cause; nothing is put back before it is kept.
    async fn restart(&self, worktree: &Worktree, run: &str, step: &str) -> Result<Restarted, WorkspaceError>;

    /// Why the folder is no longer the worktree that was made; none while it is. A session that worked in a lost one
    /// cannot go on there.
    ///
    /// # Errors
    /// By cause, when it cannot be told.
    async fn lost(&self, worktree: &Worktree) -> Result<Option<String>, WorkspaceError>;

    /// Which of `files` are missing or empty below `folder`. A path that leads out of the folder counts as missing.
    ///
    /// # Errors
    /// By cause.
    async fn missing(&self, folder: &Path, files: &[PathBuf]) -> Result<Vec<PathBuf>, WorkspaceError>;

    /// The worktrees of this repository that lie in our own folder, with what holds each.
    ///
    /// # Errors
    /// By cause.
    async fn list(&self, repository: &Path, integration: &str) -> Result<Vec<WorktreeState>, WorkspaceError>;

    /// Removes the worktree when nothing holds it; its branch stays. A missing one is already removed.
    ///
    /// # Errors
    /// By cause. Being held is an answer, not an error.
    async fn remove(&self, worktree: &Worktree, integration: &str) -> Result<Removal, WorkspaceError>;

    /// Diff statistics between two commits.
    ///
    /// # Errors
    /// By cause.
    async fn diff(&self, repository: &Path, from: &str, to: &str) -> Result<DiffStat, WorkspaceError>;
}

/// A repository as it is before launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The working tree that holds the folder; canonical.
    pub root: PathBuf,
    /// The git folder that all its worktrees share; canonical.
    pub common_dir: PathBuf,
    /// The commit that the person stands on: full hash.
    pub head: String,
    /// The branch that the person stands on; none: detached.
    pub branch: Option<String>,
    /// What is worth a word before launch, e.g. local settings that name programs.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Files of the person's that are changed, staged or new and in no commit: no worktree has them.
    #[serde(default)]
    pub uncommitted: u32,
}

/// A worktree that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeWanted {
    /// The working tree of the repository.
    pub repository: PathBuf,
    /// The run's name, which the folder's path holds.
    pub run: String,
    /// The step's name: `agent`, or `agent/sub-agent`.
    pub step: String,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The commit to start from: full hash.
    pub base: String,
}

/// A worktree.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Worktree {
    /// The working tree of the repository that it belongs to.
    pub repository: PathBuf,
    /// Its folder; absolute, within our own folder.
    pub path: PathBuf,
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// The commit that it started from: full hash.
    pub base: String,
}

/// A branch's tip after what was left is committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The tip: full hash.
    pub tip: String,
    /// Commits since the base.
    pub commits: u32,
    /// Changes since the base.
    pub diff: DiffStat,
}

/// How much changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffStat {
    /// Files.
    pub files: u32,
    /// Lines added; binary files count none.
    pub insertions: u32,
    /// Lines removed; binary files count none.
    pub deletions: u32,
}

/// E.g. `2 files, 10 lines added, 3 removed`.
impl fmt::Display for DiffStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = if self.files == 1 { "file" } else { "files" };
        let lines = if self.insertions == 1 { "line" } else { "lines" };
        write!(
            f,
            "{} {files}, {} {lines} added, {} removed",
            self.files, self.insertions, self.deletions
        )
    }
}

/// A merge that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeWanted {
    /// The working tree of the repository.
    pub repository: PathBuf,
    /// The integration branch, without `refs/heads/`.
    pub into: String,
    /// Where the integration branch starts when it does not exist yet: full hash.
    pub base: String,
    /// The commit to merge: full hash.
    pub commit: String,
    /// What of the commit is merged; empty: all that it stands on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MergedPart>,
    /// The merge commit's message.
    pub message: String,
}

/// What a merge changed: an integration branch from one tip to the next.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergedPart {
    /// The tip before it: full hash.
    pub onto: String,
    /// The tip that it made: full hash.
    pub tip: String,
}

/// How a merge went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeOutcome {
    /// The integration branch holds the commit; this is its tip.
    Merged(String),
    /// Nothing was changed; these files conflict.
    Conflict(Vec<String>),
}

/// How a merge was begun in a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeBegun {
    /// The integration branch's tip that is being merged: full hash.
    pub onto: String,
    /// The files in conflict; empty: nothing conflicts any more, and nothing was begun.
    pub files: Vec<String>,
}

/// A worktree put back to its base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// The worktree, which may lie elsewhere than before.
    pub worktree: Worktree,
    /// Where what it held was kept.
    pub rescued: Option<String>,
}

/// A worktree in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeState {
    /// The worktree's folder.
    pub path: PathBuf,
    /// Its branch; none: detached.
    pub branch: Option<String>,
    /// What keeps it from being removed; empty: nothing.
    pub held_by: Vec<Hold>,
}

/// What keeps a worktree from being removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Hold {
    /// Files that are in no commit: changed, new or ignored.
    Files(Vec<PathBuf>),
    /// Commits that the integration branch does not hold.
    Commits(u32),
    /// An operation begun and not ended: `merge`, `rebase`, …
    Operation(String),
    /// A process that works there.
    Process(u32),
    /// A lock, with its reason.
    Lock(String),
    /// A repository within it.
    NestedRepository(PathBuf),
    /// Its head is not on the branch that was made for it.
    OtherBranch(String),
    /// It is not what was made any more, or cannot be looked at: how.
    Changed(String),
}

/// What a person reads, e.g. `2 uncommitted files: a, b`.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hold::Files(files) => {
                let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
                let plural = if files.len() == 1 { "" } else { "s" };
                write!(
                    f,
                    "{} uncommitted file{plural}: {}",
                    files.len(),
                    plain::list(&names)
                )
            }
            Hold::Commits(1) => f.write_str("1 commit that is not merged"),
            Hold::Commits(commits) => write!(f, "{commits} commits that are not merged"),
            Hold::Operation(name) => write!(f, "a {name} that is not over"),
            Hold::Process(pid) => write!(f, "process {pid} works there"),
            Hold::Lock(reason) if reason.is_empty() => f.write_str("it is locked"),
            Hold::Lock(reason) => write!(f, "it is locked: {reason}"),
            Hold::NestedRepository(path) => write!(f, "a repository within it: {}", path.display()),
            Hold::OtherBranch(head) => write!(f, "its head is not on its own branch: {head}"),
            Hold::Changed(how) => write!(f, "it is not as it was made: {how}"),
        }
    }
}

/// How a removal went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// It is gone.
    Removed,
    /// These hold it.
    Held(Vec<Hold>),
}

/// Why a workspace did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The repository cannot be worked in.
    #[error("the repository {path} cannot be used: {why}")]
    Unsupported {
        /// The repository.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// The worktree's folder is gone or is no longer what was made.
    #[error("worktree lost: {path} {why}")]
    WorktreeLost {
        /// The folder.
        path: PathBuf,
        /// How.
        why: String,
    },
    /// git is missing, too old, or failed.
    #[error("git {command} failed: {words}")]
    Git {
        /// What was run, without paths of ours.
        command: String,
        /// git's words.
        words: String,
    },
    /// Another error of the system.
    #[error("{path}: {words}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's words.
        words: String,
    },
}
