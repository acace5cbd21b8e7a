//! Between ACP's words and ours: the only place that names the protocol's types.
//!
//! Reading is done in two steps: first as JSON, kept whatever it is, then as the protocol's types with the JSON to fall
//! back on. What is unknown becomes a note; it never fails a turn.

use std::collections::BTreeMap;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AuthenticateRequest, CancelNotification, ContentBlock, ContentChunk, Implementation, InitializeRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, RequestPermissionOutcome,
    RequestPermissionResponse, ResumeSessionRequest, SelectedPermissionOutcome, SessionConfigKind,
    SessionConfigOption, SessionConfigSelectOptions, SessionUpdate, SetSessionConfigOptionRequest,
    UsageUpdate,
};
use serde::Serialize;
use serde_json::{Value, json};
use sillage_core::policy::ToolFacts;
use sillage_core::ports::runtime::{PermissionOption, SessionEventKind, StopReason, Usage};
use sillage_core::settings::{McpServer, McpTransport};

use crate::model_choice::{ConfigOption, LegacyModels, Shown};

/// The version of the protocol that is spoken.
pub(crate) const PROTOCOL_VERSION: u64 = 1;

/// Characters of an agent's identifiers and words that are kept.
const WORD: usize = 500;

/// Characters of a tool call's title that are kept.
const TITLE: usize = 1000;

/// Options of a permission request that are kept.
const OPTIONS: usize = 50;

/// What `initialize` asks: version 1, without files and terminals of ours.
pub(crate) fn initialize() -> Value {
    let client = Implementation::new("sillage", env!("CARGO_PKG_VERSION"));
    to_value(&InitializeRequest::new(ProtocolVersion::V1).client_info(client))
}

pub(crate) fn authenticate(method: &str) -> Value {
    to_value(&AuthenticateRequest::new(method.to_owned()))
}

pub(crate) fn new_session(folder: &str, servers: &[McpServer]) -> Value {
    with_servers(to_value(&NewSessionRequest::new(folder)), servers)
}

pub(crate) fn load_session(session: &str, folder: &str, servers: &[McpServer]) -> Value {
    let request = LoadSessionRequest::new(session.to_owned(), folder);
    with_servers(to_value(&request), servers)
}

pub(crate) fn resume_session(session: &str, folder: &str, servers: &[McpServer]) -> Value {
    let request = ResumeSessionRequest::new(session.to_owned(), folder);
    with_servers(to_value(&request), servers)
}

/// Adds the MCP servers: always a list, also to `session/resume`, where the protocol does not ask for one; agents read
/// all three requests alike.
fn with_servers(mut params: Value, servers: &[McpServer]) -> Value {
    params["mcpServers"] = servers.iter().map(mcp_server).collect();
    params
}

/// Some agents leave a server out whose lists are missing, so that they are always written.
fn mcp_server(server: &McpServer) -> Value {
    let pairs = |pairs: &BTreeMap<String, String>| -> Value {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect()
    };
    let name = &server.name;
    match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            json!({ "name": name, "command": command, "args": args, "env": pairs(env) })
        }
        McpTransport::Http { url, headers } => {
            json!({ "type": "http", "name": name, "url": url, "headers": pairs(headers) })
        }
        McpTransport::Sse { url, headers } => {
            json!({ "type": "sse", "name": name, "url": url, "headers": pairs(headers) })
        }
    }
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    to_value(&PromptRequest::new(
        session.to_owned(),
        vec![ContentBlock::from(text.to_owned())],
    ))
}

pub(crate) fn cancel(session: &str) -> Value {
    to_value(&CancelNotification::new(session.to_owned()))
}

pub(crate) fn set_option(session: &str, option: &str, value: &str) -> Value {
    to_value(&SetSessionConfigOptionRequest::new(
        session.to_owned(),
        option.to_owned(),
        value,
    ))
}

