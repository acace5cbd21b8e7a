// long: the whole contract of a runtime, to be read from top to bottom
//! [`AgentRuntime`]: whatever can hold sessions with models on behalf of steps.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::folders::Folders;
use crate::id::{ClientMessageId, ClientSessionId};
use crate::policy::Protected;
use crate::time::Timestamp;

/// Holds sessions. One try each: a runtime makes the call once and classifies what came back; only the core retries.
///
/// Dropping a runtime ends every process that it started.
#[async_trait]
pub trait AgentRuntime: Send + Sync {
    /// What the runtime can do and which models it offers, without starting anything.
    ///
    /// # Errors
    /// [`RuntimeError::Temporary`] when it is out of reach.
    async fn status(&self) -> Result<RuntimeStatus, RuntimeError>;

    /// Opens the session, or gives back the one already opened under the same identifier.
    ///
    /// The model and effort of the request are in force when this returns; a runtime that cannot make them so
    /// answers [`RuntimeError::Permanent`].
    ///
    /// # Errors
    /// [`RuntimeError::Conflict`] when the identifier came before with another request; otherwise by class.
    async fn open(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError>;

    /// Looks for a session opened earlier, by this process or an earlier one, and attaches to it where it lives or
    /// can be brought back. `native` is [`OpenedSession::native`] as it was recorded; `in_flight` is the message
    /// whose answer was not received, if any, with its text.
    ///
    /// # Errors
    /// [`RuntimeError::Lost`] when it is certain that the session cannot be brought back. A passing reason is
    /// [`RuntimeError::Temporary`]: the session is kept and tried again.
    async fn find(
        &self,
        request: &SessionRequest,
        native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError>;

    /// Sends a message, or does nothing when the same one was accepted before. Returns once it is accepted;
    /// the answer comes as [`SessionEventKind::Answer`] or [`SessionEventKind::Error`].
    ///
    /// # Errors
    /// [`RuntimeError::Conflict`] as for `open`, or when another message is being answered; otherwise by class.
    async fn send(&self, session: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError>;

    /// The session's events after the one numbered `after` (0: from the start), without gaps or repeats, going on
    /// until the session ends. Numbers start again at 1 when [`AgentRuntime::find`] says `restarted`.
    ///
    /// A stream that ends without [`SessionEventKind::Ended`] was cut, because what holds the session is out of reach:
    /// the session may live. Its events are asked for again, after the last one heard; where that fails it is looked for
    /// later.
    ///
    /// # Errors
    /// [`RuntimeError::Lost`] when there is no such session here; [`RuntimeError::Temporary`] when that cannot be known
    /// now.
    async fn events(
        &self,
        session: ClientSessionId,
        after: u64,
    ) -> Result<BoxStream<'static, SessionEvent>, RuntimeError>;

    /// Answers a permission request with one of its options.
    ///
    /// # Errors
    /// [`RuntimeError::Permanent`] when the request is not open or the option is not one of its own.
    async fn answer_permission(
        &self,
        session: ClientSessionId,
        permission: &str,
        option: &str,
    ) -> Result<(), RuntimeError>;

    /// Asks the session to stop what it is doing. Open permission requests are answered `cancelled`. The message
    /// being answered still ends with an answer or an error. Nothing happens when the session is idle or unknown.
    ///
    /// # Errors
    /// By class, when the request could not be passed on.
    async fn cancel(&self, session: ClientSessionId) -> Result<(), RuntimeError>;

    /// What the runtime knows, without trying it, of a provider account: asked from time to time while runs wait for the
    /// account (R8). A runtime that cannot know says so, and the account is tried.
    ///
    /// # Errors
    /// By class, when it is out of reach; it is asked again later.
    async fn account(&self, account: &str) -> Result<AccountState, RuntimeError> {
        let _ = account;
        Ok(AccountState::Unknown)
    }

    /// Ends the session and what was started for it. When this returns no process of it is left. An unknown
    /// session is already closed. An opening or a search that was asked for before and arrives after it brings nothing
    /// back; one that is asked for after it may.
    ///
    /// # Errors
    /// [`RuntimeError::Unstoppable`] with the pid when a process could not be ended.
    async fn close(&self, session: ClientSessionId) -> Result<(), RuntimeError>;
}

/// What a runtime can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeStatus {
    /// What it is called, for people.
    pub name: String,
    /// Models on offer.
    pub models: Vec<ModelOffer>,
}

/// What a runtime knows of a provider account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountState {
    /// It cannot tell.
    #[default]
    Unknown,
    /// It can be used: somebody signed in, the quota is there.
    Available,
    /// It cannot be used.
    Unavailable,
}

/// A model that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelOffer {
    /// The agent's name in the settings.
    pub agent: String,
    /// The model's name in tasks.
    pub model: String,
    /// Efforts on offer; empty: any, passed on as written.
    pub efforts: Vec<String>,
    /// The provider account, whose sessions share quota and sign-in waits.
    pub account: String,
}

