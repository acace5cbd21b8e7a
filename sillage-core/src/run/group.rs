//! Coordinators and their sub-agents: steps that come to be while the run goes on (W19–W23).
//!
//! The task's steps come first, in the order of its definition. Sub-agents' steps come after them, group by group in
//! the order in which plans were accepted, and within a group in the order of its plan. A group is never taken back, so
//! that a step keeps its place for as long as the run is told.
//!
//! A coordinator answers its first message with a plan. Once that is accepted it is *gathering*: it holds no place and
//! has nothing to do until its sub-agents are over. Then it is told what came of them and answers with the group's
//! report, which goes the way of every report. Plans are made once: a coordinator that starts again after its plan was
//! accepted, in a new session or after a resume, goes on with that plan.

use std::sync::Arc;

use super::Run;
use super::event::StepEnd;
use super::step::{Next, Phase, Step};
use crate::graph::Graph;
use crate::id::{ClientSessionId, StepIndex};
use crate::plan::Plan;
use crate::planted::{Bug, planted};
use crate::task::{AgentDefinition, AgentKind};
use crate::time::Timestamp;

/// A sub-agent's step, beyond what every step has.
#[derive(Debug, Clone)]
pub(super) struct SubStep {
    agent: AgentDefinition,
    /// Its coordinator's step.
    of: StepIndex,
    /// `agent/sub-agent`.
    name: String,
}

/// A coordinator's plan and its sub-agents.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// Times that a plan went back to the coordinator.
    pub(super) returns: u8,
    /// The accepted plan.
    plan: Option<Arc<Plan>>,
    /// The session that made it.
    planned_in: Option<ClientSessionId>,
    /// The first of the sub-agents' steps.
    first: u32,
    /// How many there are.
    pub(super) count: u32,
    /// How many are not over.
    pub(super) left: u32,
    /// Whether the coordinator was asked for the group's report.
    pub(super) told: bool,
}

impl Group {
    /// Whether its plan is accepted.
    pub(super) fn is_planned(&self) -> bool {
        self.plan.is_some()
    }
}

impl Step {
    /// Times that its plan went back to it.
    #[must_use]
    pub fn plan_returns(&self) -> u8 {
        self.group.as_deref().map_or(0, |group| group.returns)
    }
}

