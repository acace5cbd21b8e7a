//! What arrives from the agent: updates, permission requests, and what is no protocol.

use serde_json::Value;
use sillage_core::policy::{Bounds, Decision, ToolFacts, decide, option_for};
use sillage_core::ports::runtime::{PermissionRequest, RuntimeError, SessionEventKind, Usage};
use tokio::time::Instant;

use super::actor::{Actor, End, OpenPermission, ToolCall, Unable};
use super::log::POLICY;
use super::turn::Turn;
use crate::connection::{Incoming, METHOD_NOT_FOUND, PARSE_ERROR};
use crate::permission::{LONGEST_TITLE, MOST_PATHS, real};
use crate::translate::{self, Update};

/// Lines of noise that are shown; more are counted.
const NOISE_SHOWN: u64 = 100;

/// Characters of an agent's word that are repeated.
const SHOWN: usize = 300;

/// The notification that carries updates of a session.
pub(super) const UPDATE: &str = "session/update";

/// Tool calls remembered in a turn.
const TOOLS: usize = 10_000;

/// Permission requests open at once; there is room in the queue to answer them all.
const PERMISSIONS: usize = 100;

impl Actor {
    /// Handles one thing that arrived.
    pub(super) fn arrived(&mut self, incoming: Incoming) -> Result<(), End> {
        let frame = matches!(
            incoming,
            Incoming::Response { .. } | Incoming::Request { .. } | Incoming::Notification { .. }
        );
        if frame && let Turn::Answering(turn) = &mut self.turn {
            turn.silence.broken(Instant::now());
        }
        match incoming {
            Incoming::Response { id, outcome } if self.turn.waits_for(&id) => self.prompt_answered(outcome),
            Incoming::Response { id, .. } if self.connection.was_asked(&id) => {
                self.note(format!("a second answer to request {id} was dropped"));
                Ok(())
            }
            // The answer that is waited for may be this one, wrongly addressed: it would never come.
            Incoming::Response { id, outcome } => {
                let error = outcome
                    .err()
                    .map(|error| format!(": {}", error.message))
                    .unwrap_or_default();
                let words = brief(&format!("an answer to no request (identifier {id}){error}"));
                self.note(words.clone());
                self.give_up_over(&words)
            }
            Incoming::Request { id, method, params } if method == "session/request_permission" => {
                self.permission_requested(id, &params)
            }
            // Files and terminals are not offered (A6); an agent that asks all the same goes on without.
            Incoming::Request { id, method, .. } => {
                let method = brief(&method);
                let reason = not_offered(&method);
                tracing::info!(agent = self.agent(), %method, "refused: {reason}");
                self.note(format!("a request for `{method}` was refused: {reason}"));
                Ok(self.connection.refuse(&id, METHOD_NOT_FOUND, &reason)?)
            }
            Incoming::Invalid { id, code, words } => {
                self.note(format!("{words} was refused"));
                Ok(self.connection.refuse(&id, code, &words)?)
            }
            Incoming::Notification { method, params } => {
                if method == UPDATE {
                    self.session_update(params);
                }
                Ok(())
            }
            Incoming::Noise(line) => {
                self.noise(line);
                Ok(())
            }
            Incoming::Damaged { words, asks } => {
                self.note(words.clone());
                if asks {
                    self.connection.refuse(&Value::Null, PARSE_ERROR, &words)?;
                }
                self.give_up_over(&words)
            }
            Incoming::Closed(words) => Err(End::Cut(words)),
        }
    }

    pub(super) fn note(&self, text: String) {
        self.log.push(SessionEventKind::Note { text });
    }

    fn noise(&mut self, line: String) {
        self.noise += 1;
        if self.noise <= NOISE_SHOWN {
            self.note(format!("not protocol: {line}"));
        } else if self.noise == NOISE_SHOWN + 1 {
            self.note("more lines that are not protocol are not shown".to_owned());
        }
    }

    /// How many lines were noise, where not all of them were shown.
    pub(super) fn tell_noise(&self) {
        if self.noise > NOISE_SHOWN {
            self.note(format!("{} lines were not protocol", self.noise));
        }
    }

