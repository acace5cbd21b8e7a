//! Permission requests that a person answers.

use std::time::Duration;

use super::world::{Reply, World, report, task};
use crate::id::{Seq, StepIndex};
use crate::ports::runtime::{FoundSession, MessageFate, RuntimeError};
use crate::run::{
    AnsweredBy, Command, EffectKey, Event, Input, PermissionAnswer, Phase, Refused, Run, RunEnd, RunView,
    Step, WaitingFor,
};

const A: StepIndex = StepIndex(0);

fn asking(agents: &[&str], replies: impl IntoIterator<Item = Reply>) -> (World, Run) {
    let mut world = World::new(task(agents, &[]));
    world.script("a", replies);
    let mut run = world.start();
    world.settle(&mut run);
    (world, run)
}

fn answer(asked: Seq, answer: PermissionAnswer) -> Input {
    Input::Command(Command::AnswerPermission { asked, answer })
}

fn open(run: &Run) -> Vec<Seq> {
    run.permissions().iter().map(|open| open.id.asked).collect()
}

fn words(run: &Run) -> Vec<&'static str> {
    run.steps().iter().map(Step::word).collect()
}

/// What is said of a command that changes nothing.
fn refused(run: &mut Run, world: &World, input: Input) -> Option<Refused> {
    let turn = run.turn(world.now, &mut super::ids(9), [input]).unwrap();
    assert!(turn.facts.is_empty());
    turn.refused.into_iter().next().map(|(_, refused)| refused)
}

fn settled(world: &World) -> Vec<(Option<&str>, AnsweredBy)> {
    let facts = world.log.iter();
    facts
        .filter_map(|fact| {
            let Event::PermissionSettled { option, by, .. } = &fact.event else {
                return None;
            };
            Some((option.as_deref(), *by))
        })
        .collect()
}

#[test]
fn v2_r10_a_request_makes_its_step_wait_for_a_person_and_the_clock_of_work_stands() {
    let (mut world, mut run) = asking(&["a"], [Reply::Ask("p1")]);
    assert_eq!((run.word(), run.step(A).unwrap().word()), ("waiting", "waiting"));
    assert_eq!(run.summary().asking, 1);
    let asked = open(&run)[0];
    let since = world.now;
    let Some(WaitingFor::Person {
        since: told,
        requests,
    }) = run.waiting_for(A)
    else {
        panic!("it waits for a person")
    };
    assert_eq!(
        (told, requests.len(), requests[0].title.as_str()),
        (since, 1, "Write p1")
    );
    assert_eq!(requests[0].id.to_string(), format!("r1/{asked}"));
    assert_eq!(requests[0].id.to_string().parse(), Ok(requests[0].id.clone()));
    let view = RunView::of(&run, since);
    assert_eq!(view.permissions, requests);
    let line = &view.graph_lines()[0];
    assert!(line.contains("waits for a person: Write p1 (/repo/p1)"), "{line}");

    world.now = world.now.plus(Duration::from_secs(3600));
    world.input(&mut run, answer(asked, PermissionAnswer::Allow));
    assert_eq!(run.step(A).unwrap().word(), "running");
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let step = run.step(A).unwrap();
    assert_eq!(step.waited(world.now), Duration::from_secs(3600));
    assert_eq!(
        step.worked(world.now),
        Duration::ZERO,
        "time waited is not time worked"
    );
    assert_eq!(step.ledger().unwrap().waits, 1);
    assert_eq!(run.summary().asking, 0);
    assert_eq!(settled(&world), [(Some("allow"), AnsweredBy::Person)]);
    assert_eq!(world.told[0].2.as_deref(), Some("allow"));
}

#[test]
fn a5_an_answer_is_one_of_the_options_once_and_what_is_not_open_is_refused() {
    let (mut world, mut run) = asking(&["a"], [Reply::Ask("p1")]);
    let asked = open(&run)[0];
    for (input, expected) in [
        (
            answer(Seq(1), PermissionAnswer::Allow),
            Refused::NoSuchPermission(Seq(1)),
        ),
        (
            answer(asked, PermissionAnswer::Option("always".into())),
            Refused::NoSuchOption {
                asked,
                wanted: "option `always`".into(),
                offered: vec!["allow".into(), "reject".into()],
            },
        ),
    ] {
        assert_eq!(refused(&mut run, &world, input), Some(expected));
    }
    world.input(&mut run, answer(asked, PermissionAnswer::Option("reject".into())));
    // The same again is the same once; another comes too late.
    assert_eq!(
        refused(&mut run, &world, answer(asked, PermissionAnswer::Deny)),
        None
    );
    assert!(matches!(
        refused(&mut run, &world, answer(asked, PermissionAnswer::Allow)),
        Some(Refused::Answered { .. })
    ));
    let mut run = world.go_on(run);
    assert_eq!(world.told.len(), 1, "told once");
    assert_eq!(settled(&world), [(Some("reject"), AnsweredBy::Person)]);
    assert!(matches!(
        refused(&mut run, &world, answer(asked, PermissionAnswer::Deny)),
        Some(Refused::NoSuchPermission(_))
    ));
}

