//! What follows from a person's command on a step: a retry, a skip; and what either makes outdated (W18).

use std::collections::{BTreeSet, HashMap};

use super::Decision;
use crate::id::StepIndex;
use crate::run::Stage;
use crate::run::budget::BudgetChange;
use crate::run::event::{Event, StepEnd};
use crate::run::input::Refused;
use crate::run::step::{Phase, Step};

impl Decision<'_> {
    /// Does a step again; with `redo`, also one that succeeded.
    pub(super) fn retry(&mut self, step: StepIndex, redo: bool) -> Result<(), Refused> {
        let state = match self.run.group_to_gather_anew(step) {
            Some(_) if !self.is_stopping() => &self.run.steps[step.position()],
            Some(_) | None => self.asked_of(step)?,
        };
        let agent = || self.run.step_name(step).to_owned();
        match &state.phase {
            Phase::Waiting(_) if self.run.stage == Stage::Running => {
                self.say(Event::RetryAsked { step });
                self.say(Event::WaitEnded { step });
                return Ok(());
            }
            Phase::Ended(_) if state.succeeded() && !redo => {
                return Err(Refused::Succeeded {
                    agent: agent(),
                    state: state.word(),
                    skip: false,
                });
            }
            Phase::Ended(_) => {}
            Phase::Pending
            | Phase::Ready
            | Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Waiting(_)
            | Phase::Held(_)
            | Phase::Asking(_)
            | Phase::Gathering => {
                return Err(Refused::NotOver {
                    agent: agent(),
                    state: state.word(),
                });
            }
            Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_) => return Err(Refused::Ending { agent: agent() }),
        }
        if let Some(upstream) = self.in_the_way_of(step) {
            return Err(Refused::Upstream {
                agent: agent(),
                upstream: self.run.step_name(upstream).to_owned(),
                state: self.run.steps[upstream.position()].word(),
            });
        }
        self.go_on_within_ceilings()?;
        self.say(Event::RetryAsked { step });
        self.end_what_a_stop_left(step);
        Ok(())
    }

    /// Goes on without a step.
    pub(super) fn skip(&mut self, step: StepIndex) -> Result<(), Refused> {
        let state = self.asked_of(step)?;
        let agent = || self.run.step_name(step).to_owned();
        let at_work_in_a_worktree = state.worktree().is_some() && state.session.is_some();
        let its_end_follows = match &state.phase {
            Phase::Ended(StepEnd::Skipped) => return Err(Refused::Skipped(agent())),
            Phase::Ended(_) if state.succeeded() => {
                return Err(Refused::Succeeded {
                    agent: agent(),
                    state: state.word(),
                    skip: true,
                });
            }
            Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_) => return Err(Refused::Ending { agent: agent() }),
            Phase::Gathering => return Err(Refused::Gathering { agent: agent() }),
            Phase::Leasing | Phase::Restarting => false,
            Phase::Ended(_) => true,
            Phase::Pending
            | Phase::Ready
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Waiting(_)
            | Phase::Held(_)
            | Phase::Asking(_) => !at_work_in_a_worktree,
        };
        self.go_on_within_ceilings()?;
        if !its_end_follows {
            self.cancel_permissions(step);
        }
        self.say(Event::StepSkipped { step });
        if its_end_follows {
            self.end(step, StepEnd::Skipped);
        }
        self.end_what_a_stop_left(step);
        Ok(())
    }

    /// The step that a command names, of a run that can be commanded.
    fn asked_of(&self, step: StepIndex) -> Result<&Step, Refused> {
        if self.is_stopping() {
            return Err(Refused::Stopping);
        }
        let state = self.run.step(step).ok_or(Refused::NoSuchStep(step))?;
        let gathers = |of: StepIndex| self.run.steps[of.position()].phase == Phase::Gathering;
        let let_go = |of: &StepIndex| !gathers(*of) || self.run.is_of_an_earlier_plan(step);
        match self.run.coordinator_of(step).filter(let_go) {
            Some(of) => Err(Refused::NotGathered {
                agent: self.run.step_name(step).to_owned(),
                coordinator: self.run.step_name(of).to_owned(),
            }),
            None => Ok(state),
        }
    }

    /// A run that is over and could open no session is not taken up.
    fn go_on_within_ceilings(&mut self) -> Result<(), Refused> {
        match self.run.stage {
            Stage::Ended(_) => self.change_budget_to_go_on(&BudgetChange::default()),
            Stage::Running | Stage::Stopping { .. } => Ok(()),
        }
    }

    /// The step upstream that keeps this one from ever running, be it by way of others that a stop left pending.
    fn in_the_way_of(&self, step: StepIndex) -> Option<StepIndex> {
        let over = matches!(self.run.stage, Stage::Ended(_));
        let mut met: BTreeSet<u32> = BTreeSet::new();
        let mut left: Vec<u32> = self.run.graph.parents(step.0).to_vec();
        while let Some(parent) = left.pop() {
            if !met.insert(parent) {
                continue;
            }
            if let Some(because) = self.keeps_out(StepIndex(parent)) {
                return Some(because);
            }
            if over && self.run.steps[parent as usize].phase == Phase::Pending {
                left.extend_from_slice(self.run.graph.parents(parent));
            }
        }
        None
    }

    /// The step because of which what follows `parent` does not run, if it does not.
    fn keeps_out(&self, parent: StepIndex) -> Option<StepIndex> {
        let state = &self.run.steps[parent.position()];
        match &state.phase {
            Phase::Ended(StepEnd::NotRun(because)) => Some(*because),
            Phase::Ended(_) if !state.lets_follow() => Some(parent),
            Phase::Ended(_)
            | Phase::Pending
            | Phase::Ready
            | Phase::Leasing
            | Phase::Restarting
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Waiting(_)
            | Phase::Held(_)
            | Phase::Asking(_)
            | Phase::Gathering
            | Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_) => None,
        }
    }

    /// Steps whose reasons are outdated begin anew as soon as nothing of theirs has to be let finish; those that
    /// another step upstream keeps from running do not. Whether any does.
    pub(super) fn renew_what_is_outdated(&mut self) -> bool {
        let due: Vec<(StepIndex, StepIndex)> = self
            .run
            .outdated
            .iter()
            .filter(|(step, _)| self.run.steps[step.position()].phase.can_be_called_off())
            .map(|(step, by)| (*step, *by))
            .collect();
        if due.is_empty() {
            return false;
        }
        self.renew(&due);
        true
    }

    /// Whether the step is outdated, and begins anew: what had to be let finish is finished.
    pub(super) fn renew_if_outdated(&mut self, step: StepIndex) -> bool {
        let Some(by) = self.run.outdated.get(&step).copied() else {
            return false;
        };
        self.renew(&[(step, by)]);
        true
    }

    fn renew(&mut self, due: &[(StepIndex, StepIndex)]) {
        for (step, by) in due {
            self.cancel_permissions(*step);
            self.say(Event::StepOutdated { step: *step, by: *by });
        }
        let renewed: BTreeSet<StepIndex> = due.iter().map(|(step, _)| *step).collect();
        self.end_what_cannot_run(None, &renewed);
    }

    /// A run that is over goes on for the step's sake. What a stop had left pending would wait for ever behind what was
    /// cancelled or failed: it does not run. Nor do sub-agents whose coordinator does not wait for them any more.
    fn end_what_a_stop_left(&mut self, step: StepIndex) {
        if !matches!(self.run.stage, Stage::Ended(_)) {
            return;
        }
        let mut renewed: BTreeSet<StepIndex> = self.run.outdated_by(step).into_iter().collect();
        if let Some(of) = self.run.group_to_gather_anew(step) {
            renewed.extend(self.run.outdated_by(of));
            renewed.insert(of);
        }
        self.end_what_cannot_run(Some(step), &renewed);
        for sub in self.run.without_their_coordinator() {
            if !self.ended.contains(&sub) {
                self.end(sub, StepEnd::Cancelled);
            }
        }
    }

    /// Ends what is pending and cannot run because of a step upstream that is over and does not let it. Those `renewed`
    /// are about to begin anew; without `asked` at once, otherwise after that one.
    fn end_what_cannot_run(&mut self, asked: Option<StepIndex>, renewed: &BTreeSet<StepIndex>) {
        let run = self.run;
        let mut kept_out: HashMap<u32, StepIndex> = HashMap::new();
        for &node in run.graph.order() {
            let step = StepIndex(node);
            let begins = |step: StepIndex| {
                asked == Some(step) || renewed.contains(&step) || run.outdated.contains_key(&step)
            };
            if asked == Some(step) || (!begins(step) && run.steps[node as usize].phase != Phase::Pending) {
                continue;
            }
            let parents = run.graph.parents(node).iter().copied();
            let because = parents
                .into_iter()
                .find_map(|parent| match kept_out.get(&parent) {
                    Some(because) => Some(*because),
                    None if begins(StepIndex(parent)) => None,
                    None => self.keeps_out(StepIndex(parent)),
                });
            if let Some(because) = because {
                kept_out.insert(node, because);
                // One that is renewed later is told then: what it is at is let finish before.
                let later = run.outdated.contains_key(&step) && !renewed.contains(&step);
                if !later && (asked.is_none() || !begins(step)) && self.ended.insert(step) {
                    self.say(Event::StepEnded {
                        step,
                        end: StepEnd::NotRun(because),
                    });
                }
            }
        }
    }
}
