//! A run as it stands, for a status line, a live page or a program.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::Run;
use super::account_view::AccountView;
use super::budget::BudgetView;
use super::check::CheckResult;
use super::conflict::CONFLICT_RETURNS;
use super::definition::RelaunchOf;
use super::event::StepEnd;
use super::not_run::NotRun;
use super::permissions::PermissionView;
use super::spent::Spent;
use super::step::Phase;
use super::stray::StrayWrite;
use super::waiting::WaitingFor;
use crate::id::{ClientSessionId, RunId, StepIndex};
use crate::plain;
use crate::time::{Timestamp, human};

/// What is said of a sub-agent of an earlier plan.
pub(crate) const SUPERSEDED: &str = "superseded by another plan";

/// A run as it stands. Dates are milliseconds since 1970 in UTC, durations are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunView {
    /// The run's name.
    pub run: RunId,
    /// The task's title.
    pub title: String,
    /// The task's file, where it has one.
    pub task_file: Option<PathBuf>,
    /// Its state in the words of R2.
    pub state: &'static str,
    /// Whether it is over.
    pub over: bool,
    /// When it was launched.
    pub launched: Timestamp,
    /// When anything last happened.
    pub updated: Timestamp,
    /// The earlier run of which it is a relaunch, and what changed since (R13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relaunch_of: Option<RelaunchOf>,
    /// Where the gateways listen that hold its sessions; empty: who drives it holds them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// What all its steps spent.
    pub usage: Spent,
    /// Steps that started and of whose usage nothing is known.
    pub usage_unknown: u32,
    /// Permission requests that wait for a person, the oldest first.
    pub permissions: Vec<PermissionView>,
    /// Provider accounts that it waits for (R8).
    pub accounts: Vec<AccountView>,
    /// The task's check, once it was begun (W10b).
    pub check: Option<CheckView>,
    /// Its ceilings and what is used of them; none: it has none.
    pub budget: Option<BudgetView>,
    /// Its steps: the task's, in the order of the definition, then sub-agents, in the order in which they came to be.
    pub steps: Vec<StepView>,
}

/// The task's check as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckView {
    /// The command.
    pub command: String,
    /// How it ended; none: it runs.
    #[serde(flatten)]
    pub result: Option<CheckResult>,
}

/// What comes after `check`.
impl fmt::Display for CheckView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self
            .result
            .as_ref()
            .map_or_else(|| "runs".to_owned(), CheckResult::words);
        write!(f, "`{}` {}", plain::line(&self.command), plain::line(&words))
    }
}

/// A conflict that went to its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictView {
    /// The files that are in conflict, as far as is known.
    pub files: Vec<String>,
    /// Times that it went to the agent.
    pub attempt: u8,
    /// Times that it may go.
    pub attempts: u8,
}

/// A step as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepView {
    /// The agent; `agent/sub-agent` for a sub-agent.
    pub agent: String,
    /// The agent that coordinates it, where it is a sub-agent.
    pub of: Option<String>,
    /// Whether it is a sub-agent of a plan in place of which its coordinator made another: it stays as it ended, and
    /// counts no more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// Its sub-agents, in the order of its plan, once that is accepted.
    pub sub_agents: Vec<String>,
    /// What a person calls it.
    pub title: Option<String>,
    /// The model.
    pub model: String,
    /// The effort.
    pub effort: String,
    /// Its state in the words of R2.
    pub state: &'static str,
    /// One character that stands for the state.
    pub glyph: char,
    /// Whether it is complete or partial, and nothing stands in the way of what follows.
    pub succeeded: bool,
    /// What keeps it from going on, where something does.
    pub waiting_for: Option<WaitingFor>,
    /// Why it was not run.
    pub not_run: Option<NotRun>,
    /// The agents right upstream of which it has part of the work only.
    pub partial_upstream: Vec<String>,
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
    /// Times that what it owes went back to it: its report, or before that its plan, where it is to make one.
    pub corrections: u8,
    /// Times that it may go back.
    pub corrections_allowed: u8,
    /// The earlier run that its result is taken from (R13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<RunId>,
    /// The conflict that its agent is to resolve, while there is one (R17).
    pub conflict: Option<ConflictView>,
    /// Files of the person's checkout that changed while it was at work in its worktree.
    pub stray_writes: Vec<StrayWrite>,
    /// Its session, while it has one.
    pub session: Option<ClientSessionId>,
    /// The process that holds its session, where the runtime says.
    pub pid: Option<u32>,
    /// What it spent.
    pub usage: Spent,
    /// The agents right upstream.
    pub parents: Vec<String>,
    /// Its layer in the graph: 0 without anything upstream, else one more than the highest upstream. A sub-agent is in
    /// its coordinator's.
    pub layer: u32,
}

