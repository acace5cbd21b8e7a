//! Gates of provider accounts (R8): who is held while a quota is used up or a sign-in has expired, and until when.
//!
//! # The rules
//!
//! 1. A model belongs to the account that the definition names for it; a model without one is its own account.
//! 2. The first agent that meets an exhausted quota or an expired sign-in closes its account's gate: one fact, one
//!    notice. Others that meet it meanwhile begin their own wait and say nothing more.
//! 3. While a gate is closed, no agent of the account opens a session or is sent a message, but the one that tries. They
//!    are *held*: they hold no place, and what is due to them is sent when the gate opens, under the identifiers that it
//!    was given. Agents at work go on until they answer or meet the wall themselves; a permission answer reaches an agent
//!    that is in the middle of a message. Other accounts do not notice.
//! 4. A date that the provider names, ahead and at most [`DOUBTFUL_AFTER`] away, opens the gate for all.
//! 5. Without such a date a single agent tries: every `gate_retry` where there is no date, every [`DOUBTFUL_RETRY`] where
//!    there is one further away, which is kept, shown as doubtful, and tried at the latest when it comes. A date that is
//!    not ahead is no date. The agent that tries is the held one that would start first.
//! 6. The one that tries opens the gate by the first sign that its provider serves it: an answer, a tool, a permission
//!    request, tokens spent; an opened session only where opening was what failed. Text is no sign, for limits are told
//!    as text too. When it meets the wall again, the gate is dated anew. When it ends otherwise, the next one tries.
//! 7. A gate opens as well when the runtime says that the account is available, believed once a backoff has passed since
//!    it closed, and when a person says so.
//! 8. A gate that closes again without any answer in between stays closed for a backoff at least, which doubles as R7
//!    says: a date of a moment ago, told again and again, does not make a storm.
//! 9. A run that stops keeps its gates. Resuming it makes the next try of those without a date due at once.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::definition::RunDefinition;
use super::step::{Next, Phase};
pub use super::wall::{DOUBTFUL_AFTER, DOUBTFUL_RETRY, Wall};
use super::{Run, Stage};
use crate::id::StepIndex;
use crate::planted::{Bug, planted};
use crate::time::Timestamp;

/// A gate that is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Since when.
    pub since: Timestamp,
    /// What closed it, as last met.
    pub wall: Wall,
    /// The step that tries the account now.
    pub probe: Option<StepIndex>,
}

/// Why a gate opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenedBy {
    /// Its date came.
    Date,
    /// The agent that tried was served.
    Probe,
    /// The runtime said that the account is available.
    Runtime,
    /// A person said so.
    Person,
}

/// The accounts of a run, and their gates.
#[derive(Debug, Clone)]
pub(super) struct Gates {
    index: HashMap<String, u32>,
    accounts: Vec<Account>,
    /// Each step's account, by position.
    of_step: Vec<u32>,
    closed: BTreeSet<u32>,
}

#[derive(Debug, Clone)]
struct Account {
    name: String,
    gate: Option<Gate>,
    /// Its held steps, in the order in which they would start.
    held: BTreeSet<(Reverse<u32>, u32)>,
    /// Its steps that wait for a temporary error to pass.
    backing_off: u32,
    /// Closings since it last answered.
    closings: u16,
}

impl Gates {
    pub(super) fn new(definition: &RunDefinition) -> Self {
        let mut gates = Self {
            index: HashMap::new(),
            accounts: Vec::new(),
            of_step: Vec::with_capacity(definition.task.agents.len()),
            closed: BTreeSet::new(),
        };
        for agent in &definition.task.agents {
            gates.add(definition, &agent.model);
        }
        gates
    }

    /// Takes up the next step, which uses this model.
    pub(super) fn add(&mut self, definition: &RunDefinition, model: &str) {
        let name = definition.account(model);
        let account = match self.index.get(name) {
            Some(known) => *known,
            None => {
                let new = u32::try_from(self.accounts.len()).unwrap_or(u32::MAX);
                self.index.insert(name.to_owned(), new);
                self.accounts.push(Account {
                    name: name.to_owned(),
                    gate: None,
                    held: BTreeSet::new(),
                    backing_off: 0,
                    closings: 0,
                });
                new
            }
        };
        self.of_step.push(account);
    }

    fn of(&self, step: StepIndex) -> &Account {
        &self.accounts[self.of_step[step.position()] as usize]
    }

    fn of_mut(&mut self, step: StepIndex) -> &mut Account {
        &mut self.accounts[self.of_step[step.position()] as usize]
    }

    /// The name of the step's account.
    pub(super) fn account(&self, step: StepIndex) -> &str {
        &self.of(step).name
    }

    /// The gate of the step's account, while it is closed.
    pub(super) fn gate(&self, step: StepIndex) -> Option<&Gate> {
        self.of(step).gate.as_ref()
    }

    pub(super) fn closings(&self, step: StepIndex) -> u16 {
        self.of(step).closings
    }

