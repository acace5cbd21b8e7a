//! What agents write that they should not, or not so: each is survived, or ends in a clear error (A4).

use sillage_core::ports::runtime::{RuntimeError, StopReason};

use super::*;

/// The agent says "hello" around an oddity, and the turn ends as if nothing had happened.
#[tokio::test]
async fn a4_oddities_do_not_change_the_answer() {
    let hello = "      - say: hello";
    let cases = [
        (
            "a banner",
            "start: { stdout: \"Welcome!\\n\\u001b[32mmigrating...\\u001b[0m\\n\" }",
            hello.to_owned(),
        ),
        (
            "noise",
            "",
            format!("      - raw: \"[debug] leaked {{not json}}\"\n      - raw: \"\"\n{hello}"),
        ),
        (
            "broken UTF-8 that is no protocol",
            "",
            format!("      - raw: {{ text: latin, hex: \"e9 ff 00\" }}\n{hello}"),
        ),
        (
            "an unknown update",
            "",
            format!("      - update: {{ sessionUpdate: brand_new_kind, x: 1 }}\n{hello}"),
        ),
        (
            "a broken update",
            "",
            format!(
                "      - update: {{ sessionUpdate: tool_call, title: no id }}\n      - frame: {{ jsonrpc: \"2.0\", method: session/update }}\n{hello}"
            ),
        ),
        ("one write", "", format!("      - delivery: one_write\n{hello}")),
        ("a batch", "", format!("      - delivery: batch\n{hello}")),
        (
            "byte by byte",
            "",
            "      - delivery: byte_by_byte\n      - say: \"hello\"".to_owned(),
        ),
        (
            "news of an unknown tool call",
            "",
            format!("      - tool: {{ id: t9, status: completed, update: true }}\n{hello}"),
        ),
        (
            "a file asked for",
            "",
            format!(
                "      - request: {{ method: fs/write_text_file, params: {{ sessionId: \"{{{{session}}}}\", path: /nowhere/x, content: x }} }}\n{hello}"
            ),
        ),
        (
            "a vendor's request",
            "",
            format!("      - request: {{ method: _vendor/ask }}\n{hello}"),
        ),
        (
            "another session's update",
            "",
            format!(
                "{hello}\n      - frame: {{ jsonrpc: \"2.0\", method: session/update, params: {{ sessionId: other, update: {{ sessionUpdate: agent_message_chunk, content: {{ type: text, text: NOT MINE }} }} }} }}"
            ),
        ),
        (
            "a flood on standard error",
            "",
            format!(
                "      - stderr: {{ text: wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww, times: 5000 }}\n{hello}"
            ),
        ),
        (
            "identifiers that are texts",
            "ids: strings",
            format!("      - request: {{ method: _vendor/ask }}\n{hello}"),
        ),
        (
            "an update before the session",
            "methods: { session/new: { before: [{ jsonrpc: \"2.0\", method: session/update, params: { sessionId: \"{{session}}\", update: { sessionUpdate: available_commands_update, availableCommands: [] } } }] } }",
            hello.to_owned(),
        ),
    ];
    for (name, head, steps) in cases {
        let theatre = Theatre::with(head, &steps);
        let scene = theatre.scene().await;
        for turn in 0..2 {
            let answer = scene
                .answer("go")
                .await
                .unwrap_or_else(|error| panic!("{name}, turn {turn}: {error:?}"));
            assert_eq!(
                (answer.text.as_str(), answer.stop),
                ("hello", StopReason::EndTurn),
                "{name}"
            );
        }
        scene.close().await;
        theatre.check_frames();
    }
}

#[tokio::test]
async fn stop_reasons_of_every_kind_are_answers() {
    let cases = [
        (
            "      - stop: budget_exhausted",
            StopReason::Other("budget_exhausted".to_owned()),
        ),
        ("      - answer: {}", StopReason::Other(String::new())),
        ("      - answer: null", StopReason::Other(String::new())),
        ("      - stop: refusal", StopReason::Refusal),
        ("      - stop: max_tokens", StopReason::MaxTokens),
        (
            "      - stop: cancelled",
            StopReason::Other("cancelled by the agent".to_owned()),
        ),
        (
            "      - stop: end_turn",
            StopReason::Other("nothing was said and no tool was used".to_owned()),
        ),
    ];
    for (steps, stop) in cases {
        let scene = Theatre::playing(steps).scene().await;
        let answer = scene.answer("go").await.expect("an answer");
        assert_eq!((answer.text.as_str(), answer.stop), ("", stop));
        assert!(answer.usage.is_unknown(), "A7: what is not given is unknown");
        scene.close().await;
    }
}

