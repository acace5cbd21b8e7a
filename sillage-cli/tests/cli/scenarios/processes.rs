//! Agents' processes, and what they start.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sillage::core::run::{Event, FailureClass, WaitCause};

use super::{Stage, eventually};
use crate::Ended;

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
fn r11_an_agent_that_was_silent_is_asked_again_in_its_session_once_the_wait_is_over() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Alpha\n    steps: [say: I begin., silent: until_cancelled]\n  - match: interrupted\n    steps: [report: { summary: Done. }]\n",
    );
    stage.limit("silentAfter", "1s");
    stage.setting("waits", "first", "1s");
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    stage.run().expect(0);
    assert_eq!(stage.prompts("Alpha").len(), 1, "its mission is not told twice");
    assert_eq!(stage.prompts("interrupted").len(), 1);
    let log = stage.log();
    assert_eq!(log.count(|event| matches!(event, Event::WaitStarted { .. })), 1);
    assert_eq!(log.count(|event| matches!(event, Event::WaitEnded { .. })), 1);
    assert_eq!(
        log.count(|event| matches!(event, Event::SessionPlanned { .. })),
        1
    );
    let step = log.step("alpha");
    let second = Duration::from_secs(1);
    // R10: the silence was work, the wait was not.
    assert!(step.worked(log.run.updated()) >= second);
    assert!(step.waited(log.run.updated()) >= second);
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

/// Children of a process: the guardians of an engine.
fn children(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("Linux has it").flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.to_owned());
            fields.is_some_and(|fields| fields.split(' ').nth(1) == Some(parent.to_string().as_str()))
        })
        .collect()
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process");
    // It may have ended.
    let _ = kill_process(pid, signal);
}

/// The lines of `run --json` or `resume --json` that tell what was left.
fn left_behind(ended: &Ended) -> Vec<Value> {
    let lines = ended
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"] == "left_behind").collect()
}

/// A run whose two agents have each a child in a session of its own, at work.
const AT_WORK: &str = "prompts:\n  - match: Alpha\n    times: always\n    unless_exists: \"{{script_dir}}/again\"\n    steps: [grandchild: { group: session, command: exec sleep 300 }, touch: \"{{script_dir}}/alpha\", silent: for_ever]\n  - match: Beta\n    times: always\n    unless_exists: \"{{script_dir}}/again\"\n    steps: [grandchild: { group: session, command: exec sleep 300 }, touch: \"{{script_dir}}/beta\", silent: for_ever]\n  - { times: always, steps: [report: { summary: Done. }] }\n";

#[test]
fn p6_after_a_kill_9_nothing_is_left_and_the_next_start_says_so() {
    let stage = Stage::without_repository(AT_WORK);
    stage.task("", &["id: alpha, mission: Alpha", "id: beta, mission: Beta"], &[]);
    let running = stage.start_run();
    stage.appears("alpha");
    stage.appears("beta");
    running.kill();
    // Nobody has to start anything for that.
    eventually("the end of all", || stage.processes().is_empty());
    stage.write("again", "");
    let ended = stage.resume().expect(0);
    let told = left_behind(&ended);
    let mut steps: Vec<&str> = told.iter().filter_map(|line| line["step"].as_str()).collect();
    steps.sort_unstable();
    assert_eq!(steps, ["alpha", "beta"], "{told:?}");
    assert!(
        told.iter()
            .all(|line| line["state"] == "gone" && line["run"].is_string()),
        "{told:?}"
    );
    assert_eq!(
        ended.stderr.matches("left by an earlier engine").count(),
        2,
        "{}",
        ended.stderr
    );
    assert_eq!(
        fs::read_dir(stage.path("data/processes"))
            .expect("records")
            .count(),
        0
    );
    stage.assert_no_process();
}

