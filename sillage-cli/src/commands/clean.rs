//! `sillage clean`: removes the worktrees of runs that are over that nothing holds, and old trash (R19).

use clap::Args;
use serde::Serialize;
use sillage::core::id::RunId;
use sillage::core::ports::Clock as _;
use sillage::workspace::{Gone, Insistence, Surveyed};
use sillage::{ReadError, SystemClock};

use super::worktrees::found::{self, Found, Runs, State, Unknown, Where, at_work};
use super::worktrees::remove::{self, Fate};
use super::worktrees::told::{self, Left, Removed};
use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// This run only.
    #[arg(long)]
    run: Option<RunId>,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    removed: Vec<Removed<'a>>,
    /// What stays, and what holds it.
    kept: Vec<Left<'a>>,
    emptied: EmptiedTrash,
    /// Repositories that could not be looked at.
    unknown: &'a [Unknown],
}

/// What was deleted from the trash after its seven days.
#[derive(Serialize)]
struct EmptiedTrash {
    folders: u32,
    disk_bytes: u64,
}

/// Cleans up; that something stays is no failure.
pub(crate) fn run(arguments: &Clean, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    drive::block_on(async {
        let workspace = found::open(&data)?;
        let emptied = workspace.empty_trash().await;
        let emptied = emptied.map_err(|error| Failure::new(Kind::Io, error))?;
        let mut found = Found::look_with(workspace, Where::Everywhere).await?;
        let emptied = EmptiedTrash {
            folders: emptied.folders,
            disk_bytes: emptied.disk_bytes,
        };
        let mut left = std::mem::take(&mut found.left);
        let named = arguments.run.iter().map(RunId::as_str);
        let runs = Runs::read(&data, named.chain(left.iter().map(|left| left.run.as_str()))).await?;
        if let Some(run) = &arguments.run {
            left.retain(|left| left.run == run.as_str());
            if left.is_empty() && !runs.knows(run.as_str()) {
                return Err(ReadError::NoSuchRun(run.clone()).into());
            }
        }
        let mut gone: Vec<(Surveyed, Gone)> = Vec::new();
        let mut kept: Vec<(Surveyed, Option<String>)> = Vec::new();
        for mut left in left {
            match clean_one(&found, &runs, &mut left).await {
                Fate::Gone(what) => gone.push((left, what)),
                Fate::Stays(why) => kept.push((left, why)),
            }
        }
        tell(&gone, &kept, emptied, &found.unknown, output)
    })
}

async fn clean_one(found: &Found, runs: &Runs, left: &mut Surveyed) -> Fate {
    let run = &left.run;
    let why = match runs.state(run) {
        State::AtWork => at_work(run),
        State::Cut => format!("run {run} was cut: `sillage resume {run}` goes on with it"),
        State::Over => return remove::take_away(found, left, Insistence::None).await,
    };
    Fate::Stays(Some(why))
}

fn tell(
    gone: &[(Surveyed, Gone)],
    kept: &[(Surveyed, Option<String>)],
    emptied: EmptiedTrash,
    unknown: &[Unknown],
    output: &mut Output,
) -> Result<Exit, Failure> {
    let now = SystemClock.now();
    let removed: Vec<Removed<'_>> = gone
        .iter()
        .map(|(left, gone)| Removed::of(left, remove::branch_of(left), gone))
        .collect();
    for removed in &removed {
        removed.tell(output)?;
    }
    let kept: Vec<Left<'_>> = kept
        .iter()
        .map(|(left, why)| Left::of(left, now).staying(why.as_deref()))
        .collect();
    if !kept.is_empty() {
        output.line(output.paint(Tone::Strong, "What stays"))?;
    }
    for left in &kept {
        left.tell(output)?;
    }
    if emptied.folders > 0 {
        let s = if emptied.folders == 1 { "" } else { "s" };
        output.line(format_args!(
            "old trash deleted: {} folder{s}, {}",
            emptied.folders,
            told::size(emptied.disk_bytes)
        ))?;
    }
    told::unknown(unknown, output)?;
    if removed.is_empty() && kept.is_empty() && emptied.folders == 0 && unknown.is_empty() {
        output.line("Nothing is left to clean.")?;
    }
    output.json(&Answer {
        ok: true,
        removed,
        kept,
        emptied,
        unknown,
    })?;
    Ok(Exit::Complete)
}
