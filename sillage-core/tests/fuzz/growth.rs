//! Work grows with the length of a text, not with its square.
//!
//! What is measured is the time that this thread had a processor: for reading one long text, and for reading a short one
//! so many times that the lengths add up to the same. A reader in proportion takes the same for both, a quadratic one
//! sixteen times as much for the long one; the bound lies between, and must be passed by the least of several tries. Load on
//! the machine is not in it.

use std::hint::black_box;
use std::time::Duration;

use sillage_core::document::Format;
use sillage_core::limit_text;
use sillage_core::plan;
use sillage_core::report::{self, Expected};
use sillage_core::task::{self, AgentDefinition, AgentKind};
use sillage_core::time::{Timestamp, Zone};

use crate::corpus;

const SHORT: usize = 8 * 1024;
const TIMES: usize = 16;
/// Less work than this is not judged: a quadratic reader takes many times as much. It is many of the system's ticks.
const LITTLE: Duration = Duration::from_millis(60);
/// How often the work of the short ones may be that of the long one.
const MOST_TIMES: u32 = 4;

/// Pieces that, said over and over, could lead a reader astray.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "[]",
    "{}",
    "\"",
    "'",
    "\\",
    "\\\"",
    ":",
    ",",
    "{\"",
    "{\"a\":",
    "{'a':",
    "{a:",
    "[{",
    "{[",
    "{\"a\":1},",
    "{a: {",
    "\n",
    "\r\n",
    " ",
    "\t",
    "- ",
    "- - ",
    "- a\n",
    "a: b\n",
    "? ",
    "&a ",
    "*a ",
    "&a [*a, *a]\n",
    "!",
    "| ",
    "|\n",
    "> ",
    "#",
    "# a\n",
    "%",
    "---\n",
    "...\n",
    "`",
    "```\n",
    "```json\n",
    "~~~\n",
    "```json\n{\n```\n",
    "~~~json\n{}\n",
    "é",
    "\u{feff}",
    "\u{1f600}",
    "0",
    "9",
    "a",
    "Z",
    "-",
    "+",
    ".",
    "1.",
    "1e",
    "a->",
    "a -> b\n",
    "// ",
    "/*",
    "<<: *a\n",
    "resets ",
    "3:20pm ",
    "in 5 ",
    "1789000000 ",
    "2026-11-30 ",
    "(UTC) ",
    "at ",
    "Nov 30 ",
    "5 hours ",
    "try again ",
    "(",
];

/// The time that this thread had a processor; the clock's where that is not told.
#[expect(
    clippy::disallowed_methods,
    reason = "it is the core that must not look; this measures it from outside"
)]
fn worked(work: impl Fn()) -> Duration {
    let on_processor = || {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        told.split_whitespace()
            .next()?
            .parse()
            .ok()
            .map(Duration::from_nanos)
    };
    let (began, clock) = (on_processor(), std::time::Instant::now());
    work();
    match (began, on_processor()) {
        (Some(began), Some(ended)) => ended.saturating_sub(began),
        (None, _) | (_, None) => clock.elapsed(),
    }
}

/// Whether the work at the long text is out of proportion, each time that it is tried.
fn is_out_of_proportion(text: &dyn Fn(usize) -> String, read: &dyn Fn(&str)) -> bool {
    let (short, long) = (text(SHORT), text(SHORT * TIMES));
    let mut least = (Duration::MAX, Duration::MAX);
    (0..5).all(|_| {
        least.1 = least.1.min(worked(|| read(&long)));
        if least.1 < LITTLE {
            return false;
        }
        least.0 = least.0.min(worked(|| (0..TIMES).for_each(|_| read(&short))));
        least.1 > least.0 * MOST_TIMES
    })
}

fn repeated(piece: &str, length: usize) -> String {
    piece.repeat(length / piece.len())
}

fn check(read: &dyn Fn(&str), starts: &[&str]) {
    for start in starts {
        for piece in PIECES {
            let text = |length| format!("{start}{}", repeated(piece, length));
            assert!(
                !is_out_of_proportion(&text, read),
                "{start:?}, then {piece:?} over and over"
            );
        }
    }
}

fn dynamic_agent() -> AgentDefinition {
    let task = task::read(&corpus::plan_tasks()[0], Format::Json, None).unwrap();
    task.agents
        .into_iter()
        .find(|agent| agent.kind == AgentKind::Dynamic)
        .unwrap()
}

fn read_task(text: &str) {
    let _ = black_box(task::read(text, Format::Either, None));
}

fn read_report(text: &str) {
    let _ = black_box(report::read(text, &Expected::default(), false));
}

