//! `sillage retry` and `sillage skip`: what a person asks of one step of a run (W18).

use clap::Args;
use serde::Serialize;
use sillage::core::id::RunId;
use sillage::core::run::{Refused, Run, StepCommand};
use sillage::{EngineError, ReadError, Reader};

use crate::adapters::Adapters;
use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::left_behind;
use crate::output::Output;
use crate::reading::step_named;
use crate::runtimes::{Runtime, TokenFile};
use crate::terminal::visible;

/// The step that is meant.
#[derive(Debug, Args)]
struct Meant {
    /// The run.
    run: RunId,
    /// The agent, as `sillage status` names it.
    agent: String,
    #[command(flatten)]
    token: TokenFile,
}

/// Arguments of `retry`.
#[derive(Debug, Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    meant: Meant,
    /// Also when it succeeded.
    #[arg(long)]
    again: bool,
}

/// Arguments of `skip`.
#[derive(Debug, Args)]
pub(crate) struct Skip {
    #[command(flatten)]
    meant: Meant,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    run: &'a RunId,
    agent: &'a str,
    command: StepCommand,
}

/// Has the step done again, and what follows it: by whoever drives the run, else here, to the run's end.
pub(crate) fn retry(arguments: &Retry, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let command = match arguments.again {
        true => StepCommand::Redo,
        false => StepCommand::Retry,
    };
    carry_out(&arguments.meant, command, global, output)
}

/// Has the run go on without the step: by whoever drives the run, else here, to the run's end.
pub(crate) fn skip(arguments: &Skip, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    carry_out(&arguments.meant, StepCommand::Skip, global, output)
}

fn carry_out(
    meant: &Meant,
    command: StepCommand,
    global: &Global,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    drive::block_on(async {
        let reader = Reader::open(&data).await?;
        let known = reader.load(&meant.run).await?;
        let step = step_named(&known, &meant.agent)?;
        if reader.is_live() {
            let told = reader.command(&meant.run, step, command).await;
            told.map_err(|error| not_commanded(error, meant))?;
            return tell(meant, command, output);
        }
        // Nobody drives it. The store has to be let go of before it is opened for good.
        drop(reader);
        let adapters = Adapters::open(&data)?;
        left_behind::tell(&adapters, output).await?;
        let runtime = Runtime::of_run(known.definition(), &meant.token, &adapters, global).await?;
        let taken_up = adapters
            .engine(&runtime)
            .take_up(&meant.run, command.on(step))
            .await;
        let handle = taken_up.map_err(|error| cut_or(error, &known, meant))?;
        drive::to_its_end(&adapters, handle, Some(known), output).await
    })
}

/// Why the step of a run that nobody drives is not seen to. Where its engine is gone, what the log tells to be under way
/// is not: a resume goes on with it.
fn cut_or(error: EngineError, known: &Run, meant: &Meant) -> Failure {
    let EngineError::Refused(Refused::NotOver { agent, .. } | Refused::Ending { agent }) = &error else {
        return error.into();
    };
    if known.end().is_some() {
        return error.into();
    }
    let words = format!(
        "run {} was cut before {} was over, and nobody drives it",
        meant.run,
        visible(agent)
    );
    let hint = format!(
        "`sillage resume {}` goes on with it, this agent included",
        meant.run
    );
    Failure::new(Kind::Usage, words).hint(hint)
}

fn tell(meant: &Meant, command: StepCommand, output: &mut Output) -> Result<Exit, Failure> {
    let agent = visible(&meant.agent);
    output.line(match command {
        StepCommand::Retry | StepCommand::Redo => {
            format!("{agent} is tried again, and what follows it and ran without that is done again")
        }
        StepCommand::Skip => format!("{agent} is skipped: what follows it runs without its report"),
    })?;
    output.json(&Answer {
        ok: true,
        run: &meant.run,
        agent: &meant.agent,
        command,
    })?;
    Ok(Exit::Complete)
}

/// Why the process that holds the store did not do it.
fn not_commanded(error: ReadError, meant: &Meant) -> Failure {
    if let ReadError::Refused(words) = error {
        return Failure::new(Kind::Usage, words);
    }
    if matches!(error, ReadError::Over { .. } | ReadError::NotDriven(_)) {
        let words = format!(
            "the process that holds the store drives another run than {}",
            meant.run
        );
        return Failure::new(Kind::Store, words).hint("ask again once that run is over");
    }
    error.into()
}
