//! Taking up what was cut, stopped or failed.

use rustix::process::Signal;
use sillage::core::run::{Event, RunEnd};
use sillage_acp::scripted_agent::record::Event as Deed;

use super::Stage;

/// Alpha succeeds; Beta fails until the file `mended` is there; Gamma follows Beta; Delta is apart. Messages quote the
/// reports from upstream, so what is downstream is matched first.
const FAILING: &str = r#"
prompts:
  - { match: Gamma, times: always, steps: [report: { summary: Gamma is done. }] }
  - { match: Beta, times: always, if_exists: "{{script_dir}}/mended", steps: [report: { summary: Beta is done. }] }
  - { match: Beta, times: always, steps: [error: { code: -32602, message: the model is not known }] }
  - { match: Alpha, times: always, steps: [report: { summary: Alpha is done. }] }
  - { match: Delta, times: always, steps: [report: { summary: Delta is done. }] }
"#;

fn failing() -> Stage {
    let stage = Stage::without_repository(FAILING);
    let agents = ["alpha", "beta", "gamma", "delta"].map(|id| {
        let mission = format!("{}{}", id[..1].to_uppercase(), &id[1..]);
        format!("id: {id}, mission: {mission}")
    });
    let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
    stage.task("", &agents, &["alpha -> beta", "beta -> gamma"]);
    stage
}

#[test]
fn r1_what_is_apart_completes_and_the_run_names_what_failed() {
    let stage = failing();
    let outcome = stage.run().expect(1).outcome();
    assert_eq!(outcome["state"], "failed");
    let log = stage.log();
    assert_eq!(
        log.words(),
        [
            ("alpha", "complete"),
            ("beta", "failed"),
            ("gamma", "not_run"),
            ("delta", "complete")
        ]
    );
    assert!(
        log.failure("beta").words.contains("the model is not known"),
        "{:?}",
        log.failure("beta")
    );
    stage.write("mended", "");
    let outcome = stage.resume().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    assert_eq!(stage.prompts("Gamma").len(), 1);
    stage.assert_no_process();
}

#[test]
fn r2_what_succeeded_is_asked_once_in_all() {
    let stage = failing();
    stage.run().expect(1);
    stage.resume().expect(1);
    stage.write("mended", "");
    stage.resume().expect(0);
    // Nothing is left: resuming again asks nothing and tells the same end.
    stage.resume().expect(0);
    // Beta's message quotes Alpha's report: what counts is whose mission it is.
    let asked: Vec<String> = stage
        .prompts("Alpha")
        .into_iter()
        .filter(|text| !text.contains("Beta"))
        .collect();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete));
    assert_eq!(log.count(|event| matches!(event, Event::ResumeAsked)), 2);
    assert_eq!(
        log.count(|event| matches!(event, Event::ReportAccepted { .. })),
        4,
        "each report once"
    );
}

#[test]
fn r7_run_resumes_nothing_by_itself_and_says_what_can_be() {
    let stage = failing();
    stage.run().expect(1);
    let first = stage.log().run.id().to_string();
    let ended = stage.start(&["run", "task.yaml", "--yes"]).wait().expect(1);
    assert!(
        ended.stdout.contains(&format!("sillage resume {first}")),
        "{}",
        ended.stdout
    );
    let logs = stage.logs();
    assert_eq!(logs.len(), 2, "a run of its own");
    let told = stage.start(&["status"]).wait().expect(0).stdout;
    assert_eq!(told.matches("failed    2 of 4 succeeded").count(), 2, "{told}");
    assert_ne!(logs[0].run.id().to_string(), first);
    assert_eq!(
        logs[1].count(|event| matches!(event, Event::ResumeAsked | Event::EngineStarted { .. })),
        0
    );
}

#[test]
fn r4_a_program_that_was_missing_is_installed_and_resume_starts_it() {
    let stage = Stage::without_repository(FAILING);
    stage.task(
        "",
        &["id: alpha, mission: Alpha", "id: delta, mission: Delta"],
        &[],
    );
    let settings = std::fs::read_to_string(stage.path("config.yaml")).expect("the settings");
    let missing = stage.path("bin/agent").display().to_string();
    stage.write(
        "config.yaml",
        settings.replace(env!("CARGO_BIN_EXE_sillage"), &missing),
    );
    stage.run().expect(1);
    let log = stage.log();
    assert_eq!(log.words(), [("alpha", "failed"), ("delta", "failed")]);
    assert!(
        log.failure("alpha").words.contains(&missing),
        "{:?}",
        log.failure("alpha")
    );
    std::fs::create_dir_all(stage.path("bin")).expect("our own folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sillage"), &missing).expect("our own folder");
    stage.resume().expect(0);
    assert_eq!(
        stage.log().words(),
        [("alpha", "complete"), ("delta", "complete")]
    );
}

