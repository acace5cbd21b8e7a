//! What can happen in a run. Start reading here.
//!
//! Events are facts in the past tense, appended to the run's log before anything is done about them. Folding them
//! gives the run's state; nothing else does. Chatter of agents is not an event: it changes no decision.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::definition::RunDefinition;
use crate::fault::Fault;
use crate::id::{ClientMessageId, ClientSessionId, Seq, StepIndex};
use crate::ports::runtime::{Answer, MessageRequest, OpenedSession, SessionRequest, Usage};
use crate::ports::workspace::{Committed, Hold, Worktree};
use crate::report::Report;
use crate::time::Timestamp;

/// An event with its place in the log and its date.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its position: the first is 1, without gaps.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// The fact.
    pub event: Event,
}

/// A fact of a run's life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run was launched.
    RunCreated(Box<RunDefinition>),
    /// An engine took the run up again after its process had ended: sessions must be found again.
    EngineStarted {
        /// The engine's process.
        pid: u32,
    },
    /// A person asked for the run to stop; forced when it was asked twice or the grace is over.
    StopAsked {
        /// Whether sessions are closed without waiting for them.
        forced: bool,
    },
    /// A person asked for what did not succeed to be done again.
    ResumeAsked,
    /// The run is over.
    RunEnded {
        /// How.
        end: RunEnd,
    },

    /// The step got a place and goes on with what it was at.
    StepStarted {
        /// The step.
        step: StepIndex,
    },
    /// A worktree is to be made for the step.
    WorktreePlanned {
        /// The step.
        step: StepIndex,
        /// Its branch, without `refs/heads/`; another name is taken when this one is someone else's.
        branch: String,
        /// The commit to start from.
        base: String,
    },
    /// The step's worktree is there.
    WorktreeReady {
        /// The step.
        step: StepIndex,
        /// The worktree.
        worktree: Worktree,
    },
    /// What the step's worktree held was kept, and the worktree put back to its base (R12).
    WorktreeRestarted {
        /// The step.
        step: StepIndex,
        /// The worktree.
        worktree: Worktree,
        /// Where what it held was kept; none: it held nothing.
        rescued: Option<String>,
    },

    /// A session is to be opened for the step.
    SessionPlanned {
        /// The step.
        step: StepIndex,
        /// The request, as it leaves.
        request: Arc<SessionRequest>,
    },
    /// The session is open.
    SessionOpened {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// What the runtime said of it.
        opened: OpenedSession,
    },
    /// The session was found again after a restart.
    SessionFound {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// What the runtime said of it.
        opened: OpenedSession,
    },
    /// The session is known to be gone: the step starts again in a new one, after its wait where it waits.
    SessionLost {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// The runtime's words.
        words: String,
    },
    /// The session is closed and nothing of it is left.
    SessionClosed {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// What went wrong in closing it, e.g. a process that could not be stopped.
        trouble: Option<String>,
    },
    /// Usage of the session so far.
    UsageCounted {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// Totals of the session.
        usage: Usage,
    },

    /// A message is to be sent. The text is exactly what leaves.
    MessagePlanned {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// What it is for.
        purpose: MessagePurpose,
        /// Identifier and text.
        message: Arc<MessageRequest>,
    },
    /// A message was answered.
    Answered {
        /// The step.
        step: StepIndex,
        /// The message.
        message: ClientMessageId,
        /// The answer, whole.
        answer: Answer,
    },
    /// A report was found in the answer and is well formed; its deliverable's files are still to be looked at.
    ReportFound {
        /// The step.
        step: StepIndex,
        /// The report.
        report: Arc<Report>,
    },
    /// The report is missing, malformed or contradicted by what is there.
    ReportRefused {
        /// The step.
        step: StepIndex,
        /// All that is wrong.
        faults: Vec<Fault>,
    },
    /// The report is the step's result.
    ReportAccepted {
        /// The step.
        step: StepIndex,
        /// The report.
        report: Arc<Report>,
    },

    /// The step waits for a date (R7, R8).
    WaitStarted {
        /// The step.
        step: StepIndex,
        /// What for.
        cause: WaitCause,
        /// Until when it waits before it tries again.
        until: Timestamp,
        /// The provider's words.
        words: String,
        /// Whether the message in flight was not accepted, and is sent again under its own identifier.
        resend: bool,
    },
    /// The step's wait is over: it is ready again.
    WaitEnded {
        /// The step.
        step: StepIndex,
    },

    /// The step failed; its session is closed and its work committed on its branch before it ends.
    StepFailing {
        /// The step.
        step: StepIndex,
        /// How.
        failure: Failure,
    },
    /// What the step left was committed on its branch.
    WorkCommitted {
        /// The step.
        step: StepIndex,
        /// The branch's tip and what it changes.
        work: Committed,
    },
    /// The step's work is to be merged into the integration branch.
    MergePlanned {
        /// The step.
        step: StepIndex,
        /// The integration branch's tip as it is known.
        onto: String,
    },
    /// The integration branch holds the step's work.
    Merged {
        /// The step.
        step: StepIndex,
        /// The integration branch's tip.
        tip: String,
    },
    /// The step's work conflicts with the integration branch; nothing was changed.
    MergeConflicted {
        /// The step.
        step: StepIndex,
        /// The files.
        files: Vec<String>,
    },
    /// The step is over.
    StepEnded {
        /// The step.
        step: StepIndex,
        /// How.
        end: StepEnd,
    },
    /// The step's worktree was removed; its branch stays.
    WorktreeRemoved {
        /// The step.
        step: StepIndex,
    },
    /// The step's worktree stays, held by what is named.
    WorktreeHeld {
        /// The step.
        step: StepIndex,
        /// What holds it.
        holds: Vec<Hold>,
    },
}

