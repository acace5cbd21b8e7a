//! Rows of the end: no process is left, however the agent ends and whatever it is doing.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::SessionEventKind;
use sillage_testkit::model_server::{Script, Step, ToolUse};

use super::stage::{Scene, Stage, message, within};

/// A session in which the agent's shell runs a command that does not end by itself.
async fn at_work(stage: &Stage) -> Scene {
    let scene = stage.open().await;
    // Told apart from those of other tests by their folder.
    let command = "sleep 86399".to_owned();
    let script = Script::of([Step::using(ToolUse::Shell { command })]);
    scene.send(&message("Run it.", &script)).await;
    let works = async {
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let sleeps = |process: &String| process.contains(" sleep 86399");
        while !stage.processes().iter().any(sleeps) {
            again.tick().await;
        }
    };
    within(works).await;
    scene
}

/// Kills the process that speaks the protocol, as the kernel does when memory is short.
pub(super) fn kill_leader(stage: &Stage) {
    let mut words = vec![stage.agent.command.as_str()];
    words.extend(stage.agent.args.iter().map(String::as_str));
    let command = words.join(" ");
    let processes = stage.processes();
    let leader = processes.iter().find_map(|process| {
        let (pid, words) = process.split_once(' ')?;
        words.starts_with(&command).then(|| pid.parse().ok())?
    });
    let pid = Pid::from_raw(leader.expect("the agent runs")).expect("a process");
    kill_process(pid, Signal::KILL).expect("it runs");
}

pub(super) async fn closed_at_work(stage: Stage) -> String {
    let scene = at_work(&stage).await;
    stage.end(scene).await;
    "nothing is left".to_owned()
}

pub(super) async fn killed_at_work(stage: Stage) -> String {
    let mut scene = at_work(&stage).await;
    kill_leader(&stage);
    let over = |event: &SessionEventKind| matches!(event, SessionEventKind::Ended).then_some(());
    scene.until(over).await;
    within(scene.runtime.close(scene.id))
        .await
        .expect("it can be closed");
    let left = stage.processes();
    assert!(
        left.is_empty(),
        "the guardian ends what the agent started: {left:?}"
    );
    "told as lost; nothing is left".to_owned()
}
