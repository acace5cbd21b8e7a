//! [`Reader`]: what the store of a data folder holds and what goes on in its runs, whoever holds it.

mod accounts;

#[cfg(feature = "store")]
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "store")]
use std::time::{Duration, Instant};

use futures_util::StreamExt;
#[cfg(feature = "store")]
use futures_util::stream;
use sillage_core::id::{ClientSessionId, RunId, Seq, StepIndex};
use sillage_core::ports::store::{RunSummary, Store, StoreError, Which};
use sillage_core::run::{PermissionAnswer, PermissionView, Recorded, Run, RunDefinition, StepCommand};
use sillage_core::time::Timestamp;
#[cfg(feature = "store")]
use sillage_store::{Options, SledStore};

use crate::control::{ControlClient, ControlError};
use crate::engine::EngineError;
#[cfg(feature = "store")]
use crate::feed::FeedItem;
use crate::follow::{Followed, follow, read_all, read_launch};
use crate::restore::{ExecutedText, executed_text};

/// How long a process that has just taken the store may take to listen, or one that is ending to let go of it.
#[cfg(feature = "store")]
const HOLDER_COMES: Duration = Duration::from_secs(2);

/// How long the holder may take to answer.
#[cfg(feature = "store")]
const HOLDER_ANSWERS: Duration = Duration::from_secs(3);

/// Pause before the store is tried again.
#[cfg(feature = "store")]
const AGAIN: Duration = Duration::from_millis(50);

/// Reads runs, from the store itself while nobody holds it, else by the control socket of the process that does.
///
/// While it reads the store itself it holds it, so that no run can be launched: drop it as soon as what is needed
/// was read.
#[derive(Clone)]
pub struct Reader {
    source: Source,
}

#[derive(Clone)]
enum Source {
    Store(Arc<dyn Store>),
    Control(ControlClient),
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("live", &self.is_live())
            .finish_non_exhaustive()
    }
}

/// A stop was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopAsked {
    /// Whether the run was stopping already: it is forced now.
    pub again: bool,
}

/// Why something could not be read, or a run not be stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No run was ever launched.
    #[error("there is no run yet")]
    NoRuns,
    /// There is no such run.
    #[error("there is no run {0}")]
    NoSuchRun(RunId),
    /// No process drives the run.
    #[error("nobody drives run {0}")]
    NotDriven(RunId),
    /// The run is over.
    #[error("run {run} is already {state}")]
    Over {
        /// The run.
        run: RunId,
        /// How it ended.
        state: String,
    },
    /// The command makes no sense in the run's state; these are the words of whoever drives it.
    #[error("{0}")]
    Refused(String),
    /// The store cannot be read. [`StoreError::Held`]: and who holds it does not answer.
    #[error(transparent)]
    Store(StoreError),
    /// A run's log cannot be used.
    #[error(transparent)]
    Engine(EngineError),
    /// The process that holds the store did not answer.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        ReadError::Store(error)
    }
}

impl From<EngineError> for ReadError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => ReadError::Store(error),
            EngineError::NoSuchRun(run) => ReadError::NoSuchRun(run),
            other @ (EngineError::Corrupt { .. }
            | EngineError::Codec { .. }
            | EngineError::Refused(_)
            | EngineError::Gone(_)
            | EngineError::Panicked { .. }) => ReadError::Engine(other),
        }
    }
}

impl Reader {
    /// Reads a store that this process holds.
    #[must_use]
    pub fn over(store: Arc<dyn Store>) -> Reader {
        Reader {
            source: Source::Store(store),
        }
    }

    /// Asks the process that holds the store.
    #[must_use]
    pub fn through(client: ControlClient) -> Reader {
        Reader {
            source: Source::Control(client),
        }
    }

