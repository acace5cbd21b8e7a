//! How sessions open and come back.

use sillage_core::ports::runtime::{FoundSession, MessageFate};

use super::*;

#[tokio::test]
async fn acp07_updates_before_the_sessions_identifier_are_kept_for_it() {
    let update = |session: &str, text: &str| {
        format!(
            "{{ jsonrpc: \"2.0\", method: session/update, params: {{ sessionId: \"{session}\", update: {{ sessionUpdate: agent_message_chunk, content: {{ type: text, text: {text} }} }} }} }}"
        )
    };
    let (early, other) = (update("{{session}}", "early"), update("another", "foreign"));
    let theatre = faulty(&format!(
        "methods: {{ session/new: {{ before: [{early}, {other}] }} }}"
    ));
    let scene = theatre.scene().await;
    assert_eq!(
        scene.answer("hello").await.expect("an answer").text,
        "all is well"
    );
    let events = scene.leave_with_events(&theatre).await;
    let mut texts = Vec::new();
    for kind in &events {
        if let SessionEventKind::Text { text } = kind {
            texts.push(text.as_str());
        }
    }
    assert_eq!(texts, ["early", "all is well"]);
    theatre.check_agent();
}

/// A session whose engine goes in the middle of an answer, and what the next engine finds of it.
async fn found_again(theatre: &Theatre) -> (AcpRuntime, SessionRequest, Result<FoundSession, RuntimeError>) {
    let request = theatre.request(PermissionPolicy::Deny);
    let runtime = theatre.runtime();
    let opened = runtime.open(&request).await.expect("open");
    let scene = Scene {
        runtime,
        id: request.client_session_id,
        request: request.clone(),
    };
    let sent = scene.say("cancel-obeyed").await;
    scene
        .until(|kind| matches!(kind, SessionEventKind::Text { .. }))
        .await;
    drop(scene);
    let runtime = theatre.runtime();
    let found = within(runtime.find(&request, opened.native.as_deref(), Some(&sent))).await;
    (runtime, request, found)
}

#[tokio::test]
async fn acp08_a_replay_is_no_news_and_its_result_may_be_null() {
    for result in ["{}", "null"] {
        let head = format!("sessions: sessions\nmethods: {{ session/load: {{ result: {result} }} }}");
        let theatre = faulty(&head);
        let (runtime, request, found) = found_again(&theatre).await;
        let found = found.expect("found");
        assert_eq!(found.in_flight, MessageFate::Replayed("working".to_owned()));
        let scene = Scene {
            runtime,
            id: request.client_session_id,
            request,
        };
        assert_eq!(scene.answer("more").await.expect("an answer").text, "all is well");
        let events = scene.leave_with_events(&theatre).await;
        let again =
            |kind: &SessionEventKind| matches!(kind, SessionEventKind::Text { text } if text == "working");
        assert!(
            !events.iter().any(again),
            "the replay is told as news: {events:#?}"
        );
    }
}

#[tokio::test]
async fn acp09_a_load_that_always_fails_is_tried_as_a_resume_and_else_the_session_is_lost() {
    let error =
        "error: { code: -32603, message: Internal error, data: { details: \"Invalid session identifier\" } }";
    let theatre = faulty(&format!(
        "sessions: sessions\nmethods: {{ session/load: {{ {error} }} }}"
    ));
    let (runtime, request, found) = found_again(&theatre).await;
    assert_eq!(found.expect("resumed").in_flight, MessageFate::Unknown);
    within(runtime.close(request.client_session_id))
        .await
        .expect("close");
    theatre.check_frames();

    let theatre = faulty(&format!(
        "sessions: sessions\nagent: {{ resume: false }}\nmethods: {{ session/load: {{ {error} }} }}"
    ));
    let (_, _, lost) = found_again(&theatre).await;
    assert!(
        matches!(&lost, Err(RuntimeError::Lost { words }) if words.contains("Invalid session identifier")),
        "{lost:?}"
    );
    assert!(!theatre.leaves_processes());
}

async fn opens(theatre: &Theatre) -> Result<(), RuntimeError> {
    let (runtime, request) = (theatre.runtime(), theatre.request(PermissionPolicy::Deny));
    within(runtime.open(&request)).await?;
    within(runtime.close(request.client_session_id)).await
}

