//! Tests of the crate that need processes or the official schema of the protocol.

#[cfg(unix)]
mod acp_runtime;
mod peer;
mod schema;
mod scripted_agent;
