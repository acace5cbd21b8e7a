//! A folder with a script, the settings of an agent that plays it, and what it recorded.

use std::path::PathBuf;

use serde_json::Value;
use sillage_acp::scripted_agent::record::{self, Event};
use sillage_acp::{AcpRuntime, AgentCommand, AgentModel, Options};
use sillage_core::folders::Folders;
use sillage_core::id::{ClientMessageId, ClientSessionId};
use sillage_core::ports::runtime::{MessageRequest, PermissionPolicy, SessionRequest};
use sillage_testkit::runtime_suite::Act;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) struct Theatre {
    pub(crate) folder: TempDir,
}

impl Theatre {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("script.yaml"), Act::SCRIPT).expect("a script");
        let theatre = Self { folder };
        let [script, record] = ["script.yaml", "record"].map(|name| theatre.place(name));
        let program = env!("CARGO_BIN_EXE_relais");
        let settings = format!(
            "agents:\n  - name: scripted\n    command: {program:?}\n    \
             args: [scripted-agent, --script, {script:?}, --record, {record:?}]\n    \
             env: {{ EFFORT: '{{effort}}' }}\n    models: {{ fake: {{ id: fake-1 }} }}\n"
        );
        std::fs::write(theatre.place("settings.yaml"), settings).expect("settings");
        std::fs::create_dir(theatre.place("work")).expect("a folder");
        theatre
    }

    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("a folder").join(name)
    }

    /// The agents of the theatre, held by this process.
    pub(crate) fn runtime(&self) -> AcpRuntime {
        let model = AgentModel {
            id: Some("fake-1".to_owned()),
            efforts: Some(Vec::new()),
        };
        let [script, record] = ["script.yaml", "record"].map(|name| self.place(name).display().to_string());
        let args = ["scripted-agent", "--script", &script, "--record", &record];
        let agent = AgentCommand {
            name: "scripted".to_owned(),
            command: env!("CARGO_BIN_EXE_relais").to_owned(),
            args: args.map(str::to_owned).to_vec(),
            account: "scripted".to_owned(),
            models: [("fake".to_owned(), model)].into(),
            ..AgentCommand::default()
        };
        AcpRuntime::new(vec![agent], Options::default())
    }

    pub(crate) fn request(&self, permissions: PermissionPolicy) -> SessionRequest {
        let folder = self.place("work");
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

    /// What the agents received, by method.
    pub(crate) fn received(&self, method: &str) -> Vec<Value> {
        let entries = record::read(&self.place("record")).unwrap_or_default();
        let mut found = Vec::new();
        for entry in entries {
            if let Event::Received { frame } = entry.event
                && frame["method"] == method
            {
                found.push(frame["params"].clone());
            }
        }
        found
    }

    pub(crate) fn times_asked(&self, text: &str) -> usize {
        let prompts = self.received("session/prompt");
        prompts
            .iter()
            .filter(|params| params["prompt"][0]["text"] == text)
            .count()
    }

    /// The agents' processes that there were.
    pub(crate) fn agents(&self) -> Vec<u32> {
        let entries = record::read(&self.place("record")).unwrap_or_default();
        let started = entries
            .iter()
            .filter(|entry| matches!(entry.event, Event::Started { .. }));
        started.map(|entry| entry.pid).collect()
    }

    /// The agents' processes that there are.
    pub(crate) fn living(&self) -> Vec<u32> {
        self.agents().into_iter().filter(|pid| runs(*pid)).collect()
    }
}

/// Whether the process runs: one that ended and was not reaped does not.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub(crate) fn message(text: &str) -> MessageRequest {
    MessageRequest {
        client_message_id: ClientMessageId(Uuid::new_v4()),
        text: text.to_owned(),
    }
}
