//! The example agents of the protocol's Python library against our client.

use std::path::Path;

use futures_util::StreamExt as _;
use sillage_acp::{AcpRuntime, AgentCommand, AgentModel, Options};
use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, PermissionPolicy, RuntimeError, SessionEventKind, SessionRequest, StopReason,
};
use sillage_testkit::real_agent::installed;
use uuid::Uuid;

use crate::peer::within;

/// A conversation with the example `script`: one message, and what came of it. None where the library cannot be had.
async fn answers(script: &str, texts: &[&str]) -> Option<Vec<Answer>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [python, library] = installed(package, ["python", "python-sdk"]).await?;
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().canonicalize().expect("a folder");
    let model = AgentModel {
        id: Some("default".to_owned()),
        efforts: Some(Vec::new()),
    };
    let agent = AgentCommand {
        name: "example".to_owned(),
        command: python.display().to_string(),
        args: vec![library.join("examples").join(script).display().to_string()],
        account: "example".to_owned(),
        models: [("any".to_owned(), model)].into(),
        ..AgentCommand::default()
    };
    let runtime = AcpRuntime::new(vec![agent], Options::default());
    let request = SessionRequest {
        client_session_id: ClientSessionId(Uuid::new_v4()),
        model: "any".to_owned(),
        effort: "default".to_owned(),
        workspace: place.clone(),
        filesystem_scope: Folders {
            read: vec![place],
            write: Vec::new(),
        },
        protected: sillage_core::policy::Protected::default(),
        permissions: PermissionPolicy::AllowInFolders,
        autocompact_tokens: None,
    };
    let id = request.client_session_id;
    let opened = within(runtime.open(&request)).await.expect("a session");
    // It says nothing of sessions that it could bring back, and does not have to.
    let again = runtime.find(&request, opened.native.as_deref(), None).await;
    assert!(again.is_ok_and(|found| !found.restarted));
    let mut events = runtime.events(id, 0).await.expect("events");
    let mut answers = Vec::new();
    for text in texts {
        let message = MessageRequest {
            client_message_id: ClientMessageId(Uuid::new_v4()),
            text: (*text).to_owned(),
        };
        runtime.send(id, &message).await.expect("it is taken");
        let answered = async {
            while let Some(event) = events.next().await {
                if let SessionEventKind::Answer { answer, .. } = event.kind {
                    return answer;
                }
                let bad = matches!(
                    event.kind,
                    SessionEventKind::Error { .. } | SessionEventKind::Note { .. }
                );
                assert!(!bad, "{event:?}");
            }
            panic!("the session ended");
        };
        answers.push(within(answered).await);
    }
    within(runtime.close(id)).await.expect("no process is left");
    // A session that was closed and cannot be brought back is lost, not opened anew.
    let gone = within(runtime.find(&request, opened.native.as_deref(), None)).await;
    assert!(matches!(gone, Err(RuntimeError::Lost { .. })), "{gone:?}");
    Some(answers)
}

#[tokio::test]
async fn a2_the_echo_agent_of_the_python_library_is_driven() {
    let texts = ["Où est le héron ?", "two\nlines"];
    let Some(answers) = answers("echo_agent.py", &texts).await else {
        return;
    };
    for (answer, text) in answers.iter().zip(texts) {
        assert_eq!((&answer.stop, answer.text.as_str()), (&StopReason::EndTurn, text));
        assert!(answer.usage.is_unknown());
    }
}

#[tokio::test]
async fn a2_the_example_agent_of_the_python_library_is_driven() {
    let Some(answers) = answers("agent.py", &["heron"]).await else {
        return;
    };
    assert_eq!(answers[0].stop, StopReason::EndTurn);
    assert_eq!(answers[0].text, "Client sent:heron");
}
