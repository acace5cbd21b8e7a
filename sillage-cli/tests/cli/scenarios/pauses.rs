//! An engine that is stopped for a while, as by a shell's job control, and goes on (H2). What it misses meanwhile is no
//! sign that anybody is lost.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use sillage::core::run::{Event, RunEnd};
use sillage_acp::scripted_agent::record::Event as Deed;

use super::stage::Log;
use super::{Stage, eventually};

/// Nobody was taken for lost, for asleep or for silent.
#[track_caller]
fn assert_nobody_was_lost(log: &Log) {
    let alarmed = log.count(|event| {
        matches!(
            event,
            Event::SessionLost { .. }
                | Event::SessionGone { .. }
                | Event::StepFailing { .. }
                | Event::EngineStarted { .. }
                | Event::MachineSlept { .. }
                | Event::ClockJumped { .. }
        )
    });
    assert_eq!(alarmed, 0, "{:#?}", log.facts);
}

/// Whether this moment has passed by some way.
fn is_well_past(moment: u64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    now > Duration::from_millis(moment) + Duration::from_secs(1)
}

#[test]
fn h2_waits_that_end_while_the_engine_is_stopped_end_once_and_nothing_is_sent_twice() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Beta\n    times: always\n    steps: [touch: \"{{script_dir}}/beta\", wait_for: \"{{script_dir}}/go\", report: { summary: Beta is done. }]\n  - match: Alpha\n    steps: [error: { code: 529, message: overloaded }]\n  - match: interrupted\n    times: always\n    steps: [report: { summary: Alpha is done. }]\n",
    );
    stage.setting("waits", "first", "3s");
    stage.task("", &["id: alpha, mission: Alpha", "id: beta, mission: Beta"], &[]);
    let mut running = stage.start_run();
    stage.appears("beta");
    let mut until = None;
    eventually("the wait", || {
        until = stage.status()["run"]["steps"][0]["waiting_for"]["until"].as_u64();
        until.is_some()
    });
    let until = until.expect("just waited for");
    running.signal(Signal::STOP);
    // Beta answers, and Alpha's wait is over: nobody is there to hear the one and to go on with the other.
    stage.write("go", "");
    eventually("Beta's answer", || {
        stage
            .record()
            .iter()
            .any(|deed| matches!(deed, Deed::Answered { .. }))
    });
    eventually("the end of the wait", || is_well_past(until));
    assert!(stage.prompts("interrupted").is_empty(), "the engine stands still");
    running.signal(Signal::CONT);
    running.wait().expect(0);

    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete));
    assert_nobody_was_lost(&log);
    for (kind, times) in [("Alpha", 1), ("Beta", 1), ("interrupted", 1)] {
        assert_eq!(stage.prompts(kind).len(), times, "{kind}");
    }
    assert_eq!(log.count(|event| matches!(event, Event::WaitStarted { .. })), 1);
    assert_eq!(log.count(|event| matches!(event, Event::WaitEnded { .. })), 1);
    assert_eq!(
        log.count(|event| matches!(event, Event::SessionPlanned { .. })),
        2
    );
    stage.assert_no_process();
}

#[test]
fn h2_r11_an_agent_that_spoke_while_the_engine_was_stopped_was_not_silent() {
    // The silence that is borne is about half of what the agent speaks for.
    let stage = Stage::without_repository(
        "prompts:\n  - match: Alpha\n    steps:\n      - touch: \"{{script_dir}}/at_work\"\n      - wait_for: \"{{script_dir}}/stopped\"\n      - say: { text: abcdefghijklmnopqrstuvwxyz, chunks: 26, delay_ms: 150 }\n      - touch: \"{{script_dir}}/spoke\"\n      - wait_for: \"{{script_dir}}/go\"\n      - report: { summary: Done. }\n",
    );
    stage.limit("silentAfter", "2s");
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let mut running = stage.start_run();
    stage.appears("at_work");
    running.signal(Signal::STOP);
    stage.write("stopped", "");
    stage.appears("spoke");
    running.signal(Signal::CONT);
    stage.write("go", "");
    running.wait().expect(0);
    let log = stage.log();
    assert_nobody_was_lost(&log);
    assert_eq!(log.count(|event| matches!(event, Event::WaitStarted { .. })), 0);
    assert_eq!(stage.prompts("Alpha").len(), 1);
    assert!(!stage.received("session/cancel"));
    stage.assert_no_process();
}
