//! Ceilings: what counts, who is held, and what a resume may do.

use std::num::NonZeroU64;
use std::time::Duration;

use super::world::{Reply, World, report, task};
use crate::id::StepIndex;
use crate::ports::runtime::{Answer, RuntimeError, StopReason, Usage};
use crate::run::{
    Budget, BudgetChange, BudgetKind, BudgetMode, BudgetView, CeilingChange, Command, Event, Input,
    MessagePurpose, NotRun, NotRunBecause, Phase, Recorded, Refused, Run, RunDefinition, RunEnd, StepEnd,
    parse_cost,
};

fn tokens(limit: u64) -> Budget {
    Budget {
        tokens: NonZeroU64::new(limit),
        ..Budget::default()
    }
}

fn under(mut definition: RunDefinition, budget: Budget) -> World {
    definition.policy.budget = Some(budget);
    definition.parallel = 1.try_into().unwrap();
    World::new(definition)
}

/// An answer's usage: 60 tokens that count, 1000 that do not, and 1 USD.
fn usage() -> Usage {
    Usage {
        input_tokens: Some(30),
        output_tokens: Some(20),
        cache_write_tokens: Some(10),
        cache_read_tokens: Some(1000),
        cost_micros: Some(1_000_000),
        currency: Some(*b"USD"),
        ..Usage::default()
    }
}

fn spending(world: &mut World, agents: &[&str]) {
    for agent in agents {
        world.spends.insert((*agent).to_owned(), usage());
    }
}

fn words(run: &Run) -> Vec<&'static str> {
    run.steps().iter().map(crate::run::Step::word).collect()
}

/// The positions of the facts of a kind.
fn of(log: &[Recorded], is: impl Fn(&Event) -> bool) -> Vec<usize> {
    (0..log.len()).filter(|at| is(&log[*at].event)).collect()
}

fn reached(log: &[Recorded]) -> Vec<usize> {
    of(log, |event| matches!(event, Event::BudgetReached { .. }))
}

fn planned(log: &[Recorded]) -> Vec<usize> {
    of(log, |event| matches!(event, Event::SessionPlanned { .. }))
}

#[test]
fn an_enforced_ceiling_opens_no_new_session_and_the_run_ends_partial() {
    let mut world = under(
        task(&["a", "b", "c", "d"], &[("c", "d")]).with_repository(),
        tokens(100),
    );
    spending(&mut world, &["a", "b", "c", "d"]);
    let run = world.run_to_end();
    // c has the longest path; a is next, and with it 120 tokens are used.
    assert_eq!(words(&run), ["complete", "not_run", "complete", "not_run"]);
    assert_eq!(run.end(), Some(RunEnd::Partial));
    for step in [1, 3] {
        assert_eq!(
            run.step(StepIndex(step)).unwrap().end(),
            Some(&StepEnd::OverBudget)
        );
        let why = NotRun::of(&run, StepIndex(step)).unwrap();
        assert_eq!(
            (why.because, why.ceilings),
            (NotRunBecause::OverBudget, vec![BudgetKind::Tokens])
        );
    }
    assert_eq!(reached(&world.log).len(), 1);
    assert!(planned(&world.log).iter().all(|at| *at < reached(&world.log)[0]));
    assert_eq!(world.merged_once(), ["a", "c"], "what was done is merged");
    let view = BudgetView::of(&run, world.now).unwrap();
    assert_eq!(view.to_string(), "tokens 120 of 100 used, reached (20 over)");
}

#[test]
fn audit_only_tells() {
    let audit = Budget {
        mode: BudgetMode::Audit,
        cost: parse_cost("1.5USD").ok(),
        ..tokens(100)
    };
    let mut world = under(task(&["a", "b", "c"], &[]), audit);
    spending(&mut world, &["a", "b", "c"]);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(reached(&world.log).len(), 2, "once a ceiling");
    let view = BudgetView::of(&run, world.now).unwrap();
    assert_eq!(
        view.to_string(),
        "tokens 180 of 100 used, reached (80 over); cost 3.00 of 1.50 USD used, reached (1.50 over) (told only)"
    );
}

#[test]
fn work_under_way_goes_on_to_its_end_corrections_and_continuations_included() {
    let mut world = under(task(&["a", "b"], &[]), tokens(50));
    spending(&mut world, &["a", "b"]);
    let busy = RuntimeError::Temporary {
        words: "529".to_owned(),
        retry_after: None,
    };
    world.script(
        "a",
        [
            Reply::text("no report"),
            Reply::Error(busy),
            Reply::text(&report("complete")),
        ],
    );
    let run = world.run_to_end();
    assert_eq!(words(&run), ["complete", "not_run"]);
    assert_eq!(world.told(0, MessagePurpose::Correction), 1);
    assert_eq!(world.told(0, MessagePurpose::Continuation), 1);
    assert_eq!(world.sessions_opened, 1);
    assert_eq!(reached(&world.log).len(), 1);
}

