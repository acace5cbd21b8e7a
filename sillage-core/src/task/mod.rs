//! Tasks: a graph of agents with common context, method, folders and limits (W5–W12).

mod model;

pub use model::{
    AgentDefinition, AgentKind, AllowedPair, Deliverable, DelegatedField, FolderLists, Limits, Link, Port,
    Resource, SubAgentRules, Task, WorktreeWish, REPORT_PORT,
};
