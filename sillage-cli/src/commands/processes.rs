//! Hidden commands: what this program is when it starts itself.

use std::ffi::OsString;

use clap::Args;
use sillage::acp::{launcher, scripted_agent};

use crate::exit::Exit;
use crate::failure::{Failure, Kind, with_causes};

/// Words that are another program's.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Plays a script as an agent on standard input and output. Does not come back: its exit code is the script's.
pub(crate) fn scripted_agent(words: Words) -> Result<Exit, Failure> {
    let arguments =
        scripted_agent::Args::parse(words.words).map_err(|words| Failure::new(Kind::Usage, words))?;
    Ok(Exit::Other(scripted_agent::run(&arguments)))
}

/// Starts an agent and guards it to its end, or prepares this process and becomes the agent. Its exit code is the
/// agent's.
pub(crate) fn launch_agent(words: Words) -> Result<Exit, Failure> {
    let code =
        launcher::launch(words.words).map_err(|error| Failure::new(Kind::OutOfReach, with_causes(&error)))?;
    Ok(Exit::Other(code))
}