#[test]
fn a5_the_answer_is_a_fact_before_it_is_passed_on() {
    let (mut world, mut run) = asking(&["a"], [Reply::Ask("p1")]);
    let asked = open(&run)[0];
    world.input(&mut run, answer(asked, PermissionAnswer::Allow));
    assert!(world.told.is_empty());
    let last: Vec<_> = world.log.iter().rev().take(2).map(|fact| &fact.event).collect();
    assert!(
        matches!(
            last[..],
            [Event::StepStarted { .. }, Event::PermissionAnswered { .. }]
        ),
        "{last:?}"
    );
}

#[test]
fn r3_a_step_that_waits_for_a_person_holds_no_place_and_its_last_answer_waits_for_one() {
    let mut definition = task(&["a", "b", "c"], &[]);
    definition.parallel = 1.try_into().unwrap();
    let mut world = World::new(definition);
    world.script("a", [Reply::Ask("p1"), Reply::text(&report("complete"))]);
    world.script("b", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    assert_eq!(
        words(&run),
        ["waiting", "running", "ready"],
        "b has the place that a gave back"
    );
    let asked = open(&run)[0];
    world.input(&mut run, answer(asked, PermissionAnswer::Allow));
    world.settle(&mut run);
    assert_eq!(words(&run), ["ready", "running", "ready"]);
    assert!(
        world.told.is_empty(),
        "the agent is not set to work beyond the limit"
    );
    assert_eq!(run.waiting_for(A), Some(WaitingFor::Place { model: None }));
    let session = run.step(StepIndex(1)).unwrap().session().unwrap().id();
    let error = RuntimeError::Permanent { words: "x".into() };
    let failed = Input::Failed {
        session,
        message: None,
        error,
    };
    world.input(&mut run, failed);
    let run = world.go_on(run);
    assert_eq!(words(&run), ["complete", "failed", "complete"]);
    assert_eq!(world.most_at_work, 1);
}

#[test]
fn a5_several_at_once_are_answered_one_by_one_and_the_step_waits_for_the_last() {
    let all = Reply::AskToo("p1", Box::new(Reply::AskToo("p2", Box::new(Reply::Ask("p3")))));
    let (mut world, mut run) = asking(&["a"], [all]);
    let asked = open(&run);
    assert_eq!(asked.len(), 3);
    world.input(&mut run, answer(asked[1], PermissionAnswer::Deny));
    world.settle(&mut run);
    assert_eq!(world.told.len(), 1, "passed on at once");
    assert_eq!(open(&run), [asked[0], asked[2]]);
    assert!(matches!(run.step(A).unwrap().phase(), Phase::Asking(_)));
    world.person = Some(PermissionAnswer::Allow);
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let told: Vec<_> = world
        .told
        .iter()
        .map(|(_, id, option)| (*id, option.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            ("p2", Some("reject")),
            ("p1", Some("allow")),
            ("p3", Some("allow"))
        ]
    );
    assert_eq!(run.step(A).unwrap().ledger().unwrap().waits, 1, "one wait in all");
}

#[test]
fn v2_r4_a_stop_cancels_what_is_open_and_what_was_answered_and_not_passed_on() {
    for answered in [false, true] {
        let mut definition = task(&["a", "b"], &[]);
        definition.parallel = 1.try_into().unwrap();
        let mut world = World::new(definition);
        world.script("a", [Reply::Ask("p1")]);
        world.script("b", [Reply::Silence]);
        let mut run = world.start();
        world.settle(&mut run);
        if answered {
            let asked = open(&run)[0];
            world.input(&mut run, answer(asked, PermissionAnswer::Allow));
        }
        world.input(&mut run, Input::Command(Command::Stop));
        world.settle(&mut run);
        assert_eq!(
            settled(&world),
            [(None, AnsweredBy::Cancel)],
            "answered {answered}"
        );
        assert_eq!(world.told.last().unwrap().2, None);
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Stopped));
        assert_eq!(run.step(A).unwrap().word(), "cancelled");
        assert!(run.permissions().is_empty());
        world.nothing_granted_in_silence();
    }
}

#[test]
fn a5_a_forced_stop_says_what_was_cancelled() {
    let (mut world, mut run) = asking(&["a"], [Reply::Ask("p1")]);
    world.input(&mut run, Input::Command(Command::Stop));
    world.input(&mut run, Input::Command(Command::Stop));
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Stopped));
    assert_eq!(settled(&world), [(None, AnsweredBy::Cancel)]);
}

