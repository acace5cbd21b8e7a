//! The task's check, on what came of a run (G8, W10b).

use rustix::process::Signal;
use sillage::core::run::{Event, RunEnd};

use super::{Stage, eventually};

/// Two agents whose work merges without a word.
const TWO: &str = r#"
prompts:
  - match: Alpha
    steps: [write: { path: alpha.txt, content: "a\n" }, report: { summary: Alpha is done. }]
  - match: Beta
    steps: [write: { path: beta.txt, content: "b\n" }, report: { summary: Beta is done. }]
"#;

fn two(check: &str) -> Stage {
    let stage = Stage::new(TWO);
    let check = serde_json::Value::from(check.replace("STAGE", &stage.path("").display().to_string()));
    stage.task(
        &format!("check: {check}"),
        &[
            "id: alpha, mission: Alpha, worktree: always",
            "id: beta, mission: Beta, worktree: always",
        ],
        &[],
    );
    stage
}

/// Nothing is left of a check: no process, and no worktree but those of steps.
#[track_caller]
fn assert_no_trace(stage: &Stage) {
    let left = stage.worktrees();
    assert!(left.iter().all(|path| !path.ends_with("+check")), "{left:?}");
    eventually("no process is left", || stage.processes().is_empty());
    stage.git(&["fsck", "--strict"]);
}

#[test]
fn g8_a_clean_merge_that_does_not_build_is_not_complete() {
    let stage = two(
        "pwd; git status --short; test -e STAGE/mended || { echo alpha and beta do not go together >&2; test ! -e alpha.txt || test ! -e beta.txt; }",
    );
    let before = stage.checkout();
    let outcome = stage.run().expect(3).outcome();
    assert_eq!(outcome["state"], "partial");
    assert_eq!(stage.checkout(), before);
    let log = stage.log();
    assert_eq!(log.words(), [("alpha", "complete"), ("beta", "complete")]);
    let check = log.run.check().expect("it was checked");
    assert_eq!((check.passed, check.code), (false, Some(1)));
    assert!(check.output.contains("do not go together"), "{check:?}");
    assert!(!check.output.contains("??"), "a fresh worktree: {check:?}");
    let kept = std::fs::read_to_string(check.file.as_ref().expect("a file")).expect("its output");
    assert_eq!(kept, check.output);
    assert_no_trace(&stage);
    for command in [
        &["status"][..],
        &["recap"],
        &["recap", "--markdown"],
        &["journal", "--errors"],
    ] {
        let told = stage.start(command).wait().expect(0).stdout;
        assert!(told.contains("failed with exit code 1"), "{command:?}: {told}");
    }
    let json = stage.start(&["recap", "--json"]).wait().expect(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["result"]["check"]["passed"], false, "{json}");
    assert!(json["left"]["resume"].is_string(), "{json}");

    // A resume asks no agent again, and checks again.
    stage.write("mended", "");
    let outcome = stage.resume().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    assert_eq!(stage.prompts("").len(), 2);
    assert_no_trace(&stage);
}

#[test]
fn w10b_a_check_that_passes_is_recorded() {
    let stage = two("cat alpha.txt beta.txt");
    let outcome = stage.run().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    let log = stage.log();
    let check = log.run.check().expect("it was checked");
    assert_eq!((check.passed, check.output.as_str()), (true, "a\nb\n"));
    assert_no_trace(&stage);
}

#[test]
fn w10b_in_a_folder_without_a_repository_it_runs_there() {
    let stage = Stage::without_repository(TWO);
    stage.task("check: cat alpha.txt", &["id: alpha, mission: Alpha"], &[]);
    stage.run().expect(0);
    let log = stage.log();
    assert_eq!(log.run.check().map(|check| check.output.as_str()), Some("a\n"));
    assert_eq!(
        log.count(|event| matches!(event, Event::CheckStarted { commit: None })),
        1
    );
}

#[test]
fn w10b_what_a_check_started_ends_with_it_in_whatever_session() {
    let stage = two("setsid -f sleep 1000; (setsid sh -c 'sleep 1000 & exec env -i sleep 1000' &); exit 0");
    stage.run().expect(0);
    eventually("nothing is left", || stage.processes().is_empty());
    assert_no_trace(&stage);
}

const STANDS_STILL: &str = "touch STAGE/checking; test -e STAGE/go || { sleep 1000 & sleep 1000; }";

#[test]
fn w10b_an_engine_killed_while_it_checks_leaves_no_process_and_checks_again() {
    let stage = two(STANDS_STILL);
    let running = stage.start_run();
    stage.appears("checking");
    running.kill();
    eventually("no process outlives the engine", || stage.processes().is_empty());
    stage.write("go", "");
    let outcome = stage.resume().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    assert_no_trace(&stage);
}

#[test]
fn r4_a_stop_ends_the_check_and_a_resume_runs_it() {
    let stage = two(STANDS_STILL);
    let mut running = stage.start_run();
    stage.appears("checking");
    running.signal(Signal::INT);
    let outcome = running.wait().expect(130).outcome();
    assert_eq!(outcome["state"], "stopped");
    assert_no_trace(&stage);
    assert_eq!(stage.log().run.check(), None);
    stage.write("go", "");
    stage.resume().expect(0);
    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete));
    assert_eq!(log.count(|event| matches!(event, Event::CheckStarted { .. })), 2);
    assert_no_trace(&stage);
}