/// An agent that does half, waits to be cancelled, and does the rest when it is asked to go on.
const STOPPABLE: &str = r#"
prompts:
  - match: Alpha
    steps:
      - write: { path: half.txt, content: "half\n" }
      - touch: "{{script_dir}}/at_work"
      - silent: until_cancelled
  - match: interrupted
    steps: [write: { path: rest.txt, content: "rest\n" }, report: { summary: Both halves are done. }]
  - match: Alpha
    steps: [write: { path: half.txt, content: "half\n" }, write: { path: rest.txt, content: "rest\n" }, report: { summary: Done anew. }]
"#;

// The requirement R4: stop, and force.
#[test]
fn an_interrupt_stops_the_run_and_resume_completes_it() {
    let stage = Stage::new(STOPPABLE);
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    let before = stage.checkout();
    let mut running = stage.start_run();
    stage.appears("at_work");
    running.signal(Signal::INT);
    let outcome = running.wait().expect(130).outcome();
    assert_eq!(outcome["state"], "stopped");
    stage.assert_no_process();
    let log = stage.log();
    assert_eq!(
        log.count(|event| matches!(event, Event::StopAsked { forced: true })),
        0,
        "it obeyed"
    );
    let outcome = stage.resume().expect(0).outcome();
    let branch = outcome["branch"].as_str().expect("a branch");
    let files = stage.git(&["ls-tree", "--name-only", branch]);
    assert!(
        files.contains("half.txt") && files.contains("rest.txt"),
        "{files}"
    );
    assert_eq!(stage.checkout(), before);
    stage.assert_no_process();
}

// The requirement R4: stop, and force.
#[test]
fn a_second_interrupt_forces_it() {
    let script = "on_cancel: ignore\nend: { ignore_eof: true, ignore_sigterm: true }\nprompts:\n  - match: Alpha\n    times: always\n    unless_exists: \"{{script_dir}}/mended\"\n    steps: [touch: \"{{script_dir}}/at_work\", silent: for_ever]\n  - match: /Alpha|interrupted/\n    steps: [report: { summary: Done. }]\n";
    let stage = Stage::new(script);
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    running.signal(Signal::INT);
    // The first was heard: the agent was asked to stop, and does not.
    super::eventually("the agent is asked to stop", || stage.received("session/cancel"));
    running.signal(Signal::INT);
    let outcome = running.wait().expect(130).outcome();
    assert_eq!(outcome["state"], "stopped");
    stage.assert_no_process();
    let log = stage.log();
    assert_eq!(
        log.count(|event| matches!(event, Event::StopAsked { forced: true })),
        1
    );
    let asked = log
        .facts
        .iter()
        .find(|fact| matches!(fact.event, Event::StopAsked { .. }))
        .expect("a stop")
        .at;
    let over = log.facts.last().expect("an end").at;
    assert!(
        over.since(asked) < log.run.definition().policy.stop_grace,
        "without waiting for the grace"
    );
    stage.write("mended", "");
    stage.resume().expect(0);
    stage.assert_no_process();
}

#[test]
fn p6_an_engine_killed_in_the_middle_of_an_answer_is_taken_up() {
    let stage = Stage::new(STOPPABLE);
    stage.task("", &["id: alpha, mission: Alpha, worktree: always"], &[]);
    let running = stage.start_run();
    stage.appears("at_work");
    running.kill();
    // The kernel tells the agent of its engine's death.
    super::eventually("no process outlives the engine", || stage.processes().is_empty());
    // Nobody is told that it runs.
    let answer = stage.status();
    assert_eq!(
        (&answer["run"]["state"], &answer["driven"], &answer["cut"]),
        (&"running".into(), &false.into(), &true.into())
    );
    assert_eq!(answer["runs"][0]["cut"], true);
    let told = stage.start(&["status"]).wait().expect(0).stdout;
    assert!(told.contains(" is cut, ") && !told.contains("running"), "{told}");
    assert!(
        told.contains("⊘ alpha") && told.contains("is not known"),
        "{told}"
    );
    stage.resume().expect(0);
    assert_eq!(stage.status()["cut"], false);
    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete));
    assert_eq!(
        log.count(|event| matches!(event, Event::SessionFound { .. })),
        1,
        "its session was found again"
    );
    assert_eq!(stage.prompts("Alpha").len(), 1, "its mission was sent once");
    stage.assert_no_process();
}

