//! What decided when the last agent was done: back from it, each to what let it begin.

use std::time::Duration;

use serde::Serialize;

use super::network::Network;
use super::past::Part;
use super::replay::{NONE, Stage};

/// Why a leg of the critical path begins when it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LegBecause {
    /// It needs nothing before it.
    Launch,
    /// It needs the one before it in the path.
    Link,
    /// It was ready, and the one before it in the path gave it a place.
    Place,
}

/// A leg of the critical path: one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leg {
    /// The agent.
    pub agent: String,
    /// The sub-agent's place in the agent's plan, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_agent: Option<u32>,
    /// What it does.
    pub part: Part,
    /// When it begins, from the launch.
    #[serde(rename = "start_ms", serialize_with = "crate::time::as_millis")]
    pub start: Duration,
    /// How long it takes.
    #[serde(rename = "takes_ms", serialize_with = "crate::time::as_millis")]
    pub takes: Duration,
    /// Why it begins then.
    pub because: LegBecause,
}

/// Each node of the path that ends with `last`, from there back to the launch.
pub(super) fn back(stage: &Stage<'_>, last: u32, mut visit: impl FnMut(u32)) {
    let mut node = last;
    // A cause begins before what it lets begin, so that this ends; the bound only says so.
    for _ in 0..stage.cause.len() {
        visit(node);
        node = stage.cause[node as usize].node;
        if node == NONE {
            return;
        }
    }
}

/// The path of the replay that was played last.
pub(super) fn legs<'a>(
    network: &Network,
    stage: &Stage<'_>,
    last: u32,
    name: impl Fn(u32) -> &'a str,
) -> Vec<Leg> {
    let mut legs = Vec::new();
    back(stage, last, |node| {
        let at = node as usize;
        let facts = &network.nodes[at];
        let cause = stage.cause[at];
        legs.push(Leg {
            agent: name(facts.agent).to_owned(),
            sub_agent: facts.sub_agent,
            part: facts.part,
            start: Duration::from_millis(stage.begun[at]),
            takes: Duration::from_millis(stage.ended[at].saturating_sub(stage.begun[at])),
            because: match (cause.node, cause.place) {
                (NONE, _) => LegBecause::Launch,
                (_, true) => LegBecause::Place,
                (_, false) => LegBecause::Link,
            },
        });
    });
    legs.reverse();
    legs
}
