//! What agents may do, and what a person is asked.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rustix::process::Signal;
use serde_json::{Value, json};
use sillage::core::run::{AnsweredBy, Event};
use sillage_acp::scripted_agent::record::Event as Deed;

use super::stage::{Log, Running};
use super::{Stage, eventually};

/// An agent that writes a file if it may, and says whether it might.
const WRITER: &str = "prompts:\n  - { times: always, steps: [write: { path: a.txt, content: x, ask: true }, report: { summary: \"It said {{permission}}.\" }] }\n";

/// A run under `ask` whose agents wait for a person.
fn asking(stage: &Stage, agents: usize) -> Running {
    let running = stage.start(&["run", "task.yaml", "--json", "--yes", "--permissions", "ask"]);
    eventually("what is asked", || open(stage).len() == agents);
    running
}

fn json(stage: &Stage, arguments: &[&str]) -> Value {
    let ended = stage.start(&[arguments, &["--json"]].concat()).wait();
    serde_json::from_str(&ended.stdout).unwrap_or_default()
}

/// The requests that wait for a person, once there is a store to ask.
fn open(stage: &Stage) -> Vec<Value> {
    let answer = json(stage, &["permissions"]);
    answer["permissions"].as_array().cloned().unwrap_or_default()
}

/// The outcomes that agents were told, by the title of what they asked for.
fn outcomes(stage: &Stage) -> BTreeMap<String, String> {
    let mut asked: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut told = BTreeMap::new();
    for entry in sillage_acp::scripted_agent::record::read(&stage.path("record")).expect("a record") {
        let pid = entry.pid.to_string();
        if let Deed::Sent { frame } = &entry.event
            && frame["method"] == "session/request_permission"
        {
            let title = frame["params"]["toolCall"]["title"].as_str().unwrap_or_default();
            asked.insert((pid, frame["id"].to_string()), title.to_owned());
        } else if let Deed::Received { frame } = &entry.event
            && let Some(title) = asked.get(&(pid, frame["id"].to_string()))
            && frame.get("result").is_some()
        {
            let outcome = &frame["result"]["outcome"];
            let option = outcome["optionId"].as_str().or(outcome["outcome"].as_str());
            told.insert(title.clone(), option.unwrap_or_default().to_owned());
        }
    }
    told
}

fn settled(log: &Log) -> Vec<(Option<String>, AnsweredBy)> {
    let mut settled = Vec::new();
    for fact in &log.facts {
        if let Event::PermissionSettled { option, by, .. } = &fact.event {
            settled.push((option.clone(), *by));
        }
    }
    settled
}

#[test]
fn v2_a_request_shows_as_waiting_for_a_person_in_the_run_the_agent_and_the_list_and_is_let_do() {
    let stage = Stage::without_repository(WRITER);
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let running = asking(&stage, 1);
    let requests = open(&stage);
    let (id, path) = (
        requests[0]["id"].as_str().expect("a name"),
        stage.path("work/a.txt"),
    );
    assert_eq!(requests[0]["agent"], "alpha");
    assert_eq!(requests[0]["kind"], "edit");
    assert_eq!(requests[0]["paths"], json!([path]));
    assert_eq!(requests[0]["options"][0]["id"], "allow");

    let status = json(&stage, &["status"]);
    assert_eq!(status["run"]["state"], "waiting", "the run: {status}");
    let step = &status["run"]["steps"][0];
    assert_eq!(
        (&step["state"], &step["waiting_for"]["what"]),
        (&json!("waiting"), &json!("person"))
    );
    assert_eq!(status["run"]["permissions"][0]["id"], id);
    assert_eq!(status["runs"][0]["asking"], 1, "the list: {status}");
    let shown = stage.start(&["status"]).wait().stdout;
    assert!(shown.contains("waits for a person: Write"), "{shown}");
    assert!(
        shown.contains(&format!("sillage permissions allow {id}")),
        "{shown}"
    );
    let shown = stage.start(&["permissions"]).wait().stdout;
    assert!(shown.contains(id) && shown.contains("alpha"), "{shown}");
    assert!(!path.exists());

    stage.start(&["permissions", "allow", id]).wait().expect(0);
    let ended = running.wait().expect(0);
    assert!(
        ended.stdout.contains("\"event\":\"permission_asked\""),
        "follow and run tell it"
    );
    assert_eq!(std::fs::read_to_string(path).expect("it is written"), "x");
    let log = stage.log();
    assert_eq!(settled(&log), [(Some("allow".to_owned()), AnsweredBy::Person)]);
    let asked = log
        .facts
        .iter()
        .find(|fact| matches!(fact.event, Event::PermissionAsked { .. }));
    let asked = asked.expect("it was asked").at;
    let sent = sillage_acp::scripted_agent::record::read(&stage.path("record")).expect("a record");
    let sent = sent
        .iter()
        .find(|entry| matches!(&entry.event, Deed::Sent { frame } if frame["method"] == "session/request_permission"))
        .expect("it was sent")
        .at_ms;
    let shown_after = asked.0 - i64::try_from(sent).expect("a date");
    // A second where nothing else goes on; tests have company.
    assert!(shown_after < 30_000, "shown after {shown_after} ms");
    // R10: what was waited is told apart, and the journal has both ends of it.
    let step = log.step("alpha");
    assert_eq!(step.ledger().expect("it waited").waits, 1);
    let journal = stage.start(&["journal"]).wait().stdout;
    assert!(
        journal.contains("asks a person for permission") && journal.contains("a person answered"),
        "{journal}"
    );
    let recap = stage.start(&["recap"]).wait().stdout;
    assert!(recap.contains("waited"), "{recap}");
    stage.assert_no_process();
}

