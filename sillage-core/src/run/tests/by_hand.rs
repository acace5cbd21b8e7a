//! Retries and skips by hand (W18), and what is taken from an earlier run (R13).

use proptest::prelude::*;

use super::anything;
use super::world::{Reply, World, report, task};
use crate::id::{RunId, StepIndex};
use crate::ports::runtime::{RuntimeError, StopReason};
use crate::run::{Command, Event, Input, Phase, Refused, Run, RunEnd, Step, StepEnd};

const A: StepIndex = StepIndex(0);
const S: StepIndex = StepIndex(1);

fn words(run: &Run) -> Vec<&'static str> {
    run.steps().iter().map(Step::word).collect()
}

fn permanent() -> Reply {
    Reply::Error(RuntimeError::Permanent {
        words: "refused".to_owned(),
    })
}

fn command(world: &mut World, run: &mut Run, command: Command) {
    let refused = run.decide(world.now, &mut super::ids(9), &Input::Command(command.clone()));
    assert!(refused.is_ok(), "{refused:?}");
    world.input(run, Input::Command(command));
}

fn refusal(run: &Run, command: Command) -> Refused {
    run.decide(run.updated(), &mut super::ids(9), &Input::Command(command))
        .unwrap_err()
}

fn count(world: &World, is: impl Fn(&Event) -> bool) -> usize {
    world.log.iter().filter(|fact| is(&fact.event)).count()
}