#[tokio::test]
async fn acp19_only_a_permitted_sign_in_is_tried_and_only_once() {
    // What the agent offers, what the settings permit, what the error says, how often it is tried.
    let cases = [
        (
            "{ methods: [browser, key] }",
            None,
            Some("it offers: browser, key"),
            0,
        ),
        ("{ methods: [browser, key] }", Some("key"), None, 1),
        (
            "{ methods: [browser] }",
            Some("key"),
            Some("does not offer the `signIn` of its settings, `key`"),
            0,
        ),
        (
            "{ methods: [key], in_vain: true }",
            Some("key"),
            Some("still wants one after a sign-in by `key`"),
            1,
        ),
        ("{ methods: [] }", None, Some("it offers: none"), 0),
    ];
    for (auth, permitted, error, times) in cases {
        let mut theatre = faulty(&format!("auth: {auth}"));
        theatre.agent.sign_in = permitted.map(str::to_owned);
        let opened = opens(&theatre).await;
        match (opened, error) {
            (Ok(()), None) => {}
            (Err(RuntimeError::SignIn { words }), Some(part)) => assert!(words.contains(part), "{words}"),
            (other, _) => panic!("{auth}: {other:?}"),
        }
        let tried = theatre.received("authenticate");
        assert_eq!(tried.len(), times, "{auth}");
        assert!(tried.iter().all(|params| params["methodId"] == "key"));
        theatre.check_frames();
        assert!(!theatre.leaves_processes());
    }
    let mut theatre = faulty(
        "auth: { methods: [key] }\nmethods: { authenticate: { error: { code: -32603, message: key revoked } } }",
    );
    theatre.agent.sign_in = Some("key".to_owned());
    let refused = opens(&theatre).await;
    assert!(
        matches!(&refused, Err(RuntimeError::SignIn { words }) if words.contains("`key` failed: key revoked")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn acp19_a_sign_in_that_is_wanted_in_the_middle_is_told_and_the_session_kept() {
    let error = failure_of("sign-in").await;
    assert!(matches!(error, RuntimeError::SignIn { .. }), "{error:?}");
}

#[tokio::test]
async fn acp21_files_and_terminals_are_not_offered() {
    let theatre = faulty("");
    let scene = theatre.scene().await;
    scene.leave(&theatre).await;
    let params = &theatre.received("initialize")[0];
    assert_eq!(params["protocolVersion"], 1);
    let can = &params["clientCapabilities"];
    for offered in [
        &can["fs"]["readTextFile"],
        &can["fs"]["writeTextFile"],
        &can["terminal"],
    ] {
        assert_ne!(offered, true, "{params}");
    }
}

#[tokio::test]
async fn acp22_a_model_is_chosen_by_whichever_way_the_agent_has() {
    let ways = [
        (
            "options: [{ id: x, category: model, values: [other, fake-1] }]",
            None,
        ),
        ("models: { available: [other, fake-1] }", None),
        // The list is shown and its method not known: the arguments are the last way.
        (
            "models: { available: [other, fake-1] }\nmethods: { session/set_model: { error: { code: -32601, message: Method not found } } }",
            Some(("MODEL", "{model}")),
        ),
        ("{}", Some(("MODEL", "{model}"))),
    ];
    for (script, variable) in ways {
        let mut theatre = Theatre::new(script);
        theatre.agent.env = variable
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        opens(&theatre)
            .await
            .unwrap_or_else(|error| panic!("{script}: {error}"));
        theatre.agent.env.clear();
        if variable.is_some() {
            let refused = opens(&theatre).await;
            assert!(
                matches!(&refused, Err(RuntimeError::Permanent { words }) if words.contains("offers no way to choose its model")),
                "{script}: {refused:?}"
            );
        }
    }
}

#[tokio::test]
async fn acp23_another_version_of_the_protocol_is_refused() {
    for version in ["0", "2"] {
        let theatre = faulty(&format!("agent: {{ protocol: {version} }}"));
        let refused = opens(&theatre).await;
        let words = format!("speaks version {version} of ACP");
        assert!(
            matches!(&refused, Err(RuntimeError::Permanent { words: told }) if told.contains(&words)),
            "{refused:?}"
        );
        assert!(theatre.received("session/new").is_empty());
        theatre.check_frames();
    }
}

#[tokio::test]
async fn acp24_the_list_of_mcp_servers_is_always_there() {
    for (head, method) in [("", "session/load"), ("agent: { load: false }", "session/resume")] {
        let theatre = faulty(&format!("sessions: sessions\n{head}"));
        let (runtime, request, found) = found_again(&theatre).await;
        found.expect("found");
        within(runtime.close(request.client_session_id))
            .await
            .expect("close");
        for method in ["session/new", method] {
            let sent = theatre.received(method);
            assert_eq!(sent.len(), 1, "{method}");
            assert!(sent[0]["mcpServers"].is_array(), "{method}: {}", sent[0]);
        }
    }
}
