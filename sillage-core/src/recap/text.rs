//! The recap for a person at a terminal.

use textwrap::Options;

use super::{Left, Merge, Recap, RunResult, StepRecap, Totals};
use crate::plain;
use crate::report::Report;
use crate::run::{CheckView, SUPERSEDED, StrayWrite};
use crate::time::human;

/// Narrower than this, lines are not wrapped any more.
const NARROWEST: usize = 20;

pub(super) fn write(recap: &Recap, width: usize) -> String {
    let mut page = Page {
        text: String::new(),
        width: width.max(NARROWEST),
    };
    result(&mut page, recap);
    for step in &recap.steps {
        page.gap();
        step_recap(&mut page, step);
    }
    if !recap.left.is_nothing() {
        page.gap();
        left(&mut page, &recap.left);
    }
    page.text
}

/// Text that grows by wrapped lines.
struct Page {
    text: String,
    width: usize,
}

impl Page {
    fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Adds a text, each of its lines wrapped and indented by `depth`, the lines after its first by one more.
    fn add(&mut self, depth: usize, text: &str) {
        let first = "  ".repeat(depth);
        let rest = "  ".repeat(depth + 1);
        self.wrap(text, &first, &rest);
    }

    /// Adds a text of several lines, each indented alike.
    fn block(&mut self, depth: usize, text: &str) {
        let indent = "  ".repeat(depth);
        for line in plain::lines(text.trim()).lines() {
            self.wrap(line, &indent, &indent);
        }
    }

    fn wrap(&mut self, text: &str, first: &str, rest: &str) {
        // Names and paths are not broken: they are there to be copied.
        let options = Options::new(self.width)
            .initial_indent(first)
            .subsequent_indent(rest)
            .break_words(false);
        for line in textwrap::wrap(&plain::line(text), options) {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }
}

fn result(page: &mut Page, recap: &Recap) {
    let RunResult {
        run,
        title,
        state,
        branch,
        commit,
        diff,
        base_branch,
        base_commit,
        folder,
        check,
        budget,
        estimate,
        ..
    } = &recap.result;
    page.add(0, title);
    page.add(0, &format!("{state}: {}", spans(&recap.totals)));
    match (branch, commit) {
        (Some(branch), Some(commit)) => {
            let diff = diff.map_or_else(String::new, |diff| format!(": {diff}"));
            page.add(0, &format!("branch {branch} at {commit}{diff}"));
        }
        _ if base_commit.is_some() => page.add(0, "no branch: nothing was merged"),
        _ => page.add(0, &format!("in {}", folder.display())),
    }
    match (base_branch, base_commit) {
        (Some(branch), Some(base)) => page.add(0, &format!("from {branch} at {base}")),
        (None, Some(base)) => page.add(0, &format!("from {base}")),
        (_, None) => {}
    }
    for step in &recap.steps {
        if let Some(worktree) = &step.worktree {
            page.add(
                0,
                &format!("worktree of {}: {}", step.agent, worktree.path.display()),
            );
        }
    }
    if let Some(check) = check {
        page.add(0, &format!("check {check}"));
        for line in last_words(check) {
            page.add(1, line);
        }
    }
    if let Some(budget) = budget {
        page.add(0, &format!("budget {budget}"));
    }
    if let Some(estimate) = estimate {
        page.add(0, &estimate.to_string());
    }
    page.add(0, &format!("run {run}"));
    if let Some(relaunch) = &recap.result.relaunch_of {
        page.add(0, &relaunch.to_string());
        for change in &relaunch.changes {
            page.add(1, change);
        }
    }
    page.add(0, &spent(&recap.totals));
}

/// Lines of a failed check's output that a recap repeats.
const CHECK_LINES: usize = 10;

/// What a check that did not pass wrote last.
pub(super) fn last_words(check: &CheckView) -> Vec<&str> {
    let failed = check.result.as_ref().filter(|result| !result.passed);
    let lines = failed.into_iter().flat_map(|result| result.output.lines());
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(CHECK_LINES)..].to_vec()
}

/// How long the run took; work and waits told apart (R10).
pub(super) fn spans(totals: &Totals) -> String {
    let Totals {
        duration,
        worked,
        waited,
        ..
    } = totals;
    format!(
        "{} in all, {} worked, {} waited",
        human(*duration),
        human(*worked),
        human(*waited)
    )
}

/// What the run spent, as far as known.
pub(super) fn spent(totals: &Totals) -> String {
    totals.usage.and_unknown(totals.usage_unknown)
}

fn step_recap(page: &mut Page, step: &StepRecap) {
    let title = step
        .title
        .as_ref()
        .map_or_else(String::new, |title| format!(" ({title})"));
    page.add(0, &format!("{}{title}: {}", step.agent, step.state));
    if let Some(why) = stopped_by(step) {
        page.add(1, &why);
    }
    if let Some(report) = &step.report {
        reported(page, report);
    }
    for fact in facts(step) {
        page.add(1, &fact);
    }
}

fn reported(page: &mut Page, report: &Report) {
    page.block(1, &report.summary);
    for (what, line) in points(report) {
        page.add(1, &format!("{what}: {line}"));
    }
    for reference in &report.references {
        page.add(1, &format!("see {} {}", reference.kind.word(), reference.value));
    }
}

/// What stopped the step, in words.
pub(super) fn stopped_by(step: &StepRecap) -> Option<String> {
    if let Some(failure) = &step.failure {
        Some(failure.to_string())
    } else if let Some(reason) = &step.not_run {
        Some(format!("not run: {reason}"))
    } else {
        step.waiting_for
            .as_ref()
            .map(|reason| format!("waits for {reason}"))
    }
}

