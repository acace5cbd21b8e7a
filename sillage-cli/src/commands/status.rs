//! `sillage status`: where a run stands, and which runs there are.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use sillage::core::id::RunId;
use sillage::core::ports::Clock as _;
use sillage::core::ports::store::{RunSummary, Which};
use sillage::core::run::RunView;
use sillage::core::time::{Timestamp, human};
use sillage::{Reader, SystemClock};

use super::relaunch;
use crate::arguments::Global;
use crate::drive;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::left_behind::{self, Told};
use crate::output::{Output, Tone};
use crate::progress::last_heard;
use crate::reading::{self, Chosen, Story};
use crate::terminal::visible;

/// What a person is told of a run that is not over and that nobody drives, and of what was under way in it.
const CUT: &str = "cut";

/// Runs in the list.
const LISTED: usize = 10;

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    chosen: Chosen,
}

/// The answer for a program. Dates are milliseconds since 1970 in UTC.
#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    run: &'a RunView,
    /// Whether a process drives it now.
    driven: bool,
    /// Whether it is not over and nobody drives it: what its state says to be under way is so at a gateway at most.
    cut: bool,
    /// When each agent was last heard.
    last_heard: &'a BTreeMap<String, Timestamp>,
    /// The newest runs; only where no run was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<Listed<'a>>,
    /// Processes of engines that are gone, of any run.
    #[serde(skip_serializing_if = "<[Told]>::is_empty")]
    left_behind: &'a [Told],
}

#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    summary: &'a RunSummary,
    resumable: bool,
    /// Whether it is not over and nobody drives it.
    cut: bool,
}

/// What was read.
struct Read {
    story: Story,
    driven: Vec<RunId>,
    runs: Vec<RunSummary>,
    left: Vec<Told>,
}

impl Read {
    fn is_driven(&self, view: &RunView) -> bool {
        self.driven.contains(&view.run)
    }

    fn is_cut(&self, view: &RunView) -> bool {
        !view.over && !self.is_driven(view)
    }
}

/// Tells where the run stands, and the newest runs where none was named.
pub(crate) fn run(arguments: &Status, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let data = global.data_folder()?;
    let read = drive::block_on(read(arguments, &data))?;
    let view = RunView::of(&read.story.run, read.story.seen_at());
    let runs = read.runs.iter().map(|summary| Listed {
        summary,
        resumable: reading::is_resumable(summary, &read.driven),
        cut: !summary.finished && !read.driven.contains(&summary.run),
    });
    let runs: Vec<Listed<'_>> = runs.collect();
    tell(&view, &read, output)?;
    tell_runs(&runs, output)?;
    for left in &read.left {
        let note = output.paint(Tone::Warning, "note");
        output.line(format_args!("{note}: {}", left.sentence()))?;
    }
    let driven = read.is_driven(&view);
    output.json(&Answer {
        ok: true,
        run: &view,
        driven,
        cut: read.is_cut(&view),
        last_heard: &read.story.heard,
        runs,
        left_behind: &read.left,
    })?;
    Ok(Exit::Complete)
}

async fn read(arguments: &Status, data: &Path) -> Result<Read, Failure> {
    let reader = Reader::open(data).await?;
    let run = arguments.chosen.summary(&reader).await?.run;
    let runs = match arguments.chosen.run {
        Some(_) => Vec::new(),
        None => reader.runs(Which::All, LISTED).await?,
    };
    Ok(Read {
        story: Story::of(&reader, &run).await?,
        driven: reader.driven().await?,
        left: left_behind::find(data, &reader).await?,
        runs,
    })
}

