//! Sessions that an earlier engine held (R12).

use serde_json::json;
use sillage_core::ports::runtime::{FoundSession, MessageFate};

use super::*;

/// A session whose agent dies in the middle of an answer, and what a new engine finds of it.
async fn found(head: &str, in_flight: bool) -> (Theatre, Result<FoundSession, RuntimeError>) {
    let script = format!(
        "options: [{{ id: m, category: model, values: [other, fake-1] }}]\n{head}\nprompts:\n  - {{ match: long, steps: [say: half, touch: said, silent: until_cancelled] }}\n  - {{ match: more, steps: [say: hello] }}\n"
    );
    let theatre = Theatre::new(&script);
    let runtime = theatre.runtime();
    let request = theatre.request(PermissionPolicy::Deny);
    let opened = runtime.open(&request).await.expect("open");
    let sent = message("a long story");
    runtime
        .send(request.client_session_id, &sent)
        .await
        .expect("send");
    eventually("half is said", || theatre.folder.path().join("said").exists()).await;
    drop(runtime);
    let runtime = theatre.runtime();
    let message = in_flight.then_some(&sent);
    let found = within(runtime.find(&request, opened.native.as_deref(), message)).await;
    if found.is_ok() {
        let more = self::message("more");
        runtime
            .send(request.client_session_id, &more)
            .await
            .expect("send");
        let scene = Scene {
            runtime,
            id: request.client_session_id,
            request,
        };
        assert_eq!(scene.end_of(&more).await.expect("an answer").text, "hello");
        scene.close().await;
    }
    theatre.check_frames();
    (theatre, found)
}

fn fate(found: Result<FoundSession, RuntimeError>) -> MessageFate {
    let found = found.expect("found");
    assert!(found.restarted);
    found.in_flight
}

#[tokio::test]
async fn r12_loading_tells_what_was_answered() {
    let (theatre, found) = found("sessions: sessions", true).await;
    assert_eq!(fate(found), MessageFate::Replayed("half".to_owned()));
    assert_eq!(
        (
            theatre.received("session/load").len(),
            theatre.received("session/resume").len()
        ),
        (1, 0)
    );
}

#[tokio::test]
async fn r12_without_a_message_in_flight_a_session_is_resumed() {
    let (theatre, found) = found("sessions: sessions", false).await;
    assert_eq!(fate(found), MessageFate::None);
    assert_eq!(
        (
            theatre.received("session/load").len(),
            theatre.received("session/resume").len()
        ),
        (0, 1)
    );
}

#[tokio::test]
async fn r12_an_agent_that_only_resumes_does_not_say() {
    let (_, found) = found("sessions: sessions\nagent: { load: false }", true).await;
    assert_eq!(fate(found), MessageFate::Unknown);
}

/// As Gemini CLI does it: it answers first, and repeats the conversation after.
#[tokio::test]
async fn r12_a_conversation_that_is_repeated_after_the_answer_is_heard_out() {
    let piece = |kind: &str, text: &str| {
        let update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
        let params = json!({ "sessionId": "{{session}}", "update": update });
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
    };
    let late = json!([
        piece("user_message_chunk", "a long story"),
        piece("agent_message_chunk", "late")
    ]);
    let head = format!(
        "sessions: {{ folder: sessions, keep: when_answered }}\nagent: {{ resume: false }}\nmethods: {{ session/load: {{ after: {late} }} }}"
    );
    let (_, found) = found(&head, true).await;
    assert_eq!(fate(found), MessageFate::Replayed("late".to_owned()));
}

#[tokio::test]
async fn r12_what_cannot_be_brought_back_is_lost() {
    let (_, missing) = found("", true).await;
    assert!(matches!(missing, Err(RuntimeError::Lost { .. })), "{missing:?}");
    let head = "sessions: sessions\nagent: { resume: false }\nmethods: { session/load: { error: { code: -32002, message: Resource not found } } }";
    let (_, found) = found(head, true).await;
    let Err(RuntimeError::Lost { words }) = found else {
        panic!("{found:?}")
    };
    assert!(words.contains("Resource not found"), "{words}");
}

#[tokio::test]
async fn r6_a_passing_failure_does_not_lose_the_session() {
    let head = "sessions: sessions\nmethods: { session/load: { error: { code: 503, message: try later } } }";
    let (_, found) = found(head, true).await;
    assert!(matches!(found, Err(RuntimeError::Temporary { .. })), "{found:?}");
}

#[tokio::test]
async fn r12_a_session_whose_process_died_is_brought_back_by_the_same_engine() {
    let script = "options: [{ id: m, category: model, values: [fake-1] }]\nsessions: sessions\nprompts: [{ match: die, steps: [say: half, crash] }, { match: more, steps: [say: hello] }]";
    let theatre = Theatre::new(script);
    let runtime = theatre.runtime();
    let request = theatre.request(PermissionPolicy::Deny);
    let native = runtime.open(&request).await.expect("open").native;
    let scene = Scene {
        runtime,
        id: request.client_session_id,
        request: request.clone(),
    };
    let sent = scene.say("die").await;
    assert!(matches!(
        scene.end_of(&sent).await,
        Err(RuntimeError::Lost { .. })
    ));
    let found = within(scene.runtime.find(&request, native.as_deref(), Some(&sent))).await;
    assert_eq!(fate(found), MessageFate::Replayed("half".to_owned()));
    assert_eq!(scene.answer("more").await.expect("an answer").text, "hello");
    scene.close().await;
}
