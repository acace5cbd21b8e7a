//! A small world for tests: runs of scripted agents over any store.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene must fail")]

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt;
use sillage_core::folders::Folders;
use sillage_core::id::{RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::runtime::{Answer, SessionEventKind, StopReason, Usage};
use sillage_core::run::{RunDefinition, RunPolicy};
use sillage_core::task::{AgentDefinition, FolderLists, Limits, Link, Port, Task, WorktreeWish};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

use crate::engine::Engine;
use crate::feed::FeedItem;
use crate::follow::Followed;

const REPORT: &str = r#"{"outcome":"complete","summary":"done"}"#;

/// A right report, after so many pieces of text.
pub(crate) fn report_after(pieces: usize) -> Reply {
    let before = (0..pieces)
        .map(|piece| SessionEventKind::Text {
            text: format!("piece {piece}\n"),
        })
        .collect();
    let answer = Answer {
        text: REPORT.to_owned(),
        stop: StopReason::EndTurn,
        usage: Usage::default(),
    };
    Reply::Answer { before, answer }
}

/// An engine whose agents answer each message by `reply`.
pub(crate) fn engine(store: &Arc<dyn Store>, reply: Reply) -> Engine {
    let runtime = ScriptedRuntime::new(move |_| reply.clone());
    Engine::builder(Arc::clone(store), Arc::new(runtime), Arc::new(NoWorkspace)).build()
}

/// A run of `agents` agents in two chains side by side.
pub(crate) fn definition(run: &str, agents: u32) -> RunDefinition {
    let link = |to: u32| Link {
        from: Port {
            agent: to - 2,
            name: None,
        },
        to: Port {
            agent: to,
            name: None,
        },
    };
    let task = Task {
        title: "Two chains".to_owned(),
        context: None,
        method: None,
        folders: FolderLists::default(),
        limits: Limits::default(),
        check: None,
        autocompact: Default::default(),
        agents: (0..agents).map(agent).collect(),
        links: (2..agents).map(link).collect(),
    };
    RunDefinition {
        run: id(run),
        task: Arc::new(task),
        task_file: None,
        task_version: 1,
        project: None,
        folders: Folders {
            read: vec![],
            write: vec![PathBuf::from("/nowhere")],
        },
        step_folder: PathBuf::from("/nowhere"),
        repository: None,
        worktrees: vec![],
        parallel: NonZeroU32::MIN.saturating_add(1),
        accounts: Default::default(),
        files: PathBuf::from("/nowhere"),
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
        policy: RunPolicy::default(),
    }
}

fn agent(number: u32) -> AgentDefinition {
    AgentDefinition {
        id: format!("n{number}"),
        mission: "Do nothing.".to_owned(),
        model: "m".to_owned(),
        effort: "low".to_owned(),
        worktree: WorktreeWish::Never,
        ..AgentDefinition::default()
    }
}

pub(crate) fn id(run: &str) -> RunId {
    RunId::new(run).unwrap()
}

/// What a follower saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) facts: Vec<Seq>,
    pub(crate) chatter: usize,
    pub(crate) missed: u64,
}

/// Reads a stream to its end.
pub(crate) async fn see<E: std::fmt::Debug>(mut items: Followed<E>) -> Seen {
    let mut seen = Seen::default();
    while let Some(item) = items.next().await {
        match item.unwrap() {
            FeedItem::Fact(fact) => seen.facts.push(fact.seq),
            FeedItem::Chatter { .. } => seen.chatter += 1,
            FeedItem::Missed(count) => seen.missed += count,
            FeedItem::DiskFull { .. } | FeedItem::DiskHasRoom => {}
        }
    }
    seen
}

/// The positions from `from` to `last`, each once.
pub(crate) fn every(from: Seq, last: Seq) -> Vec<Seq> {
    (from.0..=last.0).map(Seq).collect()
}

/// Numbers that only depend on the seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}