impl Event {
    /// The step that it concerns, if it concerns one.
    #[must_use]
    pub fn step(&self) -> Option<StepIndex> {
        match self {
            Event::RunCreated(_)
            | Event::EngineStarted { .. }
            | Event::StopAsked { .. }
            | Event::ResumeAsked
            | Event::RunEnded { .. } => None,
            Event::StepStarted { step }
            | Event::WorktreePlanned { step, .. }
            | Event::WorktreeReady { step, .. }
            | Event::WorktreeRestarted { step, .. }
            | Event::SessionPlanned { step, .. }
            | Event::SessionOpened { step, .. }
            | Event::SessionFound { step, .. }
            | Event::SessionLost { step, .. }
            | Event::SessionClosed { step, .. }
            | Event::UsageCounted { step, .. }
            | Event::MessagePlanned { step, .. }
            | Event::Answered { step, .. }
            | Event::ReportFound { step, .. }
            | Event::ReportRefused { step, .. }
            | Event::ReportAccepted { step, .. }
            | Event::WaitStarted { step, .. }
            | Event::WaitEnded { step }
            | Event::StepFailing { step, .. }
            | Event::WorkCommitted { step, .. }
            | Event::MergePlanned { step, .. }
            | Event::Merged { step, .. }
            | Event::MergeConflicted { step, .. }
            | Event::StepEnded { step, .. }
            | Event::WorktreeRemoved { step }
            | Event::WorktreeHeld { step, .. } => Some(*step),
        }
    }
}

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePurpose {
    /// The agent's mission.
    Mission,
    /// A report that goes back to its agent.
    Correction,
    /// To go on after an interruption or a provider's failure, in the same session.
    Continuation,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// All of its mission.
    Complete,
    /// Part of it.
    Partial,
    /// Something stands in its way.
    Blocked,
    /// It failed.
    Failed(Box<Failure>),
    /// It was cancelled, and can be resumed.
    Cancelled,
    /// It was not run, because of this step upstream.
    NotRun(StepIndex),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Every step is complete.
    Complete,
    /// Some step is partial.
    Partial,
    /// Some step is blocked.
    Blocked,
    /// Some step failed.
    Failed,
    /// A person stopped it.
    Stopped,
}

impl RunEnd {
    /// The state's name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            RunEnd::Complete => "complete",
            RunEnd::Partial => "partial",
            RunEnd::Blocked => "blocked",
            RunEnd::Failed => "failed",
            RunEnd::Stopped => "stopped",
        }
    }
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The class.
    pub class: FailureClass,
    /// The words of whoever said so, for people.
    pub words: String,
}

/// Classes of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The report was refused too often (W17).
    ReportRefused,
    /// The working time was used up (R11).
    TimedOut,
    /// A permanent error of the provider or the agent (R9).
    Permanent,
    /// The provider answered that an identifier came before with another request: a defect (R6).
    Conflict,
    /// The agent's process or session ended while it was answering.
    AgentLost,
    /// The step's worktree is gone.
    WorktreeLost,
    /// A worktree, commit or merge could not be made.
    Workspace,
    /// Too many temporary errors in a row.
    Attempts,
}

impl FailureClass {
    /// What it is called, for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            FailureClass::ReportRefused => "report refused",
            FailureClass::TimedOut => "timed out",
            FailureClass::Permanent => "permanent error",
            FailureClass::Conflict => "identifier conflict",
            FailureClass::AgentLost => "agent lost",
            FailureClass::WorktreeLost => "worktree lost",
            FailureClass::Workspace => "workspace error",
            FailureClass::Attempts => "too many attempts",
        }
    }
}

/// What a step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// A temporary error to pass.
    Backoff,
    /// A quota to be given back.
    Quota,
    /// Someone to sign in.
    SignIn,
}

impl WaitCause {
    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            WaitCause::Backoff => "backoff",
            WaitCause::Quota => "quota",
            WaitCause::SignIn => "sign-in",
        }
    }
}
