//! The recap of a run: its result first, then what each agent did, then what is left to do (R28).

mod gather;
mod markdown;
mod text;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::estimate::{Foretold, Verdict};
use crate::id::{RunId, StepIndex};
use crate::ports::workspace::DiffStat;
use crate::report::Report;
use crate::run::{
    AccountView, BudgetView, CheckView, Failure, NotRun, RelaunchOf, Run, Spent, StrayWrite, WaitingFor,
};
use crate::time::Timestamp;

/// The recap of a run, over or not. Dates are milliseconds since 1970 in UTC, durations are milliseconds; what is
/// not known is null, never zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recap {
    /// The result.
    pub result: RunResult,
    /// What each agent did, in the order of the definition, sub-agents right after their coordinator, those of earlier
    /// plans last.
    pub steps: Vec<StepRecap>,
    /// Sums over the steps.
    pub totals: Totals,
    /// What is left to do.
    pub left: Left,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunResult {
    /// The run's name.
    pub run: RunId,
    /// The task's title.
    pub title: String,
    /// Its state in the words of R2.
    pub state: &'static str,
    /// Whether it is over.
    pub over: bool,
    /// The integration branch, once something was merged.
    pub branch: Option<String>,
    /// The integration branch's commit: full hash.
    pub commit: Option<String>,
    /// What the integration branch changes since the base; none until [`Recap::with_diff`] tells it.
    pub diff: Option<DiffStat>,
    /// The person's working tree, where the run works in a repository.
    pub repository: Option<PathBuf>,
    /// The branch that the person stood on at launch; none: detached, or no repository.
    pub base_branch: Option<String>,
    /// The commit that the run started from: full hash.
    pub base_commit: Option<String>,
    /// The folder that agents without a worktree work in.
    pub folder: PathBuf,
    /// The task's check, once it was begun (W10b).
    pub check: Option<CheckView>,
    /// The earlier run of which it is a relaunch, and what changed since (R13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relaunch_of: Option<RelaunchOf>,
    /// Its ceilings and what is used of them; none: it has none.
    pub budget: Option<BudgetView>,
    /// What was foretold at its launch, beside what happened (R27); none: nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<EstimateRecap>,
}

/// An estimate beside what happened (R27).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EstimateRecap {
    /// What was foretold at launch.
    #[serde(flatten)]
    pub foretold: Foretold,
    /// How long the run was under way in all; none: it did not come to an end that can be compared.
    #[serde(rename = "took_ms", serialize_with = "as_optional_millis")]
    pub took: Option<Duration>,
    /// How the estimate turned out.
    pub verdict: Option<Verdict>,
}

/// E.g. `estimated 20 min (14 to 31 min), took 24 min`.
impl fmt::Display for EstimateRecap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.took {
            Some(took) => f.write_str(&self.foretold.beside(took)),
            None => write!(f, "estimated {}", self.foretold),
        }
    }
}

fn as_optional_millis<S: serde::Serializer>(
    span: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => crate::time::as_millis(span, serializer),
        None => serializer.serialize_none(),
    }
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepRecap {
    /// Its place in the run.
    pub step: StepIndex,
    /// The agent; `agent/sub-agent` for a sub-agent.
    pub agent: String,
    /// The agent that coordinates it, where it is a sub-agent.
    pub of: Option<String>,
    /// Whether it is a sub-agent of a plan in place of which its coordinator made another: what it spent counts, what it
    /// left undone does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// What a person calls it.
    pub title: Option<String>,
    /// The session's model.
    pub model: String,
    /// The session's effort.
    pub effort: String,
    /// Its state in the words of R2.
    pub state: &'static str,
    /// Its accepted report: outcome, summary, decisions, checks, blockers, references, next action.
    #[serde(flatten)]
    pub report: Option<Report>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Why it was not run.
    pub not_run: Option<NotRun>,
    /// The agents right upstream of which it had part of the work only.
    pub partial_upstream: Vec<String>,
    /// The earlier run that its result is taken from (R13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<RunId>,
    /// What keeps it from going on while the run is under way.
    pub waiting_for: Option<WaitingFor>,
    /// Times that its report went back to it.
    pub corrections: u8,
    /// Times that its plan went back to it, where it coordinates sub-agents (W21).
    pub plan_returns: u8,
    /// When it first got a place.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Time that its sessions spent answering.
    #[serde(rename = "worked_ms", serialize_with = "crate::time::as_millis")]
    pub worked: Duration,
    /// Time spent waiting for a date or for a person; not part of the time worked (R10).
    #[serde(rename = "waited_ms", serialize_with = "crate::time::as_millis")]
    pub waited: Duration,
    /// Waits, for a date or for a person.
    pub waits: u32,
    /// What it spent.
    pub usage: Spent,
    /// Its branch, where it has one.
    pub branch: Option<String>,
    /// Its branch's commit, once what it left is committed: full hash.
    pub commit: Option<String>,
    /// What its branch changes since its base.
    pub diff: Option<DiffStat>,
    /// Whether its work is merged; none until that is decided, and without a worktree.
    pub merge: Option<Merge>,
    /// Times that a conflict of its work went back to it (R17).
    pub conflict_returns: u8,
    /// Files of the person's checkout that changed while it was at work in its worktree.
    pub stray_writes: Vec<StrayWrite>,
    /// References under which earlier work of it was kept (R12).
    pub rescued: Vec<String>,
    /// Its worktree, while that is still there.
    pub worktree: Option<HeldWorktree>,
    /// What went wrong in closing its sessions.
    pub troubles: Vec<String>,
}

