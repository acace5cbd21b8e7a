//! `sillage wait parse`: when a provider's words say that a limit is over (R8).

use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use sillage::SystemClock;
use sillage::core::limit_text;
use sillage::core::ports::Clock as _;
use sillage::core::run::RunPolicy;
use sillage::core::time::{Timestamp, Zone, human};
use sillage_acp::machine_zone;

use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::output::{Output, Tone};

/// Commands below `wait`.
#[derive(Debug, Subcommand)]
pub(crate) enum Wait {
    /// Read when a limit is over out of a provider's words, or say that they do not tell.
    Parse {
        /// The provider's words; `-` for standard input.
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// The instant at which they were said, as in 2026-11-30T14:00:00Z [default: now].
        #[arg(long, value_name = "INSTANT", value_parser = Timestamp::from_str)]
        now: Option<Timestamp>,
        /// The zone of local times whose zone is not told, as in Europe/Paris [default: the machine's].
        #[arg(long, value_parser = zone)]
        zone: Option<Zone>,
    },
}

/// The answer. Where nothing is known `until` is there all the same, and null.
#[derive(Serialize)]
struct Answer {
    until: Option<String>,
}

fn zone(name: &str) -> Result<Zone, String> {
    Zone::named(name)
        .ok_or_else(|| "no zone of the time zone database is called so; one is `Europe/Paris`".to_owned())
}

/// How often runs try an account of which nobody knows when it can be used again.
fn tried_every(global: &Global) -> Result<Duration, Failure> {
    let waits = global.settings()?.map(|settings| settings.waits);
    Ok(waits.unwrap_or_default().of(RunPolicy::default()).gate_retry)
}

/// Carries out a command below `wait`.
pub(crate) fn run(command: &Wait, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let Wait::Parse { text, now, zone } = command;
    let piped;
    let text = match text.as_str() {
        "-" => {
            piped = String::from_utf8_lossy(&input::read(Path::new("-"))?).into_owned();
            &piped
        }
        _ => text,
    };
    let now = now.unwrap_or_else(|| SystemClock.now());
    let zone = zone.clone().unwrap_or_else(machine_zone);
    let until = limit_text::until(text, now, &zone);
    // Only who is told how often reads the settings.
    let every = match until {
        Some(_) => Duration::ZERO,
        None => tried_every(global)?,
    };
    output.json(&Answer {
        until: until.map(|until| until.to_string()),
    })?;
    match until {
        Some(until) => {
            let at = output.paint(Tone::Strong, zone.local(until));
            let left = match until.since(now) {
                Duration::ZERO => "now".to_owned(),
                left => format!("in {}", human(left)),
            };
            output.line(format_args!("until {at} ({until}), {left}"))?;
        }
        None => {
            let unknown = output.paint(Tone::Warning, "no instant that can be relied on");
            output.line(format_args!("{unknown}: tried again every {}", human(every)))?;
        }
    }
    Ok(Exit::Complete)
}
