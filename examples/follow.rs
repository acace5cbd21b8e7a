//! What goes on in a run, live: `cargo run --example follow`. Its agents are scripted.
//!
//! The feed tells two kinds of things: facts, once they are durable, and what agents say and do meanwhile. Whoever
//! comes later reads the facts from the store, as `sillage journal` does.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use sillage::core::journal;
use sillage::core::ports::Clock as _;
use sillage::core::ports::runtime::{Answer, PermissionPolicy, SessionEventKind, StopReason, Usage};
use sillage::store::MemoryStore;
use sillage::{Engine, FeedItem, LaunchRequest, SystemClock};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

// One thread: the run goes on only while this program waits, so that nothing is missed between launching and following.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (store, workspace) = (Arc::new(MemoryStore::default()), Arc::new(NoWorkspace));
    let runtime = Arc::new(ScriptedRuntime::new(|_| chatty("It is done.")));
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

    let handle = engine.launch(definition).await?;
    let mut feed = handle.follow();
    // The feed ends with the run once nobody holds a handle any more. That changes nothing for the run.
    drop(handle);
    // Sentences name agents, which the run knows.
    let run = engine.load(&name).await?;
    while let Some(item) = feed.next().await {
        match item {
            FeedItem::Fact(fact) => {
                let entry = journal::entry(&run, &fact);
                println!("{}: {}", entry.step.as_deref().unwrap_or("run"), entry.text);
            }
            FeedItem::Chatter { step, event, .. } => {
                if let SessionEventKind::Text { text } = &event.kind {
                    println!("{} says: {text}", run.step_name(step));
                }
            }
            FeedItem::Missed(count) => println!("this reader was too slow for {count} items"),
            FeedItem::DiskFull { words, .. } => println!("the run waits for room on the disk: {words}"),
            FeedItem::DiskHasRoom => println!("there is room on the disk again"),
            // Kinds of news that later versions know.
            _ => {}
        }
    }
    println!("the run is {}", engine.load(&name).await?.word());
    Ok(())
}

/// An answer that was thought aloud.
fn chatty(summary: &str) -> Reply {
    let say = |text: &str| SessionEventKind::Text {
        text: text.to_owned(),
    };
    Reply::Answer {
        before: vec![say("Let me see."), say("That is easy.")],
        answer: Answer {
            text: format!(r#"{{"outcome": "complete", "summary": "{summary}"}}"#),
            stop: StopReason::EndTurn,
            usage: Usage::default(),
        },
    }
}
