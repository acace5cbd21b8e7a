//! Rows of a session: its model and effort, how it is found again, its MCP servers.

use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    FoundSession, MessageFate, MessageRequest, PermissionPolicy, RuntimeError, SessionEventKind, StopReason,
};
use sillage_core::settings::{McpServer, McpTransport};
use sillage_testkit::model_server::{Script, Step, ToolUse};
use sillage_testkit::real_agent::Kind;

use super::endings::kill_leader;
use super::stage::{Scene, Stage, class, ended, message};

pub(super) async fn version(stage: Stage) -> String {
    assert!(stage.version.starts_with(|first: char| first.is_ascii_digit()));
    stage.version
}

pub(super) async fn model_effort_and_tokens(stage: Stage) -> String {
    let mut scene = stage.open().await;
    let message = message("Answer.", &Script::of([Step::saying("It is said.")]));
    scene.send(&message).await;
    let answer = scene.end_of(&message).await.expect("an answer");
    assert_eq!(answer.stop, StopReason::EndTurn);
    let calls = stage.calls();
    let call = calls.first().expect("the model of the session was asked");
    let effort = match call.effort.as_deref() {
        Some("high") if stage.kind.takes_effort() => "model and effort as asked",
        _ => "the model as asked, an effort of its own",
    };
    if stage.kind.takes_effort() {
        assert_eq!(call.effort.as_deref(), Some("high"));
    }
    let (input, output) = (answer.usage.input_tokens, answer.usage.output_tokens);
    assert_eq!((input, output), (Some(100), Some(20)), "{:?}", answer.usage);
    stage.end(scene).await;
    format!("{effort}; tokens told")
}

/// A conversation whose process died, asked for by another engine.
async fn found_after_death(
    stage: &Stage,
    in_flight: bool,
) -> Result<(Scene, FoundSession, MessageRequest), RuntimeError> {
    let mut scene = stage.open().await;
    let first = message(
        "Keep the word heron in mind.",
        &Script::of([Step::saying("I keep it.")]),
    );
    scene.send(&first).await;
    scene.end_of(&first).await.expect("an answer");
    kill_leader(stage);
    let over = |event: &SessionEventKind| matches!(event, SessionEventKind::Ended).then_some(());
    scene.until(over).await;
    let native = scene.opened.native.clone().expect("a name");
    drop(scene);
    if stage.kind == Kind::Gemini {
        let_a_minute_pass(stage);
    }
    let runtime = stage.runtime();
    let in_flight = in_flight.then_some(&first);
    let found = runtime.find(&stage.request, Some(&native), in_flight).await?;
    let scene = stage.scene(runtime, found.opened.clone()).await;
    Ok((scene, found, first))
}

/// Gemini CLI names the file of a session after its minute, and writes over the file of a session that it is asked to
/// load in the same minute. Time is let pass by giving the file an older name.
fn let_a_minute_pass(stage: &Stage) {
    let projects = stage.home().join(".gemini/tmp").read_dir().expect("a folder");
    let chats = projects.filter_map(|project| project.ok()?.path().join("chats").read_dir().ok());
    for chat in chats.flatten() {
        let path = chat.expect("a file").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let (_, of_session) = name.rsplit_once('-').expect("session-DATE-SESSION.jsonl");
        let older = path.with_file_name(format!("session-2026-01-01T00-00-{of_session}"));
        std::fs::rename(&path, older).expect("it can be renamed");
    }
}

/// The conversation before is known to the model.
async fn goes_on(stage: &Stage, scene: &mut Scene) {
    scene.still_answers().await;
    let calls = stage.calls();
    let last = calls.last().expect("a call");
    assert!(
        last.prompts.iter().any(|prompt| prompt.contains("heron")),
        "{:?}",
        last.prompts
    );
}

pub(super) async fn found_idle(stage: Stage) -> String {
    match found_after_death(&stage, false).await {
        Ok((mut scene, found, _)) => {
            assert!(found.restarted);
            assert_eq!(found.in_flight, MessageFate::None);
            goes_on(&stage, &mut scene).await;
            stage.end(scene).await;
            "goes on with the conversation".to_owned()
        }
        Err(error) => {
            assert_eq!(stage.processes(), Vec::<String>::new());
            format!("cannot be brought back: {}", class(&error))
        }
    }
}

pub(super) async fn found_answered(stage: Stage) -> String {
    match found_after_death(&stage, true).await {
        Ok((mut scene, found, _)) => {
            let fate = match found.in_flight {
                MessageFate::Replayed(text) => {
                    assert_eq!(text, "I keep it.");
                    "tells the answer again"
                }
                MessageFate::Unknown => "does not tell whether it answered",
                fate @ (MessageFate::None | MessageFate::NotReceived | MessageFate::InHand) => {
                    panic!("it was answered, and found as {fate:?}")
                }
            };
            goes_on(&stage, &mut scene).await;
            stage.end(scene).await;
            format!("{fate}, and goes on")
        }
        Err(error) => {
            assert_eq!(stage.processes(), Vec::<String>::new());
            format!("cannot be brought back: {}", class(&error))
        }
    }
}

pub(super) async fn mcp_server(mut stage: Stage) -> String {
    let record = stage.work.join("repeater.record");
    stage.agent.mcp_servers = vec![McpServer {
        name: "repeater".to_owned(),
        transport: McpTransport::Stdio {
            command: env!("CARGO_BIN_EXE_scripted-agent").to_owned(),
            args: vec!["mcp-server".to_owned(), record.to_string_lossy().into_owned()],
            env: [("REPEATER_MARK".to_owned(), "seen".to_owned())].into(),
        },
    }];
    // A person is asked: by itself no policy knows what a tool of an MCP server does.
    stage.request.permissions = PermissionPolicy::Ask;
    let mut scene = stage.open().await;
    let call = ToolUse::Named {
        name: "repeat_it".to_owned(),
        arguments: serde_json::json!({ "text": "heron" }),
    };
    let message = message(
        "Repeat it.",
        &Script::of([Step::using(call), Step::saying("It is said.")]),
    );
    scene.send(&message).await;
    let asked = scene
        .until(|event| {
            if let SessionEventKind::Permission { request } = event {
                return Some(Some(request.clone()));
            }
            ended(event, &message).map(|_| None)
        })
        .await;
    let answer = if let Some(request) = &asked {
        let once = request.options.iter().find(|option| option.kind == "allow_once");
        let once = once.expect("it can be allowed once");
        let allowed = scene.runtime.answer_permission(scene.id, &request.id, &once.id);
        allowed.await.expect("it is allowed");
        scene.end_of(&message).await
    } else {
        let end = scene.seen.iter().find_map(|event| ended(event, &message));
        end.expect("just seen")
    };
    let answer = answer.expect("an answer");
    assert_eq!(
        (answer.stop, answer.text.as_str()),
        (StopReason::EndTurn, "It is said.")
    );
    let record = std::fs::read_to_string(&record).expect("the server was started");
    let called = record
        .lines()
        .find(|line| line.contains("\"tools/call\""))
        .expect("its tool was called");
    assert!(
        called.contains("heron") && called.contains("\"mark\":\"seen\""),
        "{called}"
    );
    stage.end(scene).await;
    let asked = if asked.is_some() {
        "asks, and calls its tool"
    } else {
        "calls its tool without asking"
    };
    asked.to_owned()
}
