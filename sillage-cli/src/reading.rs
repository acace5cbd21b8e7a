//! What commands that look at runs have in common: which run, and reading it while others may be driving it.

use std::collections::BTreeMap;

use clap::Args;
use sillage::core::fault::nearest;
use sillage::core::id::{RunId, Seq, StepIndex};
use sillage::core::plain;
use sillage::core::ports::Clock as _;
use sillage::core::ports::store::RunSummary;
use sillage::core::run::{Recorded, Run};
use sillage::core::time::Timestamp;
use sillage::{EngineError, ReadError, Reader, SystemClock};

use crate::arguments::Global;
use crate::drive;
use crate::failure::{Failure, Kind, with_causes};
use crate::terminal::visible;

/// The run that a command is about.
#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// The run [default: the newest].
    pub(crate) run: Option<RunId>,
}

impl Chosen {
    /// The run that was named, else the newest.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`], [`ReadError::NoRuns`].
    pub(crate) async fn summary(&self, reader: &Reader) -> Result<RunSummary, ReadError> {
        match &self.run {
            Some(run) => reader.run(run).await,
            None => reader.newest().await,
        }
    }

    /// Reads the run, with nothing held once this returns.
    ///
    /// # Errors
    /// When there is no such run, or it cannot be read.
    pub(crate) fn read(&self, global: &Global) -> Result<Story, Failure> {
        let data = global.data_folder()?;
        drive::block_on(async {
            let reader = Reader::open(&data).await?;
            let run = self.summary(&reader).await?.run;
            Ok(Story::of(&reader, &run).await?)
        })
    }
}

/// A run with all that is known of it.
pub(crate) struct Story {
    /// The run as it stands.
    pub(crate) run: Run,
    /// Its log.
    pub(crate) log: Vec<Recorded>,
    /// Whether a process drives it now.
    pub(crate) driven: bool,
    /// When each agent was last heard, by its identifier, as far as whoever drives the run heard it.
    pub(crate) heard: BTreeMap<String, Timestamp>,
}

impl Story {
    /// Reads a run's story.
    ///
    /// # Errors
    /// [`ReadError::NoSuchRun`], [`ReadError::Engine`] when its log makes no sense.
    pub(crate) async fn of(reader: &Reader, id: &RunId) -> Result<Story, ReadError> {
        let heard = reader.heard(id).await?;
        let driven = reader.driven().await?.contains(id);
        let log = reader.events(id, Seq::FIRST).await?;
        if log.is_empty() {
            return Err(ReadError::NoSuchRun(id.clone()));
        }
        let run = Run::replay(log.iter().cloned()).map_err(|source| EngineError::Corrupt {
            run: id.clone(),
            source,
        })?;
        let heard = heard
            .into_iter()
            .map(|(step, at)| (run.step_name(step).to_owned(), at))
            .collect();
        Ok(Story {
            run,
            log,
            driven,
            heard,
        })
    }

    /// The moment that the run is looked at: now, or where nobody drives it, when it was last driven. What passed since
    /// was nobody's work and nobody's wait.
    pub(crate) fn seen_at(&self) -> Timestamp {
        match self.driven {
            true => SystemClock.now(),
            false => self.run.updated(),
        }
    }
}

/// The step that a person names by its agent.
///
/// # Errors
/// When there is none; names the nearest, and all.
pub(crate) fn step_named(run: &Run, name: &str) -> Result<StepIndex, Failure> {
    let names: Vec<&str> = run.step_names().collect();
    match run.step_named(name) {
        Some(step) => Ok(step),
        None => {
            let near = nearest(name, names.iter().copied());
            let near = near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
            let words = format!("run {} has no agent `{}`{near}", run.id(), visible(name));
            Err(Failure::new(Kind::Usage, words).hint(format_args!("its agents are {}", plain::list(&names))))
        }
    }
}

/// Whether something of the run can be done again or gone on with.
pub(crate) fn is_resumable(run: &RunSummary, driven: &[RunId]) -> bool {
    is_left(run) && !driven.contains(&run.run)
}

/// Whether the run, as its last engine left it, has something to go on with or to do again.
pub(crate) fn is_left(run: &RunSummary) -> bool {
    run.resumable || !matches!(run.state.as_str(), "complete" | "partial")
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NoRuns => {
                Failure::new(Kind::Usage, "there is no run").hint("`sillage run TASK` launches one")
            }
            ReadError::NoSuchRun(_) => {
                Failure::new(Kind::Usage, error).hint("`sillage status` lists the runs")
            }
            ReadError::NotDriven(ref run) => {
                let hint = format!("it was cut; `sillage resume {run}` goes on with it");
                Failure::new(Kind::Usage, error).hint(hint)
            }
            ReadError::Refused(_) => {
                Failure::new(Kind::Usage, error).hint("`sillage permissions` lists what is open")
            }
            ReadError::Over { .. } => Failure::new(Kind::Usage, error),
            ReadError::Store(error) => error.into(),
            ReadError::Engine(error) => error.into(),
            ReadError::Control(_) | _ => Failure::new(Kind::Store, with_causes(&error)),
        }
    }
}
