//! How long things take. Run alone, these tell their figures:
//! `cargo test -p sillage-workspace --test git measures -- --ignored --nocapture --test-threads=1`

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sillage_core::ports::Workspace;

use crate::sandbox::Sandbox;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measure: about half a minute"]
async fn sixty_four_worktrees_at_once() {
    let sandbox = Arc::new(Sandbox::newest());
    let start = Instant::now();
    let leases: Vec<_> = (0..64)
        .map(|number| {
            let sandbox = Arc::clone(&sandbox);
            tokio::spawn(async move { sandbox.lease(&format!("a{number}")).await })
        })
        .collect();
    for lease in leases {
        lease.await.unwrap();
    }
    let took = start.elapsed();
    println!("64 worktrees at once: {took:?}, {:?} each", took / 64);
}

/// The first commit writes every file, the second finds one that changed among them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measure: some minutes"]
async fn a_commit_for_the_agent_by_number_of_files() {
    let mut each: Vec<(u32, Duration, Duration)> = Vec::new();
    for files in [100_u32, 10_000, 100_000] {
        let sandbox = Sandbox::newest();
        let worktree = sandbox.lease("a").await;
        for number in 0..files {
            let folder = worktree.path.join(format!("d{}", number / 500));
            if number % 500 == 0 {
                fs::create_dir(&folder).unwrap();
            }
            fs::write(folder.join(format!("f{number}")), format!("file {number}\n")).unwrap();
        }
        let start = Instant::now();
        let committed = sandbox.workspace.commit(&worktree, "All").await.unwrap();
        let first = start.elapsed();
        assert_eq!(committed.diff.files, files);
        fs::write(worktree.path.join("d0/f0"), "changed\n").unwrap();
        let start = Instant::now();
        sandbox.workspace.commit(&worktree, "One").await.unwrap();
        let second = start.elapsed();
        let start = Instant::now();
        sandbox.workspace.commit(&worktree, "None").await.unwrap();
        println!(
            "{files} files: first commit {first:?} ({:?} a file), one changed {second:?}, none {:?}",
            first / files,
            start.elapsed()
        );
        each.push((files, first / files, second / files));
    }
    let (small, large) = (each[1], each[2]);
    assert!(
        large.1 < small.1 * 3,
        "a first commit grows worse than its files: {each:?}"
    );
    assert!(
        large.2 < small.2 * 3,
        "a later commit grows worse than its files: {each:?}"
    );
}