/// What a session is asked for with. Stored before it leaves; sent again byte for byte (R5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRequest {
    /// Chosen by Sillage.
    pub client_session_id: ClientSessionId,
    /// Model: `model`, or `agent/model` where several agents offer it.
    pub model: String,
    /// Effort.
    pub effort: String,
    /// The folder that the session works in; absolute.
    pub workspace: PathBuf,
    /// Folders that it may read and write; absolute.
    pub filesystem_scope: Folders,
    /// Places that its requests never reach, though they may lie in those folders.
    #[serde(default, skip_serializing_if = "Protected::is_empty")]
    pub protected: Protected,
    /// What happens to permission requests.
    pub permissions: PermissionPolicy,
    /// Size in tokens past which the conversation is to be summarised; none: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocompact_tokens: Option<u64>,
}

impl SessionRequest {
    /// The names of the fields in which `self` and `other` differ; empty when they are the same request. What a
    /// runtime puts into [`RuntimeError::Conflict`] (R6).
    #[must_use]
    pub fn differences(&self, other: &SessionRequest) -> Vec<String> {
        let SessionRequest {
            client_session_id,
            model,
            effort,
            workspace,
            filesystem_scope,
            protected,
            permissions,
            autocompact_tokens,
        } = self;
        let fields = [
            ("client_session_id", *client_session_id != other.client_session_id),
            ("model", *model != other.model),
            ("effort", *effort != other.effort),
            ("workspace", *workspace != other.workspace),
            ("filesystem_scope", *filesystem_scope != other.filesystem_scope),
            ("protected", *protected != other.protected),
            ("permissions", *permissions != other.permissions),
            (
                "autocompact_tokens",
                *autocompact_tokens != other.autocompact_tokens,
            ),
        ];
        fields
            .iter()
            .filter(|(_, differs)| *differs)
            .map(|(name, _)| (*name).to_owned())
            .collect()
    }
}

/// What happens to an agent's permission requests (R21).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionPolicy {
    /// A person is asked, but for what is refused by rule.
    Ask,
    /// Allowed when everything that the request names lies in the session's folders; commands are allowed where
    /// there is a write folder; the rest is refused.
    #[default]
    AllowInFolders,
    /// Refused, except reading within the folders.
    Deny,
}

/// A session that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedSession {
    /// What the runtime needs to find the session again after a restart, opaque to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// The agent that holds it.
    pub agent: String,
    /// The process that holds it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// A session that was found again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSession {
    /// As for a session just opened.
    pub opened: OpenedSession,
    /// Whether event numbers started again at 1.
    pub restarted: bool,
    /// What became of the message whose answer was not received.
    pub in_flight: MessageFate,
}

/// What became of a message whose answer was not received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageFate {
    /// There was none.
    None,
    /// It never arrived: it may be sent, under its own identifier.
    NotReceived,
    /// It is being answered, or its answer is among the session's events.
    InHand,
    /// It arrived and what had been answered is this; no stop reason is known.
    Replayed(String),
    /// It may have arrived, and the agent does not say.
    Unknown,
}

/// A message to a session. Stored before it leaves; sent again byte for byte (R5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRequest {
    /// Chosen by Sillage.
    pub client_message_id: ClientMessageId,
    /// What is said.
    pub text: String,
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// Its number in the session: the first is 1, without gaps.
    pub number: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: SessionEventKind,
}

/// Kinds of session events. All but `Answer`, `Error`, `Usage`, `Permission`, `PermissionRefused` and `Ended` are chatter: they are
/// shown and kept in the transcript, and decide nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum SessionEventKind {
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
        /// The files that it names, as far as the agent said.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<PathBuf>,
    },
    /// The agent's own list of what it means to do.
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
        /// The request's identifier.
        id: String,
        /// The option taken; none: cancelled.
        option: Option<String>,
        /// Who decided: `policy`, `person` or `cancel`.
        by: String,
    },
    /// The final answer to a message.
    Answer {
        /// The message.
        message: ClientMessageId,
        /// The answer.
        answer: Answer,
    },
    /// The message, or the session as a whole, failed.
    Error {
        /// The message, when one was being answered.
        message: Option<ClientMessageId>,
        /// How.
        error: RuntimeError,
    },
    /// Something worth a line in the transcript: noise on standard output, an unknown update.
    Note {
        /// The line.
        text: String,
    },
    /// The session is over; nothing follows.
    Ended,
}