#[test]
fn w12_a_task_file_takes_work_in_proportion() {
    check(&read_task, &["", "task: ", "{\"task\": \"", "agents:\n- "]);
}

#[test]
fn w16_a_report_takes_work_in_proportion() {
    check(
        &read_report,
        &["", "{\"summary\": \"", "```json\n", "{\"decisions\": ["],
    );
}

#[test]
fn w20_a_plan_takes_work_in_proportion() {
    let agent = dynamic_agent();
    let read = |text: &str| {
        let _ = black_box(plan::read(text, &agent, false));
    };
    check(&read, &["", "{\"units\": [", "```json\n{\"why\": \""]);
}

#[test]
fn q2_a_limit_text_takes_work_in_proportion() {
    let (now, zone) = (Timestamp(1_796_047_200_000), Zone::named("Europe/Paris").unwrap());
    let read = |text: &str| {
        let _ = black_box(limit_text::until(text, now, &zone));
    };
    check(&read, &["usage limit reached, resets "]);
}

#[test]
fn w20_w12_lists_of_entries_take_work_in_proportion() {
    let mut agent = dynamic_agent();
    agent.sub_agents.as_mut().unwrap().max = std::num::NonZeroU32::MAX;
    let read_plan = |text: &str| {
        let _ = black_box(plan::read(text, &agent, false));
    };
    let list = |entry: &dyn Fn(usize) -> String, length: usize| {
        let count = length / entry(1_000).len();
        (0..count).map(entry).collect::<Vec<String>>().join(",")
    };
    // Each entry is of its own, or all are the same, or each names what is nowhere, or each follows the one before.
    let units: &[&dyn Fn(usize) -> String] = &[
        &|n| format!("{{\"id\":\"u{n}\"}}"),
        &|_| "{\"id\":\"u1\"}".to_owned(),
        &|n| format!("{{\"id\":\"U {n}\",\"x\":1}}"),
    ];
    let sub_agents: &[&dyn Fn(usize) -> String] = &[
        &|n| {
            format!(
                "{{\"id\":\"s{n}\",\"units\":[\"u{n}\"],\"mission\":\"x\",\"after\":[\"s{}\"]}}",
                n / 2
            )
        },
        &|n| {
            format!(
                "{{\"id\":\"s\",\"units\":[\"v{n}\"],\"mission\":\"x\",\"after\":[\"t{n}\"],\"model\":\"sonet\"}}"
            )
        },
        &|n| {
            format!(
                "{{\"id\":\"s{n}\",\"units\":[\"u1\"],\"mission\":\"x\",\"after\":[\"s{}\"]}}",
                n + 1
            )
        },
    ];
    for (which_unit, unit) in units.iter().enumerate() {
        for (which, sub_agent) in sub_agents.iter().enumerate() {
            let text = |length| {
                format!(
                    "{{\"units\":[{}],\"sub_agents\":[{}]}}",
                    list(unit, length / 4),
                    list(sub_agent, length)
                )
            };
            assert!(
                !is_out_of_proportion(&text, &read_plan),
                "units {which_unit}, sub-agents {which}"
            );
        }
    }
    let agents: &[&dyn Fn(usize) -> String] = &[
        &|n| format!("{{\"id\":\"a{n}\",\"mission\":\"x\",\"model\":\"m\",\"effort\":\"low\"}}"),
        &|n| format!("{{\"id\":\"a\",\"misson\":\"x{n}\"}}"),
    ];
    for (which, agent) in agents.iter().enumerate() {
        let text = |length| {
            let links = list(&|n| format!("\"a{n} -> b{}\"", n + 1), length / 2);
            format!(
                "{{\"task\":\"t\",\"agents\":[{}],\"links\":[{links}]}}",
                list(agent, length / 2)
            )
        };
        assert!(!is_out_of_proportion(&text, &read_task), "agents {which}");
    }
}

#[test]
fn a_quadratic_reader_would_be_caught() {
    let text = |length| repeated("ab", length);
    let quadratic = |text: &str| {
        let bytes = text.as_bytes();
        let mut sum = 0_u64;
        for end in (0..bytes.len()).step_by(8) {
            sum += bytes[..end]
                .iter()
                .step_by(64)
                .map(|byte| u64::from(*byte))
                .sum::<u64>();
        }
        black_box(sum);
    };
    assert!(is_out_of_proportion(&text, &quadratic));
    let linear = |text: &str| {
        for _ in 0..20 {
            black_box(text.bytes().map(u64::from).sum::<u64>());
        }
    };
    assert!(!is_out_of_proportion(&text, &linear));
}
