//! An [`AgentRuntime`](sillage::core::ports::AgentRuntime) of your own: `cargo run --example own_runtime`.
//!
//! Each message to an agent runs a shell command, given as arguments: the message goes to its standard input, and what
//! it writes is the answer. Without arguments the command counts the words of the message. Read `command_runtime.rs`:
//! it is complete, and says what each call of the trait has to keep.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod command_runtime;

use std::error::Error;
use std::sync::Arc;

use command_runtime::CommandRuntime;
use sillage::core::ports::{Clock as _, runtime::PermissionPolicy};
use sillage::store::MemoryStore;
use sillage::{Engine, LaunchRequest, SystemClock};
use sillage_testkit::workspace::NoWorkspace;

const COUNT: &str = r#"printf '{"outcome": "complete", "summary": "I was told %d words."}' $(wc -w)"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let command = if given.is_empty() {
        COUNT.to_owned()
    } else {
        given.join(" ")
    };

    let (store, workspace) = (Arc::new(MemoryStore::default()), Arc::new(NoWorkspace));
    let runtime = Arc::new(CommandRuntime::new(command));
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
