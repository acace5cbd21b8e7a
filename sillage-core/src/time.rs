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
        Timestamp(
            self.0
                .saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// The instant so many milliseconds later, or earlier where it is below zero; the last or first representable one
    /// when that is too far.
    #[must_use]
    pub fn shifted(self, by_ms: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(by_ms))
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

/// Why a text is not an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadInstant {
    /// It is not written as one.
    #[error("an instant is written as in `2026-11-30T14:00:00Z`, with its offset from universal time")]
    Form,
    /// It is written as one, and beyond what the calendar has.
    #[error(
        "instants are known from {} to {} only",
        jiff::Timestamp::MIN,
        jiff::Timestamp::MAX
    )]
    OutOfRange,
}

/// RFC 3339, with any offset.
impl std::str::FromStr for Timestamp {
    type Err = BadInstant;

    fn from_str(text: &str) -> Result<Self, BadInstant> {
        let instant: jiff::Timestamp = text.parse().map_err(|_| BadInstant::of(text))?;
        Ok(Timestamp(instant.as_millisecond()))
    }
}

impl BadInstant {
    /// What is wrong with a text that is no instant.
    fn of(text: &str) -> BadInstant {
        match jiff::fmt::temporal::Pieces::parse(text) {
            Ok(pieces) if pieces.time().is_some() && pieces.offset().is_some() => BadInstant::OutOfRange,
            Ok(_) | Err(_) => BadInstant::Form,
        }
    }
}

/// A time zone: the rules by which local times and instants belong together. The rules come with the program, so that
/// the same words mean the same on every machine; which zone is the machine's own comes in.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone(jiff::tz::TimeZone);

impl Zone {
    /// Universal time.
    #[must_use]
    pub fn utc() -> Self {
        Zone(jiff::tz::TimeZone::UTC)
    }

    /// The zone of a name of the time zone database, such as `Europe/Paris`, whatever its capitals.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let zone = jiff::tz::TimeZoneDatabase::bundled().get(name).ok()?;
        (!zone.is_unknown()).then_some(Zone(zone))
    }

    pub(crate) fn as_jiff(&self) -> &jiff::tz::TimeZone {
        &self.0
    }

    /// The local time at an instant, to the minute, with its offset from universal time: `2026-11-30 16:20 +01:00`.
    /// Only the instant where it is beyond what a calendar has.
    #[must_use]
    pub fn local(&self, at: Timestamp) -> String {
        match jiff::Timestamp::from_millisecond(at.0) {
            Ok(instant) => instant
                .to_zoned_datetime(self.0.clone())
                .strftime("%Y-%m-%d %H:%M %:z")
                .to_string(),
            Err(_) => at.to_string(),
        }
    }
}

/// What the edge found out about the machine.
impl From<jiff::tz::TimeZone> for Zone {
    fn from(zone: jiff::tz::TimeZone) -> Self {
        Zone(zone)
    }
}

