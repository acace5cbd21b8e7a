//! Dates and times of day: `2026-12-01T09:00:00Z`, `Dec 3rd, 2026 9:15 AM`, `Mon 12:00 AM`, `tomorrow at noon`,
//! `3:20pm (UTC)`.

use jiff::civil::Weekday;

use super::durations;
use super::words::{Kind, Words};
use super::zones::{self, Named};

/// A day that is named from today.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Day {
    Today,
    Tomorrow,
    AfterTomorrow,
}

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Date {
    pub(super) year: Option<i16>,
    pub(super) month: i8,
    pub(super) day: i8,
}

/// A time of day. Hour 24 is the end of the day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clock {
    pub(super) hour: i8,
    pub(super) minute: i8,
    pub(super) second: i8,
    /// Milliseconds.
    pub(super) fraction: i32,
    /// It is told to the second.
    pub(super) exact: bool,
}

/// What a text says of an instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Told {
    pub(super) date: Option<Date>,
    pub(super) weekday: Option<Weekday>,
    /// `next Monday`, which is never today.
    pub(super) next: bool,
    pub(super) day: Option<Day>,
    pub(super) clock: Option<Clock>,
    pub(super) zone: Option<Named>,
    /// It says something that cannot be, or that means two things.
    pub(super) doubtful: bool,
}

impl Told {
    fn has_day(&self) -> bool {
        self.date.is_some() || self.weekday.is_some() || self.day.is_some()
    }
}

/// Something read, and the place after it.
type Read<T> = (T, usize);

/// The instant that is told at `at`, and the place after it.
pub(super) fn read(words: &Words, at: usize) -> Option<(Told, usize)> {
    let mut told = Told::default();
    let mut end = at;
    let mut place = at;
    let mut vague = false;
    let mut joints = 0;
    loop {
        if let Some(after) = element(words, place, &mut told) {
            (place, end, joints) = (after, after, 0);
            continue;
        }
        if end == at {
            return None;
        }
        if let Some((named, after)) = zone(words, place, &told, joints) {
            told.zone = Some(named);
            (place, end, joints) = (after, after, 0);
            continue;
        }
        let joint = match words.pieces.get(place) {
            Some(piece) => match piece.kind {
                Kind::Mark(',' | '@' | '\n' | '*' | '`' | '"') => true,
                Kind::Mark('-' | '(' | ')') => told.clock.is_none() || joints == 0,
                Kind::Word => match piece.text.as_str() {
                    "at" | "on" | "the" | "of" | "t" | "around" | "about" | "approximately" | "by" => true,
                    "morning" | "afternoon" | "evening" | "night" => {
                        vague = true;
                        true
                    }
                    _ => false,
                },
                Kind::Number { .. } | Kind::Dotted | Kind::Mark(_) | Kind::Break => false,
            },
            None => false,
        };
        if !joint || joints == 3 {
            break;
        }
        (place, joints) = (place + 1, joints + 1);
    }
    told.doubtful |=
        told.clock.is_none() && (vague || has_bare_hour(words, end) || has_hour_before(words, at));
    told.doubtful |= is_range(words, at, end);
    Some((told, end))
}

/// Takes one element in where it is read for the first time.
fn element(words: &Words, at: usize, told: &mut Told) -> Option<usize> {
    if told.date.is_none()
        && told.day.is_none()
        && let Some((date, end)) = date(words, at, &mut told.doubtful)
    {
        told.date = Some(date);
        return Some(end);
    }
    if told.weekday.is_none()
        && told.day.is_none()
        && let Some((weekday, end)) = weekday(words, at)
    {
        told.weekday = Some(weekday);
        told.next = at > 0 && words.word(at - 1) == Some("next");
        return Some(end);
    }
    if !told.has_day()
        && let Some((day, end)) = day(words, at)
    {
        told.day = Some(day);
        return Some(end);
    }
    // `Mon Nov 30 15:20:00 2026`
    if told.clock.is_some()
        && let Some(date) = &mut told.date
        && date.year.is_none()
        && let Some(year) = words.digits(at, 4..=4).filter(|year| (1970..2200).contains(year))
    {
        date.year = i16::try_from(year).ok();
        return Some(at + 1);
    }
    if told.clock.is_none()
        && let Some((clock, end)) = clock(words, at, &mut told.doubtful)
    {
        told.clock = Some(clock);
        return Some(end);
    }
    None
}

