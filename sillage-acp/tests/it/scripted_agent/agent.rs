//! The agent around the prompts: capabilities, options, sign-in, sessions, methods that fail.

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{prompts, script};
use crate::peer::{Peer, said};

fn current<'a>(options: &'a Value, id: &str) -> &'a Value {
    let options = options.as_array().expect("options");
    options
        .iter()
        .find(|o| o["id"] == id)
        .map_or(&Value::Null, |o| &o["currentValue"])
}

#[tokio::test]
async fn options_follow_the_model() {
    let folder = tempdir().expect("a folder");
    let script = r#"
options:
  - { id: m, category: model, current: opus, values: [opus, haiku, tiny, old, odd], refused: [old], ignored: [odd] }
  - { id: e, category: thought_level, current: high, values: [low, high], by_model: { haiku: [low], tiny: [] } }
prompts:
  - { times: always, steps: [{ say: "{{model}}/{{effort}}" }] }
"#;
    let mut peer = Peer::in_memory(folder.path(), script);
    let opened = peer.open().await;
    assert_eq!(current(&opened["result"]["configOptions"], "e"), "high");
    assert_eq!(said(&peer.prompt("which").await.0), "opus/high");
    for (id, value, model, effort) in [
        ("m", "haiku", "haiku", json!("low")),
        ("m", "odd", "haiku", json!("low")),
        ("m", "tiny", "tiny", Value::Null),
        ("m", "opus", "opus", json!("low")),
        ("e", "high", "opus", json!("high")),
    ] {
        let params = json!({ "sessionId": peer.session, "configId": id, "value": value });
        let answer = peer.call("session/set_config_option", params).await;
        let options = &answer["result"]["configOptions"];
        assert_eq!(
            (current(options, "m"), current(options, "e")),
            (&json!(model), &effort),
            "{id}={value}"
        );
    }
    assert_eq!(said(&peer.prompt("which").await.0), "opus/high");
    for (id, value) in [("m", "old"), ("m", "nothing"), ("e", "max"), ("x", "low")] {
        let params = json!({ "sessionId": peer.session, "configId": id, "value": value });
        assert_eq!(
            peer.call("session/set_config_option", params).await["error"]["code"],
            -32602,
            "{id}={value}"
        );
    }
}

#[tokio::test]
async fn legacy_models_and_modes() {
    let folder = tempdir().expect("a folder");
    let script = r#"
models: { current: b, available: [a, b, c], refused: [c] }
modes: { available: [ask, code] }
prompts: [{ times: always, steps: [{ say: "{{model}}" }] }]
"#;
    let mut peer = Peer::in_memory(folder.path(), script);
    let opened = peer.open().await;
    assert_eq!(opened["result"]["models"]["currentModelId"], "b");
    assert_eq!(opened["result"]["modes"]["currentModeId"], "ask");
    let model = |model: &str| json!({ "sessionId": peer.session, "modelId": model });
    let (a, c) = (model("a"), model("c"));
    assert_eq!(peer.call("session/set_model", a).await["result"], json!({}));
    assert_eq!(peer.call("session/set_model", c).await["error"]["code"], -32602);
    assert_eq!(said(&peer.prompt("which").await.0), "a");
    let params = json!({ "sessionId": peer.session, "configId": "model", "value": "a" });
    assert_eq!(
        peer.call("session/set_config_option", params).await["error"]["code"],
        -32601
    );
}

#[tokio::test]
async fn a_sign_in_can_be_in_vain() {
    for (in_vain, code) in [(false, Value::Null), (true, json!(-32000))] {
        let folder = tempdir().expect("a folder");
        let mut peer = Peer::in_memory(
            folder.path(),
            &format!("auth: {{ methods: [key], in_vain: {in_vain} }}"),
        );
        assert_eq!(peer.initialize().await["result"]["authMethods"][0]["id"], "key");
        let place = json!({ "cwd": folder.path(), "mcpServers": [] });
        assert_eq!(
            peer.call("session/new", place.clone()).await["error"]["code"],
            -32000
        );
        assert_eq!(
            peer.call("authenticate", json!({ "methodId": "other" })).await["error"]["code"],
            -32602
        );
        assert_eq!(
            peer.call("authenticate", json!({ "methodId": "key" })).await["result"],
            json!({})
        );
        assert_eq!(peer.call("session/new", place).await["error"]["code"], code);
    }
}

