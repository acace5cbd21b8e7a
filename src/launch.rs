//! From a task file to the definition of a run: everything that is read, resolved and refused before launch.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sillage_core::document::{self, Format, MAX_BYTES};
use sillage_core::fault::Fault;
use sillage_core::folders::Folders;
use sillage_core::graph::Graph;
use sillage_core::id::RunId;
use sillage_core::ports::runtime::{ModelOffer, PermissionPolicy};
use sillage_core::ports::store::{Store, StoreError};
use sillage_core::ports::workspace::{Workspace, WorkspaceError};
use sillage_core::run::{Budget, RunDefinition, RunGateway, RunPolicy, RunRepository, worktrees};
use sillage_core::settings::WaitSettings;
use sillage_core::task::{self, Autocompact, Task, WorktreeWish};

use crate::project::{BadFolder, Project, ProjectError};

/// The kind of document that keeps a task's versions in the store, by the canonical path of its file (W1, W5).
pub const TASK_DOCUMENT: &str = "task";

/// Sessions at work at once where neither task nor settings say.
const PARALLEL: NonZeroU32 = NonZeroU32::new(4).unwrap();

/// What a run is launched from.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    /// The task's file.
    pub task_file: PathBuf,
    /// The models that the runtime offers; none: models and efforts are not checked.
    pub offers: Option<Vec<ModelOffer>>,
    /// The gateways that hold its sessions; empty: the engine's own runtime does.
    pub gateways: Vec<RunGateway>,
    /// The program's limit of sessions at work at once.
    pub parallel: Option<NonZeroU32>,
    /// What happens to agents' permission requests.
    pub permissions: PermissionPolicy,
    /// Ceilings of the run; none: it has none.
    pub budget: Option<Budget>,
    /// Whether the first failure keeps the rest from being begun.
    pub fail_fast: bool,
    /// How the run waits when a provider fails.
    pub waits: WaitSettings,
    /// The folder of the program's data, in which the run's own files are written. No agent reads or writes there but
    /// in its own worktree.
    pub data: PathBuf,
    /// Other places of the program's own that no agent reads or writes: its settings. They need not exist.
    pub closed: Vec<PathBuf>,
}

/// Why a run was not launched. Nothing was started, and nothing was written but a version of the task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The task's file cannot be read.
    #[error("cannot read the task file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The task is faulty.
    #[error("the task file {} is faulty", path.display())]
    Faulty {
        /// The file.
        path: PathBuf,
        /// All that is wrong in it.
        faults: Vec<Fault>,
    },
    /// The project is not right.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// Folders are missing or cannot be read.
    #[error("{}", all(.0))]
    Folders(Vec<BadFolder>),
    /// An agent must have a worktree, and there is no repository.
    #[error(
        "agent `{agent}` asks for a worktree, but {} is in no git repository: run `git init` there and commit, or \
         write `worktree: never`", folder.display()
    )]
    NoRepository {
        /// The agent.
        agent: String,
        /// The folder that it would work in.
        folder: PathBuf,
    },
    /// The task asks for something that this version cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// The repository cannot be worked in.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn all(folders: &[BadFolder]) -> String {
    let told: Vec<String> = folders
        .iter()
        .map(|bad| match std::error::Error::source(bad) {
            Some(source) => format!("{bad}: {source}"),
            None => bad.to_string(),
        })
        .collect();
    told.join("; ")
}

