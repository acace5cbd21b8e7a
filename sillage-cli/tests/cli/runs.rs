//! H14: the commands that look at runs and stop them, while nobody holds the store and while somebody does.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use sillage::core::document::Format;
use sillage::core::folders::Folders;
use sillage::core::id::RunId;
use sillage::core::ports::Store;
use sillage::core::ports::runtime::RuntimeError;
use sillage::core::run::{RunDefinition, RunEnd, RunPolicy};
use sillage::core::task;
use sillage::store::{Options, SledStore};
use sillage::{ActiveRuns, ControlServer, Engine, RunHandle};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use sillage_testkit::workspace::NoWorkspace;

use crate::{Ended, Sandbox};

const TASK: &str = "
task: Build a ship
folders: { write: [.] }
agents:
  - { id: hull, mission: Lay the hull., model: m, effort: low }
  - { id: mast, mission: Step the mast., model: m, effort: low }
links:
  - hull -> mast
";

const REPORT: &str = r#"{"outcome":"complete","summary":"It floats."}"#;

/// A process that holds the store of a sandbox and drives runs, played by the test itself.
struct Holder {
    tokio: tokio::runtime::Runtime,
    store: Arc<dyn Store>,
    active: ActiveRuns,
    control: Option<ControlServer>,
}

impl Holder {
    fn of(sandbox: &Sandbox) -> Holder {
        let tokio = tokio::runtime::Runtime::new().expect("threads");
        let store = SledStore::open(sandbox.path("data/store"), Options::default()).expect("a free store");
        let store: Arc<dyn Store> = Arc::new(store);
        Holder {
            tokio,
            store,
            active: ActiveRuns::new(),
            control: None,
        }
    }

    /// Lets others ask.
    fn listening(mut self, sandbox: &Sandbox) -> Holder {
        let start = async {
            ControlServer::start(
                &sandbox.path("data"),
                Arc::clone(&self.store),
                self.active.clone(),
            )
        };
        self.control = Some(self.tokio.block_on(start).expect("a socket"));
        self
    }

    /// Launches a run whose agents answer by `reply`.
    fn launch(
        &self,
        run: &str,
        sandbox: &Sandbox,
        mut reply: impl FnMut(&str) -> Reply + Send + 'static,
    ) -> RunHandle {
        let runtime = ScriptedRuntime::new(move |asked| reply(&asked.message.text));
        let engine =
            Engine::builder(Arc::clone(&self.store), Arc::new(runtime), Arc::new(NoWorkspace)).build();
        let definition = definition(run, &sandbox.path("data"));
        let handle = self.tokio.block_on(engine.launch(definition)).expect("launched");
        self.active.add(handle.clone());
        handle
    }

    fn wait(&self, run: &RunHandle) -> RunEnd {
        self.tokio.block_on(run.wait()).expect("it ends")
    }

    /// Lets go of everything, as a process that ends.
    fn leave(mut self) {
        if let Some(control) = self.control.take() {
            self.tokio.block_on(control.close());
        }
    }
}

fn definition(run: &str, data: &Path) -> RunDefinition {
    RunDefinition {
        run: RunId::new(run).expect("a name"),
        task: Arc::new(task::read(TASK, Format::Either, None).expect("a right task")),
        task_file: Some(data.join("task.yaml")),
        task_version: 1,
        project: None,
        folders: Folders {
            read: vec![],
            write: vec![data.to_owned()],
        },
        step_folder: data.to_owned(),
        repository: None,
        worktrees: vec![],
        parallel: NonZeroU32::MIN,
        accounts: std::collections::BTreeMap::new(),
        files: data.join("runs").join(run),
        relaunch_of: None,
        gateways: Vec::new(),
        foretold: None,
        policy: RunPolicy::default(),
    }
}

/// Completes every step, the mast's only after one report without a form.
fn completes() -> impl FnMut(&str) -> Reply + Send {
    let mut spoiled = false;
    move |message| match message.contains("Step the mast") && !std::mem::replace(&mut spoiled, true) {
        true => Reply::text("It is done \u{1b}[2J, I think."),
        false => Reply::text(REPORT),
    }
}

fn fails(_: &str) -> Reply {
    Reply::Fail(RuntimeError::Permanent {
        words: "the model is gone".to_owned(),
    })
}

/// A sandbox whose store holds one run of this name, which is over; nobody holds it.
fn with_a_run(name: &str, reply: impl FnMut(&str) -> Reply + Send + 'static) -> Sandbox {
    let sandbox = Sandbox::new();
    let holder = Holder::of(&sandbox);
    let run = holder.launch(name, &sandbox, reply);
    holder.wait(&run);
    holder.leave();
    sandbox
}

/// Runs the program on the sandbox's data.
fn sillage(sandbox: &Sandbox, arguments: &[&str]) -> Ended {
    sandbox.run([&["--data-dir", "data"], arguments].concat())
}

