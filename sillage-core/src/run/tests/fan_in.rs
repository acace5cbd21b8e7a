//! Fan-in of failures (W18): what does not run, and why.

use super::world::{Reply, World, report, task};
use crate::id::StepIndex;
use crate::ports::runtime::{Answer, RuntimeError, StopReason, Usage};
use crate::run::{BudgetChange, Command, Input, NotRun, NotRunBecause, Phase, Run, RunEnd, RunView, StepEnd};

fn refused() -> Reply {
    Reply::Error(RuntimeError::Permanent {
        words: "model refused".to_owned(),
    })
}

fn words(run: &Run) -> Vec<&'static str> {
    run.steps().iter().map(crate::run::Step::word).collect()
}

#[test]
fn w18_a_join_names_the_first_that_is_lost_and_lists_all() {
    let mut world = World::new(task(
        &["a", "b", "c", "d", "e"],
        &[("a", "d"), ("b", "d"), ("c", "d"), ("d", "e")],
    ));
    world.script("a", [Reply::text(&report("blocked"))]);
    world.script("b", [refused()]);
    world.script("c", [Reply::text(&report("partial"))]);
    let run = world.run_to_end();
    assert_eq!(
        words(&run),
        ["blocked", "failed", "partial", "not_run", "not_run"]
    );
    let why = NotRun::of(&run, StepIndex(3)).unwrap();
    assert_eq!(why.to_string(), "blocked by a; b did not succeed either");
    assert_eq!(
        serde_json::to_value(&why).unwrap(),
        serde_json::json!({"because": "blocked", "by": "a", "missing": ["a", "b"], "ceilings": []})
    );
    // Further down the cause is the agent that is at the root of it.
    let why = NotRun::of(&run, StepIndex(4)).unwrap();
    assert_eq!(
        (why.because, why.by.as_deref()),
        (NotRunBecause::Blocked, Some("a"))
    );
    assert_eq!(why.missing, ["d"]);
}

#[test]
fn w18_what_runs_on_part_of_the_work_shows_it() {
    let mut world = World::new(task(&["a", "b", "c"], &[("a", "c"), ("b", "c")]));
    world.script("a", [Reply::text(&report("partial"))]);
    let run = world.run_to_end();
    let view = RunView::of(&run, world.now);
    assert_eq!(view.steps[2].partial_upstream, ["a"]);
    assert!(
        view.graph_lines()[2].contains("after part of a"),
        "{:?}",
        view.graph_lines()
    );
    let recap = crate::recap::Recap::of(&run, world.now);
    assert!(recap.text(100).contains("it had part of the work of a only"));
    assert!(recap.markdown().contains("part of the work of a only"));
}

#[test]
fn fail_fast_begins_nothing_more_and_lets_what_is_at_work_finish() {
    let mut definition =
        task(&["a", "b", "c", "d", "e"], &[("a", "c"), ("b", "d"), ("b", "e")]).with_repository();
    definition.policy.fail_fast = true;
    definition.parallel = 2.try_into().unwrap();
    let mut world = World::new(definition);
    world.script("a", [refused(), Reply::text(&report("complete"))]);
    world.script("b", [Reply::text("no report"), Reply::text(&report("complete"))]);
    let run = world.run_to_end();
    assert_eq!(
        words(&run),
        ["failed", "complete", "not_run", "not_run", "not_run"]
    );
    assert_eq!(run.end(), Some(RunEnd::Failed));
    assert_eq!(world.merged, ["b"], "what was at work is merged");
    assert_eq!(
        run.step(StepIndex(2)).unwrap().end(),
        Some(&StepEnd::NotRun(StepIndex(0)))
    );
    for step in [3, 4] {
        assert_eq!(
            run.step(StepIndex(step)).unwrap().end(),
            Some(&StepEnd::FailedFast(StepIndex(0)))
        );
    }
    let why = NotRun::of(&run, StepIndex(3)).unwrap();
    assert_eq!(why.to_string(), "a failed, and the run begins nothing more then");
    let mut run = run;
    let resume = Command::Resume {
        budget: BudgetChange::default(),
    };
    world.input(&mut run, Input::Command(resume));
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete), "a resume does the rest");
}

#[test]
fn without_fail_fast_other_branches_go_on() {
    let mut definition = task(&["a", "b", "c"], &[("b", "c")]);
    definition.parallel = 1.try_into().unwrap();
    let mut world = World::new(definition);
    world.script("b", [refused()]);
    let run = world.run_to_end();
    assert_eq!(words(&run), ["complete", "failed", "not_run"]);
}

/// One turn brings a group's loss and places for others at once.
#[test]
fn fail_fast_begins_nothing_in_the_very_turn_in_which_a_group_fails() {
    let mut definition = task(&["a", "b", "c", "d"], &[]).with_dynamic("a");
    definition.policy.fail_fast = true;
    definition.parallel = 2.try_into().unwrap();
    let mut world = World::new(definition);
    world.plans("a", [Reply::text(&super::world::plan(&[("x", &[])]))]);
    world.script("a/x", [Reply::Silence]);
    world.script("b", [Reply::Silence]);
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| *phase == Phase::Gathering);
    for step in [1, 4] {
        world.settle_until_phase(&mut run, step, |phase| *phase == Phase::Prompted);
    }
    assert_eq!(words(&run), ["waiting", "running", "ready", "ready", "running"]);
    let told = |step: u32| {
        let session = run.step(StepIndex(step)).unwrap().session().unwrap();
        (
            session.id(),
            session.in_flight.as_ref().unwrap().client_message_id,
        )
    };
    let ((x, lost), (b, answered)) = (told(4), told(1));
    let news = vec![
        Input::Failed {
            session: x,
            message: Some(lost),
            error: RuntimeError::Permanent {
                words: "model refused".to_owned(),
            },
        },
        Input::Answered {
            session: b,
            message: answered,
            answer: Answer {
                text: report("complete"),
                stop: StopReason::EndTurn,
                usage: Usage::default(),
            },
        },
    ];
    world.turn(&mut run, news);
    assert_eq!(
        words(&run),
        ["failed", "complete", "not_run", "not_run", "failed"]
    );
}

#[test]
fn fail_fast_begins_nothing_in_the_very_turn_in_which_a_step_times_out() {
    let mut definition = task(&["a", "b", "c"], &[]).with_dynamic("a");
    definition.policy.fail_fast = true;
    definition.parallel = 2.try_into().unwrap();
    let limit = std::time::Duration::from_secs(600);
    std::sync::Arc::get_mut(&mut definition.task).unwrap().agents[1].max_duration = Some(limit);
    let mut world = World::new(definition);
    world.plans("a", [Reply::Silence]);
    world.script("b", [Reply::Silence]);
    let mut run = world.start();
    for step in [0, 1] {
        world.settle_until_phase(&mut run, step, |phase| *phase == Phase::Prompted);
    }
    let session = run.step(StepIndex(0)).unwrap().session().unwrap();
    let planned = Input::Answered {
        session: session.id(),
        message: session.in_flight.as_ref().unwrap().client_message_id,
        answer: Answer {
            text: super::world::plan(&[("x", &[])]),
            stop: StopReason::EndTurn,
            usage: Usage::default(),
        },
    };
    world.now = world.now.plus(limit);
    world.turn(&mut run, vec![planned]);
    assert_eq!(words(&run)[1..], ["failed", "not_run", "not_run"]);
}