/// Reads and resolves all that a run of this task needs, and keeps the task's text as a version. Says too what is
/// worth a word before launch.
///
/// # Errors
/// [`LaunchError`]: nothing was started.
pub async fn prepare(
    request: &LaunchRequest,
    run: RunId,
    store: &dyn Store,
    workspace: &dyn Workspace,
) -> Result<(RunDefinition, Vec<String>), LaunchError> {
    let unreadable = |source| LaunchError::Unreadable {
        path: request.task_file.clone(),
        source,
    };
    let file = fs::canonicalize(&request.task_file).map_err(unreadable)?;
    let bytes = read_bounded(&file).map_err(unreadable)?;
    let task = read_task(&request.task_file, &bytes, request.offers.as_deref())?;

    let folder = file.parent().unwrap_or(Path::new("/")).to_path_buf();
    let project = Project::of(&folder)?;
    let (folders, bad) = project.entrust(&folder, &task.folders);
    if !bad.is_empty() {
        return Err(LaunchError::Folders(bad));
    }
    let step_folder = step_folder(&folders, &project);
    let parallel = parallel(task.limits.parallel, request.parallel);
    let (repository, worktrees, warnings) = place(&task, &folders, &step_folder, parallel, workspace).await?;
    let data = in_fact(&request.data);
    let closed = request.closed.iter().map(|place| in_fact(place));
    let closed: Vec<PathBuf> = std::iter::once(data.clone()).chain(closed).collect();
    let definition = RunDefinition {
        files: data.join("runs").join(run.as_str()),
        run,
        task_file: Some(file.clone()),
        task_version: keep_version(store, &file, &bytes).await?,
        project: Some(project.name),
        folders,
        step_folder,
        repository,
        worktrees,
        parallel,
        accounts: accounts(&task, request.offers.as_deref().unwrap_or_default()),
        relaunch_of: None,
        gateways: request.gateways.clone(),
        foretold: None,
        policy: RunPolicy {
            permissions: request.permissions,
            closed,
            budget: request.budget,
            fail_fast: request.fail_fast,
            autocompact_tokens: autocompact(&task),
            ..request.waits.of(RunPolicy::default())
        },
        task: Arc::new(task),
    };
    Ok((definition, warnings))
}

/// The path without links, as far as it exists.
fn in_fact(path: &Path) -> PathBuf {
    let found = path
        .ancestors()
        .find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
    match found {
        Some((above, real)) => match path.strip_prefix(above) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            Ok(_) | Err(_) => real,
        },
        None => path.to_path_buf(),
    }
}

/// What a launch of this task would say of the repository that it writes in: what is worth a word, or why it would be
/// refused.
///
/// # Errors
/// [`LaunchError::Workspace`], [`LaunchError::NoRepository`]: a launch would be refused so.
pub async fn look_at_repository(
    task: &Task,
    folders: &Folders,
    project: &Project,
    workspace: &dyn Workspace,
) -> Result<Vec<String>, LaunchError> {
    let (step_folder, parallel) = (
        step_folder(folders, project),
        parallel(task.limits.parallel, None),
    );
    let (_, _, warnings) = place(task, folders, &step_folder, parallel, workspace).await?;
    Ok(warnings)
}

/// Where the run works: its repository, who gets a worktree of it, and what is worth a word about that.
async fn place(
    task: &Task,
    folders: &Folders,
    step_folder: &Path,
    parallel: NonZeroU32,
    workspace: &dyn Workspace,
) -> Result<(Option<RunRepository>, Vec<bool>, Vec<String>), LaunchError> {
    let (repository, mut warnings, uncommitted) = repository(folders, workspace).await?;
    let worktrees = plan_worktrees(
        task,
        repository.is_some(),
        !folders.write.is_empty(),
        parallel,
        step_folder,
    )?;
    if worktrees.contains(&true) {
        warnings.extend(left_behind(uncommitted));
    }
    Ok((repository, worktrees, warnings))
}

