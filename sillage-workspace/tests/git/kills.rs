//! E11: git is killed at each of its renames and links. What it leaves is recognised, and the next call succeeds.
//! Needs `strace`; without it the test says so and passes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{MergeOutcome, Removal, WorkspaceError, Worktree};
use sillage_testkit::workspace_suite::Scene;
use sillage_workspace::GitWorkspace;

use crate::sandbox::Sandbox;

const CALLS: &str = "rename,renameat,renameat2,link,linkat";

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Lease,
    Commit,
    Merge,
    Restart,
    Remove,
}

impl Sandbox {
    /// A git that counts its calls, and runs the one of a given number under `strace`.
    fn watched_git(&self) -> PathBuf {
        let script = format!(
            "#!/bin/sh\nnumber=$(($(cat '{count}') + 1))\necho $number > '{count}'\nread call fault < '{arm}'\n\
             if [ $call = all ]; then exec strace -f -qq -o \"{log}.$number\" -e trace={CALLS} '{git}' \"$@\"; fi\n\
             if [ $call = $number ]; then exec strace -f -qq -o '{log}' -e \"$fault\" '{git}' \"$@\"; fi\n\
             exec '{git}' \"$@\"\n",
            count = self.at("count").display(),
            arm = self.at("arm").display(),
            log = self.at("log").display(),
            git = self.program.display(),
        );
        let program = self.put("watched/git", &script);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// A workspace that has called git for its version already: what is counted starts with the next call.
    async fn counted(&self, call: &str, fault: &str) -> GitWorkspace {
        fs::write(self.at("count"), "0").unwrap();
        fs::write(self.at("arm"), "none none\n").unwrap();
        let program = self.at("watched/git");
        let workspace = GitWorkspace::with_git(program, &self.at("data"))
            .unwrap()
            .with_home(&self.at("home"));
        workspace.inspect(&self.at("repo")).await.unwrap();
        fs::write(self.at("count"), "0").unwrap();
        fs::write(self.at("arm"), format!("{call} {fault}\n")).unwrap();
        workspace
    }

    /// How often each call of the last operation renamed or linked, by number.
    fn renames(&self) -> Vec<(usize, usize)> {
        let last: usize = fs::read_to_string(self.at("count"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let counts = (1..=last).map(|number| {
            let log = fs::read_to_string(self.at(format!("log.{number}"))).unwrap_or_default();
            (
                number,
                log.lines()
                    .filter(|line| line.contains("rename") || line.contains("link"))
                    .count(),
            )
        });
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Makes every lock file of git old, as after the time that a person needs to start again.
    fn age_locks(&self) -> Vec<PathBuf> {
        let locks = locks(&[self.at("repo/.git"), self.at("data")]);
        for lock in &locks {
            let hour_ago = SystemTime::now() - Duration::from_secs(3600);
            fs::File::options()
                .append(true)
                .open(lock)
                .unwrap()
                .set_modified(hour_ago)
                .unwrap();
        }
        locks
    }

    /// What the operation needs first.
    async fn prepared(&self, operation: Operation, step: &str) -> (Worktree, String) {
        let wish = self.wish(step);
        if operation == Operation::Lease {
            let none = Worktree {
                repository: wish.repository,
                path: PathBuf::new(),
                branch: wish.branch,
                base: wish.base,
            };
            return (none, String::new());
        }
        let worktree = self.lease(step).await;
        fs::write(worktree.path.join(format!("file-{step}")), "x\n").unwrap();
        if operation == Operation::Commit {
            // A head elsewhere has to be put back as well.
            self.git(&worktree.path, &["switch", "-q", "--detach"]);
            return (worktree, String::new());
        }
        let tip = self.workspace.commit(&worktree, "Work").await.unwrap().tip;
        match operation {
            Operation::Remove => {
                self.workspace.merge(&self.merge_of(&tip)).await.unwrap();
            }
            Operation::Restart => fs::write(worktree.path.join("left"), "left\n").unwrap(),
            Operation::Lease | Operation::Commit | Operation::Merge => {}
        }
        (worktree, tip)
    }

    /// Does it, and looks at what came of it.
    async fn done(
        &self,
        workspace: &GitWorkspace,
        operation: Operation,
        step: &str,
        (worktree, tip): &(Worktree, String),
    ) -> Result<(), WorkspaceError> {
        match operation {
            Operation::Lease => {
                let made = workspace.lease(&self.wish(step)).await?;
                assert_eq!(fs::read_to_string(made.path.join("README")).unwrap(), "read me\n");
                assert_eq!(made.branch, worktree.branch, "the name is not lost to a leftover");
                assert_eq!(self.git(&made.path, &["status", "--porcelain"]), "");
            }
            Operation::Commit => {
                let committed = workspace.commit(worktree, "Work").await?;
                assert_eq!(committed.commits, 1);
                assert_eq!(self.branch_tip(&worktree.branch), committed.tip);
                assert_eq!(self.git(&worktree.path, &["status", "--porcelain"]), "");
            }
            Operation::Merge => {
                let merged = workspace.merge(&self.merge_of(tip)).await?;
                let MergeOutcome::Merged(merged) = merged else {
                    panic!("{merged:?}")
                };
                assert!(self.content(&merged, &format!("file-{step}")).is_some());
            }
            Operation::Restart => {
                let restarted = workspace.restart(worktree, "r1", step).await?;
                // One that was killed late had nothing left to keep the second time.
                let rescued = restarted
                    .rescued
                    .unwrap_or_else(|| format!("refs/sillage/rescue/r1/{step}/1"));
                assert_eq!(self.content(&rescued, "left").as_deref(), Some("left\n"));
                assert_eq!(self.git(&worktree.path, &["status", "--porcelain"]), "");
            }
            Operation::Remove => {
                assert_eq!(workspace.remove(worktree, "sillage/r1").await?, Removal::Removed);
                assert!(!worktree.path.exists());
            }
        }
        Ok(())
    }
}

/// Lock files of git in these folders and below.
fn locks(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut left = folders.to_vec();
    let mut found = Vec::new();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|end| end == "lock") {
                found.push(path);
            }
        }
    }
    found
}

#[tokio::test]
async fn e11_a_git_that_is_killed_at_any_rename_leaves_nothing_in_the_way() {
    if !sillage_testkit::machine::traces() {
        return;
    }
    let sandbox = Sandbox::newest();
    sandbox.watched_git();
    let (mut kills, mut left) = (0, 0);
    for operation in [
        Operation::Lease,
        Operation::Commit,
        Operation::Merge,
        Operation::Restart,
        Operation::Remove,
    ] {
        let whole = format!("{operation:?}-whole").to_lowercase();
        let ready = sandbox.prepared(operation, &whole).await;
        let workspace = sandbox.counted("all", "none").await;
        sandbox.done(&workspace, operation, &whole, &ready).await.unwrap();
        for (call, count) in sandbox.renames() {
            for number in 1..=count {
                let step = format!("{operation:?}-{call}-{number}").to_lowercase();
                let ready = sandbox.prepared(operation, &step).await;
                let persons = sandbox.persons();
                let fault = format!("inject={CALLS}:signal=KILL:when={number}");
                let workspace = sandbox.counted(&call.to_string(), &fault).await;
                let killed = sandbox.done(&workspace, operation, &step, &ready).await;
                let was_killed = fs::read_to_string(sandbox.at("log"))
                    .unwrap_or_default()
                    .contains("SIGKILL");
                // It can be a call whose end does not matter, or that did fewer of them this time.
                assert!(killed.is_ok() || was_killed, "{step}: {killed:?}");
                kills += usize::from(was_killed);
                left += sandbox.age_locks().len();
                let workspace = sandbox.counted("none", "none").await;
                let again = sandbox.done(&workspace, operation, &step, &ready).await;
                assert!(again.is_ok(), "{step}: {again:?}");
                assert_eq!(sandbox.persons(), persons, "{step}");
                let rest = locks(&[sandbox.at("repo/.git"), sandbox.at("data")]);
                assert_eq!(rest, Vec::<PathBuf>::new(), "{step}");
                let _ = fs::remove_file(sandbox.at("log"));
            }
        }
    }
    sandbox.fsck();
    println!("{kills} kills left {left} lock files");
    assert!(kills >= 15 && left >= 5, "{kills} kills left {left} lock files");
}

/// A lock that is not old may be somebody's: it is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn e11_a_lock_that_is_held_is_waited_for() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "new", "new\n");
    let lock = sandbox
        .at("repo/.git")
        .join(format!("refs/heads/{}.lock", worktree.branch));
    fs::write(&lock, "").unwrap();
    let commit = sandbox.workspace.commit(&worktree, "Work");
    let hold = async {
        while !tried(&sandbox.at("repo/.git"), &worktree) {
            // Whoever holds it is slow on a busy machine, but not gone.
            let held = fs::File::options().append(true).open(&lock).unwrap();
            held.set_modified(SystemTime::now()).unwrap();
            tokio::task::yield_now().await;
        }
        assert!(lock.exists(), "a lock that is held was taken away");
        fs::remove_file(&lock).unwrap();
    };
    let (committed, ()) = tokio::join!(commit, hold);
    assert_eq!(sandbox.branch_tip(&worktree.branch), committed.unwrap().tip);
    // Nor is a person's lock ever taken away, however old.
    let lock = sandbox.put("repo/.git/refs/heads/main.lock", "");
    sandbox.age_locks();
    let mut wish = sandbox.merge_of(&worktree.base);
    wish.into = "main".to_owned();
    let _ = sandbox.workspace.merge(&wish).await;
    assert!(lock.exists());
}

/// Whether the commit is written, so that moving the branch comes next.
fn tried(common: &Path, worktree: &Worktree) -> bool {
    let name = worktree.path.file_name().unwrap();
    let index = common.join("worktrees").join(name);
    // The objects of the commit: blob, tree and commit, beside those of the base.
    let folders = fs::read_dir(common.join("objects")).unwrap().flatten();
    let objects: usize = folders
        .filter_map(|folder| Some(fs::read_dir(folder.path()).ok()?.count()))
        .sum();
    index.is_dir() && objects >= 9
}
