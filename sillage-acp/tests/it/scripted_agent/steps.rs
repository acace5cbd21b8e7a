//! Steps that keep to the protocol.

use serde_json::{Value, json};
use sillage_acp::scripted_agent::Ending;
use sillage_acp::scripted_agent::record::Event;
use tempfile::tempdir;

use super::script;
use crate::peer::{Peer, said};
use crate::schema::{Side, faults, frames};

/// The answer to a prompt and the frames before it, while requests are answered: permission with `option`, anything
/// else with "method not found".
async fn prompt_answering(peer: &mut Peer, text: &str, option: &str) -> (Vec<Value>, Value) {
    let id = peer.ask_prompt(text).await;
    let mut before = Vec::new();
    loop {
        let frame = peer.frame().await;
        match (frame["method"].as_str(), frame.get("id")) {
            (None, Some(answered)) if answered == &id => return (before, frame),
            (Some("session/request_permission"), Some(asked)) => {
                let options = frame["params"]["options"].as_array().expect("options");
                let chosen = options
                    .iter()
                    .find(|o| o["optionId"] == option)
                    .unwrap_or(&options[0]);
                peer.answer(
                    asked,
                    json!({ "outcome": { "outcome": "selected", "optionId": chosen["optionId"] } }),
                )
                .await;
            }
            (Some(_), Some(asked)) => {
                let error = json!({ "code": -32601, "message": "method not found" });
                peer.send_line(&json!({ "jsonrpc": "2.0", "id": asked, "error": error }).to_string())
                    .await;
            }
            _ => {}
        }
        before.push(frame);
    }
}

async fn every_method_and_step(peer: &mut Peer, folder: &std::path::Path) {
    peer.initialize().await;
    let place = json!({ "cwd": folder, "mcpServers": [] });
    assert_eq!(
        peer.call("session/new", place.clone()).await["error"]["code"],
        -32000
    );
    peer.call("authenticate", json!({ "methodId": "key" })).await;
    peer.open().await;
    let session = peer.session.clone();
    let option = |id: &str, value: &str| json!({ "sessionId": session, "configId": id, "value": value });
    peer.call("session/set_config_option", option("effort", "high"))
        .await;
    peer.call("session/set_config_option", option("model", "haiku"))
        .await;
    peer.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "code" }),
    )
    .await;
    for text in ["speak", "act", "pack", "drip", "limit", "other"] {
        prompt_answering(peer, text, "allow").await;
    }
    let id = peer.ask_prompt("wait").await;
    while said(&[peer.frame().await]) != "working" {}
    peer.cancel().await;
    assert_eq!(
        peer.until_answer(&id).await.1["result"]["stopReason"],
        "cancelled"
    );
    peer.call("session/list", json!({})).await;
    let again = json!({ "sessionId": session, "cwd": folder, "mcpServers": [] });
    peer.call("session/load", again.clone()).await;
    peer.call("session/resume", again).await;
    assert_eq!(
        peer.call("session/close", json!({ "sessionId": session })).await["result"],
        json!({})
    );
    assert_eq!(
        peer.call("session/close", json!({ "sessionId": session })).await["error"]["code"],
        -32002
    );
}

#[tokio::test]
async fn every_frame_is_valid_by_the_official_schema() {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::in_memory(folder.path(), &script("every-step.yaml"));
    every_method_and_step(&mut peer, folder.path()).await;
    let record = frames(&peer.record());
    assert!(
        record.iter().filter(|(side, _)| *side == Side::Agent).count() > 60,
        "{}",
        record.len()
    );
    assert_eq!(faults(&record, Side::Agent), Vec::<String>::new());
    // The test is itself a client, which must not be excused by a lenient agent.
    assert_eq!(faults(&record, Side::Client), Vec::<String>::new());
    assert_eq!(peer.ending().await, Ending::Code(0));
}

#[tokio::test]
async fn deeds_are_done_and_told() {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::in_memory(folder.path(), &script("every-step.yaml"));
    peer.initialize().await;
    peer.call("authenticate", json!({ "methodId": "key" })).await;
    peer.open().await;
    let (before, answer) = prompt_answering(&mut peer, "act", "allow").await;
    assert_eq!(answer["result"], json!({ "stopReason": "max_tokens" }));
    let notes = folder.path().join("notes");
    assert_eq!(
        std::fs::read_to_string(notes.join("a.md")).expect("written"),
        "one\nallow\n"
    );
    assert!(!notes.join("b.md").exists() && notes.join("touched").exists());
    let said = said(&before);
    assert!(
        said.starts_with("0: one\nallow\n3: oh\nallowed{\"code\":-32601"),
        "{said}"
    );
    let failed: Vec<&Value> = before
        .iter()
        .filter(|f| f["params"]["update"]["status"] == "failed")
        .map(|f| &f["params"]["update"])
        .collect();
    assert_eq!(
        failed.len(),
        3,
        "t2, the edit that finds nothing, the command that exits 3: {failed:?}"
    );
}

#[tokio::test]
async fn what_is_refused_is_not_done() {
    let folder = tempdir().expect("a folder");
    let script = r#"
prompts:
  - times: always
    steps:
      - write: { path: a.txt, content: x, ask: true }
      - say: "{{permission}}"
"#;
    let mut peer = Peer::in_memory(folder.path(), script);
    peer.open().await;
    let (before, _) = prompt_answering(&mut peer, "try", "reject").await;
    assert_eq!(said(&before), "reject");
    assert!(!folder.path().join("a.txt").exists());
    assert_eq!(
        before.last().expect("frames")["params"]["update"]["sessionUpdate"],
        "agent_message_chunk"
    );

    // A request that is cancelled ends the turn (A5).
    let id = peer.ask_prompt("again").await;
    let asked = peer.permission().await;
    peer.cancel().await;
    peer.answer(&asked["id"], json!({ "outcome": { "outcome": "cancelled" } }))
        .await;
    let (before, answer) = peer.until_answer(&id).await;
    assert_eq!(
        (said(&before).as_str(), &answer["result"]["stopReason"]),
        ("", &json!("cancelled"))
    );
    assert!(!folder.path().join("a.txt").exists());
}

