//! The gateway over real agent processes, and the program `relais` as a process that is killed.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails with words")]

mod conformance;
mod killed;
mod program;
mod theatre;
