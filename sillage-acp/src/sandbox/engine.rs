//! Using a box: seeing to it that it is there, entering it, and ending what is within.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use sillage_core::ports::runtime::RuntimeError;
use tokio::time::Instant;

use super::lifecycle::{Errand, Ran};
use super::{Engine, Entry, MARK, Sandbox};
use crate::log::AgentLog;
use crate::model_choice::AgentCommand;
use crate::presets::installed;
use crate::process::{Process, Program, StopTimes};

/// How long the engine may take to answer; it may have to start itself first.
const ENGINE_PATIENCE: Duration = Duration::from_secs(60);

/// How long it may take to pass on a signal.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(10);

/// How often what is left in the box is looked for while it is given time.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How often what is in the box is killed before it is given up.
const KILLS: usize = 10;

/// Signals what carries the mark `$1` and tells the numbers: by `$2`, where `0` only looks.
const SIGNAL: &str = r#"for e in /proc/[0-9]*/environ; do
tr '\0' '\n' <"$e" 2>/dev/null | grep -qxF "$1" || continue
p=${e#/proc/}; p=${p%/environ}
kill -"$2" "$p" 2>/dev/null && echo "$p"
done; :"#;

/// Variables that the engine's program reads.
pub(super) fn is_engine_variable(name: &str) -> bool {
    name.starts_with("DOCKER_") || name.starts_with("SBX_")
}

/// The variables for the engine's program: those that agents are given, and its own.
fn engine_environment(inherited: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let own = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_engine_variable));
    inherited.iter().cloned().chain(own).collect()
}

/// One at a time sees to a box: two that find it missing would make it twice.
fn gate(program: &Path, name: &str) -> Arc<tokio::sync::Mutex<()>> {
    type Gates = HashMap<(PathBuf, String), Arc<tokio::sync::Mutex<()>>>;
    static GATES: LazyLock<Mutex<Gates>> = LazyLock::new(Mutex::default);
    let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
    let gate = gates.entry((program.to_owned(), name.to_owned()));
    Arc::clone(gate.or_default())
}

/// An agent in its box.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    agent: String,
    sandbox: Sandbox,
    /// The engine's program.
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// The agent's folder on this machine.
    folder: PathBuf,
    mark: String,
    log: AgentLog,
}

/// What a look at the box told.
enum Look {
    There,
    /// It is there, and nothing can be run in it before it is started.
    Stopped,
    /// Why it is not there, as the engine says it.
    Missing(String),
    /// The engine does not answer.
    Unreachable(String),
}

impl Guest {
    /// Prepares to enter the box of `command`; none: it runs on this machine. `folder` is where the agent works, and
    /// `mark` tells its processes from all others.
    pub(crate) fn new(
        command: &AgentCommand,
        folder: &Path,
        mark: String,
        inherited: &[(OsString, OsString)],
        log: AgentLog,
    ) -> Result<Option<Guest>, RuntimeError> {
        let Some(sandbox) = &command.sandbox else {
            return Ok(None);
        };
        let name = sandbox.engine.program();
        let search = inherited.iter().find(|(name, _)| name == "PATH");
        let Some(program) = search.and_then(|(_, search)| installed(name, search)) else {
            let words = format!(
                "agent `{}` runs in {}, and there is no program `{name}` on the PATH: install it, or let the agent \
                 run on this machine (`runtime: {{ type: local }}`)",
                command.name,
                sandbox.told()
            );
            return Err(RuntimeError::Permanent { words });
        };
        Ok(Some(Guest {
            agent: command.name.clone(),
            sandbox: sandbox.clone(),
            program,
            environment: engine_environment(inherited),
            folder: folder.to_owned(),
            mark,
            log,
        }))
    }

    /// The program that enters the box in place of `program`, whose launcher's words are the first `launcher`.
    pub(crate) fn enter(
        &self,
        program: &Program,
        launcher: usize,
        inside: Option<&Path>,
        command: &AgentCommand,
    ) -> Program {
        let (before, words) = program.words.split_at(launcher.min(program.words.len()));
        let own = |name: &OsString| command.env.keys().any(|own| **own == **name);
        // Their values, with placeholders filled in.
        let env = program
            .environment
            .iter()
            .filter(|(name, _)| own(name))
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            .collect();
        let entry = Entry {
            mark: &self.mark,
            folder: inside,
            env: &env,
            words,
        };
        let (words, passed) = self
            .sandbox
            .words(self.program.as_os_str(), &self.environment, entry);
        Program {
            words: before.iter().cloned().chain(words).collect(),
            environment: self.environment.iter().cloned().chain(passed).collect(),
            ..program.clone()
        }
    }

    /// Sees to it that the box is there and that nothing of an earlier start is left in it.
    pub(crate) async fn prepare(&self) -> Result<(), RuntimeError> {
        let gate = gate(&self.program, &self.sandbox.name);
        let _held = gate.lock().await;
        let missing = match self.look().await? {
            Look::There => return Ok(()),
            Look::Unreachable(words) => return Err(self.unusable(&words)),
            Look::Stopped => {
                let ran = self
                    .engine(
                        &["start".into(), self.sandbox.name.as_str().into()],
                        ENGINE_PATIENCE,
                    )
                    .await?;
                if !ran.status.success() {
                    return Err(self.unusable(&ran.told()));
                }
                return self.there_now("it was started").await;
            }
            Look::Missing(words) => words,
        };
        let Some(create) = &self.sandbox.create else {
            let (agent, told) = (&self.agent, self.sandbox.told());
            let words = format!(
                "agent `{agent}`: there is no {told} to run in ({missing}): make it, or let the settings say how \
                 (`runtime.lifecycle.create`)"
            );
            return Err(RuntimeError::Permanent { words });
        };
        super::lifecycle::run(
            &self.agent,
            &self.sandbox,
            "create",
            create,
            &self.folder,
            &self.environment,
            &self.log,
        )
        .await?;
        self.there_now("`lifecycle.create` ran").await
    }

