//! The faults of `scripts/faults.yaml`: each is really on the wire, or a client tested against it would prove nothing.

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::script;
use crate::peer::{Peer, said};
use crate::schema::{Side, faults, frames};

async fn peer() -> (TempDir, Peer) {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::in_memory(folder.path(), &script("faults.yaml"));
    peer.open().await;
    (folder, peer)
}

fn text(said: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": said } })
}

#[tokio::test]
async fn noise_between_frames() {
    let (_folder, mut peer) = peer().await;
    peer.ask_prompt("noise").await;
    let (mut said, mut noise) = (Vec::new(), Vec::new());
    while said.last().is_none_or(|f: &Value| f.get("result").is_none()) {
        let line = peer.bytes().await.expect("a line");
        match serde_json::from_slice(&line) {
            Ok(frame) => said.push(frame),
            Err(_) => noise.push(line),
        }
    }
    assert_eq!(crate::peer::said(&said), "hello");
    assert_eq!(noise.len(), 5, "{noise:?}");
    assert!(noise.iter().any(Vec::is_empty) && noise.iter().any(|line| std::str::from_utf8(line).is_err()));
    assert!(noise[1].starts_with(b"\x1b[32m"));
}

#[tokio::test]
async fn updates_that_the_protocol_does_not_have() {
    let (_folder, mut peer) = peer().await;
    let (before, answer) = peer.prompt("unknown-updates").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!((before.len(), said(&before).as_str()), (5, "hello"));
    let faults = faults(&frames(&peer.record()), Side::Agent);
    assert_eq!(faults.len(), 4, "all but `hello` break the schema: {faults:?}");

    let (before, _) = peer.prompt("update-first").await;
    let updates: Vec<&Value> = before
        .iter()
        .map(|f| &f["params"]["update"]["sessionUpdate"])
        .collect();
    assert_eq!(updates, ["tool_call_update", "tool_call", "agent_message_chunk"]);
    let (before, _) = peer.prompt("other-session").await;
    assert_eq!(before[0]["params"]["sessionId"], "someone-else");
}

#[tokio::test]
async fn answers_that_are_not_as_they_should_be() {
    let (_folder, mut peer) = peer().await;
    for (prompt, expected) in [
        ("unknown-stop", json!({ "stopReason": "budget_exhausted" })),
        ("no-stop", json!({})),
        ("null-answer", Value::Null),
        ("empty-end", json!({ "stopReason": "end_turn" })),
    ] {
        let (_, answer) = peer.prompt(prompt).await;
        assert_eq!(answer.get("result"), Some(&expected), "{prompt}");
    }
    for (prompt, code) in [("http-error", 500), ("sign-in", -32000), ("quota", -32603)] {
        assert_eq!(peer.prompt(prompt).await.1["error"]["code"], code, "{prompt}");
    }

    assert_eq!(said(&peer.prompt("late-update").await.0), "hel");
    assert_eq!(peer.frame().await["params"]["update"], text("lo"));

    let (_, first) = peer.prompt("twice").await;
    let second = peer.frame().await;
    assert_eq!(
        (&second["id"], &second["result"]["stopReason"]),
        (&first["id"], &json!("cancelled"))
    );

    let (before, _) = peer.prompt("stray-answer").await;
    assert_eq!(before[0], json!({ "jsonrpc": "2.0", "id": 4711, "result": {} }));
    // None of it stays with the next prompt.
    assert_eq!(said(&peer.prompt("another").await.0), "all is well");
}

#[tokio::test]
async fn deliveries() {
    let (_folder, mut peer) = peer().await;
    assert_eq!(said(&peer.prompt("split-utf8").await.0), "é中🙂");
    assert_eq!(said(&peer.prompt("one-write").await.0), "hello");

    let id = peer.ask_prompt("batch").await;
    let batch = peer.frame().await;
    assert_eq!(batch[0]["params"]["update"], text("hello"));
    assert_eq!(
        (&batch[1]["id"], &batch[1]["result"]["stopReason"]),
        (&id, &json!("end_turn"))
    );

    let (before, _) = peer.prompt("huge").await;
    let huge = before[0]["params"]["update"]["rawOutput"]
        .as_str()
        .expect("an output");
    assert_eq!((huge.len(), said(&before).as_str()), (20 << 20, "hello"));
}

