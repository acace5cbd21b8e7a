//! What holds whatever the graph, the limits and the agents' answers.

use proptest::prelude::*;

use super::world::{Reply, World, plan, report, task};
use crate::id::StepIndex;
use crate::ports::runtime::{RuntimeError, StopReason, Usage};
use crate::run::step::Next;
use crate::run::{
    Budget, BudgetMode, Command, Event, Input, MessagePurpose, PermissionAnswer, Phase, Recorded, Run,
    RunDefinition, RunEnd, StepEnd,
};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// What goes wrong besides the agents' answers.
#[derive(Debug, Clone)]
pub(super) struct Bad {
    /// Of each agent: times that its work conflicts, and that it leaves the conflict.
    conflicts: Vec<(u8, u8)>,
    /// Whether the task's check passes, where it has one.
    check: Option<bool>,
    /// A ceiling of tokens and whether it is only told; each answer uses ten.
    ceiling: Option<(u8, bool)>,
    /// Whether the first failure keeps the rest from being begun.
    fail_fast: bool,
    /// Of each agent: how it plans, where it is dynamic, and what its sub-agents answer in turn.
    groups: Vec<(u8, Vec<Vec<u8>>)>,
}

const SUB_AGENTS: [&str; 3] = ["x", "y", "z"];

/// What a coordinator answers when it is asked for a plan; nothing for an agent that is not dynamic.
fn plans(shape: u8) -> Vec<Reply> {
    let one = || Reply::text(&plan(&[("x", &[])]));
    let chain = || Reply::text(&plan(&[("x", &[]), ("y", &["x"]), ("z", &["x"])]));
    let wrong = || Reply::text("no plan at all");
    let too_many = || {
        Reply::text(&plan(&[
            ("x", &[]),
            ("y", &[]),
            ("z", &[]),
            ("v", &[]),
            ("w", &[]),
        ]))
    };
    match shape {
        4 => vec![one()],
        5 => vec![chain()],
        6 => vec![too_many(), wrong(), chain()],
        7 => vec![wrong(), too_many(), wrong()],
        8 => vec![reply(4), wrong(), Reply::Ask("p1"), reply(6), chain()],
        9 => vec![reply(5), chain()],
        10 => vec![
            reply(1),
            Reply::text(&plan(&[("x", &[]), ("y", &[]), ("z", &[])])),
        ],
        _ => vec![],
    }
}

/// A graph whose links go from a lower to a higher agent, limits, what each agent answers in turn, and what else goes
/// wrong.
pub(super) fn story() -> impl Strategy<Value = (RunDefinition, (Vec<Vec<u8>>, Bad))> {
    let conflicts = prop::collection::vec((0u8..4, 0u8..4), 8);
    let sub_agents = prop::collection::vec(prop::collection::vec(0u8..11, 0..4), SUB_AGENTS.len());
    let groups = prop::collection::vec((0u8..11, sub_agents), 8);
    let ceiling = prop::option::of((1u8..80, any::<bool>()));
    let bad = (
        conflicts,
        any::<Option<bool>>(),
        groups,
        ceiling,
        prop::bool::weighted(0.2),
    );
    let bad = bad.prop_map(|(conflicts, check, groups, ceiling, fail_fast)| Bad {
        conflicts,
        check,
        groups,
        ceiling,
        fail_fast,
    });
    (peaceful(), bad).prop_map(|((mut definition, answers), bad)| {
        let task = std::sync::Arc::get_mut(&mut definition.task).unwrap();
        task.check = bad.check.map(|_| "make check".to_owned());
        definition.policy.fail_fast = bad.fail_fast;
        definition.policy.budget = bad.ceiling.map(|(tokens, audit)| Budget {
            tokens: u64::from(tokens).try_into().ok(),
            mode: if audit {
                BudgetMode::Audit
            } else {
                BudgetMode::Enforce
            },
            ..Budget::default()
        });
        for (name, (shape, _)) in NAMES.iter().zip(&bad.groups).take(definition.task.agents.len()) {
            if !plans(*shape).is_empty() {
                definition = definition.with_dynamic(name);
            }
        }
        (definition, (answers, bad))
    })
}

