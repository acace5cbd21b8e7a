//! How steps and the run end: what follows a step, what a stop leaves.

use super::Decision;
use crate::id::StepIndex;
use crate::planted::{Bug, planted};
use crate::run::event::{Event, RunEnd, StepEnd};
use crate::run::step::Phase;

impl Decision<'_> {
    /// The step is over. Unless it lets them run, what follows it is over too (W18).
    pub(super) fn end(&mut self, step: StepIndex, end: StepEnd) {
        let lets_follow = match &end {
            StepEnd::Complete | StepEnd::Partial => !self.is_held_up(step),
            StepEnd::Blocked
            | StepEnd::Failed(_)
            | StepEnd::NotRun(_)
            | StepEnd::OverBudget
            | StepEnd::FailedFast(_) => false,
            // A stop leaves what follows as it is, to be resumed.
            StepEnd::Cancelled | StepEnd::Skipped => true,
        };
        self.cancel_permissions(step);
        let below = match &end {
            StepEnd::OverBudget | StepEnd::FailedFast(_) => end.clone(),
            StepEnd::Complete
            | StepEnd::Partial
            | StepEnd::Blocked
            | StepEnd::Failed(_)
            | StepEnd::Cancelled
            | StepEnd::Skipped
            | StepEnd::NotRun(_) => StepEnd::NotRun(step),
        };
        self.ended.insert(step);
        self.say(Event::StepEnded { step, end });
        if !lets_follow {
            self.end_descendants(step, &below);
        }
    }

    /// Whether the step's report, accepted before or just now, names blockers.
    fn is_held_up(&self, step: StepIndex) -> bool {
        let just_now = self.events.iter().rev().find_map(|event| {
            let Event::ReportAccepted { step: of, report } = event else {
                return None;
            };
            (*of == step).then_some(report.as_ref())
        });
        just_now
            .or(self.run.steps[step.position()].report())
            .is_some_and(|r| !r.blockers.is_empty())
    }

    /// Several steps may end by one decision, and what follows more than one of them ends once.
    fn end_descendants(&mut self, because: StepIndex, end: &StepEnd) {
        let mut left: Vec<u32> = self.run.graph.children(because.0).to_vec();
        while let Some(child) = left.pop() {
            let pending = self.run.steps[child as usize].phase == Phase::Pending;
            if !pending || !(self.ended.insert(StepIndex(child)) || planted(Bug::EndsTwice)) {
                continue;
            }
            self.say(Event::StepEnded {
                step: StepIndex(child),
                end: end.clone(),
            });
            left.extend_from_slice(self.run.graph.children(child));
        }
    }

    pub(super) fn end_if_over(&mut self) {
        let run = self.run;
        let ended = run.ended as usize + usize::from(planted(Bug::EndsEarly));
        let over = ended >= run.steps.len() && run.closing.is_empty() && run.removing == 0;
        if over && self.events.is_empty() && !self.check_first() {
            self.say(Event::RunEnded { end: run.outcome() });
        }
    }

    /// Ends what a stop ends now: what is not at work at once, what is at work only when it is forced.
    pub(super) fn stop_what_can(&mut self, forced: bool) {
        let run = self.run;
        let mut at_work = false;
        let mut live: Vec<StepIndex> = run.live.values().copied().collect();
        live.sort_unstable();
        for step in live {
            let phase = &run.steps[step.position()].phase;
            let answering = phase.holds_place() || matches!(phase, Phase::Asking(_));
            at_work |= answering;
            // What answers nothing yet has nothing to end in peace.
            let idle = matches!(
                phase,
                Phase::Waiting(_)
                    | Phase::Held(_)
                    | Phase::Ready
                    | Phase::Opening
                    | Phase::Finding
                    | Phase::Gathering
            );
            if idle || (forced && answering) {
                self.end(step, StepEnd::Cancelled);
            }
        }
        // Worktrees being made have no session yet.
        let leasing = run.outbox.iter().any(|key| {
            matches!(
                key,
                crate::run::EffectKey::Lease(_) | crate::run::EffectKey::Restart(_)
            )
        });
        let checking = run.check.stage == crate::run::check::CheckStage::Clearing;
        let busy = at_work || (!forced && (leasing || checking || run.ending_now() > 0));
        if !busy && run.closing.is_empty() && self.events.is_empty() {
            self.say(Event::RunEnded { end: RunEnd::Stopped });
        }
    }
}
