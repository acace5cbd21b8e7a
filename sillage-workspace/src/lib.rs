//! Git worktrees, commits and merges for agents, without running anything that a repository plants.
//!
//! [`GitWorkspace`] implements [`sillage_core::ports::Workspace`] on the git command line, 2.38 or newer.
//!
//! Two rules make it safe to work in a repository that an agent writes to:
//!
//! - Whatever reads or writes files and commits runs in a git folder of ours (the *shadow*), which borrows the
//!   repository's objects and nothing else: hooks, filters, drivers and settings of the repository do not exist there.
//! - On the repository's own git folder only references and the list of worktrees are touched, with hooks off.
//!   References move by compare-and-swap, by their own name and never through one that only points to another.
//!
//! Files in folders that an agent writes to are reached through [`confined`], which no link leads out of.
//!
//! The person's branch, index and working tree are never written to.
//!
//! Linux is where everything is tested. Elsewhere processes that work in a worktree cannot be seen. Windows
//! has no [`confined::Folder`]: a deliverable's path is checked there before it is looked at rather than while.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod check;
mod checkout;
mod commit;
pub mod confined;
mod conflict;
mod content;
mod folders;
mod git;
mod holds;
mod inspect;
mod lease;
mod locks;
mod merge;
mod removal;
mod repository;
mod rescue;
mod restart;
mod scan;
mod settings;
mod survey;
mod trash;
mod upkeep;
mod workspace;
mod worktree;

pub use content::Sign;
pub use removal::{Gone, Insistence, TakenAway};
pub use survey::{Content, Process, Surveyed};
pub use trash::{Emptied, TrashNote, Trashed};
pub use workspace::GitWorkspace;
