#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene must fail")]

use std::sync::Arc;

use futures_util::StreamExt;
use sillage_core::id::Seq;
use sillage_core::run::{Event, RunEnd};
use sillage_store::{Options, SledStore};
use sillage_testkit::scripted_runtime::Reply;

use super::*;
use crate::ControlServer;
use crate::active::ActiveRuns;
use crate::world::{self, every, id, see};

fn hold(folder: &Path) -> Arc<dyn Store> {
    Arc::new(SledStore::open(folder.join("store"), Options::default()).unwrap())
}

#[tokio::test]
async fn without_a_store_there_is_no_run_and_none_is_made() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        Reader::open(folder.path()).await,
        Err(ReadError::NoRuns)
    ));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn a_free_store_and_a_held_one_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    let store = hold(folder.path());
    let handle = world::engine(&store, world::report_after(1))
        .launch(world::definition("r", 3))
        .await
        .unwrap();
    handle.wait().await.unwrap();
    let run = handle.id().clone();
    let last = store.run(&run).await.unwrap().unwrap().last;
    let server = ControlServer::start(folder.path(), store, ActiveRuns::new()).unwrap();
    let held = read(folder.path(), &run, true).await;
    server.close().await;
    let free = read(folder.path(), &run, false).await;
    assert_eq!(held, free);
    assert_eq!(held.1, every(Seq::FIRST, last));
}

async fn read(folder: &Path, run: &RunId, live: bool) -> (Vec<RunSummary>, Vec<Seq>) {
    let reader = Reader::open(folder).await.unwrap();
    assert_eq!(reader.is_live(), live);
    assert_eq!(reader.newest().await.unwrap().run, *run);
    assert_eq!(reader.load(run).await.unwrap().end(), Some(RunEnd::Complete));
    assert!(matches!(
        reader.load(&id("no")).await,
        Err(ReadError::NoSuchRun(_))
    ));
    assert!(matches!(
        reader.follow(&id("no"), Seq::FIRST).await,
        Err(ReadError::NoSuchRun(_))
    ));
    assert!(matches!(reader.stop(run).await, Err(ReadError::Over { .. })));
    assert_eq!(reader.heard(run).await.unwrap(), []);
    let followed = see(reader.follow(run, Seq::FIRST).await.unwrap()).await;
    (reader.runs(Which::All, 5).await.unwrap(), followed.facts)
}

#[tokio::test]
async fn a_holder_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let _store = hold(folder.path());
    let error = Reader::open(folder.path()).await.unwrap_err();
    assert!(
        matches!(&error, ReadError::Store(StoreError::Held { pid, .. }) if *pid == std::process::id()),
        "{error}"
    );
}

#[test]
fn a_follower_outlives_the_process_that_drove_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let holder = tokio::runtime::Runtime::new().unwrap();
    let watcher = tokio::runtime::Runtime::new().unwrap();
    let server = holder.block_on(async {
        let store = hold(folder.path());
        let active = ActiveRuns::new();
        let server = ControlServer::start(folder.path(), Arc::clone(&store), active.clone()).unwrap();
        active.add(
            world::engine(&store, Reply::Silent)
                .launch(world::definition("r", 1))
                .await
                .unwrap(),
        );
        server
    });
    let (mut items, mut seen) = watcher.block_on(async {
        let reader = Reader::open(folder.path()).await.unwrap();
        let mut items = reader.follow(&id("r"), Seq::FIRST).await.unwrap();
        let mut seen = Vec::new();
        loop {
            let Some(Ok(FeedItem::Fact(fact))) = items.next().await else {
                panic!("it goes on")
            };
            seen.push(fact.seq);
            if matches!(fact.event, Event::MessagePlanned { .. }) {
                return (items, seen);
            }
        }
    });
    // As when the process is killed: the answer breaks off, the socket stays, the lock is free.
    holder.block_on(server.close());
    drop(holder);
    drop(std::os::unix::net::UnixListener::bind(folder.path().join("control")).unwrap());
    watcher.block_on(async {
        while let Some(item) = items.next().await {
            if let FeedItem::Fact(fact) = item.unwrap() {
                seen.push(fact.seq);
            }
        }
        let reader = Reader::open(folder.path()).await.unwrap();
        let last = reader.run(&id("r")).await.unwrap().last;
        assert_eq!(seen, every(Seq::FIRST, last));
        assert!(matches!(
            reader.stop(&id("r")).await,
            Err(ReadError::NotDriven(_))
        ));
    });
}
