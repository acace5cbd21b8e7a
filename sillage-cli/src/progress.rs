//! What goes on in a run, as a person or a program watches it: one interface over a run that this process drives and
//! over one that another process drives.

mod answering;
mod frame;
mod heard;
mod keys;
mod lines;

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use sillage::core::id::StepIndex;
use sillage::core::ports::Clock as _;
use sillage::core::run::{Recorded, Run};
use sillage::core::time::Timestamp;
use sillage::{FeedItem, SystemClock};
use tokio::time::{MissedTickBehavior, interval};

use crate::failure::{Failure, Kind};
use crate::output::Output;
pub(crate) use answering::Answers;
use answering::InSight;
use frame::Frame;
use heard::Heard;
pub(crate) use heard::words as last_heard;
use keys::Keys;

/// Shortest time between two pictures of a run in a terminal.
const BETWEEN_PICTURES: Duration = Duration::from_millis(200);

/// Time between two looks for agents that say nothing, where there is no picture to show them.
const BETWEEN_LOOKS: Duration = Duration::from_secs(10);

/// Shows a run until nothing follows, and gives it back as it is then; none where there were no items. `known` is the
/// run as it was before the first of `items`; none where they start at its launch. `heard` tells when steps were last
/// heard before that.
///
/// In a terminal the graph's states are redrawn in place, below a line for each thing that matters; elsewhere there is
/// a line for each fact worth one; with `--json`, a line for every item, and nothing else. What the run came to is for
/// the caller to tell.
///
/// Where a picture is drawn and keys can be read, a key answers the oldest permission request by `answers`; elsewhere
/// the command that does is told.
///
/// # Errors
/// The first error of `items`, or of standard output; an item that cannot follow what is known.
pub(crate) async fn show<E: Into<Failure>>(
    known: Option<Run>,
    items: BoxStream<'_, Result<FeedItem, E>>,
    heard: Vec<(StepIndex, Timestamp)>,
    answers: &Answers,
    output: &mut Output,
) -> Result<Option<Run>, Failure> {
    let heard = Heard::from(heard);
    if output.draws() {
        draw(known, items, heard, answers, output).await
    } else {
        list(known, items, heard, output).await
    }
}

/// Shows it as lines, each as it comes.
async fn list<E: Into<Failure>>(
    mut run: Option<Run>,
    mut items: BoxStream<'_, Result<FeedItem, E>>,
    mut heard: Heard,
    output: &mut Output,
) -> Result<Option<Run>, Failure> {
    let mut looks = interval(BETWEEN_LOOKS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            item = items.next() => {
                let Some(item) = item else { break };
                let item = item.map_err(Into::into)?;
                believe(&mut run, &item)?;
                if let Some(run) = &run {
                    heard.take(&item, SystemClock.now());
                    lines::tell(run, &item, output)?;
                }
            }
            _ = looks.tick() => {
                if let Some(run) = &run {
                    let now = SystemClock.now();
                    for (step, last) in heard.due(heard::listened_to(run), now) {
                        lines::tell_silence(run, step, last, now, output)?;
                    }
                }
            }
        }
        output.flush()?;
    }
    Ok(run)
}

/// Shows it as a picture that is drawn anew, below the lines that stay.
async fn draw<E: Into<Failure>>(
    mut run: Option<Run>,
    mut items: BoxStream<'_, Result<FeedItem, E>>,
    heard: Heard,
    answers: &Answers,
    output: &mut Output,
) -> Result<Option<Run>, Failure> {
    let mut frame = Frame::of(heard);
    let mut sight = InSight::default();
    let mut keys: Option<Keys> = None;
    let mut pictures = interval(BETWEEN_PICTURES);
    pictures.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            item = items.next() => {
                let Some(item) = item else { break };
                let item = item.map_err(Into::into)?;
                believe(&mut run, &item)?;
                if let Some(run) = &run {
                    frame.take(run, &item, SystemClock.now(), output);
                }
            }
            key = next_key(&mut keys) => {
                if let Some(words) = sight.press(key, answers).await {
                    frame.say(words);
                }
            }
            _ = pictures.tick() => {
                if let Some(run) = &run {
                    let asked = sight.show(run);
                    // Keys are only taken while there is something to answer.
                    match (&asked, answers) {
                        (None, _) | (_, Answers::Nobody) => keys = None,
                        (Some(_), _) if keys.is_none() => keys = Keys::listen(),
                        (Some(_), _) => {}
                    }
                    frame.ask(asked, keys.is_some());
                    frame.draw(run, SystemClock.now(), output)?;
                }
            }
        }
    }
    drop(keys);
    if let Some(run) = &run {
        frame.ask(None, false);
        frame.draw(run, SystemClock.now(), output)?;
    }
    Ok(run)
}

/// The next key, where keys are read.
async fn next_key(keys: &mut Option<Keys>) -> char {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

/// Takes the run to where the item leaves it.
fn believe(run: &mut Option<Run>, item: &FeedItem) -> Result<(), Failure> {
    let FeedItem::Fact(fact) = item else { return Ok(()) };
    let fact: &Recorded = fact;
    let believed = match run {
        Some(run) => run.apply(fact),
        None => Run::start(fact.clone()).map(|started| *run = Some(started)),
    };
    believed.map_err(|corrupt| Failure::new(Kind::Defect, corrupt))
}
