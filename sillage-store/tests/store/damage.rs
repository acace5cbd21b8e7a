//! Flipped bits and lost pieces: an error that names what is damaged, or the right data; never a panic, never other
//! data, never a loss without a word.

use std::fs;
use std::path::Path;

use sillage_core::id::Seq;
use sillage_core::ports::Store;
use sillage_core::ports::store::{RunSummary, StoreError, Which};
use sillage_store::{Options, SledStore};
use sillage_testkit::store_suite::{events, run, summary, whole_log};

use crate::child::{acknowledged, command, stdout};
use crate::conformance::open;

/// Opens sled itself on a closed store. Processes that other tests are starting may still hold copies of its file.
fn sled(folder: &Path) -> sled::Db {
    let config = sled::Config::new().path(folder.join("sled")).flush_every_ms(None);
    for _ in 0..500 {
        match config.open() {
            Err(error) if error.to_string().contains("acquire lock") => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("sled stays locked")
}

/// The first key behind `prefix`.
fn key(db: &sled::Db, prefix: &[u8]) -> sled::IVec {
    db.scan_prefix(prefix).keys().next().unwrap().unwrap()
}

fn damaged<T: std::fmt::Debug>(result: Result<T, StoreError>, names: &str, what: &str) {
    match result {
        Err(error @ StoreError::Damaged { .. }) => {
            let words = error.to_string();
            assert!(
                words.contains(names) && words.contains("restore"),
                "{what}: {words}"
            );
        }
        other => panic!("{what}: {other:?}"),
    }
}

/// Each byte of a stored record, flipped, is reported with run and position; no event of the run's page is
/// returned, and other runs are read as ever.
#[tokio::test]
async fn each_flipped_byte_of_an_event_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let (bad, good) = (run("bad"), run("good"));
    let store = open(home.path());
    for run in [&bad, &good] {
        store
            .append(run, Seq::FIRST, events(run, 1, 3), &summary(run, 1))
            .await
            .unwrap();
    }
    drop(store);
    let db = sled(home.path());
    let key = key(&db, b"Lbad\0");
    let record = db.get(&key).unwrap().unwrap();
    drop(db);
    for at in 0..record.len() {
        let mut flipped = record.to_vec();
        flipped[at] ^= 1 << (at % 8);
        let db = sled(home.path());
        db.insert(&key, flipped).unwrap();
        drop(db);
        let store = open(home.path());
        damaged(
            store.read(&bad, Seq::FIRST, 1 << 20).await,
            "of run bad",
            &format!("byte {at}"),
        );
        assert_eq!(whole_log(&store, &good, 100).await, Ok(events(&good, 1, 3)));
    }
}

#[tokio::test]
async fn records_that_change_places_or_lose_a_piece_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let [long, a, b, gap] = ["long", "a", "b", "gap"].map(run);
    store
        .append(&long, Seq::FIRST, vec![vec![1; 10_000]; 2], &summary(&long, 1))
        .await
        .unwrap();
    for run in [&a, &b] {
        store
            .append(run, Seq::FIRST, events(&a, 1, 1), &summary(run, 1))
            .await
            .unwrap();
    }
    for at in 1..=3 {
        store
            .append(&gap, Seq(at), events(&gap, at, at), &summary(&gap, 1))
            .await
            .unwrap();
    }
    store.put("task", "t", 0, b"body".to_vec()).await.unwrap();
    drop(store);

    let db = sled(home.path());
    let piece = db.scan_prefix(b"llong\0").keys().nth(2).unwrap().unwrap();
    db.remove(piece).unwrap().unwrap();
    let (ka, kb) = (key(&db, b"La\0"), key(&db, b"Lb\0"));
    let (va, vb) = (db.get(&ka).unwrap().unwrap(), db.get(&kb).unwrap().unwrap());
    db.insert(ka, vb).unwrap();
    db.insert(kb, va).unwrap();
    let middle = db.scan_prefix(b"Lgap\0").keys().nth(1).unwrap().unwrap();
    db.remove(middle).unwrap().unwrap();
    let document = key(&db, b"Dtask\0");
    let mut body = db.get(&document).unwrap().unwrap().to_vec();
    *body.last_mut().unwrap() ^= 1;
    db.insert(document, body).unwrap();
    drop(db);

    let store = open(home.path());
    damaged(
        store.read(&long, Seq::FIRST, 1 << 20).await,
        "event 1 of run long: piece 3",
        "a missing piece",
    );
    damaged(
        store.read(&a, Seq::FIRST, 1 << 20).await,
        "event 1 of run a",
        "changed places",
    );
    damaged(
        store.read(&b, Seq::FIRST, 1 << 20).await,
        "event 1 of run b",
        "changed places",
    );
    damaged(
        store.read(&gap, Seq::FIRST, 1 << 20).await,
        "event 2 of run gap is missing",
        "a gap",
    );
    damaged(store.get("task", "t").await, "version 1 of task t", "a document");
    assert_eq!(store.runs(Which::All, 10).await.unwrap().len(), 4);
}

/// What sled loses without a word is told at the next opening.
#[tokio::test]
async fn a_loss_at_the_end_is_told() {
    let home = tempfile::tempdir().unwrap();
    for lost in [&b"Lrun\0"[..], b"Srun\0", b"J", b"A", b"U", b"Dtask\0"] {
        let folder = home
            .path()
            .join(String::from_utf8_lossy(lost).trim_end_matches('\0'));
        let store = open(&folder);
        let run = run("run");
        for at in 1..=3 {
            store
                .append(&run, Seq(at), events(&run, at, at), &summary(&run, 1))
                .await
                .unwrap();
        }
        store.put("task", "t", 0, b"body".to_vec()).await.unwrap();
        drop(store);
        let db = sled(&folder);
        let last = db.scan_prefix(lost).keys().next_back().unwrap().unwrap();
        db.remove(last).unwrap().unwrap();
        drop(db);
        for _ in 0..2 {
            let refused = SledStore::open(&folder, Options::default()).map(|_| ());
            damaged(
                refused,
                "it lacks",
                &format!("{:?} is missing", String::from_utf8_lossy(lost)),
            );
        }
        open_with_loss(&folder);
    }
}

