//! What the "model" does, written into the prompt.

use serde::{Deserialize, Serialize};

const OPENING: &str = "<<MODEL";
const CLOSING: &str = "MODEL>>";

/// What the model answers to a prompt: a step for the prompt itself, and one after each round of tool results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The steps, in order. After the last of them the model says `done`.
    pub steps: Vec<Step>,
}

/// One answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// What it says, or the error's message when there is a `status`.
    pub text: String,
    /// What it thinks first.
    pub thought: Option<String>,
    /// The tools that it calls.
    pub tools: Vec<ToolUse>,
    /// The tokens that it claims to have used.
    pub tokens: Tokens,
    /// Whether its limit cut the answer.
    pub cut: bool,
    /// Milliseconds before it answers.
    pub wait_ms: u64,
    /// Milliseconds before each piece of the answer.
    pub pace_ms: u64,
    /// The HTTP status of an error that it answers instead.
    pub status: Option<u16>,
    /// With a `status`: the `Retry-After` header.
    pub retry_after_seconds: Option<u32>,
    /// Whether the connection breaks in the middle of the answer.
    pub hang_up: bool,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Tokens {
            input: 100,
            output: 20,
        }
    }
}

/// A tool to call, translated to what the agent declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolUse {
    /// Write a file.
    Write {
        /// Its path.
        path: String,
        /// Its content.
        content: String,
    },
    /// Run a command of the shell.
    Shell {
        /// The command.
        command: String,
    },
    /// Call the tool of this name, such as one of an MCP server.
    Named {
        /// The name, with or without its namespace.
        name: String,
        /// The arguments, as they are.
        arguments: serde_json::Value,
    },
}

impl Script {
    /// A script of these steps.
    #[must_use]
    pub fn of(steps: impl IntoIterator<Item = Step>) -> Script {
        Script {
            steps: steps.into_iter().collect(),
        }
    }

    /// The script as text to put anywhere into a prompt; the last one in a conversation counts.
    #[must_use]
    pub fn in_prompt(&self) -> String {
        let json = serde_json::json!(self);
        format!("{OPENING} {json} {CLOSING}")
    }
}

impl Step {
    /// A step that says something.
    #[must_use]
    pub fn saying(text: &str) -> Step {
        Step {
            text: text.to_owned(),
            ..Step::default()
        }
    }

    /// A step that uses a tool.
    #[must_use]
    pub fn using(tool: ToolUse) -> Step {
        Step {
            tools: vec![tool],
            ..Step::default()
        }
    }
}

/// A turn of a conversation, as far as scripts care.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// What the person said.
    Prompt(String),
    /// The result of a tool.
    ToolResult,
    /// What the model said or asked for.
    Model,
}

/// The step that answers a conversation.
pub(super) fn choose(turns: &[Turn]) -> Step {
    let scripted = turns
        .iter()
        .enumerate()
        .rev()
        .find_map(|(index, turn)| match turn {
            Turn::Prompt(text) => script_in(text).map(|json| (index, json)),
            Turn::ToolResult | Turn::Model => None,
        });
    let Some((prompt, json)) = scripted else {
        return Step::saying("there is no script in the prompt");
    };
    let mut script: Script = match serde_json::from_str(json) {
        Ok(script) => script,
        Err(error) => return Step::saying(&format!("the script in the prompt is wrong: {error}")),
    };
    // Results of tools that were called at once follow each other: one round.
    let rounds = turns[prompt..]
        .windows(2)
        .filter(|pair| pair[0] != Turn::ToolResult && pair[1] == Turn::ToolResult);
    let step = rounds.count();
    if step < script.steps.len() {
        script.steps.swap_remove(step)
    } else {
        Step::saying("done")
    }
}

fn script_in(text: &str) -> Option<&str> {
    let (before, _) = text.rsplit_once(CLOSING)?;
    let (_, script) = before.rsplit_once(OPENING)?;
    Some(script.trim())
}
