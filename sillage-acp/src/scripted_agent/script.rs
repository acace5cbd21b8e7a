//! The script: what the agent is, and what it does at each prompt.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::placeholder;
use super::step::{OnCancel, RpcError, Step};

/// A whole script. Every key is optional; an empty script is an agent that knows no prompt.
///
/// Relative paths of the script's own keys (`sessions`, `uses`) are taken from the folder of the script file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// What it says of itself when initialised.
    pub agent: Identity,
    /// What happens before the first frame.
    pub start: Start,
    /// What happens when it is asked to go.
    pub end: End,
    /// Whether it wants a sign-in first.
    pub auth: Option<Auth>,
    /// Session configuration options, in the order in which they are told.
    pub options: Vec<ConfigOption>,
    /// The legacy list of models of `session/new`, chosen with `session/set_model`.
    pub models: Option<Choice>,
    /// The list of modes of `session/new`, chosen with `session/set_mode`.
    pub modes: Option<Choice>,
    /// Where conversations are kept, so that another process can load or resume them.
    pub sessions: Option<Sessions>,
    /// A folder where uses of rules are counted over all processes that share it. Without it each process counts
    /// its own.
    pub uses: Option<PathBuf>,
    /// Methods that do not go as they should, by name (`session/load`).
    pub methods: BTreeMap<String, Method>,
    /// How the agent numbers its own requests.
    pub ids: RequestIds,
    /// What a cancelled prompt is answered with.
    pub on_cancel: OnCancel,
    /// What is done at a prompt: the first rule that matches and is not used up.
    pub prompts: Vec<Rule>,
    /// What is done when no rule is left. Without it such a prompt is answered with an error.
    pub default: Option<Vec<Step>>,
}

/// What the agent says of itself when initialised.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The protocol version that it answers, whatever was asked for.
    pub protocol: u16,
    /// Whether it announces `session/load`. By default: whether conversations are kept.
    pub load: Option<bool>,
    /// Whether it announces `session/resume`. By default: whether conversations are kept.
    pub resume: Option<bool>,
    /// Whether it announces `session/list`. By default: whether conversations are kept.
    pub list: Option<bool>,
    /// Whether it announces `session/close`.
    pub close: bool,
}

impl Default for Identity {
    fn default() -> Self {
        Identity {
            name: "scripted".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: 1,
            load: None,
            resume: None,
            list: None,
            close: true,
        }
    }
}

/// What happens before the first frame is read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Start {
    /// Written to standard error as it is.
    pub stderr: String,
    /// Written to standard output as it is: a banner, which is not protocol.
    pub stdout: String,
    /// A file to wait for before reading anything.
    pub wait_for: Option<String>,
    /// Milliseconds to wait before reading anything.
    pub delay_ms: u64,
    /// Exits with this code instead of going on.
    pub exit: Option<u8>,
}

/// What happens when the agent is asked to go.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct End {
    /// Stays when its standard input is closed.
    pub ignore_eof: bool,
    /// Stays when it gets SIGTERM.
    pub ignore_sigterm: bool,
    /// Milliseconds that it takes to go.
    pub linger_ms: u64,
    /// Its exit code at the end of its input.
    pub code: u8,
    /// Frames that it sends at the end of its input. `{{session}}` is the first session.
    pub last_frames: Vec<Value>,
}

/// A sign-in: until it is done, `session/new`, `session/load` and `session/resume` answer -32000.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Identifiers of the ways to sign in.
    pub methods: Vec<String>,
    /// `authenticate` succeeds and changes nothing.
    #[serde(default)]
    pub in_vain: bool,
}

/// A session configuration option with a list of values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigOption {
    /// Its identifier.
    pub id: String,
    /// Its category: `model`, `thought_level`, `mode`, `model_config`, or another word.
    #[serde(default)]
    pub category: Option<String>,
    /// The value at the start; by default the first.
    #[serde(default)]
    pub current: Option<String>,
    /// Its values.
    pub values: Vec<String>,
    /// Its values with certain models (values of the option of category `model`). An empty list: the option is
    /// not told. A current value that is no longer there becomes the first that is.
    #[serde(default)]
    pub by_model: BTreeMap<String, Vec<String>>,
    /// Values that are told and refused with -32602.
    #[serde(default)]
    pub refused: Vec<String>,
    /// Values that are accepted and not applied.
    #[serde(default)]
    pub ignored: Vec<String>,
}

/// A choice told in the answer to `session/new`: models or modes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// What is in force at the start; by default the first.
    #[serde(default)]
    pub current: Option<String>,
    /// What there is.
    pub available: Vec<String>,
    /// What is told and refused with -32602.
    #[serde(default)]
    pub refused: Vec<String>,
    /// What is accepted and not applied.
    #[serde(default)]
    pub ignored: Vec<String>,
}

/// Where conversations are kept: a folder, or a map.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Sessions {
    /// The folder; made when missing. One JSON-lines file a session.
    pub folder: PathBuf,
    /// When the agent's words are kept.
    #[serde(default)]
    pub keep: Keep,
}

