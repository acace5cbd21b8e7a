//! Coordinators and their sub-agents (W19–W23).

use super::world::{Reply, World, plan, report, task};
use crate::id::StepIndex;
use crate::ports::runtime::RuntimeError;
use crate::run::{
    Command, Event, FailureClass, Input, MessagePurpose, Phase, Run, RunDefinition, RunEnd, RunView, StepEnd,
    WaitingFor,
};
use crate::task::AgentDefinition;
use crate::time::Timestamp;

fn sub_agent(id: &str, model: &str) -> AgentDefinition {
    AgentDefinition {
        id: id.to_owned(),
        mission: "Part of it.".to_owned(),
        model: model.to_owned(),
        effort: "low".to_owned(),
        ..AgentDefinition::default()
    }
}

#[test]
fn w22_steps_of_sub_agents_come_after_the_tasks_and_are_named_after_their_coordinator() {
    let definition = task(&["a", "build", "c"], &[("a", "build"), ("build", "c")]).with_repository();
    let mut run = Run::start(Run::launch(Timestamp(0), definition)).unwrap();
    let build = StepIndex(1);
    run.add_sub_agents(
        build,
        vec![sub_agent("api", "other"), sub_agent("c", "m")],
        &[(0, 1)],
    )
    .unwrap();
    let names: Vec<&str> = run.step_names().collect();
    assert_eq!(names, ["a", "build", "c", "build/api", "build/c"]);
    assert_eq!(run.step_named("build/c"), Some(StepIndex(4)));
    assert_eq!(run.coordinator_of(StepIndex(4)), Some(build));
    assert_eq!(run.coordinator_of(StepIndex(2)), None);
    assert_eq!(
        run.sub_agents_of(build).collect::<Vec<_>>(),
        [StepIndex(3), StepIndex(4)]
    );
    assert_eq!(run.agent(StepIndex(3)).model, "other");
    assert_eq!(run.graph().parents(4), [3]);
    assert!(run.has_worktree(StepIndex(3)), "R15: as its coordinator has one");
    assert_eq!(
        run.definition().step_branch("build/api"),
        "sillage/subs/r1/build/api"
    );
    let phases: Vec<&Phase> = run.steps()[3..].iter().map(|step| step.phase()).collect();
    assert_eq!(phases, [&Phase::Ready, &Phase::Pending]);
}

#[test]
fn r3_a_sub_agent_goes_before_what_waits_for_less() {
    let definition = task(&["build", "x", "after", "later"], &[("build", "after")]);
    let mut run = Run::start(Run::launch(Timestamp(0), definition)).unwrap();
    let agents = vec![sub_agent("last", "m"), sub_agent("first", "m")];
    run.add_sub_agents(StepIndex(0), agents, &[(1, 0)]).unwrap();
    // `first` has `last`, the group's report and `after` to come; the coordinator itself waits here like any other.
    assert_eq!(run.places.startable(), [5, 0, 1, 3]);
}

#[test]
fn w22_the_picture_shows_sub_agents_under_their_coordinator() {
    let definition = task(&["build", "beside", "after"], &[("build", "after")]);
    let mut run = Run::start(Run::launch(Timestamp(0), definition)).unwrap();
    run.add_sub_agents(StepIndex(0), vec![sub_agent("api", "m")], &[])
        .unwrap();
    run.pass_to(StepIndex(0), Phase::Gathering, Timestamp(1));
    let view = RunView::of(&run, Timestamp(2));
    let order: Vec<&str> = view.in_order().iter().map(|step| step.agent.as_str()).collect();
    assert_eq!(order, ["build", "build/api", "beside", "after"]);
    assert_eq!(view.steps[0].sub_agents, ["build/api"]);
    assert_eq!(view.steps[0].state, "waiting");
    assert_eq!(
        view.steps[0].waiting_for,
        Some(WaitingFor::SubAgents { left: 1, of: 1 })
    );
    assert_eq!(view.steps[3].of.as_deref(), Some("build"));
    assert_eq!(
        view.graph_lines()[0],
        "1  ◇ build      waiting    waits for 1 of its 1 sub-agents"
    );
}

const BUILD: StepIndex = StepIndex(1);

fn definition() -> RunDefinition {
    task(&["a", "build", "c"], &[("a", "build"), ("build", "c")]).with_dynamic("build")
}

fn permanent() -> Reply {
    Reply::Error(RuntimeError::Permanent {
        words: "no such program".to_owned(),
    })
}