    /// Reads the store of the data folder `folder`: itself where nobody holds it, else by whoever does. Makes no store
    /// where there is none.
    ///
    /// # Errors
    /// [`ReadError::NoRuns`] where there is no store; [`ReadError::Store`] when it cannot be used, as
    /// [`StoreError::Held`] when its holder does not answer.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[cfg(feature = "store")]
    pub async fn open(folder: &Path) -> Result<Reader, ReadError> {
        if !folder.join("store").exists() {
            return Err(ReadError::NoRuns);
        }
        let client = ControlClient::new(folder);
        let given_up = Instant::now() + HOLDER_COMES;
        loop {
            let held = match open_store(folder).await {
                Err(held @ StoreError::Held { .. }) => held,
                opened => return Ok(Reader::over(opened?)),
            };
            let answered = tokio::time::timeout(HOLDER_ANSWERS, client.runs(Which::All, 1)).await;
            if matches!(answered, Ok(Ok(_))) {
                return Ok(Reader::through(client));
            }
            if Instant::now() > given_up {
                return Err(held.into());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Whether it asks a process that may be driving runs.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Control(_))
    }

    /// Summaries of runs, newest launch first.
    ///
    /// # Errors
    /// When the store cannot be read, or whoever holds it does not answer; as every method.
    pub async fn runs(&self, which: Which, limit: usize) -> Result<Vec<RunSummary>, ReadError> {
        match &self.source {
            Source::Store(store) => Ok(store.runs(which, limit).await?),
            Source::Control(client) => client.runs(which, limit).await,
        }
    }

    /// The summary of the run that was launched last.
    ///
    /// # Errors
    /// [`ReadError::NoRuns`].
    pub async fn newest(&self) -> Result<RunSummary, ReadError> {
        self.runs(Which::All, 1).await?.pop().ok_or(ReadError::NoRuns)
    }

    /// One run's summary.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`].
    pub async fn run(&self, run: &RunId) -> Result<RunSummary, ReadError> {
        match &self.source {
            Source::Store(store) => store
                .run(run)
                .await?
                .ok_or_else(|| ReadError::NoSuchRun(run.clone())),
            Source::Control(client) => client.run(run).await,
        }
    }

    /// What a run is asked to do.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`], [`ReadError::Engine`] when its log cannot be read.
    pub async fn definition(&self, run: &RunId) -> Result<RunDefinition, ReadError> {
        let launch = match &self.source {
            Source::Store(store) => read_launch(&**store, run).await?,
            Source::Control(client) => client.launch(run).await?,
        };
        let corrupt = |source| {
            ReadError::Engine(EngineError::Corrupt {
                run: run.clone(),
                source,
            })
        };
        Ok(Run::start(launch).map_err(corrupt)?.definition().clone())
    }

    /// The runs that whoever holds the store drives, in the order of their launch.
    ///
    /// # Errors
    /// [`ReadError::Control`].
    pub async fn driven(&self) -> Result<Vec<RunId>, ReadError> {
        match &self.source {
            Source::Store(_) => Ok(Vec::new()),
            Source::Control(client) => client.driven().await,
        }
    }

    /// A run's facts from position `from` on, as far as they are stored; none where there is no such run.
    ///
    /// # Errors
    /// [`ReadError::Engine`] when its log cannot be read.
    pub async fn events(&self, run: &RunId, from: Seq) -> Result<Vec<Recorded>, ReadError> {
        match &self.source {
            Source::Store(store) => Ok(read_all(&**store, run, from).await?),
            Source::Control(client) => client.events(run, from).await,
        }
    }

    /// A run as its facts tell it.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`], [`ReadError::Engine`] when they make no sense.
    pub async fn load(&self, run: &RunId) -> Result<Run, ReadError> {
        let facts = self.events(run, Seq::FIRST).await?;
        if facts.is_empty() {
            return Err(ReadError::NoSuchRun(run.clone()));
        }
        let corrupt = |source| {
            ReadError::Engine(EngineError::Corrupt {
                run: run.clone(),
                source,
            })
        };
        Run::replay(facts).map_err(corrupt)
    }

    /// A run's facts from position `from` on, each once and in order, then, while it is driven by whoever holds the
    /// store, what goes on. When that process ends, what it left is read before the stream ends.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`]. The stream ends with what went wrong later.
    pub async fn follow(&self, run: &RunId, from: Seq) -> Result<Followed<ReadError>, ReadError> {
        self.run(run).await?;
        self.items(run, from).await
    }

    async fn items(&self, run: &RunId, from: Seq) -> Result<Followed<ReadError>, ReadError> {
        match &self.source {
            Source::Store(store) => {
                let items = follow(Arc::clone(store), run.clone(), None, from);
                Ok(items.map(|item| item.map_err(ReadError::from)).boxed())
            }
            Source::Control(client) => {
                let items = client.follow(run, from).await?;
                Ok(outlive(client, run, from, items))
            }
        }
    }

    /// Asks a run to stop; a second time: at once (R4).
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`]; [`ReadError::Over`]; [`ReadError::NotDriven`], as always while this process holds the
    /// store by this reader.
    pub async fn stop(&self, run: &RunId) -> Result<StopAsked, ReadError> {
        match &self.source {
            Source::Control(client) => client.stop(run).await,
            Source::Store(_) => Err(self.not_driven(run).await?),
        }
    }

    /// Answers a permission request of a run that is driven; the answer is durable when this returns.
    ///
    /// # Errors
    /// [`ReadError::Refused`] when it cannot be answered so; [`ReadError::NoSuchRun`]; [`ReadError::Over`];
    /// [`ReadError::NotDriven`], as always while this process holds the store by this reader.
    pub async fn answer_permission(
        &self,
        run: &RunId,
        asked: Seq,
        answer: PermissionAnswer,
    ) -> Result<(), ReadError> {
        match &self.source {
            Source::Control(client) => client.answer_permission(run, asked, answer).await,
            Source::Store(_) => Err(self.not_driven(run).await?),
        }
    }

    /// The text that a run executed, byte for byte; none where the run was of no file, or the store has the text no
    /// more. With `renew` it is made the task's newest version (R14).
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`], and when the store cannot be used.
    pub async fn executed_text(&self, run: &RunId, renew: bool) -> Result<Option<ExecutedText>, ReadError> {
        match &self.source {
            Source::Store(store) => Ok(executed_text(&**store, run, renew).await?),
            Source::Control(client) => client.executed(run, renew).await,
        }
    }

