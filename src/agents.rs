//! From the settings' agents to the commands that the ACP runtime starts (A12).

use sillage_acp::{AgentCommand, AgentModel};
use sillage_core::settings::{AgentSettings, RuntimeKind, Settings, UnknownVariable, expand_variables};

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
    /// It is to run in a container or sandbox.
    #[error("agent `{agent}` has runtime `{kind}`: this version starts local agents only")]
    Placement {
        /// The agent.
        agent: String,
        /// The runtime's type.
        kind: &'static str,
    },
}

/// The commands of the settings' agents. `variable` gives the values that `${NAME}` stands for.
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

fn agent_command(
    agent: &AgentSettings,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<AgentCommand, BadAgent> {
    let name = &agent.name;
    let kind = match agent.runtime.kind {
        RuntimeKind::Local => None,
        RuntimeKind::Container => Some("container"),
        RuntimeKind::Sbx => Some("sbx"),
    };
    if let Some(kind) = kind {
        return Err(BadAgent::Placement {
            agent: name.clone(),
            kind,
        });
    }
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
        account: agent.account.clone(),
        models: models.collect(),
        mcp_servers: servers.collect::<Result<_, BadAgent>>()?,
    })
}

#[cfg(test)]
mod tests {
    use sillage_core::settings::{McpTransport, read};

    use super::*;

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
