//! What is shown is durable; what waits together is synced together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sillage_core::id::Seq;
use sillage_core::ports::Store;
use sillage_core::ports::store::Which;
use sillage_testkit::store_suite::{events, run, summary, whole_log};

use crate::conformance::open;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_that_wait_together_share_a_sync() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(open(home.path()));
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let run = run(&format!("run-{number}"));
                for at in 1..=20 {
                    store
                        .append(&run, Seq(at), events(&run, at, at), &summary(&run, number))
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let syncs = store.syncs();
    assert!(
        (20..=640).contains(&syncs),
        "1,280 appends by 64 tasks took {syncs} syncs"
    );
    assert_eq!(store.runs(Which::Unfinished, 100).await.unwrap().len(), 64);
}

#[tokio::test]
async fn one_append_is_one_sync_and_a_transcript_none() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let run = run("a");
    let session = sillage_core::id::ClientSessionId(uuid::Uuid::nil());
    for at in 1..=5 {
        store
            .append(&run, Seq(at), events(&run, at, at), &summary(&run, 1))
            .await
            .unwrap();
        store.add_transcript(&run, session, vec![0; 1000]).await.unwrap();
    }
    assert_eq!(store.syncs(), 5);
    for _ in 0..300 {
        store.add_transcript(&run, session, vec![0; 1000]).await.unwrap();
    }
    assert!(
        (6..=7).contains(&store.syncs()),
        "what is not synced is bounded: {}",
        store.syncs()
    );
}

/// A reader beside a writer sees a prefix of the log, never beyond what was acknowledged when it looked again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r1_nothing_is_shown_before_it_is_durable() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(open(home.path()));
    let run = run("a");
    let begun = Arc::new(AtomicU64::new(0));
    let writer = {
        let (store, run, begun) = (Arc::clone(&store), run.clone(), Arc::clone(&begun));
        tokio::spawn(async move {
            for at in 1..=500 {
                // The next append begins only when the last one is durable.
                begun.store(at, Ordering::SeqCst);
                store
                    .append(&run, Seq(at), events(&run, at, at), &summary(&run, 1))
                    .await
                    .unwrap();
            }
        })
    };
    let mut seen = 0;
    while seen < 500 {
        let syncs = store.syncs();
        let log = whole_log(&*store, &run, 1 << 20).await.unwrap();
        assert!(log.len() as u64 >= seen, "the log does not shrink");
        seen = log.len() as u64;
        assert_eq!(log, events(&run, 1, seen));
        assert!(seen <= begun.load(Ordering::SeqCst));
        assert!(
            syncs <= store.syncs() && seen <= store.syncs(),
            "{seen} events are shown before their sync"
        );
    }
    writer.await.unwrap();
}
