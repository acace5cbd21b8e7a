//! The main job with a real agent, offline: `sillage run` on a repository, opencode in a worktree, its work merged.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use sillage_testkit::model_server::{ModelServer, Script, Step, ToolUse};
use sillage_testkit::real_agent::{OPENCODE_MODEL, opencode, opencode_environment};

/// A bound, not a wait: the agent's first start prepares a database, and the machine may be busy.
const BOUND: Duration = Duration::from_secs(300);

const REPORT: &str =
    "It is written.\n\n```json\n{\"outcome\": \"complete\", \"summary\": \"One file.\"}\n```";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost"];
    let told = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(identity)
        .args(arguments)
        .output();
    let told = told.expect("git");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8(told.stdout).expect("text")
}

#[tokio::test]
async fn a_real_agent_completes_a_task_and_its_work_is_merged() {
    let Some(program) = opencode(Path::new(env!("CARGO_MANIFEST_DIR"))).await else {
        return;
    };
    let server = ModelServer::start().await.expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    for name in ["home", "work"] {
        fs::create_dir(place(name)).expect("a folder");
    }
    let env = opencode_environment(&place("home"), &server.base_url()).expect("a settings file");
    let agent = json!({
        "name": "opencode", "command": program, "args": ["acp"], "env": env,
        "models": { "test": { "id": OPENCODE_MODEL } },
    });
    fs::write(place("config.yaml"), json!({ "agents": [agent] }).to_string()).expect("a file");
    let write = ToolUse::Write {
        path: "hello.txt".to_owned(),
        content: "Bonjour\n".to_owned(),
    };
    let script = Script::of([Step::using(write), Step::saying(REPORT)]);
    let task = json!({
        "task": "One file", "folders": { "write": ["."] },
        "agents": [{
            "id": "writer", "mission": format!("Write hello.txt. {}", script.in_prompt()),
            "deliverable": { "files": ["hello.txt"] },
            "model": "test", "effort": "high", "worktree": "always",
        }],
    });
    let work = place("work");
    fs::write(work.join("task.json"), task.to_string()).expect("a file");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message=Begin"]);

    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_sillage"));
    command
        .args(["run", "task.json", "--json", "--yes"])
        .current_dir(&work)
        .env("HOME", place("home"))
        .env("SILLAGE_DATA_DIR", place("data"))
        .env("SILLAGE_CONFIG", place("config.yaml"))
        .kill_on_drop(true);
    let told = tokio::time::timeout(BOUND, command.output())
        .await
        .expect("it ends in time")
        .expect("it runs");
    let lines = String::from_utf8(told.stdout).expect("text");
    let outcome: Value = serde_json::from_str(lines.lines().last().expect("a last line")).expect("JSON");
    assert_eq!(
        told.status.code(),
        Some(0),
        "{lines}\n{}",
        String::from_utf8_lossy(&told.stderr)
    );
    assert_eq!(outcome["state"], "complete");

    let branch = outcome["branch"].as_str().expect("a branch");
    assert_eq!(git(&work, &["show", &format!("{branch}:hello.txt")]), "Bonjour\n");
    assert_eq!(
        git(&work, &["rev-parse", branch]).trim(),
        outcome["commit"].as_str().expect("a commit")
    );
    assert!(
        !work.join("hello.txt").exists(),
        "the person's own files are as they were"
    );
    let asked = server.asked();
    assert!(asked.iter().all(|one| one.known), "{asked:?}");
    let scripted = asked
        .iter()
        .find(|one| one.model == "test-model")
        .expect("the task's model was asked");
    assert_eq!(scripted.effort.as_deref(), Some("high"));
}