/// A zone behind what was read so far.
fn zone(words: &Words, at: usize, told: &Told, joints: usize) -> Option<Read<Named>> {
    if told.zone.is_some() || told.clock.is_none() && !told.has_day() || joints > 0 {
        return None;
    }
    // `3pm in Paris time`
    let at = at + usize::from(words.word(at) == Some("in") && told.clock.is_some());
    let place = words.pieces.get(at.checked_sub(1)?)?.end;
    // `15:20-16:00` is no offset: only what looks like a whole date and time has one with a minus.
    if words.mark(at) == Some('-') && told.date.is_none() {
        return None;
    }
    let (named, end) = zones::read(&words.plain, place)?;
    Some((named, words.piece_at(end).max(at + 1)))
}

/// A day without a time of day, which a number follows or begins that may be its hour: `tomorrow at 5`.
fn has_bare_hour(words: &Words, end: usize) -> bool {
    (end..end + 3)
        .take_while(|place| {
            words.word(*place) == Some("at") || words.mark(*place) == Some(',') || words.is_number(*place)
        })
        .any(|place| words.is_number(place) && place > end)
}

/// `at 5 tomorrow`
fn has_hour_before(words: &Words, at: usize) -> bool {
    at >= 2 && words.is_number(at - 1) && words.word(at - 2) == Some("at")
}

/// `3-5pm`, `Dec 3-5`, `3 to 5pm`: from one to another.
fn is_range(words: &Words, at: usize, end: usize) -> bool {
    let between = |place: usize| {
        words.mark(place) == Some('-') || matches!(words.word(place), Some("to" | "or" | "and"))
    };
    let before = at >= 2 && between(at - 1) && words.is_number(at - 2) && words.is_number(at);
    let behind = between(end) && words.is_number(end + 1) && words.is_number(end - 1);
    before || behind
}

fn date(words: &Words, at: usize, doubtful: &mut bool) -> Option<Read<Date>> {
    numeric(words, at, doubtful)
        .or_else(|| dotted(words, at, doubtful))
        .or_else(|| with_month(words, at, doubtful))
}

/// `2026-12-01`, `2026/12/01`, `12/31/2026`, `31/12/2026`.
fn numeric(words: &Words, at: usize, doubtful: &mut bool) -> Option<Read<Date>> {
    let separator = words.mark(at + 1).filter(|mark| matches!(mark, '-' | '/'))?;
    let glued = (at + 1..at + 5).all(|place| words.is_glued(place));
    if !glued || words.mark(at + 3) != Some(separator) {
        return None;
    }
    if let Some(year) = words.digits(at, 4..=4) {
        let (month, day) = (words.digits(at + 2, 1..=2)?, words.digits(at + 4, 1..=2)?);
        return Some((calendar(Some(year), month, day, doubtful), at + 5));
    }
    let (one, two) = (words.digits(at, 1..=2)?, words.digits(at + 2, 1..=2)?);
    let year = words.digits(at + 4, 4..=4)?;
    // Where both may be the month, only both being equal settles it.
    *doubtful |= one <= 12 && two <= 12 && one != two;
    let (month, day) = if one > 12 { (two, one) } else { (one, two) };
    Some((calendar(Some(year), month, day, doubtful), at + 5))
}

/// `31.12.2026`.
fn dotted(words: &Words, at: usize, doubtful: &mut bool) -> Option<Read<Date>> {
    let piece = words.pieces.get(at).filter(|piece| piece.kind == Kind::Dotted)?;
    let mut parts = piece.text.split('.').map(str::parse::<i64>);
    let (day, month, year) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    (parts.next().is_none() && year > 999).then_some(())?;
    Some((calendar(Some(year), month, day, doubtful), at + 1))
}

/// `Dec 3rd, 2026`, `3 December`, `03-Dec-26`.
fn with_month(words: &Words, at: usize, doubtful: &mut bool) -> Option<Read<Date>> {
    let dot = |place: usize| place + usize::from(matches!(words.mark(place), Some('.')));
    let dash = |place: usize| place + usize::from(words.mark(place) == Some('-'));
    if let Some(month) = words.word(at).and_then(month) {
        let place = dash(dot(at + 1));
        let day = words.digits(place, 1..=2)?;
        // A number that is a time of day: `Dec 3pm` names no day.
        if matches!(words.word(place + 1), Some("am" | "pm")) || words.mark(place + 1) == Some(':') {
            return None;
        }
        let (year, end) = year(words, ordinal(words, place + 1));
        return Some((calendar(year, month, day, doubtful), end));
    }
    let day = words.digits(at, 1..=2)?;
    let place = ordinal(words, at + 1);
    let place = dash(place + usize::from(words.word(place) == Some("of")));
    let month = words.word(place).and_then(month)?;
    let (year, end) = year(words, dash(dot(place + 1)));
    Some((calendar(year, month, day, doubtful), end))
}

