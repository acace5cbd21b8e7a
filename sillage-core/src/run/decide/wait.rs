//! Bad news of a session, by class: what waits, for how long, and what fails (R7–R9).

use std::time::Duration;

use super::Decision;
use crate::id::StepIndex;
use crate::planted::{Bug, planted};
use crate::ports::runtime::RuntimeError;
use crate::run::event::{Event, FailureClass, WaitCause};
use crate::run::step::Phase;
use crate::run::wall::{Said, backoff};

/// Shortest wait for a place in a runtime that is full.
const LEAST_FOR_CAPACITY: Duration = Duration::from_secs(1);

impl Decision<'_> {
    /// Bad news of a session, by class. `resend`: the message in flight, if any, was not accepted.
    pub(super) fn setback(&mut self, step: StepIndex, error: &RuntimeError, resend: bool) {
        if self.is_stopping() {
            return self.end(step, crate::run::StepEnd::Cancelled);
        }
        let words = error.to_string();
        let at_opening = self.run.steps[step.position()].phase == Phase::Opening;
        let said = |cause, resets_at| Said {
            cause,
            words: words.clone(),
            resets_at,
            at_opening,
        };
        match error {
            RuntimeError::Temporary { retry_after, .. } => {
                self.wait_for_backoff(step, words, *retry_after, resend);
            }
            RuntimeError::Quota { resets_at, .. } => {
                self.meet_wall(step, said(WaitCause::Quota, *resets_at), resend);
            }
            RuntimeError::SignIn { .. } => self.meet_wall(step, said(WaitCause::SignIn, None), resend),
            RuntimeError::Capacity { retry_after, .. } => {
                self.wait_for_capacity(step, words, *retry_after, resend);
            }
            RuntimeError::Conflict { .. } if planted(Bug::ConflictTriedAgain) => {
                self.wait_for_backoff(step, words, None, resend);
            }
            RuntimeError::Conflict { fields, .. } => {
                self.fail(step, FailureClass::Conflict, naming(words, fields));
            }
            RuntimeError::Lost { .. } => self.fail(step, FailureClass::AgentLost, words),
            RuntimeError::Permanent { .. } | RuntimeError::Unstoppable { .. } => {
                self.fail(step, FailureClass::Permanent, words);
            }
        }
    }

    /// The step waits longer with each try, unless it tried often enough (R7).
    pub(super) fn wait_for_backoff(
        &mut self,
        step: StepIndex,
        words: String,
        retry_after: Option<Duration>,
        resend: bool,
    ) {
        let tries = self.run.steps[step.position()].tries;
        let policy = &self.run.definition.policy;
        let most = policy.attempts;
        if most.is_some_and(|most| u32::from(tries) + 1 >= most.get()) && !planted(Bug::AttemptsIgnored) {
            return self.fail(step, FailureClass::Attempts, words);
        }
        let wait = backoff(policy.backoff_first, policy.backoff_most, tries);
        let retry_after = retry_after.filter(|_| !planted(Bug::RetryAfterIgnored));
        let wait = self.apart(step, wait).max(retry_after.unwrap_or_default());
        self.wait_until(step, WaitCause::Backoff, self.now.plus(wait), words, resend);
    }

    /// A runtime that is full is asked again after a while; that is nobody's failed try.
    fn wait_for_capacity(
        &mut self,
        step: StepIndex,
        words: String,
        retry_after: Option<Duration>,
        resend: bool,
    ) {
        let usual = self.apart(step, self.run.definition.policy.backoff_first);
        let wait = retry_after.unwrap_or(usual).max(LEAST_FOR_CAPACITY);
        self.wait_until(step, WaitCause::Capacity, self.now.plus(wait), words, resend);
    }

    fn wait_until(
        &mut self,
        step: StepIndex,
        cause: WaitCause,
        until: crate::time::Timestamp,
        words: String,
        resend: bool,
    ) {
        self.say(Event::WaitStarted {
            step,
            cause,
            until,
            words,
            resend,
        });
    }

    /// Of several that wait in one account, each after the first waits a little less, so that they do not come back as
    /// one (R7).
    fn apart(&self, step: StepIndex, wait: Duration) -> Duration {
        if !self.run.gates.backs_off(step) {
            return wait;
        }
        let tries = self.run.steps[step.position()].tries;
        shortened(wait, seed(self.run.id().as_str(), step, tries))
    }

    /// The step waits for its account's gate, which others closed.
    pub(super) fn wait_for_its_gate(&mut self, step: StepIndex) {
        let Some(gate) = self.run.gates.gate(step) else {
            return;
        };
        let (cause, until, words) = (gate.wall.cause, gate.wall.until, gate.wall.words.clone());
        self.wait_until(step, cause, until, words, true);
    }

    /// The step met the wall that its account's gate stands for: the gate is closed, once, and the step waits for it.
    fn meet_wall(&mut self, step: StepIndex, said: Said, resend: bool) {
        let (gates, now) = (&self.run.gates, self.now);
        let policy = &self.run.definition.policy;
        let cause = said.cause;
        let words = said.words.clone();
        let account = gates.account(step).to_owned();
        let closings = gates.closings(step);
        let until = match gates.gate(step) {
            None => {
                let wall = crate::run::wall::wall(said, None, closings, now, policy);
                let until = wall.until;
                self.say(Event::GateClosed { account, step, wall });
                until
            }
            Some(gate) => {
                let probe = gate.probe == Some(step);
                let names_a_date = said.resets_at.is_some_and(|at| at > now);
                let same = gate.wall.cause == cause;
                // The one that tries knows best; others only where they know a date.
                let wall =
                    crate::run::wall::wall(said, Some(&gate.wall), closings.saturating_sub(1), now, policy);
                let differs = wall.resets_at != gate.wall.resets_at;
                if probe || (same && names_a_date && differs) {
                    let until = wall.until;
                    self.say(Event::GateDated { account, step, wall });
                    until
                } else {
                    gate.wall.until
                }
            }
        };
        self.wait_until(step, cause, until, words, resend);
    }
}

/// The words of a conflict, and the fields that differ where the words do not name them (R6).
fn naming(words: String, fields: &[String]) -> String {
    let untold = fields.iter().filter(|field| !words.contains(field.as_str()));
    let untold: Vec<&str> = untold.map(String::as_str).collect();
    if untold.is_empty() {
        return words;
    }
    format!("{words}; what differs: {}", untold.join(", "))
}

/// At most a tenth less, by the seed.
fn shortened(wait: Duration, seed: u64) -> Duration {
    // A share of 0 to 100 thousandths.
    let share = u32::try_from(seed % 101).unwrap_or_default();
    wait.saturating_sub(wait / 1000 * share)
}

/// FNV-1a over the run's name, the step and its try: the same after a restart.
fn seed(run: &str, step: StepIndex, tries: u16) -> u64 {
    let bytes = run.bytes().chain(step.0.to_le_bytes()).chain(tries.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash >> 16
}

#[cfg(test)]
mod tests;
