//! Logs that the program wrote once, each believed again: every event leads to the state that it led to then (A13).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sillage::core::id::Seq;
use sillage::core::ports::Store as _;
use sillage::core::ports::store::Which;
use sillage::core::run::{Recorded, Run, codec};
use sillage::store::{Options, SledStore};

/// A file for each log, an event a line: its bytes in hexadecimal, and where the run and its steps stood after it.
/// Files are added, never changed: each such log is in somebody's store.
const LOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sillage-core/tests/golden/runs");

/// Where the run and its steps stand, in the words of R2, with how long each has worked and waited.
fn state(run: &Run) -> String {
    let mut told = run.word().to_owned();
    for (name, step) in run.step_names().zip(run.steps()) {
        let (worked, waited) = (step.worked(run.updated()), step.waited(run.updated()));
        let (worked, waited) = (worked.as_millis(), waited.as_millis());
        let _ = write!(told, " {name}:{}:{worked}:{waited}", step.word());
    }
    told
}

fn believed(run: &mut Option<Run>, bytes: &[u8]) -> Result<String, String> {
    let fact: Recorded = codec::decode(bytes).map_err(|error| error.to_string())?;
    match run {
        Some(run) => run.apply(&fact),
        None => Run::start(fact).map(|started| *run = Some(started)),
    }
    .map_err(|error| error.to_string())?;
    Ok(run.as_ref().map(state).unwrap_or_default())
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    (0..hexadecimal.len() / 2)
        .map(|at| u8::from_str_radix(&hexadecimal[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

#[test]
fn a13_every_recorded_log_leads_to_the_states_that_it_led_to() {
    let mut logs = 0;
    for entry in fs::read_dir(LOGS).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let mut run = None;
        for (at, line) in text.lines().enumerate() {
            let (event, then) = line.split_once(' ').unwrap();
            let now = believed(&mut run, &bytes(event));
            assert_eq!(now.as_deref(), Ok(then), "{}, event {}", path.display(), at + 1);
        }
        assert!(
            run.is_some_and(|run| run.end().is_some()),
            "{} is whole",
            path.display()
        );
        logs += 1;
    }
    assert!(logs >= 3, "{logs}");
}

/// Adds the runs of a store to the recorded logs: `SILLAGE_RECORD_STORE` is its folder, which nobody holds.
#[tokio::test]
#[ignore = "adds files to the recorded logs"]
async fn record_the_logs_of_a_store() {
    let folder = std::env::var_os("SILLAGE_RECORD_STORE").expect("SILLAGE_RECORD_STORE names a store");
    let store = SledStore::open(Path::new(&folder), Options::default()).unwrap();
    for summary in store.runs(Which::All, 1000).await.unwrap() {
        let (mut run, mut text) = (None, String::new());
        for (_, event) in store.read(&summary.run, Seq::FIRST, usize::MAX).await.unwrap() {
            let then = believed(&mut run, &event).unwrap();
            event.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
            writeln!(text, " {then}").unwrap();
        }
        let file = Path::new(LOGS).join(format!("{}.txt", summary.run));
        assert!(!file.exists(), "a recorded log is never changed");
        fs::write(file, text).unwrap();
    }
}
