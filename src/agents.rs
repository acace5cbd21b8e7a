//! From the settings' agents to what is started: for runs (A12), and for the pool of agents outside of them (A1).

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod host;
#[cfg(unix)]
mod protocol;

use std::path::{Path, PathBuf};

#[cfg(unix)]
pub use client::{AgentClient, AskError};
#[cfg(unix)]
pub use host::{HostError, HostOptions, host, read_kept};
#[cfg(unix)]
pub use protocol::{Done, Kept, KeptAgent, Listed, Order, Trouble};
use sillage_acp::launcher::Limits;
use sillage_acp::{AgentCommand, AgentModel, PoolAgent, Sandbox, SandboxEngine};
use sillage_core::agents::PoolLimits;
use sillage_core::causes::with_causes;
use sillage_core::ports::runtime::ModelOffer;
use sillage_core::run::RunDefinition;
use sillage_core::settings::{
    AgentSettings, Placement, ProgramLimits, RuntimeKind, Settings, UnknownVariable, expand_home,
    expand_variables,
};
use sillage_core::task;

/// An agent of the settings that cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAgent {
    /// One of its variables stands on a variable that is not set.
    #[error("the environment of agent `{agent}` or of its MCP servers cannot be made")]
    Variable {
        /// The agent.
        agent: String,
        /// Which variable.
        #[source]
        source: UnknownVariable,
    },
    /// Its folder is none that means the same everywhere.
    #[error(
        "the workspace of agent `{agent}` is `{}`: write it from `/`, or from `~` for your home", path.display()
    )]
    Workspace {
        /// The agent.
        agent: String,
        /// Its folder as it is written.
        path: PathBuf,
    },
    /// It is to run in a box that has no name.
    #[error("agent `{agent}` has runtime `{kind}` and no name of it: set `runtime.name`")]
    Nameless {
        /// The agent.
        agent: String,
        /// The runtime's type.
        kind: &'static str,
    },
}

