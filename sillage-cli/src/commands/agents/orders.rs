//! `sillage agents start`, `stop`, `restart`, `stop-sandbox`, `remove-sandbox`.

use serde::Serialize;
use sillage::core::agents::{AgentState, OUTDATED};

use super::held::{self, Place, Times};
use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Start,
    Stop,
    Restart,
    StopSandbox,
    RemoveSandbox,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    agents: Vec<Outcome<'a>>,
}

#[derive(Serialize)]
struct Outcome<'a> {
    name: &'a str,
    ok: bool,
    state: AgentState,
    /// Why it was not done, or why the agent is in error.
    error: Option<&'a str>,
    outdated: bool,
}

/// Has it done, and tells what became of each agent, in the order in which they were named.
pub(super) fn run(
    wanted: Wanted,
    names: &[String],
    times: Times,
    global: &Global,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let settings = global.settings_with_agents()?;
    let known: Vec<&str> = settings.agents.iter().map(|agent| agent.name.as_str()).collect();
    for name in names {
        known_agent(name, &known)?;
    }
    let mut once: Vec<String> = Vec::new();
    for name in names {
        if !once.contains(name) {
            once.push(name.clone());
        }
    }
    let Some(place) = Place::of(global)? else {
        return Err(Failure::new(Kind::Usage, "no agent is configured"));
    };
    let done = carry_out(wanted, &place, &once, times)?;
    let mut exit = Exit::Complete;
    let mut told = Vec::new();
    for name in &once {
        let one = done.iter().find(|one| one.name == *name);
        let (state, outdated) = one.map_or((AgentState::Stopped, false), |one| (one.state, one.outdated));
        let trouble = one.and_then(|one| one.trouble.as_deref());
        let error = trouble.or_else(|| one.and_then(|one| one.error.as_deref()));
        if trouble.is_some() {
            let refused = one.is_some_and(|one| one.refused);
            exit = if refused && exit != Exit::OutOfReach {
                Exit::Faulty
            } else {
                Exit::OutOfReach
            };
        }
        tell(name, state, outdated, error, output)?;
        told.push(Outcome {
            name,
            ok: trouble.is_none(),
            state,
            error,
            outdated,
        });
    }
    output.json(&Answer {
        ok: exit == Exit::Complete,
        agents: told,
    })?;
    Ok(exit)
}

/// What became of an agent.
#[derive(Debug)]
struct Done {
    name: String,
    state: AgentState,
    error: Option<String>,
    outdated: bool,
    trouble: Option<String>,
    /// Nothing was tried.
    refused: bool,
}

#[cfg(unix)]
fn carry_out(wanted: Wanted, place: &Place, names: &[String], times: Times) -> Result<Vec<Done>, Failure> {
    use sillage::agents::Order;
    let (order, begin) = match wanted {
        Wanted::Start => (Order::Start, Some(times)),
        // Where no process holds agents, none runs.
        Wanted::Stop => (Order::Stop, None),
        Wanted::Restart => (Order::Restart, Some(times)),
        Wanted::StopSandbox => (Order::StopSandbox, Some(times)),
        Wanted::RemoveSandbox => (Order::RemoveSandbox, Some(times)),
    };
    let done = held::carry_out(place, order, names, begin)?.unwrap_or_default();
    let done = done.into_iter().map(|one| {
        let status = one.status;
        Done {
            name: one.agent,
            state: status.as_ref().map_or(AgentState::Stopped, |status| status.state),
            outdated: status.as_ref().is_some_and(|status| status.outdated),
            error: status.and_then(|status| status.error),
            refused: one.trouble.as_ref().is_some_and(|trouble| trouble.refused),
            trouble: one.trouble.map(|trouble| trouble.words),
        }
    });
    Ok(done.collect())
}

#[cfg(not(unix))]
fn carry_out(_: Wanted, _: &Place, _: &[String], _: Times) -> Result<Vec<Done>, Failure> {
    Err(Failure::new(
        Kind::Refused,
        "this system cannot hold agents outside of runs yet",
    ))
}

/// An agent of the settings, or the mistake on the command line.
pub(super) fn known_agent(name: &str, known: &[&str]) -> Result<(), Failure> {
    if known.contains(&name) {
        return Ok(());
    }
    let message = format!("no agent of the settings is called `{name}`");
    let failure = Failure::new(Kind::Usage, message);
    Err(if known.is_empty() {
        failure
    } else {
        failure.hint(format_args!("there are {}", known.join(", ")))
    })
}

/// The state in its colour.
pub(super) fn painted(state: AgentState, output: &Output) -> String {
    let tone = match state {
        AgentState::Stopped => Tone::Faint,
        AgentState::Starting => Tone::Warning,
        AgentState::Ready | AgentState::Busy => Tone::Good,
        AgentState::Error => Tone::Bad,
    };
    output.paint(tone, format_args!("{:<9}", state.shown()))
}

/// A line for an agent, and under it why it is in error.
fn tell(
    name: &str,
    state: AgentState,
    outdated: bool,
    error: Option<&str>,
    output: &mut Output,
) -> Result<(), Failure> {
    let shown = output.paint(Tone::Strong, format_args!("{name:<12}"));
    let state = painted(state, output);
    let outdated = if outdated { OUTDATED } else { "" };
    output.line(format!("{shown} {state} {outdated}").trim_end())?;
    tell_error(error, output)
}

/// The lines of an error, each indented.
pub(super) fn tell_error(error: Option<&str>, output: &mut Output) -> Result<(), Failure> {
    for line in error.unwrap_or_default().lines() {
        output.line(format_args!("  {}", visible(line)))?;
    }
    Ok(())
}
