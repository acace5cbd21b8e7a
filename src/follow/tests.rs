use std::sync::Arc;

use futures_util::StreamExt;
use sillage_core::id::Seq;
use sillage_core::ports::Store;
use sillage_store::MemoryStore;

use super::*;
use crate::world::{self, Random, every, see};

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_see_each_fact_once_whenever_they_come() {
    for seed in 1..=20 {
        let store = memory();
        let handle = world::engine(&store, world::report_after(3))
            .launch(world::definition("r", 8))
            .await
            .unwrap();
        let mut random = Random(seed);
        let mut followers = Vec::new();
        for _ in 0..6 {
            for _ in 0..random.below(40) {
                tokio::task::yield_now().await;
            }
            let from = Seq(1 + random.below(30));
            let items = follow(
                Arc::clone(&store),
                handle.id().clone(),
                Some(handle.clone()),
                from,
            );
            followers.push((from, tokio::spawn(see(items))));
        }
        handle.wait().await.unwrap();
        let last = store.run(handle.id()).await.unwrap().unwrap().last;
        for (from, follower) in followers {
            assert_eq!(
                follower.await.unwrap().facts,
                every(from, last),
                "seed {seed}, from {from}"
            );
        }
    }
}

#[tokio::test]
async fn a_follower_that_sleeps_through_the_run_misses_chatter_but_no_fact() {
    let store = memory();
    let handle = world::engine(&store, world::report_after(3000))
        .launch(world::definition("r", 4))
        .await
        .unwrap();
    let mut items = follow(
        Arc::clone(&store),
        handle.id().clone(),
        Some(handle.clone()),
        Seq::FIRST,
    );
    let Some(Ok(FeedItem::Fact(first))) = items.next().await else {
        panic!("the launch comes first")
    };
    assert_eq!(first.seq, Seq::FIRST);
    handle.wait().await.unwrap();
    let seen = see(items).await;
    let last = store.run(handle.id()).await.unwrap().unwrap().last;
    assert_eq!(seen.facts, every(Seq(2), last));
    assert!(seen.missed > 0 && seen.chatter > 0, "{seen:?}");
}

#[tokio::test]
async fn a_run_that_nobody_drives_ends_with_what_is_stored() {
    let store = memory();
    let handle = world::engine(&store, world::report_after(0))
        .launch(world::definition("r", 2))
        .await
        .unwrap();
    handle.wait().await.unwrap();
    let last = store.run(handle.id()).await.unwrap().unwrap().last;
    let seen = see(follow(Arc::clone(&store), handle.id().clone(), None, Seq(3))).await;
    assert_eq!((seen.facts, seen.chatter), (every(Seq(3), last), 0));
    // A handle whose run is over makes no difference.
    let seen = see(follow(store, handle.id().clone(), Some(handle.clone()), Seq(3))).await;
    assert_eq!(seen.facts, every(Seq(3), last));
}
