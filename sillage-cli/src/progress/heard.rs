//! When agents were last heard, and which silences are worth a line (R11).

use std::collections::HashMap;

use sillage::FeedItem;
use sillage::core::id::StepIndex;
use sillage::core::run::{Event, Run};
use sillage::core::time::{Timestamp, human};

/// When each step's session was last heard.
#[derive(Debug, Default)]
pub(super) struct Heard {
    last: HashMap<StepIndex, Timestamp>,
    /// Silences that were told: since when, and for how many minutes.
    told: HashMap<StepIndex, (Timestamp, u64)>,
}

impl Heard {
    /// As far as it is known before anything is followed.
    pub(super) fn from(known: Vec<(StepIndex, Timestamp)>) -> Heard {
        Heard {
            last: known.into_iter().collect(),
            told: HashMap::new(),
        }
    }

    /// Takes notice of an item that comes at `now`.
    pub(super) fn take(&mut self, item: &FeedItem, now: Timestamp) {
        match item {
            FeedItem::Chatter { step, .. } => self.hear(*step, now),
            FeedItem::Fact(fact) => {
                if let Event::SessionOpened { step, .. }
                | Event::SessionFound { step, .. }
                | Event::Answered { step, .. } = &fact.event
                {
                    self.hear(*step, fact.at);
                }
            }
            FeedItem::Missed(_) | _ => {}
        }
    }

    fn hear(&mut self, step: StepIndex, at: Timestamp) {
        let last = self.last.entry(step).or_insert(at);
        *last = at.max(*last);
    }

    /// When a step was last heard, if it ever was.
    pub(super) fn last(&self, step: StepIndex) -> Option<Timestamp> {
        self.last.get(&step).copied()
    }

    /// The silences of these steps that are worth a line at `now`: after one minute, two, four, and so on.
    pub(super) fn due(
        &mut self,
        steps: impl IntoIterator<Item = StepIndex>,
        now: Timestamp,
    ) -> Vec<(StepIndex, Timestamp)> {
        let mut due = Vec::new();
        for step in steps {
            let Some(last) = self.last(step) else { continue };
            let minutes = now.since(last).as_secs() / 60;
            let told = match self.told.get(&step) {
                Some((since, told)) if *since == last => *told,
                Some(_) | None => 0,
            };
            if minutes > 0 && minutes >= 2 * told {
                self.told.insert(step, (last, minutes));
                due.push((step, last));
            }
        }
        due
    }
}

/// The steps that something is to be heard of: their sessions are open, and they do not wait for a date.
pub(super) fn listened_to(run: &Run) -> Vec<StepIndex> {
    let steps = (0..).map(StepIndex).zip(run.steps());
    steps
        .filter(|(_, state)| state.session().is_some() && state.end().is_none())
        .map(|(step, _)| step)
        .filter(|step| run.waiting_for(*step).is_none())
        .collect()
}

/// How it is told.
pub(crate) fn words(last: Timestamp, now: Timestamp) -> String {
    let silent = now.since(last);
    // Nobody counts the seconds of a long silence.
    match silent.as_secs() {
        seconds @ 120..7200 => format!("last heard {} minutes ago", seconds / 60),
        _ => format!("last heard {} ago", human(silent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    #[test]
    fn r11_words_count_minutes() {
        let at = |milliseconds| words(Timestamp(0), Timestamp(milliseconds));
        assert_eq!(at(10 * MINUTE + 7_000), "last heard 10 minutes ago");
        assert_eq!(at(5_000), "last heard 5.0s ago");
        assert_eq!(at(90_000), "last heard 1m30s ago");
    }

    #[test]
    fn r11_a_silence_is_told_after_one_minute_and_then_ever_more_rarely() {
        let step = StepIndex(0);
        let mut heard = Heard::from(vec![(step, Timestamp(0))]);
        let told = |heard: &mut Heard, minutes: std::ops::Range<i64>| {
            let due = |minute: &i64| {
                !heard
                    .due([step, StepIndex(1)], Timestamp(minute * MINUTE))
                    .is_empty()
            };
            minutes.filter(due).collect::<Vec<i64>>()
        };
        assert_eq!(told(&mut heard, 0..40), [1, 2, 4, 8, 16, 32]);
        heard.hear(step, Timestamp(40 * MINUTE));
        assert_eq!(told(&mut heard, 40..45), [41, 42, 44]);
    }
}
