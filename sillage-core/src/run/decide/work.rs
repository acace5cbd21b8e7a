//! What follows from news of worktrees, files, commits and merges.

use std::path::PathBuf;
use std::sync::Arc;

use super::Decision;
use crate::id::StepIndex;
use crate::planted::{Bug, planted};
use crate::ports::workspace::{Committed, Hold, MergeOutcome, Removal, Restarted, WorkspaceError, Worktree};
use crate::report::{Report, missing_deliverable};
use crate::run::apply::end_of;
use crate::run::compose;
use crate::run::event::{Event, MessagePurpose, StepEnd};
use crate::run::step::{Phase, Step};
use crate::run::stray::StraySeen;

impl Decision<'_> {
    pub(super) fn leased(&mut self, step: StepIndex, result: &Result<Worktree, WorkspaceError>) {
        if !self.in_phase(step, &Phase::Leasing) {
            return;
        }
        match result {
            Ok(worktree) => {
                self.say(Event::WorktreeReady {
                    step,
                    worktree: worktree.clone(),
                });
                self.open_in(step, worktree);
            }
            Err(_) if self.run.steps[step.position()].is_skipping() => self.end(step, StepEnd::Skipped),
            Err(error) => self.fail_in_workspace(step, error),
        }
    }

    pub(super) fn restarted(&mut self, step: StepIndex, result: &Result<Restarted, WorkspaceError>) {
        if !self.in_phase(step, &Phase::Restarting) {
            return;
        }
        match result {
            Ok(Restarted { worktree, rescued }) => {
                let event = Event::WorktreeRestarted {
                    step,
                    worktree: worktree.clone(),
                    rescued: rescued.clone(),
                };
                self.say(event);
                self.go_on_in(step, worktree);
            }
            Err(_) if self.run.steps[step.position()].is_skipping() => self.end(step, StepEnd::Skipped),
            Err(error) => self.fail_in_workspace(step, error),
        }
    }

    /// In the session that there is, if it can work in the worktree; else in a new one.
    fn go_on_in(&mut self, step: StepIndex, worktree: &Worktree) {
        let state = &self.run.steps[step.position()];
        let Some(session) = state.session.as_deref() else {
            return self.open_in(step, worktree);
        };
        if self.is_stopping() {
            self.end(step, StepEnd::Cancelled);
        } else if state
            .worktree()
            .is_some_and(|before| before.path != worktree.path)
        {
            let words = format!("its worktree had to be made anew, at {}", worktree.path.display());
            let session = session.id();
            self.say(Event::SessionLost { step, session, words });
        } else if session.attached {
            let text = compose::synthesis(self.run, step, self.now, Some(&worktree.base));
            self.plan_message(step, MessagePurpose::Synthesis, Some(text));
        } else {
            self.say(Event::StepStarted { step });
        }
    }

    fn open_in(&mut self, step: StepIndex, worktree: &Worktree) {
        if self.run.steps[step.position()].is_skipping() {
            self.end(step, StepEnd::Skipped);
        } else if self.is_stopping() || self.run.is_waited_for_no_more(step) {
            self.end(step, StepEnd::Cancelled);
        } else if self.renew_if_outdated(step) {
            // It begins anew, where its worktree is made by then.
        } else if let Some(end) = self.run.no_new_session() {
            self.end(step, end);
        } else {
            self.plan_session(step, Some(worktree));
        }
    }

    pub(super) fn verified(&mut self, step: StepIndex, result: &Result<Vec<PathBuf>, WorkspaceError>) {
        let Some(state) = self
            .run
            .step(step)
            .filter(|state| state.phase == Phase::Verifying)
        else {
            return;
        };
        let Some(report) = state.report.as_deref().cloned() else {
            return;
        };
        match result {
            Ok(missing) if missing.is_empty() || planted(Bug::MissingTaken) => self.accept(step, report),
            Ok(missing) => {
                let faults = missing
                    .iter()
                    .map(|file| missing_deliverable(file, false))
                    .collect();
                self.refuse(step, faults);
            }
            Err(error) => self.fail_in_workspace(step, error),
        }
    }

    pub(super) fn accept(&mut self, step: StepIndex, report: Report) {
        let outcome = report.outcome;
        self.say(Event::ReportAccepted {
            step,
            report: Arc::new(report),
        });
        if self.run.steps[step.position()].worktree().is_none() {
            self.end(step, end_of(outcome));
        }
    }

    pub(super) fn committed(
        &mut self,
        step: StepIndex,
        result: &Result<Committed, WorkspaceError>,
        seen: &StraySeen,
    ) {
        let Some(Phase::Committing(end)) = self.run.step(step).map(|state| &state.phase) else {
            return;
        };
        let end = end.clone();
        let writes = self.run.attribute(step, seen);
        // Told once: work that is committed again after a conflict shows what was told before.
        if !writes.is_empty()
            && self
                .run
                .step(step)
                .and_then(Step::work)
                .is_none_or(|w| w.stray != writes)
        {
            self.say(Event::StrayWrites { step, writes });
        }
        match (result, &end) {
            (Ok(work), _) => {
                self.say(Event::WorkCommitted {
                    step,
                    work: work.clone(),
                });
                let to_merge = work.commits > 0 && matches!(end, StepEnd::Complete | StepEnd::Partial);
                if !to_merge || planted(Bug::MergeForgotten) {
                    self.end(step, end);
                }
            }
            // The first failure is the one to tell.
            (Err(_), StepEnd::Failed(_) | StepEnd::Skipped) => self.end(step, end),
            (Err(error), _) => self.fail_in_workspace(step, error),
        }
    }

    pub(super) fn merged(&mut self, step: StepIndex, result: &Result<MergeOutcome, WorkspaceError>) {
        let Some(Phase::Merging(end)) = self.run.step(step).map(|state| &state.phase) else {
            return;
        };
        let end = end.clone();
        match result {
            Ok(MergeOutcome::Merged(tip)) => {
                self.say(Event::Merged {
                    step,
                    tip: tip.clone(),
                });
                self.end(step, end);
            }
            Ok(MergeOutcome::Conflict(files)) => self.conflicted(step, files),
            Err(error) => self.fail_in_workspace(step, error),
        }
    }

    pub(super) fn removed(&mut self, step: StepIndex, result: &Result<Removal, WorkspaceError>) {
        if !self.run.outbox.contains(&crate::run::EffectKey::Remove(step)) {
            return;
        }
        match result {
            Ok(Removal::Removed) => self.say(Event::WorktreeRemoved { step }),
            Ok(Removal::Held(holds)) => self.say(Event::WorktreeHeld {
                step,
                holds: holds.clone(),
            }),
            Err(error) => self.say(Event::WorktreeHeld {
                step,
                holds: vec![Hold::Changed(error.to_string())],
            }),
        }
    }
}
