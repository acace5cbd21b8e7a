//! Committing what is left, wherever the agent left its head.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::{Hold, MergeOutcome, Removal, Worktree};
use sillage_testkit::workspace_suite::Scene;

use crate::sandbox::{Sandbox, gits};

#[tokio::test]
async fn nothing_shows_as_changed_after_a_commit_r16() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let worktree = sandbox.lease("a").await;
        sandbox.write(&worktree.path, "new", "new\n");
        fs::remove_file(worktree.path.join("README")).unwrap();
        sandbox.write(&worktree.path, "ignored", "secret\n");
        fs::write(worktree.path.join("src/lib.rs"), "one\n2\nthree\n").unwrap();
        let committed = sandbox
            .workspace
            .commit(&worktree, "Say it\n\nWith a body")
            .await
            .unwrap();
        assert_eq!(
            (
                committed.diff.files,
                committed.diff.insertions,
                committed.diff.deletions
            ),
            (3, 2, 2)
        );
        assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "");
        assert_eq!(sandbox.content(&committed.tip, "ignored"), None);
        let told = sandbox.git(
            "repo",
            &["log", "-1", "--format=%an <%ae> %cn %G? %B", &committed.tip],
        );
        assert_eq!(
            told,
            "A Person <person@example.org> A Person N Say it\n\nWith a body"
        );
        sandbox.fsck();
    }
}

#[tokio::test]
async fn the_repositorys_user_comes_first_and_ours_last_r16() {
    let sandbox = Sandbox::newest();
    sandbox.git("repo", &["config", "user.name", "Local"]);
    let worktree = sandbox.lease("a").await;
    let who = |tip: &str| sandbox.git("repo", &["log", "-1", "--format=%an <%ae>", tip]);
    sandbox.write(&worktree.path, "one", "1\n");
    let first = sandbox.workspace.commit(&worktree, "One").await.unwrap();
    assert_eq!(who(&first.tip), "Local <person@example.org>");
    sandbox.git("repo", &["config", "--unset", "user.name"]);
    fs::remove_file(sandbox.at("home/.gitconfig")).unwrap();
    sandbox.write(&worktree.path, "two", "2\n");
    let second = sandbox.workspace.commit(&worktree, "Two").await.unwrap();
    assert_eq!(who(&second.tip), "Sillage <sillage@localhost>");
}

#[tokio::test]
async fn commits_of_the_agent_count() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "one", "1\n");
    sandbox.git(&worktree.path, &["add", "-A"]);
    sandbox.git(&worktree.path, &["commit", "-qm", "Agent's own"]);
    let tip = sandbox.branch_tip(&worktree.branch);
    let committed = sandbox.workspace.commit(&worktree, "Nothing").await.unwrap();
    assert_eq!((committed.tip, committed.commits), (tip, 1));
}

/// The agent left its head detached, or on a branch of its own.
#[tokio::test]
async fn work_on_another_head_comes_to_the_branch() {
    for own in [None, Some("mine")] {
        let sandbox = Sandbox::newest();
        let worktree = sandbox.lease("a").await;
        match own {
            None => sandbox.git(&worktree.path, &["switch", "-q", "--detach"]),
            Some(name) => sandbox.git(&worktree.path, &["switch", "-qc", name]),
        };
        sandbox.write(&worktree.path, "one", "1\n");
        sandbox.git(&worktree.path, &["add", "-A"]);
        sandbox.git(&worktree.path, &["commit", "-qm", "Agent's own"]);
        let agents = sandbox.git(&worktree.path, &["rev-parse", "HEAD"]);
        sandbox.write(&worktree.path, "two", "2\n");
        let committed = sandbox.workspace.commit(&worktree, "Left").await.unwrap();
        assert_eq!(committed.commits, 2);
        assert_eq!(sandbox.branch_tip(&worktree.branch), committed.tip);
        assert_eq!(
            sandbox.git("repo", &["rev-parse", &format!("{}^", committed.tip)]),
            agents
        );
        assert!(
            sandbox
                .git("repo", &["log", "-1", "--format=%B", &committed.tip])
                .contains("Found on ")
        );
        let head = sandbox.git(&worktree.path, &["symbolic-ref", "HEAD"]);
        assert_eq!(head, format!("refs/heads/{}", worktree.branch));
        assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "");
        if let Some(name) = own {
            assert_eq!(sandbox.branch_tip(name), agents, "the agent's branch stays");
        }
    }
}

