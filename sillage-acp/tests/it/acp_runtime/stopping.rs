//! The stop and crash matrix: each kind of agent with each kind of child, ended in each way, by a real engine in a
//! process of its own. No process outlives its end or the next start (C5–C8, P6).

use std::path::PathBuf;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use sillage_acp::leftovers::{self, LeftoverState};
use sillage_testkit::condition;
use tempfile::TempDir;

use super::runs;

/// Bounds, not waits: the machine may be busy.
const BOUND: std::time::Duration = std::time::Duration::from_secs(120);

/// Kinds of agents: how each behaves at its end, and what it does once it has answered.
const AGENTS: [(&str, &str, &str); 4] = [
    ("good", "{}", ""),
    ("deaf-to-eof", "{ ignore_eof: true }", ""),
    ("deaf-to-term", "{ ignore_eof: true, ignore_sigterm: true }", ""),
    ("stopped", "{}", "    after: [grandchild: \"kill -STOP $PPID\"]\n"),
];

/// Kinds of children: the step that starts each.
const CHILDREN: [(&str, &str); 5] = [
    ("none", ""),
    (
        "background",
        "      - grandchild: { command: \"exec sleep 300\" }\n",
    ),
    (
        "group",
        "      - grandchild: { command: \"exec sleep 300\", group: own }\n",
    ),
    (
        "session",
        "      - grandchild: { command: \"exec sleep 300\", group: session }\n",
    ),
    // Its parents have gone, and it is in a session of its own.
    (
        "orphan",
        "      - grandchild: { command: \"(setsid sleep 300 </dev/null >/dev/null 2>&1 &)\" }\n",
    ),
];

/// An engine with a session of every kind. Killed when the test gives up.
struct Engine {
    stage: TempDir,
    engine: Child,
}

/// A process that works on the stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    pid: u32,
    parent: u32,
}

impl Engine {
    fn of_all_kinds() -> Self {
        let stage = tempfile::tempdir().expect("a folder");
        for (agent, end, after) in AGENTS {
            for (child, step) in CHILDREN {
                let folder = stage.path().join(format!("{agent}-{child}"));
                std::fs::create_dir(&folder).expect("a folder");
                let script = format!(
                    "options: [{{ id: m, category: model, values: [fake-1] }}]\nend: {end}\nprompts:\n  - steps:\n{step}      - say: started\n{after}"
                );
                std::fs::write(folder.join("script.yaml"), script).expect("a script");
            }
        }
        let engine = Command::new(env!("CARGO_BIN_EXE_scripted-agent"))
            .arg("engine")
            .arg(stage.path())
            .spawn()
            .expect("an engine");
        let engine = Self { stage, engine };
        until("all agents have answered", || engine.path("ready").exists());
        assert_eq!(std::fs::read_to_string(engine.path("ready")).expect("a file"), "");
        // A guardian and an agent each, and a child for four of five.
        let all = AGENTS.len() * (CHILDREN.len() * 2 + CHILDREN.len() - 1);
        until("all children have started", || engine.processes().len() >= all);
        engine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.stage.path().canonicalize().expect("a folder").join(name)
    }

    fn records(&self) -> usize {
        std::fs::read_dir(self.path("processes")).map_or(0, Iterator::count)
    }

