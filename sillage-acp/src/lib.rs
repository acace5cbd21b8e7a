//! Local agent processes over the Agent Client Protocol, as a runtime of Sillage.
//!
//! [`AcpRuntime`] holds each session in a process of its own that speaks ACP v1 on its standard input and output:
//!
//! ```no_run
//! use sillage_acp::{AcpRuntime, AgentCommand, Options};
//!
//! let claude = AgentCommand {
//!     name: "claude".to_owned(),
//!     command: "claude-agent-acp".to_owned(),
//!     account: "anthropic".to_owned(),
//!     ..AgentCommand::default()
//! };
//! let runtime = AcpRuntime::new(vec![claude], Options::default());
//! ```
//!
//! What an agent writes goes, in order, from `connection` (lines, JSON-RPC) through `translate` (the protocol's words)
//! to the task of its session, which turns it into numbered events. `process` starts and stops agents with all that
//! they started; `sandbox` puts them in containers; [`launcher`] ties an agent's life to the engine's, and
//! [`leftovers`] finds what an engine left.
//!
//! [`AgentPool`] holds agents outside of runs: started once, used by many conversations, and stopped when idle.

mod classify;
mod connection;
pub mod launcher;
pub mod leftovers;
mod log;
mod model_choice;
mod permission;
mod pool;
pub mod presets;
mod process;
mod runtime;
mod sandbox;
#[cfg(feature = "scripted-agent")]
pub mod scripted_agent;
mod session;
mod translate;
mod zone;

pub use log::{LINES_KEPT, LogLine};
pub use model_choice::{AgentCommand, AgentModel};
pub use pool::{AgentPool, AgentUse, PoolAgent, PoolError, PoolEvent, PoolOptions};
pub use process::StopTimes;
pub use runtime::{AcpRuntime, Options, inherited_environment};
pub use sandbox::{Engine as SandboxEngine, Sandbox};
pub use zone::machine_zone;
