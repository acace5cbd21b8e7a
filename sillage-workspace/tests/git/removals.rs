//! R19: what holds a worktree, by git.md's table of what git itself would lose.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{Hold, Removal, WorkspaceError, Worktree};
use sillage_core::time::Timestamp;
use sillage_testkit::workspace_suite::Scene;
use sillage_workspace::{Emptied, Insistence, TakenAway};

use crate::sandbox::{Sandbox, gits};

async fn holds(sandbox: &Sandbox, worktree: &Worktree) -> Vec<Hold> {
    let listed = sandbox
        .workspace
        .list(&sandbox.at("repo"), "sillage/r1")
        .await
        .unwrap();
    let listed = listed
        .into_iter()
        .find(|state| state.path == worktree.path)
        .unwrap()
        .held_by;
    match sandbox.workspace.remove(worktree, "sillage/r1").await.unwrap() {
        Removal::Held(holds) => {
            assert_eq!(holds, listed, "the list and the removal agree");
            assert!(worktree.path.is_dir());
            holds
        }
        Removal::Removed => panic!("removed, though it held {listed:?}"),
    }
}

fn files(names: &[&str]) -> Vec<Hold> {
    vec![Hold::Files(names.iter().map(PathBuf::from).collect())]
}

#[tokio::test]
async fn files_that_git_would_lose_hold_a_worktree() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        sandbox.git("repo", &["config", "status.showUntrackedFiles", "no"]);

        let ignored = sandbox.lease("ignored").await;
        sandbox.write(&ignored.path, "ignored", "secret\n");
        assert_eq!(holds(&sandbox, &ignored).await, files(&["ignored"]));

        for flag in ["--assume-unchanged", "--skip-worktree"] {
            let flagged = sandbox.lease(flag.trim_start_matches('-')).await;
            sandbox.git(&flagged.path, &["update-index", flag, "README"]);
            sandbox.write(&flagged.path, "README", "edited\n");
            assert_eq!(holds(&sandbox, &flagged).await, files(&["README"]));
        }

        let hidden = sandbox.lease("hidden").await;
        sandbox.write(&hidden.path, "new", "new\n");
        assert_eq!(holds(&sandbox, &hidden).await, files(&["new"]));

        let excluded = sandbox.lease("excluded").await;
        sandbox.put("repo/.git/info/exclude", "local\n");
        sandbox.write(&excluded.path, "local", "x\n");
        assert_eq!(holds(&sandbox, &excluded).await, files(&["local"]));
    }
}

#[tokio::test]
async fn heads_operations_and_locks_hold_a_worktree() {
    let sandbox = Sandbox::newest();
    let merging = sandbox.lease("merging").await;
    let head = sandbox.git(
        &merging.path,
        &["rev-parse", "--path-format=absolute", "--git-path", "MERGE_HEAD"],
    );
    fs::write(head, format!("{}\n", merging.base)).unwrap();
    assert_eq!(holds(&sandbox, &merging).await, [Hold::Operation("merge".into())]);

    let detached = sandbox.lease("detached").await;
    sandbox.git(&detached.path, &["switch", "-q", "--detach"]);
    sandbox.git(
        &detached.path,
        &["commit", "-q", "--allow-empty", "-m", "On nothing"],
    );
    let tip = sandbox.git(&detached.path, &["rev-parse", "HEAD"]);
    let expected = [Hold::OtherBranch(format!("detached at {tip}")), Hold::Commits(1)];
    assert_eq!(holds(&sandbox, &detached).await, expected);
    // Not by losing the folder either: the entry is the commit's only name.
    sandbox.lose(&detached.path);
    let removal = sandbox.workspace.remove(&detached, "sillage/r1").await.unwrap();
    assert_eq!(removal, Removal::Held(vec![expected[0].clone()]));

    let elsewhere = sandbox.lease("elsewhere").await;
    sandbox.git(&elsewhere.path, &["switch", "-qc", "mine"]);
    assert_eq!(
        holds(&sandbox, &elsewhere).await,
        [Hold::OtherBranch("mine".into())]
    );

    let locked = sandbox.lease("locked").await;
    sandbox.git(
        "repo",
        &[
            "worktree",
            "lock",
            "--reason",
            "mine",
            locked.path.to_str().unwrap(),
        ],
    );
    assert_eq!(holds(&sandbox, &locked).await, [Hold::Lock("mine".into())]);
}

/// G9: a squash is not proof.
#[tokio::test]
async fn squashed_work_is_not_taken_for_merged_g9() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "new", "new\n");
    let tip = sandbox.workspace.commit(&worktree, "Work").await.unwrap().tip;
    sandbox.git("repo", &["switch", "-qc", "sillage/r1"]);
    sandbox.git("repo", &["merge", "-q", "--squash", &tip]);
    sandbox.git("repo", &["commit", "-qm", "Squashed"]);
    assert_eq!(holds(&sandbox, &worktree).await, [Hold::Commits(1)]);
}

/// R19: nobody's ground is taken from under their feet.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_works_there_holds_a_worktree() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let mut child = Command::new("sleep")
        .arg("60")
        .current_dir(worktree.path.join("src"))
        .spawn()
        .unwrap();
    let found = holds(&sandbox, &worktree).await;
    child.kill().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    assert_eq!(found, [Hold::Process(pid)]);
    assert_eq!(
        sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap(),
        Removal::Removed
    );
}

