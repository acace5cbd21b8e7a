//! One agent's process: started in a group of its own with a chosen environment, watched, and stopped with all that
//! it started.
//!
//! The leader is not reaped before its group and its strays are dead, so that no number that is signalled can have
//! been given to another process meanwhile. What left the group (by `setsid`) is found through the chain of parents,
//! looked up before each step of the stop, and through the groups and sessions that it leads. A process that left
//! all of them and whose parent ended before the stop is not found: that takes a subreaper or a control group.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sillage_core::ports::runtime::RuntimeError;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

mod spawner;
#[cfg_attr(target_os = "linux", path = "process/tree.rs")]
#[cfg_attr(not(target_os = "linux"), path = "process/tree_unknown.rs")]
mod tree;

pub(crate) use spawner::Spawner;
pub(crate) use tree::Leader;

/// Bytes kept of what the agent wrote last on its standard error.
const LAST_WORDS: usize = 16 << 10;

/// How long the parts of the stop sequence last (`originals/sidekicks-reference.md`, "Stopping an agent").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopTimes {
    /// From the closing of its standard input to `SIGTERM`.
    pub after_input_closed: Duration,
    /// From `SIGTERM` to `SIGKILL`.
    pub after_term: Duration,
    /// From `SIGKILL` to giving up.
    pub after_kill: Duration,
}

impl Default for StopTimes {
    fn default() -> Self {
        Self {
            after_input_closed: Duration::from_secs(5),
            after_term: Duration::from_secs(3),
            after_kill: Duration::from_secs(5),
        }
    }
}

/// What to start.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) agent: String,
    /// The program and its arguments, a launcher before them where there is one.
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) folder: std::path::PathBuf,
    /// Where its standard error is kept line by line, for people; none: only its last words are kept.
    pub(crate) log: Option<crate::log::AgentLog>,
}

/// A running agent. Dropping it kills what is left of it at once.
pub(crate) struct Process {
    agent: String,
    child: Child,
    leader: Arc<Leader>,
    exit: tree::ExitWatch,
    last_words: Arc<Mutex<VecDeque<u8>>>,
    stderr: JoinHandle<()>,
}

/// A process's ends that the conversation takes over.
pub(crate) struct Pipes {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
}

impl Process {
    /// Starts `program` through `spawner`.
    pub(crate) async fn start(spawner: &Spawner, program: Program) -> Result<(Self, Pipes), RuntimeError> {
        let agent = program.agent.clone();
        let mut child = spawner
            .spawn(command(&program))
            .await
            .map_err(|error| not_started(&program, &error))?;
        let (Some(input), Some(output), Some(stderr), Some(pid)) = (
            child.stdin.take(),
            child.stdout.take(),
            child.stderr.take(),
            child.id(),
        ) else {
            let words = format!("agent `{agent}` ended while it was being started");
            return Err(RuntimeError::Temporary {
                words,
                retry_after: None,
            });
        };
        let exit = tree::ExitWatch::new(pid).map_err(|error| not_started(&program, &error))?;
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let stderr = tokio::spawn(keep_last_words(
            agent.clone(),
            stderr,
            Arc::clone(&last_words),
            program.log.clone(),
        ));
        let leader = Arc::new(Leader::new(pid));
        Ok((
            Self {
                agent,
                child,
                leader,
                exit,
                last_words,
                stderr,
            },
            Pipes { input, output },
        ))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.leader.pid()
    }

    /// For killing it without waiting, from anywhere.
    pub(crate) fn leader(&self) -> Arc<Leader> {
        Arc::clone(&self.leader)
    }

    /// Waits for the leader to end, whoever keeps its pipes open. May be dropped and called again.
    pub(crate) async fn exited(&mut self) {
        self.exit.wait(&mut self.child).await;
    }

