//! Rows of one message: permissions, cancellation, failures of the model.

use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{PermissionPolicy, SessionEventKind, StopReason};
use sillage_testkit::model_server::{Script, Step, ToolUse};

use super::stage::{Stage, ending, message, within};

/// A script that writes `hello.txt`, and the file.
fn write(stage: &Stage) -> (Script, std::path::PathBuf) {
    let file = stage.work.join("hello.txt");
    let write = ToolUse::Write {
        path: file.to_string_lossy().into_owned(),
        content: "Bonjour\n".to_owned(),
    };
    (
        Script::of([Step::using(write), Step::saying("It is said.")]),
        file,
    )
}

pub(super) async fn allowed(stage: Stage) -> String {
    let mut scene = stage.open().await;
    let (script, file) = write(&stage);
    let message = message("Write hello.txt.", &script);
    scene.send(&message).await;
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "Bonjour\n");
    assert_eq!(
        (answer.stop, answer.text.as_str()),
        (StopReason::EndTurn, "It is said.")
    );
    let asked = scene
        .seen
        .iter()
        .any(|event| matches!(event, SessionEventKind::PermissionAnswered { by, .. } if by == "policy"));
    stage.end(scene).await;
    let asked = if asked {
        "asks, and writes"
    } else {
        "writes without asking"
    };
    asked.to_owned()
}

pub(super) async fn refused(mut stage: Stage) -> String {
    stage.request.permissions = PermissionPolicy::Deny;
    let mut scene = stage.open().await;
    let (script, file) = write(&stage);
    let message = message("Write hello.txt.", &script);
    scene.send(&message).await;
    let ended = scene.end_of(&message).await;
    assert!(!file.exists(), "it was written all the same");
    let told = stage.calls().len() > 1;
    scene.still_answers().await;
    stage.end(scene).await;
    let told = if told {
        "the model is told"
    } else {
        "the model is not told"
    };
    format!("{told}; {}", ending(&ended))
}

pub(super) async fn cancelled_while_asked(mut stage: Stage) -> String {
    stage.request.permissions = PermissionPolicy::Ask;
    let mut scene = stage.open().await;
    let (script, file) = write(&stage);
    let message = message("Write hello.txt.", &script);
    scene.send(&message).await;
    let asked = |event: &SessionEventKind| matches!(event, SessionEventKind::Permission { .. }).then_some(());
    scene.until(asked).await;
    scene.runtime.cancel(scene.id).await.expect("it is told");
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(answer.stop, StopReason::Cancelled);
    assert!(!file.exists(), "it was written all the same");
    scene.still_answers().await;
    stage.end(scene).await;
    "stops, and writes nothing".to_owned()
}

pub(super) async fn cancelled_in_stream(stage: Stage) -> String {
    let mut scene = stage.open().await;
    let speech = Step {
        pace_ms: 100,
        ..Step::saying(&"word ".repeat(10_000))
    };
    let message = message("Speak.", &Script::of([speech]));
    scene.send(&message).await;
    let spoke = |event: &SessionEventKind| {
        let spoke = matches!(event, SessionEventKind::Text { text } if text.contains("word"));
        spoke.then_some(())
    };
    scene.until(spoke).await;
    scene.runtime.cancel(scene.id).await.expect("it is told");
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(answer.stop, StopReason::Cancelled);
    let calls = stage.calls().len();
    assert_eq!(calls, 1, "it asked its model again");
    scene.still_answers().await;
    stage.end(scene).await;
    "stops".to_owned()
}

/// A message that the model fails at. An agent that asks its model again, as some do without an end, is cancelled.
async fn failing(stage: Stage, step: Step) -> String {
    let mut scene = stage.open().await;
    let message = message("Answer.", &Script::of([step]));
    scene.send(&message).await;
    let again = stage.server.asked_until(|asked| {
        let calls = asked
            .iter()
            .filter(|one| one.model == stage.kind.model_at_server());
        calls.count() > 1
    });
    let ended = tokio::select! {
        ended = scene.end_of(&message) => Some(ended),
        () = again => None,
    };
    let outcome = if let Some(ended) = ended {
        let said = ended.as_ref().is_ok_and(|answer| !answer.text.is_empty());
        let said = if said {
            ", with the failure as its text"
        } else {
            ""
        };
        format!("{}{said}", ending(&ended))
    } else {
        scene.runtime.cancel(scene.id).await.expect("it is told");
        let ended = within(scene.end_of(&message)).await.expect("an answer");
        assert_eq!(ended.stop, StopReason::Cancelled);
        "asks the model again and again; stops when cancelled".to_owned()
    };
    scene.still_answers().await;
    stage.end(scene).await;
    outcome
}

pub(super) async fn model_answers_400(stage: Stage) -> String {
    let step = Step {
        status: Some(400),
        ..Step::saying("this request is wrong")
    };
    failing(stage, step).await
}

pub(super) async fn model_answers_500(stage: Stage) -> String {
    let step = Step {
        status: Some(500),
        ..Step::saying("this server is broken")
    };
    failing(stage, step).await
}

pub(super) async fn model_hangs_up(stage: Stage) -> String {
    let step = Step {
        hang_up: true,
        ..Step::saying("one two three four five six")
    };
    failing(stage, step).await
}
