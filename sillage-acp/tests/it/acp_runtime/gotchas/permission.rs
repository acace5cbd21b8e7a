//! Permissions and other requests of the agent.

use super::*;

#[tokio::test]
async fn acp10_tool_calls_that_were_never_announced_begin_with_what_comes_and_end_with_the_turn() {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    assert_eq!(
        scene.answer("update-first").await.expect("an answer").text,
        "hello"
    );
    let answer = scene.answer("unannounced-permission").await.expect("an answer");
    assert_eq!(answer.text, "allow");
    let refused = scene.answer("bare-permission").await.expect("an answer");
    assert_eq!(refused.text, "reject");
    let events = scene.leave_with_events(&theatre).await;
    assert_eq!(states(&events, "t9"), ["completed"]);
    assert_eq!(states(&events, "t10"), ["in_progress", "unfinished"]);
    assert_eq!(states(&events, "t5"), ["pending", "unfinished"]);
    let open = events
        .iter()
        .filter(|kind| matches!(kind, SessionEventKind::Tool { status, .. } if status == "unfinished"));
    assert_eq!(open.count(), 3, "{events:#?}");
}

#[tokio::test]
async fn acp10_an_agent_that_is_ended_leaves_no_tool_call_open() {
    let mut theatre = Theatre::with(
        "on_cancel: ignore",
        "      - tool: { id: t1, title: work, kind: think, status: in_progress }\n      - silent: for_ever",
    );
    theatre.options.cancel_grace = Duration::from_millis(100);
    let scene = theatre.scene().await;
    scene.say("go").await;
    scene
        .until(|kind| matches!(kind, SessionEventKind::Tool { .. }))
        .await;
    scene.runtime.cancel(scene.id).await.expect("cancel");
    let events = scene.until(|kind| *kind == SessionEventKind::Ended).await;
    let events: Vec<SessionEventKind> = events.into_iter().map(|event| event.kind).collect();
    assert_eq!(states(&events, "t1"), ["in_progress", "unfinished"]);
    scene.leave(&theatre).await;
}

#[tokio::test]
async fn acp11_a_refusal_that_ends_the_turn_is_told_as_such_and_not_as_our_cancel() {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    let answer = scene.answer("refusal-aborts").await.expect("an answer");
    let rejected = |who: &str| {
        StopReason::Other(format!(
            "cancelled by the agent: its request was rejected by {who}"
        ))
    };
    assert_eq!(told(&answer), ("", &rejected("policy")));
    // Later turns know nothing of it.
    assert_eq!(
        scene.answer("more").await.expect("an answer").stop,
        StopReason::EndTurn
    );
    scene.leave(&theatre).await;
    assert_eq!(theatre.received("session/cancel").len(), 0);

    let scene = theatre.scene_of(theatre.request(PermissionPolicy::Ask)).await;
    let message = scene.say("refusal-aborts").await;
    scene
        .until(|kind| matches!(kind, SessionEventKind::Permission { .. }))
        .await;
    let answered = scene.runtime.answer_permission(scene.id, "p1", "cancel").await;
    answered.expect("it is open");
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(told(&answer), ("", &rejected("a person")));
    scene.leave(&theatre).await;
    theatre.check_agent();
}

#[tokio::test]
async fn acp20_c12_what_is_not_offered_is_refused_with_a_reason_and_told() {
    for (rule, method, reason) in [
        ("unasked-fs", "fs/write_text_file", "use your own tools on files"),
        (
            "unasked-terminal",
            "terminal/create",
            "run commands with your own tools",
        ),
    ] {
        let theatre = faulty("");
        let scene = theatre.scene().await;
        let answer = scene.answer(rule).await.expect("it goes on");
        assert_eq!(answer.stop, StopReason::EndTurn);
        let error: Value = serde_json::from_str(&answer.text).expect("an error");
        assert_eq!(error["code"], -32601);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|told| told.contains(reason)),
            "{error}"
        );
        assert_eq!(written(theatre.folder.path(), "unasked.txt"), None);
        let events = scene.leave_with_events(&theatre).await;
        let noted = events
            .iter()
            .any(|kind| is_note(kind, method) && is_note(kind, reason));
        assert!(noted, "{events:#?}");
    }
}

#[tokio::test]
async fn acp31_a_bare_permission_is_decided_from_what_was_announced_and_refused_when_nothing_was() {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    for (rule, option) in [
        ("remembered-permission", "allow"),
        ("bare-permission", "reject"),
        ("remembered-permission", "allow"),
    ] {
        assert_eq!(
            scene.answer(rule).await.expect("an answer").text,
            option,
            "{rule}"
        );
    }
    scene.leave(&theatre).await;
}

#[tokio::test]
async fn c13_a_permission_asked_before_a_crash_is_not_granted_after_it() {
    let theatre = faulty("sessions: sessions");
    let request = theatre.request(PermissionPolicy::Ask);
    let runtime = theatre.runtime();
    let opened = runtime.open(&request).await.expect("open");
    let scene = Scene {
        runtime,
        id: request.client_session_id,
        request: request.clone(),
    };
    scene.say("patient-permission").await;
    scene
        .until(|kind| matches!(kind, SessionEventKind::Permission { .. }))
        .await;
    drop(scene);
    let runtime = theatre.runtime();
    within(runtime.find(&request, opened.native.as_deref(), None))
        .await
        .expect("found");
    let late = runtime
        .answer_permission(request.client_session_id, "p1", "allow")
        .await;
    assert!(matches!(late, Err(RuntimeError::Permanent { .. })), "{late:?}");
    within(runtime.close(request.client_session_id))
        .await
        .expect("close");
    theatre.check_frames();
    let granted = frames(&theatre.record())
        .into_iter()
        .any(|(side, frame)| side == Side::Client && frame["result"]["outcome"]["outcome"] == "selected");
    assert!(!granted);
}
