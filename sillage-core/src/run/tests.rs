//! The machine against a small scripted world, without IO.

mod anything;
mod budgets;
mod by_hand;
mod check;
mod conflict;
mod fan_in;
mod groups;
mod out_of_reach;
mod permissions;
mod resumed;
mod sending;
pub(crate) mod world;

use std::time::Duration;

use super::*;
use crate::id::StepIndex;
use crate::ports::runtime::{RuntimeError, StopReason};
use world::{Reply, World, ids, report, task};

fn diamond() -> RunDefinition {
    task(
        &["a", "b", "c", "d"],
        &[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
    )
}

#[test]
fn r2_a_diamond_runs_to_complete_and_merges_in_order() {
    let mut world = World::new(diamond().with_repository());
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.merged, ["a", "b", "c", "d"]);
    assert!(
        run.steps()
            .iter()
            .all(|s| s.work().unwrap().merged && s.work().unwrap().removed)
    );
    // R18: what follows starts from the integration branch.
    let bases: Vec<&str> = run
        .steps()
        .iter()
        .map(|s| s.work().unwrap().worktree.as_ref().unwrap().base.as_str())
        .collect();
    assert_eq!(bases, ["base", "merge-of-a", "merge-of-a", "merge-of-c"]);
    assert!(world.open.is_empty(), "no session is left");
}

#[test]
fn w10_never_more_sessions_at_work_than_the_limits_allow() {
    let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut definition = task(&names, &[]);
    definition.parallel = 3.try_into().unwrap();
    let mut world = World::new(definition);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.most_at_work, 3);
}

#[test]
fn r3_longest_remaining_path_starts_first_then_the_order_of_the_definition() {
    let mut definition = task(&["x", "y", "a", "b", "c"], &[("a", "b"), ("b", "c")]);
    definition.parallel = 1.try_into().unwrap();
    let mut world = World::new(definition);
    world.run_to_end();
    assert_eq!(world.prompted_order(), ["a", "b", "x", "y", "c"]);
}

#[test]
fn w17_f1_a_refused_report_is_corrected_in_the_same_session() {
    let mut world = World::new(task(&["a"], &[]));
    world.script(
        "a",
        [Reply::text("no report here"), Reply::text(&report("complete"))],
    );
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        (
            world.sessions_opened,
            run.step(StepIndex(0)).unwrap().corrections()
        ),
        (1, 1)
    );
}

#[test]
fn w17_f2_a_third_refusal_fails_the_step_with_every_attempt_kept() {
    let mut world = World::new(task(&["a", "b"], &[("a", "b")]));
    world.script(
        "a",
        vec![Reply::text(r#"{"outcome": "complete", "summary": 3}"#); 3],
    );
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Failed));
    assert_eq!(world.answers(), 3);
    let Some(StepEnd::Failed(failure)) = run.step(StepIndex(0)).unwrap().end() else {
        panic!("a failed")
    };
    assert_eq!(failure.class, FailureClass::ReportRefused);
    assert!(failure.words.contains("summary"), "{}", failure.words);
    assert_eq!(
        run.step(StepIndex(1)).unwrap().end(),
        Some(&StepEnd::NotRun(StepIndex(0)))
    );
}

#[test]
fn w18_blocked_stops_its_descendants_only_and_partial_lets_them_run() {
    let mut world = World::new(task(&["a", "b", "c", "d"], &[("a", "b"), ("c", "d")]));
    world.script("a", [Reply::text(&report("blocked"))]);
    world.script("c", [Reply::text(&report("partial"))]);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Blocked));
    let words: Vec<_> = run.steps().iter().map(Step::word).collect();
    assert_eq!(words, ["blocked", "not_run", "partial", "complete"]);
}

#[test]
fn r1_a_failure_leaves_the_rest_and_resume_asks_only_what_did_not_succeed() {
    let mut world = World::new(task(&["a", "b", "c", "d"], &[("a", "b"), ("b", "c")]));
    let permanent = RuntimeError::Permanent {
        words: "model refused".to_owned(),
    };
    world.script(
        "b",
        [
            Reply::Error(permanent.clone()),
            Reply::Error(permanent),
            Reply::text(&report("complete")),
        ],
    );
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Failed));
    assert_eq!(
        run.steps().iter().map(Step::word).collect::<Vec<_>>(),
        ["complete", "failed", "not_run", "complete"]
    );
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Failed));
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    // R2: A is asked once in all.
    assert_eq!(world.prompts_to("a"), 1);
    assert_eq!(world.prompts_to("b"), 3);
}

