//! What a workspace in memory was asked, in the order of the asking.

use std::path::PathBuf;

use sillage_core::ports::workspace::{MergeWanted, Worktree, WorktreeWanted};

/// A call that a [`super::MemoryWorkspace`] received.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each variant is the method of `Workspace` with its arguments"
)]
pub enum Call {
    Inspect(PathBuf),
    Lease(WorktreeWanted),
    Commit(Worktree, String),
    Merge(MergeWanted),
    Restart(Worktree),
    BeginMerge(Worktree, MergeWanted),
    Unresolved(Worktree, Vec<String>),
    AbandonMerge(Worktree, String),
    Checkout(PathBuf),
    CheckFolder(String, String),
    ClearCheck(String),
    Missing(PathBuf, Vec<PathBuf>),
    List(PathBuf),
    Remove(Worktree),
    Diff(String, String),
}
