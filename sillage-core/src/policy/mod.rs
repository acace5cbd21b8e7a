//! What is answered to an agent's permission request (A5, R21): from what the agent said of the tool call, the
//! session's policy, its folders, and the places that nobody but a person is let into.
//!
//! What is not known is refused, or a person is asked. Nothing here isolates the machine (R22): an agent that asks
//! nothing is not held by it, and between the answer and the deed a path may come to lead elsewhere.
//!
//! The only thing that is asked of the world is where a path really leads; it comes in as a function.

mod decide;
mod facts;
mod protect;
mod written;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use decide::{Decision, Reason, decide, option_for};
pub use facts::ToolFacts;
pub use protect::reserved;
pub use written::absolute;

use crate::folders::Folders;
use crate::ports::runtime::PermissionPolicy;

/// What a session may do.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// What happens to its requests.
    pub policy: PermissionPolicy,
    /// Its folders; absolute and canonical.
    pub folders: &'a Folders,
    /// What its folders do not grant, though it may lie in them.
    pub protected: &'a Protected,
    /// What relative paths start from.
    pub workspace: &'a Path,
}

/// Places that agents are kept out of though they lie in a folder that is granted; absolute and canonical, and
/// protected whether they exist or not. A folder that is granted within one of them is granted all the same: so is a
/// step's own worktree in the folder of the program's data.
///
/// Besides these, what is called `.git` or `.sillage` is never written, wherever it lies: see [`reserved`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// Neither read nor written: the program's data and settings, other agents' worktrees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<PathBuf>,
    /// Never written: the person's checkout, for an agent that has its own worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<PathBuf>,
}

impl Protected {
    /// Whether there is no such place.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests;
