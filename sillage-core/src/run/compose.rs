//! The texts that a run says to its agents, from its state (W13).

use std::collections::HashMap;
use std::path::PathBuf;

use super::conflict::CONFLICT_RETURNS;
use super::{ReportFile, Run, Step};
use crate::id::StepIndex;
use crate::message::{self, Apart, ByHand, ConflictParts, Earlier, Form, MessageParts, PortLink, Upstream};
use crate::report::{Expected, Report, write_form};
use crate::task::{Port, REPORT_PORT, Task};
use crate::time::Timestamp;

/// The mission, with what came of the agents upstream.
pub(super) fn mission(run: &Run, step: StepIndex, now: Timestamp) -> String {
    let definition = &run.definition;
    let agent = run.agent(step);
    let state = &run.steps[step.position()];
    let worktree = state.worktree();
    let path = worktree.map(|w| w.path.as_path());
    let folder = definition.folder_in(path);
    let folders = definition.folders_in(path);
    let parents: Vec<(u32, &Report)> = reports_upstream(run, step).collect();
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
        .map(|((parent, report), (full, ports))| {
            let parent = StepIndex(*parent);
            let from = run.agent(parent);
            Upstream {
                agent: run.step_name(parent),
                title: from.title.as_deref(),
                report,
                full,
                ports,
                apart: apart(&run.steps[parent.position()]),
            }
        })
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
        agent,
        folder: &folder,
        folders: &folders,
        worktree_branch: worktree.map(|w| w.branch.as_str()),
        upstream: &upstream,
        reports_budget: definition.policy.report_budget,
        time_left: agent
            .max_duration
            .map(|most| most.saturating_sub(state.worked_in_this_try(now))),
        form: Form::Report,
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

/// What is said to a session that was interrupted, by us or by its provider, instead of the same message again.
pub(super) fn continuation(run: &Run, step: StepIndex) -> String {
    let mut text = String::from(
        "Your work was interrupted before a complete answer from you arrived. Nothing that you did was undone.\n\n\
         If your mission is done, answer with your report only. Otherwise go on from where you were, without doing \
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
    reports_upstream(run, step)
        .map(|(parent, report)| ReportFile {
            step: StepIndex(parent),
            path: full_report_file(run, parent),
            content: message::full_report(run.step_name(StepIndex(parent)), report),
        })
        .collect()
}

fn reports_upstream(run: &Run, step: StepIndex) -> impl Iterator<Item = (u32, &Report)> {
    let parents = run.graph.parents(step.0).iter().copied();
    parents.filter_map(|parent| Some((parent, run.steps[parent as usize].report()?)))
}

fn full_report_file(run: &Run, step: u32) -> PathBuf {
    run.definition
        .step_files(run.step_name(StepIndex(step)))
        .join("report.json")
}

/// The links between the two that name an output or an input.
fn named_links(run: &Run, from: u32, to: StepIndex) -> Vec<PortLink<'_>> {
    let Some(links) = run.named_links.get(&to.0) else {
        return Vec::new();
    };
    links
        .iter()
        .map(|link| &run.definition.task.links[*link])
        .filter(|link| link.from.agent == from)
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
