//! The command line of Sillage.

mod adapters;
mod arguments;
mod ceilings;
mod commands;
mod drive;
mod exit;
mod failure;
mod input;
mod left_behind;
mod output;
mod places;
mod progress;
mod reading;
mod runtimes;
mod signals;
mod terminal;

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::terminal::{ColorChoice, Terminal};

fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => run(Arguments {
            global: arguments.global.with_environment(),
            ..arguments
        }),
        Err(error) => misunderstood(&error),
    }
    .into()
}

/// Carries out the command and tells what went wrong, if anything did.
fn run(arguments: Arguments) -> Exit {
    let mut output = Output::stdout(arguments.global.json, Terminal::detect(arguments.global.color));
    // The panic's own words and place have gone to standard error by then.
    let ended = catch_unwind(AssertUnwindSafe(|| commands::run(arguments, &mut output)))
        .unwrap_or_else(|_| Err(Failure::defect()))
        .and_then(|exit| Ok(output.flush().map(|()| exit)?));
    ended.unwrap_or_else(|failure| {
        // What standard output refuses is told on standard error; told nowhere, it still decides the exit code.
        if output.failure(&failure).and_then(|()| output.flush()).is_err() {
            let _ = output.failure(&failure);
        }
        failure.exit()
    })
}

/// Help and version are answers; the rest is a mistake on the command line, told as JSON to a program that asked for it.
fn misunderstood(error: &clap::Error) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // The only failure is a reader that is gone.
        let _ = error.print();
        return Exit::Complete;
    }
    let asked_for_json = std::env::args_os()
        .skip(1)
        .take_while(|word| word != "--")
        .any(|word| word == "--json");
    if asked_for_json {
        let message = error.render().to_string();
        let message = message.trim_start_matches("error: ").trim_end();
        let mut output = Output::stdout(true, Terminal::detect(ColorChoice::Never));
        let _ = output
            .failure(&Failure::new(Kind::Usage, message))
            .and_then(|()| output.flush());
    } else {
        let _ = error.print();
        let _ = std::io::stderr().flush();
    }
    Exit::Faulty
}
