//! What is left, as far as it can be found, and which of the runs that it is of are over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sillage::core::id::RunId;
use sillage::core::ports::Workspace as _;
use sillage::workspace::{GitWorkspace, Surveyed, Trashed};
use sillage::{ReadError, Reader};

use crate::failure::{Failure, Kind};

/// Where worktrees are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// In the repository of the folder that the program runs in; everywhere where there is none.
    Here,
    /// In every repository that the data folder knows.
    Everywhere,
}

/// Worktrees and trash of a data folder.
pub(crate) struct Found {
    pub(crate) workspace: GitWorkspace,
    pub(crate) left: Vec<Surveyed>,
    pub(crate) trash: Vec<Trashed>,
    pub(crate) unknown: Vec<Unknown>,
    /// The repository that was looked at alone; none: all were.
    pub(crate) alone: Option<PathBuf>,
}

/// A repository that could not be looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Unknown {
    pub(crate) repository: PathBuf,
    pub(crate) why: String,
}

impl Found {
    /// Looks for them.
    ///
    /// # Errors
    /// When no run was ever launched, or the data folder cannot be read. A repository that cannot be looked at is told
    /// and hides no other.
    pub(crate) async fn look(data: &Path, place: Where) -> Result<Found, Failure> {
        Self::look_with(open(data)?, place).await
    }

    /// The same with a workspace that was opened before.
    ///
    /// # Errors
    /// As [`Found::look`].
    pub(crate) async fn look_with(workspace: GitWorkspace, place: Where) -> Result<Found, Failure> {
        let io = |error| Failure::new(Kind::Io, error);
        let here = match place {
            Where::Here => here(&workspace).await,
            Where::Everywhere => None,
        };
        let repositories = match &here {
            Some(root) => vec![root.clone()],
            None => workspace.repositories().map_err(io)?,
        };
        let (mut left, mut unknown) = (Vec::new(), Vec::new());
        for repository in repositories {
            match workspace.survey(&repository, integration).await {
                Ok(found) => left.extend(found),
                Err(error) => unknown.push(Unknown {
                    repository,
                    why: error.to_string(),
                }),
            }
        }
        let mut trash = workspace.trash().await.map_err(io)?;
        if let Some(root) = &here {
            trash.retain(|trashed| trashed.note.as_ref().is_some_and(|note| note.repository == *root));
        }
        Ok(Found {
            workspace,
            left,
            trash,
            unknown,
            alone: here,
        })
    }
}

/// The workspace of a data folder in which there was any run.
///
/// # Errors
/// When no run was ever launched, or the folder cannot be used.
pub(crate) fn open(data: &Path) -> Result<GitWorkspace, Failure> {
    if !data.join("store").exists() && !data.join("git").exists() {
        return Err(ReadError::NoRuns.into());
    }
    GitWorkspace::new(data).map_err(|error| Failure::new(Kind::Io, error))
}

/// The repository of the folder that the program runs in. One that cannot be used has no worktree of ours.
async fn here(workspace: &GitWorkspace) -> Option<PathBuf> {
    let folder = std::env::current_dir().ok()?;
    let found = workspace.inspect(&folder).await.ok()??;
    Some(found.root)
}

/// The integration branch of a run.
pub(crate) fn integration(run: &str) -> String {
    format!("sillage/{run}")
}

/// Where the runs stand that worktrees are of.
pub(crate) struct Runs {
    states: BTreeMap<String, State>,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// It is over.
    Over,
    /// A process drives it.
    AtWork,
    /// It is not over and no process drives it.
    Cut,
}

impl Runs {
    /// Looks these runs up, with nothing held once this returns.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn read<'a>(
        data: &Path,
        runs: impl IntoIterator<Item = &'a str>,
    ) -> Result<Runs, Failure> {
        let mut states = BTreeMap::new();
        let reader = match Reader::open(data).await {
            Ok(reader) => reader,
            // Worktrees of runs whose log is gone: nobody can go on with them.
            Err(ReadError::NoRuns) => return Ok(Runs { states }),
            Err(error) => return Err(error.into()),
        };
        let driven = reader.driven().await?;
        let names: BTreeSet<&str> = runs.into_iter().collect();
        for name in names {
            let Ok(id) = RunId::new(name) else { continue };
            let state = match reader.run(&id).await {
                Ok(_) if driven.contains(&id) => State::AtWork,
                Ok(summary) if summary.finished => State::Over,
                Ok(_) => State::Cut,
                Err(ReadError::NoSuchRun(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            states.insert(name.to_owned(), state);
        }
        Ok(Runs { states })
    }

    /// Whether the store has the run.
    pub(crate) fn knows(&self, run: &str) -> bool {
        self.states.contains_key(run)
    }

    /// Where a run stands. One that the store does not have is over: nobody can go on with it.
    pub(crate) fn state(&self, run: &str) -> State {
        self.states.get(run).cloned().unwrap_or(State::Over)
    }
}

/// Why a run's worktree is left alone whatever else holds it.
pub(crate) fn at_work(run: &str) -> String {
    format!("run {run} is at work: `sillage stop {run}` first")
}
