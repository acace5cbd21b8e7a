//! The picture of a run in a terminal: drawn over the one before it, below the lines that stay.

use std::collections::HashMap;

use sillage::FeedItem;
use sillage::core::id::StepIndex;
use sillage::core::journal::{self, Severity};
use sillage::core::ports::runtime::SessionEventKind;
use sillage::core::run::{Event, PermissionView, Run, RunView, StepView};
use sillage::core::time::{Timestamp, human};

use crate::commands::journal::line;
use crate::failure::Failure;
use crate::output::{Output, Tone};
use crate::progress::heard::Heard;
use crate::progress::last_heard;
use crate::progress::lines::{DISK_HAS_ROOM, disk_full};
use crate::terminal::{Size, fitting};

/// Bytes that are kept of what an agent says: enough for its last line.
const KEPT: usize = 400;

/// What is drawn, and what it is drawn from.
#[derive(Default)]
pub(super) struct Frame {
    /// Lines that are to stay and were not written yet.
    staying: Vec<String>,
    /// The lines of the last picture.
    drawn: Vec<String>,
    agents: HashMap<StepIndex, Agent>,
    heard: Heard,
    /// Lines about the permission request in sight.
    asked: Vec<String>,
}

/// What an agent last said.
#[derive(Default)]
struct Agent {
    /// The end of what it says, or the tool that it uses.
    says: String,
}

impl Frame {
    /// Nothing drawn yet; `heard` is what is known of silences.
    pub(super) fn of(heard: Heard) -> Frame {
        Frame {
            heard,
            ..Frame::default()
        }
    }

    /// Takes notice of an item that leaves the run as `run`.
    pub(super) fn take(&mut self, run: &Run, item: &FeedItem, now: Timestamp, output: &Output) {
        self.heard.take(item, now);
        match item {
            FeedItem::Fact(fact) => {
                let entry = journal::entry(run, fact);
                if is_worth_keeping(&fact.event, entry.severity) {
                    self.staying.push(line(&entry, output));
                }
            }
            FeedItem::Chatter { step, event, .. } => {
                let agent = self.agents.entry(*step).or_default();
                agent.listen(&event.kind);
            }
            FeedItem::DiskFull { words, .. } => self.staying.push(disk_full(words)),
            FeedItem::DiskHasRoom => self.staying.push(DISK_HAS_ROOM.to_owned()),
            FeedItem::Missed(_) | _ => {}
        }
    }

    /// Says something above the picture.
    pub(super) fn say(&mut self, words: String) {
        self.staying.push(words);
    }

    /// Shows a permission request below the picture, how many more there are, and how it is answered: by a key or by a
    /// command.
    pub(super) fn ask(&mut self, asked: Option<(PermissionView, usize)>, keys: bool) {
        self.asked = asked.map_or_else(Vec::new, |(request, more)| question(&request, more, keys));
    }

    /// Draws the run as it stands at `now`.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub(super) fn draw(&mut self, run: &Run, now: Timestamp, output: &mut Output) -> Result<(), Failure> {
        let size = output.size();
        let picture = self.picture(run, now, size, output);
        if self.staying.is_empty() && picture == self.drawn {
            return Ok(());
        }
        let mut text = match self.drawn.len() {
            0 => String::new(),
            // Up to where the last picture begins, and all below it away (ECMA-48: CUU, ED).
            lines => format!("\r\u{1b}[{lines}A\u{1b}[J"),
        };
        for line in self.staying.drain(..).chain(picture.iter().cloned()) {
            text.push_str(&line);
            text.push('\n');
        }
        self.drawn = picture;
        output.verbatim(&text)?;
        Ok(output.flush()?)
    }

    /// The lines of the picture, none wider than the terminal and fewer than it has.
    fn picture(&self, run: &Run, now: Timestamp, size: Size, output: &Output) -> Vec<String> {
        let view = RunView::of(run, now);
        let besides = self.asked.len()
            + view.accounts.len()
            + usize::from(view.check.is_some())
            + usize::from(view.budget.is_some());
        let room = size.height.saturating_sub(3 + besides).max(1);
        let shown = shown(&view, room);
        let mut lines = vec![output.paint(Tone::Strong, fitting(&headline(&view, now), size.width))];
        // The graph's lines come layer by layer.
        for (step, text) in shown.in_order().into_iter().zip(shown.graph_lines()) {
            let text = match run.step_named(&step.agent) {
                Some(place)
                    if step.session.is_some() && step.ended.is_none() && step.waiting_for.is_none() =>
                {
                    format!("{text}  {}", self.told(place, now)).trim_end().to_owned()
                }
                Some(_) | None => text,
            };
            lines.push(output.paint(tone(step.state), fitting(&text, size.width)));
        }
        let accounts = view.accounts.iter().map(ToString::to_string);
        lines.extend(accounts.map(|line| output.paint(Tone::Warning, fitting(&line, size.width))));
        if let Some(check) = &view.check {
            lines.push(output.paint(Tone::Strong, fitting(&format!("check {check}"), size.width)));
        }
        if let Some(budget) = &view.budget {
            let tone = if budget.is_reached() {
                Tone::Warning
            } else {
                Tone::Faint
            };
            lines.push(output.paint(tone, fitting(&format!("budget {budget}"), size.width)));
        }
        let hidden = view.steps.len() - shown.steps.len();
        if hidden > 0 {
            let told = format!("and {hidden} more steps");
            lines.push(output.paint(Tone::Faint, fitting(&told, size.width)));
        }
        let asked = self.asked.iter();
        lines.extend(asked.map(|line| output.paint(Tone::Warning, fitting(line, size.width))));
        lines
    }
}

