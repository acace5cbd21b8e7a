//! MCP servers that an agent is told to use in every session.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::read::{choice, entries, items, name, required_text};
use crate::document::check::{Checker, Fields, Spot};
use crate::fault::FaultCode;

/// An MCP server; the agent starts it or speaks to it, never we.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// What the agent calls it, unique among those of one agent.
    pub name: String,
    /// How it is reached.
    #[serde(flatten)]
    pub transport: McpTransport,
}

/// How an MCP server is reached. `${NAME}` in the values of variables and headers stands for a variable of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum McpTransport {
    /// A program that the agent starts, over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
        /// Variables of its environment.
        #[serde(default)]
        env: BTreeMap<String, String>,
    },
    /// A server on the network, over streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of each request.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// A server on the network, over server-sent events.
    Sse {
        /// Its address.
        url: String,
        /// Headers of each request.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
}

impl McpServer {
    /// The same server with the values of its variables and headers replaced.
    ///
    /// # Errors
    /// The first that `replace` gives.
    pub fn try_map_values<E>(&self, replace: impl Fn(&String) -> Result<String, E>) -> Result<McpServer, E> {
        let mut server = self.clone();
        let values = match &mut server.transport {
            McpTransport::Stdio { env, .. } => env,
            McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => headers,
        };
        for value in values.values_mut() {
            *value = replace(value)?;
        }
        Ok(server)
    }
}

#[derive(Clone, Copy, Default)]
enum Kind {
    #[default]
    Stdio,
    Http,
    Sse,
}

/// Reads an agent's `mcpServers`.
pub(super) fn servers(agent: &Fields<'_>, checker: &mut Checker) -> Vec<McpServer> {
    let mut taken = HashSet::new();
    items(agent, "mcpServers", checker, |spot, checker| {
        server(spot, &mut taken, checker)
    })
}

fn server(spot: Spot<'_>, taken: &mut HashSet<String>, checker: &mut Checker) -> Option<McpServer> {
    let known = ["name", "type", "command", "args", "env", "url", "headers"];
    let fields = checker.fields(spot, "an MCP server", &known)?;
    let name = fields
        .required("name", checker)
        .and_then(|spot| unique_name(&spot, taken, checker));
    let kinds = [("stdio", Kind::Stdio), ("http", Kind::Http), ("sse", Kind::Sse)];
    let transport = match choice(&fields, "type", checker, &kinds) {
        Kind::Stdio => {
            foreign(&fields, &["url", "headers"], "a program", checker);
            let command = required_text(&fields, "command", checker);
            let args = fields
                .optional("args")
                .and_then(|spot| checker.texts(&spot))
                .unwrap_or_default();
            let args = args.into_iter().map(|(_, text)| text.to_owned()).collect();
            let env = texts_by_name(&fields, "env", checker);
            command.map(|command| McpTransport::Stdio { command, args, env })
        }
        kind @ (Kind::Http | Kind::Sse) => {
            foreign(
                &fields,
                &["command", "args", "env"],
                "a server on the network",
                checker,
            );
            let headers = texts_by_name(&fields, "headers", checker);
            required_text(&fields, "url", checker).map(|url| match kind {
                Kind::Sse => McpTransport::Sse { url, headers },
                Kind::Stdio | Kind::Http => McpTransport::Http { url, headers },
            })
        }
    };
    Some(McpServer {
        name: name?,
        transport: transport?,
    })
}

fn unique_name(spot: &Spot<'_>, taken: &mut HashSet<String>, checker: &mut Checker) -> Option<String> {
    let name = name(spot, checker)?;
    if taken.insert(name.clone()) {
        return Some(name);
    }
    let message = format!("an MCP server of this agent is called `{name}` already");
    checker.fault_at(spot, FaultCode::DuplicateId, message);
    None
}

/// Tells of fields that belong to another type of server.
fn foreign(fields: &Fields<'_>, names: &[&str], what: &str, checker: &mut Checker) {
    for name in names {
        if let Some(spot) = fields.optional(name) {
            let message = format!("{what} has no `{name}`: correct the `type`, or leave the field out");
            checker.fault_at(&spot, FaultCode::BadValue, message);
        }
    }
}

fn texts_by_name(fields: &Fields<'_>, name: &str, checker: &mut Checker) -> BTreeMap<String, String> {
    entries(fields, name, checker)
        .into_iter()
        .filter_map(|(name, spot)| checker.text(&spot).map(|value| (name, value.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::read;

    fn with(servers: &str) -> String {
        format!("agents:\n  - name: a\n    command: b\n    mcpServers:\n{servers}")
    }

    #[test]
    fn a12_mcp_servers_are_programs_or_addresses() {
        let text = with(
            "      - { name: files, command: mcp-files, args: [-v], env: { KEY: '${KEY}' } }\n      \
             - { name: tickets, type: http, url: 'https://t', headers: { Authorization: 'Bearer ${KEY}' } }\n      \
             - { name: old, type: sse, url: 'https://o' }\n",
        );
        let servers = read(&text).unwrap().agents.remove(0).mcp_servers;
        assert_eq!(servers.len(), 3);
        let expanded = servers[1].try_map_values(|value| Ok::<_, ()>(value.replace("${KEY}", "k")));
        let McpTransport::Http { url, headers } = expanded.unwrap().transport else {
            panic!("{servers:?}");
        };
        assert_eq!((&*url, &*headers["Authorization"]), ("https://t", "Bearer k"));
        let McpTransport::Stdio { command, args, env } = &servers[0].transport else {
            panic!("{servers:?}");
        };
        assert_eq!(
            (&**command, &*args[0], &*env["KEY"]),
            ("mcp-files", "-v", "${KEY}")
        );
        let again = serde_json::to_value(&servers[2]).unwrap();
        assert_eq!(again["type"], "sse");
        assert_eq!(serde_json::from_value::<McpServer>(again).unwrap(), servers[2]);
    }

    #[test]
    fn a12_faults_of_mcp_servers_are_told_together() {
        let text = with(
            "      - { name: one }\n      - { name: one, command: x, url: y }\n      - { name: two, type: http, env: {} }\n      \
             - { name: three, type: pipe, command: x }\n",
        );
        let faults = read(&text).unwrap_err();
        let codes: Vec<FaultCode> = faults.iter().map(|fault| fault.code).collect();
        assert_eq!(codes.len(), 6, "{faults:?}");
    }
}
