//! What the judge expects of merges.

use sillage_core::id::StepIndex;

use super::{Judge, Promise};
use crate::workspace::MemoryWorkspace;

impl Judge {
    /// One at a time, and none once the run is to stop.
    pub(super) fn merge_planned(&mut self, step: StepIndex) {
        let stopping = self.stopping;
        self.expect(Promise::StopWins, !stopping, || {
            "a merge was planned after a stop".to_owned()
        });
        let other = self.merging.replace(step);
        self.expect(Promise::OneMerge, other.is_none(), || {
            format!("step {}'s work is merged while that of {other:?} is", step.0)
        });
    }

    /// The work is where the log says.
    pub(super) fn merged(&mut self, step: StepIndex, tip: &str, workspace: &MemoryWorkspace) {
        let name = self
            .run
            .as_ref()
            .map(|run| run.agent(step).id.clone())
            .unwrap_or_default();
        self.merging = None;
        self.steps[step.position()].merged = true;
        let there = workspace.content(tip, format!("work-{name}")).is_some();
        self.expect(Promise::NoWorkLost, there, || {
            format!("the work of {name} is not in {tip}")
        });
    }
}
