//! E15: worktrees that git takes for clean and merged and that are neither, by the rule of eight points that each
//! removal keeps (R19). Each row holds a worktree by itself.

use std::fs;
use std::path::PathBuf;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{Hold, Removal, Worktree};
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};

/// What a row does to a worktree, and what holds it then.
type Row = (&'static str, fn(&Sandbox, &Worktree) -> Vec<Hold>);

fn files(names: &[&str]) -> Vec<Hold> {
    vec![Hold::Files(names.iter().map(PathBuf::from).collect())]
}

fn nested(path: &str) -> Hold {
    Hold::NestedRepository(path.into())
}

/// A file in the worktree's own part of the git folder.
fn own_part(sandbox: &Sandbox, worktree: &Worktree, name: &str) -> PathBuf {
    sandbox
        .git(
            &worktree.path,
            &["rev-parse", "--path-format=absolute", "--git-path", name],
        )
        .into()
}

fn merge(sandbox: &Sandbox, commit: &str) {
    let repo = sandbox.at("repo");
    sandbox.git(&repo, &["branch", "-f", "sillage/r1", commit]);
}

const ROWS: &[Row] = &[
    ("rule1_a_lock", |sandbox, worktree| {
        let path = worktree.path.to_str().unwrap();
        sandbox.git("repo", &["worktree", "lock", "--reason", "mine", path]);
        vec![Hold::Lock("mine".into())]
    }),
    ("rule2_a_detached_head_with_a_commit", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["switch", "-q", "--detach"]);
        sandbox.git(&worktree.path, &["commit", "-q", "--allow-empty", "-m", "X"]);
        let tip = sandbox.git(&worktree.path, &["rev-parse", "HEAD"]);
        vec![Hold::OtherBranch(format!("detached at {tip}")), Hold::Commits(1)]
    }),
    ("rule2_a_branch_of_its_own", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["switch", "-qc", "mine"]);
        vec![Hold::OtherBranch("mine".into())]
    }),
    (
        "rule3_a_merge_under_way_with_nothing_changed",
        |sandbox, worktree| {
            fs::write(
                own_part(sandbox, worktree, "MERGE_HEAD"),
                format!("{}\n", worktree.base),
            )
            .unwrap();
            vec![Hold::Operation("merge".into())]
        },
    ),
    ("rule3_a_pick_under_way", |sandbox, worktree| {
        sandbox.git(
            &worktree.path,
            &["update-ref", "CHERRY_PICK_HEAD", &worktree.base],
        );
        vec![Hold::Operation("cherry-pick".into())]
    }),
    ("rule3_a_bisection_under_way", |sandbox, worktree| {
        fs::write(own_part(sandbox, worktree, "BISECT_LOG"), "x\n").unwrap();
        vec![Hold::Operation("bisect".into())]
    }),
    ("rule3_a_rebase_under_way", |sandbox, worktree| {
        fs::create_dir(own_part(sandbox, worktree, "rebase-merge")).unwrap();
        vec![Hold::Operation("rebase".into())]
    }),
    ("rule4_an_ignored_file", |sandbox, worktree| {
        sandbox.write(&worktree.path, "ignored", "secret\n");
        files(&["ignored"])
    }),
    ("rule4_a_file_excluded_by_the_repository", |sandbox, worktree| {
        sandbox.put("repo/.git/info/exclude", "local\n");
        sandbox.write(&worktree.path, "local", "x\n");
        files(&["local"])
    }),
    ("rule4_a_file_ignored_by_a_setting", |sandbox, worktree| {
        let list = sandbox.put("home/ignore", "mine\n");
        sandbox.git("repo", &["config", "core.excludesFile", list.to_str().unwrap()]);
        sandbox.write(&worktree.path, "mine", "x\n");
        files(&["mine"])
    }),
    ("rule4_an_edit_assumed_unchanged", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["update-index", "--assume-unchanged", "README"]);
        sandbox.write(&worktree.path, "README", "edited\n");
        files(&["README"])
    }),
    ("rule4_an_edit_with_skip_worktree", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["update-index", "--skip-worktree", "README"]);
        sandbox.write(&worktree.path, "README", "edited\n");
        files(&["README"])
    }),
    (
        "rule4_a_new_file_that_status_does_not_show",
        |sandbox, worktree| {
            sandbox.git("repo", &["config", "status.showUntrackedFiles", "no"]);
            sandbox.write(&worktree.path, "new", "new\n");
            files(&["new"])
        },
    ),
    ("rule4_an_edit_of_the_same_size_and_date", |sandbox, worktree| {
        let file = worktree.path.join("README");
        let date = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "READ ME\n").unwrap();
        let file = fs::File::options().write(true).open(&file).unwrap();
        file.set_modified(date).unwrap();
        sandbox.git("repo", &["config", "core.checkStat", "minimal"]);
        files(&["README"])
    }),
    ("rule4_a_name_of_another_case", |sandbox, worktree| {
        sandbox.git("repo", &["config", "core.ignoreCase", "true"]);
        sandbox.write(&worktree.path, "readme", "another file\n");
        if worktree.path.join("ReadMe").exists() {
            // The system does not tell them apart: it is the same file, and edited.
            return files(&["README"]);
        }
        files(&["readme"])
    }),
    ("rule4_what_is_staged_and_nowhere_else", |sandbox, worktree| {
        sandbox.write(&worktree.path, "README", "staged\n");
        sandbox.git(&worktree.path, &["add", "README"]);
        sandbox.write(&worktree.path, "README", "read me\n");
        files(&["README"])
    }),
    ("rule4_a_staged_file_that_was_deleted", |sandbox, worktree| {
        sandbox.write(&worktree.path, "new", "staged\n");
        sandbox.git(&worktree.path, &["add", "new"]);
        fs::remove_file(worktree.path.join("new")).unwrap();
        files(&["new"])
    }),
    ("rule5_a_repository_within", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["init", "-q", "inner"]);
        vec![nested("inner")]
    }),
    ("rule5_an_ignored_repository_within", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["init", "-q", "ignored"]);
        vec![nested("ignored")]
    }),
    (
        "rule5_a_link_to_a_commit_that_only_a_repository_within_had",
        |sandbox, worktree| {
            let link = format!("160000,{},inner", worktree.base);
            sandbox.git(&worktree.path, &["update-index", "--add", "--cacheinfo", &link]);
            sandbox.git(&worktree.path, &["commit", "-qm", "Link"]);
            fs::create_dir(worktree.path.join("inner")).unwrap();
            merge(sandbox, &worktree.branch);
            vec![nested("inner")]
        },
    ),
    (
        "rule5_a_submodules_repository_in_gits_entry",
        |sandbox, worktree| {
            let modules = own_part(sandbox, worktree, "HEAD").with_file_name("modules");
            fs::create_dir_all(modules.join("library")).unwrap();
            vec![nested(".git/modules/library")]
        },
    ),
    ("rule6_a_commit_that_is_not_merged", |sandbox, worktree| {
        sandbox.git(&worktree.path, &["commit", "-q", "--allow-empty", "-m", "X"]);
        vec![Hold::Commits(1)]
    }),
    (
        "rule6_a_commit_said_to_be_merged_by_a_replacement",
        |sandbox, worktree| {
            sandbox.git(&worktree.path, &["commit", "-q", "--allow-empty", "-m", "X"]);
            let tip = sandbox.branch_tip(&worktree.branch);
            sandbox.git("repo", &["replace", "--graft", &worktree.base, &tip]);
            merge(sandbox, "main");
            sandbox.git("repo", &["merge-base", "--is-ancestor", &tip, "sillage/r1"]);
            vec![Hold::Commits(1)]
        },
    ),
    (
        "rule6_a_commit_said_to_be_merged_by_a_graft",
        |sandbox, worktree| {
            sandbox.git(&worktree.path, &["commit", "-q", "--allow-empty", "-m", "X"]);
            let tip = sandbox.branch_tip(&worktree.branch);
            sandbox.put("repo/.git/info/grafts", &format!("{} {tip}\n", worktree.base));
            merge(sandbox, "main");
            sandbox.git("repo", &["merge-base", "--is-ancestor", &tip, "sillage/r1"]);
            vec![Hold::Commits(1)]
        },
    ),
    ("rule6_a_squash", |sandbox, worktree| {
        sandbox.write(&worktree.path, "new", "new\n");
        sandbox.git(&worktree.path, &["add", "new"]);
        sandbox.git(&worktree.path, &["commit", "-qm", "New"]);
        sandbox.git("repo", &["switch", "-qc", "sillage/r1"]);
        sandbox.git("repo", &["merge", "-q", "--squash", &worktree.branch]);
        sandbox.git("repo", &["commit", "-qm", "Squashed"]);
        vec![Hold::Commits(1)]
    }),
];