/// `session/set_model` has left the protocol; some agents know nothing else.
pub(crate) fn set_model(session: &str, model: &str) -> Value {
    json!({"sessionId": session, "modelId": model})
}

/// The answer to a permission request; none: cancelled.
pub(crate) fn permission_outcome(option: Option<&str>) -> Value {
    let outcome = match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.to_owned())),
        None => RequestPermissionOutcome::Cancelled,
    };
    to_value(&RequestPermissionResponse::new(outcome))
}

#[expect(
    clippy::expect_used,
    reason = "requests of ours are made of texts, numbers and lists"
)]
fn to_value(request: &impl Serialize) -> Value {
    serde_json::to_value(request).expect("a request of ours is JSON")
}

/// What an agent can do, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(crate) load: bool,
    pub(crate) resume: bool,
    /// Its identifiers of the ways to sign in.
    pub(crate) sign_ins: Vec<String>,
}

/// Reads the answer to `initialize`: the version that the agent speaks, as it wrote it, and what it can do.
pub(crate) fn capabilities(answer: &Value) -> (Value, Capabilities) {
    let agent = &answer["agentCapabilities"];
    let capabilities = Capabilities {
        load: agent["loadSession"].as_bool().unwrap_or(false),
        resume: agent["sessionCapabilities"]
            .get("resume")
            .is_some_and(|resume| !resume.is_null()),
        sign_ins: items(&answer["authMethods"])
            .filter_map(|method| method["id"].as_str())
            .map(str::to_owned)
            .collect(),
    };
    (answer["protocolVersion"].clone(), capabilities)
}

/// Reads what a session shows of its model and effort; the list is missing or not in the answers of some agents.
pub(crate) fn shown(answer: &Value) -> Shown {
    let models = answer
        .get("models")
        .filter(|models| models.is_object())
        .map(|models| LegacyModels {
            current: text(models, "currentModelId"),
            available: items(&models["availableModels"])
                .map(|model| text(model, "modelId"))
                .collect(),
        });
    Shown {
        options: config_options(&answer["configOptions"]),
        models,
    }
}

/// Reads a list of configuration options, skipping what is not a choice among values.
pub(crate) fn config_options(list: &Value) -> Vec<ConfigOption> {
    items(list)
        .filter_map(|item| {
            let option: SessionConfigOption = serde_json::from_value(item.clone()).ok()?;
            let SessionConfigKind::Select(select) = option.kind else {
                return None;
            };
            let values: Vec<_> = match select.options {
                SessionConfigSelectOptions::Ungrouped(values) => values,
                SessionConfigSelectOptions::Grouped(groups) => {
                    groups.into_iter().flat_map(|group| group.options).collect()
                }
                _ => return None,
            };
            Some(ConfigOption {
                id: option.id.to_string(),
                category: text(item, "category"),
                current: select.current_value.to_string(),
                values: values
                    .into_iter()
                    .map(|value| (value.value.to_string(), value.name))
                    .collect(),
            })
        })
        .collect()
}

/// One update of a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Update {
    /// A piece of the agent's message, with the identifier of the message where it is given.
    Said { text: String, message: Option<String> },
    /// A piece of a message of the user, as a replay repeats it.
    Asked { text: String, message: Option<String> },
    /// A tool call: new ones are told apart from news by their identifier.
    Tool {
        id: String,
        status: Option<String>,
        facts: ToolFacts,
    },
    /// Usage of the session so far.
    Used(Usage),
    /// The configuration options are these now.
    Options(Vec<ConfigOption>),
    /// The agent says that something failed that it does not tell otherwise.
    SystemError,
    /// To be shown, and nothing else.
    Chatter(SessionEventKind),
    /// Known, and of no interest.
    Nothing,
}

