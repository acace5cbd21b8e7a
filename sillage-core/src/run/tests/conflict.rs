//! Conflicts and writes outside a worktree (R17, G6, G7).

use super::super::*;
use super::world::{Reply, World, report, task};
use crate::ports::runtime::RuntimeError;
use crate::ports::workspace::WorkspaceError;

fn pair() -> RunDefinition {
    task(&["a", "b"], &[("a", "b")]).with_repository()
}

fn clashing(times: u8) -> World {
    let mut world = World::new(pair());
    world.clashes.insert("a".to_owned(), times);
    world
}

fn words(run: &Run) -> Vec<&'static str> {
    run.steps().iter().map(Step::word).collect()
}

fn work(run: &Run, step: u32) -> &Work {
    run.step(StepIndex(step)).unwrap().work().unwrap()
}

#[test]
fn r17_a_conflict_goes_back_in_the_agents_own_session_and_is_merged_once_resolved() {
    let mut world = clashing(1);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.sessions_opened, 2, "one a step");
    assert_eq!(world.told(0, MessagePurpose::Conflict), 1);
    assert!(work(&run, 0).merged && work(&run, 0).conflict.is_none());
    let told = world
        .texts
        .iter()
        .find(|text| text.contains("in conflict"))
        .unwrap();
    for part in [
        "- `f`\n- `g`\n",
        "`/wt/a`",
        "`sillage/r1`",
        "try 1 of 2",
        "End your answer with your report",
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    // What is merged in the end is what was committed after the agent's answer.
    let mut commits = Vec::new();
    for fact in &world.log {
        if let Event::WorkCommitted {
            step: StepIndex(0),
            work,
        } = &fact.event
        {
            commits.push(work.tip.as_str());
        }
    }
    assert_eq!(commits, ["commit-of-a", "commit-of-a-1"]);
}

#[test]
fn g7_two_tries_then_partial_with_its_branch_named_to_what_follows() {
    let mut world = clashing(9);
    world.stubborn.insert("a".to_owned(), 9);
    let run = world.run_to_end();
    assert_eq!(
        (run.end(), words(&run)),
        (Some(RunEnd::Partial), vec!["partial", "complete"])
    );
    assert_eq!(world.told(0, MessagePurpose::Conflict), 2);
    assert_eq!(world.abandoned, 1);
    let left = work(&run, 0);
    assert_eq!(
        (left.merged, left.conflicts.as_slice()),
        (false, &["f".to_owned()][..])
    );
    assert_eq!(left.rescued, ["refs/sillage/rescue/r1/x/1"]);
    assert!(left.conflict.is_none(), "no merge is under way any more");
    assert_eq!(
        left.committed.as_ref().unwrap().tip,
        "commit-of-a",
        "the work as it was"
    );
    let told = world.texts.last().unwrap();
    for part in [
        "Outcome: partial",
        "could not be merged",
        "`sillage/steps/r1/a`",
        "`commit-of-a`",
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    assert!(!run.can_resume(), "nothing is left for an agent to do");
}

#[test]
fn r17_a_second_conflict_with_what_others_merged_meanwhile_is_the_second_try() {
    for (clashes, end) in [(2, RunEnd::Complete), (3, RunEnd::Partial)] {
        let mut world = clashing(clashes);
        let run = world.run_to_end();
        assert_eq!(run.end(), Some(end), "{clashes} conflicts");
        assert_eq!(world.told(0, MessagePurpose::Conflict), 2);
        assert_eq!(
            world.abandoned, 0,
            "what was resolved is committed: nothing is to be given up"
        );
    }
}

#[test]
fn r17_what_does_not_conflict_any_more_is_merged_without_asking() {
    let mut world = clashing(1);
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| matches!(phase, Phase::BeginningMerge(_)));
    let begun = crate::ports::workspace::MergeBegun {
        onto: "other".to_owned(),
        files: vec![],
    };
    world.input(
        &mut run,
        Input::MergeBegun {
            step: StepIndex(0),
            result: Ok(begun),
        },
    );
    world.clashes.clear();
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.told(0, MessagePurpose::Conflict), 0);
}

#[test]
fn w17_the_report_on_a_conflict_is_checked_and_corrected_as_any_other() {
    let mut world = clashing(1);
    let script = ["complete", "", "", "complete"].map(|outcome| match outcome {
        "" => Reply::text("I did it"),
        outcome => Reply::text(&report(outcome)),
    });
    world.script("a", script);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.told(0, MessagePurpose::Correction), 2);
}