impl RunView {
    /// The run as it stands at `now`.
    #[must_use]
    pub fn of(run: &Run, now: Timestamp) -> RunView {
        let layers = layers(run);
        let steps: Vec<StepView> = (0..)
            .map(StepIndex)
            .zip(layers)
            .map(|(step, layer)| StepView::of(run, step, layer, now))
            .collect();
        let mut usage = Spent::default();
        steps.iter().for_each(|step| usage.add(&step.usage));
        let silent = steps
            .iter()
            .filter(|step| step.started.is_some() && step.usage.is_unknown());
        let usage_unknown = u32::try_from(silent.count()).unwrap_or(u32::MAX);
        let definition = run.definition();
        RunView {
            run: run.id().clone(),
            title: definition.task.title.clone(),
            task_file: definition.task_file.clone(),
            state: run.word(),
            over: run.end().is_some(),
            launched: run.launched(),
            updated: run.updated(),
            relaunch_of: definition.relaunch_of.clone(),
            gateways: definition
                .gateways
                .iter()
                .map(|gateway| gateway.url.clone())
                .collect(),
            usage,
            usage_unknown,
            permissions: run.permissions(),
            accounts: AccountView::all(run),
            check: CheckView::of(run),
            budget: BudgetView::of(run, now),
            steps,
        }
    }

    /// The graph as lines of plain text, one a step, layer by layer: the layer's number before its first step, the
    /// state, the agent, the time worked, and what it waits for.
    #[must_use]
    pub fn graph_lines(&self) -> Vec<String> {
        let order = self.in_order();
        let digits = order.last().map_or(1, |step| (step.layer + 1).to_string().len());
        let name = order.iter().map(|step| step.agent.len()).max().unwrap_or(0);
        let mut lines = Vec::with_capacity(order.len());
        let mut above = None;
        for step in order {
            let layer = if above == Some(step.layer) {
                String::new()
            } else {
                (step.layer + 1).to_string()
            };
            above = Some(step.layer);
            let line = format!(
                "{layer:>digits$}  {} {:name$}  {:10} {}",
                step.glyph,
                step.agent,
                step.state,
                step.remarks()
            );
            lines.push(line.trim_end().to_owned());
        }
        lines
    }
}

impl RunView {
    /// The steps layer by layer, sub-agents right after their coordinator, those of earlier plans last: the order of
    /// [`RunView::graph_lines`].
    #[must_use]
    pub fn in_order(&self) -> Vec<&StepView> {
        let positions: HashMap<&str, usize> = self
            .steps
            .iter()
            .map(|step| step.agent.as_str())
            .zip(0..)
            .collect();
        let mut order: Vec<&StepView> = self.steps.iter().collect();
        // A stable sort: within a layer the task's order stands, and a group goes by its coordinator's place in it.
        order.sort_by_cached_key(|step| {
            let lead = step.of.as_deref().unwrap_or(&step.agent);
            let place = positions.get(lead).copied();
            (step.layer, place, step.of.is_some(), step.superseded)
        });
        order
    }
}

impl StepView {
    fn of(run: &Run, step: StepIndex, layer: u32, now: Timestamp) -> StepView {
        let agent = run.agent(step);
        let state = &run.steps[step.position()];
        let session = state.session();
        let parents = run.graph().parents(step.0).iter();
        StepView {
            agent: run.step_name(step).to_owned(),
            of: run.coordinator_of(step).map(|of| run.step_name(of).to_owned()),
            superseded: run.is_of_an_earlier_plan(step),
            sub_agents: run
                .sub_agents_of(step)
                .map(|sub| run.step_name(sub).to_owned())
                .collect(),
            title: agent.title.clone(),
            model: agent.model.clone(),
            effort: agent.effort.clone(),
            state: state.word(),
            glyph: glyph(state.phase(), state.returns() > 0),
            succeeded: state.succeeded(),
            waiting_for: run.waiting_for(step),
            not_run: NotRun::of(run, step),
            partial_upstream: run.partial_upstream(step),
            started: state.started(),
            ended: state.ended(),
            worked: state.worked(now),
            waited: state.waited(now),
            corrections: state.returns(),
            corrections_allowed: run.definition().policy.corrections,
            taken_from: state.hand().and_then(|hand| hand.taken.clone()),
            conflict: state.conflict().and(state.work()).map(|work| ConflictView {
                files: work.conflicts.clone(),
                attempt: work.conflict_returns,
                attempts: CONFLICT_RETURNS,
            }),
            stray_writes: state.work().map_or_else(Vec::new, |work| work.stray.clone()),
            session: session.map(super::StepSession::id),
            pid: session.and_then(|s| s.opened()).and_then(|opened| opened.pid),
            usage: state.usage().into(),
            parents: parents
                .map(|parent| run.step_name(StepIndex(*parent)).to_owned())
                .collect(),
            layer,
        }
    }