/// The head went back behind commits of the branch: they are kept under a rescue reference.
#[tokio::test]
async fn commits_that_the_head_left_are_kept() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.write(&worktree.path, "one", "1\n");
    let left = sandbox.workspace.commit(&worktree, "One").await.unwrap().tip;
    sandbox.git(&worktree.path, &["switch", "-q", "--orphan", "apart"]);
    sandbox.write(&worktree.path, "two", "2\n");
    sandbox.git(&worktree.path, &["add", "-A"]);
    sandbox.git(&worktree.path, &["commit", "-qm", "From nothing"]);
    sandbox.write(&worktree.path, "three", "3\n");
    let committed = sandbox.workspace.commit(&worktree, "Left").await.unwrap();
    assert_eq!(sandbox.tip("refs/sillage/rescue/r1/a/1"), Some(left));
    assert_eq!(sandbox.content(&committed.tip, "two").as_deref(), Some("2\n"));
    let told = sandbox.git("repo", &["log", "-1", "--format=%B", &committed.tip]);
    assert!(told.contains("does not hold the base"), "{told}");
}

/// G1: the worktree lies in a folder that is a repository itself, and is deleted.
#[tokio::test]
async fn a_deleted_worktree_commits_nothing_above_it_g1() {
    let sandbox = Sandbox::newest();
    sandbox.git(".", &["init", "-q", "-b", "above"]);
    sandbox.put("above", "x\n");
    sandbox.git(".", &["add", "above"]);
    sandbox.git(".", &["commit", "-qm", "Above"]);
    let worktree = sandbox.lease("a").await;
    let state = || {
        let index = fs::read(sandbox.at(".git/index")).unwrap();
        (
            sandbox.git(".", &["rev-parse", "HEAD"]),
            index,
            sandbox.git("repo", &["for-each-ref"]),
        )
    };
    let before = state();
    for lost in [worktree.path.join(".git"), worktree.path.clone()] {
        if lost.is_dir() {
            fs::remove_dir_all(&lost).unwrap()
        } else {
            fs::remove_file(&lost).unwrap()
        }
        let error = sandbox.workspace.commit(&worktree, "Work").await.unwrap_err();
        assert!(error.to_string().starts_with("worktree lost: "), "{error}");
        assert_eq!(state(), before);
    }
}

/// A repository within is left out, a file of ours within it is not, and nothing there is lost.
#[tokio::test]
async fn e6_repositories_within_are_left_out_and_hold_the_worktree() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let worktree = sandbox.lease("a").await;
        for (folder, with_commit) in [("empty", false), ("full", true), ("src", false)] {
            fs::create_dir_all(worktree.path.join(folder)).unwrap();
            sandbox.git(worktree.path.join(folder), &["init", "-q"]);
            fs::write(worktree.path.join(folder).join("inner"), "inner\n").unwrap();
            if with_commit {
                sandbox.git(worktree.path.join(folder), &["add", "-A"]);
                sandbox.git(worktree.path.join(folder), &["commit", "-qm", "Inner"]);
            }
        }
        fs::write(worktree.path.join("src/lib.rs"), "changed\n").unwrap();
        sandbox.write(&worktree.path, "new", "new\n");
        let committed = sandbox.workspace.commit(&worktree, "Work").await.unwrap();
        let names = sandbox.git("repo", &["diff", "--name-only", &worktree.base, &committed.tip]);
        assert_eq!(names, "new\nsrc/lib.rs");
        sandbox
            .workspace
            .merge(&sandbox.merge_of(&committed.tip))
            .await
            .unwrap();
        let nested = |name: &str| Hold::NestedRepository(PathBuf::from(name));
        let removal = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
        assert_eq!(
            removal,
            Removal::Held(vec![nested("empty"), nested("full"), nested("src")])
        );
        sandbox.workspace.restart(&worktree, "r1", "a").await.unwrap();
        assert!(worktree.path.join("full/inner").is_file());
    }
}

