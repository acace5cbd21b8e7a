//! What the judge expects of limits on sessions at work.

use sillage_core::id::StepIndex;

use super::{Judge, Promise};

impl Judge {
    /// A step took a place: the limits hold, counted over all steps anew.
    pub(super) fn took_place(&mut self, step: StepIndex) {
        let Some(run) = &self.run else { return };
        let takes = |index: usize| run.steps()[index].phase().holds_place();
        if !takes(step.position()) {
            return;
        }
        let model = |index: usize| {
            let index = StepIndex(u32::try_from(index).unwrap_or(u32::MAX));
            run.agent(index).model.clone()
        };
        let all: Vec<usize> = (0..run.steps().len()).filter(|index| takes(*index)).collect();
        let mine = model(step.position());
        let same = all.iter().filter(|index| model(**index) == mine).count();
        let definition = run.definition();
        let most = definition.parallel.get() as usize;
        let most_of_model = definition
            .task
            .limits
            .models
            .get(&mine)
            .map_or(usize::MAX, |most| most.get() as usize);
        let count = all.len();
        self.expect(Promise::Limits, count <= most, || {
            format!("step {} starts: {count} of {most}", step.0)
        });
        self.expect(Promise::Limits, same <= most_of_model, || {
            format!(
                "step {} starts: {same} of {most_of_model} of model {mine}",
                step.0
            )
        });
    }
}