impl Frame {
    /// When a step was last heard, where that is a while ago, and its last line.
    fn told(&self, step: StepIndex, now: Timestamp) -> String {
        let last = self.agents.get(&step).map(Agent::last_line).unwrap_or_default();
        match self.heard.last(step) {
            Some(heard) if now.since(heard).as_secs() >= 2 => format!("{}  {last}", last_heard(heard, now)),
            Some(_) | None => last.to_owned(),
        }
    }
}

impl Agent {
    fn listen(&mut self, kind: &SessionEventKind) {
        if let SessionEventKind::Text { text } = kind {
            self.says.push_str(text);
            let mut cut = self.says.len().saturating_sub(KEPT);
            while !self.says.is_char_boundary(cut) {
                cut += 1;
            }
            self.says.drain(..cut);
        } else if let SessionEventKind::Tool { title, .. } = kind {
            self.says = format!("{title}\n");
        } else if let SessionEventKind::Permission { request } = kind {
            self.says = format!("asks for permission: {}\n", request.title);
        }
    }

    /// Its last line.
    fn last_line(&self) -> &str {
        let mut lines = self.says.lines().rev();
        lines.find(|line| !line.trim().is_empty()).unwrap_or_default()
    }
}

/// A permission request, and how it is answered.
fn question(request: &PermissionView, more: usize, keys: bool) -> Vec<String> {
    let more = match more {
        0 => String::new(),
        more => format!("  ({more} more after it)"),
    };
    let how = match keys {
        true => format!("  a: allow this once   d: deny{more}"),
        false => format!("  sillage permissions allow {}   (or deny){more}", request.id),
    };
    vec![format!("? {} asks: {request}", request.agent), how]
}

/// The run, its state, what succeeded of it, since when, and what it spent.
fn headline(view: &RunView, now: Timestamp) -> String {
    let counted = || view.steps.iter().filter(|step| !step.superseded);
    let succeeded = counted().filter(|step| step.succeeded).count();
    let since = human(now.since(view.launched));
    let usage = &view.usage;
    format!(
        "{}  {}  {succeeded} of {} succeeded  {since}  {usage}",
        view.run,
        view.state,
        counted().count()
    )
}

/// The run with the steps that there is room for: all, else those that are under way and the first of the others.
fn shown(view: &RunView, room: usize) -> RunView {
    let mut shown = view.clone();
    if shown.steps.len() > room {
        let idle = |step: &StepView| step.ended.is_some() || step.started.is_none();
        shown.steps.sort_by_key(idle);
        shown.steps.truncate(room);
    }
    shown
}

/// Whether a line of it is to stay above the picture, which shows the rest.
fn is_worth_keeping(event: &Event, severity: Severity) -> bool {
    let marks = matches!(
        event,
        Event::RunCreated(_)
            | Event::PlanAccepted { .. }
            | Event::Merged { .. }
            | Event::StepEnded { .. }
            | Event::CheckEnded { .. }
            | Event::RunEnded { .. }
    );
    (marks || severity >= Severity::Notice) && super::lines::is_worth_a_line(event)
}

fn tone(state: &str) -> Tone {
    match state {
        "complete" => Tone::Good,
        "failed" | "blocked" => Tone::Bad,
        "partial" | "waiting" | "correcting" | "cancelled" => Tone::Warning,
        "running" | "starting" | "merging" => Tone::Strong,
        _ => Tone::Faint,
    }
}

#[cfg(test)]
mod tests;
