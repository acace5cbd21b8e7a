//! What engines left behind: processes of sessions whose engine was killed, and of those that could not be ended.
//!
//! An engine with [`crate::Options::records`] keeps a record of each of its sessions' processes until their end is
//! proved. Whoever starts next on the same folder, while no other engine works there, calls [`end`] first. A process
//! counts as left when a record names it, by its number and the moment it started, or when it carries the mark of a
//! recorded session, or descends from such a process; it is signalled through a handle, never by its number alone.
//!
//! All of this is known on Linux only; elsewhere no record is kept and nothing is found.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sillage_core::id::ClientSessionId;
use sillage_core::time::Timestamp;

/// A session whose engine is gone, with what it left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leftover {
    /// The session.
    pub session: ClientSessionId,
    /// Its agent; empty when the record is damaged.
    pub agent: String,
    /// The folder that it worked in; empty when the record is damaged.
    pub folder: PathBuf,
    /// When it was started.
    pub since: Timestamp,
    /// Its processes that were found alive.
    pub pids: Vec<u32>,
    /// What became of them.
    #[serde(flatten)]
    pub state: LeftoverState,
}

/// What became of the processes that were left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum LeftoverState {
    /// There was none any more.
    Gone,
    /// They were found and left alone.
    Running,
    /// They were ended.
    Ended,
    /// One could not be ended: its record stays.
    Unstoppable {
        /// The process.
        pid: u32,
        /// Why.
        words: String,
    },
}

/// Finds what is left, and leaves it alone: sessions whose engine is gone and of which a process lives.
///
/// # Errors
/// When the records cannot be read.
pub fn find(records: &Path) -> io::Result<Vec<Leftover>> {
    #[cfg(target_os = "linux")]
    return crate::process::leftovers::find(records);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = records;
        Ok(Vec::new())
    }
}

/// Ends what is left, and tells of every session whose engine is gone, in the order of their start. Takes up to some
/// seconds where something is left, and no time where nothing is. No other engine may work on this folder.
///
/// # Errors
/// When the records cannot be read or written.
pub fn end(records: &Path) -> io::Result<Vec<Leftover>> {
    #[cfg(target_os = "linux")]
    return crate::process::leftovers::end(records);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = records;
        Ok(Vec::new())
    }
}

/// From now on, what descends from this process and has lost its parents becomes its child (Linux). So what a guardian
/// that was killed leaves behind is still found by those who end its session. For programs, not for libraries: it is
/// the whole process that changes.
///
/// # Errors
/// When the system refuses.
pub fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}
