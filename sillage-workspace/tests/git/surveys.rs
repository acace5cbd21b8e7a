//! What is told of the worktrees that are left.

use std::process::Command;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{Hold, Worktree};
use sillage_testkit::workspace_suite::Scene;
use sillage_workspace::{Content, Process, Sign, Surveyed};

use crate::sandbox::{Sandbox, gits};

async fn survey(sandbox: &Sandbox) -> Vec<Surveyed> {
    sandbox
        .workspace
        .survey(&sandbox.at("repo"), |run| format!("sillage/{run}"))
        .await
        .unwrap()
}

async fn content(sandbox: &Sandbox) -> Option<Content> {
    survey(sandbox).await[0].content.clone()
}

fn commit(sandbox: &Sandbox, worktree: &Worktree, file: &str, text: &str) -> String {
    sandbox.write(&worktree.path, file, text);
    sandbox.git(&worktree.path, &["add", "-A"]);
    sandbox.git(&worktree.path, &["commit", "-qm", file]);
    sandbox.branch_tip(&worktree.branch)
}

fn in_main(sign: Sign) -> Option<Content> {
    Some(Content {
        into: "main".to_owned(),
        sign,
    })
}

#[tokio::test]
async fn e21_a_worktree_whose_entry_was_deleted_is_still_told() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "precious", "x\n");
    let admin = sandbox.git(&worktree.path, &["rev-parse", "--absolute-git-dir"]);
    std::fs::remove_dir_all(admin.trim()).unwrap();
    let told = survey(&sandbox).await.remove(0);
    assert_eq!(
        (told.run.as_str(), told.step.as_str(), told.worktree),
        ("r1", "a", None)
    );
    assert!(matches!(&told.held_by[..], [Hold::Changed(why)] if why.contains("git does not list it")));
    assert!(told.present && told.disk_bytes > 0 && worktree.path.join("precious").exists());
}

#[tokio::test]
async fn a_survey_tells_where_what_and_since_when() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let before = survey(&sandbox).await.remove(0);
    assert_eq!((before.run.as_str(), before.step.as_str()), ("r1", "a"));
    assert_eq!(before.worktree, Some(worktree.clone()));
    assert!(before.present && before.made.is_some() && before.held_by.is_empty());
    sandbox.write(&worktree.path, "new", &"x".repeat(1 << 16));
    let mut child = Command::new("sleep")
        .arg("60")
        .current_dir(&worktree.path)
        .spawn()
        .unwrap();
    let after = survey(&sandbox).await.remove(0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(after.disk_bytes >= before.disk_bytes + (1 << 16));
    let pid = child.id();
    let name = "sleep".to_owned();
    assert_eq!(after.processes, [Process { pid, name }]);
    let holds = [Hold::Files(vec!["new".into()]), Hold::Process(pid)];
    assert_eq!(after.held_by, holds);
    sandbox.lose(&worktree.path);
    let lost = survey(&sandbox).await.remove(0);
    assert!(!lost.present && lost.disk_bytes == 0 && lost.held_by.is_empty());
    assert_eq!(sandbox.workspace.repositories().unwrap(), [sandbox.at("repo")]);
}

/// E16: what git does not call merged though its content is there, by the sign that says so. None is a proof: the
/// worktree is held all the same.
#[tokio::test]
async fn e16_content_that_was_merged_otherwise_is_told_by_its_sign() {
    for program in gits().into_values() {
        // Picked one by one, on a history that went on.
        let sandbox = Sandbox::with(program.clone(), &[]);
        let worktree = sandbox.lease("a").await;
        let one = commit(&sandbox, &worktree, "one", "1\n");
        assert_eq!(content(&sandbox).await, None);
        let two = commit(&sandbox, &worktree, "two", "2\n");
        sandbox.put("repo/README", "went on\n");
        sandbox.git("repo", &["commit", "-qam", "Went on"]);
        sandbox.git("repo", &["cherry-pick", &one]);
        assert_eq!(content(&sandbox).await, None, "partly picked");
        sandbox.git("repo", &["cherry-pick", &two]);
        assert_eq!(content(&sandbox).await, in_main(Sign::EachChange));
        assert_eq!(survey(&sandbox).await[0].held_by, [Hold::Commits(2)]);

        // Squashed (G9).
        let sandbox = Sandbox::with(program.clone(), &[]);
        let worktree = sandbox.lease("a").await;
        commit(&sandbox, &worktree, "one", "1\n");
        commit(&sandbox, &worktree, "two", "2\n");
        sandbox.git("repo", &["merge", "-q", "--squash", &worktree.branch]);
        sandbox.git("repo", &["commit", "-qm", "Squashed"]);
        assert_eq!(content(&sandbox).await, in_main(Sign::SameFiles));
        // And edited later: only the one change tells it.
        sandbox.put("repo/one", "edited\n");
        sandbox.git("repo", &["commit", "-qam", "Edited"]);
        assert_eq!(content(&sandbox).await, in_main(Sign::OneChange));
        assert_eq!(survey(&sandbox).await[0].held_by, [Hold::Commits(2)]);

        // Merged by the person's own hand, not by ours.
        let sandbox = Sandbox::with(program.clone(), &[]);
        let worktree = sandbox.lease("a").await;
        commit(&sandbox, &worktree, "one", "1\n");
        sandbox.git(
            "repo",
            &["merge", "-q", "--no-ff", "-m", "Merge", &worktree.branch],
        );
        assert_eq!(content(&sandbox).await, in_main(Sign::Commits));
    }
}

/// E16: an empty history of merges has no change that `git cherry` would look at.
#[tokio::test]
async fn e16_a_merge_with_changes_of_its_own_is_not_taken_for_nothing() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.put("repo/side", "x\n");
    sandbox.git("repo", &["add", "-A"]);
    sandbox.git("repo", &["commit", "-qm", "Side"]);
    sandbox.git(&worktree.path, &["merge", "-q", "--no-ff", "--no-commit", "main"]);
    commit(&sandbox, &worktree, "evil", "only in the merge\n");
    assert_eq!(content(&sandbox).await, None);
    // Not either when every other commit was picked.
    let one = commit(&sandbox, &worktree, "one", "1\n");
    sandbox.put("repo/README", "went on\n");
    sandbox.git("repo", &["commit", "-qam", "Went on"]);
    sandbox.git("repo", &["cherry-pick", &one]);
    assert_eq!(content(&sandbox).await, None);
}

/// E20: a repository that was moved is found where it is now, and its worktrees are told as what they became.
#[tokio::test]
async fn e20_worktrees_of_a_moved_repository_are_told() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "new", "new\n");
    std::fs::rename(sandbox.at("repo"), sandbox.at("moved")).unwrap();
    let found = sandbox
        .workspace
        .survey(&sandbox.at("moved"), |run| format!("sillage/{run}"))
        .await
        .unwrap();
    assert!(
        matches!(&found[0].held_by[..], [Hold::Changed(why)] if why.contains("no longer a worktree")),
        "{found:?}"
    );
    assert!(
        sandbox.workspace.lost(&worktree).await.is_err(),
        "the repository is not there"
    );
    assert!(worktree.path.join("new").is_file());
}
