//! From what a text tells to an instant, by the calendar and the zone (R8).

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::dates::{Day, Told};
use super::zones::Named;

/// Milliseconds of a minute and of a day: how exactly a time of day and a date are told.
const MINUTE: f64 = 60_000.0;
const DAY: f64 = 86_400_000.0;

/// Days in which a date without a year is the next one, and not the one that has just passed: half a year.
const HALF_A_YEAR: i32 = 183;

/// What a time in a text comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Instant {
    /// This instant, told this exactly (milliseconds).
    At(Timestamp, f64),
    /// One that is over.
    Past,
    /// None that can be relied on.
    Doubtful,
}

/// The instant of a local time: a missing one is read as if the clock had not jumped, a doubled one is the later.
fn of_local(zone: &TimeZone, local: DateTime) -> Option<Timestamp> {
    let offset = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    };
    offset.to_timestamp(local).ok()
}

/// The instant that is told, where `now` is no later than it.
pub(super) fn resolve(told: &Told, now: Timestamp, machine: &TimeZone) -> Instant {
    let zone = match &told.zone {
        Some(Named::Zone(zone)) => zone,
        Some(Named::Local) | None => machine,
        Some(Named::Unknown) => return Instant::Doubtful,
    };
    if told.doubtful {
        return Instant::Doubtful;
    }
    let (time, is_end, grain) = match told.clock {
        Some(clock) => {
            let is_end = clock.hour == 24;
            let hour = if is_end { 0 } else { clock.hour };
            let time = Time::new(hour, clock.minute, clock.second, clock.fraction * 1_000_000);
            (time, is_end, if clock.exact { 1000.0 } else { MINUTE })
        }
        None => (Ok(Time::midnight()), false, DAY),
    };
    let Ok(time) = time else {
        return Instant::Doubtful;
    };
    let on = |date: Date| {
        let date = if is_end { date.tomorrow().ok()? } else { date };
        of_local(zone, date.to_datetime(time))
    };
    let days = Days {
        told,
        today: zone.to_datetime(now).date(),
        midnight: told.clock.is_some() && time == Time::midnight(),
    };
    match days.first(&|date| on(date).filter(|at| *at >= now)) {
        Found::At(at) => Instant::At(at, grain),
        Found::Past => Instant::Past,
        Found::Doubtful => Instant::Doubtful,
    }
}

enum Found {
    At(Timestamp),
    Past,
    Doubtful,
}

impl From<Option<Timestamp>> for Found {
    fn from(at: Option<Timestamp>) -> Self {
        at.map_or(Found::Past, Found::At)
    }
}

/// The days that a text may mean.
struct Days<'a> {
    told: &'a Told,
    today: Date,
    /// Its time of day is midnight.
    midnight: bool,
}

impl Days<'_> {
    /// The first of them on which the time is not over.
    fn first(&self, ahead: &dyn Fn(Date) -> Option<Timestamp>) -> Found {
        let told = self.told;
        let fits = |date: &Date| told.weekday.is_none_or(|weekday| date.weekday() == weekday);
        match (told.date, told.day, told.weekday) {
            (Some(date), _, _) => match date.year {
                Some(year) => match Date::new(year, date.month, date.day) {
                    Ok(date) if fits(&date) => ahead(date).into(),
                    Ok(_) | Err(_) => Found::Doubtful,
                },
                // 29 February is at most eight years away.
                None => {
                    let years = (0..=8).filter_map(|more| self.today.year().checked_add(more));
                    let dates = years.filter_map(|year| Date::new(year, date.month, date.day).ok());
                    let found = dates.filter_map(|date| Some((date, ahead(date)?))).next();
                    match found {
                        // Of today it says no hour.
                        _ if told.clock.is_none()
                            && (date.month, date.day) == (self.today.month(), self.today.day()) =>
                        {
                            Found::Doubtful
                        }
                        Some((date, _)) if self.is_far(date) => Found::Past,
                        Some((date, at)) if fits(&date) => Found::At(at),
                        Some(_) | None => Found::Doubtful,
                    }
                }
            },
            (None, Some(day), _) => {
                let after = match day {
                    // Midnight of today is the end of it.
                    Day::Today => i32::from(self.midnight),
                    Day::Tomorrow => 1,
                    Day::AfterTomorrow => 2,
                };
                match self.day(after) {
                    Some(_) if day == Day::Today && told.clock.is_none() => Found::Doubtful,
                    Some(date) if fits(&date) => ahead(date).into(),
                    Some(_) | None => Found::Doubtful,
                }
            }
            (None, None, Some(_)) => {
                let first = i32::from(told.next || told.clock.is_none());
                let mut days = (first..=first + 7).filter_map(|after| self.day(after));
                days.find_map(|date| fits(&date).then(|| ahead(date)).flatten())
                    .into()
            }
            (None, None, None) => (0..=2).filter_map(|after| self.day(after)).find_map(ahead).into(),
        }
    }

    /// Whether it is so far ahead that who leaves its year out means the one that has just passed.
    fn is_far(&self, date: Date) -> bool {
        self.day(HALF_A_YEAR).is_some_and(|last| date > last)
    }

    fn day(&self, after: i32) -> Option<Date> {
        self.today.checked_add(jiff::Span::new().days(after)).ok()
    }
}
