//! What breaks inside: a full disk, and parts of the program that panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sillage::core::run::{Event, RunEnd};
use sillage::store::MemoryStore;
use sillage::{DiskPatience, Engine, EngineError, FeedItem};
use sillage_testkit::faulty_store::{Fault, FaultyStore};
use sillage_testkit::scripted_runtime::{Call, Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

use crate::engine::{REPORT, definition, engine, log, runtime};

/// Long enough for any machine.
const PATIENCE: DiskPatience = DiskPatience {
    every: Duration::from_millis(1),
    within: Duration::from_secs(600),
};

fn patient(
    store: &Arc<FaultyStore<MemoryStore>>,
    runtime: &ScriptedRuntime,
    patience: DiskPatience,
) -> Engine {
    Engine::builder(
        Arc::clone(store) as _,
        Arc::new(runtime.clone()),
        Arc::new(NoWorkspace),
    )
    .disk_patience(patience)
    .build()
}

/// Whichever write meets the full disk, thrice in a row, and whether or not it took place: the run waits, tells so, and
/// goes on in the same sessions as if nothing had been. Nothing is written twice.
#[tokio::test]
async fn a5_a_run_waits_for_room_and_goes_on_by_itself() {
    for last in [Fault::Full, Fault::FullAfter] {
        let mut nth = 2;
        loop {
            let folder = tempfile::tempdir().unwrap();
            let (store, runtime) = (Arc::new(FaultyStore::new(MemoryStore::new())), runtime());
            store.fail(nth, Fault::Full);
            store.fail(nth + 1, Fault::Full);
            store.fail(nth + 2, last);
            let handle = patient(&store, &runtime, PATIENCE)
                .launch(definition(folder.path()))
                .await
                .unwrap();
            let mut feed = handle.follow();
            assert_eq!(
                handle.wait().await.unwrap(),
                RunEnd::Complete,
                "write {nth}, {last:?}"
            );
            drop(handle);
            let (mut full, mut room, mut facts) = (0, 0, 0);
            while let Some(item) = feed.next().await {
                match item {
                    FeedItem::DiskFull { .. } => {
                        assert_eq!(full, room, "told once");
                        full += 1;
                    }
                    FeedItem::DiskHasRoom => room += 1,
                    // Nothing is shown while it is not durable.
                    FeedItem::Fact(_) => {
                        assert_eq!(full, room);
                        facts += 1;
                    }
                    _ => {}
                }
            }
            assert_eq!(full, room);
            assert!(facts > 0);
            let log = log(store.inner()).await;
            let positions: Vec<u64> = log.iter().map(|fact| fact.seq.0).collect();
            assert_eq!(positions, (1..=log.len() as u64).collect::<Vec<_>>());
            assert_eq!(
                runtime.asked(),
                6,
                "write {nth}, {last:?}: nothing was asked twice"
            );
            assert_eq!(
                log.iter()
                    .filter(|fact| matches!(fact.event, Event::EngineStarted { .. }))
                    .count(),
                0,
                "no other engine was needed"
            );
            assert!(runtime.open_sessions().is_empty());
            if full == 0 {
                assert!(nth > 8, "the fault was never reached");
                break;
            }
            nth += 1;
        }
    }
}

/// A person may stop a run that waits for room; and a wait has an end. The run can be resumed then.
#[tokio::test]
async fn a6_a_run_that_waits_for_room_can_be_stopped_and_waits_no_longer_than_it_may() {
    for patience in [
        PATIENCE,
        DiskPatience {
            every: Duration::from_millis(1),
            within: Duration::from_millis(5),
        },
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (store, runtime) = (Arc::new(FaultyStore::new(MemoryStore::new())), runtime());
        for nth in 4..5_000 {
            store.fail(nth, Fault::Full);
        }
        let handle = patient(&store, &runtime, patience)
            .launch(definition(folder.path()))
            .await
            .unwrap();
        let mut feed = handle.follow();
        while let Some(item) = feed.next().await {
            if matches!(item, FeedItem::DiskFull { .. }) {
                break;
            }
        }
        if patience == PATIENCE {
            handle.stop().unwrap();
        }
        let told = handle.wait().await.unwrap_err();
        assert!(matches!(*told, EngineError::Store(_)), "{told}");
        assert!(runtime.open_sessions().is_empty(), "no session is left");
        let kept = Arc::new(MemoryStore::new());
        copy(store.inner(), &kept).await;
        let handle = engine(kept, &runtime).resume(handle.id()).await.unwrap();
        assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    }
}

/// The log, in a store on a disk with room.
async fn copy(from: &MemoryStore, to: &Arc<MemoryStore>) {
    use sillage::core::id::{RunId, Seq};
    use sillage::core::ports::Store as _;
    let run = RunId::new("r1").unwrap();
    let summary = from.run(&run).await.unwrap().unwrap();
    let events = from.read(&run, Seq::FIRST, usize::MAX).await.unwrap();
    let events = events.into_iter().map(|(_, bytes)| bytes).collect();
    to.append(&run, Seq::FIRST, events, &summary).await.unwrap();
}

/// A runtime that panics in any one call of any kind: the engine stops with an error that says so, leaves no session,
/// and the next engine ends the run. It never hangs half-dead.
#[tokio::test]
async fn h5_a_panic_in_any_effect_stops_the_engine_as_a_whole() {
    type Is = fn(&Call<'_>) -> bool;
    let kinds: [(&str, Is); 4] = [
        ("open", |call| matches!(call, Call::Open(_))),
        ("send", |call| matches!(call, Call::Send(..))),
        ("events", |call| matches!(call, Call::Events(_))),
        ("close", |call| matches!(call, Call::Close(_))),
    ];
    for (kind, is) in kinds {
        for nth in 1..=5 {
            let folder = tempfile::tempdir().unwrap();
            let store = Arc::new(MemoryStore::new());
            let calls = AtomicU64::new(0);
            let breaking = runtime().with_faults(move |call| {
                if is(call) && calls.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                    panic!("as was asked for");
                }
                None
            });
            let handle = engine(store.clone(), &breaking)
                .launch(definition(folder.path()))
                .await
                .unwrap();
            let told = tokio::time::timeout(Duration::from_secs(60), handle.wait())
                .await
                .unwrap()
                .unwrap_err();
            assert!(
                matches!(&*told, EngineError::Panicked { words, .. } if words == "as was asked for"),
                "{kind} {nth}: {told}"
            );
            assert!(breaking.open_sessions().is_empty(), "{kind} {nth}");
            let next = runtime();
            let end = match engine(store.clone(), &next).resume(handle.id()).await {
                Ok(handle) => handle.wait().await.unwrap(),
                Err(error) => panic!("{kind} {nth}: {error}"),
            };
            assert_eq!(end, RunEnd::Complete, "{kind} {nth}");
        }
    }
}

/// The same of a script that panics while it answers, which is within `send`.
#[tokio::test]
async fn h5_a_panic_while_a_message_is_taken_stops_the_engine_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new());
    let breaking = ScriptedRuntime::new(|asked| {
        assert!(!asked.message.text.contains("Join."), "as was asked for");
        Reply::text(REPORT)
    });
    let handle = engine(store.clone(), &breaking)
        .launch(definition(folder.path()))
        .await
        .unwrap();
    let told = tokio::time::timeout(Duration::from_secs(60), handle.wait())
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(*told, EngineError::Panicked { .. }), "{told}");
    let next = runtime();
    let handle = engine(store, &next).resume(handle.id()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_eq!(next.asked(), 1, "what was answered before is kept");
}