fn peaceful() -> impl Strategy<Value = (RunDefinition, Vec<Vec<u8>>)> {
    let links = prop::collection::btree_set((0usize..7, 1usize..8), 0..14);
    let answers = prop::collection::vec(prop::collection::vec(0u8..13, 0..5), 8);
    (1usize..=8, links, 1u32..4, any::<bool>(), answers).prop_map(
        |(agents, links, parallel, repository, answers)| {
            let names = &NAMES[..agents];
            let links: Vec<(&str, &str)> = links
                .into_iter()
                .filter(|(from, to)| from < to && *to < agents)
                .map(|(from, to)| (NAMES[from], NAMES[to]))
                .collect();
            let mut definition = task(names, &links);
            definition.parallel = parallel.try_into().unwrap();
            let definition = if repository {
                definition.with_repository()
            } else {
                definition
            };
            (definition, answers)
        },
    )
}

pub(super) fn world(definition: &RunDefinition, (answers, bad): &(Vec<Vec<u8>>, Bad)) -> World {
    let mut world = World::new(definition.clone());
    world.person = Some(PermissionAnswer::Allow);
    world.passes = bad.check.unwrap_or(true);
    for (name, (clashes, stubborn)) in NAMES.iter().zip(&bad.conflicts) {
        world.clashes.insert((*name).to_owned(), *clashes);
        world.stubborn.insert((*name).to_owned(), *stubborn);
    }
    for name in NAMES {
        let usage = Usage {
            output_tokens: Some(10),
            ..Usage::default()
        };
        world.spends.insert(name.to_owned(), usage);
    }
    for (name, answers) in NAMES.iter().zip(answers) {
        world.script(name, answers.iter().map(|kind| reply(*kind)));
    }
    for (name, (shape, groups)) in NAMES.iter().zip(&bad.groups) {
        world.plans(name, plans(*shape));
        for (sub, answers) in SUB_AGENTS.iter().zip(groups) {
            world.script(&format!("{name}/{sub}"), answers.iter().map(|kind| reply(*kind)));
        }
    }
    world
}

fn reply(kind: u8) -> Reply {
    let words = || "so it is".to_owned();
    match kind {
        0 => Reply::text("no report at all"),
        1 => Reply::Answer("{\"outcome\": \"comp".to_owned(), StopReason::MaxTokens),
        2 => Reply::text(&report("partial")),
        3 => Reply::text(&report("blocked")),
        4 => Reply::Error(RuntimeError::Temporary {
            words: words(),
            retry_after: None,
        }),
        5 => Reply::Error(RuntimeError::Permanent { words: words() }),
        6 => Reply::Error(RuntimeError::Quota {
            words: words(),
            resets_at: None,
        }),
        7 => Reply::Error(RuntimeError::Quota {
            words: words(),
            resets_at: Some(crate::time::Timestamp(4_000_000)),
        }),
        8 => Reply::Ask("p1"),
        9 => Reply::AskToo("p1", Box::new(Reply::AskToo("p2", Box::new(Reply::Ask("p3"))))),
        10 => Reply::Error(RuntimeError::Capacity {
            words: words(),
            retry_after: None,
        }),
        11 => Reply::Error(RuntimeError::SignIn { words: words() }),
        _ => Reply::text(&report("complete")),
    }
}

/// R8: while an account's gate is closed, no session is opened and no message sent for its agents, but for the one that
/// tries. What was in the middle of a message when the gate closed, or is found again in it, was at work.
fn nothing_sent_past_a_gate(log: &[Recorded]) {
    let asks = |run: &Run, step: StepIndex| {
        let state = run.step(step).unwrap();
        let session = state.session()?;
        let message = session.in_flight.as_ref();
        if *state.phase() == Phase::Opening {
            Some(session.id().0)
        } else {
            let message = message.filter(|_| *state.phase() == Phase::Prompted);
            message.map(|message| message.client_message_id.0)
        }
    };
    let mut run = Run::start(log[0].clone()).unwrap();
    for fact in &log[1..] {
        let before = run.clone();
        run.apply(fact).unwrap();
        for step in (0..u32::try_from(run.steps().len()).unwrap()).map(StepIndex) {
            let asked = asks(&run, step);
            if asked.is_none() || asked == asks(&before, step) || !run.gates.keeps_out(step) {
                continue;
            }
            let was = before.step(step).unwrap();
            let in_flight = was.session().and_then(|session| session.in_flight.as_ref());
            let was_at_work = matches!(was.phase(), Phase::Finding | Phase::Asking(_) | Phase::Ready)
                && in_flight.map(|message| message.client_message_id.0) == asked
                && (was.phase() != &Phase::Ready || was.next == Next::Answer);
            assert!(
                was_at_work,
                "step {} went past a closed gate at {}: it was {:?} ({:?}), then {:?}",
                step.0,
                fact.seq,
                was.phase(),
                was.next,
                fact.event
            );
        }
    }
}

