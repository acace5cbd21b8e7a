//! Agents' processes, and what they start.

use std::fs;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use sillage::core::run::{Event, FailureClass, WaitCause};

use super::{Stage, eventually};

/// A grandchild in a session of its own that would write for ever, and an agent that then does what follows.
fn with_grandchild(then: &str) -> String {
    format!(
        "prompts:\n  - match: Alpha\n    steps:\n      - grandchild: {{ group: session, hold_stdout: true, command: \"while :; do echo tick >> {{{{script_dir}}}}/ticks; sleep 0.02; done\" }}\n      - wait_for: \"{{{{script_dir}}}}/ticks\"\n      - touch: \"{{{{script_dir}}}}/at_work\"\n{then}"
    )
}

/// Nothing writes any more: nobody is left who could, for the shell stood in the agent's folder.
fn assert_silence(stage: &Stage) {
    stage.assert_no_process();
    let size = |stage: &Stage| fs::metadata(stage.path("ticks")).expect("it ticked").len();
    let now = size(stage);
    stage.assert_no_process();
    assert_eq!(size(stage), now);
}

#[test]
fn p1_a_grandchild_ends_with_the_agent_that_is_stopped() {
    let stage = Stage::without_repository(&with_grandchild("      - silent: until_cancelled\n"));
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    running.signal(Signal::INT);
    running.wait().expect(130);
    assert_silence(&stage);
}

#[test]
fn p1_a_grandchild_ends_with_the_agent_whose_time_is_up() {
    let stage = Stage::without_repository(&with_grandchild("      - silent: for_ever\n"));
    stage.task("", &["id: alpha, mission: Alpha, max_duration: 1s"], &[]);
    let outcome = stage.run().expect(1).outcome();
    assert_eq!(outcome["state"], "failed");
    let log = stage.log();
    assert_eq!(log.failure("alpha").class, FailureClass::TimedOut);
    assert_silence(&stage);
}

#[test]
fn p1_a_grandchild_ends_with_the_agent_that_is_done() {
    let stage = Stage::without_repository(&with_grandchild("      - report: { summary: Done. }\n"));
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    stage.run().expect(0);
    assert_silence(&stage);
}

#[test]
fn p2_an_agent_that_answers_and_never_exits_is_done_all_the_same() {
    let stage = Stage::without_repository(
        "end: { ignore_eof: true, ignore_sigterm: true }\nprompts:\n  - { match: Alpha, steps: [report: { summary: Done. }] }\n",
    );
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let outcome = stage.run().expect(0).outcome();
    assert_eq!(outcome["state"], "complete");
    assert_eq!(
        stage
            .log()
            .count(|event| matches!(event, Event::SessionClosed { trouble: None, .. })),
        1
    );
    stage.assert_no_process();
}

/// How long ago an agent was last heard, by the answer of `status --json`; none when it does not say.
fn silent_for(status: &serde_json::Value, agent: &str) -> Option<Duration> {
    let heard = status["last_heard"][agent].as_u64()?;
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970");
    now.checked_sub(Duration::from_millis(heard))
}

#[test]
fn p2_an_agent_that_falls_silent_is_shown_as_such_and_ended_by_its_longest_time() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Alpha\n    steps: [tool: { id: t, title: Look, kind: read, status: completed }, touch: \"{{script_dir}}/silent\", silent: for_ever]\n",
    );
    stage.task("", &["id: alpha, mission: Alpha, max_duration: 10s"], &[]);
    let running = stage.start_run();
    stage.appears("silent");
    eventually("a silence of two seconds", || {
        silent_for(&stage.status(), "alpha").is_some_and(|silent| silent >= Duration::from_secs(2))
    });
    let told = stage.start(&["status"]).wait().expect(0).stdout;
    assert!(told.contains("alpha was last heard"), "{told}");
    running.wait().expect(1);
    let log = stage.log();
    let failure = log.failure("alpha");
    assert_eq!(failure.class, FailureClass::TimedOut);
    assert!(failure.words.contains("max_duration"), "{failure:?}");
    assert_eq!(
        log.count(|event| matches!(event, Event::WaitStarted { .. })),
        0,
        "R11: its longest time fails a step, silence does not"
    );
    stage.assert_no_process();
}

#[test]
fn p3_an_agent_that_is_silent_with_a_busy_child_is_running() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Alpha\n    steps:\n      - touch: \"{{script_dir}}/at_work\"\n      - run: { quiet: true, command: \"while [ ! -e {{script_dir}}/go ]; do :; done\" }\n      - report: { summary: Done. }\n",
    );
    stage.limit("silentAfter", "1s");
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let running = stage.start_run();
    stage.appears("at_work");
    let mut last = serde_json::Value::Null;
    eventually("a silence of three times the bound", || {
        last = stage.status();
        silent_for(&last, "alpha").is_some_and(|silent| silent >= Duration::from_secs(3))
    });
    assert_eq!(last["run"]["steps"][0]["state"], "running");
    stage.write("go", "");
    running.wait().expect(0);
    let log = stage.log();
    let troubles = log.count(|event| {
        matches!(
            event,
            Event::WaitStarted { .. } | Event::StepFailing { .. } | Event::SessionLost { .. }
        )
    });
    assert_eq!(troubles, 0);
    stage.assert_no_process();
}

