//! `sillage diff`: what changed in a task since a run executed it, or between two runs (R14).

use clap::Args;
use serde::Serialize;
use sillage::core::changes::{AgentChange, Change, Changes, FieldChange, Piece, Side, compare};
use sillage::core::id::RunId;
use sillage::core::run::RunDefinition;
use sillage::{Reader, read_task_file};

use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::terminal::visible;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The earlier run.
    run: RunId,
    /// The later run [default: the task's file as it is now].
    other: Option<RunId>,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    run: &'a RunId,
    /// The later run; none: the task's file.
    other: Option<&'a RunId>,
    /// Whether nothing differs.
    same: bool,
    #[serde(flatten)]
    changes: &'a Changes,
}

/// Tells what changed; exits with 0 whether anything did or not.
pub(crate) fn run(arguments: &Diff, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let (old, later) = drive::block_on(async {
        let reader = Reader::open(&data).await?;
        let old = reader.definition(&arguments.run).await?;
        let later = match &arguments.other {
            Some(other) => Some(reader.definition(other).await?),
            None => None,
        };
        Ok((old, later))
    })?;
    let changes = match &later {
        Some(later) => compare(&old.task, &later.task),
        None => compare(&old.task, &read_task_file(task_file(&old)?)?),
    };
    let against = match &arguments.other {
        Some(other) => format!("run {other}"),
        None => task_file(&old)?.display().to_string(),
    };
    if changes.is_nothing() {
        output.line(format_args!(
            "nothing changed between run {} and {}",
            arguments.run,
            visible(&against)
        ))?;
    } else {
        output.line(format_args!("run {} → {}", arguments.run, visible(&against)))?;
        tell(&changes, output)?;
    }
    output.json(&Answer {
        ok: true,
        run: &arguments.run,
        other: arguments.other.as_ref(),
        same: changes.is_nothing(),
        changes: &changes,
    })?;
    Ok(Exit::Complete)
}

/// The file of a run's task.
pub(crate) fn task_file(definition: &RunDefinition) -> Result<&std::path::Path, Failure> {
    definition.task_file.as_deref().ok_or_else(|| {
        Failure::new(
            Kind::Usage,
            format_args!("run {} was launched from no file", definition.run),
        )
    })
}

/// Tells changes, a line or more for each.
pub(crate) fn tell(changes: &Changes, output: &mut Output) -> Result<(), Failure> {
    if !changes.task.is_empty() {
        output.line(output.paint(Tone::Strong, "task"))?;
        changes
            .task
            .iter()
            .try_for_each(|field| tell_field(field, output))?;
    }
    for agent in &changes.agents {
        match agent {
            AgentChange::Added { agent, near } => {
                mark(Side::Added, &named("agent", agent, near.as_ref()), output)?
            }
            AgentChange::Removed { agent, near } => {
                mark(Side::Removed, &named("agent", agent, near.as_ref()), output)?;
            }
            AgentChange::Changed { agent, fields } => {
                output.line(output.paint(Tone::Strong, format_args!("agent {}", visible(agent))))?;
                fields.iter().try_for_each(|field| tell_field(field, output))?;
            }
        }
    }
    for link in &changes.links_added {
        mark(Side::Added, &format!("link {link}"), output)?;
    }
    for link in &changes.links_removed {
        mark(Side::Removed, &format!("link {link}"), output)?;
    }
    Ok(())
}

fn named(what: &str, name: &str, near: Option<&String>) -> String {
    match near {
        Some(near) => format!("{what} {name} (renamed? {near} has a name near to it)"),
        None => format!("{what} {name}"),
    }
}

/// A line that stands on one side only.
fn mark(side: Side, text: &str, output: &mut Output) -> Result<(), Failure> {
    let (sign, tone) = match side {
        Side::Added => ("+", Tone::Good),
        Side::Removed => ("-", Tone::Bad),
        Side::Same => (" ", Tone::Faint),
    };
    let text = visible(text).into_owned();
    output.line(output.paint(tone, format_args!("{sign} {text}")))?;
    Ok(())
}

fn tell_field(field: &FieldChange, output: &mut Output) -> Result<(), Failure> {
    let name = visible(&field.field).into_owned();
    match &field.change {
        Change::Text { pieces } => {
            output.line(format_args!("  {name}:"))?;
            let text: String = pieces.iter().map(|piece| told(piece, output)).collect();
            for line in text.trim_end().lines() {
                output.line(format_args!("    {line}"))?;
            }
        }
        Change::Value { old, new } => {
            let said = |value: &Option<String>| match value {
                Some(value) => visible(value).into_owned(),
                None => "not set".to_owned(),
            };
            let (old, new) = (
                output.paint(Tone::Bad, said(old)),
                output.paint(Tone::Good, said(new)),
            );
            output.line(format_args!("  {name}: {old} → {new}"))?;
        }
        Change::List { added, removed } => {
            output.line(format_args!("  {name}:"))?;
            for (side, entries) in [(Side::Removed, removed), (Side::Added, added)] {
                for entry in entries {
                    mark(side, &format!("  {entry}"), output)?;
                }
            }
        }
    }
    Ok(())
}

/// Characters of what did not change that are shown before and after what did.
const AROUND: usize = 160;

/// A piece of a text: in colours, else between marks.
fn told(piece: &Piece, output: &Output) -> String {
    // Line by line, so that no colour and no mark runs on over a line's end.
    let by_line = |paint: &dyn Fn(&str) -> String| -> String {
        let lines: Vec<String> = piece
            .text
            .split('\n')
            .map(|line| match line.is_empty() {
                true => String::new(),
                false => paint(&visible(line)),
            })
            .collect();
        lines.join("\n")
    };
    let painted = |tone: Tone, open: &str, close: &str| {
        by_line(&|line: &str| {
            let colored = output.paint(tone, line);
            match colored == line {
                true => format!("{open}{line}{close}"),
                false => colored,
            }
        })
    };
    match piece.side {
        Side::Removed => painted(Tone::Bad, "[-", "-]"),
        Side::Added => painted(Tone::Good, "{+", "+}"),
        Side::Same => {
            let length = piece.text.chars().count();
            if length <= 2 * AROUND + 1 {
                return by_line(&|line: &str| line.to_owned());
            }
            let first: String = piece.text.chars().take(AROUND).collect();
            let last: String = piece.text.chars().skip(length - AROUND).collect();
            let shown: Vec<String> = format!("{first} … {last}")
                .split('\n')
                .map(|line| visible(line).into_owned())
                .collect();
            shown.join("\n")
        }
    }
}