#[tokio::test]
async fn e15_each_liar_holds_its_worktree() {
    for program in gits().into_values() {
        for (name, lie) in ROWS {
            let sandbox = Sandbox::with(program.clone(), &[]);
            let worktree = sandbox.lease("a").await;
            let expected = lie(&sandbox, &worktree);
            let listed = sandbox
                .workspace
                .list(&sandbox.at("repo"), "sillage/r1")
                .await
                .unwrap();
            assert_eq!(listed[0].held_by, expected, "{name}, as listed");
            let removal = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
            assert_eq!(removal, Removal::Held(expected), "{name}");
            assert!(worktree.path.is_dir(), "{name}");
        }
    }
}

/// The rows above are not held by anything that every worktree has.
#[tokio::test]
async fn e15_a_worktree_that_nothing_holds_goes() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let worktree = sandbox.lease("a").await;
        sandbox.git(&worktree.path, &["commit", "-q", "--allow-empty", "-m", "X"]);
        merge(&sandbox, &worktree.branch);
        let removal = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
        assert_eq!(removal, Removal::Removed);
        assert!(!worktree.path.exists());
        sandbox.fsck();
    }
}

/// What a crash between a commit and its index leaves, and what an agent takes out of its index only.
#[tokio::test]
async fn rule4_an_index_that_is_behind_holds_nothing() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let worktree = sandbox.lease("a").await;
        let behind = own_part(&sandbox, &worktree, "index");
        let mut indexes = vec![fs::read(&behind).unwrap()];
        for round in ["one\n", "two\n"] {
            sandbox.write(&worktree.path, "README", round);
            sandbox.write(&worktree.path, "new", round);
            sandbox.workspace.commit(&worktree, "Work").await.unwrap();
            indexes.push(fs::read(&behind).unwrap());
        }
        merge(&sandbox, &worktree.branch);
        let holds = || async {
            let listed = sandbox.workspace.list(&sandbox.at("repo"), "sillage/r1").await;
            listed.unwrap()[0].held_by.clone()
        };
        for index in &indexes {
            fs::write(&behind, index).unwrap();
            assert_eq!(holds().await, []);
        }
        sandbox.git(&worktree.path, &["rm", "-q", "--cached", "README"]);
        assert_eq!(holds().await, []);
        let removal = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
        assert_eq!(removal, Removal::Removed);
    }
}

