use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::ports::runtime::{RuntimeError, Usage};
use crate::run::RunPolicy;
use crate::run::event::WaitCause;
use crate::run::tests::world::{Reply, World, report, task};
use crate::run::wall::{Said, wall};
use crate::run::{AccountView, Command, Event, Input, Phase, Recorded, RunEnd, RunView, WaitingFor};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const QUARTER: Duration = Duration::from_secs(15 * 60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Agents on accounts, without links: the agent's name begins with its account's.
fn on_accounts(agents: &[&str]) -> RunDefinition {
    let mut definition = task(agents, &[]);
    let task = Arc::get_mut(&mut definition.task).unwrap();
    for agent in &mut task.agents {
        agent.model = format!("model-of-{}", agent.id);
    }
    definition.accounts = agents
        .iter()
        .map(|agent| (format!("model-of-{agent}"), agent[..1].to_owned()))
        .collect::<BTreeMap<_, _>>();
    definition
}

fn quota(resets_at: Option<Timestamp>) -> Reply {
    Reply::Error(RuntimeError::Quota {
        words: "usage limit reached".to_owned(),
        resets_at,
    })
}

fn sign_in() -> Reply {
    Reply::Error(RuntimeError::SignIn {
        words: "your sign-in expired".to_owned(),
    })
}

fn told(log: &[Recorded], is: impl Fn(&Event) -> bool) -> Vec<&Recorded> {
    log.iter().filter(|fact| is(&fact.event)).collect()
}

fn closed(log: &[Recorded]) -> usize {
    told(log, |event| matches!(event, Event::GateClosed { .. })).len()
}

fn word(run: &Run, step: u32) -> &'static str {
    run.step(StepIndex(step)).unwrap().word()
}

fn replays(world: &World, run: &Run) {
    let replayed = Run::replay(world.log.clone()).unwrap();
    assert_eq!(format!("{:?}", replayed.steps()), format!("{:?}", run.steps()));
    assert_eq!(
        format!("{:?}", replayed.gates.accounts),
        format!("{:?}", run.gates.accounts)
    );
    assert_eq!(replayed.deadline(), run.deadline());
}

/// Q1: the account's other agents are held, nothing is sent meanwhile, other accounts go on, and at the date all go on.
#[test]
fn q1_a_quota_with_its_date_holds_the_account_and_no_other() {
    let mut definition = on_accounts(&["x1", "x2", "x3", "y1"]);
    definition.parallel = 1.try_into().unwrap();
    let mut world = World::new(definition);
    let date = world.now.plus(3 * HOUR);
    world.script("x1", [quota(Some(date)), Reply::text(&report("complete"))]);
    let mut run = world.start();
    world.settle(&mut run);
    assert_eq!(
        world.prompted_order(),
        ["x1", "y1"],
        "only the other account went on"
    );
    assert_eq!(
        (word(&run, 0), word(&run, 1), word(&run, 2)),
        ("waiting", "waiting", "waiting")
    );
    assert_eq!((word(&run, 3), run.word()), ("complete", "waiting"));
    assert_eq!((world.sessions_opened, closed(&world.log)), (2, 1));
    assert_eq!(run.deadline(), Some(date));
    replays(&world, &run);
    // R10: cause, start, expected end, for the account once and for each agent; held agents' time counts as waited.
    let later = world.now.plus(HOUR);
    let view = RunView::of(&run, later);
    let [account] = view.accounts.as_slice() else {
        panic!("one account is waited for: {:?}", view.accounts)
    };
    assert_eq!(
        (account.cause, account.until, account.held),
        (WaitCause::Quota, date, 3)
    );
    assert!(!account.doubtful && !account.single);
    for step in &view.steps[..3] {
        let Some(WaitingFor::Account { cause, until, .. }) = &step.waiting_for else {
            panic!("{step:?}")
        };
        assert_eq!(
            (*cause, *until, step.waited, step.worked),
            (WaitCause::Quota, date, HOUR, Duration::ZERO)
        );
    }
    world.now = date.shifted(-1);
    world.turn(&mut run, vec![]);
    world.settle(&mut run);
    assert_eq!(world.prompted_order().len(), 2, "a millisecond early is early");
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        (world.now, world.most_at_work),
        (date, 1),
        "all go on at the date, within the limits"
    );
    assert_eq!(
        told(&world.log, |event| matches!(event, Event::GateProbed { .. })).len(),
        0
    );
    replays(&world, &run);
}

