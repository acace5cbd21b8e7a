//! Limits of providers, as agents pass them on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use sillage::core::limit_text;
use sillage::core::run::{Event, WaitCause};
use sillage::core::time::{Timestamp, Zone};

use super::{Stage, eventually};

fn stage(steps: &str) -> Stage {
    let stage = Stage::without_repository(&format!("prompts:\n  - {{ times: always, steps: {steps} }}\n"));
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    stage
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Timestamp(i64::try_from(now.as_millis()).expect("a time of our days"))
}

/// The time of day that it is in a zone six hours from now, as providers write it: `3:20pm`. So far away, the same words
/// mean the same instant whenever within the test they are read.
fn in_six_hours(zone: &Zone) -> String {
    let local = zone.local(now().plus(Duration::from_secs(6 * 3600)));
    let time = local.split(' ').nth(1).expect("a date, then a time");
    let (hour, minute) = time.split_once(':').expect("hours and minutes");
    let hour: u32 = hour.parse().expect("a number");
    let half = if hour < 12 { "am" } else { "pm" };
    format!("{}:{minute}{half}", (hour + 11) % 12 + 1)
}

/// When the one agent of the stage begins to wait for its quota, and until when.
#[track_caller]
fn quota_wait(stage: &Stage) -> (Timestamp, Timestamp) {
    let mut running = stage.start_run();
    eventually("the agent waits", || {
        let status = stage.start(&["status", "--json"]).wait();
        status.code == 0 && status.json()["run"]["steps"][0]["state"] == "waiting"
    });
    running.signal(Signal::INT);
    running.wait().expect(130);
    let log = stage.log();
    let wait = log.facts.iter().find_map(|fact| {
        if let Event::WaitStarted {
            cause: WaitCause::Quota,
            until,
            ..
        } = &fact.event
        {
            return Some((fact.at, *until));
        }
        None
    });
    wait.expect("a wait for a quota")
}

#[test]
fn q2_a_limit_is_waited_for_until_the_instant_that_the_provider_tells() {
    let sao_paulo = Zone::named("America/Sao_Paulo").expect("a zone");
    for text in [
        format!(
            "You have hit your limit · resets {} (UTC)",
            in_six_hours(&Zone::utc())
        ),
        format!(
            "limit reached, resets {} (America/Sao_Paulo)",
            in_six_hours(&sao_paulo)
        ),
    ] {
        let stage = stage(&format!("[error: {{ code: -32603, message: \"{text}\" }}]"));
        let (at, until) = quota_wait(&stage);
        assert_eq!(Some(until), limit_text::until(&text, at, &Zone::utc()), "{text}");
        let hours = until.since(at).as_secs_f64() / 3600.0;
        assert!((5.0..=6.1).contains(&hours), "{text}: {hours} hours");
        assert_eq!(
            stage.prompts("Alpha").len(),
            1,
            "nothing is sent meanwhile: {text}"
        );
    }
    // An epoch, whole and not doubted: it is less than seven days away.
    let epoch = now().0 / 1000 + 3 * 24 * 3600;
    let text = format!("Claude AI usage limit reached|{epoch}");
    let stage = self::stage(&format!("[error: {{ code: -32603, message: \"{text}\" }}]"));
    let (_, until) = quota_wait(&stage);
    assert_eq!(until, Timestamp(epoch * 1000));
    assert_eq!(stage.prompts("Alpha").len(), 1, "nothing is sent meanwhile");
    // A date over seven days away is doubted: one agent tries every day (R8).
    let text = format!(
        "Claude AI usage limit reached|{}",
        now().0 / 1000 + 300 * 24 * 3600
    );
    let stage = self::stage(&format!("[error: {{ code: -32603, message: \"{text}\" }}]"));
    let (at, until) = quota_wait(&stage);
    assert_eq!(until.since(at), Duration::from_secs(24 * 3600));
    let stage = self::stage("[error: { code: -32603, message: \"Usage limit. Try again in ~100 min.\" }]");
    let (at, until) = quota_wait(&stage);
    let wait = until.since(at);
    // From when it was said, which was a little before it was written down.
    assert!(
        wait <= Duration::from_secs(6000) && wait > Duration::from_secs(5900),
        "{wait:?}"
    );
}

#[test]
fn q2_b8_a_limit_without_a_date_is_tried_again_every_fifteen_minutes() {
    let past = now().0 / 1000 - 30 * 24 * 3600;
    for text in [
        "Usage limit reached, try again later.",
        "Usage limit reached, resets 3:20pm (Mars/Olympus)",
        &format!("Claude AI usage limit reached|{past}"),
    ] {
        let stage = stage(&format!(
            "[error: {{ code: 429, message: \"{text}\", data: {{ retryAfter: -5 }} }}]"
        ));
        let (at, until) = quota_wait(&stage);
        assert_eq!(until.since(at), Duration::from_secs(15 * 60), "{text}");
    }
}

#[test]
fn q5_an_answer_that_talks_about_limits_is_an_answer() {
    let stage = stage(
        "[say: \"You've hit your limit · resets 3:20pm (UTC) is what the server says at 429: Too Many Requests. \", report: { summary: \"The rate limit resets at 3pm (UTC).\" }]",
    );
    stage.run().expect(0);
    let log = stage.log();
    assert_eq!(log.words(), [("alpha", "complete")]);
    assert_eq!(log.count(|event| matches!(event, Event::WaitStarted { .. })), 0);
}

#[test]
fn q5_a_notice_that_arrives_as_an_answer_with_an_error_stop_is_a_limit() {
    let text = format!(
        "You've hit your limit · resets {} (UTC)",
        in_six_hours(&Zone::utc())
    );
    for steps in [
        format!("[say: \"{text}\", stop: refusal]"),
        format!("[say: \"{text}\", stop: error]"),
        format!(
            "[say: \"Something went wrong.\", answer: {{ stopReason: refusal, _meta: {{ error: {{ message: \"{text}\" }} }} }}]"
        ),
    ] {
        let stage = stage(&steps);
        let (at, until) = quota_wait(&stage);
        assert_eq!(Some(until), limit_text::until(&text, at, &Zone::utc()), "{steps}");
    }
}