#[test]
fn r7_a_temporary_error_waits_doubling_and_goes_on_in_the_same_session() {
    let mut world = World::new(task(&["a"], &[]));
    let busy = || {
        Reply::Error(RuntimeError::Temporary {
            words: "529 overloaded".to_owned(),
            retry_after: None,
        })
    };
    world.script(
        "a",
        [
            busy(),
            busy(),
            busy(),
            busy(),
            busy(),
            Reply::text(&report("complete")),
        ],
    );
    let start = world.now;
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        world.now.since(start),
        Duration::from_secs(30 + 60 + 120 + 240 + 240)
    );
    assert_eq!(world.sessions_opened, 1);
    let step = run.step(StepIndex(0)).unwrap();
    assert_eq!(step.ledger().unwrap().waits, 5);
    // R10: waiting is told apart from working.
    assert_eq!(step.ledger().unwrap().waited, Duration::from_secs(690));
    assert_eq!(step.worked(run.updated()), Duration::ZERO);
}

#[test]
fn r11_a_session_that_ends_while_its_step_waits_is_replaced_once_the_wait_is_over() {
    for definition in [task(&["a"], &[]), task(&["a"], &[]).with_repository()] {
        let mut world = World::new(definition);
        let silent = RuntimeError::Temporary {
            words: "silent for 30m00s".to_owned(),
            retry_after: None,
        };
        // Silent in its first session, and again in the one that takes its place.
        world.script(
            "a",
            [
                Reply::Error(silent.clone()),
                Reply::Error(silent),
                Reply::text(&report("complete")),
            ],
        );
        let start = world.now;
        let mut run = world.start();
        world.settle(&mut run);
        let step = run.step(StepIndex(0)).unwrap();
        assert_eq!(step.word(), "waiting");
        let session = step.session().unwrap().id();
        let lost = |words: &str| Input::Failed {
            session,
            message: None,
            error: RuntimeError::Lost {
                words: words.to_owned(),
            },
        };
        world.turn(
            &mut run,
            vec![lost("did not stop within 10s"), lost("the session ended")],
        );
        world.settle(&mut run);
        assert_eq!(run.step(StepIndex(0)).unwrap().word(), "waiting");
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        let waited = Duration::from_secs(30 + 60);
        assert_eq!(
            world.now.since(start),
            waited,
            "the wait stands, and a new session does not begin the series anew"
        );
        assert_eq!(world.sessions_opened, 2);
        assert!(world.open.is_empty(), "no session is left");
        let told = |is: fn(&Event) -> bool| world.log.iter().filter(|fact| is(&fact.event)).count();
        assert_eq!(told(|event| matches!(event, Event::SessionLost { .. })), 1);
        assert_eq!(told(|event| matches!(event, Event::SessionClosed { .. })), 2);
        assert_eq!(
            format!("{:?}", Run::replay(world.log.clone()).unwrap().steps()),
            format!("{:?}", run.steps())
        );
    }
}

#[test]
fn r4_a_stop_while_worktrees_go_leaves_nothing_to_be_done() {
    let definition = || task(&["a"], &[]).with_repository();
    let mut whole = World::new(definition());
    whole.run_to_end();
    let goes = |fact: &Recorded| matches!(fact.event, Event::WorktreeRemoved { .. });
    let length = whole.log.iter().position(goes).unwrap();
    let mut world = World::new(definition());
    let mut run = world.run_until(length);
    assert!(!run.outbox().is_empty(), "its worktree is to go");
    world.input(&mut run, Input::Command(Command::Stop));
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert!(run.outbox().is_empty());
}

#[test]
fn r11_max_duration_fails_the_step_and_commits_what_it_left() {
    let mut definition = task(&["a"], &[]).with_repository();
    Arc::get_mut(&mut definition.task).unwrap().agents[0].max_duration = Some(Duration::from_secs(600));
    let mut world = World::new(definition);
    world.script("a", [Reply::Silence]);
    let run = world.run_to_end();
    let Some(StepEnd::Failed(failure)) = run.step(StepIndex(0)).unwrap().end() else {
        panic!("a failed")
    };
    assert_eq!(failure.class, FailureClass::TimedOut);
    let work = run.step(StepIndex(0)).unwrap().work().unwrap();
    assert!(work.committed.is_some() && !work.merged);
    assert!(world.open.is_empty());
}

#[test]
fn r4_stop_cancels_waits_closes_and_leaves_everything_resumable() {
    let mut world = World::new(task(&["a", "b"], &[("a", "b")]));
    world.script("a", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    world.input(&mut run, Input::Command(Command::Stop));
    world.settle(&mut run);
    assert_eq!(world.cancelled, 1);
    assert_eq!(run.word(), "stopping");
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Stopped));
    assert!(world.open.is_empty());
    world.script("a", [Reply::text(&report("complete"))]);
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.sessions_opened, 2, "a's session was found again");
}

