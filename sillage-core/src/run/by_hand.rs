//! Believing what a person asked of a step (W18): to do it again, to go on without it; and what it took from an earlier
//! run (R13).
//!
//! A step that is done again makes outdated what follows it and ran on what it did before, or did not run because of
//! it. What is outdated waits, in [`Run::outdated`], until nothing of it is under way that cannot be called off, such
//! as a merge; then it is pending again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::definition::RunDefinition;
use super::event::{Event, Recorded, StepEnd, TakenWork};
use super::outbox::EffectKey;
use super::step::{Next, Phase};
use super::{Run, Stage};
use crate::id::{RunId, Seq, StepIndex};
use crate::planted::{Bug, planted};
use crate::report::Report;
use crate::time::Timestamp;

/// What a step takes from an earlier run (R13).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The step.
    pub step: StepIndex,
    /// How it ended there: complete or partial.
    pub end: StepEnd,
    /// Its report.
    pub report: Arc<Report>,
    /// Its commits; none: it made none.
    pub work: Option<TakenWork>,
}

impl Phase {
    /// Whether nothing is under way for a step in this phase that has to be let finish before the step begins anew.
    pub(super) const fn can_be_called_off(&self) -> bool {
        match self {
            Phase::Pending
            | Phase::Ready
            | Phase::Opening
            | Phase::Finding
            | Phase::Prompted
            | Phase::Verifying
            | Phase::Waiting(_)
            | Phase::Held(_)
            | Phase::Asking(_)
            | Phase::MergeQueued(_)
            | Phase::Ended(_) => true,
            Phase::Leasing
            | Phase::Restarting
            | Phase::Gathering
            | Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::Merging(_) => false,
        }
    }
}

impl Run {
    /// The facts that launch a run in which these steps are taken from the run `from` (R13): the first turn of its log.
    #[must_use]
    pub fn relaunch(
        now: Timestamp,
        definition: RunDefinition,
        from: &RunId,
        taken: Vec<Taken>,
    ) -> Vec<Recorded> {
        let merges = definition.repository.is_some();
        let mut events = vec![Event::RunCreated(Box::new(definition))];
        for Taken {
            step,
            end,
            report,
            work,
        } in taken
        {
            // Others end once their work is merged.
            let over = !(merges && work.as_ref().is_some_and(TakenWork::is_to_be_merged));
            events.push(Event::StepTaken {
                step,
                from: from.clone(),
                end: end.clone(),
                report,
                work,
            });
            if over {
                events.push(Event::StepEnded { step, end });
            }
        }
        let facts = events.into_iter().zip(1..);
        facts
            .map(|(event, seq)| Recorded {
                seq: Seq(seq),
                at: now,
                event,
            })
            .collect()
    }

    /// A step is over and to be done again, or waits and is to try at once.
    pub(super) fn retry_asked(&mut self, step: StepIndex, at: Timestamp) {
        self.take_up(step, at);
        if matches!(self.steps[step.position()].phase, Phase::Waiting(_)) {
            self.step_mut(step).tries = 0;
            return;
        }
        if let Some(of) = self.group_to_gather_anew(step) {
            self.spending.forget_failure(of);
            self.gather_anew(of, step, at);
        }
        self.outdate_what_follows(step);
        self.begin_anew(step, None, at);
        self.enter_as_it_may(step, at);
    }

    /// A coordinator that was over waits for its sub-agents again because of one of them, and reports anew; its plan and
    /// what its other sub-agents did stay. What follows it ran on a report that counts no more.
    pub(super) fn gather_anew(&mut self, of: StepIndex, because: StepIndex, at: Timestamp) {
        self.outdate_what_follows(of);
        let group = self.steps[of.position()].group.take();
        self.begin_anew(of, Some(because), at);
        self.step_mut(of).group = group.map(|mut group| {
            group.told = false;
            group
        });
        self.enter(of, Phase::Gathering, at);
    }