#[tokio::test]
async fn a_pipe_where_a_file_was_counts_as_removed() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    fs::remove_file(worktree.path.join("README")).unwrap();
    for name in ["README", "src/pipe"] {
        let made = std::process::Command::new("mkfifo")
            .arg(worktree.path.join(name))
            .status()
            .unwrap();
        assert!(made.success());
    }
    let committed = sandbox.workspace.commit(&worktree, "Work").await.unwrap();
    assert_eq!(
        sandbox.git("repo", &["diff", "--name-status", &worktree.base, &committed.tip]),
        "D\tREADME"
    );
}

#[tokio::test]
async fn submodules_stay_as_the_base_has_them() {
    let sandbox = Sandbox::newest();
    sandbox.put("library/x", "x\n");
    sandbox.git("library", &["init", "-q"]);
    sandbox.git("library", &["add", "-A"]);
    sandbox.git("library", &["commit", "-qm", "X"]);
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        "../library",
        "module",
    ];
    sandbox.git("repo", &add);
    sandbox.git("repo", &["commit", "-qm", "Module"]);
    let found = sandbox
        .workspace
        .inspect(&sandbox.at("repo"))
        .await
        .unwrap()
        .unwrap();
    assert!(
        found
            .warnings
            .iter()
            .any(|warning| warning.contains("submodules")),
        "{:?}",
        found.warnings
    );
    let worktree = sandbox.lease("a").await;
    sandbox.git(
        &worktree.path,
        &[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "update",
            "-q",
            "--init",
        ],
    );
    sandbox.git(
        worktree.path.join("module"),
        &["commit", "-q", "--allow-empty", "-m", "Inside"],
    );
    sandbox.write(&worktree.path, "new", "new\n");
    let committed = sandbox.workspace.commit(&worktree, "Work").await.unwrap();
    assert_eq!(
        sandbox.git("repo", &["diff", "--name-only", &worktree.base, &committed.tip]),
        "new"
    );
    sandbox
        .workspace
        .merge(&sandbox.merge_of(&committed.tip))
        .await
        .unwrap();
    let removal = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
    assert_eq!(
        removal,
        Removal::Held(vec![
            Hold::NestedRepository("module".into()),
            Hold::NestedRepository(".git/modules/module".into())
        ])
    );
}

/// R17: the agent merges the integration branch, resolves the conflict, and leaves the commit to us.
#[tokio::test]
async fn a_resolved_merge_is_concluded_r17() {
    for add in [true, false] {
        let sandbox = Sandbox::newest();
        let (a, b) = (sandbox.lease("a").await, sandbox.lease("b").await);
        sandbox.write(&a.path, "README", "a\n");
        sandbox.write(&b.path, "README", "b\n");
        let one = sandbox.workspace.commit(&a, "A").await.unwrap();
        let two = sandbox.workspace.commit(&b, "B").await.unwrap();
        sandbox
            .workspace
            .merge(&sandbox.merge_of(&one.tip))
            .await
            .unwrap();
        let conflict = sandbox
            .workspace
            .merge(&sandbox.merge_of(&two.tip))
            .await
            .unwrap();
        assert_eq!(conflict, MergeOutcome::Conflict(vec!["README".into()]));
        assert!(
            !sandbox
                .try_git(&b.path, &["merge", "-q", "sillage/r1"])
                .status
                .success()
        );

        // Not resolved yet: the work is kept, the conflict stays one.
        let marked = sandbox.workspace.commit(&b, "Half").await.unwrap();
        assert!(matches!(
            sandbox
                .workspace
                .merge(&sandbox.merge_of(&marked.tip))
                .await
                .unwrap(),
            MergeOutcome::Conflict(_)
        ));
        sandbox.write(&b.path, "README", "a and b\n");
        if add {
            sandbox.git(&b.path, &["add", "README"]);
        }
        let resolved = sandbox.workspace.commit(&b, "Resolve").await.unwrap();
        let merged = sandbox
            .workspace
            .merge(&sandbox.merge_of(&resolved.tip))
            .await
            .unwrap();
        let MergeOutcome::Merged(tip) = merged else {
            panic!("add {add}: {merged:?}")
        };
        assert_eq!(sandbox.content(&tip, "README").as_deref(), Some("a and b\n"));
        assert_eq!(sandbox.git(&b.path, &["status", "--porcelain"]), "");
        assert_eq!(
            sandbox.workspace.remove(&b, "sillage/r1").await.unwrap(),
            Removal::Removed
        );
    }
}