#[test]
fn v2_what_is_denied_is_not_done_and_others_go_on() {
    let stage = Stage::without_repository(
        "prompts:\n  - { match: Beta, steps: [report: { summary: Beta is done. }] }\n  - { match: Alpha, steps: [write: { path: a.txt, content: x, ask: true }, report: { summary: \"It said {{permission}}.\" }] }\n",
    );
    // R3: one place, which Alpha gives back while it waits.
    stage.task(
        "limits: { parallel: 1 }",
        &["id: alpha, mission: Alpha", "id: beta, mission: Beta"],
        &[],
    );
    let running = asking(&stage, 1);
    eventually("beta has the place", || {
        json(&stage, &["status"])["run"]["steps"][1]["state"] == "complete"
    });
    let id = open(&stage)[0]["id"].as_str().expect("a name").to_owned();
    let number = id.rsplit('/').next().expect("a number").to_owned();
    for (wrong, words) in [
        (
            vec!["permissions", "allow", "9999"],
            "no permission request 9999 is open",
        ),
        (
            vec!["permissions", "allow", "nonsense"],
            "names no permission request",
        ),
        (vec!["permissions", "answer", &id, "always"], "option `always`"),
    ] {
        let ended = stage.start(&wrong).wait().expect(2);
        assert!(ended.stderr.contains(words), "{wrong:?}: {}", ended.stderr);
    }
    stage.start(&["permissions", "deny", &number]).wait().expect(0);
    running.wait().expect(0);
    assert!(!stage.path("work/a.txt").exists());
    let log = stage.log();
    assert_eq!(settled(&log), [(Some("reject".to_owned()), AnsweredBy::Person)]);
    let report = log.step("alpha").report().expect("a report");
    assert_eq!(report.summary, "It said reject.");
}

#[test]
fn v2_a_stop_answers_what_is_open_cancelled() {
    let stage = Stage::without_repository(WRITER);
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let mut running = asking(&stage, 1);
    running.signal(Signal::INT);
    running.wait().expect(130);
    let told: Vec<String> = outcomes(&stage).into_values().collect();
    assert_eq!(told, ["cancelled"]);
    assert_eq!(settled(&stage.log()), [(None, AnsweredBy::Cancel)]);
    assert!(!stage.path("work/a.txt").exists());
    assert_eq!(open(&stage), [] as [Value; 0]);
    stage.assert_no_process();
}

