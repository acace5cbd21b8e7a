//! Lines: noise, size, characters, identifiers, batches, and what is not for this session.

use super::*;

#[tokio::test]
async fn acp02_noise_is_skipped_and_counted() {
    let theatre = faulty("start: { stdout: \"Welcome!\\n\\u001b[32mmigrating...\\u001b[0m\\n\" }");
    let scene = theatre.scene().await;
    let answer = scene.answer("late-update").await.expect("an answer");
    assert_eq!(told(&answer), ("hel", &StopReason::EndTurn));
    let events = scene.leave_with_events(&theatre).await;
    let noise: Vec<&SessionEventKind> = events
        .iter()
        .filter(|kind| is_note(kind, "not protocol"))
        .collect();
    assert_eq!(noise.len(), 2, "{noise:#?}");

    let steps = "      - raw: { text: \"[debug] leaked {not json}\\n\", times: 500, newline: false }\n      - say: hello";
    let theatre = Theatre::playing(steps);
    let scene = theatre.scene().await;
    assert_eq!(scene.answer("go").await.expect("an answer").text, "hello");
    let events = scene.leave_with_events(&theatre).await;
    let shown = events.iter().filter(|kind| is_note(kind, "not protocol: "));
    assert_eq!(shown.count(), 100, "the rest is counted");
    assert!(
        events
            .iter()
            .any(|kind| is_note(kind, "500 lines were not protocol"))
    );
}

#[tokio::test]
async fn acp02_a_frame_among_noise_that_cannot_be_read_fails_its_message() {
    let error = failure_of("noise").await;
    assert!(
        matches!(&error, RuntimeError::Permanent { words } if words.contains("is not JSON")),
        "{error:?}"
    );
}

#[tokio::test]
async fn acp17_a_line_over_the_limit_is_skipped_and_fails_its_message_alone() {
    assert_eq!(told(&answer_of("large").await), ("hello", &StopReason::EndTurn));
    let error = failure_of("huge").await;
    assert!(
        matches!(&error, RuntimeError::Permanent { words } if words.contains("was skipped; the limit is 16777216")),
        "{error:?}"
    );
}

#[tokio::test]
async fn acp18_characters_that_are_cut_in_two_arrive_whole() {
    assert_eq!(
        told(&answer_of("split-utf8").await),
        ("é中🙂", &StopReason::EndTurn)
    );
}

#[tokio::test]
async fn acp28_the_agents_identifiers_are_its_own() {
    for ids in ["numbers", "strings"] {
        // Of ours 3 is open, the prompt's; the agent's begin with 0.
        let asks = "      - request: { method: _vendor/ask }\n".repeat(5);
        let theatre = Theatre::with(&format!("ids: {ids}"), &format!("{asks}      - say: hello"));
        let scene = theatre.scene().await;
        assert_eq!(scene.answer("go").await.expect("an answer").text, "hello");
        scene.leave(&theatre).await;
        let frames = frames(&theatre.record());
        let refused: Vec<&Value> = frames
            .iter()
            .filter(|(side, frame)| *side == Side::Client && frame["error"]["code"] == -32601)
            .map(|(_, frame)| &frame["id"])
            .collect();
        let expected: Vec<Value> = (0..5)
            .map(|n| {
                if ids == "numbers" {
                    n.into()
                } else {
                    format!("p-{n}").into()
                }
            })
            .collect();
        assert_eq!(refused, expected.iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn acp29_a_vendors_notifications_are_ignored_and_its_requests_refused() {
    let answer = answer_of("unknown-request").await;
    assert!(answer.text.contains("-32601"), "{answer:?}");
    assert_eq!(
        told(&answer_of("unknown-updates").await),
        ("hello", &StopReason::EndTurn)
    );
}

#[tokio::test]
async fn acp30_another_sessions_updates_are_not_this_ones_and_batches_are_read() {
    for rule in ["other-session", "batch", "mixed-frames"] {
        assert_eq!(
            told(&answer_of(rule).await),
            ("hello", &StopReason::EndTurn),
            "{rule}"
        );
    }
}

#[tokio::test]
async fn c2_what_calls_itself_json_rpc_and_breaks_its_rules_is_answered() {
    let cases = [
        (
            "frame: { jsonrpc: \"2.0\", id: 77, method: 5 }",
            Value::from(77),
            -32600,
        ),
        (
            "frame: { jsonrpc: \"2.0\", id: [1], method: m }",
            Value::Null,
            -32600,
        ),
        (
            "raw: '{\"jsonrpc\":\"2.0\",\"id\":78,\"method\":\"m\",'",
            Value::Null,
            -32700,
        ),
    ];
    for (step, id, code) in cases {
        let theatre = Theatre::playing(&format!("      - {step}\n      - say: hello"));
        let scene = theatre.scene().await;
        let ended = scene.answer("go").await;
        // What could not be read at all fails its message: more may be lost with it.
        assert_eq!(ended.is_err(), code == -32700, "{step}: {ended:?}");
        scene.close().await;
        let told: Vec<(Value, Value)> = frames(&theatre.record())
            .into_iter()
            .filter(|(side, frame)| *side == Side::Client && frame["error"].is_object())
            .map(|(_, frame)| (frame["id"].clone(), frame["error"]["code"].clone()))
            .collect();
        assert_eq!(told, [(id, code.into())], "{step}");
    }
}