/// An index lock that a killed git of the agent left does not keep work from being committed.
#[tokio::test]
async fn a_stale_index_lock_is_no_obstacle() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let lock = sandbox.git(
        &worktree.path,
        &["rev-parse", "--path-format=absolute", "--git-path", "index.lock"],
    );
    fs::write(&lock, "").unwrap();
    sandbox.write(&worktree.path, "new", "new\n");
    sandbox.workspace.commit(&worktree, "Work").await.unwrap();
    assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "");
}

/// The base has a file that the agent made an ignored one: putting the base back must not lose it.
#[tokio::test]
async fn restart_keeps_ignored_files_that_it_would_overwrite_r12() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    sandbox.git(&worktree.path, &["rm", "-q", "--cached", "README"]);
    sandbox.write(&worktree.path, ".gitignore", "README\nkept\n");
    sandbox.write(&worktree.path, "README", "precious\n");
    sandbox.write(&worktree.path, "kept", "stays\n");
    sandbox.git(&worktree.path, &["add", "-A"]);
    sandbox.git(&worktree.path, &["commit", "-qm", "Hide it"]);
    let rescued = sandbox
        .workspace
        .restart(&worktree, "r1", "a")
        .await
        .unwrap()
        .rescued
        .unwrap();
    assert_eq!(sandbox.content(&rescued, "README").as_deref(), Some("precious\n"));
    assert_eq!(
        fs::read_to_string(worktree.path.join("README")).unwrap(),
        "read me\n"
    );
    assert_eq!(fs::read_to_string(worktree.path.join("kept")).unwrap(), "stays\n");
    assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "?? kept");
}

#[tokio::test]
async fn restart_ends_what_was_under_way_r12() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    for content in ["1\n", "2\n"] {
        sandbox.write(&worktree.path, "README", content);
        sandbox.git(&worktree.path, &["commit", "-qam", content]);
    }
    assert!(
        !sandbox
            .try_git(&worktree.path, &["revert", "HEAD~1"])
            .status
            .success()
    );
    sandbox.workspace.restart(&worktree, "r1", "a").await.unwrap();
    assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "");
    assert_eq!(
        sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap(),
        Removal::Removed
    );
}

/// E17: each is committed as it is, and comes back as it was.
#[tokio::test]
async fn e17_files_with_odd_names_are_committed() {
    let odd: [&[u8]; 16] = [
        b"new\nline",
        b"tab\tand\rreturn",
        b"\xff\xfe",
        b"-f",
        b"--force",
        b"--",
        b" blanks ",
        b"quote\"and'and`",
        b"back\\slash",
        b":(top,exclude)x",
        b":!x",
        b"*",
        b"[x]?",
        b"\x1b[31m",
        "\u{202e}cod.exe".as_bytes(),
        "cafe\u{301}".as_bytes(),
    ];
    for program in gits().into_values() {
        for special in [false, true] {
            let sandbox = Sandbox::with(program.clone(), &[]);
            let worktree = sandbox.lease("a").await;
            for name in odd {
                fs::write(worktree.path.join(std::ffi::OsStr::from_bytes(name)), "odd\n").unwrap();
            }
            let mut deep = worktree.path.clone();
            // Nearly as long as a path of the system may be, its own part counted.
            while deep.as_os_str().len() < 3_700 {
                deep.push("d".repeat(200));
                fs::create_dir(&deep).unwrap();
            }
            fs::write(deep.join("deep"), "deep\n").unwrap();
            fs::write(worktree.path.join("n".repeat(255)), "long\n").unwrap();
            for (target, name) in [
                ("loop", "loop"),
                ("b", "a-b"),
                ("a-b", "b"),
                ("/dev/zero", "zero"),
                ("..", "up"),
            ] {
                std::os::unix::fs::symlink(target, worktree.path.join(name)).unwrap();
            }
            if special {
                mkfifo(&worktree.path.join("src/pipe"));
            }
            let tip = sandbox.workspace.commit(&worktree, "Odd").await.unwrap().tip;
            let told = sandbox
                .try_git("repo", &["ls-tree", "-r", "-z", "--name-only", &tip])
                .stdout;
            let names: Vec<&[u8]> = told.split(|byte| *byte == 0).collect();
            for name in odd
                .iter()
                .copied()
                .chain([b"loop".as_slice(), b"a-b", b"b", b"zero", b"up"])
            {
                assert!(names.contains(&name), "{}", String::from_utf8_lossy(name));
            }
            assert!(names.iter().any(|name| name.ends_with(b"/deep")));
            assert!(!names.contains(&b"src/pipe".as_slice()));
            assert_eq!(sandbox.git(&worktree.path, &["status", "--porcelain"]), "");
        }
    }
}

