#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use super::*;

/// A git that answers `version`, and else runs this script.
fn fake(folder: &Path, script: &str) -> Git {
    let program = folder.join("git");
    let text = format!("#!/bin/sh\n[ \"$1\" = version ] && {{ echo git version 2.99.0; exit; }}\n{script}\n");
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Git::at(program)
}

#[tokio::test]
async fn the_environment_is_an_allow_list_r20() {
    let folder = tempfile::tempdir().unwrap();
    let git = fake(folder.path(), "exec env");
    let text = git
        .call("status", folder.path())
        .await
        .unwrap()
        .set("a.b", "c\nd")
        .text()
        .await
        .unwrap();
    let known = [
        "PATH=",
        "HOME=",
        "XDG_CONFIG_HOME=",
        "TZ=",
        "TMPDIR=",
        "LANG=C.UTF-8",
        "PWD=",
        "_=",
        "SHLVL=",
        "OLDPWD=",
    ];
    let ours = [
        "GIT_TERMINAL_PROMPT=0",
        "GIT_ASKPASS=/bin/false",
        "SSH_ASKPASS=/bin/false",
        "GIT_EDITOR=:",
        "GIT_PAGER=cat",
        "GIT_NO_REPLACE_OBJECTS=1",
        "GIT_LITERAL_PATHSPECS=1",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_LFS_SKIP_SMUDGE=1",
        "GIT_ALLOW_PROTOCOL=none",
        "GIT_NO_LAZY_FETCH=1",
        "GIT_COMMITTER_NAME=Sillage",
        "GIT_COMMITTER_EMAIL=sillage@localhost",
        "GIT_CONFIG_COUNT=",
        "GIT_CONFIG_KEY_",
        "GIT_CONFIG_VALUE_",
    ];
    for line in text.lines().filter(|line| *line != "d") {
        assert!(
            known.iter().chain(&ours).any(|start| line.starts_with(start)),
            "{line}"
        );
    }
    for start in ours {
        assert!(text.lines().any(|line| line.starts_with(start)), "{start}");
    }
    assert!(text.contains("=core.hooksPath\n") && text.contains("=hook.post-checkout.enabled\n"));
    assert!(text.contains("=a.b\n") && text.contains("=c\nd\n"));
}

/// A call that does not end is ended with everything that it started, and says so.
#[tokio::test]
async fn e19_a_deadline_ends_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let git = fake(
        folder.path(),
        &format!(
            "sleep 600 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait",
            pid.display()
        ),
    );
    let mut call = git.call("status", folder.path()).await.unwrap();
    call.deadline = Duration::from_secs(2);
    let start = Instant::now();
    let error = call.output().await.unwrap_err();
    assert_eq!(error.to_string(), "git status failed: no end after 2 s: stopped");
    let grandchild = fs::read_to_string(pid).unwrap();
    let gone = || match fs::read_to_string(format!("/proc/{}/stat", grandchild.trim())) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    while !gone() {
        assert!(start.elapsed() < Duration::from_secs(30), "{grandchild} lives on");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn stdin_is_written_while_output_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let git = fake(folder.path(), "exec cat");
    let much = vec![b'x'; 1 << 20];
    let call = git
        .call("status", folder.path())
        .await
        .unwrap()
        .stdin(much.clone());
    assert_eq!(call.bytes().await.unwrap(), much);
    // One that does not read it says why by its exit code.
    let git = fake(folder.path(), "echo no >&2; exit 7");
    let error = git
        .call("status", folder.path())
        .await
        .unwrap()
        .stdin(much)
        .bytes()
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "git status failed: no");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(150))]

    /// A branch's name passes exactly when git-check-ref-format(1) lets it pass, options, length and names that mean something
    /// else aside.
    #[test]
    fn branch_names_are_gits(name in "[a-b@{}./~^:?*\\[\\\\ \\-\u{e9}\u{1}]{1,8}|(a/)?[.a-]{1,3}(\\.lock)?(/b)?") {
        let git = Git::on_path();
        let program = git.program.unwrap();
        let known = std::process::Command::new(program)
            .args(["check-ref-format", &format!("refs/heads/{name}")])
            .status()
            .unwrap();
        let else_read = name.starts_with('-') || name.starts_with("refs/") || name == "@";
        let expected = known.success() && !else_read;
        proptest::prop_assert_eq!(names::branch_reference(&name).is_ok(), expected, "{:?}", name);
    }
}
