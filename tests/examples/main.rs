//! The examples run and say what they promise, and the runtime that one of them shows keeps what runtimes promise.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod own_runtime;

use std::path::PathBuf;
use std::process::Command;

/// Where cargo has put the example: it builds examples beside tests, unless one test was asked for alone.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap().join("examples");
    let example = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        example.exists(),
        "{} is missing: run `cargo build --examples` first",
        example.display()
    );
    example
}

/// What the example writes, once it has succeeded.
#[track_caller]
fn output(name: &str, arguments: &[&str]) -> String {
    let done = Command::new(built(name)).args(arguments).output().unwrap();
    assert!(
        done.status.success(),
        "{name}: {}: {}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn hello_runs_two_agents_to_the_end() {
    assert_eq!(
        output("hello", &[]),
        "write: complete: Hello, world!\nreview: complete: It is friendly.\nthe run is complete\n"
    );
}

#[test]
fn follow_tells_facts_and_chatter_in_their_order() {
    let told = output("follow", &[]);
    let lines: Vec<&str> = told.lines().collect();
    let place = |line: &str| {
        let found = lines.iter().position(|told| *told == line);
        found.unwrap_or_else(|| panic!("`{line}` is not told:\n{told}"))
    };
    let first = place("write says: Let me see.");
    assert!(first < place("write says: That is easy."));
    assert!(
        first < place("review says: Let me see."),
        "the second agent waits for the first"
    );
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.ends_with("says: That is easy."))
            .count(),
        2
    );
    assert!(
        lines.iter().any(|line| line.starts_with("write: ")),
        "no fact of a step is told:\n{told}"
    );
    assert_eq!(lines.last(), Some(&"the run is complete"));
}

#[test]
fn own_runtime_lets_a_command_answer() {
    let told = output("own_runtime", &[]);
    assert!(told.starts_with("write: complete: I was told "), "{told}");
    assert!(told.ends_with("the run is complete\n"), "{told}");
}

#[test]
fn own_runtime_tells_a_command_that_fails() {
    let told = output("own_runtime", &["exit 3"]);
    assert_eq!(told, "write: failed: \nreview: not_run: \nthe run is failed\n");
}
