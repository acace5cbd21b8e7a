//! A real agent, offline: opencode, with the testkit's model server as its model.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use sillage_acp::{AcpRuntime, AgentCommand, AgentModel, Options};
use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, PermissionPolicy, SessionEventKind, SessionRequest, StopReason,
};
use sillage_core::report::{self, Expected, Outcome};
use sillage_testkit::model_server::{ModelServer, Script, Step, ToolUse};
use sillage_testkit::real_agent::{OPENCODE_MODEL, opencode, opencode_environment};
use uuid::Uuid;

/// Bounds, not waits: its first start prepares a database, and the machine may be busy.
const START: Duration = Duration::from_secs(180);
const TURN: Duration = Duration::from_secs(180);

const REPORT: &str =
    "It is written.\n\n```json\n{\"outcome\": \"complete\", \"summary\": \"One file.\"}\n```";

fn agent(program: &Path, home: &Path, model_url: &str) -> AgentCommand {
    let model = AgentModel {
        id: Some(OPENCODE_MODEL.to_owned()),
        efforts: None,
    };
    AgentCommand {
        name: "opencode".to_owned(),
        command: program.to_string_lossy().into_owned(),
        args: vec!["acp".to_owned()],
        env: opencode_environment(home, model_url).expect("a settings file"),
        account: "test".to_owned(),
        models: [("test".to_owned(), model)].into(),
        mcp_servers: Vec::new(),
    }
}

async fn answer_to(runtime: &AcpRuntime, session: ClientSessionId, message: &MessageRequest) -> Answer {
    runtime
        .send(session, message)
        .await
        .expect("the message is taken");
    let mut events = runtime.events(session, 0).await.expect("events");
    let mut seen = Vec::new();
    let answered = async {
        while let Some(event) = events.next().await {
            if let SessionEventKind::Answer { answer, .. } = event.kind {
                return answer;
            }
            seen.push(event.kind);
            let failed = matches!(seen.last(), Some(SessionEventKind::Error { .. }));
            assert!(!failed, "{seen:?}");
        }
        panic!("the session ended without an answer, after {seen:?}");
    };
    tokio::time::timeout(TURN, answered)
        .await
        .expect("an answer in time")
}

#[tokio::test]
async fn a_real_agent_writes_a_file_and_reports() {
    let Some(program) = opencode(Path::new(env!("CARGO_MANIFEST_DIR"))).await else {
        return;
    };
    let server = ModelServer::start().await.expect("a port");
    let home = tempfile::tempdir().expect("a folder");
    let workspace = tempfile::tempdir().expect("a folder");
    let work = workspace.path().canonicalize().expect("a folder");
    let inherited = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
    let options = Options {
        start_timeout: START,
        inherited,
        ..Options::default()
    };
    let runtime = AcpRuntime::new(vec![agent(&program, home.path(), &server.base_url())], options);
    let request = SessionRequest {
        client_session_id: ClientSessionId(Uuid::new_v4()),
        model: "test".to_owned(),
        effort: "high".to_owned(),
        workspace: work.clone(),
        filesystem_scope: Folders {
            read: Vec::new(),
            write: vec![work.clone()],
        },
        permissions: PermissionPolicy::AllowInFolders,
        autocompact_tokens: None,
    };
    let session = request.client_session_id;
    runtime.open(&request).await.expect("a session");

    let file = work.join("hello.txt");
    let write = ToolUse::Write {
        path: file.to_string_lossy().into_owned(),
        content: "Bonjour\n".to_owned(),
    };
    let script = Script::of([
        Step {
            text: "I write it.".to_owned(),
            ..Step::using(write)
        },
        Step::saying(REPORT),
    ]);
    let text = format!("Write hello.txt. {}", script.in_prompt());
    let message = MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text,
    };
    let answer = answer_to(&runtime, session, &message).await;

    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "Bonjour\n");
    assert_eq!((answer.stop, answer.text.as_str()), (StopReason::EndTurn, REPORT));
    assert!(answer.usage.input_tokens.is_some(), "{:?}", answer.usage);
    let report = report::read(&answer.text, &Expected::default(), false).expect("a report");
    assert_eq!(
        (report.outcome, report.summary.as_str()),
        (Outcome::Complete, "One file.")
    );

    let asked = server.asked();
    assert!(asked.iter().all(|one| one.known), "{asked:?}");
    let scripted = asked
        .iter()
        .find(|one| one.model == "test-model")
        .expect("the model of the session was asked");
    assert_eq!(scripted.effort.as_deref(), Some("high"));
    runtime.close(session).await.expect("no process is left");
}
