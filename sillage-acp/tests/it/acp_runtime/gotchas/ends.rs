//! Errors of every shape, and agents that end or will not.

use super::*;

#[tokio::test]
async fn acp15_what_an_agent_started_ends_with_it() {
    for rule in ["orphan", "hold-stdout"] {
        let theatre = faulty("");
        let scene = theatre.scene().await;
        assert_eq!(
            scene.answer(rule).await.expect("an answer").text,
            "hello",
            "{rule}"
        );
        assert_eq!(theatre.processes().len(), 2, "{rule}");
        scene.leave(&theatre).await;
    }
}

#[tokio::test]
async fn acp26_errors_of_every_shape_are_classified_with_their_words() {
    // The rule, the class, what the words hold.
    let cases = [
        ("http-error", "temporary", ["terminated", "error 500"]),
        ("bad-request", "permanent", ["no such model", "error 400"]),
        ("unauthorized", "sign-in", ["no", "error 401"]),
        ("data-text", "temporary", ["Internal error", "529 overloaded"]),
        ("data-object", "permanent", ["no such file", "error -32603"]),
        (
            "own-code",
            "permanent",
            ["approval_policy is not valid", "error 1001"],
        ),
        ("quota", "quota", ["usage limit reached", "error -32603"]),
    ];
    for (rule, class, parts) in cases {
        let error = failure_of(rule).await;
        let seen = [
            ("temporary", matches!(error, RuntimeError::Temporary { .. })),
            ("permanent", matches!(error, RuntimeError::Permanent { .. })),
            ("sign-in", matches!(error, RuntimeError::SignIn { .. })),
            ("quota", matches!(error, RuntimeError::Quota { .. })),
        ];
        assert!(seen.contains(&(class, true)), "{rule}: {error:?}");
        for part in parts {
            assert!(error.to_string().contains(part), "{rule}: {error}");
        }
    }
}

#[tokio::test]
async fn acp27_an_agent_that_ends_in_a_prompt_is_quoted() {
    let cases = [
        ("crash", "signal: 6", "panic: boom"),
        ("exit", "exit status: 3", "fatal: no api key"),
        ("half-line", "exit status: 0", "ended by itself"),
        ("dies-loudly", "exit status: 4", "the end"),
    ];
    for (rule, status, words) in cases {
        let theatre = faulty("");
        let scene = theatre.scene().await;
        let error = scene.answer(rule).await.expect_err(rule);
        let RuntimeError::Lost { words: told } = &error else {
            panic!("{rule}: {error:?}")
        };
        assert!(told.contains(status) && told.contains(words), "{rule}: {told}");
        assert!(told.len() < 3000, "{rule}: {} bytes are quoted", told.len());
        let events = scene.until(|kind| *kind == SessionEventKind::Ended).await;
        let half = events
            .iter()
            .any(|event| is_note(&event.kind, "a line without an end"));
        assert_eq!(half, rule == "half-line", "{rule}");
        scene.leave(&theatre).await;
    }
}

#[tokio::test]
async fn acp27_an_agent_that_does_not_open_is_quoted_and_does_not_hang() {
    let mut theatre = faulty("start: { stderr: \"fatal: no api key\\n\", exit: 3 }");
    theatre.options.start_timeout = Duration::from_secs(30);
    let (runtime, request) = (theatre.runtime(), theatre.request(PermissionPolicy::Deny));
    let error = within(runtime.open(&request)).await.expect_err("it opens");
    let words = error.to_string();
    assert!(matches!(error, RuntimeError::Permanent { .. }), "{error:?}");
    assert!(
        words.contains("exit status: 3") && words.contains("fatal: no api key"),
        "{words}"
    );

    let mut theatre = faulty("methods: { initialize: { silent: true } }");
    theatre.options.start_timeout = Duration::from_millis(300);
    let (runtime, request) = (theatre.runtime(), theatre.request(PermissionPolicy::Deny));
    let error = within(runtime.open(&request)).await.expect_err("it opens");
    assert!(
        matches!(&error, RuntimeError::Temporary { words, .. } if words.contains("did not answer `initialize` within 300ms")),
        "{error:?}"
    );
    assert!(!theatre.leaves_processes());
    theatre.check_frames();
}
