//! No process is left: not of those that will not go, nor of what they started (P1, C3–C9).

use std::process::Command;

use sillage_acp::StopTimes;

use super::*;

fn short() -> StopTimes {
    let span = Duration::from_millis(300);
    StopTimes {
        after_input_closed: span,
        after_term: span,
        after_kill: Duration::from_secs(5),
    }
}

#[tokio::test]
async fn p1_what_an_agent_started_goes_with_it() {
    for group in ["same", "own", "session"] {
        let steps =
            format!("      - grandchild: {{ command: \"sleep 300\", group: {group} }}\n      - say: started");
        let theatre = Theatre::playing(&steps);
        let scene = theatre.scene().await;
        scene.answer("go").await.expect("an answer");
        let processes = theatre.processes();
        assert_eq!(processes.len(), 2);
        assert!(processes.iter().all(|pid| runs(*pid)), "{group}");
        scene.close().await;
        assert!(!theatre.leaves_processes(), "{group}: a process is left");
    }
}

#[tokio::test]
async fn c5_an_agent_that_will_not_go_is_killed() {
    for end in [
        "{ ignore_eof: true }",
        "{ ignore_eof: true, ignore_sigterm: true }",
    ] {
        let mut theatre = Theatre::with(&format!("end: {end}"), "      - say: hello");
        theatre.options.stop = short();
        let scene = theatre.scene().await;
        scene.close().await;
        assert!(!theatre.leaves_processes(), "{end}");
        let asked = theatre
            .record()
            .iter()
            .any(|entry| matches!(&entry.event, Event::Signal { name } if name.contains("TERM")));
        assert!(asked, "{end}: it was not asked to go");
    }
}

#[tokio::test]
async fn a_child_that_holds_the_output_does_not_hide_an_exit() {
    let theatre = Theatre::playing(
        "      - grandchild: { command: \"sleep 300\", hold_stdout: true }\n      - stderr: going\n      - exit: 7",
    );
    let scene = theatre.scene().await;
    let error = scene.answer("go").await.expect_err("it died");
    let words = "agent `scripted` ended by itself (exit status: 7); its last words: going";
    assert_eq!(
        error,
        RuntimeError::Lost {
            words: words.to_owned()
        }
    );
    scene.close().await;
    assert!(!theatre.leaves_processes());
}

#[tokio::test]
async fn an_agent_that_goes_while_idle_is_lost() {
    let script = "options: [{ id: m, category: model, values: [fake-1] }]\nprompts: [{ steps: [say: hello], after: [stderr: \"out of memory\", exit: 9] }]";
    let theatre = Theatre::new(script);
    let scene = theatre.scene().await;
    assert_eq!(scene.answer("go").await.expect("an answer").text, "hello");
    scene.until(|kind| *kind == SessionEventKind::Ended).await;
    let error = scene
        .runtime
        .send(scene.id, &message("more"))
        .await
        .expect_err("lost");
    assert!(
        error
            .to_string()
            .ends_with("(exit status: 9); its last words: out of memory"),
        "{error}"
    );
    let again = scene.runtime.open(&scene.request).await;
    assert!(matches!(again, Err(RuntimeError::Lost { .. })), "{again:?}");
    scene.close().await;
}

#[tokio::test]
async fn dropping_the_runtime_ends_everything() {
    let theatre = Theatre::playing(
        "      - grandchild: { command: \"sleep 300\", group: session }\n      - silent: until_cancelled",
    );
    let scene = theatre.scene().await;
    scene.say("go").await;
    eventually("the child starts", || theatre.processes().len() == 2).await;
    drop(scene);
    eventually("all are gone", || !theatre.leaves_processes()).await;
}

#[tokio::test]
async fn shutting_down_closes_every_session_at_once() {
    let theatre = Theatre::playing("      - silent: until_cancelled");
    let runtime = theatre.runtime();
    for _ in 0..3 {
        runtime
            .open(&theatre.request(PermissionPolicy::Deny))
            .await
            .expect("open");
    }
    within(runtime.shut_down()).await.expect("shut down");
    let processes = theatre.processes();
    assert_eq!(processes.len(), 3);
    assert!(!theatre.leaves_processes());
}

impl Theatre {
    /// The same with agents behind guardians.
    fn guarded(mut self) -> Self {
        let launcher = [env!("CARGO_BIN_EXE_scripted-agent"), "launch-agent"];
        self.options.launcher = Some(launcher.map(Into::into).to_vec());
        self
    }
}

