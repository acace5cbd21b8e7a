//! What a line from an agent says.
//!
//! Agents print banners, log lines and stray JSON between their frames. Only what calls itself JSON-RPC is held to its
//! rules and answered with an error when it breaks them; the rest is noise.

use serde_json::{Map, Value};

use super::{INVALID_REQUEST, Incoming, LINE_CAP, RpcError};

/// Bytes of a line that are shown to people.
const SHOWN: usize = 300;

/// Frames of one batch; a line of empty lists would otherwise cost many times its own size.
const BATCH_CAP: usize = 1000;

/// Bytes of an identifier that is a text: it is kept, and repeated in the answer.
const ID_CAP: usize = 1 << 10;

/// The members of a JSON-RPC frame.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// What a whole line says: nothing when it is blank, several things when it is a batch (JSON-RPC 2.0, section 6).
pub(super) fn line(line: &[u8]) -> Vec<Incoming> {
    let line = trimmed(line);
    if line.is_empty() {
        return Vec::new();
    }
    match serde_json::from_slice(line) {
        Ok(value) => value_of(value, line),
        // A line that meant to be protocol: an answer or a request may be lost in it.
        Err(error) if line.starts_with(b"{") && contains(line, b"\"jsonrpc\"") => {
            vec![Incoming::Damaged {
                words: format!("a line is not JSON ({error}): {}", shown(line)),
                asks: contains(line, b"\"method\"") && contains(line, b"\"id\""),
            }]
        }
        Err(_) => vec![Incoming::Noise(shown(line))],
    }
}

/// What the last line says, which the end of the stream cut: it counts when it is whole all the same.
pub(super) fn cut_line(line: &[u8]) -> Vec<Incoming> {
    let line = trimmed(line);
    match serde_json::from_slice(line) {
        Ok(value) => value_of(value, line),
        Err(_) if line.is_empty() => Vec::new(),
        Err(_) => vec![Incoming::Noise(format!("a line without an end: {}", shown(line)))],
    }
}

/// A line of so many bytes, of which none were kept.
pub(super) fn too_long(bytes: usize) -> Vec<Incoming> {
    vec![Incoming::Damaged {
        words: format!("a line of {bytes} bytes was skipped; the limit is {LINE_CAP}"),
        asks: false,
    }]
}

/// Without the marks around a line: blanks, the return before the newline, a byte order mark.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

fn value_of(value: Value, line: &[u8]) -> Vec<Incoming> {
    match value {
        Value::Object(members) => vec![frame(members, &|| shown(line))],
        Value::Array(frames) if frames.iter().any(is_frame) => batch(frames),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            vec![Incoming::Noise(shown(line))]
        }
    }
}

fn is_frame(value: &Value) -> bool {
    value.as_object().is_some_and(|members| {
        let says = ["method", "result", "error"]
            .iter()
            .any(|key| members.contains_key(*key));
        speaks(members) || (says && has_no_others(members))
    })
}

fn batch(frames: Vec<Value>) -> Vec<Incoming> {
    if frames.len() > BATCH_CAP {
        let words = format!(
            "a batch of {} frames was skipped; the limit is {BATCH_CAP}",
            frames.len()
        );
        return vec![Incoming::Damaged { words, asks: false }];
    }
    frames
        .into_iter()
        .map(|value| match value {
            Value::Object(members) => {
                let text = shown(Value::Object(members.clone()).to_string().as_bytes());
                frame(members, &|| text.clone())
            }
            other
            @ (Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                Incoming::Noise(shown(other.to_string().as_bytes()))
            }
        })
        .collect()
}

/// Whether an object calls itself JSON-RPC, whatever the version.
fn speaks(members: &Map<String, Value>) -> bool {
    members.contains_key("jsonrpc")
}

/// Whether an object has no other members than a frame has.
fn has_no_others(members: &Map<String, Value>) -> bool {
    members.keys().all(|key| MEMBERS.contains(&key.as_str()))
}

/// Some agents leave `jsonrpc` out: what has no other members than a frame has is read all the same.
fn frame(mut members: Map<String, Value>, text: &dyn Fn() -> String) -> Incoming {
    let speaks = speaks(&members);
    if !speaks && !has_no_others(&members) {
        return Incoming::Noise(text());
    }
    let id = members.remove("id");
    match (members.remove("method"), id) {
        (Some(Value::String(method)), None) => Incoming::Notification {
            method,
            params: members.remove("params").unwrap_or(Value::Null),
        },
        (Some(Value::String(method)), Some(id)) => match usable(id) {
            Ok(id) => Incoming::Request {
                id,
                method,
                params: members.remove("params").unwrap_or(Value::Null),
            },
            Err(words) => invalid(Value::Null, words),
        },
        (Some(_), Some(id)) if speaks => invalid(
            usable(id).unwrap_or_default(),
            "a request whose method is no text",
        ),
        (Some(_), _) => Incoming::Noise(text()),
        (None, id) => answer(id, members, speaks).unwrap_or_else(|| Incoming::Noise(text())),
    }
}

/// An answer; none for what is no frame at all.
fn answer(id: Option<Value>, mut members: Map<String, Value>, speaks: bool) -> Option<Incoming> {
    let told = members.contains_key("result") || members.contains_key("error");
    let outcome = match members.remove("error") {
        Some(error) if !error.is_null() => Err(rpc_error(error)),
        _ => Ok(members.remove("result").unwrap_or(Value::Null)),
    };
    match id {
        // A result that is `undefined` in the agent's language is left out of what it writes.
        Some(id) if told || speaks => Some(Incoming::Response { id, outcome }),
        None if told && speaks => Some(Incoming::Damaged {
            words: "an answer without an identifier".to_owned(),
            asks: false,
        }),
        Some(_) | None => None,
    }
}

fn invalid(id: Value, words: &str) -> Incoming {
    Incoming::Invalid {
        id,
        code: INVALID_REQUEST,
        words: words.to_owned(),
    }
}

/// An identifier as JSON-RPC allows it (section 4), and not larger than can be kept.
fn usable(id: Value) -> Result<Value, &'static str> {
    match id {
        Value::String(text) if text.len() > ID_CAP => Err("a request whose identifier is too long"),
        id @ (Value::String(_) | Value::Number(_) | Value::Null) => Ok(id),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err("a request whose identifier is neither a text nor a number")
        }
    }
}

/// Reads an error leniently: agents put HTTP statuses in `code`, and texts or objects in `data`.
fn rpc_error(error: Value) -> RpcError {
    let code = error
        .get("code")
        .and_then(|code| code.as_i64().or_else(|| code.as_str()?.parse().ok()));
    let message = match error.get("message") {
        Some(Value::String(message)) => message.clone(),
        _ => error.to_string(),
    };
    let data = error.get("data").filter(|data| !data.is_null()).cloned();
    RpcError {
        code: code.unwrap_or(0),
        message,
        data,
    }
}

fn contains(line: &[u8], words: &[u8]) -> bool {
    line.windows(words.len()).any(|window| window == words)
}

/// The start of a line, for people: control characters and invalid UTF-8 replaced.
fn shown(line: &[u8]) -> String {
    let start = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
    let mut text: String = start
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.len() > SHOWN {
        text.push('…');
    }
    text
}