/// What must hold of a run that is over.
fn hold(run: &Run, world: &World) {
    assert!(run.end().is_some());
    assert!(world.open.is_empty(), "no session is left");
    assert!(world.most_at_work <= run.definition().parallel.get() as usize);
    assert!(run.outbox().is_empty(), "nothing is left to do");
    world.no_identifier_twice();
    world.nothing_granted_in_silence();
    let mut ended = vec![0; run.steps().len()];
    for fact in &world.log {
        if let Event::StepEnded { step, .. } = &fact.event {
            ended[step.position()] += 1;
        }
        if let Event::SessionPlanned { step, .. } = &fact.event {
            let parents = run.graph().parents(step.0);
            let over = parents.iter().all(|parent| ended[*parent as usize] == 1);
            assert!(over, "parents come before children");
        }
    }
    assert!(
        ended.iter().all(|times| *times == 1),
        "each step ends once: {ended:?}"
    );
    let failed_check = run.check().is_some_and(|check| !check.passed);
    assert!(
        !failed_check || run.end() != Some(RunEnd::Complete),
        "W10b: a failed check is never complete"
    );
    let checked = run.definition().task.check.is_none() || run.check().is_some();
    assert!(
        checked || run.end() != Some(RunEnd::Complete),
        "W10b: complete only after its check"
    );
    for (position, step) in run.steps().iter().enumerate() {
        assert!(step.corrections() <= 2);
        let returns = world.told(u32::try_from(position).unwrap(), MessagePurpose::Conflict);
        assert!(returns <= 2, "R17: {returns} returns");
        let work = step.work();
        let apart = work.is_some_and(|work| !work.merged && !work.conflicts.is_empty());
        assert!(
            !apart || step.end() != Some(&StepEnd::Complete),
            "G7: a conflict is never a success"
        );
        assert!(
            work.is_none_or(|work| work.conflict.is_none()),
            "R17: no merge is left under way"
        );
        let node = u32::try_from(position).unwrap();
        let parents = run.graph().parents(node);
        let lost = parents
            .iter()
            .any(|parent| !run.step(StepIndex(*parent)).unwrap().lets_follow());
        assert!(
            !lost || step.word() == "not_run",
            "W18: nothing runs after what is lost"
        );
        let begins_nothing = matches!(step.end(), Some(StepEnd::OverBudget | StepEnd::FailedFast(_)));
        assert!(
            lost || step.word() != "not_run" || begins_nothing,
            "W18: what nothing keeps from running runs"
        );
        if let Some(StepEnd::FailedFast(first)) = step.end() {
            assert!(matches!(
                run.step(*first).unwrap().end(),
                Some(StepEnd::Failed(_))
            ));
        }
        assert!(step.plan_returns() <= 2, "W21: a plan goes back twice at most");
        let index = StepIndex(u32::try_from(position).unwrap());
        let planned = run.plan(index).map_or(0, |plan| plan.sub_agents.len());
        assert_eq!(
            run.sub_agents_of(index).count(),
            planned,
            "W21: a refused plan launches nothing"
        );
        assert!(
            step.end() != Some(&StepEnd::Complete) || run.missing_of_group(index).is_empty(),
            "W23: a group that lost a sub-agent is not complete"
        );
        if let Some(StepEnd::NotRun(because)) = step.end() {
            assert!(run.graph().ancestors(node).contains(&because.0));
            assert!(!run.step(*because).unwrap().lets_follow());
        }
    }
    let counted = (0..).map(StepIndex).zip(run.steps());
    let succeeded = counted.filter(|(step, state)| state.succeeded() && !run.is_of_an_earlier_plan(*step));
    assert_eq!(run.summary().succeeded as usize, succeeded.count());
    nothing_sent_past_a_gate(&world.log);
    nothing_begins_that_is_not_to(run, world);
    let replayed = Run::replay(world.log.clone()).unwrap();
    assert_eq!(
        format!("{:?}", replayed.steps()),
        format!("{:?}", run.steps()),
        "replay equals live"
    );
}

