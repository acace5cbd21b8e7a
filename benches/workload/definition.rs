//! Runs of steps that do nothing.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sillage::core::folders::Folders;
use sillage::core::id::RunId;
use sillage::core::run::{RunDefinition, RunPolicy};
use sillage::core::task::{AgentDefinition, AgentKind, FolderLists, Limits, Link, Port, Task, WorktreeWish};

/// What every agent answers.
pub(crate) const REPORT: &str = r#"{"outcome":"complete","summary":"done"}"#;

/// A run over this graph, at most `parallel` sessions at once.
pub(crate) fn definition(name: &str, parents: &[Vec<u32>], parallel: u32, files: &Path) -> RunDefinition {
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
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
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
