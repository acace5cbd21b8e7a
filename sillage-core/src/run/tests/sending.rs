//! B1: a message whose sending was told as failed may have arrived all the same.

use super::*;
use crate::ports::runtime::{
    Answer, FoundSession, MessageFate, MessageRequest, OpenedSession, PermissionRequest,
};

/// A run whose one message was told as not sent, and waits to be sent again.
fn not_known_to_be_sent() -> (World, Run, crate::id::ClientSessionId, MessageRequest) {
    let mut world = World::new(task(&["a"], &[]));
    let mut run = world.start();
    world.settle_until_phase(&mut run, 0, |phase| *phase == Phase::Prompted);
    let state = run.step(StepIndex(0)).unwrap().session().unwrap();
    let (session, message) = (state.id(), state.in_flight.as_deref().unwrap().clone());
    let error = RuntimeError::Temporary {
        words: "connection reset".to_owned(),
        retry_after: None,
    };
    let input = Input::NotSent {
        session,
        message: message.client_message_id,
        error,
    };
    world.input(&mut run, input);
    assert_eq!(run.step(StepIndex(0)).unwrap().word(), "waiting");
    (world, run, session, message)
}

#[test]
fn b1_an_answer_to_a_message_that_waits_to_be_sent_again_counts() {
    let (mut world, mut run, session, message) = not_known_to_be_sent();
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
    assert_eq!(run.step(StepIndex(0)).unwrap().word(), "complete");
}

#[test]
fn b1_what_an_agent_asks_while_its_message_waits_to_be_sent_again_is_heard() {
    let (mut world, mut run, session, _) = not_known_to_be_sent();
    let request = PermissionRequest {
        id: "p".to_owned(),
        title: "to go on".to_owned(),
        kind: None,
        paths: vec![],
        options: vec![],
    };
    let asked = Input::PermissionAsked {
        session,
        request: Arc::new(request),
    };
    world.input(&mut run, asked);
    assert_eq!(run.permissions().len(), 1);
}

/// The session knows the answer still, and would tell it again.
#[test]
fn b3_an_answer_that_was_refused_while_the_run_stopped_is_not_taken_again_after_a_resume() {
    for dynamic in [false, true] {
        let definition = task(&["a"], &[]);
        let mut world = World::new(if dynamic {
            definition.with_dynamic("a")
        } else {
            definition
        });
        match dynamic {
            true => world.plans("a", [Reply::Silence]),
            false => world.script("a", [Reply::Silence]),
        }
        let mut run = world.start();
        world.settle(&mut run);
        let state = run.step(StepIndex(0)).unwrap().session().unwrap();
        let (session, message) = (state.id(), state.in_flight.as_deref().unwrap().client_message_id);
        world.input(&mut run, Input::Command(Command::Stop));
        let text = "neither a report nor a plan".to_owned();
        let answer = Answer {
            text: text.clone(),
            stop: StopReason::EndTurn,
            usage: Default::default(),
        };
        let answered = Input::Answered {
            session,
            message,
            answer,
        };
        world.input(&mut run, answered);
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Stopped));
        world.history.insert(session, (message, text));
        let run = world.resume(run);
        assert_eq!(run.end(), Some(RunEnd::Complete));
        let is_it =
            |fact: &&Recorded| matches!(&fact.event, Event::Answered { message: of, .. } if *of == message);
        assert_eq!(world.log.iter().filter(is_it).count(), 1);
    }
}

/// A runtime that outlives the engine tells a session's events from its start: the failure that was waited for among
/// them is heard twice, and counts once.
#[test]
fn r7_b3_a_failure_that_is_told_again_by_a_session_found_is_not_waited_for_again() {
    let mut world = World::new(task(&["a"], &[]));
    let overloaded = RuntimeError::Temporary {
        words: "529 overloaded".to_owned(),
        retry_after: None,
    };
    world.script(
        "a",
        [Reply::Error(overloaded.clone()), Reply::text(&report("complete"))],
    );
    let mut run = world.start();
    world.settle(&mut run);
    let state = run.step(StepIndex(0)).unwrap().session().unwrap();
    let (session, message) = (state.id(), state.in_flight.as_deref().unwrap().client_message_id);
    let opened = state.opened().unwrap().clone();
    let mut run = Run::replay(world.log.clone()).unwrap();
    world.input(&mut run, Input::EngineStarted { pid: 2, left: vec![] });
    world.now = run.deadline().unwrap();
    world.turn(&mut run, vec![]);
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
    let told_again = Input::Failed {
        session,
        message: Some(message),
        error: overloaded,
    };
    world.input(&mut run, told_again);
    let waits = |fact: &&Recorded| matches!(fact.event, Event::WaitStarted { .. });
    assert_eq!(world.log.iter().filter(waits).count(), 1);
    assert_eq!(world.told(0, MessagePurpose::Continuation), 1);
    assert_eq!(world.told(0, MessagePurpose::Mission), 1);
    assert_eq!(run.step(StepIndex(0)).unwrap().word(), "running");
}