fn mkfifo(path: &std::path::Path) {
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
}

/// E17: what is no file counts as none, and a bit that would let it run as somebody else is not kept.
#[tokio::test]
async fn e17_sockets_and_set_user_bits_are_not_committed() {
    let sandbox = Sandbox::newest();
    let worktree = sandbox.lease("a").await;
    let _listening = std::os::unix::net::UnixListener::bind(worktree.path.join("socket")).unwrap();
    fs::write(worktree.path.join("tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(worktree.path.join("tool"), fs::Permissions::from_mode(0o4755)).unwrap();
    let committed = sandbox.workspace.commit(&worktree, "Work").await.unwrap();
    let told = sandbox.git(
        "repo",
        &[
            "diff-tree",
            "-r",
            "--no-commit-id",
            &worktree.base,
            &committed.tip,
        ],
    );
    assert!(
        told.starts_with(":000000 100755 ") && told.ends_with("\ttool") && told.lines().count() == 1,
        "{told}"
    );
}

/// E17: git would wait for ever for a pipe that it takes for its own file, and so is told to nobody but the person.
#[tokio::test]
async fn e17_a_pipe_that_git_reads_is_told_and_not_waited_for() {
    for name in [
        ".gitignore",
        ".gitattributes",
        "src/.gitignore",
        "src/.gitattributes",
        ".gitmodules",
    ] {
        let sandbox = Sandbox::newest();
        let worktree = sandbox.lease("a").await;
        let pipe = worktree.path.join(name);
        let _ = fs::remove_file(&pipe);
        mkfifo(&pipe);
        sandbox.write(&worktree.path, "new", "new\n");
        let error = sandbox
            .workspace
            .commit(&worktree, "Work")
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("{}: git reads this file", pipe.display())),
            "{error}"
        );
        let held = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
        assert!(matches!(held, Removal::Held(_)), "{held:?}");
        sandbox
            .workspace
            .list(&sandbox.at("repo"), "sillage/r1")
            .await
            .unwrap();
        fs::remove_file(&pipe).unwrap();
        sandbox.workspace.commit(&worktree, "Work").await.unwrap();
    }
}

