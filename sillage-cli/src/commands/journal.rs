//! `sillage journal`: what happened in a run, and what failed in it (R31).

use clap::Args;
use serde::Serialize;
use sillage::core::journal::{self, Entry, Severity};

use crate::arguments::Global;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Tone};
use crate::reading::Chosen;
use crate::terminal::visible;

/// Arguments of `journal`.
#[derive(Debug, Args)]
pub(crate) struct Journal {
    #[command(flatten)]
    chosen: Chosen,
    /// What failed only.
    #[arg(long)]
    errors: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    run: &'a str,
    entries: &'a [&'a Entry],
}

/// Tells the journal.
pub(crate) fn run(arguments: &Journal, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let story = arguments.chosen.read(global)?;
    let entries = journal::entries(&story.run, &story.log);
    let told: Vec<&Entry> = if arguments.errors {
        journal::errors(&entries).collect()
    } else {
        entries.iter().collect()
    };
    for entry in &told {
        let line = line(entry, output);
        output.line(line)?;
    }
    if told.is_empty() {
        output.line("Nothing failed.")?;
    }
    output.json(&Answer {
        ok: true,
        run: story.run.id().as_str(),
        entries: &told,
    })?;
    Ok(Exit::Complete)
}

/// An entry on a line: when, who, what.
pub(crate) fn line(entry: &Entry, output: &Output) -> String {
    let who = output.paint(Tone::Strong, entry.step.as_deref().unwrap_or("run"));
    let what = match entry.severity {
        Severity::Info => visible(&entry.text).into_owned(),
        Severity::Notice => output.paint(Tone::Good, &entry.text),
        Severity::Warning => output.paint(Tone::Warning, &entry.text),
        Severity::Error => output.paint(Tone::Bad, &entry.text),
    };
    let when = output.paint(Tone::Faint, whole_seconds(&entry.at.to_string()));
    format!("{when}  {who}  {what}")
}

/// `2026-11-30 12:17:42Z`: what is finer is for programs.
fn whole_seconds(at: &str) -> String {
    let (date, time) = at.split_once('T').unwrap_or((at, ""));
    let time = time.split(['.', 'Z']).next().unwrap_or_default();
    format!("{date} {time}Z")
}
