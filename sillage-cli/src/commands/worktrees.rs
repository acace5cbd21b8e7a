//! `sillage worktrees`: the worktrees that are left, and what holds each (R18).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use sillage::Reader;
use sillage::core::id::RunId;
use sillage::core::ports::Workspace as _;
use sillage::core::ports::store::Which;
use sillage::core::ports::workspace::WorktreeState;
use sillage::core::run::RunDefinition;
use sillage::workspace::GitWorkspace;

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Newest runs that are looked at where none is named.
const LOOKED_AT: usize = 200;

/// Arguments of `worktrees`.
#[derive(Debug, Args)]
pub(crate) struct Worktrees {
    /// The run [default: all].
    run: Option<RunId>,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    worktrees: &'a [Left],
    /// Repositories that could not be looked at.
    unknown: &'a [Unknown],
}

/// A worktree that is left.
#[derive(Serialize)]
struct Left {
    run: RunId,
    repository: PathBuf,
    #[serde(flatten)]
    state: WorktreeState,
}

/// A repository that could not be looked at.
#[derive(Serialize)]
struct Unknown {
    repository: PathBuf,
    why: String,
}

/// Lists them.
pub(crate) fn run(arguments: &Worktrees, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let (left, unknown) = drive::block_on(async {
        let repositories = repositories(arguments, &data).await?;
        let workspace = GitWorkspace::new(&data).map_err(|error| Failure::new(Kind::Io, error))?;
        let (mut left, mut unknown) = (Vec::new(), Vec::new());
        for (repository, runs) in repositories {
            match list(&workspace, &repository, &runs).await {
                Ok(found) => left.extend(found),
                Err(why) => unknown.push(Unknown { repository, why }),
            }
        }
        Ok((left, unknown))
    })?;
    tell(&left, &unknown, output)?;
    output.json(&Answer {
        ok: true,
        worktrees: &left,
        unknown: &unknown,
    })?;
    Ok(Exit::Complete)
}

/// The definitions of the runs, by the repository that they work in.
async fn repositories(
    arguments: &Worktrees,
    data: &Path,
) -> Result<BTreeMap<PathBuf, Vec<RunDefinition>>, Failure> {
    let reader = Reader::open(data).await?;
    let runs = match &arguments.run {
        Some(run) => vec![run.clone()],
        None => reader
            .runs(Which::All, LOOKED_AT)
            .await?
            .into_iter()
            .map(|run| run.run)
            .collect(),
    };
    let mut repositories: BTreeMap<PathBuf, Vec<RunDefinition>> = BTreeMap::new();
    for run in runs {
        let definition = reader.definition(&run).await?;
        if let Some(repository) = &definition.repository {
            repositories
                .entry(repository.root.clone())
                .or_default()
                .push(definition);
        }
    }
    Ok(repositories)
}

/// The worktrees of these runs in a repository. What holds one depends on its run's integration branch, so that it is
/// asked anew for each run that has any left.
async fn list(
    workspace: &GitWorkspace,
    repository: &Path,
    runs: &[RunDefinition],
) -> Result<Vec<Left>, String> {
    let mut left = Vec::new();
    let mut seen: Option<Vec<PathBuf>> = None;
    for run in runs {
        let nothing = seen
            .as_ref()
            .is_some_and(|paths| !paths.iter().any(|path| is_of(path, &run.run)));
        if nothing {
            continue;
        }
        let states = workspace
            .list(repository, &run.integration_branch())
            .await
            .map_err(|error| error.to_string())?;
        seen = Some(states.iter().map(|state| state.path.clone()).collect());
        let states = states.into_iter().filter(|state| is_of(&state.path, &run.run));
        left.extend(states.map(|state| Left {
            run: run.run.clone(),
            repository: repository.to_owned(),
            state,
        }));
    }
    Ok(left)
}

/// Whether a worktree is the run's: its path ends with the run's name and the step's.
fn is_of(path: &Path, run: &RunId) -> bool {
    path.parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name == run.as_str())
}

fn tell(left: &[Left], unknown: &[Unknown], output: &mut Output) -> Result<(), Failure> {
    for worktree in left {
        let path = worktree.state.path.display().to_string();
        let path = output.paint(Tone::Strong, path);
        let branch = worktree.state.branch.as_deref().unwrap_or("no branch");
        output.line(format_args!("{path}\n  {}", visible(branch)))?;
        for hold in &worktree.state.held_by {
            output.line(format_args!("  held: {}", visible(&hold.to_string())))?;
        }
    }
    for unknown in unknown {
        let warning = output.paint(Tone::Warning, "warning");
        let repository = unknown.repository.display().to_string();
        output.line(format_args!(
            "{warning}: {}: {}",
            visible(&repository),
            visible(&unknown.why)
        ))?;
    }
    if left.is_empty() && unknown.is_empty() {
        output.line("No worktree is left.")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_is_its_runs_whose_name_its_folder_has() {
        let run = |name: &str| RunId::new(name).unwrap();
        let path = Path::new("/data/worktrees/key/20260101-000000-aaaa/hull");
        assert!(is_of(path, &run("20260101-000000-aaaa")));
        assert!(!is_of(path, &run("20260101-000000-aaa")));
        assert!(!is_of(path, &run("hull")));
        assert!(!is_of(Path::new("/"), &run("hull")));
    }
}
