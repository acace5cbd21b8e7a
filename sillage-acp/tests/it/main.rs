//! Tests of the crate that need processes or the official schema of the protocol.

mod peer;
mod schema;
mod scripted_agent;
