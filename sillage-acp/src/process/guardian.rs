//! The guardian of an agent: the parent that it has instead of the engine (Linux).
//!
//! It makes itself the reaper of whatever descends from it, so that a process which leaves the agent's group and
//! session, and whose parents have all gone, is its child. It watches the engine through a handle of the engine's
//! process, which no thread's end disturbs. Once the agent has ended, the engine is gone, or it is told to by a
//! signal, it ends every descendant: `SIGTERM`, a while, `SIGKILL` until none is left. Then it ends as the agent did.
//!
//! It gives its standard input and output away, so that the engine sees their ends where the agent closes them.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::process::{Signal, WaitOptions, WaitStatus, wait};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;

use super::table::{Entry, Identity, descendants, processes, signed};
use crate::launcher::{LaunchError, exit_code};

/// How long what an agent left behind is given between `SIGTERM` and `SIGKILL`.
const AFTER_AGENT: Duration = Duration::from_millis(500);

/// The same where the engine is gone: its next start may wait for it.
const AFTER_ENGINE: Duration = Duration::from_secs(1);

/// What to guard.
pub(crate) struct Guard {
    /// The engine, which is the parent of this process.
    pub(crate) engine: u32,
    /// From `SIGTERM` to `SIGKILL`, when it is told to end.
    pub(crate) after_term: Duration,
    /// The words by which this program starts the agent in a process that it prepares.
    pub(crate) start: Vec<OsString>,
    /// The words by which this program ends itself by a signal, whose number follows.
    pub(crate) end_by: Vec<OsString>,
}

/// Guards an agent to its end and that of all that it started, and gives its exit code. Where a signal ended it, does
/// not come back: the same signal ends this process.
pub(crate) fn guard(guard: &Guard) -> Result<ExitCode, LaunchError> {
    let unprepared = |what| move |source: std::io::Error| LaunchError::Unprepared { what, source };
    let engine = handle_of(guard.engine)?;
    let own = signed(std::process::id()).map_err(unprepared("tell its own number"))?;
    rustix::process::set_child_subreaper(Some(own))
        .map_err(|error| unprepared("become the reaper of what the agent starts")(error.into()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(unprepared("wait for signals"))?;
    let status = runtime.block_on(async {
        let mut news = News::listen(engine).map_err(unprepared("wait for signals"))?;
        let agent = start(guard)?;
        let mut family = Family::new(agent);
        let cause = family.first_cause(&mut news).await;
        family.end(cause, guard.after_term, &mut news).await;
        Ok(family.status)
    })?;
    drop(runtime);
    Ok(end_as(status, &guard.end_by))
}

/// A handle of the engine, which is readable once it has ended.
fn handle_of(engine: u32) -> Result<OwnedFd, LaunchError> {
    use rustix::process::{PidfdFlags, pidfd_open};

    let gone = || LaunchError::Orphaned(engine);
    let pid = signed(engine).map_err(|_| gone())?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| match error {
        rustix::io::Errno::SRCH => gone(),
        error => LaunchError::Unprepared {
            what: "watch the engine",
            source: error.into(),
        },
    })?;
    // Compared once the handle is held: it is our parent's, or of nobody's concern.
    if std::os::unix::process::parent_id() != engine {
        return Err(gone());
    }
    Ok(handle)
}

/// Becomes true once the process behind a handle has ended. A thread waits for that; this one waits for the rest.
fn end_of(process: OwnedFd) -> std::io::Result<watch::Receiver<bool>> {
    use rustix::event::{PollFd, PollFlags, poll};

    let (tell, ended) = watch::channel(false);
    let wait = move || {
        let mut handles = [PollFd::new(&process, PollFlags::IN)];
        while poll(&mut handles, None).is_err() {}
        tell.send_replace(true);
    };
    std::thread::Builder::new()
        .name("engine".to_owned())
        .stack_size(64 << 10)
        .spawn(wait)?;
    Ok(ended)
}

/// Starts the agent and lets go of its pipes.
fn start(guard: &Guard) -> Result<u32, LaunchError> {
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    let child = command.args(&guard.start).process_group(0).spawn();
    let child = child.map_err(|source| LaunchError::Unprepared {
        what: "start the process of the agent",
        source,
    })?;
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null");
    let given_away = nothing.and_then(|nothing| {
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        Ok(())
    });
    match given_away {
        Ok(()) => Ok(child.id()),
        Err(source) => {
            // With our death, the agent's comes (its step asked for that), or it sees the end of its input.
            Err(LaunchError::Unprepared {
                what: "give the agent's pipes away",
                source,
            })
        }
    }
}

/// Why the family is to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    AgentEnded,
    Told,
    EngineGone,
}