/// A duration as a person reads it: its two largest units, e.g. `5d03h`, `2h05m`, `1m12s`, `3.4s`, `120ms`.
#[must_use]
pub fn human(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 if span.as_millis() < 1000 => format!("{}ms", span.as_millis()),
        0..60 => format!("{:.1}s", span.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Serialises a duration as whole milliseconds.
///
/// # Errors
/// Those of the serializer.
pub fn as_millis<S: serde::Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDuration {
    /// It is not made of whole numbers with a unit.
    #[error("a duration is written as whole numbers of h, m and s, longest first, as in `1h30m`")]
    Form,
    /// It is no time at all.
    #[error("a duration must be more than zero")]
    Zero,
    /// It is more seconds than can be counted.
    #[error("this duration is too long to be counted")]
    TooLong,
}

/// Reads a duration: one or more of `<integer>h|m|s`, longest first, each unit once, more than zero (W6).
///
/// # Errors
/// When the text is anything else, or the duration does not fit in `u64` seconds.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let mut rest = text;
    let mut seconds: u64 = 0;
    // The unit of the last part: the next one must be shorter.
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let unit = match tail.bytes().next() {
            Some(b'h') => 3600,
            Some(b'm') => 60,
            Some(b's') => 1,
            Some(_) | None => return Err(BadDuration::Form),
        };
        if number.is_empty() || unit >= last {
            return Err(BadDuration::Form);
        }
        let number: u64 = number.parse().map_err(|_| BadDuration::TooLong)?;
        let part = number.checked_mul(unit).ok_or(BadDuration::TooLong)?;
        seconds = seconds.checked_add(part).ok_or(BadDuration::TooLong)?;
        last = unit;
        rest = &tail[1..];
    }
    match (text.is_empty(), seconds) {
        (true, _) => Err(BadDuration::Form),
        (false, 0) => Err(BadDuration::Zero),
        (false, seconds) => Ok(Duration::from_secs(seconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_read_as_it_is_told() {
        for text in [
            "2026-11-30T14:00:00Z",
            "2026-11-30T14:00:00.25Z",
            "1969-12-31T23:59:59Z",
        ] {
            let instant: Timestamp = text.parse().unwrap();
            assert_eq!(instant.to_string(), text);
        }
        assert_eq!(
            "2026-11-30T15:00:00+01:00".parse(),
            Ok(Timestamp(1_796_047_200_000))
        );
        for text in [
            "",
            "now",
            "2026-11-30",
            "2026-11-30T14:00:00",
            "14:00",
            "1796047200",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(BadInstant::Form), "{text}");
        }
        for text in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-05:00"] {
            let error = text.parse::<Timestamp>().unwrap_err();
            assert_eq!(error, BadInstant::OutOfRange, "{text}");
            assert!(error.to_string().contains("9999-12-30T22:00:00"), "{error}");
        }
    }

    #[test]
    fn a_zone_is_known_by_its_name_and_tells_local_times() {
        let paris = Zone::named("europe/paris").unwrap();
        assert_eq!(
            paris.local(Timestamp(1_796_047_200_000)),
            "2026-11-30 15:00 +01:00"
        );
        for name in [
            "",
            "Mars/Olympus",
            "Etc/Unknown",
            "../../etc/passwd",
            "PST8",
            "/etc/localtime",
        ] {
            assert_eq!(Zone::named(name), None, "{name}");
        }
    }

    #[test]
    fn a_duration_is_told_in_its_two_largest_units() {
        let told = [0, 59, 60, 3599, 3600, 86_399, 86_400, 432_000, 443_100];
        assert_eq!(
            told.map(|seconds| human(Duration::from_secs(seconds))),
            [
                "0ms", "59.0s", "1m00s", "59m59s", "1h00m", "23h59m", "1d00h", "5d00h", "5d03h"
            ]
        );
    }

    #[test]
    fn w6_durations_are_whole_parts_longest_first() {
        for (text, seconds) in [
            ("1h30m", 5400),
            ("90m", 5400),
            ("2h", 7200),
            ("1h2m3s", 3723),
            ("0h1s", 1),
            ("01m", 60),
            ("18446744073709551615s", u64::MAX),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "", "h", "1", "90", "30m1h", "1h1h", "1h 30m", "-1h", "+1h", "1.5h", "2d", "1H", " 1h", "1h\n",
            "٣h",
        ] {
            assert_eq!(parse_duration(text), Err(BadDuration::Form), "{text}");
        }
        for text in ["0s", "0h", "0h0m0s"] {
            assert_eq!(parse_duration(text), Err(BadDuration::Zero), "{text}");
        }
        for text in [
            "18446744073709551616s",
            "18446744073709551615h",
            "18446744073709551615s1h",
            "5124095576030431h16s",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(parse_duration("99999999999999999999h"), Err(BadDuration::TooLong));
    }
}
