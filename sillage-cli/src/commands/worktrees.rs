//! `sillage worktrees`: the worktrees that are left, and what holds each (R19); and removing them.

pub(super) mod found;
pub(super) mod remove;
pub(super) mod told;

use clap::{Args, Subcommand};
use serde::Serialize;
use sillage::core::id::RunId;
use sillage::core::ports::Clock as _;
use sillage::{ReadError, SystemClock};

use self::found::{Found, Runs, Unknown, Where};
use self::told::{Left, Trash};
use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Arguments of `worktrees`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Worktrees {
    /// The run [default: all runs in the repository here; in all, where there is none here].
    run: Option<RunId>,
    /// In every repository that runs of this data folder worked in.
    #[arg(long)]
    all: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Move worktrees that nothing holds to the trash, for seven days. Branches stay.
    Remove(remove::Remove),
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    worktrees: Vec<Left<'a>>,
    trash: Vec<Trash<'a>>,
    /// Repositories that could not be looked at.
    unknown: &'a [Unknown],
}

/// Lists them, or removes some.
pub(crate) fn run(arguments: &Worktrees, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    match &arguments.command {
        Some(Command::Remove(remove)) => remove::run(remove, global, output),
        None => list(arguments, global, output),
    }
}

fn list(arguments: &Worktrees, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let found = drive::block_on(async {
        let place = match (&arguments.run, arguments.all) {
            (Some(_), _) | (None, true) => Where::Everywhere,
            (None, false) => Where::Here,
        };
        let mut found = Found::look(&data, place).await?;
        if let Some(run) = &arguments.run {
            found.left.retain(|left| left.run == run.as_str());
            found.trash.retain(|trashed| {
                let note = trashed.note.as_ref();
                note.is_some_and(|note| note.run == run.as_str())
            });
            if found.left.is_empty() && found.trash.is_empty() {
                refuse_unknown(&data, run).await?;
            }
        }
        Ok(found)
    })?;
    let now = SystemClock.now();
    let left: Vec<Left<'_>> = found.left.iter().map(|left| Left::of(left, now)).collect();
    let trash: Vec<Trash<'_>> = found.trash.iter().map(Trash::of).collect();
    for worktree in &left {
        worktree.tell(output)?;
    }
    if !trash.is_empty() {
        output.line(output.paint(Tone::Strong, "In the trash"))?;
    }
    for trashed in &trash {
        trashed.tell(output)?;
    }
    told::unknown(&found.unknown, output)?;
    if left.is_empty() && found.unknown.is_empty() {
        match &found.alone {
            None => output.line("No worktree is left.")?,
            Some(root) => output.line(format_args!(
                "No worktree of {} is left; `sillage worktrees --all` looks everywhere.",
                visible(&root.to_string_lossy())
            ))?,
        }
    }
    output.json(&Answer {
        ok: true,
        worktrees: left,
        trash,
        unknown: &found.unknown,
    })?;
    Ok(Exit::Complete)
}

/// Fails unless the run is known.
async fn refuse_unknown(data: &std::path::Path, run: &RunId) -> Result<(), Failure> {
    let runs = Runs::read(data, [run.as_str()]).await?;
    if runs.knows(run.as_str()) {
        Ok(())
    } else {
        Err(ReadError::NoSuchRun(run.clone()).into())
    }
}
