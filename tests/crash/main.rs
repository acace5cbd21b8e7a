//! R5: `kill -9` at each event of a run, just before and just after it is durable; then resume. Each time the end is
//! the same as that of a run that nobody disturbed, no report is accepted twice, no session is asked again what it
//! had answered, and no process is left. One run a side dies again and again. The same with sessions that a gateway holds,
//! which is not killed: there nothing is asked twice, and nobody has to be asked to go on.
//!
//! The program starts itself as the engine that is killed (`drive`), as the launcher and as the agents: all is real
//! but the model.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test program"
)]

#[cfg(target_os = "linux")]
mod drive;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod theatre;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
use theatre::{Held, Theatre};

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("skipped: agents are tied to their engine's life on Linux only");
    ExitCode::SUCCESS
}

/// What the tests are called on the command line of `cargo test`, and who holds the sessions in each.
#[cfg(target_os = "linux")]
const NAMES: [(&str, Held); 2] = [
    ("r5_kill_9_at_each_event_leads_to_the_same_end", Held::ByTheEngine),
    (
        "r5_kill_9_at_each_event_and_a_gateway_holds_the_sessions",
        Held::ByAGateway,
    ),
];

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["scripted-agent", ..] => {
            let rest = arguments.into_iter().skip(1);
            let arguments = sillage_acp::scripted_agent::Args::parse(rest).expect("a script");
            sillage_acp::scripted_agent::run(&arguments)
        }
        ["launch-agent", ..] => {
            let launched = sillage_acp::launcher::launch(arguments.into_iter().skip(1));
            launched.unwrap_or_else(|error| {
                eprintln!("{error}");
                ExitCode::FAILURE
            })
        }
        ["drive", rest @ ..] => drive::main(rest),
        ["gateway", folder] => gateway::main(std::path::Path::new(folder)),
        ["--list", ..] => {
            for (name, _) in NAMES {
                println!("{name}: test");
            }
            ExitCode::SUCCESS
        }
        filters => {
            let filters: Vec<_> = filters.iter().filter(|word| !word.starts_with('-')).collect();
            for (name, held) in NAMES {
                if filters.is_empty() || filters.iter().any(|filter| name.contains(**filter)) {
                    each_event(held);
                    println!("test {name} ... ok");
                }
            }
            ExitCode::SUCCESS
        }
    }
}

/// Both sides of each event, one side a thread. Events that become durable together are one place to die at.
#[cfg(target_os = "linux")]
fn each_event(held: Held) {
    let undisturbed = Theatre::new(held);
    undisturbed.drive(None);
    let expected = undisturbed.end();
    std::thread::scope(|scope| {
        let sides = ["before", "after"].map(|side| {
            let expected = &expected;
            scope.spawn(move || {
                let again = again_and_again(held, side, expected);
                assert!(again >= 4, "a run is longer than {again} lives");
                (side, one_side(held, side, expected) + again)
            })
        });
        for side in sides {
            let (side, deaths) = side.join().expect("told above");
            println!("{side} the event: {deaths} deaths");
            // Five agents, each with a worktree, a session, a message, a commit and a merge of its own.
            assert!(deaths >= 25, "a run has more places to die at than {deaths}");
        }
    });
}

/// Events that an engine lives for when a run dies again and again: more than it takes to find three sessions again and
/// to ask them to go on, so that each life brings the run forward.
#[cfg(target_os = "linux")]
const LIFE: u64 = 15;

/// One run that dies again and again.
#[cfg(target_os = "linux")]
fn again_and_again(held: Held, side: &str, expected: &theatre::End) -> u32 {
    let theatre = Theatre::new(held);
    let (mut next, mut deaths) = (LIFE, 0);
    while let Some(last) = theatre.drive(Some((side, next))) {
        theatre.assert_gone_with_it(&format!(
            "killed just {side} event {next}, not for the first time"
        ));
        next = last + LIFE;
        deaths += 1;
        assert!(deaths < 50, "each life brings the run forward");
    }
    theatre.assert_sound(&format!("killed {deaths} times"));
    assert_eq!(&theatre.end(), expected, "killed {deaths} times");
    deaths
}

/// Dies at each place in turn, until a run ends before it comes to the next. Gives how often it died.
#[cfg(target_os = "linux")]
fn one_side(held: Held, side: &str, expected: &theatre::End) -> u32 {
    let (mut next, mut deaths) = (1, 0);
    loop {
        let theatre = Theatre::new(held);
        let Some(last) = theatre.drive(Some((side, next))) else {
            return deaths;
        };
        let told = format!("killed just {side} event {next}");
        theatre.assert_gone_with_it(&told);
        theatre.drive(None);
        theatre.assert_no_process(&told);
        theatre.assert_sound(&told);
        assert_eq!(&theatre.end(), expected, "{told}");
        next = last + 1;
        deaths += 1;
    }
}
