//! A killed process loses nothing that it acknowledged.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use crate::child::{acknowledged, check_acknowledged, command};

/// Kills in all, over this many stores at once.
const KILLS: u64 = 200;
const STORES: u64 = 8;

/// 200 kills at random moments: every acknowledged event is there afterwards, and each log is dense. The same
/// store is killed again and again, so that it ages.
#[test]
fn r1_two_hundred_kills_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for store in 0..STORES {
            let folder = home.path().join(store.to_string());
            scope.spawn(move || {
                for round in 0..KILLS / STORES {
                    kill_once(&folder, store * 1000 + round);
                }
            });
        }
    });
}

fn kill_once(folder: &Path, seed: u64) {
    let mut child = command("append", folder, &["4", "0"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    // The kill falls on any moment between the first acknowledgement and some dozens of milliseconds later, or
    // before there was any.
    let mut said = String::new();
    if !seed.is_multiple_of(8) {
        out.read_line(&mut said).unwrap();
        assert!(!said.is_empty(), "seed {seed}: the child ended");
    }
    let spread = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    std::thread::sleep(Duration::from_micros(spread % 20_000));
    child.kill().unwrap();
    out.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert!(
        !said.contains("error") && !said.contains("refused"),
        "seed {seed}: {said}"
    );
    check_acknowledged(folder, &acknowledged(&said), &format!("seed {seed}"));
}
