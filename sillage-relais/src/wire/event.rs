//! Events of a session, as `GET /api/sessions/{id}/events` tells them: server-sent events whose `id` is the number,
//! whose `event` is the kind, and whose `data` is an [`Event`] on one line.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::session::SessionState;

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct Event {
    /// Its number in the session: the first is 1, without gaps, for the session's whole life.
    pub number: u64,
    /// When the gateway took it in.
    #[cfg_attr(feature = "gateway", schema(format = DateTime))]
    pub at: String,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// Kinds of events. A reader passes over kinds that it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventBody {
    /// A piece of the answer's text.
    Text {
        /// The piece.
        text: String,
    },
    /// A piece of thought.
    Thought {
        /// The piece.
        text: String,
    },
    /// A tool call, or news of one.
    Tool {
        /// The agent's identifier of the call.
        id: String,
        /// What it is, for people.
        title: String,
        /// `pending`, `in_progress`, `completed`, `failed`, or the agent's own word.
        status: String,
        /// Files that it names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<String>,
    },
    /// The agent's own list of what it means to do (ACP's `plan`).
    Plan {
        /// Its entries.
        entries: Vec<String>,
    },
    /// Usage of the session so far.
    Usage {
        /// Totals.
        usage: Usage,
    },
    /// The agent asks for permission.
    Permission {
        /// The request.
        request: PermissionRequest,
    },
    /// The agent asked for a permission that nobody is asked for: it is refused.
    PermissionRefused {
        /// The request.
        request: PermissionRequest,
        /// The rule by which it is, in words.
        rule: String,
    },
    /// A permission request was answered.
    PermissionAnswered {
        /// The request.
        permission_id: String,
        /// The option taken; none: it was cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
        /// Who decided: `policy`, `person` or `cancel`.
        by: String,
    },
    /// The final answer to a message.
    Answer {
        /// The message.
        client_message_id: Uuid,
        /// The whole final text.
        text: String,
        /// `end_turn`, `max_tokens`, `max_turn_requests`, `refusal`, `cancelled`, or another word of the agent's.
        /// `replayed` and `cut`: the gateway was started again meanwhile, and the text is what the agent repeated of
        /// its answer, or nothing because it repeats nothing.
        stop_reason: String,
        /// Usage of the session so far.
        #[serde(default)]
        usage: Usage,
    },
    /// A message, or the session as a whole, failed.
    Error {
        /// The message, where one was being answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_message_id: Option<Uuid>,
        /// What kind of failure it is.
        class: ErrorClass,
        /// The provider's, agent's or system's words.
        words: String,
        /// Seconds that the provider asks to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u64>,
        /// When a quota is given back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "gateway", schema(format = DateTime))]
        resets_at: Option<String>,
    },
    /// The session's state changed. After `ended` or `lost` nothing follows.
    State {
        /// The state.
        state: SessionState,
    },
    /// Something worth a line.
    Note {
        /// The line.
        text: String,
    },
}

impl EventBody {
    /// The kind's name, as it stands in `kind` and in the `event` line.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            EventBody::Text { .. } => "text",
            EventBody::Thought { .. } => "thought",
            EventBody::Tool { .. } => "tool",
            EventBody::Plan { .. } => "plan",
            EventBody::Usage { .. } => "usage",
            EventBody::Permission { .. } => "permission",
            EventBody::PermissionRefused { .. } => "permission_refused",
            EventBody::PermissionAnswered { .. } => "permission_answered",
            EventBody::Answer { .. } => "answer",
            EventBody::Error { .. } => "error",
            EventBody::State { .. } => "state",
            EventBody::Note { .. } => "note",
        }
    }
}

/// What kind of failure an error is, which decides what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// It may work later.
    Temporary,
    /// A quota is used up.
    Quota,
    /// Someone must sign in.
    SignIn,
    /// It will not work however often it is tried.
    Permanent,
    /// As many sessions are held as can be.
    Capacity,
    /// The session is gone.
    Lost,
}

/// Tokens and cost of a session. What is not given is unknown, not zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct Usage {
    /// Tokens read by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Tokens of the context in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_used: Option<u64>,
    /// Cost so far, in millionths of the currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// ISO 4217 code of the cost's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

/// An agent's request for permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct PermissionRequest {
    /// Unique in the session.
    pub id: String,
    /// What it is for, for people.
    pub title: String,
    /// ACP's word for what it would do (`read`, `edit`, `execute`, …), where the agent says. Named apart from an
    /// event's `kind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_kind: Option<String>,
    /// Files and folders that it names, as the agent wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
}

/// One of a permission request's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct PermissionOption {
    /// Unique in the request.
    pub id: String,
    /// For people.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or the agent's own word.
    pub kind: String,
}

/// Answers a permission request: the body of `POST /api/sessions/{id}/permissions/{permission_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PermissionAnswer {
    /// The identifier of one of the request's options.
    pub option: String,
}
