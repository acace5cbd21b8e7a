//! Both stores against the suite and the model.

use std::path::Path;

use proptest::prelude::*;
use sillage_core::id::Seq;
use sillage_core::ports::Store;
use sillage_core::ports::store::StoreError;
use sillage_store::{MemoryStore, Options, SledStore};
use sillage_testkit::faulty_store::{Fault, FaultyStore};
use sillage_testkit::store_suite::model::{Model, Operation, operations};
use sillage_testkit::store_suite::{self, events, run, summary, whole_log};

pub(crate) fn open(folder: &Path) -> SledStore {
    SledStore::open(folder, Options::default()).unwrap()
}

#[tokio::test]
async fn the_store_in_memory_conforms() {
    store_suite::check(|| async { MemoryStore::new() }).await;
}

#[tokio::test]
async fn a_faulty_store_without_faults_conforms() {
    store_suite::check(|| async { FaultyStore::new(MemoryStore::new()) }).await;
}

/// An error does not say whether it was written; the run must be read before it is written again.
#[tokio::test]
async fn a_faulty_store_fails_as_it_is_told() {
    let (run, other) = (run("a"), run("b"));
    for (fault, kept) in [
        (Fault::Before, 1),
        (Fault::Full, 1),
        (Fault::After, 4),
        (Fault::Torn(2), 3),
    ] {
        let store = FaultyStore::new(MemoryStore::new());
        store.fail(2, fault);
        store
            .append(&run, Seq::FIRST, events(&run, 1, 1), &summary(&run, 1))
            .await
            .unwrap();
        let failed = store
            .append(&run, Seq(2), events(&run, 2, 4), &summary(&run, 1))
            .await;
        assert_eq!(
            matches!(failed, Err(StoreError::Full { .. })),
            fault == Fault::Full
        );
        let again = store
            .append(&run, Seq(2), events(&run, 2, 4), &summary(&run, 1))
            .await;
        assert_eq!(again, Err(StoreError::ReadAgain { run: run.clone() }));
        store
            .append(&other, Seq::FIRST, vec![], &summary(&other, 1))
            .await
            .unwrap();
        assert_eq!(
            whole_log(&store, &run, 100).await,
            Ok(events(&run, 1, kept)),
            "{fault:?}"
        );
        store
            .append(&run, Seq(kept + 1), events(&run, 1, 1), &summary(&run, 1))
            .await
            .unwrap();

        store.fail(1, fault);
        assert!(store.put("k", "n", 0, vec![1]).await.is_err());
        let version = u64::from(fault == Fault::After);
        assert_eq!(store.put("k", "n", version, vec![2]).await, Ok(version + 1));
        assert_eq!(store.writes(), 6);
    }
}

#[tokio::test]
async fn the_store_on_disk_conforms() {
    let home = tempfile::tempdir().unwrap();
    let mut number = 0;
    store_suite::check(|| {
        number += 1;
        let folder = home.path().join(number.to_string());
        async move { open(&folder) }
    })
    .await;
}

#[tokio::test]
async fn what_was_written_is_there_after_closing() {
    let home = tempfile::tempdir().unwrap();
    store_suite::reopening::fill(&open(home.path())).await;
    store_suite::reopening::check(&open(home.path())).await;
    let last = open(home.path());
    assert_eq!(last.syncs(), 0, "opening costs no sync that readers wait for");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_store_on_disk_is_the_model(operations in operations()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut model = Model::default();
        let mut store = open(home.path());
        for operation in &operations {
            if let Operation::Reopen = operation {
                drop(store);
                store = open(home.path());
            }
            runtime.block_on(model.apply(&store, operation));
        }
        runtime.block_on(model.compare(&store));
        drop(store);
        runtime.block_on(model.compare(&open(home.path())));
    }

    #[test]
    fn the_store_in_memory_is_the_model(operations in operations()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = MemoryStore::new();
        let mut model = Model::default();
        for operation in &operations {
            runtime.block_on(model.apply(&store, operation));
        }
        runtime.block_on(model.compare(&store));
    }
}
