//! What the world tells a run. Inputs are neutral: whether they matter is for the run to decide.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::{BudgetChange, Ceiling};
use super::check::CheckResult;
use super::event::AnsweredBy;
use super::stray::StraySeen;
use crate::id::{ClientMessageId, ClientSessionId, Seq, StepIndex};
use crate::plain;
use crate::ports::runtime::{Answer, FoundSession, OpenedSession, PermissionRequest, RuntimeError, Usage};
use crate::ports::workspace::{
    Committed, MergeBegun, MergeOutcome, Removal, Restarted, WorkspaceError, Worktree,
};

/// What an engine that is gone left of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// The session.
    pub session: ClientSessionId,
    /// Its processes that were found alive; none: all had ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<u32>,
    /// Why one of them could not be ended; none: they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

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
    /// The machine slept, as its clocks tell.
    MachineSlept {
        /// For how long.
        slept: Duration,
    },
    /// The machine's clock was set, as its clocks tell.
    ClockJumped {
        /// By how many milliseconds; below zero: back.
        by_ms: i64,
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
    /// A session is not heard any more: its runtime is out of reach, or came back without it. What was being answered may
    /// be answered all the same.
    OutOfReach {
        /// The session.
        session: ClientSessionId,
        /// What came of asking for its events again.
        error: RuntimeError,
    },
    /// An agent asks for a permission that is left to a person.
    PermissionAsked {
        /// The session.
        session: ClientSessionId,
        /// What is asked.
        request: Arc<PermissionRequest>,
    },
    /// An agent asked for a permission, and a rule refused it.
    PermissionRefused {
        /// The session.
        session: ClientSessionId,
        /// What is asked.
        request: Arc<PermissionRequest>,
        /// The rule, in words.
        rule: String,
    },
    /// A permission request is not open any more.
    PermissionSettled {
        /// The session.
        session: ClientSessionId,
        /// The request's identifier in its session.
        permission: String,
        /// The option taken; none: cancelled.
        option: Option<String>,
        /// Who decided.
        by: AnsweredBy,
    },
    /// A person's answer could not be passed on.
    PermissionNotPassed {
        /// The session.
        session: ClientSessionId,
        /// The position of the fact that it was asked.
        asked: Seq,
        /// Why.
        error: RuntimeError,
    },
    /// A session's model uses a tool: its provider serves it.
    ToolUsed {
        /// The session.
        session: ClientSessionId,
    },
    /// The runtime says that a provider account can be used.
    AccountAvailable {
        /// The account.
        account: String,
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
        /// What changed in the person's checkout since the step's session began.
        seen: StraySeen,
    },
    /// A step's work was to be merged.
    Merged {
        /// The step.
        step: StepIndex,
        /// What came of it.
        result: Result<MergeOutcome, WorkspaceError>,
    },
    /// A merge was to be begun in a step's worktree.
    MergeBegun {
        /// The step.
        step: StepIndex,
        /// What came of it.
        result: Result<MergeBegun, WorkspaceError>,
    },
    /// Files that conflicted were looked at.
    Inspected {
        /// The step.
        step: StepIndex,
        /// Those still in conflict.
        result: Result<Vec<String>, WorkspaceError>,
    },
    /// The merge in a step's worktree was to be given up.
    MergeAbandoned {
        /// The step.
        step: StepIndex,
        /// The reference under which what it held was kept.
        result: Result<Option<String>, WorkspaceError>,
    },
    /// The task's check was to be run.
    Checked(CheckResult),
    /// The folder made for the check was to be removed.
    CheckCleared {
        /// What came of it.
        result: Result<(), WorkspaceError>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Stop; twice: at once (R4).
    Stop,
    /// Do again what did not succeed (R12).
    Resume {
        /// What is changed of its ceilings.
        budget: BudgetChange,
    },
    /// Change the ceilings of a run that is not over.
    ChangeBudget(BudgetChange),
    /// Use a provider account again that waits for its quota or for someone to sign in (R8).
    TryAccount {
        /// The account.
        account: String,
    },
    /// Do this step again that did not succeed, and what follows it (W18); one that waits tries at once.
    Retry {
        /// The step.
        step: StepIndex,
    },
    /// The same, even of a step that succeeded.
    Redo {
        /// The step.
        step: StepIndex,
    },
    /// Go on without this step: what follows runs without its report (W18).
    Skip {
        /// The step.
        step: StepIndex,
    },
    /// Answer a permission request.
    AnswerPermission {
        /// The position of the fact that it was asked.
        asked: Seq,
        /// With what.
        answer: PermissionAnswer,
    },
}

/// What a person may ask of a step (W18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepCommand {
    /// [`Command::Retry`].
    Retry,
    /// [`Command::Redo`].
    Redo,
    /// [`Command::Skip`].
    Skip,
}

