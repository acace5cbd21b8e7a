//! Quotas that are used up and sign-ins that expired: of an account everybody waits, and nothing is sent (R8).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sillage::core::ports::runtime::{AccountState, RuntimeError};
use sillage::core::run::{AccountView, Event, OpenedBy, RunEnd, WaitCause};
use sillage::core::time::Timestamp;
use sillage_testkit::scripted_runtime::{Call, Fault, Reply};

use super::{HOUR, MINUTE, REPORT, SOON, START, Story, TestClock, definition, step, until};

/// All that costs: sessions that are opened or looked for, messages that are sent.
const COSTLY: &[&str] = &["open", "find", "send"];
const QUARTER: Duration = Duration::from_secs(15 * 60);
const DATE: Duration = Duration::from_secs(5 * 3600);

fn quota(resets_at: Option<Timestamp>) -> RuntimeError {
    RuntimeError::Quota {
        words: "usage limit reached".to_owned(),
        resets_at,
    }
}

/// Of account `x`: `a`, which meets the limit; `b`, at work then and for ten minutes more; `c`, which finds no place
/// at first; `d`, after `b`. Of account `y`: `e`, and `f` after it.
const AGENTS: &[(&str, &str)] = &[
    ("a", "x"),
    ("b", "x"),
    ("c", "x"),
    ("d", "x"),
    ("e", "y"),
    ("f", "y"),
];
const OF_X: &[&str] = &["a", "b", "c", "d"];

fn dated() -> Story {
    Story::new(|now, agent, _| match agent {
        "a" if now < DATE => Reply::Fail(quota(Some(START.plus(DATE)))),
        "b" => Reply::Later(10 * MINUTE, Box::new(Reply::text(REPORT))),
        _ => Reply::text(REPORT),
    })
}

/// What is asserted of every run of [`dated`] that is over.
async fn assert_dated(story: &Story) {
    let made = story.made(COSTLY, OF_X);
    let meanwhile: Vec<_> = made
        .iter()
        .filter(|made| made.at > SOON && made.at < DATE)
        .collect();
    assert!(
        meanwhile.is_empty(),
        "sent while the quota was used up: {meanwhile:?}"
    );
    for agent in OF_X {
        let sent = story.made(&["send"], &[agent]);
        let (before, after): (Vec<_>, Vec<_>) = sent.iter().partition(|made| made.at < DATE);
        let expected = match *agent {
            "a" => (1, 1),
            "b" => (1, 0),
            _ => (0, 1),
        };
        assert_eq!((before.len(), after.len()), expected, "{agent}: {sent:?}");
        assert!(
            after.iter().all(|made| made.at < DATE + SOON),
            "{agent} goes on at the date: {sent:?}"
        );
    }
    for made in story.made(COSTLY, &["e", "f"]) {
        assert!(made.at < SOON, "another account waits for nothing: {made:?}");
    }
    let count = |is: fn(&Event) -> bool| story.count(is);
    assert_eq!(count(|event| matches!(event, Event::GateClosed { .. })).await, 1);
    assert_eq!(count(|event| matches!(event, Event::GateProbed { .. })).await, 0);
    let by_date = |event: &Event| {
        matches!(
            event,
            Event::GateOpened {
                by: OpenedBy::Date,
                ..
            }
        )
    };
    assert_eq!(count(by_date).await, 1);
    let run = story.run().await;
    // R10: held agents waited, and worked no time of it.
    for agent in ["a", "c"] {
        let waited = step(&run, agent).waited(run.updated());
        assert!(waited.abs_diff(DATE) < SOON, "{agent} waited {waited:?}");
        assert!(step(&run, agent).worked(run.updated()) < SOON);
    }
}

