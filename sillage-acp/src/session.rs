//! One session: a process of its own, a task that converses with it, and the handle through which others reach that
//! task.

use std::sync::{Arc, Mutex, PoisonError};

use futures_core::stream::BoxStream;
use sillage_core::ports::runtime::{
    FoundSession, MessageRequest, OpenedSession, RuntimeError, SessionEvent, SessionRequest,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::model_choice::Choice;
use crate::process::{Leader, Spawner};
use crate::runtime::Options;

mod actor;
mod children;
mod incoming;
mod log;
mod opening;
mod silence;
mod text;
mod turn;
mod unheard;

pub(crate) use actor::died;
use log::EventLog;

/// What a session is made from.
pub(crate) struct Plan {
    pub(crate) request: SessionRequest,
    pub(crate) choice: Choice,
    pub(crate) beginning: Beginning,
    pub(crate) options: Arc<Options>,
    pub(crate) spawner: Arc<Spawner>,
}

/// How a session begins.
pub(crate) enum Beginning {
    /// As a new one.
    New,
    /// As one that an earlier process held.
    Again {
        native: String,
        in_flight: Option<MessageRequest>,
    },
}

/// What is asked of a session's task.
enum Command {
    Send(MessageRequest, Answerer),
    AnswerPermission {
        id: String,
        option: String,
        done: Answerer,
    },
    /// Whether the session has accepted a message with this identifier.
    Knows(MessageRequest, oneshot::Sender<bool>),
    Cancel(Answerer),
}

type Answerer = oneshot::Sender<Result<(), RuntimeError>>;

/// How a session ended.
#[derive(Debug, Clone)]
struct Ended {
    words: String,
    /// Whether all its processes are gone.
    stopped: Result<(), RuntimeError>,
}

/// The task's side of the handle.
struct Wires {
    log: Arc<EventLog>,
    commands: mpsc::Receiver<Command>,
    closing: Arc<Notify>,
    opened: watch::Sender<Option<Result<FoundSession, RuntimeError>>>,
    ended: watch::Sender<Option<Ended>>,
    leader: Arc<Mutex<Option<Arc<Leader>>>>,
}

/// A handle of a session. Dropping it ends the session.
pub(crate) struct Session {
    pub(crate) request: SessionRequest,
    log: Arc<EventLog>,
    commands: mpsc::Sender<Command>,
    closing: Arc<Notify>,
    opened: watch::Receiver<Option<Result<FoundSession, RuntimeError>>>,
    ended: watch::Receiver<Option<Ended>>,
    leader: Arc<Mutex<Option<Arc<Leader>>>>,
}

impl Session {
    /// Starts a session; [`Session::opened`] tells how that went.
    pub(crate) fn start(plan: Plan) -> Self {
        let log = Arc::new(EventLog::new(plan.options.chatter_budget));
        let (commands, received) = mpsc::channel(16);
        let (opened_sender, opened) = watch::channel(None);
        let (ended_sender, ended) = watch::channel(None);
        let closing = Arc::new(Notify::new());
        let leader = Arc::new(Mutex::new(None));
        let request = plan.request.clone();
        let wires = Wires {
            log: Arc::clone(&log),
            commands: received,
            closing: Arc::clone(&closing),
            opened: opened_sender,
            ended: ended_sender,
            leader: Arc::clone(&leader),
        };
        tokio::spawn(actor::run(plan, wires));
        Self {
            request,
            log,
            commands,
            closing,
            opened,
            ended,
            leader,
        }
    }

    /// How the opening went, waited for.
    pub(crate) async fn opened(&self) -> Result<FoundSession, RuntimeError> {
        let mut opened = self.opened.clone();
        match opened.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            Ok(None) | Err(_) => Err(self.lost()),
        }
    }

    /// What it was opened with, unless it is over.
    pub(crate) async fn alive(&self) -> Result<OpenedSession, RuntimeError> {
        let found = self.opened().await?;
        if self.is_over() {
            Err(self.lost())
        } else {
            Ok(found.opened)
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.commands.is_closed() || self.ended.borrow().is_some()
    }

    pub(crate) async fn send(&self, message: &MessageRequest) -> Result<(), RuntimeError> {
        self.ask(|done| Command::Send(message.clone(), done)).await
    }

    pub(crate) async fn answer_permission(&self, id: &str, option: &str) -> Result<(), RuntimeError> {
        let (id, option) = (id.to_owned(), option.to_owned());
        self.ask(|done| Command::AnswerPermission { id, option, done })
            .await
    }

    /// Whether it has accepted this message.
    pub(crate) async fn knows(&self, message: &MessageRequest) -> Result<bool, RuntimeError> {
        let (known, answer) = oneshot::channel();
        let command = Command::Knows(message.clone(), known);
        self.commands.send(command).await.map_err(|_| self.lost())?;
        answer.await.map_err(|_| self.lost())
    }

    /// Asks it to stop what it is doing; nothing when it is over.
    pub(crate) async fn cancel(&self) -> Result<(), RuntimeError> {
        match self.ask(Command::Cancel).await {
            Err(RuntimeError::Lost { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    /// Ends it and waits until no process of it is left.
    pub(crate) async fn close(&self) -> Result<(), RuntimeError> {
        self.closing.notify_one();
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(ended)) => ended.stopped.clone(),
            // The task is gone, and with it the process that it owned.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    pub(crate) fn events(&self, after: u64) -> BoxStream<'static, SessionEvent> {
        self.log.after(after)
    }

    /// Kills its processes at once, without waiting.
    pub(crate) fn kill(&self) {
        if let Some(leader) = self
            .leader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            leader.kill_all();
        }
    }

    async fn ask(&self, command: impl FnOnce(Answerer) -> Command) -> Result<(), RuntimeError> {
        let (done, answer) = oneshot::channel();
        self.commands.send(command(done)).await.map_err(|_| self.lost())?;
        match answer.await {
            Ok(outcome) => outcome,
            Err(_) => {
                // The task ended with the command in its hands: how, is told a moment later.
                let _ = self.ended.clone().wait_for(Option::is_some).await;
                Err(self.lost())
            }
        }
    }

    fn lost(&self) -> RuntimeError {
        let words = match self.ended.borrow().as_ref() {
            Some(ended) => ended.words.clone(),
            None => format!("session {} is being ended", self.request.client_session_id),
        };
        RuntimeError::Lost { words }
    }
}
