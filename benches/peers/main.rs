//! The whole engine under the workloads that other durable engines are measured with, told in the same one line of
//! JSON: `PS_DATA=FOLDER PS_DISK=FOLDER cargo bench --bench peers -- W1 5`.
//!
//! `PS_DATA` holds the graphs (`W1.json` to `W4.json`: `{"n": steps, "deps": [[parents], …]}`), `PS_DISK` is where the
//! store goes. Figures of two programs can be compared when their runs took turns on one machine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on must stop, and tells figures"
)]

#[path = "../workload/definition.rs"]
mod definition;
#[path = "../workload/durable.rs"]
mod durable;
#[path = "../workload/memory.rs"]
mod memory;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use durable::Durable;
use serde::Deserialize;

/// Sessions at once, as for the others.
const PARALLEL: u32 = 16;

#[derive(Deserialize)]
struct Graph {
    deps: Vec<Vec<u32>>,
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'));
    let workload = arguments.next().unwrap_or_else(|| "W1".to_owned());
    let runs: u32 = arguments
        .next()
        .map_or(5, |runs| runs.parse().expect("a number of runs"));
    let folder = |name: &str| std::env::var_os(name).map_or_else(|| PathBuf::from("data"), PathBuf::from);
    let text =
        std::fs::read(folder("PS_DATA").join(format!("{workload}.json"))).expect("the workload in PS_DATA");
    let graph: Graph = serde_json::from_slice(&text).unwrap();
    let scratch = tempfile::tempdir_in(folder("PS_DISK")).unwrap();
    run_all(&workload, &graph.deps, runs, scratch.path()).await;
}

async fn run_all(workload: &str, parents: &[Vec<u32>], runs: u32, folder: &Path) {
    let durable = Durable::open(&folder.join("store"));
    let mut took = Vec::new();
    let (mut cpu, mut syncs) = (Duration::ZERO, 0);
    // The first one warms up.
    for number in 0..=runs {
        let files = folder.join("files").join(number.to_string());
        let definition = definition::definition(&format!("r{number}"), parents, PARALLEL, &files);
        let (start, cpu_before, syncs_before) = (Instant::now(), cpu_time(), durable.store.syncs());
        durable.run(definition).await;
        if number > 0 {
            took.push(start.elapsed());
            cpu += cpu_time() - cpu_before;
            syncs += durable.store.syncs() - syncs_before;
        }
    }
    took.sort();
    let steps = parents.len() as f64;
    let all = steps * f64::from(runs);
    let median = took[took.len() / 2].as_secs_f64();
    let line = serde_json::json!({
        "peer": "sillage",
        "w": workload,
        "n": parents.len(),
        "runs": runs,
        "wall_s": median,
        "min_s": took[0].as_secs_f64(),
        "max_s": took[took.len() - 1].as_secs_f64(),
        "us_per_step": rounded(median / steps * 1e6),
        "rss_mb": rounded(memory::peak_memory_mb()),
        "cpu_us_per_step": rounded(cpu.as_secs_f64() / all * 1e6),
        "syncs_per_step": (syncs as f64 / all * 1e3).round() / 1e3,
        "durable": "power cut",
    });
    println!("{line}");
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Processor time of all its threads.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap()
}