/// Q1: a quota with its date: the run restarts by itself, and nothing was sent for any agent of the account meanwhile.
#[tokio::test(start_paused = true)]
async fn q1_a_quota_with_a_date_restarts_by_itself_and_nothing_is_sent_meanwhile() {
    let story = dated();
    let mut definition = definition(AGENTS, &["b -> d", "e -> f"]);
    definition.parallel = 2.try_into().unwrap();
    let handle = story.launch(definition).await;
    until(&story, HOUR).await;
    // R10: one notice, with its cause, its words, its date and how many it holds.
    let run = story.run().await;
    let [account] = &AccountView::all(&run)[..] else {
        panic!("one account is waited for")
    };
    assert_eq!(
        (account.cause, account.until, account.held, account.doubtful),
        (WaitCause::Quota, START.plus(DATE), 3, false)
    );
    assert_eq!(run.word(), "waiting");
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_dated(&story).await;
}

/// Q1: the same when the engine dies while the account is waited for, and another takes the run up.
#[test]
fn q1_a_quota_is_waited_for_by_the_next_engine_as_by_the_first() {
    let paused = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let first = paused();
    let (story, run) = first.block_on(async {
        let story = dated();
        let mut definition = definition(AGENTS, &["b -> d", "e -> f"]);
        definition.parallel = 2.try_into().unwrap();
        let handle = story.launch(definition).await;
        until(&story, HOUR).await;
        (story, handle.id().clone())
    });
    // With it go the engine and all that it had begun.
    drop(first);
    paused().block_on(async {
        *story.clock.lock().unwrap() = TestClock::at(2 * HOUR);
        let handle = story.engine().resume(&run).await.unwrap();
        assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
        assert_dated(&story).await;
    });
}

/// Q1: a quota that is met in opening a session, without a date: one agent tries every quarter of an hour, and nothing
/// else is asked for of its account until it is served.
#[tokio::test(start_paused = true)]
async fn q1_r8_without_a_date_a_single_agent_tries_every_quarter_of_an_hour() {
    let story = Story::new(|_, _, _| Reply::text(REPORT)).with_faults(|now, call| match call {
        Call::Open(request) if request.model != "e" && now < HOUR => Some(Fault::Before(quota(None))),
        _ => None,
    });
    let agents = [("a", "x"), ("b", "x"), ("c", "x"), ("e", "y")];
    let handle = story.launch(definition(&agents, &[])).await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    let of_x = story.made(COSTLY, &["a", "b", "c"]);
    let meanwhile: Vec<u64> = of_x
        .iter()
        .filter(|made| made.at > SOON && made.at < HOUR)
        .map(|made| made.at.as_secs())
        .collect();
    assert_eq!(meanwhile, [900, 1800, 2700], "a single one, each time: {of_x:?}");
    assert!(
        of_x.iter()
            .filter(|made| made.at < SOON)
            .all(|made| made.call == "open"),
        "{of_x:?}"
    );
    assert!(of_x.iter().all(|made| made.at < HOUR + SOON));
    assert_eq!(
        story
            .count(|event| matches!(event, Event::GateClosed { .. }))
            .await,
        1
    );
    assert_eq!(story.sent(&["e"]), [0]);
}

/// R8: a date over a week away is doubted and tried by one agent every day.
#[tokio::test(start_paused = true)]
async fn r8_a_date_over_a_week_away_is_tried_by_one_agent_every_day() {
    let day = 24 * HOUR;
    let story = Story::new(move |now, _, _| match now < 3 * day {
        true => Reply::Fail(quota(Some(START.plus(400 * day)))),
        false => Reply::text(REPORT),
    });
    let handle = story.launch(definition(&[("a", "x"), ("b", "x")], &[])).await;
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    let sent = story.sent(&["a", "b"]);
    let day = day.as_secs();
    assert_eq!(sent, [0, 0, day, 2 * day, 3 * day, 3 * day]);
}

/// Six agents whose sign-in expires at once, until somebody signs in; and one of another account.
fn expired() -> (Story, Arc<AtomicBool>) {
    let signed_in = Arc::new(AtomicBool::new(false));
    let known = Arc::clone(&signed_in);
    let story = Story::new(
        move |_, agent, _| match agent == "other" || known.load(Ordering::Relaxed) {
            true => Reply::text(REPORT),
            false => Reply::Fail(RuntimeError::SignIn {
                words: "your sign-in expired".to_owned(),
            }),
        },
    );
    (story, signed_in)
}