#[test]
fn r11_an_agent_that_is_silent_for_too_long_is_cancelled_and_waits_to_be_asked_again() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Alpha\n    steps: [touch: \"{{script_dir}}/at_work\", tool: { id: t, title: Look, kind: read, status: completed }, silent: until_cancelled]\n",
    );
    stage.limit("silentAfter", "1s");
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    let mut step = serde_json::Value::Null;
    eventually("the wait", || {
        step = stage.status()["run"]["steps"][0].clone();
        step["state"] == "waiting"
    });
    let words = step["waiting_for"]["words"].as_str().expect("words");
    assert!(words.contains("was silent for 1"), "{words}");
    assert!(stage.received("session/cancel"));
    running.signal(Signal::INT);
    running.wait().expect(130);
    let log = stage.log();
    let backoff = |event: &Event| {
        matches!(
            event,
            Event::WaitStarted {
                cause: WaitCause::Backoff,
                resend: false,
                ..
            }
        )
    };
    assert_eq!(log.count(backoff), 1);
    assert_eq!(log.count(|event| matches!(event, Event::StepFailing { .. })), 0);
    stage.assert_no_process();
}

#[test]
fn r11_a_silent_agent_that_does_not_obey_is_ended_and_its_step_still_waits() {
    let stage = Stage::without_repository(
        "on_cancel: ignore\nprompts:\n  - match: Alpha\n    steps: [touch: \"{{script_dir}}/at_work\", silent: for_ever]\n",
    );
    stage.limit("silentAfter", "1s");
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    // It is given its time to obey first.
    let mut step = serde_json::Value::Null;
    eventually("the session's loss", || {
        step = stage.status()["run"]["steps"][0].clone();
        step["started"].is_u64() && step["session"].is_null()
    });
    assert_eq!(step["state"], "waiting");
    running.signal(Signal::INT);
    running.wait().expect(130);
    let log = stage.log();
    let lost = log.count(
        |event| matches!(event, Event::SessionLost { words, .. } if words.contains("did not stop within")),
    );
    assert_eq!(lost, 1);
    assert_eq!(log.count(|event| matches!(event, Event::StepFailing { .. })), 0);
    stage.assert_no_process();
}

#[test]
fn p4_what_an_agent_wrote_before_it_exited_is_told() {
    let stage = Stage::without_repository("start: { stderr: \"the licence has run out\\n\", exit: 1 }\n");
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    stage.run().expect(1);
    let log = stage.log();
    let words = &log.failure("alpha").words;
    assert!(
        words.contains("the licence has run out") && words.contains('1'),
        "{words}"
    );
    stage.assert_no_process();
}

#[test]
fn p5_an_agent_that_takes_its_time_to_start_is_starting_then_running() {
    let stage = Stage::without_repository(
        "start: { wait_for: \"{{script_dir}}/go\" }\nprompts:\n  - { match: Alpha, steps: [report: { summary: Done. }] }\n",
    );
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let running = stage.start_run();
    eventually("the agent's process", || !stage.record().is_empty());
    stage.write("go", "");
    running.wait().expect(0);
    let log = stage.log();
    assert_eq!(
        log.after(|event| matches!(event, Event::SessionPlanned { .. }))
            .words(),
        [("alpha", "starting")]
    );
    assert_eq!(
        log.after(|event| matches!(event, Event::MessagePlanned { .. }))
            .words(),
        [("alpha", "running")]
    );
    assert_eq!(
        log.count(|event| matches!(event, Event::StepFailing { .. } | Event::WaitStarted { .. })),
        0
    );
}

#[test]
fn p8_a_report_without_its_deliverable_goes_back_and_names_it() {
    let stage = Stage::new(
        "prompts:\n  - { match: Alpha, steps: [report: { summary: All done already. }] }\n  - match: page.md\n    steps: [write: { path: docs/page.md, content: \"# Page\\n\" }, report: { summary: Now it is there. }]\n",
    );
    stage.task(
        "",
        &["id: alpha, mission: Alpha, deliverable: { files: [docs/page.md] }, worktree: always"],
        &[],
    );
    let outcome = stage.run().expect(0).outcome();
    let log = stage.log();
    let mut told = Vec::new();
    for fact in &log.facts {
        if let Event::ReportRefused { faults, .. } = &fact.event {
            told.extend(faults.iter().map(ToString::to_string));
        }
    }
    assert!(
        matches!(told.as_slice(), [fault] if fault.contains("docs/page.md")),
        "{told:?}"
    );
    assert_eq!(
        log.count(|event| matches!(event, Event::ReportAccepted { .. })),
        1
    );
    let branch = outcome["branch"].as_str().expect("a branch");
    assert_eq!(stage.git(&["show", &format!("{branch}:docs/page.md")]), "# Page");
}

#[test]
fn p8_a_deliverable_that_never_comes_is_no_success() {
    let stage =
        Stage::new("prompts:\n  - { times: always, steps: [report: { summary: All done already. }] }\n");
    stage.task(
        "",
        &["id: alpha, mission: Alpha, deliverable: { files: [docs/page.md] }, worktree: always"],
        &[],
    );
    stage.run().expect(1);
    let log = stage.log();
    assert_eq!(log.failure("alpha").class, FailureClass::ReportRefused);
    assert!(
        log.failure("alpha").words.contains("docs/page.md"),
        "{:?}",
        log.failure("alpha")
    );
    assert_eq!(
        log.count(|event| matches!(event, Event::ReportAccepted { .. })),
        0
    );
}
