//! Making worktrees: crashes, hands and crowds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::WorkspaceError;
use sillage_testkit::workspace_suite::Scene;
use sillage_workspace::GitWorkspace;

use crate::sandbox::{Sandbox, gits};

/// Two processes' worth of workspaces at one data folder; git loses some when two are made at once.
#[tokio::test(flavor = "multi_thread")]
async fn e10_sixty_four_at_once_all_succeed() {
    let sandbox = Sandbox::newest();
    let before = sandbox.persons();
    let (program, busy) = (sandbox.at("watched/git"), sandbox.at("busy"));
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2\" = 'worktree add' ] || exec '{git}' \"$@\"\nmkdir '{busy}' || echo two >> '{busy}.overlaps'\n\
         '{git}' \"$@\"\ncode=$?\nrmdir '{busy}'\nexit $code\n",
        git = sandbox.program.display(),
        busy = busy.display(),
    );
    fs::set_permissions(
        sandbox.put("watched/git", &script),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let watched = || {
        GitWorkspace::with_git(&program, &sandbox.at("data"))
            .unwrap()
            .with_home(&sandbox.at("home"))
    };
    let workspaces = [Arc::new(watched()), Arc::new(watched())];
    // Every fourth is left over from a process that was killed: its branch is there, its worktree is not.
    for number in (0..64).step_by(4) {
        let worktree = sandbox.lease(&format!("a{number}")).await;
        let record = find(&sandbox.at("data/git"), &format!("a{number}.json"));
        let told = fs::read_to_string(&record).unwrap();
        fs::write(&record, told.replace("\"made\":true", "\"made\":false")).unwrap();
        fs::remove_dir_all(&worktree.path).unwrap();
        if number % 8 == 0 {
            sandbox.git("repo", &["worktree", "prune"]);
        }
    }
    let mut leases = Vec::new();
    for number in 0..64 {
        let workspace = Arc::clone(&workspaces[number % 2]);
        let wish = sandbox.wish(&format!("a{number}"));
        leases.push(tokio::spawn(async move { workspace.lease(&wish).await }));
    }
    for lease in leases {
        let worktree = lease.await.unwrap().unwrap();
        assert!(!worktree.branch.ends_with("-2"), "{}", worktree.branch);
        assert_eq!(
            fs::read_to_string(worktree.path.join("README")).unwrap(),
            "read me\n"
        );
        assert_eq!(sandbox.branch_tip(&worktree.branch), worktree.base);
    }
    assert!(!sandbox.at("busy.overlaps").exists(), "two were made at once");
    assert_eq!(sandbox.git("repo", &["worktree", "list"]).lines().count(), 65);
    assert_eq!(sandbox.persons(), before);
}

#[tokio::test]
async fn a_worktree_is_as_git_would_have_made_it() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let before = sandbox.persons();
        let worktree = sandbox.lease("a").await;
        let status = sandbox.git(&worktree.path, &["status", "--porcelain=v2", "--branch"]);
        assert_eq!(
            status,
            format!(
                "# branch.oid {}\n# branch.head {}",
                worktree.base, worktree.branch
            )
        );
        assert_eq!(
            sandbox.persons(),
            before,
            "nor are the repository's settings changed"
        );
    }
}

/// Every state that a killed process can leave is completed by asking again.
#[tokio::test]
async fn a_half_made_worktree_is_completed() {
    let sandbox = Sandbox::newest();
    let wish = sandbox.wish("a");
    let worktree = sandbox.workspace.lease(&wish).await.unwrap();
    let record = find(&sandbox.at("data/git"), "a.json");
    let unmade = fs::read_to_string(&record)
        .unwrap()
        .replace("\"made\":true", "\"made\":false");
    let admin = sandbox.git(
        &worktree.path,
        &["rev-parse", "--path-format=absolute", "--git-dir"],
    );

    // Files half written.
    fs::write(&record, &unmade).unwrap();
    fs::remove_file(worktree.path.join("README")).unwrap();
    assert_eq!(sandbox.workspace.lease(&wish).await.unwrap(), worktree);
    assert!(worktree.path.join("README").is_file());

    // git killed while it made the entry: its lock is there, its folder is not.
    fs::write(&record, &unmade).unwrap();
    fs::remove_dir_all(&worktree.path).unwrap();
    fs::write(Path::new(&admin).join("locked"), "initializing").unwrap();
    assert_eq!(sandbox.workspace.lease(&wish).await.unwrap(), worktree);

    // Only the branch.
    fs::write(&record, &unmade).unwrap();
    fs::remove_dir_all(&worktree.path).unwrap();
    sandbox.git("repo", &["worktree", "prune"]);
    assert_eq!(sandbox.workspace.lease(&wish).await.unwrap(), worktree);

    // Only the record.
    fs::write(&record, &unmade).unwrap();
    fs::remove_dir_all(&worktree.path).unwrap();
    sandbox.git("repo", &["worktree", "prune"]);
    sandbox.git("repo", &["branch", "-qD", &worktree.branch]);
    assert_eq!(sandbox.workspace.lease(&wish).await.unwrap(), worktree);

    // Only the record, and somebody took the name since.
    fs::write(&record, &unmade).unwrap();
    fs::remove_dir_all(&worktree.path).unwrap();
    sandbox.git("repo", &["worktree", "prune"]);
    sandbox.git("repo", &["commit", "-q", "--allow-empty", "-m", "Theirs"]);
    let theirs = sandbox.head();
    sandbox.git("repo", &["branch", "-qf", &worktree.branch, "HEAD"]);
    let fresh = sandbox.workspace.lease(&wish).await.unwrap();
    assert_eq!(fresh.branch, format!("{}-2", wish.branch));
    assert_eq!(
        (
            sandbox.branch_tip(&wish.branch),
            sandbox.branch_tip(&fresh.branch)
        ),
        (theirs, wish.base)
    );
}