    /// Times and reasons, apart from each other.
    fn remarks(&self) -> String {
        let mut remarks = Vec::new();
        if self.superseded {
            remarks.push(SUPERSEDED.to_owned());
        }
        if self.started.is_some() {
            remarks.push(human(self.worked));
        }
        if !self.waited.is_zero() {
            remarks.push(format!("waited {}", human(self.waited)));
        }
        if self.state == "correcting" {
            remarks.push(format!(
                "attempt {} of {}",
                self.corrections, self.corrections_allowed
            ));
        }
        if let Some(run) = &self.taken_from {
            remarks.push(format!("taken from run {run}"));
        }
        if let Some(conflict) = &self.conflict {
            remarks.push(format!(
                "conflict in {}, try {} of {}",
                plain::list(&conflict.files),
                conflict.attempt.max(1),
                conflict.attempts
            ));
        }
        if !self.stray_writes.is_empty() {
            remarks.push(StrayWrite::told(&self.stray_writes));
        }
        if !self.partial_upstream.is_empty() {
            remarks.push(format!("after part of {}", plain::list(&self.partial_upstream)));
        }
        if let Some(reason) = &self.waiting_for {
            remarks.push(format!("waits for {reason}"));
        }
        if let Some(reason) = &self.not_run {
            remarks.push(reason.to_string());
        }
        remarks.join("  ")
    }
}

impl CheckView {
    /// The check of a run; none before it is begun, and without one.
    #[must_use]
    pub fn of(run: &Run) -> Option<CheckView> {
        let command = run.check_command()?.to_owned();
        let result = run.check().cloned();
        (result.is_some() || run.is_checking()).then_some(CheckView { command, result })
    }
}

/// Each step's layer, by position.
fn layers(run: &Run) -> Vec<u32> {
    let graph = run.graph();
    let mut layers = vec![0; graph.len()];
    for node in graph.order() {
        let above = graph
            .parents(*node)
            .iter()
            .map(|parent| layers[*parent as usize] + 1)
            .max();
        layers[*node as usize] = above.unwrap_or(0);
    }
    for node in 0..u32::try_from(layers.len()).unwrap_or(u32::MAX) {
        if let Some(of) = run.coordinator_of(StepIndex(node)) {
            layers[node as usize] = layers[of.position()];
        }
    }
    layers
}

const fn glyph(phase: &Phase, corrected: bool) -> char {
    match phase {
        Phase::Pending => '·',
        Phase::Ready => '○',
        Phase::Leasing | Phase::Restarting | Phase::Opening | Phase::Finding => '◌',
        Phase::Prompted | Phase::Verifying if corrected => '↻',
        Phase::Prompted | Phase::Verifying => '●',
        Phase::Waiting(_) | Phase::Held(_) => '…',
        Phase::Asking(_) => '?',
        Phase::Gathering => '◇',
        Phase::Closing(_)
        | Phase::Committing(_)
        | Phase::BeginningMerge(_)
        | Phase::Inspecting(_)
        | Phase::Abandoning(_)
        | Phase::MergeQueued(_)
        | Phase::Merging(_) => '→',
        Phase::Ended(StepEnd::Complete) => '✓',
        Phase::Ended(StepEnd::Partial) => '◐',
        Phase::Ended(StepEnd::Blocked) => '■',
        Phase::Ended(StepEnd::Failed(_)) => '✗',
        Phase::Ended(StepEnd::Cancelled) => '⊘',
        Phase::Ended(
            StepEnd::NotRun(_) | StepEnd::Skipped | StepEnd::OverBudget | StepEnd::FailedFast(_),
        ) => '-',
    }
}

#[cfg(test)]
mod tests;
