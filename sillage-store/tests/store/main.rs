//! The stores against their contract, and the one on disk against everything that happens to disks and processes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here is a test, also outside the functions marked as one"
)]

mod child;
mod conformance;
mod damage;
mod faults;
mod full;
mod holding;
mod kills;
mod visible;
