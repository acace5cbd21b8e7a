//! `sillage agents list`: the agents of the settings.

use std::collections::BTreeMap;

use serde::Serialize;
use sillage::core::settings::AgentSettings;

use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Tone};
use crate::terminal::visible;

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    agents: Vec<Agent<'a>>,
}

#[derive(Serialize)]
struct Agent<'a> {
    name: &'a str,
    title: &'a str,
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

/// Lists them. Values of environment variables are not told: they may be secrets.
pub(super) fn run(global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let agents = global.settings()?.unwrap_or_default().agents;
    for agent in &agents {
        tell(agent, output)?;
    }
    if agents.is_empty() {
        output.line("No agents are configured. `sillage agents detect` looks for some on this machine.")?;
    }
    output.json(&Answer {
        ok: true,
        agents: agents.iter().map(answer).collect(),
    })?;
    Ok(Exit::Complete)
}

fn tell(agent: &AgentSettings, output: &mut Output) -> Result<(), Failure> {
    let name = output.paint(Tone::Strong, &agent.name);
    let command = [std::slice::from_ref(&agent.command), agent.args.as_slice()]
        .concat()
        .join(" ");
    output.line(format_args!(
        "{name}  {}  account {}",
        visible(&command),
        visible(&agent.account)
    ))?;
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

fn answer(agent: &AgentSettings) -> Agent<'_> {
    let models = agent.models.iter().map(|model| {
        let told = Model {
            id: &model.id,
            efforts: &model.efforts,
        };
        (model.name.as_str(), told)
    });
    Agent {
        name: &agent.name,
        title: &agent.title,
        command: &agent.command,
        args: &agent.args,
        account: &agent.account,
        models: models.collect(),
    }
}
