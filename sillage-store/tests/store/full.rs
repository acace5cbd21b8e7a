//! A disk that is full: whatever was to be written, of whatever length, nothing acknowledged is lost, the store is
//! never taken for damaged, and it goes on as soon as there is room.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::Store;
use sillage_core::ports::store::StoreError;
use sillage_store::{Options, SledStore};
use sillage_testkit::machine::mounts;
use sillage_testkit::store_suite::{run, summary, whole_log};
use uuid::Uuid;

use crate::conformance::open;

/// Lengths around all that divides: a piece, what is written at once, sled's segment, and the longest that an agent
/// may say.
const LENGTHS: &[usize] = &[
    0,
    1,
    4_000,
    4_096 - 12 - 8,
    4_096 - 12 - 8 + 1,
    8_192 - 20,
    130_000,
    (256 << 10) - 20,
    (256 << 10) + 1,
    390_000,
    (512 << 10) - 20,
    (512 << 10) + 1,
    1 << 20,
    (4 << 20) + 7,
    16 << 20,
];

/// A small file system that ends with its test.
struct SmallDisk {
    home: tempfile::TempDir,
}

impl SmallDisk {
    /// None where we may not mount one.
    fn mount(size: &str) -> Option<SmallDisk> {
        let home = tempfile::tempdir().unwrap();
        mounts(home.path(), size).then_some(SmallDisk { home })
    }

    fn store(&self) -> PathBuf {
        self.home.path().join("store")
    }

    /// Leaves no more than `room` bytes.
    fn fill(&self, room: u64) {
        let free = || {
            let told = rustix::fs::statvfs(self.home.path()).unwrap();
            told.f_bavail * told.f_frsize
        };
        let file = File::create(self.home.path().join("filler")).unwrap();
        let mut length = 0;
        while free() > room {
            // A file takes more than its own length: what is refused is tried a little shorter.
            let more = (free() - room).max(4096);
            if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), length, more).is_err() {
                break;
            }
            length += more;
        }
    }

    fn free(&self) {
        fs::remove_file(self.home.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.home.path())
            .status();
    }
}

/// What is written, in the three ways that there are.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Event,
    Document,
    Transcript,
}

const SESSION: ClientSessionId = ClientSessionId(Uuid::from_u128(7));

fn body(length: usize) -> Vec<u8> {
    b"far too long ".iter().copied().cycle().take(length).collect()
}

async fn write(store: &SledStore, run: &RunId, kind: Kind, length: usize) -> Result<(), StoreError> {
    match kind {
        Kind::Event => {
            let next = whole_log(store, run, 1 << 20).await?.len() as u64 + 1;
            store
                .append(run, Seq(next), vec![body(length)], &summary(run, 1))
                .await
        }
        Kind::Document => {
            let version = store.get("task", "t").await?.map_or(0, |(version, _)| version);
            store.put("task", "t", version, body(length)).await.map(|_| ())
        }
        Kind::Transcript => store.add_transcript(run, SESSION, body(length)).await,
    }
}

/// How many of a kind are there; each must be what was written.
async fn count(store: &SledStore, run: &RunId, kind: Kind, length: usize) -> usize {
    let found: Vec<Vec<u8>> = match kind {
        Kind::Event => {
            let log = whole_log(store, run, 1 << 20).await.unwrap();
            log.into_iter().skip(1).collect()
        }
        Kind::Document => {
            let newest = store
                .get("task", "t")
                .await
                .unwrap()
                .map_or(0, |(version, _)| version);
            let mut found = Vec::new();
            for version in 1..=newest {
                found.push(store.version("task", "t", version).await.unwrap().unwrap());
            }
            found
        }
        Kind::Transcript => store.transcript(run, SESSION).await.unwrap(),
    };
    assert!(
        found.iter().all(|one| *one == body(length)),
        "{kind:?} of {length}"
    );
    found.len()
}

/// Not one who is told that the store is full is told that it is damaged later.
#[track_caller]
fn assert_full(told: &Result<(), StoreError>, when: &str) {
    assert!(
        matches!(
            told,
            Ok(()) | Err(StoreError::Full { .. } | StoreError::ReadAgain { .. })
        ),
        "{when}: {told:?}"
    );
}

