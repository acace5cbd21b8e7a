use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::ports::runtime::RuntimeError;
use crate::run::tests::world::{Reply, World, task};
use crate::run::{Command, RunDefinition, RunEnd};

const HOUR: Duration = Duration::from_secs(3600);
const HOUR_MS: i64 = 3_600_000;

fn reading(wall: i64, awake: u64, passed: u64) -> ClockReading {
    ClockReading {
        wall: Timestamp(wall),
        awake: Duration::from_millis(awake),
        passed: Duration::from_millis(passed),
    }
}

fn between(first: ClockReading, second: ClockReading) -> Vec<Input> {
    let mut watch = ClockWatch::default();
    assert_eq!(watch.read(first), []);
    watch.read(second)
}

#[test]
fn v6_two_clocks_tell_a_sleep_from_a_clock_that_was_set() {
    let start = reading(1_000_000, 500, 700);
    let hour = 3_600_000;
    let slept = Input::MachineSlept { slept: HOUR };
    let jumped = |by_ms| Input::ClockJumped { by_ms };
    // A second passed in each case.
    assert_eq!(between(start, reading(1_001_000, 1500, 1700)), []);
    assert_eq!(
        between(start, reading(1_001_000 + HOUR_MS, 1500, 1700 + hour)),
        [Input::MachineSlept { slept: HOUR }]
    );
    assert_eq!(
        between(start, reading(1_001_000 + HOUR_MS, 1500, 1700)),
        [jumped(HOUR_MS)]
    );
    assert_eq!(
        between(start, reading(1_001_000 - HOUR_MS, 1500, 1700)),
        [jumped(-HOUR_MS)]
    );
    assert_eq!(
        between(start, reading(1_001_000, 1500, 1700 + hour)),
        [slept, jumped(-HOUR_MS)],
        "it slept, and its clock stood still meanwhile"
    );
    assert_eq!(
        between(start, reading(1_005_900, 1500, 1700)),
        [],
        "a clock that drifts is not one that was set"
    );
    // An engine that was stopped for an hour: all clocks went on.
    assert_eq!(
        between(start, reading(1_000_000 + HOUR_MS, 500 + hour, 700 + hour)),
        []
    );
}

proptest! {
    #[test]
    fn h2_no_reading_of_any_clock_panics(
        first in (any::<i64>(), any::<u64>(), any::<u64>()),
        second in (any::<i64>(), any::<u64>(), any::<u64>()),
    ) {
        between(reading(first.0, first.1, first.2), reading(second.0, second.1, second.2));
    }
}