    /// What did not run because of the step may run.
    pub(super) fn step_skipped(&mut self, step: StepIndex, at: Timestamp) {
        self.take_up(step, at);
        self.outdate_what_follows(step);
        let state = &self.steps[step.position()];
        match &state.phase {
            // Its end follows at once.
            Phase::Ended(_) => {
                self.leave(step, at);
                self.drop_session(step);
                let state = self.step_mut(step);
                state.report = None;
                state.ended = None;
                state.next = Next::Anew;
            }
            // What is under way there is safer to finish.
            Phase::Leasing | Phase::Restarting => self.step_mut(step).hand_mut().skipping = true,
            Phase::Pending
            | Phase::Ready
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
            | Phase::Merging(_) => {
                if state.worktree().is_some() && state.session.is_some() {
                    self.leave(step, at);
                    self.forget_permissions(step);
                    self.close_session(step);
                    self.drop_session(step);
                    self.step_mut(step).report = None;
                    self.enter(step, Phase::Closing(StepEnd::Skipped), at);
                }
            }
        }
    }

    /// What the step did, or that it did not run, counts no more.
    pub(super) fn step_outdated(&mut self, step: StepIndex, by: StepIndex, at: Timestamp) {
        self.outdated.remove(&step);
        // It may have ended since it was outdated, and what follows have begun to go by that.
        if self.steps[step.position()].lets_follow() {
            self.outdate_what_follows(step);
        }
        // What was only held back gets from upstream what it would have got: there is nothing new to tell it of.
        let held_back = matches!(
            self.steps[step.position()].phase,
            Phase::Ended(StepEnd::FailedFast(_))
        );
        self.begin_anew(step, Some(by).filter(|_| !held_back), at);
        self.enter_as_it_may(step, at);
    }

    /// The step is what it was in an earlier run. Its commits wait for their turn to be merged.
    pub(super) fn step_taken(
        &mut self,
        step: StepIndex,
        from: &RunId,
        end: &StepEnd,
        report: &Arc<Report>,
        work: Option<&TakenWork>,
        at: Timestamp,
    ) -> Result<(), String> {
        if !matches!(self.steps[step.position()].phase, Phase::Pending | Phase::Ready) {
            return Err(format!("step {} had begun", step.0));
        }
        self.leave(step, at);
        let state = self.step_mut(step);
        state.report = Some(Arc::clone(report));
        state.hand_mut().taken = Some(from.clone());
        let Some(taken) = work else { return Ok(()) };
        let work = state.work_mut();
        work.planned = Some((taken.branch.clone(), String::new()));
        work.committed = Some(taken.committed.clone());
        work.conflicts.clone_from(&taken.conflicts);
        work.parts.clone_from(&taken.parts);
        if taken.is_to_be_merged() && self.definition.repository.is_some() {
            self.merge_queue.push_back(step);
            self.enter(step, Phase::MergeQueued(end.clone()), at);
        }
        Ok(())
    }

    /// A run that is over goes on, as by a resume. That the step failed keeps nothing from beginning any more.
    fn take_up(&mut self, step: StepIndex, at: Timestamp) {
        if matches!(self.stage, Stage::Ended(_)) {
            self.stage = Stage::Running;
            self.resume_spending(at);
            self.engine_started(at);
        }
        self.spending.forget_failure(step);
        self.stop_check();
        self.check_again(true);
    }

    /// What the step did before counts no more for what follows it.
    pub(super) fn outdate_what_follows(&mut self, step: StepIndex) {
        for follower in self.outdated_by(step) {
            if planted(Bug::NothingOutdated) {
                return;
            }
            self.outdated.entry(follower).or_insert(step);
        }
    }

    /// Of what follows the step, what ran on what it did, or did not run because of it or of what follows it. What a
    /// person skipped stays so. And, wherever it stands, what was not begun because the step failed first, with what
    /// follows that: the failure is seen to.
    pub(super) fn outdated_by(&self, step: StepIndex) -> Vec<StepIndex> {
        let mut outdated = Vec::new();
        let mut met: HashSet<u32> = HashSet::from([step.0]);
        let mut left: Vec<u32> = self.graph.children(step.0).to_vec();
        left.extend(self.held_back_by(step).map(|held| held.0));
        // What keeps the step itself from running may have done so by way of it only.
        let own = match self.steps[step.position()].end() {
            Some(StepEnd::NotRun(because)) => Some(because.0),
            Some(
                StepEnd::Complete
                | StepEnd::Partial
                | StepEnd::Blocked
                | StepEnd::Failed(_)
                | StepEnd::Cancelled
                | StepEnd::Skipped
                | StepEnd::OverBudget
                | StepEnd::FailedFast(_),
            )
            | None => None,
        };
        // What did not run because of a step that was not met yet, by that step.
        let mut apart: HashMap<u32, Vec<u32>> = HashMap::new();
        while let Some(node) = left.pop() {
            if met.contains(&node) {
                continue;
            }
            match &self.steps[node as usize].phase {
                Phase::Ended(StepEnd::Skipped) => continue,
                Phase::Ended(StepEnd::NotRun(because))
                    if !met.contains(&because.0) && own != Some(because.0) =>
                {
                    apart.entry(because.0).or_default().push(node);
                    continue;
                }
                Phase::Pending => {}
                Phase::Ready
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
                | Phase::Merging(_)
                | Phase::Ended(_) => outdated.push(StepIndex(node)),
            }
            met.insert(node);
            left.extend_from_slice(self.graph.children(node));
            left.extend(apart.remove(&node).unwrap_or_default());
        }
        outdated
    }

