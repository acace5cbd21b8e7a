//! The agent as a process: how it starts, how it ends, and what it leaves behind.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sillage_acp::scripted_agent::record::{Entry, Event};
use sillage_testkit::condition;
use tempfile::tempdir;

use super::script;
use crate::peer::{LIMIT, Peer, said};
use crate::schema::{Side, faults, frames};

async fn until(holds: impl Fn() -> bool) {
    condition::eventually("it holds", LIMIT, async || holds()).await;
}

fn terminate(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not 0");
    kill_process(pid, Signal::TERM).expect("it is ours and alive");
}

/// Whether a process is there and is not just waiting for its parent to notice its end.
fn lives(pid: u32) -> bool {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
}

fn event(record: &[Entry], wanted: impl Fn(&Event) -> bool) -> Option<&Event> {
    record
        .iter()
        .map(|entry| &entry.event)
        .find(|event| wanted(event))
}

fn signals(record: &[Entry]) -> usize {
    record
        .iter()
        .filter(|entry| matches!(entry.event, Event::Signal { .. }))
        .count()
}

#[tokio::test]
async fn a_process_answers_writes_and_records() {
    let folder = tempdir().expect("a folder");
    let script = r#"
prompts:
  - match: /agent (\w+)/
    steps:
      - say: { text: "héllo 🙂 {{match.1}} {{env.SILLAGE_TEST_FOLDER}}", chunks: 3 }
      - write: { path: out/a.txt, content: "{{prompt}} {{text}}" }
      - record_env: [SILLAGE_TEST_FOLDER, SILLAGE_TEST_NOTHING]
      - say: "{{env.SILLAGE_TEST_NOTHING}}"
"#;
    let mut peer = Peer::process(folder.path(), script);
    let pid = peer.pid();
    peer.open().await;
    let (before, answer) = peer.prompt("be agent smith").await;
    assert!(
        answer["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("{{env.SILLAGE_TEST_NOTHING}} has no value"))
    );
    assert_eq!(
        said(&before),
        format!("héllo 🙂 smith {}", folder.path().display())
    );
    assert_eq!(
        std::fs::read_to_string(folder.path().join("out/a.txt")).expect("written"),
        "1 be agent smith"
    );

    let record = peer.record();
    assert_eq!(faults(&frames(&record), Side::Agent), Vec::<String>::new());
    assert!(record.iter().all(|entry| entry.pid == pid));
    let Event::Started { ppid, argv, env, .. } = &record[0].event else {
        panic!("{:?}", record[0])
    };
    assert_eq!((*ppid, argv[1].as_str()), (std::process::id(), "--script"));
    assert!(env.iter().any(|name| name == "SILLAGE_TEST_FOLDER"));
    let Some(Event::Env { values }) = event(&record, |event| matches!(event, Event::Env { .. })) else {
        panic!("{record:?}")
    };
    assert_eq!(values["SILLAGE_TEST_FOLDER"].as_deref(), folder.path().to_str());
    assert_eq!(values["SILLAGE_TEST_NOTHING"], None);

    peer.hang_up();
    let (status, stderr) = peer.exit().await;
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn p4_it_exits_at_start_and_says_why() {
    let folder = tempdir().expect("a folder");
    let peer = Peer::process(
        folder.path(),
        "start: { stderr: \"fatal: no api key\\n\", exit: 1 }",
    );
    let (status, stderr) = peer.exit().await;
    assert_eq!((status.code(), stderr.as_str()), (Some(1), "fatal: no api key\n"));
}

#[tokio::test]
async fn p5_it_takes_its_time_to_start() {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::process(
        folder.path(),
        "start: { stdout: \"Welcome!\\n\", wait_for: ready }",
    );
    let id = peer.ask("initialize", json!({ "protocolVersion": 1 })).await;
    assert_eq!(peer.bytes().await.as_deref(), Some(b"Welcome!".as_slice()));
    assert!(
        !peer
            .record()
            .iter()
            .any(|entry| matches!(entry.event, Event::Received { .. }))
    );
    std::fs::write(folder.path().join("ready"), "").expect("a file");
    assert_eq!(peer.until_answer(&id).await.1["result"]["protocolVersion"], 1);
}

#[tokio::test]
async fn a_faulty_script_is_told_with_its_line() {
    let folder = tempdir().expect("a folder");
    let peer = Peer::process(
        folder.path(),
        "agent: {}\nprompts:\n  - steps: [{ sya: hello }]\n",
    );
    let (status, stderr) = peer.exit().await;
    assert_eq!(status.code(), Some(2));
    assert!(
        stderr.contains("script.yaml: line 3, column 15: unknown variant `sya`"),
        "{stderr}"
    );
}

#[tokio::test]
async fn it_ends_in_the_middle_as_it_is_told() {
    for (prompt, code, signal, words) in [
        ("crash", None, Some(6), "panic: boom\n"),
        ("exit", Some(3), None, "fatal: no api key\n"),
    ] {
        let folder = tempdir().expect("a folder");
        let mut peer = Peer::process(folder.path(), &script("faults.yaml"));
        peer.open().await;
        peer.ask_prompt(prompt).await;
        assert_eq!(peer.frame().await["params"]["update"]["content"]["text"], "hel");
        assert_eq!(peer.bytes().await, None);
        let record = peer.record();
        let last = record.last().map(|entry| &entry.event);
        assert!(
            matches!(last, Some(Event::Exiting { code: told }) if told.map(i32::from) == code),
            "{last:?}"
        );
        assert!(
            !record
                .iter()
                .any(|entry| matches!(entry.event, Event::Answered { .. })),
            "{prompt}"
        );
        let (status, stderr) = peer.exit().await;
        assert_eq!(
            (status.code(), status.signal(), stderr.as_str()),
            (code, signal, words),
            "{prompt}"
        );
    }
}

#[tokio::test]
async fn half_a_line_is_the_last_it_says() {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::process(folder.path(), &script("faults.yaml"));
    peer.open().await;
    peer.ask_prompt("half-line").await;
    assert_eq!(
        peer.bytes().await.as_deref(),
        Some(br#"{"jsonrpc":"2.0","method":"session/upd"#.as_slice())
    );
    assert_eq!(peer.exit().await.0.code(), Some(0));
}

#[tokio::test]
async fn it_goes_at_the_end_of_its_input_or_stays() {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::process(
        folder.path(),
        "end: { ignore_eof: true, ignore_sigterm: true }\ndefault: [{ say: x }]",
    );
    peer.open().await;
    let pid = peer.pid();
    peer.hang_up();
    until(|| {
        peer.record()
            .iter()
            .any(|entry| matches!(entry.event, Event::Eof))
    })
    .await;
    terminate(pid);
    until(|| signals(&peer.record()) == 1).await;
    terminate(pid);
    until(|| signals(&peer.record()) == 2).await;
    assert!(
        !peer
            .record()
            .iter()
            .any(|entry| matches!(entry.event, Event::Exiting { .. }))
    );
    kill_process(
        Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not 0"),
        Signal::KILL,
    )
    .expect("ours");
    assert_eq!(peer.exit().await.0.signal(), Some(9));
}

#[tokio::test]
async fn sigterm_ends_it_in_a_prompt() {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::process(
        folder.path(),
        "end: { code: 7 }\ndefault: [{ say: x }, { silent: for_ever }]",
    );
    peer.open().await;
    peer.ask_prompt("go").await;
    peer.frame().await;
    terminate(peer.pid());
    assert_eq!(peer.bytes().await, None);
    assert_eq!(peer.exit().await.0.code(), Some(143));
}

#[tokio::test]
async fn p1_a_grandchild_outlives_it() {
    for prompt in ["orphan", "hold-stdout"] {
        let folder = tempdir().expect("a folder");
        let mut peer = Peer::process(folder.path(), &script("faults.yaml"));
        peer.open().await;
        let (before, _) = peer.prompt(prompt).await;
        assert_eq!(said(&before), "hello");
        let record = peer.record();
        let spawned = event(&record, |event| matches!(event, Event::Spawned { .. }));
        let Some(&Event::Spawned { child, .. }) = spawned else {
            panic!("{record:?}")
        };
        peer.hang_up();
        until(|| {
            peer.record()
                .iter()
                .any(|entry| matches!(entry.event, Event::Exiting { .. }))
        })
        .await;
        if prompt == "orphan" {
            assert_eq!(peer.bytes().await, None, "its standard output ends with it");
            peer.exit().await;
            assert!(lives(child), "the grandchild is still there");
            std::fs::write(folder.path().join("go"), "").expect("a file");
        } else {
            assert!(lives(child), "the grandchild is still there");
            std::fs::write(folder.path().join("go"), "").expect("a file");
            assert_eq!(
                peer.bytes().await,
                None,
                "its standard output ends with its grandchild"
            );
        }
        until(|| folder.path().join("late").exists() && !lives(child)).await;
    }
}

#[tokio::test]
async fn it_floods_standard_error_and_exits_after_answering() {
    let folder = tempdir().expect("a folder");
    let mut peer = Peer::process(folder.path(), &script("faults.yaml"));
    peer.open().await;
    assert_eq!(said(&peer.prompt("answers-then-goes").await.0), "hello");
    assert_eq!(peer.bytes().await, None);
    assert_eq!(peer.exit().await.0.code(), Some(1));

    let flood = "default: [{ stderr: { text: 0123456789, times: 20000 } }, { exit: 0 }]";
    let mut peer = Peer::process(folder.path(), flood);
    peer.open().await;
    peer.ask_prompt("go").await;
    let (status, stderr) = peer.exit().await;
    assert_eq!((status.code(), stderr.len()), (Some(0), 20_000 * 11));
}