/// Q4: one notice, six waits, no storm; all go on after the sign-in.
#[test]
fn q4_six_expired_sign_ins_make_one_notice_six_waits_and_no_storm() {
    let agents = ["x1", "x2", "x3", "x4", "x5", "x6", "y1"];
    let mut world = World::new(on_accounts(&agents));
    for agent in &agents[..6] {
        world.script(agent, [sign_in(), Reply::text(&report("complete"))]);
    }
    // The one that tries in between meets it again.
    world.script("x1", [sign_in(), sign_in(), Reply::text(&report("complete"))]);
    let start = world.now;
    let mut run = world.start();
    world.settle(&mut run);
    assert_eq!((closed(&world.log), run.word()), (1, "waiting"));
    let waits = |log: &[Recorded]| told(log, |event| matches!(event, Event::WaitStarted { .. })).len();
    assert_eq!(waits(&world.log), 6);
    assert_eq!(run.deadline(), Some(start.plus(QUARTER)));
    // A single agent tries after a quarter of an hour.
    world.now = start.plus(QUARTER);
    world.turn(&mut run, vec![]);
    world.settle(&mut run);
    assert_eq!(
        world.prompted_order().len(),
        8,
        "six, the other account's, and the one that tried"
    );
    assert_eq!((closed(&world.log), waits(&world.log)), (1, 7));
    assert_eq!(run.deadline(), Some(start.plus(2 * QUARTER)));
    // The person signed in, and says so.
    world.now = world.now.plus(Duration::from_secs(60));
    let unknown = Input::Command(Command::TryAccount {
        account: "z".to_owned(),
    });
    let refused = run
        .decide(world.now, &mut crate::run::tests::world::ids(9), &unknown)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "account z is not waited for: those that are: x"
    );
    world.input(
        &mut run,
        Input::Command(Command::TryAccount {
            account: "x".to_owned(),
        }),
    );
    assert!(AccountView::all(&run).is_empty());
    let run = world.go_on(run);
    assert_eq!(
        (run.end(), world.now),
        (
            Some(RunEnd::Complete),
            start.plus(QUARTER + Duration::from_secs(60))
        )
    );
    assert_eq!(world.prompted_order().len(), 14);
    world.no_identifier_twice();
    replays(&world, &run);
}

/// R8: without a date a single agent tries every quarter of an hour, and the first answer lets the others go on.
#[test]
fn r8_without_a_date_one_tries_until_it_is_served_and_then_all_go_on() {
    let mut world = World::new(on_accounts(&["x1", "x2", "x3"]));
    for agent in ["x1", "x2", "x3"] {
        world.script(agent, [quota(None)]);
    }
    world.script("x1", [quota(None), quota(None), quota(None)]);
    let start = world.now;
    let run = world.run_to_end();
    assert_eq!(
        (run.end(), world.now),
        (Some(RunEnd::Complete), start.plus(3 * QUARTER))
    );
    let probes = told(&world.log, |event| matches!(event, Event::GateProbed { .. }));
    assert_eq!(probes.len(), 3);
    let opened = told(&world.log, |event| {
        matches!(
            event,
            Event::GateOpened {
                by: OpenedBy::Probe,
                held: 2,
                ..
            }
        )
    });
    assert_eq!(opened.len(), 1);
    replays(&world, &run);
}