    /// Whether the step is the one that tries its account.
    pub(super) fn is_probe(&self, step: StepIndex) -> bool {
        self.gate(step).is_some_and(|gate| gate.probe == Some(step))
    }

    /// Whether the step's account is closed to it.
    pub(super) fn keeps_out(&self, step: StepIndex) -> bool {
        !planted(Bug::GateIgnored) && self.gate(step).is_some_and(|gate| gate.probe != Some(step))
    }

    /// Closed gates with their account's name and how many steps they hold, in a fixed order.
    pub(super) fn closed(&self) -> impl Iterator<Item = (&str, &Gate, usize)> {
        self.closed.iter().filter_map(|index| {
            let account = &self.accounts[*index as usize];
            Some((account.name.as_str(), account.gate.as_ref()?, account.held.len()))
        })
    }

    pub(super) fn named(&self, account: &str) -> Option<(&Gate, u16)> {
        let account = &self.accounts[*self.index.get(account)? as usize];
        Some((account.gate.as_ref()?, account.closings))
    }

    /// The held step of the account that would start first.
    pub(super) fn first_held(&self, account: &str) -> Option<StepIndex> {
        let account = &self.accounts[*self.index.get(account)? as usize];
        account.held.first().map(|(_, position)| StepIndex(*position))
    }

    /// The held steps of all accounts, in a fixed order.
    pub(super) fn all_held(&self) -> impl Iterator<Item = StepIndex> + '_ {
        let held = self.accounts.iter().flat_map(|account| &account.held);
        held.map(|(_, position)| StepIndex(*position))
    }

    pub(super) fn hold(&mut self, step: StepIndex, key: (Reverse<u32>, u32)) {
        self.of_mut(step).held.insert(key);
    }

    pub(super) fn let_go(&mut self, step: StepIndex, key: (Reverse<u32>, u32)) {
        self.of_mut(step).held.remove(&key);
    }

    pub(super) fn begins_backoff(&mut self, step: StepIndex) {
        self.of_mut(step).backing_off += 1;
    }

    pub(super) fn ends_backoff(&mut self, step: StepIndex) {
        let account = self.of_mut(step);
        account.backing_off = account.backing_off.saturating_sub(1);
    }

    /// Whether another step of the account waits for a temporary error to pass.
    pub(super) fn backs_off(&self, step: StepIndex) -> bool {
        self.of(step).backing_off > 0
    }

    /// The account served somebody.
    pub(super) fn answered(&mut self, step: StepIndex) {
        self.of_mut(step).closings = 0;
    }

    /// The step tries no more, if it did.
    pub(super) fn no_probe(&mut self, step: StepIndex) {
        if let Some(gate) = self.of_mut(step).gate.as_mut()
            && gate.probe == Some(step)
        {
            gate.probe = None;
        }
    }

    fn named_mut(&mut self, account: &str) -> Result<(u32, &mut Account), String> {
        let index = self.index.get(account).copied();
        let index = index.ok_or_else(|| format!("no step uses the account {account}"))?;
        Ok((index, &mut self.accounts[index as usize]))
    }

    /// The clock was set: what was counted from it goes along, and dates of the world outside stay.
    pub(super) fn shift(&mut self, by_ms: i64, now: Timestamp) {
        for index in &self.closed {
            let Some(gate) = self.accounts[*index as usize].gate.as_mut() else {
                continue;
            };
            gate.since = gate.since.shifted(by_ms);
            let wall = &mut gate.wall;
            let far = wall
                .resets_at
                .is_some_and(|at| !wall.single && at.since(now) > DOUBTFUL_AFTER);
            if wall.single {
                wall.until = wall.until.shifted(by_ms);
            } else if far {
                // By this clock its date is not to be trusted; by a better one it will be met in good time.
                wall.single = true;
                wall.until = now.plus(DOUBTFUL_RETRY);
            }
        }
    }
}

impl RunDefinition {
    /// The provider account of a model: the one that was named for it, else the model itself.
    #[must_use]
    pub fn account<'a>(&'a self, model: &'a str) -> &'a str {
        self.accounts.get(model).map_or(model, String::as_str)
    }
}

impl Phase {
    /// Whether a step that stands so may be the one that tries its account.
    pub(super) const fn may_try_its_account(&self) -> bool {
        match self {
            Phase::Ready
            | Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Waiting(_)
            | Phase::Asking(_) => true,
            Phase::Pending
            | Phase::Held(_)
            | Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_)
            | Phase::Gathering
            | Phase::Ended(_) => false,
        }
    }
}

/// Believing what became of gates.
impl Run {
    /// The gates that are closed, each with its account.
    pub fn closed_gates(&self) -> impl Iterator<Item = (&str, &Gate)> {
        self.gates.closed().map(|(account, gate, _)| (account, gate))
    }

    /// The gate that holds the step, and since when it does.
    #[must_use]
    pub fn held_by(&self, step: StepIndex) -> Option<(&str, &Gate, Timestamp)> {
        let Phase::Held(since) = self.step(step)?.phase else {
            return None;
        };
        Some((self.gates.account(step), self.gates.gate(step)?, since))
    }