/// The commands of the settings' agents. `variable` gives the values that `${NAME}` stands for, and the home folder.
///
/// # Errors
/// For the first agent that cannot be started.
pub fn agent_commands(
    settings: &Settings,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<AgentCommand>, BadAgent> {
    settings
        .agents
        .iter()
        .map(|agent| agent_command(agent, &variable))
        .collect()
}

/// The settings' agents for a pool. One that cannot be started is there all the same, and says why when it is to start.
pub fn pool_agents(settings: &Settings, variable: impl Fn(&str) -> Option<String>) -> Vec<PoolAgent> {
    let agents = settings.agents.iter().map(|agent| PoolAgent {
        name: agent.name.clone(),
        command: agent_command(agent, &variable).map_err(|error| with_causes(&error)),
    });
    agents.collect()
}

/// The limits of a pool.
#[must_use]
pub fn pool_limits(limits: ProgramLimits) -> PoolLimits {
    PoolLimits {
        most: limits.max_running_agents,
        idle: limits.stop_idle_agents_after,
    }
}

/// Holds a run against the boxes of its agents: each must have the folder that its step works in. Worktrees are made
/// below the data folder `data`.
///
/// # Errors
/// For the first step whose agent cannot reach its folder: its name, why, and what to do.
pub fn check_sandboxes(
    definition: &RunDefinition,
    offers: &[ModelOffer],
    agents: &[AgentCommand],
    data: &Path,
) -> Result<(), String> {
    for (step, agent) in definition.task.agents.iter().enumerate() {
        let worktree = definition.worktrees.get(step) == Some(&true);
        let folder = if worktree {
            data.join("worktrees")
        } else {
            definition.step_folder.clone()
        };
        let given = agent.sub_agents.iter().flat_map(|rules| &rules.allow);
        for model in std::iter::once(&agent.model).chain(given.map(|pair| &pair.model)) {
            // One that no agent offers is told elsewhere.
            let Ok(offer) = task::resolve_model(model, offers) else {
                continue;
            };
            let command = agents.iter().find(|command| command.name == offer.agent);
            if let Some(Err(error)) = command.map(|command| command.inside(&folder)) {
                return Err(format!("`{}` cannot work: {error}", agent.id));
            }
        }
    }
    Ok(())
}

fn agent_command(
    agent: &AgentSettings,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<AgentCommand, BadAgent> {
    let name = &agent.name;
    let expand = |text: &String| {
        expand_variables(text, variable).map_err(|source| BadAgent::Variable {
            agent: name.clone(),
            source,
        })
    };
    let env = agent
        .env
        .iter()
        .map(|(name, value)| Ok((name.clone(), expand(value)?)));
    let models = agent.models.iter().map(|model| {
        let efforts = (!model.efforts.is_empty()).then(|| model.efforts.clone());
        (
            model.name.clone(),
            AgentModel {
                id: Some(model.id.clone()),
                efforts,
            },
        )
    });
    let servers = agent
        .mcp_servers
        .iter()
        .map(|server| server.try_map_values(expand));
    Ok(AgentCommand {
        name: name.clone(),
        command: agent.command.clone(),
        args: agent.args.clone(),
        env: env.collect::<Result<_, BadAgent>>()?,
        workspace: workspace(agent, variable)?,
        sandbox: sandbox(name, &agent.runtime)?,
        account: agent.account.clone(),
        sign_in: agent.sign_in.clone(),
        models: models.collect(),
        limits: Limits {
            open_files: agent.limits.open_files.map(|limit| limit.get().into()),
            processes: agent.limits.processes.map(|limit| limit.get().into()),
            address_space: agent.limits.memory,
        },
        mcp_servers: servers.collect::<Result<_, BadAgent>>()?,
    })
}

fn workspace(
    agent: &AgentSettings,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<PathBuf>, BadAgent> {
    let Some(written) = &agent.workspace else {
        return Ok(None);
    };
    let expanded = match variable("HOME") {
        Some(home) => expand_home(written, Path::new(&home)),
        None => written.clone(),
    };
    if expanded.is_absolute() {
        Ok(Some(expanded))
    } else {
        Err(BadAgent::Workspace {
            agent: agent.name.clone(),
            path: written.clone(),
        })
    }
}

fn sandbox(agent: &str, placement: &Placement) -> Result<Option<Sandbox>, BadAgent> {
    let (engine, kind) = match placement.kind {
        RuntimeKind::Local => return Ok(None),
        RuntimeKind::Container => (SandboxEngine::Container, "container"),
        RuntimeKind::Sbx => (SandboxEngine::Sbx, "sbx"),
    };
    let name = placement.name.clone().ok_or_else(|| BadAgent::Nameless {
        agent: agent.to_owned(),
        kind,
    })?;
    let lifecycle = placement.lifecycle.clone();
    Ok(Some(Sandbox {
        engine,
        name,
        workspace_path: placement.workspace_path.clone(),
        create: lifecycle.create,
        stop: lifecycle.stop,
        remove: lifecycle.remove,
    }))
}

#[cfg(test)]
mod tests {
    use sillage_core::settings::{McpTransport, read};

    use super::*;

    fn settings(agents: &str) -> Settings {
        sillage_core::settings::read(&format!("agents: [{agents}]")).expect("right settings")
    }

    fn variable(name: &str) -> Option<String> {
        (name == "HOME").then(|| "/home/ada".to_owned())
    }

    #[test]
    fn a8_a_box_and_its_folder_are_taken_over() {
        let settings = settings(
            "{ name: a, command: c, workspace: ~/p, runtime: { type: sbx, name: box, workspacePath: /src, lifecycle: { create: make, remove: rm } } }",
        );
        let command = agent_commands(&settings, variable).unwrap().remove(0);
        assert_eq!(command.workspace.as_deref(), Some(Path::new("/home/ada/p")));
        let sandbox = command.sandbox.unwrap();
        assert_eq!(
            (sandbox.engine, sandbox.name.as_str()),
            (SandboxEngine::Sbx, "box")
        );
        assert_eq!(sandbox.workspace_path.as_deref(), Some(Path::new("/src")));
        assert_eq!(
            (sandbox.create.as_deref(), sandbox.stop, sandbox.remove.as_deref()),
            (Some("make"), None, Some("rm"))
        );
    }

    #[test]
    fn a12_what_cannot_be_started_is_told_by_name_and_keeps_no_other_from_the_pool() {
        let settings = settings(
            "{ name: a, command: c, env: { K: '${NOPE}' } }, { name: b, command: c, workspace: src }, { name: c, command: c }",
        );
        let told: Vec<_> = pool_agents(&settings, variable)
            .into_iter()
            .map(|agent| agent.command.map(|command| command.name))
            .collect();
        let words = |at: usize| told[at].clone().unwrap_err();
        assert!(
            words(0).contains("agent `a`") && words(0).contains("`NOPE`"),
            "{}",
            words(0)
        );
        assert!(
            words(1).contains("agent `b`") && words(1).contains("`src`"),
            "{}",
            words(1)
        );
        assert_eq!(told[2].as_deref(), Ok("c"));
        assert!(agent_commands(&settings, variable).is_err());
    }

    #[test]
    fn a12_mcp_servers_go_to_the_agent_with_our_variables_in_their_values() {
        let text = "agents:\n  - name: a\n    command: b\n    mcpServers:\n      \
                    - { name: tickets, type: http, url: 'https://t', headers: { Authorization: 'Bearer ${KEY}' } }\n";
        let settings = read(text).expect("settings");
        let known = |name: &str| (name == "KEY").then(|| "k".to_owned());
        let commands = agent_commands(&settings, known).expect("commands");
        let McpTransport::Http { headers, .. } = &commands[0].mcp_servers[0].transport else {
            panic!("{commands:?}");
        };
        assert_eq!(headers["Authorization"], "Bearer k");
        let unknown = agent_commands(&settings, |_| None);
        assert!(matches!(unknown, Err(BadAgent::Variable { .. })), "{unknown:?}");
    }
}