    /// What was not begun because the step failed first. A sub-agent whose coordinator went on without it is not among
    /// them: a resume has that report made anew.
    fn held_back_by(&self, first: StepIndex) -> impl Iterator<Item = StepIndex> {
        let waited_for = |held: &StepIndex| {
            self.coordinator_of(*held).is_none_or(|of| {
                self.steps[of.position()].phase == Phase::Gathering && !self.is_of_an_earlier_plan(*held)
            })
        };
        let all = (0..).map(StepIndex).zip(&self.steps);
        all.filter(move |(_, state)| state.end() == Some(&StepEnd::FailedFast(first)))
            .map(|(held, _)| held)
            .filter(waited_for)
    }

    /// Leaves the step as if it had not begun, but for what it spent, and for what of its work was merged.
    pub(super) fn begin_anew(&mut self, step: StepIndex, because: Option<StepIndex>, at: Timestamp) {
        let passed = self.steps[step.position()].lets_follow();
        let over = matches!(self.steps[step.position()].phase, Phase::Ended(_));
        self.leave(step, at);
        self.forget_permissions(step);
        // What is over closed its session then.
        if !over {
            self.close_session(step);
        }
        self.drop_session(step);
        self.merge_queue.retain(|queued| *queued != step);
        let state = self.step_mut(step);
        state.report = None;
        state.ended = None;
        state.tries = 0;
        state.corrections = 0;
        // A coordinator makes another plan; the steps of the one before stay as they ended.
        state.group = None;
        let worked = state.worked;
        let mut merged = None;
        // A worktree is made where the run's work is by then; what was wished for before may be elsewhere.
        let begun = state.work.is_some() || state.started.is_some();
        state.next = if begun { Next::Anew } else { Next::Begin };
        if let Some(work) = state.work.as_deref_mut() {
            work.conflict_returns = 0;
            if work.merged {
                merged = work.committed.as_ref().map(|committed| committed.tip.clone());
            }
        }
        if begun {
            let hand = state.hand_mut();
            hand.again = hand.again.saturating_add(1);
            hand.because = because;
            hand.worked_before = worked;
            hand.merged = merged.or(hand.merged.take());
            hand.taken = None;
            hand.skipping = false;
        }
        if passed {
            for index in 0..self.graph.children(step.0).len() {
                let child = StepIndex(self.graph.children(step.0)[index]);
                if self.steps[child.position()].phase == Phase::Pending {
                    self.count_unmet(child);
                }
            }
        }
    }

    fn count_unmet(&mut self, step: StepIndex) {
        let parents = self.graph.parents(step.0).iter();
        let unmet = parents
            .filter(|parent| !self.steps[**parent as usize].lets_follow())
            .count();
        self.step_mut(step).unmet = u32::try_from(unmet).unwrap_or(u32::MAX);
    }

    /// From `Pending`: the step waits for what is upstream, or for a place.
    fn enter_as_it_may(&mut self, step: StepIndex, at: Timestamp) {
        self.count_unmet(step);
        if self.steps[step.position()].unmet == 0 {
            self.enter(step, Phase::Ready, at);
        }
    }
}

impl Run {
    /// Whether what the step did before is still being closed or removed: it begins anew after that.
    pub(super) fn is_being_cleared(&self, step: StepIndex) -> bool {
        self.steps[step.position()].hand.is_some()
            && (self.closing.values().any(|of| *of == step) || self.outbox.contains(&EffectKey::Remove(step)))
    }
}
