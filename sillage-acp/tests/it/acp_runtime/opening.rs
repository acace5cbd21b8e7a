//! How sessions open, and how they do not.

use super::*;

async fn refused(theatre: &Theatre) -> RuntimeError {
    let runtime = theatre.runtime();
    let request = theatre.request(PermissionPolicy::Deny);
    let error = within(runtime.open(&request)).await.expect_err("it opens");
    assert!(!theatre.leaves_processes(), "a process is left");
    let again = runtime.events(request.client_session_id, 0).await.map(|_| ());
    assert!(
        matches!(again, Err(RuntimeError::Lost { .. })),
        "a session that did not open is known"
    );
    error
}

#[tokio::test]
async fn p4_an_agent_that_exits_at_start_is_quoted() {
    let theatre = Theatre::new("start: { stderr: \"fatal: no api key\\n\", exit: 3 }");
    let error = refused(&theatre).await;
    let words = "agent `scripted` ended by itself before it answered `initialize` (exit status: 3); \
                 its last words: fatal: no api key";
    assert_eq!(
        error,
        RuntimeError::Permanent {
            words: words.to_owned()
        }
    );
}

#[tokio::test]
async fn p5_a_slow_start_is_no_failure() {
    let mut theatre = Theatre::with("start: { delay_ms: 600 }", "      - say: hello");
    theatre.options.start_timeout = Duration::from_secs(20);
    let scene = theatre.scene().await;
    assert_eq!(scene.answer("go").await.expect("an answer").text, "hello");
    scene.close().await;
}

#[tokio::test]
async fn what_is_not_answered_in_time_passes() {
    for method in ["initialize", "session/new"] {
        let mut theatre = Theatre::new(&format!(
            "start: {{ stderr: thinking }}\nmethods: {{ {method}: {{ silent: true }} }}"
        ));
        theatre.options.start_timeout = Duration::from_millis(1500);
        let error = refused(&theatre).await;
        let RuntimeError::Temporary { words, .. } = error else {
            panic!("{error:?}")
        };
        assert!(
            words.starts_with(&format!("agent `scripted` did not answer `{method}` within 1.5s")),
            "{words}"
        );
        assert!(words.ends_with("its last words: thinking"), "{words}");
    }
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let mut theatre = Theatre::new("{}");
    theatre.agent.command = "no-such-agent-anywhere".to_owned();
    let error = refused(&theatre).await;
    let words = "agent `scripted`: there is no program `no-such-agent-anywhere`; install it or correct the agent's `command`";
    assert_eq!(
        error,
        RuntimeError::Permanent {
            words: words.to_owned()
        }
    );
    let theatre = Theatre::new("{}");
    let request = SessionRequest {
        workspace: "/no/such/folder".into(),
        ..theatre.request(PermissionPolicy::Deny)
    };
    let error = theatre.runtime().open(&request).await.expect_err("it opens");
    assert!(error.to_string().contains("there is no such folder"), "{error}");
}

#[tokio::test]
async fn a_session_that_did_not_open_may_be_asked_for_again() {
    let model = "options: [{ id: m, category: model, values: [fake-1] }]";
    let failing = "methods: { session/new: { error: { code: 529, message: overloaded } } }";
    let theatre = Theatre::new(&format!("{model}\n{failing}\n"));
    let runtime = theatre.runtime();
    let request = theatre.request(PermissionPolicy::Deny);
    let error = runtime.open(&request).await.expect_err("it opens");
    assert!(matches!(error, RuntimeError::Temporary { .. }), "{error:?}");
    std::fs::write(theatre.path("script.yaml"), model).expect("written");
    runtime.open(&request).await.expect("open");
    runtime.close(request.client_session_id).await.expect("close");
}

#[tokio::test]
async fn a_session_can_be_closed_while_it_opens() {
    let theatre = Theatre::new("methods: { initialize: { silent: true } }");
    let runtime = Arc::new(theatre.runtime());
    let request = theatre.request(PermissionPolicy::Deny);
    let opening = tokio::spawn({
        let (runtime, request) = (Arc::clone(&runtime), request.clone());
        async move { runtime.open(&request).await }
    });
    eventually("the agent starts", || !theatre.received("initialize").is_empty()).await;
    within(runtime.close(request.client_session_id))
        .await
        .expect("close");
    let outcome = within(opening).await.expect("no panic");
    assert!(matches!(outcome, Err(RuntimeError::Lost { .. })), "{outcome:?}");
    assert!(!theatre.leaves_processes());
}

#[tokio::test]
async fn c14_the_environment_is_chosen() {
    let mut theatre = Theatre::playing("      - say: hello");
    theatre.agent.env = [("OWN".to_owned(), "for {model}".to_owned())].into();
    let secret = ["SILLAGE_TOKEN", "GIT_DIR", "SOME_API_KEY", "PATH", "LC_TIME"];
    theatre.options.inherited =
        sillage_acp::inherited_environment(secret.map(|name| (name.into(), "x".into())));
    let scene = theatre.scene().await;
    let env = theatre.record().into_iter().find_map(|entry| {
        let Event::Started { env, .. } = entry.event else {
            return None;
        };
        Some(env)
    });
    assert_eq!(
        env.expect("a start"),
        ["LC_TIME", "OWN", "PATH", "SILLAGE_SESSION"]
    );
    scene.close().await;
}
