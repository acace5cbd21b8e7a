//! The whole engine on a store on disk, beside what the disk allows: `cargo bench --bench durable [-- FOLDER]`.
//!
//! Sides take turns, because disks have moods; the medians of the rounds are told. The disk's side writes as many
//! batches of the same size into a file and waits for each (`fdatasync`), which is the least that any log must do. The
//! file has its size and its blocks from the start: one that grows costs a journal's commit with each wait.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on must stop, and tells figures"
)]

#[path = "workload/definition.rs"]
mod definition;
#[path = "workload/durable.rs"]
mod durable;
#[path = "workload/graphs.rs"]
mod graphs;

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use durable::Durable;
use sillage::core::id::{RunId, Seq};
use sillage::core::ports::Store as _;

const ROUNDS: usize = 5;

/// Sessions at once.
const PARALLEL: u32 = 16;

/// One run's figures.
struct Figures {
    run: Duration,
    disk: Duration,
    syncs: u64,
    bytes: usize,
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let given = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let scratch = tempfile::tempdir_in(given.unwrap_or_else(|| ".".to_owned())).unwrap();
    let graphs = [
        ("W1: a chain of 200", graphs::layered(200, 1, 1)),
        ("W2: 20 layers of 50, 3 parents each", graphs::layered(20, 50, 3)),
    ];
    let mut all: Vec<Vec<Figures>> = graphs.iter().map(|_| Vec::new()).collect();
    // The first round warms up.
    for round in 0..=ROUNDS {
        for ((name, parents), figures) in graphs.iter().zip(&mut all) {
            // Nothing is removed between rounds: making files is slow for minutes where many were removed (ext4).
            let folder = scratch.path().join(format!("{round}-{}", &name[..2]));
            let measured = measure(&folder, parents).await;
            if round > 0 {
                figures.push(measured);
            }
        }
    }
    for ((name, parents), figures) in graphs.iter().zip(&all) {
        tell(name, parents.len(), figures);
    }
}

async fn measure(folder: &Path, parents: &[Vec<u32>]) -> Figures {
    std::fs::create_dir_all(folder).unwrap();
    let durable = Durable::open(&folder.join("sled"));
    let definition = definition::definition("bench", parents, PARALLEL, &folder.join("files"));
    let before = durable.store.syncs();
    let start = Instant::now();
    durable.run(definition).await;
    let run = start.elapsed();
    let syncs = durable.store.syncs() - before;
    let bytes = log_bytes(&durable).await;
    let disk = disk_alone(&folder.join("alone"), syncs, bytes);
    Figures {
        run,
        disk,
        syncs,
        bytes,
    }
}

async fn log_bytes(durable: &Durable) -> usize {
    let run = RunId::new("bench").unwrap();
    let (mut from, mut bytes) = (Seq::FIRST, 0);
    loop {
        let page = durable.store.read(&run, from, 1 << 20).await.unwrap();
        let Some((last, _)) = page.last() else {
            return bytes;
        };
        from = last.next();
        bytes += page.iter().map(|(_, event)| event.len()).sum::<usize>();
    }
}

/// How long the disk takes to keep as many batches, as many bytes in all.
fn disk_alone(path: &Path, batches: u64, bytes: usize) -> Duration {
    let batch = vec![b'x'; bytes / usize::try_from(batches).unwrap()];
    let mut file = File::create(path).unwrap();
    file.write_all(&vec![0; bytes]).unwrap();
    file.sync_all().unwrap();
    file.rewind().unwrap();
    let start = Instant::now();
    for _ in 0..batches {
        file.write_all(&batch).unwrap();
        file.sync_data().unwrap();
    }
    start.elapsed()
}

fn tell(name: &str, steps: usize, figures: &[Figures]) {
    let each = |of: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        (values[0] / steps as f64, values[values.len() / 2] / steps as f64)
    };
    let (least, median) = each(|f| f.run.as_secs_f64() * 1e6);
    let (_, disk) = each(|f| f.disk.as_secs_f64() * 1e6);
    let (_, syncs) = each(|f| f.syncs as f64);
    let (_, bytes) = each(|f| f.bytes as f64);
    let mut ratios: Vec<f64> = figures
        .iter()
        .map(|f| f.run.as_secs_f64() / f.disk.as_secs_f64())
        .collect();
    ratios.sort_by(f64::total_cmp);
    println!("{name}");
    println!("  a step: {median:.0} µs (least {least:.0}), {syncs:.2} syncs, {bytes:.0} bytes of events");
    println!(
        "  the disk alone: {disk:.0} µs a step; ratio {:.2}",
        ratios[ratios.len() / 2]
    );
}
