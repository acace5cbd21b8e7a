//! The golden frames of the protocol's Python library, read from its release, through our client: the scripted agent
//! sends them, and what becomes of them is checked. Each frame has its place below, so that a new release tells what is
//! new.

use std::collections::BTreeMap;

use serde_json::json;
use sillage_core::ports::runtime::StopReason;
use sillage_testkit::real_agent::installed;

use super::*;
use crate::peer::Peer;

/// The frames by name. None where the library cannot be had on this machine.
async fn golden() -> Option<BTreeMap<String, Value>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [library] = installed(package, ["python-sdk"]).await?;
    let files = std::fs::read_dir(library.join("tests/golden")).expect("the golden frames");
    let frames = files.map(|file| {
        let path = file.expect("a file").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let text = std::fs::read_to_string(&path).expect("a file");
        (name.to_owned(), serde_json::from_str(&text).expect("JSON"))
    });
    Some(frames.collect())
}

/// Who sends a frame, and as what.
enum Place {
    /// An agent, as an update of a session.
    Update,
    /// An agent, as the content of a message.
    Content,
    /// An agent, as the content of a tool call.
    ToolContent,
    /// An agent, as the answer to this method.
    Answer(&'static str),
    /// An agent, to ask for permission.
    Permission,
    /// A client, to ask for this method.
    Request(&'static str),
    /// A client, in answer to what we never ask, or do not ask in tests of frames.
    Elsewhere,
}

fn place(name: &str) -> Place {
    match name {
        "initialize_response" => Place::Answer("initialize"),
        "new_session_response" => Place::Answer("session/new"),
        "set_session_config_option_response" => Place::Answer("session/set_config_option"),
        "request_permission_request" => Place::Permission,
        "initialize_request" => Place::Request("initialize"),
        "new_session_request" => Place::Request("session/new"),
        "prompt_request" => Place::Request("session/prompt"),
        "set_session_config_option_request" => Place::Request("session/set_config_option"),
        // Answers of a client to an agent; the agent's side of files, which we do not offer.
        "cancel_notification"
        | "fs_read_text_file_request"
        | "fs_read_text_file_response"
        | "fs_write_text_file_request"
        | "fs_write_text_file_response"
        | "permission_outcome_cancelled"
        | "permission_outcome_selected"
        | "request_permission_response_selected" => Place::Elsewhere,
        name if name.starts_with("session_update_") => Place::Update,
        name if name.starts_with("tool_content_") => Place::ToolContent,
        name if name.starts_with("content_") => Place::Content,
        _ => panic!("the golden frame {name} has no place in this test"),
    }
}

/// What a frame becomes.
fn becomes(name: &str) -> Option<&'static str> {
    Some(match name {
        "session_update_agent_message_chunk" => "text The capital of France is Paris.",
        "session_update_agent_thought_chunk" => "thought Thinking about best approach...",
        "session_update_plan" => "plan Check for syntax errors; Identify potential type issues",
        "session_update_tool_call" | "session_update_tool_call_read" => {
            "tool call_001 Reading configuration file pending"
        }
        "session_update_tool_call_edit" => "tool call_003 Apply edit pending",
        "session_update_tool_call_locations_rawinput" => "tool call_lr Tracking file pending",
        "session_update_tool_call_update_content" => "tool call_001  in_progress",
        "session_update_tool_call_update_more_fields" => "tool call_010 Processing changes completed",
        // What the person said is known; options are kept, not shown.
        "session_update_user_message_chunk" | "session_update_config_option_update" => return None,
        "content_text" => "text What's the weather like today?",
        "content_resource_link" => "text [document.pdf](file:///home/user/document.pdf)",
        "content_image" => "note the agent shows an image",
        "content_audio" => "note the agent shows a sound",
        "content_resource_blob" | "content_resource_text" => "note the agent shows a resource",
        name if name.starts_with("tool_content_") => "tool of-content a tool pending",
        _ => panic!("nothing is known of what {name} becomes"),
    })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what shows nothing to a person has no words"
)]
fn words(event: &SessionEventKind) -> Option<String> {
    match event {
        SessionEventKind::Text { text } => Some(format!("text {text}")),
        SessionEventKind::Thought { text } => Some(format!("thought {text}")),
        SessionEventKind::Tool {
            id, title, status, ..
        } => Some(format!("tool {id} {title} {status}")),
        SessionEventKind::Plan { entries } => Some(format!("plan {}", entries.join("; "))),
        SessionEventKind::Note { text } => Some(format!("note {text}")),
        _ => None,
    }
}

