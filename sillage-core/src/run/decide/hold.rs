//! What keeps a run from opening new sessions: a ceiling that is reached, or a failure that is to stop the rest.

use super::Decision;
use crate::id::StepIndex;
use crate::run::budget::{Budget, BudgetChange, BudgetMode};
use crate::run::event::{Event, StepEnd};
use crate::run::input::Refused;
use crate::run::step::{Next, Phase};

impl Decision<'_> {
    /// Tells the ceilings that are reached and were not told yet; whether there are any.
    pub(super) fn reach_ceilings(&mut self) -> bool {
        let Some(budget) = self.run.budget().copied() else {
            return false;
        };
        let reached: Vec<_> = self
            .run
            .used_up(budget, self.now)
            .filter(|(ceiling, _)| !self.run.was_reached(*ceiling))
            .collect();
        for (ceiling, used) in &reached {
            self.say(Event::BudgetReached {
                kind: ceiling.kind,
                limit: ceiling.limit,
                used: *used,
                currency: ceiling.currency,
                mode: budget.mode,
            });
        }
        !reached.is_empty()
    }

    /// Ends a step whose turn has come, or that waits for a date, if it would need a session that is not to be opened.
    /// What has a session goes on.
    pub(super) fn hold_back(&mut self, step: StepIndex) -> bool {
        let Some(end) = self.run.no_new_session() else {
            return false;
        };
        let state = &self.run.steps[step.position()];
        match state.next {
            // A coordinator's worktree is put to its sub-agents' work for the session that it has.
            Next::Restart if state.session.is_some() => false,
            Next::Begin | Next::Anew | Next::Restart | Next::Lease | Next::Open => {
                self.end(step, end);
                true
            }
            Next::Find | Next::Send | Next::Continue | Next::Answer | Next::Resolve | Next::Synthesize => {
                false
            }
        }
    }

    /// Nobody is kept waiting for a date after which nothing would be done. Once time is up nobody is kept waiting at
    /// all, for a date or for a person: what waits has no work under way that could be let finish.
    pub(super) fn end_idle_waits(&mut self) {
        if self.run.no_new_session().is_none() {
            return;
        }
        let time_is_up = self.run.ends_waits();
        let waiting: Vec<StepIndex> = self
            .run
            .timers
            .iter()
            .map(|(_, step)| *step)
            .filter(|step| matches!(self.run.steps[step.position()].phase, Phase::Waiting(_)))
            .chain(self.run.gates.all_held())
            .collect();
        for step in waiting {
            if !self.hold_back(step) && time_is_up {
                self.end(step, StepEnd::OverBudget);
            }
        }
        if time_is_up && self.run.asking > 0 {
            let all = (0..).map(StepIndex).zip(&self.run.steps);
            let asking = all.filter(|(_, state)| matches!(state.phase, Phase::Asking(_)));
            for (step, _) in asking.collect::<Vec<_>>() {
                self.end(step, StepEnd::OverBudget);
            }
        }
    }

    pub(super) fn change_budget(&mut self, change: &BudgetChange) {
        let budget = Budget::changed(self.run.budget().copied(), change);
        if budget != self.run.budget().copied() {
            self.say(Event::BudgetChanged { budget });
        }
    }

    /// Changes the ceilings of a run that is over, unless it could do nothing under those either.
    pub(super) fn change_budget_to_go_on(&mut self, change: &BudgetChange) -> Result<(), Refused> {
        let budget = Budget::changed(self.run.budget().copied(), change);
        let enforced = budget.filter(|budget| budget.mode == BudgetMode::Enforce);
        let used_up = enforced.and_then(|budget| self.run.used_up(budget, self.now).next());
        if let Some((ceiling, used)) = used_up {
            return Err(Refused::OverBudget {
                ceiling,
                used: ceiling.used_words(used),
                raised: ceiling.raised(used),
            });
        }
        self.change_budget(change);
        Ok(())
    }
}
