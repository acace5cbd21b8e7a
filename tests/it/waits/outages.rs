//! Providers that are overloaded or out of reach, and agents that say nothing (R7, R11).

use std::time::Duration;

use sillage::core::journal;
use sillage::core::ports::runtime::RuntimeError;
use sillage::core::run::{Event, FailureClass, RunEnd, StepEnd, WaitCause};
use sillage_testkit::scripted_runtime::{Call, Fault, Reply};

use super::{HOUR, MINUTE, REPORT, SOON, Story, definition, step, temporary, waits};

fn seconds(all: &[u64]) -> Vec<Duration> {
    all.iter().copied().map(Duration::from_secs).collect()
}

/// Q3: overloaded for a quarter of an hour, then success: each try is in the journal and was made at its time, all in
/// one session.
#[tokio::test(start_paused = true)]
async fn q3_r7_an_outage_of_fifteen_minutes_ends_in_success_with_each_try_told() {
    let story = Story::new(|now, _, _| match now < 15 * MINUTE {
        true => Reply::Fail(temporary("529 overloaded", None)),
        false => Reply::text(REPORT),
    });
    let handle = story.launch(definition(&[("a", "x")], &[])).await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_eq!(story.sent(&["a"]), [0, 30, 90, 210, 450, 690, 930]);
    assert_eq!(story.made(&["open", "find"], &["a"]).len(), 1, "one session");

    let log = story.log().await;
    let told = waits(&log);
    let spans: Vec<Duration> = told.iter().map(|(_, span)| *span).collect();
    assert_eq!(spans, seconds(&[30, 60, 120, 240, 240, 240]));
    let began: Vec<u64> = told.iter().map(|(at, _)| *at).collect();
    assert_eq!(began, [0, 30, 90, 210, 450, 690]);
    let run = story.run().await;
    let entries = journal::entries(&run, &log);
    let lines: Vec<&str> = entries
        .iter()
        .filter(|entry| entry.kind == "wait_started")
        .map(|entry| &*entry.text)
        .collect();
    assert_eq!(lines.len(), 6, "{lines:#?}");
    assert!(
        lines.iter().all(|line| line.contains("529 overloaded")),
        "the provider's words: {lines:#?}"
    );
    let ended = story
        .count(|event| matches!(event, Event::WaitEnded { .. }))
        .await;
    assert_eq!(ended, 6);
    // R10: waiting is told apart from working.
    let a = step(&run, "a");
    assert_eq!(a.waited(run.updated()).as_secs(), 930);
    assert!(a.worked(run.updated()) < SOON, "{:?}", a.worked(run.updated()));
}

/// The provider is out of reach for sessions and messages alike; what was asked for is asked for again under its own
/// identifier, and a longer time that the provider asks for is waited for in full.
#[tokio::test(start_paused = true)]
async fn q3_r7_what_is_out_of_reach_is_asked_for_again_as_it_was() {
    let story = Story::new(|_, _, _| Reply::text(REPORT)).with_faults(|now, call| {
        let refused = match call {
            Call::Open(_) if now < Duration::from_secs(60) => temporary("connection refused", None),
            Call::Send(..) if now < Duration::from_secs(100) => {
                temporary("503", Some(Duration::from_secs(1000)))
            }
            _ => return None,
        };
        Some(Fault::Before(refused))
    });
    let handle = story.launch(definition(&[("a", "x")], &[])).await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    let made: Vec<(&str, u64)> = story
        .made(&["open", "find", "send"], &["a"])
        .iter()
        .map(|made| (made.call, made.at.as_secs()))
        .collect();
    assert_eq!(
        made,
        [
            ("open", 0),
            ("open", 30),
            ("open", 90),
            ("send", 90),
            ("send", 1090)
        ]
    );
    assert_eq!(story.runtime.asked(), 1);
    let planned =
        |event: &Event| matches!(event, Event::SessionPlanned { .. } | Event::MessagePlanned { .. });
    assert_eq!(story.count(planned).await, 2, "one session, one message");
}

/// A success begins the series anew, and the limit of tries, where one is set, fails the step with the provider's words.
#[tokio::test(start_paused = true)]
async fn r7_a_success_resets_the_series_and_the_set_limit_of_tries_ends_it() {
    // Two failures, a report that goes back, and failures again.
    let story = Story::new(|_, _, asked| match asked.turn {
        2 => Reply::text("no report"),
        _ => Reply::Fail(temporary("overloaded", None)),
    });
    let mut definition = definition(&[("a", "x")], &[]);
    definition.policy.attempts = 4.try_into().ok();
    let handle = story.launch(definition).await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Failed);
    assert_eq!(story.sent(&["a"]), [0, 30, 90, 90, 120, 180, 300]);
    let run = story.run().await;
    let Some(StepEnd::Failed(failure)) = step(&run, "a").end() else {
        panic!("{:?}", step(&run, "a").end())
    };
    assert_eq!(failure.class, FailureClass::Attempts);
    assert!(failure.words.contains("overloaded"), "{failure:?}");
    assert!(story.runtime.open_sessions().is_empty());
}

/// What a runtime that watches its agents' silence tells of one, half an hour after it was last heard (R11).
fn silent() -> Reply {
    let words = "agent `a` was silent for 30m00s, and no process of it was busy";
    Reply::Later(HOUR / 2, Box::new(Reply::Fail(temporary(words, None))))
}

