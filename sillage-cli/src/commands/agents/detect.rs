//! `sillage agents detect`: which known agents are installed. Looks for files and starts nothing.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;

use serde::Serialize;
use sillage_acp::presets::{PRESETS, Preset, installed};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Tone};
use crate::places::usual_settings_file;

#[derive(Serialize)]
struct Answer {
    ok: bool,
    agents: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    name: &'static str,
    title: &'static str,
    command: &'static str,
    args: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'static str>,
    /// Where the program is; none: not on the `PATH`.
    program: Option<PathBuf>,
}

/// Tells which of the known agents are on the `PATH`.
pub(super) fn run(output: &mut Output) -> Result<Exit, Failure> {
    let search = env::var_os("PATH").unwrap_or_default();
    let agents: Vec<Found> = PRESETS.iter().map(|preset| found(preset, &search)).collect();
    for agent in &agents {
        match &agent.program {
            Some(program) => {
                let name = output.paint(Tone::Good, format_args!("{:<10}", agent.name));
                output.line(format_args!("{name} {:<12} {}", agent.title, program.display()))?;
            }
            None => {
                let name = output.paint(Tone::Faint, format_args!("{:<10}", agent.name));
                output.line(format_args!(
                    "{name} {:<12} not found: {}",
                    agent.title, agent.command
                ))?;
            }
        }
    }
    let installed: Vec<&Found> = agents.iter().filter(|agent| agent.program.is_some()).collect();
    if installed.is_empty() {
        output.line("\nNone of the known agents is on the PATH. Any other agent that speaks ACP can be configured too.")?;
    } else {
        let file = usual_settings_file()
            .map_or_else(|| "the settings file".into(), |file| file.display().to_string());
        output.line(format_args!(
            "\nFor {file}, with the models that your tasks shall name:\n\nagents:"
        ))?;
        for agent in &installed {
            output.line(settings_lines(agent))?;
        }
    }
    output.json(&Answer { ok: true, agents })?;
    Ok(Exit::Complete)
}

fn found(preset: &Preset, search: &OsStr) -> Found {
    Found {
        name: preset.name,
        title: preset.title,
        command: preset.command,
        args: preset.args,
        account: preset.account,
        program: installed(preset.command, search),
    }
}

/// The agent as an entry of `agents` in the settings file.
fn settings_lines(agent: &Found) -> String {
    let mut lines = format!("  - name: {}\n    command: {}\n", agent.name, agent.command);
    if !agent.args.is_empty() {
        lines.push_str(&format!("    args: [{}]\n", agent.args.join(", ")));
    }
    if let Some(account) = agent.account {
        lines.push_str(&format!("    account: {account}\n"));
    }
    lines.push_str("    models:\n      MODEL: {}");
    lines
}
