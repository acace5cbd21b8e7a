//! The engine through its public API.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod budgets;
mod engine;
mod syncs;