#[test]
fn a_conflict_goes_back_to_its_agent_over_budget_too() {
    let mut world = under(task(&["a", "b"], &[]).with_repository(), tokens(50));
    spending(&mut world, &["a"]);
    world.clashes.insert("a".to_owned(), 1);
    let run = world.run_to_end();
    assert_eq!(words(&run), ["complete", "not_run"]);
    assert_eq!(world.told(0, MessagePurpose::Conflict), 1);
}

#[test]
fn a_session_that_is_lost_is_not_opened_again_over_budget() {
    let mut world = under(task(&["a", "b"], &[("a", "b")]), tokens(50));
    spending(&mut world, &["a"]);
    let busy = RuntimeError::Temporary {
        words: "529".to_owned(),
        retry_after: Some(Duration::from_secs(86_400)),
    };
    world.script("a", [Reply::text("no report"), Reply::Error(busy)]);
    let mut run = world.start();
    world.settle(&mut run);
    let session = run.step(StepIndex(0)).unwrap().session().unwrap().id();
    let before = world.now;
    world.input(
        &mut run,
        Input::Failed {
            session,
            message: None,
            error: RuntimeError::Lost {
                words: "gone".to_owned(),
            },
        },
    );
    let run = world.go_on(run);
    assert_eq!(words(&run), ["not_run", "not_run"]);
    assert_eq!(world.now, before, "nobody waits a day for nothing");
    assert_eq!((run.end(), world.sessions_opened), (Some(RunEnd::Partial), 1));
}

#[test]
fn a_resume_needs_a_higher_ceiling_and_then_does_the_rest() {
    let mut world = under(task(&["a", "b", "c"], &[]), tokens(50));
    spending(&mut world, &["a", "b", "c"]);
    let run = world.run_to_end();
    assert_eq!(words(&run), ["complete", "not_run", "not_run"]);
    assert!(run.can_resume());
    let ask = |run: &Run, world: &World, budget| {
        run.decide(
            world.now,
            &mut super::world::ids(9),
            &Input::Command(Command::Resume { budget }),
        )
    };
    for change in [
        BudgetChange::default(),
        BudgetChange {
            tokens: CeilingChange::Set(NonZeroU64::new(60).unwrap()),
            ..BudgetChange::default()
        },
    ] {
        let refused = ask(&run, &world, change).unwrap_err();
        let Refused::OverBudget { ceiling, used, .. } = &refused else {
            panic!("{refused}")
        };
        assert_eq!((ceiling.kind, used.as_str()), (BudgetKind::Tokens, "60"));
    }
    let mut run = run;
    let raised = BudgetChange {
        tokens: CeilingChange::Set(NonZeroU64::new(100).unwrap()),
        ..BudgetChange::default()
    };
    world.input(&mut run, Input::Command(Command::Resume { budget: raised }));
    let run = world.go_on(run);
    assert_eq!(
        words(&run),
        ["complete", "complete", "not_run"],
        "a is not asked again"
    );
    assert_eq!(reached(&world.log).len(), 2, "once more for the raised ceiling");
    let mut run = run;
    let lifted = BudgetChange {
        tokens: CeilingChange::Lift,
        ..BudgetChange::default()
    };
    world.input(&mut run, Input::Command(Command::Resume { budget: lifted }));
    let run = world.go_on(run);
    assert_eq!((run.end(), run.budget()), (Some(RunEnd::Complete), None));
}

#[test]
fn a_resume_that_only_audits_goes_on_and_tells_once_more() {
    let mut world = under(task(&["a", "b"], &[]), tokens(50));
    spending(&mut world, &["a", "b"]);
    let mut run = world.run_to_end();
    let audit = BudgetChange {
        mode: Some(BudgetMode::Audit),
        ..BudgetChange::default()
    };
    world.input(&mut run, Input::Command(Command::Resume { budget: audit }));
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(reached(&world.log).len(), 2);
}

#[test]
fn a_cost_in_another_currency_is_shown_and_not_counted() {
    let budget = Budget {
        cost: parse_cost("1EUR").ok(),
        ..Budget::default()
    };
    let mut world = under(task(&["a", "b", "c"], &[]), budget);
    spending(&mut world, &["a", "b"]);
    let run = world.run_to_end();
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let view = BudgetView::of(&run, world.now).unwrap();
    assert_eq!(
        view.to_string(),
        "cost 0.00 of 1.00 EUR used, not counted: 2.00 USD, 1 agent that told no cost"
    );
    assert!(!view.is_reached());
}

