//! Machines that sleep and clocks that are set (V6).

use std::time::Duration;

use sillage::core::journal;
use sillage::core::ports::runtime::RuntimeError;
use sillage::core::run::{Event, FailureClass, RunEnd, StepEnd};
use sillage_testkit::scripted_runtime::Reply;

use super::{HOUR, MINUTE, REPORT, START, Story, definition, step, temporary, until};

/// What the driver may take to notice: it looks at the clocks every half minute.
const NOTICED: Duration = Duration::from_secs(31);

/// V6: the machine sleeps for ten hours and its clock is set, back and ahead, while an agent works: all is told, and
/// its working time, of which it has two hours, has none of it.
#[tokio::test(start_paused = true)]
async fn v6_a_sleep_and_a_set_clock_are_told_and_change_no_working_time() {
    let story = Story::new(|_, _, _| Reply::Later(HOUR, Box::new(Reply::text(REPORT))));
    let clock = story.clock();
    let handle = story.launch(definition(&[("a", "x")], &[])).await;
    until(&story, 10 * MINUTE).await;
    clock.sleep(10 * HOUR);
    until(&story, 20 * MINUTE).await;
    clock.set(-3_600_000);
    until(&story, 30 * MINUTE).await;
    clock.set(7_200_000);
    assert_eq!(
        handle.wait().await.unwrap(),
        RunEnd::Complete,
        "its two hours are not over"
    );
    let log = story.log().await;
    let told: Vec<&Event> = log
        .iter()
        .map(|fact| &fact.event)
        .filter(|event| matches!(event, Event::MachineSlept { .. } | Event::ClockJumped { .. }))
        .collect();
    assert!(
        matches!(told[..], [
            Event::MachineSlept { slept },
            Event::ClockJumped { by_ms: -3_600_000 },
            Event::ClockJumped { by_ms: 7_200_000 },
        ] if *slept == 10 * HOUR),
        "{told:?}"
    );
    let run = story.run().await;
    let worked = step(&run, "a").worked(run.updated());
    assert!(worked.abs_diff(HOUR) <= NOTICED, "{worked:?}");
    let sentences: Vec<String> = journal::entries(&run, &log)
        .into_iter()
        .filter(|entry| entry.kind == "machine_slept")
        .map(|entry| entry.text)
        .collect();
    assert!(
        matches!(&sentences[..], [one] if one.contains("slept") && one.contains("10h")),
        "{sentences:?}"
    );
}

/// V6: a deadline of working time comes after the sleep by what was left of it, and not within it.
#[tokio::test(start_paused = true)]
async fn v6_a_longest_time_is_not_used_up_asleep() {
    let story = Story::new(|_, _, _| Reply::Silent);
    let clock = story.clock();
    let handle = story.launch(definition(&[("a", "x")], &[])).await;
    until(&story, HOUR).await;
    clock.sleep(5 * HOUR);
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Failed);
    let awake = clock.awake();
    assert!(awake >= 2 * HOUR && awake <= 2 * HOUR + NOTICED, "{awake:?}");
    let run = story.run().await;
    assert!(
        matches!(step(&run, "a").end(), Some(StepEnd::Failed(failure)) if failure.class == FailureClass::TimedOut)
    );
}

/// V6: a wait whose end came while the machine slept is over when it wakes, once; one whose end did not, ends on time.
#[tokio::test(start_paused = true)]
async fn v6_waits_that_end_in_a_sleep_end_once_when_the_machine_wakes() {
    // Of `a` the wait would be over in the sleep, of `b` a quarter of an hour after it.
    let story = Story::new(|now, agent, _| {
        let after = match agent {
            "a" => HOUR / 2,
            _ => 2 * HOUR,
        };
        match now < 10 * MINUTE {
            true => Reply::Fail(temporary("overloaded", Some(after))),
            false => Reply::text(REPORT),
        }
    });
    let clock = story.clock();
    let handle = story.launch(definition(&[("a", "x"), ("b", "y")], &[])).await;
    until(&story, 15 * MINUTE).await;
    clock.sleep(HOUR + HOUR / 2);
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    let a = story.made(&["send"], &["a"]);
    assert_eq!(a.len(), 2, "{a:?}");
    assert!(
        a[1].at >= 15 * MINUTE && a[1].at <= 15 * MINUTE + NOTICED,
        "{a:?}"
    );
    // Two hours by the clock, of which one and a half were slept.
    let b = story.made(&["send"], &["b"]);
    assert_eq!(b.len(), 2, "{b:?}");
    assert!(
        b[1].at >= 30 * MINUTE && b[1].at <= 30 * MINUTE + NOTICED,
        "{b:?}"
    );
}

/// V6: a clock that is set moves no wait of ours, and a provider's date stays where the provider put it.
#[tokio::test(start_paused = true)]
async fn v6_a_set_clock_moves_no_wait_of_ours_and_no_date_of_a_provider() {
    let date = START.plus(5 * HOUR);
    let story = Story::new(move |now, agent, _| match agent {
        "ours" if now < MINUTE => Reply::Fail(temporary("overloaded", Some(2 * HOUR))),
        "dated" if now < MINUTE => Reply::Fail(RuntimeError::Quota {
            words: "usage limit reached".to_owned(),
            resets_at: Some(date),
        }),
        _ => Reply::text(REPORT),
    });
    let clock = story.clock();
    let handle = story
        .launch(definition(&[("ours", "x"), ("dated", "y")], &[]))
        .await;
    until(&story, 30 * MINUTE).await;
    // An hour ahead: by the clock as it stands now the date comes an hour earlier, the wait does not.
    clock.set(3_600_000);
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    let ours = story.made(&["send"], &["ours"]);
    assert_eq!(ours.len(), 2);
    assert!(
        ours[1].at >= 2 * HOUR && ours[1].at <= 2 * HOUR + NOTICED,
        "{ours:?}"
    );
    let dated = story.made(&["send"], &["dated"]);
    assert_eq!(dated.len(), 2);
    assert!(
        dated[1].at >= 4 * HOUR && dated[1].at <= 4 * HOUR + NOTICED,
        "{dated:?}"
    );
}
