//! Finding sessions again.

use sillage_core::ports::runtime::{MessageFate, PermissionPolicy};

use super::{Act, Scene, Stage, is_lost, message, must};

/// R12: a live session is found as it is.
pub async fn finding_tells_what_became_of_a_message(stage: &dyn Stage) {
    let scene = Scene::open(stage, PermissionPolicy::Deny).await;
    let opened = must(scene.runtime.open(&scene.request).await, "open again");
    let silent = scene.say(Act::Silence).await;
    let never = message(Act::Answer);
    for (in_flight, fate) in [
        (None, MessageFate::None),
        (Some(&silent), MessageFate::InHand),
        (Some(&never), MessageFate::NotReceived),
    ] {
        let found = scene
            .runtime
            .find(&scene.request, opened.native.as_deref(), in_flight)
            .await;
        let found = must(found, "find");
        assert_eq!(
            (found.opened, found.restarted, found.in_flight),
            (opened.clone(), false, fate)
        );
    }
    must(scene.runtime.cancel(scene.id).await, "cancel");
    must(scene.end_of(&silent).await.1, "the end of a cancelled message");
    let unknown = stage.request(PermissionPolicy::Deny);
    assert!(
        is_lost(&scene.runtime.find(&unknown, None, None).await),
        "an unknown session is found"
    );
    scene.close().await;
}

/// R12: after a restart of the engine a session is brought back, and the message that was answered meanwhile is not
/// said to be missing, nor one that was never sent to have arrived.
pub async fn finding_after_a_restart_asks_nothing_twice(stage: &dyn Stage) {
    for sent in [true, false] {
        let scene = Scene::open(stage, PermissionPolicy::Deny).await;
        let opened = must(scene.runtime.open(&scene.request).await, "open again");
        scene.answer_to(Act::Answer).await;
        let last = message(Act::Answer);
        if sent {
            must(scene.runtime.send(scene.id, &last).await, "send");
            must(scene.end_of(&last).await.1, "the answer");
        }
        let Scene { runtime, request, id } = scene;
        let runtime = stage.restart(runtime).await;
        let found = must(
            runtime
                .find(&request, opened.native.as_deref(), Some(&last))
                .await,
            "find",
        );
        assert_eq!(found.opened.agent, opened.agent);
        let right = match &found.in_flight {
            MessageFate::Unknown => true,
            MessageFate::InHand => sent && !found.restarted,
            // A replay may leave out the tool calls between the pieces.
            MessageFate::Replayed(text) => sent && text.ends_with("the answer"),
            MessageFate::NotReceived => !sent,
            MessageFate::None => false,
        };
        assert!(right, "sent: {sent}, found: {:?}", found.in_flight);
        let scene = Scene { runtime, request, id };
        assert_eq!(scene.answer_to(Act::Answer).await.text, "the answer");
        assert_eq!(stage.times_asked(&last.text), usize::from(sent));
        scene.close().await;
    }
}