#[test]
fn r3_what_ran_on_nothing_runs_again_once_resume_has_run_what_was_skipped() {
    for definition in [
        task(&["a", "s"], &[("a", "s")]),
        task(&["a", "s"], &[("a", "s")]).with_repository(),
    ] {
        let mut world = World::new(definition);
        world.script("a", [Reply::text(&report("blocked"))]);
        let mut run = world.run_to_end();
        assert_eq!(words(&run), ["blocked", "not_run"]);
        command(&mut world, &mut run, Command::Skip { step: A });
        let run = world.go_on(run);
        assert_eq!(
            run.end(),
            Some(RunEnd::Partial),
            "a skipped step is at best partial"
        );
        assert_eq!(words(&run), ["not_run", "complete"]);
        let to_s = world.texts.last().unwrap();
        assert!(
            to_s.contains("were skipped") && to_s.contains("- `a`"),
            "it is told so: {to_s}"
        );
        assert!(run.can_resume());
        let run = world.resume(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        assert_eq!((world.prompts_to("a"), world.prompts_to("s")), (2, 2));
        let to_s = world.texts.last().unwrap();
        assert!(
            to_s.contains("Report of `a`") && to_s.contains("because what `a` hands over is another now"),
            "with A's report: {to_s}"
        );
        assert!(!run.can_resume());
    }
}

#[test]
fn w18_a_retry_of_a_failed_step_runs_it_and_what_follows_and_nothing_else() {
    let mut world = World::new(task(&["a", "b", "c", "d"], &[("a", "b"), ("c", "d")]).with_repository());
    world.script("a", [permanent()]);
    world.script("c", [permanent()]);
    let mut run = world.run_to_end();
    assert_eq!(words(&run), ["failed", "not_run", "failed", "not_run"]);
    command(&mut world, &mut run, Command::Retry { step: A });
    assert_eq!(run.word(), "running");
    let run = world.go_on(run);
    assert_eq!(words(&run), ["complete", "complete", "failed", "not_run"]);
    assert_eq!(run.end(), Some(RunEnd::Failed));
    assert_eq!((world.prompts_to("a"), world.prompts_to("c")), (2, 1));
}

/// One, two, three, four with `two -> four`, of which the first fails and keeps the rest from being begun: over by then,
/// or with `two` still at work.
fn held_back(over: bool) -> (World, Run) {
    let mut definition = task(&["one", "two", "three", "four"], &[("two", "four")]).with_repository();
    definition.policy.fail_fast = true;
    definition.parallel = 2.try_into().unwrap();
    let mut world = World::new(definition);
    world.script("one", [permanent()]);
    if !over {
        world.script("two", [Reply::Silence]);
    }
    let mut run = world.start();
    for _ in 0..2 {
        world.settle(&mut run);
    }
    (world, run)
}

#[test]
fn w18_what_the_first_failure_held_back_goes_on_once_a_person_saw_to_it() {
    for asked in [Command::Skip { step: A }, Command::Retry { step: A }] {
        let skipped = matches!(asked, Command::Skip { .. });
        let (mut world, run) = held_back(true);
        let mut run = world.go_on(run);
        assert_eq!(words(&run), ["failed", "complete", "not_run", "not_run"]);
        for held in [2, 3] {
            let end = run.step(StepIndex(held)).unwrap().end();
            assert_eq!(end, Some(&StepEnd::FailedFast(A)));
        }
        command(&mut world, &mut run, asked);
        let run = world.go_on(run);
        let (first, end) = match skipped {
            true => ("not_run", RunEnd::Partial),
            false => ("complete", RunEnd::Complete),
        };
        assert_eq!(words(&run), [first, "complete", "complete", "complete"]);
        assert_eq!(run.end(), Some(end));
        assert_eq!((world.prompts_to("two"), world.prompts_to("four")), (1, 1));
        let to_four = world.texts.iter().find(|text| text.contains("Report of `two`"));
        assert!(!to_four.unwrap().contains("Done before"), "it is its first time");
    }
}

#[test]
fn w18_what_the_first_failure_held_back_goes_on_in_a_run_that_is_under_way() {
    for asked in [Command::Skip { step: A }, Command::Retry { step: A }] {
        let (mut world, mut run) = held_back(false);
        assert_eq!(words(&run), ["failed", "running", "not_run", "pending"]);
        command(&mut world, &mut run, asked);
        world.settle(&mut run);
        assert_eq!(run.step(StepIndex(2)).unwrap().word(), "complete");
    }
}

#[test]
fn w18_nothing_is_held_back_by_an_agent_that_did_not_fail() {
    let (mut world, run) = held_back(true);
    world.script("three", [permanent()]);
    let mut run = world.go_on(run);
    command(&mut world, &mut run, Command::Retry { step: A });
    world.script("one", [permanent()]);
    let run = world.go_on(run);
    // Whichever fails first again, nothing is told to be held back by one that did not fail.
    for step in run.steps() {
        if let Some(StepEnd::FailedFast(first)) = step.end() {
            assert_eq!(run.step(*first).unwrap().word(), "failed");
        }
    }
    assert_eq!(run.end(), Some(RunEnd::Failed));
}

#[test]
fn w18_a_step_that_succeeded_is_done_again_only_by_insistence_and_starts_from_what_was_merged_since() {
    let mut world = World::new(task(&["a", "b", "c"], &[("a", "b")]).with_repository());
    let mut run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let refused = refusal(&run, Command::Retry { step: A });
    assert!(
        matches!(refused, Refused::Succeeded { skip: false, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("--again"));
    let refused = refusal(&run, Command::Skip { step: A });
    assert!(
        matches!(refused, Refused::Succeeded { skip: true, .. }),
        "{refused}"
    );
    let tip = run.tip().unwrap().to_owned();
    command(&mut world, &mut run, Command::Redo { step: A });
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        (
            world.prompts_to("a"),
            world.prompts_to("b"),
            world.prompts_to("c")
        ),
        (2, 2, 1)
    );
    let worktree = run.step(A).unwrap().work().unwrap().worktree.clone().unwrap();
    assert_eq!(worktree.base, tip, "from the present tip");
    assert!(
        world
            .texts
            .iter()
            .any(|text| text.contains("commit `commit-of-a`")),
        "its message says that its earlier work is there"
    );
    assert_eq!(
        count(&world, |event| matches!(event, Event::StepOutdated { .. })),
        1
    );
}

#[test]
fn w18_a_step_at_work_is_skipped_once_its_session_is_closed_and_its_work_committed_apart() {
    for definition in [
        task(&["a", "s"], &[("a", "s")]),
        task(&["a", "s"], &[("a", "s")]).with_repository(),
    ] {
        let has_worktree = definition.repository.is_some();
        let mut world = World::new(definition);
        world.script("a", [Reply::Silence]);
        let mut run = world.start();
        world.settle(&mut run);
        command(&mut world, &mut run, Command::Skip { step: A });
        if has_worktree {
            let ending = Refused::Ending {
                agent: "a".to_owned(),
            };
            assert_eq!(refusal(&run, Command::Retry { step: A }), ending);
        }
        let run = world.go_on(run);
        assert_eq!(words(&run), ["not_run", "complete"]);
        let summary = run.summary();
        assert_eq!((summary.steps, summary.ended, summary.succeeded), (2, 2, 1));
        assert_eq!(run.end(), Some(RunEnd::Partial));
        assert!(world.open.is_empty(), "its session is closed");
        if has_worktree {
            let work = run.step(A).unwrap().work().unwrap();
            assert!(work.committed.is_some() && !work.merged);
        }
        assert!(run.step(S).unwrap().report().is_some());
    }
}

#[test]
fn w18_a_step_is_skipped_whatever_it_is_at_but_the_end_of_its_work() {
    let phases: [fn(&Phase) -> bool; 5] = [
        |phase| matches!(phase, Phase::Leasing),
        |phase| matches!(phase, Phase::Opening),
        |phase| matches!(phase, Phase::Prompted),
        |phase| matches!(phase, Phase::Asking(_)),
        |phase| matches!(phase, Phase::Waiting(_)),
    ];
    for stands in phases {
        let mut world = World::new(task(&["a", "s"], &[("a", "s")]).with_repository());
        let busy = RuntimeError::Temporary {
            words: "529".to_owned(),
            retry_after: None,
        };
        let first = match stands(&Phase::Asking(world.now)) {
            true => Reply::Ask("p1"),
            false => Reply::Error(busy),
        };
        world.script("a", [first]);
        let mut run = world.start();
        world.settle_until_phase(&mut run, 0, stands);
        command(&mut world, &mut run, Command::Skip { step: A });
        let run = world.go_on(run);
        assert_eq!(
            refusal(&run, Command::Skip { step: A }),
            Refused::Skipped("a".to_owned())
        );
        assert_eq!(words(&run), ["not_run", "complete"]);
        assert!(world.open.is_empty() && run.outbox().is_empty());
    }
}

#[test]
fn w18_a_retry_ends_a_wait_and_begins_the_series_anew() {
    let mut world = World::new(task(&["a"], &[]));
    let busy = || {
        Reply::Error(RuntimeError::Temporary {
            words: "529".to_owned(),
            retry_after: None,
        })
    };
    world.script("a", [busy(), busy()]);
    let mut run = world.start();
    world.settle(&mut run);
    let start = world.now;
    command(&mut world, &mut run, Command::Retry { step: A });
    world.settle(&mut run);
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        world.now.since(start),
        std::time::Duration::from_secs(30),
        "the first wait of a new series"
    );
}

#[test]
fn w18_what_is_at_work_on_an_old_report_is_called_off_and_done_again() {
    let mut world = World::new(task(&["a", "s"], &[("a", "s")]).with_repository());
    world.script("s", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    assert_eq!(words(&run), ["complete", "running"]);
    command(&mut world, &mut run, Command::Redo { step: A });
    assert_eq!(run.step(S).unwrap().word(), "pending");
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.prompts_to("s"), 2);
    assert!(world.open.is_empty());
}

#[test]
fn w18_what_is_being_merged_is_let_finish_and_then_done_again() {
    let mut world = World::new(task(&["a", "s"], &[("a", "s")]).with_repository());
    let mut run = world.start();
    world.settle_until_phase(&mut run, 1, |phase| matches!(phase, Phase::Merging(_)));
    command(&mut world, &mut run, Command::Redo { step: A });
    assert!(matches!(run.step(S).unwrap().phase(), Phase::Merging(_)));
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!((world.prompts_to("a"), world.prompts_to("s")), (2, 2));
}

#[test]
fn w18_commands_that_make_no_sense_are_refused_with_the_reason() {
    let mut world = World::new(task(&["a", "s"], &[("a", "s")]));
    world.script("a", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    assert!(matches!(
        refusal(&run, Command::Retry { step: A }),
        Refused::NotOver { .. }
    ));
    assert_eq!(
        refusal(&run, Command::Skip { step: StepIndex(7) }),
        Refused::NoSuchStep(StepIndex(7))
    );
    world.input(&mut run, Input::Command(Command::Stop));
    assert_eq!(refusal(&run, Command::Skip { step: A }), Refused::Stopping);
    let mut world = World::new(task(&["a", "s"], &[("a", "s")]));
    world.script("a", [permanent()]);
    let run = world.run_to_end();
    let told = refusal(&run, Command::Retry { step: S }).to_string();
    assert_eq!(
        told,
        "agent s does not run before a, which is failed: retry or skip a first"
    );
}

#[test]
fn w18_a_retry_in_a_stopped_run_leaves_nothing_waiting_for_ever() {
    let mut world = World::new(task(&["a", "b", "c", "d"], &[("a", "b"), ("c", "d")]));
    world.script("a", [Reply::Silence]);
    world.script("c", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    for _ in 0..2 {
        world.input(&mut run, Input::Command(Command::Stop));
    }
    let mut run = world.go_on(run);
    assert_eq!(words(&run), ["cancelled", "pending", "cancelled", "pending"]);
    command(&mut world, &mut run, Command::Retry { step: A });
    let run = world.go_on(run);
    assert_eq!(words(&run), ["complete", "complete", "cancelled", "not_run"]);
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
}

#[test]
fn r11_a_step_that_is_done_again_has_its_working_time_anew() {
    for by_resume in [true, false] {
        let mut definition = task(&["a"], &[]);
        let task = std::sync::Arc::get_mut(&mut definition.task).unwrap();
        task.agents[0].max_duration = Some(std::time::Duration::from_secs(600));
        let mut world = World::new(definition);
        world.script("a", [Reply::Silence]);
        let mut run = world.run_to_end();
        assert_eq!(run.end(), Some(RunEnd::Failed), "it timed out");
        let input = match by_resume {
            true => Command::Resume {
                budget: Default::default(),
            },
            false => Command::Retry { step: A },
        };
        command(&mut world, &mut run, input);
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        assert!(world.texts.last().unwrap().contains("You have 10m left"));
    }
}

/// What a person does and when: after so many facts of an undisturbed run.
#[derive(Debug, Clone)]
struct Deed {
    after: prop::sample::Index,
    step: prop::sample::Index,
    kind: u8,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..5)
        .prop_map(|(after, step, kind)| Deed { after, step, kind });
    prop::collection::vec(deed, 1..5)
}

/// Plays a story with a person's deeds in it; gives the run at its end.
fn play(world: &mut World, deeds: &[Deed], mut crash: Option<usize>) -> Run {
    let mut undisturbed = world.clone_of_script();
    undisturbed.run_to_end();
    let length = undisturbed.log.len() * 2;
    let mut dates: Vec<(usize, &Deed)> = deeds
        .iter()
        .map(|deed| (deed.after.index(length) + 2, deed))
        .collect();
    dates.sort_by_key(|(date, _)| *date);
    let mut run = world.start();
    for (date, deed) in dates {
        run = until(world, run, date, &mut crash);
        let step = StepIndex(u32::try_from(deed.step.index(run.steps().len())).unwrap());
        let asked = match deed.kind {
            0 => Command::Retry { step },
            1 => Command::Redo { step },
            4 => Command::Stop,
            _ => Command::Skip { step },
        };
        world.input(&mut run, Input::Command(asked));
    }
    until(world, run, usize::MAX, &mut crash)
}

/// Lets things go on until the log is so long or the run over; an engine that is to die on the way is replaced.
fn until(world: &mut World, mut run: Run, length: usize, crash: &mut Option<usize>) -> Run {
    while run.end().is_none() && world.log.len() < length {
        if crash.is_some_and(|at| world.log.len() >= at) {
            *crash = None;
            drop(run);
            run = world.take_up_again();
            continue;
        }
        let before = world.log.len();
        world.settle_once(&mut run);
        if world.log.len() == before && run.end().is_none() {
            world.now = run.deadline().expect("something to wait for").max(world.now);
            world.turn(&mut run, vec![]);
        }
    }
    run
}

/// What holds at the end of any run that people meddled with.
fn hold(run: &Run, world: &World) {
    assert!(run.end().is_some());
    // What a stop leaves is closed by whoever drove the run.
    let stopped = run.end() == Some(RunEnd::Stopped);
    assert!(stopped || world.open.is_empty(), "no session is left");
    // Those whom a stop cancels in the middle of a question to a person end what they are at without a place.
    let cancelled = count(world, |event| matches!(event, Event::StopAsked { .. })) > 0;
    let most = run.definition().parallel.get() as usize;
    assert!(cancelled || world.most_at_work <= most);
    assert!(stopped || run.outbox().is_empty(), "nothing is left to do");
    world.no_identifier_twice();
    world.nothing_granted_in_silence();
    // A step's life is over at most once; whatever begins another is in the log before.
    let mut over = vec![false; run.steps().len()];
    for fact in &world.log {
        if let Event::StepEnded { step, .. } = &fact.event {
            let before = std::mem::replace(&mut over[step.position()], true);
            assert!(!before, "{step:?} ended twice");
        } else if let Event::RetryAsked { step }
        | Event::StepSkipped { step }
        | Event::StepOutdated { step, .. } = &fact.event
        {
            over[step.position()] = false;
            // A sub-agent's coordinator reports anew.
            if let (Event::RetryAsked { .. }, Some(of)) = (&fact.event, run.coordinator_of(*step)) {
                over[of.position()] = false;
            }
        } else if let Event::SessionPlanned { step, .. } = &fact.event {
            assert!(!over[step.position()], "{step:?} began again and nobody asked");
        }
    }
    for (position, step) in run.steps().iter().enumerate() {
        let node = u32::try_from(position).unwrap();
        assert!(step.corrections() <= 2);
        if let Some(StepEnd::NotRun(because)) = step.end() {
            assert!(run.graph().ancestors(node).contains(&because.0));
            assert!(stopped || !run.step(*because).unwrap().lets_follow());
        }
        assert!(stopped || step.end().is_some());
        if step.is_skipped() && !run.is_of_an_earlier_plan(StepIndex(node)) {
            assert_ne!(run.end(), Some(RunEnd::Complete));
        }
        // R3: who succeeded did so after all that it follows, in their present lives.
        let last = |wanted: StepIndex| {
            world
                .log
                .iter()
                .rposition(|fact| matches!(&fact.event, Event::StepEnded { step, .. } if *step == wanted))
        };
        if step.succeeded() && !stopped {
            let planned = world.log.iter().rposition(|fact| {
                matches!(&fact.event, Event::SessionPlanned { step, .. } if step.position() == position)
            });
            for parent in run.graph().parents(node) {
                assert!(
                    planned > last(StepIndex(*parent)),
                    "step {position} rests on an earlier life of {parent}"
                );
            }
        }
    }
    let replayed = Run::replay(world.log.clone()).unwrap();
    assert_eq!(
        format!("{:?}", replayed.steps()),
        format!("{:?}", run.steps()),
        "replay equals live"
    );
}

proptest! {
    #[test]
    fn w18_retries_and_skips_at_any_time_lead_to_an_end_that_rests_on_present_reports(
        (definition, story) in anything::story(),
        deeds in deeds(),
    ) {
        let mut world = anything::world(&definition, &story);
        let run = play(&mut world, &deeds, None);
        hold(&run, &world);
    }

    #[test]
    fn r1_a_crash_among_retries_and_skips_leads_to_an_end_all_the_same(
        (definition, story) in anything::story(),
        deeds in deeds(),
        crash in 1usize..200,
    ) {
        let mut world = anything::world(&definition, &story);
        let run = play(&mut world, &deeds, Some(crash));
        hold(&run, &world);
    }
}

#[test]
fn r13_steps_taken_from_an_earlier_run_are_merged_and_not_asked() {
    use crate::ports::workspace::{Committed, DiffStat};
    use crate::run::{Taken, TakenWork};
    let definition = task(&["a", "b", "c"], &[("a", "b"), ("b", "c")]).with_repository();
    let mut world = World::new(definition);
    let mut earlier = World::new(world.definition.clone());
    let before = earlier.run_to_end();
    let taken = |step: u32| Taken {
        step: StepIndex(step),
        end: StepEnd::Complete,
        report: std::sync::Arc::new(before.step(StepIndex(step)).unwrap().report().unwrap().clone()),
        work: Some(TakenWork {
            branch: format!("sillage/steps/r0/{step}"),
            committed: Committed {
                tip: format!("old-commit-{step}"),
                commits: 1,
                diff: DiffStat::default(),
            },
            conflicts: vec![],
            parts: vec![],
        }),
    };
    let from = RunId::new("r0").unwrap();
    let facts = Run::relaunch(
        world.now,
        world.definition.clone(),
        &from,
        vec![taken(0), taken(1)],
    );
    world.log.extend(facts.clone());
    let mut run = Run::replay(facts).unwrap();
    world.turn(&mut run, vec![]);
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(world.merged, ["a", "b", "c"], "in order, by the queue");
    assert_eq!(
        (
            world.prompts_to("a"),
            world.prompts_to("b"),
            world.prompts_to("c")
        ),
        (0, 0, 1)
    );
    assert!(world.texts[0].contains("Report of `b`"), "{}", world.texts[0]);
    assert_eq!(run.step(A).unwrap().hand().unwrap().taken, Some(from));
    assert!(
        run.step(A).unwrap().usage().is_unknown(),
        "what it cost was paid before"
    );
}

/// An answer that the model cut must not confuse a retry.
#[test]
fn w18_a_retry_after_three_refused_reports_has_its_returns_anew() {
    let mut world = World::new(task(&["a"], &[]));
    let cut = Reply::Answer("{\"outcome\": \"comp".to_owned(), StopReason::MaxTokens);
    world.script("a", [cut.clone(), cut.clone(), cut.clone(), cut]);
    let mut run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Failed));
    command(&mut world, &mut run, Command::Retry { step: A });
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(run.step(A).unwrap().corrections(), 1);
}

