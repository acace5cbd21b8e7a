//! A merge begun in a worktree, as the agent's own git sees it (R17); a look at the checkout (G6).

use std::fs;
use std::path::{Path, PathBuf};

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{MergeBegun, MergeOutcome, MergeWanted, Worktree};
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};

/// `theirs` changes the repository and is merged; then `ours` does in another worktree, and the merge is begun there.
async fn clash(
    sandbox: &Sandbox,
    theirs: impl Fn(&Path),
    ours: impl Fn(&Path),
) -> (Worktree, MergeWanted, MergeBegun) {
    let (first, second) = (sandbox.lease("a").await, sandbox.lease("b").await);
    theirs(&first.path);
    ours(&second.path);
    let tip = sandbox.workspace.commit(&first, "Theirs").await.unwrap().tip;
    sandbox.workspace.merge(&sandbox.merge_of(&tip)).await.unwrap();
    let tip = sandbox.workspace.commit(&second, "Ours").await.unwrap().tip;
    let wish = sandbox.merge_of(&tip);
    let begun = sandbox.workspace.begin_merge(&second, &wish).await.unwrap();
    (second, wish, begun)
}

fn write(name: &'static str, content: &'static str) -> impl Fn(&Path) {
    move |folder| fs::write(folder.join(name), content).unwrap()
}

fn remove(name: &'static str) -> impl Fn(&Path) {
    move |folder| fs::remove_file(folder.join(name)).unwrap()
}

async fn left(sandbox: &Sandbox, worktree: &Worktree, begun: &MergeBegun) -> Vec<String> {
    sandbox
        .workspace
        .unresolved(worktree, &begun.files)
        .await
        .unwrap()
}

/// Commits what is there and merges it; the tip.
async fn merged(sandbox: &Sandbox, worktree: &Worktree) -> String {
    let tip = sandbox.workspace.commit(worktree, "Resolve").await.unwrap().tip;
    match sandbox.workspace.merge(&sandbox.merge_of(&tip)).await.unwrap() {
        MergeOutcome::Merged(merged) => merged,
        MergeOutcome::Conflict(files) => panic!("it conflicts again: {files:?}"),
    }
}

#[tokio::test]
async fn r17_the_agents_own_git_sees_the_merge_and_can_conclude_it() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let (worktree, wish, begun) = clash(
            &sandbox,
            |folder| {
                fs::write(folder.join("README"), "theirs\n").unwrap();
                fs::write(folder.join("new"), "new\n").unwrap();
            },
            write("README", "ours\n"),
        )
        .await;
        assert_eq!(begun.files, ["README"]);
        let status = sandbox.git(&worktree.path, &["status", "--porcelain"]);
        assert_eq!(status, "UU README\nA  new", "in conflict, and the rest is staged");
        assert_eq!(
            sandbox.git(&worktree.path, &["rev-parse", "MERGE_HEAD"]),
            begun.onto
        );
        let marked = fs::read_to_string(worktree.path.join("README")).unwrap();
        assert!(
            marked.starts_with("<<<<<<< ") && marked.contains("ours\n=======\ntheirs\n"),
            "{marked}"
        );
        assert_eq!(left(&sandbox, &worktree, &begun).await, ["README"]);
        sandbox.write(&worktree.path, "README", "both\n");
        sandbox.git(&worktree.path, &["add", "README"]);
        assert!(left(&sandbox, &worktree, &begun).await.is_empty());
        sandbox.git(&worktree.path, &["commit", "--quiet", "--no-edit"]);
        assert!(left(&sandbox, &worktree, &begun).await.is_empty());
        let parents = sandbox.git(&worktree.path, &["log", "-1", "--format=%P"]);
        assert_eq!(parents, format!("{} {}", wish.commit, begun.onto));
        let tip = merged(&sandbox, &worktree).await;
        assert_eq!(sandbox.content(&tip, "README").as_deref(), Some("both\n"));
        assert_eq!(sandbox.content(&tip, "new").as_deref(), Some("new\n"));
        assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "");
        sandbox.fsck();
    }
}

#[tokio::test]
async fn r17_marks_that_were_committed_are_still_a_conflict() {
    let sandbox = Sandbox::newest();
    let (worktree, _, begun) = clash(&sandbox, write("README", "theirs\n"), write("README", "ours\n")).await;
    sandbox.git(&worktree.path, &["commit", "--quiet", "--all", "--no-edit"]);
    assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "");
    assert_eq!(left(&sandbox, &worktree, &begun).await, ["README"]);
}

#[tokio::test]
async fn r17_a_file_that_one_side_removed_takes_a_choice() {
    let sandbox = Sandbox::newest();
    let (worktree, _, begun) = clash(&sandbox, remove("README"), write("README", "ours\n")).await;
    assert_eq!(begun.files, ["README"]);
    assert_eq!(
        left(&sandbox, &worktree, &begun).await,
        ["README"],
        "nothing in the file tells"
    );
    sandbox.git(&worktree.path, &["rm", "--quiet", "--force", "README"]);
    assert!(left(&sandbox, &worktree, &begun).await.is_empty());
    let tip = merged(&sandbox, &worktree).await;
    assert_eq!(sandbox.content(&tip, "README"), None);
    sandbox.fsck();
}

#[tokio::test]
async fn r17_bytes_that_show_no_marks_take_a_choice() {
    let sandbox = Sandbox::newest();
    let (worktree, _, begun) = clash(&sandbox, write("image", "\0theirs"), write("image", "\0ours")).await;
    assert_eq!(begun.files, ["image"]);
    assert_eq!(left(&sandbox, &worktree, &begun).await, ["image"]);
    sandbox.write(&worktree.path, "image", "\0both");
    sandbox.git(&worktree.path, &["add", "image"]);
    assert!(left(&sandbox, &worktree, &begun).await.is_empty());
    let tip = merged(&sandbox, &worktree).await;
    assert_eq!(sandbox.content(&tip, "image").as_deref(), Some("\0both"));
}

