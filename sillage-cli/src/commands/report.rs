//! `sillage report check`: the report in an agent's answer, held against its rules (W15–W18).

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};
use serde::Serialize;
use sillage::core::report::{self, Expected, Outcome, Report as Found};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Commands below `report`.
#[derive(Debug, Subcommand)]
pub(crate) enum Report {
    /// Find the report in an agent's final answer and check it: every fault at once, with its place.
    Check {
        /// The answer; `-` for standard input.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    #[serde(flatten)]
    report: &'a Found,
}

/// Carries out a command below `report`.
pub(crate) fn run(command: &Report, output: &mut Output) -> Result<Exit, Failure> {
    let Report::Check { file } = command;
    let answer = input::read(file)?;
    let text = String::from_utf8_lossy(&answer);
    match report::read(&text, &Expected::default(), false) {
        Ok(report) => {
            output.json(&Answer {
                ok: true,
                report: &report,
            })?;
            tell(&report, output)?;
            Ok(Exit::Complete)
        }
        Err(faults) => Err(Failure::Faulty {
            file: input::name(file),
            faults,
        }),
    }
}

fn tell(report: &Found, output: &mut Output) -> Result<(), Failure> {
    let outcome = match report.outcome {
        Outcome::Complete => output.paint(Tone::Good, "complete"),
        Outcome::Partial => output.paint(Tone::Warning, "partial"),
        Outcome::Blocked => output.paint(Tone::Bad, "blocked"),
    };
    output.line(format_args!("{outcome}: {}", visible(&report.summary)))?;
    for blocker in &report.blockers {
        output.line(format_args!("  blocked by: {}", visible(&blocker.title)))?;
    }
    Ok(())
}
