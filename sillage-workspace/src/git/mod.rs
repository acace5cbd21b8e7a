//! The git command line behind one hardened wrapper: nothing else in this crate starts a process.
//!
//! Every call has a cleared environment with an allow-list, settings of ours that outrank the repository's, a
//! deadline, a process group of its own and a bound on what it may print. Arguments that come from outside are full
//! hashes, full references or paths after `--`, so that none can be read as an option.

mod hardening;
pub(crate) mod names;
mod process;
mod version;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sillage_core::ports::workspace::WorkspaceError;
use tokio::sync::OnceCell;

pub(crate) use hardening::{SELF, programs_named_by};
pub(crate) use process::Output;
use version::Version;

/// How long an ordinary call may take.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long a call that reads or writes every file of a working tree may take.
const LONG_DEADLINE: Duration = Duration::from_secs(600);

/// The git program, found and checked once.
#[derive(Debug)]
pub(crate) struct Git {
    program: Option<PathBuf>,
    environment: Vec<(&'static str, OsString)>,
    version: OnceCell<Version>,
}

impl Git {
    /// Looks for git on `PATH`.
    pub(crate) fn on_path() -> Self {
        let folders = hardening::absolute_folders(std::env::var_os("PATH").as_deref());
        let program = folders
            .iter()
            .map(|folder| folder.join("git"))
            .find(|file| file.is_file());
        Self::with(program)
    }

    /// Takes this program as git.
    pub(crate) fn at(program: PathBuf) -> Self {
        Self::with(Some(program))
    }

    /// Takes this folder as the person's home, where global settings are read.
    pub(crate) fn set_home(&mut self, home: &Path) {
        self.environment
            .retain(|(key, _)| !matches!(*key, "HOME" | "XDG_CONFIG_HOME" | "USERPROFILE"));
        self.environment.push(("HOME", home.as_os_str().to_owned()));
    }

    /// The person's home, as git is told.
    pub(crate) fn home(&self) -> Option<&Path> {
        let found = self.environment.iter().find(|(key, _)| *key == "HOME");
        found.map(|(_, value)| Path::new(value))
    }

    fn with(program: Option<PathBuf>) -> Self {
        Self {
            program,
            environment: hardening::environment(),
            version: OnceCell::new(),
        }
    }

    /// A call whose first words are `words`, e.g. `worktree add`; errors name it so.
    pub(crate) async fn call(&self, words: &'static str, folder: &Path) -> Result<Call, WorkspaceError> {
        let version = *self.version.get_or_try_init(|| self.checked_version()).await?;
        self.prepare(words, folder, version)
    }

    fn prepare(&self, words: &'static str, folder: &Path, version: Version) -> Result<Call, WorkspaceError> {
        let program = self.program.clone().ok_or_else(|| {
            failed(
                words,
                format!("no git on PATH: install git {} or newer", Version::OLDEST),
            )
        })?;
        let mut call = Call {
            words,
            program,
            folder: folder.to_owned(),
            arguments: words.split(' ').map(OsString::from).collect(),
            environment: self
                .environment
                .iter()
                .map(|(key, value)| (OsString::from(key), value.clone()))
                .collect(),
            settings: Vec::new(),
            stdin: None,
            deadline: DEADLINE,
        };
        for (key, value) in hardening::settings(version) {
            call.settings.push((key.to_owned(), value.to_owned()));
        }
        Ok(call)
    }

    async fn checked_version(&self) -> Result<Version, WorkspaceError> {
        let text = self
            .prepare("version", Path::new("/"), Version::OLDEST)?
            .text()
            .await?;
        let version = Version::parse(&text)
            .ok_or_else(|| failed("version", format!("cannot read a version in `{text}`")))?;
        if version < Version::OLDEST {
            let words = format!(
                "git {version} is too old: install git {} or newer",
                Version::OLDEST
            );
            return Err(failed("version", words));
        }
        Ok(version)
    }
}

/// One call of git, being put together.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    words: &'static str,
    program: PathBuf,
    folder: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    settings: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
    deadline: Duration,
}

impl Call {
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.retain(|(known, _)| known != key);
        self.environment.push((key.into(), value.as_ref().to_owned()));
        self
    }

    /// A setting that outranks every file's.
    pub(crate) fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Lets pathspecs have magic, which are literal otherwise.
    pub(crate) fn with_pathspecs(mut self) -> Self {
        self.environment
            .retain(|(known, _)| known != "GIT_LITERAL_PATHSPECS");
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Allows the time that reading or writing a whole working tree takes.
    pub(crate) fn long(mut self) -> Self {
        self.deadline = LONG_DEADLINE;
        self
    }

    /// Runs it; any exit code is an answer.
    pub(crate) async fn output(mut self) -> Result<Output, WorkspaceError> {
        let settings = std::mem::take(&mut self.settings);
        self = self.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (number, (key, value)) in settings.into_iter().enumerate() {
            self = self
                .env(&format!("GIT_CONFIG_KEY_{number}"), key)
                .env(&format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        process::run(self).await
    }

    /// Runs it; any exit code but 0 is an error with git's words.
    pub(crate) async fn bytes(self) -> Result<Vec<u8>, WorkspaceError> {
        let words = self.words;
        let output = self.output().await?;
        if output.code == Some(0) {
            Ok(output.stdout)
        } else {
            Err(output.failure(words))
        }
    }

    /// Runs it; what it printed, as text without the last line's end.
    pub(crate) async fn text(self) -> Result<String, WorkspaceError> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// Runs it; whether it exited with 0. 1 is no; anything else is an error.
    pub(crate) async fn holds(self) -> Result<bool, WorkspaceError> {
        let words = self.words;
        let output = self.output().await?;
        match output.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(output.failure(words)),
        }
    }
}

/// An error of a call.
pub(crate) fn failed(words: &str, why: impl Into<String>) -> WorkspaceError {
    WorkspaceError::Git {
        command: words.to_owned(),
        words: why.into(),
    }
}

#[cfg(test)]
mod tests;