#[test]
fn w18_an_agent_that_cannot_resolve_it_may_be_blocked_and_its_merge_is_given_up() {
    let mut world = clashing(1);
    world.stubborn.insert("a".to_owned(), 1);
    world.script(
        "a",
        ["complete", "blocked"].map(|outcome| Reply::text(&report(outcome))),
    );
    let run = world.run_to_end();
    assert_eq!(
        (run.end(), words(&run)),
        (Some(RunEnd::Blocked), vec!["blocked", "not_run"])
    );
    assert_eq!(world.abandoned, 1);
}

#[test]
fn r9_a_failure_while_it_resolves_fails_the_step_and_puts_its_worktree_back() {
    let mut world = clashing(1);
    let permanent = RuntimeError::Permanent {
        words: "no".to_owned(),
    };
    world.script("a", [Reply::text(&report("complete")), Reply::Error(permanent)]);
    let run = world.run_to_end();
    assert_eq!(
        (run.end(), words(&run)),
        (Some(RunEnd::Failed), vec!["failed", "not_run"])
    );
    assert_eq!(world.abandoned, 1);
    assert_eq!(work(&run, 0).committed.as_ref().unwrap().tip, "commit-of-a");
    // A resume starts it again, with its tries.
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
}

#[test]
fn r17_a_session_that_ended_while_its_work_waited_is_found_again_and_told() {
    let mut world = clashing(1);
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| matches!(phase, Phase::Merging(_)));
    let session = run.step(StepIndex(0)).unwrap().session().unwrap().id();
    let error = RuntimeError::Lost {
        words: "it exited".to_owned(),
    };
    let input = Input::Failed {
        session,
        message: None,
        error,
    };
    world.input(&mut run, input.clone());
    world.input(&mut run, input);
    let gone = world
        .log
        .iter()
        .filter(|fact| matches!(fact.event, Event::SessionGone { .. }))
        .count();
    assert_eq!(gone, 1, "told once");
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.sessions_opened, 2, "found, not opened again");
    assert_eq!(world.told(0, MessagePurpose::Conflict), 1);
}

#[test]
fn r17_a_session_found_gone_when_it_is_told_is_looked_for() {
    let mut world = clashing(1);
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| matches!(phase, Phase::BeginningMerge(_)));
    world.settle_once(&mut run);
    let state = run.step(StepIndex(0)).unwrap();
    let session = state.session().unwrap();
    let message = session.in_flight.as_ref().unwrap().client_message_id;
    let session = session.id();
    let error = RuntimeError::Lost {
        words: "there is no session here".to_owned(),
    };
    world.input(
        &mut run,
        Input::NotSent {
            session,
            message,
            error,
        },
    );
    assert_eq!(run.step(StepIndex(0)).unwrap().word(), "waiting");
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    world.no_identifier_twice();
}

#[test]
fn r12_a_session_lost_for_good_starts_its_step_again() {
    let mut world = clashing(1);
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| matches!(phase, Phase::Merging(_)));
    world.forget_sessions();
    world.input(&mut run, Input::EngineStarted { pid: 7, left: vec![] });
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let restarted = |fact: &Recorded| matches!(fact.event, Event::WorktreeRestarted { .. });
    assert_eq!(world.log.iter().filter(|fact| restarted(fact)).count(), 1);
}

#[test]
fn r4_a_stop_while_it_resolves_leaves_the_merge_for_the_resume() {
    let mut world = clashing(1);
    world.script("a", [Reply::text(&report("complete")), Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    assert_eq!(world.told(0, MessagePurpose::Conflict), 1);
    assert_eq!(run.step(StepIndex(0)).unwrap().word(), "merging");
    world.input(&mut run, Input::Command(Command::Stop));
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Stopped));
    assert!(work(&run, 0).conflict.is_some(), "its worktree is kept as it is");
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.sessions_opened, 2, "a's session was found again");
    let told = &world.texts[world.texts.len() - 2];
    assert!(told.contains("interrupted") && told.contains("- `f`"), "{told}");
}

#[test]
fn r4_a_stop_before_it_was_told_tells_it_after_the_resume() {
    let mut world = clashing(1);
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| matches!(phase, Phase::BeginningMerge(_)));
    world.input(&mut run, Input::Command(Command::Stop));
    let run = world.go_on(run);
    assert_eq!((run.end(), words(&run)[0]), (Some(RunEnd::Stopped), "cancelled"));
    assert_eq!(world.told(0, MessagePurpose::Conflict), 0);
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.told(0, MessagePurpose::Conflict), 1);
    assert_eq!(world.told(0, MessagePurpose::Continuation), 0);
}

