//! What a gateway is, can do and offers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Names of capabilities. An unknown one is ignored; a missing one is false.
pub mod capability {
    /// A session may be given a system-level context apart from its messages.
    pub const WORKING_CONTEXT: &str = "working_context";
    /// Folders are enforced on what the gateway mediates.
    pub const FILESYSTEM_SCOPE: &str = "filesystem_scope";
    /// Sessions and messages are idempotent by the client's identifiers.
    pub const IDEMPOTENT_SESSION_CREATION: &str = "idempotent_session_creation";
    /// A session may be given MCP servers by URL and headers.
    pub const MCP_HTTP: &str = "mcp_http";
    /// The tools of those servers may be approved in advance.
    pub const MCP_HTTP_AUTO: &str = "mcp_http_auto";
}

/// The answer of `GET /api/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct Status {
    /// What holds the sessions, for people.
    pub name: String,
    /// The gateway's own version.
    pub version: String,
    /// The version of the protocol.
    pub protocol: u32,
    /// Seconds since the gateway was started.
    pub uptime_seconds: u64,
    /// How many sessions there are.
    pub sessions: SessionCounts,
    /// What it can do, by name.
    pub capabilities: BTreeMap<String, bool>,
}

/// How many sessions there are, by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct SessionCounts {
    /// Being started.
    pub starting: u64,
    /// Waiting for a message.
    pub idle: u64,
    /// Answering a message.
    pub working: u64,
    /// Waiting for an answer to a permission request.
    pub waiting: u64,
    /// Closed, and remembered.
    pub ended: u64,
    /// Lost, and remembered.
    pub lost: u64,
}

/// Models on offer: the answer of `GET /api/models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct ModelList {
    /// The models, by agent.
    pub models: Vec<Model>,
}

/// A model that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct Model {
    /// The agent.
    pub agent: String,
    /// The model's name in requests.
    pub model: String,
    /// Its efforts; empty: any, passed on as written.
    pub efforts: Vec<String>,
    /// The provider account whose sessions share quota and sign-in.
    pub account: String,
}

/// What is known of a provider account: the answer of `GET /api/accounts/{account}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct Account {
    /// The account.
    pub account: String,
    /// Whether it can be used.
    pub state: AccountState,
}

/// Whether an account can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AccountState {
    /// The gateway cannot tell.
    Unknown,
    /// It can be used.
    Available,
    /// It cannot be used.
    Unavailable,
}

/// Agents of the gateway: the answer of `GET /api/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct AgentList {
    /// The agents, in the order of the settings.
    pub agents: Vec<Agent>,
}

/// An agent that the gateway can keep at work outside of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// How it stands: `stopped`, `starting`, `ready`, `busy` or `error`, or another word of its keeper's.
    pub state: String,
    /// Why it failed, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An agent's last lines: the answer of `GET /api/agents/{name}/logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct AgentLog {
    /// The lines, the oldest first.
    pub lines: Vec<String>,
}
