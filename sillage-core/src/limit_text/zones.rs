//! Zones as texts name them: by the names of the time zone database, by offsets, by the letters that clocks carry, and
//! in words.
//!
//! A name of the database is that zone, so that `CET` keeps central Europe's summer time. Other letters are the offset
//! that they stand for, and only those that stand for one: `IST` and `CST` are each the time of two continents, and so
//! are as unknown as `XYZ`. A zone that is named and not known makes a time unreliable: it is not the machine's.

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

/// A zone that a text names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Named {
    /// This one.
    Zone(TimeZone),
    /// The reader's own.
    Local,
    /// One that nobody knows.
    Unknown,
}

/// The offsets that letters stand for, in minutes.
const LETTERS: [(&str, i32); 38] = [
    ("z", 0),
    ("utc", 0),
    ("gmt", 0),
    ("wet", 0),
    ("west", 60),
    ("bst", 60),
    ("cest", 120),
    ("eest", 180),
    ("msk", 180),
    ("pkt", 300),
    ("ict", 420),
    ("wib", 420),
    ("hkt", 480),
    ("sgt", 480),
    ("awst", 480),
    ("pht", 480),
    ("jst", 540),
    ("kst", 540),
    ("acst", 570),
    ("acdt", 630),
    ("aest", 600),
    ("aedt", 660),
    ("nzst", 720),
    ("nzdt", 780),
    ("brt", -180),
    ("art", -180),
    ("clt", -240),
    ("adt", -180),
    ("nst", -210),
    ("ndt", -150),
    ("edt", -240),
    ("cdt", -300),
    ("mdt", -360),
    ("pst", -480),
    ("pdt", -420),
    ("akst", -540),
    ("akdt", -480),
    ("hst", -600),
];

/// The names that people give to zones; those of two words before their last words.
const SPOKEN: [(&str, &str); 34] = [
    ("et", "America/New_York"),
    ("ct", "America/Chicago"),
    ("mt", "America/Denver"),
    ("pt", "America/Los_Angeles"),
    ("eastern", "America/New_York"),
    ("us eastern", "America/New_York"),
    ("central", "America/Chicago"),
    ("us central", "America/Chicago"),
    ("mountain", "America/Denver"),
    ("us mountain", "America/Denver"),
    ("pacific", "America/Los_Angeles"),
    ("us pacific", "America/Los_Angeles"),
    ("alaska", "America/Anchorage"),
    ("hawaii", "Pacific/Honolulu"),
    ("atlantic", "America/Halifax"),
    ("central european", "Europe/Brussels"),
    ("eastern european", "Europe/Athens"),
    ("western european", "Europe/Lisbon"),
    ("british", "Europe/London"),
    ("uk", "Europe/London"),
    ("greenwich mean", "UTC"),
    ("coordinated universal", "UTC"),
    ("universal", "UTC"),
    ("indian", "Asia/Kolkata"),
    ("india", "Asia/Kolkata"),
    ("japan", "Asia/Tokyo"),
    ("korea", "Asia/Seoul"),
    ("china", "Asia/Shanghai"),
    ("beijing", "Asia/Shanghai"),
    ("singapore", "Asia/Singapore"),
    ("hong kong", "Asia/Hong_Kong"),
    ("moscow", "Europe/Moscow"),
    ("israel", "Asia/Jerusalem"),
    ("australian eastern", "Australia/Sydney"),
];

/// Letters that are words as well: they name a zone in capitals only.
const ALSO_WORDS: [&str; 12] = [
    "et", "ct", "mt", "pt", "west", "wet", "met", "art", "cat", "eat", "est", "mst",
];

/// What stands before `time` without naming a zone.
const NO_ZONES: [&str; 14] = [
    "the", "this", "that", "any", "some", "same", "first", "next", "a", "of", "at", "reset", "which", "what",
];

/// Bytes behind a time in which its zone is looked for.
const REACH: usize = 100;

/// The zone named at `place`, behind a time, and the place of the text after it.
pub(super) fn read(plain: &str, place: usize) -> Option<(Named, usize)> {
    let mut reach = plain.len().min(place + REACH);
    while !plain.is_char_boundary(reach) {
        reach -= 1;
    }
    let near = &plain[place..reach];
    let rest = near.trim_start_matches([' ', '\n']);
    let skipped = near.len() - rest.len();
    let begin = place + skipped;
    if let Some(inside) = rest.strip_prefix(['(', '[']) {
        let length = inside.find([')', ']']).filter(|length| *length <= 60)?;
        let named = in_brackets(inside[..length].trim())?;
        return Some((named, begin + length + 2));
    }
    let (named, length) = bare(rest, skipped == 0)?;
    let after = rest[length..].trim_start_matches(' ');
    let time =
        usize::from(after.len() >= 4 && after.is_char_boundary(4) && after[..4].eq_ignore_ascii_case("time"))
            * 4;
    let end = if time == 0 {
        begin + length
    } else {
        begin + rest.len() - after.len() + time
    };
    Some((named, end))
}

