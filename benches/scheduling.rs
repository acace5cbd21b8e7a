//! The machine alone: a layered graph of steps that do nothing, in memory, everything answered at once.

#[path = "workload/mod.rs"]
mod workload;

use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn scheduling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scheduling");
    group.sample_size(10);
    for steps in [1_000_u32, 10_000, 100_000] {
        let parents = workload::layered(steps / 50, 50, 3);
        let definition = workload::definition("bench", &parents, 16, Path::new("/nowhere"));
        group.throughput(Throughput::Elements(u64::from(steps)));
        group.bench_with_input(
            BenchmarkId::from_parameter(steps),
            &definition,
            |bencher, definition| {
                bencher.iter_batched(
                    || definition.clone(),
                    |definition| {
                        workload::run_alone(definition, |facts| {
                            std::hint::black_box(facts);
                        })
                    },
                    criterion::BatchSize::PerIteration,
                );
            },
        );
    }
    group.finish();
}

criterion_group!(benches, scheduling);
criterion_main!(benches);
