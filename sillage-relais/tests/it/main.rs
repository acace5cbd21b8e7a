//! The gateway on loopback, over the scripted runtime.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails with words")]

mod attacks;
mod conformance;
mod hindered;
mod house;
mod placement;
mod raw;
mod replays;
mod restart;
mod streams;
