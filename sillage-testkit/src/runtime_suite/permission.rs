//! Permission requests: by a person, by the policy, by a cancel.

use sillage_core::ports::runtime::{
    MessageRequest, PermissionPolicy, RuntimeError, SessionEventKind, StopReason,
};

use super::{Act, Scene, Stage, ends, must};

/// A5: under `ask` a person decides, once, by one of the options.
pub async fn permission_is_answered_by_a_person(stage: &dyn Stage) {
    for (option, expected) in [("allow", "allowed"), ("reject", "refused")] {
        let scene = Scene::open(stage, PermissionPolicy::Ask).await;
        let message = scene.say(Act::Permission).await;
        let id = asked_permission(&scene).await;
        let wrong = [("no-such-request", option), (id.as_str(), "no-such-option")];
        for (id, option) in wrong {
            let outcome = scene.runtime.answer_permission(scene.id, id, option).await;
            assert!(
                matches!(outcome, Err(RuntimeError::Permanent { .. })),
                "{outcome:?}"
            );
        }
        must(
            scene.runtime.answer_permission(scene.id, &id, option).await,
            "answer",
        );
        let again = scene.runtime.answer_permission(scene.id, &id, option).await;
        assert!(
            matches!(again, Err(RuntimeError::Permanent { .. })),
            "answered twice: {again:?}"
        );
        assert_eq!(must(scene.end_of(&message).await.1, "the answer").text, expected);
        assert_eq!(
            how_answered(&scene, &message).await,
            (Some(option.to_owned()), "person".to_owned())
        );
        scene.close().await;
    }
}

async fn asked_permission(scene: &Scene) -> String {
    let events = scene
        .until(0, |kind| matches!(kind, SessionEventKind::Permission { .. }))
        .await;
    match events.last().map(|event| &event.kind) {
        Some(SessionEventKind::Permission { request }) => request.id.clone(),
        other => panic!("no permission request: {other:?}"),
    }
}

async fn how_answered(scene: &Scene, message: &MessageRequest) -> (Option<String>, String) {
    let events = scene.until(0, |kind| ends(kind, message.client_message_id)).await;
    for event in events {
        if let SessionEventKind::PermissionAnswered { option, by, .. } = event.kind {
            return (option, by);
        }
    }
    panic!("nobody is said to have answered the permission request")
}

/// R21: otherwise the policy decides.
pub async fn permission_is_answered_by_the_policy(stage: &dyn Stage) {
    let cases = [
        (PermissionPolicy::AllowInFolders, "allowed", "allow"),
        (PermissionPolicy::Deny, "refused", "reject"),
    ];
    for (policy, expected, option) in cases {
        let scene = Scene::open(stage, policy).await;
        let message = scene.say(Act::Permission).await;
        assert_eq!(must(scene.end_of(&message).await.1, "the answer").text, expected);
        assert_eq!(
            how_answered(&scene, &message).await,
            (Some(option.to_owned()), "policy".to_owned())
        );
        scene.close().await;
    }
}

/// A5: a cancel answers open permission requests, and an answer that comes later does nothing.
pub async fn cancelling_answers_open_permissions(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Ask).await;
    let message = scene.say(Act::Permission).await;
    let id = asked_permission(&scene).await;
    must(scene.runtime.cancel(scene.id).await, "cancel");
    let late = scene.runtime.answer_permission(scene.id, &id, "allow").await;
    assert!(
        matches!(late, Err(RuntimeError::Permanent { .. })),
        "a late answer counts: {late:?}"
    );
    let answer = must(scene.end_of(&message).await.1, "the end of a cancelled message");
    assert_eq!(answer.stop, StopReason::Cancelled);
    assert_eq!(how_answered(&scene, &message).await, (None, "cancel".to_owned()));
    scene.close().await;
}