fn tell(view: &RunView, read: &Read, output: &mut Output) -> Result<(), Failure> {
    let now = SystemClock.now();
    let title = output.paint(Tone::Strong, &view.title);
    let cut = read.is_cut(view);
    let state = if cut { CUT } else { view.state };
    let state = output.paint(tone(state), state);
    let ago = human(now.since(view.launched));
    output.line(format_args!(
        "{title}\nrun {} is {state}, launched {ago} ago",
        view.run
    ))?;
    relaunch::told(read.story.run.definition(), output)?;
    for gateway in &read.story.run.definition().gateways {
        let held = format_args!("its sessions are held by the gateway at {}", gateway.url);
        output.line(output.paint(Tone::Faint, held))?;
    }
    // What a gateway holds goes on without whoever drives the run.
    let all_cut = cut && read.story.run.definition().gateways.is_empty();
    let shown = if all_cut { as_cut(view) } else { view.clone() };
    for line in shown.graph_lines() {
        output.line(format_args!("  {}", visible(&line)))?;
    }
    for step in view
        .steps
        .iter()
        .filter(|step| step.session.is_some() && step.ended.is_none() && step.waiting_for.is_none())
    {
        if let Some(heard) = read.story.heard.get(&step.agent) {
            let silent = last_heard(*heard, now);
            output.line(format_args!("  {} was {silent}", visible(&step.agent)))?;
        }
    }
    for account in &view.accounts {
        let line = output.paint(Tone::Warning, visible(&account.to_string()));
        output.line(&line)?;
    }
    for request in &view.permissions {
        let asks = output.paint(
            Tone::Warning,
            format_args!("{} asks a person: {request}", request.agent),
        );
        output.line(&asks)?;
        if read.is_driven(view) {
            output.line(format_args!(
                "  answer with: sillage permissions allow {}   (or deny)",
                request.id
            ))?;
        } else {
            output.line("  it cannot be answered while nobody drives the run; its agent asks again once it is resumed")?;
        }
    }
    if let Some(check) = &view.check {
        output.line(format_args!("check {}", visible(&check.to_string())))?;
    }
    if let Some(budget) = &view.budget {
        let tone = if budget.is_reached() {
            Tone::Warning
        } else {
            Tone::Faint
        };
        output.line(output.paint(tone, format_args!("budget {budget}")))?;
    }
    output.line(view.usage.and_unknown(view.usage_unknown))?;
    let note = output.paint(Tone::Warning, "note");
    if cut {
        let last = human(now.since(view.updated));
        output.line(format_args!(
            "{note}: times count up to the last thing it wrote, {last} ago: how long it went on after that is not known"
        ))?;
    }
    let left = cut || read.story.run.can_resume();
    if !read.is_driven(view) && left {
        let nobody = if cut { "nobody drives it; " } else { "" };
        output.line(format_args!(
            "{note}: {nobody}`sillage resume {}` goes on with it",
            view.run
        ))?;
    }
    Ok(())
}

/// The run for a person's eyes, where what was under way in it was cut with it. What waited for a date or a person does
/// so still.
fn as_cut(view: &RunView) -> RunView {
    let mut view = view.clone();
    for step in &mut view.steps {
        if matches!(step.state, "starting" | "running" | "correcting" | "merging") {
            (step.state, step.glyph) = (CUT, '⊘');
        }
    }
    view
}

fn tell_runs(runs: &[Listed<'_>], output: &mut Output) -> Result<(), Failure> {
    if runs.len() > 1 {
        output.line("\nnewest runs:")?;
        for listed in runs {
            let run = listed.summary;
            let state = if listed.cut { CUT } else { run.state.as_str() };
            let state = output.paint(tone(state), format_args!("{state:9}"));
            let resumable = if listed.resumable { "  can be resumed" } else { "" };
            let asking = if run.asking > 0 && !listed.resumable {
                "  waits for a person"
            } else {
                ""
            };
            let title = visible(&run.title);
            output.line(format_args!(
                "  {}  {state} {} of {} succeeded  {title}{asking}{resumable}",
                run.run, run.succeeded, run.steps
            ))?;
        }
    }
    Ok(())
}

/// How a state of a run is coloured.
fn tone(state: &str) -> Tone {
    match state {
        "complete" => Tone::Good,
        "failed" | "blocked" => Tone::Bad,
        "partial" | "stopped" | "stopping" | "waiting" | CUT => Tone::Warning,
        _ => Tone::Strong,
    }
}