#[test]
fn time_is_up_at_its_deadline_waits_count_and_the_time_between_engines_does_not() {
    let budget = Budget {
        time: Some(Duration::from_secs(100)),
        ..Budget::default()
    };
    let mut world = under(task(&["a", "b"], &[]), budget);
    world.script("a", [Reply::Silence, Reply::Silence]);
    let mut run = world.start();
    let launched = world.now;
    assert_eq!(run.deadline(), Some(launched.plus(Duration::from_secs(100))));
    world.settle(&mut run);
    world.now = launched.plus(Duration::from_secs(40));
    let session = run.step(StepIndex(0)).unwrap().session().unwrap().id();
    world.input(
        &mut run,
        Input::UsageCounted {
            session,
            usage: usage(),
        },
    );
    // The engine is killed and another comes an hour later.
    let mut run = Run::replay(world.log.clone()).unwrap();
    world.lose_processes();
    world.now = world.now.plus(Duration::from_secs(3600));
    world.input(&mut run, Input::EngineStarted { pid: 2, left: vec![] });
    assert_eq!(run.time_under_way(world.now), Duration::from_secs(40));
    let due = world.now.plus(Duration::from_secs(60));
    assert_eq!(run.deadline(), Some(due));
    world.settle(&mut run);
    world.now = due;
    world.input(&mut run, Input::Tick);
    assert_eq!(reached(&world.log).len(), 1);
    assert_ne!(run.deadline(), Some(due), "it is told once");
    let session = run.step(StepIndex(0)).unwrap().session().unwrap();
    let answered = Input::Answered {
        session: session.id(),
        message: session.in_flight.as_ref().unwrap().client_message_id,
        answer: Answer {
            text: report("complete"),
            stop: StopReason::EndTurn,
            usage: usage(),
        },
    };
    world.input(&mut run, answered);
    let run = world.go_on(run);
    assert_eq!(words(&run), ["complete", "not_run"]);
    assert_eq!(run.end(), Some(RunEnd::Partial));
    // What passes after the end is nobody's time.
    let under_way = run.time_under_way(world.now);
    assert_eq!(
        run.time_under_way(world.now.plus(Duration::from_secs(999))),
        under_way
    );
}

#[test]
fn a_ceiling_that_is_changed_while_the_run_is_under_way_holds_from_then_on() {
    let mut world = under(task(&["a", "b"], &[]), tokens(50));
    spending(&mut world, &["a", "b"]);
    let mut run = world.start();
    let raised = BudgetChange {
        tokens: CeilingChange::Set(NonZeroU64::new(500).unwrap()),
        ..BudgetChange::default()
    };
    world.input(&mut run, Input::Command(Command::ChangeBudget(raised)));
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let change = Input::Command(Command::ChangeBudget(raised));
    let refused = run.decide(world.now, &mut super::world::ids(9), &change);
    assert_eq!(refused, Err(Refused::Over("complete")));
}

#[test]
fn a_worktree_that_is_made_as_the_ceiling_is_reached_gets_no_session() {
    let mut definition = task(&["a", "b"], &[]).with_repository();
    definition.policy.budget = Some(tokens(50));
    let mut world = World::new(definition);
    spending(&mut world, &["a"]);
    // a spends while b's worktree is being made.
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| *phase == crate::run::Phase::Prompted);
    let session = run.step(StepIndex(0)).unwrap().session().unwrap().id();
    let was_leased = run.step(StepIndex(1)).unwrap().session().is_some();
    world.input(
        &mut run,
        Input::UsageCounted {
            session,
            usage: usage(),
        },
    );
    let run = world.go_on(run);
    assert_eq!(
        run.end(),
        Some(if was_leased {
            RunEnd::Complete
        } else {
            RunEnd::Partial
        })
    );
    let reached = reached(&world.log)[0];
    assert!(planned(&world.log).iter().all(|at| *at < reached));
}

