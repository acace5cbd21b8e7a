//! When a provider's words say that a limit is over (R8).
//!
//! Providers tell it as they like: `resets 3:20pm (UTC)`, `Claude AI usage limit reached|1789000000`, `Please try again
//! in 6m0s`, `"retryDelay": "34s"`. [`until`] reads an instant out of such a text, or says that it does not know. Which
//! of the two is a matter of trust: a wait that is too long is lost time, and one that is too short asks in vain. So
//! it knows nothing where a text
//!
//! - announces no time: a limit *of* five hours, an hour at which something failed, a price or a version is none;
//! - announces several that differ by more than what they are told exactly to;
//! - says what cannot be, or means two things: `25:00`, `13pm`, `at 5`, `12/03/2026`, a Tuesday that is a Monday, a
//!   range, a zone that nobody knows or that two continents call so (see `zones.rs`);
//! - tells a time that is over. A time of day that is past today is tomorrow's, a weekday's the next week's: those are
//!   never over. A date without a year is the next such date where that is less than half a year ahead; else it is the
//!   one that has just passed, for nobody announces a wait of a year without its year.
//!
//! A date without a time of day is the start of that day. A local time that does not exist is read as if the clock had
//! not jumped; one that exists twice is the later. Where no zone is told, it is the machine's. A day is 24 hours where
//! it is a duration.
//!
//! The work is linear in the text, of which the first mebibyte is read.

mod cues;
mod dates;
mod durations;
mod instants;
mod words;
mod zones;

#[cfg(test)]
mod tests;

use cues::Earlier;
use durations::Span;
use instants::Instant;
use words::{Kind, Words};

use crate::time::{Timestamp, Zone};

/// Milliseconds of a second: how exactly an epoch is told.
const SECOND: f64 = 1000.0;

/// Words before a duration that only say how exact it is.
const ROUGHLY: [&str; 21] = [
    "about",
    "around",
    "approximately",
    "approx",
    "ca",
    "circa",
    "roughly",
    "nearly",
    "almost",
    "another",
    "least",
    "most",
    "up",
    "to",
    "less",
    "than",
    "the",
    "next",
    "only",
    "just",
    "under",
];

/// Words behind a duration that make it something else than a wait.
const NO_WAITS: [&str; 22] = [
    "limit",
    "limits",
    "window",
    "windows",
    "period",
    "quota",
    "cap",
    "rolling",
    "usage",
    "plan",
    "session",
    "block",
    "ago",
    "old",
    "earlier",
    "timeout",
    "interval",
    "cycle",
    "budget",
    "maximum",
    "average",
    "allowance",
];

/// The instant at which the text says that something can be tried again; none where it gives none that can be relied
/// on. Never before `now`. `zone` is the machine's, for local times whose zone is not told.
///
/// ```
/// use sillage_core::limit_text;
/// use sillage_core::time::{Timestamp, Zone};
///
/// let now = Timestamp(1_796_047_200_000); // 2026-11-30T14:00:00Z
/// let until = limit_text::until("You've hit your limit · resets 3:20pm (UTC)", now, &Zone::utc());
/// assert_eq!(until.map(|at| at.to_string()).as_deref(), Some("2026-11-30T15:20:00Z"));
/// assert_eq!(limit_text::until("5-hour limit reached", now, &Zone::utc()), None);
/// ```
#[must_use]
pub fn until(text: &str, now: Timestamp, zone: &Zone) -> Option<Timestamp> {
    let now = jiff::Timestamp::from_millisecond(now.0).ok()?;
    let words = Words::of(text);
    let told = announced(&words, now, zone);
    let mut best: Option<(jiff::Timestamp, f64)> = None;
    let mut widest: f64 = 0.0;
    let mut ahead = Vec::new();
    for instant in told {
        match instant {
            Instant::Doubtful => return None,
            Instant::Past => {}
            Instant::At(at, grain) => {
                widest = widest.max(grain);
                ahead.push(at);
                // The most exactly told; of those, the later.
                let better = best.is_none_or(|(best, exact)| grain < exact || grain <= exact && at > best);
                if better {
                    best = Some((at, grain));
                }
            }
        }
    }
    let (first, last) = (ahead.iter().min()?, ahead.iter().max()?);
    if last.duration_since(*first).as_secs_f64() * SECOND > widest {
        return None;
    }
    best.map(|(at, _)| {
        Timestamp(
            at.as_millisecond()
                .saturating_add(i64::from(at.subsec_nanosecond() % 1_000_000 != 0)),
        )
    })
}

/// Every time in the text that is announced as the one to wait for.
fn announced(words: &Words, now: jiff::Timestamp, zone: &Zone) -> Vec<Instant> {
    let mut found = Vec::new();
    let mut earlier: Option<Earlier> = None;
    let mut at = 0;
    while at < words.pieces.len() {
        let Some(time) = time_at(words, at, now, zone, earlier) else {
            at += 1;
            continue;
        };
        if let Some(instant) = time.instant {
            found.push(instant);
        }
        at = time.end.max(at + 1);
        earlier = Some(Earlier {
            end: at,
            cued: time.instant.is_some(),
        });
    }
    found
}