#[test]
fn p6_what_outlives_a_kill_9_of_engine_and_guardians_is_ended_and_listed() {
    let stage = Stage::without_repository(AT_WORK);
    stage.task("", &["id: alpha, mission: Alpha", "id: beta, mission: Beta"], &[]);
    let mut running = stage.start_run();
    stage.appears("alpha");
    stage.appears("beta");
    running.signal(Signal::STOP);
    for guardian in children(running.pid()) {
        signal(guardian, Signal::KILL);
    }
    // An agent dies with its guardian; its child in a session of its own does not.
    eventually("the end of the agents", || {
        stage
            .processes()
            .iter()
            .all(|line| line.contains("sleep 300") || line.contains("task.yaml"))
    });
    running.kill();
    assert_eq!(stage.processes().len(), 2, "{:?}", stage.processes());
    let status = crate::ended(stage.command(&["status", "--json"]).output().expect("status")).json();
    assert_eq!(
        status["left_behind"].as_array().map(Vec::len),
        Some(2),
        "{status}"
    );
    assert_eq!(status["left_behind"][0]["state"], "running");

    stage.write("again", "");
    let ended = stage.resume().expect(0);
    let told = left_behind(&ended);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|line| line["state"] == "ended"), "{told:?}");
    assert_eq!(
        ended
            .stderr
            .matches("left by an earlier engine, and ended")
            .count(),
        2,
        "{}",
        ended.stderr
    );
    for line in &told {
        assert_eq!(line["pids"].as_array().map(Vec::len), Some(1));
    }
    let log = stage.log();
    let journalled = log.facts.iter().find_map(|fact| {
        let Event::EngineStarted { left, .. } = &fact.event else {
            return None;
        };
        Some(left.clone())
    });
    let journalled = journalled.expect("it was taken up");
    assert_eq!(journalled.len(), 2);
    assert!(
        journalled
            .iter()
            .all(|one| one.pids.len() == 1 && one.trouble.is_none()),
        "{journalled:?}"
    );
    stage.assert_no_process();
    let status = crate::ended(stage.command(&["status", "--json"]).output().expect("status")).json();
    assert!(status["left_behind"].is_null(), "{status}");
}

#[test]
fn p7_what_cannot_be_ended_is_told_with_its_process_and_its_record_stays() {
    if !sillage_testkit::machine::traces() {
        return;
    }
    let stage = Stage::without_repository(
        "end: { ignore_eof: true, ignore_sigterm: true }\nprompts:\n  - { times: always, steps: [report: { summary: Done. }] }\n",
    );
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let run = stage.command(&["run", "task.yaml", "--json", "--yes"]);
    let mut strace = Command::new("strace");
    strace
        .args([
            "-f",
            "-q",
            "-o",
            "/dev/null",
            "-e",
            "trace=kill,pidfd_send_signal",
        ])
        .args(["-e", "inject=kill,pidfd_send_signal:error=EPERM"])
        .arg(run.get_program())
        .args(run.get_args())
        .current_dir(stage.path("work"))
        .env_clear()
        .envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut strace = Killed(strace.spawn().expect("strace"));
    // It ends when all that it traces have ended: not before the agent.
    let output = BufReader::new(strace.0.stdout.take().expect("piped"));
    let outcome = output
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("\"outcome\""));
    assert!(outcome.is_some_and(|line| line.contains("complete")));
    let status = || crate::ended(stage.command(&["status", "--json"]).output().expect("status"));
    eventually("the engine's end", || {
        let status = status();
        status.code == 0 && status.json()["left_behind"].is_array()
    });

    let left = status().json()["left_behind"].clone();
    let log = stage.log();
    let troubles: Vec<&String> = log
        .step("alpha")
        .ledger()
        .map_or_else(Vec::new, |ledger| ledger.troubles.iter().collect());
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    let pids: Vec<u64> = left[0]["pids"]
        .as_array()
        .expect("pids")
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert!(
        pids.iter()
            .any(|pid| troubles[0].starts_with(&format!("process {pid} could not be stopped"))),
        "{troubles:?}, {pids:?}"
    );
    assert!(troubles[0].contains("cannot be delivered"), "{troubles:?}");
    assert_eq!(left[0]["step"], "alpha", "{left}");
    let records = || {
        fs::read_dir(stage.path("data/processes"))
            .expect("records")
            .count()
    };
    assert_eq!(records(), 1);

    // Whoever starts next may signal it.
    stage.script("prompts:\n  - { times: always, steps: [report: { summary: Done. }] }\n");
    let again = stage.run().expect(0);
    let told = left_behind(&again);
    assert_eq!(
        (told.len(), &told[0]["state"]),
        (1, &Value::from("ended")),
        "{told:?}"
    );
    assert_eq!(records(), 0);
    stage.assert_no_process();
}