    /// Ends the leader and what it started, politely first: the caller has closed its standard input. Gives its exit
    /// status.
    pub(crate) async fn stop(&mut self, times: StopTimes) -> Result<ExitStatus, RuntimeError> {
        self.leader.note_strays();
        if !self.exits_within(times.after_input_closed).await {
            self.leader.note_strays();
            self.leader.terminate();
            if !self.exits_within(times.after_term).await {
                self.leader.note_strays();
            }
        }
        // Also after an exit: children in the background stay when their leader goes.
        let killed = self.leader.kill();
        #[cfg(not(unix))]
        let killed = killed.and_then(|()| self.child.start_kill());
        if !self.exits_within(times.after_kill).await {
            let words = killed
                .err()
                .map_or_else(|| "it outlived SIGKILL".to_owned(), |error| error.to_string());
            return Err(RuntimeError::Unstoppable {
                pid: self.pid(),
                words,
            });
        }
        if let Some(pid) = self.leader.survivor_after(times.after_kill).await {
            let words = format!("it was started by agent `{}` and outlived SIGKILL", self.agent);
            return Err(RuntimeError::Unstoppable { pid, words });
        }
        self.leader.forget();
        self.child
            .wait()
            .await
            .map_err(|error| RuntimeError::Unstoppable {
                pid: self.pid(),
                words: format!("its exit status cannot be read: {error}"),
            })
    }

    /// What it wrote last on its standard error, waited for a moment after its exit; empty when it wrote nothing.
    pub(crate) async fn last_words(&mut self) -> String {
        // A child may keep the pipe open for ever.
        let _ = tokio::time::timeout(Duration::from_millis(300), &mut self.stderr).await;
        let bytes: Vec<u8> = self
            .last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .copied()
            .collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    async fn exits_within(&mut self, span: Duration) -> bool {
        tokio::time::timeout(span, self.exited()).await.is_ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.leader.kill_all();
        self.stderr.abort();
    }
}

fn command(program: &Program) -> Command {
    let (name, arguments) = match program.words.split_first() {
        Some((name, arguments)) => (name.as_os_str(), arguments),
        None => (std::ffi::OsStr::new(""), &[][..]),
    };
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&program.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    command
}

fn not_started(program: &Program, error: &std::io::Error) -> RuntimeError {
    use std::io::ErrorKind;
    let name = program
        .words
        .first()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let (agent, folder) = (&program.agent, program.folder.display());
    let kind = error.kind();
    if kind == ErrorKind::NotFound && !program.folder.is_dir() {
        let words = format!("agent `{agent}` cannot start in {folder}: there is no such folder");
        return RuntimeError::Permanent { words };
    }
    if kind == ErrorKind::NotFound {
        let words = format!(
            "agent `{agent}`: there is no program `{name}`; install it or correct the agent's `command`"
        );
        return RuntimeError::Permanent { words };
    }
    let words = format!("agent `{agent}`: `{name}` cannot be started: {error}");
    if matches!(kind, ErrorKind::PermissionDenied | ErrorKind::InvalidInput) {
        return RuntimeError::Permanent { words };
    }
    // Too many processes or files, no memory, a program being written: it may work later.
    RuntimeError::Temporary {
        words,
        retry_after: None,
    }
}

/// Reads standard error to its end, whatever it costs the agent to write it, and keeps the last of it.
async fn keep_last_words(
    agent: String,
    mut stderr: ChildStderr,
    kept: Arc<Mutex<VecDeque<u8>>>,
    log: Option<crate::log::AgentLog>,
) {
    drain(&mut stderr, |bytes| {
        if let Some(log) = &log {
            log.write(bytes);
        }
        tracing::debug!(%agent, words = %String::from_utf8_lossy(bytes).trim_end(), "standard error");
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..excess);
    })
    .await;
    if let Some(log) = &log {
        log.finish();
    }
}

async fn drain(source: &mut (impl AsyncRead + Unpin), mut each: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = source.read(&mut buffer).await {
        each(&buffer[..count]);
    }
}
