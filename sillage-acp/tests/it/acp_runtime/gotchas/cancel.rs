//! Cancellations, and agents that fall silent.

use super::*;

fn working(kind: &SessionEventKind) -> bool {
    matches!(kind, SessionEventKind::Text { text } if text == "working")
}

#[tokio::test]
async fn acp12_a_cancel_answers_open_permissions_and_a_late_answer_permits_nothing() {
    let theatre = faulty("");
    let scene = theatre.scene_of(theatre.request(PermissionPolicy::Ask)).await;
    let message = scene.say("patient-permission").await;
    let asked = scene
        .until(|kind| matches!(kind, SessionEventKind::Permission { .. }))
        .await;
    let Some(SessionEventKind::Permission { request }) = asked.last().map(|event| &event.kind) else {
        panic!("{asked:?}")
    };
    scene.runtime.cancel(scene.id).await.expect("cancel");
    let late = scene
        .runtime
        .answer_permission(scene.id, &request.id, "allow")
        .await;
    assert!(matches!(late, Err(RuntimeError::Permanent { .. })), "{late:?}");
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(told(&answer), ("", &StopReason::Cancelled));
    let events = scene.leave_with_events(&theatre).await;
    let answered: Vec<&SessionEventKind> = events
        .iter()
        .filter(|kind| matches!(kind, SessionEventKind::PermissionAnswered { .. }))
        .collect();
    let cancelled = SessionEventKind::PermissionAnswered {
        id: request.id.clone(),
        option: None,
        by: "cancel".to_owned(),
    };
    assert_eq!(answered, [&cancelled]);
    let outcomes: Vec<Value> = frames(&theatre.record())
        .into_iter()
        .filter(|(side, frame)| *side == Side::Client && frame["result"]["outcome"].is_object())
        .map(|(_, frame)| frame["result"]["outcome"].clone())
        .collect();
    assert_eq!(outcomes, [serde_json::json!({"outcome": "cancelled"})]);
    theatre.check_agent();
}

#[tokio::test]
async fn acp13_whether_it_was_cancelled_is_what_we_know() {
    for rule in ["cancel-obeyed", "cancel-ends-turn", "cancel-fails"] {
        let theatre = faulty("");
        let scene = theatre.scene().await;
        let message = scene.say(rule).await;
        scene.until(working).await;
        scene.runtime.cancel(scene.id).await.expect("cancel");
        let answer = scene.end_of(&message).await.expect("an answer");
        assert_eq!(told(&answer), ("working", &StopReason::Cancelled), "{rule}");
        scene.leave(&theatre).await;
    }
}

#[tokio::test]
async fn acp13_a_cancel_that_is_ignored_ends_the_agent() {
    let mut theatre = faulty("");
    theatre.options.cancel_grace = Duration::from_millis(200);
    let scene = theatre.scene().await;
    let message = scene.say("hang").await;
    scene.until(working).await;
    scene.runtime.cancel(scene.id).await.expect("cancel");
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(told(&answer), ("working", &StopReason::Cancelled));
    scene.until(|kind| *kind == SessionEventKind::Ended).await;
    assert!(!theatre.leaves_processes());
    let lost = scene.runtime.send(scene.id, &self::message("more")).await;
    assert!(
        matches!(&lost, Err(RuntimeError::Lost { words }) if words.contains("did not stop within 200ms")),
        "{lost:?}"
    );
    scene.leave(&theatre).await;
}

fn assert_silent(error: &RuntimeError) {
    assert!(
        matches!(error, RuntimeError::Temporary { words, retry_after: None } if words.contains("was silent for")),
        "{error:?}"
    );
}

#[tokio::test]
async fn acp16_r11_an_agent_that_falls_silent_is_cancelled_and_may_be_asked_again() {
    let mut theatre = faulty("");
    theatre.options.silent_after = Duration::from_millis(300);
    let scene = theatre.scene().await;
    let error = scene.answer("falls-silent").await.expect_err("silent");
    assert_silent(&error);
    assert_eq!(scene.answer("more").await.expect("an answer").text, "all is well");
    let events = scene.leave_with_events(&theatre).await;
    assert_eq!(states(&events, "t1"), ["completed"]);
    assert_eq!(theatre.received("session/cancel").len(), 1);
}

#[tokio::test]
async fn acp16_r11_a_silent_agent_that_does_not_obey_is_ended() {
    let mut theatre = faulty("");
    theatre.options.silent_after = Duration::from_millis(300);
    theatre.options.cancel_grace = Duration::from_millis(200);
    let scene = theatre.scene().await;
    assert_silent(&scene.answer("hang").await.expect_err("silent"));
    scene.until(|kind| *kind == SessionEventKind::Ended).await;
    assert!(!theatre.leaves_processes());
    scene.leave(&theatre).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn acp16_r11_an_agent_with_a_busy_child_is_not_silent() {
    let mut theatre = faulty("");
    // The child is busy for between two and three seconds.
    theatre.options.silent_after = Duration::from_millis(800);
    let scene = theatre.scene().await;
    let answer = scene.answer("busy-child").await.expect("it is waited for");
    assert_eq!(told(&answer), ("hello", &StopReason::EndTurn));
    scene.leave(&theatre).await;
}

#[tokio::test]
async fn acp16_r11_an_agent_that_goes_on_talking_is_not_silent() {
    let mut theatre =
        Theatre::playing("      - say: { text: abcdefghijklmnopqrstuvwxyz, chunks: 26, delay_ms: 100 }");
    theatre.options.silent_after = Duration::from_millis(1500);
    let scene = theatre.scene().await;
    let answer = scene.answer("go").await.expect("it is heard");
    assert_eq!(
        told(&answer),
        ("abcdefghijklmnopqrstuvwxyz", &StopReason::EndTurn)
    );
    scene.leave(&theatre).await;
}

#[tokio::test]
async fn acp16_r11_an_agent_that_waits_for_a_person_is_not_silent() {
    let mut theatre = faulty("");
    theatre.options.silent_after = Duration::from_millis(300);
    let scene = theatre.scene_of(theatre.request(PermissionPolicy::Ask)).await;
    let message = scene.say("patient-permission").await;
    scene
        .until(|kind| matches!(kind, SessionEventKind::Permission { .. }))
        .await;
    // Another agent's work measures the time that the person takes.
    let clock = Theatre::playing("      - wait: 1200\n      - say: done");
    let other = clock.scene().await;
    other.answer("go").await.expect("an answer");
    other.leave(&clock).await;
    let answered = scene.runtime.answer_permission(scene.id, "p1", "allow").await;
    answered.expect("it is still open");
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(told(&answer), ("allowed", &StopReason::EndTurn));
    scene.leave(&theatre).await;
}