/// A process that is ended with the test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn c10_an_agent_that_takes_all_it_can_get_is_bounded_and_the_engine_lives() {
    let stage = Stage::without_repository(
        r#"prompts:
  - match: Alpha
    steps:
      - run: "perl -e 'while (open(my $f, q(<), q(/dev/null))) { push @f, $f } print scalar @f' > {{script_dir}}/files"
      - run: "perl -e 'my $hog = q(a) x (8 << 30); print length $hog' > {{script_dir}}/memory; echo $? > {{script_dir}}/memory_code"
      - report: { summary: Done. }
  - { match: Beta, steps: [report: { summary: Done. }] }
"#,
    );
    let mut settings: Value =
        serde_json::from_str(&stage.sandbox.read("config.yaml")).expect("our own settings");
    settings["agents"][0]["limits"] = serde_json::json!({ "openFiles": 128, "memory": "4GiB" });
    stage.write("config.yaml", settings.to_string());
    stage.task(
        "",
        &["id: alpha, mission: Alpha", "id: beta, mission: Beta"],
        &["alpha -> beta"],
    );
    stage.run().expect(0);
    let files: u32 = stage.sandbox.read("files").trim().parse().expect("a number");
    assert!((64..128).contains(&files), "{files}");
    assert_eq!(stage.sandbox.read("memory"), "");
    assert_ne!(stage.sandbox.read("memory_code").trim(), "0");
    stage.assert_no_process();
}

#[test]
fn c14_no_secret_reaches_an_agent_that_its_settings_do_not_name() {
    let stage = Stage::without_repository(
        "prompts:\n  - match: Alpha\n    steps: [touch: \"{{script_dir}}/at_work\", wait_for: \"{{script_dir}}/go\", report: { summary: Done. }]\n",
    );
    let mut settings: Value =
        serde_json::from_str(&stage.sandbox.read("config.yaml")).expect("our own settings");
    settings["agents"][0]["env"] = serde_json::json!({ "NAMED_KEY": "${GIVEN_KEY}" });
    stage.write("config.yaml", settings.to_string());
    stage.task("", &["id: alpha, mission: Alpha"], &[]);
    let mut run = stage.command(&["run", "task.yaml", "--json", "--yes"]);
    let secrets = [
        "SILLAGE_TOKEN",
        "SILLAGE_ANYTHING",
        "GIT_DIR",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_COUNT",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "GEMINI_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "GIVEN_KEY",
    ];
    for name in secrets {
        run.env(
            name,
            if name == "GIT_CONFIG_COUNT" {
                "0".to_owned()
            } else {
                format!("secret of {name}")
            },
        );
    }
    let mut engine = Killed(run.spawn().expect("the program starts"));
    stage.appears("at_work");
    // The agent, its guardian, and whatever else is there.
    let mut seen = 0;
    let mut looked_at = children(engine.0.id());
    for parent in looked_at.clone() {
        looked_at.extend(children(parent));
    }
    for pid in looked_at {
        let environment = fs::read(format!("/proc/{pid}/environ")).expect("ours");
        let line = fs::read(format!("/proc/{pid}/cmdline")).expect("ours");
        assert!(
            !String::from_utf8_lossy(&line).contains("secret"),
            "{}",
            String::from_utf8_lossy(&line)
        );
        let text = String::from_utf8_lossy(&environment).into_owned();
        let mut ours = Vec::new();
        for variable in text.split('\0') {
            let (name, value) = variable.split_once('=').unwrap_or_default();
            assert!(!secrets.contains(&name), "{variable}");
            assert!(!value.contains("secret") || name == "NAMED_KEY", "{variable}");
            if name.starts_with("SILLAGE_") || name.starts_with("GIT_") {
                ours.push(name.to_owned());
            }
        }
        assert_eq!(ours, ["SILLAGE_SESSION"]);
        assert!(text.contains("NAMED_KEY=secret of GIVEN_KEY"));
        seen += 1;
    }
    assert_eq!(seen, 2, "a guardian and an agent");
    stage.write("go", "");
    eventually("the run's end", || engine.0.try_wait().expect("ours").is_some());
    assert_eq!(stage.log().words(), [("alpha", "complete")]);
}
