//! The engine through its public API.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on must fail, and looks at a few kinds of facts"
)]

mod boundary;
mod broken;
mod budgets;
mod corpus;
mod engine;
mod estimates;
mod relais;
mod syncs;
mod waits;
