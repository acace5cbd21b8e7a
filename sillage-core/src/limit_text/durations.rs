//! Durations: `3 days 5 hours 12 minutes`, `6m0s`, `~100 min`, `an hour and a half`, `PT1H30M`, `01:30:00`.

use super::words::{Kind, Words};

/// A duration as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    /// Milliseconds; not finite when it is too long to be counted.
    pub(super) length: f64,
    /// Milliseconds of the smallest unit that it is told in.
    pub(super) grain: f64,
}

const SECOND: f64 = 1000.0;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;

/// Milliseconds of a unit.
pub(super) fn unit(word: &str) -> Option<f64> {
    Some(match word {
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => MINUTE,
        "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        "w" | "wk" | "wks" | "week" | "weeks" => 7.0 * DAY,
        _ => return None,
    })
}

/// A number in words.
fn spelled(word: &str) -> Option<f64> {
    const SMALL: [&str; 21] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    match word {
        "a" | "an" => Some(1.0),
        "thirty" => Some(30.0),
        "forty" => Some(40.0),
        "fifty" => Some(50.0),
        "sixty" => Some(60.0),
        "ninety" => Some(90.0),
        _ => {
            let value = SMALL.iter().position(|small| *small == word)?;
            u8::try_from(value).ok().map(f64::from)
        }
    }
}

/// The duration that begins at `at`, and the place after it.
pub(super) fn read(words: &Words, at: usize) -> Option<(Span, usize)> {
    if let Some(found) = clocked(words, at) {
        return Some(found);
    }
    let (first, mut end) = part(words, at)?;
    let mut span = first;
    loop {
        let joined = match words.word(end) {
            Some("and") => end + 1,
            // A terminal cuts lines where it likes.
            _ if words.mark(end) == Some('\n') => end + 1,
            _ if words.mark(end) == Some(',') => end + 1 + usize::from(words.word(end + 1) == Some("and")),
            _ => end,
        };
        // `an hour and a half`
        if (words.word(joined), words.word(joined + 1)) == (Some("a"), Some("half")) && joined > end {
            span.length += span.grain / 2.0;
            span.grain /= 2.0;
            end = joined + 2;
            break;
        }
        match part(words, joined) {
            Some((next, after)) if next.grain < span.grain => {
                span = Span {
                    length: span.length + next.length,
                    grain: next.grain,
                };
                end = after;
            }
            _ => break,
        }
    }
    // `2h30`
    if let Some(minutes) = words.digits(end, 2..=2)
        && span.grain >= HOUR
        && words.is_glued(end)
        && words.word(end - 1) == Some("h")
    {
        span = Span {
            length: span.length + f64::from(i32::try_from(minutes).ok()?) * MINUTE,
            grain: MINUTE,
        };
        end += 1;
    }
    Some((span, end))
}

/// A number and its unit.
fn part(words: &Words, at: usize) -> Option<(Span, usize)> {
    let (count, mut end) = match words.pieces.get(at)?.kind {
        // The last of a list, or what is behind a comma that means who knows what: `1,5,3 hours`.
        Kind::Number { .. } if at >= 2 && has_comma(words, at - 2) => return None,
        Kind::Number { value, .. } => decimal(words, at).unwrap_or((value, at + 1)),
        Kind::Word => match (words.word(at)?, words.word(at + 1)) {
            ("half", Some("a" | "an")) => (0.5, at + 2),
            ("half", _) => return None,
            (word, _) => (spelled(word)?, at + 1),
        },
        Kind::Dotted | Kind::Mark(_) | Kind::Break => return None,
    };
    let mut count = count;
    // `2 and a half hours`
    if words.word(end) == Some("and")
        && words.word(end + 1) == Some("a")
        && words.word(end + 2) == Some("half")
    {
        (count, end) = (count + 0.5, end + 3);
    } else if words.word(end) == Some("half") && words.word(at) == Some("a") {
        (count, end) = (0.5, end + 1);
    }
    let hyphen = words.mark(end) == Some('-') && words.is_glued(end) && words.is_glued(end + 1);
    end += usize::from(hyphen || words.mark(end) == Some('\n'));
    let each = unit(words.word(end)?)?;
    Some((
        Span {
            length: count * each,
            grain: each,
        },
        end + 1,
    ))
}

/// A number, a comma and a number with nothing between them; `1,500` is one number already.
fn has_comma(words: &Words, at: usize) -> bool {
    words.mark(at + 1) == Some(',')
        && words.is_glued(at + 1)
        && words.is_glued(at + 2)
        && words.is_number(at)
        && words.is_number(at + 2)
}

/// `1,5`: a number with a decimal comma, and the place after it.
fn decimal(words: &Words, at: usize) -> Option<(f64, usize)> {
    let is_whole = |place| words.digits(place, ..).is_some();
    if !has_comma(words, at) || !is_whole(at) || !is_whole(at + 2) {
        return None;
    }
    let written = format!("{}.{}", words.pieces[at].text, words.pieces[at + 2].text);
    Some((written.parse().ok()?, at + 3))
}

/// `01:30:00`: hours, minutes and seconds.
fn clocked(words: &Words, at: usize) -> Option<(Span, usize)> {
    let colon =
        |place: usize| words.mark(place) == Some(':') && words.is_glued(place) && words.is_glued(place + 1);
    if !colon(at + 1) || !colon(at + 3) || colon(at + 5) {
        return None;
    }
    let small = |place: usize, counts| i32::try_from(words.digits(place, counts)?).ok();
    let hours = small(at, 1..=4)?;
    let minutes = small(at + 2, 2..=2).filter(|minutes| *minutes < 60)?;
    let seconds = small(at + 4, 2..=2).filter(|seconds| *seconds < 60)?;
    Some((
        Span {
            length: f64::from(hours) * HOUR + f64::from(minutes) * MINUTE + f64::from(seconds) * SECOND,
            grain: SECOND,
        },
        at + 5,
    ))
}
