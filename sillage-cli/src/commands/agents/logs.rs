//! `sillage agents logs`: what an agent wrote last on its standard error.

use serde::Serialize;

use super::held::{self, Place};
use super::orders::known_agent;
use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::terminal::visible;

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    agent: &'a str,
    lines: Vec<String>,
}

/// Prints the lines, oldest first.
pub(super) fn run(agent: &str, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let settings = global.settings_with_agents()?;
    let known: Vec<&str> = settings.agents.iter().map(|agent| agent.name.as_str()).collect();
    known_agent(agent, &known)?;
    let lines = match Place::of(global)? {
        Some(place) => held::logs(&place, agent)?,
        None => Vec::new(),
    };
    for line in &lines {
        output.line(visible(line))?;
    }
    output.json(&Answer {
        ok: true,
        agent,
        lines,
    })?;
    Ok(Exit::Complete)
}
