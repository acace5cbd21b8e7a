//! Commands beside an agent: the engine's, and those of the settings that make, stop and remove its box.
//!
//! They are no agents: what they leave running, as an engine's own background service, is not ended with them.

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sillage_core::ports::runtime::RuntimeError;
use sillage_core::time::human;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use super::Sandbox;
use crate::log::AgentLog;

/// How long a command of the settings may take: images may have to be fetched.
const LIFECYCLE_PATIENCE: Duration = Duration::from_secs(30 * 60);

/// How long the output of a command is read after its end: what it left running may hold it open.
const AFTER_EXIT: Duration = Duration::from_millis(300);

/// Bytes of output that are kept.
const KEPT: usize = 16 << 10;

/// Characters of a line of output.
const LONGEST_LINE: u64 = 64 << 10;

/// Something that is done with a box besides entering it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Stop,
    Remove,
}

impl Deed {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Deed::Stop => "stop",
            Deed::Remove => "remove",
        }
    }

    pub(crate) fn command(self, sandbox: &Sandbox) -> Option<&str> {
        match self {
            Deed::Stop => sandbox.stop.as_deref(),
            Deed::Remove => sandbox.remove.as_deref(),
        }
    }
}

/// Stops or removes the box of an agent that is stopped.
pub(crate) async fn carry_out(
    deed: Deed,
    agent: &str,
    sandbox: &Sandbox,
    folder: &Path,
    environment: &[(OsString, OsString)],
    log: &AgentLog,
) -> Result<(), RuntimeError> {
    let Some(command) = deed.command(sandbox) else {
        let words = format!(
            "agent `{agent}`: nothing says how to {0} {1}: set `runtime.lifecycle.{0}` in the settings",
            deed.word(),
            sandbox.told()
        );
        return Err(RuntimeError::Permanent { words });
    };
    run(agent, sandbox, deed.word(), command, folder, environment, log).await
}

/// Runs a command of the settings through the shell, in the agent's folder.
pub(super) async fn run(
    agent: &str,
    sandbox: &Sandbox,
    word: &str,
    command: &str,
    folder: &Path,
    environment: &[(OsString, OsString)],
    log: &AgentLog,
) -> Result<(), RuntimeError> {
    let errand = Errand {
        agent,
        words: vec!["sh".into(), "-c".into(), command.into()],
        environment,
        folder,
        patience: LIFECYCLE_PATIENCE,
        log: Some(log),
    };
    let ran = errand.run().await?;
    if ran.status.success() {
        return Ok(());
    }
    let words = format!(
        "agent `{agent}`: `runtime.lifecycle.{word}` of {} failed ({}): {}",
        sandbox.told(),
        ran.status,
        ran.told()
    );
    Err(RuntimeError::Permanent { words })
}

/// A command that is waited for.
pub(super) struct Errand<'a> {
    pub(super) agent: &'a str,
    pub(super) words: Vec<OsString>,
    pub(super) environment: &'a [(OsString, OsString)],
    pub(super) folder: &'a Path,
    pub(super) patience: Duration,
    /// Where its output goes, line by line.
    pub(super) log: Option<&'a AgentLog>,
}

/// How a command ended.
pub(super) struct Ran {
    pub(super) status: ExitStatus,
    /// What it wrote on its standard output.
    pub(super) output: String,
    /// What it wrote on its standard error.
    pub(super) error: String,
}

impl Ran {
    /// What it said last, for people: on standard error, otherwise on standard output.
    pub(super) fn told(&self) -> String {
        let said = [&self.error, &self.output]
            .into_iter()
            .find(|said| !said.trim().is_empty());
        match said {
            Some(said) => {
                let lines: Vec<&str> = said.trim().lines().collect();
                lines[lines.len().saturating_sub(5)..].join("; ")
            }
            None => format!("it said nothing and ended with {}", self.status),
        }
    }
}

impl Errand<'_> {
    pub(super) async fn run(&self) -> Result<Ran, RuntimeError> {
        let name = self
            .words
            .first()
            .map_or_else(String::new, |word| word.display().to_string());
        let temporary = |words: String| RuntimeError::Temporary {
            words: format!("agent `{}`: {words}", self.agent),
            retry_after: None,
        };
        let mut command = Command::new(self.words.first().map_or("".as_ref(), OsString::as_os_str));
        command
            .args(self.words.get(1..).unwrap_or_default())
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| {
            temporary(format!(
                "`{name}` cannot be started in {}: {error}",
                self.folder.display()
            ))
        })?;
        let (output, error) = (Kept::default(), Kept::default());
        let reading = futures_util::future::join(
            self.read(child.stdout.take(), &output),
            self.read(child.stderr.take(), &error),
        );
        let mut reading = std::pin::pin!(reading);
        let deadline = tokio::time::sleep(self.patience);
        let mut deadline = std::pin::pin!(deadline);
        let mut read = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status,
                _ = &mut reading, if !read => read = true,
                () = &mut deadline => {
                    // What it started stays, as an engine's service would.
                    let _ = child.start_kill();
                    return Err(temporary(format!("`{name}` did not end within {}", human(self.patience))));
                }
            }
        };
        if !read {
            let _ = tokio::time::timeout(AFTER_EXIT, reading).await;
        }
        let status = status.map_err(|error| temporary(format!("`{name}` cannot be waited for: {error}")))?;
        Ok(Ran {
            status,
            output: output.text(),
            error: error.text(),
        })
    }

    /// Reads lines to the end, keeps the last of them and logs each.
    async fn read(&self, source: Option<impl AsyncRead + Unpin>, kept: &Kept) {
        use tokio::io::AsyncReadExt as _;
        let Some(source) = source else { return };
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut source)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)
                .await;
            if !matches!(read, Ok(1..)) {
                return;
            }
            let text = String::from_utf8_lossy(&line);
            kept.push(&text);
            if let Some(log) = self.log {
                tracing::info!(agent = %self.agent, line = %text.trim_end(), "sandbox");
                log.line(&format!("sandbox: {}", text.trim_end()));
            }
        }
    }
}

/// The end of a text that grows.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<String>>);

impl Kept {
    fn push(&self, text: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_str(text);
        if kept.len() > 2 * KEPT {
            let excess = kept.len() - KEPT;
            let from = (excess..kept.len()).find(|at| kept.is_char_boundary(*at));
            kept.drain(..from.unwrap_or(0));
        }
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
