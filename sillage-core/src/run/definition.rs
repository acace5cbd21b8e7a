//! What a run is asked to do: computed at launch, stored in its first event, and frozen (W2).

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use crate::estimate::Foretold;
use crate::folders::Folders;
use crate::id::{RunId, StepIndex};
use crate::policy::Protected;
use crate::ports::runtime::PermissionPolicy;
use crate::task::Task;

/// One version of a task, with all that its execution needs to know. Editing the project, the task file or the
/// settings afterwards changes nothing here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDefinition {
    /// The run's name.
    pub run: RunId,
    /// The task.
    pub task: Arc<Task>,
    /// The canonical path of the task's file, by which the task is known.
    pub task_file: Option<PathBuf>,
    /// The version of the task that this run executes.
    pub task_version: u64,
    /// The project's name.
    pub project: Option<String>,
    /// The effective folders.
    pub folders: Folders,
    /// The folder that steps without a worktree work in.
    pub step_folder: PathBuf,
    /// The repository that the run works in; none: it works in plain folders.
    pub repository: Option<RunRepository>,
    /// Which agents get a worktree, by their place in the task; empty: none.
    #[serde(default)]
    pub worktrees: Vec<bool>,
    /// Sessions at work at once.
    pub parallel: NonZeroU32,
    /// The provider account of each model used; a model that is missing is its own account.
    #[serde(default)]
    pub accounts: BTreeMap<String, String>,
    /// Folder in which the run's own files are written, each step's full reports among them.
    pub files: PathBuf,
    /// How waits, stops and corrections go.
    pub policy: RunPolicy,
    /// The earlier run of which it is a relaunch; none: it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relaunch_of: Option<RelaunchOf>,
    /// The gateways that hold the run's sessions; empty: the program that drives it holds them itself. They stay the
    /// run's: who takes it up looks for its sessions there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<RunGateway>,
    /// How long it was told to take when it was launched; none: nobody told (R27).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foretold: Option<Foretold>,
}

/// A gateway that holds sessions of a run. Its token is not kept, only where it can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunGateway {
    /// Where it listens.
    pub url: String,
    /// The file that held its token at launch.
    pub token_file: PathBuf,
}

/// What a relaunch takes from an earlier run (R13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelaunchOf {
    /// The earlier run.
    pub run: RunId,
    /// The agent from which on everything runs again.
    pub from: String,
    /// What the task has otherwise than the earlier run had it, a line for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

/// E.g. `relaunch of run r1 from build`.
impl std::fmt::Display for RelaunchOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "relaunch of run {} from {}",
            self.run,
            crate::plain::line(&self.from)
        )
    }
}

/// The repository of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRepository {
    /// The person's working tree.
    pub root: PathBuf,
    /// Where the step folder lies in it.
    pub place: PathBuf,
    /// The commit that the run starts from: full hash.
    pub base: String,
    /// The branch that the person stood on; none: detached.
    pub branch: Option<String>,
}

/// How waits, stops and corrections go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPolicy {
    /// What happens to agents' permission requests.
    pub permissions: PermissionPolicy,
    /// Places of the program's own that agents neither read nor write: its data and its settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<PathBuf>,
    /// First wait after a temporary error.
    pub backoff_first: Duration,
    /// Longest wait after a temporary error, unless the provider asks for more.
    pub backoff_most: Duration,
    /// Wait before trying again after a quota or sign-in error without a date.
    pub gate_retry: Duration,
    /// Tries in a series of temporary errors; none: without end.
    pub attempts: Option<NonZeroU32>,
    /// Times a report may go back to its agent.
    pub corrections: u8,
    /// Whether the first step that fails keeps steps from being begun that need nothing of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_fast: bool,
    /// Ceilings of tokens, cost and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How long a stop waits for sessions to end what they are doing.
    pub stop_grace: Duration,
    /// Size in tokens past which sessions are summarised; none: never.
    pub autocompact_tokens: Option<u64>,
    /// Characters that the reports of upstream agents may take in a message.
    pub report_budget: usize,
}

impl Default for RunPolicy {
    fn default() -> Self {
        Self {
            permissions: PermissionPolicy::default(),
            closed: Vec::new(),
            backoff_first: Duration::from_secs(30),
            backoff_most: Duration::from_secs(240),
            gate_retry: Duration::from_secs(15 * 60),
            attempts: None,
            corrections: 2,
            fail_fast: false,
            budget: None,
            stop_grace: Duration::from_secs(15),
            autocompact_tokens: Some(300_000),
            report_budget: 24_000,
        }
    }
}

impl RunDefinition {
    /// The integration branch, without `refs/heads/`.
    #[must_use]
    pub fn integration_branch(&self) -> String {
        format!("sillage/{}", self.run)
    }

    /// The branch that a step's work is committed on, without `refs/heads/`, by the step's name: `agent`, or
    /// `agent/sub-agent`. Git refuses a branch below another branch's name, hence the two folders (R15).
    #[must_use]
    pub fn step_branch(&self, step: &str) -> String {
        let folder = if step.contains('/') { "subs" } else { "steps" };
        format!("sillage/{folder}/{}/{step}", self.run)
    }

    /// Whether the agent at this place of the task gets a worktree; for any step, ask [`super::Run::has_worktree`].
    #[must_use]
    pub fn has_worktree(&self, step: StepIndex) -> bool {
        self.repository.is_some() && self.worktrees.get(step.position()).copied().unwrap_or(false)
    }

    /// The folder of the step's own files, by its name. A sub-agent's lies within its coordinator's, who may read all of
    /// it.
    #[must_use]
    pub fn step_files(&self, step: &str) -> PathBuf {
        self.files.join(step)
    }

    /// The folder that a step works in, given its worktree's.
    #[must_use]
    pub fn folder_in(&self, worktree: Option<&Path>) -> PathBuf {
        match (worktree, &self.repository) {
            (Some(path), Some(repository)) => join_place(path, &repository.place),
            _ => self.step_folder.clone(),
        }
    }

    /// The folders of a step: the run's, with those in the repository taken to their place in the worktree.
    #[must_use]
    pub fn folders_in(&self, worktree: Option<&Path>) -> Folders {
        let (Some(path), Some(repository)) = (worktree, &self.repository) else {
            return self.folders.clone();
        };
        let moved = |folder: &PathBuf| match folder.strip_prefix(&repository.root) {
            Ok(place) => join_place(path, place),
            Err(_) if repository.root.starts_with(folder) => path.to_path_buf(),
            Err(_) => folder.clone(),
        };
        let mut read: Vec<_> = self.folders.read.iter().map(moved).collect();
        // A folder above the repository stays readable as it is: only its part in the repository moves.
        read.extend(
            self.folders
                .read
                .iter()
                .filter(|f| repository.root.starts_with(f) && **f != repository.root)
                .cloned(),
        );
        Folders {
            read,
            write: self.folders.write.iter().map(moved).collect(),
        }
    }

    /// The places that a step is kept out of whatever its folders grant, given its worktree: the program's own, and
    /// the person's checkout where the step has a worktree of its own.
    #[must_use]
    pub fn protected_in(&self, worktree: Option<&Path>) -> Protected {
        let checkout = self.repository.as_ref().filter(|_| worktree.is_some());
        Protected {
            closed: self.policy.closed.clone(),
            kept: checkout
                .map(|repository| repository.root.clone())
                .into_iter()
                .collect(),
        }
    }
}

/// `join` with an empty path adds a slash; this does not.
fn join_place(folder: &Path, place: &Path) -> PathBuf {
    if place.as_os_str().is_empty() {
        folder.to_path_buf()
    } else {
        folder.join(place)
    }
}
