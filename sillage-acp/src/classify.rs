//! What class of failure an agent's words mean: the class decides whether and when the core tries again.

use std::time::Duration;

use serde_json::Value;
use sillage_core::limit_text;
use sillage_core::ports::runtime::RuntimeError;

use crate::connection::{INTERNAL_ERROR, RpcError};
use crate::zone::Moment;

/// ACP v1, "Authentication": the agent wants a sign-in first.
pub(crate) const AUTH_REQUIRED: i64 = -32000;

/// Marks of a plan or budget that is used up. Providers' own words; compared in lower case.
const USED_UP: [&str; 20] = [
    "usage limit",
    "usage_limit",
    "hit your limit",
    "session limit",
    "weekly limit",
    "daily limit",
    "5-hour limit",
    "out of credits",
    "insufficient credit",
    "insufficient_quota",
    "insufficient balance",
    "credit balance",
    "billing details",
    "exceeded your current quota",
    "exhausted your capacity",
    "exhausted your daily quota",
    "quota will reset",
    "regain access",
    "spending limit",
    "usage cap",
];

/// Marks of a limit, used up for long or for a moment.
const LIMITED: [&str; 7] = [
    "quota",
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "resource_exhausted",
    "limit reached",
];

/// The longest delay after which a limit is still one for a moment, where nothing says that a plan is used up.
const A_MOMENT: Duration = Duration::from_secs(10 * 60);

/// The longest delay that is believed; a date is, however far (R8).
const BELIEVED: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Characters of a message that can be a notice of a limit and nothing else.
const NOTICE: usize = 600;

/// Marks of a failure that passes.
const TEMPORARY: [&str; 34] = [
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
    "connection closed",
    "connection lost",
    "connection was closed",
    "connection aborted",
    "reset by peer",
    "broken pipe",
    "econnrefused",
    "econnreset",
    "econnaborted",
    "epipe",
    "etimedout",
    "eai_again",
    "socket hang up",
    "socket closed",
    "fetch failed",
    "network error",
    "error sending request",
    "error decoding response body",
    "unexpected eof",
    "premature close",
    "stream disconnected",
    "stream closed",
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
/// `said` dates a reset that is given as a delay or as a local time.
pub(crate) fn rpc_error(agent: &str, error: &RpcError, said: &Moment) -> RuntimeError {
    let words = words_of(agent, error);
    let lower = format!("{words} {}", kinds(error.data.as_ref())).to_lowercase();
    let status = http_status(error, &lower);
    let says = |marks: &[&str]| marks.iter().any(|mark| lower.contains(mark));
    let temporary = |words| RuntimeError::Temporary {
        words,
        retry_after: delay(error, said).filter(|delay| *delay <= BELIEVED),
    };
    match (error.code, status) {
        (AUTH_REQUIRED, _) | (_, Some(401 | 403)) => RuntimeError::SignIn { words },
        (_, Some(402)) => limit(words, true, error, said),
        (_, Some(429)) => limit(words, says(&USED_UP), error, said),
        (_, Some(408 | 500..=599)) => temporary(words),
        _ if says(&USED_UP) => limit(words, true, error, said),
        (_, Some(400..=499)) => RuntimeError::Permanent { words },
        _ if says(&LIMITED) => limit(words, false, error, said),
        _ if says(&SIGN_IN) => RuntimeError::SignIn { words },
        _ if says(&TEMPORARY) => temporary(words),
        _ => RuntimeError::Permanent { words },
    }
}

/// A limit: of a plan, until it is given back; or of the moment, where the provider says how short that is.
fn limit(words: String, used_up: bool, error: &RpcError, said: &Moment) -> RuntimeError {
    match delay(error, said) {
        Some(delay) if !used_up && delay <= A_MOMENT => RuntimeError::Temporary {
            words,
            retry_after: Some(delay),
        },
        delay => RuntimeError::Quota {
            words,
            resets_at: delay.map(|delay| said.now.plus(delay)),
        },
    }
}

/// The error that a turn's last message is, when the turn did not end as one that answers: a provider's refusal that an
/// agent passes on as if its model had said it. None where the message is more than that (Q5).
pub(crate) fn notice(agent: &str, text: &str, said: &Moment) -> Option<RuntimeError> {
    let text = text.trim();
    if text.is_empty() || text.chars().nth(NOTICE).is_some() {
        return None;
    }
    let error = RpcError {
        code: INTERNAL_ERROR,
        message: text.to_owned(),
        data: None,
    };
    let class = rpc_error(agent, &error, said);
    let is_known = !matches!(class, RuntimeError::Permanent { .. });
    is_known.then_some(class)
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

/// What the data calls the error: the words by which programs tell errors apart.
fn kinds(data: Option<&Value>) -> String {
    let Some(data) = data else {
        return String::new();
    };
    let kinds = [data, &data["error"]].into_iter().flat_map(|from| {
        ["errorKind", "kind", "type", "code", "status", "name", "reason"]
            .iter()
            .filter_map(|key| from[*key].as_str())
    });
    kinds
        .filter(|kind| kind.len() < 100)
        .collect::<Vec<_>>()
        .join(" ")
}

/// How long the error asks to wait: by a member of its data, else by its words, else by what else the data holds.
fn delay(error: &RpcError, said: &Moment) -> Option<Duration> {
    let in_words = |words: &str| {
        let until = limit_text::until(words, said.now, &said.zone)?;
        Some(until.since(said.now))
    };
    let data = error.data.as_ref();
    data.and_then(retry_after)
        .filter(|delay| *delay <= BELIEVED)
        .or_else(|| in_words(&error.message))
        .or_else(|| in_words(&data?.to_string()))
}

/// A delay that the data asks for, in seconds unless its name says milliseconds. What is no delay, such as a negative
/// one, is none (B8).
fn retry_after(data: &Value) -> Option<Duration> {
    let number = |keys: [&str; 3]| {
        [data, &data["error"]]
            .into_iter()
            .find_map(|from| keys.iter().find_map(|key| from.get(key)?.as_f64()))
    };
    let seconds = number(["retryAfter", "retry_after", "retry-after"]);
    let milliseconds = number(["retryAfterMs", "retry_after_ms", "retry-after-ms"]);
    let seconds = seconds.or(milliseconds.map(|value| value / 1000.0))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests;
