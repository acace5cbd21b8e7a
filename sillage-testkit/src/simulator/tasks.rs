//! Random tasks.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sillage_core::folders::Folders;
use sillage_core::id::RunId;
use sillage_core::run::{Budget, BudgetMode, RunDefinition, RunPolicy, RunRepository};
use sillage_core::task::{
    AgentDefinition, AgentKind, AllowedPair, DelegatedField, Deliverable, FolderLists, Limits, Link, Port,
    SubAgentRules, Task, WorktreeWish,
};

use super::dice::Dice;
use super::faults::{Fault, Faults};
use super::story::{GROUP, PERSON, Story, TASK};

/// The repository of runs that have one.
pub(crate) const REPOSITORY: &str = "/sim/repository";

/// The folder of steps without a worktree.
pub(crate) const FOLDER: &str = "/sim/folder";

pub(crate) const MODELS: [&str; 3] = ["small", "large", "other"];

/// The run that a story is about. `base` is the commit that its repository stands on.
pub(crate) fn definition(story: &Story, dice: &mut Dice, base: &str) -> Option<RunDefinition> {
    let agents = agents(story, dice);
    let links = links(dice, agents.len());
    let mut models = BTreeMap::new();
    for model in MODELS {
        if dice.chance(TASK, 250) {
            let most = dice.between(TASK, 1, 2);
            models.insert(model.to_owned(), number(most));
        }
    }
    let with_repository = dice.chance(TASK, 500);
    let worktrees = agents
        .iter()
        .map(|agent| agent.worktree == WorktreeWish::Always)
        .collect();
    let parallel = number(dice.between(TASK, 1, 4));
    let task = Task {
        title: "A simulated task".to_owned(),
        context: None,
        method: None,
        folders: FolderLists::default(),
        limits: Limits {
            parallel: Some(parallel),
            models,
        },
        check: None,
        autocompact: sillage_core::task::Autocompact::default(),
        agents,
        links,
    };
    let attempts = dice.chance(TASK, 150).then(|| number(dice.between(TASK, 2, 6)));
    let accounts = [("small", "acme"), ("large", "acme")];
    Some(RunDefinition {
        run: RunId::new("sim").ok()?,
        task: Arc::new(task),
        task_file: None,
        task_version: 1,
        project: None,
        folders: Folders {
            read: Vec::new(),
            write: vec![PathBuf::from(FOLDER)],
        },
        step_folder: PathBuf::from(FOLDER),
        repository: with_repository.then(|| RunRepository {
            root: PathBuf::from(REPOSITORY),
            place: PathBuf::new(),
            base: base.to_owned(),
            branch: Some("main".to_owned()),
        }),
        worktrees: if with_repository { worktrees } else { Vec::new() },
        parallel,
        accounts: accounts
            .map(|(model, account)| (model.to_owned(), account.to_owned()))
            .into(),
        files: PathBuf::from("/sim/files"),
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
        policy: RunPolicy {
            attempts,
            fail_fast: story.faults.has(Fault::Hands) && dice.chance(PERSON, 200),
            budget: story.faults.has(Fault::Budgets).then(|| budget(dice)),
            ..RunPolicy::default()
        },
    })
}

/// Ceilings that some runs reach.
fn budget(dice: &mut Dice) -> Budget {
    let tokens = NonZeroU64::new(dice.between(Fault::Budgets as usize, 300, 6000));
    let time = Duration::from_secs(dice.between(Fault::Budgets as usize, 60, 8000));
    let which = dice.below(Fault::Budgets as usize, 3);
    Budget {
        mode: match dice.chance(Fault::Budgets as usize, 300) {
            true => BudgetMode::Audit,
            false => BudgetMode::Enforce,
        },
        tokens: tokens.filter(|_| which != 1),
        cost: None,
        time: Some(time).filter(|_| which != 0),
    }
}

fn number(count: u64) -> NonZeroU32 {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    NonZeroU32::MIN.saturating_add(count.saturating_sub(1))
}

fn agents(story: &Story, dice: &mut Dice) -> Vec<AgentDefinition> {
    // Small tasks are more frequent: they are quick, and most of what can happen happens to them.
    let most = dice.between(TASK, 1, super::story::MOST_AGENTS);
    let count = dice.between(TASK, 1, most);
    // Some tasks have dynamic agents.
    let dynamic = [0, 0, 200, 500][usize::try_from(dice.below(GROUP, 4)).unwrap_or(0)];
    let mut agents = Vec::new();
    for index in 0..count {
        let model = MODELS[usize::try_from(dice.below(TASK, 3)).unwrap_or(0)];
        let files = match dice.chance(TASK, 200) {
            true => vec![PathBuf::from(format!("result-{index}"))],
            false => Vec::new(),
        };
        let max_duration = dice
            .chance(TASK, 150)
            .then(|| Duration::from_secs(dice.between(TASK, 60, 1200)));
        // A death costs working time: without faults each story is to come to one end, wherever its engine dies.
        let max_duration = max_duration.filter(|_| story.faults != Faults::NONE);
        let worktree = match dice.chance(TASK, 600) {
            true => WorktreeWish::Always,
            false => WorktreeWish::Never,
        };
        let rules = rules(dice);
        let sub_agents = dice.chance(GROUP, dynamic).then_some(rules);
        agents.push(AgentDefinition {
            kind: match sub_agents {
                Some(_) => AgentKind::Dynamic,
                None => AgentKind::Deterministic,
            },
            sub_agents,
            id: format!("a{index}"),
            mission: format!("Do part {index}."),
            deliverable: (!files.is_empty()).then_some(Deliverable { text: None, files }),
            model: model.to_owned(),
            effort: "low".to_owned(),
            max_duration,
            worktree,
            ..AgentDefinition::default()
        });
    }
    // Cut after all is drawn, so that fewer agents are the first of the same ones.
    agents.truncate(usize::try_from(story.most_agents).unwrap_or(usize::MAX));
    agents
}

/// What a coordinator may do.
fn rules(dice: &mut Dice) -> SubAgentRules {
    let mut delegate = vec![DelegatedField::Mission];
    if dice.chance(GROUP, 500) {
        delegate.extend([DelegatedField::Model, DelegatedField::Effort]);
    }
    let allow = MODELS.map(|model| AllowedPair {
        model: model.to_owned(),
        efforts: vec!["low".to_owned()],
    });
    SubAgentRules {
        max: number(dice.between(GROUP, 1, 4)),
        delegate,
        allow: allow.into(),
    }
}

fn links(dice: &mut Dice, count: usize) -> Vec<Link> {
    let density = [0, 100, 300, 600][usize::try_from(dice.below(TASK, 4)).unwrap_or(0)];
    let most = u32::try_from(super::story::MOST_AGENTS).unwrap_or(u32::MAX);
    let count = u32::try_from(count).unwrap_or(0);
    let mut links = Vec::new();
    for to in 1..most {
        for from in 0..to {
            if dice.chance(TASK, density) && to < count {
                let port = |agent| Port { agent, name: None };
                links.push(Link {
                    from: port(from),
                    to: port(to),
                });
            }
        }
    }
    links
}

/// Whether a folder is a worktree's.
pub(crate) fn is_worktree(folder: &Path) -> bool {
    folder.starts_with("/memory/worktrees")
}