    /// A `session/update`: this session's is applied, another's (a sub-agent's) is not.
    pub(super) fn session_update(&mut self, params: Value) {
        let Some(session) = &self.session else {
            self.early.keep(params);
            return;
        };
        if params["sessionId"].as_str() == Some(session.as_str()) {
            self.update(translate::update(&params["update"]));
        }
    }

    /// Applies what came for the session before its identifier was known.
    pub(super) fn apply_early(&mut self) {
        for params in self.early.take() {
            self.session_update(params);
        }
    }

    fn update(&mut self, update: Update) {
        match (update, &mut self.replay) {
            (Update::Said { text, message }, Some(replay)) => replay.said(&text, message.as_deref()),
            (Update::Asked { text, message }, Some(replay)) => replay.asked(&text, message.as_deref()),
            (Update::Tool { .. }, Some(replay)) => replay.tool(),
            (Update::Chatter(_) | Update::SystemError, Some(_))
            | (Update::Nothing | Update::Asked { .. }, _) => {}
            (Update::Said { text, message }, None) => self.said(text, message.as_deref()),
            (Update::Tool { id, status, facts }, None) => self.tool(id, status, facts),
            (Update::Chatter(kind), None) => self.log.push(kind),
            (Update::SystemError, None) => {
                if let Turn::Answering(turn) = &mut self.turn {
                    turn.system_error = true;
                }
            }
            (Update::Used(usage), _) => self.add_usage(usage, Usage::default()),
            (Update::Options(options), _) => self.shown.options = options,
        }
    }

    fn said(&mut self, text: String, message: Option<&str>) {
        let late = message.is_some() && message == self.earlier_message.as_deref();
        if let Turn::Answering(turn) = &mut self.turn
            && !late
        {
            turn.text.said(&text, message);
        }
        self.log.push(SessionEventKind::Text { text });
    }

    /// A tool call, or news of one; one that was never announced begins here.
    fn tool(&mut self, id: String, status: Option<String>, facts: ToolFacts) {
        let known = self.tools.contains_key(&id);
        if !known && self.tools.len() >= TOOLS {
            return;
        }
        if !known && let Turn::Answering(turn) = &mut self.turn {
            turn.text.tool();
            turn.tools = true;
        }
        let call = self.tools.entry(id.clone()).or_insert_with(|| ToolCall {
            status: "pending".to_owned(),
            ..ToolCall::default()
        });
        let before = (call.status.clone(), call.facts.title.clone());
        call.facts.update(self.plan.choice.agent.outside(facts));
        bound_paths(&mut call.facts);
        if let Some(status) = status {
            call.status = status;
        }
        let news = SessionEventKind::Tool {
            id,
            title: call.facts.title.clone(),
            status: call.status.clone(),
            locations: call.facts.locations.clone(),
        };
        if !known || before != (call.status.clone(), call.facts.title.clone()) {
            self.log.push(news);
        }
    }

    /// Closes the tool calls that the agent left open at the end of a turn.
    pub(super) fn close_tools(&mut self) {
        for (id, call) in self.tools.drain() {
            if !matches!(call.status.as_str(), "completed" | "failed") {
                let status = "unfinished".to_owned();
                self.log.push(SessionEventKind::Tool {
                    id,
                    title: call.facts.title,
                    status,
                    locations: call.facts.locations,
                });
            }
        }
    }