#[test]
fn c13_what_was_open_when_the_engine_was_killed_is_asked_again() {
    let stage = Stage::without_repository(WRITER);
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let running = asking(&stage, 1);
    let before = open(&stage)[0]["id"].as_str().expect("a name").to_owned();
    running.kill();
    let shown = stage.start(&["permissions"]).wait().expect(0).stdout;
    assert!(shown.contains("no agent waits"), "{shown}");
    let resumed = stage.start(&["resume", "--json"]);
    eventually("it is asked again", || open(&stage).len() == 1);
    assert!(
        !stage.path("work/a.txt").exists(),
        "nothing was granted meanwhile"
    );
    let after = open(&stage)[0]["id"].as_str().expect("a name").to_owned();
    assert_ne!(before, after);
    // An answer to what was asked in the first life is no answer to what is asked in the second.
    stage.start(&["permissions", "allow", &before]).wait().expect(2);
    stage.start(&["permissions", "deny", &after]).wait().expect(0);
    resumed.wait().expect(0);
    assert!(!stage.path("work/a.txt").exists());
    assert_eq!(
        settled(&stage.log()),
        [(Some("reject".to_owned()), AnsweredBy::Person)]
    );
    stage.assert_no_process();
}

#[test]
fn a5_several_requests_of_one_session_are_answered_in_any_order() {
    let ask = |name: &str| {
        format!(
            "request: {{ method: session/request_permission, wait: false, params: {{ sessionId: \"{{{{session}}}}\", toolCall: {{ toolCallId: {name}, title: {name}, kind: edit, locations: [{{ path: \"{{{{script_dir}}}}/work/{name}\" }}] }}, options: [{{ optionId: allow, name: Allow, kind: allow_once }}, {{ optionId: reject, name: Reject, kind: reject_once }}] }} }}"
        )
    };
    let stage = Stage::without_repository(&format!(
        "prompts:\n  - steps: [{}, {}, wait_for: \"{{{{script_dir}}}}/go\", report: {{ summary: Done. }}]\n",
        ask("first"),
        ask("second")
    ));
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let running = asking(&stage, 2);
    let requests = open(&stage);
    let id = |at: usize| requests[at]["id"].as_str().expect("a name");
    stage.start(&["permissions", "deny", id(1)]).wait().expect(0);
    eventually("the second is told first", || outcomes(&stage).len() == 1);
    assert_eq!(outcomes(&stage).get("second").map(String::as_str), Some("reject"));
    assert_eq!(open(&stage).len(), 1, "the first waits on");
    stage.start(&["permissions", "allow", id(0)]).wait().expect(0);
    eventually("the first is told", || outcomes(&stage).len() == 2);
    stage.write("go", "");
    running.wait().expect(0);
}

/// A5: on a terminal a key answers what is in sight, and the terminal is left as it was.
#[test]
fn a5_a_key_answers_while_the_run_is_shown() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};
    use std::io::{Read as _, Write as _};
    use std::sync::{Arc, Mutex};

    let stage = Stage::without_repository(WRITER);
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("ours");
    let name = ptsname(&terminal, Vec::new())
        .expect("a name")
        .into_string()
        .expect("text");
    let line = || {
        let opened = std::fs::OpenOptions::new().read(true).write(true).open(&name);
        opened.expect("the terminal's other end")
    };
    let run = stage.command(&["run", "task.yaml", "--yes", "--permissions", "ask"]);
    // The terminal is to be that of the program's session, as a shell makes it.
    let mut command = std::process::Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(run.get_program())
        .args(run.get_args());
    command.current_dir(stage.path("work")).env_clear();
    for (name, value) in run.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
        .env("TERM", "xterm")
        .stdin(line())
        .stdout(line())
        .stderr(line());
    let kept_open = line();
    let mut child = command.spawn().expect("the program starts");
    drop(command);
    let screen = Arc::new(Mutex::new(String::new()));
    let mut reading = std::fs::File::from(terminal.try_clone().expect("ours"));
    let shown = Arc::clone(&screen);
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        // It ends with an error once nobody has the other end open.
        while let Ok(read @ 1..) = reading.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            shown.lock().expect("not poisoned").push_str(&text);
        }
    });
    let mut keyboard = std::fs::File::from(terminal.try_clone().expect("ours"));
    let sees = |what: &str| screen.lock().expect("not poisoned").contains(what);
    eventually("the question", || {
        sees("a: allow this once") && sees("alpha asks: Write")
    });
    // A key counts from a moment after the question came into sight: a person who sees nothing happen presses again.
    let mut presses = 0;
    eventually("the answer is taken", || {
        presses += 1;
        if presses % 100 == 1 {
            keyboard.write_all(b"xa").expect("ours");
        }
        stage.path("work/a.txt").exists()
    });
    eventually("the program's end", || child.try_wait().expect("ours").is_some());
    let modes = tcgetattr(&kept_open).expect("a terminal").local_modes;
    assert!(
        modes.contains(LocalModes::ICANON | LocalModes::ECHO),
        "left as it was"
    );
    drop(kept_open);
    drop((keyboard, terminal));
    reader.join().expect("it ends");
    assert_eq!(
        settled(&stage.log()),
        [(Some("allow".to_owned()), AnsweredBy::Person)]
    );
}

