//! How the program ends.

use std::process::ExitCode;

/// What the exit code tells. Documented in the README; scripts rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(
    dead_code,
    reason = "the codes are documented as a whole; commands on runs end with the others"
)]
pub(crate) enum Exit {
    /// Complete: all that was asked is done.
    Complete = 0,
    /// Failed: a run failed, or the system refused us something.
    Failed = 1,
    /// Wrong usage, or a faulty task, report or settings file.
    Faulty = 2,
    /// Partial: a run ended with part of its work.
    Partial = 3,
    /// Blocked: a run ended because an agent reported blockers.
    Blocked = 4,
    /// An agent or gateway is out of reach.
    OutOfReach = 5,
    /// The store cannot be used, or another process holds it.
    Store = 6,
    /// A defect of Sillage.
    Defect = 70,
    /// Interrupted by a signal, or stopped.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