#[tokio::test]
async fn c8_an_agents_own_end_is_told_through_its_guardian() {
    for (last, how) in [
        ("exit: 7", "exit status: 7"),
        ("exit: 0", "exit status: 0"),
        ("crash", "signal: 6 (SIGABRT)"),
        ("run: \"kill -KILL $PPID\"", "signal: 9 (SIGKILL)"),
        // The first is looked at by the agent's standard library, and two that come at once are one.
        (
            "run: \"while kill -SEGV $PPID; do sleep 0.05; done\"",
            "signal: 11 (SIGSEGV)",
        ),
    ] {
        let steps = format!("      - stderr: going\n      - {last}\n      - silent: for_ever");
        let theatre = Theatre::playing(&steps).guarded();
        let scene = theatre.scene().await;
        let error = scene.answer("go").await.expect_err("it died").to_string();
        assert!(
            error.contains(&format!("ended by itself ({how}")),
            "{last}: {error}"
        );
        assert!(error.contains("its last words: going"), "{last}: {error}");
        scene.close().await;
        assert!(!theatre.leaves_processes(), "{last}");
    }
}

#[tokio::test]
async fn c5_a_guardian_keeps_the_times_of_the_stop_and_asks_once() {
    for (end, shortest) in [
        ("{ ignore_eof: true }", Duration::from_millis(300)),
        (
            "{ ignore_eof: true, ignore_sigterm: true }",
            Duration::from_millis(600),
        ),
    ] {
        let mut theatre = Theatre::with(&format!("end: {end}"), "      - say: hello").guarded();
        theatre.options.stop = short();
        let scene = theatre.scene().await;
        let since = std::time::Instant::now();
        scene.close().await;
        assert!(since.elapsed() >= shortest, "{end}: {:?}", since.elapsed());
        assert!(!theatre.leaves_processes(), "{end}");
        let record = theatre.record();
        let asked = |entry: &&Entry| matches!(&entry.event, Event::Signal { name } if name.contains("TERM"));
        assert_eq!(record.iter().filter(asked).count(), 1, "{end}");
    }
}

#[tokio::test]
async fn p1_what_an_agent_leaves_when_it_ends_by_itself_goes_with_it() {
    let theatre = Theatre::playing(
        "      - grandchild: { command: \"trap '' TERM; while :; do sleep 0.1; done\", group: session, hold_stdout: true }\n      - exit: 3",
    )
    .guarded();
    let scene = theatre.scene().await;
    let error = scene.answer("go").await.expect_err("it died").to_string();
    assert!(error.contains("exit status: 3"), "{error}");
    scene.close().await;
    assert!(!theatre.leaves_processes());
}

#[tokio::test]
async fn c8_a_guardian_that_is_stopped_does_not_keep_its_agent() {
    let mut theatre = Theatre::playing("      - say: hello").guarded();
    theatre.options.stop = short();
    let scene = theatre.scene().await;
    scene.answer("go").await.expect("an answer");
    let agent = theatre.processes()[0];
    let stat = std::fs::read_to_string(format!("/proc/{agent}/stat")).expect("it runs");
    let guardian = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.split(' ').nth(1));
    let status = Command::new("kill")
        .args(["-STOP", guardian.expect("a parent")])
        .status();
    assert!(status.expect("kill").success());
    scene.close().await;
    assert!(!theatre.leaves_processes());
}

#[tokio::test]
async fn c8_the_agent_behind_a_guardian_is_the_one_that_is_told_and_has_its_limits() {
    let mut theatre = Theatre::playing("      - say: hello").guarded();
    theatre.options.limits.open_files = Some(128);
    let runtime = theatre.runtime();
    let request = theatre.request(PermissionPolicy::Deny);
    let opened = runtime.open(&request).await.expect("open");
    assert_eq!(theatre.processes(), [opened.pid.expect("a process")]);
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", opened.pid.expect("a process"))).expect("limits");
    assert!(
        limits
            .lines()
            .any(|line| line.starts_with("Max open files") && line.contains(" 128 ")),
        "{limits}"
    );
    runtime.close(request.client_session_id).await.expect("close");
}

#[tokio::test]
async fn c8_an_agent_of_a_dead_engine_is_not_started() {
    let output = Command::new(env!("CARGO_BIN_EXE_scripted-agent"))
        .args(["launch-agent", "--parent", "1", "--", "sleep", "300"])
        .output()
        .expect("started");
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr).trim(),
        "the engine (process 1) is gone"
    );
}
