//! More than anybody wants to read, and agents that do not read (C1, C3, C4, C11).

use super::*;

#[tokio::test]
async fn c1_a_line_that_never_ends_is_told_when_the_agent_goes() {
    let theatre = Theatre::playing(
        "      - raw: { text: xxxxxxxxxx, times: 1000000, newline: false }\n      - exit: 5",
    );
    let scene = theatre.scene().await;
    let error = scene.answer("go").await.expect_err("it ends");
    assert!(
        matches!(&error, RuntimeError::Lost { words } if words.contains("exit status: 5")),
        "{error:?}"
    );
    let events = scene.until(|kind| *kind == SessionEventKind::Ended).await;
    assert!(
        events
            .iter()
            .any(|event| is_note(&event.kind, "a line without an end: xxx"))
    );
    scene.leave(&theatre).await;
}

#[tokio::test]
async fn c1_a_line_beyond_the_limit_does_not_hold_up_a_cancel() {
    let mut theatre = faulty("");
    theatre.options.cancel_grace = Duration::from_secs(5);
    let scene = theatre.scene().await;
    let message = scene.say("endless-line").await;
    let working =
        |kind: &SessionEventKind| matches!(kind, SessionEventKind::Text { text } if text == "working");
    scene.until(working).await;
    scene.runtime.cancel(scene.id).await.expect("cancel");
    // Its own end may come on the line that has none, and is lost with it.
    let ended = scene.end_of(&message).await;
    assert!(
        matches!(&ended, Ok(answer) if answer.stop == StopReason::Cancelled),
        "{ended:?}"
    );
    scene.leave(&theatre).await;
}

#[tokio::test]
async fn c3_a_flood_on_standard_error_holds_nobody_up() {
    assert_eq!(
        told(&answer_of("stderr-flood").await),
        ("hello", &StopReason::EndTurn)
    );
}

#[tokio::test]
async fn c4_an_agent_that_does_not_read_is_ended_after_the_write_deadline() {
    let mut theatre = faulty("");
    theatre.options.write_deadline = Duration::from_millis(300);
    let scene = theatre.scene().await;
    assert_eq!(scene.answer("deaf").await.expect("an answer").text, "hello");
    // More than the pipe and the agent's own buffer hold.
    let error = scene
        .answer(&"x".repeat(8 << 20))
        .await
        .expect_err("it does not read");
    assert!(
        matches!(&error, RuntimeError::Lost { words } if words.contains("does not read its standard input")),
        "{error:?}"
    );
    scene.until(|kind| *kind == SessionEventKind::Ended).await;
    assert!(!theatre.leaves_processes());
    scene.leave(&theatre).await;
}

#[tokio::test]
async fn c11_a_flood_of_notifications_changes_nothing() {
    for rule in ["tick-storm", "chatter-without-end"] {
        let mut theatre = faulty("");
        theatre.options.chatter_budget = 64 << 10;
        let scene = theatre.scene().await;
        assert_eq!(
            told(&scene.answer(rule).await.expect("an answer")),
            ("hello", &StopReason::EndTurn)
        );
        scene.leave(&theatre).await;
    }
}

#[tokio::test]
async fn c11_an_answer_to_nothing_is_an_error_of_the_session_that_goes_on() {
    let error = failure_of("stray-answer").await;
    assert!(
        matches!(&error, RuntimeError::Permanent { words } if words.contains("an answer to no request")),
        "{error:?}"
    );
}