#[test]
fn v3_each_session_counts_once_however_often_it_tells_and_whenever_it_is_lost() {
    let mut world = World::new(task(&["a"], &[]));
    spending(&mut world, &["a"]);
    world.script("a", [Reply::text("no report"), Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    let first = run.step(StepIndex(0)).unwrap().session().unwrap().id();
    let tokens = |run: &Run| run.step(StepIndex(0)).unwrap().usage().input_tokens;
    assert_eq!(tokens(&run), Some(30));
    for input in [31, 31, 35] {
        let usage = Usage {
            input_tokens: Some(input),
            ..Usage::default()
        };
        world.input(
            &mut run,
            Input::UsageCounted {
                session: first,
                usage,
            },
        );
    }
    assert_eq!(tokens(&run), Some(35));
    // A new engine finds the session lost; while the next one is at work the first still counts.
    world.forget_sessions();
    world.lose_processes();
    world.script("a", [Reply::Silence]);
    world.input(&mut run, Input::EngineStarted { pid: 2, left: vec![] });
    world.settle(&mut run);
    let second = run.step(StepIndex(0)).unwrap().session().unwrap().id();
    assert_ne!(first, second);
    assert_eq!(tokens(&run), Some(35));
    let usage = Usage {
        input_tokens: Some(7),
        ..Usage::default()
    };
    world.input(
        &mut run,
        Input::UsageCounted {
            session: second,
            usage,
        },
    );
    assert_eq!(tokens(&run), Some(42));
}

#[test]
fn two_steps_that_time_out_at_once_end_what_follows_both_once() {
    let mut definition = task(&["a", "b", "c"], &[("a", "c"), ("b", "c")]);
    let agents = &mut std::sync::Arc::get_mut(&mut definition.task).unwrap().agents;
    for agent in agents {
        agent.max_duration = Some(Duration::from_secs(60));
    }
    let mut world = World::new(definition);
    world.script("a", [Reply::Silence]);
    world.script("b", [Reply::Silence]);
    let run = world.run_to_end();
    assert_eq!(words(&run), ["failed", "failed", "not_run"]);
    let why = NotRun::of(&run, StepIndex(2)).unwrap();
    assert_eq!(why.to_string(), "a failed; b did not succeed either");
}

#[test]
fn once_time_is_up_nobody_waits_and_a_resume_goes_on_in_the_same_session() {
    let quota = || {
        Reply::Error(RuntimeError::Quota {
            words: "used up".to_owned(),
            resets_at: None,
        })
    };
    let busy = || {
        Reply::Error(RuntimeError::Temporary {
            words: "529".to_owned(),
            retry_after: Some(Duration::from_secs(86_400)),
        })
    };
    for (waits_for, reply) in [("quota", quota()), ("busy", busy()), ("person", Reply::Ask("p"))] {
        for (mode, seconds) in [(BudgetMode::Enforce, 100), (BudgetMode::Audit, 100)] {
            let budget = Budget {
                mode,
                time: Some(Duration::from_secs(seconds)),
                ..Budget::default()
            };
            let mut world = under(task(&["a", "b"], &[("a", "b")]).with_repository(), budget);
            world.script("a", [reply.clone(), Reply::text(&report("complete"))]);
            let mut run = world.start();
            let launched = world.now;
            world.settle(&mut run);
            let session = run.step(StepIndex(0)).unwrap().session().unwrap().id();
            world.now = launched.plus(Duration::from_secs(seconds));
            world.turn(&mut run, vec![]);
            world.settle(&mut run);
            if mode == BudgetMode::Audit {
                assert_eq!(run.end(), None, "{waits_for}: it is only told");
                continue;
            }
            assert_eq!(words(&run), ["not_run", "not_run"], "{waits_for}");
            assert_eq!(run.end(), Some(RunEnd::Partial), "{waits_for}");
            assert!(run.outbox().is_empty() && run.deadline().is_none());
            world.input(
                &mut run,
                Input::Command(Command::Resume {
                    budget: BudgetChange {
                        time: CeilingChange::Lift,
                        ..BudgetChange::default()
                    },
                }),
            );
            world.settle_until_phase(&mut run, 0, |phase| {
                matches!(phase, Phase::Prompted | Phase::Ended(_))
            });
            if waits_for != "person" {
                assert_eq!(
                    run.step(StepIndex(0)).unwrap().session().map(|one| one.id()),
                    Some(session),
                    "{waits_for}: what it had begun is in there"
                );
            }
            let run = world.go_on(run);
            assert_eq!(run.end(), Some(RunEnd::Complete), "{waits_for}");
        }
    }
}

#[test]
fn a_ceiling_in_another_currency_is_known_to_replace_the_one_before() {
    let usd = Budget {
        cost: parse_cost("5USD").ok(),
        ..Budget::default()
    };
    let change = |text: &str| BudgetChange {
        cost: CeilingChange::Set(parse_cost(text).unwrap()),
        ..BudgetChange::default()
    };
    let told = change("4EUR").exchanged(Some(&usd));
    assert_eq!(
        told.map(|(before, now)| (before.to_string(), now.to_string())),
        Some(("5.00 USD".to_owned(), "4.00 EUR".to_owned()))
    );
    assert_eq!(change("6USD").exchanged(Some(&usd)), None);
    assert_eq!(change("4EUR").exchanged(None), None);
}