fn words(run: &Run) -> Vec<(&str, &'static str)> {
    run.step_names()
        .zip(run.steps().iter().map(|step| step.word()))
        .collect()
}

fn text_to(world: &World, step: u32, wanted: MessagePurpose) -> &str {
    let mut texts = world.log.iter().filter_map(|fact| {
        let Event::MessagePlanned {
            step: of,
            purpose,
            message,
            ..
        } = &fact.event
        else {
            return None;
        };
        (of.0 == step && *purpose == wanted).then_some(message.text.as_str())
    });
    texts.next_back().expect("it was told so")
}

#[test]
fn w19_w22_a_plan_becomes_sub_agents_and_their_reports_one_report() {
    let mut world = World::new(definition().with_repository());
    world.plans("build", [Reply::text(&plan(&[("api", &[]), ("docs", &["api"])]))]);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let all = ["a", "build", "c", "build/api", "build/docs"].map(|name| (name, "complete"));
    assert_eq!(words(&run), all);
    // One session a step: the coordinator writes the report in the session that made the plan.
    assert_eq!(world.sessions_opened, 5);
    assert_eq!(world.merged, ["a", "build/api", "build/docs", "build", "c"]);
    assert!(world.open.is_empty(), "no session is left");
    // W9, W13: a sub-agent has the reports of what its coordinator is linked to, and of those that it comes after.
    let told = text_to(&world, 4, MessagePurpose::Mission);
    for held in [
        "Do docs.",
        "u-docs",
        "Report of `a`",
        "Report of `build/api`",
        "/data/r1/build/api/report.json",
    ] {
        assert!(told.contains(held), "{held} in {told}");
    }
    // R15, R18: it starts from the work of those before it, on a branch of its own.
    let worktree = run
        .step(StepIndex(4))
        .unwrap()
        .work()
        .unwrap()
        .worktree
        .clone()
        .unwrap();
    assert_eq!(
        (worktree.base.as_str(), worktree.branch.as_str()),
        ("merge-of-build/api", "sillage/subs/r1/build/docs")
    );
    let told = text_to(&world, 1, MessagePurpose::Synthesis);
    assert!(told.contains("commit-of-build/api"), "{told}");
    assert!(told.contains("stands at `merge-of-build/docs`"), "{told}");
    let worktree = run.step(BUILD).unwrap().work().unwrap().worktree.clone().unwrap();
    assert_eq!(worktree.base, "merge-of-build/docs");
}

#[test]
fn w21_a_refused_plan_goes_back_in_the_same_session_and_launches_nothing() {
    let too_many = plan(&[("v", &[]), ("w", &[]), ("x", &[]), ("y", &[]), ("z", &[])]);
    let mut world = World::new(definition());
    world.plans(
        "build",
        [
            Reply::text(&too_many),
            Reply::text("none"),
            Reply::text(&plan(&[("x", &[])])),
        ],
    );
    world.script(
        "build",
        [Reply::text("no report"), Reply::text(&report("complete"))],
    );
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let build = run.step(BUILD).unwrap();
    // Plans and reports go back apart from each other.
    assert_eq!((build.plan_returns(), build.corrections()), (2, 1));
    assert_eq!(world.sessions_opened, 4);

    let mut world = World::new(definition());
    world.plans("build", vec![Reply::text(&too_many); 3]);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Failed));
    let Some(StepEnd::Failed(failure)) = run.step(BUILD).unwrap().end() else {
        panic!("build failed")
    };
    assert_eq!(failure.class, FailureClass::PlanRefused);
    assert_eq!(run.steps().len(), 3, "nothing was launched");
    assert_eq!(world.answers(), 1 + 3);
    // A resume asks for a plan anew, and lets it go back as often.
    world.plans(
        "build",
        [
            Reply::text("none"),
            Reply::text("none"),
            Reply::text(&plan(&[("x", &[])])),
        ],
    );
    assert_eq!(world.resume(run).end(), Some(RunEnd::Complete));
}

