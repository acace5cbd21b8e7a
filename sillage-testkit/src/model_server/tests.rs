use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// Sends a body and gives the answer's head and the text after it, read until the server closes.
async fn post_body(server: &ModelServer, path: &str, body: &Value) -> (String, String) {
    let mut stream = TcpStream::connect(server.address)
        .await
        .expect("the server listens");
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("it reads");
    stream.write_all(body.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    // A connection that is broken on purpose ends in an error: what came before counts.
    let _end = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("UTF-8");
    let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), text.to_owned())
}

/// The data of server-sent events, whatever the chunks that they came in.
fn events(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

fn chat_body(messages: &Value) -> Value {
    let schema = json!({ "type": "object", "required": ["filePath", "content"],
        "properties": { "filePath": { "type": "string" }, "content": { "type": "string" } } });
    let tool = json!({ "type": "function", "function": { "name": "write", "parameters": schema } });
    json!({ "model": "m", "stream": true, "reasoning_effort": "high", "messages": messages, "tools": [tool] })
}

fn script() -> Script {
    let write = ToolUse::Write {
        path: "/x/a.txt".into(),
        content: "hi".into(),
    };
    let first = Step {
        thought: Some("hm".into()),
        ..Step::using(write)
    };
    Script::of([
        first,
        Step {
            cut: true,
            ..Step::saying("All is done")
        },
    ])
}

#[tokio::test]
async fn chat_completions_follow_the_script() {
    let server = ModelServer::start().await.expect("a port");
    let prompt = format!("Please. {} Thanks.", script().in_prompt());
    let ask = json!({ "role": "user", "content": [{ "type": "text", "text": prompt }] });
    let (head, text) = post_body(&server, "/v1/chat/completions", &chat_body(&json!([ask]))).await;
    assert!(
        head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"),
        "{head}"
    );
    let events_of_call = events(&text);
    let call = &events_of_call
        .iter()
        .find_map(|event| event["choices"][0]["delta"]["tool_calls"].get(0))
        .expect("a call");
    assert_eq!(call["function"]["name"], "write");
    let arguments: Value =
        serde_json::from_str(call["function"]["arguments"].as_str().expect("text")).expect("JSON");
    assert_eq!(arguments, json!({ "filePath": "/x/a.txt", "content": "hi" }));
    assert!(
        text.contains("\"finish_reason\":\"tool_calls\"") && text.contains("data: [DONE]"),
        "{text}"
    );

    let round = [
        ask,
        json!({ "role": "assistant", "content": "" }),
        json!({ "role": "tool", "content": "ok" }),
    ];
    let (_, text) = post_body(&server, "/v1/chat/completions", &chat_body(&json!(round))).await;
    let said: String = events(&text)
        .iter()
        .filter_map(|event| {
            event["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(said, "All is done");
    assert!(text.contains("\"finish_reason\":\"length\""), "{text}");
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(
        (&*asked[0].model, asked[0].effort.as_deref(), &*asked[0].tools),
        ("m", Some("high"), &["write".to_owned()][..])
    );
}

#[tokio::test]
async fn responses_follow_the_script() {
    let server = ModelServer::start().await.expect("a port");
    let body = |input: Value| {
        let tools = json!([{ "type": "custom", "name": "apply_patch" }]);
        json!({ "model": "m", "stream": true, "input": input, "tools": tools, "reasoning": { "effort": "low" } })
    };
    let ask = json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": script().in_prompt() }] });
    let (_, text) = post_body(&server, "/v1/responses", &body(json!([ask]))).await;
    let last = events(&text).pop().expect("an event");
    assert_eq!(last["type"], "response.completed");
    assert_eq!(
        last["response"]["output"][1]["input"],
        "*** Begin Patch\n*** Add File: /x/a.txt\n+hi\n*** End Patch"
    );

    let round = [
        ask,
        json!({ "type": "custom_tool_call" }),
        json!({ "type": "custom_tool_call_output" }),
    ];
    let (_, text) = post_body(&server, "/v1/responses", &body(json!(round))).await;
    let last = events(&text).pop().expect("an event");
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "All is done");
}

#[tokio::test]
async fn errors_and_broken_connections_can_be_had() {
    let server = ModelServer::start().await.expect("a port");
    let ask = |step: Step| {
        let prompt = Script::of([step]).in_prompt();
        chat_body(&json!([{ "role": "user", "content": prompt }]))
    };
    let overload = Step {
        status: Some(529),
        retry_after_seconds: Some(3),
        ..Step::saying("overloaded")
    };
    let (head, text) = post_body(&server, "/v1/chat/completions", &ask(overload)).await;
    assert!(
        head.starts_with("HTTP/1.1 529") && head.contains("retry-after: 3"),
        "{head}"
    );
    assert!(text.contains("overloaded"), "{text}");
    let broken = Step {
        hang_up: true,
        ..Step::saying("one two three")
    };
    let (_, text) = post_body(&server, "/v1/chat/completions", &ask(broken)).await;
    assert!(
        text.contains("one") && !text.contains("finish_reason\":\"stop"),
        "{text}"
    );
    let (_, text) = post_body(
        &server,
        "/v1/chat/completions",
        &ask(Step::using(ToolUse::Shell { command: "ls".into() })),
    )
    .await;
    assert!(text.contains("shell"), "{text}");
}

#[tokio::test]
async fn calls_without_tools_take_no_part_in_scripts() {
    let server = ModelServer::start().await.expect("a port");
    let mut body = chat_body(&json!([{ "role": "user", "content": script().in_prompt() }]));
    body["tools"] = json!([]);
    let (_, text) = post_body(&server, "/v1/chat/completions", &body).await;
    assert!(text.contains("title") && !text.contains("tool_calls"), "{text}");
    let (head, _) = post_body(&server, "/v2/else", &json!({})).await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    assert_eq!(
        server.asked().iter().map(|asked| asked.known).collect::<Vec<_>>(),
        [true, false]
    );
}

#[test]
fn the_last_script_counts_and_rounds_are_counted_after_it() {
    let prompt =
        |word: &str| Turn::Prompt(Script::of([Step::saying(word), Step::saying("next")]).in_prompt());
    let turns = [
        prompt("a"),
        Turn::Model,
        Turn::ToolResult,
        Turn::Model,
        prompt("b"),
    ];
    assert_eq!(choose(&turns).text, "b");
    let more = [Turn::Model, Turn::ToolResult, Turn::ToolResult];
    let turns: Vec<Turn> = turns.into_iter().chain(more).collect();
    assert_eq!(choose(&turns).text, "next");
    let turns: Vec<Turn> = turns.into_iter().chain([Turn::Model, Turn::ToolResult]).collect();
    assert_eq!(choose(&turns).text, "done");
    assert_eq!(
        choose(&[Turn::Prompt("hello".into())]).text,
        "there is no script in the prompt"
    );
}

#[tokio::test]
async fn gemini_follows_the_script_as_a_stream_and_at_once() {
    let server = ModelServer::scripting(&["m"]).await.expect("a port");
    let schema = json!({ "type": "object", "properties": { "file_path": {}, "content": {} } });
    let tools =
        json!([{ "functionDeclarations": [{ "name": "write_file", "parametersJsonSchema": schema }] }]);
    let ask = json!({ "role": "user", "parts": [{ "text": script().in_prompt() }] });
    let config = json!({ "thinkingConfig": { "thinkingLevel": "HIGH" } });
    let body = |contents: Value| json!({ "contents": contents, "tools": tools, "generationConfig": config });
    let stream = "/v1beta/models/m:streamGenerateContent?alt=sse";
    let (head, text) = post_body(&server, stream, &body(json!([ask]))).await;
    assert!(
        head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"),
        "{head}"
    );
    let last = events(&text).pop().expect("an event");
    let candidate = &last["candidates"][0];
    let call = &candidate["content"]["parts"][0]["functionCall"];
    assert_eq!(
        (&call["name"], &call["args"]),
        (
            &json!("write_file"),
            &json!({ "file_path": "/x/a.txt", "content": "hi" })
        )
    );
    assert_eq!(
        (
            &candidate["finishReason"],
            &last["usageMetadata"]["promptTokenCount"]
        ),
        (&json!("STOP"), &json!(100))
    );

    let round = json!([
        ask,
        { "role": "model", "parts": [{ "functionCall": {} }] },
        { "role": "user", "parts": [{ "functionResponse": {} }] },
    ]);
    let (_, text) = post_body(&server, "/v1beta/models/m:generateContent", &body(round)).await;
    assert!(
        text.contains("All is done") && text.contains("MAX_TOKENS"),
        "{text}"
    );
    let other = "/v1beta/models/other:streamGenerateContent";
    let (_, text) = post_body(&server, other, &body(json!([ask]))).await;
    assert!(text.contains("title") && !text.contains("functionCall"), "{text}");
    let (_, text) = post_body(&server, "/v1beta/models/m:countTokens", &json!({})).await;
    assert!(text.contains("totalTokens"), "{text}");
    let (head, _) = post_body(&server, "/v1beta/models/m:embedContent", &json!({})).await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");

    let asked = server.asked();
    assert_eq!(asked[0].effort.as_deref(), Some("HIGH"));
    assert!(asked[0].prompts[0].contains("a.txt"), "{asked:?}");
    let known: Vec<bool> = asked.iter().map(|one| one.known).collect();
    assert_eq!(known, [true, true, true, true, false]);
    server.asked_until(|asked| asked.len() == 5).await;
}

#[tokio::test]
async fn a_tool_of_an_mcp_server_is_found_by_its_bare_name() {
    let server = ModelServer::start().await.expect("a port");
    let call = ToolUse::Named {
        name: "repeat_it".to_owned(),
        arguments: json!({ "text": "x" }),
    };
    let prompt = Script::of([Step::using(call)]).in_prompt();
    let mut body = chat_body(&json!([{ "role": "user", "content": prompt }]));
    body["tools"] = json!([{ "type": "function", "function": { "name": "mcp_repeater_repeat_it" } }]);
    let (_, text) = post_body(&server, "/v1/chat/completions", &body).await;
    assert!(text.contains("\"name\":\"mcp_repeater_repeat_it\""), "{text}");
}
