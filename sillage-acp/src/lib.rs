//! Local agent processes over the Agent Client Protocol, as a runtime of Sillage.

pub mod presets;
#[cfg(feature = "scripted-agent")]
pub mod scripted_agent;
