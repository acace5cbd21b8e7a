//! The traits through which an engine reaches the world. Each has a conformance suite in `sillage-testkit`.

mod checkout;
mod clock;
mod files;
pub mod runtime;
pub mod store;
pub mod workspace;

pub use clock::{Clock, Ids};
pub use files::RunFiles;
pub use runtime::AgentRuntime;
pub use store::Store;
pub use workspace::Workspace;