fn find(folder: &Path, name: &str) -> PathBuf {
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap() == name {
                return path;
            }
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    panic!("no {name}");
}

/// A worktree locked by a person (its disk is unplugged, say) is not replaced.
#[tokio::test]
async fn a_lost_worktree_that_someone_locked_is_left_alone() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.git(
        "repo",
        &[
            "worktree",
            "lock",
            "--reason",
            "on a stick",
            worktree.path.to_str().unwrap(),
        ],
    );
    sandbox.lose(&worktree.path);
    let error = sandbox.workspace.lease(&sandbox.wish("a")).await.unwrap_err();
    assert!(error.to_string().contains("on a stick"), "{error}");
}

/// G4 by another way: branches below the wished name leave no room for it.
#[tokio::test]
async fn a_name_with_branches_below_it_is_taken() {
    let sandbox = Sandbox::newest();
    let wish = sandbox.wish("a");
    sandbox.git("repo", &["branch", &format!("{}/theirs", wish.branch)]);
    let worktree = sandbox.workspace.lease(&wish).await.unwrap();
    assert_eq!(worktree.branch, format!("{}-2", wish.branch));
}

/// E8: git keeps no branch below another one. It is told, and nothing is made.
#[tokio::test]
async fn e8_a_name_below_another_branch_is_refused() {
    let sandbox = Sandbox::newest();
    let mut wish = sandbox.wish("aa");
    sandbox.workspace.lease(&wish).await.unwrap();
    let before = sandbox.git("repo", &["for-each-ref"]);
    wish.step = "aa/b".to_owned();
    wish.branch = format!("{}/b", wish.branch);
    let error = sandbox.workspace.lease(&wish).await.unwrap_err();
    assert!(error.to_string().contains("sillage/steps/r1/aa"), "{error}");
    assert_eq!(sandbox.git("repo", &["for-each-ref"]), before);
    // The folders lie side by side all the same.
    wish.branch = "sillage/subs/r1/aa/b".to_owned();
    let worktree = sandbox.workspace.lease(&wish).await.unwrap();
    let name = worktree.path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("aa+b"), "{name}");
}

/// G5: the base is where the person is, not the default branch.
#[tokio::test]
async fn a_worktree_starts_from_its_base_g5() {
    let sandbox = Sandbox::newest();
    sandbox.git("repo", &["switch", "-qc", "feature"]);
    sandbox.put("repo/feature", "f\n");
    sandbox.git("repo", &["add", "-A"]);
    sandbox.git("repo", &["commit", "-qm", "Feature"]);
    let found = sandbox
        .workspace
        .inspect(&sandbox.at("repo/src"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.branch.as_deref(), &found.head),
        (Some("feature"), &sandbox.head())
    );
    let worktree = sandbox.lease("a").await;
    assert_eq!(fs::read_to_string(worktree.path.join("feature")).unwrap(), "f\n");
}

#[tokio::test]
async fn bad_names_and_commits_are_refused() {
    let sandbox = Sandbox::newest();
    let before = sandbox.git("repo", &["for-each-ref"]);
    let good = sandbox.wish("a");
    let bad = [
        ("run", "../up"),
        ("run", ""),
        ("step", "a/../b"),
        ("step", "-a"),
        ("branch", "-f"),
        ("branch", "a..b"),
        ("base", "HEAD"),
        ("base", "--all"),
        ("base", "0123456789012345678901234567890123456789"),
    ];
    for (field, value) in bad {
        let mut wish = good.clone();
        match field {
            "run" => wish.run = value.to_owned(),
            "step" => wish.step = value.to_owned(),
            "branch" => wish.branch = value.to_owned(),
            _ => wish.base = value.to_owned(),
        }
        let answer = sandbox.workspace.lease(&wish).await;
        assert!(
            matches!(answer, Err(WorkspaceError::Git { .. })),
            "{field} {value}: {answer:?}"
        );
    }
    assert_eq!(sandbox.git("repo", &["for-each-ref"]), before);
}

/// A repository that went away is not replaced by one above it.
#[tokio::test]
async fn a_repository_above_is_not_taken_for_the_one_that_was_g1() {
    let sandbox = Sandbox::newest();
    let wish = sandbox.wish("a");
    sandbox.git(".", &["init", "-q"]);
    fs::remove_dir_all(sandbox.at("repo/.git")).unwrap();
    let error = sandbox.workspace.lease(&wish).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::Unsupported { .. }), "{error}");
}