#[track_caller]
fn answer(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let ended = sillage(sandbox, &[arguments, &["--json"]].concat());
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stdout);
    let answer = ended.json();
    assert_eq!(answer["ok"], true, "{answer}");
    answer
}

/// The program's last line, and the positions of the facts that it told before.
fn told(ended: &Ended) -> (Value, Vec<u64>) {
    let lines: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect();
    assert!(lines.iter().all(|line| line["event"].is_string()), "{lines:?}");
    let facts = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    (lines.last().cloned().unwrap_or_default(), facts)
}

/// The positions of all facts of the newest run.
fn all_facts(sandbox: &Sandbox) -> Vec<u64> {
    let last = answer(sandbox, &["status"])["runs"][0]["last"]
        .as_u64()
        .expect("a position");
    (1..=last).collect()
}

const READING: [&[&str]; 6] = [
    &["status"],
    &["exchanges"],
    &["journal"],
    &["journal", "--errors"],
    &["recap"],
    &["worktrees"],
];

#[test]
fn h14_without_any_run_each_command_says_so_and_makes_nothing() {
    let sandbox = Sandbox::new();
    for command in READING.into_iter().chain([&["follow"][..], &["stop"]]) {
        let ended = sillage(&sandbox, &[command, &["--json"]].concat());
        assert_eq!(ended.code, 2, "{command:?}");
        assert_eq!(ended.json()["error"]["kind"], "usage", "{command:?}");
    }
    assert!(!sandbox.path("data").exists());
}

#[test]
fn h14_a_run_is_read_alike_while_the_store_is_free_and_while_it_is_held() {
    let sandbox = with_a_run("20260101-000000-aaaa", completes());
    let read = |sandbox: &Sandbox| {
        READING.map(|command| {
            let mut answer = answer(sandbox, command);
            // Times of a run that is over do not change, but who asks later reads a later clock.
            answer.sort_all_objects();
            answer.to_string()
        })
    };
    let free = read(&sandbox);
    let holder = Holder::of(&sandbox).listening(&sandbox);
    assert_eq!(read(&sandbox), free);
    holder.leave();
}