/// The year behind a day and month, and the place after it.
fn year(words: &Words, at: usize) -> (Option<i64>, usize) {
    let place = at + usize::from(words.mark(at) == Some(','));
    if let Some(year) = words
        .digits(place, 4..=4)
        .filter(|_| words.mark(place + 1) != Some(':'))
    {
        return (Some(year), place + 1);
    }
    // `30-Nov-26`
    match words.digits(at, 2..=2) {
        Some(year) if at > 0 && words.mark(at - 1) == Some('-') && words.is_glued(at) => {
            (Some(2000 + year), at + 1)
        }
        _ => (None, at),
    }
}

fn ordinal(words: &Words, at: usize) -> usize {
    let is_ordinal = words.is_glued(at) && matches!(words.word(at), Some("st" | "nd" | "rd" | "th"));
    at + usize::from(is_ordinal)
}

/// A day that is written as one; it may still be none, such as 30 February.
fn calendar(year: Option<i64>, month: i64, day: i64, doubtful: &mut bool) -> Date {
    let small = |number: i64| i8::try_from(number).unwrap_or(0);
    let date = Date {
        year: year.map(|year| i16::try_from(year).unwrap_or(0)),
        month: small(month),
        day: small(day),
    };
    // Without a year, any year that has the day will do.
    *doubtful |= jiff::civil::Date::new(date.year.unwrap_or(2024), date.month, date.day).is_err();
    date
}

fn month(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let position = MONTHS.iter().position(|month| {
        *month == word
            || word.len() == 3 && month.starts_with(word)
            || word == "sept" && *month == "september"
    })?;
    i64::try_from(position).ok().map(|position| position + 1)
}

fn weekday(words: &Words, at: usize) -> Option<Read<Weekday>> {
    let weekday = match words.word(at)? {
        "mon" | "monday" => Weekday::Monday,
        "tue" | "tues" | "tuesday" => Weekday::Tuesday,
        "wed" | "weds" | "wednesday" => Weekday::Wednesday,
        "thu" | "thur" | "thurs" | "thursday" => Weekday::Thursday,
        "fri" | "friday" => Weekday::Friday,
        "sat" | "saturday" => Weekday::Saturday,
        "sun" | "sunday" => Weekday::Sunday,
        _ => return None,
    };
    Some((weekday, at + 1 + usize::from(words.mark(at + 1) == Some('.'))))
}

fn day(words: &Words, at: usize) -> Option<Read<Day>> {
    match words.word(at)? {
        "today" | "tonight" => Some((Day::Today, at + 1)),
        "tomorrow" => Some((Day::Tomorrow, at + 1)),
        "day" if words.word(at + 1) == Some("after") && words.word(at + 2) == Some("tomorrow") => {
            Some((Day::AfterTomorrow, at + 3))
        }
        _ => None,
    }
}

