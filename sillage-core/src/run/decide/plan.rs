//! What follows from a coordinator's answers and its sub-agents' ends: its plan, and what its group may be (W19–W23).

use std::sync::Arc;

use super::Decision;
use crate::fault::{self, Fault, FaultCode};
use crate::id::StepIndex;
use crate::plain;
use crate::plan::{self, Plan};
use crate::planted::{Bug, planted};
use crate::ports::runtime::{Answer, StopReason};
use crate::report::{Outcome, Report};
use crate::run::event::{Event, FailureClass, MessagePurpose, StepEnd};
use crate::run::step::Step;

impl Decision<'_> {
    /// What the first message of the step's session is for.
    pub(super) fn first_purpose(&self, step: StepIndex) -> MessagePurpose {
        if self.run.is_planning(step) {
            MessagePurpose::Plan
        } else if self.run.plan(step).is_some() {
            MessagePurpose::Synthesis
        } else {
            MessagePurpose::Mission
        }
    }

    /// A plan or a report, whichever the step owes.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(super) fn read_answer(&self, step: StepIndex, answer: &Answer) -> Result<Owed, Vec<Fault>> {
        if self.run.is_planning(step) {
            let cut = answer.stop == StopReason::MaxTokens;
            plan::read(&answer.text, self.run.agent(step), cut).map(Owed::Plan)
        } else {
            self.read_report(step, answer).map(Owed::Report)
        }
    }

    pub(super) fn take(&mut self, step: StepIndex, owed: Owed) {
        match owed {
            Owed::Plan(plan) => self.say(Event::PlanAccepted {
                step,
                plan: Arc::new(plan),
            }),
            Owed::Report(report) => self.judge(step, report),
        }
    }

    /// What the step owes goes back to it.
    pub(super) fn send_back(&mut self, step: StepIndex, faults: Vec<Fault>) {
        if self.run.is_planning(step) {
            self.refuse_plan(step, faults);
        } else {
            self.refuse(step, faults);
        }
    }

    /// The plan goes back to its coordinator in the same session, twice at most (W21).
    fn refuse_plan(&mut self, step: StepIndex, faults: Vec<Fault>) {
        let returns = self.run.steps[step.position()].plan_returns();
        self.say(Event::PlanRefused {
            step,
            faults: faults.clone(),
        });
        if self.is_stopping() {
            self.end(step, StepEnd::Cancelled);
        } else if returns < self.run.definition.policy.corrections
            || (planted(Bug::ThirdPlanReturn) && returns < self.run.definition.policy.corrections + 1)
        {
            let text = plan::correction(&faults, u32::from(returns) + 1, self.run.agent(step));
            self.plan_message(step, MessagePurpose::PlanCorrection, Some(text));
        } else {
            let words = format!(
                "its plan was refused {} times, at last for: {}",
                returns + 1,
                fault::told(&faults)
            );
            self.fail(step, FailureClass::PlanRefused, words);
        }
    }

    /// A group's report that says `complete` although work of a sub-agent is missing contradicts what is known (W23): it
    /// goes back under W17. Once the returns are used up it is taken as `partial`, for the work of the others is not to
    /// be lost over a word. Gives the report to go on with, if any.
    pub(super) fn hold_to_its_group(&mut self, step: StepIndex, mut report: Report) -> Option<Report> {
        if report.outcome != Outcome::Complete {
            return Some(report);
        }
        let missing = self.run.missing_of_group(step);
        if missing.is_empty() {
            return Some(report);
        }
        if self.run.steps[step.position()].corrections < self.run.definition.policy.corrections {
            let message = format!(
                "the report says `complete`, but the work of {} is missing: a group that lost a sub-agent is `partial`",
                plain::list(&missing)
            );
            self.refuse(
                step,
                vec![Fault {
                    code: FaultCode::Contradiction,
                    message,
                    path: "/outcome".to_owned(),
                    line: None,
                    column: None,
                    suggestion: Some(Outcome::Partial.word().to_owned()),
                }],
            );
            return None;
        }
        report.outcome = Outcome::Partial;
        Some(report)
    }

    /// A coordinator all of whose sub-agents were lost has nothing to report on: it fails, so that a resume launches
    /// them again. Whether it did.
    pub(super) fn failed_with_its_group(&mut self, step: StepIndex) -> bool {
        let Some(words) = self.run.all_sub_agents_lost(step) else {
            return false;
        };
        let subs = self.run.sub_agents_of(step);
        let mut subs: Vec<&Step> = subs.map(|sub| &self.run.steps[sub.position()]).collect();
        subs.sort_by_key(|sub| sub.ended);
        let not_begun = |sub: &&Step| matches!(sub.end(), Some(StepEnd::OverBudget | StepEnd::FailedFast(_)));
        if let Some(end) = subs.last().and_then(|last| last.end())
            && subs.iter().all(not_begun)
        {
            // Nobody failed: they were not begun, and so neither is what was to come of them.
            self.end(step, end.clone());
            return true;
        }
        self.fail(step, FailureClass::SubAgentsLost, words);
        true
    }
}

/// What a step's answer is read for.
pub(super) enum Owed {
    Plan(Plan),
    Report(Report),
}
