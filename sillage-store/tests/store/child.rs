//! The child process, and what it said.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) fn command(verb: &str, folder: &Path, rest: &[&str]) -> Command {
    wrapped(&[], verb, folder, rest)
}

/// The child behind another command, such as `strace`.
pub(crate) fn wrapped(before: &[&OsStr], verb: &str, folder: &Path, rest: &[&str]) -> Command {
    let program = OsStr::new(env!("CARGO_BIN_EXE_sillage-store-child"));
    let mut words = before
        .iter()
        .copied()
        .chain([program, OsStr::new(verb), folder.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .args(rest)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// The last position acknowledged of each run.
pub(crate) fn acknowledged(stdout: &str) -> BTreeMap<String, u64> {
    let mut last = BTreeMap::new();
    // A line that the kill cut short has no end.
    for line in stdout
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
    {
        if let Some((run, at)) = line.split_once(' ')
            && let Ok(at) = at.parse()
        {
            last.insert(run.to_owned(), at);
        }
    }
    last
}

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// Opens the store in a new process, and checks that all that was acknowledged is there and right.
pub(crate) fn check_acknowledged(folder: &Path, acknowledged: &BTreeMap<String, u64>, when: &str) {
    let runs: Vec<&str> = acknowledged.keys().map(String::as_str).collect();
    let output = command("read", folder, &runs).output().unwrap();
    let said = stdout(&output);
    assert!(output.status.success(), "{when}: {said}");
    let found = self::acknowledged(said);
    for (run, last) in acknowledged {
        let there = found.get(run).copied().unwrap_or(0);
        assert!(
            there >= *last,
            "{when}: {run} was acknowledged up to {last}, there is {there}: {said}"
        );
    }
}