fn clock(words: &Words, at: usize, doubtful: &mut bool) -> Option<Read<Clock>> {
    let plain = |hour: i64, minute: i64| Clock {
        hour: i8::try_from(hour).unwrap_or(i8::MAX),
        minute: i8::try_from(minute).unwrap_or(i8::MAX),
        second: 0,
        fraction: 0,
        exact: false,
    };
    match words.word(at) {
        Some("midnight") => return Some((plain(0, 0), at + 1)),
        Some("noon" | "midday") => return Some((plain(12, 0), at + 1)),
        _ => {}
    }
    let behind = words.is_glued(at)
        && at > 0
        && match words.pieces[at - 1].kind {
            Kind::Word => words.word(at - 1) != Some("t"),
            Kind::Mark(':') => !is_key(words, at),
            Kind::Mark(mark) => matches!(mark, '.' | '/' | '+' | '#' | '$' | '\u{20ac}'),
            Kind::Number { .. } | Kind::Dotted | Kind::Break => false,
        };
    if behind {
        return None;
    }
    if is_clock_with_h(words, at) {
        let read = plain(words.digits(at, 1..=2)?, words.digits(at + 2, 2..=2)?);
        *doubtful |= read.hour > 23 || read.minute > 59;
        return Some((read, at + 3));
    }
    let Kind::Number { digits, whole, .. } = words.pieces.get(at)?.kind else {
        return None;
    };
    let mut clock;
    let mut end;
    if let Some(hour) = words.digits(at, 1..=2) {
        let colon = |place: usize| {
            words.mark(place) == Some(':') && words.is_glued(place) && words.is_glued(place + 1)
        };
        if colon(at + 1) {
            clock = plain(hour, words.digits(at + 2, 2..=2)?);
            end = at + 3;
            if colon(end) {
                (clock.second, clock.fraction) = seconds(words, end + 1)?;
                clock.exact = true;
                end += 2;
            }
            if colon(end) {
                return None;
            }
        } else {
            clock = plain(hour, 0);
            end = at + 1;
            let half = half_of_day(words, end);
            match words.word(end) {
                Some("noon") if hour == 12 => return Some((plain(12, 0), end + 1)),
                Some("midnight") if hour == 12 => return Some((plain(0, 0), end + 1)),
                Some("o") if words.mark(end + 1) == Some('\'') && words.word(end + 2) == Some("clock") => {
                    *doubtful = true;
                    return Some((clock, end + 3));
                }
                _ => half.as_ref()?,
            };
        }
    } else if !whole && digits <= 2 {
        // `3.20 pm`
        let (hour, minute) = words.pieces[at]
            .text
            .split_once('.')
            .filter(|(_, minute)| minute.len() == 2)?;
        clock = plain(hour.parse().ok()?, minute.parse().ok()?);
        end = at + 1;
        half_of_day(words, end)?;
    } else {
        return None;
    }
    if let Some((afternoon, after)) = half_of_day(words, end) {
        end = after;
        *doubtful |= !(1..=12).contains(&clock.hour);
        clock.hour = match (clock.hour, afternoon) {
            (12, false) => 0,
            (1..=11, true) => clock.hour + 12,
            (hour, _) => hour,
        };
    }
    let last = clock.hour == 24 && (clock.minute, clock.second, clock.fraction) == (0, 0, 0);
    *doubtful |= !(0..=23).contains(&clock.hour) && !last || clock.minute > 59;
    Some((clock, end))
}

/// Whether a time of day is written with an `h` here: `at 17h30`. Without `at` it may be a duration, and with a unit
/// behind it, `at 17h30m`, it is one.
pub(super) fn is_clock_with_h(words: &Words, at: usize) -> bool {
    at > 0
        && words.word(at - 1) == Some("at")
        && words.digits(at, 1..=2).is_some()
        && words.is_glued(at + 1)
        && words.word(at + 1) == Some("h")
        && words.is_glued(at + 2)
        && words.digits(at + 2, 2..=2).is_some()
        && !(words.is_glued(at + 3) && (words.word(at + 3).is_some() || words.mark(at + 3) == Some(':')))
        && durations::unit(words.word(at + 3).unwrap_or_default()).is_none()
}

/// Whether the number is glued to the colon of a name: `reset:15:20`.
fn is_key(words: &Words, at: usize) -> bool {
    at >= 2 && words.mark(at - 1) == Some(':') && words.word(at - 2).is_some_and(|word| word.len() > 2)
}

fn seconds(words: &Words, at: usize) -> Option<(i8, i32)> {
    let text = &words.pieces.get(at)?.text;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.len() != 2 {
        return None;
    }
    // A leap second is the last one of its minute.
    let seconds: i8 = whole.parse().ok().filter(|seconds| *seconds <= 60)?;
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some((seconds.min(59), thousandths.parse().ok()?))
}

/// `pm`, `p.m.`, `a m`: whether it is after noon, and the place after it.
fn half_of_day(words: &Words, at: usize) -> Option<Read<bool>> {
    match words.word(at)? {
        "am" => Some((false, at + 1)),
        "pm" => Some((true, at + 1)),
        letter @ ("a" | "p") if words.mark(at + 1) == Some('.') && words.word(at + 2) == Some("m") => {
            let end = at + 3 + usize::from(words.mark(at + 3) == Some('.'));
            Some((letter == "p", end))
        }
        _ => None,
    }
}
