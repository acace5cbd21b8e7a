//! R7, R12: a runtime that is out of reach in the middle of a run is waited for, and its sessions are looked for.

use super::world::asked;
use super::*;
use crate::id::ClientSessionId;
use crate::ports::runtime::{Answer, FoundSession, MessageFate};

fn refused() -> RuntimeError {
    RuntimeError::Temporary {
        words: "connection refused".to_owned(),
        retry_after: None,
    }
}

fn out_of_reach(session: ClientSessionId) -> Input {
    Input::OutOfReach {
        session,
        error: refused(),
    }
}

/// A run whose one agent is answering in this session.
fn answering() -> (World, Run, ClientSessionId) {
    let mut world = World::new(task(&["a"], &[]));
    world.script("a", [Reply::Silence]);
    let mut run = world.start();
    world.settle(&mut run);
    let session = state(&run).session().unwrap().id();
    (world, run, session)
}

fn state(run: &Run) -> &Step {
    run.step(StepIndex(0)).unwrap()
}

/// Lets the step's wait pass; its session is looked for.
fn pass(world: &mut World, run: &mut Run) -> Duration {
    let until = run.deadline().unwrap();
    let span = until.since(world.now);
    world.now = until;
    world.turn(run, vec![]);
    assert_eq!(*state(run).phase(), Phase::Finding);
    span
}

fn found(
    world: &mut World,
    run: &mut Run,
    session: ClientSessionId,
    result: Result<MessageFate, RuntimeError>,
) {
    let opened = state(run).session().unwrap().opened().unwrap().clone();
    let result = result.map(|in_flight| FoundSession {
        opened,
        restarted: false,
        in_flight,
    });
    world.input(run, Input::Found { session, result });
}

fn count(world: &World, is: impl Fn(&Event) -> bool) -> usize {
    world.log.iter().filter(|fact| is(&fact.event)).count()
}

#[test]
fn r7_its_session_is_looked_for_longer_and_longer_and_goes_on_where_it_was() {
    let (mut world, mut run, session) = answering();
    let message = state(&run).session().unwrap().in_flight.clone().unwrap();
    world.input(&mut run, out_of_reach(session));
    assert_eq!(state(&run).word(), "waiting");
    let mut spans = Vec::new();
    for _ in 0..4 {
        spans.push(pass(&mut world, &mut run).as_secs());
        found(&mut world, &mut run, session, Err(refused()));
        assert_eq!(state(&run).word(), "waiting");
    }
    spans.push(pass(&mut world, &mut run).as_secs());
    assert_eq!(spans, [30, 60, 120, 240, 240]);
    found(&mut world, &mut run, session, Ok(MessageFate::InHand));
    // The message goes out under its own identifier: its runtime knows it.
    let key = EffectKey::Send(StepIndex(0), message.client_message_id);
    assert!(run.outbox().contains(&key));
    let answer = Answer {
        text: report("complete"),
        stop: StopReason::EndTurn,
        usage: Default::default(),
    };
    let answered = Input::Answered {
        session,
        message: message.client_message_id,
        answer,
    };
    world.input(&mut run, answered);
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        count(&world, |event| matches!(event, Event::WaitStarted { .. })),
        5
    );
    assert_eq!(
        count(&world, |event| matches!(event, Event::MessagePlanned { .. })),
        1
    );
    assert_eq!(
        count(&world, |event| matches!(event, Event::SessionPlanned { .. })),
        1
    );
    assert_eq!(Run::replay(world.log.clone()).unwrap().end(), run.end());
}

#[test]
fn r12_a_session_that_came_back_lost_begins_anew() {
    for error in [
        refused(),
        RuntimeError::Lost {
            words: "nobody knows it".to_owned(),
        },
    ] {
        let (mut world, mut run, session) = answering();
        world.input(&mut run, Input::OutOfReach { session, error });
        pass(&mut world, &mut run);
        let lost = RuntimeError::Lost {
            words: "it is gone".to_owned(),
        };
        world.script("a", [Reply::text(&report("complete"))]);
        found(&mut world, &mut run, session, Err(lost));
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        assert_eq!(world.sessions_opened, 2);
        assert_eq!(world.told(0, MessagePurpose::Mission), 2);
    }
}

