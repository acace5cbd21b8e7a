//! What class of failure an agent's words mean: the class decides whether and when the core tries again.

use std::time::Duration;

use serde_json::Value;
use sillage_core::ports::runtime::RuntimeError;
use sillage_core::time::Timestamp;

use crate::connection::RpcError;

/// ACP v1, "Authentication": the agent wants a sign-in first.
pub(crate) const AUTH_REQUIRED: i64 = -32000;

/// Marks of a used-up quota. Providers' own words; compared in lower case.
const QUOTA: [&str; 10] = [
    "quota",
    "usage limit",
    "hit your limit",
    "limit reached",
    "rate limit",
    "rate_limit",
    "too many requests",
    "insufficient credit",
    "credit balance",
    "resource_exhausted",
];

/// Marks of a failure that passes.
const TEMPORARY: [&str; 18] = [
    "overloaded",
    "unavailable",
    "bad gateway",
    "gateway timeout",
    "internal server error",
    "timed out",
    "timeout",
    "connection refused",
    "connection reset",
    "connection error",
    "econnrefused",
    "econnreset",
    "etimedout",
    "socket hang up",
    "fetch failed",
    "stream disconnected",
    "high demand",
    "temporary error",
];

/// Marks of a missing or expired sign-in.
const SIGN_IN: [&str; 7] = [
    "authentication required",
    "unauthorized",
    "not logged in",
    "please log in",
    "invalid api key",
    "token expired",
    "authentication_error",
];

/// The class of a JSON-RPC error: by its code, by an HTTP status that it carries, then by its words.
///
/// `now` dates a reset that is given as a delay.
pub(crate) fn rpc_error(agent: &str, error: &RpcError, now: Timestamp) -> RuntimeError {
    let words = words_of(agent, error);
    let lower = words.to_lowercase();
    let after = retry_after(error.data.as_ref());
    let status = http_status(error, &lower);
    let says = |marks: &[&str]| marks.iter().any(|mark| lower.contains(mark));
    let quota = |words| RuntimeError::Quota {
        words,
        resets_at: after.map(|delay| now.plus(delay)),
    };
    match (error.code, status) {
        (AUTH_REQUIRED, _) | (_, Some(401 | 403)) => RuntimeError::SignIn { words },
        (_, Some(402 | 429)) => quota(words),
        (_, Some(408 | 500..=599)) => RuntimeError::Temporary {
            words,
            retry_after: after,
        },
        (_, Some(400..=499)) => RuntimeError::Permanent { words },
        _ if says(&QUOTA) => quota(words),
        _ if says(&SIGN_IN) => RuntimeError::SignIn { words },
        _ if says(&TEMPORARY) => RuntimeError::Temporary {
            words,
            retry_after: after,
        },
        _ => RuntimeError::Permanent { words },
    }
}

/// The agent's words: its message, its data where that says more, and the code.
fn words_of(agent: &str, error: &RpcError) -> String {
    let detail = match &error.data {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(data) => ["details", "message", "error"]
            .iter()
            .find_map(|key| data.get(key)?.as_str())
            .map_or_else(|| Some(data.to_string()), |text| Some(text.to_owned())),
    };
    let message = error.message.trim();
    match detail.filter(|detail| !message.contains(detail.as_str())) {
        Some(detail) => format!("agent `{agent}`: {message}: {detail} (error {})", error.code),
        None => format!("agent `{agent}`: {message} (error {})", error.code),
    }
}

/// An HTTP status: the code itself, a member of the data, or a number after `http`, `status` or `api error`.
fn http_status(error: &RpcError, lower: &str) -> Option<u16> {
    let valid = |status: i64| {
        u16::try_from(status)
            .ok()
            .filter(|status| (400..=599).contains(status))
    };
    let in_data = || {
        let data = error.data.as_ref()?;
        let inner = data.get("error").unwrap_or(data);
        ["status", "statusCode", "status_code", "code", "http_status"]
            .iter()
            .find_map(|key| valid(inner.get(key).or_else(|| data.get(key))?.as_i64()?))
    };
    let in_words = || {
        ["http", "status", "status code", "api error", "error code"]
            .iter()
            .find_map(|mark| {
                lower.match_indices(mark).find_map(|(at, _)| {
                    let rest = lower[at + mark.len()..].trim_start_matches([':', ' ', '/', '=', '(', '"']);
                    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                    if digits.len() == 3 {
                        valid(digits.parse().ok()?)
                    } else {
                        None
                    }
                })
            })
    };
    valid(error.code).or_else(in_data).or_else(in_words)
}

/// A delay that the data asks for, in seconds unless its name says milliseconds.
fn retry_after(data: Option<&Value>) -> Option<Duration> {
    let data = data?;
    let number = |keys: [&str; 3]| keys.iter().find_map(|key| data.get(key)?.as_f64());
    let seconds = number(["retryAfter", "retry_after", "retry-after"]);
    let milliseconds = number(["retryAfterMs", "retry_after_ms", "retry-after-ms"]);
    let seconds = seconds.or(milliseconds.map(|value| value / 1000.0))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(code: i64, message: &str, data: Value) -> RuntimeError {
        let data = Some(data).filter(|data| !data.is_null());
        rpc_error(
            "a",
            &RpcError {
                code,
                message: message.to_owned(),
                data,
            },
            Timestamp(0),
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
        let error = class(429, "quota", json!({"retry_after_ms": 1500}));
        assert!(matches!(
            error,
            RuntimeError::Quota {
                resets_at: Some(Timestamp(1500)),
                ..
            }
        ));
    }
}
