//! The task's check (W10b, G8).

use super::super::*;
use super::world::{Reply, World, report, task};

fn checked(definition: RunDefinition) -> World {
    let mut definition = definition;
    Arc::get_mut(&mut definition.task).unwrap().check = Some("make check".to_owned());
    World::new(definition)
}

fn pair() -> RunDefinition {
    task(&["a", "b"], &[("a", "b")])
}

fn started(world: &World) -> Vec<Option<&str>> {
    let mut commits = Vec::new();
    for fact in &world.log {
        if let Event::CheckStarted { commit } = &fact.event {
            commits.push(commit.as_deref());
        }
    }
    commits
}

#[test]
fn w10b_a_check_that_passes_is_recorded_before_the_run_is_complete() {
    let mut world = checked(pair().with_repository());
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(started(&world), [Some("merge-of-b")]);
    assert!(run.check().unwrap().passed);
    let kinds: Vec<bool> = world
        .log
        .iter()
        .map(|f| matches!(f.event, Event::CheckCleared))
        .collect();
    assert!(kinds.iter().any(|cleared| *cleared), "its worktree goes");
    assert!(!run.can_resume());
}

#[test]
fn g8_a_check_that_fails_makes_the_run_partial_and_a_resume_runs_it_again() {
    let mut world = checked(pair().with_repository());
    world.passes = false;
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Partial));
    assert!(run.steps().iter().all(|step| step.word() == "complete"));
    let view = RunView::of(&run, world.now).check.unwrap().to_string();
    assert_eq!(view, "`make check` failed with exit code 1");
    assert!(run.can_resume());
    world.passes = true;
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        world.prompts_to("a") + world.prompts_to("b"),
        2,
        "no agent is asked again"
    );
}

#[test]
fn w10b_where_nothing_was_merged_it_runs_where_the_work_is() {
    let mut world = checked(pair());
    assert_eq!(world.run_to_end().end(), Some(RunEnd::Complete));
    assert_eq!(started(&world), [None], "a plain folder is checked in place");

    let mut definition = pair().with_repository();
    definition.worktrees = vec![false, false];
    let mut world = checked(definition);
    world.run_to_end();
    assert_eq!(
        started(&world),
        [None],
        "and so is a checkout that agents work in"
    );
}

#[test]
fn w10b_a_run_that_is_not_whole_is_not_checked() {
    for outcome in ["blocked", "failed"] {
        let mut world = checked(pair().with_repository());
        world.script(
            "a",
            [match outcome {
                "blocked" => Reply::text(&report("blocked")),
                _ => Reply::Error(crate::ports::runtime::RuntimeError::Permanent {
                    words: "no".to_owned(),
                }),
            }],
        );
        let run = world.run_to_end();
        assert_eq!(run.end().unwrap().word(), outcome);
        assert!(started(&world).is_empty());
    }
    // Partial, with work that was merged: that is checked.
    let mut world = checked(pair().with_repository());
    world.script("a", [Reply::text(&report("partial"))]);
    assert_eq!(world.run_to_end().end(), Some(RunEnd::Partial));
    assert_eq!(started(&world).len(), 1);
    // Partial, and nothing of it was merged: there is nothing to check.
    let mut world = checked(task(&["a"], &[]).with_repository());
    world.clashes.insert("a".to_owned(), 9);
    world.stubborn.insert("a".to_owned(), 9);
    assert_eq!(world.run_to_end().end(), Some(RunEnd::Partial));
    assert!(started(&world).is_empty());
}

#[test]
fn r4_a_stop_ends_the_check_and_a_resume_begins_it_anew() {
    let mut world = checked(pair().with_repository());
    let mut run = world.start();
    while !run.is_checking() {
        world.settle_once(&mut run);
    }
    assert!(run.outbox().contains(&EffectKey::Check));
    world.input(&mut run, Input::Command(Command::Stop));
    assert!(!run.outbox().contains(&EffectKey::Check), "it is let go");
    let run = world.go_on(run);
    assert_eq!((run.end(), run.check()), (Some(RunEnd::Stopped), None));
    assert!(run.can_resume());
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(started(&world).len(), 2);
}

#[test]
fn r4_a_forced_stop_does_not_wait_for_the_checks_folder() {
    let mut world = checked(pair().with_repository());
    let mut run = world.start();
    while !run.is_checking() {
        world.settle_once(&mut run);
    }
    world.input(&mut run, Input::Command(Command::Stop));
    world.input(&mut run, Input::Command(Command::Stop));
    assert_eq!(run.end(), Some(RunEnd::Stopped));
    assert!(run.outbox().is_empty(), "nothing is left to be done");
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
}

#[test]
fn r1_restart_at_every_event_of_a_run_with_a_check_leads_to_the_same_end() {
    for passes in [true, false] {
        let staged = || {
            let mut world = checked(pair().with_repository());
            world.passes = passes;
            world
        };
        let mut world = staged();
        let whole = world.run_to_end();
        for cut in world.batches.clone() {
            let mut world = staged();
            drop(world.run_until(cut));
            let run = world.recover();
            assert_eq!(run.end(), whole.end(), "after {cut} events");
            assert_eq!(run.check(), whole.check(), "after {cut} events");
        }
    }
}
