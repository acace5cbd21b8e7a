//! `sillage stop`: asks the process that drives a run to stop it (R4).

use clap::Args;
use serde::Serialize;
use sillage::core::id::RunId;
use sillage::{ReadError, Reader};

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `stop`.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The run [default: the newest that is being driven].
    run: Option<RunId>,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    run: &'a RunId,
    /// Whether it was asked before, and does not wait for its sessions now.
    forced: bool,
}

/// Asks the run to stop and does not wait for it; asked again, it is forced.
pub(crate) fn run(arguments: &Stop, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let (run, asked) = drive::block_on(async {
        let reader = Reader::open(&data).await?;
        let run = choose(arguments, &reader).await?;
        let asked = reader.stop(&run).await?;
        Ok((run, asked))
    })?;
    output.line(match asked.again {
        false => format!(
            "run {run} is asked to stop: its agents end what they are doing; `sillage stop {run}` again forces it"
        ),
        true => format!("run {run} was asked before: its sessions are closed now"),
    })?;
    output.json(&Answer {
        ok: true,
        run: &run,
        forced: asked.again,
    })?;
    Ok(Exit::Complete)
}

async fn choose(arguments: &Stop, reader: &Reader) -> Result<RunId, ReadError> {
    if let Some(run) = &arguments.run {
        return Ok(run.clone());
    }
    match reader.driven().await?.pop() {
        Some(driven) => Ok(driven),
        // It says what is the matter with it.
        None => Ok(reader.newest().await?.run),
    }
}
