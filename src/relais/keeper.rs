//! The agents of `/api/agents`: those of the settings, held by a pool.

use async_trait::async_trait;
use sillage_acp::{AgentPool, PoolError};
use sillage_core::agents::{AgentStatus, Refusal};
use sillage_relais::gateway::{Agents, AgentsError};
use sillage_relais::wire::Agent;

/// Keeps agents in a pool.
#[derive(Debug)]
pub(crate) struct Keeper(pub(crate) AgentPool);

fn told(error: PoolError) -> AgentsError {
    let words = error.to_string();
    match error {
        PoolError::Refused(Refusal::Unknown { agent, .. }) => AgentsError::Unknown(agent),
        PoolError::Refused(_) | PoolError::Stopped(_) => AgentsError::Refused(words),
        PoolError::Failed(_) | PoolError::NoSandbox(_) | PoolError::Sandbox(_) | _ => {
            AgentsError::Failed(words)
        }
    }
}

#[async_trait]
impl Agents for Keeper {
    async fn list(&self) -> Vec<Agent> {
        let shown = |status: AgentStatus| Agent {
            name: status.agent,
            state: status.state.word().to_owned(),
            error: status.error,
        };
        self.0.list().into_iter().map(shown).collect()
    }

    async fn start(&self, name: &str) -> Result<(), AgentsError> {
        self.0.start(name).await.map_err(told)
    }

    async fn stop(&self, name: &str) -> Result<(), AgentsError> {
        self.0.stop(name).await.map_err(told)
    }

    async fn restart(&self, name: &str) -> Result<(), AgentsError> {
        self.0.restart(name).await.map_err(told)
    }

    async fn logs(&self, name: &str) -> Result<Vec<String>, AgentsError> {
        self.0.logs(name).map_err(told)
    }
}
