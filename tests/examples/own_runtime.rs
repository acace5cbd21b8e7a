//! The runtime of the example, under the checks that every runtime passes. Those are left out that need an agent with
//! tools, permissions or usage: a command has none.

#[path = "../../examples/own_runtime/command_runtime.rs"]
mod command_runtime;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sillage::core::folders::Folders;
use sillage::core::id::{ClientMessageId, ClientSessionId};
use sillage::core::ports::AgentRuntime;
use sillage::core::ports::runtime::{MessageRequest, PermissionPolicy, RuntimeError, SessionRequest};
use sillage_testkit::runtime_suite::{self, Act, Stage};
use uuid::Uuid;

use command_runtime::CommandRuntime;

/// Understands [`Act`]'s words, and notes each message that it is asked in a file of its own.
const COMMAND: &str = r#"
message=$(cat)
printf %s "$message" > "$(mktemp asked.XXXXXX)"
case $message in
    *'please be silent'*) echo $$ > silent; exec sleep 600 ;;
    *'please be overloaded'*) echo busy >&2; exit 75 ;;
    *'please call it a bad request'*) echo bad >&2; exit 1 ;;
    *) echo first; echo the answer ;;
esac
"#;

struct CommandStage {
    folder: tempfile::TempDir,
}

impl CommandStage {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[async_trait]
impl Stage for CommandStage {
    async fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::new(CommandRuntime::new(COMMAND))
    }

    async fn restart(&self, _runtime: Arc<dyn AgentRuntime>) -> Arc<dyn AgentRuntime> {
        self.runtime().await
    }

    fn request(&self, permissions: PermissionPolicy) -> SessionRequest {
        SessionRequest {
            client_session_id: ClientSessionId(Uuid::new_v4()),
            model: "any".to_owned(),
            effort: "low".to_owned(),
            workspace: self.folder.path().to_owned(),
            filesystem_scope: Folders::default(),
            protected: Default::default(),
            permissions,
            autocompact_tokens: None,
        }
    }

    fn times_asked(&self, text: &str) -> usize {
        let asked = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let asked = asked.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("asked."));
        asked
            .filter(|path| std::fs::read_to_string(path).unwrap() == text)
            .count()
    }
}

macro_rules! checks {
    ($($check:ident)*) => {
        $(
            #[tokio::test]
            async fn $check() {
                runtime_suite::$check(&CommandStage::new()).await;
            }
        )*
    };
}

checks! {
    a_second_message_waits_for_the_first
    a_session_opens_once
    another_request_under_the_same_identifier_is_a_conflict
    closing_leaves_nothing
    events_are_read_from_any_number
    sending_again_does_nothing
}

fn message(act: Act) -> MessageRequest {
    MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: act.words().to_owned(),
    }
}

/// The process that is silent, once it says so.
async fn silent_process(stage: &CommandStage) -> PathBuf {
    let bound = Instant::now() + Duration::from_secs(60);
    loop {
        if let Ok(pid) = std::fs::read_to_string(stage.file("silent"))
            && let Some(pid) = pid.strip_suffix('\n')
        {
            return Path::new("/proc").join(pid);
        }
        assert!(Instant::now() < bound, "the command did not start");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_close_returns_when_the_process_is_gone() {
    let stage = CommandStage::new();
    let (runtime, request) = (stage.runtime().await, stage.request(PermissionPolicy::Deny));
    runtime.open(&request).await.unwrap();
    runtime
        .send(request.client_session_id, &message(Act::Silence))
        .await
        .unwrap();
    let process = silent_process(&stage).await;
    assert!(process.exists());
    runtime.close(request.client_session_id).await.unwrap();
    assert!(!process.exists());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_the_runtime_ends_its_processes() {
    let stage = CommandStage::new();
    let (runtime, request) = (stage.runtime().await, stage.request(PermissionPolicy::Deny));
    runtime.open(&request).await.unwrap();
    runtime
        .send(request.client_session_id, &message(Act::Silence))
        .await
        .unwrap();
    let process = silent_process(&stage).await;
    drop(runtime);
    let bound = Instant::now() + Duration::from_secs(60);
    while process.exists() {
        assert!(Instant::now() < bound, "the command outlives its runtime");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn r9_a_restarted_runtime_knows_no_session() {
    let stage = CommandStage::new();
    let (runtime, request) = (stage.runtime().await, stage.request(PermissionPolicy::Deny));
    runtime.open(&request).await.unwrap();
    let found = stage.restart(runtime).await.find(&request, None, None).await;
    assert!(matches!(found, Err(RuntimeError::Lost { .. })), "{found:?}");
}