#[test]
fn w23_a_lost_sub_agent_makes_the_group_partial_and_what_comes_after_it_is_not_run() {
    for stubborn in [false, true] {
        let mut world = World::new(definition().with_repository());
        world.plans(
            "build",
            [Reply::text(&plan(&[("x", &[]), ("y", &["x"]), ("z", &[])]))],
        );
        world.script("build/x", [permanent()]);
        // It says `complete` nevertheless, and is told that it cannot be; or insists, and is taken for partial.
        let insists = if stubborn { 3 } else { 1 };
        let mut answers = vec![Reply::text(&report("complete")); insists];
        answers.push(Reply::text(&report("partial")));
        world.script("build", answers);
        let run = world.run_to_end();
        assert_eq!(
            run.end(),
            Some(RunEnd::Partial),
            "R2: a sub-agent's end does not decide the run's"
        );
        assert_eq!(
            words(&run),
            [
                ("a", "complete"),
                ("build", "partial"),
                ("c", "complete"),
                ("build/x", "failed"),
                ("build/y", "not_run"),
                ("build/z", "complete")
            ]
        );
        assert_eq!(
            run.step(BUILD).unwrap().corrections(),
            if stubborn { 2 } else { 1 }
        );
        assert_eq!(world.merged, ["a", "build/z", "build", "c"]);
        let told = text_to(&world, 1, MessagePurpose::Synthesis);
        for held in [
            "no such program",
            "not run: build/x failed",
            "cannot be `complete`",
        ] {
            assert!(told.contains(held), "{held} in {told}");
        }
        assert!(
            !run.can_resume(),
            "what its coordinator reported on stays as it is"
        );
    }
}

#[test]
fn r4_when_every_sub_agent_is_lost_the_agent_fails_and_a_resume_launches_them() {
    let mut world = World::new(definition().with_repository());
    world.plans(
        "build",
        [Reply::text(&plan(&[("x", &[]), ("y", &["x"]), ("z", &[])]))],
    );
    world.script("build/x", [permanent()]);
    world.script("build/z", [permanent()]);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Failed));
    let Some(StepEnd::Failed(failure)) = run.step(BUILD).unwrap().end() else {
        panic!("build failed")
    };
    assert_eq!(failure.class, FailureClass::SubAgentsLost);
    assert!(failure.words.contains("no such program"), "{}", failure.words);
    assert_eq!(world.told(1, MessagePurpose::Synthesis), 0);
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    // The plan stands; the session is a new one, which is told everything.
    assert_eq!(
        (world.told(1, MessagePurpose::Plan), world.prompts_to("a")),
        (1, 1)
    );
    let told = text_to(&world, 1, MessagePurpose::Synthesis);
    assert!(
        told.contains("Mission of build.") && told.contains("## Your plan"),
        "{told}"
    );
    // W22: it starts again from its sub-agents' work.
    let worktree = run.step(BUILD).unwrap().work().unwrap().worktree.clone().unwrap();
    assert!(worktree.base.starts_with("merge-of-build/"), "{}", worktree.base);
}

#[test]
fn w22_a_coordinator_that_left_while_it_gathered_is_looked_for_and_else_told_everything_anew() {
    for repository in [false, true] {
        let definition = if repository {
            definition().with_repository()
        } else {
            definition()
        };
        let mut world = World::new(definition);
        world.plans("build", [Reply::text(&plan(&[("x", &[])]))]);
        let mut run = world.start();
        world.settle_until_phase(&mut run, 1, |phase| *phase == Phase::Gathering);
        world.lose_session_of(&mut run, "build");
        assert!(
            world
                .log
                .iter()
                .any(|fact| matches!(fact.event, Event::SessionGone { .. }))
        );
        assert_eq!(*run.step(BUILD).unwrap().phase(), Phase::Gathering);
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        let sessions = world
            .log
            .iter()
            .filter(|fact| matches!(&fact.event, Event::SessionPlanned { step, .. } if *step == BUILD));
        assert_eq!(sessions.count(), 2);
        assert_eq!(world.told(1, MessagePurpose::Plan), 1);
        assert!(text_to(&world, 1, MessagePurpose::Synthesis).contains("## Your plan"));
        world.no_identifier_twice();
    }
}

/// W18, W22: a coordinator that is done again makes another plan, and the sub-agents of the first one stay as they ended:
/// no resume and no retry launches them, and the new group does not wait for them.
#[test]
fn w22_sub_agents_of_an_earlier_plan_stay_as_they_ended() {
    let mut world = World::new(definition().with_repository());
    world.plans(
        "build",
        [
            Reply::text(&plan(&[("x", &[]), ("y", &[])])),
            Reply::text(&plan(&[("z", &[])])),
        ],
    );
    world.script("build/x", [permanent()]);
    world.script("build", [permanent(), permanent()]);
    let mut run = world.run_to_end();
    assert_eq!(run.step(BUILD).unwrap().word(), "failed");
    world.input(&mut run, Input::Command(Command::Retry { step: BUILD }));
    let run = world.go_on(run);
    assert_eq!(run.step(BUILD).unwrap().word(), "failed");
    assert_eq!(run.step_name(StepIndex(5)), "build/z");
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        run.step(StepIndex(3)).unwrap().word(),
        "failed",
        "it stays as it ended"
    );
    assert_eq!((world.prompts_to("build/x"), world.prompts_to("build/z")), (1, 1));
    world.no_identifier_twice();
}