/// Rule 1: the folder is not what was made there any more.
#[tokio::test]
async fn rule1_a_folder_that_became_something_else_is_not_touched() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    fs::remove_file(worktree.path.join(".git")).unwrap();
    sandbox.git(&worktree.path, &["init", "-q"]);
    let listed = sandbox
        .workspace
        .list(&sandbox.at("repo"), "sillage/r1")
        .await
        .unwrap();
    assert!(
        matches!(&listed[0].held_by[..], [Hold::Changed(why)] if why.contains("another `.git`")),
        "{listed:?}"
    );
    let answer = sandbox.workspace.remove(&worktree, "sillage/r1").await;
    assert!(answer.is_err() && worktree.path.is_dir(), "{answer:?}");
}

/// One that cannot be looked at hides no other.
#[tokio::test]
async fn a_broken_worktree_is_told_beside_the_others() {
    let sandbox = Sandbox::newest();
    let (broken, whole) = (sandbox.lease("a").await, sandbox.lease("b").await);
    fs::write(own_part(&sandbox, &broken, "index"), "no index\n").unwrap();
    let listed = sandbox
        .workspace
        .list(&sandbox.at("repo"), "sillage/r1")
        .await
        .unwrap();
    let of = |path: &PathBuf| {
        let found = listed.iter().find(|state| state.path == *path);
        found.unwrap().held_by.clone()
    };
    assert!(matches!(&of(&broken.path)[..], [Hold::Changed(_)]), "{listed:?}");
    assert_eq!(of(&whole.path), []);
}
