//! An estimate as a table.

use sillage::core::estimate::{AgentEstimate, Estimate, Source, about};
use unicode_width::UnicodeWidthStr as _;

use crate::terminal::fitting;

/// A line for each agent, in the order of the task, each with whether it is to stand out: it usually is on the critical
/// path.
pub(super) fn lines(estimate: &Estimate, width: usize) -> Vec<(String, bool)> {
    let heads = [
        "agent",
        "starts",
        "ends",
        "model and effort",
        "critical",
        "rests on",
    ];
    let rows: Vec<[String; 6]> = estimate.agents.iter().map(row).collect();
    let mut widths = heads.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.width().max(*width);
        }
    }
    widths[0] = widths[0].min((width / 3).max(8));
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| {
            // One more than it may take: the fitting leaves the last column free.
            let cell = fitting(cell, width + 1);
            let gap = " ".repeat(width.saturating_sub(cell.width()));
            format!("{cell}{gap}")
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("  {}", fitting(line.trim_end(), width.saturating_sub(2)))
    };
    let head = (line(&heads.map(str::to_owned)), false);
    let rows = rows.iter().zip(&estimate.agents);
    std::iter::once(head)
        .chain(rows.map(|(row, agent)| (line(row), agent.critical > 0.5)))
        .collect()
}

fn row(agent: &AgentEstimate) -> [String; 6] {
    let name = match agent.sub_agents {
        Some(subs) => format!("{} (+{subs})", agent.agent),
        None => agent.agent.clone(),
    };
    let start = match agent.start.is_zero() {
        true => "at once".to_owned(),
        false => about(agent.start),
    };
    [
        name,
        start,
        about(agent.end),
        format!("{} {}", agent.model, agent.effort),
        format!("{:.0} %", agent.critical * 100.0),
        match agent.basis.source {
            Source::Prior => "a guess".to_owned(),
            Source::Pair | Source::OtherEfforts | Source::OtherModels => agent.basis.to_string(),
        },
    ]
}
