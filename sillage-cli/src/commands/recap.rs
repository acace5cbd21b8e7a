//! `sillage recap`: what came of a run, the result first (R28).

use clap::Args;
use serde::Serialize;
use sillage::core::ports::Workspace;
use sillage::core::recap::Recap as Told;
use sillage::core::run::Run;
use sillage::core::time::Timestamp;
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
    let story = arguments.chosen.read(global)?;
    let data = global.data_folder()?;
    let recap = drive::block_on(async {
        let workspace = GitWorkspace::new(&data).ok();
        Ok(of(
            &story.run,
            story.seen_at(),
            workspace.as_ref().map(|workspace| workspace as &dyn Workspace),
        )
        .await)
    })?;
    if arguments.markdown {
        output.verbatim(&recap.markdown())?;
    } else {
        tell(&recap, output)?;
        output.json(&Answer {
            ok: true,
            recap: &recap,
        })?;
    }
    Ok(Exit::Complete)
}

/// The recap of the run as it stands at this moment, with what the integration branch changes. A repository that is gone only leaves that unknown.
pub(crate) async fn of(run: &Run, at: Timestamp, workspace: Option<&dyn Workspace>) -> Told {
    let recap = Told::of(run, at);
    let (Some(workspace), Some(repository), Some(tip)) = (workspace, &run.definition().repository, run.tip())
    else {
        return recap;
    };
    match workspace.diff(&repository.root, &repository.base, tip).await {
        Ok(diff) => recap.with_diff(diff),
        Err(_) => recap,
    }
}

/// Tells the recap to a person.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn tell(recap: &Told, output: &mut Output) -> Result<(), Failure> {
    let text = recap.text(output.size().width);
    output.line(visible(text.trim_end()))?;
    Ok(())
}
