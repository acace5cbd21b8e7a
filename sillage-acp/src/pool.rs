//! Agents outside of runs: each a process that is started once, used by any number of conversations, and stopped.
//!
//! What may happen is decided by [`sillage_core::agents::Agents`]; this carries its orders out and reports back. A
//! process is launched in the agent's folder and behind the same launcher as a run's, spoken to with `initialize`, and
//! then held until it is told to end or exits. Its standard error is the agent's log.
//!
//! The sessions of runs are no agents of a pool: they are processes of their own, whatever runs here, and the pool's
//! limit does not count them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sillage_core::agents::{
    AgentState, AgentStatus, Agents, CHECK_EVERY, Definition, Input, Output, PoolLimits, ProcessNumber,
    Refusal, StateChange, UserId,
};
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::JoinSet;

use crate::log::{AgentLog, LogLine};
use crate::model_choice::AgentCommand;
use crate::process::Spawner;
use crate::runtime::{Options, now};
use crate::sandbox::{self, Deed};

mod life;

/// Events that a watcher may be behind before it misses some.
const EVENTS_KEPT: usize = 1024;

/// An agent of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolAgent {
    /// Its name.
    pub name: String,
    /// How it is started; or why it cannot be, which a start then tells.
    pub command: Result<AgentCommand, String>,
}

/// What holds for all agents of a pool.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// How agents are started and stopped. [`Options::start_timeout`] is that of the handshake.
    pub runtime: Options,
    /// How often idle agents are looked for.
    pub check_every: Duration,
    /// What tells this pool's processes from those of another, in boxes that both use: a data folder, as a rule. The
    /// same after a restart, so that what an earlier pool left is found.
    pub holder: String,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            runtime: Options::default(),
            check_every: CHECK_EVERY,
            holder: "sillage".to_owned(),
        }
    }
}

/// What watchers of a pool are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolEvent {
    /// An agent changed state, or its definition changed.
    #[serde(rename = "agent:state")]
    State(StateChange),
    /// An agent wrote a line on its standard error, or a command on its box printed one.
    #[serde(rename = "agent:log")]
    Log(LogLine),
}

/// Why something was not done with an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// It was refused, and nothing changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The start failed, or the agent could not be ended; these words are the agent's error.
    #[error("{0}")]
    Failed(String),
    /// It was stopped while it was being started.
    #[error("agent `{0}` was stopped while it started")]
    Stopped(String),
    /// It runs on this machine, where there is nothing to stop or remove.
    #[error("agent `{0}` runs in no container or sandbox")]
    NoSandbox(String),
    /// A command on its box failed.
    #[error("{0}")]
    Sandbox(String),
}

/// Holds agents. Dropping it kills what is left of them at once; [`AgentPool::quit`] ends them politely first.
pub struct AgentPool {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for AgentPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentPool").field("agents", &self.list()).finish()
    }
}

/// A use of an agent, which ends when this is dropped. It ends by itself when the agent is stopped or fails.
pub struct AgentUse {
    inner: Arc<Inner>,
    agent: String,
    user: UserId,
}

impl std::fmt::Debug for AgentUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AgentUse").field(&self.agent).finish()
    }
}

/// What a process is launched with.
type Launch = Arc<Result<AgentCommand, String>>;

struct Inner {
    options: PoolOptions,
    spawner: Spawner,
    state: Mutex<State>,
    events: broadcast::Sender<PoolEvent>,
    /// Counts what happened, for those who wait for something.
    happened: watch::Sender<u64>,
    /// Set once the pool is to end: starts are given up.
    quitting: watch::Sender<bool>,
}

struct State {
    agents: Agents<Launch>,
    logs: HashMap<String, AgentLog>,
    /// How each process is told to end.
    ends: HashMap<ProcessNumber, Arc<Notify>>,
    /// One at a time starts an agent or does something with its box.
    gates: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
    tasks: JoinSet<()>,
    last_user: u64,
}