/// What is said after each update.
const AFTER: &str = "and so on";

#[tokio::test]
async fn a4_golden_updates_are_read() {
    let Some(frames) = golden().await else {
        return;
    };
    let mut seen = 0;
    for (name, frame) in &frames {
        let update = match place(name) {
            Place::Update => frame.clone(),
            Place::Content => json!({ "sessionUpdate": "agent_message_chunk", "content": frame }),
            Place::ToolContent => {
                json!({ "sessionUpdate": "tool_call", "toolCallId": "of-content", "title": "a tool", "content": [frame] })
            }
            Place::Answer(_) | Place::Permission | Place::Request(_) | Place::Elsewhere => continue,
        };
        seen += 1;
        // A turn in which nothing is said or done is no end of a turn.
        let theatre = Theatre::playing(&format!("      - update: {update}\n      - say: {AFTER}"));
        let scene = theatre.scene().await;
        let message = scene.say("go on").await;
        let answer = scene.end_of(&message).await.expect("an answer");
        assert_eq!(answer.stop, StopReason::EndTurn, "{name}");
        let ended = |kind: &SessionEventKind| matches!(kind, SessionEventKind::Answer { .. });
        let events = scene.until(ended).await;
        let first = events.iter().find_map(|event| words(&event.kind));
        let after = format!("text {AFTER}");
        assert_eq!(first.as_deref(), Some(becomes(name).unwrap_or(&after)), "{name}");
        scene.close().await;
    }
    assert!(seen > 20, "{seen}");
}

#[tokio::test]
async fn a5_golden_answers_and_a_golden_permission_request_are_read() {
    let Some(frames) = golden().await else {
        return;
    };
    let mut methods = serde_json::Map::new();
    let mut asked = Value::Null;
    for (name, frame) in &frames {
        match place(name) {
            // It is about an option that the session of this test does not have.
            Place::Answer("session/set_config_option") => {}
            Place::Answer(method) => {
                methods.insert(method.to_owned(), json!({ "result": frame }));
            }
            Place::Permission => {
                asked = json!({ "jsonrpc": "2.0", "id": "golden", "method": "session/request_permission", "params": frame });
            }
            Place::Update | Place::Content | Place::ToolContent | Place::Request(_) | Place::Elsewhere => {}
        }
    }
    // The agent does not know its session by the name of the golden frames: what it says of it stands here.
    let session = frames["new_session_response"]["sessionId"].clone();
    let update = json!({ "sessionUpdate": "tool_call", "toolCallId": "call_001", "title": "t", "kind": "read",
        "locations": [{ "path": "here.txt" }] });
    let told = json!({ "jsonrpc": "2.0", "method": "session/update",
        "params": { "sessionId": session, "update": update } });
    methods["session/new"]["after"] = json!([told, asked]);
    let mut theatre = Theatre::new(&format!("methods: {}", Value::Object(methods)));
    for model in theatre.agent.models.values_mut() {
        model.id = Some("default".to_owned());
    }
    let scene = theatre.scene().await;
    let answered = |kind: &SessionEventKind| matches!(kind, SessionEventKind::PermissionAnswered { .. });
    let events = scene.until(answered).await;
    let Some(SessionEventKind::PermissionAnswered { option, by, .. }) = events.last().map(|last| &last.kind)
    else {
        panic!("just seen");
    };
    assert_eq!((option.as_deref(), by.as_str()), (Some("allow-once"), "policy"));
    scene.close().await;
}

#[tokio::test]
async fn a1_golden_requests_are_read_by_the_scripted_agent() {
    let Some(frames) = golden().await else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let script = "options: [{ id: model, category: model, values: [other, gpt-4o-mini] }]\nprompts: [{ times: always, steps: [say: hello] }]";
    let mut peer = Peer::in_memory(folder.path(), script);
    for name in [
        "initialize_request",
        "new_session_request",
        "prompt_request",
        "set_session_config_option_request",
    ] {
        let Place::Request(method) = place(name) else {
            panic!("{name} is a request")
        };
        let mut params = frames[name].clone();
        match method {
            // Those of the release are of another machine and another session.
            "session/new" => params["cwd"] = json!(folder.path()),
            "session/prompt" | "session/set_config_option" => params["sessionId"] = json!(peer.session),
            _ => {}
        }
        let answer = peer.call(method, params).await;
        assert!(answer["error"].is_null(), "{name}: {answer}");
        if let Some(session) = answer["result"]["sessionId"].as_str() {
            peer.session = session.to_owned();
        }
    }
}
