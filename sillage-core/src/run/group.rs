//! Steps that come to be while the run goes on: the sub-agents of a coordinator (W19–W23).
//!
//! The task's steps come first, in the order of its definition. Sub-agents' steps come after them, group by group in
//! the order in which plans were accepted, and within a group in the order of its plan. A group is never taken back, so
//! that a step keeps its place for as long as the run is told.

use super::Run;
use super::step::{Phase, Step};
use crate::graph::Graph;
use crate::id::StepIndex;
use crate::task::AgentDefinition;

/// A sub-agent's step, beyond what every step has.
#[derive(Debug, Clone)]
pub(super) struct SubStep {
    agent: AgentDefinition,
    /// Its coordinator's step.
    of: StepIndex,
    /// `agent/sub-agent`.
    name: String,
}

/// A dynamic agent's sub-agents.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The first of their steps.
    pub(super) first: u32,
    /// How many there are.
    pub(super) count: u32,
    /// How many are not over.
    pub(super) left: u32,
}

impl Run {
    /// The agent of a step.
    ///
    /// # Panics
    /// When there is no such step, as do the other questions about one step's agent.
    #[must_use]
    pub fn agent(&self, step: StepIndex) -> &AgentDefinition {
        let agents = &self.definition.task.agents;
        match step.position().checked_sub(agents.len()) {
            None => &agents[step.position()],
            Some(position) => &self.sub_steps[position].agent,
        }
    }

    /// The step's name for people, folders and branches: `agent`, or `agent/sub-agent`.
    #[must_use]
    pub fn step_name(&self, step: StepIndex) -> &str {
        match self.sub_step(step) {
            None => &self.agent(step).id,
            Some(sub) => &sub.name,
        }
    }

    /// All steps' names, in the order of the steps.
    pub fn step_names(&self) -> impl Iterator<Item = &str> {
        let agents = self.definition.task.agents.iter();
        agents
            .map(|agent| agent.id.as_str())
            .chain(self.sub_steps.iter().map(|sub| sub.name.as_str()))
    }

    /// The step of this name.
    #[must_use]
    pub fn step_named(&self, name: &str) -> Option<StepIndex> {
        let position = self.step_names().position(|other| other == name)?;
        Some(StepIndex(u32::try_from(position).unwrap_or(u32::MAX)))
    }

    /// The coordinator of a sub-agent's step; none for a step of the task itself.
    #[must_use]
    pub fn coordinator_of(&self, step: StepIndex) -> Option<StepIndex> {
        self.sub_step(step).map(|sub| sub.of)
    }

    /// The steps of a coordinator's sub-agents, in the order of its plan; none before that is accepted.
    pub fn sub_agents_of(&self, step: StepIndex) -> impl Iterator<Item = StepIndex> + use<> {
        let group = self.step(step).and_then(|state| state.group.as_deref());
        let range = group.map_or(0..0, |group| group.first..group.first + group.count);
        range.map(StepIndex)
    }

    /// Whether the step gets a worktree: a sub-agent has one where its coordinator has (R15).
    #[must_use]
    pub fn has_worktree(&self, step: StepIndex) -> bool {
        let of = self.coordinator_of(step).unwrap_or(step);
        self.definition.has_worktree(of)
    }

    /// A sub-agent is over.
    pub(super) fn one_less_to_gather(&mut self, step: StepIndex) {
        self.count_to_gather(step, |left| left.saturating_sub(1));
    }

    /// A sub-agent that was over is not any more.
    pub(super) fn one_more_to_gather(&mut self, step: StepIndex) {
        self.count_to_gather(step, |left| left.saturating_add(1));
    }

    fn count_to_gather(&mut self, step: StepIndex, count: impl Fn(u32) -> u32) {
        if let Some(of) = self.coordinator_of(step)
            && let Some(group) = self.step_mut(of).group.as_deref_mut()
        {
            group.left = count(group.left);
        }
    }

    fn sub_step(&self, step: StepIndex) -> Option<&SubStep> {
        let position = step.position().checked_sub(self.definition.task.agents.len())?;
        self.sub_steps.get(position)
    }

    /// Adds the steps of a coordinator's sub-agents; `after` joins them by their places in the plan.
    #[cfg_attr(not(test), expect(dead_code, reason = "plans are not read yet"))]
    pub(super) fn add_sub_agents(
        &mut self,
        of: StepIndex,
        agents: Vec<AgentDefinition>,
        after: &[(u32, u32)],
    ) -> Result<(), String> {
        let count = u32::try_from(agents.len()).unwrap_or(u32::MAX);
        let first = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let more = Graph::new(count, after).map_err(|_| "its sub-agents wait for one another".to_owned())?;
        // What a sub-agent holds up is its group's report too, and all that comes after that.
        let then = self.places.remaining(of.position());
        let remaining = more.longest_remaining(&vec![1; more.len()]);
        self.graph.append(&more);
        for ((agent, remaining), node) in agents.into_iter().zip(remaining).zip(0..) {
            let limit = self.definition.task.limits.models.get(&agent.model).copied();
            self.places
                .add(&agent.model, limit, remaining.saturating_add(then));
            let step = Step::new(u32::try_from(more.parents(node).len()).unwrap_or(u32::MAX));
            if step.phase == Phase::Ready {
                self.places.ready(self.steps.len());
            }
            self.steps.push(step);
            self.sub_steps.push(SubStep {
                name: format!("{}/{}", self.agent(of).id, agent.id),
                of,
                agent,
            });
        }
        self.step_mut(of).group = Some(Box::new(Group {
            first,
            count,
            left: count,
        }));
        Ok(())
    }
}