/// Opens a store in the way that its error names, to go on with what is left.
fn open_with_loss(folder: &Path) -> SledStore {
    fs::remove_file(folder.join("mark")).unwrap();
    open(folder)
}

#[tokio::test]
async fn a_run_with_a_torn_end_can_be_read_no_further_and_is_not_written() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let run = run("run");
    for at in 1..=3 {
        store
            .append(&run, Seq(at), events(&run, at, at), &summary(&run, 1))
            .await
            .unwrap();
    }
    drop(store);
    let db = sled(home.path());
    let last = db.scan_prefix(b"Lrun\0").keys().next_back().unwrap().unwrap();
    db.remove(last).unwrap().unwrap();
    drop(db);
    let store = open_with_loss(home.path());
    damaged(
        store.read(&run, Seq::FIRST, 1 << 20).await,
        "event 3 of run run is missing",
        "reading",
    );
    let more = store
        .append(
            &run,
            Seq(3),
            events(&run, 3, 3),
            &RunSummary {
                ended: 9,
                ..summary(&run, 1)
            },
        )
        .await;
    damaged(more, "event 3 of run run is missing", "writing");
}

/// A store that was killed while it was written, and what it had acknowledged.
fn killed(folder: &Path) -> std::collections::BTreeMap<String, u64> {
    for events in ["40", "80"] {
        let output = command("append", folder, &["4", events]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let output = command("append", folder, &["4", "120"]).output().unwrap();
    acknowledged(stdout(&output))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Changes a copy of the store, opens it in a process of its own and reads everything. Tells whether the damage was
/// noticed.
fn noticed(
    store: &Path,
    expected: &std::collections::BTreeMap<String, u64>,
    what: &str,
    change: impl Fn(&Path),
) -> bool {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("copy");
    copy(store, &folder);
    change(&folder.join("sled"));
    let runs: Vec<&str> = expected.keys().map(String::as_str).collect();
    let output = command("read", &folder, &runs).output().unwrap();
    let said = stdout(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{what}: {output:?}");
    assert!(
        output.stderr.is_empty(),
        "{what}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!said.contains("WRONG"), "{what}: {said}");
    if said.contains("refused: ") || said.contains("error ") {
        assert!(
            said.contains(folder.to_str().unwrap()),
            "the path is named: {what}: {said}"
        );
        return true;
    }
    assert_eq!(&acknowledged(said), expected, "{what}: a loss without a word");
    false
}

const FLIPS: usize = 150;

#[test]
fn a_flipped_bit_in_the_file_is_an_error_or_the_right_data() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    let expected = killed(&store);
    let db = fs::read(store.join("sled/db")).unwrap();
    let used: Vec<usize> = (0..db.len()).filter(|at| db[*at] != 0).collect();
    let mut told = 0;
    for number in 0..FLIPS {
        // Spread over what is written, with steps that fall into heads, keys and bodies alike.
        let at = used[number.wrapping_mul(0x9e37_79b9) % used.len()];
        let flip = |sled: &Path| {
            let mut db = db.clone();
            db[at] ^= 1 << (number % 8);
            fs::write(sled.join("db"), db).unwrap();
        };
        told += usize::from(noticed(
            &store,
            &expected,
            &format!("byte {at} of {}", db.len()),
            flip,
        ));
    }
    assert!(
        told > FLIPS / 10,
        "{told} of {FLIPS} flips were noticed; the others hit what is replaced since"
    );
}

#[test]
fn lost_pieces_of_the_file_are_told() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    let expected = killed(&store);
    let truncate = |by: u64| {
        move |sled: &Path| {
            let file = fs::OpenOptions::new().write(true).open(sled.join("db")).unwrap();
            let len = file.metadata().unwrap().len();
            file.set_len(len.saturating_sub(by)).unwrap();
        }
    };
    assert!(noticed(&store, &expected, "all cut off", truncate(u64::MAX)));
    assert!(noticed(
        &store,
        &expected,
        "half cut off",
        truncate(fs::metadata(store.join("sled/db")).unwrap().len() / 2)
    ));
    noticed(&store, &expected, "2,000 bytes cut off", truncate(2000));
    assert!(noticed(&store, &expected, "no file", |sled| fs::remove_file(
        sled.join("db")
    )
    .unwrap()));
    assert!(noticed(&store, &expected, "no folder", |sled| {
        fs::remove_dir_all(sled).unwrap()
    }));
    noticed(&store, &expected, "a torn configuration", |sled| {
        fs::write(sled.join("conf"), b"segment").unwrap()
    });
    noticed(&store, &expected, "a strange configuration", |sled| {
        fs::write(sled.join("conf"), [0xff; 100]).unwrap()
    });
    for entry in fs::read_dir(store.join("sled")).unwrap() {
        let name = entry.unwrap().file_name();
        if name.to_string_lossy().starts_with("snap") {
            noticed(&store, &expected, "a torn snapshot", |sled| {
                fs::write(sled.join(&name), [1; 40]).unwrap()
            });
            noticed(&store, &expected, "no snapshot", |sled| {
                fs::remove_file(sled.join(&name)).unwrap()
            });
        }
    }
}
