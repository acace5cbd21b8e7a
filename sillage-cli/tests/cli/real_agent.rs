//! The main job with real agents, offline: `sillage run` on a repository, the agent in a worktree, its work merged.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use sillage_testkit::model_server::{Script, Step, ToolUse};
use sillage_testkit::real_agent::{Kind, RealAgent, table};

use crate::relais::Gateway;

/// A bound, not a wait: an agent's first start prepares a database, and the machine may be busy.
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

/// Who holds the agent's session.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    /// `sillage run` itself.
    Here,
    /// A gateway, which alone knows the agent.
    ByGateway,
}

async fn completes_a_task(kind: Kind, held: Held) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(real) = RealAgent::get(kind, package).await else {
        return;
    };
    let server = real.model_server().await.expect("a port");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let place = |name: &str| folder.path().join(name);
    for name in ["home", "work"] {
        fs::create_dir(place(name)).expect("a folder");
    }
    let env = real.environment(&place("home"), &server).expect("settings files");
    let agent = json!({
        "name": kind.name(), "command": real.command, "args": real.args, "env": env,
        "models": { "test": { "id": kind.model() } },
    });
    fs::write(place("config.yaml"), json!({ "agents": [agent] }).to_string()).expect("a file");
    let write = ToolUse::Write {
        path: "hello.txt".to_owned(),
        content: "Bonjour\n".to_owned(),
    };
    let script = Script::of([Step::using(write), Step::saying(REPORT)]);
    let effort = if kind.takes_effort() { "high" } else { "default" };
    let task = json!({
        "task": "One file", "folders": { "write": ["."] },
        "agents": [{
            "id": "writer", "mission": format!("Write hello.txt. {}", script.in_prompt()),
            "deliverable": { "files": ["hello.txt"] },
            "model": "test", "effort": effort, "worktree": "always",
        }],
    });
    let work = place("work");
    fs::write(work.join("task.json"), task.to_string()).expect("a file");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message=Begin"]);

    let program = |words: &[&str], settings: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sillage"));
        command
            .args(words)
            .current_dir(&work)
            .env("HOME", place("home"))
            .env("SILLAGE_DATA_DIR", place("data"))
            .env("SILLAGE_CONFIG", place(settings));
        command
    };
    let run = ["run", "task.json", "--json", "--yes"];
    let (run, gateway) = match held {
        Held::Here => (program(&run, "config.yaml"), None),
        Held::ByGateway => {
            let token = place("token").display().to_string();
            let relais = ["relais", "--json", "--port", "0", "--token-file", &token];
            let gateway = Gateway::start(program(&relais, "config.yaml"));
            fs::write(place("none.yaml"), "{}").expect("a file");
            let mut run = program(&run, "none.yaml");
            run.args(["--relais", &gateway.url, "--token-file", &token]);
            (run, Some(gateway))
        }
    };
    let mut command = tokio::process::Command::from(run);
    command.kill_on_drop(true);
    let told = tokio::time::timeout(BOUND, command.output())
        .await
        .expect("it ends in time")
        .expect("it runs");
    if let Some(gateway) = gateway {
        gateway.terminate();
    }
    let lines = String::from_utf8(told.stdout).expect("text");
    let outcome: Value = serde_json::from_str(lines.lines().last().expect("a last line")).expect("JSON");
    let words = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(0), "{lines}\n{words}");
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
    let scripted = asked.iter().find(|one| one.model == kind.model_at_server());
    let scripted = scripted.expect("the task's model was asked");
    if kind.takes_effort() {
        assert_eq!(scripted.effort.as_deref(), Some("high"));
    }
    if held == Held::ByGateway {
        return;
    }
    let row = "01 A task of the command line";
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    table::tell(package, target, row, kind, "complete, its file merged");
}

#[tokio::test]
async fn opencode_completes_a_task_and_its_work_is_merged() {
    completes_a_task(Kind::Opencode, Held::Here).await;
}

#[tokio::test]
async fn codex_completes_a_task_and_its_work_is_merged() {
    completes_a_task(Kind::Codex, Held::Here).await;
}

#[tokio::test]
async fn gemini_completes_a_task_and_its_work_is_merged() {
    completes_a_task(Kind::Gemini, Held::Here).await;
}

/// The same through a gateway: the settings of the run name no agent.
#[tokio::test]
async fn opencode_completes_a_task_through_a_gateway() {
    completes_a_task(Kind::Opencode, Held::ByGateway).await;
}
