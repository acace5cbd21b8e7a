//! `sillage completions`: a script that makes a shell complete our commands.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Completions, output: &mut Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "sillage", &mut script);
    output.verbatim(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Complete)
}
