//! A machine that has no more files, processes or memory to give (H4).

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use sillage::core::run::{Event, RunEnd, WaitCause};

use super::{Stage, eventually};

/// How many files a process may have open at once, and may have at most.
fn open_files(pid: u32, limit: Option<u64>) -> Rlimit {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let before = rustix::process::getrlimit(Resource::Nofile);
    let new = Rlimit {
        current: limit.or(before.current),
        maximum: before.maximum,
    };
    prlimit(pid, Resource::Nofile, new).expect("it is ours")
}

#[test]
fn h4_an_engine_without_files_to_open_waits_and_goes_on_when_there_are_some() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Beta\n    times: always\n    steps: [report: { summary: Beta is done. }]\n  - match: Alpha\n    steps: [touch: \"{{script_dir}}/alpha\", wait_for: \"{{script_dir}}/go\", report: { summary: Alpha is done. }]\n",
    );
    stage.setting("waits", "first", "1s");
    stage.task(
        "",
        &["id: alpha, mission: Alpha", "id: beta, mission: Beta"],
        &["alpha -> beta"],
    );
    let mut running = stage.start_run();
    stage.appears("alpha");
    // What it has open stays so; nothing comes to it.
    open_files(running.pid(), Some(4));
    stage.write("go", "");
    assert!(running.says("\"wait_started\""), "it waits rather than fail");
    assert!(running.says("\"wait_started\""), "and tries again");
    open_files(running.pid(), None);
    eventually("others are answered again", || {
        let status = stage.start(&["status", "--json"]).wait();
        status.code == 0
    });
    running.wait().expect(0);
    let log = stage.log();
    assert_eq!(log.run.end(), Some(RunEnd::Complete));
    for fact in &log.facts {
        if let Event::WaitStarted { cause, words, .. } = &fact.event {
            assert_eq!(*cause, WaitCause::Backoff);
            assert!(words.contains("open files"), "{words}");
        }
    }
    assert_eq!(stage.prompts("Alpha is done").len(), 1, "nothing is sent twice");
    stage.assert_no_process();
}
