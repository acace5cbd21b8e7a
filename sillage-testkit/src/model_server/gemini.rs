//! Gemini's `generateContent` and `streamGenerateContent` (the `GenerateContentResponse` of the API reference).

use serde_json::{Value, json};

use super::script::{Step, Turn};
use super::tools::{Call, DeclaredTool, Input};
use super::{Frame, ModelCall, WireFormat, content_text};

pub(super) const FORMAT: WireFormat = WireFormat { read, write };

fn read(body: &Value) -> ModelCall {
    let contents = body["contents"].as_array().into_iter().flatten();
    let turns = contents.map(|content| {
        let mut parts = content["parts"].as_array().into_iter().flatten();
        if parts.any(|part| part["functionResponse"].is_object()) {
            Turn::ToolResult
        } else if content["role"] == "model" {
            Turn::Model
        } else {
            Turn::Prompt(content_text(&content["parts"]))
        }
    });
    let lists = body["tools"].as_array().into_iter().flatten();
    let declared = lists.flat_map(|list| list["functionDeclarations"].as_array().into_iter().flatten());
    let tools = declared.filter_map(|tool| {
        let name = tool["name"].as_str()?.to_owned();
        let schema = ["parametersJsonSchema", "parameters"];
        let schema = schema.iter().find_map(|key| tool.get(key)).cloned();
        Some(DeclaredTool {
            name,
            schema: schema.unwrap_or_default(),
            ..DeclaredTool::default()
        })
    });
    let effort = body["generationConfig"]["thinkingConfig"]["thinkingLevel"].as_str();
    ModelCall {
        turns: turns.collect(),
        tools: tools.collect(),
        effort: effort.map(str::to_owned),
    }
}

/// The stream; the answer at once is its pieces put together ([`whole`]).
fn write(model: &str, serial: usize, step: &Step, calls: &[Call]) -> Vec<Frame> {
    let frame = |parts: Value, finish: Option<&str>| {
        let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
        if let Some(finish) = finish {
            candidate["finishReason"] = finish.into();
        }
        let response = json!({
            "candidates": [candidate], "usageMetadata": usage(step), "modelVersion": model,
            "responseId": format!("r-{serial}"),
        });
        Frame {
            event: None,
            data: response.to_string(),
        }
    };
    let mut frames = Vec::new();
    if let Some(thought) = &step.thought {
        frames.push(frame(json!([{ "text": thought, "thought": true }]), None));
    }
    let pieces = step.text.split_inclusive(' ');
    frames.extend(pieces.map(|piece| frame(json!([{ "text": piece }]), None)));
    let last = if calls.is_empty() {
        json!([{ "text": "" }])
    } else {
        function_calls(serial, calls)
    };
    frames.push(frame(last, Some(finish(step))));
    frames
}

/// The answer to a call that wants no stream. One that wants JSON, as for a choice that the agent lets a model make,
/// gets an object without members.
pub(super) fn whole(model: &str, serial: usize, body: &Value, step: &Step, calls: &[Call]) -> Value {
    let parts = if body["generationConfig"]["responseMimeType"] == "application/json" {
        json!([{ "text": "{}" }])
    } else if calls.is_empty() {
        json!([{ "text": step.text }])
    } else {
        function_calls(serial, calls)
    };
    json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": parts }, "finishReason": finish(step) }],
        "usageMetadata": usage(step), "modelVersion": model, "responseId": format!("r-{serial}"),
    })
}

fn function_calls(serial: usize, calls: &[Call]) -> Value {
    let call = |(index, call): (usize, &Call)| {
        let arguments: Value = match &call.input {
            Input::Arguments(arguments) => serde_json::from_str(arguments).unwrap_or_default(),
            Input::Text(text) => json!({ "input": text }),
        };
        let call = json!({ "id": format!("call_{serial}_{index}"), "name": call.name, "args": arguments });
        json!({ "functionCall": call, "thoughtSignature": "bm9uZQ==" })
    };
    calls.iter().enumerate().map(call).collect()
}

fn finish(step: &Step) -> &'static str {
    if step.cut { "MAX_TOKENS" } else { "STOP" }
}

fn usage(step: &Step) -> Value {
    let (input, output) = (step.tokens.input, step.tokens.output);
    json!({ "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output })
}