/// R11: an agent that says nothing is asked again as after an overload, in its session; the time of its silence was
/// work, that of the waits was not.
#[tokio::test(start_paused = true)]
async fn r11_a_silent_agent_is_asked_again_as_after_an_overload() {
    let mut times = 0;
    let story = Story::new(move |_, agent, _| {
        times += u32::from(agent == "a");
        match agent == "a" && times <= 2 {
            true => silent(),
            false => Reply::text(REPORT),
        }
    });
    let handle = story
        .launch(definition(&[("a", "x"), ("b", "x"), ("c", "x")], &["a -> c"]))
        .await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_eq!(
        story.sent(&["a"]),
        [0, 1800 + 30, 2 * 1800 + 30 + 60],
        "R7's waits after each silence"
    );
    assert_eq!(story.sent(&["b"]), [0], "of its account nobody else waits");
    assert_eq!(story.made(&["open", "find"], &["a"]).len(), 1, "one session");
    let log = story.log().await;
    let causes: Vec<WaitCause> = log
        .iter()
        .filter_map(|fact| match &fact.event {
            Event::WaitStarted { cause, words, .. } => {
                assert!(words.contains("was silent for 30m00s"), "{words}");
                Some(*cause)
            }
            _ => None,
        })
        .collect();
    assert_eq!(causes, [WaitCause::Backoff, WaitCause::Backoff]);
    let run = story.run().await;
    let a = step(&run, "a");
    assert_eq!(a.worked(run.updated()).as_secs(), 3600);
    assert_eq!(a.waited(run.updated()).as_secs(), 90);
}

/// R11: an agent that never says anything is ended by its longest time, which is working time: the waits do not count.
#[tokio::test(start_paused = true)]
async fn r11_an_agent_that_stays_silent_is_ended_by_its_longest_working_time() {
    let story = Story::new(|_, _, _| silent());
    let handle = story.launch(definition(&[("a", "x")], &[])).await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Failed);
    let run = story.run().await;
    let a = step(&run, "a");
    let Some(StepEnd::Failed(failure)) = a.end() else {
        panic!("{:?}", a.end())
    };
    assert_eq!(failure.class, FailureClass::TimedOut);
    assert!(failure.words.contains("max_duration"), "{failure:?}");
    let worked = a.worked(run.updated());
    assert!(worked.abs_diff(2 * HOUR) <= SOON, "{worked:?}");
    assert_eq!(
        story.sent(&["a"]).iter().take(4).copied().collect::<Vec<_>>(),
        [0, 1830, 3690, 5610]
    );
    assert!(story.runtime.open_sessions().is_empty());
}

/// R11 without a runtime that watches: before its longest time nothing is done to an agent that says nothing, and then
/// it is cancelled before its session is closed.
#[tokio::test(start_paused = true)]
async fn r11_an_agent_that_is_only_waited_for_is_cancelled_when_its_time_is_up() {
    let story = Story::new(|_, _, _| Reply::Silent);
    let handle = story.launch(definition(&[("a", "x")], &[])).await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Failed);
    let made: Vec<(&str, u64)> = story
        .made(&["open", "send", "cancel", "close"], &["a"])
        .iter()
        .map(|made| (made.call, made.at.as_secs()))
        .collect();
    assert_eq!(made[..2], [("open", 0), ("send", 0)]);
    assert!(
        made[2..].iter().all(|(_, at)| *at == 7200),
        "nothing before its time: {made:?}"
    );
    assert_eq!(made.last().map(|(call, _)| *call), Some("close"));
    let run = story.run().await;
    assert!(
        matches!(step(&run, "a").end(), Some(StepEnd::Failed(failure)) if failure.class == FailureClass::TimedOut)
    );
}

/// R11: an agent that does not obey is ended while its step waits; after the wait a new session is told its mission.
#[tokio::test(start_paused = true)]
async fn r11_a_silent_agent_whose_session_ended_gets_a_new_one_after_the_wait() {
    let mut first = true;
    let story = Story::new(move |_, _, _| match std::mem::take(&mut first) {
        true => silent(),
        false => Reply::text(REPORT),
    });
    let handle = story.launch(definition(&[("a", "x")], &[])).await;
    super::until(&story, HOUR / 2 + Duration::from_secs(10)).await;
    let [session] = story.runtime.open_sessions()[..] else {
        panic!("one session")
    };
    story.runtime.lose(session, "it did not stop within 10s");
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_eq!(story.sent(&["a"]), [0, 1830], "not before the wait is over");
    assert_eq!(story.made(&["open"], &["a"]).len(), 2);
    assert_eq!(
        story
            .count(|event| matches!(event, Event::SessionLost { .. }))
            .await,
        1,
        "the journal says so"
    );
}

/// R9: what cannot get better is not waited for.
#[tokio::test(start_paused = true)]
async fn r9_a_permanent_error_fails_the_step_at_once_in_the_providers_words() {
    let story = Story::new(|_, _, _| {
        Reply::Fail(RuntimeError::Permanent {
            words: "model m is not available to you".to_owned(),
        })
    });
    let handle = story.launch(definition(&[("a", "x")], &[])).await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Failed);
    assert_eq!(story.sent(&["a"]), [0]);
    assert!(story.clock().awake() < SOON);
    let run = story.run().await;
    assert!(matches!(
        step(&run, "a").end(),
        Some(StepEnd::Failed(failure)) if failure.words.contains("model m is not available to you")
    ));
}
