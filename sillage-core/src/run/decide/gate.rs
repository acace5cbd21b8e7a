//! When an account's gate opens, and who tries it. The rules are those of [`crate::run::gates`].

use super::Decision;
use crate::id::{ClientSessionId, StepIndex};
use crate::plain;
use crate::ports::runtime::Usage;
use crate::run::event::{Event, OpenedBy};
use crate::run::gates::Gate;
use crate::run::input::Refused;
use crate::run::step::Phase;
use crate::run::wall::backoff;

impl Decision<'_> {
    /// Gates whose date came: opened for all, or tried by a single agent.
    pub(super) fn due_gates(&mut self) {
        let run = self.run;
        for (account, gate, held) in run.gates.closed() {
            if held == 0 || self.now < gate.wall.until || run.is_probed(gate) {
                continue;
            }
            let account = account.to_owned();
            match (gate.wall.single, run.gates.first_held(&account)) {
                (true, Some(step)) => self.say(Event::GateProbed { account, step }),
                (true, None) => {}
                (false, _) => self.open_gate(&account, OpenedBy::Date),
            }
        }
    }

    fn open_gate(&mut self, account: &str, by: OpenedBy) {
        let held = u32::try_from(self.run.held(account)).unwrap_or(u32::MAX);
        let account = account.to_owned();
        self.say(Event::GateOpened { account, by, held });
    }

    /// The step's provider served it: where it is the one that tries, the others go on too.
    pub(super) fn served(&mut self, step: StepIndex) {
        if self.run.gates.is_probe(step) && !self.is_stopping() {
            let account = self.run.gates.account(step).to_owned();
            self.open_gate(&account, OpenedBy::Probe);
        }
    }

    /// A session was opened: a sign of life only where opening was what failed.
    pub(super) fn served_at_opening(&mut self, step: StepIndex) {
        let gate: Option<&Gate> = self.run.gates.gate(step);
        if gate.is_some_and(|gate| gate.wall.at_opening) {
            self.served(step);
        }
    }

    /// More tokens are told than before: they were spent on what is being answered.
    pub(super) fn served_by(&mut self, step: StepIndex, session: ClientSessionId, usage: Usage) {
        let state = &self.run.steps[step.position()];
        let known = state.session.as_deref().filter(|known| known.id() == session);
        let Some(known) = known.filter(|_| state.phase == Phase::Prompted) else {
            return;
        };
        let more = |later: Option<u64>, earlier: Option<u64>| later.unwrap_or(0) > earlier.unwrap_or(0);
        let before = known.usage;
        if more(usage.input_tokens, before.input_tokens)
            || more(usage.output_tokens, before.output_tokens)
            || more(usage.cache_read_tokens, before.cache_read_tokens)
            || more(usage.cache_write_tokens, before.cache_write_tokens)
        {
            self.served(step);
        }
    }

    pub(super) fn tool_used(&mut self, session: ClientSessionId) {
        if let Some((step, state)) = self.owner(session)
            && state.phase == Phase::Prompted
        {
            self.served(step);
        }
    }

    /// The runtime's word is believed once the provider had time to be heard: it may be older than what was met.
    pub(super) fn account_available(&mut self, account: &str) {
        let Some((gate, closings)) = self.run.gates.named(account) else {
            return;
        };
        let policy = &self.run.definition.policy;
        let least = backoff(
            policy.backoff_first,
            policy.backoff_most,
            closings.saturating_sub(1),
        );
        if !self.is_stopping() && self.now >= gate.since.plus(least) {
            self.open_gate(account, OpenedBy::Runtime);
        }
    }

    pub(super) fn try_account(&mut self, account: &str) -> Result<(), Refused> {
        if self.run.gates.named(account).is_some() {
            self.open_gate(account, OpenedBy::Person);
            return Ok(());
        }
        let closed = self.run.gates.closed().map(|(name, ..)| plain::line(name));
        Err(Refused::NoSuchGate {
            account: account.to_owned(),
            closed: closed.collect(),
        })
    }
}