#[tokio::test]
async fn a_cancelled_request_does_its_steps_first() {
    let folder = tempdir().expect("a folder");
    let script = r#"
prompts:
  - steps: [{ ask: { cancelled: [{ say: as you wish }] } }, { say: never }]
  - on_cancel: ignore
    steps: [{ ask: { cancelled: [{ say: no matter }] } }, { say: " and on" }]
"#;
    let mut peer = Peer::in_memory(folder.path(), script);
    peer.open().await;
    for (expected, stop) in [("as you wish", "cancelled"), ("no matter and on", "end_turn")] {
        let id = peer.ask_prompt("go").await;
        let asked = peer.permission().await;
        peer.cancel().await;
        peer.answer(&asked["id"], json!({ "outcome": { "outcome": "cancelled" } }))
            .await;
        let (before, answer) = peer.until_answer(&id).await;
        assert_eq!(
            (said(&before).as_str(), &answer["result"]["stopReason"]),
            (expected, &json!(stop))
        );
    }
}

#[tokio::test]
async fn a_cancellation_interrupts_waits_and_commands() {
    let folder = tempdir().expect("a folder");
    let script = r#"
prompts:
  - { match: a, steps: [{ say: x }, { wait: 600000 }, { say: never }] }
  - { match: b, steps: [{ say: x }, { wait_for: nothing }, { say: never }] }
  - { match: c, steps: [{ say: x }, { run: { command: sleep, args: ["600"] } }, { say: never }] }
  - { match: d, steps: [{ say: x }, { request: { method: _vendor/ask } }, { say: never }] }
  - { match: e, steps: [{ say: x }, { on_cancel: { stop: refusal } }, { wait: 600000 }] }
"#;
    let mut peer = Peer::in_memory(folder.path(), script);
    peer.open().await;
    for (text, stop) in [
        ("a", "cancelled"),
        ("b", "cancelled"),
        ("c", "cancelled"),
        ("d", "cancelled"),
        ("e", "refusal"),
    ] {
        let id = peer.ask_prompt(text).await;
        peer.frame().await;
        peer.cancel().await;
        let (before, answer) = peer.until_answer(&id).await;
        assert_eq!(
            (said(&before).as_str(), &answer["result"]["stopReason"]),
            ("", &json!(stop)),
            "{text}"
        );
    }
    // A cancellation with nothing to cancel changes nothing, not even the next prompt.
    peer.cancel().await;
    assert!(
        peer.prompt("f").await.1["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("no rule left"))
    );
}

#[tokio::test]
async fn a_file_that_does_not_come_is_an_error() {
    let folder = tempdir().expect("a folder");
    let script = "prompts:\n  - steps: [{ wait_for: { path: gate, timeout_ms: 1 } }]\n  - steps: [{ wait_for: gate }, { say: x }]";
    let mut peer = Peer::in_memory(folder.path(), script);
    peer.open().await;
    let (_, answer) = peer.prompt("go").await;
    assert!(
        answer["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("gate did not appear within 1 ms")),
        "{answer}"
    );
    let id = peer.ask_prompt("go").await;
    std::fs::write(folder.path().join("gate"), "").expect("a file");
    assert_eq!(said(&peer.until_answer(&id).await.0), "x");
}

#[tokio::test]
async fn rules_are_used_in_order_and_used_up() {
    let folder = tempdir().expect("a folder");
    let script = r#"
prompts:
  - { match: a, times: 2, steps: [{ say: first }] }
  - { match: /^b(\d)?/, times: always, steps: [{ say: "b{{match.1}}" }] }
  - { if_exists: gate, times: always, steps: [{ say: open }] }
  - { unless_exists: gate, times: always, steps: [{ say: closed }, { touch: gate }] }
"#;
    let mut peer = Peer::in_memory(folder.path(), script);
    peer.open().await;
    for (text, expected) in [
        ("a", "first"),
        ("b7", "b7"),
        ("b", "b"),
        ("xa", "first"),
        ("a", "closed"),
        ("a", "open"),
        ("c", "open"),
    ] {
        assert_eq!(said(&peer.prompt(text).await.0), expected, "{text}");
    }
}

#[tokio::test]
async fn an_answer_is_recorded_before_it_leaves() {
    let folder = tempdir().expect("a folder");
    let script = "prompts: [{ steps: [{ say: x }] }, { steps: [{ error: { code: 7, message: no } }] }]";
    let mut peer = Peer::in_memory(folder.path(), script);
    peer.open().await;
    for text in ["one", "two"] {
        let id = peer.ask_prompt(text).await;
        let (_, answer) = peer.until_answer(&id).await;
        let record = peer.record();
        let answered = record
            .iter()
            .position(|e| matches!(&e.event, Event::Answered { text: of, session, .. } if of == text && *session == peer.session));
        let sent = record
            .iter()
            .position(|e| matches!(&e.event, Event::Sent { frame } if *frame == answer));
        assert!(answered.is_some() && answered < sent, "{answered:?} {sent:?}");
    }
}
