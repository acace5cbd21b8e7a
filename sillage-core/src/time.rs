//! Instants and durations as the core sees them: values that come in.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The instant that comes `span` later; the last representable one when that is too far.
    #[must_use]
    pub fn plus(self, span: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later, as after a clock set back.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// RFC 3339 in UTC with milliseconds where there are any.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => instant.fmt(f),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// A duration as a person reads it: its two largest units, e.g. `2h05m`, `1m12s`, `3.4s`, `120ms`.
#[must_use]
pub fn human(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 if span.as_millis() < 1000 => format!("{}ms", span.as_millis()),
        0..60 => format!("{:.1}s", span.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}
