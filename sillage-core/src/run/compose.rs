//! The texts that a run says to its agents, from its state (W13).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::conflict::CONFLICT_RETURNS;
use super::{ReportFile, Run, Step};
use crate::id::StepIndex;
use crate::message::{
    self, Apart, ByHand, ConflictParts, Earlier, Form, MessageParts, PortLink, SubAgentEnd, SynthesisParts,
    Upstream,
};
use crate::plan;
use crate::report::{Expected, Report, write_form};
use crate::task::{Port, REPORT_PORT, Task};
use crate::time::Timestamp;

/// The mission, with what came of the agents upstream.
pub(super) fn mission(run: &Run, step: StepIndex, now: Timestamp) -> String {
    first(run, step, now, Form::Report)
}

/// A dynamic agent's mission, to be divided in a plan (W19).
pub(super) fn plan_request(run: &Run, step: StepIndex, now: Timestamp) -> String {
    first(run, step, now, Form::Plan)
}

/// What came of a coordinator's sub-agents, for the group's report; with everything before it where the session knows
/// nothing of that (W22). `base` is where its worktree, if it has one, was put for that.
pub(super) fn synthesis(run: &Run, step: StepIndex, now: Timestamp, base: Option<&str>) -> String {
    let Some(plan) = run.plan(step) else {
        return continuation(run, step);
    };
    let subs: Vec<StepIndex> = run.sub_agents_of(step).collect();
    let lost: Vec<String> = subs.iter().map(|sub| run.lost(*sub)).collect();
    let files: Vec<PathBuf> = subs.iter().map(|sub| full_report_file(run, *sub)).collect();
    let told = subs.iter().zip(lost.iter().zip(&files));
    let ends: Vec<SubAgentEnd<'_>> = told
        .map(|(sub, (why, full))| sub_agent_end(run, *sub, why, full))
        .collect();
    let integration = run
        .has_worktree(step)
        .then(|| run.definition.integration_branch());
    let parts = SynthesisParts {
        agent: run.agent(step),
        plan,
        ends: &ends,
        integration: integration.as_deref(),
        reports_budget: run.definition.policy.report_budget,
        time_left: time_left(run, step, now),
    };
    match run.is_new_to_its_plan(step) {
        true => first(run, step, now, Form::Synthesis(&parts)),
        false => whereabouts(run, step, base) + &message::synthesis(&parts),
    }
}

/// What became of the worktree of a coordinator whose session knew it before its sub-agents worked.
fn whereabouts(run: &Run, step: StepIndex, base: Option<&str>) -> String {
    let mut subs = run.sub_agents_of(step);
    let merged = subs.any(|sub| run.steps[sub.position()].work().is_some_and(|work| work.merged));
    match base.filter(|_| merged) {
        Some(base) => format!(
            "Your working folder now stands at `{base}`, of `{}`: the merged work of your sub-agents is in it.\n\n",
            run.definition.integration_branch()
        ),
        None => String::new(),
    }
}

fn sub_agent_end<'a>(run: &'a Run, sub: StepIndex, why: &'a str, full: &'a Path) -> SubAgentEnd<'a> {
    let state = &run.steps[sub.position()];
    let committed = state.work().and_then(|work| work.committed.as_ref());
    match state.report().filter(|_| state.lets_follow()) {
        Some(report) => SubAgentEnd::Reported {
            report: upstream_of(run, sub, report, full, &[]),
            merged: committed
                .filter(|_| state.work().is_some_and(|work| work.merged))
                .map(|committed| committed.tip.as_str()),
        },
        None => SubAgentEnd::Lost {
            why,
            branch: committed
                .filter(|committed| committed.commits > 0)
                .and(state.worktree())
                .map(|worktree| worktree.branch.as_str()),
        },
    }
}

/// The first message of a session.
fn first(run: &Run, step: StepIndex, now: Timestamp, form: Form<'_>) -> String {
    let definition = &run.definition;
    let state = &run.steps[step.position()];
    let worktree = state.worktree();
    let path = worktree.map(|w| w.path.as_path());
    let folder = definition.folder_in(path);
    let folders = definition.folders_in(path);
    let parents: Vec<(StepIndex, &Report)> = reports_upstream(run, step).collect();
    let files: Vec<PathBuf> = parents
        .iter()
        .map(|(parent, _)| full_report_file(run, *parent))
        .collect();
    let links: Vec<Vec<PortLink<'_>>> = parents
        .iter()
        .map(|(parent, _)| named_links(run, *parent, step))
        .collect();
    let upstream: Vec<Upstream<'_>> = parents
        .iter()
        .zip(files.iter().zip(&links))
        .map(|((parent, report), (full, ports))| upstream_of(run, *parent, report, full, ports))
        .collect();
    let skipped = skipped_upstream(run, step);
    let skipped: Vec<&str> = skipped.iter().map(|one| run.step_name(*one)).collect();
    let by_hand = ByHand {
        skipped: &skipped,
        earlier: state.hand().filter(|hand| hand.again > 0).map(|hand| Earlier {
            because: hand.because.map(|by| run.step_name(by)),
            merged: hand.merged.as_deref().filter(|_| worktree.is_some()),
        }),
    };
    let parts = MessageParts {
        task: &definition.task.title,
        context: definition.task.context.as_deref(),
        method: definition.task.method.as_deref(),
        agent: run.agent(step),
        folder: &folder,
        folders: &folders,
        worktree_branch: worktree.map(|w| w.branch.as_str()),
        upstream: &upstream,
        reports_budget: definition.policy.report_budget,
        time_left: time_left(run, step, now),
        form,
    };
    message::compose_with(&parts, &by_hand)
}

