//! Agents outside of runs: started, listed, stopped, by commands that end at once (A1, A2, A12).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sillage_acp::scripted_agent::record::{self, Event as Deed};

use super::{Stage, eventually};
use crate::Ended;

/// A stage with agents; whatever holds them ends with it.
pub(super) struct Cast {
    pub(super) stage: Stage,
    agents: Vec<Value>,
    limits: Value,
}

/// What the process in the background is told, so that tests need not wait for it.
const TIMES: [&str; 4] = ["--linger", "300", "--check-every", "50"];

impl Cast {
    /// Agents by name, each with its script, and the limits.
    pub(super) fn new(agents: &[(&str, &str)], limits: Value) -> Cast {
        let stage = Stage::without_repository("");
        let mut told = Vec::new();
        for (name, script) in agents {
            stage.write(&format!("{name}.yaml"), script);
            told.push(json!({
                "name": name,
                "title": format!("Agent {name}"),
                "command": env!("CARGO_BIN_EXE_sillage"),
                "args": ["scripted-agent", "--script", stage.path(&format!("{name}.yaml")),
                         "--record", stage.path(&format!("{name}.record"))],
                "workspace": stage.path("work"),
            }));
        }
        let cast = Cast {
            stage,
            agents: told,
            limits,
        };
        cast.save();
        cast
    }

    /// Changes the settings of an agent.
    pub(super) fn change(&mut self, at: usize, change: impl FnOnce(&mut Value)) {
        change(&mut self.agents[at]);
        self.save();
    }

    fn save(&self) {
        let settings = json!({ "agents": self.agents, "limits": self.limits });
        // As editors do: a reader sees the file before or after.
        self.stage.write("config.new", settings.to_string());
        fs::rename(self.stage.path("config.new"), self.stage.path("config.yaml")).expect("our own file");
    }

    /// A command below `agents` that may start the process in the background.
    #[track_caller]
    pub(super) fn order(&self, words: &[&str]) -> Ended {
        self.stage
            .start(&[&["agents"], words, &TIMES, &["--json"]].concat())
            .wait()
    }

    #[track_caller]
    pub(super) fn list(&self) -> Vec<Value> {
        let listed = self
            .stage
            .start(&["agents", "list", "--json"])
            .wait()
            .expect(0)
            .json();
        listed.as_array().expect("a list").clone()
    }

    /// Each agent's state.
    #[track_caller]
    pub(super) fn states(&self) -> Vec<String> {
        let listed = self.list();
        listed
            .iter()
            .map(|agent| agent["state"].as_str().expect("a state").to_owned())
            .collect()
    }

    #[track_caller]
    pub(super) fn logs(&self, agent: &str) -> Vec<String> {
        let told = self
            .stage
            .start(&["agents", "logs", agent, "--json"])
            .wait()
            .expect(0)
            .json();
        let lines = told["lines"].as_array().expect("lines");
        lines
            .iter()
            .map(|line| line.as_str().expect("a line").to_owned())
            .collect()
    }

    /// The numbers of the processes that an agent was, in their order.
    pub(super) fn pids(&self, agent: &str) -> Vec<u32> {
        let entries = record::read(&self.stage.path(&format!("{agent}.record"))).unwrap_or_default();
        let started = entries
            .into_iter()
            .filter(|entry| matches!(entry.event, Deed::Started { .. }));
        started.map(|entry| entry.pid).collect()
    }

    /// The process in the background.
    fn host(&self) -> Option<u32> {
        let found = self.stage.processes();
        let host = found.iter().find(|line| line.contains("agents hold"))?;
        host.split(':').next()?.parse().ok()
    }

