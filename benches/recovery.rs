//! Taking up a long run after a crash, and the memory that a long run takes: `cargo bench --bench recovery [-- FOLDER]`.
//!
//! The store holds 1,000 finished runs and one that a crash cut when 1,000, 10,000 or 100,000 of its steps were over.
//! The clock runs from opening the store until a step that was not begun before gets its message.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot go on must stop, and tells figures"
)]

#[path = "workload/alone.rs"]
mod alone;
#[path = "workload/definition.rs"]
mod definition;
#[path = "workload/graphs.rs"]
mod graphs;
#[path = "workload/memory.rs"]
mod memory;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sillage::Engine;
use sillage::core::id::RunId;
use sillage::core::ports::Store as _;
use sillage::core::run::{Event, Recorded, Run, RunDefinition, codec};
use sillage::store::{Options, SledStore};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

const FINISHED_RUNS: u32 = 1_000;
const ROUNDS: usize = 5;
const CUT: &str = "cut";

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'));
    let first = arguments.next();
    match (first.as_deref(), arguments.next()) {
        // What a process of its own is asked, so that nothing else is in its memory.
        (Some("open"), Some(folder)) => println!("{}", open(Path::new(&folder))),
        (Some("run"), Some(folder)) => println!("{}", run_long(Path::new(&folder))),
        (folder, _) => tell_all(folder.map_or_else(|| PathBuf::from("."), PathBuf::from).as_path()),
    }
}

fn tell_all(folder: &Path) {
    let scratch = tempfile::tempdir_in(folder).unwrap();
    for steps in [1_000, 10_000, 100_000] {
        let store = scratch.path().join(steps.to_string());
        fill(&store, steps);
        let mut took: Vec<(f64, f64)> = (0..ROUNDS).map(|_| again("open", &store)).collect();
        took.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (median, memory) = took[ROUNDS / 2];
        println!(
            "{steps} steps over: {median:.1} ms to the next one (least {:.1}), {memory:.1} MB at most",
            took[0].0
        );
    }
    let (seconds, memory) = again("run", &scratch.path().join("long"));
    println!(
        "a run of 100,000 steps: {:.0} µs a step, {memory:.1} MB at most",
        seconds * 10.0
    );
}

/// Asks a process of its own; two figures.
fn again(what: &str, folder: &Path) -> (f64, f64) {
    let told = Command::new(std::env::current_exe().unwrap())
        .arg(what)
        .arg(folder)
        .output()
        .unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let told = String::from_utf8(told.stdout).unwrap();
    let (first, second) = told.trim().split_once(' ').unwrap();
    (first.parse().unwrap(), second.parse().unwrap())
}

/// Makes the store, as the engine would have left it.
fn fill(folder: &Path, steps: u32) {
    let store = SledStore::open(folder, Options::default()).unwrap();
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for number in 0..FINISHED_RUNS {
        let parents = graphs::layered(3, 1, 1);
        let definition =
            definition::definition(&format!("finished-{number}"), &parents, 16, Path::new("/nowhere"));
        let batches = batches(definition, u32::MAX);
        executor.block_on(keep(&store, vec![batches.concat()]));
    }
    let parents = graphs::layered(steps / 50 + 2, 50, 3);
    let definition = definition::definition(CUT, &parents, 16, &folder.join("files"));
    executor.block_on(keep(&store, batches(definition, steps)));
}

/// The run's facts, a turn each, until as many of its steps are over.
fn batches(definition: RunDefinition, steps: u32) -> Vec<Vec<Recorded>> {
    let (mut batches, mut over) = (Vec::new(), 0);
    alone::run_alone(definition, |facts| {
        if over < steps && !facts.is_empty() {
            batches.push(facts.to_vec());
        }
        let ends = facts
            .iter()
            .filter(|fact| matches!(fact.event, Event::StepEnded { .. }))
            .count();
        over += u32::try_from(ends).unwrap();
    });
    batches
}

async fn keep(store: &SledStore, batches: Vec<Vec<Recorded>>) {
    let mut run: Option<Run> = None;
    for batch in batches {
        for fact in &batch {
            match &mut run {
                Some(run) => run.apply(fact).unwrap(),
                None => run = Some(Run::start(fact.clone()).unwrap()),
            }
        }
        let (run, first) = (run.as_ref().unwrap(), batch[0].seq);
        let bytes = batch.iter().map(|fact| codec::encode(fact).unwrap()).collect();
        store
            .append(run.id(), first, bytes, &run.summary())
            .await
            .unwrap();
    }
}

/// Milliseconds to the next step of the run that was cut, and the most memory in MiB. The next round finds the store
/// as this one did, but for a few events: the process ends in the middle, as by a crash.
fn open(folder: &Path) -> String {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let runtime = ScriptedRuntime::new(move |_| {
        let _ = sender.send(Instant::now());
        Reply::Silent
    });
    let start = Instant::now();
    let store = Arc::new(SledStore::open(folder, Options::default()).unwrap());
    let engine = Engine::builder(store, Arc::new(runtime), Arc::new(NoWorkspace)).build();
    let took = executor.block_on(async {
        let _handle = engine.resume(&RunId::new(CUT).unwrap()).await.unwrap();
        receiver.recv().await.unwrap().duration_since(start)
    });
    executor.shutdown_timeout(Duration::from_secs(5));
    format!("{} {}", took.as_secs_f64() * 1e3, memory::peak_memory_mb())
}

/// Seconds that a run of 100,000 steps takes, and the most memory in MiB.
fn run_long(folder: &Path) -> String {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let store = Arc::new(SledStore::open(folder.join("store"), Options::default()).unwrap());
    let runtime = ScriptedRuntime::new(|_| Reply::text(definition::REPORT));
    let engine = Engine::builder(store, Arc::new(runtime), Arc::new(NoWorkspace)).build();
    let definition =
        definition::definition("long", &graphs::layered(2_000, 50, 3), 16, &folder.join("files"));
    let start = Instant::now();
    executor.block_on(async { engine.launch(definition).await.unwrap().wait().await.unwrap() });
    format!("{} {}", start.elapsed().as_secs_f64(), memory::peak_memory_mb())
}
