//! Both stores against the suite and the model.

use std::path::Path;

use proptest::prelude::*;
use sillage_store::{MemoryStore, Options, SledStore};
use sillage_testkit::store_suite::model::{Model, Operation, operations};
use sillage_testkit::{faulty_store::FaultyStore, store_suite};

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
    store_suite::fill(&open(home.path())).await;
    store_suite::reopened(&open(home.path())).await;
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
