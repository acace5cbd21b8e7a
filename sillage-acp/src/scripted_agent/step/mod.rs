//! The steps of a script.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

mod deeds;

pub use deeds::{Ask, AskOption, Delete, Edit, Grandchild, Group, Run, Write};

use super::shorthand::text_or_map;

/// One thing that the agent does in a turn. Written as a map of one key, or as the bare word where it takes nothing.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Says something: `agent_message_chunk`.
    Say(Say),
    /// Thinks something: `agent_thought_chunk`.
    Think(Say),
    /// Says a report as a fenced `json` block. `outcome` and `summary` have defaults; everything else is as given.
    Report(Map<String, Value>),
    /// Tells its plan.
    Plan(Vec<PlanEntry>),
    /// Tells of a tool call: `tool_call` at the first use of its identifier, then `tool_call_update`.
    Tool(Tool),
    /// Writes a file.
    Write(Write),
    /// Adds to the end of a file.
    Append(Write),
    /// Replaces the one occurrence of a text in a file.
    Edit(Edit),
    /// Removes a file.
    Delete(Delete),
    /// Runs a command and waits for it.
    Run(Run),
    /// Starts a command and goes on. It outlives the turn, and the agent.
    Grandchild(Grandchild),
    /// Asks for permission.
    Ask(Box<Ask>),
    /// Tells the usage of the context and the cost so far: `usage_update`.
    Usage(ContextUse),
    /// Sets the token counts that go with the answer.
    TurnUsage(TokenUse),
    /// Waits this many milliseconds.
    Wait(u64),
    /// Waits for a file to exist.
    WaitFor(WaitFor),
    /// Makes an empty file, for others to wait for.
    Touch(String),
    /// Says nothing any more.
    Silent(Silent),
    /// Ends the process with this code, without an answer.
    Exit(u8),
    /// Aborts the process.
    Crash,
    /// Reads nothing any more from standard input.
    Deaf,
    /// Writes to standard error.
    Stderr(Repeated),
    /// Writes to standard output what is not protocol.
    Raw(Raw),
    /// Sends this frame as it is: a vendor's notification, another session's update. A list is a batch.
    Frame(Value),
    /// Sends this update of the session as it is.
    Update(Value),
    /// Sends a request of the agent's own and waits for the answer, which becomes `{{response}}`.
    Request(Request),
    /// Sends a `tool_call` of at least this many bytes on one line.
    Huge(u64),
    /// Says how the following frames leave, up to the answer.
    Delivery(Delivery),
    /// Says what a cancellation from now on in this turn does.
    OnCancel(OnCancel),
    /// Writes variables of its environment to the record.
    RecordEnv(Vec<String>),
    /// Ends the turn with this stop reason, known to the protocol or not.
    Stop(String),
    /// Ends the turn with an error.
    Error(RpcError),
    /// Answers the prompt with this result, whatever it is, and goes on; nothing is answered at the end.
    Answer(Value),
}

/// Something said: a text, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Say {
    /// What is said.
    pub text: String,
    /// In how many pieces, cut between characters.
    #[serde(default = "one")]
    pub chunks: usize,
    /// Milliseconds before each piece.
    #[serde(default)]
    pub delay_ms: u64,
    /// The message that the pieces belong to.
    #[serde(default)]
    pub message: Option<String>,
}
text_or_map!(Say, |text| Say {
    text,
    chunks: 1,
    delay_ms: 0,
    message: None
});

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

/// An entry of a plan: a text, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    /// `high`, `medium` or `low`.
    #[serde(default = "medium")]
    pub priority: String,
    /// `pending`, `in_progress` or `completed`.
    #[serde(default = "pending")]
    pub status: String,
}
text_or_map!(PlanEntry, |content| PlanEntry {
    content,
    priority: medium(),
    status: pending()
});

fn medium() -> String {
    "medium".to_owned()
}

fn pending() -> String {
    "pending".to_owned()
}

/// News of a tool call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its identifier.
    pub id: String,
    /// What it is, for people.
    #[serde(default)]
    pub title: Option<String>,
    /// `read`, `edit`, `execute`, …
    #[serde(default)]
    pub kind: Option<String>,
    /// `pending`, `in_progress`, `completed` or `failed`.
    #[serde(default)]
    pub status: Option<String>,
    /// Files that it touches.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Text that it gives.
    #[serde(default)]
    pub content: Option<String>,
    /// What the tool was given.
    #[serde(default)]
    pub raw_input: Option<Value>,
    /// What the tool gave.
    #[serde(default)]
    pub raw_output: Option<Value>,
    /// Sent as `tool_call_update` even when nothing announced the call.
    #[serde(default)]
    pub update: bool,
}

