//! Estimates held against what happened (R27).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::estimator::Estimate;
use super::told::{about, range};

/// What was foretold of a run when it was launched: kept in its first fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foretold {
    /// The median, in milliseconds.
    pub typical_ms: u64,
    /// One run in ten is over sooner: milliseconds.
    pub low_ms: u64,
    /// One run in ten takes longer: milliseconds.
    pub high_ms: u64,
    /// Past sessions that it rests on; 0: it was a guess.
    pub sessions: u32,
}

/// How what was foretold turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was over sooner than the range says.
    Sooner,
    /// It was over within the range.
    Within,
    /// It took longer than the range says.
    Later,
}

impl From<&Estimate> for Foretold {
    fn from(estimate: &Estimate) -> Self {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Foretold {
            typical_ms: millis(estimate.typical),
            low_ms: millis(estimate.low),
            high_ms: millis(estimate.high),
            sessions: estimate.sessions(),
        }
    }
}

impl Foretold {
    /// How it turned out for a run that took so long.
    #[must_use]
    pub fn verdict(&self, took: Duration) -> Verdict {
        if took < Duration::from_millis(self.low_ms) {
            Verdict::Sooner
        } else if took > Duration::from_millis(self.high_ms) {
            Verdict::Later
        } else {
            Verdict::Within
        }
    }

    /// The estimate beside what happened, e.g. `estimated 20 min (14 to 31 min), took 24 min`.
    #[must_use]
    pub fn beside(&self, took: Duration) -> String {
        format!("estimated {self}, took {}", about(took))
    }
}

/// E.g. `20 min (14 to 31 min)`.
impl fmt::Display for Foretold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = Duration::from_millis;
        write!(
            f,
            "{} ({})",
            about(span(self.typical_ms)),
            range(span(self.low_ms), span(self.high_ms))
        )
    }
}

/// How well estimates held, over runs that came to their end.
///
/// ```
/// use std::time::Duration;
/// use sillage_core::estimate::{Calibration, Foretold};
///
/// let foretold = Foretold { typical_ms: 1000, low_ms: 800, high_ms: 1300, sessions: 9 };
/// let took = [700, 900, 1200, 2000].map(|ms| (foretold, Duration::from_millis(ms)));
/// let calibration: Calibration = took.into_iter().collect();
/// assert_eq!((calibration.sooner, calibration.within, calibration.later), (1, 2, 1));
/// assert_eq!(calibration.share_within(), Some(0.5));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Calibration {
    /// Runs that were over sooner than the range says.
    pub sooner: u32,
    /// Runs within the range.
    pub within: u32,
    /// Runs that took longer than the range says.
    pub later: u32,
}

impl Calibration {
    /// Runs in all.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.sooner + self.within + self.later
    }

    /// The share of runs within the range, from 0 to 1: 0.8 where estimates are right. None without a run.
    #[must_use]
    pub fn share_within(&self) -> Option<f64> {
        (self.runs() > 0).then(|| f64::from(self.within) / f64::from(self.runs()))
    }
}

/// E.g. `12 of 15 runs within the range (80 %); 1 sooner, 2 later`.
impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(share) = self.share_within() else {
            return f.write_str("no run with an estimate is over");
        };
        let runs = self.runs();
        let s = if runs == 1 { "" } else { "s" };
        write!(
            f,
            "{} of {runs} run{s} within the range ({:.0} %); {} sooner, {} later",
            self.within,
            share * 100.0,
            self.sooner,
            self.later
        )
    }
}

impl FromIterator<(Foretold, Duration)> for Calibration {
    fn from_iter<I: IntoIterator<Item = (Foretold, Duration)>>(runs: I) -> Self {
        let mut calibration = Calibration::default();
        for (foretold, took) in runs {
            match foretold.verdict(took) {
                Verdict::Sooner => calibration.sooner += 1,
                Verdict::Within => calibration.within += 1,
                Verdict::Later => calibration.later += 1,
            }
        }
        calibration
    }
}
