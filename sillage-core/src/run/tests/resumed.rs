//! R10: what was told of a step before a resume is told after it.

use super::*;
use crate::ports::runtime::Usage;

/// A step that spends and waits, with two sessions and two resumes; what it came to is looked at by `told`, before and
/// after each resume.
fn told_on<T: std::fmt::Debug>(told: impl Fn(&Run, Timestamp) -> T) -> [T; 5] {
    let mut world = World::new(task(&["a"], &[]));
    let spent = Usage {
        input_tokens: Some(100),
        output_tokens: Some(10),
        ..Usage::default()
    };
    world.spends.insert("a".to_owned(), spent);
    let passing = |words: &str| RuntimeError::Temporary {
        words: words.to_owned(),
        retry_after: None,
    };
    let refused = || {
        Reply::Error(RuntimeError::Permanent {
            words: "the model is not known".to_owned(),
        })
    };
    let full = RuntimeError::Capacity {
        words: "no place".to_owned(),
        retry_after: None,
    };
    let script = [
        Reply::text("no report"),
        Reply::Error(passing("529 overloaded")),
        refused(),
        Reply::text("no report"),
        Reply::Error(full),
        refused(),
        Reply::text(&report("complete")),
    ];
    world.script("a", script);
    let mut run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Failed));
    let first = told(&run, world.now);
    // Its session cannot be found any more, so that there is a second one.
    world.forget_sessions();
    world.ask_to_resume(&mut run);
    let resumed = told(&run, world.now);
    let mut run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Failed));
    let second = told(&run, world.now);
    world.ask_to_resume(&mut run);
    let resumed_again = told(&run, world.now);
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    [first, resumed, second, resumed_again, told(&run, world.now)]
}

#[test]
fn r10_usage_of_before_a_resume_is_still_told_after_it() {
    let usage = told_on(|run, _| {
        let usage = run.steps()[0].usage();
        (usage.input_tokens, usage.output_tokens)
    });
    let of = |sessions: u64| (Some(100 * sessions), Some(10 * sessions));
    assert_eq!(usage, [of(1), of(1), of(2), of(2), of(3)]);
}

#[test]
fn r10_waits_of_before_a_resume_are_still_told_after_it() {
    let [first, resumed, second, resumed_again, last] = told_on(|run, now| {
        let step = &run.steps()[0];
        (step.ledger().map_or(0, |ledger| ledger.waits), step.waited(now))
    });
    assert!(first.0 == 1 && !first.1.is_zero(), "{first:?}");
    assert_eq!(resumed, first);
    assert!(second.0 == 2 && second.1 > first.1, "{second:?} after {first:?}");
    assert_eq!([resumed_again, last], [second, second]);
}