    async fn there_now(&self, done: &str) -> Result<(), RuntimeError> {
        match self.look().await? {
            Look::There => Ok(()),
            Look::Stopped => Err(self.unusable(&format!("{done}, and it does not run"))),
            Look::Missing(words) | Look::Unreachable(words) => {
                Err(self.unusable(&format!("{done}, and nothing can be run in it: {words}")))
            }
        }
    }

    fn unusable(&self, words: &str) -> RuntimeError {
        let words = format!(
            "agent `{}`: {} cannot be used: {words}",
            self.agent,
            self.sandbox.told()
        );
        RuntimeError::Permanent { words }
    }

    /// Looks at the box by killing what an earlier start left in it.
    async fn look(&self) -> Result<Look, RuntimeError> {
        let ran = self.exec_signal("KILL", ENGINE_PATIENCE).await?;
        if ran.status.success() {
            let left = ran.output.lines().count();
            if left > 0 {
                self.log.line(&format!(
                    "sandbox: ended {left} process(es) that an earlier start had left"
                ));
            }
            return Ok(Look::There);
        }
        let words = ran.told();
        let said = words.to_lowercase();
        // The engines' codes for a program that cannot be run in the box, which therefore is there.
        if matches!(ran.status.code(), Some(126 | 127)) {
            self.log.line(&format!(
                "sandbox: no shell in it, so what the agent leaves behind cannot be ended: {words}"
            ));
            return Ok(Look::There);
        }
        // As docker 20 to 29 say it. All else is taken for a box that is not there.
        const UNREACHABLE: [&str; 5] = [
            "cannot connect",
            "failed to connect",
            "permission denied while trying to connect",
            "is paused",
            "is restarting",
        ];
        if UNREACHABLE.iter().any(|mark| said.contains(mark)) {
            return Ok(Look::Unreachable(words));
        }
        let stopped = self.sandbox.engine == Engine::Container && said.contains("is not running");
        Ok(if stopped {
            Look::Stopped
        } else {
            Look::Missing(words)
        })
    }

    /// Signals the agent and all that it started, and tells how many there were; none: they cannot be seen.
    async fn signal(&self, signal: &str) -> Option<usize> {
        match self.exec_signal(signal, SIGNAL_PATIENCE).await {
            Ok(ran) if ran.status.success() => Some(ran.output.lines().count()),
            Ok(ran) => {
                tracing::debug!(agent = %self.agent, words = %ran.told(), "no signal into the sandbox");
                None
            }
            Err(error) => {
                tracing::debug!(agent = %self.agent, %error, "no signal into the sandbox");
                None
            }
        }
    }

    async fn exec_signal(&self, signal: &str, patience: Duration) -> Result<Ran, RuntimeError> {
        let mark = format!("{MARK}={}", self.mark);
        self.engine(
            &[
                "exec".into(),
                self.sandbox.name.as_str().into(),
                "sh".into(),
                "-c".into(),
                SIGNAL.into(),
                "sillage".into(),
                mark.into(),
                signal.into(),
            ],
            patience,
        )
        .await
    }

    async fn engine(&self, arguments: &[OsString], patience: Duration) -> Result<Ran, RuntimeError> {
        let errand = Errand {
            agent: &self.agent,
            words: [&[self.program.clone().into_os_string()], arguments].concat(),
            environment: &self.environment,
            folder: Path::new("/"),
            patience,
            log: None,
        };
        errand.run().await
    }

    /// Kills what is left in the box, until nothing is.
    async fn kill(&self) {
        for _ in 0..KILLS {
            match self.signal("KILL").await {
                Some(0) | None => return,
                Some(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        self.log
            .line("sandbox: a process of the agent outlives SIGKILL in it");
    }
}

/// Ends a process as [`Process::stop`] does; where it is a way into a box, what is in the box first.
pub(crate) async fn stop(
    process: &mut Process,
    guest: Option<&Guest>,
    times: StopTimes,
) -> Result<ExitStatus, RuntimeError> {
    let Some(guest) = guest else {
        return process.stop(times).await;
    };
    let by_itself = tokio::time::timeout(times.after_input_closed, process.exited()).await;
    if by_itself.is_err() && guest.signal("TERM").await.is_some() {
        let deadline = Instant::now() + times.after_term;
        while Instant::now() < deadline && guest.signal("0").await.is_some_and(|left| left > 0) {
            tokio::time::sleep(LOOK_EVERY.min(times.after_term)).await;
        }
    }
    guest.kill().await;
    // The agent is gone, and with it goes the engine's program; if not, it is asked as any other.
    let rest = StopTimes {
        after_input_closed: times.after_input_closed.min(Duration::from_secs(1)),
        ..times
    };
    process.stop(rest).await
}
