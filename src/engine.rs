//! [`Engine`]: launches and resumes runs over a store, a runtime and a workspace.

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::join;
use sillage_core::id::{RunId, Seq};
use sillage_core::ports::runtime::AgentRuntime;
use sillage_core::ports::store::{Store, StoreError};
use sillage_core::ports::workspace::Workspace;
use sillage_core::ports::{Clock, Ids, RunFiles};
use sillage_core::run::{
    BudgetChange, Command, CorruptLog, Input, LeftBehind, PermissionAnswer, Recorded, Refused, Run,
    RunDefinition, RunEnd, Taken, codec,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::{RandomIds, SystemClock};
use crate::driver::{self, Driver, Message};
use crate::durable::DiskPatience;
use crate::feed::{Feed, FeedReader};
use crate::files::DiskFiles;

/// Bytes of events read from the store at once.
pub(crate) const PAGE: usize = 1 << 20;

type IdsSource = Arc<dyn Fn() -> Box<dyn Ids> + Send + Sync>;

/// Launches and resumes runs. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) runtime: Arc<dyn AgentRuntime>,
    pub(crate) workspace: Arc<dyn Workspace>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) files: Arc<dyn RunFiles>,
    ids: IdsSource,
    left: Arc<[LeftBehind]>,
    pub(crate) launcher: Arc<[OsString]>,
    pub(crate) disk_patience: DiskPatience,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// Puts an [`Engine`] together.
pub struct EngineBuilder {
    engine: Engine,
}

impl std::fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineBuilder").finish_non_exhaustive()
    }
}

impl EngineBuilder {
    /// Takes the time from `clock` instead of the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.engine.clock = clock;
        self
    }

    /// Keeps the runs' own files in `files` instead of on the disk.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn RunFiles>) -> Self {
        self.engine.files = files;
        self
    }

    /// Takes identifiers from what `ids` makes for each run, instead of random ones.
    #[must_use]
    pub fn ids(mut self, ids: impl Fn() -> Box<dyn Ids> + Send + Sync + 'static) -> Self {
        self.engine.ids = Arc::new(ids);
        self
    }

    /// Has the journals of runs that are taken up say what engines before this one left of their sessions.
    #[must_use]
    pub fn left_behind(mut self, left: Vec<LeftBehind>) -> Self {
        self.engine.left = left.into();
        self
    }

    /// Starts the checks of tasks behind these words, which end all that a check started with it: those of
    /// `sillage_acp::Options::launcher_words`. Without them only the check's process group is ended.
    #[must_use]
    pub fn launcher(mut self, words: Vec<OsString>) -> Self {
        self.engine.launcher = words.into();
        self
    }

    /// Waits for room where the disk is full, instead of stopping at once: sessions stay as they are, nothing is shown
    /// or done that is not durable, and the run goes on by itself once there is room.
    #[must_use]
    pub fn disk_patience(mut self, patience: DiskPatience) -> Self {
        self.engine.disk_patience = patience;
        self
    }

    /// The engine.
    #[must_use]
    pub fn build(self) -> Engine {
        self.engine
    }
}

/// Why an engine could not do what was asked, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The store failed. What was acknowledged is kept: the run can be resumed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such run.
    #[error("there is no run {0}")]
    NoSuchRun(RunId),
    /// The run's log does not make sense.
    #[error("the log of run {run} is damaged")]
    Corrupt {
        /// The run.
        run: RunId,
        /// How.
        #[source]
        source: CorruptLog,
    },
    /// An event of the run cannot be read or written.
    #[error("event {seq} of run {run} cannot be used")]
    Codec {
        /// The run.
        run: RunId,
        /// The event.
        seq: Seq,
        /// How.
        #[source]
        source: codec::CodecError,
    },
    /// The command makes no sense in the run's state.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The engine that drove the run is gone.
    #[error("the engine of run {0} is gone")]
    Gone(RunId),
    /// Something that was at work for the run panicked. The engine stopped; what was acknowledged is kept: the run can
    /// be resumed.
    #[error("the program broke in run {run}, in {what}: {words}")]
    Panicked {
        /// The run.
        run: RunId,
        /// What was being done.
        what: String,
        /// The panic's words.
        words: String,
    },
}

impl Engine {
    /// Begins an engine over its three adapters, with the machine's clock and random identifiers.
    #[must_use]
    pub fn builder(
        store: Arc<dyn Store>,
        runtime: Arc<dyn AgentRuntime>,
        workspace: Arc<dyn Workspace>,
    ) -> EngineBuilder {
        let ids: IdsSource = Arc::new(|| Box::new(RandomIds));
        EngineBuilder {
            engine: Engine {
                store,
                runtime,
                workspace,
                clock: Arc::new(SystemClock),
                files: Arc::new(DiskFiles),
                ids,
                left: Arc::default(),
                launcher: Arc::default(),
                disk_patience: DiskPatience::NONE,
            },
        }
    }

