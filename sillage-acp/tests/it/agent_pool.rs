//! [`AgentPool`] over the scripted agent as a process: uses, limits, events, and what is left (A1, A4).

use std::num::NonZeroU32;
use std::time::Duration;

use sillage_acp::scripted_agent::record::{self, Event};
use sillage_acp::{
    AgentCommand, AgentPool, LogLine, PoolAgent, PoolError, PoolEvent, PoolOptions, StopTimes,
};
use sillage_core::agents::{AgentState, PoolLimits, Refusal};
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;

use crate::peer::within;

/// A folder with a script for each agent.
struct Wings {
    folder: TempDir,
    agents: Vec<PoolAgent>,
    options: PoolOptions,
}

impl Wings {
    fn new(agents: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        let told = agents.iter().map(|(name, script)| {
            std::fs::write(file(name), script).expect("a script file");
            let record = file(&format!("{name}.record"));
            PoolAgent {
                name: (*name).to_owned(),
                command: Ok(AgentCommand {
                    name: (*name).to_owned(),
                    command: env!("CARGO_BIN_EXE_scripted-agent").to_owned(),
                    args: ["--script", &file(name), "--record", &record]
                        .map(str::to_owned)
                        .to_vec(),
                    workspace: Some(folder.path().to_owned()),
                    ..AgentCommand::default()
                }),
            }
        });
        let agents = told.collect();
        let mut options = PoolOptions::default();
        let span = Duration::from_millis(300);
        options.runtime.stop = StopTimes {
            after_input_closed: span,
            after_term: span,
            after_kill: Duration::from_secs(5),
        };
        Self {
            folder,
            agents,
            options,
        }
    }

    fn pool(&self, most: Option<u32>) -> AgentPool {
        AgentPool::new(self.agents.clone(), limits(most), self.options.clone())
    }

    fn pid(&self, agent: &str) -> u32 {
        let entries = record::read(&self.folder.path().join(format!("{agent}.record"))).expect("a record");
        let started = entries
            .iter()
            .rfind(|entry| matches!(entry.event, Event::Started { .. }));
        started.expect("it started").pid
    }
}

fn limits(most: Option<u32>) -> PoolLimits {
    PoolLimits {
        most: most.and_then(NonZeroU32::new),
        idle: None,
    }
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn states(pool: &AgentPool) -> Vec<&'static str> {
    pool.list().iter().map(|status| status.state.word()).collect()
}

/// The next changes of state, in short.
async fn changes(events: &mut Receiver<PoolEvent>, count: usize) -> Vec<String> {
    let mut changes = Vec::new();
    while changes.len() < count {
        if let PoolEvent::State(change) = within(events.recv()).await.expect("an event") {
            changes.push(format!("{}={}", change.agent, change.state.word()));
        }
    }
    changes
}

#[tokio::test]
async fn a1_an_agent_is_started_by_its_first_use_and_busy_while_it_is_used() {
    let wings = Wings::new(&[("alpha", "start: { stderr: \"hello\\n\" }")]);
    let pool = wings.pool(None);
    let mut events = pool.events();
    let first = within(pool.acquire("alpha")).await.expect("a use");
    let second = within(pool.acquire("alpha")).await.expect("a use");
    assert_eq!(states(&pool), ["busy"]);
    drop(first);
    assert!(second.holds());
    assert_eq!(states(&pool), ["busy"]);
    drop(second);
    assert_eq!(states(&pool), ["ready"]);
    let third = within(pool.acquire("alpha")).await.expect("a use");
    within(pool.stop("alpha")).await.expect("it stops");
    assert!(!third.holds(), "a stop ends the use");
    drop(third);
    assert!(!runs(wings.pid("alpha")));
    let expected = [
        "alpha=starting",
        "alpha=ready",
        "alpha=busy",
        "alpha=ready",
        "alpha=busy",
        "alpha=stopped",
    ];
    let mut watched = Vec::new();
    let mut lines = Vec::new();
    while let Ok(event) = events.try_recv() {
        match event {
            PoolEvent::State(change) => watched.push(format!("{}={}", change.agent, change.state.word())),
            PoolEvent::Log(line) => lines.push(line),
        }
    }
    assert_eq!(watched, expected);
    let line = LogLine {
        agent: "alpha".to_owned(),
        line: "hello".to_owned(),
    };
    assert_eq!(lines, [line]);
    assert_eq!(pool.logs("alpha").expect("a log"), ["hello"]);
    assert!(matches!(
        pool.logs("beta"),
        Err(PoolError::Refused(Refusal::Unknown { .. }))
    ));
}

#[tokio::test]
async fn a1_where_all_are_busy_the_next_start_is_refused_and_an_idle_one_makes_room() {
    let wings = Wings::new(&[("alpha", ""), ("beta", ""), ("gamma", "")]);
    let pool = wings.pool(Some(2));
    let alpha = within(pool.acquire("alpha")).await.expect("a use");
    let beta = within(pool.acquire("beta")).await.expect("a use");
    let refused = within(pool.start("gamma")).await.expect_err("no room");
    assert_eq!(
        refused.to_string(),
        "too many agents running: 2 agent(s) busy (alpha, beta), the limit is 2"
    );
    drop(beta);
    let gamma = within(pool.acquire("gamma")).await.expect("a use");
    assert_eq!(states(&pool), ["busy", "stopped", "busy"]);
    // Its process was gone before the other was launched.
    let pids = [wings.pid("alpha"), wings.pid("beta"), wings.pid("gamma")];
    assert_eq!(pids.map(runs), [true, false, true]);
    assert!(alpha.holds() && gamma.holds());
    within(pool.quit()).await;
    assert!(!pids.into_iter().any(runs) && pool.is_at_rest());
    let refused = within(pool.start("alpha")).await.expect_err("it ends");
    assert!(matches!(refused, PoolError::Refused(Refusal::Quitting(_))));
}

