//! What keeps the gateway from being served.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use sillage::RelaisError;

/// Why the program ends without having been told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Something on the command line cannot be done.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read or made.
    #[error("cannot use {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The settings are faulty.
    #[error("the settings file {} is faulty:\n{faults}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Every fault on a line.
        faults: String,
    },
    /// The gateway cannot be served, or no more.
    #[error(transparent)]
    Relais(#[from] RelaisError),
    /// The program cannot begin.
    #[error("cannot {what}")]
    System {
        /// What the system refuses.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// An agent could not be launched.
    #[error("{0}")]
    Launch(String),
}

impl Failure {
    /// As the README's table of exit codes has it.
    pub(crate) fn exit(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Usage(_) | Failure::Settings { .. } => 2,
            Failure::File { .. } | Failure::System { .. } => 6,
            Failure::Launch(_) => 127,
            Failure::Relais(error) => match error {
                RelaisError::Agent(_) => 2,
                RelaisError::Port { .. } | RelaisError::Listener(_) => 5,
                RelaisError::Interrupted => 130,
                RelaisError::File { .. }
                | RelaisError::Token(_)
                | RelaisError::Journal(_)
                | RelaisError::System { .. }
                | _ => 6,
            },
        })
    }
}