/// G11: only what git lists and lies in our folder.
#[tokio::test]
async fn only_our_own_worktrees_are_listed_and_removed_g11() {
    let sandbox = Sandbox::newest();
    let before = sandbox.persons();
    sandbox.git("repo", &["worktree", "add", "-q", "-b", "theirs", "../theirs"]);
    let ours = sandbox.lease("a").await;
    let listed = sandbox
        .workspace
        .list(&sandbox.at("repo"), "sillage/r1")
        .await
        .unwrap();
    assert_eq!(
        listed.iter().map(|state| &state.path).collect::<Vec<_>>(),
        [&ours.path]
    );
    for path in [
        sandbox.at("theirs"),
        sandbox.at("repo"),
        ours.path.join(".."),
        ours.path.join("src"),
    ] {
        let theirs = Worktree {
            path: path.clone(),
            branch: "theirs".into(),
            ..ours.clone()
        };
        let answer = sandbox.workspace.remove(&theirs, "sillage/r1").await;
        assert!(
            matches!(answer, Err(WorkspaceError::Unsupported { .. })),
            "{}: {answer:?}",
            path.display()
        );
        assert!(path.is_dir());
    }
    // In our folder, and not a worktree.
    let stray = sandbox.at(ours.path.with_file_name("stray"));
    fs::create_dir(&stray).unwrap();
    let answer = sandbox
        .workspace
        .remove(
            &Worktree {
                path: stray.clone(),
                ..ours.clone()
            },
            "sillage/r1",
        )
        .await;
    assert!(matches!(answer, Err(WorkspaceError::WorktreeLost { .. })) && stray.is_dir());
    // Another's entry whose folder is away is not removed along with ours.
    fs::rename(sandbox.at("theirs"), sandbox.at("away")).unwrap();
    assert_eq!(
        sandbox.workspace.remove(&ours, "sillage/r1").await.unwrap(),
        Removal::Removed
    );
    assert!(sandbox.git("repo", &["worktree", "list"]).contains("theirs"));
    assert_eq!(sandbox.persons(), before);
}

/// Rule 8: the trash keeps it for seven days, with a note of what it was; then whoever works with worktrees next
/// empties it.
#[tokio::test]
async fn rule8_what_is_removed_can_be_found_in_the_trash_for_seven_days() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let now = Arc::new(AtomicI64::new(20_000 * DAY));
    let clock = Arc::clone(&now);
    let sandbox = Sandbox::newest().with_clock(move || Timestamp(clock.load(Ordering::Relaxed)));
    let worktree = sandbox.lease("a").await;
    let answer = sandbox
        .workspace
        .take_away(&worktree, "sillage/r1", Insistence::None)
        .await;
    let Ok(TakenAway::Gone(gone)) = answer else {
        panic!("{answer:?}")
    };
    let (place, until) = gone.trash.unwrap();
    assert_eq!((until, gone.rescued), (Timestamp(20_007 * DAY), vec![]));
    assert_eq!(fs::read_to_string(place.join("README")).unwrap(), "read me\n");
    assert_eq!(sandbox.branch_tip(&worktree.branch), worktree.base);
    assert!(!sandbox.git("repo", &["worktree", "list"]).contains("r1/a"));
    let trash = sandbox.workspace.trash().await.unwrap();
    let note = trash[0].note.clone().unwrap();
    assert_eq!((trash.len(), &trash[0].path, trash[0].until), (1, &place, until));
    assert_eq!((note.run.as_str(), note.step.as_str()), ("r1", "a"));
    assert_eq!((note.path, note.repository), (worktree.path, sandbox.at("repo")));

    now.fetch_add(7 * DAY - 1, Ordering::Relaxed);
    assert_eq!(sandbox.workspace.empty_trash().await.unwrap(), Emptied::default());
    assert!(place.exists());
    now.fetch_add(1, Ordering::Relaxed);
    let emptied = sandbox.workspace.empty_trash().await.unwrap();
    assert_eq!((emptied.folders, emptied.disk_bytes), (1, trash[0].disk_bytes));
    assert_eq!(fs::read_dir(sandbox.at("data/trash")).unwrap().count(), 0);
}

/// G10: three agents commit in loops while other worktrees come and go.
#[tokio::test(flavor = "multi_thread")]
async fn commits_go_on_while_worktrees_are_removed_g10() {
    let sandbox = Arc::new(Sandbox::newest());
    let mut agents = Vec::new();
    for step in ["a", "b", "c"] {
        let worktree = sandbox.lease(step).await;
        let sandbox = Arc::clone(&sandbox);
        agents.push(tokio::spawn(async move {
            for round in 0..5 {
                sandbox.write(&worktree.path, "mine", &format!("{round}\n"));
                sandbox.git(&worktree.path, &["add", "-A"]);
                sandbox.git(&worktree.path, &["commit", "-qm", "Agent's own"]);
                sandbox.write(&worktree.path, "left", &format!("{round}\n"));
                sandbox.workspace.commit(&worktree, "Left").await.unwrap();
            }
            worktree
        }));
    }
    for number in 0..5 {
        let worktree = sandbox.lease(&format!("passing{number}")).await;
        assert_eq!(
            sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap(),
            Removal::Removed
        );
    }
    for agent in agents {
        let worktree = agent.await.unwrap();
        assert_eq!(
            sandbox
                .workspace
                .commit(&worktree, "Nothing")
                .await
                .unwrap()
                .commits,
            10
        );
    }
    sandbox.fsck();
}
