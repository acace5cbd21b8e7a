//! A ceiling of time through the real driver, on a clock that stands still until everybody waits.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sillage::Engine;
use sillage::core::document::Format;
use sillage::core::folders::Folders;
use sillage::core::id::{RunId, Seq};
use sillage::core::ports::runtime::RuntimeError;
use sillage::core::ports::{Clock, Store};
use sillage::core::run::{
    Budget, BudgetChange, CeilingChange, Event, Recorded, RunDefinition, RunEnd, RunPolicy, codec,
};
use sillage::core::task;
use sillage::core::time::Timestamp;
use sillage::store::MemoryStore;
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

const TASK: &str = r"
task: Two agents
agents:
  - { id: a, mission: Begin., model: m, effort: low }
  - { id: b, mission: Go on., model: m, effort: low }
links: [ a -> b ]
";

const REPORT: &str = r#"{"outcome": "complete", "summary": "done"}"#;

/// Tokio's clock.
struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000).plus(self.0.elapsed())
    }
}

fn definition(files: &std::path::Path) -> RunDefinition {
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
        parallel: NonZeroU32::MIN,
        accounts: BTreeMap::new(),
        files: files.to_path_buf(),
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
        policy: RunPolicy {
            budget: Some(Budget {
                time: Some(Duration::from_secs(100)),
                ..Budget::default()
            }),
            ..RunPolicy::default()
        },
    }
}

async fn log(store: &dyn Store) -> Vec<Recorded> {
    let run = RunId::new("r1").unwrap();
    let events = store.read(&run, Seq::FIRST, usize::MAX).await.unwrap();
    events
        .iter()
        .map(|(_, bytes)| codec::decode(bytes).unwrap())
        .collect()
}

/// Waits are time under way; the ceiling is told at its date, not at the next news; the message in hand is answered, and
/// the next agent does not begin. A resume an hour later has its own time.
#[tokio::test(start_paused = true)]
async fn a_ceiling_of_time_is_told_at_its_date_and_waits_count() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new());
    let mut refused = false;
    let runtime = ScriptedRuntime::new(move |asked| {
        if asked.message.text.contains("Begin.") && !std::mem::replace(&mut refused, true) {
            return Reply::Refuse(RuntimeError::Temporary {
                words: "529 overloaded".to_owned(),
                retry_after: Some(Duration::from_secs(70)),
            });
        }
        Reply::Later(Duration::from_secs(40), Box::new(Reply::text(REPORT)))
    });
    let engine = Engine::builder(store.clone(), Arc::new(runtime.clone()), Arc::new(NoWorkspace))
        .clock(Arc::new(PausedClock(tokio::time::Instant::now())))
        .build();
    let handle = engine.launch(definition(folder.path())).await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Partial);
    let log_so_far = log(&*store).await;
    let launched = log_so_far[0].at;
    let reached: Vec<&Recorded> = log_so_far
        .iter()
        .filter(|fact| matches!(fact.event, Event::BudgetReached { .. }))
        .collect();
    assert_eq!(reached.len(), 1);
    let after = reached[0].at.since(launched).as_secs();
    assert_eq!(after, 100, "told at its date");
    let answered = log_so_far
        .iter()
        .filter(|fact| matches!(fact.event, Event::ReportAccepted { .. }))
        .count();
    assert_eq!(
        (answered, runtime.asked()),
        (1, 2),
        "the work under way is taken, and no more"
    );
    tokio::time::advance(Duration::from_secs(3600)).await;
    let run = RunId::new("r1").unwrap();
    let time = |secs| BudgetChange {
        time: CeilingChange::Set(Duration::from_secs(secs)),
        ..BudgetChange::default()
    };
    // What passed between the engines is nobody's time: 110 seconds are used.
    assert!(engine.resume(&run).await.is_err());
    assert!(engine.resume_with(&run, time(105)).await.is_err());
    let handle = engine.resume_with(&run, time(200)).await.unwrap();
    assert_eq!(handle.wait().await.unwrap(), RunEnd::Complete);
}