    /// A permission request is answered by the policy, or shown to a person (A5).
    fn permission_requested(&mut self, rpc_id: Value, params: &Value) -> Result<(), End> {
        let ours = self.session.is_some() && params["sessionId"].as_str() == self.session.as_deref();
        let stopping = match &self.turn {
            Turn::Answering(turn) => turn.cancelled.is_some(),
            Turn::GivenUp { .. } => true,
            Turn::Idle => self.replay.is_some(),
        };
        if !ours || stopping || self.permissions.len() >= PERMISSIONS {
            return Ok(self
                .connection
                .respond(&rpc_id, &translate::permission_outcome(None))?);
        }
        let facts = match translate::tool(&params["toolCall"]) {
            Some(Update::Tool { id, status, facts }) => {
                self.tool(id.clone(), status, facts);
                self.tools
                    .get(&id)
                    .map(|call| call.facts.clone())
                    .unwrap_or_default()
            }
            _ => ToolFacts::default(),
        };
        self.permissions_asked += 1;
        let title = if facts.title.is_empty() {
            facts.kind.clone()
        } else {
            Some(facts.title.clone())
        };
        let mut title = title.unwrap_or_else(|| "a tool call that the agent does not describe".to_owned());
        // Whoever answers is to see what would be run, and not only what it is called.
        if let Some(command) = command_of(&params["toolCall"]["rawInput"])
            && !title.contains(&command)
        {
            title = format!("{title}: `{command}`");
        }
        let request = PermissionRequest {
            id: format!("p{}", self.permissions_asked),
            title: title.chars().take(LONGEST_TITLE).collect(),
            kind: facts.kind.clone(),
            paths: facts.paths().into_iter().take(MOST_PATHS).collect(),
            options: translate::permission_options(&params["options"]),
        };
        self.decide_permission(OpenPermission { rpc_id, request }, &facts)
    }

    fn decide_permission(&mut self, asked: OpenPermission, facts: &ToolFacts) -> Result<(), End> {
        let bounds = Bounds {
            policy: self.plan.request.permissions,
            folders: &self.plan.request.filesystem_scope,
            protected: &self.plan.request.protected,
            workspace: &self.plan.request.workspace,
        };
        let answering = matches!(self.turn, Turn::Answering(_));
        let (allow, rule) = match decide(bounds, facts, &real) {
            // Nobody is asked between messages: nothing would tell when the question is over.
            Decision::Ask if answering && !asked.request.options.is_empty() => {
                self.log.push(SessionEventKind::Permission {
                    request: asked.request.clone(),
                });
                self.permissions.push(asked);
                return Ok(());
            }
            Decision::Allow => (true, None),
            Decision::Ask if answering => {
                (false, Some("it offers nothing that could be answered".to_owned()))
            }
            Decision::Ask => (false, Some("nobody is asked between messages".to_owned())),
            Decision::Refuse(reason) => (false, Some(reason.to_string())),
        };
        let option = option_for(allow, &asked.request.options).map(|option| option.id.clone());
        if (!allow || option.is_none())
            && let Turn::Answering(turn) = &mut self.turn
        {
            turn.refused = Some(POLICY);
        }
        let no_option =
            "it is within the session's folders, and the agent offers no permission for this once only";
        if let Some(rule) = rule.or_else(|| option.is_none().then(|| no_option.to_owned())) {
            self.log.push(SessionEventKind::PermissionRefused {
                request: asked.request.clone(),
                rule,
            });
        }
        self.answer(&asked, option.as_deref(), POLICY)
    }

    /// Answers an open permission request for a person.
    pub(super) fn answer_permission(&mut self, id: &str, option: &str) -> Result<(), Unable> {
        let refused = |words| Err(Unable::Refused(RuntimeError::Permanent { words }));
        let Some(at) = self.permissions.iter().position(|open| open.request.id == id) else {
            return refused(format!("no permission request `{id}` is open"));
        };
        let kind = self.permissions[at]
            .request
            .options
            .iter()
            .find(|one| one.id == option);
        let Some(kind) = kind.map(|one| one.kind.clone()) else {
            return refused(format!("permission request `{id}` has no option `{option}`"));
        };
        let asked = self.permissions.remove(at);
        if !kind.starts_with("allow")
            && let Turn::Answering(turn) = &mut self.turn
        {
            turn.refused = Some("a person");
        }
        self.answer(&asked, Some(option), "person").map_err(Unable::Over)
    }

    /// Answers every open permission request `cancelled`. An agent that cannot be told is found out elsewhere.
    pub(super) fn cancel_permissions(&mut self) {
        for asked in std::mem::take(&mut self.permissions) {
            let _ = self.answer(&asked, None, "cancel");
        }
    }

