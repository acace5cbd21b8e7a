//! What keeps the gateway from being served.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use sillage_relais::gateway::{BadListener, JournalError, TokenError};

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
    /// An agent of the settings cannot be started.
    #[error("mend the settings file")]
    Agent(#[from] sillage::BadAgent),
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The log cannot be used, or no more.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The port cannot be listened on.
    #[error("cannot listen on 127.0.0.1:{port}: end what listens there, or name another port by --port")]
    Port {
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// The listener is not served.
    #[error(transparent)]
    Listener(#[from] BadListener),
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
    /// It was told twice to end.
    #[error("ended at once: what agents were left is ended by the next start")]
    Interrupted,
}

impl Failure {
    /// The failure with its causes.
    pub(crate) fn in_words(&self) -> String {
        let mut words = self.to_string();
        let mut cause = self.source();
        while let Some(deeper) = cause {
            words.push_str(&format!(": {deeper}"));
            cause = deeper.source();
        }
        words
    }

    /// As the README's table of exit codes has it.
    pub(crate) fn exit(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Usage(_) | Failure::Settings { .. } | Failure::Agent(_) => 2,
            Failure::Port { .. } | Failure::Listener(_) => 5,
            Failure::File { .. } | Failure::Token(_) | Failure::Journal(_) | Failure::System { .. } => 6,
            Failure::Launch(_) => 127,
            Failure::Interrupted => 130,
        })
    }
}