/// A report's points besides its summary and references, each with what it is.
pub(super) fn points(report: &Report) -> Vec<(&'static str, String)> {
    let with = |text: &str, more: Option<&String>| match more {
        Some(more) => format!("{text}: {more}"),
        None => text.to_owned(),
    };
    let mut points = Vec::new();
    points.extend(
        report
            .decisions
            .iter()
            .map(|d| ("decided", with(&d.title, d.why.as_ref()))),
    );
    points.extend(report.checks.iter().map(|check| {
        let said = format!(
            "{} {}",
            check.kind.word().replace('_', " "),
            check.status.word().replace('_', " ")
        );
        ("check", with(&said, check.detail.as_ref()))
    }));
    points.extend(report.blockers.iter().map(|blocker| {
        let needs = blocker.needs.as_ref().map(|needs| format!("needs {needs}"));
        ("in the way", with(&blocker.title, needs.as_ref()))
    }));
    points.extend(report.next_action.iter().map(|action| ("next", action.clone())));
    points
}

/// What the engine knows of the step besides its report, one line each.
pub(super) fn facts(step: &StepRecap) -> Vec<String> {
    let mut facts = Vec::new();
    if step.superseded {
        facts.push(SUPERSEDED.to_owned());
    }
    if let Some(run) = &step.taken_from {
        facts.push(format!("taken from run {run}, which paid for it"));
    }
    if step.started.is_some() {
        facts.push(worked(step));
        if !step.partial_upstream.is_empty() {
            facts.push(format!(
                "it had part of the work of {} only",
                plain::list(&step.partial_upstream)
            ));
        }
        facts.push(step.usage.to_string());
    }
    if let Some(branch) = &step.branch {
        let at = step
            .commit
            .as_ref()
            .map_or_else(String::new, |commit| format!(" at {commit}"));
        let diff = step.diff.map_or_else(String::new, |diff| format!(": {diff}"));
        facts.push(format!("branch {branch}{at}{diff}"));
    }
    facts.extend(step.merge.as_ref().map(|merge| merged(merge, step)));
    if !step.stray_writes.is_empty() {
        facts.push(StrayWrite::told(&step.stray_writes));
    }
    facts.extend(
        step.rescued
            .iter()
            .map(|kept| format!("earlier work is kept as {kept}")),
    );
    if let Some(worktree) = &step.worktree {
        facts.push(format!(
            "worktree {}: {}",
            worktree.path.display(),
            worktree.held_by.join("; ")
        ));
    }
    facts.extend(
        step.troubles
            .iter()
            .map(|words| format!("a session could not be closed: {words}")),
    );
    facts
}

fn worked(step: &StepRecap) -> String {
    let mut said = format!(
        "{} worked with {} at effort {}",
        human(step.worked),
        step.model,
        step.effort
    );
    match step.waits {
        0 => {}
        1 => said.push_str(&format!(", {} waited", human(step.waited))),
        waits => said.push_str(&format!(", {} waited in {waits} waits", human(step.waited))),
    }
    match step.plan_returns {
        0 => {}
        1 => said.push_str(", plan corrected once"),
        times => said.push_str(&format!(", plan corrected {times} times")),
    }
    match step.corrections {
        0 => {}
        1 => said.push_str(", report corrected once"),
        times => said.push_str(&format!(", report corrected {times} times")),
    }
    said
}

fn merged(merge: &Merge, step: &StepRecap) -> String {
    let went_back = match step.conflict_returns {
        0 => String::new(),
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    match merge {
        Merge::Merged if step.conflict_returns > 0 => {
            format!("merged, after a conflict that went back to it {went_back}")
        }
        Merge::Merged => "merged".to_owned(),
        Merge::Nothing => "nothing to merge".to_owned(),
        Merge::Conflict { files } if step.conflict_returns > 0 => {
            let files = plain::list(files);
            format!("not merged: conflict in {files}, which went back to it {went_back}")
        }
        Merge::Conflict { files } => format!("not merged: conflict in {}", plain::list(files)),
        Merge::Withheld => {
            let state = step.state;
            format!("not merged: the work of a {state} agent stays on its branch")
        }
    }
}

fn left(page: &mut Page, left: &Left) {
    page.add(0, "Left to do");
    for line in left_lines(left) {
        page.add(1, &line);
    }
    if let Some(command) = &left.resume {
        page.add(1, &format!("resume with: {command}"));
    }
}

/// What is left to do but for the resume, one line each.
pub(super) fn left_lines(left: &Left) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(left.check.clone());
    lines.extend(left.accounts.iter().map(ToString::to_string));
    lines.extend(left.steps.iter().map(|step| match &step.why {
        Some(why) => format!("{} is {}: {why}", step.agent, step.state.replace('_', " ")),
        None => format!("{} is {}", step.agent, step.state.replace('_', " ")),
    }));
    lines.extend(
        left.next_actions
            .iter()
            .map(|next| format!("{} says: {}", next.agent, next.action)),
    );
    lines.extend(left.unmerged.iter().map(|work| {
        let conflicts = match work.conflicts.is_empty() {
            true => String::new(),
            false => format!(", it conflicts in {}", plain::list(&work.conflicts)),
        };
        format!(
            "the work of {} is on branch {} only, at {}{conflicts}",
            work.agent, work.branch, work.commit
        )
    }));
    lines.extend(left.worktrees.iter().map(|left| {
        let held = left.worktree.held_by.join("; ");
        format!(
            "the worktree of {} is still there, {}: {held}",
            left.agent,
            left.worktree.path.display()
        )
    }));
    lines
}