impl AgentPool {
    /// A pool of these agents, all stopped.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn new(agents: Vec<PoolAgent>, limits: PoolLimits, options: PoolOptions) -> Self {
        let inner = Arc::new(Inner {
            spawner: Spawner::default(),
            state: Mutex::new(State {
                agents: Agents::new(definitions(agents), limits),
                logs: HashMap::new(),
                ends: HashMap::new(),
                gates: HashMap::new(),
                tasks: JoinSet::new(),
                last_user: 0,
            }),
            events: broadcast::channel(EVENTS_KEPT).0,
            happened: watch::channel(0).0,
            quitting: watch::channel(false).0,
            options,
        });
        let checked = Arc::clone(&inner);
        inner.state().tasks.spawn(async move { checked.check().await });
        Self { inner }
    }

    /// How each agent stands, in the order of the settings.
    #[must_use]
    pub fn list(&self) -> Vec<AgentStatus> {
        self.inner.state().agents.statuses()
    }

    /// The last lines of an agent's log, oldest first.
    ///
    /// # Errors
    /// When there is no such agent.
    pub fn logs(&self, agent: &str) -> Result<Vec<String>, PoolError> {
        self.inner.known(agent)?;
        Ok(self.inner.log(agent).lines())
    }

    /// Takes up what an earlier pool knew: an agent's error, where it has one, and its log.
    pub fn recall(&self, agent: &str, error: Option<String>, log: &[String]) {
        if let Some(words) = error {
            self.inner.state().agents.recall(agent, words);
        }
        if self.inner.known(agent).is_ok() {
            let kept = AgentLog::new(agent, None);
            log.iter().for_each(|line| kept.line(line));
            let events = Some(self.inner.events.clone());
            let kept = kept.told_to(events);
            self.inner.state().logs.insert(agent.to_owned(), kept);
        }
    }

    /// What happens from now on.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<PoolEvent> {
        self.inner.events.subscribe()
    }

    /// Takes the settings as they are now: what runs with another definition is outdated, what is gone is stopped.
    pub fn configure(&self, agents: Vec<PoolAgent>, limits: PoolLimits) {
        let definitions = definitions(agents);
        // Settings are never refused.
        let _ = self.inner.take(Input::Configured { definitions, limits });
    }

    /// Starts an agent, unless it runs, and waits until it is ready.
    ///
    /// # Errors
    /// [`PoolError::Refused`], [`PoolError::Failed`], [`PoolError::Stopped`].
    pub async fn start(&self, agent: &str) -> Result<(), PoolError> {
        self.inner.take(Input::Start(agent.to_owned()))?;
        self.inner.started(agent).await
    }

    /// Ends what runs of an agent, starts it and waits until it is ready.
    ///
    /// # Errors
    /// As [`AgentPool::start`].
    pub async fn restart(&self, agent: &str) -> Result<(), PoolError> {
        self.inner.take(Input::Restart(agent.to_owned()))?;
        self.inner.started(agent).await
    }

    /// Stops an agent, if it runs, and waits until its process is gone; one that starts is stopped once it has started.
    ///
    /// # Errors
    /// [`PoolError::Refused`] when there is no such agent, [`PoolError::Failed`] when it could not be ended.
    pub async fn stop(&self, agent: &str) -> Result<(), PoolError> {
        let failed = |inner: &Inner| inner.status(agent).and_then(|status| status.error);
        let before = failed(&self.inner);
        self.inner.take(Input::Stop(agent.to_owned()))?;
        self.inner.until(|agents| agents.rests(agent)).await;
        match failed(&self.inner) {
            Some(words) if before.is_none() => Err(PoolError::Failed(words)),
            Some(_) | None => Ok(()),
        }
    }

    /// Stops an agent, then its box by the command of the settings (`runtime.lifecycle.stop`).
    ///
    /// # Errors
    /// As [`AgentPool::stop`]; [`PoolError::NoSandbox`], [`PoolError::Sandbox`].
    pub async fn stop_sandbox(&self, agent: &str) -> Result<(), PoolError> {
        self.with_sandbox(agent, Deed::Stop).await
    }

    /// Stops an agent, then removes its box by the command of the settings (`runtime.lifecycle.remove`).
    ///
    /// # Errors
    /// As [`AgentPool::stop_sandbox`].
    pub async fn remove_sandbox(&self, agent: &str) -> Result<(), PoolError> {
        self.with_sandbox(agent, Deed::Remove).await
    }

    /// Uses an agent, started first where it does not run, until what is given back is dropped.
    ///
    /// # Errors
    /// As [`AgentPool::start`].
    pub async fn acquire(&self, agent: &str) -> Result<AgentUse, PoolError> {
        let user = {
            let mut state = self.inner.state();
            state.last_user += 1;
            UserId(state.last_user)
        };
        self.inner.take(Input::Use(agent.to_owned(), user))?;
        // From here on it is given back, even by one who stops waiting.
        let used = AgentUse {
            inner: Arc::clone(&self.inner),
            agent: agent.to_owned(),
            user,
        };
        self.inner.started(agent).await?;
        if used.holds() {
            Ok(used)
        } else {
            Err(PoolError::Stopped(agent.to_owned()))
        }
    }

    /// Waits until nothing runs, starts or ends.
    pub async fn at_rest(&self) {
        self.inner.until(Agents::at_rest).await;
    }

    /// Whether nothing runs, starts or ends.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.inner.state().agents.at_rest()
    }

    /// Stops all agents and waits until nothing of them is left. None starts any more.
    pub async fn quit(&self) {
        self.inner.quitting.send_replace(true);
        // A stop is never refused.
        let _ = self.inner.take(Input::Quit);
        self.at_rest().await;
    }

    async fn with_sandbox(&self, agent: &str, deed: Deed) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.known(agent)?;
        let launch = inner.state().agents.definition(agent).cloned();
        let command = match launch.as_deref() {
            Some(Ok(command)) => command.clone(),
            Some(Err(words)) => return Err(PoolError::Failed(words.clone())),
            None => return Err(PoolError::NoSandbox(agent.to_owned())),
        };
        let Some(sandbox) = &command.sandbox else {
            return Err(PoolError::NoSandbox(agent.to_owned()));
        };
        self.stop(agent).await?;
        let gate = inner.gate(agent);
        let _held = gate.lock().await;
        let (folder, log) = (folder(&command), inner.log(agent));
        let environment = &inner.options.runtime.inherited;
        sandbox::carry_out(deed, agent, sandbox, &folder, environment, &log)
            .await
            .map_err(|error| PoolError::Sandbox(error.to_string()))
    }
}

