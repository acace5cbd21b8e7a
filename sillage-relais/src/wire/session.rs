//! Sessions: how they are asked for, and how they stand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::event::{PermissionRequest, Usage};
use super::message::LastMessage;

/// How long a session stays unused before it is closed, where the request does not say: an hour.
pub const USUAL_TTL_SECONDS: u64 = 3600;

/// The longest that a session may stay unused: 30 days.
pub const LONGEST_TTL_SECONDS: u64 = 30 * 24 * 3600;

/// Asks for a session: the body of `POST /api/sessions`.
///
/// The same request sent again is the same session, whatever the order of its keys and whether fields with their usual
/// value are written. The same identifier with another request is a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// Chosen by the client (UUID v4), and kept by it before the request leaves.
    pub client_session_id: Uuid,
    /// Which application asks, for people and for `GET /api/sessions?application_name=`.
    #[cfg_attr(feature = "gateway", schema(min_length = 1, max_length = 200))]
    pub application_name: String,
    /// A model on offer: `model`, or `agent/model` where several agents offer it.
    #[cfg_attr(feature = "gateway", schema(min_length = 1, max_length = 500))]
    pub model: String,
    /// One of the model's efforts; any where it tells none.
    #[cfg_attr(feature = "gateway", schema(max_length = 500))]
    pub effort: String,
    /// The folder that the session works in; absolute.
    #[cfg_attr(feature = "gateway", schema(pattern = "^/"))]
    pub workspace: String,
    /// Seconds without use after which it is closed.
    #[serde(default = "usual_ttl_seconds")]
    #[cfg_attr(feature = "gateway", schema(minimum = 1, maximum = 2_592_000, default = 3600))]
    pub ttl_seconds: u64,
    /// Size in tokens past which the conversation is to be summarised; none: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocompact_tokens: Option<u64>,
    /// A system-level context apart from the messages. Needs the capability `working_context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_context: Option<String>,
    /// Folders that may be read and written.
    #[serde(default)]
    pub filesystem_scope: FilesystemScope,
    /// Places that its requests never reach, though they may lie in those folders.
    #[serde(default, skip_serializing_if = "ProtectedPlaces::is_empty")]
    pub protected: ProtectedPlaces,
    /// What happens to its agent's permission requests.
    #[serde(default)]
    pub permissions: Permissions,
    /// MCP servers that it is given. Needs the capability `mcp_http`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
}

fn usual_ttl_seconds() -> u64 {
    USUAL_TTL_SECONDS
}

impl CreateSession {
    /// The names of the fields in which `self` and `other` differ; empty when they are the same request.
    #[must_use]
    pub fn differences(&self, other: &CreateSession) -> Vec<String> {
        let CreateSession {
            client_session_id,
            application_name,
            model,
            effort,
            workspace,
            ttl_seconds,
            autocompact_tokens,
            working_context,
            filesystem_scope,
            protected,
            permissions,
            mcp_servers,
        } = self;
        let fields = [
            ("client_session_id", *client_session_id != other.client_session_id),
            ("application_name", *application_name != other.application_name),
            ("model", *model != other.model),
            ("effort", *effort != other.effort),
            ("workspace", *workspace != other.workspace),
            ("ttl_seconds", *ttl_seconds != other.ttl_seconds),
            (
                "autocompact_tokens",
                *autocompact_tokens != other.autocompact_tokens,
            ),
            ("working_context", *working_context != other.working_context),
            ("filesystem_scope", *filesystem_scope != other.filesystem_scope),
            ("protected", *protected != other.protected),
            ("permissions", *permissions != other.permissions),
            ("mcp_servers", *mcp_servers != other.mcp_servers),
        ];
        let differing = fields.iter().filter(|(_, differs)| *differs);
        differing.map(|(name, _)| (*name).to_owned()).collect()
    }
}

/// Folders of a session; absolute. A folder to write may be read too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FilesystemScope {
    /// Folders to read.
    #[serde(default)]
    pub read: Vec<String>,
    /// Folders to write.
    #[serde(default)]
    pub write: Vec<String>,
}

/// Places within a session's folders that are kept from it; absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ProtectedPlaces {
    /// Neither read nor written.
    #[serde(default)]
    pub closed: Vec<String>,
    /// Never written.
    #[serde(default)]
    pub kept: Vec<String>,
}

impl ProtectedPlaces {
    /// Whether there is no such place.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.kept.is_empty()
    }
}

/// What happens to an agent's permission requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Permissions {
    /// The client is asked, but for what is refused by rule.
    Ask,
    /// Allowed within the folders; commands where there is a folder to write.
    #[default]
    AllowInFolders,
    /// Refused, except reading within the folders.
    Deny,
}

/// An MCP server that a session is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Headers of each request to it.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Its tools that are approved in advance. Needs the capability `mcp_http_auto`.
    #[serde(default)]
    pub auto: Vec<String>,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its agent is being started.
    Starting,
    /// It waits for a message.
    Idle,
    /// A message is being answered.
    Working,
    /// A permission request waits for an answer.
    Waiting,
    /// It was closed: by a client, or because it was not used.
    Ended,
    /// It is gone: its agent ended, or could not be found after the gateway was started again.
    Lost,
}

impl SessionState {
    /// Whether the session is over for good.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            SessionState::Ended | SessionState::Lost => true,
            SessionState::Starting | SessionState::Idle | SessionState::Working | SessionState::Waiting => {
                false
            }
        }
    }
}

/// A session as it is. What a request may hold in secret (context, headers of MCP servers) is not repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct Session {
    /// What the session's routes name it by. It is the client's identifier.
    pub id: Uuid,
    /// The client's identifier, as it was asked for.
    pub client_session_id: Uuid,
    /// The application that asked.
    pub application_name: String,
    /// How it stands.
    pub state: SessionState,
    /// Why it is over, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The model asked for.
    pub model: String,
    /// The effort asked for.
    pub effort: String,
    /// The folder that it works in.
    pub workspace: String,
    /// Folders that may be read and written.
    pub filesystem_scope: FilesystemScope,
    /// Places kept from it.
    #[serde(default)]
    pub protected: ProtectedPlaces,
    /// What happens to its permission requests.
    pub permissions: Permissions,
    /// Size in tokens past which the conversation is summarised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocompact_tokens: Option<u64>,
    /// Seconds without use after which it is closed.
    pub ttl_seconds: u64,
    /// The agent that holds it, once it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent's process, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Usage so far.
    pub usage: Usage,
    /// When it was asked for.
    #[cfg_attr(feature = "gateway", schema(format = DateTime))]
    pub created_at: String,
    /// When it was last used.
    #[cfg_attr(feature = "gateway", schema(format = DateTime))]
    pub last_activity_at: String,
    /// When it will be closed if nobody uses it; none while it is used, and once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "gateway", schema(format = DateTime))]
    pub expires_at: Option<String>,
    /// The number of its last event; 0 where there is none.
    pub last_event: u64,
    /// The last message that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_message: Option<LastMessage>,
    /// Permission requests that wait for an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permission_requests: Vec<PermissionRequest>,
}

/// Sessions, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<Session>,
}