/// What a list grants on a folder.
const GRANTS: [&str; 3] = ["none", "read", "write"];

/// V1: each of the project's grants with each of the task's, on one folder, on a folder within another, and on the same
/// folder under another name. The agent tries each by reading and writing there.
#[test]
fn v1_the_matrix_of_project_and_task_folders_is_tried_cell_by_cell() {
    try_each_cell("", |steps| {
        format!("prompts:\n  - times: always\n    steps:\n{steps}")
    });
}

/// V1: a sub-agent has what the run has, in every cell, and no more: a plan that asks for more is refused.
#[test]
fn v1_a_sub_agent_is_never_wider_than_its_parent() {
    let dynamic = "kind: dynamic, sub_agents: { max: 1, delegate: [mission], allow: [{ model: scripted, efforts: [low] }] }, ";
    let plan = |wider: &str| {
        format!(
            r#"{{"units": [{{"id": "u", "title": "All"}}], "sub_agents": [{{"id": "sub", "units": ["u"], "mission": "Try each cell."{wider}}}]}}"#
        )
    };
    let (wider, right) = (
        plan(r#", "folders": {"write": ["/"]}, "permissions": "allow""#),
        plan(""),
    );
    let stage = try_each_cell(dynamic, |steps| {
        format!(
            "prompts:\n  - match: How they ended\n    steps: [report: {{ summary: Gathered. }}]\n  - match: Alpha\n    steps: [say: '{wider}']\n  - match: not accepted\n    steps: [say: '{right}']\n  - match: Try each cell\n    steps:\n{steps}"
        )
    });
    let log = stage.log();
    assert_eq!(log.words(), [("alpha", "complete"), ("alpha/sub", "complete")]);
    let refused = log.facts.iter().find_map(|fact| {
        let Event::PlanRefused { faults, .. } = &fact.event else {
            return None;
        };
        Some(faults.len())
    });
    assert_eq!(
        refused,
        Some(2),
        "folders and permissions are not the coordinator's to give"
    );
}

fn try_each_cell(kind: &str, script: impl Fn(&str) -> String) -> Stage {
    // A folder's name tells what the project and the task grant on it, and on its folder `in`.
    let mut lists: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let mut cells: Vec<(String, bool, bool)> = Vec::new();
    let stage = Stage::without_repository("");
    let mut grant = |of: &'static str, what: &'static str, folder: &str| {
        lists.entry((of, what)).or_default().push(folder.to_owned());
    };
    for project in GRANTS {
        for task in GRANTS {
            let granted = |what: &str| project == what || task == what;
            let folder = format!("flat-{project}-{task}");
            grant("project", project, &folder);
            grant("task", task, &folder);
            cells.push((folder, granted("read") || granted("write"), granted("write")));
            // The project grants a folder, the task one within it; then the other way round.
            for (outer, inner) in [("project", "task"), ("task", "project")] {
                let folder = format!("{outer}-{project}-over-{task}");
                grant(outer, project, &folder);
                grant(inner, task, &format!("{folder}/in"));
                cells.push((folder.clone(), project != "none", project == "write"));
                let inner_write = granted("write");
                cells.push((
                    format!("{folder}/in"),
                    project != "none" || task != "none",
                    inner_write,
                ));
                // A name that begins alike is another folder.
                cells.push((format!("{folder}-not"), false, false));
            }
        }
    }
    for (folder, ..) in &cells {
        stage.write(&format!("work/{folder}/there.txt"), "there");
    }
    let list = |of: &'static str, what: &'static str| {
        let folders = lists.get(&(of, what)).cloned().unwrap_or_default();
        folders.join(", ")
    };
    stage.write(
        "work/.sillage/project.yaml",
        format!(
            "name: P\nfolders: {{ read: [{}], write: [{}] }}\n",
            list("project", "read"),
            list("project", "write")
        ),
    );
    let mut steps = String::new();
    for (folder, ..) in &cells {
        let at = stage.path("work").join(folder);
        let at = at.display();
        let _ = write!(
            steps,
            "      - ask: {{ title: \"read {folder}\", kind: read, paths: [{at}/there.txt] }}\n      - write: {{ path: {at}/new.txt, content: x, ask: true }}\n      - write: {{ path: {at}/.git/hooks/new, content: x, ask: true }}\n"
        );
    }
    stage.script(&script(&format!(
        "{steps}      - report: {{ summary: Tried. }}\n"
    )));
    let task = |what| list("task", what);
    stage.write(
        "work/task.yaml",
        format!(
            "task: T\nfolders: {{ read: [{}], write: [{}] }}\nagents:\n  - {{ id: alpha, mission: Alpha, {kind}model: scripted, effort: low }}\n",
            task("read"),
            task("write")
        ),
    );
    // It tells more than a pipe holds that nobody reads meanwhile.
    let told = stage.command(&["run", "task.yaml", "--json", "--yes"]).output();
    crate::ended(told.expect("the program runs")).expect(0);
    let told = outcomes(&stage);
    let folders = stage.log().run.definition().folders.clone();
    let mut wrong = Vec::new();
    for (folder, read, write) in &cells {
        let at = stage.path("work").join(folder);
        let read_told = told.get(&format!("read {folder}")).map(String::as_str);
        if read_told != Some(if *read { "allow" } else { "reject" }) {
            wrong.push(format!("reading in {folder}: {read_told:?}"));
        }
        if at.join("new.txt").exists() != *write {
            wrong.push(format!("writing in {folder}: {}", !write));
        }
        if at.join(".git").exists() {
            wrong.push(format!("a hook was planted in {folder}"));
        }
        // W2: never wider than what was given to the run.
        if *write && !folders.may_write(&at) || *read && !folders.may_read(&at) {
            wrong.push(format!("{folder} is wider than the run's folders"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(cells.len(), 9 + 2 * 9 * 3);
    stage
}

/// F6: an agent with its own worktree is let write there, and not in the places that are kept from it, though a folder
/// of the task holds them.
#[test]
fn f6_protected_places_are_refused_to_an_agent_in_its_worktree() {
    let stage = Stage::new("");
    let outside = |name: &str| stage.path(name).display().to_string();
    let places = [
        ("own", "a.txt".to_owned(), true),
        ("own-git", ".git".to_owned(), false),
        ("own-hook", ".GIT/hooks/pre-commit".to_owned(), false),
        ("own-project", ".sillage/project.yaml".to_owned(), false),
        ("checkout", outside("work/a.txt"), false),
        ("checkout-git", outside("work/.git/hooks/pre-commit"), false),
        ("other", "../beta/a.txt".to_owned(), false),
        ("store", outside("data/store/new"), false),
        ("data", outside("data/new"), false),
        ("settings", outside("config.yaml"), false),
        ("beside", outside("beside/a.txt"), true),
        (
            "climbing",
            "../../../../../beside/../config.yaml".to_owned(),
            false,
        ),
    ];
    stage.write("beside/.keep", "");
    let mut steps = String::new();
    for (name, path, _) in &places {
        let _ = writeln!(
            steps,
            "      - ask: {{ title: {name}, kind: edit, paths: [\"{path}\"] }}"
        );
    }
    stage.script(&format!(
        "prompts:\n  - times: always\n    steps:\n{steps}      - report: {{ summary: Tried. }}\n"
    ));
    stage.write("work/task.yaml", "task: T\nfolders: { write: [., ../beside] }\nagents:\n  - { id: alpha, mission: Alpha, model: scripted, effort: low, worktree: always }\n");
    stage.commit("Add the task");
    let before = stage.checkout();
    let held: [&str; 2] = ["allow-in-folders", "ask"];
    for policy in held {
        let running = stage.start(&["run", "task.yaml", "--json", "--yes", "--permissions", policy]);
        if policy == "ask" {
            // Only what is not refused by rule comes to a person, who allows it.
            for _ in places.iter().filter(|(_, _, allowed)| *allowed) {
                eventually("what may be asked", || !open(&stage).is_empty());
                let request = open(&stage)[0].clone();
                let title = request["title"].as_str().unwrap_or_default().to_owned();
                assert!(["own", "beside"].contains(&title.as_str()), "{request}");
                stage
                    .start(&["permissions", "allow", request["id"].as_str().unwrap_or_default()])
                    .wait()
                    .expect(0);
                eventually("it is told", || {
                    open(&stage).iter().all(|open| open["id"] != request["id"])
                });
            }
        }
        running.wait().expect(0);
        let told = outcomes(&stage);
        for (name, _, allowed) in &places {
            let expected = if *allowed { "allow" } else { "reject" };
            assert_eq!(
                told.get(*name).map(String::as_str),
                Some(expected),
                "{policy}: {name}"
            );
        }
        std::fs::remove_file(stage.path("record")).expect("our own file");
    }
    assert_eq!(stage.checkout(), before);
}

/// R21, C12: a task without a folder to write is read-only, whoever is asked; and what was not offered is refused.
#[test]
fn r21_a_task_that_writes_nothing_only_reads_whoever_is_asked() {
    let stage = Stage::without_repository(
        "prompts:\n  - times: always\n    steps:\n      - ask: { title: inside, kind: read, paths: [task.yaml] }\n      - ask: { title: outside, kind: read, paths: [../config.yaml] }\n      - ask: { title: edit, kind: edit, paths: [a.txt] }\n      - ask: { title: shell, kind: execute, raw_input: { command: ls } }\n      - ask: { title: bare, bare: true }\n      - request: { method: fs/write_text_file, params: { sessionId: \"{{session}}\", path: \"{{script_dir}}/work/a.txt\", content: x } }\n      - request: { method: terminal/create, params: { sessionId: \"{{session}}\", command: touch, args: [\"{{script_dir}}/work/a.txt\"] } }\n      - report: { summary: Tried. }\n",
    );
    stage.write("work/task.yaml", "task: T\nfolders: { read: [.] }\nagents:\n  - { id: alpha, mission: Alpha, model: scripted, effort: low }\n");
    let running = asking(&stage, 1);
    let request = open(&stage)[0].clone();
    assert_eq!(request["title"], "inside", "nothing else comes to a person");
    stage
        .start(&["permissions", "allow", request["id"].as_str().expect("a name")])
        .wait()
        .expect(0);
    running.wait().expect(0);
    let told = outcomes(&stage);
    let told: Vec<(&str, &str)> = told
        .iter()
        .map(|(title, told)| (title.as_str(), told.as_str()))
        .collect();
    assert!(told.contains(&("inside", "allow")), "{told:?}");
    for title in ["outside", "edit", "shell"] {
        assert!(told.contains(&(title, "reject")), "{title}: {told:?}");
    }
    assert_eq!(
        told.iter().filter(|(_, told)| *told == "reject").count(),
        4,
        "{told:?}"
    );
    assert!(!stage.path("work/a.txt").exists());
    let refused = stage
        .record()
        .iter()
        .filter(|deed| matches!(deed, Deed::Received { frame } if frame["error"]["code"] == -32601))
        .count();
    assert_eq!(refused, 2, "files and terminals are not offered");
    // What was refused stands in the journal, with the rule.
    let journal = stage.start(&["journal"]).wait().expect(0).stdout;
    for told in [
        "was refused permission: edit",
        "the session has no folder to write, so it only reads",
        "outside",
    ] {
        assert!(journal.contains(told), "{told}: {journal}");
    }
}
