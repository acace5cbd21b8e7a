//! Durable run logs on sled, and the same in memory.

mod memory;
mod name;
mod sled;

pub use self::memory::MemoryStore;
pub use self::sled::{Options, SledStore, hush_caught_panics};
