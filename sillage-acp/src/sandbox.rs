//! Agents in a box: a container (`docker`) or a Docker sandbox (`sbx`), entered by the engine's `exec` (A8).
//!
//! Both engines take the same words: `exec -i -w FOLDER -e NAME … BOX COMMAND ARGUMENTS`. A variable goes by its name
//! alone, so that its value is read from the engine program's own environment and stands on no command line; only one
//! that the engine program itself reads (`PATH`, `HOME`, `DOCKER_HOST`, …) is written out, lest it change that program.
//!
//! # Starting
//!
//! Before an agent is started its box is looked at, by an `exec` of a line of shell. A box that is there and stopped is
//! started (`docker start`; `sbx exec` does it by itself); one that is missing is made by `lifecycle.create` where that
//! is set. These commands run through `sh -c` in the agent's folder with the environment that agents are given, and what
//! they print goes to the agent's log, each line behind `sandbox: `.
//!
//! # Ending what is within
//!
//! The engine program that we start is not the agent: killing it leaves the agent running in the box, as the engines
//! pass no signals on. So each agent is given a variable, [`MARK`], with a value of its own, which all that it starts
//! inherits, and what carries it is signalled from within by another `exec`: after its input was closed, and the time
//! for that is over, `SIGTERM`; after the time for that, `SIGKILL`, until nothing is left. When we are killed ourselves
//! the agent sees the end of its input, as the engine's program dies with us; what goes on all the same carries the
//! same mark as its successor (of the pool's agent, or of the session that is taken up again), and is killed before
//! that is started. Limits of the launcher hold for the engine's program, not in the box.
//!
//! That needs `sh`, `tr` and `grep` in the box, and a `/proc`. Without them the agent gets the end of its input only,
//! which the log says; and a process that cleared its environment is not found.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use sillage_core::ports::runtime::RuntimeError;

mod engine;
mod lifecycle;

pub(crate) use engine::{Guest, stop};
pub(crate) use lifecycle::{Deed, carry_out};

/// The variable by which the processes of an agent are known in its box.
pub(crate) const MARK: &str = "SILLAGE_SANDBOX";

/// What holds the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Containers of the program `docker`.
    Container,
    /// Docker sandboxes of the program `sbx`.
    Sbx,
}

impl Engine {
    /// The program, looked for on the `PATH`.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Engine::Container => "docker",
            Engine::Sbx => "sbx",
        }
    }

    /// What a box of it is called.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Engine::Container => "container",
            Engine::Sbx => "sandbox",
        }
    }
}

/// The box that an agent runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// What holds it.
    pub engine: Engine,
    /// Its name.
    pub name: String,
    /// Where the agent's workspace is in it; none: at the same path as outside.
    pub workspace_path: Option<PathBuf>,
    /// A shell line that makes it, when it is missing.
    pub create: Option<String>,
    /// A shell line that stops it.
    pub stop: Option<String>,
    /// A shell line that removes it.
    pub remove: Option<String>,
}

/// What is started in a box.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// The value of [`MARK`].
    pub(crate) mark: &'a str,
    /// The folder to start in, as the box has it; none: the box's own.
    pub(crate) folder: Option<&'a Path>,
    /// The agent's own variables.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// The program and its arguments.
    pub(crate) words: &'a [OsString],
}

impl Sandbox {
    /// The box in words: `container box`.
    pub(crate) fn told(&self) -> String {
        format!("{} `{}`", self.engine.noun(), self.name)
    }

    /// Where the box has a folder of this machine, for the agent `agent` whose folder outside is `workspace`.
    pub(crate) fn inside(
        &self,
        agent: &str,
        workspace: Option<&Path>,
        folder: &Path,
    ) -> Result<PathBuf, RuntimeError> {
        let told = self.told();
        let Some(workspace) = workspace else {
            let words = format!(
                "agent `{agent}` runs in {told}, and nothing says which folder of this machine that has: \
                 set the agent's `workspace`"
            );
            return Err(RuntimeError::Permanent { words });
        };
        // Either may be reached through symbolic links.
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let within = match folder.strip_prefix(workspace) {
            Ok(within) => Some(within.to_owned()),
            Err(_) => real(folder)
                .strip_prefix(real(workspace))
                .ok()
                .map(Path::to_owned),
        };
        let clean = within.filter(|within| {
            let mut parts = within.components();
            parts.all(|part| matches!(part, std::path::Component::Normal(_)))
        });
        let Some(within) = clean else {
            let (folder, workspace) = (folder.display(), workspace.display());
            let words = format!(
                "agent `{agent}` runs in {told}, which has {workspace} and not {folder}: keep the project below \
                 {workspace}, and the data folder too (`--data-dir`) where the agent gets a worktree; or write \
                 `worktree: never` for it"
            );
            return Err(RuntimeError::Permanent { words });
        };
        let base = self.workspace_path.as_deref().unwrap_or(workspace);
        Ok(join(base, &within))
    }

    /// Where this machine has a path that an agent in the box names; one that is not in its workspace stays.
    pub(crate) fn outside(&self, workspace: Option<&Path>, path: PathBuf) -> PathBuf {
        match (workspace, &self.workspace_path) {
            (Some(workspace), Some(base)) => match path.strip_prefix(base) {
                Ok(within) => join(workspace, within),
                Err(_) => path,
            },
            (Some(_) | None, _) => path,
        }
    }

    /// The words that start something in the box, the engine's program first, and the variables that its program needs
    /// besides those in `inherited`.
    fn words(
        &self,
        program: &OsStr,
        inherited: &[(OsString, OsString)],
        entry: Entry<'_>,
    ) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
        let mut words: Vec<OsString> = vec![program.to_owned(), "exec".into(), "-i".into()];
        if let Some(folder) = entry.folder {
            words.extend(["-w".into(), folder.into()]);
        }
        words.extend(["-e".into(), format!("{MARK}={}", entry.mark).into()]);
        let mut passed = Vec::new();
        for (name, value) in entry.env {
            let taken =
                engine::is_engine_variable(name) || inherited.iter().any(|(other, _)| **other == **name);
            if taken {
                words.extend(["-e".into(), format!("{name}={value}").into()]);
            } else {
                words.extend(["-e".into(), name.into()]);
                passed.push((name.into(), value.into()));
            }
        }
        words.push(self.name.as_str().into());
        words.extend(entry.words.iter().cloned());
        (words, passed)
    }
}

/// `base` with `within` after it, and no `/` at its end where that is empty.
fn join(base: &Path, within: &Path) -> PathBuf {
    if within.as_os_str().is_empty() {
        base.to_owned()
    } else {
        base.join(within)
    }
}

#[cfg(test)]
mod tests;
