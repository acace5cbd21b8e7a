//! acpx, a client on the protocol's own TypeScript library, against the scripted agent.

use std::path::Path;

use serde_json::Value;
use sillage_acp::scripted_agent::record;
use sillage_testkit::real_agent::installed;
use tempfile::TempDir;
use tokio::process::Command;

use crate::peer::within;
use crate::schema::{Side, faults, frames};

const SCRIPT: &str = r#"
agent: { load: true, resume: true, list: true, close: true }
options: [{ id: model, category: model, values: [opus, haiku] }]
modes: { available: [ask, code] }
prompts:
  - match: please write
    steps:
      - think: It wants a file.
      - plan: [write it, tell it]
      - say: { text: "I write it — voilà.", chunks: 3 }
      - tool: { id: t1, title: look, kind: read, paths: [hello.txt], status: completed, raw_output: { found: false } }
      - write: { path: hello.txt, content: "Bonjour\n", ask: true }
      - run: { command: "echo there", quiet: false }
      - usage: { used: 10, size: 100, cost: { amount: 0.01, currency: EUR } }
      - turn_usage: { input: 30, output: 5 }
      - say: { text: "It is done.", message: m2 }
    after:
      - update: { sessionUpdate: session_info_update, title: A file }
  - match: please fail
    steps:
      - error: { code: -32603, message: Internal error, data: { details: overloaded } }
"#;

/// What acpx made of one prompt.
struct Judged {
    code: Option<i32>,
    /// The frames that it printed, of both sides.
    printed: Vec<String>,
    folder: TempDir,
}

/// None where acpx cannot be had on this machine.
async fn judged(policy: &str, prompt: &str) -> Option<Judged> {
    let [node, acpx] = installed(Path::new(env!("CARGO_MANIFEST_DIR")), ["node", "acpx"]).await?;
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["home", "work"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let place = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(folder.path().join("script.yaml"), SCRIPT).expect("a script");
    let agent = format!(
        "{} --script {} --record {}",
        env!("CARGO_BIN_EXE_scripted-agent"),
        place("script.yaml"),
        place("record")
    );
    let mut command = Command::new(node);
    command
        .arg(acpx)
        .args(["--agent", &agent, "--cwd", &place("work"), policy])
        .args(["--format", "json", "--json-strict", "exec", prompt])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", place("home"))
        .kill_on_drop(true);
    let told = within(command.output()).await.expect("it runs");
    let lines = String::from_utf8(told.stdout).expect("text");
    let printed = lines.lines().map(|line| canonical(line, policy)).collect();
    Some(Judged {
        code: told.status.code(),
        printed,
        folder,
    })
}

fn canonical(line: &str, policy: &str) -> String {
    let frame: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{policy}: {error}: {line}"));
    frame.to_string()
}

impl Judged {
    fn wrote(&self) -> bool {
        self.folder.path().join("work/hello.txt").exists()
    }

    /// Both sides keep to the schema, and acpx saw what was sent, whole.
    fn check_frames(&self) {
        let record = record::read(&self.folder.path().join("record")).expect("a record");
        let frames = frames(&record);
        assert_eq!(faults(&frames, Side::Agent), Vec::<String>::new());
        assert_eq!(faults(&frames, Side::Client), Vec::<String>::new());
        let mut ours: Vec<String> = frames.iter().map(|(_, frame)| frame.to_string()).collect();
        // What came after the answer may be cut by the end of acpx.
        ours.retain(|frame| !frame.contains("session_info_update"));
        for frame in &ours {
            assert!(
                self.printed.contains(frame),
                "not seen by acpx: {frame}\n{:#?}",
                self.printed
            );
        }
        assert!(self.printed.len() >= ours.len());
    }

    fn printed(&self, part: &str) -> usize {
        self.printed.iter().filter(|frame| frame.contains(part)).count()
    }
}

#[tokio::test]
async fn a1_acpx_prompts_the_scripted_agent_and_allows_what_it_asks() {
    let Some(judged) = judged("--approve-all", "please write").await else {
        return;
    };
    assert_eq!(judged.code, Some(0), "{:#?}", judged.printed);
    judged.check_frames();
    assert!(judged.wrote());
    assert_eq!(judged.printed("\"method\":\"session/request_permission\""), 1);
    assert_eq!(judged.printed("\"optionId\":\"allow\"}"), 1);
    assert_eq!(judged.printed("\"stopReason\":\"end_turn\""), 1);
}

#[tokio::test]
async fn a1_acpx_denies_what_the_scripted_agent_asks() {
    let Some(judged) = judged("--deny-all", "please write").await else {
        return;
    };
    // Its own way to say that something was refused.
    assert_eq!(judged.code, Some(5), "{:#?}", judged.printed);
    judged.check_frames();
    assert!(!judged.wrote());
    assert_eq!(judged.printed("\"stopReason\":\"end_turn\""), 1);
}

#[tokio::test]
async fn a1_acpx_is_told_of_an_error() {
    let Some(judged) = judged("--approve-all", "please fail").await else {
        return;
    };
    assert_ne!(judged.code, Some(0), "{:#?}", judged.printed);
    judged.check_frames();
    assert!(judged.printed("\"code\":-32603") >= 1, "{:#?}", judged.printed);
}
