//! The suite's stage over [`ScriptedRuntime`].

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sillage_core::folders::Folders;
use sillage_core::id::ClientSessionId;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    AccountState, Answer, ModelOffer, PermissionPolicy, RuntimeError, SessionEventKind, SessionRequest,
    StopReason, Usage,
};
use uuid::Uuid;

use super::{Act, Stage};
use crate::scripted_runtime::{Asked, Reply, ScriptedRuntime};

/// A [`Stage`] over a [`ScriptedRuntime`] that outlives the engine, as a gateway does.
pub struct ScriptedStage {
    runtime: ScriptedRuntime,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ScriptedStage {
    /// A stage with nothing open.
    #[must_use]
    pub fn new() -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let texts = Arc::clone(&asked);
        let runtime = ScriptedRuntime::new(move |asked| {
            texts
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(asked.message.text.clone());
            reply(asked)
        });
        let offer = ModelOffer {
            agent: "scripted".to_owned(),
            model: "fake".to_owned(),
            efforts: Vec::new(),
            account: "scripted".to_owned(),
        };
        Self {
            runtime: runtime
                .offering(vec![offer])
                .knowing_accounts(|account| match account {
                    "scripted" => AccountState::Available,
                    _ => AccountState::Unknown,
                }),
            asked,
        }
    }
}

impl Default for ScriptedStage {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Stage for ScriptedStage {
    async fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::new(self.runtime.clone())
    }

    async fn restart(&self, _runtime: Arc<dyn AgentRuntime>) -> Arc<dyn AgentRuntime> {
        self.runtime().await
    }

    fn request(&self, permissions: PermissionPolicy) -> SessionRequest {
        SessionRequest {
            client_session_id: ClientSessionId(Uuid::new_v4()),
            model: "fake".to_owned(),
            effort: "low".to_owned(),
            workspace: "/nowhere".into(),
            filesystem_scope: Folders {
                read: Vec::new(),
                write: vec!["/nowhere".into()],
            },
            protected: Default::default(),
            permissions,
            autocompact_tokens: None,
        }
    }

    fn times_asked(&self, text: &str) -> usize {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|asked| *asked == text).count()
    }
}

fn reply(asked: &Asked<'_>) -> Reply {
    let is = |act: Act| asked.message.text.contains(act.words());
    let words = || asked.message.text.clone();
    match () {
        () if is(Act::Answer) => answer(),
        () if is(Act::Silence) => Reply::Silent,
        () if is(Act::Permission) => Reply::permission(
            "p1",
            "edit asked.txt",
            Reply::text("allowed"),
            Reply::text("refused"),
        ),
        () if is(Act::Overload) => Reply::Fail(RuntimeError::Temporary {
            words: words(),
            retry_after: None,
        }),
        () if is(Act::Quota) => Reply::Fail(RuntimeError::Quota {
            words: words(),
            resets_at: None,
        }),
        () if is(Act::SignIn) => Reply::Fail(RuntimeError::SignIn { words: words() }),
        () if is(Act::Death) => Reply::Die("it died".to_owned()),
        () => Reply::Fail(RuntimeError::Permanent { words: words() }),
    }
}

fn answer() -> Reply {
    let usage = Usage {
        input_tokens: Some(30),
        output_tokens: Some(5),
        ..Usage::default()
    };
    let text = |text: &str| SessionEventKind::Text {
        text: text.to_owned(),
    };
    let tool = SessionEventKind::Tool {
        id: "t1".to_owned(),
        title: "look".to_owned(),
        status: "completed".to_owned(),
        locations: Vec::new(),
    };
    Reply::Answer {
        before: vec![text("first"), tool, text("the answer")],
        answer: Answer {
            text: "the answer".to_owned(),
            stop: StopReason::EndTurn,
            usage,
        },
    }
}
