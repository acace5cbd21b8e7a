//! Local agent processes over the Agent Client Protocol, as a runtime of Sillage.

#[cfg(feature = "scripted-agent")]
pub mod scripted_agent;
