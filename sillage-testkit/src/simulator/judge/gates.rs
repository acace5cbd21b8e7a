//! What the judge expects of the gates of provider accounts: closed until the date that the provider named, and nothing
//! begins behind one that is closed (R8).

use std::mem;

use sillage_core::id::StepIndex;
use sillage_core::run::{DOUBTFUL_AFTER, DOUBTFUL_RETRY, OpenedBy, Wall};
use sillage_core::time::Timestamp;

use super::{Judge, Promise};

/// An account's gate, as last told.
#[derive(Debug, Clone, Copy)]
pub(super) struct GateBook {
    until: Timestamp,
    /// Whether that is a date which the provider named.
    dated: bool,
    closed: bool,
    /// The step that was let through to see whether it is served.
    probe: Option<StepIndex>,
}

impl GateBook {
    fn lets_through(&self, step: StepIndex) -> bool {
        !self.closed || self.probe == Some(step)
    }
}

impl Judge {
    /// A gate closes, or its date changes: what the provider said is the world's own word, not the log's.
    pub(super) fn gate_closed(&mut self, account: &str, step: StepIndex, wall: &Wall, at: Timestamp) {
        let until = wall.until;
        let named = named(&wall.words);
        let trusted = named.filter(|named| *named > at && named.since(at) <= DOUBTFUL_AFTER);
        self.expect(Promise::Gates, until > at, || {
            format!("account {account} is closed at {} until {}", at.0, until.0)
        });
        self.expect(Promise::Gates, trusted.is_none_or(|named| until >= named), || {
            format!(
                "account {account} is closed until {}, the provider said: {}",
                until.0, wall.words
            )
        });
        let before = self.gates.get(account).filter(|gate| gate.closed);
        let book = GateBook {
            until,
            dated: !wall.single,
            closed: true,
            // The one that tries goes on until it meets the wall itself.
            probe: before.and_then(|gate| gate.probe).filter(|probe| *probe != step),
        };
        self.gates.insert(account.to_owned(), book);
    }

    /// A single step is let through.
    pub(super) fn gate_probed(&mut self, account: &str, step: StepIndex, at: Timestamp) {
        let Some(gate) = self.gates.get_mut(account) else {
            return;
        };
        gate.probe = Some(step);
        let (due, until) = (at >= gate.until, gate.until);
        self.expect(Promise::Gates, due, || {
            format!("account {account} is tried at {}, closed until {}", at.0, until.0)
        });
    }

    /// An account is used again.
    pub(super) fn gate_opened(&mut self, account: &str, by: OpenedBy, at: Timestamp) {
        let Some(gate) = self.gates.get_mut(account) else {
            return;
        };
        gate.closed = false;
        let (due, until) = (by != OpenedBy::Date || at >= gate.until, gate.until);
        self.expect(Promise::Gates, due, || {
            format!("account {account} opens at {}, closed until {}", at.0, until.0)
        });
    }

    /// A person goes on with the run: accounts without a date are tried at once.
    pub(super) fn undated_gates_are_tried(&mut self, at: Timestamp) {
        for gate in self.gates.values_mut().filter(|gate| !gate.dated) {
            gate.until = gate.until.min(at);
        }
    }

    /// The clock was set: spans count on, dates that a provider named stay.
    pub(super) fn gates_in_a_clock_that_was_set(&mut self, by_ms: i64, at: Timestamp) {
        for gate in self.gates.values_mut() {
            if !gate.dated {
                gate.until = gate.until.shifted(by_ms);
            } else if gate.until.since(at) > DOUBTFUL_AFTER {
                gate.dated = false;
                gate.until = at.plus(DOUBTFUL_RETRY);
            }
        }
    }

    /// Something is to leave for a step: what its gate lets through then may be on its way when that closes. So may what
    /// goes on by a person's answer: who asked has its message at hand, as far as anybody knows.
    pub(super) fn set_to_work(&mut self, step: StepIndex) {
        let gate = self.gate_of(step);
        let let_through = gate.is_none_or(|gate| gate.lets_through(step));
        if let Some(book) = self.steps.get_mut(step.position()) {
            let answered = mem::take(&mut book.answered_by_person);
            book.let_through = let_through || answered;
        }
    }

    /// A person answered what the step's agent asked.
    pub(super) fn person_answered(&mut self, step: StepIndex) {
        self.steps[step.position()].answered_by_person = true;
    }

    /// A session is asked for, or a message sent, for a step.
    pub(super) fn passes_its_gate(&mut self, step: StepIndex, what: &str) {
        let Some(gate) = self.gate_of(step) else { return };
        let passes = self.steps[step.position()].let_through || gate.lets_through(step);
        self.expect(Promise::Gates, passes, || {
            format!(
                "{what} of step {} leaves, whose account is closed until {}",
                step.0, gate.until.0
            )
        });
    }

    /// Until when the step's account is closed, as last told.
    pub(super) fn closed_until(&self, step: StepIndex) -> Option<Timestamp> {
        Some(self.gate_of(step)?.until)
    }

    fn gate_of(&self, step: StepIndex) -> Option<GateBook> {
        let run = self.run.as_ref()?;
        let account = run.definition().account(&run.agent(step).model);
        self.gates.get(account).copied()
    }
}

/// The date in the simulated provider's words, e.g. `quota used up: until 1893472736527`.
fn named(words: &str) -> Option<Timestamp> {
    let (_, date) = words.split_once(": until ")?;
    date.parse().ok().map(Timestamp)
}