#[test]
fn p8_a_missing_deliverable_goes_back_to_the_agent() {
    let mut definition = task(&["a"], &[]);
    let deliverable = crate::task::Deliverable {
        text: None,
        files: vec!["out.md".into()],
    };
    Arc::get_mut(&mut definition.task).unwrap().agents[0].deliverable = Some(deliverable);
    let mut world = World::new(definition);
    world.missing = vec![vec!["out.md".into()], vec![]];
    world.script("a", vec![Reply::text(&report("complete")); 2]);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(run.step(StepIndex(0)).unwrap().corrections(), 1);
    assert!(world.texts.iter().any(|text| text.contains("out.md")));
}

#[test]
fn f4_an_answer_cut_by_the_model_is_told_as_cut() {
    let mut world = World::new(task(&["a"], &[]));
    let cut = Reply::Answer("{\"outcome\": \"comp".to_owned(), StopReason::MaxTokens);
    world.script("a", [cut, Reply::text(&report("complete"))]);
    let run = world.run_to_end();
    let faults = &run.step(StepIndex(0)).unwrap().ledger().unwrap().faults;
    assert_eq!(faults[0].code, crate::fault::FaultCode::CutAnswer);
}

/// R12: a runtime that went down over an answer and brought the session back says so: its agent is asked to go on, which
/// costs no correction; one that says it of every answer is held to the corrections all the same.
#[test]
fn r12_an_answer_that_its_runtime_cut_is_gone_on_with() {
    for word in [StopReason::CUT, StopReason::REPLAYED] {
        let cut = || Reply::Answer("half of".to_owned(), StopReason::Other(word.to_owned()));
        let mut world = World::new(task(&["a"], &[]));
        world.script("a", [cut(), Reply::text(&report("complete"))]);
        let run = world.run_to_end();
        assert_eq!(run.end(), Some(RunEnd::Complete));
        assert_eq!(run.step(StepIndex(0)).unwrap().corrections(), 0);
        let mut world = World::new(task(&["a"], &[]));
        world.script("a", std::iter::repeat_with(cut).take(20));
        assert_eq!(world.run_to_end().end(), Some(RunEnd::Failed));
    }
}

/// R1, R5: whatever the length of the log that survived, the end is the same, nothing that was answered is asked
/// again, and no identifier of ours starts two sessions or two messages.
#[test]
fn r1_restart_at_every_event_index_leads_to_the_same_end() {
    let mut definition = diamond().with_repository();
    definition.parallel = 2.try_into().unwrap();
    let scripted = |world: &mut World| {
        world.script("b", [Reply::text("oops"), Reply::text(&report("complete"))]);
    };
    let mut world = World::new(definition.clone());
    scripted(&mut world);
    let whole = world.run_to_end();
    let (log, batches) = (world.log.clone(), world.batches.clone());
    assert_eq!(whole.end(), Some(RunEnd::Complete));
    for cut in batches {
        // The world did everything that the log says, and what was in flight when the engine died.
        let mut world = World::new(definition.clone());
        scripted(&mut world);
        let run = world.run_until(cut);
        drop(run);
        assert_eq!(world.log, log[..cut], "the same inputs give the same facts");
        let run = world.recover();
        assert_eq!(run.end(), Some(RunEnd::Complete), "after {cut} events");
        assert_eq!(world.accepted_reports(), 4, "after {cut} events");
        assert_eq!(world.prompts_to("a"), 1, "after {cut} events");
        assert_eq!(world.merged_once(), ["a", "b", "c", "d"], "after {cut} events");
        assert!(world.open.is_empty());
        world.no_identifier_twice();
    }
}

#[test]
fn replay_equals_live_and_bytes_give_the_same_facts() {
    let mut world = World::new(diamond().with_repository());
    world.script("b", [Reply::text("oops"), Reply::text(&report("complete"))]);
    let live = world.run_to_end();
    let bytes: Vec<Vec<u8>> = world
        .log
        .iter()
        .map(|fact| codec::encode(fact).unwrap())
        .collect();
    let read: Vec<Recorded> = bytes.iter().map(|bytes| codec::decode(bytes).unwrap()).collect();
    assert_eq!(read, world.log);
    let replayed = Run::replay(read).unwrap();
    assert_eq!(format!("{:?}", replayed.steps()), format!("{:?}", live.steps()));
    assert_eq!(replayed.summary(), live.summary());
    let mut gap = world.log.clone();
    gap.remove(3);
    assert_eq!(Run::replay(gap).unwrap_err().seq, Seq(5));
}

#[test]
fn late_repeated_and_foreign_answers_yield_nothing() {
    let mut world = World::new(task(&["a"], &[]));
    world.script("a", [Reply::text("oops"), Reply::text(&report("complete"))]);
    let run = world.run_to_end();
    let inputs = world.inputs.clone();
    let mut again = run.clone();
    let turn = again.turn(world.now, &mut ids(99), inputs).unwrap();
    assert!(turn.facts.is_empty());
}
