//! What the judge expects of the gates of provider accounts: closed until the date that the provider named, and nothing
//! begins behind one that is closed (R8).

use sillage_core::id::StepIndex;
use sillage_core::run::{DOUBTFUL_AFTER, OpenedBy, Wall};
use sillage_core::time::Timestamp;

use super::{Judge, Promise};

/// An account's gate, as last told.
#[derive(Debug, Clone, Copy)]
pub(super) struct GateBook {
    until: Timestamp,
    closed: bool,
    /// The step that was let through to see whether it is served.
    probe: Option<StepIndex>,
}

impl Judge {
    /// A gate closes, or its date changes: what the provider said is the world's own word, not the log's.
    pub(super) fn gate_closed(&mut self, account: &str, wall: &Wall, at: Timestamp) {
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
        let book = GateBook {
            until,
            closed: true,
            probe: None,
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

    /// A session is asked for, or a message sent, for a step.
    pub(super) fn passes_its_gate(&mut self, step: StepIndex, what: &str) {
        let Some(gate) = self.gate_of(step) else { return };
        let passes = !gate.closed || gate.probe == Some(step);
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
