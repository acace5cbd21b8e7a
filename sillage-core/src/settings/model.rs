//! What the settings say, once read and checked.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::McpServer;
use crate::ports::runtime::ModelOffer;
use crate::run::{Budget, RunPolicy};

/// The settings of the program. Paths and values of environment variables are as written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The agents, in the order of the file; names are unique whatever the case.
    pub agents: Vec<AgentSettings>,
    /// How much may go on at once.
    pub limits: ProgramLimits,
    /// How runs wait when a provider fails.
    #[serde(skip_serializing_if = "WaitSettings::is_default")]
    pub waits: WaitSettings,
    /// Prices by model, as tasks name it.
    pub prices: BTreeMap<String, Price>,
    /// Gateways.
    pub relais: Vec<RelaisAddress>,
    /// Colours of the interface.
    pub theme: Theme,
    /// Language of the interface.
    pub language: Language,
    /// Channels that are made at start.
    pub channels: Vec<SettingsChannel>,
}

impl Settings {
    /// The models that tasks may ask for, in the order of the file.
    #[must_use]
    pub fn offers(&self) -> Vec<ModelOffer> {
        let offers = self.agents.iter().flat_map(|agent| {
            agent.models.iter().map(|model| ModelOffer {
                agent: agent.name.clone(),
                model: model.name.clone(),
                efforts: model.efforts.clone(),
                account: agent.account.clone(),
            })
        });
        offers.collect()
    }
}

/// An agent that can be started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSettings {
    /// How tasks' models, mentions and routes name it.
    pub name: String,
    /// What a person calls it; the name where none was given.
    pub title: String,
    /// Its picture: an emoji, or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of its environment; `${NAME}` stands for one of ours.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Its folder outside of runs; a run uses its step's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// The provider account, whose agents share quota and sign-in waits; the name where none was given.
    pub account: String,
    /// The agent's identifier of the way to sign in that may be used without a person; none: a person signs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<String>,
    /// The models that it offers, in the order of the file.
    #[serde(default)]
    pub models: Vec<ModelSettings>,
    /// MCP servers that it is told to use in every session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
    /// Where it runs.
    #[serde(default)]
    pub runtime: Placement,
    /// What its process may use.
    #[serde(default)]
    pub limits: AgentLimits,
}

/// What an agent's process may use, and each that it starts; what is not said is not limited further. They are those
/// of `setrlimit(2)`, and hold on Unix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentLimits {
    /// Files open at once, in one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<NonZeroU32>,
    /// Processes of the user, all told: those of other programs count as well. Root is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<NonZeroU32>,
    /// Bytes of address space, in one process. Some programs reserve much more than they use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// A model that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSettings {
    /// How tasks name it.
    pub name: String,
    /// How the agent names it.
    pub id: String,
    /// Its efforts; empty: any, passed on as written.
    #[serde(default)]
    pub efforts: Vec<String>,
}

/// Where an agent runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// As an ordinary process, or in what kind of box.
    #[serde(rename = "type")]
    pub kind: RuntimeKind,
    /// The box's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the workspace is in the box; at the same path as outside where not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<PathBuf>,
    /// Commands that make, stop and remove the box.
    pub lifecycle: Lifecycle,
}

/// Kinds of place for an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RuntimeKind {
    /// A process of this machine.
    #[default]
    Local,
    /// A process in a container.
    Container,
    /// A process in a Docker sandbox.
    Sbx,
}

/// Commands on an agent's box, each on one line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lifecycle {
    /// Makes it, when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<String>,
    /// Stops it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove: Option<String>,
}

/// How much may go on at once in the program. What is not said is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProgramLimits {
    /// Agents that run outside of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running_agents: Option<NonZeroU32>,
    /// How long an idle agent outside of runs is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_idle_agents_after: Option<Duration>,
    /// How long an agent at work may be silent, with no busy child process, before it is cancelled and tried again
    /// (R11).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_after: Option<Duration>,
    /// Sessions at work at once, over all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<NonZeroU32>,
    /// Ceilings of each run that says nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whether the first failure in a run keeps the rest from being begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_fast: Option<bool>,
}

/// How runs wait when a provider fails (R7, R8). What is not said is as the defaults are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WaitSettings {
    /// First wait after a temporary error; 30 s when not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Duration>,
    /// Longest wait after a temporary error, unless the provider asks for more; 240 s when not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Duration>,
    /// Tries in a series of temporary errors; without end when not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<NonZeroU32>,
    /// How often an account is tried of which nobody knows when it can be used again; 15 min when not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub try_account_every: Option<Duration>,
}

impl WaitSettings {
    fn is_default(&self) -> bool {
        *self == WaitSettings::default()
    }

    /// The policy with what is said here.
    #[must_use]
    pub fn of(&self, policy: RunPolicy) -> RunPolicy {
        let backoff_first = self.first.unwrap_or(policy.backoff_first);
        RunPolicy {
            backoff_first,
            backoff_most: self.longest.unwrap_or(policy.backoff_most.max(backoff_first)),
            attempts: self.attempts.or(policy.attempts),
            gate_retry: self.try_account_every.unwrap_or(policy.gate_retry),
            ..policy
        }
    }
}

/// What a million tokens cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// Read by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<f64>,
    /// Written by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<f64>,
    /// Read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// ISO 4217 code; `USD` where none was given.
    pub currency: String,
    /// The day on which the price held, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

/// A gateway that holds sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelaisAddress {
    /// What it is called.
    pub name: String,
    /// Where it listens.
    pub url: String,
    /// The file that holds its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Sessions that may be at work there at once; none: no bound but the gateway's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<NonZeroU32>,
}

/// Colours of the interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Theme {
    /// As the system.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// Language of the interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// French.
    Fr,
}

/// A channel that is made at start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsChannel {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Names of its agents.
    #[serde(default)]
    pub members: Vec<String>,
}