    /// Waits until nothing is left running.
    #[track_caller]
    pub(super) fn assert_rest(&self) {
        eventually("the end of all processes", || self.stage.processes().is_empty());
        assert!(!self.stage.path("data/agents").exists(), "the socket is left");
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        // One that is about to be killed may have started another.
        for _ in 0..100 {
            let left = self.stage.processes();
            if left.is_empty() {
                return;
            }
            for line in left {
                let pid = line.split(':').next().and_then(|pid| pid.parse().ok());
                if let Some(pid) = pid.and_then(Pid::from_raw) {
                    // It may end by itself.
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
        }
    }
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process");
    kill_process(pid, Signal::KILL).expect("it is ours");
}

/// Whether the process runs: one that ended and was not reaped does not.
pub(super) fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a1_an_agent_outlives_the_command_that_started_it_and_ends_when_it_is_stopped() {
    let cast = Cast::new(
        &[
            ("alpha", "start: { stderr: \"I am here\\nstill\" }"),
            ("beta", ""),
        ],
        json!({}),
    );
    assert_eq!(cast.states(), ["stopped", "stopped"]);
    let told = cast.order(&["start", "alpha"]).expect(0).json();
    assert_eq!(
        told,
        json!({ "ok": true, "agents": [{ "name": "alpha", "ok": true, "state": "ready", "error": null, "outdated": false }] })
    );
    let listed = cast.list();
    assert_eq!(
        (&listed[0]["state"], &listed[1]["state"]),
        (&json!("ready"), &json!("stopped"))
    );
    assert_eq!(listed[0]["title"], "Agent alpha");
    assert_eq!(listed[0]["runtime"], "local");
    assert_eq!(listed[0]["can_stop_sandbox"], false);
    let pid = cast.pids("alpha")[0];
    assert!(runs(pid));
    let stands = fs::read_link(format!("/proc/{pid}/cwd")).expect("its folder");
    assert_eq!(stands, cast.stage.path("work"));
    eventually("its log", || cast.logs("alpha") == ["I am here"]);
    // It is its owner's alone, and a session of its own.
    for (file, mode) in [("data/agents", 0o600), ("data/agents.lock", 0o600)] {
        let permissions = fs::metadata(cast.stage.path(file)).expect(file).permissions();
        assert_eq!(permissions.mode() & 0o777, mode, "{file}");
    }
    // A second start finds it running.
    cast.order(&["start", "alpha", "beta"]).expect(0);
    assert_eq!(
        (cast.pids("alpha").len(), cast.states()),
        (1, vec!["ready".to_owned(); 2])
    );
    let told = cast.order(&["stop", "alpha", "beta"]);
    assert_eq!(told.expect(0).json()["agents"][0]["state"], "stopped");
    assert!(!runs(pid), "stop waits for its end");
    cast.assert_rest();
    assert_eq!(cast.states(), ["stopped", "stopped"]);
    assert_eq!(cast.logs("alpha"), ["I am here", "still"], "what it said is kept");
    // Where nothing runs there is nothing to stop.
    cast.stage.start(&["agents", "stop", "alpha"]).wait().expect(0);
    assert!(cast.stage.processes().is_empty());
}

#[test]
fn a1_a_person_reads_states_and_names_that_are_not_there_are_mistakes() {
    let cast = Cast::new(&[("alpha", "")], json!({}));
    let told = cast
        .stage
        .start(&[&["agents", "start", "alpha"], TIMES.as_slice()].concat())
        .wait()
        .expect(0);
    assert!(
        told.stdout.contains("alpha") && told.stdout.contains("ready"),
        "{}",
        told.stdout
    );
    let listed = cast.stage.start(&["agents", "list"]).wait().expect(0).stdout;
    assert!(listed.contains("ready"), "{listed}");
    for words in [["start", "alpa"], ["stop", "alpa"], ["logs", "alpa"]] {
        let refused = cast.stage.start(&["agents", words[0], words[1]]).wait().expect(2);
        assert!(
            refused
                .stderr
                .contains("no agent of the settings is called `alpa`"),
            "{}",
            refused.stderr
        );
    }
    // What is held for one settings file is not taken for another's.
    let other = cast
        .stage
        .write("other.yaml", "agents: [{ name: alpha, command: other }]");
    let other = other.to_str().expect("UTF-8");
    let refused = cast
        .stage
        .start(&["agents", "start", "alpha", "--config", other])
        .wait()
        .expect(2);
    assert!(
        refused.stderr.contains("are held for the settings"),
        "{}",
        refused.stderr
    );
    cast.order(&["stop", "alpha"]).expect(0);
    cast.assert_rest();
}

#[test]
fn a1_the_limit_stops_the_agent_that_was_idle_longest() {
    let cast = Cast::new(
        &[("alpha", ""), ("beta", ""), ("gamma", "")],
        json!({ "maxRunningAgents": 2 }),
    );
    for name in ["alpha", "beta", "gamma"] {
        cast.order(&["start", name]).expect(0);
    }
    assert_eq!(cast.states(), ["stopped", "ready", "ready"]);
    assert!(!runs(cast.pids("alpha")[0]));
    cast.order(&["start", "alpha"]).expect(0);
    assert_eq!(cast.states(), ["ready", "stopped", "ready"]);
    // More at once than there are places: those that start are not stopped for another.
    cast.order(&["stop", "alpha", "gamma"]).expect(0);
    let told = cast.order(&["start", "alpha", "beta", "gamma"]).expect(2).json();
    assert_eq!(told["ok"], false);
    assert_eq!(
        told["agents"][2]["error"],
        "too many agents running: 2 agent(s) busy (alpha, beta), the limit is 2"
    );
    assert_eq!(cast.states(), ["ready", "ready", "stopped"]);
    cast.order(&["stop", "alpha", "beta"]).expect(0);
    cast.assert_rest();
}

#[test]
fn a1_an_agent_that_is_idle_too_long_is_stopped() {
    let cast = Cast::new(&[("alpha", "")], json!({ "stopIdleAgentsAfter": "1s" }));
    cast.order(&["start", "alpha"]).expect(0);
    eventually("its end", || cast.states() == ["stopped"]);
    cast.assert_rest();
}

#[test]
fn a12_a_change_of_the_settings_makes_a_running_agent_outdated_until_its_restart() {
    let mut cast = Cast::new(&[("alpha", ""), ("beta", "")], json!({}));
    cast.order(&["start", "alpha", "beta"]).expect(0);
    cast.change(0, |agent| agent["env"] = json!({ "MORE": "yes" }));
    eventually("the change", || cast.list()[0]["outdated"] == true);
    assert_eq!(cast.list()[1]["outdated"], false);
    let shown = cast.stage.start(&["agents", "list"]).wait().expect(0).stdout;
    assert!(shown.contains("restart to apply changes"), "{shown}");
    cast.order(&["restart", "alpha"]).expect(0);
    let pids = cast.pids("alpha");
    assert!(pids.len() == 2 && !runs(pids[0]) && runs(pids[1]), "{pids:?}");
    assert_eq!(cast.list()[0]["outdated"], false);
    let environment = fs::read(format!("/proc/{}/environ", pids[1])).expect("its environment");
    assert!(String::from_utf8_lossy(&environment).contains("MORE=yes"));
    // Faulty settings change nothing, and are told.
    let right = fs::read(cast.stage.path("config.yaml")).expect("settings");
    cast.stage.write("config.yaml", "agents: [{ nam: x }]");
    cast.stage.start(&["agents", "list", "--json"]).wait().expect(2);
    assert!(runs(pids[1]));
    cast.stage.write("config.yaml", right);
    // What is taken out of them is stopped.
    let beta = cast.pids("beta")[0];
    cast.agents.remove(1);
    cast.save();
    eventually("the end of what was taken out", || !runs(beta));
    assert_eq!(cast.states(), ["ready"]);
    cast.order(&["stop", "alpha"]).expect(0);
    cast.assert_rest();
}

#[test]
fn a1_a_crash_is_an_error_in_words_and_nothing_restarts_it() {
    let cast = Cast::new(&[("alpha", "start: { stderr: \"my last words\\n\" }")], json!({}));
    cast.order(&["start", "alpha"]).expect(0);
    let pid = cast.pids("alpha")[0];
    kill(pid);
    eventually("the error", || cast.states() == ["error"]);
    let words = cast.list()[0]["error"].as_str().expect("words").to_owned();
    assert!(
        words.starts_with("agent `alpha` ended by itself (signal: 9"),
        "{words}"
    );
    // It is still told when nobody holds agents any more.
    cast.assert_rest();
    assert_eq!(cast.pids("alpha").len(), 1);
    assert_eq!(cast.list()[0]["error"], words.as_str());
    assert_eq!(cast.logs("alpha"), ["my last words"]);
    cast.order(&["start", "alpha"]).expect(0);
    assert_eq!(cast.list()[0]["error"], Value::Null);
    cast.order(&["stop", "alpha"]).expect(0);
    cast.assert_rest();
}

#[test]
fn a1_a_start_that_fails_says_why_with_the_agents_last_lines() {
    let mut cast = Cast::new(
        &[
            (
                "version",
                "agent: { protocol: 2 }\nstart: { stderr: \"new and better\\n\" }",
            ),
            ("silent", "methods: { initialize: { silent: true } }"),
            (
                "dead",
                "start: { stderr: \"no licence\\nask for one\\n\", exit: 3 }",
            ),
            (
                "refusing",
                "methods: { initialize: { error: { code: -32603, message: not today } } }",
            ),
            ("missing", ""),
            ("unset", ""),
        ],
        json!({}),
    );
    cast.change(4, |agent| agent["command"] = json!("no-such-agent-program"));
    cast.change(5, |agent| agent["env"] = json!({ "KEY": "${NO_SUCH_VARIABLE}" }));
    let names = ["version", "silent", "dead", "refusing", "missing", "unset"];
    let told = cast
        .order(&[&["start", "--handshake-timeout", "4000"], names.as_slice()].concat())
        .expect(5)
        .json();
    let expected = [
        "agent `version` speaks version 2 of ACP, and only version 1 is known\nnew and better",
        "agent `silent` did not answer `initialize` within 4.0s",
        "agent `dead` ended by itself before it answered `initialize` (exit status: 3)\nno licence\nask for one",
        "not today",
        "no-such-agent-program",
        "`NO_SUCH_VARIABLE`",
    ];
    for (at, expected) in expected.into_iter().enumerate() {
        let one = &told["agents"][at];
        assert_eq!(one["state"], "error", "{one}");
        let words = one["error"].as_str().expect("words");
        assert!(words.contains(expected), "{words}");
    }
    assert_eq!(cast.states(), ["error"; 6]);
    cast.assert_rest();
}

#[test]
fn a1_what_holds_the_agents_may_be_killed_and_leaves_none() {
    let cast = Cast::new(
        &[("alpha", "end: { ignore_eof: true, ignore_sigterm: true }")],
        json!({}),
    );
    cast.order(&["start", "alpha"]).expect(0);
    kill(cast.host().expect("a process in the background"));
    eventually("the end of the agent", || cast.stage.processes().is_empty());
    // What it left is no obstacle.
    assert_eq!(cast.states(), ["stopped"]);
    cast.order(&["start", "alpha"]).expect(0);
    assert_eq!(cast.states(), ["ready"]);
    let host = cast.host().expect("a process in the background");
    let pid = i32::try_from(host)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process");
    kill_process(pid, Signal::TERM).expect("it is ours");
    cast.assert_rest();
}

#[test]
fn a1_agents_are_held_by_one_process_however_many_start_them_at_once() {
    let cast = Cast::new(&[("alpha", ""), ("beta", ""), ("gamma", "")], json!({}));
    let starts: Vec<_> = ["alpha", "beta", "gamma", "alpha"]
        .iter()
        .map(|name| {
            cast.stage
                .start(&[&["agents", "start", name, "--json"], TIMES.as_slice()].concat())
        })
        .collect();
    for start in starts {
        start.wait().expect(0);
    }
    let hosts = cast.stage.processes();
    assert_eq!(
        hosts.iter().filter(|line| line.contains("agents hold")).count(),
        1,
        "{hosts:#?}"
    );
    assert_eq!(
        (cast.states(), cast.pids("alpha").len()),
        (vec!["ready".to_owned(); 3], 1)
    );
    cast.order(&["stop", "alpha", "beta", "gamma"]).expect(0);
    cast.assert_rest();
}

#[test]
fn a1_a_run_goes_on_beside_them_and_is_not_counted() {
    let mut cast = Cast::new(
        &[
            ("alpha", ""),
            ("worker", "prompts: [{ steps: [report: { summary: Done. }] }]"),
        ],
        json!({ "maxRunningAgents": 1 }),
    );
    cast.change(1, |agent| {
        agent["models"] = json!({ "scripted": { "id": "default" } })
    });
    cast.order(&["start", "alpha"]).expect(0);
    cast.stage.write(
        "work/task.yaml",
        "task: T\nfolders: { write: [.] }\nagents: [{ id: one, mission: Work, model: scripted, effort: default }]\n",
    );
    cast.stage.run().expect(0);
    assert_eq!(cast.states(), ["ready", "stopped"]);
    cast.order(&["stop", "alpha"]).expect(0);
    cast.assert_rest();
}
