//! What the judge expects of plans and of groups of sub-agents.

use std::collections::BTreeMap;

use sillage_core::id::{ClientSessionId, StepIndex};
use sillage_core::plan::Plan;
use sillage_core::run::{MessagePurpose, StepEnd};
use sillage_core::task::AgentKind;

use super::book::StepBook;
use super::{Judge, Promise};
use crate::simulator::sessions::Session;

impl Judge {
    /// How many steps are the task's own.
    pub(super) fn task_steps(&self) -> usize {
        let run = self.run.as_ref();
        run.map_or(0, |run| run.definition().task.agents.len())
    }

    /// The agents of all steps, by name.
    pub(crate) fn agents_by_name(&self) -> Vec<String> {
        let steps = 0..u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let mut names: Vec<String> = steps
            .filter_map(|step| Some(self.agent(StepIndex(step))?.id.clone()))
            .collect();
        names[..].sort_unstable();
        names
    }

    /// How many plans of a step were accepted.
    pub(crate) fn plans_of(&self, step: StepIndex) -> u32 {
        self.steps.get(step.position()).map_or(0, |book| book.plans)
    }

    /// Only a plan that the step's own session gave, and that is within the rules, launches anything.
    pub(super) fn plan_accepted(
        &mut self,
        step: StepIndex,
        plan: &Plan,
        sessions: &BTreeMap<ClientSessionId, Session>,
    ) {
        let book = &self.steps[step.position()];
        let (planned, over) = (book.group.is_some(), book.end.is_some());
        let subs: Vec<(String, Vec<String>)> = plan
            .sub_agents
            .iter()
            .map(|sub| (sub.id.clone(), sub.after.clone()))
            .collect();
        let session = book.session.and_then(|id| sessions.get(&id));
        let given = session.is_some_and(|session| {
            let mut plans = session
                .received
                .iter()
                .filter_map(|received| received.given.as_ref()?.plan.as_ref());
            plans.any(|plan| *plan == subs)
        });
        let rules = self.agent(step).and_then(|agent| agent.sub_agents.as_ref());
        let most = rules.map_or(0, |rules| rules.max.get() as usize);
        self.expect(Promise::Plans, !planned && !over, || {
            format!("step {}'s plan is accepted, and it owes none", step.0)
        });
        self.expect(Promise::Plans, given, || {
            format!("step {}'s session never gave the plan of {subs:?}", step.0)
        });
        self.expect(Promise::Plans, (1..=most).contains(&subs.len()), || {
            format!("step {} has {} sub-agents, at most {most}", step.0, subs.len())
        });
        let first = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let place = |id: &String| subs.iter().position(|(other, _)| other == id);
        for (_, after) in &subs {
            let after = after.iter().filter_map(place);
            let after = after.map(|place| StepIndex(first + u32::try_from(place).unwrap_or(u32::MAX)));
            self.steps.push(StepBook {
                of: Some(step),
                after: after.collect(),
                ..StepBook::default()
            });
        }
        let end = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let book = &mut self.steps[step.position()];
        book.group = Some(first..end);
        book.plans += 1;
    }

    fn members(&self, step: StepIndex) -> Option<impl Iterator<Item = &StepBook>> {
        let group = self.steps[step.position()].group.clone()?;
        Some(group.map(|member| &self.steps[member as usize]))
    }

    /// Whether work of the step's group is missing.
    pub(super) fn misses_somebody(&self, step: StepIndex) -> bool {
        let members = self.members(step);
        members.is_some_and(|mut members| members.any(|book| !book.succeeded() || book.is_apart()))
    }

    /// Whether the step is a sub-agent's whose coordinator is over or made another plan.
    pub(super) fn is_waited_for_no_more(&self, step: StepIndex) -> bool {
        let of = self.steps[step.position()].of;
        of.is_some_and(|of| {
            let coordinator = &self.steps[of.position()];
            let counts = coordinator
                .group
                .as_ref()
                .is_some_and(|group| group.contains(&step.0));
            coordinator.end.is_some() || !counts
        })
    }

    /// Something begins for a step: if it is a sub-agent's, its group is under way, and those it waits for let it.
    pub(super) fn sub_agent_begins(&mut self, step: StepIndex, what: &str) {
        let book = &self.steps[step.position()];
        let Some(of) = book.of else { return };
        let coordinator = &self.steps[of.position()];
        let mine = coordinator
            .group
            .as_ref()
            .is_some_and(|group| group.contains(&step.0));
        let over = coordinator.end.is_some();
        let waits = book
            .after
            .iter()
            .find(|after| !self.steps[after.position()].lets_follow);
        let waits = waits.copied();
        self.expect(Promise::Plans, mine && !over, || {
            format!("{what} of step {} of a group that is over", step.0)
        });
        self.expect(Promise::Plans, waits.is_none(), || {
            format!("{what} of step {} before {waits:?} let it", step.0)
        });
    }

    /// A message asks for what its step owes.
    pub(super) fn owes(&mut self, step: StepIndex, session: ClientSessionId, purpose: MessagePurpose) {
        let dynamic = self
            .agent(step)
            .is_some_and(|agent| agent.kind == AgentKind::Dynamic);
        let planned = self.steps[step.position()].group.is_some();
        let gathered = self
            .members(step)
            .is_none_or(|mut members| members.all(|book| book.end.is_some()));
        let returns = self
            .sessions
            .get(&session)
            .map_or(0, |session| session.plan_corrections);
        let right = match purpose {
            MessagePurpose::Mission => !dynamic,
            MessagePurpose::Plan | MessagePurpose::PlanCorrection => dynamic && !planned,
            MessagePurpose::Synthesis => planned,
            MessagePurpose::Correction | MessagePurpose::Conflict => dynamic == planned,
            MessagePurpose::Continuation => true,
        };
        self.expect(Promise::Plans, right, || {
            format!("step {} is asked for what it does not owe: {purpose:?}", step.0)
        });
        self.expect(Promise::Plans, returns <= 2, || {
            format!("plan correction {returns} in {session}")
        });
        self.expect(Promise::Groups, gathered, || {
            format!(
                "step {} is told something ({purpose:?}) before its sub-agents are over",
                step.0
            )
        });
    }

    /// A group that lost a sub-agent is not complete.
    pub(super) fn group_ended(&mut self, step: StepIndex, end: &StepEnd) {
        let under_way = self
            .members(step)
            .is_some_and(|mut members| members.any(|book| book.end.is_none()));
        let misses = self.misses_somebody(step);
        let told = matches!(end, StepEnd::Complete | StepEnd::Partial | StepEnd::Blocked);
        self.expect(Promise::Groups, !(told && under_way), || {
            format!("step {} ends {end:?} before its sub-agents", step.0)
        });
        self.expect(Promise::Groups, !(misses && *end == StepEnd::Complete), || {
            format!("step {} is complete without all of its sub-agents", step.0)
        });
    }
}

impl StepBook {
    /// Whether its work is on a branch of its own.
    fn is_apart(&self) -> bool {
        self.to_merge && !self.merged
    }
}
