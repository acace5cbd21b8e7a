//! Steps that act on files and processes, or ask whether they may.

use serde::Deserialize;
use serde_json::Value;

use super::{Step, yes};
use crate::scripted_agent::shorthand::text_or_map;

/// A file to write or add to. It is really written; folders are made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The file, from the session's folder, or absolute.
    pub path: String,
    /// What is written.
    #[serde(default)]
    pub content: String,
    /// Nothing is told of the deed. Otherwise it is a tool call that ends `completed` or `failed`.
    #[serde(default)]
    pub quiet: bool,
    /// Permission is asked first, and the deed is left undone when it is refused.
    #[serde(default)]
    pub ask: bool,
}

/// A text to replace in a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file.
    pub path: String,
    /// The text, which must occur exactly once.
    pub find: String,
    /// What takes its place.
    pub replace: String,
    /// Nothing is told of the deed. Otherwise it is a tool call that ends `completed` or `failed`.
    #[serde(default)]
    pub quiet: bool,
    /// Permission is asked first, and the deed is left undone when it is refused.
    #[serde(default)]
    pub ask: bool,
}

/// A file to remove: its path, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Delete {
    /// The file.
    pub path: String,
    /// Nothing is told of the deed. Otherwise it is a tool call that ends `completed` or `failed`.
    #[serde(default)]
    pub quiet: bool,
    /// Permission is asked first, and the deed is left undone when it is refused.
    #[serde(default)]
    pub ask: bool,
}
text_or_map!(Delete, |path| Delete {
    path,
    quiet: false,
    ask: false
});

/// A command to run: a shell line, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Run {
    /// The shell line; or, with `args`, the program.
    pub command: String,
    /// The program's arguments. Without them `command` goes to the shell.
    #[serde(default)]
    pub args: Option<Vec<String>>,
    /// Which process group it is in.
    #[serde(default)]
    pub group: Group,
    /// Nothing is told of the deed. Otherwise it is a tool call that ends `completed` or `failed`.
    #[serde(default)]
    pub quiet: bool,
    /// Permission is asked first, and the deed is left undone when it is refused.
    #[serde(default)]
    pub ask: bool,
}
text_or_map!(Run, |command| Run {
    command,
    args: None,
    group: Group::default(),
    quiet: false,
    ask: false
});

/// A command to start and leave: a shell line, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Grandchild {
    /// The shell line.
    pub command: String,
    /// Which process group it is in.
    #[serde(default)]
    pub group: Group,
    /// It keeps the agent's standard output open.
    #[serde(default)]
    pub hold_stdout: bool,
}
text_or_map!(Grandchild, |command| Grandchild {
    command,
    group: Group::default(),
    hold_stdout: false
});

/// Which process group a command is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The agent's.
    #[default]
    Same,
    /// One of its own.
    Own,
    /// A session of its own, by the program `setsid`.
    Session,
}

/// A request for permission. Its outcome becomes `{{permission}}`: the option's identifier, `cancelled` or `error`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What it is for, for people.
    #[serde(default)]
    pub title: Option<String>,
    /// The tool's kind.
    #[serde(default)]
    pub kind: Option<String>,
    /// Files that it touches.
    #[serde(default)]
    pub paths: Vec<String>,
    /// What the tool is given.
    #[serde(default)]
    pub raw_input: Option<Value>,
    /// The identifier of the tool call; by default a new one.
    #[serde(default)]
    pub tool: Option<String>,
    /// Whether the tool call is told before the request, and its end after.
    #[serde(default = "yes")]
    pub announce: bool,
    /// The request names nothing but the tool call.
    #[serde(default)]
    pub bare: bool,
    /// The options; by default `allow` (`allow_once`) and `reject` (`reject_once`).
    #[serde(default = "AskOption::usual")]
    pub options: Vec<AskOption>,
    /// Done when it is allowed.
    #[serde(default)]
    pub allowed: Vec<Step>,
    /// Done when it is rejected or answered with an error.
    #[serde(default)]
    pub rejected: Vec<Step>,
    /// Done when it is cancelled, before the turn ends as a cancellation does.
    #[serde(default)]
    pub cancelled: Vec<Step>,
}

/// One of the options of a request for permission.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskOption {
    /// Its identifier.
    pub id: String,
    /// For people; by default the identifier.
    #[serde(default)]
    pub name: Option<String>,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or another word.
    pub kind: String,
}

impl AskOption {
    pub(in super::super) fn usual() -> Vec<Self> {
        [
            ("allow", "Allow", "allow_once"),
            ("reject", "Reject", "reject_once"),
        ]
        .map(|(id, name, kind)| AskOption {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            kind: kind.to_owned(),
        })
        .to_vec()
    }
}