fn read_bounded(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed, so that the reader can tell.
    fs::File::open(file)?
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The task of a file as it is now. Models and efforts are not checked.
///
/// # Errors
/// [`LaunchError::Unreadable`], [`LaunchError::Faulty`].
pub fn read_task_file(file: &Path) -> Result<Task, LaunchError> {
    let bytes = read_bounded(file).map_err(|source| LaunchError::Unreadable {
        path: file.to_path_buf(),
        source,
    })?;
    read_task(file, &bytes, None)
}

fn read_task(file: &Path, bytes: &[u8], offers: Option<&[ModelOffer]>) -> Result<Task, LaunchError> {
    let faulty = |faults| LaunchError::Faulty {
        path: file.to_path_buf(),
        faults,
    };
    let text = document::decode(bytes).map_err(|unreadable| faulty(vec![Fault::from(unreadable)]))?;
    task::read(text, Format::of_file(file), offers).map_err(faulty)
}

/// W1: the first write folder, else the first read folder, else the root.
fn step_folder(folders: &Folders, project: &Project) -> PathBuf {
    folders
        .write
        .first()
        .or(folders.read.first())
        .unwrap_or(&project.root)
        .clone()
}

async fn repository(
    folders: &Folders,
    workspace: &dyn Workspace,
) -> Result<(Option<RunRepository>, Vec<String>, u32), LaunchError> {
    let Some(folder) = folders.write.first() else {
        return Ok((None, Vec::new(), 0));
    };
    let Some(found) = workspace.inspect(folder).await? else {
        return Ok((None, Vec::new(), 0));
    };
    let place = folder
        .strip_prefix(&found.root)
        .unwrap_or(Path::new(""))
        .to_path_buf();
    let repository = RunRepository {
        root: found.root,
        place,
        base: found.head,
        branch: found.branch,
    };
    Ok((Some(repository), found.warnings, found.uncommitted))
}

/// A word on what the person has not committed: agents start from a commit.
fn left_behind(uncommitted: u32) -> Option<String> {
    match uncommitted {
        0 => None,
        1 => Some("1 uncommitted file is not in the agents' worktrees".to_owned()),
        many => Some(format!(
            "{many} uncommitted files are not in the agents' worktrees"
        )),
    }
}

pub(crate) fn parallel(task: Option<NonZeroU32>, program: Option<NonZeroU32>) -> NonZeroU32 {
    match (task, program) {
        (Some(task), Some(program)) => task.min(program),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => PARALLEL,
    }
}

fn plan_worktrees(
    task: &Task,
    in_repository: bool,
    writes: bool,
    parallel: NonZeroU32,
    folder: &Path,
) -> Result<Vec<bool>, LaunchError> {
    if !in_repository {
        let asking = task
            .agents
            .iter()
            .find(|agent| agent.worktree == WorktreeWish::Always);
        return match asking {
            Some(agent) if !writes => Err(LaunchError::Unsupported(format!(
                "agent `{}` asks for a worktree, but the task names no folder to write: name one in its `folders`, or \
                 write `worktree: never`",
                agent.id
            ))),
            Some(agent) => Err(LaunchError::NoRepository {
                agent: agent.id.clone(),
                folder: folder.to_path_buf(),
            }),
            None => Ok(Vec::new()),
        };
    }
    // A task that was read has no cycle; one that was built by hand is told by the run's first event.
    let graph =
        Graph::of(task).map_err(|_| LaunchError::Unsupported("the task's links form a cycle".to_owned()))?;
    Ok(worktrees(task, &graph, parallel.get()))
}

/// Each distinct content that is run is a version of the task (W1).
async fn keep_version(store: &dyn Store, file: &Path, bytes: &[u8]) -> Result<u64, StoreError> {
    let name = file.to_string_lossy();
    let (version, kept) = store.get(TASK_DOCUMENT, &name).await?.unwrap_or((0, Vec::new()));
    if version > 0 && kept == bytes {
        return Ok(version);
    }
    store.put(TASK_DOCUMENT, &name, version, bytes.to_vec()).await
}

pub(crate) fn accounts(task: &Task, offers: &[ModelOffer]) -> BTreeMap<String, String> {
    // Of sub-agents too: they may use what their coordinator may give them, and nothing else.
    let given = task.agents.iter().flat_map(|agent| &agent.sub_agents);
    let given = given.flat_map(|rules| &rules.allow).map(|pair| &pair.model);
    let models = task.agents.iter().map(|agent| &agent.model);
    models
        .chain(given)
        .filter_map(|model| {
            Some((
                model.clone(),
                task::resolve_model(model, offers).ok()?.account.clone(),
            ))
        })
        .collect()
}

fn autocompact(task: &Task) -> Option<u64> {
    match task.autocompact {
        Autocompact::Default => RunPolicy::default().autocompact_tokens,
        Autocompact::Tokens(tokens) => Some(tokens.get()),
        Autocompact::Off => None,
    }
}
