//! Runs whose sessions a gateway holds: the program `sillage run`, the gateway and the agents are processes of their own,
//! and the agents' own records say what reached them.

use std::net::TcpListener;

use serde_json::json;
use sillage::core::run::{Event, MessagePurpose, RunEnd};
use sillage_acp::scripted_agent::record::Event as Deed;

use super::stage::Running;
use super::{Stage, eventually};
use crate::relais::{Between, Gateway, always};

/// Three agents that are at work until they are let go on, one by one.
const THREE: &str = r#"
prompts:
  - match: /Mission of (alpha|beta|gamma)/
    times: always
    steps:
      - touch: "{{script_dir}}/{{match.1}}_at_work"
      - wait_for: { path: "{{script_dir}}/{{match.1}}_go", timeout_ms: 60000 }
      - write: { path: "{{match.1}}.txt", content: "{{match.1}}\n" }
      - report: { summary: Done. }
default: [report: { summary: Done after all. }]
"#;

const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

/// The stage, with its agents at a gateway alone: the settings of runs name none.
fn staged(script: &str) -> Stage {
    let stage = Stage::new(script);
    let settings = std::fs::read_to_string(stage.path("config.yaml")).expect("the settings");
    stage.write("gateway.yaml", settings);
    stage.write(
        "config.yaml",
        r#"{ "waits": { "first": "1s", "longest": "2s" } }"#,
    );
    stage
}

fn three() -> Stage {
    let stage = staged(THREE);
    let agents = NAMES.map(|name| format!("id: {name}, mission: Mission of {name}, worktree: always"));
    let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
    stage.task("", &agents, &[]);
    stage
}

impl Stage {
    /// A gateway over the stage's agents, on a port that is free or on that of one that was killed.
    fn gateway(&self, port: u16) -> Gateway {
        self.gateway_with("token", "data", port)
    }

    /// A gateway with a token and a folder of its own.
    fn gateway_with(&self, token: &str, data: &str, port: u16) -> Gateway {
        let mut command = self.command(&["relais", "--json"]);
        command
            .args(["--port", &port.to_string()])
            .arg("--token-file")
            .arg(self.path(token))
            .arg("--config")
            .arg(self.path("gateway.yaml"))
            .arg("--data-dir")
            .arg(self.path(data));
        Gateway::start(command)
    }

    fn run_at(&self, url: &str) -> Running {
        let token = self.path("token").display().to_string();
        self.start(&[
            "run",
            "task.yaml",
            "--json",
            "--yes",
            "--relais",
            url,
            "--token-file",
            &token,
        ])
    }
}

/// R12, R5: the engine is killed while three sessions are at work. Two answer meanwhile, one is still at work when the
/// run is resumed: the same three sessions are found, what they said is collected, and nothing is asked twice.
#[test]
fn r12_an_engine_killed_over_three_sessions_at_work_finds_them_and_asks_nothing_twice() {
    let stage = three();
    let gateway = stage.gateway(0);
    let running = stage.run_at(&gateway.url);
    for name in NAMES {
        stage.appears(&format!("{name}_at_work"));
    }
    // Each session and its message are in the log before the engine dies.
    let sessions = |state: &str| gateway.sessions(state);
    eventually("three sessions work", || sessions("working") == 3);
    running.kill();
    stage.write("alpha_go", "");
    stage.write("beta_go", "");
    eventually("two answer without an engine", || {
        (sessions("idle"), sessions("working")) == (2, 1)
    });
    // Neither the address nor the token's file is told again.
    let resumed = stage.start(&["resume", "--json"]);
    eventually("the two are done", || {
        let status = stage.status();
        let steps = status["run"]["steps"].as_array().cloned().unwrap_or_default();
        steps.iter().filter(|step| step["state"] == "complete").count() == 2
    });
    assert_eq!(stage.status()["run"]["gateways"], json!([gateway.url]));
    stage.write("gamma_go", "");
    let outcome = resumed.wait().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");

    let log = stage.log();
    let found = log.count(|event| matches!(event, Event::SessionFound { .. }));
    let lost = log.count(|event| matches!(event, Event::SessionLost { .. }));
    let planned = log.count(|event| matches!(event, Event::SessionPlanned { .. }));
    assert_eq!((found, lost, planned), (3, 0, 3));
    for name in NAMES {
        let asked = stage.prompts(&format!("Mission of {name}"));
        assert_eq!(asked.len(), 1, "{name}: {asked:#?}");
    }
    assert_eq!(stage.prompts("").len(), 3, "nothing else was asked");
    let opened = |deed: &Deed| matches!(deed, Deed::Received { frame } if frame["method"] == "session/new");
    assert_eq!(stage.record().iter().filter(|deed| opened(deed)).count(), 3);
    let files = stage.git(&[
        "ls-tree",
        "--name-only",
        outcome["branch"].as_str().expect("a branch"),
    ]);
    for name in NAMES {
        assert!(files.contains(&format!("{name}.txt")), "{files}");
    }
    // What is kept of the gateway is where it is, never its token.
    let token = gateway.token.clone();
    gateway.terminate();
    for fact in &log.facts {
        assert!(!format!("{fact:?}").contains(&token), "{fact:?}");
    }
    assert_eq!(log.run.definition().gateways.len(), 1);
    stage.assert_no_process();
}

