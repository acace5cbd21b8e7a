//! Removing what something holds, when a person insists: nothing that a commit can hold is lost.

use std::fs;
use std::process::Command;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{Hold, Worktree};
use sillage_testkit::workspace_suite::Scene;
use sillage_workspace::{Gone, Insistence, TakenAway};

use crate::sandbox::{Sandbox, gits};

async fn take_away(sandbox: &Sandbox, worktree: &Worktree, insistence: Insistence) -> TakenAway {
    sandbox
        .workspace
        .take_away(worktree, "sillage/r1", insistence)
        .await
        .unwrap()
}

async fn gone(sandbox: &Sandbox, worktree: &Worktree, insistence: Insistence) -> Gone {
    match take_away(sandbox, worktree, insistence).await {
        TakenAway::Gone(gone) => gone,
        TakenAway::Held(holds) => panic!("held by {holds:?}"),
    }
}

fn rescue(number: u32) -> String {
    format!("refs/sillage/rescue/r1/a/{number}")
}

#[tokio::test]
async fn r19_ignored_files_do_not_hold_where_they_are_said_not_to() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "ignored", "built\n");
    sandbox.write(&worktree.path, "new", "new\n");
    assert_eq!(
        take_away(&sandbox, &worktree, Insistence::IgnoredFiles).await,
        TakenAway::Held(vec![Hold::Files(vec!["new".into()])])
    );
    fs::remove_file(worktree.path.join("new")).unwrap();
    let gone = gone(&sandbox, &worktree, Insistence::IgnoredFiles).await;
    assert_eq!(gone.rescued, Vec::<String>::new());
    let (trash, _) = gone.trash.unwrap();
    assert_eq!(fs::read_to_string(trash.join("ignored")).unwrap(), "built\n");
}

#[tokio::test]
async fn r19_insisting_keeps_all_that_a_commit_can_hold() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let before = sandbox.persons();
        let worktree = sandbox.lease("a").await;
        let path = &worktree.path;
        sandbox.write(path, "committed", "1\n");
        sandbox.git(path, &["add", "committed"]);
        sandbox.git(path, &["commit", "-qm", "On its branch"]);
        sandbox.git(path, &["switch", "-q", "--detach"]);
        sandbox.git(path, &["commit", "-q", "--allow-empty", "-m", "Detached"]);
        sandbox.write(path, "both", "staged\n");
        sandbox.git(path, &["add", "both"]);
        sandbox.write(path, "both", "edited\n");
        sandbox.write(path, "new", "new\n");
        sandbox.write(path, "ignored", "secret\n");
        sandbox.git(path, &["init", "-q", "inner"]);
        let tip = sandbox.branch_tip(&worktree.branch);
        let detached = sandbox.git(path, &["rev-parse", "HEAD"]);

        let gone = gone(&sandbox, &worktree, Insistence::Everything).await;
        assert_eq!(gone.rescued, [rescue(1), rescue(2)]);
        let content = |number: u32, file: &str| {
            let commit = sandbox.tip(&rescue(number)).unwrap();
            sandbox.content(&commit, file)
        };
        assert_eq!(content(1, "both").as_deref(), Some("edited\n"));
        assert_eq!(content(1, "new").as_deref(), Some("new\n"));
        assert_eq!(content(1, "committed").as_deref(), Some("1\n"));
        assert_eq!(content(2, "both").as_deref(), Some("staged\n"));
        assert_eq!(content(1, "ignored"), None);
        let kept = sandbox.tip(&rescue(1)).unwrap();
        sandbox.git("repo", &["merge-base", "--is-ancestor", &detached, &kept]);
        let (trash, _) = gone.trash.unwrap();
        assert_eq!(fs::read_to_string(trash.join("ignored")).unwrap(), "secret\n");
        assert!(trash.join("inner/.git/HEAD").is_file());
        assert_eq!(
            sandbox.branch_tip(&worktree.branch),
            tip,
            "a branch is never deleted"
        );
        assert!(!path.exists());
        assert_eq!(
            sandbox.git("repo", &["worktree", "list"]).lines().count(),
            1,
            "git's entry is gone"
        );
        assert_eq!(sandbox.persons(), before);
        sandbox.git("repo", &["gc", "-q", "--prune=now"]);
        sandbox.fsck();
        let trashed = sandbox.workspace.trash().await.unwrap();
        assert_eq!(trashed[0].note.clone().unwrap().rescued, gone.rescued);
    }
}

/// What was under way, its commits and what was stashed away for it, is reachable afterwards.
#[tokio::test]
async fn r19_insisting_keeps_what_an_operation_names() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let path = &worktree.path;
    sandbox.git(path, &["switch", "-qc", "side"]);
    sandbox.write(path, "README", "theirs\n");
    sandbox.git(path, &["commit", "-qam", "Theirs"]);
    let theirs = sandbox.git(path, &["rev-parse", "HEAD"]);
    sandbox.git(path, &["switch", "-q", &worktree.branch]);
    sandbox.write(path, "README", "ours\n");
    sandbox.git(path, &["commit", "-qam", "Ours"]);
    assert!(!sandbox.try_git(path, &["merge", "-q", "side"]).status.success());
    sandbox.git(path, &["branch", "-qD", "side"]);
    let gone = gone(&sandbox, &worktree, Insistence::Everything).await;
    let reachable = |commit: &str| {
        gone.rescued.iter().any(|name| {
            let ancestor = ["merge-base", "--is-ancestor", commit, name];
            sandbox.try_git("repo", &ancestor).status.success()
        })
    };
    assert!(reachable(&theirs), "{:?}", gone.rescued);
    sandbox.git("repo", &["gc", "-q", "--prune=now"]);
    sandbox.fsck();
}

