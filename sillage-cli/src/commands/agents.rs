//! `sillage agents`: those of the settings, and those that are installed here (A2).

mod detect;
mod list;

use clap::Subcommand;

use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Commands below `agents`.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// List the agents of the settings, with their models and efforts.
    List,
    /// Look for known agents on this machine, and print the lines for the settings file.
    Detect,
}

/// Carries out a command below `agents`.
pub(crate) fn run(command: &Agents, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        Agents::List => list::run(global, output),
        Agents::Detect => detect::run(output),
    }
}