impl Drop for AgentPool {
    fn drop(&mut self) {
        // Their processes are killed with them.
        self.inner.state().tasks.abort_all();
    }
}

impl AgentUse {
    /// Whether the agent still runs as it did when the use began.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.inner.state().agents.uses(&self.agent, self.user)
    }
}

impl Drop for AgentUse {
    fn drop(&mut self) {
        // To give back is never refused.
        let _ = self.inner.take(Input::Release(self.agent.clone(), self.user));
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self, agent: &str) -> Option<AgentStatus> {
        self.state().agents.status(agent)
    }

    fn known(&self, agent: &str) -> Result<(), PoolError> {
        Ok(self.state().agents.known(agent)?)
    }

    /// Lets the machine decide, and sets going what it orders.
    fn take(self: &Arc<Self>, input: Input<Launch>) -> Result<(), PoolError> {
        let mut state = self.state();
        for output in state.agents.decide(now(), input)? {
            match output {
                Output::Changed(change) => {
                    tracing::debug!(agent = %change.agent, state = change.state.word(), "agent");
                    // Nobody may be watching.
                    let _ = self.events.send(PoolEvent::State(change));
                }
                Output::Launch {
                    agent,
                    process,
                    launch,
                } => {
                    let end = Arc::new(Notify::new());
                    state.ends.insert(process, Arc::clone(&end));
                    let inner = Arc::clone(self);
                    state.tasks.spawn(async move {
                        life::live(&inner, &agent, process, &launch, &end).await;
                        inner.state().ends.remove(&process);
                    });
                }
                Output::End { process, .. } => {
                    if let Some(end) = state.ends.get(&process) {
                        end.notify_one();
                    }
                }
            }
        }
        while state.tasks.try_join_next().is_some() {}
        drop(state);
        self.happened.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Waits until a start is over.
    async fn started(&self, agent: &str) -> Result<(), PoolError> {
        let starts = |agents: &Agents<Launch>| {
            let status = agents.status(agent);
            status.is_some_and(|status| status.state == AgentState::Starting)
        };
        self.until(|agents| !starts(agents)).await;
        match self.status(agent) {
            Some(status) => match (status.state, status.error) {
                (AgentState::Ready | AgentState::Busy, _) => Ok(()),
                (AgentState::Error, Some(words)) => Err(PoolError::Failed(words)),
                (AgentState::Stopped | AgentState::Starting | AgentState::Error, _) => {
                    Err(PoolError::Stopped(agent.to_owned()))
                }
            },
            None => Err(PoolError::Stopped(agent.to_owned())),
        }
    }

    async fn until(&self, holds: impl Fn(&Agents<Launch>) -> bool) {
        let mut happened = self.happened.subscribe();
        // The sender lives as long as this.
        let _ = happened.wait_for(|_| holds(&self.state().agents)).await;
    }

    fn log(&self, agent: &str) -> AgentLog {
        let events = self.events.clone();
        let mut state = self.state();
        let log = state.logs.entry(agent.to_owned());
        log.or_insert_with(|| AgentLog::new(agent, Some(events))).clone()
    }

    fn gate(&self, agent: &str) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.state().gates.entry(agent.to_owned()).or_default())
    }

    /// Looks for idle agents from time to time.
    async fn check(self: &Arc<Self>) {
        loop {
            tokio::time::sleep(self.options.check_every).await;
            // A look is never refused.
            let _ = self.take(Input::Checked);
        }
    }
}

fn definitions(agents: Vec<PoolAgent>) -> Vec<Definition<Launch>> {
    let definitions = agents.into_iter().map(|agent| Definition {
        name: agent.name,
        launch: Arc::new(agent.command),
    });
    definitions.collect()
}

/// Where an agent works outside of runs: its workspace, otherwise the user's home.
fn folder(command: &AgentCommand) -> PathBuf {
    let home = || {
        std::env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_dir())
    };
    let workspace = command.workspace.clone().or_else(home);
    workspace.unwrap_or_else(|| PathBuf::from("/"))
}
