//! `sillage recap`: what came of a run, the result first (R28).

use clap::Args;
use serde::Serialize;
use sillage::SystemClock;
use sillage::core::ports::{Clock as _, Workspace as _};
use sillage::core::recap::Recap as Told;
use sillage::core::run::Run;
use sillage::workspace::GitWorkspace;

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::reading::Chosen;
use crate::terminal::visible;

/// Arguments of `recap`.
#[derive(Debug, Args)]
pub(crate) struct Recap {
    #[command(flatten)]
    chosen: Chosen,
    /// As Markdown, for a pull request.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    #[serde(flatten)]
    recap: &'a Told,
}

/// Tells the recap.
pub(crate) fn run(arguments: &Recap, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let run = arguments.chosen.read(global)?.run;
    let recap = with_diff(&run, Told::of(&run, SystemClock.now()), global)?;
    if arguments.markdown {
        output.verbatim(&recap.markdown())?;
    } else {
        let text = recap.text(output.size().width);
        output.line(visible(text.trim_end()))?;
        output.json(&Answer {
            ok: true,
            recap: &recap,
        })?;
    }
    Ok(Exit::Complete)
}

/// The recap with what the integration branch changes. A repository that is gone only leaves that unknown.
fn with_diff(run: &Run, recap: Told, global: &Global) -> Result<Told, Failure> {
    let (Some(repository), Some(tip)) = (&run.definition().repository, run.tip()) else {
        return Ok(recap);
    };
    let data = global.data_folder()?;
    let diff = drive::block_on(async {
        let workspace = GitWorkspace::new(&data).ok();
        let diff = match &workspace {
            Some(workspace) => workspace.diff(&repository.root, &repository.base, tip).await.ok(),
            None => None,
        };
        Ok(diff)
    })?;
    Ok(match diff {
        Some(diff) => recap.with_diff(diff),
        None => recap,
    })
}