const SIX: &[&str] = &["s1", "s2", "s3", "s4", "s5", "s6"];

fn six() -> sillage::core::run::RunDefinition {
    let mut agents: Vec<(&str, &str)> = SIX.iter().map(|agent| (*agent, "x")).collect();
    agents.push(("other", "y"));
    definition(&agents, &[])
}

/// One notice, six waits, and after 40 minutes two tries by a single agent.
async fn assert_no_storm(story: &Story) {
    assert_eq!(
        story
            .count(|event| matches!(event, Event::GateClosed { .. }))
            .await,
        1
    );
    let run = story.run().await;
    for agent in SIX {
        assert_eq!(step(&run, agent).word(), "waiting", "{agent}");
    }
    let sent = story.sent(SIX);
    assert_eq!(sent, [0, 0, 0, 0, 0, 0, 900, 1800]);
    let told = AccountView::all(&run);
    assert_eq!(told.len(), 1, "one notice");
    let account = &told[0];
    assert_eq!((account.cause, account.held), (WaitCause::SignIn, 6));
}

/// All six are asked once more, at this time, each in the session that it had.
async fn assert_all_go_on(story: &Story, at: Duration, by: OpenedBy) {
    for agent in SIX {
        let sent = story.sent(&[agent]);
        assert_eq!(sent.last(), Some(&at.as_secs()), "{agent}: {sent:?}");
        assert_eq!(story.made(&["open", "find"], &[agent]).len(), 1, "{agent}");
    }
    assert_eq!(story.sent(SIX).len(), 14);
    assert_eq!(story.sent(&["other"]), [0]);
    let opened = |event: &Event| matches!(event, Event::GateOpened { by: told, .. } if *told == by);
    assert_eq!(story.count(opened).await, 1);
}

/// Q4: six expired sign-ins make one notice and six waits, and all go on once the person says so.
#[tokio::test(start_paused = true)]
async fn q4_six_expired_sign_ins_make_no_storm_and_all_go_on_when_the_person_says_so() {
    let (story, signed_in) = expired();
    let handle = story.launch(six()).await;
    until(&story, 40 * MINUTE).await;
    assert_no_storm(&story).await;
    signed_in.store(true, Ordering::Relaxed);
    handle.try_account("x".to_owned()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_all_go_on(&story, 40 * MINUTE, OpenedBy::Person).await;
}

/// Q4: the same when it is the runtime that knows of the sign-in.
#[tokio::test(start_paused = true)]
async fn q4_all_go_on_when_the_runtime_knows_of_the_sign_in() {
    let (mut story, signed_in) = expired();
    let known = Arc::clone(&signed_in);
    story.runtime = story.runtime.knowing_accounts(move |account| {
        assert_eq!(account, "x", "nobody waits for another");
        match known.load(Ordering::Relaxed) {
            true => AccountState::Available,
            false => AccountState::Unavailable,
        }
    });
    let handle = story.launch(six()).await;
    // The runtime is asked every half minute.
    until(&story, 40 * MINUTE + Duration::from_secs(5)).await;
    assert_no_storm(&story).await;
    signed_in.store(true, Ordering::Relaxed);
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_all_go_on(&story, 40 * MINUTE + Duration::from_secs(30), OpenedBy::Runtime).await;
}

/// Q4: when nobody says anything, the one that tries next is served, and the others follow.
#[tokio::test(start_paused = true)]
async fn q4_all_go_on_after_the_one_that_tried_was_served() {
    let (story, signed_in) = expired();
    let handle = story.launch(six()).await;
    until(&story, 40 * MINUTE).await;
    assert_no_storm(&story).await;
    signed_in.store(true, Ordering::Relaxed);
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_all_go_on(&story, 3 * QUARTER, OpenedBy::Probe).await;
}