/// Brackets that name a zone; none where they hold something else.
fn in_brackets(inside: &str) -> Option<Named> {
    let lower = inside.to_lowercase();
    let name = ["in ", "at "]
        .iter()
        .find_map(|word| lower.strip_prefix(word))
        .unwrap_or(&lower);
    let name = inside[inside.len().checked_sub(name.len())?..].trim();
    let is_time = lower.ends_with(" time") || lower.ends_with(" time zone") || lower.ends_with(" timezone");
    let short = [" time zone", " timezone", " time"]
        .iter()
        .find_map(|end| lower.ends_with(end).then(|| &name[..name.len() - end.len()]))
        .unwrap_or(name)
        .trim();
    if is_local(short) && (is_time || short.eq_ignore_ascii_case("local")) {
        return Some(Named::Local);
    }
    let letters = short
        .chars()
        .all(|sign| sign.is_ascii_alphanumeric() || "/_+-: ".contains(sign));
    if short.is_empty()
        || !letters
        || !short.starts_with(|sign: char| sign.is_ascii_alphabetic() || "+-".contains(sign))
    {
        return None;
    }
    if let Some(zone) = known(short).or_else(|| spoken(short)).or_else(|| city(short)) {
        return Some(Named::Zone(zone));
    }
    // `(all times UTC)`
    if let Some((_, last)) = short.rsplit_once(' ')
        && is_capitals(last)
        && let Some(zone) = known(last)
    {
        return Some(Named::Zone(zone));
    }
    let named = is_time
        || short.contains('/')
        || short
            .find(['+', '-'])
            .is_some_and(|sign| is_universal(&short[..sign]))
        || is_capitals(short) && short.len() <= 5
        || short.starts_with(['+', '-']);
    named.then_some(Named::Unknown)
}

/// A zone without brackets around it, and its bytes.
fn bare(rest: &str, glued: bool) -> Option<(Named, usize)> {
    let run = rest
        .find(|sign: char| !(sign.is_ascii_alphanumeric() || "/_+-:".contains(sign)))
        .unwrap_or(rest.len());
    let word = rest[..run].trim_end_matches([':', '-', '_', '/', '+']);
    if word.is_empty() {
        return None;
    }
    // `UTC +2`
    let letters = &word[..word
        .find(|sign: char| !sign.is_ascii_alphabetic())
        .unwrap_or(word.len())];
    if is_universal(letters) {
        let after = rest[letters.len()..].trim_start_matches(' ');
        if after.starts_with(['+', '-']) {
            let length = after.len()
                - after[1..]
                    .trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == ':')
                    .len();
            if let Some(zone) = offset(&after[..length]) {
                return Some((zone, rest.len() - after.len() + length));
            }
        }
    }
    if word.starts_with(['+', '-']) {
        return offset(word)
            .filter(|_| glued || word.len() > 2)
            .map(|zone| (zone, word.len()));
    }
    if word.contains('/') {
        return Some(slashed(rest, word));
    }
    if let Some(found) = phrase(rest) {
        return Some(found);
    }
    let lower = word.to_ascii_lowercase();
    if lower == "z" && !glued {
        return None;
    }
    let written = !ALSO_WORDS.contains(&lower.as_str()) || is_capitals(word);
    if let Some(zone) = known(word)
        .filter(|_| written && (is_capitals(word) || LETTERS.iter().any(|(name, _)| *name == lower)))
    {
        return Some((Named::Zone(zone), word.len()));
    }
    if let Some(zone) =
        spoken(word).filter(|_| written && word.starts_with(|sign: char| sign.is_ascii_uppercase()))
    {
        return Some((Named::Zone(zone), word.len()));
    }
    let shaped = (3..=5).contains(&word.len()) && is_capitals(word) && word.ends_with('T');
    let alone = rest[word.len()..]
        .chars()
        .take(40)
        .any(|sign| sign.is_ascii_lowercase())
        || rest.len() <= word.len() + 1;
    (shaped && alone || matches!(lower.as_str(), "ist" | "cst")).then_some((Named::Unknown, word.len()))
}

/// `Area/City`, where the city may have a space for its `_`.
fn slashed(rest: &str, word: &str) -> (Named, usize) {
    if let Some(zone) = database(word) {
        return (Named::Zone(zone), word.len());
    }
    let more = rest[word.len()..].strip_prefix(' ').map(|more| {
        let length = more
            .find(|sign: char| !sign.is_ascii_alphabetic())
            .unwrap_or(more.len());
        (&more[..length], word.len() + 1 + length)
    });
    match more.and_then(|(more, end)| Some((database(&format!("{word}_{more}"))?, end))) {
        Some((zone, end)) => (Named::Zone(zone), end),
        None => (Named::Unknown, word.len()),
    }
}

