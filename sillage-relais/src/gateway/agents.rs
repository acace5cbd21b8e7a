//! Agents outside of sessions (L9), as whoever embeds the gateway keeps them.

use async_trait::async_trait;

use crate::wire::Agent;

/// Keeps agents at work outside of sessions: what `/api/agents` shows and does.
#[async_trait]
pub trait Agents: Send + Sync {
    /// How each agent stands, in the order of the settings.
    async fn list(&self) -> Vec<Agent>;

    /// Starts an agent, unless it is at work, and waits until it is ready.
    ///
    /// # Errors
    /// [`AgentsError`].
    async fn start(&self, name: &str) -> Result<(), AgentsError>;

    /// Stops an agent, if it is at work, and waits until its process is gone.
    ///
    /// # Errors
    /// [`AgentsError`].
    async fn stop(&self, name: &str) -> Result<(), AgentsError>;

    /// Stops an agent, starts it again and waits until it is ready.
    ///
    /// # Errors
    /// [`AgentsError`].
    async fn restart(&self, name: &str) -> Result<(), AgentsError>;

    /// The last lines of an agent's log, the oldest first.
    ///
    /// # Errors
    /// [`AgentsError::Unknown`].
    async fn logs(&self, name: &str) -> Result<Vec<String>, AgentsError>;
}

/// Why something was not done with an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsError {
    /// There is no such agent.
    #[error("there is no agent `{0}`: GET /api/agents names those there are")]
    Unknown(String),
    /// It is not done now, and nothing changed.
    #[error("{0}")]
    Refused(String),
    /// It was tried, and failed; these words are the agent's.
    #[error("{0}")]
    Failed(String),
}

/// No agents outside of sessions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAgents;

#[async_trait]
impl Agents for NoAgents {
    async fn list(&self) -> Vec<Agent> {
        Vec::new()
    }

    async fn start(&self, name: &str) -> Result<(), AgentsError> {
        Err(AgentsError::Unknown(name.to_owned()))
    }

    async fn stop(&self, name: &str) -> Result<(), AgentsError> {
        Err(AgentsError::Unknown(name.to_owned()))
    }

    async fn restart(&self, name: &str) -> Result<(), AgentsError> {
        Err(AgentsError::Unknown(name.to_owned()))
    }

    async fn logs(&self, name: &str) -> Result<Vec<String>, AgentsError> {
        Err(AgentsError::Unknown(name.to_owned()))
    }
}
