//! `sillage agents`: those of the settings and how they stand, and those that are installed here (A1, A2).

mod detect;
mod held;
mod list;
mod logs;
mod orders;

use clap::{Args, Subcommand};

use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Commands below `agents`.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// List the agents of the settings: how each stands, its models and efforts.
    List,
    /// Start agents and keep them running; waits until each is ready.
    ///
    /// A small process in the background holds them, and ends by itself some seconds after its last agent stopped. The
    /// sessions of `sillage run` are processes of their own: they neither use these agents nor count for
    /// `limits.maxRunningAgents`.
    Start(Named),
    /// Stop agents: their input is closed, after 5 seconds they are asked to end, after 3 more they are killed.
    Stop(Named),
    /// Stop agents and start them again, with the settings as they are now.
    Restart(Named),
    /// Print the last 200 lines that an agent wrote on its standard error.
    Logs(One),
    /// Stop an agent, then its container or sandbox (`runtime.lifecycle.stop`).
    StopSandbox(One),
    /// Stop an agent, then remove its container or sandbox (`runtime.lifecycle.remove`).
    RemoveSandbox(One),
    /// Look for known agents on this machine, and print the lines for the settings file.
    Detect,
    /// Hold agents for those who ask.
    #[command(hide = true)]
    Hold(held::Times),
}

/// Agents by their names.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The agents, as the settings name them.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    times: held::Times,
}

/// An agent by its name.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The agent, as the settings name it.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    times: held::Times,
}

/// Carries out a command below `agents`.
pub(crate) fn run(command: &Agents, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    use orders::Wanted;

    let one = |one: &One| (vec![one.name.clone()], one.times);
    let (wanted, (names, times)) = match command {
        Agents::List => return list::run(global, output),
        Agents::Detect => return detect::run(output),
        Agents::Logs(named) => return logs::run(&named.name, global, output),
        Agents::Hold(times) => return held::hold(*times, global),
        Agents::Start(named) => (Wanted::Start, (named.names.clone(), named.times)),
        Agents::Stop(named) => (Wanted::Stop, (named.names.clone(), named.times)),
        Agents::Restart(named) => (Wanted::Restart, (named.names.clone(), named.times)),
        Agents::StopSandbox(named) => (Wanted::StopSandbox, one(named)),
        Agents::RemoveSandbox(named) => (Wanted::RemoveSandbox, one(named)),
    };
    orders::run(wanted, &names, times, global, output)
}
