//! What the disk does: that it is waited for, and what follows when it fails. `strace` shows and injects.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use sillage_testkit::machine::traces;

use crate::child::{acknowledged, check_acknowledged, stdout, wrapped};

fn strace(arguments: &[&str], log: &Path) -> Vec<OsString> {
    let words = ["strace", "-f", "-y", "-qq", "-s", "64"]
        .iter()
        .chain(arguments)
        .map(OsString::from);
    words
        .chain([OsString::from("-o"), log.as_os_str().to_owned()])
        .collect()
}

/// Before each acknowledgement, after the one before, sled's file is written and then synced.
#[test]
fn r1_the_disk_is_waited_for_before_each_acknowledgement() {
    if !traces() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("trace");
    let before = strace(&["-e", "trace=fdatasync,pwrite64,write"], &log);
    let before: Vec<&OsStr> = before.iter().map(OsString::as_os_str).collect();
    let output = wrapped(&before, "append", &home.path().join("store"), &["1", "30"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");

    let trace = std::fs::read_to_string(&log).unwrap();
    let (mut written, mut synced, mut acknowledgements) = (false, false, 0);
    for line in trace.lines() {
        let finished = line.contains("= ") && !line.contains("<unfinished");
        if line.contains("pwrite64(") && line.contains("/sled/db>") {
            written = true;
        } else if is_sync(line) && finished {
            synced = written;
        } else if line.contains("\"run-0 ") {
            assert!(
                synced,
                "acknowledgement {acknowledgements} came before the sync:\n{trace}"
            );
            acknowledgements += 1;
            (written, synced) = (false, false);
        }
    }
    assert!(acknowledgements >= 10, "{trace}");
}

/// A sync of sled's file that has returned: on one line, or resumed, in which case the file is not named again.
fn is_sync(line: &str) -> bool {
    (line.contains("fdatasync(") && line.contains("/sled/db>")) || line.contains("<... fdatasync resumed>")
}

/// The call fails once, at its `nth` time in each thread; nothing acknowledged is lost, and appending goes on.
fn survives(call: &str, error: &str, nth: u32) -> bool {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let inject = format!("inject={call}:error={error}:when={nth}");
    let when = format!("{call} fails with {error} at call {nth}");
    let log = home.path().join("trace");
    let before = strace(&["-e", &format!("trace={call}"), "-e", &inject], &log);
    let before: Vec<&OsStr> = before.iter().map(OsString::as_os_str).collect();
    let output = wrapped(&before, "append", &folder, &["3", "40"])
        .output()
        .unwrap();
    let said = stdout(&output);
    assert!(!said.contains("WRONG"), "{when}: {said}");
    assert!(
        !String::from_utf8_lossy(&output.stderr).contains("panicked"),
        "{when}: {output:?}"
    );
    if said.starts_with("refused: ") {
        assert!(
            error != "ENOSPC" || said.contains("no space left"),
            "{when}: {said}"
        );
    } else {
        assert!(output.status.success(), "{when}: {output:?}");
    }
    check_acknowledged(&folder, &acknowledged(said), &when);
    said.lines().any(|line| line.starts_with("error "))
}

#[test]
fn a4_a_failed_sync_is_an_error_and_loses_nothing() {
    if !traces() {
        return;
    }
    let told = (1..=8).flat_map(|nth| [("EIO", nth), ("ENOSPC", nth)]);
    let told = told
        .filter(|(error, nth)| survives("fdatasync", error, *nth))
        .count();
    assert!(told >= 12, "most failures fall on an append: {told}");
}

#[test]
fn a4_a_failed_write_is_an_error_and_loses_nothing() {
    if !traces() {
        return;
    }
    let told = [1, 2, 3, 5, 8]
        .iter()
        .flat_map(|nth| [("EIO", *nth), ("ENOSPC", *nth)]);
    let told = told
        .filter(|(error, nth)| survives("pwrite64", error, *nth))
        .count();
    assert!(told >= 2, "some failures fall on an append: {told}");
}

/// From the n-th call on in each thread, nothing can be written, though the system said that there was room. The process
/// may give up; the store that it leaves opens as soon as it can be written.
#[test]
fn a5_a_disk_that_stays_full_damages_nothing() {
    if !traces() {
        return;
    }
    let mut told = 0;
    let places = [3, 15]
        .iter()
        .flat_map(|nth| [("pwrite64", nth), ("pwrite64,write,fallocate", nth)]);
    for (calls, nth) in places {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("store");
        let when = format!("{calls} fail with ENOSPC from call {nth} on");
        let log = home.path().join("trace");
        // What it says on standard output goes by `write` as well: only what lies in the store fails.
        let paths = ["sled/db", "mark", "reserve"].map(|name| folder.join(name));
        let mut before = strace(&["-e", &format!("trace={calls}")], &log);
        before.push(format!("--inject={calls}:error=ENOSPC:when={nth}+").into());
        for path in paths {
            before.push("-P".into());
            before.push(path.into());
        }
        let before: Vec<&OsStr> = before.iter().map(OsString::as_os_str).collect();
        // Calls are counted in each thread: however they fall on sled's, one of them gets there.
        let output = wrapped(&before, "append", &folder, &["1", "200"])
            .output()
            .unwrap();
        let said = stdout(&output);
        assert!(
            !said.contains("WRONG") && !said.contains("damaged"),
            "{when}: {said}"
        );
        told += usize::from(said.contains("no space left"));
        check_acknowledged(&folder, &acknowledged(said), &when);
    }
    assert!(told >= 3, "most of them are told: {told}");
}

/// A store that was killed at work is killed again while it is opened, at each call that changes something, and once
/// more while it is opened after that (A3). Whatever it was in the middle of, nothing acknowledged is lost.
#[test]
fn a3_a_kill_while_it_is_opened_loses_nothing() {
    if !traces() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    let kill = |verb: &str, rest: &[&str], call: &str, nth: u32| {
        let log = home.path().join("trace");
        let inject = format!("inject={call}:signal=KILL:when={nth}");
        let before = strace(&["-e", &format!("trace={call}"), "-e", &inject], &log);
        let before: Vec<&OsStr> = before.iter().map(OsString::as_os_str).collect();
        wrapped(&before, verb, &folder, rest).output().unwrap()
    };
    let mut kept = std::collections::BTreeMap::new();
    let mut deaths = 0;
    for call in [
        "pwrite64",
        "write",
        "fsync",
        "rename",
        "unlink",
        "ftruncate",
        "fallocate",
        "openat",
    ] {
        for nth in 1..=12 {
            // So that there is a log to be replayed, which is not the same each time.
            let worked = kill("append", &["3", "0"], "fdatasync", 4);
            kept.extend(acknowledged(stdout(&worked)));
            let runs: Vec<&str> = kept.keys().map(String::as_str).collect();
            let mut died = false;
            for _ in 0..2 {
                died = !kill("read", &runs, call, nth).status.success();
                deaths += u32::from(died);
            }
            check_acknowledged(&folder, &kept, &format!("killed at {call} {nth} of opening"));
            if !died {
                break;
            }
        }
    }
    assert!(deaths >= 40, "opening has more calls than {deaths}");
}

/// The process is killed within its n-th sync, as a power cut would stop it between writing and answering.
#[test]
fn a2_a_kill_within_a_sync_loses_nothing() {
    if !traces() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("store");
    for nth in 1..=12 {
        let log = home.path().join("trace");
        let inject = format!("inject=fdatasync:signal=KILL:when={nth}");
        let before = strace(&["-e", "trace=fdatasync", "-e", &inject], &log);
        let before: Vec<&OsStr> = before.iter().map(OsString::as_os_str).collect();
        let output = wrapped(&before, "append", &folder, &["3", "0"]).output().unwrap();
        assert!(!output.status.success());
        check_acknowledged(
            &folder,
            &acknowledged(stdout(&output)),
            &format!("killed in sync {nth}"),
        );
    }
}
