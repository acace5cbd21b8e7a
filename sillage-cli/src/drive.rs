//! Showing a run that this process drives, from its launch to its end: progress, signals, the outcome.

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use sillage::core::id::Seq;
use sillage::core::run::{Run, RunEnd};
use sillage::{ActiveRuns, ControlServer, RunHandle, follow};

use crate::adapters::Adapters;
use crate::commands::recap;
use crate::exit::Exit;
use crate::failure::{Failure, Kind, with_causes};
use crate::output::Output;
use crate::progress::{self, Answers};
use crate::signals::{Signals, Told};

/// Runs a command that waits for things.
///
/// # Errors
/// The command's, or when the system gives us no threads.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Kind::Io, format_args!("cannot start: {error}")))?;
    runtime.block_on(command)
}

/// What a run came to: the last line of `run --json`, `resume --json` and `follow --json`.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    event: &'static str,
    run: &'a str,
    state: &'static str,
    /// The integration branch, where anything was merged.
    branch: Option<String>,
    /// Its tip.
    commit: Option<&'a str>,
}

/// Shows the run until it is over; the exit code is the run's. A first interrupt asks it to stop, a second forces it; a
/// terminal that is closed asks it to stop, however often and in whichever way that shows. Meanwhile others may ask about
/// it, and stop it, by the control socket. `known` is the run as it was before this process took it up; none: it was just
/// launched.
///
/// # Errors
/// When the engine had to stop before the run's end.
pub(crate) async fn to_its_end(
    adapters: &Adapters,
    handle: RunHandle,
    known: Option<Run>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let control = listen(adapters, &handle);
    let from = known.as_ref().map_or(Seq::FIRST, |run| run.last().next());
    let items = follow(
        Arc::clone(&adapters.store),
        handle.id().clone(),
        Some(handle.clone()),
        from,
    );
    let mut stops = Stops {
        handle: &handle,
        asked: false,
    };
    let shown = {
        let answers = Answers::Here(handle.clone());
        let mut showing = std::pin::pin!(progress::show(known, items, Vec::new(), &answers, output));
        loop {
            tokio::select! {
                shown = &mut showing => break shown,
                told = signals.next() => stops.on(told),
            }
        }
    };
    if shown.is_err() {
        // Nobody can see it any more.
        stops.once();
    }
    let ended = loop {
        tokio::select! {
            ended = handle.wait() => break ended,
            told = signals.next() => stops.on(told),
        }
    };
    if let Some(control) = control {
        control.close().await;
    }
    let end = ended.map_err(|error| Failure::from(&*error))?;
    let shown = match shown {
        Err(failure) if output.is_unwritable() => {
            let told = "the run was asked to stop, as nobody could see it";
            output.failure(&failure.hint(match end {
                RunEnd::Stopped => format!("{told}; `sillage resume {}` goes on with it", handle.id()),
                RunEnd::Complete | RunEnd::Partial | RunEnd::Blocked | RunEnd::Failed => {
                    format!("{told}, and is {} all the same", end.word())
                }
            }))?;
            return Ok(Exit::from(end));
        }
        shown => shown?,
    };
    match shown {
        Some(run) => {
            let told = recap::of(&run, run.updated(), Some(&*adapters.workspace)).await;
            output.line("")?;
            recap::tell(&told, output)?;
            outcome(&run, output)
        }
        None => Err(Failure::new(Kind::Defect, "the run ended without having begun")),
    }
}

/// What signals make of a run. It may have ended meanwhile, which is what was wanted; it tells that it stops.
struct Stops<'h> {
    handle: &'h RunHandle,
    asked: bool,
}

impl Stops<'_> {
    fn on(&mut self, told: Told) {
        match told {
            Told::ToEnd => {
                self.asked = true;
                drop(self.handle.stop());
            }
            Told::ThatNobodySees => self.once(),
        }
    }

    /// Asks it to stop, and never forces it.
    fn once(&mut self) {
        if !std::mem::replace(&mut self.asked, true) {
            drop(self.handle.stop());
        }
    }
}

/// Answers others about the run. A run does not fail for want of that.
fn listen(adapters: &Adapters, handle: &RunHandle) -> Option<ControlServer> {
    let active = ActiveRuns::new();
    active.add(handle.clone());
    match ControlServer::start(&adapters.data, Arc::clone(&adapters.store), active) {
        Ok(server) => Some(server),
        Err(error) => {
            tracing::warn!(error = with_causes(&error), "others cannot ask about this run");
            None
        }
    }
}

/// Tells what a run came to.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn outcome(run: &Run, output: &mut Output) -> Result<Exit, Failure> {
    output.json(&Outcome {
        event: "outcome",
        run: run.id().as_str(),
        state: run.word(),
        branch: run.tip().map(|_| run.definition().integration_branch()),
        commit: run.tip(),
    })?;
    Ok(run.end().map_or(Exit::Failed, Exit::from))
}

impl From<RunEnd> for Exit {
    fn from(end: RunEnd) -> Self {
        match end {
            RunEnd::Complete => Exit::Complete,
            RunEnd::Partial => Exit::Partial,
            RunEnd::Blocked => Exit::Blocked,
            RunEnd::Failed => Exit::Failed,
            RunEnd::Stopped => Exit::Interrupted,
        }
    }
}
