//! OpenAI responses, streamed (the `response.*` events of the API reference).

use serde_json::{Value, json};

use super::script::{Step, Turn};
use super::tools::{Call, DeclaredTool, Input};
use super::{Frame, ModelCall, WireFormat, content_text};

pub(super) const FORMAT: WireFormat = WireFormat { read, write };

fn read(body: &Value) -> ModelCall {
    let input = &body["input"];
    let turns = match input.as_str() {
        Some(text) => vec![Turn::Prompt(text.to_owned())],
        None => input.as_array().into_iter().flatten().filter_map(turn).collect(),
    };
    let tools = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(declared)
        .collect();
    ModelCall {
        turns,
        tools,
        effort: body["reasoning"]["effort"].as_str().map(str::to_owned),
    }
}

fn turn(item: &Value) -> Option<Turn> {
    match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
        ("message", Some("user")) => Some(Turn::Prompt(content_text(&item["content"]))),
        ("message", Some("assistant")) => Some(Turn::Model),
        (kind, _) if kind.ends_with("_call_output") => Some(Turn::ToolResult),
        (kind, _) if kind.ends_with("_call") => Some(Turn::Model),
        _ => None,
    }
}

/// A declared tool, or those of a declared namespace.
fn declared(tool: &Value) -> Vec<DeclaredTool> {
    let Some(name) = tool["name"].as_str() else {
        return Vec::new();
    };
    if tool["type"] != "namespace" {
        let (schema, takes_text) = (tool["parameters"].clone(), tool["type"] == "custom");
        return vec![DeclaredTool {
            name: name.to_owned(),
            namespace: None,
            schema,
            takes_text,
        }];
    }
    let inner = tool["tools"].as_array().into_iter().flatten();
    inner
        .filter_map(|inner| {
            let full = format!("{name}.{}", inner["name"].as_str()?);
            let (schema, namespace) = (inner["parameters"].clone(), Some(name.to_owned()));
            Some(DeclaredTool {
                name: full,
                namespace,
                schema,
                takes_text: false,
            })
        })
        .collect()
}

fn write(model: &str, serial: usize, step: &Step, calls: &[Call]) -> Vec<Frame> {
    let id = format!("resp_{serial}");
    let response = |status: &str, output: &[Value], usage: Value| {
        json!({
            "id": id, "object": "response", "created_at": 1, "model": model, "status": status, "output": output,
            "usage": usage, "parallel_tool_calls": true, "tools": [], "tool_choice": "auto", "error": null,
            "incomplete_details": if step.cut { json!({ "reason": "max_output_tokens" }) } else { Value::Null },
            "instructions": null, "metadata": {},
        })
    };
    let mut events = Events::default();
    events.say(
        "response.created",
        json!({ "response": response("in_progress", &[], Value::Null) }),
    );
    if let Some(thought) = &step.thought {
        events.thought(serial, thought);
    }
    if !step.text.is_empty() {
        events.text(serial, &step.text);
    }
    for call in calls {
        events.call(serial, call);
    }
    let (input, output) = (step.tokens.input, step.tokens.output);
    let usage = json!({
        "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": input + output,
    });
    let (event, status) = if step.cut {
        ("response.incomplete", "incomplete")
    } else {
        ("response.completed", "completed")
    };
    let whole = response(status, &events.items, usage);
    events.say(event, json!({ "response": whole }));
    events.frames
}

/// The events so far, and the finished items of the output.
#[derive(Default)]
struct Events {
    frames: Vec<Frame>,
    items: Vec<Value>,
}

impl Events {
    fn say(&mut self, event: &'static str, mut fields: Value) {
        fields["type"] = event.into();
        fields["sequence_number"] = self.frames.len().into();
        self.frames.push(Frame {
            event: Some(event),
            data: fields.to_string(),
        });
    }

    /// An item from its first form, through what `between` says of it, to its last form.
    fn item(&mut self, first: &Value, between: impl FnOnce(&mut Events, usize), last: Value) {
        let index = self.items.len();
        self.say(
            "response.output_item.added",
            json!({ "output_index": index, "item": first }),
        );
        between(self, index);
        self.say(
            "response.output_item.done",
            json!({ "output_index": index, "item": last }),
        );
        self.items.push(last);
    }

    fn thought(&mut self, serial: usize, thought: &str) {
        let id = format!("rs_{serial}");
        let item = |summary: Value| json!({ "type": "reasoning", "id": id, "summary": summary });
        let place = |index: usize| json!({ "item_id": id, "output_index": index, "summary_index": 0 });
        let between = |events: &mut Events, index: usize| {
            let mut part = place(index);
            part["part"] = json!({ "type": "summary_text", "text": "" });
            events.say("response.reasoning_summary_part.added", part);
            let mut delta = place(index);
            delta["delta"] = thought.into();
            events.say("response.reasoning_summary_text.delta", delta);
        };
        self.item(
            &item(json!([])),
            between,
            item(json!([{ "type": "summary_text", "text": thought }])),
        );
    }

    fn text(&mut self, serial: usize, text: &str) {
        let id = format!("msg_{serial}");
        let item = |status: &str, content: Value| json!({ "type": "message", "id": id, "role": "assistant", "status": status, "content": content });
        let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
        let place = |index: usize| json!({ "item_id": id, "output_index": index, "content_index": 0 });
        let between = |events: &mut Events, index: usize| {
            let mut added = place(index);
            added["part"] = part("");
            events.say("response.content_part.added", added);
            for piece in text.split_inclusive(' ') {
                let mut delta = place(index);
                delta["delta"] = piece.into();
                events.say("response.output_text.delta", delta);
            }
            let mut done = place(index);
            done["text"] = text.into();
            events.say("response.output_text.done", done);
        };
        self.item(
            &item("in_progress", json!([])),
            between,
            item("completed", json!([part(text)])),
        );
    }

    fn call(&mut self, serial: usize, call: &Call) {
        let id = format!("{serial}_{}", self.items.len());
        let call_id = format!("call_{id}");
        let (kind, field, input) = match &call.input {
            Input::Text(text) => ("custom_tool_call", "input", text),
            Input::Arguments(arguments) => ("function_call", "arguments", arguments),
        };
        let item = |status: &str, input: &str| {
            let mut item = json!({
                "type": kind, "id": format!("fc_{id}"), "call_id": call_id, "name": call.name, "status": status,
            });
            item[field] = input.into();
            if let Some(namespace) = &call.namespace {
                item["namespace"] = namespace.as_str().into();
            }
            item
        };
        let between = |events: &mut Events, index: usize| {
            if field == "arguments" {
                let place = json!({ "item_id": format!("fc_{id}"), "output_index": index });
                let mut delta = place.clone();
                delta["delta"] = input.as_str().into();
                events.say("response.function_call_arguments.delta", delta);
                let mut done = place;
                done["arguments"] = input.as_str().into();
                events.say("response.function_call_arguments.done", done);
            }
        };
        self.item(&item("in_progress", ""), between, item("completed", input));
    }
}