    /// The steps of an account that are held.
    pub(super) fn held(&self, account: &str) -> usize {
        let found = self.gates.closed().find(|(name, ..)| *name == account);
        found.map_or(0, |(_, _, held)| held)
    }

    /// When a gate is next to be looked at. A gate that holds nobody can wait.
    pub(super) fn gates_deadline(&self) -> Option<Timestamp> {
        let due = self
            .gates
            .closed()
            .filter(|(_, gate, held)| *held > 0 && !self.is_probed(gate));
        due.map(|(_, gate, _)| gate.wall.until).min()
    }

    /// Whether a step tries the account now. One that was taken back to before its start does not.
    pub(super) fn is_probed(&self, gate: &Gate) -> bool {
        gate.probe
            .is_some_and(|step| self.steps[step.position()].phase != Phase::Pending)
    }

    /// Whether what the step is about to do has to wait for its account's gate. What is in the middle of a message is at
    /// work, and a run that stops holds nobody.
    pub(super) fn is_kept_out(&self, step: StepIndex) -> bool {
        self.stage == Stage::Running
            && self.gates.keeps_out(step)
            && self.steps[step.position()].next != Next::Answer
    }

    /// The step goes to work, or is held with this to do.
    pub(super) fn enter_or_hold(&mut self, step: StepIndex, phase: Phase, next: Next, at: Timestamp) {
        if self.stage == Stage::Running && self.gates.keeps_out(step) {
            self.step_mut(step).next = next;
            self.enter(step, Phase::Held(at), at);
        } else {
            self.enter(step, phase, at);
        }
    }

    pub(super) fn gate_closed(&mut self, account: &str, wall: &Wall, at: Timestamp) -> Result<(), String> {
        let (index, state) = self.gates.named_mut(account)?;
        if state.gate.is_some() {
            return Err(format!("the gate of {account} is closed already"));
        }
        state.closings = state.closings.saturating_add(1);
        state.gate = Some(Gate {
            since: at,
            wall: wall.clone(),
            probe: None,
        });
        self.gates.closed.insert(index);
        self.hold_ready(Some(index), at);
        Ok(())
    }

    /// Holds the ready steps of an account, or of all, whose gate is closed.
    pub(super) fn hold_ready(&mut self, account: Option<u32>, at: Timestamp) {
        for position in self.places.all_ready() {
            let step = StepIndex(u32::try_from(position).unwrap_or(u32::MAX));
            let concerned = account.is_none_or(|account| self.gates.of_step[position] == account);
            if concerned && self.is_kept_out(step) {
                self.pass_to(step, Phase::Ready, at);
            }
        }
    }

    pub(super) fn gate_dated(&mut self, account: &str, step: StepIndex, wall: &Wall) -> Result<(), String> {
        let (_, state) = self.gates.named_mut(account)?;
        let gate = state.gate.as_mut();
        let gate = gate.ok_or_else(|| format!("the gate of {account} is open"))?;
        gate.wall = wall.clone();
        if gate.probe == Some(step) {
            gate.probe = None;
        }
        Ok(())
    }

    pub(super) fn gate_probed(
        &mut self,
        account: &str,
        step: StepIndex,
        at: Timestamp,
    ) -> Result<(), String> {
        if self.gates.account(step) != account || !matches!(self.steps[step.position()].phase, Phase::Held(_))
        {
            return Err(format!("step {} is not held by {account}", step.0));
        }
        let (_, state) = self.gates.named_mut(account)?;
        let gate = state.gate.as_mut();
        let gate = gate.ok_or_else(|| format!("the gate of {account} is open"))?;
        gate.probe = Some(step);
        self.pass_to(step, Phase::Ready, at);
        Ok(())
    }

    pub(super) fn gate_opened(&mut self, account: &str, at: Timestamp) -> Result<(), String> {
        let (index, state) = self.gates.named_mut(account)?;
        if state.gate.take().is_none() {
            return Err(format!("the gate of {account} is open already"));
        }
        let held: Vec<u32> = state.held.iter().map(|(_, position)| *position).collect();
        self.gates.closed.remove(&index);
        for step in held {
            self.pass_to(StepIndex(step), Phase::Ready, at);
        }
        Ok(())
    }

    /// The run is over: nobody waits any more.
    pub(super) fn hold_nobody(&mut self, at: Timestamp) {
        for step in self.gates.all_held().collect::<Vec<_>>() {
            self.pass_to(step, Phase::Ready, at);
        }
    }

    /// A person takes the run up again: an account without a date is tried at once, and who is ready is held as before.
    pub(super) fn gates_resumed(&mut self, at: Timestamp) {
        for index in &self.gates.closed {
            let gate = self.gates.accounts[*index as usize].gate.as_mut();
            if let Some(gate) = gate
                && gate.wall.resets_at.is_none()
            {
                gate.wall.until = at;
            }
        }
        self.hold_ready(None, at);
    }
}

#[cfg(test)]
mod tests;