    /// The processes that stand in a session's folder, whoever their parents are now.
    fn processes(&self) -> Vec<Found> {
        let stage = self.path("");
        let all = std::fs::read_dir("/proc").expect("the process table");
        let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        numbers
            .filter(|pid| {
                let place = std::fs::read_link(format!("/proc/{pid}/cwd"));
                place.is_ok_and(|place| place.starts_with(&stage))
            })
            .filter_map(|pid| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                let (_, fields) = stat.rsplit_once(") ")?;
                let parent = fields.split_ascii_whitespace().nth(1)?.parse().ok()?;
                runs(pid).then_some(Found { pid, parent })
            })
            .collect()
    }

    fn guardians(&self) -> Vec<u32> {
        let of_engine = |found: &Found| found.parent == self.engine.id();
        let found = self.processes().into_iter().filter(of_engine);
        found.map(|one| one.pid).collect()
    }

    fn kill(&mut self) {
        self.engine.kill().expect("it is ours");
        self.engine.wait().expect("it ends");
    }

    fn nothing_is_left(&self) {
        until("nothing is left", || self.processes().is_empty());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.engine.kill();
        let _ = self.engine.wait();
        if std::thread::panicking() {
            // What failed is told; it is not to stay as well.
            let _ = leftovers::end(&self.path("processes"));
            self.processes()
                .iter()
                .for_each(|found| signal(found.pid, Signal::KILL));
        }
    }
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    condition::eventually_blocking(what, BOUND, holds);
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process");
    // It may have ended.
    let _ = kill_process(pid, signal);
}

#[test]
fn c5_c6_c7_nothing_outlives_a_close() {
    let engine = Engine::of_all_kinds();
    std::fs::write(engine.path("close"), "").expect("a file");
    until("all are closed", || engine.path("closed").exists());
    // At once: a close that comes back has proved it.
    assert_eq!(engine.processes(), []);
    assert_eq!(
        std::fs::read_to_string(engine.path("closed")).expect("a file"),
        ""
    );
    assert_eq!(engine.records(), 0);
}

#[test]
fn c8_nothing_outlives_an_engine_that_is_killed() {
    let mut engine = Engine::of_all_kinds();
    engine.kill();
    engine.nothing_is_left();
    let told = leftovers::end(&engine.path("processes")).expect("records");
    assert_eq!(told.len(), AGENTS.len() * CHILDREN.len());
    assert!(
        told.iter().all(|one| one.state == LeftoverState::Gone),
        "{told:?}"
    );
    assert_eq!(engine.records(), 0);
}

#[test]
fn c7_nothing_outlives_a_guardian_that_is_killed() {
    let engine = Engine::of_all_kinds();
    let guardians = engine.guardians();
    assert_eq!(guardians.len(), AGENTS.len() * CHILDREN.len());
    guardians.iter().for_each(|pid| signal(*pid, Signal::KILL));
    engine.nothing_is_left();
    until("all records are removed", || engine.records() == 0);
}

#[test]
fn p6_c9_what_outlives_engine_and_guardians_ends_at_the_next_start_and_is_told() {
    let mut engine = Engine::of_all_kinds();
    let guardians = engine.guardians();
    // So that it cannot act on what happens to them.
    signal(engine.engine.id(), Signal::STOP);
    guardians.iter().for_each(|pid| signal(*pid, Signal::KILL));
    // A guardian's death is its agent's. Who is left is a child.
    until("the agents have gone", || {
        engine.processes().iter().all(|found| is_child(found.pid))
    });
    engine.kill();
    let left = engine.processes().len();
    // The child in the group of an agent that was stopped may get the system's SIGHUP for such groups.
    let children = AGENTS.len() * (CHILDREN.len() - 1);
    assert!((children - 1..=children).contains(&left), "{left}");
    let found = leftovers::find(&engine.path("processes")).expect("records");
    assert_eq!(found.len(), left, "{found:?}");
    assert!(
        found.iter().all(|one| one.state == LeftoverState::Running),
        "{found:?}"
    );

    let told = leftovers::end(&engine.path("processes")).expect("records");
    assert_eq!(engine.processes(), []);
    assert_eq!(told.len(), AGENTS.len() * CHILDREN.len());
    let ended: Vec<_> = told
        .iter()
        .filter(|one| one.state == LeftoverState::Ended)
        .collect();
    assert_eq!(ended.len(), left, "{told:?}");
    assert!(
        ended
            .iter()
            .all(|one| one.pids.len() == 1 && !one.agent.ends_with("-none")),
        "{ended:?}"
    );
    assert_eq!(engine.records(), 0);
}

fn is_child(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    matches!(name.trim(), "sleep" | "")
}
