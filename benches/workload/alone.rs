//! The machine alone, in memory, everything answered at once.

use sillage::core::id::{ClientMessageId, ClientSessionId};
use sillage::core::ports::Ids;
use sillage::core::ports::runtime::{Answer, OpenedSession, StopReason, Usage};
use sillage::core::run::{Effect, EffectKey, Input, Recorded, Run, RunDefinition};
use sillage::core::time::Timestamp;

use crate::definition::REPORT;

/// Identifiers that count.
struct CountedIds(u128);

impl Ids for CountedIds {
    fn session(&mut self) -> ClientSessionId {
        self.0 += 1;
        ClientSessionId(uuid::Uuid::from_u128(self.0))
    }

    fn message(&mut self) -> ClientMessageId {
        self.0 += 1;
        ClientMessageId(uuid::Uuid::from_u128(self.0))
    }
}

/// Runs the machine alone, in memory, everything answered at once; `keep` is given each batch of facts.
pub(crate) fn run_alone(definition: RunDefinition, mut keep: impl FnMut(&[Recorded])) -> Run {
    let launch = Run::launch(Timestamp(0), definition);
    keep(std::slice::from_ref(&launch));
    let mut run = Run::start(launch).unwrap();
    let mut ids = CountedIds(0);
    let mut inputs = Vec::new();
    loop {
        let turn = run.turn(Timestamp(0), &mut ids, inputs.drain(..)).unwrap();
        keep(&turn.facts);
        if run.end().is_some() {
            return run;
        }
        for key in run.take_outbox_changes() {
            if let Some(effect) = run.effect(key) {
                inputs.push(answer(key, effect));
            }
        }
    }
}

fn answer(key: EffectKey, effect: Effect) -> Input {
    match (key, effect) {
        (EffectKey::Open(_, session), Effect::Open(_)) => {
            let opened = OpenedSession {
                native: None,
                agent: "none".to_owned(),
                pid: None,
            };
            Input::Opened {
                session,
                result: Ok(opened),
            }
        }
        (EffectKey::Send(_, message), Effect::Send { session, .. }) => {
            let answer = Answer {
                text: REPORT.to_owned(),
                stop: StopReason::EndTurn,
                usage: Usage::default(),
            };
            Input::Answered {
                session,
                message,
                answer,
            }
        }
        (EffectKey::Close(_, session), Effect::Close(_)) => Input::Closed {
            session,
            result: Ok(()),
        },
        (key, effect) => panic!("{key:?} asks for {effect:?}"),
    }
}