    fn answer(&mut self, asked: &OpenPermission, option: Option<&str>, by: &str) -> Result<(), End> {
        self.connection
            .respond(&asked.rpc_id, &translate::permission_outcome(option))?;
        self.log.push(SessionEventKind::PermissionAnswered {
            id: asked.request.id.clone(),
            option: option.map(str::to_owned),
            by: by.to_owned(),
        });
        // A person may have taken long: the agent's silence begins here.
        if let Turn::Answering(turn) = &mut self.turn {
            turn.silence.broken(Instant::now());
        }
        Ok(())
    }

    /// Whether a person has to answer before the agent can go on.
    pub(super) fn waits_for_person(&self) -> bool {
        !self.permissions.is_empty()
    }
}

/// The command line in the input of a tool call, as agents write it: a text, or its words.
fn command_of(input: &Value) -> Option<String> {
    let command = &input["command"];
    let words = || {
        let words: Option<Vec<&str>> = command.as_array()?.iter().map(Value::as_str).collect();
        words.map(|words| words.join(" "))
    };
    command
        .as_str()
        .map(str::to_owned)
        .or_else(words)
        .filter(|command| !command.trim().is_empty())
}

/// Why a method of the client is refused: what to do instead is for the agent's model to read.
fn not_offered(method: &str) -> String {
    if method.starts_with("fs/") {
        return format!("`{method}` is not offered: use your own tools on files");
    }
    if method.starts_with("terminal/") {
        return format!("`{method}` is not offered: run commands with your own tools");
    }
    format!("`{method}` is not offered")
}

/// An agent's word as it is repeated to people and to itself.
fn brief(words: &str) -> String {
    translate::cut(words, SHOWN)
}

/// Paths of one tool call that are remembered, and their bytes.
const PATHS: (usize, usize) = (1000, 1 << 20);

/// Forgets the paths of a tool call that has too many of them, in favour of one that is in no folder: so that what the
/// policy does not see is not allowed.
fn bound_paths(facts: &mut ToolFacts) {
    for paths in [&mut facts.locations, &mut facts.inputs, &mut facts.folders] {
        let bytes: usize = paths.iter().map(|path| path.as_os_str().len()).sum();
        if paths.len() > PATHS.0 || bytes > PATHS.1 {
            *paths = vec![std::path::PathBuf::new()];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_the_command_of_a_tool_call_is_read_as_agents_write_it() {
        let of = |input| command_of(&input);
        assert_eq!(
            of(serde_json::json!({ "command": "rm -rf /" })).as_deref(),
            Some("rm -rf /")
        );
        assert_eq!(
            of(serde_json::json!({ "command": ["sh", "-c", "ls"] })).as_deref(),
            Some("sh -c ls")
        );
        assert_eq!(of(serde_json::json!({ "command": [1] })), None);
        assert_eq!(of(serde_json::json!({ "command": " " })), None);
        assert_eq!(of(Value::Null), None);
    }

    #[test]
    fn c11_a_tool_call_with_too_many_paths_is_in_no_folder() {
        let paths = |count: usize, length: usize| -> Vec<std::path::PathBuf> {
            (0..count)
                .map(|n| format!("{n}/{}", "x/".repeat(length / 2)).into())
                .collect()
        };
        for (locations, kept) in [
            (paths(1000, 10), 1000),
            (paths(1001, 10), 1),
            (paths(3, 1 << 19), 1),
        ] {
            let mut facts = ToolFacts {
                kind: Some("edit".to_owned()),
                locations,
                ..ToolFacts::default()
            };
            bound_paths(&mut facts);
            assert_eq!(facts.locations.len(), kept);
            let workspace = std::env::temp_dir();
            let folders = sillage_core::folders::Folders {
                read: Vec::new(),
                write: vec![workspace.clone()],
            };
            let bounds = Bounds {
                policy: sillage_core::ports::runtime::PermissionPolicy::AllowInFolders,
                folders: &folders,
                protected: &sillage_core::policy::Protected::default(),
                workspace: &workspace,
            };
            let allowed = decide(bounds, &facts, &real) == Decision::Allow;
            assert_eq!(allowed, kept == 1000);
        }
    }
}
