//! Relais over the scripted runtime keeps what every runtime promises. The gateway outlives the engine: a restart of
//! the engine is another client.

use std::sync::Arc;

use async_trait::async_trait;
use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::{PermissionPolicy, SessionRequest};
use sillage_testkit::runtime_suite::{ScriptedStage, Stage};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::house::{House, folder};

struct RelaisStage {
    scripted: ScriptedStage,
    folder: TempDir,
    house: OnceCell<House>,
}

impl RelaisStage {
    fn new() -> Self {
        Self {
            scripted: ScriptedStage::new(),
            folder: folder(),
            house: OnceCell::new(),
        }
    }
}

#[async_trait]
impl Stage for RelaisStage {
    async fn runtime(&self) -> Arc<dyn AgentRuntime> {
        let open = || async { House::open(self.scripted.runtime().await, &self.folder).await };
        Arc::new(self.house.get_or_init(open).await.client())
    }

    async fn restart(&self, runtime: Arc<dyn AgentRuntime>) -> Arc<dyn AgentRuntime> {
        drop(runtime);
        self.runtime().await
    }

    fn request(&self, permissions: PermissionPolicy) -> SessionRequest {
        self.scripted.request(permissions)
    }

    fn times_asked(&self, text: &str) -> usize {
        self.scripted.times_asked(text)
    }
}

sillage_testkit::runtime_suite!(RelaisStage::new());
