//! R20: nothing that is planted in a repository or in a worktree runs in our hands.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{MergeOutcome, Removal};
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "reference-transaction",
    "update",
];

impl Sandbox {
    /// A program that leaves a mark and passes its input on.
    fn plant_program(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.at("marks")).unwrap();
        let mark = self.at("marks").join(name);
        let script = format!("#!/bin/sh\necho ran >> '{}'\ncat\n", mark.display());
        let file = self.put(Path::new("planted").join(name), &script);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn plant_hooks(&self, folder: &Path) {
        for hook in HOOKS {
            let program = self.plant_program(&format!("hook-{hook}"));
            fs::create_dir_all(folder).unwrap();
            fs::copy(program, folder.join(hook)).unwrap();
        }
    }

    fn plant_setting(&self, folder: &Path, key: &str) {
        let program = self.plant_program(&key.replace('/', "-"));
        self.git(folder, &["config", "--local", key, program.to_str().unwrap()]);
    }

    fn plant_everything(&self, folder: &Path) {
        for key in [
            "core.pager",
            "core.editor",
            "core.sshCommand",
            "core.askPass",
            "core.gitProxy",
            "credential.helper",
            "core.alternateRefsCommand",
            "diff.external",
            "gpg.program",
            "sequence.editor",
            "filter.evil.clean",
            "filter.evil.smudge",
            "filter.a=b.clean",
            "merge.evil.driver",
            "diff.evil.textconv",
            "diff.evil.command",
            "alias.status",
            "alias.sillage",
            "hook.evil.command",
            "gpg.ssh.program",
            "trailer.evil.command",
        ] {
            self.plant_setting(folder, key);
        }
        for (key, value) in [
            ("commit.gpgSign", "true"),
            ("tag.gpgSign", "true"),
            ("hook.evil.event", "reference-transaction"),
            ("filter.evil.required", "true"),
            ("merge.default", "evil"),
            ("core.bigFileThreshold", "1"),
        ] {
            self.git(folder, &["config", "--local", key, value]);
        }
        // Last: from here on git would run it.
        self.plant_setting(folder, "core.fsmonitor");
    }

    fn marks(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at("marks")) else {
            return Vec::new();
        };
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }
}

/// Everything the workspace can do, in one story, with planted attributes in every commit.
async fn do_everything(sandbox: &Sandbox) {
    let workspace = &sandbox.workspace;
    assert!(
        workspace
            .inspect(&sandbox.at("repo"))
            .await
            .unwrap()
            .unwrap()
            .warnings[0]
            .contains("filter.evil.clean")
    );
    let a = sandbox.lease("a").await;
    let b = sandbox.lease("b").await;
    // What an agent plants where it works.
    fs::write(
        a.path.join(".gitattributes"),
        "* filter=evil diff=evil merge=evil\n*.x filter=a=b\n",
    )
    .unwrap();
    fs::write(a.path.join("new.x"), "new\n").unwrap();
    fs::write(a.path.join("README"), "changed by a\n").unwrap();
    fs::write(b.path.join("README"), "changed by b\n").unwrap();
    sandbox.git(
        &a.path,
        &[
            "-c",
            "core.fsmonitor=",
            "-c",
            "core.hooksPath=/dev/null",
            "config",
            "core.x",
            "y",
        ],
    );
    let nested = a.path.join("nested");
    fs::create_dir(&nested).unwrap();
    sandbox.git(&nested, &["init", "-q"]);
    sandbox.plant_everything(&nested);
    let one = workspace.commit(&a, "Work of a").await.unwrap();
    let two = workspace.commit(&b, "Work of b").await.unwrap();
    assert_eq!(one.commits, 1);
    let merged = workspace.merge(&sandbox.merge_of(&one.tip)).await.unwrap();
    assert!(matches!(merged, MergeOutcome::Merged(_)));
    let conflict = workspace.merge(&sandbox.merge_of(&two.tip)).await.unwrap();
    assert_eq!(conflict, MergeOutcome::Conflict(vec!["README".to_owned()]));
    let wish = sandbox.merge_of(&two.tip);
    let begun = workspace.begin_merge(&b, &wish).await.unwrap();
    assert_eq!(begun.files, ["README"]);
    assert_eq!(workspace.unresolved(&b, &begun.files).await.unwrap(), ["README"]);
    workspace.abandon_merge(&b, &two.tip, "r1", "b").await.unwrap();
    workspace.checkout(&sandbox.at("repo"), &[]).await.unwrap();
    workspace
        .check_folder(&sandbox.at("repo"), "r1", &one.tip)
        .await
        .unwrap();
    workspace.clear_check(&sandbox.at("repo"), "r1").await.unwrap();
    assert_eq!(
        workspace
            .diff(&sandbox.at("repo"), &one.tip, &two.tip)
            .await
            .unwrap()
            .files,
        3
    );
    assert!(matches!(
        workspace.remove(&a, "sillage/r1").await.unwrap(),
        Removal::Held(_)
    ));
    fs::remove_dir_all(&nested).unwrap();
    assert_eq!(
        workspace
            .list(&sandbox.at("repo"), "sillage/r1")
            .await
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        workspace.remove(&a, "sillage/r1").await.unwrap(),
        Removal::Removed
    );
    fs::write(b.path.join("left"), "left\n").unwrap();
    let restarted = workspace.restart(&b, "r1", "b").await.unwrap();
    assert!(restarted.rescued.is_some());
    fs::remove_dir_all(&b.path).unwrap();
    workspace.restart(&b, "r1", "b").await.unwrap();
    fs::remove_dir_all(&b.path).unwrap();
    workspace.lease(&sandbox.wish("b")).await.unwrap();
}

