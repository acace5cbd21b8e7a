//! One agent's process: started in a group of its own with a chosen environment, watched, and stopped with all that
//! it started.
//!
//! With a launcher ([`crate::launcher`]) the process is a guardian, which has the agent as its child, gets every
//! process whose parents have gone, and ends them all when it is told to or the engine is gone. Without one the
//! process is the agent.
//!
//! Either way the process is not reaped before all that it started is dead, so that no number that is signalled can
//! have been given to another process meanwhile. What left the group is found through the chain of parents, through
//! the groups and sessions that it leads, and by the mark that it carries in its environment. So what is not found is
//! a process that wiped its environment and left its group and session, and whose guardian was killed (or never was)
//! before anybody had seen it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sillage_core::id::ClientSessionId;
use sillage_core::ports::runtime::RuntimeError;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

#[cfg(target_os = "linux")]
pub(crate) mod guardian;
#[cfg(target_os = "linux")]
pub(crate) mod leftovers;
#[cfg_attr(target_os = "linux", path = "process/record.rs")]
#[cfg_attr(not(target_os = "linux"), path = "process/record_unknown.rs")]
mod record;
mod spawner;
#[cfg(target_os = "linux")]
pub(crate) mod table;
#[cfg_attr(target_os = "linux", path = "process/tree.rs")]
#[cfg_attr(not(target_os = "linux"), path = "process/tree_unknown.rs")]
mod tree;

use record::RecordFile;
pub(crate) use spawner::Spawner;
pub(crate) use tree::Leader;

/// The variable by which an agent and all that it started are known again. Its value is the session's identifier, and
/// after a slash which of the session's processes it was: one session may have several, the one after the other, and
/// the end of the one is not to be the other's.
pub(crate) const MARK: &str = "SILLAGE_SESSION";

/// Bytes kept of what the agent wrote last on its standard error.
const LAST_WORDS: usize = 16 << 10;

/// How much longer than its time a guardian may take to end what it guards, before it is ended with them.
const GUARDIAN_MARGIN: Duration = Duration::from_secs(2);

