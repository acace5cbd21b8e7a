//! The engine in a program of your own: `cargo run --example hello`.
//!
//! Its answers are scripted and nothing is kept: no model is asked. For real agents, a store on disk and worktrees
//! put `sillage::acp::AcpRuntime`, `sillage::store::SledStore` and `sillage::workspace::GitWorkspace` in the place of
//! the three adapters.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use sillage::core::ports::{Clock as _, runtime::PermissionPolicy};
use sillage::store::MemoryStore;
use sillage::{Engine, LaunchRequest, SystemClock};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryStore::default());
    let runtime = Arc::new(ScriptedRuntime::table([
        (
            "Write a greeting.",
            vec![Reply::text(
                r#"{"outcome": "complete", "summary": "Hello, world!"}"#,
            )],
        ),
        (
            "Review the greeting.",
            vec![Reply::text(
                r#"{"outcome": "complete", "summary": "It is friendly."}"#,
            )],
        ),
    ]));
    let workspace = Arc::new(NoWorkspace);

    let data = tempfile::tempdir()?;
    let request = LaunchRequest {
        task_file: concat!(env!("CARGO_MANIFEST_DIR"), "/examples/greeting.yaml").into(),
        offers: None,
        gateways: Vec::new(),
        parallel: None,
        permissions: PermissionPolicy::default(),
        budget: None,
        fail_fast: false,
        waits: Default::default(),
        closed: Vec::new(),
        data: data.path().to_owned(),
    };
    let name = sillage::new_run_id(SystemClock.now());
    let (definition, _) = sillage::prepare(&request, name.clone(), &*store, &*workspace).await?;

    let engine = Engine::builder(store, runtime, workspace).build();
    let end = engine.launch(definition).await?.wait().await?;

    let run = engine.load(&name).await?;
    for (agent, step) in run.definition().task.agents.iter().zip(run.steps()) {
        println!(
            "{}: {}: {}",
            agent.id,
            step.word(),
            step.report().map_or("", |report| &report.summary)
        );
    }
    println!("the run is {}", end.word());
    Ok(())
}
