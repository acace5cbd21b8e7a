//! The real driver over real or faulty adapters: what it promises when the store fails and engines come and go.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sillage::core::document::Format;
use sillage::core::folders::Folders;
use sillage::core::id::{RunId, Seq};
use sillage::core::ports::Store;
use sillage::core::run::{Event, Recorded, RunDefinition, RunEnd, RunPolicy, codec};
use sillage::core::task;
use sillage::store::MemoryStore;
use sillage::{Engine, EngineError};
use sillage_testkit::faulty_store::{Fault, FaultyStore};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

const TASK: &str = r"
task: Five agents
agents:
  - { id: a, mission: Begin., model: m, effort: low }
  - { id: b, mission: Left., model: m, effort: low }
  - { id: c, mission: Right., model: m, effort: low }
  - { id: d, mission: Middle., model: m, effort: low }
  - { id: e, mission: Join., model: m, effort: low }
links: [ a -> b, a -> c, a -> d, b -> e, c -> e, d -> e ]
";

pub(crate) const REPORT: &str = r#"{"outcome": "complete", "summary": "done"}"#;

pub(crate) fn definition(files: &std::path::Path) -> RunDefinition {
    RunDefinition {
        run: RunId::new("r1").unwrap(),
        task: Arc::new(task::read(TASK, Format::Either, None).unwrap()),
        task_file: None,
        task_version: 1,
        project: None,
        folders: Folders::default(),
        step_folder: PathBuf::from("/"),
        repository: None,
        worktrees: Vec::new(),
        parallel: NonZeroU32::new(2).unwrap(),
        accounts: BTreeMap::new(),
        files: files.to_path_buf(),
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
        policy: RunPolicy::default(),
    }
}

/// Answers every mission; the first report of `b` is wrong once.
pub(crate) fn runtime() -> ScriptedRuntime {
    ScriptedRuntime::new(|asked| {
        let wrong = asked.turn == 0 && asked.message.text.contains("Left.");
        Reply::text(if wrong { "no report" } else { REPORT })
    })
}

pub(crate) fn engine(store: Arc<dyn Store>, runtime: &ScriptedRuntime) -> Engine {
    Engine::builder(store, Arc::new(runtime.clone()), Arc::new(NoWorkspace)).build()
}

pub(crate) async fn log(store: &dyn Store) -> Vec<Recorded> {
    let events = store
        .read(&RunId::new("r1").unwrap(), Seq::FIRST, usize::MAX)
        .await
        .unwrap();
    events
        .iter()
        .map(|(_, bytes)| codec::decode(bytes).unwrap())
        .collect()
}

#[tokio::test]
async fn a_run_goes_from_launch_to_complete_and_leaves_no_session() {
    let folder = tempfile::tempdir().unwrap();
    let (store, runtime) = (Arc::new(MemoryStore::new()), runtime());
    let handle = engine(store.clone(), &runtime)
        .launch(definition(folder.path()))
        .await
        .unwrap();
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_eq!(runtime.asked(), 6, "five missions and one report that went back");
    assert!(runtime.open_sessions().is_empty());
    let summary = store.run(handle.id()).await.unwrap().unwrap();
    assert!(summary.finished && summary.state == "complete" && summary.ended == 5);
}

/// R1, R5: whichever write fails, and however, the engine stops without acting on it; the next engine ends the run, asks
/// nothing that was answered again and accepts each report once.
#[tokio::test]
async fn a_store_that_fails_at_any_write_stops_the_engine_and_the_next_one_ends_the_run() {
    for fault in [Fault::Before, Fault::After, Fault::Full] {
        let mut nth = 2;
        loop {
            let folder = tempfile::tempdir().unwrap();
            let (store, runtime) = (Arc::new(FaultyStore::new(MemoryStore::new())), runtime());
            store.fail(nth, fault);
            let handle = engine(store.clone(), &runtime)
                .launch(definition(folder.path()))
                .await
                .unwrap();
            match handle.wait().await {
                Ok(end) => {
                    assert_eq!(end, RunEnd::Complete);
                    assert!(nth > 8, "the fault was never reached");
                    break;
                }
                Err(error) => assert!(matches!(*error, EngineError::Store(_)), "{error}"),
            }
            let inner = store.inner();
            let resumed = engine(store.clone(), &runtime).resume(handle.id()).await;
            let end = match resumed {
                Ok(handle) => handle.wait().await.unwrap(),
                // The write that failed was the last, and took place.
                Err(EngineError::Refused(_)) => RunEnd::Complete,
                Err(error) => panic!("write {nth}, {fault:?}: {error}"),
            };
            assert_eq!(end, RunEnd::Complete, "write {nth}, {fault:?}");
            let log = log(inner).await;
            let accepted = log
                .iter()
                .filter(|fact| matches!(fact.event, Event::ReportAccepted { .. }))
                .count();
            assert_eq!(accepted, 5, "write {nth}, {fault:?}");
            for fact in &log {
                if let Event::SessionPlanned { request, .. } = &fact.event {
                    assert!(runtime.starts(request.client_session_id) <= 1);
                }
            }
            assert!(runtime.open_sessions().is_empty());
            nth += 1;
        }
    }
}

/// R4: a stop cancels, closes, and leaves everything resumable; the stopped run asks nothing twice of who answered.
#[tokio::test]
async fn r4_a_stopped_run_is_resumed_by_another_engine() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new());
    let silent = ScriptedRuntime::new(|asked| match asked.message.text.contains("Join.") {
        true => Reply::Silent,
        false => Reply::text(REPORT),
    });
    let handle = engine(store.clone(), &silent)
        .launch(definition(folder.path()))
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(60), async {
        while silent.asked() < 5 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .expect("e is asked");
    handle.stop().unwrap();
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Stopped);
    assert!(silent.open_sessions().is_empty());
    let runtime = runtime();
    let handle = engine(store.clone(), &runtime).resume(handle.id()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
    assert_eq!(runtime.asked(), 1, "only e was left");
}

#[tokio::test]
async fn what_cannot_be_resumed_is_refused_and_unknown_runs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (store, runtime) = (Arc::new(MemoryStore::new()), runtime());
    let engine = engine(store, &runtime);
    let handle = engine.launch(definition(folder.path())).await.unwrap();
    handle.wait().await.unwrap();
    let refused = engine.resume(handle.id()).await.unwrap_err();
    assert!(matches!(refused, EngineError::Refused(_)), "{refused}");
    let unknown = engine.resume(&RunId::new("r2").unwrap()).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no run r2");
}