/// A time in a text.
struct Time {
    /// What it comes to, where it is announced.
    instant: Option<Instant>,
    end: usize,
}

/// The time that begins at a place.
fn time_at(
    words: &Words,
    at: usize,
    now: jiff::Timestamp,
    zone: &Zone,
    earlier: Option<Earlier>,
) -> Option<Time> {
    if !dates::is_clock_with_h(words, at)
        && let Some((span, end)) = durations::read(words, at)
        && may_be_duration(words, at, end)
    {
        let announced = duration_announced(words, at, end, earlier);
        let instant = announced.then(|| after(now, span, is_between(words, at)));
        return Some(Time { instant, end });
    }
    if let Some((told, end)) = dates::read(words, at) {
        let lead = at.checked_sub(1);
        let announced = !is_part(words, at)
            && (cues::announced(words, at, earlier)
                || lead.is_some_and(|lead| cues::announced_after(words, lead, end)));
        let instant = announced.then(|| match cues::is_half_read(words, at, earlier) {
            true => Instant::Doubtful,
            false => instants::resolve(&told, now, zone.as_jiff()),
        });
        return Some(Time { instant, end });
    }
    if words.is_number(at) {
        let instant = bare_number(words, at, now, earlier)?;
        return Some(Time {
            instant: Some(instant),
            end: at + 1,
        });
    }
    None
}

/// `01:30:00` is a time of day, unless it is after `in`.
fn may_be_duration(words: &Words, at: usize, end: usize) -> bool {
    words.mark(end - 2) != Some(':') || at > 0 && matches!(words.word(at - 1), Some("in" | "wait" | "for"))
}

/// `in 3pm`: what is after `in` is no time of day.
fn is_part(words: &Words, at: usize) -> bool {
    at > 0 && matches!(words.word(at - 1), Some("in" | "for" | "per" | "within"))
}

/// `5-10 minutes`, `5 to 10 minutes`: what is before the number is another.
fn is_between(words: &Words, at: usize) -> bool {
    let between =
        |mark: usize| words.mark(mark) == Some('-') || matches!(words.word(mark), Some("to" | "or" | "and"));
    at >= 2 && between(at - 1) && words.is_number(at - 2)
}

/// Whether a duration is announced as a wait: by what leads to it, and by what comes after it.
fn duration_announced(words: &Words, at: usize, end: usize, earlier: Option<Earlier>) -> bool {
    let glued_to_word =
        words.is_glued(at) && at > 0 && words.word(at - 1).is_some_and(|word| !matches!(word, "pt" | "p"));
    if glued_to_word || is_negative(words, at) {
        return false;
    }
    let behind = if words.mark(end) == Some('-') {
        end + 1
    } else {
        end
    };
    if words.word(behind).is_some_and(|word| NO_WAITS.contains(&word)) {
        return false;
    }
    if is_between(words, at) {
        return cues::announced(words, at, earlier);
    }
    let mut lead = at;
    while let Some(before) = lead.checked_sub(1) {
        let passed = match words.pieces[before].kind {
            Kind::Mark(mark) => matches!(mark, '~' | '<' | '"' | '\'' | '*' | '`' | '.' | '\n' | '['),
            Kind::Word => {
                let word = words.pieces[before].text.as_str();
                let least = words
                    .word(before + 1)
                    .is_some_and(|word| matches!(word, "least" | "most"));
                ROUGHLY.contains(&word)
                    || word == "at" && least
                    || matches!(word, "pt" | "p") && before + 1 == at
            }
            Kind::Number { .. } | Kind::Dotted | Kind::Break => false,
        };
        if !passed {
            break;
        }
        lead = before;
    }
    let Some(lead) = lead.checked_sub(1) else {
        return false;
    };
    let announced = cues::announced(words, lead + 1, earlier);
    match words.pieces[lead].kind {
        Kind::Word => match words.pieces[lead].text.as_str() {
            "for" => cues::paused(words, lead, earlier),
            "in" | "after" | "within" => announced || cues::announced_after(words, lead, end),
            "is" | "of" | "be" | "until" | "takes" | "and" | "or" => announced,
            word => cues::is_cue(word) && announced,
        },
        Kind::Mark(mark) => {
            announced
                && matches!(
                    mark,
                    ':' | '=' | '|' | '(' | '-' | ',' | '\u{b7}' | '\u{2022}' | '\u{2219}'
                )
        }
        Kind::Number { .. } | Kind::Dotted | Kind::Break => false,
    }
}

