//! What an agent puts in the place of its worktree's `.git`.

use std::fs;

use sillage_core::ports::Workspace;
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::Sandbox;

/// The `.git` of a worktree is the agent's to write: what it says is checked, and not followed.
#[tokio::test]
async fn e3_another_git_folder_in_a_worktree_is_not_followed_g1() {
    let sandbox = Sandbox::newest();
    let before = sandbox.persons();
    for (number, step) in ["file", "folder", "link"].into_iter().enumerate() {
        let worktree = sandbox.lease(step).await;
        let link = worktree.path.join(".git");
        fs::remove_file(&link).unwrap();
        match number {
            0 => fs::write(&link, format!("gitdir: {}\n", sandbox.at("repo/.git").display())).unwrap(),
            1 => drop(sandbox.git(&worktree.path, &["init", "-q"])),
            _ => std::os::unix::fs::symlink(sandbox.at("repo/.git"), &link).unwrap(),
        }
        fs::write(worktree.path.join("new"), "new\n").unwrap();
        let answer = sandbox.workspace.commit(&worktree, "Work").await;
        assert!(
            answer.unwrap_err().to_string().starts_with("worktree lost: "),
            "{step}"
        );
        assert!(sandbox.workspace.remove(&worktree, "sillage/r1").await.is_err());
        assert!(worktree.path.join("new").is_file(), "{step}");
        let again = sandbox.workspace.restart(&worktree, "r1", step).await.unwrap();
        assert!(again.worktree.path != worktree.path && worktree.path.join("new").is_file());
    }
    assert_eq!(sandbox.persons(), before);
}