/// What there is of sub-agents.
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

    /// The step of this name; of sub-agents of several plans that have it, the newest.
    #[must_use]
    pub fn step_named(&self, name: &str) -> Option<StepIndex> {
        let named = self.step_names().zip(0..).filter(|(other, _)| *other == name);
        named.last().map(|(_, position)| StepIndex(position))
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

    /// The sub-agents' steps of plans that a coordinator made before it was begun anew, the oldest first.
    pub fn superseded_of(&self, step: StepIndex) -> impl Iterator<Item = StepIndex> {
        let first = u32::try_from(self.definition.task.agents.len()).unwrap_or(u32::MAX);
        let subs = self.sub_steps.iter().zip(first..);
        let its = subs
            .filter(move |(sub, _)| sub.of == step)
            .map(|(_, at)| StepIndex(at));
        its.filter(|sub| self.is_of_an_earlier_plan(*sub))
    }

    /// The steps that were superseded.
    pub(super) fn superseded(&self) -> impl Iterator<Item = &Step> {
        let own = self.definition.task.agents.len();
        let first = u32::try_from(own).unwrap_or(u32::MAX);
        let subs = (first..).map(StepIndex).zip(&self.steps[own..]);
        subs.filter(|(sub, _)| self.is_of_an_earlier_plan(*sub))
            .map(|(_, step)| step)
    }

    /// Whether the step is a sub-agent's of a plan that its coordinator made before it was begun anew. It stays as it
    /// ended: the group that counts is another.
    #[must_use]
    pub fn is_of_an_earlier_plan(&self, step: StepIndex) -> bool {
        self.coordinator_of(step).is_some_and(|of| {
            let group = self.steps[of.position()].group.as_deref();
            !group.is_some_and(|group| (group.first..group.first + group.count).contains(&step.0))
        })
    }

    /// A coordinator's plan, once it is accepted.
    #[must_use]
    pub fn plan(&self, step: StepIndex) -> Option<&Plan> {
        self.step(step)?.group.as_deref()?.plan.as_deref()
    }

    /// Whether the step is a coordinator's that owes a plan.
    #[must_use]
    pub fn is_planning(&self, step: StepIndex) -> bool {
        self.agent(step).kind == AgentKind::Dynamic && self.plan(step).is_none()
    }

    /// Whether the step gets a worktree: a sub-agent has one where its coordinator has (R15).
    #[must_use]
    pub fn has_worktree(&self, step: StepIndex) -> bool {
        let of = self.coordinator_of(step).unwrap_or(step);
        self.definition.has_worktree(of)
    }

    /// The steps whose reports this one is given: those that its agent is linked to, and for a sub-agent also those that
    /// its plan puts before it (W13, W22).
    pub(super) fn upstream(&self, step: StepIndex) -> impl Iterator<Item = StepIndex> {
        let of = self.coordinator_of(step);
        let given = of.map_or(&[][..], |of| self.graph.parents(of.0));
        let own = self.graph.parents(step.0);
        given.iter().chain(own).copied().map(StepIndex)
    }

    /// Whether the session of the step, which has an accepted plan, knows nothing of it.
    pub(super) fn is_new_to_its_plan(&self, step: StepIndex) -> bool {
        let state = &self.steps[step.position()];
        let session = state.session.as_deref().map(super::StepSession::id);
        session != state.group.as_deref().and_then(|group| group.planned_in)
    }

    /// Whether the coordinator is still to be asked for the report on its group.
    pub(super) fn has_untold_group(&self, step: StepIndex) -> bool {
        let group = self.steps[step.position()].group.as_deref();
        group.is_some_and(|group| group.plan.is_some() && !group.told)
    }

    /// The sub-agents without whose work the group is not complete: lost ones (W23), and those whose work is on a branch
    /// of its own.
    pub(super) fn missing_of_group(&self, step: StepIndex) -> Vec<&str> {
        let missing = self.sub_agents_of(step).filter(|sub| {
            let state = &self.steps[sub.position()];
            let apart = state.work().is_some_and(|w| !w.merged && !w.conflicts.is_empty());
            (apart || !state.succeeded()) && !planted(Bug::LostSubAgentForgotten)
        });
        missing.map(|sub| self.step_name(sub)).collect()
    }

    /// What became of the sub-agents, when every one of them was lost.
    pub(super) fn all_sub_agents_lost(&self, step: StepIndex) -> Option<String> {
        const TOLD: usize = 3;
        let group = self.steps[step.position()].group.as_deref()?;
        let all: Vec<StepIndex> = self.sub_agents_of(step).collect();
        let lost = |sub: &StepIndex| {
            let state = &self.steps[sub.position()];
            state.end().is_some() && !state.succeeded()
        };
        if group.left > 0 || all.is_empty() || !all.iter().all(lost) {
            return None;
        }
        let told = all.iter().take(TOLD);
        let told: Vec<String> = told
            .map(|sub| format!("{} is {}", self.step_name(*sub), self.lost(*sub)))
            .collect();
        let more = match all.len().saturating_sub(TOLD) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Some(format!(
            "sub-agents lost, all {}: {}{more}",
            all.len(),
            told.join("; ")
        ))
    }

    /// What became of a sub-agent that was lost, after `is`.
    pub(super) fn lost(&self, sub: StepIndex) -> String {
        let state = &self.steps[sub.position()];
        match state.end() {
            Some(StepEnd::Failed(failure)) => format!("failed: {failure}"),
            Some(StepEnd::Cancelled) => "cancelled".to_owned(),
            Some(StepEnd::NotRun(_) | StepEnd::Skipped | StepEnd::OverBudget | StepEnd::FailedFast(_)) => {
                match super::NotRun::of(self, sub) {
                    Some(why) => format!("not run: {why}"),
                    None => "not run".to_owned(),
                }
            }
            Some(StepEnd::Blocked | StepEnd::Complete | StepEnd::Partial) => {
                let blockers = state.report().map_or(&[][..], |report| &report.blockers);
                let titles: Vec<&str> = blockers.iter().map(|blocker| blocker.title.as_str()).collect();
                format!("blocked: {}", titles.join("; "))
            }
            None => "not over".to_owned(),
        }
    }

    fn sub_step(&self, step: StepIndex) -> Option<&SubStep> {
        let position = step.position().checked_sub(self.definition.task.agents.len())?;
        self.sub_steps.get(position)
    }
}

