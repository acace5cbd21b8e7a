//! Turns: how they end, what comes late, what counts as the answer.

use super::*;

#[tokio::test]
async fn acp01_an_end_of_turn_with_nothing_said_and_nothing_done_is_no_success() {
    let nothing = StopReason::Other("nothing was said and no tool was used".to_owned());
    assert_eq!(told(&answer_of("empty-end").await), ("", &nothing));
    assert_eq!(told(&answer_of("quiet-work").await), ("", &StopReason::EndTurn));
    let error = failure_of("system-error").await;
    assert!(
        matches!(&error, RuntimeError::Temporary { words, .. } if words.contains("503 Service Unavailable")),
        "{error:?}"
    );
    let error = failure_of("own-error").await;
    assert!(
        matches!(&error, RuntimeError::Permanent { words } if words.contains("400 Bad Request")),
        "{error:?}"
    );
}

#[tokio::test]
async fn acp03_updates_that_are_unknown_or_broken_do_not_fail_the_turn() {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    let answer = scene.answer("unknown-updates").await.expect("an answer");
    assert_eq!(told(&answer), ("hello", &StopReason::EndTurn));
    let events = scene.leave_with_events(&theatre).await;
    for part in ["brand_new_kind", "`tool_call` without an identifier"] {
        assert!(
            events.iter().any(|kind| is_note(kind, part)),
            "{part}: {events:#?}"
        );
    }
}

#[tokio::test]
async fn acp04_a_stop_reason_that_is_unknown_or_missing_keeps_the_text_and_is_no_success() {
    for (rule, word) in [
        ("unknown-stop", "budget_exhausted"),
        ("no-stop", ""),
        ("null-answer", ""),
    ] {
        let stop = StopReason::Other(word.to_owned());
        assert_eq!(told(&answer_of(rule).await), ("hello", &stop), "{rule}");
    }
}

#[tokio::test]
async fn acp05_what_comes_after_the_answer_is_shown_and_is_not_the_next_turns() {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    assert_eq!(scene.answer("late-update").await.expect("an answer").text, "hel");
    let late = |kind: &SessionEventKind| matches!(kind, SessionEventKind::Text { text } if text == "lo");
    scene.until(late).await;
    assert_eq!(scene.answer("more").await.expect("an answer").text, "all is well");
    scene.leave(&theatre).await;
}

#[tokio::test]
async fn acp05_what_comes_while_the_session_is_being_closed_still_counts() {
    let update = "{ jsonrpc: \"2.0\", method: session/update, params: { sessionId: \"{{session}}\", update: { sessionUpdate: usage_update, used: 4711, size: 10000 } } }";
    let theatre = faulty(&format!("end: {{ last_frames: [{update}] }}"));
    let scene = theatre.scene().await;
    scene.answer("hello").await.expect("an answer");
    let events = scene.leave_with_events(&theatre).await;
    let used = |kind: &SessionEventKind| matches!(kind, SessionEventKind::Usage { usage } if usage.context_used == Some(4711));
    assert!(events.iter().any(used), "{events:#?}");
    assert_eq!(events.last(), Some(&SessionEventKind::Ended));
}

#[tokio::test]
async fn acp06_an_answer_never_overtakes_what_was_written_before_it() {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    for _ in 0..20 {
        assert_eq!(scene.answer("one-write").await.expect("an answer").text, "hello");
    }
    let events = scene.leave_with_events(&theatre).await;
    let mut order = String::new();
    for kind in &events {
        if matches!(kind, SessionEventKind::Text { .. }) {
            order.push('t');
        } else if matches!(kind, SessionEventKind::Answer { .. }) {
            order.push('a');
        }
    }
    assert_eq!(order, "ta".repeat(20));
}

#[tokio::test]
async fn acp14_a_second_answer_is_dropped_and_the_next_prompt_is_taken() {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    let answer = scene.answer("twice").await.expect("an answer");
    assert_eq!(told(&answer), ("hello", &StopReason::EndTurn));
    scene.until(|kind| is_note(kind, "a second answer")).await;

    let message = scene.say("cancel-doubled").await;
    let working =
        |kind: &SessionEventKind| matches!(kind, SessionEventKind::Text { text } if text == "working");
    scene.until(working).await;
    scene.runtime.cancel(scene.id).await.expect("cancel");
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(told(&answer), ("working", &StopReason::Cancelled));
    let answer = scene.answer("more").await.expect("an answer");
    assert_eq!(told(&answer), ("all is well", &StopReason::EndTurn));
    let events = scene.leave_with_events(&theatre).await;
    let dropped = events.iter().filter(|kind| is_note(kind, "a second answer"));
    assert_eq!(dropped.count(), 2);
}

#[tokio::test]
async fn acp25_usage_that_is_zero_null_or_missing_is_unknown() {
    let none = Usage::default();
    let cases = [
        ("      - say: x", none),
        ("      - answer: { stopReason: end_turn, usage: null }", none),
        (
            "      - answer: { stopReason: end_turn, usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 } }",
            none,
        ),
        (
            "      - answer: { stopReason: end_turn, usage: { inputTokens: many } }",
            none,
        ),
        (
            "      - answer: { stopReason: end_turn, _meta: { quota: { token_count: { input_tokens: 7, output_tokens: 2 } } } }",
            Usage {
                input_tokens: Some(7),
                output_tokens: Some(2),
                ..none
            },
        ),
        (
            "      - usage: { used: 5, size: 9 }\n      - say: x",
            Usage {
                context_used: Some(5),
                ..none
            },
        ),
        (
            "      - usage: { used: 5, size: 9, cost: { amount: 0.5 } }\n      - turn_usage: { input: 3, output: 1 }\n      - say: x",
            Usage {
                context_used: Some(5),
                cost_micros: Some(500_000),
                currency: Some(*b"USD"),
                input_tokens: Some(3),
                output_tokens: Some(1),
                ..none
            },
        ),
    ];
    for (steps, usage) in cases {
        let theatre = Theatre::playing(steps);
        let scene = theatre.scene().await;
        assert_eq!(
            scene.answer("go").await.expect("an answer").usage,
            usage,
            "{steps}"
        );
        scene.leave(&theatre).await;
    }
}

#[tokio::test]
async fn acp32_a_warning_said_before_the_answer_is_not_the_answer() {
    assert_eq!(
        told(&answer_of("warning-first").await),
        ("hello", &StopReason::EndTurn)
    );
}
