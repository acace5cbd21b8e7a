//! Who may open a store, and where.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use sillage_core::ports::store::StoreError;
use sillage_store::{Options, SledStore};

use crate::child;
use crate::conformance::open;

fn refused(folder: &std::path::Path) -> StoreError {
    SledStore::open(folder, Options::default()).expect_err("refused")
}

#[test]
fn a_second_process_is_told_who_holds_the_store() {
    let home = tempfile::tempdir().unwrap();
    let mut holder = child::command("hold", home.path(), &[])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "open\n");
    let error = refused(home.path());
    let StoreError::Held {
        program, pid, host, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((program.as_str(), *pid), ("child", holder.id()));
    assert!(!host.is_empty());
    assert!(
        error
            .to_string()
            .contains(&format!("held by child (pid {pid} on")),
        "{error}"
    );
    holder.kill().unwrap();
    holder.wait().unwrap();
    // What a killed process left in its lock file is no obstacle.
    open(home.path());
}

#[test]
fn opening_twice_in_one_process_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let first = open(home.path());
    assert!(matches!(refused(home.path()), StoreError::Held { pid, .. } if pid == std::process::id()));
    drop(first);
    open(home.path());
}

#[test]
fn a_folder_that_cannot_be_made_is_unusable() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refused(&file.join("store"));
    assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
    assert!(
        error.to_string().contains("choose another data folder"),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_unusable() {
    use std::os::unix::fs::PermissionsExt;

    let home = tempfile::tempdir().unwrap();
    drop(open(home.path()));
    let lock = home.path().join("lock");
    fs::remove_file(&lock).unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(&lock, "").is_ok() {
        println!("not tried: this user may write everywhere");
    } else {
        assert!(matches!(refused(home.path()), StoreError::Unusable { .. }));
    }
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read() {
    use std::os::unix::fs::PermissionsExt;

    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("deep/store");
    let store = open(&folder);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in ["lock", "format", "mark", "sled/db", "sled/conf"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    drop(store);
}

#[test]
fn a_newer_format_is_refused() {
    let home = tempfile::tempdir().unwrap();
    drop(open(home.path()));
    fs::write(home.path().join("format"), "2\n").unwrap();
    assert!(matches!(
        refused(home.path()),
        StoreError::Newer {
            found: 2,
            known: 1,
            ..
        }
    ));
}

#[test]
fn a_store_without_its_format_is_damaged_not_empty() {
    let home = tempfile::tempdir().unwrap();
    drop(open(home.path()));
    fs::remove_file(home.path().join("format")).unwrap();
    let error = refused(home.path());
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}