/// D16, R7: the gateway is killed in the middle and comes back at the same address: the run that waits ends, and nobody
/// was asked twice in one session.
#[test]
fn d16_a_gateway_killed_in_the_middle_comes_back_and_the_run_ends() {
    let stage = three();
    let gateway = stage.gateway(0);
    let mut running = stage.run_at(&gateway.url);
    for name in NAMES {
        stage.appears(&format!("{name}_at_work"));
    }
    eventually("three sessions work", || gateway.sessions("working") == 3);
    let port = gateway.address().port();
    gateway.kill();
    // Agents end with who holds them; the run goes on, and waits.
    let alone = format!("{}:", running.pid());
    eventually("no agent outlives its gateway", || {
        stage
            .processes()
            .iter()
            .all(|process| process.starts_with(&alone))
    });
    for name in NAMES {
        stage.write(&format!("{name}_go"), "");
    }
    let gateway = stage.gateway(port);
    let outcome = running.wait().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete));
    // Each was brought back and asked to go on; nothing was said to be wrong with its report.
    let sent = |wanted| {
        log.count(|event| matches!(event, Event::MessagePlanned { purpose, .. } if *purpose == wanted))
    };
    assert_eq!(
        (
            sent(MessagePurpose::Continuation),
            sent(MessagePurpose::Correction)
        ),
        (3, 0)
    );
    for name in NAMES {
        let asked = stage.prompts(&format!("Mission of {name}"));
        assert_eq!(asked.len(), 1, "{name}: {asked:#?}");
    }
    gateway.terminate();
    stage.assert_no_process();
}

/// B5, R12: the gateway comes back and remembers nothing, for its folder is another. Its sessions are said to be lost, and
/// each agent begins anew in a new session; none is asked twice in one.
#[test]
fn b5_a_gateway_that_forgot_everything_has_each_agent_begin_anew() {
    let stage = three();
    let gateway = stage.gateway(0);
    let running = stage.run_at(&gateway.url);
    for name in NAMES {
        stage.appears(&format!("{name}_at_work"));
    }
    eventually("three sessions work", || gateway.sessions("working") == 3);
    let port = gateway.address().port();
    gateway.kill();
    for name in NAMES {
        stage.write(&format!("{name}_go"), "");
    }
    let gateway = stage.gateway_with("token", "elsewhere", port);
    let outcome = running.wait().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    let log = stage.log();
    let lost = log.count(|event| matches!(event, Event::SessionLost { .. }));
    let planned = log.count(|event| matches!(event, Event::SessionPlanned { .. }));
    assert_eq!((lost, planned), (3, 6));
    let opened = |deed: &Deed| matches!(deed, Deed::Received { frame } if frame["method"] == "session/new");
    assert_eq!(stage.record().iter().filter(|deed| opened(deed)).count(), 6);
    for name in NAMES {
        let asked = stage.prompts(&format!("Mission of {name}"));
        assert_eq!(asked.len(), 2, "{name}: {asked:#?}");
    }
    gateway.terminate();
    stage.assert_no_process();
}

