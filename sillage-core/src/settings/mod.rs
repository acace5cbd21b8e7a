//! The settings of the program: agents, models and prices, limits, theme and language (A12).

mod budget;
mod expand;
mod mcp;
mod model;
mod read;
mod size;

pub use expand::{UnknownVariable, expand_home, expand_variables};
pub use mcp::{McpServer, McpTransport};
pub use model::{
    AgentLimits, AgentSettings, Language, Lifecycle, ModelSettings, Placement, Price, ProgramLimits,
    RelaisAddress, RuntimeKind, Settings, SettingsChannel, Theme, WaitSettings,
};
pub use read::read;
pub use size::{BadSize, parse_size};

/// The JSON Schema of the settings file, for editors.
pub const SCHEMA: &str = include_str!("schema.json");
