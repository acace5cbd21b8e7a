//! The life of agents outside of runs, as a state machine (A1): which are running, which may start, which must go.
//!
//! [`Agents::decide`] takes an input with the time at which it came, changes the states, and gives what follows: what
//! watchers are told ([`Output::Changed`]), and the orders to launch and to end processes. Whoever carries these out
//! reports back with [`Input::Started`], [`Input::StartFailed`], [`Input::Exited`] and [`Input::Ended`], which name the
//! process by its number: a late report of an earlier process changes nothing.
//!
//! Beyond the table of states:
//!
//! - A process that was told to end is still there for a while. Its agent is `stopped` at once; a start waits until that
//!   process is gone, and so does the start of another agent that needs its place. So no agent ever has two processes,
//!   and no more processes than [`PoolLimits::most`] are there at once.
//! - An agent that is `starting` cannot make room: where a start is refused, it is named among the busy ones.
//! - The last wish counts: a start asked for while a stop waits for the end of a start takes the stop back.
//! - A lower limit stops nothing that runs; it holds for the starts to come.

mod decide;
mod member;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use member::Member;

/// How often agents are looked at for having been idle too long: the span between two [`Input::Checked`].
pub const CHECK_EVERY: Duration = Duration::from_secs(30);

/// The state of an agent, as people and programs are told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// No process. The first state of every agent.
    Stopped,
    /// The process is launched and the handshake is going on, or it waits for its place.
    Starting,
    /// Running and idle.
    Ready,
    /// Running and used by at least one conversation.
    Busy,
    /// The start failed, or the process exited on its own.
    Error,
}

impl AgentState {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            AgentState::Stopped => "stopped",
            AgentState::Starting => "starting",
            AgentState::Ready => "ready",
            AgentState::Busy => "busy",
            AgentState::Error => "error",
        }
    }

    /// What a person is shown.
    #[must_use]
    pub fn shown(self) -> &'static str {
        match self {
            AgentState::Starting => "starting…",
            AgentState::Stopped | AgentState::Ready | AgentState::Busy | AgentState::Error => self.word(),
        }
    }
}

/// What a person is shown of an agent whose definition changed since it was started.
pub const OUTDATED: &str = "restart to apply changes";

/// How an agent stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Its name.
    pub agent: String,
    /// Its state.
    pub state: AgentState,
    /// Why it is in [`AgentState::Error`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it runs with a definition that is no longer that of the settings.
    #[serde(default)]
    pub outdated: bool,
}

/// What watchers are told when an agent changes state or its definition changes: the event `agent:state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// The agent.
    pub agent: String,
    /// Its state from now on.
    pub state: AgentState,
    /// Why it is in [`AgentState::Error`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An agent of the settings. `D` is what a process of it is launched with: where that changes, a running agent is
/// outdated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition<D> {
    /// Its name.
    pub name: String,
    /// What it is launched with.
    pub launch: D,
}

/// How much may run. What is not said is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolLimits {
    /// Agents that run at once (`limits.maxRunningAgents`).
    pub most: Option<NonZeroU32>,
    /// How long an unused agent is kept (`limits.stopIdleAgentsAfter`).
    pub idle: Option<Duration>,
}

/// The number of a process, of which none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessNumber(pub u64);

/// Someone who uses an agent, as a conversation. The caller sees to it that no two are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub u64);

/// Something that happened, or is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<D> {
    /// The settings were read: all agents, in their order.
    Configured {
        /// The agents.
        definitions: Vec<Definition<D>>,
        /// What holds for all of them.
        limits: PoolLimits,
    },
    /// A start is requested.
    Start(String),
    /// A stop is requested.
    Stop(String),
    /// An end and a new start are requested; a start where it does not run.
    Restart(String),
    /// Someone begins to use it, which starts it where it does not run.
    Use(String, UserId),
    /// Someone has done using it.
    Release(String, UserId),
    /// The program is about to end: all agents stop, and none starts any more.
    Quit,
    /// The handshake of a launched process succeeded.
    Started(ProcessNumber),
    /// A launched process could not be started or did not get through the handshake, and is gone.
    StartFailed(ProcessNumber, String),
    /// A process that had started exited on its own, and nothing of it is left.
    Exited(ProcessNumber, String),
    /// A process that was to end is gone; or could not be ended, in words.
    Ended(ProcessNumber, Option<String>),
    /// [`CHECK_EVERY`] is over.
    Checked,
}

