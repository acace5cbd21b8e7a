//! `sillage resume`: takes up a run that was cut, stopped or failed, and shows it to its end.

use clap::Args;
use sillage::EngineError;
use sillage::core::id::RunId;
use sillage::core::ports::store::Which;
use sillage::core::run::Refused;

use crate::adapters::Adapters;
use crate::arguments::Global;
use crate::ceilings::{self, Ceilings};
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::left_behind;
use crate::output::Output;
use crate::reading::is_left;
use crate::runtimes::{Runtime, TokenFile};

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run [default: the newest that is not over, else the newest that did not succeed].
    run: Option<RunId>,
    #[command(flatten)]
    token: TokenFile,
    #[command(flatten)]
    ceilings: Ceilings,
}

/// Resumes and follows a run; the exit code is the run's. One that is complete or partial is left as it is.
pub(crate) fn run(arguments: &Resume, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    drive::block_on(async {
        let adapters = Adapters::open(&data)?;
        left_behind::tell(&adapters, output).await?;
        let run = match &arguments.run {
            Some(run) => run.clone(),
            None => choose(&adapters).await?,
        };
        let known = adapters.load(&run).await?;
        let runtime = Runtime::of_run(known.definition(), &arguments.token, &adapters, global).await?;
        let change = arguments.ceilings.change();
        ceilings::tell_exchanged(&change, known.budget(), output)?;
        match adapters.engine(&runtime).resume_with(&run, change).await {
            Ok(handle) => drive::to_its_end(&adapters, handle, Some(known), output).await,
            Err(EngineError::Refused(Refused::NothingLeft(_))) => {
                let over = adapters.load(&run).await?;
                output.line(format_args!(
                    "run {run} is {}: nothing is left to resume",
                    over.word()
                ))?;
                drive::outcome(&over, output)
            }
            Err(error) => Err(error.into()),
        }
    })
}

async fn choose(adapters: &Adapters) -> Result<RunId, Failure> {
    let unfinished = adapters.store.runs(Which::Unfinished, 1).await?;
    if let Some(run) = unfinished.into_iter().next() {
        return Ok(run.run);
    }
    let runs = adapters.store.runs(Which::All, 100).await?;
    let newest = runs.iter().find(|run| is_left(run)).or(runs.first());
    newest.map(|run| run.run.clone()).ok_or_else(|| {
        Failure::new(Kind::Usage, "there is no run to resume").hint("`sillage run TASK` launches one")
    })
}
