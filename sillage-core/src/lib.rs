//! What Sillage decides, without touching the world.
//!
//! Tasks and their graph, the message an agent receives, the report it returns, the run as a state machine,
//! and the traits (*ports*) through which an engine reaches agents, storage, repositories and time.
//! Nothing here does IO, asks the time, draws a random number or spawns anything: all of that comes in as values.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod agents;
pub mod causes;
pub mod changes;
pub mod document;
pub mod environment;
pub mod estimate;
pub mod fault;
pub mod folders;
pub mod graph;
pub mod id;
pub mod journal;
pub mod limit_text;
pub mod message;
pub mod plain;
pub mod plan;
#[doc(hidden)]
pub mod planted;
pub mod policy;
pub mod ports;
pub mod project;
pub mod recap;
pub mod report;
pub mod run;
pub mod settings;
pub mod task;
pub mod time;
