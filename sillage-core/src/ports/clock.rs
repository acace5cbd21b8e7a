//! Time and identifiers, so that tests own both.

use crate::id::{ClientMessageId, ClientSessionId};
use crate::time::Timestamp;

/// The time of day.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Identifiers that have never been given before.
pub trait Ids: Send {
    /// For a session that is about to be asked for.
    fn session(&mut self) -> ClientSessionId;
    /// For a message that is about to be sent.
    fn message(&mut self) -> ClientMessageId;
}