/// R8: a date over seven days away is kept, shown as doubtful, and tried every day; the last time when it comes.
#[test]
fn r8_a_date_over_a_week_away_is_doubted_and_tried_every_day() {
    let mut world = World::new(on_accounts(&["x1", "x2"]));
    let start = world.now;
    let date = start.plus(8 * DAY + HOUR);
    world.script(
        "x1",
        std::iter::once(quota(Some(date))).chain((0..8).map(|_| quota(None))),
    );
    world.script("x2", [quota(Some(date))]);
    let mut run = world.start();
    world.settle(&mut run);
    let view = &AccountView::all(&run)[0];
    assert!(view.doubtful && view.single && view.resets_at == Some(date));
    assert!(view.to_string().contains("which is doubtful"), "{view}");
    for day in 1..=8u32 {
        assert_eq!(run.deadline(), Some(start.plus(day * DAY)), "day {day}");
        world.now = start.plus(day * DAY);
        world.turn(&mut run, vec![]);
        world.settle(&mut run);
        let kept = &AccountView::all(&run)[0];
        assert!(
            kept.doubtful && kept.resets_at == Some(date),
            "it is not trusted for coming nearer"
        );
    }
    assert_eq!(run.deadline(), Some(date));
    let run = world.go_on(run);
    assert_eq!((run.end(), world.now), (Some(RunEnd::Complete), date));
}

/// B7: a date that is past, absurd or of this very moment neither panics nor spins.
#[test]
fn b7_absurd_dates_never_spin() {
    let now = World::new(on_accounts(&["x1"])).now;
    for (date, first) in [
        (i64::MIN, QUARTER),
        (-1, QUARTER),
        (0, QUARTER),
        (now.0, QUARTER),
        (now.0 - 1, QUARTER),
        (i64::MAX, DAY),
        (now.plus(DOUBTFUL_AFTER).0, DOUBTFUL_AFTER),
        (now.plus(DOUBTFUL_AFTER).0 + 1, DAY),
    ] {
        let mut world = World::new(on_accounts(&["x1", "x2"]));
        world.script("x1", [quota(Some(Timestamp(date)))]);
        let mut run = world.start();
        world.settle(&mut run);
        assert_eq!(run.deadline(), Some(now.plus(first)), "{date}");
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
    }
    // A date a moment ahead, told again and again, is asked after no sooner than a backoff says.
    let mut world = World::new(on_accounts(&["x1"]));
    let mut run = world.start();
    let start = world.now;
    for round in 0..12 {
        world.script("x1", [quota(Some(world.now.shifted(1)))]);
        world.settle(&mut run);
        world.now = run.deadline().unwrap();
        world.turn(&mut run, vec![]);
        assert_eq!(closed(&world.log), round + 1);
    }
    assert!(world.now.since(start) >= Duration::from_secs(30 + 60 + 120 + 240 * 8));
}

/// The agent that tries meets something else: the gate stays, and the account is never without somebody to try it.
#[test]
fn r8_when_the_one_that_tries_fails_for_good_the_next_one_tries() {
    let mut world = World::new(on_accounts(&["x1", "x2", "x3"]));
    let gone = Reply::Error(RuntimeError::Permanent {
        words: "no such model".to_owned(),
    });
    let busy = Reply::Error(RuntimeError::Temporary {
        words: "529".to_owned(),
        retry_after: None,
    });
    world.script("x1", [sign_in(), gone]);
    world.script("x2", [sign_in(), busy]);
    world.script("x3", [sign_in()]);
    let start = world.now;
    let run = world.run_to_end();
    assert_eq!(
        (word(&run, 0), word(&run, 1), word(&run, 2)),
        ("failed", "complete", "complete")
    );
    let probes = told(&world.log, |event| matches!(event, Event::GateProbed { .. }));
    assert_eq!(probes.len(), 2);
    assert_eq!(
        world.now,
        start.plus(QUARTER + Duration::from_secs(30)),
        "its backoff is its own"
    );
    replays(&world, &run);
}