/// What may happen.
struct News {
    engine: watch::Receiver<bool>,
    child: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl News {
    fn listen(engine: OwnedFd) -> std::io::Result<Self> {
        Ok(Self {
            engine: end_of(engine)?,
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next request to end, or none when a child has ended.
    async fn next(&mut self) -> Option<Cause> {
        tokio::select! {
            biased;
            _ = self.child.recv() => None,
            _ = self.terminate.recv() => Some(Cause::Told),
            _ = self.interrupt.recv() => Some(Cause::Told),
            _ = self.hang_up.recv() => Some(Cause::Told),
            _ = self.engine.wait_for(|gone| *gone) => Some(Cause::EngineGone),
        }
    }

    /// Waits for a child's end, or the end of the engine where that is news, for so long at most.
    async fn within(&mut self, pause: Duration, engine_gone: bool) -> Option<Cause> {
        tokio::select! {
            biased;
            _ = self.engine.wait_for(|gone| *gone), if !engine_gone => Some(Cause::EngineGone),
            _ = self.child.recv() => None,
            () = tokio::time::sleep(pause) => None,
        }
    }
}

/// The agent and all that it started.
struct Family {
    agent: u32,
    /// The agent's, once it has ended.
    status: Option<WaitStatus>,
    /// What could not be signalled, and why: told once.
    refused: HashSet<Identity>,
}

impl Family {
    fn new(agent: u32) -> Self {
        Self {
            agent,
            status: None,
            refused: HashSet::new(),
        }
    }

    async fn first_cause(&mut self, news: &mut News) -> Cause {
        loop {
            self.reap();
            if self.status.is_some() {
                return Cause::AgentEnded;
            }
            if let Some(cause) = news.next().await {
                return cause;
            }
        }
    }

    /// Ends all of it. Comes back when nothing is left.
    async fn end(&mut self, cause: Cause, after_term: Duration, news: &mut News) {
        let time = |cause| match cause {
            Cause::AgentEnded => after_term.min(AFTER_AGENT),
            Cause::Told => after_term,
            Cause::EngineGone => after_term.min(AFTER_ENGINE),
        };
        let mut engine_gone = cause == Cause::EngineGone;
        let mut deadline = Instant::now() + time(cause);
        self.signal_all(&[Signal::TERM, Signal::CONT]);
        let mut pause = Duration::from_millis(1);
        while self.is_left() && Instant::now() < deadline {
            let longest = deadline.saturating_duration_since(Instant::now());
            if news.within(pause.min(longest), engine_gone).await == Some(Cause::EngineGone) {
                engine_gone = true;
                deadline = deadline.min(Instant::now() + time(Cause::EngineGone));
            }
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        pause = Duration::from_millis(1);
        while self.is_left() {
            self.signal_all(&[Signal::KILL]);
            news.within(pause, true).await;
            // For as long as there is something to guard: whoever looks for it finds the guardian.
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Takes the exit statuses of children that have ended.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if signed(self.agent).is_ok_and(|agent| agent == pid) {
                self.status = Some(status);
            }
        }
    }

    fn is_left(&mut self) -> bool {
        self.reap();
        !self.members().is_empty()
    }

    /// All that live.
    fn members(&self) -> Vec<Entry> {
        let own = std::process::id();
        let all = processes();
        let members = descendants(&all, &HashSet::from([own]));
        let living = members.into_iter().filter(|one| one.pid != own && !one.dead);
        living.copied().collect()
    }

    fn signal_all(&mut self, signals: &[Signal]) {
        for member in self.members() {
            let member = member.identity();
            for signal in signals {
                let told = member.signal(*signal);
                if let Err(error) = told
                    && self.refused.insert(member)
                {
                    // The engine keeps the last words.
                    eprintln(format_args!(
                        "process {} cannot be signalled: {error}",
                        member.pid
                    ));
                }
            }
        }
    }
}

fn eprintln(words: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    // Whoever read it may be gone.
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Ends as the agent did: by the same exit code, or by the same signal.
fn end_as(status: Option<WaitStatus>, end_by: &[OsString]) -> ExitCode {
    let Some(status) = status else {
        return ExitCode::FAILURE;
    };
    let Some(number) = status.terminating_signal() else {
        return exit_code(status.exit_status().unwrap_or(1));
    };
    // A program that begins anew has none of the handlers that this one has set.
    let mut command = Command::new("/proc/self/exe");
    let error = command
        .args(end_by)
        .args([number.to_string().as_str(), "--"])
        .exec();
    eprintln(format_args!("signal {number} ended the agent; {error}"));
    exit_code(128 + number)
}
