//! The machine's time and random identifiers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sillage_core::id::{ClientMessageId, ClientSessionId, RunId};
use sillage_core::ports::{Clock, Ids};
use sillage_core::run::ClockReading;
use sillage_core::time::Timestamp;
use uuid::Uuid;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn reading(&self) -> Option<ClockReading> {
        use rustix::time::{ClockId, Timespec, clock_gettime};
        let span = |time: Timespec| {
            let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
            Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
        };
        let read = || ClockReading {
            passed: span(clock_gettime(ClockId::Boottime)),
            wall: self.now(),
            awake: span(clock_gettime(ClockId::Monotonic)),
        };
        let awake = || span(clock_gettime(ClockId::Monotonic));
        // Readings that were torn apart, as by a signal that stops this process, would look like a sleep.
        let mut readings = (0..3).map(|_| (awake(), read()));
        readings
            .find(|(before, reading)| reading.awake.saturating_sub(*before) < Duration::from_secs(1))
            .map(|(_, reading)| reading)
    }
}

/// Random identifiers (UUID version 4, RFC 9562).
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn session(&mut self) -> ClientSessionId {
        ClientSessionId(Uuid::new_v4())
    }

    fn message(&mut self) -> ClientMessageId {
        ClientMessageId(Uuid::new_v4())
    }
}

/// A fresh run's name: the launch's date and time in UTC, then four random characters.
///
/// ```
/// let run = sillage::new_run_id(sillage::core::time::Timestamp(0));
/// assert!(run.as_str().starts_with("19700101-000000-"));
/// ```
#[must_use]
pub fn new_run_id(now: Timestamp) -> RunId {
    let digits: String = now
        .to_string()
        .chars()
        .take(19)
        .filter(char::is_ascii_digit)
        .collect();
    let (date, time) = digits.split_at(8.min(digits.len()));
    let random = Uuid::new_v4().simple().to_string();
    #[expect(
        clippy::expect_used,
        reason = "digits, hyphens and lower-case hexadecimal digits make a run's name"
    )]
    RunId::new(format!("{date}-{time}-{}", &random[..4])).expect("a well-formed name")
}