/// Work that was under way when the gate closed goes on until its answer; what it would send next is held.
#[test]
fn r8_an_agent_at_work_goes_on_until_it_answers_and_is_sent_nothing_more() {
    let mut world = World::new(on_accounts(&["x1", "x2"]));
    world.script("x1", [Reply::Silence]);
    world.script("x2", [quota(Some(world.now.plus(HOUR)))]);
    let mut run = world.start();
    world.settle(&mut run);
    let step = run.step(StepIndex(0)).unwrap();
    assert_eq!((step.word(), closed(&world.log)), ("running", 1));
    let session = step.session().unwrap();
    let answered = Input::Answered {
        session: session.id(),
        message: session.in_flight.as_ref().unwrap().client_message_id,
        answer: crate::ports::runtime::Answer {
            text: "no report".to_owned(),
            stop: crate::ports::runtime::StopReason::EndTurn,
            usage: Usage::default(),
        },
    };
    let sent = world.texts.len();
    world.input(&mut run, answered);
    world.settle(&mut run);
    assert_eq!(
        (word(&run, 0), world.texts.len()),
        ("waiting", sent),
        "its correction is held"
    );
    let planned = run
        .step(StepIndex(0))
        .unwrap()
        .session()
        .unwrap()
        .in_flight
        .clone()
        .unwrap();
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert!(
        world.texts[sent..].contains(&planned.text),
        "it was sent as it was planned"
    );
    world.no_identifier_twice();
    replays(&world, &run);
}

/// A sign of life: tools, permission requests and tokens spent open the gate; an idle report of usage does not.
#[test]
fn r8_the_first_sign_of_life_is_enough() {
    for sign in 0..4 {
        let mut world = World::new(on_accounts(&["x1", "x2"]));
        world.script("x1", [quota(None), Reply::Silence]);
        world.script("x2", [quota(None)]);
        let mut run = world.start();
        world.settle(&mut run);
        world.now = run.deadline().unwrap();
        world.turn(&mut run, vec![]);
        world.settle(&mut run);
        let session = run.step(StepIndex(0)).unwrap().session().unwrap().id();
        let spent = |tokens| Input::UsageCounted {
            session,
            usage: Usage {
                output_tokens: Some(tokens),
                context_used: Some(9),
                ..Usage::default()
            },
        };
        let (input, opens) = match sign {
            0 => (spent(1), true),
            1 => (spent(0), false),
            2 => (Input::ToolUsed { session }, true),
            _ => (crate::run::tests::world::asked(session, "p1"), true),
        };
        world.input(&mut run, input);
        assert_eq!(AccountView::all(&run).is_empty(), opens, "sign {sign}");
    }
}

/// The runtime's word opens the gate, once it cannot be older than what was met.
#[test]
fn r8_the_runtimes_word_opens_the_gate_after_a_moment() {
    let mut world = World::new(on_accounts(&["x1", "x2"]));
    world.script("x1", [quota(Some(world.now.plus(5 * HOUR)))]);
    let mut run = world.start();
    world.settle(&mut run);
    let word = |account: &str| Input::AccountAvailable {
        account: account.to_owned(),
    };
    world.input(&mut run, word("x"));
    world.input(&mut run, word("unknown"));
    assert_eq!(AccountView::all(&run).len(), 1, "at once it is not believed");
    world.now = world.now.plus(Duration::from_secs(30));
    world.input(&mut run, word("x"));
    assert!(AccountView::all(&run).is_empty());
    let start = world.now;
    let run = world.go_on(run);
    assert_eq!((run.end(), world.now), (Some(RunEnd::Complete), start));
}

