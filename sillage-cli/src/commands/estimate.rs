//! `sillage estimate`: how long a run of a task should take (R24, R25).

mod chart;
mod table;

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use serde::Serialize;
use sillage::core::document::{self, Format};
use sillage::core::estimate::{Estimate as Foreseen, Estimator, LegBecause, LimitCost, Past, Replays, about};
use sillage::core::fault::Fault;
use sillage::core::task::{self, Task};
use sillage::{ReadError, Reader, estimator_of, past};
use unicode_width::UnicodeWidthStr as _;

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::input;
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Arguments of `estimate`.
#[derive(Debug, Args)]
pub(crate) struct Estimate {
    /// The task file; `-` for standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    task: PathBuf,
    /// Draw each agent's typical start and end.
    #[arg(long, conflicts_with = "json")]
    gantt: bool,
    /// Sessions at work at once [default: as in the task and the settings].
    #[arg(long, value_name = "N")]
    parallel: Option<NonZeroU32>,
}

/// The answer for a program. Durations are milliseconds, starts and ends count from the launch.
#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    task: &'a str,
    #[serde(flatten)]
    estimate: &'a Foreseen,
    /// On how many past sessions it rests.
    sessions: u32,
    /// What its limits cost.
    limits: &'a [LimitCost],
}

/// Estimates the task and tells it.
pub(crate) fn run(arguments: &Estimate, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let file = arguments.task.as_path();
    let settings = global.settings()?.unwrap_or_default();
    // What a gateway offers is known to it alone, and nobody is asked for an estimate.
    let offers = settings.relais.is_empty().then(|| settings.offers());
    let mut task = read(file, offers.as_deref().filter(|offers| !offers.is_empty()))?;
    let mut program = settings.limits.parallel;
    if let Some(parallel) = arguments.parallel {
        (task.limits.parallel, program) = (Some(parallel), None);
    }
    let past = drive::block_on(known(&global.data_folder()?))?;
    let canonical = fs::canonicalize(file).ok();
    let offers = offers.unwrap_or_default();
    let estimator = estimator_of(&task, canonical.as_deref(), program, &offers, &past)
        .map_err(|_| Failure::new(Kind::Usage, "the task's links form a cycle"))?;
    let estimate = estimator.estimate(Replays::of(task.agents.len()));
    let costs = limit_costs(&estimator, task.agents.len());
    output.json(&Answer {
        ok: true,
        task: &task.title,
        sessions: estimate.sessions(),
        estimate: &estimate,
        limits: &costs,
    })?;
    let title = output.paint(Tone::Strong, &task.title);
    output.line(format_args!(
        "{title}: {estimate}, at most {} at once",
        estimate.parallel
    ))?;
    output.line(format_args!("  {}", estimate.rests_on()))?;
    for cost in &costs {
        output.line(format_args!("  {cost}"))?;
    }
    output.line("")?;
    let width = output.size().width;
    let drawn = match arguments.gantt {
        true => chart::lines(&estimate, width),
        false => table::lines(&estimate, width),
    };
    for (line, stands_out) in drawn {
        match stands_out {
            true => output.line(output.paint(Tone::Strong, line))?,
            false => output.line(line)?,
        }
    }
    output.line(format_args!("\n{}", output.paint(Tone::Faint, "critical path")))?;
    for line in critical_path(&estimate, width) {
        output.line(visible(&line))?;
    }
    Ok(Exit::Complete)
}

fn read(file: &Path, offers: Option<&[sillage::core::ports::runtime::ModelOffer]>) -> Result<Task, Failure> {
    let bytes = input::read(file)?;
    let faulty = |faults| Failure::Faulty {
        file: input::name(file),
        faults,
    };
    let text = document::decode(&bytes).map_err(|unreadable| faulty(vec![Fault::from(unreadable)]))?;
    task::read(text, Format::of_file(file), offers).map_err(faulty)
}

/// What past runs tell; nothing where there is none.
async fn known(data: &Path) -> Result<Past, Failure> {
    match Reader::open(data).await {
        Ok(reader) => Ok(past(&reader).await?),
        Err(ReadError::NoRuns) => Ok(Past::default()),
        Err(error) => Err(error.into()),
    }
}

/// What the limits of a task cost, by fewer replays: it is the difference that counts, and both sides draw alike.
pub(crate) fn limit_costs(estimator: &Estimator, agents: usize) -> Vec<LimitCost> {
    let count = u32::try_from(100_000 / agents.max(1)).unwrap_or(u32::MAX);
    estimator.limit_costs(Replays {
        count: count.clamp(20, 200),
        ..Replays::default()
    })
}

/// E.g. `explore 5 min → limiter 20 min → (a place) docs 10 min`, on as many lines as it takes.
fn critical_path(estimate: &Foreseen, width: usize) -> Vec<String> {
    let mut legs: Vec<(&str, bool, Duration)> = Vec::new();
    for leg in &estimate.critical_path {
        let after_place = leg.because == LegBecause::Place;
        match legs.last_mut() {
            // A coordinator's plan, one of its sub-agents and its report are one piece of work to a person.
            Some((agent, _, takes)) if *agent == leg.agent => *takes += leg.takes,
            Some(_) | None => legs.push((&leg.agent, after_place, leg.takes)),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for (nth, (agent, after_place, takes)) in legs.iter().enumerate() {
        let arrow = if nth == 0 { "" } else { "→ " };
        let place = if *after_place { "(a place) " } else { "" };
        let leg = format!("{arrow}{place}{agent} {}", about(*takes));
        match lines.last_mut() {
            Some(line) if line.width() + leg.width() + 1 < width => {
                line.push(' ');
                line.push_str(&leg);
            }
            Some(_) | None => lines.push(format!("  {leg}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests;
