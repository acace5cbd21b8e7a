//! Tasks: a graph of agents with common context, method, folders and limits (W5–W12).

mod model;
mod models;
mod read;
mod schema;

pub use model::{
    AgentDefinition, AgentKind, AllowedPair, Autocompact, DelegatedField, Deliverable, FolderLists, Limits,
    Link, Port, REPORT_PORT, Resource, SubAgentRules, Task, WorktreeWish,
};
pub use models::{UnknownModel, check_models, resolve_model};
pub(crate) use read::{AGENT_FIELDS, read_folders, work};
pub use read::{read, read_its_folders};
pub use schema::SCHEMA;
