//! The socket by which the process that holds the store answers others.
//!
//! It is named `control`, lies in the data folder and is its owner's alone (mode 0600). It is not the lock: whoever
//! holds the store listens on it, replaces the one that an earlier holder left when it was killed, and removes its
//! own. A connection carries one request, a line of JSON, then its answers, lines of JSON that end with `"end"` or
//! `{"failed": …}`; whoever asks closes it to be answered no longer.
//!
//! Only Unix has it; elsewhere each call says so.

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod protocol;
#[cfg(unix)]
mod server;
#[cfg(not(unix))]
mod unsupported;
#[cfg(unix)]
pub(crate) mod wire;

use std::io;
use std::path::PathBuf;

#[cfg(unix)]
pub use client::ControlClient;
#[cfg(unix)]
pub use server::ControlServer;
#[cfg(not(unix))]
pub use unsupported::{ControlClient, ControlServer};

/// Why the control socket did not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The socket cannot be made or reached.
    #[error("the control socket {} cannot be used", path.display())]
    Unusable {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection ended before the answer did: the process that holds the store has ended.
    #[error("the process that holds the store went away before it had answered")]
    Closed,
    /// The process at the other end speaks otherwise.
    #[error("the process that holds the store speaks another version of Sillage: {0}")]
    Foreign(String),
    /// The process that holds the store could not answer; these are its words.
    #[error("{0}")]
    Refused(String),
    /// This system has no such sockets.
    #[error("this system has no control socket: wait until the process that holds the store has ended")]
    Unsupported,
}

#[cfg(all(test, unix, feature = "store"))]
mod tests;
