//! A run's life as lines: for a log or a pipe, and as JSON for programs.

use serde::Serialize;
use serde_json::Value;
use sillage::FeedItem;
use sillage::core::id::{ClientSessionId, StepIndex};
use sillage::core::journal;
use sillage::core::ports::runtime::SessionEvent;
use sillage::core::run::{AnsweredBy, Event, Recorded, Run};
use sillage::core::time::Timestamp;

use crate::commands::journal::line;
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::progress::last_heard;

/// A line for a program. `event` names what happened: an event of the run in `snake_case`, `chatter`, `last_heard`, `missed`,
/// `disk_full` or `disk_has_room`.
#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Fact {
        event: String,
        run: &'a str,
        seq: u64,
        /// RFC 3339.
        at: String,
        /// The step's agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<&'a str>,
        /// What the event holds.
        details: Value,
    },
    Chatter {
        event: &'static str,
        run: &'a str,
        agent: &'a str,
        session: ClientSessionId,
        chatter: &'a SessionEvent,
    },
    LastHeard {
        event: &'static str,
        run: &'a str,
        agent: &'a str,
        /// Milliseconds since 1970 in UTC, as in `status`.
        last_heard: Timestamp,
    },
    Missed {
        event: &'static str,
        run: &'a str,
        count: u64,
    },
    DiskFull {
        event: &'static str,
        run: &'a str,
        words: &'a str,
        until: Timestamp,
    },
    DiskHasRoom {
        event: &'static str,
        run: &'a str,
    },
}

/// What a person is told where nothing can be written.
pub(super) fn disk_full(words: &str) -> String {
    format!("the run waits for room and goes on by itself: {words}")
}

/// What a person is told when the run goes on.
pub(super) const DISK_HAS_ROOM: &str = "there is room again: the run goes on";

/// Tells an item: a line for a person where it is worth one, a line for a program in any case. `run` is where the
/// item leaves it.
///
/// # Errors
/// As for [`Output::line`].
pub(super) fn tell(run: &Run, item: &FeedItem, output: &mut Output) -> Result<(), Failure> {
    match item {
        FeedItem::Fact(fact) => {
            output.json(&for_program(run, fact)?)?;
            if is_worth_a_line(&fact.event) {
                let line = line(&journal::entry(run, fact), output);
                output.line(line)?;
            }
            if let Event::PermissionAsked { .. } = &fact.event {
                output.line(format_args!(
                    "  answer with: sillage permissions allow {}/{}   (or deny)",
                    run.id(),
                    fact.seq
                ))?;
            }
        }
        FeedItem::Chatter { step, session, event } => {
            let (agent, session) = (name(run, *step), *session);
            output.json(&Line::Chatter {
                event: "chatter",
                run: run.id().as_str(),
                agent,
                session,
                chatter: event,
            })?;
        }
        FeedItem::Missed(count) => {
            output.json(&Line::Missed {
                event: "missed",
                run: run.id().as_str(),
                count: *count,
            })?;
        }
        FeedItem::DiskFull { words, until } => {
            output.json(&Line::DiskFull {
                event: "disk_full",
                run: run.id().as_str(),
                words,
                until: *until,
            })?;
            output.line(disk_full(words))?;
        }
        FeedItem::DiskHasRoom => {
            output.json(&Line::DiskHasRoom {
                event: "disk_has_room",
                run: run.id().as_str(),
            })?;
            output.line(DISK_HAS_ROOM)?;
        }
        _ => {}
    }
    Ok(())
}

/// Tells that a step has said nothing since `last`.
///
/// # Errors
/// As for [`Output::line`].
pub(super) fn tell_silence(
    run: &Run,
    step: StepIndex,
    last: Timestamp,
    now: Timestamp,
    output: &mut Output,
) -> Result<(), Failure> {
    let agent = name(run, step);
    output.json(&Line::LastHeard {
        event: "last_heard",
        run: run.id().as_str(),
        agent,
        last_heard: last,
    })?;
    let (agent, silent) = (
        output.paint(Tone::Strong, agent),
        output.paint(Tone::Faint, last_heard(last, now)),
    );
    Ok(output.line(format_args!("{agent}  {silent}"))?)
}

fn name(run: &Run, step: StepIndex) -> &str {
    run.step_name(step)
}

fn for_program<'a>(run: &'a Run, fact: &Recorded) -> Result<Line<'a>, Failure> {
    let unwritable = |error| {
        Failure::new(
            Kind::Defect,
            format_args!("event {} cannot be written: {error}", fact.seq),
        )
    };
    // An event without data is its name; one with data is an object of one key, its name.
    let (event, details) = match serde_json::to_value(&fact.event).map_err(unwritable)? {
        Value::String(name) => (name, Value::Null),
        Value::Object(named) => named.into_iter().next().unwrap_or_default(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => (String::new(), other),
    };
    let agent = fact.event.step().map(|step| name(run, step));
    Ok(Line::Fact {
        event,
        run: run.id().as_str(),
        seq: fact.seq.0,
        at: fact.at.to_string(),
        agent,
        details,
    })
}

/// Whether a person wants to read of it as it happens: intentions are not, as what comes of them follows.
pub(super) fn is_worth_a_line(event: &Event) -> bool {
    !matches!(
        event,
        Event::UsageCounted { .. }
            | Event::WorktreePlanned { .. }
            | Event::SessionPlanned { .. }
            | Event::SessionClosed { trouble: None, .. }
            | Event::ReportFound { .. }
            | Event::MergePlanned { .. }
            | Event::ConflictReturned { .. }
            | Event::CheckCleared
            | Event::WaitEnded { .. }
            | Event::PermissionSettled {
                by: AnsweredBy::Person,
                ..
            }
            | Event::StepFailing { .. }
    )
}
