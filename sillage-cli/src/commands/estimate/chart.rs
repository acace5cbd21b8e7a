//! The Gantt chart of an estimate, as wide as the terminal.

use std::time::Duration;

use sillage::core::estimate::{AgentEstimate, Estimate, about};
use unicode_width::UnicodeWidthStr as _;

use crate::terminal::fitting;

/// Eighths of a cell, from none to all of it.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Narrower bars tell nothing.
const NARROWEST: usize = 10;

/// Each agent from its typical start to its typical end, with whether it is to stand out: it usually is on the critical
/// path. No line is wider than `width`, but where that is less than a bar takes.
pub(super) fn lines(estimate: &Estimate, width: usize) -> Vec<(String, bool)> {
    let names = estimate.agents.iter().map(|agent| agent.agent.width());
    let name = names.max().unwrap_or(0).min(width / 3).max(1);
    let ends = estimate.agents.iter().map(|agent| about(agent.end).width());
    let end = ends.max().unwrap_or(0);
    // Two columns before the name, two after it, one before the end, and the last one stays free.
    let bars = width.saturating_sub(name + end + 6).max(NARROWEST);
    let all = estimate.agents.iter().map(|agent| agent.end).max();
    let all = all.unwrap_or_default().max(Duration::from_millis(1));
    let rows = estimate.agents.iter().map(|agent| {
        let shown = fitting(&agent.agent, name + 1);
        let gap = " ".repeat(name.saturating_sub(shown.width()));
        let line = format!("  {shown}{gap}  {} {}", bar(agent, all, bars), about(agent.end));
        (fitting(&line, width + 1), agent.critical > 0.5)
    });
    let middle = about(all / 2);
    let axis = format!(
        "  {}  0{}{middle}",
        " ".repeat(name),
        " ".repeat((bars / 2).saturating_sub(1))
    );
    rows.chain([(fitting(&axis, width + 1), false)]).collect()
}

/// A bar of so many cells, to the eighth of one at its end.
fn bar(agent: &AgentEstimate, all: Duration, cells: usize) -> String {
    let eighth = |at: Duration| {
        let share = at.as_secs_f64() / all.as_secs_f64();
        (share * cells as f64 * 8.0).round() as usize
    };
    // It starts with a whole cell: there are no characters that are filled from the right.
    let first = (eighth(agent.start) / 8).min(cells - 1);
    let last = eighth(agent.end).max(first * 8 + 1).min(cells * 8);
    let (full, part) = (last / 8, last % 8);
    let mut bar = " ".repeat(first);
    bar.push_str(&"█".repeat(full - first));
    if part > 0 {
        bar.push(EIGHTHS[part]);
    }
    let used = full + usize::from(part > 0);
    bar.push_str(&" ".repeat(cells.saturating_sub(used)));
    bar
}
