//! The program is told to end: by signals, once and twice, and by a terminal that is closed (H6).

use std::fs::{File, OpenOptions};
use std::time::Duration;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use sillage::core::run::{Event, RunEnd};

use super::stage::{Log, Running};
use super::{Stage, eventually};

/// How long a run may take to stop, once it is asked to.
const DRAINED: Duration = Duration::from_secs(10);

/// An agent that waits to be cancelled, and then goes on when it is asked again.
const OBEDIENT: &str = "prompts:\n  - match: Alpha\n    steps: [touch: \"{{script_dir}}/at_work\", silent: until_cancelled]\n  - match: /Alpha|interrupted/\n    times: always\n    steps: [report: { summary: Done. }]\n";

/// One that does not obey, until it is mended.
const STUBBORN: &str = "on_cancel: ignore\nprompts:\n  - match: Alpha\n    times: always\n    unless_exists: \"{{script_dir}}/mended\"\n    steps: [touch: \"{{script_dir}}/at_work\", silent: for_ever]\n  - match: /Alpha|interrupted/\n    times: always\n    steps: [report: { summary: Done. }]\n";

fn stage(script: &str) -> Stage {
    let stage = Stage::without_repository(script);
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    stage
}

/// The tests themselves may be run by something that ignores hangups, and the program would inherit that.
const HEARS_HANGUPS: &str = "--default-signal=HUP";

/// Starts the run as from a terminal that is open.
fn start(stage: &Stage) -> Running {
    let arguments = ["run", "task.yaml", "--json", "--yes"];
    Running::of(stage.by_way_of(&["env", HEARS_HANGUPS], &arguments))
}

/// How often the run was asked to stop, and how long it took from the first time.
fn stopped(log: &Log) -> (usize, usize, Duration) {
    assert_eq!(log.run.end(), Some(RunEnd::Stopped));
    let asked = log
        .facts
        .iter()
        .find(|fact| matches!(fact.event, Event::StopAsked { .. }))
        .expect("a stop")
        .at;
    let over = log.facts.last().expect("an end").at;
    (
        log.count(|event| matches!(event, Event::StopAsked { forced: false })),
        log.count(|event| matches!(event, Event::StopAsked { forced: true })),
        over.since(asked),
    )
}

/// Nothing is left running, and a resume completes the run.
#[track_caller]
fn assert_resumable(stage: &Stage) {
    stage.assert_no_process();
    stage.write("mended", "");
    assert_eq!(stage.resume().expect(0).outcome()["state"], "complete");
    stage.assert_no_process();
}

#[test]
fn h6_each_signal_stops_the_run_which_drains_and_can_be_resumed() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let stage = stage(OBEDIENT);
        let mut running = start(&stage);
        stage.appears("at_work");
        running.signal(signal);
        let outcome = running.wait().expect(130).outcome();
        assert_eq!(outcome["state"], "stopped", "{signal:?}");
        let (asked, forced, took) = stopped(&stage.log());
        assert_eq!((asked, forced), (1, 0), "{signal:?}");
        assert!(took <= DRAINED, "{signal:?}: {took:?}");
        assert!(stage.received("session/cancel"));
        assert_resumable(&stage);
    }
}

#[test]
fn h6_a_second_signal_ends_it_at_once_whichever_the_first_was() {
    for (first, second) in [
        (Signal::TERM, Signal::TERM),
        (Signal::HUP, Signal::INT),
        (Signal::INT, Signal::TERM),
    ] {
        let stage = stage(STUBBORN);
        let mut running = start(&stage);
        stage.appears("at_work");
        running.signal(first);
        eventually("the agent is asked to stop", || stage.received("session/cancel"));
        running.signal(second);
        running.wait().expect(130);
        let log = stage.log();
        let (asked, forced, took) = stopped(&log);
        assert_eq!((asked, forced), (1, 1), "{first:?}, {second:?}");
        // An agent that is asked to stop has ten seconds to obey; this one has them no more.
        assert!(took < DRAINED / 2, "{first:?}, {second:?}: {took:?}");
        assert_resumable(&stage);
    }
}

/// The kernel and the shell both tell of a terminal that is closed: that forces nothing.
#[test]
fn h6_a_hangup_that_is_told_twice_forces_nothing() {
    let stage = stage(
        "prompts:\n  - match: Alpha\n    on_cancel: ignore\n    steps: [touch: \"{{script_dir}}/at_work\", wait_for: \"{{script_dir}}/go\", stop: cancelled]\n  - match: interrupted\n    steps: [report: { summary: Done. }]\n",
    );
    let mut running = start(&stage);
    stage.appears("at_work");
    running.signal(Signal::HUP);
    eventually("the agent is asked to stop", || stage.received("session/cancel"));
    running.signal(Signal::HUP);
    stage.write("go", "");
    running.wait().expect(130);
    let (asked, forced, _) = stopped(&stage.log());
    assert_eq!((asked, forced), (1, 0));
    assert_resumable(&stage);
}

#[test]
fn h6_a_program_that_is_to_outlive_its_terminal_does() {
    let stage = stage(
        "prompts:\n  - match: Alpha\n    steps: [touch: \"{{script_dir}}/at_work\", wait_for: \"{{script_dir}}/go\", report: { summary: Done. }]\n",
    );
    let mut running = Running::of(stage.by_way_of(&["nohup"], &["run", "task.yaml", "--json", "--yes"]));
    stage.appears("at_work");
    running.signal(Signal::HUP);
    // Whoever is asked for the state after it has heard it before.
    assert_eq!(stage.status()["run"]["state"], "running");
    stage.write("go", "");
    running.wait().expect(0);
    let log = stage.log();
    assert_eq!(log.count(|event| matches!(event, Event::StopAsked { .. })), 0);
    stage.assert_no_process();
}

#[test]
fn h6_a_terminal_that_is_closed_stops_the_run_which_drains_and_can_be_resumed() {
    let stage = stage(OBEDIENT);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("ours");
    let name = ptsname(&terminal, Vec::new())
        .expect("a name")
        .into_string()
        .expect("text");
    let line = || {
        let opened = OpenOptions::new().read(true).write(true).open(&name);
        opened.expect("the terminal's other end")
    };
    let mut command = stage.by_way_of(
        &["env", HEARS_HANGUPS, "setsid", "--ctty"],
        &["run", "task.yaml", "--yes"],
    );
    command
        .env("TERM", "xterm")
        .stdin(line())
        .stdout(line())
        .stderr(line());
    let mut running = Running::of(command);
    let mut screen = File::from(terminal.try_clone().expect("ours"));
    let reader = std::thread::spawn(move || {
        use std::io::Read as _;
        let mut bytes = [0; 4096];
        // Until the run is at work; what is on the screen does not matter.
        while screen.read(&mut bytes).is_ok_and(|read| read > 0) {}
    });
    stage.appears("at_work");
    // The reader holds it open as well: it is the program that has to go for that one to end.
    drop(terminal);
    running.signal(Signal::HUP);
    running.wait();
    reader.join().expect("it ends");
    let (asked, forced, took) = stopped(&stage.log());
    assert_eq!((asked, forced), (1, 0));
    assert!(took <= DRAINED, "{took:?}");
    assert_resumable(&stage);
}
