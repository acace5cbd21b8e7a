//! What the world tells a run. Inputs are neutral: whether they matter is for the run to decide.

use std::path::PathBuf;

use super::event::LeftBehind;
use crate::id::{ClientMessageId, ClientSessionId, StepIndex};
use crate::ports::runtime::{Answer, FoundSession, OpenedSession, RuntimeError, Usage};
use crate::ports::workspace::{Committed, MergeOutcome, Removal, Restarted, WorkspaceError, Worktree};

/// Something that may concern a run. Late, repeated or foreign ones yield nothing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// Time has passed, or something else was decided: what is due?
    Tick,
    /// This engine, process `pid`, took the run up.
    EngineStarted {
        /// The engine's process.
        pid: u32,
        /// What the engine before it left of the run's sessions.
        left: Vec<LeftBehind>,
    },
    /// A person's command.
    Command(Command),
    /// A worktree was asked for.
    Leased {
        /// The step.
        step: StepIndex,
        /// What came of it.
        result: Result<Worktree, WorkspaceError>,
    },
    /// A worktree was to be put back to its base.
    Restarted {
        /// The step.
        step: StepIndex,
        /// What came of it.
        result: Result<Restarted, WorkspaceError>,
    },
    /// A session was asked for.
    Opened {
        /// The session.
        session: ClientSessionId,
        /// What came of it.
        result: Result<OpenedSession, RuntimeError>,
    },
    /// A session was looked for.
    Found {
        /// The session.
        session: ClientSessionId,
        /// What came of it.
        result: Result<FoundSession, RuntimeError>,
    },
    /// A message was not accepted.
    NotSent {
        /// The session.
        session: ClientSessionId,
        /// The message.
        message: ClientMessageId,
        /// Why.
        error: RuntimeError,
    },
    /// A message was answered.
    Answered {
        /// The session.
        session: ClientSessionId,
        /// The message.
        message: ClientMessageId,
        /// The answer.
        answer: Answer,
    },
    /// A session failed.
    Failed {
        /// The session.
        session: ClientSessionId,
        /// The message that was being answered, if the runtime says.
        message: Option<ClientMessageId>,
        /// How.
        error: RuntimeError,
    },
    /// Usage of a session so far.
    UsageCounted {
        /// The session.
        session: ClientSessionId,
        /// Totals.
        usage: Usage,
    },
    /// A session was to be closed.
    Closed {
        /// The session.
        session: ClientSessionId,
        /// What came of it.
        result: Result<(), RuntimeError>,
    },
    /// A deliverable's files were looked at.
    Verified {
        /// The step.
        step: StepIndex,
        /// The missing or empty ones.
        result: Result<Vec<PathBuf>, WorkspaceError>,
    },
    /// What a step left was to be committed.
    Committed {
        /// The step.
        step: StepIndex,
        /// What came of it.
        result: Result<Committed, WorkspaceError>,
    },
    /// A step's work was to be merged.
    Merged {
        /// The step.
        step: StepIndex,
        /// What came of it.
        result: Result<MergeOutcome, WorkspaceError>,
    },
    /// A step's worktree was to be removed.
    Removed {
        /// The step.
        step: StepIndex,
        /// What came of it.
        result: Result<Removal, WorkspaceError>,
    },
}

/// What a person may ask of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Stop; twice: at once (R4).
    Stop,
    /// Do again what did not succeed (R12).
    Resume,
}

/// A command that makes no sense in the run's state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is over.
    #[error("the run is already {0}")]
    Over(&'static str),
    /// It is under way.
    #[error("the run is under way")]
    UnderWay,
    /// It succeeded: nothing is left to do.
    #[error("the run is {0}: nothing is left to resume")]
    NothingLeft(&'static str),
}
