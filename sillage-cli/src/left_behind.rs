//! What an engine that was killed left behind: ended before anything else is started, and told.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use sillage::Reader;
use sillage::acp::leftovers::{self, Leftover, LeftoverState};
use sillage::core::id::{RunId, Seq};
use sillage::core::ports::store::Which;
use sillage::core::run::{Event, LeftBehind, Run};

use crate::adapters::Adapters;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::terminal::visible;

/// Runs in which the step of a session is looked for, the newest first.
const LOOKED_AT: usize = 50;

/// The folder of the records of agents' processes.
pub(crate) fn records(data: &Path) -> PathBuf {
    data.join("processes")
}

/// Ends what is left in a data folder that this process holds.
///
/// # Errors
/// When the records cannot be read or written.
pub(crate) fn end(data: &Path) -> Result<Vec<Leftover>, Failure> {
    let records = records(data);
    leftovers::end(&records).map_err(|error| Failure::reading(&records, &error))
}

/// From now on orphans of what this process starts come to it.
///
/// # Errors
/// When the system refuses.
pub(crate) fn adopt_orphans() -> Result<(), Failure> {
    leftovers::adopt_orphans()
        .map_err(|error| Failure::new(Kind::Io, format_args!("cannot look after processes: {error}")))
}

/// One of them for a program. Dates are milliseconds since 1970 in UTC.
#[derive(Debug, Serialize)]
pub(crate) struct Told {
    /// The run, where it is known.
    run: Option<RunId>,
    /// The agent's step in it.
    step: Option<String>,
    #[serde(flatten)]
    left: Leftover,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    #[serde(flatten)]
    told: &'a Told,
}

/// Says on standard error, and in JSON, what was left and what became of it: a line each.
///
/// # Errors
/// When the runs cannot be read or the answer cannot be written.
pub(crate) async fn tell(adapters: &Adapters, output: &mut Output) -> Result<(), Failure> {
    if adapters.left.is_empty() {
        return Ok(());
    }
    let reader = Reader::over(Arc::clone(&adapters.store));
    for told in attribute(&adapters.left, &reader).await? {
        // Whoever reads standard error may be gone.
        let _ = writeln!(std::io::stderr(), "{}", told.sentence());
        output.json(&Line {
            event: "left_behind",
            told: &told,
        })?;
    }
    Ok(())
}

/// What is left now, in a data folder that another process may hold.
///
/// # Errors
/// When the records or the runs cannot be read.
pub(crate) async fn find(data: &Path, reader: &Reader) -> Result<Vec<Told>, Failure> {
    let records = records(data);
    let left = leftovers::find(&records).map_err(|error| Failure::reading(&records, &error))?;
    attribute(&left, reader).await
}

/// Finds whose sessions they were. A run that cannot be read is no reason not to tell.
async fn attribute(left: &[Leftover], reader: &Reader) -> Result<Vec<Told>, Failure> {
    let mut told: Vec<Told> = left.iter().cloned().map(Told::of_nobody).collect();
    if left.is_empty() {
        return Ok(told);
    }
    for summary in reader.runs(Which::All, LOOKED_AT).await? {
        let Ok(log) = reader.events(&summary.run, Seq::FIRST).await else {
            continue;
        };
        let run = Run::replay(log.iter().cloned()).ok();
        for fact in &log {
            let Event::SessionPlanned { step, request } = &fact.event else {
                continue;
            };
            for one in told
                .iter_mut()
                .filter(|one| one.left.session == request.client_session_id)
            {
                one.step = run.as_ref().map(|run| run.step_name(*step).to_owned());
                one.run = Some(summary.run.clone());
            }
        }
        if told.iter().all(|one| one.run.is_some()) {
            break;
        }
    }
    Ok(told)
}

/// As the journals of their runs say it.
pub(crate) fn for_journals(left: &[Leftover]) -> Vec<LeftBehind> {
    let left = left.iter().map(|one| LeftBehind {
        session: one.session,
        pids: one.pids.clone(),
        trouble: match &one.state {
            LeftoverState::Unstoppable { pid, words } => {
                Some(format!("process {pid} could not be stopped: {words}"))
            }
            LeftoverState::Gone | LeftoverState::Running | LeftoverState::Ended => None,
        },
    });
    left.collect()
}

impl Told {
    fn of_nobody(left: Leftover) -> Told {
        Told {
            run: None,
            step: None,
            left,
        }
    }

    /// One of them for a person.
    pub(crate) fn sentence(&self) -> String {
        let whose = match (&self.step, &self.run) {
            (Some(step), Some(run)) => format!("`{step}` of run {run}"),
            (_, Some(run)) => format!("session {} of run {run}", self.left.session),
            (_, None) => format!("session {}", self.left.session),
        };
        let agent = match self.left.agent.as_str() {
            "" => String::new(),
            agent => format!(" (agent {})", visible(agent)),
        };
        let pids: Vec<String> = self.left.pids.iter().map(u32::to_string).collect();
        let processes = format!(
            "process{} {}",
            if pids.len() == 1 { "" } else { "es" },
            pids.join(", ")
        );
        match &self.left.state {
            LeftoverState::Gone => {
                format!("left by an earlier engine: nothing of {whose}{agent}; its processes had ended")
            }
            LeftoverState::Running => format!("left by an earlier engine: {processes} of {whose}{agent}"),
            LeftoverState::Ended => {
                format!("left by an earlier engine, and ended: {processes} of {whose}{agent}")
            }
            LeftoverState::Unstoppable { pid, words } => format!(
                "left by an earlier engine: process {pid} of {whose}{agent} could not be stopped: {}; it stays listed by `sillage status`",
                visible(words)
            ),
        }
    }
}
