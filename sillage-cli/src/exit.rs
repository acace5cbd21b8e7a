//! How the program ends.

use std::process::ExitCode;

/// What the exit code tells. Documented in the README; scripts rely on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Exit {
    /// Complete: all that was asked is done.
    Complete,
    /// Failed: a run failed, or the system refused us something.
    Failed,
    /// Wrong usage, or a faulty task, report or settings file.
    Faulty,
    /// Partial: a run ended with part of its work.
    Partial,
    /// Blocked: a run ended because an agent reported blockers.
    Blocked,
    /// An agent or gateway is out of reach.
    OutOfReach,
    /// The store cannot be used, or another process holds it.
    Store,
    /// A defect of Sillage.
    Defect,
    /// Interrupted by a signal, or stopped.
    Interrupted,
    /// That of another program that this one became.
    Other(ExitCode),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        let code = match exit {
            Exit::Complete => 0,
            Exit::Failed => 1,
            Exit::Faulty => 2,
            Exit::Partial => 3,
            Exit::Blocked => 4,
            Exit::OutOfReach => 5,
            Exit::Store => 6,
            Exit::Defect => 70,
            Exit::Interrupted => 130,
            Exit::Other(code) => return code,
        };
        ExitCode::from(code)
    }
}