/// Use of the context, in tokens, and cost.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextUse {
    /// Tokens in the context.
    pub used: u64,
    /// The context's size.
    pub size: u64,
    /// Cost of the session so far.
    #[serde(default)]
    pub cost: Option<Cost>,
}

/// An amount of money.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// How much.
    pub amount: f64,
    /// ISO 4217 code.
    #[serde(default = "usd")]
    pub currency: String,
}

fn usd() -> String {
    "USD".to_owned()
}

/// Tokens that go with the answer.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenUse {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from the cache.
    pub cached_read: Option<u64>,
    /// Written to the cache.
    pub cached_write: Option<u64>,
    /// Thought.
    pub thought: Option<u64>,
}

/// A file to wait for: its path, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct WaitFor {
    /// The file.
    pub path: String,
    /// Milliseconds after which the turn ends with an error.
    #[serde(default = "minute")]
    pub timeout_ms: u64,
}
text_or_map!(WaitFor, |path| WaitFor {
    path,
    timeout_ms: minute()
});

fn minute() -> u64 {
    60_000
}

/// How long nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silent {
    /// Until the prompt is cancelled.
    UntilCancelled,
    /// For ever; a cancellation changes nothing.
    ForEver,
}

/// A text to write several times: the text, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Repeated {
    /// The text; a line feed is added.
    pub text: String,
    /// How often.
    #[serde(default = "one")]
    pub times: usize,
}
text_or_map!(Repeated, |text| Repeated { text, times: 1 });

/// Bytes to write to standard output: a text, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Raw {
    /// The text.
    #[serde(default)]
    pub text: String,
    /// Bytes after the text, in hexadecimal, blanks ignored: `ff fe`.
    #[serde(default)]
    pub hex: String,
    /// How often the text comes, in one write.
    #[serde(default = "one")]
    pub times: usize,
    /// Whether a line feed follows.
    #[serde(default = "yes")]
    pub newline: bool,
}
text_or_map!(Raw, |text| Raw {
    text,
    hex: String::new(),
    times: 1,
    newline: true
});

/// A request of the agent's own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// Whether the turn waits for the answer.
    #[serde(default = "yes")]
    pub wait: bool,
}

/// How frames leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Each at once.
    #[default]
    Normal,
    /// Each byte by itself, so that characters are split.
    ByteByByte,
    /// All in one write, with the answer.
    OneWrite,
    /// All as one JSON-RPC batch, with the answer.
    Batch,
}

/// What a cancellation does.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// The turn ends with stop reason `cancelled`, as the protocol asks.
    #[default]
    Obey,
    /// Nothing.
    Ignore,
    /// The turn ends with this stop reason.
    Stop(String),
    /// The turn ends with this error.
    Error(RpcError),
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RpcError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// More about it.
    #[serde(default)]
    pub data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        RpcError {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut json = serde_json::json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            json["data"] = data.clone();
        }
        json
    }
}

/// Values by name.
pub(super) type Names = BTreeMap<String, String>;

impl TokenUse {
    /// As `usage` of the answer, an extension of the stable protocol that agents send already.
    pub(super) fn to_json(self) -> Value {
        let mut json = serde_json::json!({
            "totalTokens": self.input + self.output, "inputTokens": self.input, "outputTokens": self.output,
        });
        for (key, value) in [
            ("cachedReadTokens", self.cached_read),
            ("cachedWriteTokens", self.cached_write),
            ("thoughtTokens", self.thought),
        ] {
            if let Some(value) = value {
                json[key] = value.into();
            }
        }
        json
    }
}

impl Raw {
    /// The bytes given in hexadecimal.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, String> {
        let digits: Vec<char> = self.hex.chars().filter(|c| !c.is_whitespace()).collect();
        digits
            .chunks(2)
            .map(|pair| {
                u8::from_str_radix(&pair.iter().collect::<String>(), 16)
                    .ok()
                    .filter(|_| pair.len() == 2)
                    .ok_or_else(|| format!("`{}` is not pairs of hexadecimal digits", self.hex))
            })
            .collect()
    }
}