#[test]
fn r12_what_a_failed_retry_kept_from_being_done_again_starts_from_what_is_merged_by_then() {
    let mut world = World::new(task(&["a", "s"], &[("a", "s")]).with_repository());
    let mut run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    world.script("a", [permanent()]);
    command(&mut world, &mut run, Command::Redo { step: A });
    let run = world.go_on(run);
    assert_eq!(words(&run), ["failed", "not_run"]);
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let planned = world.log.iter().rev().find_map(|fact| {
        let Event::WorktreePlanned { step, base, .. } = &fact.event else {
            return None;
        };
        (*step == S).then(|| base.clone())
    });
    let merged = world.log.iter().rev().find_map(|fact| {
        let Event::Merged { step, tip } = &fact.event else {
            return None;
        };
        (*step == A).then(|| tip.clone())
    });
    assert!(merged.is_some());
    assert_eq!(planned, merged);
}

#[test]
fn r2_a_stop_that_comes_when_all_is_done_has_stopped_nothing() {
    for definition in [
        task(&["a", "s"], &[("a", "s")]),
        task(&["a", "s"], &[("a", "s")]).with_repository(),
    ] {
        let mut world = World::new(definition);
        let mut run = world.start();
        world.settle_until_phase(&mut run, S.0, |phase| matches!(phase, Phase::Ended(_)));
        assert_eq!(
            run.end(),
            None,
            "its sessions or worktrees are still to be seen to"
        );
        world.input(&mut run, Input::Command(Command::Stop));
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        assert!(!run.can_resume());
    }
}