#[tokio::test]
async fn a1_a_stop_while_an_agent_starts_takes_effect_once_the_start_has_ended() {
    let wings = Wings::new(&[("alpha", "start: { wait_for: \"{{script_dir}}/go\" }")]);
    let pool = wings.pool(None);
    let mut events = pool.events();
    let (started, stopped) = within(async {
        tokio::join!(pool.start("alpha"), async {
            assert_eq!(changes(&mut events, 1).await, ["alpha=starting"]);
            let stop = pool.stop("alpha");
            let go = async {
                tokio::task::yield_now().await;
                assert_eq!(states(&pool), ["starting"]);
                std::fs::write(wings.folder.path().join("go"), "").expect("a file");
            };
            tokio::join!(stop, go).0
        })
    })
    .await;
    assert_eq!(started, Err(PoolError::Stopped("alpha".to_owned())));
    assert_eq!(stopped, Ok(()));
    assert_eq!(changes(&mut events, 1).await, ["alpha=stopped"]);
    assert!(!runs(wings.pid("alpha")));
}

#[tokio::test]
async fn a1_what_an_agent_started_goes_with_it_when_it_crashes() {
    // It ends on its own, and leaves a child.
    let wings = Wings::new(&[("alpha", "")]);
    let mut wings = wings;
    if let Ok(command) = &mut wings.agents[0].command {
        let agent = std::mem::replace(&mut command.command, "sh".to_owned());
        let words = format!(
            "sleep 300 & echo $! > {}/child; exec \"$0\" \"$@\"",
            wings.folder.path().display()
        );
        command.args.splice(0..0, ["-c".to_owned(), words, agent]);
    }
    let pool = wings.pool(None);
    let mut events = pool.events();
    within(pool.start("alpha")).await.expect("it starts");
    let child: u32 = std::fs::read_to_string(wings.folder.path().join("child"))
        .expect("a file")
        .trim()
        .parse()
        .expect("a number");
    assert!(runs(child));
    let pid = i32::try_from(wings.pid("alpha"))
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a process"), rustix::process::Signal::KILL)
        .expect("it is ours");
    assert_eq!(
        changes(&mut events, 3).await,
        ["alpha=starting", "alpha=ready", "alpha=error"]
    );
    let status = pool.list().remove(0);
    assert_eq!(status.state, AgentState::Error);
    let words = status.error.expect("words");
    assert!(
        words.starts_with("agent `alpha` ended by itself (signal: 9"),
        "{words}"
    );
    assert!(!runs(child), "what it started is left");
    // It starts again only when it is asked to.
    within(pool.restart("alpha")).await.expect("it starts");
    within(pool.quit()).await;
}

#[tokio::test]
async fn a4_what_an_agent_says_unasked_is_borne() {
    let hello = r#"{ "jsonrpc": "2.0", "method": "_vendor/hello" }"#;
    let ask = r#"{ "jsonrpc": "2.0", "id": "x", "method": "fs/read_text_file", "params": { "path": "/etc/passwd" } }"#;
    let script = format!(
        "start: {{ stdout: \"a banner\\n\" }}\nmethods: {{ initialize: {{ before: [{hello}, {ask}], after: [{hello}] }} }}"
    );
    let wings = Wings::new(&[("alpha", &script)]);
    let pool = wings.pool(None);
    within(pool.start("alpha")).await.expect("it starts");
    let refused = || {
        let entries = record::read(&wings.folder.path().join("alpha.record")).expect("a record");
        entries.iter().any(
            |entry| matches!(&entry.event, Event::Received { frame } if frame["error"]["code"] == -32601),
        )
    };
    within(async {
        while !refused() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(states(&pool), ["ready"]);
    within(pool.quit()).await;
}

#[tokio::test]
async fn a1_dropping_the_pool_kills_what_is_left() {
    let wings = Wings::new(&[("alpha", "end: { ignore_eof: true, ignore_sigterm: true }")]);
    let pool = wings.pool(None);
    within(pool.start("alpha")).await.expect("it starts");
    let pid = wings.pid("alpha");
    drop(pool);
    within(async {
        while runs(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a1_a_start_is_given_up_when_the_program_ends() {
    let script = "end: { ignore_eof: true }\nmethods: { initialize: { silent: true } }";
    let wings = Wings::new(&[("alpha", script)]);
    let pool = wings.pool(None);
    let mut events = pool.events();
    let quit = async {
        changes(&mut events, 1).await;
        let record = wings.folder.path().join("alpha.record");
        while !record.exists() {
            tokio::task::yield_now().await;
        }
        pool.quit().await;
    };
    let (started, ()) = within(async { tokio::join!(pool.start("alpha"), quit) }).await;
    assert_eq!(started, Err(PoolError::Stopped("alpha".to_owned())));
    assert_eq!(states(&pool), ["stopped"]);
    assert!(!runs(wings.pid("alpha")));
}