    /// Launches a run. Its launch is durable when this returns; what follows goes on in the background.
    ///
    /// # Errors
    /// [`EngineError::Store`] when the launch could not be kept: nothing was started.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn launch(&self, definition: RunDefinition) -> Result<RunHandle, EngineError> {
        let id = definition.run.clone();
        self.begin(id, vec![Run::launch(self.clock.now(), definition)])
            .await
    }

    /// Makes the first facts of a run durable, and drives it from there.
    async fn begin(&self, id: RunId, facts: Vec<Recorded>) -> Result<RunHandle, EngineError> {
        let bytes = facts.iter().map(|fact| encode(&id, fact));
        let bytes = bytes.collect::<Result<Vec<_>, _>>()?;
        let run = Run::replay(facts).map_err(|source| EngineError::Corrupt { run: id, source })?;
        self.store
            .append(run.id(), Seq::FIRST, bytes, &run.summary())
            .await?;
        Ok(self.drive(run, Vec::new()))
    }

    /// Takes up a run: one that an earlier engine left under way goes on, one that is over does again what did not
    /// succeed (R12).
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`], [`EngineError::Refused`] when nothing is left to do, or when the log cannot be
    /// read.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn resume(&self, id: &RunId) -> Result<RunHandle, EngineError> {
        self.resume_with(id, BudgetChange::default()).await
    }

    /// The same under other ceilings.
    ///
    /// # Errors
    /// As for [`Engine::resume`], and [`EngineError::Refused`] when a ceiling that is enforced is used up already.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn resume_with(&self, id: &RunId, budget: BudgetChange) -> Result<RunHandle, EngineError> {
        let run = self.load(id).await?;
        let mut inputs = match run.end() {
            Some(_) => vec![Input::Command(Command::Resume { budget })],
            None => vec![self.started(&run)],
        };
        // Refusals are told here rather than by the driver.
        for input in &inputs {
            run.decide(self.clock.now(), &mut *(self.ids)(), input)?;
        }
        if run.end().is_none() && !budget.is_nothing() {
            inputs.push(Input::Command(Command::ChangeBudget(budget)));
        }
        Ok(self.drive(run, inputs))
    }

    /// Takes up a run to do what a person commands of one of its steps ([`Command::Retry`], [`Command::Redo`],
    /// [`Command::Skip`]): one that an earlier engine left under way goes on besides; of one that is over, only that
    /// step and what follows it, and what a stop had left before its beginning.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`], [`EngineError::Refused`] when the command makes no sense, or when the log cannot be
    /// read.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn take_up(&self, id: &RunId, command: Command) -> Result<RunHandle, EngineError> {
        let run = self.load(id).await?;
        let command = Input::Command(command);
        run.decide(self.clock.now(), &mut *(self.ids)(), &command)?;
        let inputs = match run.end() {
            Some(_) => vec![command],
            None => vec![self.started(&run), command],
        };
        Ok(self.drive(run, inputs))
    }

    /// Launches a run in which steps are taken from the run `from` (R13). Its launch is durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::Store`] when the launch could not be kept: nothing was started.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn relaunch(
        &self,
        definition: RunDefinition,
        from: &RunId,
        taken: Vec<Taken>,
    ) -> Result<RunHandle, EngineError> {
        let id = definition.run.clone();
        self.begin(id, Run::relaunch(self.clock.now(), definition, from, taken))
            .await
    }

    /// News that this engine takes up a run that another left under way.
    fn started(&self, run: &Run) -> Input {
        let mut left = self.left.to_vec();
        left.retain(|one| run.step_of(one.session).is_some());
        Input::EngineStarted {
            pid: std::process::id(),
            left,
        }
    }

    /// A run as its log tells it, without taking it up.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRun`], or when the log cannot be read.
    pub async fn load(&self, id: &RunId) -> Result<Run, EngineError> {
        load(&*self.store, id).await
    }

    fn drive(&self, run: Run, inputs: Vec<Input>) -> RunHandle {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (outcome, ended) = watch::channel(None);
        let feed = Feed::new();
        let id = run.id().clone();
        let driver = Driver::new(
            self.clone(),
            (self.ids)(),
            run,
            feed.clone(),
            sender.clone(),
            receiver,
        );
        let run = id.clone();
        tokio::spawn(async move {
            let driven = AssertUnwindSafe(driver.drive(inputs)).catch_unwind().await;
            let result = driven.unwrap_or_else(|panic| {
                let (what, words) = ("its driver".to_owned(), driver::words(panic));
                Err(EngineError::Panicked { run, what, words })
            });
            outcome.send_replace(Some(result.map_err(Arc::new)));
        });
        RunHandle {
            run: id,
            sender,
            feed,
            ended,
        }
    }
}

