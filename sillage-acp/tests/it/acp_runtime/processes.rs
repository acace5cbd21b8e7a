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

#[tokio::test]
async fn c8_the_agent_behind_a_guardian_is_the_one_that_is_told_and_has_its_limits() {
    let mut theatre = Theatre::playing("      - say: hello");
    let launcher = [env!("CARGO_BIN_EXE_scripted-agent"), "launch-agent"];
    theatre.options.launcher = Some(launcher.map(Into::into).to_vec());
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
