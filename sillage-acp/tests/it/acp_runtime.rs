//! [`AcpRuntime`] over the scripted agent as a process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde_json::Value;
use sillage_acp::scripted_agent::record::{self, Entry, Event};
use sillage_acp::{AcpRuntime, AgentCommand, AgentModel, Options};
use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    Answer, MessageRequest, PermissionPolicy, RuntimeError, SessionEvent, SessionEventKind, SessionRequest,
};
use sillage_testkit::condition;
use sillage_testkit::runtime_suite::{Act, Stage};
use tempfile::TempDir;
use uuid::Uuid;

use crate::peer::within;
use crate::schema::{Side, faults, frames};

mod again;
mod golden;
mod gotchas;
mod model;
mod oddities;
mod opening;
mod permission;
mod processes;
#[cfg(target_os = "linux")]
mod stopping;

/// A folder with a script, and what the agents that played it recorded.
struct Theatre {
    folder: TempDir,
    options: Options,
    agent: AgentCommand,
}

impl Theatre {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("script.yaml"), script).expect("a script file");
        let model = AgentModel {
            id: Some("fake-1".to_owned()),
            efforts: Some(Vec::new()),
        };
        let args = [
            "--script",
            &path(&folder, "script.yaml"),
            "--record",
            &path(&folder, "record"),
        ];
        let args = args.map(str::to_owned).to_vec();
        let agent = AgentCommand {
            name: "scripted".to_owned(),
            command: env!("CARGO_BIN_EXE_scripted-agent").to_owned(),
            args,
            account: "scripted".to_owned(),
            models: [("fake".to_owned(), model)].into(),
            ..AgentCommand::default()
        };
        Self {
            folder,
            options: Options::default(),
            agent,
        }
    }

    /// A theatre whose agent has the model that is asked for, and plays these steps at every prompt.
    fn playing(steps: &str) -> Self {
        Self::with("", steps)
    }

    /// The same with more of the script before its steps.
    fn with(head: &str, steps: &str) -> Self {
        let model = "options: [{ id: m, category: model, values: [fake-1] }]";
        Self::new(&format!(
            "{model}\n{head}\nprompts:\n  - times: always\n    steps:\n{steps}\n"
        ))
    }

    fn path(&self, name: &str) -> String {
        path(&self.folder, name)
    }

    fn runtime(&self) -> AcpRuntime {
        AcpRuntime::new(vec![self.agent.clone()], self.options.clone())
    }

    fn request(&self, permissions: PermissionPolicy) -> SessionRequest {
        let folder = self.folder.path().canonicalize().expect("a folder");
        SessionRequest {
            client_session_id: ClientSessionId(Uuid::new_v4()),
            model: "fake".to_owned(),
            effort: "low".to_owned(),
            workspace: folder.clone(),
            filesystem_scope: Folders {
                read: Vec::new(),
                write: vec![folder],
            },
            protected: Default::default(),
            permissions,
            autocompact_tokens: None,
        }
    }

    async fn scene(&self) -> Scene {
        self.scene_of(self.request(PermissionPolicy::AllowInFolders))
            .await
    }

    async fn scene_of(&self, request: SessionRequest) -> Scene {
        let runtime = self.runtime();
        runtime.open(&request).await.expect("open");
        Scene {
            runtime,
            id: request.client_session_id,
            request,
        }
    }

    fn record(&self) -> Vec<Entry> {
        record::read(&self.folder.path().join("record")).expect("a record")
    }

    /// What the agents received, by method.
    fn received(&self, method: &str) -> Vec<Value> {
        let frames = frames(&self.record()).into_iter();
        frames
            .filter(|(side, frame)| *side == Side::Client && frame["method"] == method)
            .map(|(_, frame)| frame["params"].clone())
            .collect()
    }

    /// The processes that agents of this theatre were and started.
    fn processes(&self) -> Vec<u32> {
        let record = self.record();
        let started = record.iter().filter_map(|entry| {
            let Event::Spawned { child, .. } = entry.event else {
                return matches!(entry.event, Event::Started { .. }).then_some(entry.pid);
            };
            Some(child)
        });
        started.collect()
    }

    /// Whether a process runs that was recorded, or works in the folder without having been.
    fn leaves_processes(&self) -> bool {
        let folder = self.folder.path().canonicalize().expect("a folder");
        let works_here = |pid: u32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place.starts_with(&folder))
        };
        let all = std::fs::read_dir("/proc").expect("the process table");
        let mut numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        self.processes().into_iter().any(runs) || numbers.any(works_here)
    }

    /// Every frame of ours is as the schema wants it.
    fn check_frames(&self) {
        assert_eq!(
            faults(&frames(&self.record()), Side::Client),
            Vec::<String>::new()
        );
    }

    /// Every frame of the agent's is as the schema wants it: it is well-behaved where it is meant to be.
    fn check_agent(&self) {
        assert_eq!(faults(&frames(&self.record()), Side::Agent), Vec::<String>::new());
    }
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("UTF-8").to_owned()
}