#[test]
fn h14_status_tells_the_newest_run_and_lists_the_others() {
    let sandbox = with_a_run("20260101-000000-aaaa", fails);
    let holder = Holder::of(&sandbox);
    let second = holder.launch("20260102-000000-bbbb", &sandbox, completes());
    holder.wait(&second);
    holder.leave();
    let newest = answer(&sandbox, &["status"]);
    assert_eq!(newest["run"]["run"], "20260102-000000-bbbb");
    assert_eq!(newest["run"]["state"], "complete");
    assert_eq!(newest["driven"], false);
    let runs = newest["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    assert_eq!(
        (&runs[1]["state"], &runs[1]["resumable"]),
        (&Value::from("failed"), &Value::from(true))
    );
    assert_eq!(runs[0]["resumable"], false);
    let first = answer(&sandbox, &["status", "20260101-000000-aaaa"]);
    assert_eq!(
        (&first["run"]["state"], &first["runs"]),
        (&Value::from("failed"), &Value::Null)
    );
    let text = sillage(&sandbox, &["status", "20260101-000000-aaaa"]);
    assert_eq!(text.code, 0, "a failed run is an answer");
    assert!(
        text.stdout.contains("`sillage resume 20260101-000000-aaaa`"),
        "{}",
        text.stdout
    );
    assert!(!text.stdout.contains('\u{1b}'), "{}", text.stdout);
    let unknown = sillage(&sandbox, &["status", "nothing"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("there is no run nothing"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn r30_exchanges_are_told_byte_for_byte_in_order() {
    let sandbox = with_a_run("20260101-000000-aaaa", completes());
    let all = answer(&sandbox, &["exchanges"]);
    let exchanges = all["exchanges"].as_array().expect("exchanges");
    let told: Vec<_> = exchanges
        .iter()
        .map(|exchange| {
            (
                exchange["agent"].as_str().unwrap_or(""),
                exchange["purpose"].as_str().unwrap_or(""),
            )
        })
        .collect();
    assert_eq!(
        told,
        [("hull", "mission"), ("mast", "mission"), ("mast", "correction")]
    );
    assert_eq!(exchanges[0]["answer"]["text"], REPORT);
    assert_eq!(exchanges[1]["answer"]["text"], "It is done \u{1b}[2J, I think.");
    assert!(
        exchanges[1]["text"]
            .as_str()
            .is_some_and(|text| text.contains("Step the mast."))
    );
    let one = answer(&sandbox, &["exchanges", "--agent", "hull"]);
    assert_eq!(one["exchanges"], Value::from(vec![exchanges[0].clone()]));
    let text = sillage(&sandbox, &["exchanges"]).stdout;
    assert!(
        text.contains("It is done \\u{1b}[2J") && !text.contains('\u{1b}'),
        "{text}"
    );
    let unknown = sillage(&sandbox, &["exchanges", "--agent", "keel"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("hull, mast"), "{}", unknown.stderr);
}

#[test]
fn r31_the_journal_tells_all_and_with_errors_what_failed() {
    let sandbox = with_a_run("20260101-000000-aaaa", fails);
    let all = answer(&sandbox, &["journal"]);
    let errors = answer(&sandbox, &["journal", "--errors"]);
    let (all, errors) = (&all["entries"], &errors["entries"]);
    assert_eq!(all[0]["kind"], "run_created");
    let errors = errors.as_array().expect("entries");
    assert!(!errors.is_empty() && errors.len() < all.as_array().expect("entries").len());
    let text = sillage(&sandbox, &["journal", "--errors"]).stdout;
    assert!(text.contains("the model is gone"), "{text}");
}

#[test]
fn r28_the_recap_is_text_markdown_or_json() {
    let sandbox = with_a_run("20260101-000000-aaaa", completes());
    let text = sillage(&sandbox, &["recap"]);
    assert!(text.stdout.contains("It floats."), "{}", text.stdout);
    assert!(!text.stdout.contains('\u{1b}'), "{}", text.stdout);
    let markdown = sillage(&sandbox, &["recap", "--markdown"]);
    assert!(markdown.stdout.starts_with('#'), "{}", markdown.stdout);
    assert_eq!(answer(&sandbox, &["recap"])["result"]["state"], "complete");
}

#[test]
fn follow_tells_a_run_that_is_over_and_ends_with_its_code() {
    let sandbox = with_a_run("20260101-000000-aaaa", completes());
    let ended = sillage(&sandbox, &["follow", "--json"]);
    let (last, facts) = told(&ended);
    assert_eq!(
        (ended.code, &last["event"], &last["state"]),
        (0, &Value::from("outcome"), &Value::from("complete"))
    );
    assert_eq!(facts, all_facts(&sandbox), "each fact once");
    let text = sillage(&sandbox, &["follow"]).stdout;
    assert!(text.contains("hull") && !text.contains('\u{1b}'), "{text}");
    let failed = with_a_run("20260101-000000-aaaa", fails);
    assert_eq!(sillage(&failed, &["follow"]).code, 1);
}

#[test]
fn follow_and_stop_reach_the_process_that_drives_the_run() {
    let sandbox = Sandbox::new();
    let holder = Holder::of(&sandbox).listening(&sandbox);
    let run = holder.launch("20260101-000000-aaaa", &sandbox, |_| Reply::Silent);
    let follower = sandbox
        .command(["--data-dir", "data", "follow", "--json"])
        .spawn()
        .expect("the program runs");
    assert_eq!(answer(&sandbox, &["status"])["driven"], true);
    let stopped = answer(&sandbox, &["stop"]);
    assert_eq!(
        (&stopped["run"], &stopped["forced"]),
        (&Value::from("20260101-000000-aaaa"), &Value::from(false))
    );
    assert_eq!(holder.wait(&run), RunEnd::Stopped);
    let followed = crate::ended(follower.wait_with_output().expect("the program ends"));
    let (last, facts) = told(&followed);
    assert_eq!(
        (followed.code, &last["state"]),
        (130, &Value::from("stopped")),
        "{}",
        followed.stdout
    );
    assert_eq!(facts, all_facts(&sandbox), "each fact once");
    let again = sillage(&sandbox, &["stop"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("already stopped"), "{}", again.stderr);
    holder.leave();
}

#[test]
fn a_run_that_was_cut_is_told_as_that() {
    let sandbox = Sandbox::new();
    let holder = Holder::of(&sandbox);
    holder.launch("20260101-000000-aaaa", &sandbox, |_| Reply::Silent);
    holder.leave();
    let stop = sillage(&sandbox, &["stop"]);
    assert_eq!(stop.code, 2);
    assert!(
        stop.stderr.contains("nobody drives run 20260101-000000-aaaa"),
        "{}",
        stop.stderr
    );
    assert!(stop.stderr.contains("sillage resume"), "{}", stop.stderr);
    let follow = sillage(&sandbox, &["follow"]);
    assert_eq!(follow.code, 130);
    assert!(follow.stdout.contains("nobody drives run"), "{}", follow.stdout);
    let status = sillage(&sandbox, &["status"]);
    assert!(status.stdout.contains("nobody drives it"), "{}", status.stdout);
}

#[test]
fn a_holder_that_does_not_answer_is_named() {
    let sandbox = with_a_run("20260101-000000-aaaa", completes());
    let holder = Holder::of(&sandbox);
    let ended = sillage(&sandbox, &["status"]);
    assert_eq!(ended.code, 6);
    let pid = format!("pid {}", std::process::id());
    assert!(ended.stderr.contains(&pid), "{}", ended.stderr);
    holder.leave();
}
