//! `sillage agents list`: the agents of the settings, and how they stand.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use sillage::core::agents::{AgentState, AgentStatus, OUTDATED};
use sillage::core::settings::{AgentSettings, RuntimeKind};

use super::held::{self, Place, Standing};
use super::orders::{painted, tell_error};
use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Tone};
use crate::terminal::visible;

#[derive(Serialize)]
struct Agent<'a> {
    name: &'a str,
    title: &'a str,
    icon: Option<&'a str>,
    description: Option<&'a str>,
    state: AgentState,
    error: Option<&'a str>,
    /// Whether a restart is needed to apply the settings.
    outdated: bool,
    runtime: RuntimeKind,
    can_stop_sandbox: bool,
    can_remove_sandbox: bool,
    workspace: Option<&'a Path>,
    command: &'a str,
    args: &'a [String],
    account: &'a str,
    models: BTreeMap<&'a str, Model<'a>>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    efforts: &'a [String],
}

/// Lists them, in the order of the settings. Values of environment variables are not told: they may be secrets.
pub(super) fn run(global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let agents = global.settings()?.unwrap_or_default().agents;
    let standing = match Place::of(global)? {
        Some(place) if !agents.is_empty() => held::standing(&place)?,
        Some(_) | None => Standing::default(),
    };
    let status = |agent: &AgentSettings| standing.agents.iter().find(|status| status.agent == agent.name);
    for agent in &agents {
        tell(agent, status(agent), output)?;
    }
    if agents.is_empty() {
        output.line("No agents are configured. `sillage agents detect` looks for some on this machine.")?;
    }
    if let Some(problem) = &standing.problem {
        let told = output.paint(
            Tone::Warning,
            "The agents that run do not know these settings yet:",
        );
        output.line(format_args!("{told} {}", visible(problem)))?;
    }
    let told: Vec<Agent<'_>> = agents.iter().map(|agent| answer(agent, status(agent))).collect();
    output.json(&told)?;
    Ok(Exit::Complete)
}

fn tell(agent: &AgentSettings, status: Option<&AgentStatus>, output: &mut Output) -> Result<(), Failure> {
    let name = output.paint(Tone::Strong, format_args!("{:<12}", agent.name));
    let state = painted(status.map_or(AgentState::Stopped, |status| status.state), output);
    let command = [std::slice::from_ref(&agent.command), agent.args.as_slice()]
        .concat()
        .join(" ");
    let place = match (agent.runtime.kind, &agent.runtime.name) {
        (RuntimeKind::Local, _) | (RuntimeKind::Container | RuntimeKind::Sbx, None) => String::new(),
        (RuntimeKind::Container, Some(name)) => format!("  container {name}"),
        (RuntimeKind::Sbx, Some(name)) => format!("  sandbox {name}"),
    };
    output.line(format_args!(
        "{name} {state} {}  account {}{}",
        visible(&command),
        visible(&agent.account),
        visible(&place)
    ))?;
    if status.is_some_and(|status| status.outdated) {
        let outdated = output.paint(Tone::Warning, OUTDATED);
        output.line(format_args!("  {outdated}"))?;
    }
    tell_error(status.and_then(|status| status.error.as_deref()), output)?;
    for model in &agent.models {
        let efforts = if model.efforts.is_empty() {
            "any effort".to_owned()
        } else {
            model.efforts.join(", ")
        };
        output.line(format_args!(
            "  {:<16} {}",
            visible(&model.name),
            visible(&efforts)
        ))?;
    }
    Ok(())
}

fn answer<'a>(agent: &'a AgentSettings, status: Option<&'a AgentStatus>) -> Agent<'a> {
    let models = agent.models.iter().map(|model| {
        let told = Model {
            id: &model.id,
            efforts: &model.efforts,
        };
        (model.name.as_str(), told)
    });
    let boxed = agent.runtime.kind != RuntimeKind::Local;
    let lifecycle = &agent.runtime.lifecycle;
    Agent {
        name: &agent.name,
        title: &agent.title,
        icon: agent.icon.as_deref(),
        description: agent.description.as_deref(),
        state: status.map_or(AgentState::Stopped, |status| status.state),
        error: status.and_then(|status| status.error.as_deref()),
        outdated: status.is_some_and(|status| status.outdated),
        runtime: agent.runtime.kind,
        can_stop_sandbox: boxed && lifecycle.stop.is_some(),
        can_remove_sandbox: boxed && lifecycle.remove.is_some(),
        workspace: agent.workspace.as_deref(),
        command: &agent.command,
        args: &agent.args,
        account: &agent.account,
        models: models.collect(),
    }
}