/// One agent that may work for two hours, in the middle of its answer.
fn working() -> (World, Run) {
    let mut definition = task(&["a"], &[]);
    let agents = &mut Arc::get_mut(&mut definition.task).unwrap().agents;
    agents[0].max_duration = Some(2 * HOUR);
    let mut world = World::new(definition);
    world.script("a", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    (world, run)
}

fn set(world: &mut World, run: &mut Run, by_ms: i64) {
    world.now = world.now.shifted(by_ms);
    world.turn(run, vec![Input::ClockJumped { by_ms }]);
}

#[test]
fn r11_v6_no_time_is_worked_while_the_machine_sleeps() {
    let (mut world, mut run) = working();
    let start = world.now;
    // A quarter of an hour of work, then nine hours of sleep.
    world.now = start.plus(HOUR / 4 + 9 * HOUR);
    world.turn(&mut run, vec![Input::MachineSlept { slept: 9 * HOUR }]);
    let step = run.step(StepIndex(0)).unwrap();
    assert_eq!((step.word(), step.worked(world.now)), ("running", HOUR / 4));
    assert_eq!(run.deadline(), Some(start.plus(11 * HOUR)));
    assert_eq!(
        format!("{:?}", Run::replay(world.log.clone()).unwrap().steps()),
        format!("{:?}", run.steps())
    );
    let run = world.go_on(run);
    assert_eq!(
        (run.end(), world.now),
        (Some(RunEnd::Failed), start.plus(11 * HOUR))
    );
    assert_eq!(run.step(StepIndex(0)).unwrap().worked(world.now), 2 * HOUR);
}

#[test]
fn v6_a_clock_that_is_set_changes_neither_work_nor_waits_of_ours() {
    for by in [-HOUR_MS, HOUR_MS, -1_795_000_000_000, 340_000_000_000] {
        let (mut world, mut run) = working();
        let start = world.now;
        world.now = start.plus(HOUR / 2);
        world.turn(&mut run, vec![]);
        set(&mut world, &mut run, by);
        let step = run.step(StepIndex(0)).unwrap();
        assert_eq!(
            (step.word(), step.worked(world.now)),
            ("running", HOUR / 2),
            "{by}"
        );
        assert_eq!(run.deadline(), Some(start.shifted(by).plus(2 * HOUR)), "{by}");

        let mut world = World::new(task(&["a"], &[]));
        let words = "529".to_owned();
        world.script(
            "a",
            [Reply::Error(RuntimeError::Temporary {
                words,
                retry_after: None,
            })],
        );
        let mut run = world.start();
        world.settle(&mut run);
        world.now = world.now.plus(Duration::from_secs(10));
        world.turn(&mut run, vec![]);
        set(&mut world, &mut run, by);
        let step = run.step(StepIndex(0)).unwrap();
        assert_eq!(
            (step.word(), step.waited(world.now)),
            ("waiting", Duration::from_secs(10))
        );
        assert_eq!(
            run.deadline(),
            Some(world.now.plus(Duration::from_secs(20))),
            "{by}"
        );
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
    }
}

/// Dates of the world outside stay where they are; by a clock that went back for years they are not waited for blindly.
#[test]
fn v6_a_quotas_date_stays_when_the_clock_is_set() {
    let quota = |world: &World| {
        Reply::Error(RuntimeError::Quota {
            words: "full".to_owned(),
            resets_at: Some(world.now.plus(5 * HOUR)),
        })
    };
    for by in [
        -HOUR_MS,
        HOUR_MS,
        4 * HOUR_MS,
        6 * HOUR_MS,
        340_000_000_000,
        -900_000,
    ] {
        let mut world = World::new(task(&["a", "b"], &[]));
        let date = world.now.plus(5 * HOUR);
        world.script("a", [quota(&world)]);
        let mut run = world.start();
        world.settle(&mut run);
        let sent = world.texts.len();
        set(&mut world, &mut run, by);
        world.settle(&mut run);
        assert_eq!(
            world.texts.len() > sent,
            world.now >= date,
            "{by}: never early, never late"
        );
        let run = world.go_on(run);
        assert_eq!(
            (run.end(), world.now),
            (Some(RunEnd::Complete), world.now.max(date)),
            "{by}"
        );
    }
    let mut world = World::new(task(&["a"], &[]));
    world.now = Timestamp(1_795_000_000_000);
    world.script("a", [quota(&world)]);
    let mut run = world.start();
    world.settle(&mut run);
    set(&mut world, &mut run, -1_795_000_000_000);
    let next = run.deadline().unwrap();
    assert!(next.since(world.now) <= Duration::from_secs(24 * 3600), "{next}");
}

/// H3: very many waits for the same instant end together, in the order of the steps, and each once.
#[test]
fn h3_ten_thousand_waits_of_one_instant_end_in_order() {
    let names: Vec<String> = (0..10_000).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut definition: RunDefinition = task(&names, &[]);
    // Each its own account: alone, each waits exactly.
    let agents = &mut Arc::get_mut(&mut definition.task).unwrap().agents;
    for (number, agent) in agents.iter_mut().enumerate() {
        agent.model = format!("m{number}");
    }
    definition.parallel = 10_000.try_into().unwrap();
    let mut run = {
        let launch = Run::launch(Timestamp(0), definition);
        Run::start(launch).unwrap()
    };
    let mut ids = crate::run::tests::world::ids(1);
    run.turn(Timestamp(0), &mut ids, []).unwrap();
    let sessions: Vec<_> = run
        .steps()
        .iter()
        .map(|step| step.session().unwrap().id())
        .collect();
    let full = |session| Input::Opened {
        session,
        result: Err(RuntimeError::Temporary {
            words: "529".to_owned(),
            retry_after: None,
        }),
    };
    run.turn(Timestamp(0), &mut ids, sessions.into_iter().map(full))
        .unwrap();
    let due = Timestamp(30_000);
    assert_eq!((run.deadline(), run.word()), (Some(due), "waiting"));
    assert!(run.turn(due.shifted(-1), &mut ids, []).unwrap().facts.is_empty());
    let turn = run.turn(due, &mut ids, []).unwrap();
    let ended: Vec<u32> = turn
        .facts
        .iter()
        .filter_map(|fact| {
            let crate::run::Event::WaitEnded { step } = fact.event else {
                return None;
            };
            Some(step.0)
        })
        .collect();
    assert_eq!(ended, (0..10_000).collect::<Vec<u32>>());
    assert_eq!(run.outbox().len(), 10_000, "all of them go on");
}

#[test]
fn v6_a_run_that_is_over_takes_no_notice() {
    let (mut world, mut run) = working();
    world.turn(&mut run, vec![Input::Command(Command::Stop)]);
    set(&mut world, &mut run, HOUR_MS);
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Stopped));
    let mut over = run.clone();
    let turn = over
        .turn(
            world.now,
            &mut crate::run::tests::world::ids(3),
            [Input::MachineSlept { slept: HOUR }],
        )
        .unwrap();
    assert!(turn.facts.is_empty());
}
