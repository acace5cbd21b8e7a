//! The scripted agent: what its steps do, that its frames are the protocol's, and how it ends.

use serde_json::{Value, json};
use sillage_acp::scripted_agent::record::Event;
use sillage_acp::scripted_agent::{Ending, Script};
use tempfile::tempdir;

use crate::peer::{Peer, said, within};
use crate::schema::{Side, faults, frames};

#[tokio::test]
async fn a_process_answers_writes_and_records() {
    let folder = tempdir().expect("a folder");
    let script = r#"
prompts:
  - match: /agent (\w+)/
    steps:
      - say: { text: "héllo 🙂 {{match.1}}", chunks: 3 }
      - write: { path: out/a.txt, content: "{{prompt}} {{text}}" }
      - usage: { used: 10, size: 100, cost: { amount: 0.5 } }
      - report: { summary: "did {{match.1}}" }
"#;
    let mut peer = Peer::process(folder.path(), script);
    peer.open().await;
    let (before, answer) = peer.prompt("be agent smith").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(
        said(&before).starts_with("héllo 🙂 smith```json\n"),
        "{}",
        said(&before)
    );
    let written = std::fs::read_to_string(folder.path().join("out/a.txt")).expect("written");
    assert_eq!(written, "1 be agent smith");
    let record = peer.record();
    assert_eq!(faults(&frames(&record), Side::Agent), Vec::<String>::new());
    assert_eq!(faults(&frames(&record), Side::Client), Vec::<String>::new());
    peer.hang_up();
    let (status, stderr) = peer.exit().await;
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}
