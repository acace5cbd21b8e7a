//! Why steps did not run, and which ran on less than all (W18).

use std::fmt;

use serde::Serialize;

use super::Run;
use super::budget::BudgetKind;
use super::event::StepEnd;
use super::step::Step;
use crate::id::StepIndex;

/// Why a step did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotRun {
    /// The kind of reason.
    pub because: NotRunBecause,
    /// The agent that is the reason, where one is: of several that did not succeed, the first to end.
    pub by: Option<String>,
    /// All agents right upstream that do not let it run.
    pub missing: Vec<String>,
    /// The ceilings that are reached, where they are the reason.
    pub ceilings: Vec<BudgetKind>,
}

/// Kinds of reason for which a step does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotRunBecause {
    /// Something stands in the way of an agent upstream, by its own report.
    Blocked,
    /// An agent upstream failed.
    Failed,
    /// An agent upstream was cancelled.
    Cancelled,
    /// An agent upstream was not run itself.
    NotRun,
    /// A person skipped it.
    Skipped,
    /// A ceiling of the run was reached.
    OverBudget,
    /// Another agent failed, and the run was to begin nothing more.
    FailedFast,
}

impl NotRun {
    /// Why the step did not run; none: it did, or still may.
    #[must_use]
    pub fn of(run: &Run, step: StepIndex) -> Option<NotRun> {
        let (because, by) = match run.step(step)?.end()? {
            StepEnd::NotRun(by) => (NotRunBecause::of(run.step(*by)?), Some(*by)),
            StepEnd::Skipped => (NotRunBecause::Skipped, None),
            StepEnd::OverBudget => (NotRunBecause::OverBudget, None),
            StepEnd::FailedFast(first) => (NotRunBecause::FailedFast, Some(*first)),
            StepEnd::Complete
            | StepEnd::Partial
            | StepEnd::Blocked
            | StepEnd::Failed(_)
            | StepEnd::Cancelled => return None,
        };
        Some(NotRun {
            because,
            by: by.map(|by| run.step_name(by).to_owned()),
            missing: run.names(run.parents_that(step, |parent| !parent.lets_follow())),
            ceilings: match because {
                NotRunBecause::OverBudget => run.reached_kinds(),
                NotRunBecause::Blocked
                | NotRunBecause::Failed
                | NotRunBecause::Cancelled
                | NotRunBecause::NotRun
                | NotRunBecause::Skipped
                | NotRunBecause::FailedFast => Vec::new(),
            },
        })
    }
}

impl NotRunBecause {
    /// The reason that a step is for those after it.
    fn of(step: &Step) -> NotRunBecause {
        match step.end() {
            Some(StepEnd::Failed(_)) => NotRunBecause::Failed,
            Some(StepEnd::Cancelled) => NotRunBecause::Cancelled,
            Some(StepEnd::NotRun(_) | StepEnd::Skipped | StepEnd::OverBudget | StepEnd::FailedFast(_)) => {
                NotRunBecause::NotRun
            }
            // What passed and is named all the same has blockers in its report.
            Some(StepEnd::Complete | StepEnd::Partial | StepEnd::Blocked) | None => NotRunBecause::Blocked,
        }
    }
}

/// What comes after `not run: `, e.g. `blocked by a`, `a failed; b did not succeed either`.
impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.by.as_deref().unwrap_or_default();
        match self.because {
            NotRunBecause::Blocked => write!(f, "blocked by {by}")?,
            NotRunBecause::Failed => write!(f, "{by} failed")?,
            NotRunBecause::Cancelled => write!(f, "{by} was cancelled")?,
            NotRunBecause::NotRun => write!(f, "{by} was not run")?,
            NotRunBecause::Skipped => return f.write_str("a person skipped it"),
            NotRunBecause::OverBudget => {
                let kinds: Vec<&str> = self.ceilings.iter().map(|kind| kind.word()).collect();
                match kinds.is_empty() {
                    true => f.write_str("a ceiling of the run was reached")?,
                    false => write!(f, "the run's ceiling of {} was reached", kinds.join(" and "))?,
                }
                return Ok(());
            }
            NotRunBecause::FailedFast => {
                return write!(f, "{by} failed, and the run begins nothing more then");
            }
        }
        let others: Vec<&String> = self.missing.iter().filter(|agent| *agent != by).collect();
        match others.is_empty() {
            true => Ok(()),
            false => write!(f, "; {} did not succeed either", crate::plain::list(&others)),
        }
    }
}

impl Run {
    /// The steps right upstream of which this holds.
    fn parents_that(&self, step: StepIndex, holds: impl Fn(&Step) -> bool) -> Vec<StepIndex> {
        let parents = self.graph.parents(step.0).iter().map(|parent| StepIndex(*parent));
        parents
            .filter(|parent| holds(&self.steps[parent.position()]))
            .collect()
    }

    fn names(&self, steps: Vec<StepIndex>) -> Vec<String> {
        steps
            .into_iter()
            .map(|step| self.step_name(step).to_owned())
            .collect()
    }

    /// The agents right upstream that did part of their mission only, and let the step run.
    #[must_use]
    pub fn partial_upstream(&self, step: StepIndex) -> Vec<String> {
        let partial = |parent: &Step| parent.lets_follow() && parent.end() == Some(&StepEnd::Partial);
        self.names(self.parents_that(step, partial))
    }
}
