//! Between the words of the wire and those of [`AgentRuntime`](sillage_core::ports::AgentRuntime).

use std::path::{Path, PathBuf};
use std::time::Duration;

use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::policy::Protected;
use sillage_core::ports::runtime::{
    Answer, PermissionOption, PermissionPolicy, PermissionRequest, RuntimeError, SessionEventKind,
    SessionRequest, StopReason, Usage,
};
use sillage_core::time::Timestamp;

use crate::wire::{self, ErrorClass, EventBody, SessionState};

/// A path that JSON cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path {} is not UTF-8, and cannot be sent: rename it", .0.display())]
pub(crate) struct NotText(pub(crate) PathBuf);

fn text(path: &Path) -> Result<String, NotText> {
    let text = path.to_str().ok_or_else(|| NotText(path.to_path_buf()))?;
    Ok(text.to_owned())
}

fn texts(paths: &[PathBuf]) -> Result<Vec<String>, NotText> {
    paths.iter().map(|path| text(path)).collect()
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

fn paths(texts: &[String]) -> Vec<PathBuf> {
    texts.iter().map(PathBuf::from).collect()
}

/// The request as it goes over the wire.
pub(crate) fn request_to_wire(
    request: &SessionRequest,
    application_name: &str,
    ttl_seconds: u64,
) -> Result<wire::CreateSession, NotText> {
    let SessionRequest {
        client_session_id,
        model,
        effort,
        workspace,
        filesystem_scope,
        protected,
        permissions,
        autocompact_tokens,
    } = request;
    Ok(wire::CreateSession {
        client_session_id: client_session_id.0,
        application_name: application_name.to_owned(),
        model: model.clone(),
        effort: effort.clone(),
        workspace: text(workspace)?,
        ttl_seconds,
        autocompact_tokens: *autocompact_tokens,
        working_context: None,
        filesystem_scope: wire::FilesystemScope {
            read: texts(&filesystem_scope.read)?,
            write: texts(&filesystem_scope.write)?,
        },
        protected: wire::ProtectedPlaces {
            closed: texts(&protected.closed)?,
            kept: texts(&protected.kept)?,
        },
        permissions: match permissions {
            PermissionPolicy::Ask => wire::Permissions::Ask,
            PermissionPolicy::AllowInFolders => wire::Permissions::AllowInFolders,
            PermissionPolicy::Deny => wire::Permissions::Deny,
        },
        mcp_servers: Vec::new(),
    })
}

fn policy(permissions: wire::Permissions) -> PermissionPolicy {
    match permissions {
        wire::Permissions::Ask => PermissionPolicy::Ask,
        wire::Permissions::AllowInFolders => PermissionPolicy::AllowInFolders,
        wire::Permissions::Deny => PermissionPolicy::Deny,
    }
}

/// The request as a runtime takes it.
#[cfg(feature = "gateway")]
pub(crate) fn request_from_wire(request: &wire::CreateSession) -> SessionRequest {
    SessionRequest {
        client_session_id: ClientSessionId(request.client_session_id),
        model: request.model.clone(),
        effort: request.effort.clone(),
        workspace: PathBuf::from(&request.workspace),
        filesystem_scope: Folders {
            read: paths(&request.filesystem_scope.read),
            write: paths(&request.filesystem_scope.write),
        },
        protected: Protected {
            closed: paths(&request.protected.closed),
            kept: paths(&request.protected.kept),
        },
        permissions: policy(request.permissions),
        autocompact_tokens: request.autocompact_tokens,
    }
}

/// The request that a session was opened with, as far as the session repeats it.
pub(crate) fn request_of_session(session: &wire::Session) -> SessionRequest {
    SessionRequest {
        client_session_id: ClientSessionId(session.client_session_id),
        model: session.model.clone(),
        effort: session.effort.clone(),
        workspace: PathBuf::from(&session.workspace),
        filesystem_scope: Folders {
            read: paths(&session.filesystem_scope.read),
            write: paths(&session.filesystem_scope.write),
        },
        protected: Protected {
            closed: paths(&session.protected.closed),
            kept: paths(&session.protected.kept),
        },
        permissions: policy(session.permissions),
        autocompact_tokens: session.autocompact_tokens,
    }
}

pub(crate) fn usage_to_wire(usage: &Usage) -> wire::Usage {
    wire::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        context_used: usage.context_used,
        cost_micros: usage.cost_micros,
        currency: usage
            .currency
            .and_then(|code| String::from_utf8(code.to_vec()).ok()),
    }
}