#[test]
fn f6_a_gathering_coordinator_holds_no_place() {
    let mut definition = task(&["build"], &[]).with_dynamic("build");
    definition.parallel = 1.try_into().unwrap();
    let mut world = World::new(definition);
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| *phase == Phase::Gathering);
    assert_eq!(run.word(), "running");
    let run = world.go_on(run);
    assert_eq!((run.end(), world.most_at_work), (Some(RunEnd::Complete), 1));
}

/// R4, R12: wherever a stop falls, a resume asks nobody twice for what succeeded, and makes no second plan once one was
/// accepted.
#[test]
fn r12_a_stop_at_each_event_and_a_resume_come_to_the_same_end() {
    let scripted = |world: &mut World| {
        world.plans(
            "build",
            vec![
                Reply::text("none"),
                Reply::text(&plan(&[("x", &[]), ("y", &["x"])])),
            ],
        );
    };
    let mut whole = World::new(definition().with_repository());
    scripted(&mut whole);
    whole.run_to_end();
    for (length, forced) in whole
        .batches
        .iter()
        .flat_map(|length| [(*length, false), (*length, true)])
    {
        let mut world = World::new(definition().with_repository());
        scripted(&mut world);
        let mut run = world.run_until(length);
        if run.end().is_some() {
            continue;
        }
        for _ in 0..=u8::from(forced) {
            world.input(&mut run, Input::Command(Command::Stop));
        }
        let mut run = world.go_on(run);
        if !run.can_resume() {
            // Nothing but worktrees was left, which a stop does not wait for.
            assert!(run.steps().iter().all(|step| step.lets_follow()));
            continue;
        }
        run = world.resume(run);
        assert_eq!(
            run.end(),
            Some(RunEnd::Complete),
            "after {length} events, forced: {forced}"
        );
        let plans = world
            .log
            .iter()
            .filter(|fact| matches!(fact.event, Event::PlanAccepted { .. }));
        assert_eq!(plans.count(), 1, "after {length} events");
        assert_eq!(world.merged_once(), ["a", "build", "build/x", "build/y", "c"]);
        assert!(world.open.is_empty());
        world.no_identifier_twice();
        let replayed = Run::replay(world.log.clone()).unwrap();
        assert_eq!(format!("{:?}", replayed.steps()), format!("{:?}", run.steps()));
    }
}

/// R1: the same for a crash at each event, at which what was in hand is not asked again.
#[test]
fn r1_a_crash_at_each_event_of_a_group_leads_to_the_same_end() {
    let scripted = |world: &mut World| {
        world.plans(
            "build",
            vec![
                Reply::text("none"),
                Reply::text(&plan(&[("x", &[]), ("y", &["x"]), ("z", &[])])),
            ],
        );
        world.script("build/z", [permanent()]);
        world.script("build", vec![Reply::text(&report("partial"))]);
    };
    let mut whole = World::new(definition().with_repository());
    scripted(&mut whole);
    whole.run_to_end();
    for length in whole.batches.clone() {
        let mut world = World::new(definition().with_repository());
        scripted(&mut world);
        drop(world.run_until(length));
        let run = world.recover();
        assert_eq!(run.end(), Some(RunEnd::Partial), "after {length} events");
        assert_eq!(
            run.step(BUILD).unwrap().word(),
            "partial",
            "after {length} events"
        );
        let plans = world
            .log
            .iter()
            .filter(|fact| matches!(fact.event, Event::PlanAccepted { .. }));
        assert_eq!(plans.count(), 1, "after {length} events");
        // What failed while the engine was gone is not known to have: it is asked to go on.
        let merged = world.merged_once();
        for name in ["a", "build", "build/x", "build/y", "c"] {
            assert!(
                merged.contains(&name),
                "{name} of {merged:?} after {length} events"
            );
        }
        assert!(world.open.is_empty());
        world.no_identifier_twice();
    }
}

fn counted(run: &Run) -> Vec<(&str, &'static str, u32)> {
    let again = run
        .steps()
        .iter()
        .map(|step| step.hand().map_or(0, |hand| hand.again));
    words(run)
        .into_iter()
        .zip(again)
        .map(|((name, word), again)| (name, word, again))
        .collect()
}