/// `-5`, and not `limit - 5`.
fn is_negative(words: &Words, at: usize) -> bool {
    at > 0
        && words.mark(at - 1) == Some('-')
        && words.is_glued(at)
        && (at == 1 || !words.is_glued(at - 1) || matches!(words.mark(at - 2), Some(':' | '=' | '"' | '|')))
}

fn after(now: jiff::Timestamp, span: Span, doubtful: bool) -> Instant {
    // Well beyond the last year that a calendar has.
    const MOST: f64 = 1e15;
    if doubtful || !(0.0..MOST).contains(&span.length) {
        return Instant::Doubtful;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is less than MOST")]
    let span_ms = span.length.ceil() as i64;
    match jiff::Timestamp::from_millisecond(now.as_millisecond().saturating_add(span_ms)) {
        Ok(at) => Instant::At(at, span.grain),
        Err(_) => Instant::Doubtful,
    }
}

/// A number without a unit: an epoch, or the seconds or milliseconds of a header or member.
fn bare_number(words: &Words, at: usize, now: jiff::Timestamp, earlier: Option<Earlier>) -> Option<Instant> {
    let Kind::Number { value, digits, whole } = words.pieces[at].kind else {
        return None;
    };
    if is_negative(words, at)
        || words.mark(at + 1) == Some('^')
        || words.is_glued(at + 1) && words.word(at + 1).is_some()
    {
        return None;
    }
    let mut key = at;
    let mut sign = None;
    while let Some(mark) = key.checked_sub(1).and_then(|before| words.mark(before)) {
        if !matches!(mark, '"' | '\'' | ':' | '=' | '|' | '[' | '(' | '@' | '\n') {
            break;
        }
        sign = if matches!(mark, '"' | '\'' | '\n') {
            sign
        } else {
            Some(mark)
        };
        key -= 1;
    }
    let word = key.checked_sub(1).and_then(|before| words.word(before));
    let factor = match digits {
        10 => Some(1e3),
        13 if whole => Some(1.0),
        16 if whole => Some(1e-3),
        19 if whole => Some(1e-6),
        _ => None,
    };
    if let Some(factor) = factor {
        let named = match sign {
            Some('|') => true,
            _ => word.is_some_and(|word| {
                matches!(
                    word,
                    "at" | "reset"
                        | "resets"
                        | "time"
                        | "epoch"
                        | "until"
                        | "after"
                        | "unix"
                        | "on"
                        | "retry"
                        | "ms"
                        | "date"
                        | "timestamp"
                        | "seconds"
                        | "s"
                        | "requests"
                        | "tokens"
                )
            }),
        };
        let limited = |word: &str| matches!(word, "limit" | "reached" | "quota" | "usage" | "exceeded");
        let announced = if sign == Some('|') {
            (at.saturating_sub(8)..at).any(|place| words.word(place).is_some_and(limited))
        } else {
            cues::announced(
                words,
                if word == Some("timestamp") { key - 1 } else { key },
                earlier,
            )
        };
        return (named && announced).then(|| epoch(value * factor, now));
    }
    let unit = word.and_then(durations::unit);
    let key = if unit.is_some() { key - 1 } else { key };
    let named = unit.is_some() && sign.is_some_and(|sign| matches!(sign, ':' | '='))
        || sign.is_some_and(|sign| matches!(sign, ':' | '=')) && word.is_some_and(is_header)
        || sign.is_none()
            && word == Some("after")
            && words.word(key.wrapping_sub(2)) == Some("retry")
            && is_last(words, at);
    if !named || !cues::announced(words, key, earlier) {
        return None;
    }
    let grain = unit.unwrap_or(SECOND);
    Some(after(
        now,
        Span {
            length: value * grain,
            grain,
        },
        false,
    ))
}

/// The last words of the names of headers and members that hold seconds: `Retry-After`, `x-ratelimit-reset`.
fn is_header(word: &str) -> bool {
    matches!(
        word,
        "after"
            | "reset"
            | "resets"
            | "delay"
            | "retry"
            | "wait"
            | "backoff"
            | "cooldown"
            | "in"
            | "requests"
            | "tokens"
    )
}

/// Whether nothing is counted by the number: `retry after 3 attempts`.
fn is_last(words: &Words, at: usize) -> bool {
    match words.pieces.get(at + 1) {
        None => true,
        Some(piece) => match piece.kind {
            Kind::Break => true,
            Kind::Mark(mark) => !matches!(mark, '%' | '/' | '-' | ':' | '^'),
            Kind::Word | Kind::Number { .. } | Kind::Dotted => false,
        },
    }
}

fn epoch(milliseconds: f64, now: jiff::Timestamp) -> Instant {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it has ten digits, or thirteen, before its fraction"
    )]
    let at = jiff::Timestamp::from_millisecond(milliseconds.ceil() as i64);
    match at {
        Ok(at) if at >= now => Instant::At(at, SECOND),
        Ok(_) => Instant::Past,
        Err(_) => Instant::Doubtful,
    }
}
