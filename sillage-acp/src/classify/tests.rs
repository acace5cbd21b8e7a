//! What errors of agents mean.

use serde_json::json;

use sillage_core::time::{Timestamp, Zone};

use super::*;

/// 2026-11-30T14:00:00Z, in Paris.
fn said() -> Moment {
    Moment {
        now: Timestamp(1_796_047_200_000),
        zone: Zone::named("Europe/Paris").expect("a zone"),
    }
}

fn class(code: i64, message: &str, data: Value) -> RuntimeError {
    let data = Some(data).filter(|data| !data.is_null());
    rpc_error(
        "a",
        &RpcError {
            code,
            message: message.to_owned(),
            data,
        },
        &said(),
    )
}

#[test]
fn r7_r8_r9_errors_are_classified_by_code_status_and_words() {
    let temporary = [
        class(500, "terminated", Value::Null),
        class(
            -32603,
            "Internal error",
            json!({"details": "API Error: 529 overloaded_error"}),
        ),
        class(-32603, "Internal error", json!({"status": 503})),
        class(-32603, "connect ECONNREFUSED 127.0.0.1:9", Value::Null),
        class(
            -32603,
            "We’re currently experiencing high demand, which may cause temporary errors.",
            Value::Null,
        ),
    ];
    for error in temporary {
        assert!(matches!(error, RuntimeError::Temporary { .. }), "{error:?}");
    }
    let quota = [
        class(-32603, "Claude AI usage limit reached|1789000000", Value::Null),
        class(429, "slow down", Value::Null),
        class(-32603, "Internal error", json!("quota exceeded")),
    ];
    for error in quota {
        assert!(matches!(error, RuntimeError::Quota { .. }), "{error:?}");
    }
    let sign_in = [
        class(-32000, "Authentication required", Value::Null),
        class(401, "no", Value::Null),
        class(-32603, "HTTP 401 Unauthorized", Value::Null),
    ];
    for error in sign_in {
        assert!(matches!(error, RuntimeError::SignIn { .. }), "{error:?}");
    }
    let permanent = [
        class(400, "bad request", Value::Null),
        class(-32602, "Invalid params", json!({"details": "no such model"})),
        class(-32603, "Internal error", Value::Null),
    ];
    for error in permanent {
        assert!(matches!(error, RuntimeError::Permanent { .. }), "{error:?}");
    }
}

#[test]
fn words_keep_what_the_agent_said_and_delays_are_read() {
    let error = class(-32603, "Internal error", json!({"details": "no such model"}));
    assert_eq!(
        error.to_string(),
        "agent `a`: Internal error: no such model (error -32603)"
    );
    let error = class(529, "overloaded", json!({"retryAfter": 90}));
    assert!(
        matches!(error, RuntimeError::Temporary { retry_after: Some(delay), .. } if delay.as_secs() == 90)
    );
    let error = class(429, "slow down", json!({"retry_after_ms": 1500}));
    assert!(
        matches!(error, RuntimeError::Temporary { retry_after: Some(delay), .. } if delay.as_millis() == 1500)
    );
}

fn quota(at: Option<&str>) -> String {
    at.map_or_else(|| "quota".to_owned(), |at| format!("quota until {at}"))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "words of agents give none of the others"
)]
fn told(error: &RuntimeError) -> String {
    match error {
        RuntimeError::Quota { resets_at, .. } => quota(resets_at.map(|at| at.to_string()).as_deref()),
        RuntimeError::Temporary {
            retry_after: None, ..
        } => "temporary".to_owned(),
        RuntimeError::Temporary {
            retry_after: Some(delay),
            ..
        } => format!("temporary {delay:?}"),
        RuntimeError::Permanent { .. } => "permanent".to_owned(),
        error => error.to_string(),
    }
}

