//! How often a run waits for the disk: the figure that no noise moves.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

#[path = "../benches/workload/definition.rs"]
mod definition;
#[path = "../benches/workload/durable.rs"]
mod durable;
#[path = "../benches/workload/graphs.rs"]
mod graphs;

use durable::Durable;

/// Syncs a step of a run over this graph.
async fn syncs_a_step(parents: &[Vec<u32>]) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let durable = Durable::open(&folder.path().join("store"));
    let before = durable.store.syncs();
    durable
        .run(definition::definition(
            "counted",
            parents,
            16,
            &folder.path().join("files"),
        ))
        .await;
    (durable.store.syncs() - before) as f64 / parents.len() as f64
}

/// One to plan and one to believe: from an answer to the next step's session, from that to its message.
#[tokio::test]
async fn a_hand_over_in_a_chain_waits_for_the_disk_twice() {
    // Beside its hand-overs a run is launched and ended.
    let syncs = syncs_a_step(&graphs::layered(100, 1, 1)).await;
    assert!(syncs <= 2.0 + 0.05, "{syncs} syncs a step");
}

#[tokio::test]
async fn steps_side_by_side_share_their_waits_for_the_disk() {
    let syncs = syncs_a_step(&graphs::layered(20, 50, 3)).await;
    assert!(syncs <= 0.4, "{syncs} syncs a step");
}
