//! E21: what agents do to their worktree's history by their own hands. Their work comes to the branch that was made for
//! them, the head comes back to it, and no commit that they made becomes unreachable, not even when the worktree goes.

use std::path::Path;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{Hold, Removal, Worktree};
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};

/// What an agent does; the commits that it made, in any order.
type Row = (&'static str, fn(&Sandbox, &Worktree) -> Vec<String>);

fn commit(sandbox: &Sandbox, path: &Path, file: &str) -> String {
    sandbox.write(path, file, "agent's\n");
    sandbox.git(path, &["add", file]);
    sandbox.git(path, &["commit", "-qm", file]);
    sandbox.git(path, &["rev-parse", "HEAD"])
}

const ROWS: &[Row] = &[
    ("commits itself", |sandbox, worktree| {
        vec![commit(sandbox, &worktree.path, "one")]
    }),
    ("switches to a branch of its own", |sandbox, worktree| {
        let first = commit(sandbox, &worktree.path, "one");
        sandbox.git(&worktree.path, &["switch", "-qc", "mine"]);
        vec![first, commit(sandbox, &worktree.path, "two")]
    }),
    (
        "switches to a branch from elsewhere, and back to nothing",
        |sandbox, worktree| {
            let first = commit(sandbox, &worktree.path, "one");
            sandbox.git(&worktree.path, &["switch", "-q", "--detach", &worktree.base]);
            vec![first, commit(sandbox, &worktree.path, "two")]
        },
    ),
    ("detaches its head", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["switch", "-q", "--detach"]);
        vec![commit(sandbox, &worktree.path, "one")]
    }),
    (
        "detaches its head, commits and comes back",
        |sandbox, worktree| {
            sandbox.git(&worktree.path, &["switch", "-q", "--detach"]);
            let left = commit(sandbox, &worktree.path, "left");
            sandbox.git(&worktree.path, &["switch", "-q", &worktree.branch]);
            vec![left, commit(sandbox, &worktree.path, "one")]
        },
    ),
    ("amends", |sandbox, worktree| {
        let first = commit(sandbox, &worktree.path, "one");
        sandbox.write(&worktree.path, "two", "2\n");
        sandbox.git(&worktree.path, &["add", "two"]);
        sandbox.git(&worktree.path, &["commit", "-q", "--amend", "--no-edit"]);
        vec![first, sandbox.git(&worktree.path, &["rev-parse", "HEAD"])]
    }),
    ("rebases", |sandbox, worktree| {
        let path = &worktree.path;
        let first = commit(sandbox, path, "one");
        sandbox.git(path, &["switch", "-qc", "onto", &worktree.base]);
        let onto = commit(sandbox, path, "onto");
        sandbox.git(path, &["switch", "-q", &worktree.branch]);
        sandbox.git(path, &["rebase", "-q", "onto"]);
        vec![first, onto, sandbox.git(path, &["rev-parse", "HEAD"])]
    }),
    ("resets its branch away", |sandbox, worktree| {
        let first = commit(sandbox, &worktree.path, "one");
        sandbox.git(&worktree.path, &["reset", "-q", "--hard", &worktree.base]);
        vec![first, commit(sandbox, &worktree.path, "two")]
    }),
    ("deletes its branch", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["switch", "-q", "--detach"]);
        let first = commit(sandbox, &worktree.path, "one");
        sandbox.git(&worktree.path, &["branch", "-qD", &worktree.branch]);
        vec![first]
    }),
    ("stashes", |sandbox, worktree| {
        let first = commit(sandbox, &worktree.path, "one");
        sandbox.write(&worktree.path, "one", "stashed\n");
        sandbox.git(&worktree.path, &["stash", "-q"]);
        vec![first, sandbox.git("repo", &["rev-parse", "refs/stash"])]
    }),
];

#[tokio::test]
async fn e21_nothing_that_an_agent_committed_becomes_unreachable() {
    for program in gits().into_values() {
        for (name, acts) in ROWS {
            let sandbox = Sandbox::with(program.clone(), &[]);
            let before = sandbox.persons();
            let worktree = sandbox.lease("a").await;
            let made = acts(&sandbox, &worktree);
            sandbox.write(&worktree.path, "left", "left\n");
            let committed = sandbox.workspace.commit(&worktree, "Left").await.unwrap();
            assert_eq!(sandbox.branch_tip(&worktree.branch), committed.tip, "{name}");
            assert_eq!(
                sandbox.content(&committed.tip, "left").as_deref(),
                Some("left\n"),
                "{name}"
            );
            let head = sandbox.git(&worktree.path, &["symbolic-ref", "--short", "HEAD"]);
            assert_eq!(head, worktree.branch, "{name}");
            sandbox
                .workspace
                .merge(&sandbox.merge_of(&committed.tip))
                .await
                .unwrap();
            let removal = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
            assert_eq!(removal, Removal::Removed, "{name}");
            let kept = sandbox.git("repo", &["rev-list", "--all", "--reflog"]);
            for commit in made {
                assert!(
                    kept.lines().any(|line| line == commit),
                    "{name}: {commit} is lost"
                );
            }
            // The stash is the person's too: all but it is as it was.
            if *name != "stashes" {
                assert_eq!(sandbox.persons(), before, "{name}");
            }
            sandbox.fsck();
        }
    }
}

/// A rebase that stands still: what is there is committed, and the worktree is kept for whoever goes on with it.
#[tokio::test]
async fn e21_a_rebase_that_stands_still_holds_its_worktree() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let path = &worktree.path;
    let ours = commit(&sandbox, path, "README");
    sandbox.git(path, &["switch", "-qc", "onto", &worktree.base]);
    sandbox.write(path, "README", "theirs\n");
    sandbox.git(path, &["commit", "-qam", "Theirs"]);
    sandbox.git(path, &["switch", "-q", &worktree.branch]);
    assert!(!sandbox.try_git(path, &["rebase", "-q", "onto"]).status.success());
    let committed = sandbox.workspace.commit(&worktree, "Left").await.unwrap();
    assert_eq!(sandbox.branch_tip(&worktree.branch), committed.tip);
    let kept = sandbox.git("repo", &["rev-list", "--all"]);
    assert!(
        kept.lines().any(|line| line == ours),
        "kept before the branch moved"
    );
    let removal = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
    let Removal::Held(holds) = removal else {
        panic!("it is held")
    };
    assert!(holds.contains(&Hold::Operation("rebase".into())), "{holds:?}");
}