/// R6 of the scenarios: the first tries to look for a session fail for a passing reason; it is kept and looked for again.
#[test]
fn r6_a_session_that_cannot_be_looked_for_yet_is_kept() {
    let stage = staged(THREE);
    stage.task(
        "",
        &["id: alpha, mission: Mission of alpha, worktree: always"],
        &[],
    );
    let gateway = stage.gateway(0);
    let between = Between::new(gateway.address());
    let running = stage.run_at(&between.url);
    stage.appears("alpha_at_work");
    eventually("its session works", || gateway.sessions("working") == 1);
    running.kill();
    stage.write("alpha_go", "");
    between.refuses(2);
    let outcome = stage.resume().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    assert_eq!(between.left(), 0, "looking was refused twice");
    let log = stage.log();
    let found = log.count(|event| matches!(event, Event::SessionFound { .. }));
    let lost = log.count(|event| matches!(event, Event::SessionLost { .. }));
    assert_eq!((found, lost), (1, 0));
    assert_eq!(stage.prompts("").len(), 1, "its mission was sent once");
    gateway.terminate();
    stage.assert_no_process();
}

/// L2: what a run needs and the gateway lacks is named, and nothing is launched.
#[test]
fn l2_a_capability_that_is_missing_is_named_and_nothing_starts() {
    let stage = staged(THREE);
    stage.task("", &["id: alpha, mission: Mission of alpha"], &[]);
    stage.write("token", "0123456789012345678901234567890123456789");
    let status = json!({
        "name": "other", "version": "1", "protocol": 1, "uptime_seconds": 1,
        "sessions": { "starting": 0, "idle": 0, "working": 0, "waiting": 0, "ended": 0, "lost": 0 },
        "capabilities": { "working_context": true, "idempotent_session_creation": true, "flies": true },
    });
    let url = always("200 OK", status.to_string());
    let ended = stage.run_at(&url).wait().expect(2);
    let words = ended.stdout + &ended.stderr;
    assert!(words.contains("`filesystem_scope`"), "{words}");
    assert!(!words.contains("`idempotent_session_creation`"), "{words}");
    assert!(stage.logs().is_empty(), "nothing was launched");
}

/// B6: who is not there, and what is not its token, is told with what to do, before anything starts.
#[test]
fn b6_a_gateway_that_is_not_there_or_whose_token_is_another_is_told() {
    let stage = three();
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", free.local_addr().expect("a port"));
    drop(free);
    stage.write("token", "0123456789012345678901234567890123456789");
    let ended = stage.run_at(&url).wait().expect(5);
    let words = ended.stdout + &ended.stderr;
    assert!(
        words.contains(&url) && words.contains("sillage relais"),
        "{words}"
    );
    std::fs::remove_file(stage.path("token")).expect("our own file");
    let ended = stage.run_at(&url).wait().expect(2);
    let words = ended.stdout + &ended.stderr;
    assert!(
        words.contains("token") && words.contains("--token-file"),
        "{words}"
    );

    let gateway = stage.gateway(0);
    stage.write("other", "0123456789012345678901234567890123456789");
    let other = stage.path("other").display().to_string();
    let asked = [
        "run",
        "task.yaml",
        "--yes",
        "--relais",
        &gateway.url,
        "--token-file",
        &other,
    ];
    let ended = stage.start(&asked).wait().expect(2);
    assert!(ended.stderr.contains("--token-file"), "{}", ended.stderr);
    // A run whose gateway is gone is not begun anew elsewhere; it is told where its sessions are.
    let running = stage.run_at(&gateway.url);
    stage.appears("alpha_at_work");
    eventually("three sessions work", || gateway.sessions("working") == 3);
    running.kill();
    let url = gateway.url.clone();
    gateway.terminate();
    let ended = stage.start(&["resume"]).wait().expect(5);
    assert!(ended.stderr.contains(&url), "{}", ended.stderr);
    let log = stage.log();
    assert_eq!(log.count(|event| matches!(event, Event::EngineStarted { .. })), 0);
    let ended = stage
        .start(&["retry", log.run.id().as_str(), "alpha"])
        .wait()
        .expect(5);
    assert!(ended.stderr.contains(&url), "{}", ended.stderr);
    stage.assert_no_process();
}