/// "Same identifier, another request" of a message, whether it is said of its sending or after it was accepted, is a
/// defect: trying again cannot mend it (R6).
#[test]
fn r6_b4_a_conflict_of_a_message_fails_the_step_with_its_fields_and_is_not_tried_again() {
    for accepted in [false, true] {
        let mut world = World::new(task(&["a"], &[]));
        world.script("a", [Reply::Silence]);
        let mut run = world.start();
        world.settle(&mut run);
        let state = run.step(StepIndex(0)).unwrap().session().unwrap();
        let (session, message) = (state.id(), state.in_flight.as_deref().unwrap().client_message_id);
        let error = RuntimeError::Conflict {
            words: "the message came before otherwise".to_owned(),
            fields: vec!["text".to_owned()],
        };
        let input = match accepted {
            true => Input::Failed {
                session,
                message: Some(message),
                error,
            },
            false => Input::NotSent {
                session,
                message,
                error,
            },
        };
        world.input(&mut run, input);
        let run = world.go_on(run);
        assert_eq!(run.end(), Some(RunEnd::Failed), "accepted: {accepted}");
        let Some(StepEnd::Failed(failure)) = run.steps()[0].end() else {
            panic!("{:?}", run.steps()[0].end());
        };
        assert_eq!(failure.class, FailureClass::Conflict);
        assert!(
            failure.words.contains("came before otherwise") && failure.words.contains("text"),
            "{failure:?}"
        );
        let again = |fact: &&Recorded| matches!(fact.event, Event::WaitStarted { .. });
        assert_eq!(world.log.iter().filter(again).count(), 0, "accepted: {accepted}");
        assert_eq!((world.sessions_opened, world.prompts_to("a")), (1, 1));
    }
}

#[test]
fn r8_a_session_that_is_found_behind_a_closed_gate_is_sent_nothing_and_is_found_again_when_it_opens() {
    let mut world = World::new(task(&["a", "b"], &[]));
    let mut run = world.start();
    for step in [0, 1] {
        world.settle_until_phase(&mut run, step, |phase| *phase == Phase::Prompted);
    }
    let mut run = world.take_up_again();
    let id = |run: &Run, step| run.step(StepIndex(step)).unwrap().session().unwrap().id();
    let (a, b) = (id(&run, 0), id(&run, 1));
    let quota = RuntimeError::Quota {
        words: "used up".to_owned(),
        resets_at: None,
    };
    let found = FoundSession {
        opened: OpenedSession {
            native: None,
            agent: "x".to_owned(),
            pid: None,
        },
        restarted: true,
        in_flight: MessageFate::NotReceived,
    };
    let inputs = vec![
        Input::Found {
            session: b,
            result: Err(quota),
        },
        Input::Found {
            session: a,
            result: Ok(found),
        },
    ];
    world.turn(&mut run, inputs);
    let sends = |run: &Run| run.outbox().iter().any(|key| matches!(key, EffectKey::Send(..)));
    assert!(!sends(&run), "the account is closed");
    assert!(matches!(run.step(StepIndex(0)).unwrap().phase(), Phase::Held(_)));
    let before = world.log.len();
    let run = world.go_on(run);
    assert_eq!(run.end(), Some(RunEnd::Complete));
    let since = &world.log[before..];
    let opened = since
        .iter()
        .position(|fact| matches!(fact.event, Event::GateProbed { .. }));
    let again = since
        .iter()
        .position(|fact| matches!(fact.event, Event::SessionFound { .. }));
    assert!(opened.unwrap() < again.unwrap());
}
