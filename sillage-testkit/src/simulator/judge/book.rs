//! What the judge notes of steps, sessions and messages, from the log alone.

use std::ops::Range;
use std::sync::Arc;

use sillage_core::id::{ClientSessionId, StepIndex};
use sillage_core::ports::runtime::SessionRequest;
use sillage_core::report::Outcome;
use sillage_core::run::{MessagePurpose, StepEnd};

/// A step.
#[derive(Debug, Clone, Default)]
pub(super) struct StepBook {
    /// How it ended, in this life.
    pub(super) end: Option<StepEnd>,
    /// Whether what follows it may run.
    pub(super) lets_follow: bool,
    pub(super) session: Option<ClientSessionId>,
    /// Whether its account's gate let it through when last something was to leave for it.
    pub(super) let_through: bool,
    /// Whether it is to go on by a person's answer to its agent.
    pub(super) answered_by_person: bool,
    /// Waits since the last answer.
    pub(super) tries: u32,
    /// Its accepted report, in this life: outcome, and whether blockers are in it.
    pub(super) accepted: Option<(Outcome, bool)>,
    /// Whether its work is to be merged: it was committed, and something was.
    pub(super) to_merge: bool,
    pub(super) merged: bool,
    pub(super) conflicted: bool,
    /// Its coordinator, if it is a sub-agent's.
    pub(super) of: Option<StepIndex>,
    /// The sub-agents that it waits for.
    pub(super) after: Vec<StepIndex>,
    /// The steps of its sub-agents, once its plan is accepted.
    pub(super) group: Option<Range<u32>>,
    /// Plans of it that were accepted.
    pub(super) plans: u32,
    /// Whether a person wants to go on without it.
    pub(super) skipping: bool,
}

impl StepBook {
    /// What it did counts no more: it begins another life.
    pub(super) fn begin_anew(&mut self) {
        self.end = None;
        self.lets_follow = false;
        self.tries = 0;
        self.accepted = None;
        self.to_merge = false;
        self.merged = false;
        self.conflicted = false;
        self.group = None;
        self.skipping = false;
    }

    /// Whether it was complete or partial without blockers.
    pub(super) fn succeeded(&self) -> bool {
        self.lets_follow && self.end != Some(StepEnd::Skipped)
    }
}

/// A session.
#[derive(Debug, Clone)]
pub(super) struct SessionBook {
    pub(super) step: StepIndex,
    pub(super) request: Arc<SessionRequest>,
    /// Whether its step is through with it.
    pub(super) over: bool,
    /// Whether nobody looks for it again: it is known to be lost, or its step began anew after an end of its own.
    pub(super) left: bool,
    /// Whether the runtime said that it is open.
    pub(super) opened: bool,
    /// Since it began, or since its last conflict.
    pub(super) corrections: u32,
    pub(super) conflicts: u32,
    pub(super) missions: u32,
    pub(super) plan_corrections: u32,
    /// Times that its opening was asked for.
    pub(super) openings: u32,
    /// Waits and restarts since it was planned.
    pub(super) excuses: u32,
    /// Times that the log says that it was found.
    pub(super) found: u32,
}

/// A message.
#[derive(Debug, Clone)]
pub(super) struct MessageBook {
    pub(super) session: ClientSessionId,
    pub(super) purpose: MessagePurpose,
    pub(super) text: String,
    pub(super) answered: bool,
    pub(super) sendings: u32,
    /// Whether the engine knew, when it last decided something, that its identifier came before with another text (R6).
    pub(super) in_conflict: bool,
}
