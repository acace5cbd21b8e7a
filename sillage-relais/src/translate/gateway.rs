//! A gateway's half: what it is asked as a runtime takes it, and what it tells in the words of the wire.

use std::path::PathBuf;
use std::time::Duration;

use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::runtime::{
    PermissionOption, PermissionRequest, RuntimeError, SessionEventKind, SessionRequest, StopReason, Usage,
};
use sillage_core::time::Timestamp;

use super::{folders, policy, protected};
use crate::wire::{self, ErrorClass, EventBody, SessionState};

/// The request as a runtime takes it.
pub(crate) fn request_from_wire(request: &wire::CreateSession) -> SessionRequest {
    SessionRequest {
        client_session_id: ClientSessionId(request.client_session_id),
        model: request.model.clone(),
        effort: request.effort.clone(),
        workspace: PathBuf::from(&request.workspace),
        filesystem_scope: folders(&request.filesystem_scope),
        protected: protected(&request.protected),
        permissions: policy(request.permissions),
        autocompact_tokens: request.autocompact_tokens,
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
        resets_at: resets_at.map(instant),
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

pub(super) fn stop_to_wire(stop: &StopReason) -> String {
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

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// Whole seconds, rounded up: a wait is never cut short.
pub(crate) fn seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}

/// An instant as the wire writes it.
pub(crate) fn instant(at: Timestamp) -> String {
    at.to_string()
}
