//! The section of the reports of the agents before, within its budget (W14).
//!
//! Three ways, the first that fits: every report whole; every report with its *details* (details of checks, values of
//! outputs, the next action) cut fairly; a line for each report, of equal length.

use std::fmt::Write as _;
use std::path::Path;

use super::fenced::{push_code, push_line};
use super::{Apart, Upstream};
use crate::report::Report;

/// Whose reports a section holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heading {
    /// Of the agents that are linked to the one that reads them.
    Before,
    /// Of the sub-agents of the coordinator that reads them.
    SubAgents,
}

impl Heading {
    const fn text(self) -> &'static str {
        match self {
            Heading::Before => "## Reports of the agents before you\n\n",
            Heading::SubAgents => "## Reports of your sub-agents\n\n",
        }
    }
}

const CUT_HEADING: &str =
    "Reports are cut to fit here. Each says where its full text is: read it if you need it.\n\n";

/// Less than this says nothing of a report.
const SHORTEST_LINE: usize = 40;

/// Adds the section, in at most `budget` characters.
pub(super) fn push_reports(text: &mut String, heading: Heading, upstream: &[Upstream<'_>], budget: usize) {
    if upstream.is_empty() {
        return;
    }
    let start = text.len();
    text.push_str(heading.text());
    for one in upstream {
        push_report(text, one, None);
    }
    // Characters are never more than bytes: counting is for texts that are near the budget.
    let fits = text.len() - start <= budget || text[start..].chars().count() <= budget;
    if fits {
        return;
    }
    text.truncate(start);
    match detail_caps(heading, upstream, budget) {
        Some(caps) => {
            text.push_str(heading.text());
            text.push_str(CUT_HEADING);
            for (one, cap) in upstream.iter().zip(caps) {
                push_report(text, one, Some(cap));
            }
        }
        None => push_lines(text, heading, upstream, budget),
    }
}

/// For each report the length to which each of its details is cut, shares being as equal as can be between reports
/// and then between the details of a report; none when the reports do not fit without any detail.
fn detail_caps(heading: Heading, upstream: &[Upstream<'_>], budget: usize) -> Option<Vec<usize>> {
    let mut scratch = String::new();
    let mut kept = heading.text().len() + CUT_HEADING.len();
    let mut details = Vec::with_capacity(upstream.len());
    for one in upstream {
        scratch.clear();
        push_report(&mut scratch, one, Some(0));
        kept += scratch.chars().count();
        details.push(
            texts_of_details(one.report)
                .map(escaped_length)
                .collect::<Vec<usize>>(),
        );
    }
    let available = budget.checked_sub(kept)?;
    let totals: Vec<usize> = details.iter().map(|lengths| lengths.iter().sum()).collect();
    let level = fair_level(&totals, available);
    Some(details.iter().map(|lengths| fair_level(lengths, level)).collect())
}

/// The highest level such that sizes cut to it sum up to `available` at most (max-min fairness).
fn fair_level(sizes: &[usize], available: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut left = available;
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

fn texts_of_details(report: &Report) -> impl Iterator<Item = &str> {
    let checks = report.checks.iter().filter_map(|check| check.detail.as_deref());
    checks
        .chain(report.outputs.values().map(String::as_str))
        .chain(report.next_action.as_deref())
}

/// Adds a report, with each of its details cut to `cap` characters if there is one.
fn push_report(text: &mut String, one: &Upstream<'_>, cap: Option<usize>) {
    text.push_str("### Report of ");
    push_code(text, one.agent);
    if let Some(title) = one.title {
        text.push_str(": ");
        push_line(text, title);
    }
    text.push_str("\n\nOutcome: ");
    text.push_str(outcome(one));
    text.push_str(". Full report: ");
    push_code(text, &one.full.to_string_lossy());
    text.push_str(".\n");
    if let Some(apart) = &one.apart {
        push_apart(text, one.report, apart);
    }
    for link in one.ports {
        push_port_link(text, link);
    }
    let cap = cap.unwrap_or(usize::MAX);
    push_what_is_cut(text, one.report, cap);
    text.push_str("\n```json\n");
    push_fields(text, one.report, cap);
    text.push_str("```\n\n");
}

/// What came of the agent. Whatever it reported, work that could not be merged is not complete.
fn outcome(one: &Upstream<'_>) -> &'static str {
    match one.apart {
        Some(_) => "partial",
        None => one.report.outcome.word(),
    }
}

/// Files in conflict that are named; the rest is counted.
const MOST_NAMED: usize = 10;

fn push_apart(text: &mut String, report: &Report, apart: &Apart<'_>) {
    text.push_str("It reported `");
    text.push_str(report.outcome.word());
    text.push_str(
        "`, but its work conflicts with that of others and could not be merged: it is not in your working folder, and \
         stands on the branch ",
    );
    push_code(text, apart.branch);
    text.push_str(" only, at ");
    push_code(text, apart.commit);
    text.push_str(". In conflict: ");
    for (index, file) in apart.files.iter().take(MOST_NAMED).enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        push_code(text, file);
    }
    if apart.files.len() > MOST_NAMED {
        // Writing to a text does not fail.
        let _ = write!(text, " and {} more", apart.files.len() - MOST_NAMED);
    }
    text.push_str(".\n");
}

fn push_port_link(text: &mut String, link: &super::PortLink<'_>) {
    match link.output {
        Some(output) => {
            text.push_str("Its output ");
            push_code(text, output);
        }
        None => text.push_str("It"),
    }
    match link.input {
        Some(input) => {
            text.push_str(" is your input ");
            push_code(text, input);
        }
        None => text.push_str(" is for you"),
    }
    text.push_str(".\n");
}

fn push_what_is_cut(text: &mut String, report: &Report, cap: usize) {
    let is_cut = |detail: &str| escaped_length(detail) > cap;
    let checks = report
        .checks
        .iter()
        .filter_map(|check| check.detail.as_deref())
        .filter(|text| is_cut(text))
        .count();
    let outputs = report.outputs.values().filter(|text| is_cut(text)).count();
    let next_action = report.next_action.as_deref().is_some_and(is_cut);
    if checks + outputs == 0 && !next_action {
        return;
    }
    text.push_str("Cut here, where `…` stands or nothing is left:");
    // Writing to a text does not fail.
    if checks > 0 {
        let _ = write!(text, " details of {checks} checks;");
    }
    if outputs > 0 {
        let _ = write!(text, " {outputs} outputs;");
    }
    if next_action {
        text.push_str(" the next action;");
    }
    text.push_str(" the full report has them.\n");
}

/// A field of an object, with the length that its text is cut to.
type Field<'a> = (&'a str, Option<&'a str>, usize);

const WHOLE: usize = usize::MAX;

fn push_fields(text: &mut String, report: &Report, cap: usize) {
    text.push_str("{ \"summary\": ");
    push_json(text, &report.summary, WHOLE);
    push_list(text, "decisions", &report.decisions, |text, decision| {
        push_object(
            text,
            [
                ("title", Some(&*decision.title), WHOLE),
                ("why", decision.why.as_deref(), WHOLE),
            ],
        );
    });
    push_list(text, "checks", &report.checks, |text, check| {
        let (kind, status) = (Some(check.kind.word()), Some(check.status.word()));
        push_object(
            text,
            [
                ("kind", kind, WHOLE),
                ("status", status, WHOLE),
                ("detail", check.detail.as_deref(), cap),
            ],
        );
    });
    push_list(text, "blockers", &report.blockers, |text, blocker| {
        push_object(
            text,
            [
                ("title", Some(&*blocker.title), WHOLE),
                ("needs", blocker.needs.as_deref(), WHOLE),
            ],
        );
    });
    push_list(text, "references", &report.references, |text, reference| {
        push_object(
            text,
            [
                ("kind", Some(reference.kind.word()), WHOLE),
                ("value", Some(&*reference.value), WHOLE),
            ],
        );
    });
    if !report.outputs.is_empty() {
        text.push_str(",\n  \"outputs\": ");
        push_object(
            text,
            report
                .outputs
                .iter()
                .map(|(name, value)| (&**name, Some(&**value), cap)),
        );
    }
    if let Some(next_action) = &report.next_action {
        text.push_str(",\n  \"next_action\": ");
        push_json(text, next_action, cap);
    }
    text.push_str(" }\n");
}

/// Adds a list with a line for each entry; nothing for an empty one.
fn push_list<T>(text: &mut String, name: &str, entries: &[T], push: impl Fn(&mut String, &T)) {
    for (index, entry) in entries.iter().enumerate() {
        if index == 0 {
            text.push_str(",\n  \"");
            text.push_str(name);
            text.push_str("\": [\n    ");
        } else {
            text.push_str(",\n    ");
        }
        push(text, entry);
    }
    if !entries.is_empty() {
        text.push_str(" ]");
    }
}

fn push_object<'a>(text: &mut String, fields: impl IntoIterator<Item = Field<'a>>) {
    let there = fields
        .into_iter()
        .filter_map(|(name, value, cap)| Some((name, value?, cap)));
    for (index, (name, value, cap)) in there.enumerate() {
        text.push_str(if index == 0 { "{ " } else { ", " });
        push_json(text, name, WHOLE);
        text.push_str(": ");
        push_json(text, value, cap);
    }
    text.push_str(" }");
}

/// Adds a JSON string (RFC 8259, section 7) whose content is cut to `cap` characters, `…` among them.
fn push_json(text: &mut String, content: &str, cap: usize) {
    text.push('"');
    if cap == WHOLE || escaped_length(content) <= cap {
        content
            .chars()
            .for_each(|character| push_escaped(text, character));
    } else if let Some(mut left) = cap.checked_sub(1) {
        for character in content.chars() {
            let Some(rest) = left.checked_sub(escaped_width(character)) else {
                break;
            };
            left = rest;
            push_escaped(text, character);
        }
        text.push('…');
    }
    text.push('"');
}

fn push_escaped(text: &mut String, character: char) {
    match character {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\t' => text.push_str("\\t"),
        control if control.is_ascii_control() => {
            // Writing to a text does not fail.
            let _ = write!(text, "\\u{:04x}", u32::from(control));
        }
        plain => text.push(plain),
    }
}

/// How many characters a character takes in a JSON string.
const fn escaped_width(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\t' => 2,
        control if control.is_ascii_control() => 6,
        _ => 1,
    }
}

fn escaped_length(content: &str) -> usize {
    content.chars().map(escaped_width).sum()
}

/// A line of equal length for each report: outcome, title and where the whole is, then the summary.
fn push_lines(text: &mut String, heading: Heading, upstream: &[Upstream<'_>], budget: usize) {
    let folder = common_folder(upstream);
    let mut heading = String::from(heading.text());
    let _ = write!(
        heading,
        "{} reports are too long to stand here. The full ones are in ",
        upstream.len()
    );
    push_code(&mut heading, &folder.to_string_lossy());
    heading.push_str(".\n");
    let Some(left) = budget.checked_sub(heading.chars().count() + 2) else {
        return;
    };
    text.push_str(&heading);
    let share = left / upstream.len();
    if share >= SHORTEST_LINE {
        text.push('\n');
        for one in upstream {
            push_report_line(text, one, share);
        }
    }
    text.push('\n');
}

/// The innermost folder that holds every full report.
fn common_folder<'a>(upstream: &[Upstream<'a>]) -> &'a Path {
    let mut folders = upstream.iter().map(|one| one.full.parent().unwrap_or(one.full));
    let first = folders.next().unwrap_or(Path::new(""));
    folders.fold(first, |common, folder| {
        // Every path starts with the last of these: the root, or the empty path.
        common
            .ancestors()
            .find(|ancestor| folder.starts_with(ancestor))
            .unwrap_or(common)
    })
}

fn push_report_line(text: &mut String, one: &Upstream<'_>, share: usize) {
    let mut line = String::from("- ");
    line.push_str(outcome(one));
    line.push_str(": ");
    push_code(&mut line, one.agent);
    if let Some(apart) = &one.apart {
        line.push_str(", not merged, on the branch ");
        push_code(&mut line, apart.branch);
        line.push_str(" only");
    }
    if let Some(title) = one.title {
        line.push_str(", ");
        push_line(&mut line, title);
    }
    line.push_str("; full report: ");
    push_code(&mut line, &one.full.to_string_lossy());
    line.push_str("; summary: ");
    push_json(&mut line, &one.report.summary, WHOLE);
    line.push('\n');
    match line.char_indices().nth(share) {
        None => text.push_str(&line),
        Some(_) => {
            text.extend(line.chars().take(share - 2));
            text.push_str("…\n");
        }
    }
}