/// Reads a run's whole log.
pub(crate) async fn load(store: &dyn Store, id: &RunId) -> Result<Run, EngineError> {
    let mut run: Option<Run> = None;
    let mut page = store.read(id, Seq::FIRST, PAGE).await?;
    while let Some((last, _)) = page.last() {
        // Asked for first: a store reads the next page while this one is believed.
        let next = store.read(id, last.next(), PAGE);
        let (next, believed) = join(next, async { believe(id, &mut run, page) }).await;
        believed?;
        page = next?;
    }
    run.ok_or_else(|| EngineError::NoSuchRun(id.clone()))
}

/// Takes a page of a log for true, one event after the other.
fn believe(id: &RunId, run: &mut Option<Run>, page: Vec<(Seq, Vec<u8>)>) -> Result<(), EngineError> {
    for (seq, bytes) in page {
        let fact = codec::decode(&bytes).map_err(|source| EngineError::Codec {
            run: id.clone(),
            seq,
            source,
        })?;
        let applied = match run {
            Some(run) => run.apply(&fact),
            None => Run::start(fact).map(|started| *run = Some(started)),
        };
        applied.map_err(|source| EngineError::Corrupt {
            run: id.clone(),
            source,
        })?;
    }
    Ok(())
}

pub(crate) fn encode(run: &RunId, fact: &Recorded) -> Result<Vec<u8>, EngineError> {
    codec::encode(fact).map_err(|source| EngineError::Codec {
        run: run.clone(),
        seq: fact.seq,
        source,
    })
}

/// A run that an engine drives. Dropping it changes nothing for the run.
#[derive(Debug, Clone)]
pub struct RunHandle {
    run: RunId,
    sender: mpsc::UnboundedSender<Message>,
    feed: Feed,
    ended: watch::Receiver<Option<Result<RunEnd, Arc<EngineError>>>>,
}

impl RunHandle {
    /// The run's name.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.run
    }

    /// What goes on in it.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Reads what goes on from now.
    #[must_use]
    pub fn follow(&self) -> FeedReader {
        self.feed.subscribe()
    }

    /// Asks it to stop; a second time: at once (R4). Use [`RunHandle::wait`] to know when it has.
    ///
    /// # Errors
    /// [`EngineError::Gone`] when it is over.
    pub fn stop(&self) -> Result<(), EngineError> {
        let message = Message::Input(Input::Command(Command::Stop));
        self.sender
            .send(message)
            .map_err(|_| EngineError::Gone(self.run.clone()))
    }

    /// Answers a permission request of one of its agents (A5), named by the position of the fact that it was asked. The
    /// answer is durable when this returns; its agent is told then.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when no such request is open, it was answered otherwise, or it has no such option;
    /// [`EngineError::Gone`] when the run is over.
    pub async fn answer_permission(&self, asked: Seq, answer: PermissionAnswer) -> Result<(), EngineError> {
        self.command(Command::AnswerPermission { asked, answer }).await
    }

    /// Uses a provider account again that the run waits for (R8). That it is used is durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when the run does not wait for the account; [`EngineError::Gone`] when it is over.
    pub async fn try_account(&self, account: String) -> Result<(), EngineError> {
        self.command(Command::TryAccount { account }).await
    }

    /// Commands the run; what follows is durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::Refused`] when the command makes no sense in the run's state; [`EngineError::Gone`] when the run
    /// is over.
    pub async fn command(&self, command: Command) -> Result<(), EngineError> {
        let gone = || EngineError::Gone(self.run.clone());
        let (commander, obeyed) = oneshot::channel();
        let message = Message::Command(command, commander);
        self.sender.send(message).map_err(|_| gone())?;
        Ok(obeyed.await.map_err(|_| gone())??)
    }

    /// Whether nobody drives it any more: it ended, or its engine had to stop.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// What made the engine stop before the run's end.
    pub async fn wait(&self) -> Result<RunEnd, Arc<EngineError>> {
        let mut ended = self.ended.clone();
        match ended
            .wait_for(Option::is_some)
            .await
            .map(|outcome| outcome.clone())
        {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(Arc::new(EngineError::Gone(self.run.clone()))),
        }
    }
}
