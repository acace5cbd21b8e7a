//! F4 and F5: what is no file, what is too large, and files with two names.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sillage_workspace::confined::{Entry, FileError, Kind, Version};

use crate::{Ground, LIMIT, SECRET};

fn mkfifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// None of them is waited for: a pipe has no writer here.
#[test]
fn f4_pipes_sockets_devices_and_folders_are_not_read() {
    let ground = Ground::new();
    mkfifo(&ground.at("pipe"));
    let _listening = std::os::unix::net::UnixListener::bind(ground.at("socket")).unwrap();
    let mut names = vec!["pipe", "socket", "sub"];
    // Only the system's own user may make a device.
    let mut mknod = std::process::Command::new("mknod");
    let made = mknod.arg(ground.at("zero")).args(["c", "1", "5"]).output();
    if made.is_ok_and(|made| made.status.success()) {
        names.push("zero");
    }
    let start = Instant::now();
    for folder in ground.ways() {
        for name in &names {
            let path = Path::new(name);
            let refused = |error: FileError| match error {
                FileError::Kind { is, .. } => is,
                other => panic!("{name}: {other}"),
            };
            let kind = refused(folder.read(path, LIMIT).unwrap_err());
            assert_eq!(
                kind,
                if *name == "sub" {
                    Kind::Folder
                } else {
                    Kind::Special
                }
            );
            assert_eq!(refused(folder.length(path).unwrap_err()), kind);
            refused(folder.save(path, b"new", Version::of(b"")).unwrap_err());
            refused(folder.remove(path, Version::of(b"")).unwrap_err());
            assert!(matches!(folder.create(path, b"new"), Err(FileError::Exists(_))));
        }
    }
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "something was waited for"
    );
    ground.untouched();
}

#[test]
fn f4_a_huge_sparse_file_is_not_read() {
    let ground = Ground::new();
    let huge = fs::File::create(ground.at("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for folder in ground.ways() {
        let path = Path::new("huge");
        assert!(matches!(
            folder.read(path, LIMIT),
            Err(FileError::TooLong { limit: LIMIT, .. })
        ));
        assert_eq!(folder.length(path).unwrap(), 1 << 40);
        let saved = folder.save(path, b"new", Version::of(b""));
        assert!(matches!(saved, Err(FileError::TooLong { .. })));
        assert_eq!(folder.read("full".as_ref(), 7).unwrap().bytes, b"inside\n");
        assert!(matches!(
            folder.read("full".as_ref(), 6),
            Err(FileError::TooLong { limit: 6, .. })
        ));
    }
}

/// A second name of a file outside cannot be told from a file: it is read. A save leaves the other name alone.
#[test]
fn f5_a_save_never_changes_the_other_name_of_a_file() {
    for way in 0..2 {
        let ground = Ground::new();
        fs::hard_link(ground.outside("secret"), ground.at("hard")).unwrap();
        let folder = &ground.ways()[way];
        let read = folder.read("hard".as_ref(), LIMIT).unwrap();
        assert_eq!(read.bytes, SECRET.as_bytes());
        folder.save("hard".as_ref(), b"new\n", read.version).unwrap();
        assert_eq!(fs::read_to_string(ground.at("hard")).unwrap(), "new\n");
        ground.untouched();
    }
}

#[test]
fn a_listing_tells_what_is_there_and_follows_nothing() {
    let ground = Ground::new();
    ground.link("..", "out");
    mkfifo(&ground.at("pipe"));
    fs::write(ground.at(".sillage-save-0000.tmp"), "cut").unwrap();
    fs::set_permissions(ground.at("full"), fs::Permissions::from_mode(0o600)).unwrap();
    let entry = |name: &str, kind, length| Entry {
        name: name.into(),
        kind,
        length,
    };
    for folder in ground.ways() {
        let listing = folder.list(".".as_ref(), 100).unwrap();
        let expected = [
            entry("full", Kind::File, 7),
            entry("out", Kind::Link, 0),
            entry("pipe", Kind::Special, 0),
            entry("sub", Kind::Folder, 0),
        ];
        assert_eq!(
            (listing.entries.as_slice(), listing.more),
            (expected.as_slice(), false)
        );
        assert_eq!(folder.list("sub/deep".as_ref(), 1).unwrap().entries.len(), 1);
        let cut = folder.list(".".as_ref(), 2).unwrap();
        assert_eq!((cut.entries.len(), cut.more), (2, true));
        assert!(matches!(
            folder.list("out".as_ref(), 9),
            Err(FileError::Outside { .. })
        ));
        assert!(matches!(
            folder.list("full".as_ref(), 9),
            Err(FileError::Kind { .. })
        ));
        assert!(matches!(
            folder.list("..".as_ref(), 9),
            Err(FileError::Outside { .. })
        ));
    }
}
