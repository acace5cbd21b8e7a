//! The program `relais`: a gateway over the agents of the settings file.

mod arguments;
mod failure;
mod serve;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use sillage_acp::{launcher, scripted_agent};
use sillage_core::causes::with_causes;

use crate::arguments::{Arguments, Itself};
use crate::failure::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let told = match arguments.itself {
        Some(Itself::LaunchAgent(words)) => launch(words.words),
        Some(Itself::ScriptedAgent(words)) => play(words.words),
        None => serve::serve(&arguments.options).map(|()| ExitCode::SUCCESS),
    };
    told.unwrap_or_else(|failure| {
        // Whoever reads standard error may be gone.
        let _ = writeln!(std::io::stderr(), "relais: {}", with_causes(&failure));
        failure.exit()
    })
}

/// Starts an agent and guards it to its end. Its exit code is the agent's.
fn launch(words: Vec<std::ffi::OsString>) -> Result<ExitCode, Failure> {
    launcher::launch(words).map_err(|error| Failure::Launch(error.to_string()))
}

/// Plays a script as an agent on standard input and output.
fn play(words: Vec<std::ffi::OsString>) -> Result<ExitCode, Failure> {
    let arguments = scripted_agent::Args::parse(words).map_err(Failure::Usage)?;
    Ok(scripted_agent::run(&arguments))
}
