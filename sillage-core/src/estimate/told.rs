//! Estimates in words.

use std::fmt;
use std::time::Duration;

use super::estimator::Estimate;

/// A duration as an estimate is told: no more exact than it is. E.g. `40 s`, `20 min`, `2 h 10 min`, `3 d 4 h`.
///
/// ```
/// use std::time::Duration;
/// use sillage_core::estimate::about;
///
/// assert_eq!(about(Duration::from_secs(1234)), "21 min");
/// assert_eq!(about(Duration::from_secs(2 * 3600 + 620)), "2 h 10 min");
/// ```
#[must_use]
pub fn about(span: Duration) -> String {
    let seconds = (span.as_millis() + 500) / 1000;
    let minutes = (seconds + 30) / 60;
    let two = |large: u128, unit: &str, small: u128, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        small => format!("{large} {unit} {small} {small_unit}"),
    };
    match (seconds, minutes) {
        (0, _) => "under 1 s".to_owned(),
        (1..90, _) => format!("{seconds} s"),
        (_, 0..90) => format!("{minutes} min"),
        (_, 90..2880) => two(minutes / 60, "h", minutes % 60, "min"),
        _ => {
            let hours = (minutes + 30) / 60;
            two(hours / 24, "d", hours % 24, "h")
        }
    }
}

/// A range as it is told: the unit once where both ends have it.
pub(super) fn range(low: Duration, high: Duration) -> String {
    let (low, high) = (about(low), about(high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other && !number.starts_with('u') => {
            format!("{number} to {high}")
        }
        _ => format!("{low} to {high}"),
    }
}

/// E.g. `20 min (14 to 31 min)`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", about(self.typical), range(self.low, self.high))
    }
}

impl Estimate {
    /// On what it rests, in words, e.g. `rests on 41 sessions; no session yet for 2 of 5 agents`.
    #[must_use]
    pub fn rests_on(&self) -> String {
        let guessed = self.guessed();
        if guessed == self.agents.len() {
            return "a guess: there is no past session to go by".to_owned();
        }
        let sessions = self.sessions();
        let s = if sessions == 1 { "" } else { "s" };
        let mut told = format!("rests on {sessions} past session{s}");
        if guessed > 0 {
            told.push_str(&format!(
                "; a guess for {guessed} of {} agents",
                self.agents.len()
            ));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_no_more_exactly_than_they_are() {
        let told = |seconds| about(Duration::from_secs(seconds));
        assert_eq!(told(0), "under 1 s");
        assert_eq!(told(41), "41 s");
        assert_eq!(told(95), "2 min");
        assert_eq!(told(3600), "60 min");
        assert_eq!(told(2 * 3600), "2 h");
        assert_eq!(told(76 * 3600), "3 d 4 h");
    }

    #[test]
    fn a_range_has_its_unit_once_where_both_ends_have_it() {
        let told = |low, high| range(Duration::from_secs(low), Duration::from_secs(high));
        assert_eq!(told(840, 1860), "14 to 31 min");
        assert_eq!(told(40, 600), "40 s to 10 min");
        assert_eq!(told(3600, 8000), "60 min to 2 h 13 min");
        assert_eq!(told(0, 0), "under 1 s to under 1 s");
    }
}