/// R6, by the agents' own record: the engine is killed with one agent that is done, two at work and one that is to
/// follow. What it had started is taken up under its identifiers, and nothing is started twice.
#[test]
fn r6_an_engine_killed_in_the_middle_starts_nothing_twice_when_it_is_resumed() {
    let at_work = |agent: &str| {
        format!(
            "  - {{ match: Mission of {agent}, steps: [touch: \"{{{{script_dir}}}}/{agent}\", silent: until_cancelled] }}\n"
        )
    };
    let script = format!(
        "prompts:\n  - {{ match: Mission of last, steps: [report: {{ summary: Last is done. }}] }}\n{}{}  - {{ match: Mission of first, steps: [report: {{ summary: First is done. }}] }}\n  - {{ match: interrupted, times: 2, steps: [report: {{ summary: The rest is done. }}] }}\n",
        at_work("left"),
        at_work("right"),
    );
    let stage = Stage::new(&script);
    let agents = ["first", "left", "right", "last"].map(|id| format!("id: {id}, mission: Mission of {id}"));
    let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
    let links = ["first -> left", "first -> right", "left -> last", "right -> last"];
    stage.task("", &agents, &links);
    let running = stage.start_run();
    stage.appears("left");
    stage.appears("right");
    running.kill();
    super::eventually("no process outlives the engine", || stage.processes().is_empty());
    let before = stage.log();
    stage.resume().expect(0);
    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete));
    // Each identifier that the engine planned, with the session that an agent gave for it.
    let mut sessions = std::collections::BTreeMap::new();
    for fact in &log.facts {
        if let Event::SessionPlanned { request, .. } = &fact.event {
            let again = sessions.insert(request.client_session_id, None);
            assert_eq!(again, None, "an identifier was planned twice");
        }
        let (Event::SessionOpened { session, opened, .. } | Event::SessionFound { session, opened, .. }) =
            &fact.event
        else {
            continue;
        };
        let native = opened.native.clone().expect("an agent's session");
        let known = sessions
            .insert(*session, Some(native.clone()))
            .expect("it was planned");
        assert!(
            known.is_none_or(|known| known == native),
            "another session was taken for it"
        );
    }
    let planned = |log: &super::stage::Log| log.count(|event| matches!(event, Event::SessionPlanned { .. }));
    assert_eq!(
        (planned(&before), planned(&log)),
        (3, 4),
        "one session an agent, in both lives"
    );
    // The agents' own record: they started these and no others, and were told each mission once.
    let natives: std::collections::BTreeSet<String> = sessions.into_values().flatten().collect();
    let (mut asked, mut started, mut missions) = (Vec::new(), Vec::new(), Vec::new());
    for deed in stage.record() {
        if let Deed::Received { frame } = &deed
            && frame["method"] == "session/new"
        {
            asked.push(frame["id"].clone());
        }
        if let Deed::Sent { frame } = &deed
            && let Some(session) = frame["result"]["sessionId"].as_str()
        {
            started.push(session.to_owned());
        }
        if let Deed::Prompted {
            session, number: 1, ..
        } = deed
        {
            missions.push(session);
        }
    }
    assert_eq!(asked.len(), 4, "sessions were asked for: {asked:?}");
    started.sort_unstable();
    missions.sort_unstable();
    let natives: Vec<String> = natives.into_iter().collect();
    assert_eq!(started, natives);
    assert_eq!(missions, natives, "each has its mission once");
    assert_eq!(
        stage.prompts("interrupted").len(),
        2,
        "and two were asked to go on"
    );
    stage.assert_no_process();
}

#[test]
fn h14_a_run_that_cannot_be_shown_is_not_begun_and_one_that_cannot_be_shown_any_more_is_stopped() {
    let stage = Stage::without_repository(STOPPABLE);
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let full = || {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        full.expect("it is there")
    };
    let mut command = stage.command(&["run", "task.yaml", "--yes"]);
    let output = command.stdout(full()).output().expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot write to standard output"), "{told}");
    assert!(stage.logs().is_empty(), "nothing was begun");

    let mut running = stage.start_run();
    stage.appears("at_work");
    running.signal(Signal::INT);
    running.wait().expect(130);
    stage
        .script("prompts: [{ match: /Alpha|interrupted/, times: always, steps: [silent: until_cancelled] }]");
    let mut command = stage.command(&["resume"]);
    let output = command.stdout(full()).output().expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(
        told.contains("cannot write to standard output") && told.contains("sillage resume"),
        "{told}"
    );
    assert_eq!(stage.log().run.end(), Some(RunEnd::Stopped));
    stage.assert_no_process();
}
