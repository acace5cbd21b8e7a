//! A runtime that takes its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_core::stream::BoxStream;
use sillage_core::id::ClientSessionId;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{
    FoundSession, MessageRequest, OpenedSession, RuntimeError, RuntimeStatus, SessionEvent, SessionRequest,
};
use sillage_testkit::scripted_runtime::{Reply, ScriptedRuntime};
use tokio::sync::Notify;

/// A scripted runtime some of whose calls are held up.
pub(crate) struct Hindered {
    pub(crate) runtime: ScriptedRuntime,
    /// How many openings were begun.
    pub(crate) begun: AtomicUsize,
    /// Lets an opening go on.
    pub(crate) let_it: Notify,
    opens_slowly: bool,
    /// Whether messages are taken in hand and never done with, as by a process that is killed then.
    sends_never: bool,
}

impl Hindered {
    /// Its openings wait until they are let.
    pub(crate) fn slow() -> Arc<Hindered> {
        let runtime = ScriptedRuntime::new(|_| Reply::Silent);
        Arc::new(Hindered {
            runtime,
            begun: AtomicUsize::new(0),
            let_it: Notify::new(),
            opens_slowly: true,
            sends_never: false,
        })
    }

    /// Its messages never come to their end.
    pub(crate) fn stuck(runtime: ScriptedRuntime) -> Hindered {
        Hindered {
            runtime,
            begun: AtomicUsize::new(0),
            let_it: Notify::new(),
            opens_slowly: false,
            sends_never: true,
        }
    }
}

#[async_trait]
impl AgentRuntime for Hindered {
    async fn status(&self) -> Result<RuntimeStatus, RuntimeError> {
        self.runtime.status().await
    }

    async fn open(&self, request: &SessionRequest) -> Result<OpenedSession, RuntimeError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        if self.opens_slowly {
            self.let_it.notified().await;
        }
        self.runtime.open(request).await
    }

    async fn find(
        &self,
        request: &SessionRequest,
        native: Option<&str>,
        in_flight: Option<&MessageRequest>,
    ) -> Result<FoundSession, RuntimeError> {
        self.runtime.find(request, native, in_flight).await
    }

    async fn send(&self, session: ClientSessionId, message: &MessageRequest) -> Result<(), RuntimeError> {
        if self.sends_never {
            std::future::pending::<()>().await;
        }
        self.runtime.send(session, message).await
    }

    async fn events(
        &self,
        session: ClientSessionId,
        after: u64,
    ) -> Result<BoxStream<'static, SessionEvent>, RuntimeError> {
        self.runtime.events(session, after).await
    }

    async fn answer_permission(
        &self,
        session: ClientSessionId,
        permission: &str,
        option: &str,
    ) -> Result<(), RuntimeError> {
        self.runtime.answer_permission(session, permission, option).await
    }

    async fn cancel(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        self.runtime.cancel(session).await
    }

    async fn close(&self, session: ClientSessionId) -> Result<(), RuntimeError> {
        self.runtime.close(session).await
    }
}
