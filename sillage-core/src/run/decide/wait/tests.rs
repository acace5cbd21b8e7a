use super::*;
use crate::run::tests::world::{Reply, World, report, task};
use crate::run::{Run, RunEnd};
use crate::time::Timestamp;

fn busy(retry_after: Option<Duration>) -> Reply {
    Reply::Error(RuntimeError::Temporary {
        words: "529 overloaded".to_owned(),
        retry_after,
    })
}

/// How long each wait of the run's log was to be, with its step.
fn waits(world: &World) -> Vec<(u32, Duration)> {
    let of = |fact: &crate::run::Recorded| {
        let Event::WaitStarted { step, until, .. } = &fact.event else {
            return None;
        };
        Some((step.0, until.since(fact.at)))
    };
    world.log.iter().filter_map(of).collect()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn r7_backoff_doubles_to_its_bound() {
    let (first, most) = (Duration::from_secs(30), Duration::from_secs(240));
    let waits: Vec<u64> = (0..6)
        .map(|tries| backoff(first, most, tries).as_secs())
        .collect();
    assert_eq!(waits, [30, 60, 120, 240, 240, 240]);
    assert_eq!(backoff(first, most, u16::MAX), most);
    let (first, most) = (Duration::from_secs(300), Duration::from_secs(240));
    assert_eq!(
        backoff(first, most, 0),
        most,
        "the bound holds for the first one too"
    );
}

#[test]
fn r7_the_share_is_at_most_a_tenth_and_depends_on_run_step_and_try() {
    let wait = Duration::from_secs(240);
    let mut shares = std::collections::BTreeSet::new();
    for step in 0..50 {
        for tries in 0..20 {
            let seed = seed("20261130-120000-ab12", StepIndex(step), tries);
            let less = wait - shortened(wait, seed);
            assert!(less <= wait / 10, "{less:?}");
            shares.insert(less);
        }
    }
    assert!(shares.len() > 80, "{} different shares", shares.len());
    assert_eq!(seed("r", StepIndex(1), 2), seed("r", StepIndex(1), 2));
    assert_ne!(seed("r", StepIndex(1), 2), seed("r", StepIndex(2), 1));
}

#[test]
fn r7_a_longer_retry_after_is_honoured_unshortened_and_a_shorter_one_changes_nothing() {
    let mut world = World::new(task(&["a", "b"], &[]));
    let asked = [
        None,
        Some(seconds(900)),
        Some(seconds(1)),
        Some(seconds(u64::MAX)),
    ];
    for agent in ["a", "b"] {
        world.script(agent, asked[..3].iter().copied().map(busy));
    }
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let waits = waits(&world);
    assert!(
        waits.iter().filter(|(_, wait)| *wait == seconds(900)).count() == 2,
        "{waits:?}"
    );
    assert!(waits.iter().all(|(_, wait)| *wait >= seconds(27)));
    // One that can never end is dated at the end of time, and does not panic.
    let mut world = World::new(task(&["a"], &[]));
    world.script("a", [busy(asked[3])]);
    let mut run = world.start();
    world.settle(&mut run);
    assert_eq!(run.deadline(), Some(Timestamp(i64::MAX)));
}

#[test]
fn r7_b6_of_one_account_each_after_the_first_waits_a_little_less_and_one_alone_waits_exactly() {
    let agents = ["a", "b", "c", "d"];
    let definition = task(&agents, &[]);
    let mut world = World::new(definition);
    for agent in agents {
        world.script(agent, [busy(None)]);
    }
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let waits = waits(&world);
    assert_eq!(waits[0], (0, seconds(30)), "the first waits exactly");
    for (_, wait) in &waits[1..] {
        assert!(*wait >= seconds(27) && *wait <= seconds(30), "{waits:?}");
    }
    let different: std::collections::BTreeSet<Duration> = waits.iter().map(|(_, wait)| *wait).collect();
    assert!(different.len() > 1, "{waits:?}");
    let again = Run::replay(world.log.clone()).unwrap();
    assert_eq!(format!("{:?}", again.steps()), format!("{:?}", run.steps()));

    // Each on its own account: all wait exactly.
    let mut definition = task(&agents, &[]);
    for agent in &mut std::sync::Arc::get_mut(&mut definition.task).unwrap().agents {
        agent.model = agent.id.clone();
    }
    let mut world = World::new(definition);
    for agent in agents {
        world.script(agent, [busy(None)]);
    }
    world.run_to_end();
    assert!(self::waits(&world).iter().all(|(_, wait)| *wait == seconds(30)));
}

/// B6: half an hour of refusals, then success; a success resets the series.
#[test]
fn r7_b6_a_success_resets_the_series_and_there_is_no_limit_on_tries() {
    let mut world = World::new(task(&["a"], &[]));
    let refused = || (0..10).map(|_| busy(None));
    let script = refused().chain([Reply::text("no report")]).chain(refused());
    world.script("a", script.chain([Reply::text(&report("complete"))]));
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let waits: Vec<u64> = waits(&world).iter().map(|(_, wait)| wait.as_secs()).collect();
    let series: Vec<u64> = [30, 60, 120].into_iter().chain([240; 7]).collect();
    assert_eq!(waits, [series.clone(), series].concat());
}

#[test]
fn r7_a_limit_on_tries_fails_the_step_and_a_full_runtime_is_no_try() {
    let mut definition = task(&["a"], &[]);
    definition.policy.attempts = Some(3.try_into().unwrap());
    let mut world = World::new(definition);
    let full = |retry_after| {
        Reply::Error(RuntimeError::Capacity {
            words: "12 sessions of 12".to_owned(),
            retry_after,
        })
    };
    let zero = Some(Duration::ZERO);
    world.script(
        "a",
        [
            full(None),
            full(Some(seconds(5))),
            full(zero),
            busy(None),
            full(None),
            busy(None),
            busy(None),
        ],
    );
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Failed));
    let waits: Vec<u64> = waits(&world).iter().map(|(_, wait)| wait.as_secs()).collect();
    assert_eq!(
        waits,
        [30, 5, 1, 30, 30, 60],
        "a full runtime waits, and never at once"
    );
    let step = run.step(StepIndex(0)).unwrap();
    let Some(crate::run::StepEnd::Failed(failure)) = step.end() else {
        panic!("{:?}", step.end())
    };
    assert_eq!(failure.class, FailureClass::Attempts);
}
