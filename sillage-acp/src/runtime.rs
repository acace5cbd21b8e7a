//! [`AcpRuntime`]: an [`AgentRuntime`] over agents that are programs of this machine.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_core::stream::BoxStream;
pub use sillage_core::environment::inherited_environment;
use sillage_core::id::ClientSessionId;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    FoundSession, MessageFate, MessageRequest, OpenedSession, RuntimeError, RuntimeStatus, SessionEvent,
    SessionRequest,
};
use sillage_core::time::Timestamp;

use crate::launcher::{self, Limits};
use crate::model_choice::{self, AgentCommand};
use crate::process::{Spawner, StopTimes};
use crate::session::{Beginning, Plan, Session};

/// What holds for all sessions of a runtime.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long an agent may take to answer each request of the opening; `initialize` includes its start.
    pub start_timeout: Duration,
    /// How long an agent may take to end a message that was cancelled, before it is ended itself.
    pub cancel_grace: Duration,
    /// How long an agent may take to read what it is sent.
    pub write_deadline: Duration,
    /// How long an agent that is at work on a message may be silent with no busy child before it is cancelled (R11). No
    /// child counts as busy but on Linux.
    pub silent_after: Duration,
    /// How an agent is stopped.
    pub stop: StopTimes,
    /// Bytes of chatter kept of each session for readers who come later; of what is older, only the numbers are kept.
    pub chatter_budget: usize,
    /// The command that starts agents, as words that come before `--parent PID … -- command args`; see
    /// [`crate::launcher`]. None: agents are started directly, and may outlive an engine that is killed.
    pub launcher: Option<Vec<OsString>>,
    /// Limits that the launcher sets, where an agent's own ([`AgentCommand::limits`]) say nothing.
    pub limits: Limits,
    /// The folder in which a record is kept of each process, until its end is proved: what an engine that was killed
    /// leaves is found by it ([`crate::leftovers`]). None: there is no record.
    pub records: Option<PathBuf>,
    /// The variables that agents are started with, before those of their settings. By default those of this process
    /// that are needed to work at all ([`inherited_environment`]).
    pub inherited: Vec<(OsString, OsString)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(10),
            write_deadline: Duration::from_secs(30),
            silent_after: Duration::from_secs(30 * 60),
            stop: StopTimes::default(),
            chatter_budget: 8 << 20,
            launcher: None,
            limits: Limits::default(),
            records: None,
            inherited: inherited_environment(std::env::vars_os()),
        }
    }
}

impl Options {
    /// The words before the command of an agent, or of anything else that is to end whole and with this process; none
    /// without a launcher.
    #[must_use]
    pub fn launcher_words(&self, limits: Limits) -> Vec<OsString> {
        let Some(launcher) = &self.launcher else {
            return Vec::new();
        };
        let arguments = launcher::arguments(std::process::id(), self.stop.after_term, limits.or(self.limits));
        launcher.iter().cloned().chain(arguments).collect()
    }
}

/// Holds sessions with local agents over ACP v1, a process each.
///
/// Dropping it kills what is left of them at once; [`AcpRuntime::shut_down`] ends them politely first.
pub struct AcpRuntime {
    agents: Vec<Arc<AgentCommand>>,
    options: Arc<Options>,
    spawner: Arc<Spawner>,
    sessions: Mutex<HashMap<ClientSessionId, Arc<Session>>>,
}

impl AcpRuntime {
    /// A runtime of these agents; nothing is started yet.
    #[must_use]
    pub fn new(agents: Vec<AgentCommand>, options: Options) -> Self {
        Self {
            agents: agents.into_iter().map(Arc::new).collect(),
            options: Arc::new(options),
            spawner: Arc::default(),
            sessions: Mutex::default(),
        }
    }

    /// Closes every session, all at once, and waits until no process is left.
    ///
    /// # Errors
    /// The first [`RuntimeError::Unstoppable`], after all were tried.
    pub async fn shut_down(&self) -> Result<(), RuntimeError> {
        let ids: Vec<ClientSessionId> = self.sessions().keys().copied().collect();
        let closed = futures_util::future::join_all(ids.into_iter().map(|id| self.close(id))).await;
        closed.into_iter().collect()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<ClientSessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, id: ClientSessionId) -> Result<Arc<Session>, RuntimeError> {
        let session = self.sessions().get(&id).cloned();
        session.ok_or_else(|| RuntimeError::Lost {
            words: format!("there is no session {id} here"),
        })
    }