#[test]
fn q1_q2_r7_r8_limits_are_dated_as_agents_tell_them() {
    let internal = -32603;
    let temporary = |delay: &str| format!("temporary {delay}");
    let cases = [
        // A plan that is used up.
        (
            internal,
            "You've hit your limit · resets 3:20pm (UTC)",
            Value::Null,
            quota(Some("2026-11-30T15:20:00Z")),
        ),
        // The zone that is not told is the machine's.
        (
            internal,
            "5-hour limit reached ∙ resets 5pm",
            json!({"errorKind": "rate_limit"}),
            quota(Some("2026-11-30T16:00:00Z")),
        ),
        (
            internal,
            "Claude AI usage limit reached|1796050800",
            Value::Null,
            quota(Some("2026-11-30T15:00:00Z")),
        ),
        (
            internal,
            "Claude AI usage limit reached|1789000000",
            Value::Null,
            quota(None),
        ),
        (
            429,
            "You've hit your usage limit, try again in 3 days 5 hours 12 minutes.",
            Value::Null,
            quota(Some("2026-12-03T19:12:00Z")),
        ),
        (
            internal,
            "Internal error",
            json!({"error": {"type": "usage_limit_reached", "resets_in_seconds": 120}}),
            quota(Some("2026-11-30T14:02:00Z")),
        ),
        (
            internal,
            "API Error: 400 You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            Value::Null,
            quota(Some("2026-12-01T00:00:00Z")),
        ),
        (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            Value::Null,
            quota(None),
        ),
        (
            429,
            "Your quota will reset after 7h23m10s.",
            Value::Null,
            quota(Some("2026-11-30T21:23:10Z")),
        ),
        (402, "payment required", Value::Null, quota(None)),
        // A limit of the moment.
        (
            429,
            "Rate limit reached on tokens per min (TPM): Limit 30000, Used 28000. Please try again in 1.898s.",
            Value::Null,
            temporary("1.898s"),
        ),
        (
            429,
            "Quota exceeded for metric x, limit: 50\nPlease retry in 34.07s.",
            json!({"error": {"details": [{"retryDelay": "34s"}]}}),
            temporary("34.07s"),
        ),
        (429, "slow down", json!({"retryAfter": 120}), temporary("120s")),
        (
            429,
            "slow down",
            json!({"headers": {"retry-after": "Mon, 30 Nov 2026 14:02:00 GMT"}}),
            temporary("120s"),
        ),
        (
            429,
            "slow down, retry after 3 hours",
            Value::Null,
            quota(Some("2026-11-30T17:00:00Z")),
        ),
        (429, "slow down", Value::Null, quota(None)),
        // Overload, and a connection that broke.
        (
            529,
            "overloaded, try again in 2 minutes",
            Value::Null,
            temporary("120s"),
        ),
        (503, "unavailable", json!({"retry-after": 600}), temporary("600s")),
        (
            internal,
            "error sending request for url (http://127.0.0.1:1/v1/responses)",
            Value::Null,
            "temporary".to_owned(),
        ),
        (
            internal,
            "Connection reset by peer (os error 104)",
            Value::Null,
            "temporary".to_owned(),
        ),
        (internal, "no such model", Value::Null, "permanent".to_owned()),
    ];
    for (code, message, data, expected) in cases {
        let error = class(code, message, data);
        assert_eq!(told(&error), expected, "{message}: {error:?}");
    }
}

#[test]
fn b8_a_delay_that_is_none_is_not_waited_for_and_nothing_panics() {
    let delays = [
        json!(-5),
        json!(1e30),
        json!(1e308),
        json!("NaN"),
        json!("inf"),
        json!("-5"),
        json!("1e30"),
        json!(""),
        json!(null),
        json!([]),
        json!({}),
        json!(true),
        json!("soon"),
        json!(u64::MAX),
        json!("Sun, 29 Nov 2026 15:20:00 GMT"),
    ];
    for key in [
        "retryAfter",
        "retry_after",
        "retry-after",
        "retry_after_ms",
        "resetsAt",
        "retryDelay",
    ] {
        for delay in &delays {
            for data in [
                json!({ key: delay }),
                json!({"error": { key: delay }}),
                json!({"headers": { key: delay }}),
            ] {
                for (code, message) in [
                    (429, "slow down"),
                    (529, "overloaded"),
                    (-32603, "usage limit reached"),
                ] {
                    let told = told(&class(code, message, data.clone()));
                    assert!(matches!(told.as_str(), "quota" | "temporary"), "{data}: {told}");
                }
            }
        }
    }
}

#[test]
fn q5_a_notice_is_a_notice_and_nothing_else() {
    let notice = |text: &str| notice("a", text, &said()).as_ref().map(told);
    assert_eq!(
        notice("You've hit your limit · resets 3:20pm (UTC)"),
        Some(quota(Some("2026-11-30T15:20:00Z")))
    );
    assert_eq!(notice("API Error: 529 overloaded"), Some("temporary".to_owned()));
    assert_eq!(notice("I cannot help with that."), None);
    assert_eq!(notice("  "), None);
    let essay = format!(
        "The rate limit resets 3:20pm. {}",
        "It is set in limits.rs. ".repeat(40)
    );
    assert_eq!(notice(&essay), None);
}
