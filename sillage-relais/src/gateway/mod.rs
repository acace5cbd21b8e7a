//! The gateway: serves any [`AgentRuntime`] over HTTP on loopback.
//!
//! What is decided stands in the book, a pure machine; what was acknowledged stands in the journal, on disk. A call
//! asks the book, has the changes kept, and only then acts or answers. A session's events are taken from the runtime by
//! one task, numbered by the book, kept, and then shown to those who read.
//!
//! [`Gateway`] holds the sessions, [`Server`] serves one over connections whose every phase is bounded.

mod agents;
mod attach;
mod book;
mod calls;
mod failure;
mod journal;
mod live;
mod pump;
mod routes;
mod server;
mod token;

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

pub use agents::{Agents, AgentsError, NoAgents};
use book::{Book, Change};
use failure::Failure;
use journal::Journal;
pub use journal::JournalError;
use live::{Attachment, Live};
pub use routes::openapi;
pub use server::{BadListener, Bounds, Server};
use sillage_core::ports::AgentRuntime;
use sillage_core::time::Timestamp;
pub use token::{Token, TokenError};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

/// How often is looked for what is due: sessions that nobody used, identifiers to forget.
const TICK: Duration = Duration::from_secs(1);

/// What holds for a gateway.
#[derive(Clone)]
pub struct GatewayOptions {
    /// The folder of the log of what was acknowledged. One gateway at a time holds it.
    pub folder: PathBuf,
    /// The most sessions that are not over; beyond, a creation is answered with `capacity`.
    pub most_sessions: usize,
    /// The agents of `/api/agents`.
    pub agents: Arc<dyn Agents>,
    /// The time of day.
    pub clock: fn() -> Timestamp,
}

impl GatewayOptions {
    /// The most sessions that are not over, where nothing else is said.
    pub const USUAL_SESSIONS: usize = 256;

    /// Usual options, with the log in this folder: [`Self::USUAL_SESSIONS`], no agents outside of them, the system's
    /// clock.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            most_sessions: Self::USUAL_SESSIONS,
            agents: Arc::new(NoAgents),
            clock: system_clock,
        }
    }
}

fn system_clock() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::default().plus(since)
}

/// Sessions of a runtime, as they are served. Cloning gives another handle.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    runtime: Arc<dyn AgentRuntime>,
    agents: Arc<dyn Agents>,
    clock: fn() -> Timestamp,
    started: Instant,
    journal: Journal,
    state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
    ending: watch::Sender<bool>,
}

struct State {
    book: Book,
    lives: HashMap<Uuid, Arc<Live>>,
}

impl Gateway {
    /// Opens the log. A session that it keeps is looked for when it is first asked for, or from [`Gateway::begin`] on.
    ///
    /// It blocks while it reads the log, and for a second or more while another gateway that is just ending lets go of
    /// the folder: where other tasks are to go on meanwhile, call it off the executor's threads.
    ///
    /// # Errors
    /// [`JournalError`] when the folder is held, damaged or cannot be used.
    pub fn open(runtime: Arc<dyn AgentRuntime>, options: GatewayOptions) -> Result<Gateway, JournalError> {
        let (journal, loaded) = Journal::open(&options.folder)?;
        let now = (options.clock)().max(loaded.newest());
        let mut state = State {
            book: Book::new(options.most_sessions),
            lives: HashMap::new(),
        };
        for kept in loaded.sessions {
            if !kept.head.state.is_over() {
                let live = Live::new(Attachment::Unknown, kept.head.last_event);
                state.lives.insert(kept.request.client_session_id, live);
            }
            state.book.restore(kept, now);
        }
        for (id, tomb) in loaded.tombs {
            state.book.restore_tomb(id, tomb);
        }
        let inner = Arc::new(Inner {
            runtime,
            agents: options.agents,
            clock: options.clock,
            started: Instant::now(),
            journal,
            state: Mutex::new(state),
            tasks: Mutex::default(),
            ending: watch::Sender::new(false),
        });
        Ok(Gateway { inner })
    }

