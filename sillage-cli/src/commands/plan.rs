//! `sillage plan check`: the plan in a coordinator's answer, held against its rules and those of its agent (W19, W20).

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueHint};
use serde::Serialize;
use sillage::core::document::{self, Format};
use sillage::core::fault::{Fault, nearest};
use sillage::core::plan::{self, Plan as Found, SubAgent};
use sillage::core::task::{self, AgentDefinition};

use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::input;
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Commands below `plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum Plan {
    /// Find the plan in a coordinator's answer and check it: every fault at once, with its place.
    Check {
        /// The task file; `-` for standard input.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        task: PathBuf,
        /// The dynamic agent whose plan it is.
        #[arg(long, value_name = "ID")]
        agent: String,
        /// The answer; `-` for standard input.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    #[serde(flatten)]
    plan: &'a Found,
}

/// Carries out a command below `plan`.
pub(crate) fn run(command: &Plan, output: &mut Output) -> Result<Exit, Failure> {
    let Plan::Check { task, agent, file } = command;
    if input::is_stdin(task) && input::is_stdin(file) {
        let message = "the task and the plan cannot both come from standard input";
        return Err(Failure::new(Kind::Usage, message));
    }
    let agent = agent_of(task, agent)?;
    let answer = input::read(file)?;
    match plan::read(&String::from_utf8_lossy(&answer), &agent, false) {
        Ok(plan) => {
            output.json(&Answer {
                ok: true,
                plan: &plan,
            })?;
            tell(&plan, output)?;
            Ok(Exit::Complete)
        }
        Err(faults) => Err(Failure::Faulty {
            file: input::name(file),
            faults,
        }),
    }
}

/// The agent of the task file. Models and efforts are free text here: the plan may use those that the agent allows.
fn agent_of(file: &Path, id: &str) -> Result<AgentDefinition, Failure> {
    let bytes = input::read(file)?;
    let faulty = |faults| Failure::Faulty {
        file: input::name(file),
        faults,
    };
    let text = document::decode(&bytes).map_err(|unreadable| faulty(vec![Fault::from(unreadable)]))?;
    let mut task = task::read(text, Format::of_file(file), None).map_err(faulty)?;
    match task.agents.iter().position(|agent| agent.id == id) {
        Some(position) => Ok(task.agents.swap_remove(position)),
        None => {
            let message = format!("{} has no agent `{id}`", input::name(file));
            let failure = Failure::new(Kind::Usage, message);
            Err(
                match nearest(id, task.agents.iter().map(|agent| agent.id.as_str())) {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure,
                },
            )
        }
    }
}

fn tell(plan: &Found, output: &mut Output) -> Result<(), Failure> {
    let count = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    output.line(format_args!(
        "{}: {} for {}",
        output.paint(Tone::Good, "ok"),
        count(plan.units.len(), "unit"),
        count(plan.sub_agents.len(), "sub-agent")
    ))?;
    for SubAgent {
        id,
        units,
        model,
        effort,
        after,
        ..
    } in &plan.sub_agents
    {
        let after = match after.as_slice() {
            [] => String::new(),
            after => format!(", after {}", after.join(", ")),
        };
        let told = format!("{} ({model}, {effort}{after})", units.join(", "));
        output.line(format_args!(
            "  {}: {}",
            output.paint(Tone::Strong, id),
            visible(&told)
        ))?;
    }
    Ok(())
}
