//! Workspaces without git, for tests and benches of what stands above.

mod history;
mod memory;
mod none;

pub use memory::{Call, MemoryWorkspace};
pub use none::NoWorkspace;
