//! A process that writes to a store and says what was acknowledged, for tests that kill or trace it.
//!
//! `append FOLDER RUNS EVENTS`: each of RUNS runs appends until its log has EVENTS events (0: for ever), a few at a
//! time, and prints `RUN LAST` after each acknowledgement; on an error it prints `error RUN LAST: WORDS`, reads the
//! run again and goes on. `hold FOLDER`: opens the store, prints `open` and waits for the end of its input. `read
//! FOLDER RUN...`: checks that each run holds what was appended, and prints `RUN LAST`. An error in opening is
//! printed as `refused: WORDS`.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError};
use sillage_core::time::Timestamp;
use sillage_store::{Options, SledStore, hush_caught_panics};
use uuid::Uuid;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    hush_caught_panics();
    // Whatever hangs is a failure, and leaves nothing behind.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(120));
        std::process::exit(3);
    });
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (verb, folder, rest) = match arguments.as_slice() {
        [verb, folder, rest @ ..] => (*verb, *folder, rest),
        [] | [_] => return Ok(ExitCode::from(2)),
    };
    let store = match SledStore::open(
        folder,
        Options {
            program: "child".to_owned(),
            ..Options::default()
        },
    ) {
        Ok(store) => Arc::new(store),
        Err(error) => {
            say(format_args!("refused: {error}"))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    match (verb, rest) {
        ("append", [runs, events]) => append_all(&store, runs.parse()?, events.parse()?).await?,
        ("hold", []) => {
            say("open")?;
            io::stdin().read_to_end(&mut Vec::new())?;
        }
        ("read", runs) => {
            for run in runs {
                match read(&store, &run.parse()?).await {
                    Ok(last) => say(format_args!("{run} {last}"))?,
                    Err(error) => say(format_args!("error {run}: {error}"))?,
                }
            }
        }
        _ => return Ok(ExitCode::from(2)),
    }
    Ok(ExitCode::SUCCESS)
}

fn say(line: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // One write, so that a line is printed whole or not at all.
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

async fn append_all(store: &Arc<SledStore>, runs: u64, events: u64) -> Result<(), Failure> {
    let mut tasks = Vec::new();
    for number in 0..runs {
        let store = Arc::clone(store);
        tasks.push(tokio::spawn(async move { append(&store, number, events).await }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn append(store: &SledStore, number: u64, events: u64) -> Result<(), Failure> {
    let run: RunId = format!("run-{number}").parse()?;
    let mut last = read(store, &run).await?;
    while events == 0 || last < events {
        let until = last + 1 + (last + number) % 3;
        // What agents say goes along unsynced.
        store
            .add_transcript(
                &run,
                ClientSessionId(Uuid::from_u128(number.into())),
                event(&run, last + 1),
            )
            .await
            .ok();
        let batch = (last + 1..=until).map(|at| event(&run, at)).collect();
        match store.append(&run, Seq(last + 1), batch, &summary(&run)).await {
            Ok(()) => {
                last = until;
                say(format_args!("{run} {last}"))?;
            }
            Err(error) => {
                say(format_args!("error {run} {last}: {error}"))?;
                let unread = store
                    .append(&run, Seq(last + 1), vec![event(&run, last + 1)], &summary(&run))
                    .await;
                if unread.is_ok() {
                    say(format_args!("WRONG: {run} was written without being read again"))?;
                }
                last = read_until_it_works(store, &run).await?;
            }
        }
    }
    Ok(())
}

async fn read_until_it_works(store: &SledStore, run: &RunId) -> Result<u64, Failure> {
    let mut tries = 0;
    loop {
        match read(store, run).await {
            Ok(last) => return Ok(last),
            Err(error) if tries == 100 => return Err(error.into()),
            Err(_) => tries += 1,
        }
    }
}

/// Reads a run, which must hold what was appended; tells its last position.
async fn read(store: &SledStore, run: &RunId) -> Result<u64, StoreError> {
    let mut last = 0;
    loop {
        let page = store.read(run, Seq(last + 1), 1 << 20).await?;
        if page.is_empty() {
            return Ok(last);
        }
        for (at, bytes) in page {
            last += 1;
            if at.0 != last || bytes != event(run, last) {
                let why = format!("WRONG: event {last} of {run} is not what was appended");
                return Err(StoreError::Io {
                    path: "child".into(),
                    why,
                });
            }
        }
    }
}

/// The event at a position: some short, some long, some longer than anything that is written at once.
fn event(run: &RunId, at: u64) -> Vec<u8> {
    let text = format!("{run}/{at};");
    let length = match at {
        // More than sled's segment, and more than is written at once.
        at if at % 41 == 17 => 600_000,
        at if at.is_multiple_of(23) => 30_000,
        at => 40 + at % 600,
    };
    text.bytes()
        .cycle()
        .take(usize::try_from(length).unwrap_or(40))
        .collect()
}

fn summary(run: &RunId) -> RunSummary {
    RunSummary {
        run: run.clone(),
        title: "a run to be killed".to_owned(),
        task_file: None,
        launched: Timestamp(1),
        updated: Timestamp(2),
        state: "running".to_owned(),
        finished: false,
        steps: 1,
        ended: 0,
        succeeded: 0,
        asking: 0,
        resumable: false,
        last: Seq(0),
    }
}
