//! Merging into the integration branch.

use std::sync::Arc;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{MergeOutcome, WorkspaceError};
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};

/// R16: moving a branch that is checked out would make the person's files undo the merge.
#[tokio::test]
async fn a_branch_that_is_checked_out_is_not_moved_r16() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "new", "new\n");
    let tip = sandbox.workspace.commit(&worktree, "Work").await.unwrap().tip;
    let mut wish = sandbox.merge_of(&tip);
    wish.into = "main".to_owned();
    let before = sandbox.persons();
    let error = sandbox.workspace.merge(&wish).await.unwrap_err();
    assert!(
        matches!(&error, WorkspaceError::Unsupported { path, .. } if *path == sandbox.at("repo")),
        "{error}"
    );
    assert_eq!(sandbox.persons(), before);
    assert_eq!(sandbox.git("repo", &["status", "--porcelain"]), "");
}

/// Every merge shows in the history, also where the branch could have been moved forward.
#[tokio::test]
async fn a_merge_is_a_commit_with_its_message() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let worktree = sandbox.lease("a").await;
        sandbox.write(&worktree.path, "new", "new\n");
        let tip = sandbox.workspace.commit(&worktree, "Work").await.unwrap().tip;
        let MergeOutcome::Merged(merged) = sandbox.workspace.merge(&sandbox.merge_of(&tip)).await.unwrap()
        else {
            panic!("a conflict")
        };
        let told = sandbox.git("repo", &["log", "-1", "--format=%s|%P|%an", &merged]);
        assert_eq!(
            told,
            format!("Merge an agent's work|{} {tip}|A Person", worktree.base)
        );
        sandbox.fsck();
    }
}

/// A graft that makes the work look merged is not believed.
#[tokio::test]
async fn a_replaced_commit_is_not_believed() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "new", "new\n");
    let tip = sandbox.workspace.commit(&worktree, "Work").await.unwrap().tip;
    sandbox.git("repo", &["branch", "sillage/r1"]);
    sandbox.git("repo", &["replace", "--graft", &worktree.base, &tip]);
    let merged = sandbox.workspace.merge(&sandbox.merge_of(&tip)).await.unwrap();
    let MergeOutcome::Merged(merged) = merged else {
        panic!("a conflict")
    };
    assert_ne!(merged, worktree.base);
    assert_eq!(sandbox.content(&merged, "new").as_deref(), Some("new\n"));
}

/// Many at once: each compare-and-swap that loses merges again, and no work is lost.
#[tokio::test(flavor = "multi_thread")]
async fn e12_eight_merges_at_once_lose_nothing() {
    let sandbox = Arc::new(Sandbox::newest());
    let mut merges = Vec::new();
    for number in 0..8 {
        let worktree = sandbox.lease(&format!("a{number}")).await;
        sandbox.write(&worktree.path, &format!("file{number}"), "x\n");
        let tip = sandbox.workspace.commit(&worktree, "Work").await.unwrap().tip;
        let sandbox = Arc::clone(&sandbox);
        merges.push(tokio::spawn(async move {
            sandbox.workspace.merge(&sandbox.merge_of(&tip)).await
        }));
    }
    for merge in merges {
        assert!(matches!(merge.await.unwrap().unwrap(), MergeOutcome::Merged(_)));
    }
    let files = sandbox.git("repo", &["ls-tree", "--name-only", "sillage/r1"]);
    assert_eq!(files.lines().filter(|name| name.starts_with("file")).count(), 8);
    sandbox.fsck();
}

/// E12: the branch is moved by somebody else between each look and each move of ours.
#[tokio::test(flavor = "multi_thread")]
async fn e12_a_branch_that_moves_meanwhile_is_merged_into_again() {
    let sandbox = Arc::new(Sandbox::newest());
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "new", "new\n");
    let tip = sandbox.workspace.commit(&worktree, "Work").await.unwrap().tip;
    sandbox.git("repo", &["branch", "sillage/r1"]);
    let tree = sandbox.git("repo", &["rev-parse", "HEAD^{tree}"]);
    let (over, mover) = (
        Arc::new(std::sync::atomic::AtomicBool::new(false)),
        Arc::clone(&sandbox),
    );
    let stop = Arc::clone(&over);
    let moving = tokio::task::spawn_blocking(move || {
        let mut moves = 0;
        // As many as a merge is tried at most, were each one lost.
        while moves < 20 && !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let old = mover.branch_tip("sillage/r1");
            let new = mover.git("repo", &["commit-tree", &tree, "-p", &old, "-m", "Theirs"]);
            let moved = mover.try_git("repo", &["update-ref", "refs/heads/sillage/r1", &new, &old]);
            moves += i32::from(moved.status.success());
        }
        moves
    });
    let merged = sandbox.workspace.merge(&sandbox.merge_of(&tip)).await.unwrap();
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    let moves = moving.await.unwrap();
    assert!(matches!(merged, MergeOutcome::Merged(_)), "{merged:?}");
    // Neither theirs nor ours is lost.
    let count = sandbox.git(
        "repo",
        &["rev-list", "--count", "--first-parent", "main..sillage/r1"],
    );
    assert_eq!(count, (moves + 1).to_string());
    assert_eq!(sandbox.content("sillage/r1", "new").as_deref(), Some("new\n"));
}

/// E13: somebody has the branch checked out, with edits, staged ones and a new file in the way.
#[tokio::test]
async fn e13_a_checkout_with_edits_is_left_as_it_is() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let worktree = sandbox.lease("a").await;
        sandbox.write(&worktree.path, "README", "theirs\n");
        sandbox.write(&worktree.path, "in-the-way", "theirs\n");
        let tip = sandbox.workspace.commit(&worktree, "Work").await.unwrap().tip;
        let mut wish = sandbox.merge_of(&tip);
        wish.into = "main".to_owned();
        sandbox.put("repo/README", "edited\n");
        sandbox.put("repo/in-the-way", "untracked\n");
        sandbox.put("repo/src/lib.rs", "staged\n");
        sandbox.git("repo", &["add", "src/lib.rs"]);
        sandbox.git("repo", &["branch", "sillage/r1"]);
        sandbox.git("repo", &["worktree", "add", "-q", "../second", "-b", "second"]);
        let before = (
            sandbox.persons(),
            sandbox.git("repo", &["status", "--porcelain"]),
            sandbox.head(),
        );
        for into in ["main", "second"] {
            wish.into = into.to_owned();
            let refused = sandbox.workspace.merge(&wish).await.unwrap_err();
            assert!(refused.to_string().contains("is checked out here"), "{refused}");
        }
        wish.into = "sillage/r1".to_owned();
        assert!(matches!(
            sandbox.workspace.merge(&wish).await.unwrap(),
            MergeOutcome::Merged(_)
        ));
        let after = (
            sandbox.persons(),
            sandbox.git("repo", &["status", "--porcelain"]),
            sandbox.head(),
        );
        assert_eq!(after, before);
        assert_eq!(sandbox.git("second", &["status", "--porcelain"]), "");
    }
}