/// Believing what becomes of them.
impl Run {
    pub(super) fn plan_accepted(
        &mut self,
        step: StepIndex,
        plan: &Arc<Plan>,
        at: Timestamp,
    ) -> Result<(), String> {
        if !self.is_planning(step) {
            return Err("a plan was accepted of a step that owes none".to_owned());
        }
        self.leave(step, at);
        self.forget_permissions(step);
        let agents = plan.agents(self.agent(step));
        self.add_sub_agents(step, agents, &plan.after())?;
        let state = self.step_mut(step);
        let session = state.session.as_deref_mut().map(|session| {
            session.in_flight = None;
            session.id()
        });
        if let Some(group) = state.group.as_deref_mut() {
            group.plan = Some(Arc::clone(plan));
            group.planned_in = session;
        }
        self.enter(step, Phase::Gathering, at);
        self.go_on_when_gathered(step, at);
        Ok(())
    }

    /// Adds the steps of a coordinator's sub-agents; `after` joins them by their places in the plan.
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
            self.gates.add(&self.definition, &agent.model);
            let mut step = Step::new(u32::try_from(more.parents(node).len()).unwrap_or(u32::MAX));
            let phase = std::mem::replace(&mut step.phase, Phase::Pending);
            let index = StepIndex(u32::try_from(self.steps.len()).unwrap_or(u32::MAX));
            self.steps.push(step);
            self.sub_steps.push(SubStep {
                name: format!("{}/{}", self.agent(of).id, agent.id),
                of,
                agent,
            });
            // Its account's gate may be closed.
            self.enter(index, phase, self.updated);
        }
        let group = self.step_mut(of).group.get_or_insert_default();
        group.first = first;
        group.count = count;
        group.left = count;
        Ok(())
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
        if self.is_of_an_earlier_plan(step) {
            return;
        }
        if let Some(of) = self.coordinator_of(step)
            && let Some(group) = self.step_mut(of).group.as_deref_mut()
        {
            group.left = count(group.left);
        }
    }

    /// A coordinator whose sub-agents are all over wants a place again.
    pub(super) fn go_on_when_gathered(&mut self, step: StepIndex, at: Timestamp) {
        let state = &self.steps[step.position()];
        let left = state.group.as_deref().map_or(0, |group| group.left);
        if state.phase != Phase::Gathering || left > 0 {
            return;
        }
        self.step_mut(step).next = self.next_to_synthesize(step);
        self.pass_to(step, Phase::Ready, at);
    }

    /// What a coordinator whose sub-agents are over does when it gets a place. It writes the group's report where their
    /// work is: its worktree is put to the integration branch's tip first, for its plan was to change nothing, and what
    /// it holds nevertheless is kept as for any restart.
    pub(super) fn next_to_synthesize(&self, step: StepIndex) -> Next {
        let state = &self.steps[step.position()];
        let behind = |base: &String| self.tip.as_ref().is_some_and(|tip| tip != base);
        match (&state.session, state.worktree()) {
            (Some(_), Some(worktree)) if behind(&worktree.base) => Next::Restart,
            (Some(_), _) => Next::Synthesize,
            // Done again by hand: its worktree may be removed.
            (None, _) if state.next == Next::Anew => Next::Anew,
            (None, _) => state.next_without_session(),
        }
    }

    /// The coordinator is asked for the group's report.
    pub(super) fn group_told(&mut self, step: StepIndex) {
        if let Some(group) = self.step_mut(step).group.as_deref_mut() {
            group.told = true;
        }
    }

    // --- Done again ---

    /// Whether the step is a sub-agent's whose coordinator is over or makes another plan.
    pub(super) fn is_waited_for_no_more(&self, step: StepIndex) -> bool {
        let of = self.coordinator_of(step);
        let is_over = of.is_some_and(|of| self.steps[of.position()].end().is_some());
        is_over || self.is_of_an_earlier_plan(step)
    }

    /// Sub-agents that did not begin and whose coordinator is over: a stop left them so.
    pub(super) fn without_their_coordinator(&self) -> Vec<StepIndex> {
        let subs = self.definition.task.agents.len()..self.steps.len();
        subs.map(|position| StepIndex(u32::try_from(position).unwrap_or(u32::MAX)))
            .filter(|sub| {
                let phase = &self.steps[sub.position()].phase;
                let not_begun = matches!(phase, Phase::Pending | Phase::Ready | Phase::Held(_));
                not_begun && self.is_waited_for_no_more(*sub)
            })
            .collect()
    }

    /// The coordinator that gathers and reports anew when this sub-agent of its plan is done again: one that is over
    /// after it had a say in its group's end.
    pub(super) fn group_to_gather_anew(&self, step: StepIndex) -> Option<StepIndex> {
        let of = self
            .coordinator_of(step)
            .filter(|_| !self.is_of_an_earlier_plan(step))?;
        let state = &self.steps[of.position()];
        let over = matches!(
            state.end(),
            Some(StepEnd::Complete | StepEnd::Partial | StepEnd::Blocked | StepEnd::Failed(_))
        );
        (over && state.conflict().is_none()).then_some(of)
    }

    /// Coordinators that reported without a sub-agent that never ran, for a person or a ceiling kept it from it, each
    /// with the first such sub-agent: a resume has those run, and the report made anew (R12).
    pub(super) fn reported_without(&self) -> Vec<(StepIndex, StepIndex)> {
        let mut all: Vec<(StepIndex, StepIndex)> = Vec::new();
        for position in self.definition.task.agents.len()..self.steps.len() {
            let sub = StepIndex(u32::try_from(position).unwrap_or(u32::MAX));
            let kept = matches!(
                self.steps[position].end(),
                Some(StepEnd::Skipped | StepEnd::OverBudget | StepEnd::FailedFast(_))
            );
            let Some(of) = self.group_to_gather_anew(sub).filter(|_| kept) else {
                continue;
            };
            if self.steps[of.position()].succeeded() && all.iter().all(|(other, _)| *other != of) {
                all.push((of, sub));
            }
        }
        all
    }

    /// Whether the step is a sub-agent's whose group's report was made without it, or by another plan: it stays as it is
    /// (R12). A coordinator that was skipped makes another plan.
    pub(super) fn stays_lost(&self, step: StepIndex) -> bool {
        self.coordinator_of(step).is_some_and(|of| {
            self.is_past_its_group(of)
                || self.is_of_an_earlier_plan(step)
                || self.steps[of.position()].is_skipped()
        })
    }

    /// Whether the coordinator's report is accepted, and its work on its way to be merged or merged.
    fn is_past_its_group(&self, step: StepIndex) -> bool {
        let state = &self.steps[step.position()];
        match &state.phase {
            Phase::Ended(_) => state.succeeded() || state.conflict().is_some(),
            Phase::Closing(_)
            | Phase::Committing(_)
            | Phase::BeginningMerge(_)
            | Phase::Inspecting(_)
            | Phase::Abandoning(_)
            | Phase::MergeQueued(_)
            | Phase::Merging(_) => true,
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
            | Phase::Gathering => state.conflict().is_some(),
        }
    }

    /// Coordinators some of whose sub-agents run again wait for those, and are asked anew for the report.
    pub(super) fn gather_again(&mut self, at: Timestamp) {
        if self.sub_steps.is_empty() {
            return;
        }
        for position in 0..self.definition.task.agents.len() {
            let step = StepIndex(u32::try_from(position).unwrap_or(u32::MAX));
            let state = &self.steps[position];
            let group = state.group.as_deref();
            let waits = group.is_some_and(|group| group.plan.is_some() && group.left > 0);
            if !waits || self.is_past_its_group(step) {
                continue;
            }
            let state = self.step_mut(step);
            if let Some(group) = state.group.as_deref_mut() {
                group.told = false;
            }
            if state.phase != Phase::Gathering {
                self.leave(step, at);
                if let Some(session) = self.step_mut(step).session.as_deref_mut() {
                    session.in_flight = None;
                }
                self.enter(step, Phase::Gathering, at);
            }
        }
    }
}