impl StepCommand {
    /// The command on this step.
    #[must_use]
    pub const fn on(self, step: StepIndex) -> Command {
        match self {
            StepCommand::Retry => Command::Retry { step },
            StepCommand::Redo => Command::Redo { step },
            StepCommand::Skip => Command::Skip { step },
        }
    }
}

/// A person's answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// Let it be done, this once.
    Allow,
    /// Refuse it.
    Deny,
    /// One of the request's own options.
    Option(String),
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
    /// No such permission request waits for an answer.
    #[error("no permission request {0} is open: it was answered or cancelled, or never asked")]
    NoSuchPermission(Seq),
    /// It was answered otherwise before.
    #[error("permission request {asked} was answered before, with `{option}`")]
    Answered {
        /// The position of the fact that it was asked.
        asked: Seq,
        /// The option taken.
        option: String,
    },
    /// The agent offers no such option.
    #[error("the agent offers no {wanted} for permission request {asked}: answer with one of {}", plain::list(.offered))]
    NoSuchOption {
        /// The position of the fact that it was asked.
        asked: Seq,
        /// What was wanted.
        wanted: String,
        /// The options that there are.
        offered: Vec<String>,
    },
    /// There is no such step.
    #[error("there is no step {}", .0.0)]
    NoSuchStep(StepIndex),
    /// It is stopping.
    #[error("the run is stopping: ask again once it has stopped")]
    Stopping,
    /// The step is not over.
    #[error("agent {agent} is {state}: there is nothing to do again yet")]
    NotOver {
        /// The agent.
        agent: String,
        /// Where it stands.
        state: &'static str,
    },
    /// The step is on its way to its end.
    #[error(
        "agent {agent} is on its way to its end, and what it left is being seen to: ask again once that is over"
    )]
    Ending {
        /// The agent.
        agent: String,
    },
    /// The step succeeded.
    #[error("agent {agent} is {state}: {}", match .skip { true => "there is nothing to skip", false => "say `--again` to have it done again all the same, and what follows it" })]
    Succeeded {
        /// The agent.
        agent: String,
        /// How it ended.
        state: &'static str,
        /// Whether it was to be skipped rather than done again.
        skip: bool,
    },
    /// The step is a coordinator whose sub-agents are at work.
    #[error("agent {agent} waits for its sub-agents: skip those first")]
    Gathering {
        /// The agent.
        agent: String,
    },
    /// The step is a sub-agent's, and its coordinator does not wait for it.
    #[error("{coordinator} does not wait for {agent} now: ask for {coordinator} itself")]
    NotGathered {
        /// The sub-agent.
        agent: String,
        /// Its coordinator.
        coordinator: String,
    },
    /// The step was skipped before.
    #[error("agent {0} was skipped before")]
    Skipped(String),
    /// The step cannot run before one upstream.
    #[error("agent {agent} does not run before {upstream}, which is {state}: retry or skip {upstream} first")]
    Upstream {
        /// The agent.
        agent: String,
        /// The agent in its way.
        upstream: String,
        /// How that one ended.
        state: &'static str,
    },
    /// It may open no session: nothing that is left could be done.
    #[error("the ceiling of {} is reached, {used} used: it must be raised or lifted before the run can go on", .ceiling.words())]
    OverBudget {
        /// The ceiling.
        ceiling: Ceiling,
        /// What is used of it, in words.
        used: String,
        /// The least that a hint may name for it: [`Ceiling::raised`].
        raised: u64,
    },
    /// The account is not waited for.
    #[error("account {} is not waited for{}", plain::line(.account), if .closed.is_empty() { String::new() } else { format!(": those that are: {}", plain::list(.closed)) })]
    NoSuchGate {
        /// The account.
        account: String,
        /// Those that are.
        closed: Vec<String>,
    },
    /// It succeeded: nothing is left to do.
    #[error("the run is {0}: nothing is left to resume")]
    NothingLeft(&'static str),
}