    /// Looks for all sessions that the log keeps, and does what is due from now on, in the background. To be called once
    /// nothing is left any more of what an earlier gateway had started.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn begin(&self) {
        self.inner.spawn(attach::always(Arc::clone(&self.inner)));
        self.inner.spawn(tick(Arc::clone(&self.inner)));
    }

    /// Ends all that goes on but the sessions: their agents stay as the runtime leaves them, and are looked for by the
    /// next gateway. What was answered is on disk when this returns.
    pub async fn end(&self) {
        self.inner.ending.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.inner.tasks());
        tasks.shutdown().await;
    }

    /// Why the gateway cannot go on, once it cannot: nothing can be made durable any more. It answers every call with
    /// `storage` from then on, and is to be ended.
    pub async fn failed(&self) -> JournalError {
        let mut failed = self.inner.journal.failed();
        let told = failed
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|told| told.clone());
        match told {
            Some(error) => error,
            // Nobody writes any more, because nobody asks.
            None => std::future::pending().await,
        }
    }

    /// Does what is due at this time: closes sessions that nobody used, and forgets identifiers. Done every second by
    /// itself.
    pub fn tick(&self) {
        self.inner.tick();
    }
}

async fn tick(inner: Arc<Inner>) {
    let mut every = tokio::time::interval(TICK);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        inner.tick();
    }
}

impl Inner {
    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked under the lock has not left half a change: the book changes as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Lets something go on until the gateway ends.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> tokio::task::AbortHandle {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        let handle = tasks.spawn(task);
        if self.is_ending() {
            handle.abort();
        }
        handle
    }

    /// Does something to its end, whether or not whoever asked for it is still there.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let (done, told) = oneshot::channel();
        self.spawn(async move {
            // Whoever asked may have gone.
            let _ = done.send(work.await);
        });
        told.await.unwrap_or(Err(Failure::Ending))
    }

    /// Changes the book, and waits until the change is durable. Its events are shown to readers then.
    async fn commit<T>(
        &self,
        id: Uuid,
        change: impl FnOnce(&mut Book, Timestamp) -> (T, Vec<Change>),
    ) -> Result<T, JournalError> {
        let (told, ticket) = {
            let now = self.now();
            let mut state = self.state();
            let (told, changes) = change(&mut state.book, now);
            let ticket = self.keep(&mut state, id, changes);
            (told, ticket)
        };
        ticket.await?;
        Ok(told)
    }

    /// Has changes of one session written, in the order of the book: its lock is held.
    fn keep(&self, state: &mut State, id: Uuid, changes: Vec<Change>) -> journal::Ticket {
        let live = state.lives.get(&id);
        let mut last = None;
        for change in &changes {
            if let (Change::Event(_, event), Some(live)) = (change, live) {
                live.remember(event);
                last = Some((live.published.clone(), event.number));
            }
        }
        self.journal.write(changes, last)
    }

    /// Waits until all that the book says now is durable.
    async fn settled(&self) -> Result<(), JournalError> {
        self.journal.write(Vec::new(), None).await
    }

    /// The session in memory; none when the book does not know it.
    fn live(&self, id: Uuid) -> Option<Arc<Live>> {
        let mut state = self.state();
        let (_, head) = state.book.looked_up(id)?;
        let attachment = match head.state.is_over() {
            true => Attachment::Over,
            false => Attachment::Unknown,
        };
        let live = state.lives.entry(id);
        // What was kept by an earlier gateway is durable; what came since has its entry already.
        Some(Arc::clone(
            live.or_insert_with(|| Live::new(attachment, head.last_event)),
        ))
    }

    /// A session is over, and all of it durable: its newest events need not be at hand any more.
    fn put_away(&self, id: Uuid) {
        self.state().lives.remove(&id);
    }

    fn tick(self: &Arc<Self>) {
        let now = self.now();
        let (expired, ticket) = {
            let state = &mut *self.state();
            let lives = &state.lives;
            let used = |id: Uuid| lives.get(&id).is_some_and(|live| live.used());
            let (expired, changes) = state.book.due(now, used);
            let forgotten: Vec<Uuid> = changes
                .iter()
                .filter_map(|change| {
                    if let Change::Forgotten(id) = change {
                        Some(*id)
                    } else {
                        None
                    }
                })
                .collect();
            let ticket = (!changes.is_empty()).then(|| self.journal.write(changes, None));
            for id in forgotten {
                state.lives.remove(&id);
            }
            (expired, ticket)
        };
        // Nobody is told that something was forgotten; if that is not kept it is forgotten again.
        drop(ticket);
        for id in expired {
            let inner = Arc::clone(self);
            self.spawn(async move {
                if let Err(error) = inner
                    .close(id, "nobody used it for as long as it was asked to wait")
                    .await
                {
                    tracing::warn!(session = %id, %error, "a session that nobody uses could not be closed");
                }
            });
        }
    }
}
