//! The recap as Markdown: CommonMark with the tables of GitHub Flavored Markdown.

mod escape;

use escape::{code, escaped, escaped_lines, link};

use super::text::{facts, last_words, left_lines, points, spans, spent, stopped_by};
use super::{Left, Recap, StepRecap};
use crate::report::ReferenceKind;
use crate::time::human;

pub(super) fn write(recap: &Recap) -> String {
    let mut page = String::new();
    result(&mut page, recap);
    table(&mut page, &recap.steps);
    for step in &recap.steps {
        step_recap(&mut page, step);
    }
    if !recap.left.is_nothing() {
        left(&mut page, &recap.left);
    }
    page
}

fn add(page: &mut String, line: &str) {
    page.push_str(line);
    page.push('\n');
}

fn bullet(page: &mut String, line: &str) {
    add(page, &format!("- {line}"));
}

fn result(page: &mut String, recap: &Recap) {
    let result = &recap.result;
    add(page, &format!("## {}", escaped(&result.title)));
    add(page, "");
    add(page, &format!("**{}**: {}", result.state, spans(&recap.totals)));
    add(page, "");
    match (&result.branch, &result.commit) {
        (Some(branch), Some(commit)) => {
            let diff = result.diff.map_or_else(String::new, |diff| format!(": {diff}"));
            bullet(
                page,
                &format!("Branch {} at {}{diff}", code(branch), code(commit)),
            );
        }
        _ if result.base_commit.is_some() => bullet(page, "No branch: nothing was merged"),
        _ => bullet(page, &format!("In {}", code(&result.folder.to_string_lossy()))),
    }
    match (&result.base_branch, &result.base_commit) {
        (Some(branch), Some(base)) => bullet(page, &format!("From {} at {}", code(branch), code(base))),
        (None, Some(base)) => bullet(page, &format!("From {}", code(base))),
        (_, None) => {}
    }
    for step in &recap.steps {
        if let Some(worktree) = &step.worktree {
            bullet(
                page,
                &format!(
                    "Worktree of {}: {}",
                    code(&step.agent),
                    code(&worktree.path.to_string_lossy())
                ),
            );
        }
    }
    if let Some(check) = &result.check {
        bullet(page, &escaped(&format!("Check {check}")));
        for line in last_words(check) {
            add(page, &format!("  - {}", code(line)));
        }
    }
    if let Some(budget) = &result.budget {
        bullet(page, &escaped(&format!("Budget {budget}")));
    }
    if let Some(estimate) = &result.estimate {
        bullet(page, &capital(&escaped(&estimate.to_string())));
    }
    bullet(page, &format!("Run {}", code(result.run.as_str())));
    if let Some(relaunch) = &result.relaunch_of {
        bullet(page, &capital(&escaped(&relaunch.to_string())));
        for change in &relaunch.changes {
            add(page, &format!("  - {}", escaped(change)));
        }
    }
    bullet(page, &capital(&escaped(&spent(&recap.totals))));
    add(page, "");
}

fn table(page: &mut String, steps: &[StepRecap]) {
    add(page, "| Agent | State | Worked | Waited | Tokens | Cost |");
    add(page, "| --- | --- | --- | --- | --- | --- |");
    for step in steps {
        let (worked, waited, tokens, cost) = match step.started {
            Some(_) => (
                human(step.worked),
                human(step.waited),
                step.usage.tokens(),
                step.usage.cost(),
            ),
            None => Default::default(),
        };
        let cells = [step.agent.as_str(), step.state, &worked, &waited, &tokens, &cost];
        add(page, &format!("| {} |", cells.map(escaped).join(" | ")));
    }
}

fn step_recap(page: &mut String, step: &StepRecap) {
    add(page, "");
    let title = step
        .title
        .as_ref()
        .map_or_else(String::new, |title| format!(" ({})", escaped(title)));
    add(
        page,
        &format!("### {}{title}: {}", code(&step.agent), escaped(step.state)),
    );
    add(page, "");
    if let Some(report) = &step.report {
        add(page, &escaped_lines(&report.summary));
        add(page, "");
    }
    if let Some(why) = stopped_by(step) {
        bullet(page, &capital(&escaped(&why)));
    }
    for (what, point) in step.report.iter().flat_map(points) {
        bullet(page, &format!("{}: {}", capital(what), escaped(&point)));
    }
    for reference in step.report.iter().flat_map(|report| &report.references) {
        let shown = match reference.kind {
            ReferenceKind::Url => link(&reference.value),
            ReferenceKind::File | ReferenceKind::Commit | ReferenceKind::Branch => code(&reference.value),
        };
        bullet(page, &format!("See {} {shown}", reference.kind.word()));
    }
    for fact in facts(step) {
        bullet(page, &capital(&escaped(&fact)));
    }
}

fn left(page: &mut String, left: &Left) {
    add(page, "");
    add(page, "### Left to do");
    add(page, "");
    for line in left_lines(left) {
        bullet(page, &escaped(&line));
    }
    if let Some(command) = &left.resume {
        bullet(page, &format!("Resume with {}", code(command)));
    }
}

/// The text with a capital, for the beginning of a bullet.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