/// How long a process is still waited for to which `SIGKILL` could not be delivered.
const REFUSED: Duration = Duration::from_secs(1);

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
    /// Whose process it is: what it and all that it starts are known by.
    pub(crate) session: ClientSessionId,
    /// Whether the words begin with a launcher, which stays as the agent's guardian.
    pub(crate) guarded: bool,
    /// The folder in which its record is kept, if any.
    pub(crate) records: Option<std::path::PathBuf>,
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
    record: Option<RecordFile>,
    guarded: bool,
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
        let mark = mark(program.session);
        let records = program.records.as_deref();
        let begin = |folder| RecordFile::begin(folder, program.session, &agent, &program.folder);
        let unrecorded = |error| unrecorded(&program, &error);
        let mut record = records.map(begin).transpose().map_err(unrecorded)?;
        let mut child = match spawner.spawn(command(&program, &mark)).await {
            Ok(child) => child,
            Err(error) => {
                if let Some(record) = &mut record {
                    // Nothing was started: at worst a later engine says so.
                    let _ = record.ended();
                }
                return Err(not_started(&program, &error));
            }
        };
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
        if let Some(record) = &mut record
            && let Err(error) = record.started(pid)
        {
            // It is found by its mark all the same.
            tracing::warn!(%agent, pid, %error, "process not recorded");
        }
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let stderr = tokio::spawn(keep_last_words(
            agent.clone(),
            stderr,
            Arc::clone(&last_words),
            program.log.clone(),
        ));
        let leader = Arc::new(Leader::new(pid, program.guarded, mark));
        Ok((
            Self {
                agent,
                child,
                leader,
                exit,
                last_words,
                stderr,
                record,
                guarded: program.guarded,
            },
            Pipes { input, output },
        ))
    }

    /// The agent's own process.
    pub(crate) fn pid(&self) -> u32 {
        self.leader.agent().unwrap_or_else(|| self.leader.pid())
    }

    /// For killing it without waiting, from anywhere.
    pub(crate) fn leader(&self) -> Arc<Leader> {
        Arc::clone(&self.leader)
    }

    /// Waits for the leader to end, whoever keeps its pipes open. May be dropped and called again.
    pub(crate) async fn exited(&mut self) {
        self.exit.wait(&mut self.child).await;
    }

    /// Ends the leader and what it started, politely first: the caller has closed its standard input. Gives the
    /// agent's exit status.
    pub(crate) async fn stop(&mut self, times: StopTimes) -> Result<ExitStatus, RuntimeError> {
        let stopped = self.end(times).await;
        match (&stopped, &mut self.record) {
            (Ok(_), Some(record)) => {
                if let Err(error) = record.ended() {
                    tracing::warn!(agent = %self.agent, %error, "record of an ended process not removed");
                }
            }
            (Err(_), Some(_)) => self.record_survivors(),
            (Ok(_) | Err(_), None) => {}
        }
        stopped
    }

    async fn end(&mut self, times: StopTimes) -> Result<ExitStatus, RuntimeError> {
        self.leader.note_strays();
        if !self.exits_within(times.after_input_closed).await {
            self.leader.note_strays();
            self.leader.terminate();
            // A guardian keeps this time itself.
            let margin = if self.guarded {
                GUARDIAN_MARGIN
            } else {
                Duration::ZERO
            };
            if !self.exits_within(times.after_term.saturating_add(margin)).await {
                self.leader.note_strays();
            }
        }
        // Also after an exit: children in the background stay when their leader goes.
        let killed = self.leader.kill();
        #[cfg(not(unix))]
        let killed = killed.and_then(|()| self.child.start_kill());
        // What did not reach it will not end it, however long it is waited for.
        let patience = if killed.is_ok() {
            times.after_kill
        } else {
            times.after_kill.min(REFUSED)
        };
        let exited = self.exits_within(patience).await;
        if let Some((pid, why)) = self.leader.survivor_after(patience).await {
            let words = format!("it was started by agent `{}`, and {why}", self.agent);
            return Err(RuntimeError::Unstoppable { pid, words });
        }
        if !exited {
            let pid = self.leader.pid();
            let words = match killed {
                Ok(()) => self.leader.why(pid),
                Err(error) => format!("a signal to it cannot be delivered: {error}"),
            };
            return Err(RuntimeError::Unstoppable { pid, words });
        }
        self.leader.forget();
        self.child
            .wait()
            .await
            .map_err(|error| RuntimeError::Unstoppable {
                pid: self.leader.pid(),
                words: format!("its exit status cannot be read: {error}"),
            })
    }

    #[cfg(target_os = "linux")]
    fn record_survivors(&mut self) {
        let mut left = self.leader.survivors();
        left.extend(table::Identity::of(self.leader.pid()));
        if let Some(record) = &mut self.record
            && let Err(error) = record.left(left)
        {
            tracing::warn!(agent = %self.agent, %error, "survivors not recorded");
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn record_survivors(&mut self) {
        if let Some(record) = &mut self.record {
            let _ = record.left(Vec::new());
        }
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

/// A mark that no other process has been given.
fn mark(session: ClientSessionId) -> String {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    format!("{session}/{}.{number}", std::process::id())
}

fn command(program: &Program, mark: &str) -> Command {
    let (name, arguments) = match program.words.split_first() {
        Some((name, arguments)) => (name.as_os_str(), arguments),
        None => (std::ffi::OsStr::new(""), &[][..]),
    };
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .env(MARK, mark)
        .current_dir(&program.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    command
}

fn unrecorded(program: &Program, error: &std::io::Error) -> RuntimeError {
    let folder = program.records.as_deref().unwrap_or(&program.folder).display();
    RuntimeError::Temporary {
        words: format!(
            "agent `{}`: its process cannot be recorded in {folder}: {error}",
            program.agent
        ),
        retry_after: None,
    }
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

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn h4_what_the_machine_has_no_more_of_is_waited_for_and_what_is_wrong_is_not() {
        let program = Program {
            agent: "a".to_owned(),
            session: ClientSessionId(Default::default()),
            guarded: false,
            records: None,
            words: vec!["agent".into()],
            environment: Vec::new(),
            folder: "/".into(),
            log: None,
        };
        for scarce in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::AGAIN,
            Errno::TXTBSY,
        ] {
            let error = not_started(&program, &scarce.into());
            assert!(matches!(error, RuntimeError::Temporary { .. }), "{error:?}");
        }
        for wrong in [Errno::NOENT, Errno::ACCESS, Errno::INVAL] {
            let error = not_started(&program, &wrong.into());
            assert!(matches!(error, RuntimeError::Permanent { .. }), "{error:?}");
        }
    }
}
