//! What two clocks tell of the time that passed: that the machine slept, that its clock was set (V6).
//!
//! Dates are kept by the wall clock, for they come from the world outside and must hold through a restart. What is
//! counted from a moment of ours must not suffer when that clock is set, and nobody works while the machine sleeps.

use std::time::Duration;

use super::input::Input;
use super::step::Phase;
use super::{Run, Stage};
use crate::id::StepIndex;
use crate::time::Timestamp;

/// Shorter sleeps and smaller steps of the clock are not told: reading the clocks takes time too, and clocks drift.
const WORTH_TELLING: Duration = Duration::from_secs(5);

/// The machine's clocks, read at one moment. The spans count from a moment that does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The time of day.
    pub wall: Timestamp,
    /// Time passed while the machine was awake.
    pub awake: Duration,
    /// Time passed, whether the machine was awake or not.
    pub passed: Duration,
}

/// Compares readings of the clocks, each with the one before.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockWatch {
    last: Option<ClockReading>,
}

impl ClockWatch {
    /// What happened since the last reading: nothing, in most cases.
    pub fn read(&mut self, now: ClockReading) -> Vec<Input> {
        let Some(last) = self.last.replace(now) else {
            return Vec::new();
        };
        let passed = now.passed.saturating_sub(last.passed);
        let slept = passed.saturating_sub(now.awake.saturating_sub(last.awake));
        let by_wall = i128::from(now.wall.0) - i128::from(last.wall.0);
        let jumped = by_wall - i128::try_from(passed.as_millis()).unwrap_or(i128::MAX);
        let mut news = Vec::new();
        if slept >= WORTH_TELLING {
            news.push(Input::MachineSlept { slept });
        }
        if jumped.unsigned_abs() >= WORTH_TELLING.as_millis() {
            let by_ms = jumped.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
            news.push(Input::ClockJumped {
                by_ms: i64::try_from(by_ms).unwrap_or_default(),
            });
        }
        news
    }
}

/// Believing what the clocks told.
impl Run {
    /// Nobody worked while the machine slept. Waits go by dates, which came nearer all the same.
    pub(super) fn machine_slept(&mut self, slept: Duration, at: Timestamp) {
        let ms = i64::try_from(slept.as_millis()).unwrap_or(i64::MAX);
        for position in 0..self.steps.len() {
            let state = &mut self.steps[position];
            if let Some(since) = state.working_since.as_mut() {
                *since = since.shifted(ms).min(at);
                self.shift_timer(position, ms);
            }
        }
    }

    /// What is counted from a moment of ours is counted as if the clock had always stood as it stands now.
    pub(super) fn clock_jumped(&mut self, by_ms: i64, at: Timestamp) {
        for position in 0..self.steps.len() {
            let state = &mut self.steps[position];
            if let Some(since) = state.working_since.as_mut() {
                *since = since.shifted(by_ms);
                self.shift_timer(position, by_ms);
                continue;
            }
            match &mut state.phase {
                Phase::Waiting(wait) => {
                    wait.since = wait.since.shifted(by_ms);
                    if wait.cause.is_ours() {
                        wait.until = wait.until.shifted(by_ms);
                        self.shift_timer(position, by_ms);
                    }
                }
                Phase::Held(since) | Phase::Asking(since) => *since = since.shifted(by_ms),
                Phase::Pending
                | Phase::Ready
                | Phase::Leasing
                | Phase::Restarting
                | Phase::Opening
                | Phase::Finding
                | Phase::Prompted
                | Phase::Verifying
                | Phase::Gathering
                | Phase::Closing(_)
                | Phase::Committing(_)
                | Phase::BeginningMerge(_)
                | Phase::Inspecting(_)
                | Phase::Abandoning(_)
                | Phase::MergeQueued(_)
                | Phase::Merging(_)
                | Phase::Ended(_) => {}
            }
        }
        if let Stage::Stopping { since, .. } = &mut self.stage {
            *since = since.shifted(by_ms);
        }
        self.gates.shift(by_ms, at);
        // Up to the moment by the clock as it stood, and on from the same moment as it stands.
        self.spending.pause(at.shifted(by_ms.saturating_neg()));
        self.spending.go_on(at);
    }

    fn shift_timer(&mut self, position: usize, by_ms: i64) {
        let step = StepIndex(u32::try_from(position).unwrap_or(u32::MAX));
        if let Some(timer) = self.steps[position].timer.as_mut() {
            self.timers.remove(&(*timer, step));
            *timer = timer.shifted(by_ms);
            self.timers.insert((*timer, step));
        }
    }
}

#[cfg(test)]
mod tests;
