//! What is said on the control socket.

use serde::{Deserialize, Serialize};
use sillage_core::id::{ClientSessionId, RunId, Seq, StepIndex};
use sillage_core::ports::runtime::SessionEvent;
use sillage_core::ports::store::RunSummary;
use sillage_core::run::{PermissionAnswer, Recorded, StepCommand};
use sillage_core::time::Timestamp;

use std::sync::Arc;

use crate::restore::ExecutedText;

/// Longest request in bytes.
pub(super) const LONGEST_REQUEST: usize = 4 << 10;

/// Longest answer in bytes; an event may hold a whole conversation's answer.
pub(super) const LONGEST_ANSWER: usize = 256 << 20;

/// A request: the only line of its connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// Summaries, newest first: [`Answer::Run`] for each.
    Runs { unfinished: bool, limit: usize },
    /// One summary: [`Answer::Run`].
    Run { run: RunId },
    /// The fact that launched it: [`Answer::Fact`].
    Launch { run: RunId },
    /// The runs that the process drives: [`Answer::Driven`].
    Driven,
    /// The stored facts from a position: [`Answer::Fact`] for each.
    Events { run: RunId, from: Seq },
    /// The same, then what goes on until nobody drives the run.
    Follow { run: RunId, from: Seq },
    /// When each step was last heard: [`Answer::Heard`].
    Heard { run: RunId },
    /// Asks a run to stop: [`Answer::StopAsked`].
    Stop { run: RunId },
    /// Commands a step: [`Answer::Taken`] once what follows is durable.
    Step {
        run: RunId,
        step: StepIndex,
        command: StepCommand,
    },
    /// The text that a run executed, made its task's newest version if `renew`: [`Answer::Executed`].
    Executed { run: RunId, renew: bool },
    /// Answers a permission request: [`Answer::PermissionAnswered`] once the answer is durable.
    AnswerPermission {
        run: RunId,
        asked: Seq,
        answer: PermissionAnswer,
    },
    /// Uses a provider account again: [`Answer::AccountTried`] once that is durable.
    TryAccount { run: RunId, account: String },
    /// A session's transcript: [`Answer::Chunk`] for each chunk.
    Transcript { run: RunId, session: ClientSessionId },
}

/// An answer, or part of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Run(RunSummary),
    Fact(Arc<Recorded>),
    Chatter {
        step: StepIndex,
        session: ClientSessionId,
        event: Arc<SessionEvent>,
    },
    Driven(Vec<RunId>),
    /// Items that the reader was too slow for.
    Missed(u64),
    /// The run waits for room on the disk.
    DiskFull {
        words: String,
        until: Timestamp,
    },
    /// It waits no more.
    DiskHasRoom,
    Heard(Vec<(StepIndex, Timestamp)>),
    /// Whether it had been asked before.
    StopAsked {
        again: bool,
    },
    PermissionAnswered,
    AccountTried,
    Taken,
    Executed(Option<ExecutedText>),
    Chunk(String),
    /// Nothing follows.
    End,
    /// Nothing follows: it could not be answered.
    Failed(Failed),
}

/// Why a request could not be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failed {
    NoSuchRun(RunId),
    NotDriven(RunId),
    Over {
        run: RunId,
        state: String,
    },
    /// The command makes no sense in the run's state, in words.
    Refused(String),
    /// Anything else, in words.
    Other(String),
}