/// R6, R8: what its sending came to is told late, when the wait for the session has begun.
#[test]
fn r6_a_refusal_that_time_does_not_mend_counts_during_the_wait() {
    let conflict = RuntimeError::Conflict {
        words: "this identifier came before".to_owned(),
        fields: vec!["content".to_owned()],
    };
    let quota = RuntimeError::Quota {
        words: "used up".to_owned(),
        resets_at: None,
    };
    let not_sent = |run: &Run, session, error: RuntimeError| Input::NotSent {
        session,
        message: state(run)
            .session()
            .unwrap()
            .in_flight
            .as_ref()
            .unwrap()
            .client_message_id,
        error,
    };
    let (mut world, mut run, session) = answering();
    world.input(&mut run, out_of_reach(session));
    let before = state(&run).phase().clone();
    let late = not_sent(&run, session, refused());
    world.input(&mut run, late);
    assert_eq!(*state(&run).phase(), before, "it waits already");
    let late = not_sent(&run, session, quota);
    world.input(&mut run, late);
    assert!(
        matches!(state(&run).phase(), Phase::Held(_)),
        "{:?}",
        state(&run).phase()
    );

    let (mut world, mut run, session) = answering();
    world.input(&mut run, out_of_reach(session));
    let late = not_sent(&run, session, conflict);
    world.input(&mut run, late);
    let Some(StepEnd::Failed(failure)) = state(&run).end() else {
        panic!("it goes on");
    };
    assert_eq!(failure.class, FailureClass::Conflict);
}

#[test]
fn r7_the_set_limit_of_tries_holds_for_searches_too() {
    let (mut world, mut run, session) = answering();
    std::sync::Arc::make_mut(&mut run.definition).policy.attempts = 2.try_into().ok();
    world.input(&mut run, out_of_reach(session));
    pass(&mut world, &mut run);
    found(&mut world, &mut run, session, Err(refused()));
    assert_eq!(state(&run).word(), "failed");
}

/// What was asked in the session is asked again by it once it is found.
#[test]
fn a5_r7_a_permission_request_does_not_outlast_its_session_out_of_sight() {
    let (mut world, mut run, session) = answering();
    world.input(&mut run, asked(session, "p"));
    assert_eq!(run.permissions().len(), 1);
    world.input(&mut run, out_of_reach(session));
    assert_eq!((state(&run).word(), run.permissions().len()), ("waiting", 0));
    pass(&mut world, &mut run);
    found(&mut world, &mut run, session, Ok(MessageFate::InHand));
    world.input(&mut run, asked(session, "p"));
    assert_eq!(run.permissions().len(), 1);
}

/// A session that has nothing to do is not waited for; it is looked for when it has.
#[test]
fn r7_a_session_that_is_kept_open_is_looked_for_when_it_is_needed() {
    let mut world = World::new(task(&["a"], &[]).with_repository());
    world.clashes.insert("a".to_owned(), 1);
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| matches!(phase, Phase::Merging(_)));
    let session = state(&run).session().unwrap().id();
    world.input(&mut run, out_of_reach(session));
    assert_eq!(
        count(&world, |event| matches!(event, Event::SessionGone { .. })),
        1
    );
    world.input(&mut run, out_of_reach(session));
    assert_eq!(
        count(&world, |event| matches!(event, Event::SessionGone { .. })),
        1,
        "told once"
    );
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    assert_eq!(
        count(&world, |event| matches!(event, Event::SessionFound { .. })),
        1
    );
    assert_eq!(
        count(&world, |event| matches!(event, Event::WaitStarted { .. })),
        0
    );
}

/// A message that waits to be sent again is not sent into a session that nobody listens to.
#[test]
fn r7_a_message_that_waits_to_be_sent_again_is_sent_once_its_session_is_found() {
    let (mut world, mut run, session) = answering();
    let message = state(&run).session().unwrap().in_flight.clone().unwrap();
    let not_sent = Input::NotSent {
        session,
        message: message.client_message_id,
        error: refused(),
    };
    world.turn(&mut run, vec![not_sent, out_of_reach(session)]);
    assert_eq!(
        count(&world, |event| matches!(event, Event::WaitStarted { .. })),
        1
    );
    pass(&mut world, &mut run);
    found(&mut world, &mut run, session, Ok(MessageFate::NotReceived));
    assert_eq!(*state(&run).phase(), Phase::Prompted);
    assert_eq!(
        count(&world, |event| matches!(event, Event::MessagePlanned { .. })),
        1
    );
}

#[test]
fn r4_a_run_that_stops_does_not_wait_for_it() {
    let (mut world, mut run, session) = answering();
    world.input(&mut run, Input::Command(Command::Stop));
    world.input(&mut run, out_of_reach(session));
    assert_eq!(state(&run).word(), "cancelled");
}

/// R9: what no try mends is not tried again.
#[test]
fn r9_a_runtime_that_refuses_for_good_fails_the_step() {
    let (mut world, mut run, session) = answering();
    let error = RuntimeError::Permanent {
        words: "the token is wrong".to_owned(),
    };
    world.input(&mut run, Input::OutOfReach { session, error });
    assert_eq!(state(&run).word(), "failed");
}
