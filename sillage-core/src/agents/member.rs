//! One agent: its phase and what may be asked of it.

use std::collections::BTreeSet;

use super::{AgentState, AgentStatus, Definition, ProcessNumber, StateChange, UserId};
use crate::time::Timestamp;

/// A process that was launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process<D> {
    pub(super) number: ProcessNumber,
    /// What it was launched with.
    pub(super) launch: D,
}

/// How far a start has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start<D> {
    /// It waits for its place; starts are launched in the order of these numbers.
    Awaited(u64),
    /// It is in the handshake.
    Launched(Process<D>),
}

/// What happens once a start has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// It is ready.
    Serve,
    /// It is stopped.
    Stop,
    /// It is stopped and started again.
    Restart,
}

/// Where an agent stands in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase<D> {
    Stopped,
    Starting {
        start: Start<D>,
        then: Then,
        /// Those who wait for it.
        users: BTreeSet<UserId>,
    },
    Ready {
        process: Process<D>,
        /// Unused since then.
        since: Timestamp,
    },
    Busy {
        process: Process<D>,
        /// Never empty.
        users: BTreeSet<UserId>,
    },
    Error(String),
}

/// An agent of the settings, or one that was and whose process is still there.
#[derive(Debug, Clone)]
pub(super) struct Member<D> {
    pub(super) name: String,
    /// What the next process is launched with.
    pub(super) launch: D,
    pub(super) phase: Phase<D>,
    /// A process that was told to end and is not known to be gone.
    pub(super) ending: Option<ProcessNumber>,
    /// Taken out of the settings.
    pub(super) removed: bool,
}

impl<D: Clone + PartialEq> Member<D> {
    pub(super) fn new(definition: Definition<D>) -> Self {
        Self {
            name: definition.name,
            launch: definition.launch,
            phase: Phase::Stopped,
            ending: None,
            removed: false,
        }
    }

    pub(super) fn state(&self) -> AgentState {
        match &self.phase {
            Phase::Stopped => AgentState::Stopped,
            Phase::Starting { .. } => AgentState::Starting,
            Phase::Ready { .. } => AgentState::Ready,
            Phase::Busy { .. } => AgentState::Busy,
            Phase::Error(_) => AgentState::Error,
        }
    }

    fn error(&self) -> Option<String> {
        match &self.phase {
            Phase::Error(words) => Some(words.clone()),
            Phase::Stopped | Phase::Starting { .. } | Phase::Ready { .. } | Phase::Busy { .. } => None,
        }
    }

    /// The process in use, not one that was told to end.
    pub(super) fn process(&self) -> Option<&Process<D>> {
        match &self.phase {
            Phase::Starting {
                start: Start::Launched(process),
                ..
            }
            | Phase::Ready { process, .. }
            | Phase::Busy { process, .. } => Some(process),
            Phase::Starting {
                start: Start::Awaited(_),
                ..
            }
            | Phase::Stopped
            | Phase::Error(_) => None,
        }
    }

    pub(super) fn status(&self) -> AgentStatus {
        AgentStatus {
            agent: self.name.clone(),
            state: self.state(),
            error: self.error(),
            outdated: self
                .process()
                .is_some_and(|process| process.launch != self.launch),
        }
    }

    pub(super) fn change(&self) -> StateChange {
        StateChange {
            agent: self.name.clone(),
            state: self.state(),
            error: self.error(),
        }
    }

    /// Whether it is to go on running, and so takes one of the places.
    pub(super) fn takes_place(&self) -> bool {
        match &self.phase {
            Phase::Starting { then, .. } => *then != Then::Stop,
            Phase::Ready { .. } | Phase::Busy { .. } => true,
            Phase::Stopped | Phase::Error(_) => false,
        }
    }

    /// Whether a process of it is about to be gone.
    pub(super) fn is_leaving(&self) -> bool {
        let after_start = matches!(
            self.phase,
            Phase::Starting {
                start: Start::Launched(_),
                then: Then::Stop | Then::Restart,
                ..
            }
        );
        self.ending.is_some() || after_start
    }

    /// Processes of it that are there.
    pub(super) fn processes(&self) -> usize {
        usize::from(self.process().is_some()) + usize::from(self.ending.is_some())
    }

    pub(super) fn at_rest(&self) -> bool {
        self.ending.is_none() && matches!(self.phase, Phase::Stopped | Phase::Error(_))
    }

    pub(super) fn has_user(&self, user: UserId) -> bool {
        match &self.phase {
            Phase::Starting { users, .. } | Phase::Busy { users, .. } => users.contains(&user),
            Phase::Stopped | Phase::Ready { .. } | Phase::Error(_) => false,
        }
    }

    pub(super) fn recall(&mut self, words: String) {
        if self.phase == Phase::Stopped {
            self.phase = Phase::Error(words);
        }
    }
}
