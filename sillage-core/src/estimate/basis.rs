//! On what a figure rests: a pair's own sessions, those of its neighbours, or nothing but a prior (R25).

use std::fmt;

use serde::Serialize;

use super::past::{Events, Part, Past};
use super::spread::Spread;

/// Where the figure of a model at an effort comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Sessions of that model at that effort.
    Pair,
    /// Sessions of that model at other efforts.
    OtherEfforts,
    /// Sessions of other models at that effort.
    OtherModels,
    /// No session: what is taken for usual where nothing is known.
    Prior,
}

/// What a figure rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Basis {
    /// Which sessions.
    pub source: Source,
    /// How many; 0 for a prior.
    pub sessions: u32,
}

/// E.g. `14 sessions`, `3 sessions at other efforts`, `no session yet`.
impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source == Source::Prior {
            return f.write_str("no session yet");
        }
        let s = if self.sessions == 1 { "" } else { "s" };
        write!(f, "{} session{s}", self.sessions)?;
        f.write_str(match self.source {
            Source::Pair | Source::Prior => "",
            Source::OtherEfforts => " at other efforts",
            Source::OtherModels => " of other models",
        })
    }
}

/// How widely a prior spreads: two sessions in three are within two fifths and two and a half times its median.
const PRIOR_SPREAD: f64 = 0.9;

const MINUTE_MS: f64 = 60_000.0;

/// What is taken for the median of a mission where no session is known, by effort; it is told to be a guess.
fn prior_minutes(part: Part, effort: &str) -> f64 {
    let mission = match effort {
        "none" | "minimal" => 3.0,
        "low" => 5.0,
        "high" => 20.0,
        "xhigh" | "max" => 30.0,
        _ => 10.0,
    };
    match part {
        Part::Mission => mission,
        // To divide work, and to tell of what others did, takes less than to do it.
        Part::Planning => 0.4 * mission,
        Part::Synthesis => 0.3 * mission,
    }
}

/// How long this part takes with this model at this effort, and what that rests on.
pub(super) fn worked(past: &Past, part: Part, model: &str, effort: &str) -> (Spread, Basis) {
    type Wanted<'a> = &'a dyn Fn(&str, &str) -> bool;
    let pair: Wanted<'_> = &|of, at| of == model && at == effort;
    let other_efforts: Wanted<'_> = &|of, _| of == model;
    let other_models: Wanted<'_> = &|_, at| at == effort;
    for (source, wanted) in [
        (Source::Pair, pair),
        (Source::OtherEfforts, other_efforts),
        (Source::OtherModels, other_models),
    ] {
        let samples: Vec<u32> = past
            .worked
            .iter()
            .filter(|((of_part, of, at), _)| *of_part == part && wanted(of, at))
            .flat_map(|(_, samples)| samples.iter().copied())
            .collect();
        let sessions = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        if let Some(spread) = Spread::of(samples) {
            return (spread, Basis { source, sessions });
        }
    }
    let prior = Spread::log_normal(prior_minutes(part, effort) * MINUTE_MS, PRIOR_SPREAD);
    let basis = Basis {
        source: Source::Prior,
        sessions: 0,
    };
    (prior, basis)
}

/// Sessions from which on a model's or account's own frequencies are taken, rather than those of all.
const FREQUENCY_FROM: u32 = 10;

/// What happens to sessions of this name: by its own history, or where that is short by everybody's.
pub(super) fn happens<'a>(all: impl Iterator<Item = (&'a String, &'a Events)>, name: &str) -> Events {
    let mut everybody = Events::default();
    for (of, events) in all {
        if of == name && events.sessions >= FREQUENCY_FROM {
            return events.clone();
        }
        everybody.add(events);
    }
    everybody
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::estimate::SessionSample;

    fn past(sessions: &[(&str, &str, u64)]) -> Past {
        let mut past = Past::default();
        for (model, effort, seconds) in sessions {
            past.add_session(SessionSample::mission(
                model,
                effort,
                Duration::from_secs(*seconds),
            ));
        }
        past
    }

    /// R25: pair, then the same model at another effort, then the same effort of any model, then a prior.
    #[test]
    fn r25_a_pair_without_history_falls_back_and_says_on_how_many_sessions_it_rests() {
        let past = past(&[
            ("opus", "high", 900),
            ("opus", "high", 1100),
            ("opus", "low", 300),
            ("sonnet", "medium", 240),
        ]);
        let of = |model, effort| worked(&past, Part::Mission, model, effort).1;
        let told = |model, effort| of(model, effort).to_string();
        assert_eq!(told("opus", "high"), "2 sessions");
        assert_eq!(told("opus", "medium"), "3 sessions at other efforts");
        assert_eq!(told("haiku", "medium"), "1 session of other models");
        assert_eq!(told("haiku", "max"), "no session yet");
        let plan = worked(&past, Part::Planning, "opus", "high").1;
        assert_eq!(plan.source, Source::Prior, "missions tell nothing of plans");
    }

    #[test]
    fn short_histories_borrow_the_frequencies_of_all() {
        let events = |sessions, happened| Events {
            sessions,
            happened,
            took: vec![1; happened as usize],
        };
        let all = [
            ("a".to_owned(), events(40, 10)),
            ("b".to_owned(), events(10, 0)),
            ("c".to_owned(), events(2, 2)),
        ];
        let share = |name| happens(all.iter().map(|(of, events)| (of, events)), name).share();
        assert!((share("a") - 0.25).abs() < 1e-9);
        assert!(share("b").abs() < 1e-9);
        assert!((share("c") - 12.0 / 52.0).abs() < 1e-9);
        assert!(Events::default().share().abs() < 1e-9);
    }
}