#[tokio::test]
async fn requests_that_nobody_expects() {
    let (folder, mut peer) = peer().await;
    for (prompt, method) in [
        ("unasked-fs", "fs/write_text_file"),
        ("unknown-request", "_vendor/ask"),
    ] {
        let id = peer.ask_prompt(prompt).await;
        let asked = peer.frame().await;
        assert_eq!(asked["method"], method);
        assert!(asked["id"].is_string(), "{asked}");
        peer.answer(&asked["id"], json!({ "here": 1 })).await;
        assert_eq!(said(&peer.until_answer(&id).await.0), "{\"here\":1}");
    }
    assert!(
        !folder.path().join("unasked.txt").exists(),
        "the agent asks, and does not write by itself"
    );

    let id = peer.ask_prompt("bare-permission").await;
    let asked = peer.frame().await;
    let tool = asked["params"]["toolCall"].as_object().expect("a tool call");
    assert_eq!(tool.keys().collect::<Vec<_>>(), ["toolCallId"]);
    peer.send_line(
        &json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": 1, "message": "no" } }).to_string(),
    )
    .await;
    assert_eq!(said(&peer.until_answer(&id).await.0), "error");

    let id = peer.ask_prompt("no-option").await;
    let asked = peer.permission().await;
    assert_eq!(asked["params"]["options"], json!([]));
    peer.answer(&asked["id"], json!({ "outcome": { "outcome": "cancelled" } }))
        .await;
    assert_eq!(
        peer.until_answer(&id).await.1["result"]["stopReason"],
        "cancelled"
    );

    let id = peer.ask_prompt("refusal-aborts").await;
    let asked = peer.permission().await;
    peer.answer(
        &asked["id"],
        json!({ "outcome": { "outcome": "selected", "optionId": "cancel" } }),
    )
    .await;
    assert_eq!(
        peer.until_answer(&id).await.1["result"]["stopReason"],
        "cancelled"
    );
}

#[tokio::test]
async fn cancellations_that_are_not_obeyed() {
    let (_folder, mut peer) = peer().await;
    for (prompt, part, expected) in [
        ("cancel-ends-turn", "result", json!({ "stopReason": "end_turn" })),
        ("cancel-obeyed", "result", json!({ "stopReason": "cancelled" })),
        (
            "cancel-fails",
            "error",
            json!({ "code": -32603, "message": "AbortError: The operation was aborted" }),
        ),
    ] {
        let id = peer.ask_prompt(prompt).await;
        assert_eq!(peer.frame().await["params"]["update"], text("working"));
        peer.cancel().await;
        assert_eq!(peer.until_answer(&id).await.1[part], expected, "{prompt}");
    }
    peer.ask_prompt("hang").await;
    assert_eq!(peer.frame().await["params"]["update"], text("working"));
    peer.cancel().await;
    // The session stays busy: the cancelled prompt is still not answered.
    assert_eq!(peer.prompt("next").await.1["error"]["code"], -32600);
}

#[test]
fn no_rule_hides_another() {
    let script = sillage_acp::scripted_agent::Script::parse(&script("faults.yaml")).expect("a script");
    let names: Vec<String> = script
        .prompts
        .iter()
        .map(|rule| format!("{:?}", rule.matches))
        .map(|shown| shown.split('"').nth(1).expect("a text").to_owned())
        .collect();
    for (position, name) in names.iter().enumerate() {
        let hidden = names[..position].iter().find(|earlier| name.contains(*earlier));
        assert_eq!(hidden, None, "`{name}` is never played");
    }
}
