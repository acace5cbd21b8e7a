//! The engine through its public API.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

mod boundary;
mod broken;
mod budgets;
mod engine;
mod syncs;
