//! Q2, R8, B8: texts of providers and the instants that they tell.

use proptest::prelude::*;

use super::until;
use crate::time::{Timestamp, Zone};

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    why: String,
    input: Input,
    expect: Expected,
}

#[derive(serde::Deserialize)]
struct Input {
    text: String,
    now: String,
    zone: String,
}

#[derive(serde::Deserialize)]
struct Expected {
    until: Option<String>,
}

fn instant(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().expect("an instant");
    Timestamp(instant.as_millisecond())
}

fn zone(name: &str) -> Zone {
    Zone::named(name).expect("a zone")
}

fn told(text: &str, now: &str, of: &str) -> Option<String> {
    until(text, instant(now), &zone(of)).map(|at| at.to_string())
}

fn check(cases: &str, least: usize) {
    let cases: Vec<Case> = serde_json::from_str(cases).expect("cases");
    assert!(cases.len() >= least);
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let input = &case.input;
            let found = told(&input.text, &input.now, &input.zone);
            let expected = case.expect.until.as_deref().map(|at| instant(at).to_string());
            (found != expected).then(|| {
                format!(
                    "{} ({}): {:?} is {found:?}, not {expected:?}",
                    case.name, case.why, input.text
                )
            })
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn q2_golden_cases() {
    check(include_str!("../../tests/cases/limit-texts.json"), 7);
}

#[test]
fn q2_r8_b8_each_text_tells_its_instant_or_none() {
    check(include_str!("../../tests/cases/more-limit-texts.json"), 150);
}

/// 2026-11-30T14:00:00Z.
const NOW: &str = "2026-11-30T14:00:00Z";

#[test]
fn r8_every_zone_of_the_database_is_known_by_its_name() {
    let now = instant(NOW);
    let all = jiff::tz::TimeZoneDatabase::bundled();
    let mut seen = 0;
    for name in all.available() {
        let name = name.as_str();
        let Some(expected) = Zone::named(name) else {
            assert!(name.contains("Unknown"), "{name}");
            continue;
        };
        let found = until(
            &format!("limit reached, resets 3:20pm ({name})"),
            now,
            &zone("Asia/Kathmandu"),
        );
        // Where the letters are an offset that clocks carry, they are that offset.
        let local = until("limit reached, resets 3:20pm", now, &expected);
        assert_eq!(found, local, "{name}");
        if name.contains('/') {
            let bare = until(
                &format!("limit reached, resets 3:20pm {name}."),
                now,
                &Zone::utc(),
            );
            assert_eq!(bare, local, "{name} without brackets");
        }
        seen += 1;
    }
    assert!(seen > 500, "{seen}");
}

#[test]
fn b8_a_long_text_costs_a_pass_and_keeps_its_instant() {
    let now = instant(NOW);
    for filler in [
        "resets at ",
        "3:20pm ",
        "1 h ",
        "12 ",
        "(",
        "3pm (",
        "3pm-",
        "3pm+",
        "at at ",
        "2026-",
        "UTC ",
        "an hour and ",
        "é",
        "a b c d e f time ",
    ] {
        let text = filler.repeat((1 << 17) / filler.len());
        let _ = until(&text, now, &Zone::utc());
        let _ = until(&format!("resets {text}"), now, &Zone::utc());
    }
    let text = format!(
        "{}. Your limit resets 3:20pm (UTC)",
        "All is well ".repeat(40_000)
    );
    assert_eq!(
        until(&text, now, &Zone::utc()),
        Some(instant("2026-11-30T15:20:00Z"))
    );
}

/// Pieces of limit texts, put together at random.
fn jumble() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "resets",
        "try again",
        "retry",
        "in",
        "at",
        "on",
        "after",
        "until",
        "3pm",
        "15:20",
        "2026-12-01",
        "T",
        "Z",
        "(UTC)",
        "(Europe/Paris)",
        "Europe/",
        "PST",
        "+02:00",
        "-",
        ":",
        "|",
        "1789000000",
        "99999999999999999999",
        "1e400",
        "5",
        "00",
        "hours",
        "h",
        "m",
        "and",
        "a half",
        "an hour",
        "half",
        "Oct 9",
        "Dec",
        "31",
        "2026",
        "Monday",
        "next",
        "tomorrow",
        "today",
        "midnight",
        "noon",
        "am",
        "p.m.",
        ".",
        ",",
        "\n",
        "\"",
        "{",
        "}",
        "\u{202f}",
        "½",
        "\\u202f",
        "\u{1b}[31m",
        "24:00",
        "25:61",
        "0",
        "-5",
        "NaN",
        "time",
        "(",
        "3pm (",
        "3pm-",
        "3pm+",
        ")",
        "é",
        "_",
        "^",
        "/",
        "PT",
        "week",
        "ms",
    ]);
    prop::collection::vec((piece, any::<bool>()), 0..24).prop_map(|pieces| {
        pieces
            .into_iter()
            .map(|(piece, space)| format!("{piece}{}", if space { " " } else { "" }))
            .collect()
    })
}