/// Whether a step's work is merged (R16, R17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Merge {
    /// The integration branch holds it.
    Merged,
    /// There is nothing to merge.
    Nothing,
    /// These files conflict: it is on its branch only.
    Conflict {
        /// The files.
        files: Vec<String>,
    },
    /// The step did not end in a state whose work is merged: it is on its branch only.
    Withheld,
}

/// A worktree that is still there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldWorktree {
    /// Its folder.
    pub path: PathBuf,
    /// What holds it, in words.
    pub held_by: Vec<String>,
}

/// Sums over the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// From the launch to the end, or to now.
    #[serde(rename = "duration_ms", serialize_with = "crate::time::as_millis")]
    pub duration: Duration,
    /// Time that sessions spent answering; more than the duration where several worked at once.
    #[serde(rename = "worked_ms", serialize_with = "crate::time::as_millis")]
    pub worked: Duration,
    /// Time spent waiting for a date or for a person.
    #[serde(rename = "waited_ms", serialize_with = "crate::time::as_millis")]
    pub waited: Duration,
    /// What is known to be spent.
    pub usage: Spent,
    /// Steps that started and of whose usage nothing is known.
    pub usage_unknown: u32,
}

/// What is left to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Provider accounts that are waited for, while the run is under way (R8).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountView>,
    /// Steps that are not complete.
    pub steps: Vec<LeftStep>,
    /// What agents say should come next.
    pub next_actions: Vec<NextAction>,
    /// Work that is on its step's branch only.
    pub unmerged: Vec<Unmerged>,
    /// Worktrees that are still there once the run is over.
    pub worktrees: Vec<LeftWorktree>,
    /// What came of the check, where it did not pass.
    pub check: Option<String>,
    /// The command that resumes the run, where there is something to resume.
    pub resume: Option<String>,
}

impl Left {
    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Left::default()
    }
}

/// A step that is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftStep {
    /// The agent.
    pub agent: String,
    /// Its state in the words of R2.
    pub state: &'static str,
    /// Why, where something says so.
    pub why: Option<String>,
}

/// What an agent says should come next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NextAction {
    /// The agent.
    pub agent: String,
    /// Its words.
    pub action: String,
}

/// Work that is on its step's branch only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmerged {
    /// The agent.
    pub agent: String,
    /// The branch.
    pub branch: String,
    /// The branch's commit: full hash.
    pub commit: String,
    /// The files that conflict; empty: the step's state is why.
    pub conflicts: Vec<String>,
}

/// A worktree that is still there once the run is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftWorktree {
    /// The agent.
    pub agent: String,
    /// The worktree.
    #[serde(flatten)]
    pub worktree: HeldWorktree,
}

impl Recap {
    /// The recap of the run as it stands at `now`.
    #[must_use]
    pub fn of(run: &Run, now: Timestamp) -> Recap {
        gather::recap(run, now)
    }

    /// The same with what the integration branch changes since the base, which git tells.
    #[must_use]
    pub fn with_diff(mut self, diff: DiffStat) -> Recap {
        self.result.diff = Some(diff);
        self
    }

    /// The recap as plain text, in lines of at most `width` columns where words allow; without colours.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        text::write(self, width)
    }

    /// The recap as Markdown, fit for a pull request: nothing that an agent wrote is taken for Markdown, HTML, the
    /// name of a person to notify or the number of an issue.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::write(self)
    }
}

#[cfg(test)]
mod tests;
