//! Time and identifiers, so that tests own both.

use crate::id::{ClientMessageId, ClientSessionId};
use crate::run::ClockReading;
use crate::time::Timestamp;

/// The time of day.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;

    /// All of the machine's clocks at one moment, by which sleeps and set clocks are noticed; none where they cannot be
    /// read.
    fn reading(&self) -> Option<ClockReading> {
        None
    }
}

/// Identifiers that have never been given before.
pub trait Ids: Send {
    /// For a session that is about to be asked for.
    fn session(&mut self) -> ClientSessionId;
    /// For a message that is about to be sent.
    fn message(&mut self) -> ClientMessageId;
}
