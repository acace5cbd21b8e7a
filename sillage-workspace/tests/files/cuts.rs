//! F9 and F11: a save is killed, or refused by the system, at each of its calls. Needs `strace`; without it these
//! tests say so and pass, unless it is required.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use sillage_testkit::machine::Need;
use sillage_workspace::confined::{FileError, Folder, Version};

use crate::{Ground, LIMIT, leftovers};

const FOLDER: &str = "SILLAGE_TEST_CUT_IN";
const OLD: &str = "inside\n";

/// Writes before the save: more than the thread that tells of the tests makes, which would be hit as well.
const PADDING: usize = 20;

/// What a save writes: more than one page, so that it could be half there.
fn new() -> String {
    "new content\n".repeat(2000)
}

/// The saving process; by itself it does nothing.
#[test]
fn saving_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Folder::open(Path::new(&folder)).unwrap();
    let mut nothing = fs::File::create("/dev/null").unwrap();
    for _ in 0..PADDING {
        nothing.write_all(b"x").unwrap();
    }
    match folder.save("full".as_ref(), new().as_bytes(), Version::of(OLD.as_bytes())) {
        Ok(_) => {}
        Err(FileError::Io { source, .. }) => panic!("refused: {source}"),
        Err(other) => panic!("failed: {other}"),
    }
}

/// Saves in another process under `strace` with this fault; none without `strace`.
fn saved_under(ground: &Ground, fault: &str) -> Option<(ExitStatus, String)> {
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null", "-e", fault])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "cuts::saving_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, ground.folder());
    match strace.output() {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            Some((output.status, told.into_owned()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Need::Strace.is_missing();
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Old or new, whole, and after the next start nothing else.
fn judge(ground: &Ground, fault: &str) -> bool {
    let found = fs::read_to_string(ground.at("full")).unwrap();
    assert!(found == OLD || found == new(), "{fault}: {} bytes", found.len());
    let folder = Folder::open(&ground.folder()).unwrap();
    folder.sweep(".".as_ref()).unwrap();
    assert_eq!(leftovers(&ground.folder()).len(), 0, "{fault}");
    let version = folder.read("full".as_ref(), LIMIT).unwrap().version;
    folder.save("full".as_ref(), b"next\n", version).unwrap();
    ground.untouched();
    found == new()
}

#[test]
fn f9_a_save_that_is_killed_leaves_the_old_or_the_new() {
    let (mut kills, mut with_new, mut with_rest) = (0, 0, 0);
    for call in [
        "openat,openat2",
        "write",
        "fchmod,fchown",
        "fsync,fdatasync",
        "rename,renameat,renameat2",
    ] {
        // The calls of the threads that only start the process count too.
        for number in 1..200 {
            let ground = Ground::new();
            let fault = format!("inject={call}:signal=KILL:when={number}");
            let Some((status, told)) = saved_under(&ground, &fault) else {
                return;
            };
            let killed = status.signal() == Some(9) || status.code() == Some(137);
            assert!(killed || status.success(), "{fault}: {status}: {told}");
            with_rest += usize::from(!leftovers(&ground.folder()).is_empty());
            let new = judge(&ground, &fault);
            if !killed {
                assert!(new, "{fault}");
                break;
            }
            kills += 1;
            with_new += usize::from(new);
        }
    }
    println!("{kills} kills: {with_new} left the new content, {with_rest} something to sweep");
    assert!(
        kills >= 10 && with_new >= 1 && with_rest >= 1,
        "{kills}, {with_new}, {with_rest}"
    );
}

/// The old content stays, nothing is left behind, and the system's word is told.
#[test]
fn f11_a_save_that_the_system_refuses_leaves_the_old() {
    for (call, error, word) in [
        ("write", "ENOSPC", "No space left"),
        ("write", "EDQUOT", "quota exceeded"),
        ("fsync", "EIO", "Input/output error"),
        ("renameat", "EXDEV", "cross-device"),
        ("renameat", "EBUSY", "busy"),
        ("fchmod", "EPERM", "not permitted"),
    ] {
        // The harness writes too, so that the call of the save is looked for.
        let mut refused = 0;
        let first = if call == "write" { PADDING + 1 } else { 1 };
        for number in first..first + 20 {
            let ground = Ground::new();
            let fault = format!("inject={call}:error={error}:when={number}");
            let Some((status, told)) = saved_under(&ground, &fault) else {
                return;
            };
            // Nothing is swept here: a save that lives cleans up itself.
            assert_eq!(leftovers(&ground.folder()).len(), 0, "{fault}");
            if told.contains("refused: ") {
                refused += 1;
                assert!(
                    told.to_lowercase().contains(&word.to_lowercase()),
                    "{fault}: {told}"
                );
                let after_rename = call == "fsync" && fs::read_to_string(ground.at("full")).unwrap() == new();
                assert!(after_rename || !judge(&ground, &fault), "{fault}");
            } else if status.success() {
                break;
            }
        }
        assert!(refused >= 1, "{call} {error} never reached the save");
    }
}

/// A folder in which nothing can be made: what is there stays as it is.
#[test]
fn f11_a_folder_that_cannot_be_written_keeps_its_file() {
    let ground = Ground::new();
    for (call, error) in [("openat", "EACCES"), ("openat", "EROFS")] {
        for number in 1..60 {
            let fault = format!("inject={call}:error={error}:when={number}");
            let Some((status, _)) = saved_under(&ground, &fault) else {
                return;
            };
            if status.success() {
                break;
            }
            assert_eq!(fs::read_to_string(ground.at("full")).unwrap(), OLD, "{fault}");
            assert_eq!(leftovers(&ground.folder()).len(), 0, "{fault}");
        }
        fs::write(ground.at("full"), OLD).unwrap();
    }
}
