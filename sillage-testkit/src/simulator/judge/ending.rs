//! What the judge expects of a run that is over.

use std::collections::BTreeMap;

use sillage_core::id::ClientSessionId;
use sillage_core::run::{RunEnd, StepEnd};

use super::{Judge, Promise};
use crate::simulator::sessions::{Session, Standing};

impl Judge {
    /// Totals are what their parts are.
    pub(super) fn run_over(&mut self, end: RunEnd) {
        let expected = self.total();
        let stopped = self.stopping;
        let honest = match end {
            RunEnd::Stopped => stopped,
            RunEnd::Complete | RunEnd::Partial | RunEnd::Blocked | RunEnd::Failed => end == expected,
        };
        self.expect(Promise::HonestTotals, honest, || {
            format!("the run ends {end:?}, its steps make it {expected:?}")
        });
        let unended = self.steps.iter().position(|step| step.end.is_none());
        self.expect(
            Promise::HonestTotals,
            end == RunEnd::Stopped || unended.is_none(),
            || format!("the run ends before step {unended:?}"),
        );
    }

    /// The engine has let go of a run that is over: no session is left.
    pub(crate) fn let_go(&mut self, sessions: &BTreeMap<ClientSessionId, Session>) {
        let mut alive = sessions
            .iter()
            .filter(|(_, session)| session.standing == Standing::Attached);
        let left = alive.next().map(|(id, _)| *id);
        self.expect(Promise::NothingLeft, left.is_none(), || {
            format!("session {left:?} outlives the run")
        });
    }

    fn total(&self) -> RunEnd {
        let own = self.task_steps();
        let ends = || self.steps[..own].iter().map(|step| (step, step.end.as_ref()));
        if ends().any(|(_, end)| matches!(end, Some(StepEnd::Failed(_)))) {
            return RunEnd::Failed;
        }
        let blocked = ends().any(|(step, end)| {
            let passed = matches!(end, Some(StepEnd::Complete | StepEnd::Partial));
            matches!(end, Some(StepEnd::Blocked)) || (passed && !step.lets_follow)
        });
        if blocked {
            return RunEnd::Blocked;
        }
        match ends().any(|(_, end)| {
            matches!(
                end,
                Some(StepEnd::Partial | StepEnd::Cancelled | StepEnd::OverBudget | StepEnd::Skipped)
            )
        }) {
            true => RunEnd::Partial,
            false => RunEnd::Complete,
        }
    }
}