/// What follows from an input, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<D> {
    /// Watchers are to be told.
    Changed(StateChange),
    /// A process is to be launched.
    Launch {
        /// The agent.
        agent: String,
        /// The number of the process.
        process: ProcessNumber,
        /// What it is launched with.
        launch: D,
    },
    /// A process is to be ended.
    End {
        /// The agent.
        agent: String,
        /// The number of the process.
        process: ProcessNumber,
    },
}

/// Why a request was refused. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such agent.
    #[error("no agent is called `{agent}`; the settings have {known}")]
    Unknown {
        /// As it was called.
        agent: String,
        /// Those that there are, or that there are none.
        known: String,
    },
    /// There is no room, and nobody idle to make it.
    #[error("too many agents running: {} agent(s) busy ({}), the limit is {limit}", busy.len(), busy.join(", "))]
    TooMany {
        /// The agents that cannot be stopped for it, in the order of the settings.
        busy: Vec<String>,
        /// The limit.
        limit: u32,
    },
    /// The program is about to end.
    #[error("agent `{0}` is not started: the program is about to end")]
    Quitting(String),
}

/// The agents of the settings and what runs of them.
#[derive(Debug, Clone)]
pub struct Agents<D> {
    /// In the order of the settings; those that were taken out of them, and whose process is still there, come last.
    members: Vec<Member<D>>,
    limits: PoolLimits,
    quitting: bool,
    /// The number of the last process.
    last_process: u64,
    /// The number of the last start that was asked for.
    last_start: u64,
}

impl<D: Clone + PartialEq> Agents<D> {
    /// The agents of the settings, all stopped.
    #[must_use]
    pub fn new(definitions: Vec<Definition<D>>, limits: PoolLimits) -> Self {
        Self {
            members: definitions.into_iter().map(Member::new).collect(),
            limits,
            quitting: false,
            last_process: 0,
            last_start: 0,
        }
    }

    /// How each agent of the settings stands, in their order.
    #[must_use]
    pub fn statuses(&self) -> Vec<AgentStatus> {
        let shown = self.members.iter().filter(|member| !member.removed);
        shown.map(Member::status).collect()
    }

    /// How an agent of the settings stands; none: there is no such agent.
    #[must_use]
    pub fn status(&self, agent: &str) -> Option<AgentStatus> {
        let shown = self.members.iter().filter(|member| !member.removed);
        shown
            .into_iter()
            .find(|member| member.name == agent)
            .map(Member::status)
    }

    /// Whether there is such an agent.
    ///
    /// # Errors
    /// [`Refusal::Unknown`].
    pub fn known(&self, agent: &str) -> Result<(), Refusal> {
        match self.status(agent) {
            Some(_) => Ok(()),
            None => Err(self.unknown(agent)),
        }
    }

    fn unknown(&self, agent: &str) -> Refusal {
        let shown = self.members.iter().filter(|member| !member.removed);
        let names: Vec<&str> = shown.map(|member| member.name.as_str()).collect();
        let known = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        let agent = agent.to_owned();
        Refusal::Unknown { agent, known }
    }

    /// The definition of an agent of the settings.
    #[must_use]
    pub fn definition(&self, agent: &str) -> Option<&D> {
        let shown = self.members.iter().filter(|member| !member.removed);
        shown
            .into_iter()
            .find(|member| member.name == agent)
            .map(|member| &member.launch)
    }

    /// Whether this use of an agent still holds: it was not stopped, and did not fail, since the use began.
    #[must_use]
    pub fn uses(&self, agent: &str, user: UserId) -> bool {
        let member = self.members.iter().find(|member| member.name == agent);
        member.is_some_and(|member| member.has_user(user))
    }

    /// Whether nothing of this agent runs, starts or ends.
    #[must_use]
    pub fn rests(&self, agent: &str) -> bool {
        let mut same = self.members.iter().filter(|member| member.name == agent);
        same.all(Member::at_rest)
    }

    /// Whether nothing runs, starts or ends.
    #[must_use]
    pub fn at_rest(&self) -> bool {
        self.members.iter().all(Member::at_rest)
    }

    /// Takes up the error of an earlier program: an agent that is stopped shows it until it is started.
    pub fn recall(&mut self, agent: &str, words: String) {
        if let Some(member) = self.members.iter_mut().find(|member| member.name == agent) {
            member.recall(words);
        }
    }

    /// Takes an input that came at `now`, and gives what follows from it.
    ///
    /// # Errors
    /// When a request is refused; then nothing has changed.
    pub fn decide(&mut self, now: Timestamp, input: Input<D>) -> Result<Vec<Output<D>>, Refusal> {
        decide::decide(self, now, input)
    }
}