#[test]
fn c13_after_a_crash_it_is_asked_again_and_an_answer_that_may_not_have_arrived_is_not_given_again() {
    for answered in [false, true] {
        let (mut world, mut run) = asking(&["a"], [Reply::Ask("p1"), Reply::Ask("p1")]);
        let before = open(&run)[0];
        if answered {
            world.input(&mut run, answer(before, PermissionAnswer::Allow));
        }
        // The engine dies. The next one finds the session, which is asked to go on, and asks again.
        let mut run = Run::replay(world.log.clone()).unwrap();
        world.lose_processes();
        world.input(&mut run, Input::EngineStarted { pid: 2, left: vec![] });
        assert!(run.permissions().is_empty(), "what was open is not any more");
        world.settle(&mut run);
        let after = open(&run);
        assert_eq!(after.len(), 1, "asked again");
        assert_ne!(after[0], before, "under another name");
        assert!(world.told.is_empty(), "nobody was told anything");
        let late = refused(&mut run, &world, answer(before, PermissionAnswer::Allow));
        assert_eq!(late, Some(Refused::NoSuchPermission(before)));
        world.person = Some(PermissionAnswer::Deny);
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        world.nothing_granted_in_silence();
    }
}

#[test]
fn c13_a_session_that_lives_on_elsewhere_is_not_told_an_earlier_answer() {
    let (mut world, mut run) = asking(&["a"], [Reply::Ask("p1")]);
    let before = open(&run)[0];
    world.input(&mut run, answer(before, PermissionAnswer::Allow));
    let session = run.step(A).unwrap().session().unwrap();
    let (session, opened) = (session.id(), session.opened().unwrap().clone());
    let mut run = Run::replay(world.log.clone()).unwrap();
    world.input(&mut run, Input::EngineStarted { pid: 2, left: vec![] });
    let found = FoundSession {
        opened,
        restarted: false,
        in_flight: MessageFate::InHand,
    };
    world.input(
        &mut run,
        Input::Found {
            session,
            result: Ok(found),
        },
    );
    assert_eq!(words(&run), ["running"]);
    let passes_on = |key: EffectKey| matches!(key, EffectKey::AnswerPermission(..));
    assert!(!run.outbox().iter().any(passes_on));
    // Its events are told from the start: what is still open is asked again.
    world.input(&mut run, super::world::asked(session, "p1"));
    assert_eq!(open(&run).len(), 1);
    assert_ne!(open(&run)[0], before);
}

#[test]
fn a_request_that_cannot_be_told_the_answer_is_over() {
    let (mut world, mut run) = asking(&["a"], [Reply::Ask("p1")]);
    let asked = open(&run)[0];
    world.withdraw();
    world.input(&mut run, answer(asked, PermissionAnswer::Allow));
    world.settle(&mut run);
    assert_eq!(settled(&world)[0], (None, AnsweredBy::Cancel));
    assert!(run.permissions().is_empty());
}

#[test]
fn what_is_asked_twice_or_between_messages_is_no_news() {
    let (mut world, mut run) = asking(&["a"], [Reply::Ask("p1")]);
    let session = run.step(A).unwrap().session().unwrap().id();
    let length = world.log.len();
    world.input(&mut run, super::world::asked(session, "p1"));
    assert_eq!(world.log.len(), length, "twice");
    world.person = Some(PermissionAnswer::Allow);
    let mut run = world.go_on(run);
    let length = world.log.len();
    world.input(&mut run, super::world::asked(session, "p2"));
    assert_eq!(world.log.len(), length, "over");
}

#[test]
fn c12_what_a_rule_refuses_is_told_with_the_rule_and_does_not_fill_the_log() {
    let (mut world, mut run) = asking(&["a"], [Reply::Silence]);
    let session = run.step(A).unwrap().session().unwrap().id();
    let Input::PermissionAsked { request, .. } = super::world::asked(session, "p1") else {
        panic!("it asks");
    };
    let refusal = Input::PermissionRefused {
        session,
        request,
        rule: "the run's policy is `deny`".to_owned(),
    };
    for _ in 0..3 * crate::run::REFUSALS_TOLD {
        world.input(&mut run, refusal.clone());
    }
    let told = |fact: &&crate::run::Recorded| matches!(&fact.event, Event::PermissionRefused { rule, .. } if rule.contains("deny"));
    let told = world.log.iter().filter(told).count();
    assert_eq!(told, usize::from(crate::run::REFUSALS_TOLD));
    assert_eq!(run.step(A).unwrap().word(), "running", "nobody is waited for");
}