/// Reads the `update` member of a `session/update`.
pub(crate) fn update(raw: &Value) -> Update {
    let kind = raw["sessionUpdate"].as_str().unwrap_or("");
    if matches!(kind, "tool_call" | "tool_call_update") {
        return tool(raw).unwrap_or_else(|| note(format!("a `{kind}` without an identifier")));
    }
    match serde_json::from_value::<SessionUpdate>(raw.clone()) {
        Ok(update) => typed_update(update, kind, raw),
        Err(_) => note(format!("an update that is not known: `{kind}`")),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the protocol grows: what is new becomes a note"
)]
fn typed_update(update: SessionUpdate, kind: &str, raw: &Value) -> Update {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) => match piece(&chunk) {
            Ok(text) => Update::Said {
                text,
                message: message_of(&chunk),
            },
            Err(what) => note(format!("the agent shows {what}")),
        },
        SessionUpdate::UserMessageChunk(chunk) => match piece(&chunk) {
            Ok(text) => Update::Asked {
                text,
                message: message_of(&chunk),
            },
            Err(_) => Update::Nothing,
        },
        SessionUpdate::AgentThoughtChunk(chunk) => match piece(&chunk) {
            Ok(text) => Update::Chatter(SessionEventKind::Thought { text }),
            Err(_) => Update::Nothing,
        },
        SessionUpdate::Plan(plan) => {
            let entries = plan.entries.into_iter().map(|entry| entry.content).collect();
            Update::Chatter(SessionEventKind::Plan { entries })
        }
        SessionUpdate::UsageUpdate(update) => Update::Used(context_usage(&update)),
        SessionUpdate::ConfigOptionUpdate(_) => Update::Options(config_options(&raw["configOptions"])),
        SessionUpdate::SessionInfoUpdate(_) if is_system_error(raw) => Update::SystemError,
        SessionUpdate::AvailableCommandsUpdate(_)
        | SessionUpdate::CurrentModeUpdate(_)
        | SessionUpdate::SessionInfoUpdate(_) => Update::Nothing,
        // Kinds that an agent sends only to clients that announced them.
        _ => note(format!("an update that was not asked for: `{kind}`")),
    }
}

/// Codex's word for a turn that failed, which it then ends `end_turn`.
fn is_system_error(raw: &Value) -> bool {
    raw["_meta"]["codex"]["threadStatus"]["type"] == "systemError"
}

fn note(text: String) -> Update {
    Update::Chatter(SessionEventKind::Note { text })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the protocol grows: what is new is not a text"
)]
fn piece(chunk: &ContentChunk) -> Result<String, &'static str> {
    match &chunk.content {
        ContentBlock::Text(text) => Ok(text.text.clone()),
        ContentBlock::ResourceLink(link) => Ok(format!("[{}]({})", link.name, link.uri)),
        ContentBlock::Image(_) => Err("an image"),
        ContentBlock::Audio(_) => Err("a sound"),
        _ => Err("a resource"),
    }
}

fn message_of(chunk: &ContentChunk) -> Option<String> {
    chunk.message_id.as_ref().map(ToString::to_string)
}

/// Reads a tool call, or news of one, or the one that a permission request is about: whatever is there.
pub(crate) fn tool(raw: &Value) -> Option<Update> {
    let id = cut(raw["toolCallId"].as_str()?, WORD);
    let diffs = items(&raw["content"]).filter(|item| item["type"] == "diff");
    let located = items(&raw["locations"]).chain(diffs);
    let mut facts = ToolFacts {
        title: cut(raw["title"].as_str().unwrap_or_default(), TITLE),
        kind: raw["kind"].as_str().map(|kind| cut(kind, WORD)),
        locations: located
            .filter_map(|item| item["path"].as_str())
            .map(Into::into)
            .collect(),
        ..ToolFacts::default()
    };
    facts.read_input(&raw["rawInput"]);
    Some(Update::Tool {
        id,
        status: raw["status"].as_str().map(|status| cut(status, WORD)),
        facts,
    })
}