proptest! {
    #[test]
    fn b8_no_text_panics_and_none_tells_the_past(
        text in prop_oneof![jumble(), any::<String>()],
        now in any::<i64>(),
        near in 0_i64..4_000_000_000_000,
    ) {
        for now in [Timestamp(now), Timestamp(near)] {
            for of in ["UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"] {
                let found = until(&text, now, &zone(of));
                prop_assert!(found.is_none_or(|at| at >= now), "{found:?} before {now}");
            }
        }
    }

    #[test]
    fn r8_prose_around_a_notice_changes_nothing(
        row in 0_usize..284,
        before in prop::collection::vec("[a-z]{2,9}", 0..30),
        behind in prop::collection::vec("[a-z]{2,9}", 0..30),
    ) {
        let cases: Vec<Case> = serde_json::from_str(include_str!("../../tests/cases/more-limit-texts.json")).expect("cases");
        let input = &cases[row].input;
        let known = |words: &[String]| words.iter().any(|word| super::cues::is_cue(word));
        prop_assume!(!known(&before) && !known(&behind));
        let text = format!("{}. \n\n{}\n\n{}.", before.join(" "), input.text, behind.join(" "));
        prop_assert_eq!(told(&text, &input.now, &input.zone), told(&input.text, &input.now, &input.zone), "{}", text);
    }

    #[test]
    fn r8_durations_of_any_unit_are_right(
        days in 0_i64..400, hours in 0_i64..100, minutes in 0_i64..100, seconds in 1_i64..1000,
        form in 0_usize..5,
    ) {
        let length = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
        let text = match form {
            0 => format!("{days} days {hours} hours {minutes} minutes {seconds} seconds"),
            1 => format!("{days}d{hours}h{minutes}m{seconds}s"),
            2 => format!("{days} days, {hours} hrs, {minutes} min, and {seconds} sec"),
            3 => format!("~{days}d {hours}h {minutes}m {seconds}s"),
            _ => format!("{length} s"),
        };
        let now = instant(NOW);
        prop_assert_eq!(until(&format!("Try again in {text}."), now, &Zone::utc()), Some(Timestamp(now.0 + length * 1000)));
    }

    #[test]
    fn r8_a_clock_time_is_within_a_day_and_reads_so_in_its_zone(
        now in 1_700_000_000_000_i64..1_900_000_000_000,
        hour in 0_i64..24, minute in 0_i64..60,
        zones in (prop::sample::select(vec!["UTC", "Europe/Paris", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham"]),
                  prop::sample::select(vec!["UTC", "America/Sao_Paulo"])),
        half in any::<bool>(),
    ) {
        let (of, machine) = zones;
        let clock = match half {
            true => format!("{}:{minute:02}{}", (hour + 11) % 12 + 1, if hour < 12 { "am" } else { "pm" }),
            false => format!("{hour:02}:{minute:02}"),
        };
        let now = Timestamp(now);
        let found = until(&format!("resets {clock} ({of})"), now, &zone(machine)).expect("an instant");
        // A clock change may add its hour.
        prop_assert!(found >= now && found.0 - now.0 <= 25 * 3_600_000, "{found}");
        let local = zone(of).local(found);
        let shown = format!(" {hour:02}:{minute:02} ");
        let missing = local.get(10..16).is_some_and(|local| local != shown.trim_end());
        prop_assert!(!missing || until(&format!("resets {clock} ({of})"), found, &zone(machine)) == Some(found), "{local} {shown}");
    }
}
