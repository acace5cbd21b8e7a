//! The machine alone: a layered graph of steps that do nothing, in memory, everything answered at once.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bench that cannot go on must stop"
)]

#[path = "workload/alone.rs"]
mod alone;
#[path = "workload/definition.rs"]
mod definition;
#[path = "workload/graphs.rs"]
mod graphs;

use std::hint::black_box;
use std::path::Path;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn scheduling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scheduling");
    group.sample_size(10);
    for steps in [1_000_u32, 10_000, 100_000] {
        let parents = graphs::layered(steps / 50, 50, 3);
        let definition = definition::definition("bench", &parents, 16, Path::new("/nowhere"));
        group.throughput(Throughput::Elements(u64::from(steps)));
        group.bench_with_input(
            BenchmarkId::from_parameter(steps),
            &definition,
            |bencher, definition| {
                bencher.iter_batched(
                    || definition.clone(),
                    |definition| {
                        alone::run_alone(definition, |facts| {
                            black_box(facts);
                        })
                    },
                    BatchSize::PerIteration,
                );
            },
        );
    }
    group.finish();
}

criterion_group!(benches, scheduling);
criterion_main!(benches);
