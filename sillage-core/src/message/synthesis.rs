//! The message that asks a coordinator for its group's report, once its sub-agents have ended (W22, W23).
//!
//! In the session that made the plan it is the message; in a new one, after that session was lost, it is the form at
//! the end of the first message again, and repeats the plan.

use std::path::Path;
use std::time::Duration;

use super::fenced::{push_code, push_line};
use super::upstream::{Heading, push_reports};
use super::{Apart, Upstream, limits};
use crate::plan::{Plan, SubAgent};
use crate::report::{Expected, write_form};
use crate::task::{AgentDefinition, Deliverable};

/// What the coordinator is told of its group.
#[derive(Debug, Clone, Copy)]
pub struct SynthesisParts<'a> {
    /// The dynamic agent.
    pub agent: &'a AgentDefinition,
    /// Its accepted plan.
    pub plan: &'a Plan,
    /// How each sub-agent of the plan ended: one for each, in the plan's order.
    pub ends: &'a [SubAgentEnd<'a>],
    /// The branch that the sub-agents' work is merged into; none where the run has none.
    pub integration: Option<&'a str>,
    /// Most characters that the section of the reports may take.
    pub reports_budget: usize,
    /// What is left of the coordinator's working time.
    pub time_left: Option<Duration>,
}

/// How a sub-agent ended.
#[derive(Debug, Clone, Copy)]
pub enum SubAgentEnd<'a> {
    /// It reported.
    Reported {
        /// Its report, with where its work is if that could not be merged.
        report: Upstream<'a>,
        /// The commit of its work, if there is one and it was merged.
        merged: Option<&'a str>,
    },
    /// It ended without a report, or did not run: it is lost (W23).
    Lost {
        /// Why, in words: one sentence, without a full stop.
        why: &'a str,
        /// The branch that keeps what it committed, if it did.
        branch: Option<&'a str>,
    },
}

impl SubAgentEnd<'_> {
    /// Whether the group is without this sub-agent's work, so that it cannot be complete.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, SubAgentEnd::Lost { .. })
    }
}

/// Composes the message for the session that made the plan. The same parts always give the same text, byte for byte.
#[must_use]
pub fn synthesis(parts: &SynthesisParts<'_>) -> String {
    let mut text = String::with_capacity(8_192);
    text.push_str("The sub-agents of your plan have ended. This is what came of them.\n\n");
    push_ends(&mut text, parts, parts.reports_budget);
    limits(&mut text, parts.time_left);
    push_form(&mut text, parts);
    text
}

/// Adds the plan, as it was accepted.
pub(super) fn push_plan(text: &mut String, plan: &Plan) {
    text.push_str(
        "## Your plan\n\nAn earlier session of yours, which was lost, divided the mission above so, and the plan was \
         carried out:\n\n",
    );
    text.push_str("```json\n");
    #[expect(clippy::expect_used, reason = "texts and lists always have a JSON form")]
    // JSON has no line break in its texts, so that none of them can end the block.
    text.push_str(&serde_json::to_string_pretty(plan).expect("a plan has a JSON form"));
    text.push_str("\n```\n\n");
}

/// Adds how the sub-agents ended, and the reports.
pub(super) fn push_ends(text: &mut String, parts: &SynthesisParts<'_>, budget: usize) {
    text.push_str("## How they ended\n\n");
    for (sub_agent, end) in parts.plan.sub_agents.iter().zip(parts.ends) {
        push_end(text, parts, sub_agent, end);
    }
    text.push('\n');
    let reports: Vec<Upstream<'_>> = parts
        .ends
        .iter()
        .filter_map(|end| match end {
            SubAgentEnd::Reported { report, .. } => Some(*report),
            SubAgentEnd::Lost { .. } => None,
        })
        .collect();
    push_reports(text, Heading::SubAgents, &reports, budget);
}

fn push_end(text: &mut String, parts: &SynthesisParts<'_>, sub_agent: &SubAgent, end: &SubAgentEnd<'_>) {
    text.push_str("- ");
    push_code(text, &sub_agent.id);
    push_units(text, &sub_agent.units);
    match end {
        SubAgentEnd::Reported { report, merged } => {
            text.push_str(" reported `");
            text.push_str(report.report.outcome.word());
            text.push_str("`.");
            push_work(text, parts.integration, *merged, report.apart);
        }
        SubAgentEnd::Lost { why, branch } => {
            text.push_str(" is lost: ");
            push_line(text, why);
            text.push('.');
            if let Some(branch) = branch {
                text.push_str(" What it committed is on the branch ");
                push_code(text, branch);
                text.push_str(" only, and not merged.");
            }
        }
    }
    text.push('\n');
}

/// The units of a sub-agent, so that the report can say what became of each.
fn push_units(text: &mut String, units: &[String]) {
    text.push_str(" (");
    for (index, unit) in units.iter().take(MOST_UNITS).enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        push_line(text, unit);
    }
    if units.len() > MOST_UNITS {
        text.push_str(", …");
    }
    text.push(')');
}

/// Units that are named for each sub-agent; the plan has them all.
const MOST_UNITS: usize = 50;

fn push_work(text: &mut String, integration: Option<&str>, merged: Option<&str>, apart: Option<Apart<'_>>) {
    match (apart, merged) {
        (Some(apart), _) => {
            text.push_str(" Its work conflicts with that of others: it is on the branch ");
            push_code(text, apart.branch);
            text.push_str(" only, at ");
            push_code(text, apart.commit);
            text.push('.');
        }
        (None, Some(commit)) => {
            text.push_str(" Its work, ");
            push_code(text, commit);
            text.push_str(", is merged");
            if let Some(branch) = integration {
                text.push_str(" into ");
                push_code(text, branch);
            }
            text.push('.');
        }
        (None, None) if integration.is_some() => text.push_str(" It committed nothing."),
        (None, None) => {}
    }
}

/// Adds what the group's report must be.
pub(super) fn push_form(text: &mut String, parts: &SynthesisParts<'_>) {
    text.push_str(
        "## Your report\n\nWrite the report of the whole group now, from these reports: what was done and found, what \
         was decided, what is left, and what those after you must know. They get your report, and not those above. Do \
         none of the work again.\n",
    );
    let apart = |end: &SubAgentEnd<'_>| match end {
        SubAgentEnd::Reported { report, .. } => report.apart.is_some(),
        SubAgentEnd::Lost { .. } => false,
    };
    if parts.ends.iter().any(SubAgentEnd::is_lost) {
        text.push_str(
            "Because a sub-agent is lost, `outcome` cannot be `complete`: report `partial`, and name what is missing.\n",
        );
    } else if parts.ends.iter().any(apart) {
        text.push_str(
            "Because work of a sub-agent could not be merged, `outcome` cannot be `complete`: report `partial`, and name \
             what is missing.\n",
        );
    }
    let files = parts
        .agent
        .deliverable
        .as_ref()
        .map(|Deliverable { files, .. }| files);
    if let Some(files) = files.filter(|files| !files.is_empty()) {
        text.push_str(
            "These files, relative to your working folder, must exist and not be empty when you report `complete`; this \
             is verified:\n",
        );
        for file in files {
            push_file(text, file);
        }
    }
    text.push('\n');
    write_form(
        text,
        &Expected {
            outputs: &parts.agent.outputs,
        },
    );
}

fn push_file(text: &mut String, file: &Path) {
    text.push_str("- ");
    push_code(text, &file.to_string_lossy());
    text.push('\n');
}

#[cfg(test)]
mod tests;
