//! What a task says, once read and checked.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The output that every agent has.
pub const REPORT_PORT: &str = "report";

/// A task definition that has passed its checks: identifiers are unique and well formed, links join declared
/// ports and form no cycle, limits are positive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What the task is called.
    pub title: String,
    /// Common context, added to every agent's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Way of working, added to every agent's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Folders that the task adds to its project's, as written.
    #[serde(default)]
    pub folders: FolderLists,
    /// How much may go on at once.
    #[serde(default)]
    pub limits: Limits,
    /// Command to run on the integration branch before the run may be complete (W10b).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Size past which its sessions' conversations are to be summarised.
    #[serde(default)]
    pub autocompact: Autocompact,
    /// The agents, in the order of the definition.
    pub agents: Vec<AgentDefinition>,
    /// The links, in the order of the definition.
    #[serde(default)]
    pub links: Vec<Link>,
}

/// Folders as a file writes them: relative to the file, not resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderLists {
    /// Folders to read.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Folders to write.
    #[serde(default)]
    pub write: Vec<PathBuf>,
}

/// Size past which a session's conversation is to be summarised (R23).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Autocompact {
    /// At the program's default.
    #[default]
    Default,
    /// Past so many tokens.
    Tokens(NonZeroU64),
    /// Never.
    Off,
}

/// How much may go on at once (W10).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Sessions at work at once in the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<NonZeroU32>,
    /// Sessions at work at once, by model.
    #[serde(default)]
    pub models: BTreeMap<String, NonZeroU32>,
}

/// An agent: a node of the graph (W6, W7).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentDefinition {
    /// Unique in the task.
    pub id: String,
    /// What a person calls it; the id where none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it has to do.
    pub mission: String,
    /// What it starts from.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// What it must hand over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliverable: Option<Deliverable>,
    /// Model, as the settings name it: `model` or `agent/model`.
    pub model: String,
    /// Effort, as the model names it.
    pub effort: String,
    /// Fixed place or coordinator.
    #[serde(default)]
    pub kind: AgentKind,
    /// Longest working time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<Duration>,
    /// Whether it gets a browser; decided from the mission when not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<bool>,
    /// Whether it gets a worktree.
    #[serde(default)]
    pub worktree: WorktreeWish,
    /// Declared inputs.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Declared outputs besides `report`; required in the report's `outputs`.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// What its coordinator may do; there exactly when `kind` is dynamic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agents: Option<SubAgentRules>,
}

/// Something that an agent starts from: a file, a folder, a URL or a text, as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resource(pub String);

/// What an agent must hand over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliverable {
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Files that must exist and not be empty, relative to the step's folder.
    #[serde(default)]
    pub files: Vec<PathBuf>,
}

/// Fixed place or coordinator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// One session, one place in the graph.
    #[default]
    Deterministic,
    /// Divides its work between sub-agents.
    Dynamic,
}

/// Whether an agent gets a worktree (R15).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeWish {
    /// When its mission asks for commits or branches, or another writer may run beside it.
    #[default]
    Auto,
    /// Yes; an error before launch where there is no repository.
    Always,
    /// No.
    Never,
}

/// What a coordinator may do (W7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgentRules {
    /// Most sub-agents.
    pub max: NonZeroU32,
    /// Fields that the coordinator writes.
    pub delegate: Vec<DelegatedField>,
    /// Models and efforts that sub-agents may use.
    pub allow: Vec<AllowedPair>,
}

/// A field that a coordinator may write for its sub-agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegatedField {
    /// The mission.
    Mission,
    /// The resources.
    Resources,
    /// The deliverable.
    Deliverable,
    /// The model.
    Model,
    /// The effort.
    Effort,
}

/// A model with the efforts allowed for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedPair {
    /// The model.
    pub model: String,
    /// Its efforts.
    pub efforts: Vec<String>,
}

/// A link from an agent's output to another agent's input (W8).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Link {
    /// Where it comes from.
    pub from: Port,
    /// Where it goes to.
    pub to: Port,
}

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Port {
    /// The agent's position in [`Task::agents`].
    pub agent: u32,
    /// The output's or input's name; none for the report, or for the message as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
