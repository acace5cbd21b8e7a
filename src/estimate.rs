//! What estimates rest on and are of, as an engine knows it (R24, R25).

use std::num::NonZeroU32;
use std::path::Path;

use sillage_core::estimate::{Estimator, Gather, Past, RunSample, Subject};
use sillage_core::graph::Cycle;
use sillage_core::id::{RunId, Seq};
use sillage_core::ports::runtime::ModelOffer;
use sillage_core::ports::store::{RunSummary, Which};
use sillage_core::run::Recorded;
use sillage_core::task::Task;

use crate::launch::{accounts, parallel};
use crate::reader::{ReadError, Reader};

/// Runs that are looked at, the newest ones.
const RUNS: usize = 200;

/// Events that are read in all: about a quarter of a second.
const EVENTS: u64 = 100_000;

/// What past runs tell of how long sessions take: the newest runs that are over, as many as can be read at once. One
/// whose log cannot be used is left out: nobody is kept from an estimate by an old run.
///
/// # Errors
/// When the list of runs cannot be read.
pub async fn past(reader: &Reader) -> Result<Past, ReadError> {
    let mut past = Past::default();
    for run in to_read(reader.runs(Which::All, RUNS).await?, EVENTS) {
        if let Some(sample) = sample(reader, &run).await {
            past.add(sample);
        }
    }
    Ok(past)
}

/// Of these runs, the newest first, those that are over and whose logs have so many events at most in all. One that is
/// too long for what is left is passed over: a very long run does not hide all that came before it.
fn to_read(runs: Vec<RunSummary>, most: u64) -> impl Iterator<Item = RunId> {
    let mut left = most;
    runs.into_iter()
        .filter(|run| run.finished)
        .filter_map(move |run| {
            left = left.checked_sub(run.last.0)?;
            Some(run.run)
        })
}

async fn sample(reader: &Reader, run: &RunId) -> Option<RunSample> {
    let facts = match reader.events(run, Seq::FIRST).await {
        Ok(facts) => facts,
        Err(error) => {
            tracing::debug!(%run, %error, "left out of estimates");
            return None;
        }
    };
    gathered(facts)
}

fn gathered(facts: Vec<Recorded>) -> Option<RunSample> {
    let mut facts = facts.into_iter();
    let mut gather = Gather::start(facts.next()?).ok()?;
    for fact in facts {
        gather.take(&fact).ok()?;
    }
    Some(gather.finish())
}

/// An estimator of a task that is not about to be launched: under the limits of the task and of the program, `program`,
/// and with the accounts of the models on offer.
///
/// # Errors
/// The cycles, when the task was not checked and has some.
pub fn estimator_of(
    task: &Task,
    task_file: Option<&Path>,
    program: Option<NonZeroU32>,
    offers: &[ModelOffer],
    past: &Past,
) -> Result<Estimator, Vec<Cycle>> {
    let subject = Subject {
        task,
        task_file,
        parallel: parallel(task.limits.parallel, program),
        accounts: &accounts(task, offers),
    };
    Estimator::new(&subject, past)
}

#[cfg(test)]
mod tests {
    use sillage_testkit::store_suite::summary;

    use super::*;

    #[test]
    fn a_run_that_is_too_long_to_be_read_hides_no_other() {
        let run = |name: &str, last: u64, finished: bool| RunSummary {
            last: Seq(last),
            finished,
            ..summary(&RunId::new(name).unwrap(), 0)
        };
        let runs = vec![
            run("endless", 1_000, true),
            run("newer", 60, true),
            run("at-work", 10, false),
            run("long", 50, true),
            run("older", 40, true),
        ];
        let read: Vec<String> = to_read(runs, 100).map(|run| run.to_string()).collect();
        assert_eq!(read, ["newer", "older"]);
    }
}
