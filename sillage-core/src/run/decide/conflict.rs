//! What follows from a conflict: whether it goes to its agent again, or the step ends `partial` (R17).

use super::Decision;
use crate::id::StepIndex;
use crate::planted::{Bug, planted};
use crate::ports::workspace::{MergeBegun, WorkspaceError};
use crate::run::conflict::CONFLICT_RETURNS;
use crate::run::event::{Event, StepEnd};
use crate::run::step::Phase;

impl Decision<'_> {
    /// The step's work could not be merged.
    pub(super) fn conflicted(&mut self, step: StepIndex, files: &[String]) {
        self.say(Event::MergeConflicted {
            step,
            files: files.to_vec(),
        });
        let state = &self.run.steps[step.position()];
        if state.session.is_some() && self.may_return(step) {
            self.say(Event::ConflictReturned { step });
        } else {
            self.end(step, StepEnd::Partial);
        }
    }

    fn may_return(&self, step: StepIndex) -> bool {
        let work = self.run.steps[step.position()].work();
        work.is_none_or(|work| work.conflict_returns < CONFLICT_RETURNS + u8::from(planted(Bug::ThirdReturn)))
    }

    pub(super) fn merge_begun(&mut self, step: StepIndex, result: &Result<MergeBegun, WorkspaceError>) {
        let Some(Phase::BeginningMerge(_)) = self.run.step(step).map(|state| &state.phase) else {
            return;
        };
        match result {
            Ok(begun) => self.say(Event::MergeBegun {
                step,
                onto: begun.onto.clone(),
                files: begun.files.clone(),
            }),
            Err(error) => self.fail_in_workspace(step, error),
        }
    }

    pub(super) fn inspected(&mut self, step: StepIndex, result: &Result<Vec<String>, WorkspaceError>) {
        let Some(Phase::Inspecting(end)) = self.run.step(step).map(|state| &state.phase) else {
            return;
        };
        let end = match end {
            StepEnd::Blocked => StepEnd::Blocked,
            StepEnd::Complete
            | StepEnd::Partial
            | StepEnd::Failed(_)
            | StepEnd::Cancelled
            | StepEnd::NotRun(_)
            | StepEnd::Skipped
            | StepEnd::OverBudget
            | StepEnd::FailedFast(_) => StepEnd::Partial,
        };
        match result {
            Ok(files) if files.is_empty() => self.say(Event::ConflictResolved { step }),
            Ok(files) if end == StepEnd::Partial && self.may_return(step) => {
                self.say(Event::ConflictLeft {
                    step,
                    files: files.clone(),
                });
            }
            Ok(files) => self.say(Event::ConflictGivenUp {
                step,
                files: files.clone(),
                end,
            }),
            Err(error) => self.fail_in_workspace(step, error),
        }
    }

    pub(super) fn merge_abandoned(
        &mut self,
        step: StepIndex,
        result: &Result<Option<String>, WorkspaceError>,
    ) {
        let Some(Phase::Abandoning(end)) = self.run.step(step).map(|state| &state.phase) else {
            return;
        };
        let end = end.clone();
        match (result, &end) {
            (Ok(rescued), _) => {
                self.say(Event::MergeAbandoned {
                    step,
                    rescued: rescued.clone(),
                });
                self.end(step, end);
            }
            // The first failure is the one to tell.
            (Err(_), StepEnd::Failed(_) | StepEnd::Skipped) => self.end(step, end),
            (Err(error), _) => self.fail_in_workspace(step, error),
        }
    }
}