#[tokio::test]
async fn acp05_late_pieces_of_a_message_are_not_the_next_turns() {
    let script = r#"
options: [{ id: m, category: model, values: [fake-1] }]
prompts:
  - match: first
    steps: [say: { text: hello, message: m1 }]
    after: [say: { text: " LATE", message: m1 }, touch: late]
  - match: second
    steps: [wait_for: late, say: again, answer: { stopReason: end_turn }, answer: { stopReason: cancelled }]
"#;
    let theatre = Theatre::new(script);
    let scene = theatre.scene().await;
    assert_eq!(scene.answer("first").await.expect("an answer").text, "hello");
    let late = |kind: &SessionEventKind| matches!(kind, SessionEventKind::Text { text } if text == " LATE");
    scene.until(late).await;
    let answer = scene.answer("second").await.expect("an answer");
    assert_eq!(
        (answer.text.as_str(), answer.stop),
        ("again", StopReason::EndTurn)
    );
    scene
        .until(|kind| matches!(kind, SessionEventKind::Note { text } if text.contains("second answer")))
        .await;
    scene.close().await;
}

/// Something was lost, so that the message fails at once; the session goes on.
#[tokio::test]
async fn a4_a_lost_line_fails_its_message_and_not_the_session() {
    let cases = [
        ("huge: 17000000", "was skipped; the limit is 16777216"),
        (
            "raw: { text: '{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":\"', hex: \"ff fe 22 7d\" }",
            "is not JSON",
        ),
        (
            "frame: { jsonrpc: \"2.0\", id: 4711, result: {} }",
            "an answer to no request",
        ),
        (
            "frame: { jsonrpc: \"2.0\", id: null, error: { code: -32700, message: cannot read } }",
            "cannot read",
        ),
    ];
    for (step, words) in cases {
        let script = format!(
            "options: [{{ id: m, category: model, values: [fake-1] }}]\nprompts:\n  - match: odd\n    steps:\n      - {step}\n      - silent: until_cancelled\n  - match: even\n    steps: [say: hello]\n"
        );
        let theatre = Theatre::new(&script);
        let scene = theatre.scene().await;
        let error = scene.answer("odd").await.expect_err(step);
        assert!(
            matches!(&error, RuntimeError::Permanent { words: said } if said.contains(words)),
            "{error:?}"
        );
        assert_eq!(
            scene.answer("even").await.expect("an answer").text,
            "hello",
            "{step}"
        );
        scene.close().await;
        assert_eq!(theatre.received("session/cancel").len(), 1);
    }
}

#[tokio::test]
async fn v3_a_cancelled_turn_keeps_its_text_and_usage() {
    for on_cancel in [
        "obey",
        "{ stop: end_turn }",
        "{ error: { code: -32603, message: AbortError } }",
    ] {
        let theatre = Theatre::with(
            &format!("on_cancel: {on_cancel}"),
            "      - say: half\n      - usage: { used: 7, size: 9 }\n      - silent: until_cancelled",
        );
        let scene = theatre.scene().await;
        let message = scene.say("go").await;
        scene
            .until(|kind| matches!(kind, SessionEventKind::Usage { .. }))
            .await;
        scene.runtime.cancel(scene.id).await.expect("cancel");
        let answer = scene.end_of(&message).await.expect("an answer");
        assert_eq!(
            (answer.text.as_str(), answer.stop),
            ("half", StopReason::Cancelled),
            "{on_cancel}"
        );
        assert_eq!(answer.usage.context_used, Some(7), "V3: {on_cancel}");
        scene.close().await;
    }
}

#[tokio::test]
async fn a_cancel_that_is_ignored_ends_the_process_and_keeps_the_usage() {
    let mut theatre = Theatre::with(
        "on_cancel: ignore",
        "      - usage: { used: 7, size: 9 }\n      - silent: until_cancelled",
    );
    theatre.options.cancel_grace = Duration::from_millis(200);
    let scene = theatre.scene().await;
    let message = scene.say("go").await;
    scene
        .until(|kind| matches!(kind, SessionEventKind::Usage { .. }))
        .await;
    scene.runtime.cancel(scene.id).await.expect("cancel");
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(
        (answer.stop, answer.usage.context_used),
        (StopReason::Cancelled, Some(7))
    );
    scene.until(|kind| *kind == SessionEventKind::Ended).await;
    let error = scene
        .runtime
        .send(scene.id, &self::message("more"))
        .await
        .expect_err("lost");
    assert!(error.to_string().contains("did not stop within"), "{error}");
    assert!(!theatre.leaves_processes());
    scene.close().await;
}
