//! OpenAI chat completions, streamed (the `chat.completion.chunk` object of the API reference).

use serde_json::{Value, json};

use super::script::{Step, Turn};
use super::tools::{Call, DeclaredTool, Input};
use super::{Frame, ModelCall, WireFormat, content_text};

pub(super) const FORMAT: WireFormat = WireFormat { read, write };

fn read(body: &Value) -> ModelCall {
    let messages = body["messages"].as_array().into_iter().flatten();
    let turns = messages.filter_map(|message| match message["role"].as_str()? {
        "user" => Some(Turn::Prompt(content_text(&message["content"]))),
        "tool" => Some(Turn::ToolResult),
        "assistant" => Some(Turn::Model),
        _ => None,
    });
    let tools = body["tools"].as_array().into_iter().flatten().filter_map(|tool| {
        let function = &tool["function"];
        let name = function["name"].as_str()?.to_owned();
        Some(DeclaredTool {
            name,
            schema: function["parameters"].clone(),
            ..DeclaredTool::default()
        })
    });
    let effort = body["reasoning_effort"].as_str().map(str::to_owned);
    ModelCall {
        turns: turns.collect(),
        tools: tools.collect(),
        effort,
    }
}

fn write(model: &str, serial: usize, step: &Step, calls: &[Call]) -> Vec<Frame> {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": format!("chatcmpl-{serial}"), "object": "chat.completion.chunk", "created": 1, "model": model,
            "choices": choices, "usage": usage,
        });
        Frame {
            event: None,
            data: chunk.to_string(),
        }
    };
    let delta = |delta: Value, finish: Option<&str>| {
        chunk(
            json!([{ "index": 0, "delta": delta, "finish_reason": finish }]),
            Value::Null,
        )
    };
    let mut frames = vec![delta(json!({ "role": "assistant", "content": "" }), None)];
    if let Some(thought) = &step.thought {
        frames.push(delta(json!({ "reasoning_content": thought }), None));
    }
    for piece in step.text.split_inclusive(' ') {
        frames.push(delta(json!({ "content": piece }), None));
    }
    for (index, call) in calls.iter().enumerate() {
        let (Input::Text(arguments) | Input::Arguments(arguments)) = &call.input;
        let function = json!({ "name": call.name, "arguments": arguments });
        let id = format!("call_{serial}_{index}");
        let call = json!({ "index": index, "id": id, "type": "function", "function": function });
        frames.push(delta(json!({ "tool_calls": [call] }), None));
    }
    let finish = match (step.cut, calls.is_empty()) {
        (true, _) => "length",
        (false, false) => "tool_calls",
        (false, true) => "stop",
    };
    frames.push(delta(json!({}), Some(finish)));
    let (input, output) = (step.tokens.input, step.tokens.output);
    let usage =
        json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
    frames.push(chunk(json!([]), usage));
    frames.push(Frame {
        event: None,
        data: "[DONE]".to_owned(),
    });
    frames
}
