//! Between the words of the wire and those of [`AgentRuntime`](sillage_core::ports::AgentRuntime).

#[cfg(feature = "gateway")]
mod gateway;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::policy::Protected;
use sillage_core::ports::runtime::{
    Answer, PermissionOption, PermissionPolicy, PermissionRequest, RuntimeError, SessionEventKind,
    SessionRequest, StopReason, Usage,
};

#[cfg(feature = "gateway")]
pub(crate) use gateway::{
    event_to_wire, instant, permission_to_wire, request_from_wire, seconds, usage_to_wire,
};

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

fn folders(scope: &wire::FilesystemScope) -> Folders {
    Folders {
        read: paths(&scope.read),
        write: paths(&scope.write),
    }
}

fn protected(places: &wire::ProtectedPlaces) -> Protected {
    Protected {
        closed: paths(&places.closed),
        kept: paths(&places.kept),
    }
}

fn policy(permissions: wire::Permissions) -> PermissionPolicy {
    match permissions {
        wire::Permissions::Ask => PermissionPolicy::Ask,
        wire::Permissions::AllowInFolders => PermissionPolicy::AllowInFolders,
        wire::Permissions::Deny => PermissionPolicy::Deny,
    }
}

/// The request that a session was opened with, as far as the session repeats it.
pub(crate) fn request_of_session(session: &wire::Session) -> SessionRequest {
    SessionRequest {
        client_session_id: ClientSessionId(session.client_session_id),
        model: session.model.clone(),
        effort: session.effort.clone(),
        workspace: PathBuf::from(&session.workspace),
        filesystem_scope: folders(&session.filesystem_scope),
        protected: protected(&session.protected),
        permissions: policy(session.permissions),
        autocompact_tokens: session.autocompact_tokens,
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

#[cfg(test)]
mod tests;
