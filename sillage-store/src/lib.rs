//! Durable run logs on sled, and the same in memory.