/// Reads the options of a permission request, skipping those without an identifier or with one beyond reason.
pub(crate) fn permission_options(raw: &Value) -> Vec<PermissionOption> {
    items(raw)
        .filter(|option| option["optionId"].as_str().is_some_and(|id| id.len() <= WORD))
        .take(OPTIONS)
        .map(|option| PermissionOption {
            id: text(option, "optionId"),
            name: cut(&text(option, "name"), WORD),
            kind: cut(&text(option, "kind"), WORD),
        })
        .collect()
}

fn context_usage(update: &UsageUpdate) -> Usage {
    let cost = update.cost.as_ref();
    Usage {
        context_used: Some(update.used),
        cost_micros: cost.and_then(|cost| micros(cost.amount)),
        currency: cost.and_then(|cost| currency(&cost.currency)),
        ..Usage::default()
    }
}

/// An amount in millionths; none for one that cannot be an amount of money.
fn micros(amount: f64) -> Option<u64> {
    let micros = (amount * 1e6).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    (0.0..1e18).contains(&micros).then_some(micros as u64)
}

/// An ISO 4217 code; agents also count in `credits`, which is no currency.
fn currency(code: &str) -> Option<[u8; 3]> {
    let code: [u8; 3] = code.as_bytes().try_into().ok()?;
    code.iter().all(u8::is_ascii_uppercase).then_some(code)
}

/// How a prompt ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PromptEnd {
    pub(crate) stop: StopReason,
    /// Totals of the session, from the result's `usage`.
    pub(crate) totals: Usage,
    /// Tokens of this turn alone, from `_meta.quota`.
    pub(crate) turn: Usage,
    /// The error that the agent says it ended with, from `_meta.error`.
    pub(crate) error: Option<String>,
}

/// Reads the answer to a prompt. Zero tokens in and out mean that nothing is known: agents answer so after a cancel or
/// an error.
pub(crate) fn prompt_end(answer: &Value) -> PromptEnd {
    let usage = &answer["usage"];
    let count = |from: &Value, key: &str| from[key].as_u64();
    let totals = Usage {
        input_tokens: count(usage, "inputTokens"),
        output_tokens: count(usage, "outputTokens"),
        cache_read_tokens: count(usage, "cachedReadTokens"),
        cache_write_tokens: count(usage, "cachedWriteTokens"),
        ..Usage::default()
    };
    let quota = &answer["_meta"]["quota"]["token_count"];
    let turn = Usage {
        input_tokens: count(quota, "input_tokens"),
        output_tokens: count(quota, "output_tokens"),
        ..Usage::default()
    };
    let known = |usage: Usage| {
        let nothing = usage.input_tokens.unwrap_or(0) == 0 && usage.output_tokens.unwrap_or(0) == 0;
        if nothing { Usage::default() } else { usage }
    };
    PromptEnd {
        stop: stop_reason(&answer["stopReason"]),
        totals: known(totals),
        turn: known(turn),
        error: meta_error(&answer["_meta"]["error"]),
    }
}

/// An error as agents of opencode's family put it beside a stop reason: a text, or a map with a message.
fn meta_error(error: &Value) -> Option<String> {
    let messages = [error, &error["message"], &error["data"]["message"]];
    let message = messages.iter().find_map(|message| message.as_str())?;
    (!message.trim().is_empty()).then(|| cut(message, TITLE))
}

fn stop_reason(raw: &Value) -> StopReason {
    match raw.as_str() {
        Some("end_turn") => StopReason::EndTurn,
        Some("max_tokens") => StopReason::MaxTokens,
        Some("max_turn_requests") => StopReason::MaxTurnRequests,
        Some("refusal") => StopReason::Refusal,
        Some("cancelled") => StopReason::Cancelled,
        Some(other) => StopReason::Other(other.to_owned()),
        None if raw.is_null() => StopReason::Other(String::new()),
        None => StopReason::Other(raw.to_string()),
    }
}

/// At most so many characters of a text.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(from: &Value, key: &str) -> String {
    from[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