/// When the agent's words are kept. The prompt always is, on arrival.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// As they are said, so that half an answer survives a crash.
    #[default]
    AsSaid,
    /// When the prompt is answered.
    WhenAnswered,
}

/// How a method goes instead of as it should.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Method {
    /// How many requests of the method it holds for; without it, all.
    pub times: Option<u32>,
    /// Milliseconds before it is answered.
    pub delay_ms: u64,
    /// A file to wait for before it is answered.
    pub wait_for: Option<String>,
    /// Frames sent before the answer. `{{session}}` is the session meant or made.
    pub before: Vec<Value>,
    /// Frames sent after the answer.
    pub after: Vec<Value>,
    /// It is answered with this error.
    pub error: Option<RpcError>,
    /// It is carried out, and answered with this result instead of its own; `null` too.
    #[serde(deserialize_with = "even_null")]
    pub result: Option<Value>,
    /// It is never answered.
    pub silent: bool,
    /// The process exits with this code instead of answering.
    pub exit: Option<u8>,
}

/// A value that is there, be it `null`.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// How the agent numbers its own requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestIds {
    /// From 0, which collides with the client's own numbers.
    #[default]
    Numbers,
    /// `p-0`, `p-1`, …
    Strings,
}

/// What is done at a prompt that matches.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// What the prompt's text must hold; without it any prompt matches.
    #[serde(rename = "match")]
    pub matches: Option<Pattern>,
    /// A file that must exist.
    pub if_exists: Option<String>,
    /// A file that must not exist.
    pub unless_exists: Option<String>,
    /// How often the rule may be used: a number (1 by default), or `always`.
    pub times: Times,
    /// What a cancelled prompt is answered with, instead of the script's own.
    pub on_cancel: Option<OnCancel>,
    /// What is done. After the last step the prompt is answered `end_turn`.
    pub steps: Vec<Step>,
    /// What is done once the prompt has been answered.
    pub after: Vec<Step>,
}

/// What a prompt's text must hold: a text, or `/a regular expression/`.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// This text somewhere.
    Text(String),
    /// A match somewhere; its groups are `{{match.1}}` and so on, and the whole `{{match.0}}`.
    Regex(regex::Regex),
}

impl Pattern {
    /// The match and its groups, when `text` matches.
    #[must_use]
    pub fn captures(&self, text: &str) -> Option<Vec<String>> {
        match self {
            Pattern::Text(part) => text.contains(part.as_str()).then(|| vec![part.clone()]),
            Pattern::Regex(regex) => regex.captures(text).map(|found| {
                found
                    .iter()
                    .map(|group| group.map_or_else(String::new, |g| g.as_str().to_owned()))
                    .collect()
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(expression) => regex::Regex::new(expression)
                .map(Pattern::Regex)
                .map_err(de::Error::custom),
            None => Ok(Pattern::Text(text)),
        }
    }
}

/// How often a rule may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// This often.
    Count(u32),
    /// Without end.
    Always,
}

impl Default for Times {
    fn default() -> Self {
        Times::Count(1)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl de::Visitor<'_> for Either {
            type Value = Times;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or `always`")
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Times, E> {
                u32::try_from(count).map(Times::Count).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Times, E> {
                u32::try_from(count).map(Times::Count).map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Times, E> {
                if word == "always" {
                    Ok(Times::Always)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(word), &self))
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

super::shorthand::text_or_map!(Sessions, |text| Sessions {
    folder: PathBuf::from(text),
    keep: Keep::default()
});

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a script.
    #[error("line {line}, column {column}: {words}")]
    Faulty {
        /// Its line, from 1; 0 when it is the whole.
        line: u64,
        /// Its column, from 1.
        column: u64,
        /// What is wrong.
        words: String,
    },
    /// A placeholder that does not exist.
    #[error(
        "line {line}: unknown placeholder {{{{{name}}}}}; there are {}",
        placeholder::NAMES
    )]
    UnknownPlaceholder {
        /// Its line, from 1.
        line: u64,
        /// Its name.
        name: String,
    },
}

impl Script {
    /// Reads a script file.
    ///
    /// # Errors
    /// When it cannot be read or is not a script.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path).map_err(|source| ScriptError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text)
    }

    /// Reads a script's text, which is YAML.
    ///
    /// # Errors
    /// When it is not a script: unknown keys, wrong types, placeholders that do not exist.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if let Some((line, name)) = placeholder::first_unknown(text) {
            return Err(ScriptError::UnknownPlaceholder { line, name });
        }
        serde_saphyr::from_str(text).map_err(|error| {
            let place = error.location();
            ScriptError::Faulty {
                line: place.map_or(0, |p| p.line()),
                column: place.map_or(0, |p| p.column()),
                words: error.without_snippet().to_string(),
            }
        })
    }
}

#[cfg(test)]
mod tests;
