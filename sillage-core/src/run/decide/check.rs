//! What follows from news of the task's check (W10b).

use super::Decision;
use crate::ports::workspace::WorkspaceError;
use crate::run::EffectKey;
use crate::run::check::{CheckResult, CheckStage};
use crate::run::event::Event;

impl Decision<'_> {
    /// Whether the run's end has to wait for its check; begins it when it is due.
    pub(super) fn check_first(&mut self) -> bool {
        let run = self.run;
        match run.check.stage {
            CheckStage::Due if run.wants_check() => {
                self.say(Event::CheckStarted {
                    commit: run.commit_to_check(),
                });
                true
            }
            CheckStage::Due | CheckStage::Settled => false,
            CheckStage::Running | CheckStage::Clearing => true,
        }
    }

    pub(super) fn checked(&mut self, result: &CheckResult) {
        if self.run.outbox.contains(&EffectKey::Check) {
            self.say(Event::CheckEnded {
                result: result.clone(),
            });
        }
    }

    /// A folder that could not be removed decides nothing: it stays until it is asked for again.
    pub(super) fn check_cleared(&mut self, _result: &Result<(), WorkspaceError>) {
        if self.run.outbox.contains(&EffectKey::ClearCheck) {
            self.say(Event::CheckCleared);
        }
    }
}
