use proptest::prelude::*;
use sillage_core::time::Timestamp;
use uuid::Uuid;

use super::*;

fn words() -> impl Strategy<Value = String> {
    ".{0,12}"
}

fn places() -> impl Strategy<Value = Vec<PathBuf>> {
    proptest::collection::vec("/[a-z é\"]{0,9}".prop_map(PathBuf::from), 0..3)
}

fn usage() -> impl Strategy<Value = Usage> {
    let number = proptest::option::of(any::<u64>());
    let currency = proptest::option::of(Just(*b"EUR"));
    (number.clone(), number.clone(), number, currency).prop_map(|(input, written, cost, currency)| Usage {
        input_tokens: input,
        output_tokens: written,
        cost_micros: cost,
        currency,
        ..Usage::default()
    })
}

fn error() -> impl Strategy<Value = RuntimeError> {
    let span = || proptest::option::of((0..u64::from(u32::MAX)).prop_map(Duration::from_secs));
    // What a calendar has: the wire writes dates.
    let date = proptest::option::of((0..4_000_000_000_000_i64).prop_map(Timestamp));
    prop_oneof![
        (words(), span()).prop_map(|(words, retry_after)| RuntimeError::Temporary { words, retry_after }),
        (words(), date).prop_map(|(words, resets_at)| RuntimeError::Quota { words, resets_at }),
        words().prop_map(|words| RuntimeError::SignIn { words }),
        (words(), span()).prop_map(|(words, retry_after)| RuntimeError::Capacity { words, retry_after }),
        words().prop_map(|words| RuntimeError::Permanent { words }),
        words().prop_map(|words| RuntimeError::Lost { words }),
    ]
}

fn permission() -> impl Strategy<Value = PermissionRequest> {
    let option = (words(), words(), words()).prop_map(|(id, name, kind)| PermissionOption { id, name, kind });
    let options = proptest::collection::vec(option, 0..3);
    (words(), words(), proptest::option::of(words()), places(), options).prop_map(
        |(id, title, kind, paths, options)| PermissionRequest {
            id,
            title,
            kind,
            paths,
            options,
        },
    )
}

fn stop() -> impl Strategy<Value = StopReason> {
    prop_oneof![
        Just(StopReason::EndTurn),
        Just(StopReason::MaxTokens),
        Just(StopReason::MaxTurnRequests),
        Just(StopReason::Refusal),
        Just(StopReason::Cancelled),
        "x[a-z]{0,9}".prop_map(StopReason::Other),
    ]
}

fn event() -> impl Strategy<Value = SessionEventKind> {
    let message = || any::<u128>().prop_map(|id| ClientMessageId(Uuid::from_u128(id)));
    prop_oneof![
        words().prop_map(|text| SessionEventKind::Text { text }),
        words().prop_map(|text| SessionEventKind::Thought { text }),
        (words(), words(), words(), places()).prop_map(|(id, title, status, locations)| {
            SessionEventKind::Tool {
                id,
                title,
                status,
                locations,
            }
        }),
        proptest::collection::vec(words(), 0..3).prop_map(|entries| SessionEventKind::Plan { entries }),
        usage().prop_map(|usage| SessionEventKind::Usage { usage }),
        permission().prop_map(|request| SessionEventKind::Permission { request }),
        (permission(), words())
            .prop_map(|(request, rule)| SessionEventKind::PermissionRefused { request, rule }),
        (words(), proptest::option::of(words()), words())
            .prop_map(|(id, option, by)| SessionEventKind::PermissionAnswered { id, option, by }),
        (message(), words(), stop(), usage()).prop_map(|(message, text, stop, usage)| {
            SessionEventKind::Answer {
                message,
                answer: Answer { text, stop, usage },
            }
        }),
        (proptest::option::of(message()), error())
            .prop_map(|(message, error)| SessionEventKind::Error { message, error }),
        words().prop_map(|text| SessionEventKind::Note { text }),
        Just(SessionEventKind::Ended),
    ]
}

proptest! {
    /// L6: what a runtime tells comes out of the wire as it went in, class, date and all.
    #[test]
    fn an_event_is_the_same_behind_the_wire(kind in event()) {
        let told = wire::Event { number: 7, at: "2026-11-30T14:00:00Z".to_owned(), body: event_to_wire(&kind) };
        let json = serde_json::to_string(&told).unwrap();
        prop_assert!(!json.contains('\n'), "an event is one line");
        let read: wire::Event = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &told);
        prop_assert_eq!(event_from_wire(read.body), kind);
    }

    /// L3: a request is the same behind the wire.
    #[test]
    fn a_request_is_the_same_behind_the_wire(
        model in words(), effort in words(), read in places(), write in places(), closed in places(),
        tokens in proptest::option::of(any::<u64>()),
    ) {
        let request = SessionRequest {
            client_session_id: ClientSessionId(Uuid::from_u128(1)),
            model,
            effort,
            workspace: PathBuf::from("/w"),
            filesystem_scope: Folders { read, write },
            protected: Protected { closed, kept: Vec::new() },
            permissions: PermissionPolicy::Ask,
            autocompact_tokens: tokens,
        };
        let sent = request_to_wire(&request, "test", 60).unwrap();
        let read: wire::CreateSession = serde_json::from_slice(&serde_json::to_vec(&sent).unwrap()).unwrap();
        prop_assert!(sent.differences(&read).is_empty());
        prop_assert_eq!(request_from_wire(&read), request);
    }
}

/// B8: waits that no calendar has are no panic.
#[test]
fn b8_endless_waits_are_no_panic() {
    for retry_after in [Some(u64::MAX), Some(0), None] {
        error_of(ErrorClass::Temporary, String::new(), retry_after, None);
    }
    for date in [
        "",
        "NaN",
        "99999999-01-01T00:00:00Z",
        "-1",
        "2026-11-30T25:00:00Z",
    ] {
        let error = error_of(ErrorClass::Quota, String::new(), None, Some(date));
        assert!(
            matches!(error, RuntimeError::Quota { resets_at: None, .. }),
            "{date}"
        );
    }
    assert_eq!(seconds(Duration::MAX), u64::MAX);
    assert_eq!(seconds(Duration::from_millis(1)), 1);
}

/// L3: a default that is written is the default that is not.
#[test]
fn a_field_with_its_usual_value_is_the_same_as_none() {
    let id = Uuid::from_u128(1);
    let short = format!(
        r#"{{"client_session_id":"{id}","application_name":"a","model":"m","effort":"e","workspace":"/w"}}"#
    );
    let long = format!(
        r#"{{"mcp_servers":[],"permissions":"allow-in-folders","ttl_seconds":3600,"workspace":"/w","effort":"e",
            "filesystem_scope":{{"write":[],"read":[]}},"model":"m","application_name":"a","client_session_id":"{id}"}}"#
    );
    let short: wire::CreateSession = serde_json::from_str(&short).unwrap();
    let long: wire::CreateSession = serde_json::from_str(&long).unwrap();
    assert_eq!(short.differences(&long), Vec::<String>::new());
}
