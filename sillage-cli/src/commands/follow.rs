//! `sillage follow`: a run as it goes on, whichever process drives it.

use clap::Args;
use sillage::Reader;
use sillage::core::id::Seq;

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::progress::{self, Answers};
use crate::reading::Chosen;

/// Arguments of `follow`.
#[derive(Debug, Args)]
pub(crate) struct Follow {
    #[command(flatten)]
    chosen: Chosen,
}

/// Shows what happened and goes on until the run is over; the exit code is the run's. A run that was cut counts as
/// interrupted.
pub(crate) fn run(arguments: &Follow, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    drive::block_on(async {
        let reader = Reader::open(&data).await?;
        let run = arguments.chosen.summary(&reader).await?.run;
        let heard = reader.heard(&run).await?;
        let items = reader.follow(&run, Seq::FIRST).await?;
        let answers = match reader.is_live() {
            true => Answers::There(reader),
            // What it holds is let go of.
            false => Answers::Nobody,
        };
        let Some(run) = progress::show(None, items, heard, &answers, output).await? else {
            return Err(Failure::new(Kind::Defect, format_args!("run {run} has no facts")));
        };
        let exit = drive::outcome(&run, output)?;
        if run.end().is_some() {
            return Ok(exit);
        }
        let (note, id) = (output.paint(Tone::Warning, "note"), run.id());
        output.line(format_args!(
            "{note}: nobody drives run {id}; `sillage resume {id}` goes on with it"
        ))?;
        Ok(Exit::Interrupted)
    })
}