    /// Commands a step of a run that is driven; what follows is durable when this returns (W18).
    ///
    /// # Errors
    /// [`ReadError::Refused`] when the command makes no sense; [`ReadError::NoSuchRun`]; [`ReadError::Over`];
    /// [`ReadError::NotDriven`], as always while this process holds the store by this reader.
    pub async fn command(&self, run: &RunId, step: StepIndex, command: StepCommand) -> Result<(), ReadError> {
        match &self.source {
            Source::Control(client) => client.command(run, step, command).await,
            Source::Store(_) => Err(self.not_driven(run).await?),
        }
    }

    /// The permission requests that wait for a person, of all runs, the oldest first. Only a run that is driven has
    /// any: one that was cut is asked again when it goes on.
    ///
    /// # Errors
    /// [`ReadError::Engine`] when the log of such a run cannot be read.
    pub async fn permissions(&self) -> Result<Vec<PermissionView>, ReadError> {
        let mut open = Vec::new();
        for run in self.driven().await? {
            if self.run(&run).await?.asking > 0 {
                open.extend(self.load(&run).await?.permissions());
            }
        }
        open.sort_by_key(|request| request.since);
        Ok(open)
    }

    /// Why nobody can be told anything about the run.
    async fn not_driven(&self, run: &RunId) -> Result<ReadError, ReadError> {
        let summary = self.run(run).await?;
        let run = run.clone();
        Ok(match summary.finished {
            true => ReadError::Over {
                run,
                state: summary.state,
            },
            false => ReadError::NotDriven(run),
        })
    }

    /// When each step's session last said or did anything, as far as whoever drives the run heard it.
    ///
    /// # Errors
    /// [`ReadError::Control`].
    pub async fn heard(&self, run: &RunId) -> Result<Vec<(StepIndex, Timestamp)>, ReadError> {
        match &self.source {
            Source::Store(_) => Ok(Vec::new()),
            Source::Control(client) => client.heard(run).await,
        }
    }

    /// A session's transcript: its events but the final answers, as JSON lines.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn transcript(&self, run: &RunId, session: ClientSessionId) -> Result<String, ReadError> {
        match &self.source {
            Source::Store(store) => {
                let chunks = store.transcript(run, session).await?;
                Ok(chunks
                    .iter()
                    .map(|chunk| String::from_utf8_lossy(chunk))
                    .collect())
            }
            Source::Control(client) => client.transcript(run, session).await,
        }
    }
}

/// A run followed in a process that may end before the run does.
#[cfg(feature = "store")]
struct Following {
    folder: PathBuf,
    run: RunId,
    /// The position of the fact that comes next.
    next: Seq,
    items: Followed<ReadError>,
}

/// Goes on with what the store holds when the process at the other end is gone.
#[cfg(feature = "store")]
fn outlive(
    client: &ControlClient,
    run: &RunId,
    from: Seq,
    items: Followed<ReadError>,
) -> Followed<ReadError> {
    let folder = client.folder().to_owned();
    let following = Following {
        folder,
        run: run.clone(),
        next: from,
        items,
    };
    stream::unfold(following, |mut following| async {
        let item = following.next().await?;
        Some((item, following))
    })
    .boxed()
}

/// Without a store of our own, what the process at the other end told is all.
#[cfg(not(feature = "store"))]
fn outlive(_: &ControlClient, _: &RunId, _: Seq, items: Followed<ReadError>) -> Followed<ReadError> {
    items
}

#[cfg(feature = "store")]
impl Following {
    async fn next(&mut self) -> Option<Result<FeedItem, ReadError>> {
        let item = match self.items.next().await? {
            Err(ReadError::Control(ControlError::Closed)) => match self.reopen().await {
                Ok(()) => self.items.next().await?,
                Err(error) => Err(error),
            },
            item => item,
        };
        if let Ok(FeedItem::Fact(fact)) = &item {
            self.next = fact.seq.next();
        }
        Some(item)
    }

    async fn reopen(&mut self) -> Result<(), ReadError> {
        let reader = Reader::open(&self.folder).await?;
        self.items = Box::pin(reader.items(&self.run, self.next)).await?;
        Ok(())
    }
}

/// Opens the store of a data folder, off the executor's threads.
#[cfg(feature = "store")]
async fn open_store(folder: &Path) -> Result<Arc<dyn Store>, StoreError> {
    let folder = folder.join("store");
    let path = folder.clone();
    let opening = tokio::task::spawn_blocking(move || SledStore::open(folder, Options::default()));
    match opening.await {
        Ok(opened) => Ok(Arc::new(opened?)),
        Err(error) => Err(StoreError::Io {
            path,
            why: format!("opening it was given up: {error}"),
        }),
    }
}

#[cfg(all(test, unix, feature = "store"))]
mod tests;
