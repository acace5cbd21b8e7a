//! `sillage schema`: the JSON Schemas with which editors complete and check our files (W11, A12).

use clap::{Args, ValueEnum};
use sillage::core::{plan, project, report, settings, task};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The kind of file.
    of: Of,
}

/// Files that have a schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    /// A task file.
    Task,
    /// The settings file.
    Settings,
    /// A project file, `.sillage/project.yaml`.
    Project,
    /// The report that an agent returns.
    Report,
    /// The plan that a coordinator writes.
    Plan,
}

/// Prints the schema.
pub(crate) fn run(arguments: &Schema, output: &mut Output) -> Result<Exit, Failure> {
    output.verbatim(match arguments.of {
        Of::Task => task::SCHEMA,
        Of::Settings => settings::SCHEMA,
        Of::Project => project::SCHEMA,
        Of::Report => report::SCHEMA,
        Of::Plan => plan::SCHEMA,
    })?;
    Ok(Exit::Complete)
}
