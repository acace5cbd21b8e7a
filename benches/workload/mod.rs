//! Graphs of steps that do nothing, and runtimes and worlds that answer at once.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::allow_attributes,
    reason = "each bench uses its part"
)]

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sillage::core::folders::Folders;
use sillage::core::id::{ClientMessageId, ClientSessionId, RunId};
use sillage::core::ports::Ids;
use sillage::core::ports::runtime::{Answer, OpenedSession, StopReason, Usage};
use sillage::core::run::{Effect, EffectKey, Input, Recorded, Run, RunDefinition, RunPolicy};
use sillage::core::task::{AgentDefinition, AgentKind, FolderLists, Limits, Link, Port, Task, WorktreeWish};
use sillage::core::time::Timestamp;

/// What every agent answers.
pub const REPORT: &str = r#"{"outcome":"complete","summary":"done"}"#;

/// Parents of each node: `layers` of `width`, each node with `parents` different ones of the layer above, drawn from
/// a fixed seed. One layer is one row of independent nodes; width 1 is a chain.
pub fn layered(layers: u32, width: u32, parents: u32) -> Vec<Vec<u32>> {
    let mut random = Random(42);
    (0..layers * width)
        .map(|node| {
            let layer = node / width;
            if layer == 0 {
                return vec![];
            }
            let mut chosen: Vec<u32> = Vec::new();
            while chosen.len() < parents.min(width) as usize {
                let parent = (layer - 1) * width + random.below(width);
                if !chosen.contains(&parent) {
                    chosen.push(parent);
                }
            }
            chosen
        })
        .collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        // xorshift64*: the same graph on every machine.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as u32 % bound
    }
}

/// A run over this graph, at most `parallel` sessions at once.
pub fn definition(name: &str, parents: &[Vec<u32>], parallel: u32, files: &Path) -> RunDefinition {
    let agents = (0..parents.len()).map(agent).collect();
    let port = |agent: u32| Port { agent, name: None };
    let links = parents
        .iter()
        .zip(0u32..)
        .flat_map(|(from, to)| {
            from.iter().map(move |from| Link {
                from: port(*from),
                to: port(to),
            })
        })
        .collect();
    let task = Task {
        title: "A graph of steps that do nothing".to_owned(),
        context: None,
        method: None,
        folders: FolderLists::default(),
        limits: Limits::default(),
        check: None,
        autocompact: Default::default(),
        agents,
        links,
    };
    RunDefinition {
        run: RunId::new(name).unwrap(),
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
        parallel: NonZeroU32::new(parallel).unwrap(),
        accounts: Default::default(),
        files: files.to_path_buf(),
        policy: RunPolicy::default(),
    }
}

fn agent(number: usize) -> AgentDefinition {
    AgentDefinition {
        id: format!("n{number}"),
        title: None,
        mission: "Do nothing.".to_owned(),
        resources: vec![],
        deliverable: None,
        model: "m".to_owned(),
        effort: "low".to_owned(),
        kind: AgentKind::Deterministic,
        max_duration: None,
        browser: None,
        worktree: WorktreeWish::Never,
        inputs: vec![],
        outputs: vec![],
        sub_agents: None,
    }
}

/// Identifiers that count.
pub struct CountedIds(pub u128);

impl Ids for CountedIds {
    fn session(&mut self) -> ClientSessionId {
        self.0 += 1;
        ClientSessionId(uuid::Uuid::from_u128(self.0))
    }

    fn message(&mut self) -> ClientMessageId {
        self.0 += 1;
        ClientMessageId(uuid::Uuid::from_u128(self.0))
    }
}

/// Runs the machine alone, in memory, everything answered at once; `keep` is given each batch of facts.
pub fn run_alone(definition: RunDefinition, mut keep: impl FnMut(&[Recorded])) -> Run {
    let launch = Run::launch(Timestamp(0), definition);
    keep(std::slice::from_ref(&launch));
    let mut run = Run::start(launch).unwrap();
    let mut ids = CountedIds(0);
    let mut inputs = Vec::new();
    loop {
        let turn = run.turn(Timestamp(0), &mut ids, inputs.drain(..)).unwrap();
        keep(&turn.facts);
        if run.end().is_some() {
            return run;
        }
        for key in run.take_outbox_changes() {
            if let Some(effect) = run.effect(key) {
                inputs.push(answer(key, effect));
            }
        }
    }
}

fn answer(key: EffectKey, effect: Effect) -> Input {
    match (key, effect) {
        (EffectKey::Open(_, session), Effect::Open(_)) => {
            let opened = OpenedSession {
                native: None,
                agent: "none".to_owned(),
                pid: None,
            };
            Input::Opened {
                session,
                result: Ok(opened),
            }
        }
        (EffectKey::Send(_, message), Effect::Send { session, .. }) => {
            let answer = Answer {
                text: REPORT.to_owned(),
                stop: StopReason::EndTurn,
                usage: Usage::default(),
            };
            Input::Answered {
                session,
                message,
                answer,
            }
        }
        (EffectKey::Close(_, session), Effect::Close(_)) => Input::Closed {
            session,
            result: Ok(()),
        },
        (key, effect) => panic!("{key:?} asks for {effect:?}"),
    }
}
