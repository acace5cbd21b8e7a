//! The commands, one module each: its arguments, and what it does.

pub(crate) mod accounts;
pub(crate) mod agents;
pub(crate) mod by_hand;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod estimate;
pub(crate) mod exchanges;
pub(crate) mod follow;
pub(crate) mod init;
pub(crate) mod journal;
pub(crate) mod permissions;
pub(crate) mod plan;
pub(crate) mod processes;
pub(crate) mod recap;
pub(crate) mod relais;
pub(crate) mod relaunch;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod wait;
pub(crate) mod worktrees;

use crate::arguments::{Arguments, Command};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Carries out a command; the answer goes to `output`.
///
/// # Errors
/// With what went wrong, in words for the person.
pub(crate) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let global = &arguments.global;
    match arguments.command {
        Command::Init(init) => init::run(&init, output),
        Command::Check(check) => check::run(&check, global, output),
        Command::Estimate(estimate) => estimate::run(&estimate, global, output),
        Command::Agents(agents) => agents::run(&agents, global, output),
        Command::Run(arguments) => run::run(&arguments, global, output),
        Command::Resume(resume) => resume::run(&resume, global, output),
        Command::Status(status) => status::run(&status, global, output),
        Command::Follow(follow) => follow::run(&follow, global, output),
        Command::Stop(stop) => stop::run(&stop, global, output),
        Command::Accounts(accounts) => accounts::run(&accounts, global, output),
        Command::Retry(arguments) => by_hand::retry(&arguments, global, output),
        Command::Skip(arguments) => by_hand::skip(&arguments, global, output),
        Command::Relaunch(arguments) => relaunch::run(&arguments, global, output),
        Command::Relais(arguments) => relais::run(&arguments, global, output),
        Command::Diff(arguments) => diff::run(&arguments, global, output),
        Command::Restore(arguments) => restore::run(&arguments, global, output),
        Command::Permissions(permissions) => permissions::run(&permissions, global, output),
        Command::Exchanges(exchanges) => exchanges::run(&exchanges, global, output),
        Command::Journal(journal) => journal::run(&journal, global, output),
        Command::Recap(recap) => recap::run(&recap, global, output),
        Command::Worktrees(worktrees) => worktrees::run(&worktrees, global, output),
        Command::Clean(clean) => clean::run(&clean, global, output),
        Command::Demo(demo) => demo::run(&demo, output),
        Command::ScriptedAgent(words) => processes::scripted_agent(words),
        Command::LaunchAgent(words) => processes::launch_agent(words),
        Command::Report(report) => report::run(&report, output),
        Command::Plan(plan) => plan::run(&plan, output),
        Command::Wait(wait) => wait::run(&wait, global, output),
        Command::Schema(schema) => schema::run(&schema, output),
        Command::Completions(completions) => completions::run(&completions, output),
    }
}