#[test]
fn w23_a_lost_sub_agent_is_done_again_after_its_coordinator_reported_and_the_report_is_made_anew() {
    for repository in [false, true] {
        let mut world = World::new(match repository {
            true => definition().with_repository(),
            false => definition(),
        });
        world.plans(
            "build",
            [Reply::text(&plan(&[("x", &[]), ("y", &["x"]), ("z", &[])]))],
        );
        world.script("build/x", [permanent()]);
        world.script("build", [Reply::text(&report("partial"))]);
        let mut run = world.run_to_end();
        assert_eq!(run.step(BUILD).unwrap().word(), "partial");
        let x = run.step_named("build/x").unwrap();
        world.input(&mut run, Input::Command(Command::Retry { step: x }));
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        assert_eq!(
            counted(&run),
            [
                ("a", "complete", 0),
                ("build", "complete", 1),
                ("c", "complete", 1),
                ("build/x", "complete", 1),
                ("build/y", "complete", 0),
                ("build/z", "complete", 0)
            ]
        );
        assert_eq!((world.prompts_to("build/z"), world.prompts_to("c")), (1, 2));
        assert_eq!(world.told(1, MessagePurpose::Plan), 1, "its plan stands");
        assert!(text_to(&world, 1, MessagePurpose::Synthesis).contains("## Your plan"));
        assert!(world.open.is_empty() && run.outbox().is_empty());
        let replayed = Run::replay(world.log.clone()).unwrap();
        assert_eq!(format!("{:?}", replayed.steps()), format!("{:?}", run.steps()));
    }
}

#[test]
fn r12_a_resume_runs_skipped_sub_agents_and_has_the_report_made_anew() {
    let mut world = World::new(definition().with_repository());
    world.plans("build", [Reply::text(&plan(&[("x", &[]), ("y", &["x"])]))]);
    world.script("build/x", [Reply::Silence]);
    world.script("build", [Reply::text(&report("partial"))]);
    let mut run = world.start();
    world.settle(&mut run);
    world.input(&mut run, Input::Command(Command::Skip { step: StepIndex(3) }));
    let run = world.go_on(run);
    assert_eq!((run.end(), run.can_resume()), (Some(RunEnd::Partial), true));
    let run = world.resume(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert!(run.steps().iter().all(|step| step.word() == "complete"));
    assert!(!run.can_resume());
    assert_eq!(
        (world.told(1, MessagePurpose::Plan), world.prompts_to("a")),
        (1, 1)
    );
}

#[test]
fn w22_sub_agents_of_an_earlier_plan_are_told_as_superseded_and_counted_no_more() {
    let definition = task(&["build", "after"], &[("build", "after")]).with_dynamic("build");
    let mut world = World::new(definition);
    let words = "refused".to_owned();
    world.script("build/y", [Reply::Error(RuntimeError::Permanent { words })]);
    world.script("build", [Reply::text(&report("partial"))]);
    let mut run = world.run_to_end();
    let old = run.step_named("build/y").unwrap();
    world.input(&mut run, Input::Command(Command::Redo { step: StepIndex(0) }));
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let new = run.step_named("build/y").unwrap();
    assert!(new > old && run.is_of_an_earlier_plan(old) && !run.is_of_an_earlier_plan(new));
    let summary = run.summary();
    assert_eq!((summary.steps, summary.ended), (4, 4), "each name once");
    let view = RunView::of(&run, world.now);
    let order: Vec<(&str, bool)> = view
        .in_order()
        .iter()
        .map(|step| (step.agent.as_str(), step.superseded))
        .collect();
    let expected = [
        ("build", false),
        ("build/x", false),
        ("build/y", false),
        ("build/x", true),
        ("build/y", true),
        ("after", false),
    ];
    assert_eq!(order, expected);
    let told = view.graph_lines().join("\n");
    assert_eq!(told.matches("superseded by another plan").count(), 2, "{told}");
    let recap = crate::recap::Recap::of(&run, world.now);
    let steps: Vec<(&str, bool)> = recap
        .steps
        .iter()
        .map(|step| (step.agent.as_str(), step.superseded))
        .collect();
    assert_eq!(steps, expected);
    assert!(
        recap.left.is_nothing(),
        "what an earlier plan left: {:?}",
        recap.left
    );
    assert_eq!(recap.text(100).matches("superseded by another plan").count(), 2);
}