/// Whether the process runs: one that ended and was not reaped does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// An open session.
struct Scene {
    runtime: AcpRuntime,
    id: ClientSessionId,
    request: SessionRequest,
}

impl Scene {
    async fn say(&self, text: &str) -> MessageRequest {
        let message = message(text);
        self.runtime.send(self.id, &message).await.expect("send");
        message
    }

    async fn until(&self, last: impl Fn(&SessionEventKind) -> bool) -> Vec<SessionEvent> {
        let mut stream = self.runtime.events(self.id, 0).await.expect("events");
        let mut seen: Vec<SessionEvent> = Vec::new();
        within(async {
            while let Some(event) = stream.next().await {
                assert_eq!(event.number, seen.len() as u64 + 1);
                seen.push(event);
                if last(&seen[seen.len() - 1].kind) {
                    return;
                }
            }
            panic!("the stream ended: {seen:#?}");
        })
        .await;
        seen
    }

    async fn end_of(&self, message: &MessageRequest) -> Result<Answer, RuntimeError> {
        let id = message.client_message_id;
        let ended = |kind: &SessionEventKind| {
            let answered = matches!(kind, SessionEventKind::Answer { message, .. } if *message == id);
            answered || matches!(kind, SessionEventKind::Error { message, .. } if *message == Some(id))
        };
        let last = self.until(ended).await.pop().expect("an event").kind;
        if let SessionEventKind::Error { error, .. } = last {
            return Err(error);
        }
        let SessionEventKind::Answer { answer, .. } = last else {
            panic!("not an end: {last:?}")
        };
        Ok(answer)
    }

    async fn answer(&self, text: &str) -> Result<Answer, RuntimeError> {
        let message = self.say(text).await;
        self.end_of(&message).await
    }

    async fn close(self) {
        within(self.runtime.close(self.id)).await.expect("close");
    }
}

fn message(text: &str) -> MessageRequest {
    MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: text.to_owned(),
    }
}

struct AcpStage {
    theatre: Theatre,
}

impl AcpStage {
    fn new() -> Self {
        Self {
            theatre: Theatre::new(Act::SCRIPT),
        }
    }
}

#[async_trait]
impl Stage for AcpStage {
    async fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::new(self.theatre.runtime())
    }

    async fn restart(&self, runtime: Arc<dyn AgentRuntime>) -> Arc<dyn AgentRuntime> {
        drop(runtime);
        self.runtime().await
    }

    fn request(&self, permissions: PermissionPolicy) -> SessionRequest {
        self.theatre.request(permissions)
    }

    fn times_asked(&self, text: &str) -> usize {
        let prompts = self.theatre.received("session/prompt");
        prompts
            .iter()
            .filter(|params| params["prompt"][0]["text"] == text)
            .count()
    }
}

impl Drop for AcpStage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.theatre.check_frames();
            self.theatre.check_agent();
        }
    }
}

mod suite {
    use super::AcpStage;

    sillage_testkit::runtime_suite!(AcpStage::new());
}

/// Waits for something that nothing tells of.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    condition::eventually(what, crate::peer::LIMIT, async || holds()).await;
}

/// A file that an agent wrote.
fn written(folder: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(name)).ok()
}