/// Pipes in the git folder that we read ourselves.
#[tokio::test]
async fn e17_a_pipe_in_the_git_folder_is_not_waited_for() {
    let sandbox = Sandbox::newest();
    let (a, b) = (sandbox.lease("a").await, sandbox.lease("b").await);
    let admin = |worktree: &Worktree| {
        PathBuf::from(sandbox.git(
            &worktree.path,
            &["rev-parse", "--path-format=absolute", "--git-dir"],
        ))
    };
    sandbox.write(&a.path, "new", "new\n");
    let part = admin(&a);
    mkfifo(&part.join("MERGE_MSG"));
    let _ = fs::remove_file(sandbox.at("repo/.git/info/exclude"));
    mkfifo(&sandbox.at("repo/.git/info/exclude"));
    let wish = sandbox.merge_of(&sandbox.workspace.commit(&a, "Work").await.unwrap().tip);
    // What git reads itself is told before git can wait for it, and is all right once it is gone.
    let common = sandbox.at("repo/.git");
    let parts = [common.clone(), part, admin(&b)];
    for (folder, name) in [
        (0, "HEAD"),
        (0, "config"),
        (0, "packed-refs"),
        (0, "shallow"),
        (0, "objects/info/alternates"),
        (1, "HEAD"),
        (2, "HEAD"),
        (2, "gitdir"),
        (2, "locked"),
    ] {
        let file = parts[folder].join(name);
        let had = fs::read(&file).ok();
        let _ = fs::remove_file(&file);
        mkfifo(&file);
        let list = sandbox.workspace.list(&sandbox.at("repo"), "sillage/r1").await;
        let commit = sandbox.workspace.commit(&b, "Work").await;
        let errors = list.err().into_iter().chain(commit.err());
        let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
        assert!(!errors.is_empty(), "{name} was not read");
        for error in errors {
            let told = error.contains(&file.display().to_string()) && error.contains("git would wait for it");
            assert!(told || error.starts_with("worktree lost: "), "{error}");
        }
        fs::remove_file(&file).unwrap();
        if let Some(had) = had {
            fs::write(&file, had).unwrap();
        }
        sandbox.workspace.merge(&wish).await.unwrap();
        sandbox.workspace.commit(&b, "Work").await.unwrap();
    }
}

/// E17: a link in conflict that leads to what never ends is not read.
#[tokio::test]
async fn e17_a_conflict_that_leads_to_an_endless_file_stays_one() {
    let sandbox = Sandbox::newest();
    let (a, b) = (sandbox.lease("a").await, sandbox.lease("b").await);
    sandbox.write(&a.path, "README", "a\n");
    sandbox.write(&b.path, "README", "b\n");
    let one = sandbox.workspace.commit(&a, "A").await.unwrap();
    sandbox.workspace.commit(&b, "B").await.unwrap();
    sandbox
        .workspace
        .merge(&sandbox.merge_of(&one.tip))
        .await
        .unwrap();
    sandbox.try_git(&b.path, &["merge", "-q", "sillage/r1"]);
    fs::remove_file(b.path.join("README")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", b.path.join("README")).unwrap();
    let committed = sandbox.workspace.commit(&b, "Endless").await.unwrap();
    let conflict = sandbox
        .workspace
        .merge(&sandbox.merge_of(&committed.tip))
        .await
        .unwrap();
    assert!(matches!(conflict, MergeOutcome::Conflict(_)), "{conflict:?}");
}

/// Names that another system would take for a git folder: git refuses them, and all the rest with them.
#[tokio::test]
async fn e17_names_that_git_refuses_do_not_keep_the_rest_from_being_committed() {
    for program in gits().into_values() {
        let sandbox = Sandbox::with(program, &[]);
        let worktree = sandbox.lease("a").await;
        let names = [
            ".GIT",
            ".Git",
            "git~1",
            "GIT~1",
            "sub/.gIt",
            ".git ",
            ".git.",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
        ];
        for name in names {
            fs::create_dir_all(worktree.path.join(name)).unwrap();
            fs::write(worktree.path.join(name).join("config"), "x\n").unwrap();
        }
        for name in ["git~1x", ".gitx", "sub/gitk", ".git-x"] {
            sandbox.write(&worktree.path, name, "x\n");
        }
        let committed = sandbox.workspace.commit(&worktree, "Work").await.unwrap();
        let told = sandbox.git("repo", &["diff", "--name-only", &worktree.base, &committed.tip]);
        assert_eq!(told, ".git-x\n.gitx\ngit~1x\nsub/gitk");
        sandbox
            .workspace
            .merge(&sandbox.merge_of(&committed.tip))
            .await
            .unwrap();
        let held = sandbox.workspace.remove(&worktree, "sillage/r1").await.unwrap();
        assert!(matches!(held, Removal::Held(_)), "{held:?}");
    }
}