/// A gateway of the settings is used without being named again.
#[test]
fn a_gateway_of_the_settings_holds_runs() {
    let stage = three();
    let gateway = stage.gateway(0);
    for name in NAMES {
        stage.write(&format!("{name}_go"), "");
    }
    let here = json!({ "name": "here", "url": gateway.url, "tokenFile": stage.path("token"), "capacity": 2 });
    stage.write("config.yaml", json!({ "relais": [here] }).to_string());
    stage.start(&["check", "task.yaml"]).wait().expect(0);
    assert_eq!(stage.run().expect(0).outcome()["state"], "complete");
    let log = stage.log();
    assert_eq!(log.run.definition().parallel.get(), 2, "its capacity");
    assert_eq!(log.run.definition().gateways[0].url, gateway.url);
    let again = stage.start(&["retry", log.run.id().as_str(), "alpha", "--again", "--json"]);
    again.wait().expect(0);
    // Without one the agents of the settings are needed.
    stage
        .start(&["run", "task.yaml", "--yes", "--direct"])
        .wait()
        .expect(2);
    gateway.terminate();
    stage.assert_no_process();
}

/// L12, R7: a run over two gateways of the settings. The one that is killed keeps its own session waiting and no others;
/// it is started nowhere else, and goes on once its gateway is back. A gateway that is not there at launch is told and
/// done without.
#[test]
fn l12_a_run_over_two_gateways_waits_for_the_one_that_goes() {
    let stage = three();
    let left = stage.gateway(0);
    let right = stage.gateway_with("right-token", "right", 0);
    let of = |gateway: &Gateway, token: &str, capacity: u32| json!({ "name": token, "url": gateway.url, "tokenFile": stage.path(token), "capacity": capacity });
    let settings = json!({
        "waits": { "first": "1s", "longest": "2s" },
        "relais": [of(&left, "token", 2), of(&right, "right-token", 1)],
    });
    stage.write("config.yaml", settings.to_string());
    let running = stage.start(&["run", "task.yaml", "--json", "--yes"]);
    for name in NAMES {
        stage.appears(&format!("{name}_at_work"));
    }
    eventually("each is at work where it has a place", || {
        (left.sessions("working"), right.sessions("working")) == (2, 1)
    });
    let port = right.address().port();
    right.kill();
    for name in NAMES {
        stage.write(&format!("{name}_go"), "");
    }
    eventually("one waits for its gateway, and the others are done", || {
        let status = stage.status();
        let steps = status["run"]["steps"].as_array().cloned().unwrap_or_default();
        let are = |state| steps.iter().filter(|step| step["state"] == state).count();
        (are("complete"), are("waiting")) == (2, 1)
    });
    let right = stage.gateway_with("right-token", "right", port);
    let outcome = running.wait().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    let log = stage.log();
    let planned = log.count(|event| matches!(event, Event::SessionPlanned { .. }));
    let lost = log.count(|event| matches!(event, Event::SessionLost { .. }));
    assert_eq!((planned, lost), (3, 0));
    for name in NAMES {
        let asked = stage.prompts(&format!("Mission of {name}"));
        assert_eq!(asked.len(), 1, "{name}: {asked:#?}");
    }
    assert_eq!(log.run.definition().parallel.get(), 3, "what both may be given");
    let held: Vec<&str> = log
        .run
        .definition()
        .gateways
        .iter()
        .map(|gateway| &*gateway.url)
        .collect();
    assert_eq!(held, [&*left.url, &*right.url]);
    let places = std::fs::read_dir(stage.path("data/placements")).expect("a folder");
    assert_eq!(places.count(), 0, "no session is left");

    let gone = right.url.clone();
    right.terminate();
    let ended = stage
        .start(&["run", "task.yaml", "--json", "--yes"])
        .wait()
        .expect(0);
    assert_eq!(ended.outcome()["state"], "complete");
    assert!(
        ended.stderr.contains(&gone) && ended.stderr.contains("the others are used"),
        "{}",
        ended.stderr
    );
    left.terminate();
    let ended = stage.start(&["run", "task.yaml", "--yes"]).wait().expect(5);
    assert!(ended.stderr.contains("out of reach"), "{}", ended.stderr);
    stage.assert_no_process();
}