/// Written on a full disk, tried again while it is full, by the same process and by the next; then there is room.
async fn fills_up(disk: &SmallDisk, kind: Kind, length: usize, room: u64) {
    let when = format!("{kind:?} of {length} bytes with room for {room}");
    let _ = fs::remove_dir_all(disk.store());
    let run = run("a");
    let store = open(&disk.store());
    let first = vec![b"the first".to_vec()];
    store
        .append(&run, Seq::FIRST, first.clone(), &summary(&run, 1))
        .await
        .unwrap();
    disk.fill(room);
    let mut acknowledged = 0;
    for _ in 0..3 {
        let told = write(&store, &run, kind, length).await;
        assert_full(&told, &when);
        acknowledged += usize::from(told.is_ok());
    }
    drop(store);
    // Whoever comes while it is full reads what there is, or is told why not.
    for _ in 0..2 {
        match SledStore::open(disk.store(), Options::default()) {
            Ok(store) => {
                let told = write(&store, &run, kind, length).await;
                assert_full(&told, &when);
                acknowledged += usize::from(told.is_ok());
            }
            Err(why) => assert!(matches!(why, StoreError::Full { .. }), "{when}: {why}"),
        }
    }
    disk.free();
    let store = open(&disk.store());
    let log = whole_log(&store, &run, 1 << 20).await.unwrap();
    assert_eq!(log[..1], first, "{when}: the first is kept");
    // What was told to be acknowledged is there; a transcript is not waited for.
    if !matches!(kind, Kind::Transcript) {
        let found = count(&store, &run, kind, length).await;
        assert!(found >= acknowledged, "{when}: {found} of {acknowledged}");
    }
    let before = count(&store, &run, kind, length).await;
    write(&store, &run, kind, length).await.unwrap();
    drop(store);
    let store = open(&disk.store());
    assert_eq!(count(&store, &run, kind, length).await, before + 1, "{when}");
}

async fn at_every_length(kind: Kind) {
    let Some(disk) = SmallDisk::mount("160m") else {
        return;
    };
    for length in LENGTHS {
        let long = *length as u64;
        // None at all, and so little that what was begun cannot be ended.
        let rooms = if long < 1 << 20 {
            vec![0, 20_000, long / 2, long]
        } else {
            vec![long]
        };
        for room in rooms {
            fills_up(&disk, kind, *length, room).await;
        }
    }
}

#[tokio::test]
async fn a5_an_event_of_any_length_on_a_full_disk_damages_nothing() {
    at_every_length(Kind::Event).await;
}

#[tokio::test]
async fn a5_a_document_of_any_length_on_a_full_disk_damages_nothing() {
    at_every_length(Kind::Document).await;
}

#[tokio::test]
async fn a5_a_transcript_of_any_length_on_a_full_disk_damages_nothing() {
    at_every_length(Kind::Transcript).await;
}

/// The process that met the full disk goes on by itself once there is room.
#[tokio::test]
async fn a5_the_store_goes_on_when_there_is_room_again() {
    let Some(disk) = SmallDisk::mount("64m") else {
        return;
    };
    let run = run("a");
    let store = open(&disk.store());
    for kind in [Kind::Event, Kind::Document, Kind::Transcript] {
        write(&store, &run, kind, 390_000).await.unwrap();
    }
    disk.fill(0);
    let mut refused = 0;
    for _ in 0..40 {
        let told = write(&store, &run, Kind::Event, 390_000).await;
        assert_full(&told, "full");
        refused += usize::from(told.is_err());
    }
    assert!(
        refused > 20,
        "40 of 390 kB do not go into a reserve of 4 MiB: {refused} refused"
    );
    let log = whole_log(&store, &run, 1 << 20).await.unwrap();
    assert!(
        log.iter().all(|event| *event == body(390_000)),
        "it is readable while the disk is full"
    );
    disk.free();
    write(&store, &run, Kind::Event, 390_000).await.unwrap();
    assert_eq!(
        whole_log(&store, &run, 1 << 20).await.unwrap().len(),
        log.len() + 1
    );
}
