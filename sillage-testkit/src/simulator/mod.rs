//! A simulated world under one seed: store, runtime, workspace, files, clock and identifiers for the real engine, with
//! faults of every kind, and a judge who watches.
//!
//! The world keeps tables of its own of what really happened: which sessions it started, which messages it received,
//! what it answered. The judge compares the log and the engine's requests with these tables and with the promises of
//! the project, and never with what the engine believes. Everything that happens follows from the seed, so that a
//! failing story can be told again and made smaller.
//!
//! A story has lives: in each a fresh engine, on a fresh tokio runtime with paused time, meets the same world. When the
//! engine dies its runtime is dropped as it stands: messages to it vanish, requests that it had sent still act.

mod agents;
mod dice;
mod doors;
mod faults;
mod hands;
mod judge;
mod plans;
mod runtime;
mod sessions;
mod simulation;
mod store;
mod story;
mod tasks;
mod trace;
mod workspace;
mod world;

pub use dice::{Dice, mixed};
pub use doors::{Life, SimClock, SimFiles, SimIds};
pub use faults::{Fault, Faults};
pub use judge::{Promise, Violation};
pub use runtime::SimRuntime;
pub use simulation::{Simulation, Tale};
pub use store::SimStore;
pub use story::{Crashes, MOST_AGENTS, Story};
pub use workspace::SimWorkspace;
pub use world::Deed;
