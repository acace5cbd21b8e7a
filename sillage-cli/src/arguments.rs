//! The command line: what can be said, and what it means. Its doc comments are the program's help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::commands;
use crate::terminal::ColorChoice;

/// Hands a long piece of work to a graph of AI coding agents.
#[derive(Debug, Parser)]
#[command(name = "sillage", version, propagate_version = true, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 complete, 1 failed, 2 wrong usage or faulty input, 3 partial, 4 blocked, \
5 agent or gateway out of reach, 6 store, 70 defect, 130 interrupted or stopped.";

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// Answer in JSON, for programs.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Answer yes where a question would be asked. Without a terminal none is asked.
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,
    /// Where runs are kept [default: sillage in the folder for data] [env: SILLAGE_DATA_DIR].
    #[arg(long, global = true, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) data_dir: Option<PathBuf>,
    /// The settings file [default: sillage/config.yaml in the folder for settings] [env: SILLAGE_CONFIG].
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// When to use colours.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = false
    )]
    pub(crate) color: ColorChoice,
}

impl Global {
    /// With what the environment says where the command line does not. The parser is not let read it: its usage texts
    /// would name these options as if they had to be given.
    pub(crate) fn with_environment(mut self) -> Global {
        let told = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        self.data_dir = self.data_dir.or_else(|| told("SILLAGE_DATA_DIR"));
        self.config = self.config.or_else(|| told("SILLAGE_CONFIG"));
        self
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a project file and a commented task file; overwrite nothing.
    Init(commands::init::Init),
    /// Check a task file: every fault at once, with its place.
    Check(commands::check::Check),
    /// Tell how long a run of a task should take, by what past runs took.
    Estimate(commands::estimate::Estimate),
    /// Launch a task, show it live and wait for its end.
    Run(commands::run::Run),
    /// Go on with a run that was cut, stopped or failed.
    Resume(commands::resume::Resume),
    /// Tell where a run stands, and which runs there are.
    Status(commands::status::Status),
    /// Show a run live until it is over.
    Follow(commands::follow::Follow),
    /// Ask a run to stop; a second time forces it.
    Stop(commands::stop::Stop),
    /// List the provider accounts that runs wait for, or have one used again.
    Accounts(commands::accounts::Accounts),
    /// Have an agent's step tried again, and what follows it.
    Retry(commands::by_hand::Retry),
    /// Go on without an agent's step.
    Skip(commands::by_hand::Skip),
    /// Launch a task again from one agent on, with what is upstream of it taken from an earlier run.
    Relaunch(commands::relaunch::Relaunch),
    /// Tell what changed in a task since a run executed it, or between two runs.
    Diff(commands::diff::Diff),
    /// Write the definition that a run executed back to its task's file.
    Restore(commands::restore::Restore),
    /// List what agents ask a person for, and answer.
    Permissions(commands::permissions::Permissions),
    /// Tell every message that agents were sent, byte for byte, and what they answered.
    Exchanges(commands::exchanges::Exchanges),
    /// Tell what happened in a run, and what failed.
    Journal(commands::journal::Journal),
    /// Tell what came of a run, the result first.
    Recap(commands::recap::Recap),
    /// List the worktrees that are left and what holds each, or remove some.
    Worktrees(commands::worktrees::Worktrees),
    /// Remove the worktrees of runs that are over that nothing holds, and old trash; branches stay.
    Clean(commands::clean::Clean),
    /// Start a gateway that holds sessions, so that they outlive what asked for them; `run --relais` uses it.
    Relais(commands::relais::Relais),
    /// Show it all on a throw-away repository, with scripted agents.
    Demo(commands::demo::Demo),
    /// Play a script as an agent.
    #[command(hide = true)]
    ScriptedAgent(commands::processes::Words),
    /// Start an agent, and end it with all that it started when the engine goes.
    #[command(hide = true)]
    LaunchAgent(commands::processes::Words),
    /// Look at the agents of the settings, or for agents on this machine.
    #[command(subcommand)]
    Agents(commands::agents::Agents),
    /// Check reports.
    #[command(subcommand)]
    Report(commands::report::Report),
    /// Check plans.
    #[command(subcommand)]
    Plan(commands::plan::Plan),
    /// Read what providers say of their limits.
    #[command(subcommand)]
    Wait(commands::wait::Wait),
    /// Print the JSON Schema of a file, for editors.
    Schema(commands::schema::Schema),
    /// Print a completion script for a shell.
    Completions(commands::completions::Completions),
}