#[tokio::test]
async fn nothing_planted_runs_r20() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        sandbox.put("repo/.gitattributes", "* filter=evil diff=evil merge=evil\n");
        sandbox.put(
            "repo/.git/info/attributes",
            "* filter=evil diff=evil merge=evil\n",
        );
        sandbox.git("repo", &["add", "-A"]);
        sandbox.git("repo", &["commit", "-qm", "Attributes"]);
        sandbox.plant_hooks(&sandbox.at("repo/.git/hooks"));
        sandbox.plant_everything(&sandbox.at("repo"));
        for mark in sandbox.marks() {
            fs::remove_file(sandbox.at("marks").join(mark)).unwrap();
        }
        do_everything(&sandbox).await;
        assert_eq!(sandbox.marks(), [] as [String; 0]);

        // The plants do work: a bare `git` runs them.
        sandbox.put("repo/README", "person\n");
        sandbox.try_git("repo", &["add", "README"]);
        sandbox.try_git("repo", &["update-ref", "refs/heads/x", "HEAD"]);
        let marks = sandbox.marks();
        for mark in [
            "core.fsmonitor",
            "filter.evil.clean",
            "hook-reference-transaction",
        ] {
            assert!(
                marks.iter().any(|found| found == mark),
                "{mark} is missing from {marks:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_hooks_folder_of_the_settings_does_not_run_r20() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        sandbox.put("repo/.gitattributes", "x -text\n");
        sandbox.git("repo", &["add", "-A"]);
        sandbox.git("repo", &["commit", "-qm", "Attributes"]);
        sandbox.plant_hooks(&sandbox.at("elsewhere"));
        sandbox.plant_setting(&sandbox.at("repo"), "filter.evil.clean");
        sandbox.git(
            "repo",
            &[
                "config",
                "core.hooksPath",
                sandbox.at("elsewhere").to_str().unwrap(),
            ],
        );
        do_everything(&sandbox).await;
        assert_eq!(sandbox.marks(), [] as [String; 0]);
    }
}

/// The `.git` of a worktree is the agent's to write: what it says is checked, and not followed.
#[tokio::test]
async fn another_git_folder_in_a_worktree_is_not_followed_g1() {
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

/// `commondir` and `core.worktree` lead elsewhere: every call names its folders itself.
#[tokio::test]
async fn a_planted_common_folder_is_not_followed() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let admin = sandbox.git(
        &worktree.path,
        &["rev-parse", "--path-format=absolute", "--git-dir"],
    );
    sandbox.put("other/x", "x\n");
    sandbox.git("other", &["init", "-q"]);
    let other = sandbox.at("other/.git");
    fs::write(
        Path::new(&admin).join("commondir"),
        format!("{}\n", other.display()),
    )
    .unwrap();
    fs::write(worktree.path.join("new"), "new\n").unwrap();
    let committed = sandbox.workspace.commit(&worktree, "Work").await.unwrap();
    assert_eq!(sandbox.branch_tip(&worktree.branch), committed.tip);
    assert_eq!(sandbox.git("other", &["count-objects"]), "0 objects, 0 kilobytes");
}