/// The steps right upstream that a person skipped.
fn skipped_upstream(run: &Run, step: StepIndex) -> Vec<StepIndex> {
    let parents = run.graph.parents(step.0).iter().copied().map(StepIndex);
    parents
        .filter(|parent| run.steps[parent.position()].is_skipped())
        .collect()
}

fn upstream_of<'a>(
    run: &'a Run,
    from: StepIndex,
    report: &'a Report,
    full: &'a Path,
    ports: &'a [PortLink<'a>],
) -> Upstream<'a> {
    Upstream {
        agent: run.step_name(from),
        title: run.agent(from).title.as_deref(),
        report,
        full,
        ports,
        apart: apart(&run.steps[from.position()]),
    }
}

fn time_left(run: &Run, step: StepIndex, now: Timestamp) -> Option<Duration> {
    let worked = run.steps[step.position()].worked_in_this_try(now);
    let most = run.agent(step).max_duration?;
    Some(most.saturating_sub(worked))
}

/// What is said to a session that was interrupted, by us or by its provider, instead of the same message again.
pub(super) fn continuation(run: &Run, step: StepIndex) -> String {
    let mut text = String::from(
        "Your work was interrupted before a complete answer from you arrived. Nothing that you did was undone.\n\n\
         ",
    );
    if run.is_planning(step) {
        text.push_str("If your plan is ready, answer with it only. Otherwise go on from where you were.\n\n");
        plan::write_form(&mut text, run.agent(step));
        return text;
    }
    text.push_str(
        "If your mission is done, answer with your report only. Otherwise go on from where you were, without doing \
         again what is done, and end with your report.\n\n",
    );
    if let Some(parts) = conflict_parts(run, step) {
        message::push_conflict(&mut text, &parts);
    }
    write_form(
        &mut text,
        &Expected {
            outputs: &run.agent(step).outputs,
        },
    );
    text
}

/// What is said to an agent whose work conflicts with that of others (R17).
pub(super) fn conflict(run: &Run, step: StepIndex) -> String {
    match conflict_parts(run, step) {
        Some(parts) => message::conflict(&parts, &run.agent(step).outputs),
        // Without a merge begun there is nothing to tell but to go on.
        None => continuation(run, step),
    }
}

fn conflict_parts(run: &Run, step: StepIndex) -> Option<ConflictParts<'_>> {
    let work = run.steps[step.position()].work()?;
    let conflict = work.conflict.as_ref()?;
    Some(ConflictParts {
        folder: &work.worktree.as_ref()?.path,
        onto: &conflict.onto,
        integration: run.definition.integration_branch(),
        files: &work.conflicts,
        attempt: match conflict.told {
            true => work.conflict_returns,
            false => work.conflict_returns.saturating_add(1),
        },
        attempts: CONFLICT_RETURNS,
    })
}

/// Where the work of a step upstream is, when it is not in the worktrees of those after it.
fn apart(state: &Step) -> Option<Apart<'_>> {
    let work = state.work()?;
    if work.merged || work.conflicts.is_empty() {
        return None;
    }
    Some(Apart {
        branch: &work.worktree.as_ref()?.branch,
        commit: &work.committed.as_ref()?.tip,
        files: &work.conflicts,
    })
}

/// The full reports that the step's session may read, each once, with the files that hold them.
pub(super) fn files(run: &Run, step: StepIndex) -> Vec<ReportFile> {
    let upstream = reports_upstream(run, step);
    upstream
        .map(|(parent, report)| report_file(run, parent, report))
        .collect()
}

/// Those, and the reports of a coordinator's sub-agents.
pub(super) fn files_of_group(run: &Run, step: StepIndex) -> Vec<ReportFile> {
    let mut all = files(run, step);
    for sub in run.sub_agents_of(step) {
        let state = &run.steps[sub.position()];
        if let Some(report) = state.report().filter(|_| state.lets_follow()) {
            all.push(report_file(run, sub, report));
        }
    }
    all
}

fn report_file(run: &Run, step: StepIndex, report: &Report) -> ReportFile {
    ReportFile {
        path: full_report_file(run, step),
        content: message::full_report(run.step_name(step), report),
    }
}

fn reports_upstream(run: &Run, step: StepIndex) -> impl Iterator<Item = (StepIndex, &Report)> {
    let upstream = run.upstream(step);
    upstream.filter_map(|parent| Some((parent, run.steps[parent.position()].report()?)))
}

fn full_report_file(run: &Run, step: StepIndex) -> PathBuf {
    let files = run.definition.step_files(run.step_name(step));
    files.join("report.json")
}

/// The links between the two that name an output or an input.
fn named_links(run: &Run, from: StepIndex, to: StepIndex) -> Vec<PortLink<'_>> {
    let Some(links) = run.named_links.get(&to.0) else {
        return Vec::new();
    };
    links
        .iter()
        .map(|link| &run.definition.task.links[*link])
        .filter(|link| link.from.agent == from.0)
        .map(|link| PortLink {
            output: link.from.name.as_deref(),
            input: link.to.name.as_deref(),
        })
        .collect()
}

/// Of a task's links those that name an output or an input, by the agent that they lead to.
pub(super) fn index_named_links(task: &Task) -> HashMap<u32, Vec<usize>> {
    let names = |port: &Port| port.name.as_deref().is_some_and(|name| name != REPORT_PORT);
    let mut index: HashMap<u32, Vec<usize>> = HashMap::new();
    for (position, link) in task.links.iter().enumerate() {
        if names(&link.from) || names(&link.to) {
            index.entry(link.to.agent).or_default().push(position);
        }
    }
    index
}
