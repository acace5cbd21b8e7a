//! What facts about waits and time say to a person.

use std::time::Duration;

use crate::run::{OpenedBy, WaitCause, Wall};
use crate::time::{Timestamp, human};

pub(super) fn started(cause: WaitCause, until: Timestamp, words: &str, resend: bool) -> String {
    let cause = match cause {
        WaitCause::Backoff => "a temporary error to pass",
        WaitCause::Quota => "its quota to be given back",
        WaitCause::SignIn => "someone to sign in",
        WaitCause::Capacity => "room in its runtime, which is full",
    };
    let then = if resend { "tried again" } else { "asked to go on" };
    format!("waits for {cause}: {words}; it is {then} at {until}")
}

pub(super) fn gate_closed(account: &str, agent: &str, wall: &Wall) -> String {
    let what = match wall.cause {
        WaitCause::Quota => "the quota is used up",
        WaitCause::SignIn => "someone must sign in",
        WaitCause::Backoff | WaitCause::Capacity => "it cannot be used now",
    };
    format!(
        "account {account}: {what}, as {agent} was told: {}; all its agents wait, and {}",
        wall.words,
        goes_on(wall)
    )
}

pub(super) fn gate_dated(account: &str, agent: &str, wall: &Wall) -> String {
    format!(
        "account {account} cannot be used yet, as {agent} was told: {}; {}",
        wall.words,
        goes_on(wall)
    )
}

fn goes_on(wall: &Wall) -> String {
    match (wall.resets_at, wall.single) {
        (_, false) => format!("they go on at {}", wall.until),
        (Some(at), true) => format!(
            "one of them tries at {}: the provider says {at}, which is doubtful",
            wall.until
        ),
        (None, true) => format!("one of them tries at {}", wall.until),
    }
}

pub(super) fn gate_opened(account: &str, by: OpenedBy, held: u32) -> String {
    let why = match by {
        OpenedBy::Date => "its date has come",
        OpenedBy::Probe => "the agent that tried it is served",
        OpenedBy::Runtime => "the runtime says that it is available",
        OpenedBy::Person => "a person says so",
    };
    let agents = match held {
        0 => "nobody waited".to_owned(),
        1 => "1 agent goes on".to_owned(),
        held => format!("{held} agents go on"),
    };
    format!("account {account} is used again: {why}; {agents}")
}

pub(super) fn machine_slept(slept: Duration) -> String {
    format!(
        "the machine slept for {}: that is not counted as work",
        human(slept)
    )
}

pub(super) fn clock_jumped(by_ms: i64) -> String {
    let by = human(Duration::from_millis(by_ms.unsigned_abs()));
    let way = if by_ms < 0 { "back" } else { "ahead" };
    format!("the machine's clock was set {way} by {by}: spans count on, dates of providers stay as they are")
}
