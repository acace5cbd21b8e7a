//! B1: a message whose sending was told as failed may have arrived all the same.

use super::*;
use crate::ports::runtime::{Answer, MessageRequest, PermissionRequest};

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