#[tokio::test]
async fn methods_go_as_the_script_says() {
    let folder = tempdir().expect("a folder");
    let script = r#"
modes: { available: [ask, code] }
default: [{ say: x }]
methods:
  initialize: { result: { protocolVersion: 2 } }
  session/new:
    before: [{ jsonrpc: "2.0", method: session/update, params: { sessionId: "{{session}}", update: { sessionUpdate: early } } }]
    after: [{ jsonrpc: "2.0", method: _vendor/after }]
  session/set_mode: { result: null }
  session/prompt: { times: 1, error: { code: -32000, message: sign in } }
  _vendor/gated: { wait_for: gate, result: done }
  _vendor/silent: { silent: true }
"#;
    let mut peer = Peer::in_memory(folder.path(), script);
    assert_eq!(peer.initialize().await["result"], json!({ "protocolVersion": 2 }));
    let id = peer
        .ask("session/new", json!({ "cwd": folder.path(), "mcpServers": [] }))
        .await;
    let (before, opened) = peer.until_answer(&id).await;
    assert_eq!(before[0]["params"]["sessionId"], opened["result"]["sessionId"]);
    assert_eq!(peer.frame().await["method"], "_vendor/after");
    peer.session = opened["result"]["sessionId"]
        .as_str()
        .expect("a session")
        .to_owned();
    let mode = json!({ "sessionId": peer.session, "modeId": "code" });
    assert_eq!(peer.call("session/set_mode", mode).await["result"], Value::Null);

    // Others go on while one waits, or is never answered.
    peer.ask("_vendor/silent", json!({})).await;
    let gated = peer.ask("_vendor/gated", json!({})).await;
    assert_eq!(peer.prompt("first").await.1["error"]["code"], -32000);
    assert_eq!(said(&peer.prompt("second").await.0), "x");
    std::fs::write(folder.path().join("gate"), "").expect("a file");
    assert_eq!(peer.until_answer(&gated).await.1["result"], "done");
    assert_eq!(prompts(&peer.record()), ["first", "second"]);
}

#[tokio::test]
async fn what_is_not_a_request_is_refused() {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::in_memory(folder.path(), "default: [{ silent: for_ever }]");
    peer.open().await;
    peer.send_line("not json").await;
    assert_eq!(peer.frame().await["error"]["code"], -32700);
    peer.send_line("{}").await;
    assert_eq!(peer.frame().await["error"]["code"], -32600);
    for (method, params, code) in [
        (
            "session/load",
            json!({ "sessionId": peer.session, "cwd": folder.path(), "mcpServers": [] }),
            -32601,
        ),
        (
            "session/resume",
            json!({ "sessionId": peer.session, "cwd": folder.path() }),
            -32601,
        ),
        ("session/list", json!({}), -32601),
        (
            "session/new",
            json!({ "cwd": "relative", "mcpServers": [] }),
            -32602,
        ),
        ("session/new", json!({ "cwd": folder.path() }), -32602),
        ("session/prompt", json!({ "sessionId": peer.session }), -32602),
        (
            "session/prompt",
            json!({ "sessionId": "nobody", "prompt": [] }),
            -32002,
        ),
        ("session/unheard", json!({}), -32601),
    ] {
        assert_eq!(peer.call(method, params).await["error"]["code"], code, "{method}");
    }
    peer.ask_prompt("one").await;
    assert_eq!(peer.prompt("two").await.1["error"]["code"], -32600);
}