/// A final answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The final text: what the agent said last, after its last tool call; all that it said where that is empty.
    pub text: String,
    /// Why it stopped.
    pub stop: StopReason,
    /// Usage of the session so far, as far as known.
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
}

/// Why an agent stopped answering.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said all.
    EndTurn,
    /// The model's limit cut it.
    MaxTokens,
    /// Too many model calls in the turn.
    MaxTurnRequests,
    /// The model refused.
    Refusal,
    /// It was cancelled.
    Cancelled,
    /// Another word of the agent's, or none.
    Other(String),
}

impl StopReason {
    /// The word for an answer whose session was brought back meanwhile: it is what the agent repeated of it.
    pub const REPLAYED: &str = "replayed";
    /// The same where the agent repeated nothing: how it answered is not known.
    pub const CUT: &str = "cut";

    /// Whether the session was brought back while this was answered, so that it may be half an answer.
    #[must_use]
    pub fn was_interrupted(&self) -> bool {
        matches!(self, StopReason::Other(word) if word == Self::REPLAYED || word == Self::CUT)
    }
}

/// Tokens and cost. What was not given is unknown, not zero (A7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
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
    /// Cost so far by the agent's account, in millionths of its currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// ISO 4217 code of the cost's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<[u8; 3]>,
}

impl Eq for Usage {}

impl Usage {
    /// Whether nothing at all is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Usage::default()
    }

    /// What is known by `later`, and by `self` where `later` does not say.
    #[must_use]
    pub fn updated_by(self, later: Usage) -> Usage {
        Usage {
            input_tokens: later.input_tokens.or(self.input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            cache_read_tokens: later.cache_read_tokens.or(self.cache_read_tokens),
            cache_write_tokens: later.cache_write_tokens.or(self.cache_write_tokens),
            context_used: later.context_used.or(self.context_used),
            cost_micros: later.cost_micros.or(self.cost_micros),
            currency: later.currency.or(self.currency),
        }
    }
}

/// An agent's request for permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// Unique in the session.
    pub id: String,
    /// What it is for, for people.
    pub title: String,
    /// ACP's word for what it would do (`read`, `edit`, `execute`, …), where the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Files and folders that it names, as the agent wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathBuf>,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
}

/// One of a permission request's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionOption {
    /// Unique in the request.
    pub id: String,
    /// For people.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or the agent's own word.
    pub kind: String,
}

/// Why a runtime did not do what was asked, in classes that decide what follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "class")]
#[non_exhaustive]
pub enum RuntimeError {
    /// It may work later: overload, 5xx, connection refused, timeout (R7).
    #[error("{words}")]
    Temporary {
        /// The provider's or the system's words.
        words: String,
        /// How long the provider asks to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Duration>,
    },
    /// A quota is used up (R8).
    #[error("{words}")]
    Quota {
        /// The provider's words.
        words: String,
        /// When it is given back, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
    },
    /// Someone must sign in (R8).
    #[error("{words}")]
    SignIn {
        /// The provider's or agent's words.
        words: String,
    },
    /// The runtime holds as many sessions as it can; nothing is wrong.
    #[error("{words}")]
    Capacity {
        /// The runtime's words.
        words: String,
        /// How long it asks to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Duration>,
    },
    /// It will not work however often it is tried: bad request, refused model, missing program (R9).
    #[error("{words}")]
    Permanent {
        /// The provider's, agent's or system's words.
        words: String,
    },
    /// The identifier came before with another request (R6), or another message is being answered.
    #[error("{words}")]
    Conflict {
        /// What is wrong.
        words: String,
        /// The fields that differ.
        fields: Vec<String>,
    },
    /// The session is gone: its process ended, or nobody knows it.
    #[error("{words}")]
    Lost {
        /// How it went, with the agent's last words on standard error.
        words: String,
    },
    /// A process could not be ended.
    #[error("process {pid} could not be stopped: {words}")]
    Unstoppable {
        /// The process.
        pid: u32,
        /// Why.
        words: String,
    },
}
