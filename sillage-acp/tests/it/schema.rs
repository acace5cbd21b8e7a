//! The official JSON schema of ACP v1, to check the frames of both sides of a conversation.

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};
use sillage_acp::scripted_agent::record::{Entry, Event};

/// Who sent a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Client,
    Agent,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Client => Side::Agent,
            Side::Agent => Side::Client,
        }
    }
}

/// The frames of an agent's record, in order, with who sent them.
pub(crate) fn frames(entries: &[Entry]) -> Vec<(Side, Value)> {
    entries
        .iter()
        .filter_map(|entry| {
            if let Event::Received { frame } = &entry.event {
                Some((Side::Client, frame.clone()))
            } else if let Event::Sent { frame } = &entry.event {
                Some((Side::Agent, frame.clone()))
            } else {
                None
            }
        })
        .collect()
}

/// What `by` sent against the schema, a line a fault. A method of the other side, or one that the schema does not
/// know, is a fault too.
pub(crate) fn faults(conversation: &[(Side, Value)], by: Side) -> Vec<String> {
    let mut asked: HashMap<(Side, String), String> = HashMap::new();
    let mut faults = Vec::new();
    for (side, frame) in conversation {
        let id = frame.get("id").map(Value::to_string);
        let (method, part) = match frame["method"].as_str() {
            Some(method) => {
                if let Some(id) = id {
                    asked.insert((*side, id), method.to_owned());
                }
                (method.to_owned(), "params")
            }
            None => match id.and_then(|id| asked.remove(&(side.other(), id))) {
                Some(method) => (method, "result"),
                None => {
                    if *side == by {
                        faults.push(format!("an answer to no request: {frame}"));
                    }
                    continue;
                }
            },
        };
        if *side == by {
            faults.extend(fault(&method, part, frame, by));
        }
    }
    faults
}

fn fault(method: &str, part: &'static str, frame: &Value, by: Side) -> Option<String> {
    if frame["jsonrpc"] != "2.0" {
        return Some(format!("{method}: `jsonrpc` is not \"2.0\": {frame}"));
    }
    if let Some(error) = frame.get("error") {
        let whole = error["code"].is_i64() && error["message"].is_string() && frame.get("result").is_none();
        return (!whole).then(|| format!("{method}: not an error object: {frame}"));
    }
    let Some((receiver, validator)) = SCHEMA.get(&(method.to_owned(), part)) else {
        return Some(format!("{method}: the schema does not know it"));
    };
    if part == "params" && *receiver == by {
        return Some(format!("{method}: it is for the other side to ask"));
    }
    let errors: Vec<String> = validator
        .iter_errors(&frame[part])
        .map(|e| format!("{} at {}", e, e.instance_path()))
        .collect();
    (!errors.is_empty()).then(|| format!("{method} {part}: {}", errors.join("; ")))
}

/// By method and part (`params` or `result`): who receives the method, and what its part must be.
type Definitions = HashMap<(String, &'static str), (Side, Validator)>;

static SCHEMA: LazyLock<Definitions> = LazyLock::new(|| {
    let schema: Value =
        serde_json::from_str(include_str!("../schema/acp-v1.json")).expect("the schema is JSON");
    let mut validators = HashMap::new();
    for (name, definition) in schema["$defs"].as_object().expect("definitions") {
        let Some(method) = definition["x-method"].as_str() else {
            continue;
        };
        let receiver = match definition["x-side"].as_str() {
            Some("client") => Side::Client,
            Some("agent") => Side::Agent,
            _ => continue,
        };
        let part = if name.ends_with("Response") {
            "result"
        } else {
            "params"
        };
        let one = json!({ "$ref": format!("#/$defs/{name}"), "$defs": schema["$defs"] });
        let validator = jsonschema::validator_for(&one).expect("a schema");
        validators.insert((method.to_owned(), part), (receiver, validator));
    }
    validators
});

#[test]
fn the_check_can_fail() {
    let ask = (
        Side::Client,
        json!({ "jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {} }),
    );
    assert_eq!(faults(std::slice::from_ref(&ask), Side::Client).len(), 1);
    for (answer, wrong) in [
        (
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "stopReason": "end_turn" } }),
            0,
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "stopReason": "tired" } }),
            1,
        ),
        (json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), 1),
        (
            json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "end_turn" } }),
            1,
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": "x", "message": "y" } }),
            1,
        ),
        (
            json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }),
            1,
        ),
        (
            json!({ "jsonrpc": "2.0", "method": "session/unheard", "params": {} }),
            1,
        ),
    ] {
        let conversation = [ask.clone(), (Side::Agent, answer)];
        assert_eq!(
            faults(&conversation, Side::Agent).len(),
            wrong,
            "{conversation:?}"
        );
    }
}
