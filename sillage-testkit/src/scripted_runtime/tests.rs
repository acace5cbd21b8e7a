use futures_util::StreamExt;
use sillage_core::folders::Folders;
use sillage_core::ports::runtime::{Answer, PermissionPolicy, SessionEventKind, StopReason, Usage};
use uuid::Uuid;

use super::*;

fn request(permissions: PermissionPolicy) -> SessionRequest {
    SessionRequest {
        client_session_id: ClientSessionId(Uuid::new_v4()),
        model: "fast".to_owned(),
        effort: "low".to_owned(),
        workspace: "/w".into(),
        filesystem_scope: Folders::default(),
        protected: Default::default(),
        permissions,
        autocompact_tokens: None,
    }
}

fn message(text: &str) -> MessageRequest {
    MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: text.to_owned(),
    }
}

/// The events of the session until one ends a message or the session.
async fn until_end(runtime: &ScriptedRuntime, session: ClientSessionId, after: u64) -> Vec<SessionEvent> {
    let mut stream = runtime.events(session, after).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        let last = matches!(
            event.kind,
            SessionEventKind::Answer { .. } | SessionEventKind::Error { .. } | SessionEventKind::Ended
        );
        seen.push(event);
        if last {
            break;
        }
    }
    seen
}

fn answer_of(events: &[SessionEvent]) -> &Answer {
    let last = &events.last().unwrap().kind;
    let SessionEventKind::Answer { answer, .. } = last else {
        panic!("not an answer: {last:?}")
    };
    answer
}

#[tokio::test]
async fn a_table_answers_in_turn_and_repeats_its_last_reply() {
    let runtime = ScriptedRuntime::table([("ping", vec![Reply::text("one"), Reply::text("two")])]);
    let request = request(PermissionPolicy::Deny);
    let id = request.client_session_id;
    runtime.open(&request).await.unwrap();
    for (n, expected) in ["one", "two", "two"].iter().enumerate() {
        runtime.send(id, &message("ping?")).await.unwrap();
        assert_eq!(
            answer_of(&until_end(&runtime, id, n as u64).await).text,
            *expected
        );
    }
    runtime.send(id, &message("pong")).await.unwrap();
    let events = until_end(&runtime, id, 3).await;
    assert!(matches!(
        events[0].kind,
        SessionEventKind::Error {
            error: RuntimeError::Permanent { .. },
            message: Some(_)
        }
    ));
}

#[tokio::test]
async fn r5_a_lost_answer_of_open_or_send_starts_nothing_twice() {
    let mut left = 2;
    let runtime = ScriptedRuntime::new(|_| Reply::text("done")).with_faults(move |call| {
        let lose = matches!(call, Call::Open(_) | Call::Send(..)) && left > 0;
        left -= i32::from(lose);
        lose.then(|| {
            Fault::After(RuntimeError::Temporary {
                words: "connection reset".to_owned(),
                retry_after: None,
            })
        })
    });
    let request = request(PermissionPolicy::Deny);
    let id = request.client_session_id;
    let words = message("go");
    assert!(runtime.open(&request).await.is_err());
    assert!(runtime.send(id, &words).await.is_err());
    runtime.open(&request).await.unwrap();
    runtime.send(id, &words).await.unwrap();
    assert_eq!((runtime.starts(id), runtime.asked()), (1, 1));
    assert_eq!(until_end(&runtime, id, 0).await.len(), 1);
}

#[tokio::test]
async fn a_refused_message_may_be_sent_again() {
    let mut first = true;
    let runtime = ScriptedRuntime::new(move |_| match std::mem::take(&mut first) {
        true => Reply::Refuse(RuntimeError::Quota {
            words: "no more".to_owned(),
            resets_at: None,
        }),
        false => Reply::text("done"),
    });
    let request = request(PermissionPolicy::Deny);
    runtime.open(&request).await.unwrap();
    let words = message("go");
    let refused = runtime.send(request.client_session_id, &words).await;
    assert!(matches!(refused, Err(RuntimeError::Quota { .. })));
    runtime.send(request.client_session_id, &words).await.unwrap();
}

