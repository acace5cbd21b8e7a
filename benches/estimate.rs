//! What an estimate costs: layered graphs under limits, replayed with sessions drawn from a past.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on must stop")]

#[expect(dead_code, reason = "its answer is for benches that run graphs")]
#[path = "workload/definition.rs"]
mod definition;
#[path = "workload/graphs.rs"]
mod graphs;

use std::hint::black_box;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sillage::core::estimate::{Estimator, Past, Replays, SessionSample, Subject};
use sillage::core::run::RunDefinition;

const MODELS: [&str; 3] = ["opus", "sonnet", "haiku"];
const EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// A graph of three models at three efforts: layers of ten, three parents each, at most eight sessions at once, four of
/// the first model. `benches/peers/estimate.py` has the same.
fn graph(agents: u32) -> RunDefinition {
    let parents = graphs::layered(agents / 10, 10, 3);
    let mut definition = definition::definition("bench", &parents, 8, Path::new("/nowhere"));
    let task = Arc::make_mut(&mut definition.task);
    for (at, agent) in task.agents.iter_mut().enumerate() {
        agent.model = MODELS[at % 3].to_owned();
        agent.effort = EFFORTS[at / 3 % 3].to_owned();
    }
    task.limits
        .models
        .insert(MODELS[0].to_owned(), NonZeroU32::new(4).unwrap());
    definition
}

/// Forty sessions of each model and effort, some of them corrected, some of which waited.
fn past() -> Past {
    let mut past = Past::default();
    for (at, model) in MODELS.iter().enumerate() {
        for (nth, effort) in EFFORTS.iter().enumerate() {
            for session in 0..40_u32 {
                let median = 120.0 * (3.0 - at as f64) * (1.0 + nth as f64);
                let spread = (f64::from(session) - 19.5) / 20.0;
                let work = Duration::from_secs_f64(median * spread.exp());
                past.add_session(SessionSample {
                    corrections: (session % 10 == 0).then_some(work / 5).into_iter().collect(),
                    pauses: (session % 20 == 1).then_some(work).into_iter().collect(),
                    ..SessionSample::mission(model, effort, work)
                });
            }
        }
    }
    past
}

fn estimate(criterion: &mut Criterion) {
    let past = past();
    let mut group = criterion.benchmark_group("estimate");
    group.sample_size(20);
    for (agents, count) in [(100, 1000), (1_000, 1000), (10_000, 100)] {
        let definition = graph(agents);
        let subject = Subject::of(&definition);
        let estimator = Estimator::new(&subject, &past).unwrap();
        let replays = Replays { count, seed: 0 };
        let name = format!("{agents} agents x {count}");
        // The time of one element is that of one simulated event.
        group.throughput(Throughput::Elements(estimator.events(replays)));
        group.bench_with_input(
            BenchmarkId::new("whole", &name),
            &estimator,
            |bencher, estimator| {
                bencher.iter(|| black_box(estimator.estimate(replays)));
            },
        );
        group.bench_with_input(
            BenchmarkId::new("replays", &name),
            &estimator,
            |bencher, estimator| {
                bencher.iter(|| black_box(estimator.events(replays)));
            },
        );
        group.bench_with_input(
            BenchmarkId::new("taking in", &name),
            &subject,
            |bencher, subject| {
                bencher.iter(|| black_box(Estimator::new(subject, &past).unwrap()));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, estimate);
criterion_main!(benches);
