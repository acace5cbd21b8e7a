//! The engine that is killed: launches the task in a folder, or goes on with its run, to the end.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use sillage::acp::{AcpRuntime, AgentCommand, AgentModel, Options};
use sillage::core::ports::store::Which;
use sillage::core::ports::{AgentRuntime, Clock as _, Store, Workspace};
use sillage::core::run::{Refused, RunEnd};
use sillage::store::SledStore;
use sillage::workspace::GitWorkspace;
use sillage::{Engine, EngineError, LaunchRequest, SystemClock, new_run_id, prepare};
use sillage_testkit::crashing_store::{CrashingStore, Side};

use crate::gateway;

pub(crate) type Failure = Box<dyn std::error::Error>;

/// `drive FOLDER [before|after EVENT]`.
pub(crate) fn main(words: &[&str]) -> ExitCode {
    let (folder, death) = match words {
        [folder] => (folder, None),
        [folder, "before", at] => (folder, Some((Side::Before, at.parse().expect("a number")))),
        [folder, "after", at] => (folder, Some((Side::After, at.parse().expect("a number")))),
        _ => panic!("not how it is called: {words:?}"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime
        .expect("a runtime")
        .block_on(drive(Path::new(folder), death))
    {
        Ok(RunEnd::Complete) => ExitCode::SUCCESS,
        Ok(end) => {
            eprintln!("the run ended {}", end.word());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}: {:?}", error.source());
            ExitCode::FAILURE
        }
    }
}

async fn drive(folder: &Path, death: Option<(Side, u64)>) -> Result<RunEnd, Failure> {
    let data = folder.join("data");
    let sled = SledStore::open(data.join("store"), sillage::store::Options::default())?;
    let store: Arc<dyn Store> = match death {
        Some((side, at)) => {
            let told = folder.join("died");
            Arc::new(CrashingStore::new(sled, at, side, move |events| {
                die(&told, &events)
            }))
        }
        None => Arc::new(sled),
    };
    let workspace: Arc<dyn Workspace> = Arc::new(GitWorkspace::new(&data)?);
    let agents: Arc<dyn AgentRuntime> = match gateway::client(folder)? {
        Some(client) => Arc::new(client),
        None => Arc::new(AcpRuntime::new(vec![agent(folder)?], options()?)),
    };
    let engine = Engine::builder(Arc::clone(&store), Arc::clone(&agents), Arc::clone(&workspace)).build();
    let handle = match store.runs(Which::All, 1).await?.first() {
        Some(run) => match engine.resume(&run.run).await {
            // It died when all was over.
            Err(EngineError::Refused(Refused::NothingLeft(_))) => {
                return engine
                    .load(&run.run)
                    .await?
                    .end()
                    .ok_or_else(|| "nothing is left, and it is not over".into());
            }
            resumed => resumed?,
        },
        None => {
            let request = LaunchRequest {
                task_file: folder.join("work/task.yaml"),
                offers: Some(agents.status().await?.models),
                gateways: Vec::new(),
                parallel: None,
                permissions: sillage::core::ports::runtime::PermissionPolicy::AllowInFolders,
                budget: None,
                fail_fast: false,
                waits: Default::default(),
                closed: Vec::new(),
                data,
            };
            let run = new_run_id(SystemClock.now());
            let (definition, _) = prepare(&request, run, &*store, &*workspace).await?;
            engine.launch(definition).await?
        }
    };
    Ok(handle.wait().await?)
}

/// Says where it happened, and ends this process as `kill -9` does.
fn die(told: &Path, events: &RangeInclusive<u64>) {
    fs::write(told, format!("{} {}", events.start(), events.end())).expect("our own folder");
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .expect("ourselves");
}

pub(crate) fn agent(folder: &Path) -> Result<AgentCommand, Failure> {
    let at = |name: &str| folder.join(name).display().to_string();
    let model = AgentModel {
        id: None,
        efforts: Some(vec!["low".to_owned()]),
    };
    Ok(AgentCommand {
        name: "scripted".to_owned(),
        command: std::env::current_exe()?.display().to_string(),
        args: [
            "scripted-agent",
            "--script",
            &at("script.yaml"),
            "--record",
            &at("record"),
        ]
        .map(str::to_owned)
        .to_vec(),
        env: [].into(),
        account: "scripted".to_owned(),
        models: [("scripted".to_owned(), model)].into(),
        ..AgentCommand::default()
    })
}

pub(crate) fn options() -> Result<Options, Failure> {
    let launcher = vec![std::env::current_exe()?.into(), "launch-agent".into()];
    Ok(Options {
        launcher: Some(launcher),
        ..Options::default()
    })
}
