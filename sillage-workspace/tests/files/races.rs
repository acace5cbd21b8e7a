//! F3: links are swapped in and out while paths are opened.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sillage_workspace::confined::{Folder, Version};

use crate::{Ground, LIMIT, SECRET};

/// What came of many opens.
#[derive(Debug, Default)]
struct Tally {
    inside: u64,
    escapes: u64,
    refused: u64,
    swaps: u64,
}

/// Opens `path` again and again with `open`, while `one` and `other` change places as fast as they can.
fn race(
    ground: &Ground,
    opens: u64,
    one: &str,
    other: &str,
    can_be_inside: bool,
    open: impl Fn() -> Option<Vec<u8>>,
) -> Tally {
    let (over, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (one, other) = (ground.at(one), ground.at(other));
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let start = Instant::now();
        let raced =
            |tally: &Tally| swaps.load(Ordering::Relaxed) >= 100 && (tally.inside > 0 || !can_be_inside);
        let mut opened = 0;
        // On a busy machine one side may not get a turn for a while.
        while opened < opens || (!raced(&tally) && start.elapsed().as_secs() < 60) {
            opened += 1;
            match open() {
                Some(bytes) if bytes == SECRET.as_bytes() => tally.escapes += 1,
                Some(_) => tally.inside += 1,
                None => tally.refused += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    tally.swaps = swaps.into_inner();
    tally
}

/// A folder that is a link to the outside every other moment, a file that is one, and a folder that is moved while
/// `..` is looked up in it.
fn grounds() -> Vec<(Ground, &'static str, &'static str, &'static str)> {
    let scene = |one: &'static str, other: &'static str, path: &'static str| {
        let ground = Ground::new();
        fs::create_dir(ground.at("real")).unwrap();
        fs::create_dir(ground.at("real/deeper")).unwrap();
        fs::write(ground.at("real/full"), "inside\n").unwrap();
        ground.link("../granted-too", "evil");
        ground.link("../secret", "evil-file");
        (ground, one, other, path)
    };
    vec![
        scene("real", "evil", "real/full"),
        scene("full", "evil-file", "full"),
        scene("real", "sub/deep", "real/deeper/../full"),
        scene("real", "evil", "real/deeper/../../granted-too/full"),
    ]
}

fn no_escape(opens: u64) {
    for (ground, one, other, path) in grounds() {
        for (way, folder) in ground.ways().into_iter().enumerate() {
            let start = Instant::now();
            let tally = race(&ground, opens, one, other, !path.contains("granted-too"), || {
                folder
                    .read(Path::new(path), LIMIT)
                    .ok()
                    .map(|content| content.bytes)
            });
            println!(
                "{path}, way {way}: {opens} opens in {:?}: {tally:?}",
                start.elapsed()
            );
            assert_eq!(tally.escapes, 0, "{path}, way {way}: {tally:?}");
            assert!(tally.swaps >= 100, "hardly anything was swapped: {tally:?}");
        }
        ground.untouched();
    }
}

#[test]
fn f3_no_open_of_twenty_thousand_is_led_out() {
    no_escape(2_500);
}

/// `cargo test -p sillage-workspace --test files f3 -- --ignored --nocapture`
#[test]
#[ignore = "a million opens: about a minute"]
fn f3_no_open_of_a_million_is_led_out() {
    no_escape(125_000);
}

/// The race can be lost: who checks the path first and opens it then does.
#[test]
fn f3_a_path_that_is_checked_first_is_led_out() {
    let (ground, one, other, path) = grounds().remove(0);
    let (root, file) = (ground.folder().canonicalize().unwrap(), ground.at(path));
    let mut escapes = 0;
    let start = Instant::now();
    while escapes == 0 && start.elapsed().as_secs() < 60 {
        let tally = race(&ground, 2_000, one, other, true, || {
            let found = file.canonicalize().ok()?;
            found.starts_with(&root).then(|| fs::read(&file).ok()).flatten()
        });
        escapes += tally.escapes;
    }
    assert!(escapes > 0, "the swapping does not reach the opens");
}

/// The same for writing: what is outside keeps its content, and nothing is left there.
#[test]
fn f3_no_save_is_led_out() {
    for way in 0..2 {
        let (ground, one, other, path) = grounds().remove(0);
        let granted = Folder::open(&ground.folder()).unwrap();
        let folder = if way == 0 { granted } else { granted.walking() };
        let tally = race(&ground, 300, one, other, true, || {
            let read = folder.read(Path::new(path), LIMIT).ok()?;
            let _ = folder.save(Path::new(path), b"saved\n", read.version);
            // What is outside looks just like this: a save that is led there would be let through.
            let _ = folder.save(Path::new(path), b"escaped\n", Version::of(SECRET.as_bytes()));
            let _ = folder.create(Path::new("real/new"), b"new\n");
            let _ = folder.remove(Path::new("real/new"), Version::of(b"new\n"));
            Some(read.bytes)
        });
        assert_eq!(tally.escapes, 0, "{tally:?}");
        assert!(tally.inside > 0, "{tally:?}");
        let names: Vec<_> = fs::read_dir(ground.outside("granted-too"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["full"]);
        for folder in ["real", "evil"] {
            if ground.at(folder).is_dir() && !ground.at(folder).is_symlink() {
                Folder::open(&ground.at(folder))
                    .unwrap()
                    .sweep(".".as_ref())
                    .unwrap();
            }
        }
        ground.untouched();
    }
}