#[tokio::test]
async fn a_silent_message_is_answered_later_or_cancelled_with_the_usage_so_far() {
    let used = Usage {
        output_tokens: Some(7),
        ..Usage::default()
    };
    let runtime = ScriptedRuntime::new(|_| Reply::Silent);
    let request = request(PermissionPolicy::Deny);
    let id = request.client_session_id;
    runtime.open(&request).await.unwrap();
    runtime.send(id, &message("go")).await.unwrap();
    let answer = Answer {
        text: "late".to_owned(),
        stop: StopReason::EndTurn,
        usage: used,
    };
    assert!(runtime.answer(
        id,
        Reply::Answer {
            before: Vec::new(),
            answer
        }
    ));
    assert!(!runtime.answer(id, Reply::text("nobody waits")));
    runtime.send(id, &message("go on")).await.unwrap();
    runtime.cancel(id).await.unwrap();
    let events = until_end(&runtime, id, 1).await;
    assert_eq!(
        (answer_of(&events).stop.clone(), answer_of(&events).usage),
        (StopReason::Cancelled, used)
    );
}

#[tokio::test(start_paused = true)]
async fn a_later_reply_comes_by_the_clock_of_tokio() {
    let hour = Duration::from_secs(3600);
    let runtime = ScriptedRuntime::new(move |_| Reply::Later(hour, Box::new(Reply::text("slept"))));
    let request = request(PermissionPolicy::Deny);
    let started = tokio::time::Instant::now();
    runtime.open(&request).await.unwrap();
    runtime
        .send(request.client_session_id, &message("go"))
        .await
        .unwrap();
    assert_eq!(
        answer_of(&until_end(&runtime, request.client_session_id, 0).await).text,
        "slept"
    );
    assert_eq!(started.elapsed().as_secs(), 3600);
}

#[tokio::test]
async fn permission_follows_the_policy_or_the_person() {
    let runtime = ScriptedRuntime::new(|_| {
        Reply::permission(
            "p1",
            "write a.txt",
            Reply::text("written"),
            Reply::text("refused"),
        )
    });
    for (policy, expected) in [
        (PermissionPolicy::AllowInFolders, "written"),
        (PermissionPolicy::Deny, "refused"),
    ] {
        let request = request(policy);
        runtime.open(&request).await.unwrap();
        runtime
            .send(request.client_session_id, &message("go"))
            .await
            .unwrap();
        assert_eq!(
            answer_of(&until_end(&runtime, request.client_session_id, 0).await).text,
            expected
        );
    }
    let request = request(PermissionPolicy::Ask);
    let id = request.client_session_id;
    runtime.open(&request).await.unwrap();
    runtime.send(id, &message("go")).await.unwrap();
    assert!(runtime.answer_permission(id, "p1", "perhaps").await.is_err());
    assert!(runtime.answer_permission(id, "p2", "allow").await.is_err());
    runtime.answer_permission(id, "p1", "allow").await.unwrap();
    assert!(
        runtime.answer_permission(id, "p1", "allow").await.is_err(),
        "answered twice"
    );
    assert_eq!(answer_of(&until_end(&runtime, id, 0).await).text, "written");
}

#[tokio::test]
async fn a_lost_session_ends_its_message_and_is_not_found_again() {
    let runtime = ScriptedRuntime::new(|_| Reply::Silent);
    let request = request(PermissionPolicy::Deny);
    let id = request.client_session_id;
    runtime.open(&request).await.unwrap();
    let words = message("go");
    runtime.send(id, &words).await.unwrap();
    let stream = runtime.events(id, 0).await.unwrap();
    let found = runtime.find(&request, None, Some(&words)).await.unwrap();
    assert_eq!(found.in_flight, MessageFate::InHand);
    runtime.lose(id, "killed");
    let events: Vec<SessionEvent> = stream.collect().await;
    assert!(matches!(
        events[0].kind,
        SessionEventKind::Error { message: Some(id), error: RuntimeError::Lost { .. } } if id == words.client_message_id
    ));
    assert_eq!(events[1].kind, SessionEventKind::Ended);
    assert!(matches!(
        runtime.find(&request, None, Some(&words)).await,
        Err(RuntimeError::Lost { .. })
    ));
}

#[tokio::test]
async fn only_offered_models_and_efforts_open() {
    let offer = ModelOffer {
        agent: "a".to_owned(),
        model: "fast".to_owned(),
        efforts: vec!["low".to_owned()],
        account: "a".to_owned(),
    };
    let runtime = ScriptedRuntime::new(|_| Reply::Silent).offering(vec![offer]);
    let good = request(PermissionPolicy::Deny);
    assert_eq!(runtime.open(&good).await.unwrap().agent, "a");
    let bad_model = SessionRequest {
        model: "slow".to_owned(),
        ..request(PermissionPolicy::Deny)
    };
    let bad_effort = SessionRequest {
        effort: "huge".to_owned(),
        ..request(PermissionPolicy::Deny)
    };
    for bad in [bad_model, bad_effort] {
        assert!(matches!(
            runtime.open(&bad).await,
            Err(RuntimeError::Permanent { .. })
        ));
    }
}
