//! Repositories of every kind: support, or a clear refusal before launch (R20).

use std::fs;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{MergeOutcome, Removal, WorkspaceError};
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};

/// Lease, commit, merge, restart, remove.
async fn a_whole_story(sandbox: &Sandbox) {
    let workspace = &sandbox.workspace;
    let found = workspace.inspect(&sandbox.at("repo")).await.unwrap().unwrap();
    assert_eq!(found.head, sandbox.head());
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "left", "left\n");
    workspace.commit(&worktree, "Work").await.unwrap();
    let restarted = workspace.restart(&worktree, "r1", "a").await.unwrap();
    assert!(restarted.rescued.is_some());
    sandbox.write(&worktree.path, "new", "new\n");
    let tip = workspace.commit(&worktree, "Work").await.unwrap().tip;
    let merged = workspace.merge(&sandbox.merge_of(&tip)).await.unwrap();
    assert!(matches!(merged, MergeOutcome::Merged(_)));
    assert_eq!(
        workspace.remove(&worktree, "sillage/r1").await.unwrap(),
        Removal::Removed
    );
    sandbox.fsck();
}

#[tokio::test]
async fn sha256_repositories_are_supported() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &["--object-format=sha256"]);
        assert_eq!(sandbox.head().len(), 64);
        a_whole_story(&sandbox).await;
    }
}

#[tokio::test]
async fn reftable_repositories_are_supported_where_git_knows_them() {
    let all = gits();
    let able = all.iter().filter(|(version, _)| **version >= (2, 45));
    for (_, program) in able {
        let sandbox = Sandbox::with(program.clone(), &["--ref-format=reftable"]);
        a_whole_story(&sandbox).await;
    }
    // An older git says that it does not know them.
    let older = all.iter().find(|(version, _)| **version < (2, 45));
    if let (Some((_, older)), Some((_, newer))) =
        (older, all.iter().find(|(version, _)| **version >= (2, 45)))
    {
        let sandbox = Sandbox::with(newer.clone(), &["--ref-format=reftable"]);
        let workspace = sillage_workspace::GitWorkspace::with_git(older, &sandbox.at("other")).unwrap();
        let error = workspace
            .with_home(&sandbox.at("home"))
            .inspect(&sandbox.at("repo"))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("refstorage"), "{error}");
    }
}

#[tokio::test]
async fn shallow_clones_are_supported() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        sandbox.git("repo", &["commit", "-q", "--allow-empty", "-m", "Second"]);
        let url = format!("file://{}", sandbox.at("repo").display());
        fs::rename(sandbox.at("repo"), sandbox.at("origin")).unwrap();
        sandbox.git(
            ".",
            &[
                "clone",
                "-q",
                "--depth=1",
                &url.replace("/repo", "/origin"),
                "repo",
            ],
        );
        assert!(sandbox.at("repo/.git/shallow").is_file());
        a_whole_story(&sandbox).await;
    }
}

/// A checkout that is a worktree itself, whose git folder lies elsewhere.
#[tokio::test]
async fn a_linked_worktree_of_the_persons_is_supported() {
    let sandbox = Sandbox::newest();
    sandbox.git("repo", &["worktree", "add", "-q", "-b", "feature", "../linked"]);
    let found = sandbox
        .workspace
        .inspect(&sandbox.at("linked/src"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (&found.root, &found.common_dir),
        (&sandbox.at("linked"), &sandbox.at("repo/.git"))
    );
    let mut wish = sandbox.wish("a");
    wish.repository = found.root;
    let worktree = sandbox.workspace.lease(&wish).await.unwrap();
    sandbox.write(&worktree.path, "new", "new\n");
    assert_eq!(
        sandbox.workspace.commit(&worktree, "Work").await.unwrap().commits,
        1
    );
}

#[tokio::test]
async fn line_ends_are_those_of_the_repository() {
    let sandbox = Sandbox::newest();
    sandbox.git("repo", &["config", "core.autocrlf", "true"]);
    let worktree = sandbox.lease("a").await;
    assert_eq!(
        fs::read_to_string(worktree.path.join("README")).unwrap(),
        "read me\r\n"
    );
    let committed = sandbox.workspace.commit(&worktree, "Nothing").await.unwrap();
    assert_eq!(committed.tip, worktree.base);
    assert_eq!(
        sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap(),
        Removal::Removed
    );
}

#[tokio::test]
async fn a_detached_head_is_supported_and_the_rest_refused_by_name() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program.clone(), &[]);
        sandbox.git("repo", &["switch", "-q", "--detach"]);
        let found = sandbox
            .workspace
            .inspect(&sandbox.at("repo"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!((found.branch, found.head), (None, sandbox.head()));

        let refused = |folder: &'static str| {
            let sandbox = &sandbox;
            async move {
                match sandbox.workspace.inspect(&sandbox.at(folder)).await {
                    Err(WorkspaceError::Unsupported { why, .. }) => why,
                    other => panic!("{folder}: {other:?}"),
                }
            }
        };
        sandbox.git(".", &["init", "-q", "--bare", "bare"]);
        assert!(refused("bare").await.contains("bare"));
        assert!(refused("repo/.git").await.contains("within its git folder"));
        fs::create_dir(sandbox.at("none")).unwrap();
        assert_eq!(
            sandbox.workspace.inspect(&sandbox.at("none")).await.unwrap(),
            None
        );
        sandbox.git(".", &["init", "-q", "unborn"]);
        assert!(refused("unborn").await.contains("no commit yet"));
    }
}

