//! Sillage hands a long piece of work to a graph of AI coding agents without the person losing control of it.
//!
//! This crate is the engine: it joins the pure core ([`core`]) to a store, a runtime that holds agents' sessions, and a
//! workspace. [`Engine`] launches and resumes runs; [`RunHandle`] follows and stops one.
//!
//! The adapters of the program `sillage` come as default features: [`store`] (sled), [`acp`] (local agents over the
//! Agent Client Protocol) and [`workspace`] (git). The feature `relais` adds `serve_relais`: a gateway over the local
//! agents.

mod accounts;
mod active;
#[cfg(feature = "acp")]
pub mod agents;
mod check;
mod clock;
mod control;
mod driver;
mod durable;
mod effects;
mod engine;
mod estimate;
mod feed;
mod files;
mod follow;
mod launch;
mod listening;
pub mod project;
mod pump;
mod reader;
#[cfg(feature = "relais")]
mod relais;
mod relaunch;
mod restore;
mod stray;
#[cfg(all(test, feature = "store"))]
mod world;

pub use active::ActiveRuns;
#[cfg(feature = "acp")]
pub use agents::{BadAgent, agent_commands, check_sandboxes, pool_agents, pool_limits};
pub use clock::{RandomIds, SystemClock, new_run_id};
pub use control::{ControlClient, ControlError, ControlServer};
pub use durable::DiskPatience;
pub use engine::{Engine, EngineBuilder, EngineError, RunHandle};
pub use estimate::{estimator_of, past};
pub use feed::{Feed, FeedItem, FeedReader};
pub use files::DiskFiles;
pub use follow::{Followed, follow};
pub use launch::{LaunchError, LaunchRequest, TASK_DOCUMENT, look_at_repository, prepare, read_task_file};
pub use reader::{ReadError, Reader, StopAsked};
#[cfg(feature = "relais")]
pub use relais::{RelaisError, RelaisOptions, serve_relais};
pub use relaunch::{RelaunchError, Relaunched, prepare_relaunch};
pub use restore::ExecutedText;

#[cfg(feature = "acp")]
pub use sillage_acp as acp;
pub use sillage_core as core;
#[cfg(feature = "store")]
pub use sillage_store as store;
#[cfg(feature = "workspace")]
pub use sillage_workspace as workspace;