/// R10: a stop and a resume keep the gate; an account without a date is tried at once, one with a date is not.
#[test]
fn r10_a_resume_keeps_the_gate_and_tries_an_undated_one_at_once() {
    for date in [None, Some(5 * HOUR)] {
        let mut world = World::new(on_accounts(&["x1", "x2", "x3"]));
        let date = date.map(|span| world.now.plus(span));
        world.script("x1", [quota(date)]);
        let mut run = world.start();
        world.settle(&mut run);
        world.input(&mut run, Input::Command(Command::Stop));
        world.settle(&mut run);
        assert_eq!(run.end(), Some(RunEnd::Stopped));
        assert_eq!(run.deadline(), None);
        let stopped = world.now;
        let waited = run.step(StepIndex(2)).unwrap().waited(stopped.plus(DAY));
        assert_eq!(waited, Duration::ZERO, "a run that is over waits for nothing");
        world.now = stopped.plus(HOUR);
        world.turn(
            &mut run,
            vec![Input::Command(Command::Resume {
                budget: Default::default(),
            })],
        );
        assert_eq!(AccountView::all(&run).len(), 1);
        let probes = told(&world.log, |event| matches!(event, Event::GateProbed { .. })).len();
        assert_eq!(probes, usize::from(date.is_none()));
        replays(&world, &run);
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        assert_eq!(world.now, date.unwrap_or(stopped.plus(HOUR)));
    }
}

/// Logs from before gates: a wait for a quota has a date of its own.
#[test]
fn r8_a_log_without_gates_waits_by_its_own_dates() {
    let mut world = World::new(on_accounts(&["x1", "x2"]));
    let until = world.now.plus(HOUR);
    world.script("x1", [quota(Some(until))]);
    let mut run = world.start();
    world.settle(&mut run);
    let mut log = world.log.clone();
    log.retain(|fact| !matches!(fact.event, Event::GateClosed { .. }));
    for (fact, seq) in log.iter_mut().zip(1..) {
        fact.seq = crate::id::Seq(seq);
    }
    let run = Run::replay(log).unwrap();
    assert!(matches!(
        run.step(StepIndex(0)).unwrap().phase(),
        Phase::Waiting(_)
    ));
    assert_eq!(run.deadline(), Some(until));
}

fn walls() -> impl Strategy<Value = (Said, Option<Wall>, u16, Timestamp)> {
    let date = prop_oneof![
        Just(None),
        any::<i64>().prop_map(Some),
        (-1000i64..2_000_000_000).prop_map(Some)
    ];
    let said = (date, any::<bool>()).prop_map(|(date, at_opening)| Said {
        cause: WaitCause::Quota,
        words: "full".to_owned(),
        resets_at: date.map(Timestamp),
        at_opening,
    });
    let now = prop_oneof![any::<i64>(), 0i64..4_000_000_000_000].prop_map(Timestamp);
    (
        said.clone(),
        prop::option::of((said, now.clone())),
        any::<u16>(),
        now,
    )
        .prop_map(|(said, before, closings, now)| {
            let policy = RunPolicy::default();
            let before = before.map(|(said, then)| wall(said, None, 0, then, &policy));
            (said, before, closings, now)
        })
}

proptest! {
    /// B7: whatever is said, the next look is ahead and at most a week away, and no date of the provider's is cut short.
    #[test]
    fn b7_every_wall_is_dated_ahead_and_within_a_week((said, before, closings, now) in walls()) {
        prop_assume!(now < Timestamp(i64::MAX - 2 * 7 * 24 * 3_600_000));
        let told = said.resets_at;
        let wall = wall(said, before.as_ref(), closings, now, &RunPolicy::default());
        prop_assert!(wall.until > now);
        prop_assert!(wall.until.since(now) <= DOUBTFUL_AFTER);
        prop_assert!(wall.resets_at.is_none_or(|at| at > now));
        if let Some(at) = told.filter(|at| *at > now) {
            prop_assert_eq!(wall.resets_at, Some(at));
            prop_assert_eq!(wall.single, at.since(now) > DOUBTFUL_AFTER);
            prop_assert!(wall.single || wall.until >= at);
        }
    }
}