/// Up to four words before `time`: `Pacific Daylight Time`, `Paris time`, `your local time`.
fn phrase(rest: &str) -> Option<(Named, usize)> {
    let mut end = 0;
    for count in 0..5 {
        let tail = rest[end..].trim_start_matches(' ');
        let length = tail
            .find(|sign: char| !sign.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let word = &tail[..length];
        if word.is_empty() || word.eq_ignore_ascii_case("at") || word.eq_ignore_ascii_case("on") {
            return None;
        }
        if count > 0 && word.eq_ignore_ascii_case("time") {
            let name = rest[..end].trim();
            let last = name.rsplit(' ').next().unwrap_or(name).to_ascii_lowercase();
            if is_local(name) {
                return Some((Named::Local, end));
            }
            if NO_ZONES.contains(&last.as_str()) {
                return None;
            }
            if let Some(zone) = known(name).or_else(|| spoken(name)).or_else(|| city(name)) {
                return Some((Named::Zone(zone), end));
            }
            // Someone's time, then: a name has a capital.
            let is_name = name.starts_with(|first: char| first.is_ascii_uppercase());
            return is_name.then_some((Named::Unknown, end));
        }
        end = rest.len() - tail.len() + length;
    }
    None
}

fn is_universal(letters: &str) -> bool {
    letters.eq_ignore_ascii_case("utc") || letters.eq_ignore_ascii_case("gmt")
}

fn is_local(name: &str) -> bool {
    let name = name.to_lowercase();
    matches!(
        name.as_str(),
        "local"
            | "your"
            | "your local"
            | "my"
            | "in your"
            | "in your local"
            | "system"
            | "in local"
            | "your own"
    )
}

fn is_capitals(word: &str) -> bool {
    word.chars()
        .all(|sign| sign.is_ascii_uppercase() || sign.is_ascii_digit())
}

/// A zone by a name of the database, by an offset, or by letters.
fn known(name: &str) -> Option<TimeZone> {
    let lower = name.to_ascii_lowercase();
    if let Some((_, minutes)) = LETTERS.iter().find(|(letters, _)| *letters == lower) {
        return fixed(*minutes);
    }
    if let Some(zone) = database(&name.replace(' ', "_")) {
        return Some(zone);
    }
    let sign = name.find(['+', '-'])?;
    let of = name[..sign].trim().to_ascii_lowercase();
    match (of.as_str(), offset(&name[sign..])) {
        ("" | "utc" | "gmt", Some(Named::Zone(zone))) => Some(zone),
        _ => None,
    }
}

/// A zone of the database.
pub(super) fn database(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled()
        .get(name)
        .ok()
        .filter(|zone| !zone.is_unknown())
}

/// A zone by what people call it.
fn spoken(name: &str) -> Option<TimeZone> {
    let lower = name.to_ascii_lowercase();
    let short = [" standard", " daylight", " summer"]
        .iter()
        .find_map(|end| lower.strip_suffix(end))
        .unwrap_or(&lower);
    let (_, zone) = SPOKEN.iter().find(|(spoken, _)| *spoken == short)?;
    database(zone)
}

/// A zone by its city alone, when only one has it.
fn city(name: &str) -> Option<TimeZone> {
    let name = name.replace(' ', "_");
    if !name.starts_with(|first: char| first.is_ascii_uppercase()) || name.len() < 4 {
        return None;
    }
    let all = TimeZoneDatabase::bundled();
    let mut found = all.available().filter(|zone| {
        zone.as_str()
            .rsplit_once('/')
            .is_some_and(|(_, city)| city.eq_ignore_ascii_case(&name))
    });
    let zone = found.next()?;
    if found.next().is_some() {
        return None;
    }
    database(zone.as_str())
}

/// `+2`, `-03:00`, `+0530`.
fn offset(text: &str) -> Option<Named> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.get(1..)?;
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return Some(Named::Unknown),
        None if digits.len() > 2 => digits.split_at(digits.len() - 2),
        None => (digits, "0"),
    };
    let number = |text: &str| -> Option<i32> {
        let written = !text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        written.then(|| text.parse().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 14 || minutes > 59 {
        return Some(Named::Unknown);
    }
    fixed(sign * (hours * 60 + minutes)).map(Named::Zone)
}

fn fixed(minutes: i32) -> Option<TimeZone> {
    Offset::from_seconds(minutes * 60).ok().map(TimeZone::fixed)
}
