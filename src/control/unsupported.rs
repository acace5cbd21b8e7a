//! What stands for the control socket where there is none: each call says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sillage_core::id::{ClientSessionId, RunId, Seq, StepIndex};
use sillage_core::ports::store::{RunSummary, Store, Which};
use sillage_core::run::{PermissionAnswer, Recorded, StepCommand};
use sillage_core::time::Timestamp;

use super::ControlError;
use crate::active::ActiveRuns;
use crate::follow::Followed;
use crate::reader::{ReadError, StopAsked};
use crate::restore::ExecutedText;

/// Would listen on the control socket.
#[derive(Debug)]
pub struct ControlServer(());

impl ControlServer {
    /// Listens on nothing.
    ///
    /// # Errors
    /// [`ControlError::Unsupported`].
    pub fn start(
        _folder: &Path,
        _store: Arc<dyn Store>,
        _active: ActiveRuns,
    ) -> Result<ControlServer, ControlError> {
        Err(ControlError::Unsupported)
    }

    /// Does nothing.
    #[expect(clippy::unused_async, reason = "the same call as where there is a socket")]
    pub async fn close(self) {}
}

/// Would ask the process that holds the store.
#[derive(Debug, Clone)]
pub struct ControlClient {
    folder: PathBuf,
}

/// Calls that cannot be made here.
macro_rules! unsupported {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $of:ty),*) -> $answer:ty;)*) => {
        $($(#[$doc])*
        ///
        /// # Errors
        /// [`ControlError::Unsupported`].
        #[expect(clippy::unused_async, reason = "the same call as where there is a socket")]
        pub async fn $name(&self, $($argument: $of),*) -> Result<$answer, ReadError> {
            $(let _ = $argument;)*
            Err(ControlError::Unsupported.into())
        })*
    };
}

impl ControlClient {
    /// A client of nothing.
    #[must_use]
    pub fn new(folder: &Path) -> ControlClient {
        ControlClient {
            folder: folder.to_owned(),
        }
    }

    /// The data folder.
    #[cfg(feature = "store")]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    unsupported! {
        /// Summaries of runs.
        runs(which: Which, limit: usize) -> Vec<RunSummary>;
        /// One run's summary.
        run(run: &RunId) -> RunSummary;
        /// The fact that launched a run.
        launch(run: &RunId) -> Recorded;
        /// The runs that the process drives.
        driven() -> Vec<RunId>;
        /// A run's stored facts.
        events(run: &RunId, from: Seq) -> Vec<Recorded>;
        /// What goes on in a run.
        follow(run: &RunId, from: Seq) -> Followed<ReadError>;
        /// When each step was last heard.
        heard(run: &RunId) -> Vec<(StepIndex, Timestamp)>;
        /// Asks a run to stop.
        stop(run: &RunId) -> StopAsked;
        /// Answers a permission request.
        answer_permission(run: &RunId, asked: Seq, answer: PermissionAnswer) -> ();
        /// Uses a provider account again.
        try_account(run: &RunId, account: &str) -> ();
        /// The text that a run executed.
        executed(run: &RunId, renew: bool) -> Option<ExecutedText>;
        /// Commands a step.
        command(run: &RunId, step: StepIndex, command: StepCommand) -> ();
        /// A session's transcript.
        transcript(run: &RunId, session: ClientSessionId) -> String;
    }
}