fn usage_from_wire(usage: &wire::Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        context_used: usage.context_used,
        cost_micros: usage.cost_micros,
        currency: usage
            .currency
            .as_deref()
            .and_then(|code| code.as_bytes().try_into().ok()),
    }
}

pub(crate) fn stop_to_wire(stop: &StopReason) -> String {
    let word = match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::MaxTokens => "max_tokens",
        StopReason::MaxTurnRequests => "max_turn_requests",
        StopReason::Refusal => "refusal",
        StopReason::Cancelled => "cancelled",
        StopReason::Other(word) => word,
    };
    word.to_owned()
}

fn stop_from_wire(word: &str) -> StopReason {
    match word {
        "end_turn" => StopReason::EndTurn,
        "max_tokens" => StopReason::MaxTokens,
        "max_turn_requests" => StopReason::MaxTurnRequests,
        "refusal" => StopReason::Refusal,
        "cancelled" => StopReason::Cancelled,
        other => StopReason::Other(other.to_owned()),
    }
}

pub(crate) fn permission_to_wire(request: &PermissionRequest) -> wire::PermissionRequest {
    let option = |option: &PermissionOption| wire::PermissionOption {
        id: option.id.clone(),
        name: option.name.clone(),
        kind: option.kind.clone(),
    };
    wire::PermissionRequest {
        id: request.id.clone(),
        title: request.title.clone(),
        tool_kind: request.kind.clone(),
        paths: shown(&request.paths),
        options: request.options.iter().map(option).collect(),
    }
}

fn permission_from_wire(request: wire::PermissionRequest) -> PermissionRequest {
    let option = |option: wire::PermissionOption| PermissionOption {
        id: option.id,
        name: option.name,
        kind: option.kind,
    };
    PermissionRequest {
        id: request.id,
        title: request.title,
        kind: request.tool_kind,
        paths: paths(&request.paths),
        options: request.options.into_iter().map(option).collect(),
    }
}

/// Whole seconds, rounded up: a wait is never cut short.
pub(crate) fn seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}

fn error_to_wire(message: Option<ClientMessageId>, error: &RuntimeError) -> EventBody {
    let (class, retry_after, resets_at) = match error {
        RuntimeError::Temporary { retry_after, .. } => (ErrorClass::Temporary, *retry_after, None),
        RuntimeError::Quota { resets_at, .. } => (ErrorClass::Quota, None, *resets_at),
        RuntimeError::SignIn { .. } => (ErrorClass::SignIn, None, None),
        RuntimeError::Capacity { retry_after, .. } => (ErrorClass::Capacity, *retry_after, None),
        RuntimeError::Lost { .. } => (ErrorClass::Lost, None, None),
        // Errors of a later version too: what is not known to pass is not tried for ever.
        RuntimeError::Permanent { .. }
        | RuntimeError::Conflict { .. }
        | RuntimeError::Unstoppable { .. }
        | _ => (ErrorClass::Permanent, None, None),
    };
    EventBody::Error {
        client_message_id: message.map(|message| message.0),
        class,
        words: error.to_string(),
        retry_after: retry_after.map(seconds),
        resets_at: resets_at.map(|at| at.to_string()),
    }
}

/// An error of a class, with what the class tells.
pub(crate) fn error_of(
    class: ErrorClass,
    words: String,
    retry_after: Option<u64>,
    resets_at: Option<&str>,
) -> RuntimeError {
    let retry_after = retry_after.map(Duration::from_secs);
    match class {
        ErrorClass::Temporary => RuntimeError::Temporary { words, retry_after },
        ErrorClass::Quota => {
            let resets_at = resets_at.and_then(|at| at.parse().ok());
            RuntimeError::Quota { words, resets_at }
        }
        ErrorClass::SignIn => RuntimeError::SignIn { words },
        ErrorClass::Permanent => RuntimeError::Permanent { words },
        ErrorClass::Capacity => RuntimeError::Capacity { words, retry_after },
        ErrorClass::Lost => RuntimeError::Lost { words },
    }
}