/// The person's own global filters apply, as Git LFS needs.
#[tokio::test]
async fn global_filters_of_the_person_apply() {
    let sandbox = Sandbox::newest();
    sandbox.put("repo/.gitattributes", "*.up filter=up\n");
    sandbox.git("repo", &["add", "-A"]);
    sandbox.git("repo", &["commit", "-qm", "Attributes"]);
    sandbox.git("repo", &["config", "--global", "filter.up.clean", "tr a-z A-Z"]);
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "x.up", "text\n");
    let committed = sandbox.workspace.commit(&worktree, "Work").await.unwrap();
    assert_eq!(sandbox.content(&committed.tip, "x.up").as_deref(), Some("TEXT\n"));
}

/// What the person's own checkout leaves out is in worktrees, and can be added to.
#[tokio::test]
async fn sparse_checkouts_are_supported_e18() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        sandbox.put("repo/docs/a", "a\n");
        sandbox.git("repo", &["add", "-A"]);
        sandbox.git("repo", &["commit", "-qm", "Docs"]);
        sandbox.git("repo", &["sparse-checkout", "set", "src"]);
        assert!(!sandbox.at("repo/docs").exists());
        let before = sandbox.persons();
        let worktree = sandbox.lease("a").await;
        assert!(worktree.path.join("docs/a").is_file());
        sandbox.put(worktree.path.join("docs/b"), "b\n");
        sandbox.git(&worktree.path, &["add", "docs/b"]);
        sandbox.git(&worktree.path, &["commit", "-qm", "Agent's own"]);
        let committed = sandbox.workspace.commit(&worktree, "Nothing").await.unwrap();
        let changed = ["diff", "--name-status", &worktree.base, &committed.tip];
        assert_eq!(sandbox.git("repo", &changed), "A\tdocs/b");
        assert_eq!(sandbox.persons(), before);
    }
}

/// An agent's own sparse checkout removes nothing, and does not hide what it changed.
#[tokio::test]
async fn an_agents_own_sparse_checkout_removes_nothing_e18() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        sandbox.put("repo/docs/a", "a\n");
        sandbox.put("repo/docs/b", "b\n");
        sandbox.git("repo", &["add", "-A"]);
        sandbox.git("repo", &["commit", "-qm", "Docs"]);
        let worktree = sandbox.lease("a").await;
        sandbox.git(&worktree.path, &["sparse-checkout", "set", "src"]);
        assert!(!worktree.path.join("docs").exists());
        sandbox.put(worktree.path.join("docs/b"), "written all the same\n");
        std::fs::remove_file(worktree.path.join("src/lib.rs")).unwrap();
        let committed = sandbox.workspace.commit(&worktree, "Work").await.unwrap();
        let changed = ["diff", "--name-status", &worktree.base, &committed.tip];
        assert_eq!(sandbox.git("repo", &changed), "M\tdocs/b\nD\tsrc/lib.rs");
        sandbox
            .workspace
            .merge(&sandbox.merge_of(&committed.tip))
            .await
            .unwrap();
        assert_eq!(
            sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap(),
            Removal::Removed
        );
    }
}

#[tokio::test]
async fn a_branch_in_the_way_of_ours_is_refused_by_name_r20() {
    for program in gits().into_values() {
        for name in ["sillage", "sillage/steps"] {
            let sandbox = Sandbox::with(program.clone(), &[]);
            sandbox.git("repo", &["branch", name]);
            let error = sandbox.workspace.inspect(&sandbox.at("repo")).await.unwrap_err();
            let words = format!("its branch `{name}` leaves no room");
            assert!(error.to_string().contains(&words), "{error}");
            // Branches below are those of runs.
            sandbox.git("repo", &["branch", "-m", name, "sillage/r0"]);
            assert!(sandbox.workspace.inspect(&sandbox.at("repo")).await.is_ok());
        }
    }
}

/// What the person has not committed, however it is so; their index is not written.
#[tokio::test]
async fn uncommitted_files_of_the_person_are_counted_r15() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let count = || async {
            let found = sandbox.workspace.inspect(&sandbox.at("repo")).await.unwrap();
            found.unwrap().uncommitted
        };
        assert_eq!(count().await, 0);
        sandbox.put("repo/README", "changed\n");
        sandbox.put("repo/ignored", "ignored\n");
        sandbox.put("repo/new/one", "1\n");
        sandbox.put("repo/new/two", "2\n");
        sandbox.git("repo", &["rm", "-q", "--cached", "src/lib.rs"]);
        let before = sandbox.persons();
        assert_eq!(
            count().await,
            4,
            "README, two new ones, and one that is no longer known"
        );
        assert_eq!(sandbox.persons(), before);
    }
}