#[test]
fn w22_a_resume_of_a_skipped_coordinator_makes_another_plan_and_leaves_the_sub_agents_of_the_first() {
    let mut world = World::new(task(&["a"], &[]).with_dynamic("a"));
    let two = super::world::plan(&[("x", &[]), ("y", &[])]);
    world.plans("a", [Reply::text(&two), Reply::text(&two)]);
    world.script("a/y", [Reply::text(&report("blocked"))]);
    world.script("a", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    command(&mut world, &mut run, Command::Skip { step: A });
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Partial));
    let before = run.steps().len();
    let lost = StepIndex(2);
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(run.steps().len(), before + 2, "another plan was made");
    assert_eq!(
        run.step(lost).map(Step::word),
        Some("blocked"),
        "it stays as it ended"
    );
}

#[test]
fn w18_what_is_outdated_while_its_worktree_is_made_opens_no_session_there() {
    let mut world = World::new(task(&["a", "s"], &[("a", "s")]).with_repository());
    let mut run = world.start();
    world.settle_until_phase(&mut run, S.0, |phase| *phase == Phase::Leasing);
    command(&mut world, &mut run, Command::Redo { step: A });
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!((world.prompts_to("a"), world.prompts_to("s")), (2, 1));
    let planned = |event: &Event| matches!(event, Event::SessionPlanned { step: S, .. });
    assert_eq!(count(&world, planned), 1, "once A has reported again");
}

