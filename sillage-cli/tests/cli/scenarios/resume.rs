//! Taking up what was cut, stopped or failed.

use rustix::process::Signal;
use sillage::core::run::{Event, RunEnd};

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
    stage.resume().expect(0);
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
