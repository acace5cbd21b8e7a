//! What an agent puts in the place of its worktree's `.git`.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::WorkspaceError;
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};
use crate::vectors::{ATTRIBUTES, Scope};

/// The `.git` of a worktree is the agent's to write: what it says is checked, and not followed, by any call.
#[tokio::test]
async fn e3_another_git_folder_in_a_worktree_is_not_followed_g1() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let hostile = sandbox.at("hostile");
        sandbox.put("hostile/HEAD", "ref: refs/heads/main\n");
        for folder in ["objects", "refs"] {
            fs::create_dir_all(hostile.join(folder)).unwrap();
        }
        sandbox.plant_hooks(&hostile.join("hooks"));
        sandbox.put("hostile/config", "[core]\n\trepositoryformatversion = 0\n");
        sandbox.plant_settings(Scope::Own(&hostile));
        let before = sandbox.persons();
        for step in ["file", "hostile-file", "folder", "link", "hostile-link", "fifo"] {
            let worktree = sandbox.lease(step).await;
            let link = worktree.path.join(".git");
            fs::remove_file(&link).unwrap();
            match step {
                "file" => {
                    fs::write(&link, format!("gitdir: {}\n", sandbox.at("repo/.git").display())).unwrap()
                }
                "hostile-file" => fs::write(&link, format!("gitdir: {}\n", hostile.display())).unwrap(),
                "folder" => drop(
                    Command::new("cp")
                        .arg("-r")
                        .args([&hostile, &link])
                        .status()
                        .unwrap(),
                ),
                "link" => symlink(sandbox.at("repo/.git"), &link).unwrap(),
                "hostile-link" => symlink(&hostile, &link).unwrap(),
                _ => drop(Command::new("mkfifo").arg(&link).status().unwrap()),
            }
            fs::write(worktree.path.join("new"), "new\n").unwrap();
            fs::write(worktree.path.join(".gitattributes"), ATTRIBUTES).unwrap();
            let workspace = &sandbox.workspace;
            let lost = |error: WorkspaceError| error.to_string().starts_with("worktree lost: ");
            assert!(
                lost(workspace.commit(&worktree, "Work").await.unwrap_err()),
                "{step}"
            );
            assert!(workspace.remove(&worktree, "sillage/r1").await.is_err(), "{step}");
            assert!(
                lost(workspace.lease(&sandbox.wish(step)).await.unwrap_err()),
                "{step}"
            );
            let listed = workspace.list(&sandbox.at("repo"), "sillage/r1").await.unwrap();
            let state = listed.iter().find(|state| state.path == worktree.path).unwrap();
            assert!(!state.held_by.is_empty(), "{step}");
            assert!(workspace.inspect(&sandbox.at("repo")).await.is_ok(), "{step}");
            assert!(worktree.path.join("new").is_file(), "{step}");
            let again = workspace.restart(&worktree, "r1", step).await.unwrap();
            assert!(again.worktree.path != worktree.path && worktree.path.join("new").is_file());
            assert_eq!(sandbox.marks(), [] as [String; 0], "{step}");
        }
        assert_eq!(sandbox.persons(), before);
    }
}
