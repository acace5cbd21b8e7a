//! A git that is missing, old, endless or talkative.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use sillage_core::ports::Workspace;
use sillage_core::ports::workspace::WorkspaceError;
use sillage_workspace::GitWorkspace;

use crate::sandbox::Sandbox;

async fn words_of(sandbox: &Sandbox, script: &str) -> String {
    let program = sandbox.put("fake/git", script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let workspace = GitWorkspace::with_git(program, &sandbox.at("data")).unwrap();
    match workspace.inspect(&sandbox.at("repo")).await {
        Err(error @ WorkspaceError::Git { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn e19_a_git_that_cannot_be_used_is_told() {
    let sandbox = Sandbox::newest();
    let old = words_of(&sandbox, "#!/bin/sh\necho git version 2.37.9\n").await;
    assert_eq!(
        old,
        "git version failed: git 2.37 is too old: install git 2.38 or newer"
    );
    assert!(
        words_of(&sandbox, "#!/bin/sh\necho hello\n")
            .await
            .contains("cannot read a version")
    );
    assert!(
        words_of(&sandbox, "#!/bin/sh\nexit 3\n")
            .await
            .contains("exit code 3")
    );
    let workspace = GitWorkspace::with_git("/nonexistent/git", &sandbox.at("data")).unwrap();
    let missing = workspace.inspect(&sandbox.at("repo")).await.unwrap_err();
    assert!(missing.to_string().contains("could not be started"), "{missing}");
}

#[tokio::test]
async fn e19_output_without_end_is_stopped() {
    let sandbox = Sandbox::newest();
    let script = "#!/bin/sh\n[ \"$1\" = version ] && { echo git version 2.47.0; exit; }\nexec yes\n";
    assert!(
        words_of(&sandbox, script)
            .await
            .contains("bytes printed: stopped")
    );
}