#[test]
fn w18_in_a_stopped_run_nothing_is_done_again_behind_what_was_cancelled_further_up() {
    let mut world = World::new(task(&["a", "b", "c", "d"], &[("a", "b"), ("b", "c"), ("c", "d")]));
    world.script("a", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    command(&mut world, &mut run, Command::Skip { step: StepIndex(3) });
    for _ in 0..2 {
        world.input(&mut run, Input::Command(Command::Stop));
    }
    let run = world.go_on(run);
    assert_eq!(words(&run), ["cancelled", "pending", "pending", "not_run"]);
    let told = refusal(&run, Command::Retry { step: StepIndex(3) }).to_string();
    assert_eq!(
        told,
        "agent d does not run before a, which is cancelled: retry or skip a first"
    );
}

#[test]
fn w18_what_a_stop_left_of_a_group_does_not_run_without_its_coordinator() {
    let two = super::world::plan(&[("x", &[]), ("y", &[])]);
    for deed in ["retry the coordinator", "skip the coordinator", "retry another"] {
        let mut definition = task(&["a", "b", "c"], &[("b", "c")]).with_dynamic("a");
        definition.parallel = std::num::NonZeroU32::MIN;
        let mut world = World::new(definition);
        world.plans("a", [Reply::text(&two), Reply::text(&two)]);
        world.script("a/x", [Reply::Silence]);
        world.script("b", [permanent()]);
        let mut run = world.start();
        world.settle(&mut run);
        for _ in 0..2 {
            world.input(&mut run, Input::Command(Command::Stop));
        }
        let mut run = world.go_on(run);
        assert_eq!(
            words(&run),
            ["cancelled", "failed", "not_run", "cancelled", "ready"]
        );
        let asked = match deed {
            "retry the coordinator" => Command::Retry { step: A },
            "skip the coordinator" => Command::Skip { step: A },
            _ => Command::Retry { step: StepIndex(1) },
        };
        command(&mut world, &mut run, asked);
        let run = world.go_on(run);
        assert!(run.end().is_some(), "{deed}: {:?}", words(&run));
        assert_eq!(
            world.prompts_to("a/y"),
            usize::from(deed == "retry the coordinator"),
            "{deed}"
        );
        assert_eq!(
            run.step(StepIndex(4)).map(Step::word),
            Some("cancelled"),
            "{deed}"
        );
        let run = world.resume(run);
        assert!(run.end().is_some(), "{deed}: {:?}", words(&run));
    }
}