/// Once an enforced ceiling is reached, or the first failure is to stop the rest, no session is opened any more.
fn nothing_begins_that_is_not_to(run: &Run, world: &World) {
    let mut held = false;
    let mut reached = 0;
    for fact in &world.log {
        if let Event::BudgetReached {
            mode, limit, used, ..
        } = &fact.event
        {
            assert!(used >= limit);
            reached += 1;
            held |= *mode == BudgetMode::Enforce;
        }
        let failed = matches!(
            &fact.event,
            Event::StepFailing { .. }
                | Event::StepEnded {
                    end: StepEnd::Failed(_),
                    ..
                }
        );
        // A sub-agent that fails makes its group partial.
        let of_the_task = fact
            .event
            .step()
            .is_some_and(|step| run.coordinator_of(step).is_none());
        held |= failed && of_the_task && run.definition().policy.fail_fast;
        if let Event::SessionPlanned { step, .. } = &fact.event {
            assert!(!held, "step {} begins", step.0);
        }
    }
    assert!(reached <= 1, "once a ceiling");
    // What the run says to have used is what its steps' sessions told.
    let told = run
        .steps()
        .iter()
        .filter_map(|step| step.usage().output_tokens)
        .sum::<u64>();
    if let Some(ceiling) = run.budget().and_then(|budget| budget.ceilings().next()) {
        assert_eq!(run.used(ceiling, world.now), told);
        let known = world
            .spent
            .values()
            .filter_map(|usage| usage.output_tokens)
            .sum::<u64>();
        assert!(told <= known, "no session counts twice");
        assert!(
            told < ceiling.limit || reached == 1,
            "a ceiling that is reached is told"
        );
    }
}

proptest! {
    #[test]
    fn every_run_ends_within_its_limits_and_replays_to_itself((definition, story) in story()) {
        let mut world = world(&definition, &story);
        let run = world.run_to_end();
        hold(&run, &world);
    }

    #[test]
    fn r1_a_cut_anywhere_leads_to_an_end_that_asks_nothing_twice(
        (definition, story) in story(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut undisturbed = world(&definition, &story);
        undisturbed.run_to_end();
        let length = undisturbed.batches[cut.index(undisturbed.batches.len())];
        let mut world = world(&definition, &story);
        world.run_until(length);
        let run = world.recover();
        hold(&run, &world);
    }

    #[test]
    fn r4_a_stop_anywhere_and_a_resume_lead_to_an_end(
        (definition, story) in story(),
        cut in any::<prop::sample::Index>(),
        forced in any::<bool>(),
    ) {
        let mut undisturbed = world(&definition, &story);
        undisturbed.run_to_end();
        let length = undisturbed.batches[cut.index(undisturbed.batches.len())];
        let mut world = world(&definition, &story);
        let mut run = world.run_until(length);
        for _ in 0..=u8::from(forced) {
            world.input(&mut run, Input::Command(Command::Stop));
        }
        let mut run = world.go_on(run);
        if run.can_resume() {
            run = world.resume(run);
        }
        prop_assert!(run.end().is_some());
        prop_assert!(run.outbox().is_empty(), "nothing is left to do");
        let checked = run.definition().task.check.is_none() || run.check().is_some_and(|check| check.passed);
        prop_assert!(checked || run.end() != Some(RunEnd::Complete), "W10b: complete only after its check");
        for step in run.steps() {
            let conflict = step.work().and_then(|work| work.conflict.as_ref());
            prop_assert!(conflict.is_none(), "R17: no merge is left under way");
        }
        world.no_identifier_twice();
    }

    #[test]
    fn r12_resume_after_any_end_does_again_only_what_did_not_succeed((definition, story) in story()) {
        let mut world = world(&definition, &story);
        let run = world.run_to_end();
        prop_assume!(run.can_resume());
        let mut succeeded: Vec<bool> = run.steps().iter().map(crate::run::Step::lets_follow).collect();
        // But for a report that was made without sub-agents that never ran, and what rests on it.
        for (of, _) in run.reported_without() {
            let rests = run.graph().descendants(of.0);
            for node in rests.into_iter().chain([of.0]) {
                succeeded[node as usize] = false;
            }
        }
        let before = world.log.len();
        let run = world.resume(run);
        prop_assert!(run.end().is_some());
        for fact in &world.log[before..] {
            if let Event::MessagePlanned { step: StepIndex(step), .. } = &fact.event {
                let succeeded = succeeded.get(*step as usize).copied().unwrap_or(false);
                prop_assert!(!succeeded, "a step that succeeded was asked again");
            }
        }
    }
}