    fn start(&self, request: &SessionRequest, beginning: Beginning) -> Result<Arc<Session>, RuntimeError> {
        let choice = model_choice::resolve(&self.agents, &request.model, &request.effort)?;
        Ok(Arc::new(Session::start(Plan {
            request: request.clone(),
            choice,
            beginning,
            options: Arc::clone(&self.options),
            spawner: Arc::clone(&self.spawner),
        })))
    }

    /// The session of this request, started when there is none: those who ask at once share one.
    fn join(&self, request: &SessionRequest) -> Result<Arc<Session>, RuntimeError> {
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get(&request.client_session_id) {
            same_request(session, request)?;
            return Ok(Arc::clone(session));
        }
        let session = self.start(request, Beginning::New)?;
        sessions.insert(request.client_session_id, Arc::clone(&session));
        Ok(session)
    }

    /// The session of this request, brought back by a new process when there is none or it is over. Also whether it
    /// was there already.
    fn join_again(
        &self,
        request: &SessionRequest,
        native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<(Arc<Session>, bool), RuntimeError> {
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get(&request.client_session_id) {
            same_request(session, request)?;
            if !session.is_over() {
                return Ok((Arc::clone(session), true));
            }
        }
        let Some(native) = native else {
            let id = request.client_session_id;
            let words = format!("session {id} is gone, and the agent's name for it was never known");
            return Err(RuntimeError::Lost { words });
        };
        let beginning = Beginning::Again {
            native: native.to_owned(),
            in_flight: in_flight.cloned(),
        };
        let session = self.start(request, beginning)?;
        sessions.insert(request.client_session_id, Arc::clone(&session));
        Ok((session, false))
    }

    /// Forgets a session that did not open, so that it may be asked for again.
    fn forget(&self, failed: &Arc<Session>) {
        let mut sessions = self.sessions();
        let id = failed.request.client_session_id;
        if sessions
            .get(&id)
            .is_some_and(|session| Arc::ptr_eq(session, failed))
        {
            sessions.remove(&id);
        }
    }

    async fn opened(&self, session: &Arc<Session>) -> Result<FoundSession, RuntimeError> {
        session.opened().await.inspect_err(|_| self.forget(session))
    }
}

fn same_request(session: &Session, request: &SessionRequest) -> Result<(), RuntimeError> {
    let fields = session.request.differences(request);
    if fields.is_empty() {
        return Ok(());
    }
    let words = format!(
        "session {} came before with another {}",
        request.client_session_id,
        fields.join(", ")
    );
    Err(RuntimeError::Conflict { words, fields })
}

/// The time of day, for dates that agents give as delays.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::default().plus(since)
}

#[async_trait]
impl AgentRuntime for AcpRuntime {
    async fn status(&self) -> Result<RuntimeStatus, RuntimeError> {
        Ok(RuntimeStatus {
            name: "local agents".to_owned(),
            models: model_choice::offers(&self.agents),
        })
    }

    async fn open(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        let session = self.join(request)?;
        self.opened(&session).await?;
        session.alive().await
    }

    async fn find(
        &self,
        request: &SessionRequest,
        native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError> {
        let (session, was_there) = self.join_again(request, native, in_flight)?;
        let found = self.opened(&session).await?;
        if !was_there {
            return Ok(found);
        }
        let fate = match in_flight {
            None => MessageFate::None,
            Some(message) if session.knows(message).await? => MessageFate::InHand,
            // A session that another call has just brought back knows what the agent said of the message.
            Some(_) if found.restarted => found.in_flight,
            Some(_) => MessageFate::NotReceived,
        };
        Ok(FoundSession {
            opened: found.opened,
            restarted: false,
            in_flight: fate,
        })
    }

    async fn send(&self, session: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError> {
        self.session(session)?.send(message).await
    }

    async fn events(
        &self,
        session: ClientSessionId,
        after: u64,
    ) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
        Ok(self.session(session)?.events(after))
    }

    async fn answer_permission(
        &self,
        session: ClientSessionId,
        permission: &str,
        option: &str,
    ) -> Result<(), RuntimeError> {
        self.session(session)?.answer_permission(permission, option).await
    }

    async fn cancel(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        match self.session(session) {
            Ok(session) => session.cancel().await,
            Err(_) => Ok(()),
        }
    }

    async fn close(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        let Ok(session) = self.session(session) else {
            return Ok(());
        };
        session.close().await?;
        self.forget(&session);
        Ok(())
    }
}

impl Drop for AcpRuntime {
    fn drop(&mut self) {
        self.sessions().values().for_each(|session| session.kill());
    }
}