/// An event as it goes over the wire; the session's end is a state there.
pub(crate) fn event_to_wire(kind: &SessionEventKind) -> EventBody {
    match kind {
        SessionEventKind::Text { text } => EventBody::Text { text: text.clone() },
        SessionEventKind::Thought { text } => EventBody::Thought { text: text.clone() },
        SessionEventKind::Tool {
            id,
            title,
            status,
            locations,
        } => EventBody::Tool {
            id: id.clone(),
            title: title.clone(),
            status: status.clone(),
            locations: shown(locations),
        },
        SessionEventKind::Plan { entries } => EventBody::Plan {
            entries: entries.clone(),
        },
        SessionEventKind::Usage { usage } => EventBody::Usage {
            usage: usage_to_wire(usage),
        },
        SessionEventKind::Permission { request } => EventBody::Permission {
            request: permission_to_wire(request),
        },
        SessionEventKind::PermissionRefused { request, rule } => EventBody::PermissionRefused {
            request: permission_to_wire(request),
            rule: rule.clone(),
        },
        SessionEventKind::PermissionAnswered { id, option, by } => EventBody::PermissionAnswered {
            permission_id: id.clone(),
            option: option.clone(),
            by: by.clone(),
        },
        SessionEventKind::Answer { message, answer } => EventBody::Answer {
            client_message_id: message.0,
            text: answer.text.clone(),
            stop_reason: stop_to_wire(&answer.stop),
            usage: usage_to_wire(&answer.usage),
        },
        SessionEventKind::Error { message, error } => error_to_wire(*message, error),
        SessionEventKind::Ended => EventBody::State {
            state: SessionState::Ended,
        },
        SessionEventKind::Note { text } => EventBody::Note { text: text.clone() },
        // Kinds of a later version are chatter until this one learns of them.
        _ => EventBody::Note {
            text: "something happened that this version has no word for".to_owned(),
        },
    }
}

/// An event as a runtime tells it. A state but the last is a line of the transcript, so that numbers stay without gaps.
pub(crate) fn event_from_wire(body: EventBody) -> SessionEventKind {
    match body {
        EventBody::Text { text } => SessionEventKind::Text { text },
        EventBody::Thought { text } => SessionEventKind::Thought { text },
        EventBody::Tool {
            id,
            title,
            status,
            locations,
        } => SessionEventKind::Tool {
            id,
            title,
            status,
            locations: paths(&locations),
        },
        EventBody::Plan { entries } => SessionEventKind::Plan { entries },
        EventBody::Usage { usage } => SessionEventKind::Usage {
            usage: usage_from_wire(&usage),
        },
        EventBody::Permission { request } => SessionEventKind::Permission {
            request: permission_from_wire(request),
        },
        EventBody::PermissionRefused { request, rule } => SessionEventKind::PermissionRefused {
            request: permission_from_wire(request),
            rule,
        },
        EventBody::PermissionAnswered {
            permission_id,
            option,
            by,
        } => SessionEventKind::PermissionAnswered {
            id: permission_id,
            option,
            by,
        },
        EventBody::Answer {
            client_message_id,
            text,
            stop_reason,
            usage,
        } => SessionEventKind::Answer {
            message: ClientMessageId(client_message_id),
            answer: Answer {
                text,
                stop: stop_from_wire(&stop_reason),
                usage: usage_from_wire(&usage),
            },
        },
        EventBody::Error {
            client_message_id,
            class,
            words,
            retry_after,
            resets_at,
        } => SessionEventKind::Error {
            message: client_message_id.map(ClientMessageId),
            error: error_of(class, words, retry_after, resets_at.as_deref()),
        },
        EventBody::State { state } if state.is_over() => SessionEventKind::Ended,
        EventBody::State { state } => SessionEventKind::Note {
            text: format!("the session is {}", word(state)),
        },
        EventBody::Note { text } => SessionEventKind::Note { text },
    }
}

/// A state's word on the wire.
pub(crate) fn word(state: SessionState) -> &'static str {
    match state {
        SessionState::Starting => "starting",
        SessionState::Idle => "idle",
        SessionState::Working => "working",
        SessionState::Waiting => "waiting",
        SessionState::Ended => "ended",
        SessionState::Lost => "lost",
    }
}

/// An instant as the wire writes it.
#[cfg(feature = "gateway")]
pub(crate) fn instant(at: Timestamp) -> String {
    at.to_string()
}

#[cfg(test)]
mod tests;
