//! What is said on the socket of the agents' host.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sillage_core::agents::AgentStatus;

/// Longest request in bytes.
pub(super) const LONGEST_REQUEST: usize = 64 << 10;

/// Longest answer in bytes.
pub(super) const LONGEST_ANSWER: usize = 16 << 20;

/// A request: the only line of its connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) struct Request {
    /// The settings file that the asker means. A host holds the agents of one.
    pub(super) settings: PathBuf,
    /// What is asked.
    pub(super) ask: Ask,
}

/// What is asked of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// How all stand: [`Answer::Agents`].
    List,
    /// The last lines of one: [`Answer::Lines`].
    Logs(String),
    /// Something to do with each of these: [`Answer::Done`] for each, as it is done.
    Do(Order, Vec<String>),
}

/// What may be done with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Start it, and wait until it is ready.
    Start,
    /// Stop it, and wait until it is gone.
    Stop,
    /// Stop and start it.
    Restart,
    /// Stop it, then its container or sandbox.
    StopSandbox,
    /// Stop it, then remove its container or sandbox.
    RemoveSandbox,
}

/// An answer, or part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Agents(Listed),
    Lines(Vec<String>),
    Done(Done),
    /// Nothing follows.
    End,
    /// Nothing follows: it could not be answered.
    Failed(String),
}

/// How all agents stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Each agent of the settings, in their order.
    pub agents: Vec<AgentStatus>,
    /// Why the settings file as it is now was not taken up.
    pub problem: Option<String>,
}

/// What became of an order for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The agent.
    pub agent: String,
    /// Why it was not done.
    pub trouble: Option<Trouble>,
    /// How it stands; none: there is no such agent.
    pub status: Option<AgentStatus>,
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// Whether nothing was tried: too many run, or there is no such agent.
    pub refused: bool,
    /// In words.
    pub words: String,
}

/// What a host that ended left for those who ask later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// By agent.
    pub agents: BTreeMap<String, KeptAgent>,
}

/// What is kept of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAgent {
    /// Why it is in error.
    #[serde(default)]
    pub error: Option<String>,
    /// The last lines of its log.
    #[serde(default)]
    pub log: Vec<String>,
}
