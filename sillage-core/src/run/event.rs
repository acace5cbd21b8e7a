// long: all that can happen in a run, to be read from top to bottom
//! What can happen in a run. Start reading here.
//!
//! Events are facts in the past tense, appended to the run's log before anything is done about them. Folding them
//! gives the run's state; nothing else does. Chatter of agents is not an event: it changes no decision.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::{Budget, BudgetKind, BudgetMode, Currency};
use super::check::CheckResult;
use super::definition::RunDefinition;
pub(super) use super::ends::{RunEnd, StepEnd};
pub(super) use super::failure::{Failure, FailureClass, WaitCause};
pub(super) use super::gates::{OpenedBy, Wall};
pub(super) use super::hand::TakenWork;
pub(super) use super::input::LeftBehind;
pub use super::purpose::{AnsweredBy, MessagePurpose};
use super::stray::StrayWrite;
use crate::fault::Fault;
use crate::id::{ClientMessageId, ClientSessionId, RunId, Seq, StepIndex};
use crate::plan::Plan;
use crate::ports::runtime::{
    Answer, MessageRequest, OpenedSession, PermissionRequest, SessionRequest, Usage,
};
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
        /// What the engine before it left of the run's sessions, and what became of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<LeftBehind>,
    },
    /// A person asked for the run to stop; forced when it was asked twice or the grace is over.
    StopAsked {
        /// Whether sessions are closed without waiting for them.
        forced: bool,
    },
    /// A person asked for what did not succeed to be done again.
    ResumeAsked,
    /// A person asked for the step to be done again (W18).
    RetryAsked {
        /// The step.
        step: StepIndex,
    },
    /// A person asked for the run to go on without the step (W18).
    StepSkipped {
        /// The step.
        step: StepIndex,
    },
    /// What became of the step rests on what a step upstream did before, or did not do, or on that another failed first:
    /// it is done again.
    StepOutdated {
        /// The step.
        step: StepIndex,
        /// The step upstream, or the one that had failed first.
        by: StepIndex,
    },
    /// The step's result is that of an earlier run (R13).
    StepTaken {
        /// The step.
        step: StepIndex,
        /// The earlier run.
        from: RunId,
        /// How the step ended there.
        end: StepEnd,
        /// Its report.
        report: Arc<Report>,
        /// Its commits; none: it made none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<TakenWork>,
    },
    /// A person changed the run's ceilings.
    BudgetChanged {
        /// What they are from now on; none: there is none.
        budget: Option<Budget>,
    },
    /// A ceiling is reached: told once, and again only after it was changed.
    BudgetReached {
        /// What it is of.
        kind: BudgetKind,
        /// The ceiling: tokens, millionths of the currency, or milliseconds.
        limit: u64,
        /// What is used of it, in the same unit.
        used: u64,
        /// The currency of a cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        currency: Option<Currency>,
        /// Whether it only is told, or no new session is opened from now on.
        mode: BudgetMode,
    },
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
    /// The session is not heard any more: it ended by itself while nothing was asked of it, or its runtime is out of
    /// reach. It is looked for when it is needed again.
    SessionGone {
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
    /// The agent asks for a permission that the policy leaves to a person (A5). The fact's position names the request
    /// from now on.
    PermissionAsked {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// What is asked.
        request: Arc<PermissionRequest>,
    },
    /// The agent asked for a permission, and a rule refused it. Told of the first [`super::REFUSALS_TOLD`] of a session.
    PermissionRefused {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// What is asked.
        request: Arc<PermissionRequest>,
        /// The rule, in words.
        rule: String,
    },
    /// A person answered; the agent is told next.
    PermissionAnswered {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// The position of the fact that it was asked.
        asked: Seq,
        /// The option taken.
        option: String,
    },
    /// The permission request is not open any more.
    PermissionSettled {
        /// The step.
        step: StepIndex,
        /// The session.
        session: ClientSessionId,
        /// The position of the fact that it was asked.
        asked: Seq,
        /// The option that the agent was told; none: it was told `cancelled`.
        option: Option<String>,
        /// Who decided.
        by: AnsweredBy,
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
    /// The coordinator's plan is missing, malformed or against the rules; nothing was launched (W20, W21).
    PlanRefused {
        /// The step.
        step: StepIndex,
        /// All that is wrong.
        faults: Vec<Fault>,
    },
    /// The coordinator's plan is accepted: its sub-agents' steps exist from now on, after all others (W22).
    PlanAccepted {
        /// The coordinator's step.
        step: StepIndex,
        /// The plan, every field of it resolved.
        plan: Arc<Plan>,
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

    /// An agent met an exhausted quota or an expired sign-in: its account's agents are held (R8).
    GateClosed {
        /// The account.
        account: String,
        /// The step that met it.
        step: StepIndex,
        /// What it met.
        wall: Wall,
    },
    /// What is known of a closed gate changed: when it opens, or when it is next tried.
    GateDated {
        /// The account.
        account: String,
        /// The step that met it again.
        step: StepIndex,
        /// What it met.
        wall: Wall,
    },
    /// A single step is let through the account's gate, to see whether it is served.
    GateProbed {
        /// The account.
        account: String,
        /// The step.
        step: StepIndex,
    },
    /// The account is used again: its agents go on.
    GateOpened {
        /// The account.
        account: String,
        /// Why.
        by: OpenedBy,
        /// Steps that it held.
        held: u32,
    },
    /// The machine slept: that is nobody's work.
    MachineSlept {
        /// For how long.
        slept: Duration,
    },
    /// The machine's clock was set: spans count on as if it had not been, dates of the world outside stay.
    ClockJumped {
        /// By how many milliseconds; below zero: back.
        by_ms: i64,
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
    /// The conflict goes back to the step's agent: the merge is to be begun in its worktree (R17).
    ConflictReturned {
        /// The step.
        step: StepIndex,
    },
    /// The integration branch's tip is merged into the step's worktree but for what conflicts.
    MergeBegun {
        /// The step.
        step: StepIndex,
        /// That tip.
        onto: String,
        /// The files in conflict; none: nothing conflicts any more, and the work waits for its turn to be merged.
        files: Vec<String>,
    },
    /// The agent reported that it resolved the conflict, and no file shows one any more.
    ConflictResolved {
        /// The step.
        step: StepIndex,
    },
    /// The agent reported, and these files are still in conflict: they go back to it.
    ConflictLeft {
        /// The step.
        step: StepIndex,
        /// The files.
        files: Vec<String>,
    },
    /// The conflict stays: the merge in the step's worktree is given up before the step ends.
    ConflictGivenUp {
        /// The step.
        step: StepIndex,
        /// The files that are still in conflict.
        files: Vec<String>,
        /// How the step is to end.
        end: StepEnd,
    },
    /// The merge in the step's worktree was given up: its branch holds the work as it was before.
    MergeAbandoned {
        /// The step.
        step: StepIndex,
        /// Where what the worktree held was kept; none: it held nothing more.
        rescued: Option<String>,
    },
    /// Files of the person's own checkout changed while the step, which has a worktree, was at work.
    StrayWrites {
        /// The step.
        step: StepIndex,
        /// The files.
        writes: Vec<StrayWrite>,
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

    /// The task's check is to be run (W10b).
    CheckStarted {
        /// The commit that it runs on, in a fresh worktree; none: it runs in the folder that the steps worked in.
        commit: Option<String>,
    },
    /// The check ended.
    CheckEnded {
        /// How.
        result: CheckResult,
    },
    /// The folder that was made for the check is gone.
    CheckCleared,
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
            | Event::BudgetChanged { .. }
            | Event::BudgetReached { .. }
            | Event::RunEnded { .. }
            | Event::CheckStarted { .. }
            | Event::CheckEnded { .. }
            | Event::CheckCleared
            | Event::GateClosed { .. }
            | Event::GateDated { .. }
            | Event::GateOpened { .. }
            | Event::MachineSlept { .. }
            | Event::ClockJumped { .. } => None,
            Event::RetryAsked { step }
            | Event::StepSkipped { step }
            | Event::StepOutdated { step, .. }
            | Event::StepTaken { step, .. }
            | Event::StepStarted { step }
            | Event::WorktreePlanned { step, .. }
            | Event::WorktreeReady { step, .. }
            | Event::WorktreeRestarted { step, .. }
            | Event::SessionPlanned { step, .. }
            | Event::SessionOpened { step, .. }
            | Event::SessionFound { step, .. }
            | Event::SessionLost { step, .. }
            | Event::SessionGone { step, .. }
            | Event::SessionClosed { step, .. }
            | Event::UsageCounted { step, .. }
            | Event::MessagePlanned { step, .. }
            | Event::PermissionAsked { step, .. }
            | Event::PermissionRefused { step, .. }
            | Event::PermissionAnswered { step, .. }
            | Event::PermissionSettled { step, .. }
            | Event::Answered { step, .. }
            | Event::PlanRefused { step, .. }
            | Event::PlanAccepted { step, .. }
            | Event::ReportFound { step, .. }
            | Event::ReportRefused { step, .. }
            | Event::ReportAccepted { step, .. }
            | Event::WaitStarted { step, .. }
            | Event::WaitEnded { step }
            | Event::GateProbed { step, .. }
            | Event::StepFailing { step, .. }
            | Event::WorkCommitted { step, .. }
            | Event::MergePlanned { step, .. }
            | Event::Merged { step, .. }
            | Event::MergeConflicted { step, .. }
            | Event::ConflictReturned { step }
            | Event::MergeBegun { step, .. }
            | Event::ConflictResolved { step }
            | Event::ConflictLeft { step, .. }
            | Event::ConflictGivenUp { step, .. }
            | Event::MergeAbandoned { step, .. }
            | Event::StrayWrites { step, .. }
            | Event::StepEnded { step, .. }
            | Event::WorktreeRemoved { step }
            | Event::WorktreeHeld { step, .. } => Some(*step),
        }
    }
}