/// E21: commits that only the log of the worktree's head knows would go with git's entry.
#[tokio::test]
async fn e21_commits_that_a_head_left_are_kept_by_a_removal() {
    for init in [&[][..], &["--ref-format=reftable"]] {
        let (version, program) = gits().into_iter().next_back().unwrap();
        if version < (2, 45) && !init.is_empty() {
            continue;
        }
        let sandbox = Sandbox::with(program, init);
        let worktree = sandbox.lease("a").await;
        let path = &worktree.path;
        sandbox.git(path, &["switch", "-q", "--detach"]);
        sandbox.git(path, &["commit", "-q", "--allow-empty", "-m", "Left behind"]);
        let left = sandbox.git(path, &["rev-parse", "HEAD"]);
        sandbox.git(path, &["switch", "-q", &worktree.branch]);
        let gone = gone(&sandbox, &worktree, Insistence::None).await;
        assert_eq!(gone.rescued, [rescue(1)]);
        assert_eq!(sandbox.tip(&rescue(1)), Some(left));
    }
}

/// E21: an amended commit stays in the log of its branch, which stays: no reference is made for each.
#[tokio::test]
async fn e21_amending_on_its_own_branch_leaves_no_rescues() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let path = &worktree.path;
    sandbox.git(path, &["commit", "-q", "--allow-empty", "-m", "First"]);
    sandbox.git(
        path,
        &["commit", "-q", "--allow-empty", "--amend", "-m", "Second"],
    );
    let tip = sandbox.branch_tip(&worktree.branch);
    sandbox.git("repo", &["branch", "sillage/r1", &tip]);
    let gone = gone(&sandbox, &worktree, Insistence::None).await;
    assert_eq!(gone.rescued, Vec::<String>::new());
    let log = sandbox.git("repo", &["log", "-g", "--format=%s", &worktree.branch]);
    assert!(log.lines().any(|subject| subject == "First"), "{log}");
}

/// E21: references of the worktree's own go with git's entry.
#[tokio::test]
async fn e21_references_of_the_worktrees_own_are_kept() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let path = &worktree.path;
    let tree = sandbox.git(path, &["rev-parse", "HEAD^{tree}"]);
    let commit = sandbox.git(path, &["commit-tree", "-m", "Aside", &tree]);
    sandbox.git(path, &["update-ref", "refs/worktree/aside", &commit]);
    let gone = gone(&sandbox, &worktree, Insistence::None).await;
    assert_eq!(gone.rescued, [rescue(1)]);
    assert_eq!(sandbox.tip(&rescue(1)), Some(commit));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn r19_insisting_takes_no_ground_from_under_a_process_and_no_lock_of_anothers() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "new", "new\n");
    let mut child = Command::new("sleep")
        .arg("60")
        .current_dir(&worktree.path)
        .spawn()
        .unwrap();
    let held = take_away(&sandbox, &worktree, Insistence::Everything).await;
    child.kill().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    assert_eq!(held, TakenAway::Held(vec![Hold::Process(pid)]));

    let path = worktree.path.to_str().unwrap();
    sandbox.git("repo", &["worktree", "lock", "--reason", "mine", path]);
    let held = take_away(&sandbox, &worktree, Insistence::Everything).await;
    assert_eq!(held, TakenAway::Held(vec![Hold::Lock("mine".into())]));
    sandbox.git("repo", &["worktree", "unlock", path]);
    assert!(worktree.path.join("new").is_file());
    assert_eq!(
        gone(&sandbox, &worktree, Insistence::Everything).await.rescued,
        [rescue(1)]
    );
}

/// G3: the next that needs a worktree repairs what a hand removed, and nobody else's entry.
#[tokio::test]
async fn g3_entries_of_missing_worktrees_of_ours_are_removed_and_no_others() {
    let sandbox = Sandbox::newest();
    let (lost, detached) = (sandbox.lease("lost").await, sandbox.lease("detached").await);
    let locked = sandbox.lease("locked").await;
    sandbox.git(&detached.path, &["switch", "-q", "--detach"]);
    sandbox.git(&detached.path, &["commit", "-q", "--allow-empty", "-m", "X"]);
    sandbox.git("repo", &["worktree", "lock", locked.path.to_str().unwrap()]);
    sandbox.git("repo", &["worktree", "add", "-q", "-b", "theirs", "../theirs"]);
    fs::remove_dir_all(sandbox.at("theirs")).unwrap();
    for worktree in [&lost, &detached, &locked] {
        sandbox.lose(&worktree.path);
    }
    sandbox.lease("next").await;
    let listed = sandbox.git("repo", &["worktree", "list", "--porcelain"]);
    let has = |path: &str| listed.lines().any(|line| line.ends_with(path));
    assert!(!has("/r1/lost"), "{listed}");
    for path in ["/r1/detached", "/r1/locked", "/theirs", "/r1/next"] {
        assert!(has(path), "{path}: {listed}");
    }
    assert_eq!(sandbox.branch_tip(&lost.branch), lost.base);
}

/// A crash between the move to the trash and the end of git's entry.
#[tokio::test]
async fn a_removal_that_was_cut_is_completed() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    fs::rename(&worktree.path, sandbox.at("data/trash/5-x-r1-a-0")).unwrap();
    assert_eq!(gone(&sandbox, &worktree, Insistence::None).await, Gone::default());
    assert_eq!(sandbox.git("repo", &["worktree", "list"]).lines().count(), 1);
    // And once more, for whoever was not told.
    assert_eq!(
        sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap(),
        sillage_core::ports::workspace::Removal::Removed
    );
}