#[test]
fn a_worktree_that_is_gone_fails_the_step_at_whatever_it_is_asked() {
    let lost = || WorkspaceError::WorktreeLost {
        path: "/wt/a".into(),
        why: "is gone".to_owned(),
    };
    let step = StepIndex(0);
    for (name, input) in [
        (
            "begin",
            Input::MergeBegun {
                step,
                result: Err(lost()),
            },
        ),
        (
            "inspect",
            Input::Inspected {
                step,
                result: Err(lost()),
            },
        ),
        (
            "abandon",
            Input::MergeAbandoned {
                step,
                result: Err(lost()),
            },
        ),
    ] {
        let mut world = clashing(9);
        world.stubborn.insert("a".to_owned(), 9);
        let mut run = world.start();
        world.settle_until_phase(&mut run, 0, |phase| match name {
            "begin" => matches!(phase, Phase::BeginningMerge(_)),
            "inspect" => matches!(phase, Phase::Inspecting(_)),
            _ => matches!(phase, Phase::Abandoning(_)),
        });
        world.input(&mut run, input);
        let run = world.go_on(run);
        assert_eq!(words(&run), ["failed", "not_run"], "{name}");
    }
}

/// R1, R5 with conflicts: one resolved at once, one at the second try, one never.
#[test]
fn r1_restart_at_every_event_of_a_run_with_conflicts_leads_to_the_same_end() {
    let definition = task(&["a", "b", "c", "d"], &[("a", "d"), ("b", "d")]).with_repository();
    let staged = || {
        let mut world = World::new(definition.clone());
        world
            .clashes
            .extend([("a".to_owned(), 1), ("b".to_owned(), 9), ("c".to_owned(), 1)]);
        world.stubborn.extend([("b".to_owned(), 9), ("c".to_owned(), 1)]);
        world
    };
    let mut world = staged();
    let whole = world.run_to_end();
    assert_eq!(words(&whole), ["complete", "partial", "complete", "complete"]);
    for cut in world.batches.clone() {
        let mut world = staged();
        drop(world.run_until(cut));
        let run = world.recover();
        assert_eq!(words(&run), words(&whole), "after {cut} events");
        for step in 0..4 {
            assert!(
                world.told(step, MessagePurpose::Conflict) <= 2,
                "after {cut} events"
            );
        }
        assert_eq!(world.merged_once(), ["a", "c", "d"], "after {cut} events");
        assert!(world.open.is_empty());
        world.no_identifier_twice();
    }
}

fn seen(changed: &[&str], named: &[&str], cut: bool) -> StraySeen {
    let paths = |names: &[&str]| names.iter().map(std::path::PathBuf::from).collect();
    StraySeen {
        changed: paths(changed),
        named: paths(named),
        cut,
    }
}

fn signs(run: &Run, step: u32) -> Vec<(String, StraySign)> {
    let told = work(run, step).stray.iter();
    told.map(|write| (write.path.display().to_string(), write.sign))
        .collect()
}

#[test]
fn g6_files_of_the_persons_checkout_are_named_and_change_no_end() {
    let mut world = World::new(pair());
    world.seen = seen(&["x", "y"], &["y"], false);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let expected = [
        ("x".to_owned(), StraySign::Alone),
        ("y".to_owned(), StraySign::Named),
    ];
    assert_eq!(signs(&run, 0), expected);
    let lines = RunView::of(&run, world.now).graph_lines().join("\n");
    assert!(
        lines.contains("changed in your checkout: x (while no other agent was at work)"),
        "{lines}"
    );
}

#[test]
fn g6_what_others_may_have_changed_is_told_as_such() {
    let mut world = World::new(task(&["a", "b"], &[]).with_repository());
    world.seen = seen(&["x"], &[], false);
    let run = world.run_to_end();
    assert_eq!(signs(&run, 0), [("x".to_owned(), StraySign::Company)]);
    let mut world = World::new(task(&["a"], &[]).with_repository());
    world.seen = seen(&["x"], &[], true);
    let run = world.run_to_end();
    assert_eq!(signs(&run, 0), [("x".to_owned(), StraySign::Company)]);
}

#[test]
fn g6_an_agent_that_works_in_the_checkout_by_right_is_not_told_on() {
    let mut definition = task(&["a", "b"], &[]).with_repository();
    definition.worktrees = vec![true, false];
    let mut world = World::new(definition);
    world.seen = seen(&["x", "y"], &["y"], false);
    world.script("b", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    assert_eq!(words(&run), ["complete", "running"]);
    assert_eq!(signs(&run, 0), [("y".to_owned(), StraySign::Named)]);
}