#[tokio::test]
async fn another_agent_loads_or_resumes_what_was_said() {
    let kept = "sessions: { folder: kept, keep: KEEP }\nagent: { close: false }\nprompts:\n  - { match: half, steps: [{ say: hal }, { exit: 1 }] }\n  - { times: always, steps: [{ say: \"answer {{prompt}}\" }] }\n";
    for (keep, last) in [("as_said", Some("hal")), ("when_answered", None)] {
        let folder = tempdir().expect("a folder");
        let script = kept.replace("KEEP", keep);
        let mut peer = Peer::in_memory(folder.path(), &script);
        peer.open().await;
        let session = peer.session.clone();
        peer.prompt("one").await;
        peer.ask_prompt("half").await;
        while peer.bytes().await.is_some() {}

        let mut peer = Peer::in_memory(folder.path(), &script);
        let told = peer.initialize().await;
        assert_eq!(told["result"]["agentCapabilities"]["loadSession"], true);
        assert_eq!(
            told["result"]["agentCapabilities"]["sessionCapabilities"],
            json!({ "resume": {}, "list": {} })
        );
        let known = peer.call("session/list", json!({})).await;
        assert_eq!(known["result"]["sessions"][0]["sessionId"], json!(session));
        let params = json!({ "sessionId": session, "cwd": folder.path(), "mcpServers": [] });
        let id = peer.ask("session/load", params.clone()).await;
        let (replayed, answer) = peer.until_answer(&id).await;
        assert_eq!(answer["result"], json!({}));
        let replayed: Vec<(&str, &str)> = replayed
            .iter()
            .map(|f| &f["params"]["update"])
            .map(|u| {
                (
                    u["sessionUpdate"].as_str().expect("a kind"),
                    u["content"]["text"].as_str().expect("a text"),
                )
            })
            .collect();
        let mut expected = vec![
            ("user_message_chunk", "one"),
            ("agent_message_chunk", "answer 1"),
            ("user_message_chunk", "half"),
        ];
        expected.extend(last.map(|last| ("agent_message_chunk", last)));
        assert_eq!(replayed, expected, "{keep}");

        let mut peer = Peer::in_memory(folder.path(), &script);
        peer.initialize().await;
        assert_eq!(peer.call("session/resume", params).await["result"], json!({}));
        peer.session = session;
        assert_eq!(said(&peer.prompt("three").await.0), "answer 3");
        for unknown in ["00000000-0000-0000-0000-000000000000", "../kept/x"] {
            let params = json!({ "sessionId": unknown, "cwd": folder.path(), "mcpServers": [] });
            assert_eq!(
                peer.call("session/load", params).await["error"]["code"],
                -32002,
                "{unknown}"
            );
        }
    }
}

#[tokio::test]
async fn a_load_can_fail_once() {
    let folder = tempdir().expect("a folder");
    let text = "sessions: kept\nmethods: { session/load: { times: 1, error: { code: -32603, message: Internal error, data: { details: Invalid session identifier } } } }\ndefault: [{ say: x }]";
    let mut peer = Peer::in_memory(folder.path(), text);
    peer.open().await;
    let params = json!({ "sessionId": peer.session, "cwd": folder.path(), "mcpServers": [] });
    let failed = peer.call("session/load", params.clone()).await;
    assert_eq!(failed["error"]["data"]["details"], "Invalid session identifier");
    assert_eq!(peer.call("session/load", params).await["result"], json!({}));
}

#[tokio::test]
async fn uses_are_counted_over_all_agents_that_share_a_folder() {
    // R2: fails once, then succeeds, whichever process is asked.
    let folder = tempdir().expect("a folder");
    let script = "uses: used\nprompts:\n  - { times: 2, steps: [{ error: { code: 1, message: not yet } }] }\n  - { times: always, steps: [{ say: done }] }";
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        let mut peer = Peer::in_memory(folder.path(), script);
        peer.open().await;
        outcomes.push(peer.prompt("go").await.1.get("error").is_none());
    }
    assert_eq!(outcomes, [false, false, true, true]);
}

#[test]
fn the_scripts_of_the_package_are_right() {
    for name in ["every-step.yaml", "faults.yaml"] {
        sillage_acp::scripted_agent::Script::parse(&script(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}