#[tokio::test]
async fn r17_a_merge_that_the_agent_aborted_conflicts_again() {
    let sandbox = Sandbox::newest();
    let (worktree, wish, begun) =
        clash(&sandbox, write("README", "theirs\n"), write("README", "ours\n")).await;
    sandbox.git(&worktree.path, &["merge", "--abort"]);
    assert!(
        left(&sandbox, &worktree, &begun).await.is_empty(),
        "no file shows one"
    );
    assert_eq!(
        sandbox.workspace.commit(&worktree, "Nothing").await.unwrap().tip,
        wish.commit
    );
    let outcome = sandbox.workspace.merge(&wish).await.unwrap();
    assert_eq!(outcome, MergeOutcome::Conflict(vec!["README".to_owned()]));
    assert_eq!(
        sandbox.workspace.begin_merge(&worktree, &wish).await.unwrap(),
        begun
    );
}

#[tokio::test]
async fn r17_ignored_files_in_the_way_of_the_merge_are_kept() {
    let sandbox = Sandbox::newest();
    let theirs = |folder: &Path| {
        fs::write(folder.join("README"), "theirs\n").unwrap();
        fs::write(folder.join(".gitignore"), "").unwrap();
        fs::write(folder.join("ignored"), "theirs\n").unwrap();
    };
    let ours = |folder: &Path| {
        fs::write(folder.join("README"), "ours\n").unwrap();
        fs::write(folder.join("ignored"), "a secret of ours\n").unwrap();
    };
    let (worktree, _, _) = clash(&sandbox, theirs, ours).await;
    assert_eq!(
        fs::read_to_string(worktree.path.join("ignored")).unwrap(),
        "theirs\n"
    );
    let kept = sandbox.content("refs/sillage/rescue/r1/b/1", "ignored");
    assert_eq!(kept.as_deref(), Some("a secret of ours\n"));
}

#[tokio::test]
async fn r17_given_up_the_worktree_is_clean_and_half_a_resolution_is_kept() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let (worktree, wish, _) =
            clash(&sandbox, write("README", "theirs\n"), write("README", "ours\n")).await;
        // The agent committed marks, and left more.
        sandbox.git(&worktree.path, &["commit", "--quiet", "--all", "--no-edit"]);
        sandbox.write(&worktree.path, "half", "half\n");
        let kept = sandbox
            .workspace
            .abandon_merge(&worktree, &wish.commit, "r1", "b")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(sandbox.content(&kept, "half").as_deref(), Some("half\n"));
        assert_eq!(sandbox.branch_tip(&worktree.branch), wish.commit);
        assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "");
        assert_eq!(sandbox.git(&worktree.path, &["rev-parse", "HEAD"]), wish.commit);
        assert!(
            !sandbox
                .try_git(&worktree.path, &["rev-parse", "MERGE_HEAD"])
                .status
                .success()
        );
        assert_eq!(
            fs::read_to_string(worktree.path.join("README")).unwrap(),
            "ours\n"
        );
        sandbox.fsck();
    }
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[tokio::test]
async fn g6_a_look_at_the_checkout_names_what_changes_and_leaves_no_trace() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        sandbox.put("repo/loose", "loose\n");
        sandbox.put("repo/src/lib.rs", "staged\n");
        sandbox.git("repo", &["add", "src/lib.rs"]);
        sandbox.put("repo/src/lib.rs", "changed\n");
        let persons = sandbox.persons();
        let look = async |also: &[PathBuf]| {
            sandbox
                .workspace
                .checkout(&sandbox.at("repo"), also)
                .await
                .unwrap()
        };
        let before = look(&[]).await;
        let also: Vec<PathBuf> = before.files.keys().cloned().collect();
        assert_eq!(also, paths(&["loose", "src/lib.rs"]));
        assert_eq!(sandbox.persons(), persons, "its index too");
        assert!(look(&also).await.changed_since(&before).is_empty());

        // The person commits what stood there: nothing was written to these files.
        sandbox.git("repo", &["commit", "--quiet", "--all", "--message", "Mine"]);
        assert!(look(&also).await.changed_since(&before).is_empty());

        sandbox.put("repo/README", "by an agent\n");
        sandbox.put("repo/new/file", "by an agent\n");
        sandbox.put("repo/loose", "by an agent\n");
        sandbox.put("repo/ignored", "never mind\n");
        fs::remove_file(sandbox.at("repo/.gitignore")).unwrap();
        let changed = look(&also).await.changed_since(&before);
        // Without its rule the ignored file is a new one.
        assert_eq!(
            changed,
            paths(&[".gitignore", "README", "ignored", "loose", "new/file"])
        );
    }
}

#[tokio::test]
async fn g6_an_index_that_does_not_stand_alone_is_no_hindrance() {
    let sandbox = Sandbox::newest();
    sandbox.git("repo", &["update-index", "--split-index"]);
    let persons = sandbox.persons();
    let before = sandbox
        .workspace
        .checkout(&sandbox.at("repo"), &[])
        .await
        .unwrap();
    sandbox.put("repo/README", "by an agent\n");
    let also: Vec<PathBuf> = before.files.keys().cloned().collect();
    let after = sandbox
        .workspace
        .checkout(&sandbox.at("repo"), &also)
        .await
        .unwrap();
    assert_eq!(after.changed_since(&before), paths(&["README"]));
    sandbox.put("repo/README", "read me\n");
    assert_eq!(sandbox.persons(), persons);
}
