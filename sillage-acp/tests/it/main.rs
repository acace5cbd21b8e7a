//! Tests of the crate that need processes or the official schema of the protocol.

#[cfg(test)]
#[cfg(unix)]
mod acp_runtime;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod agent_pool;
#[cfg(test)]
#[cfg(unix)]
mod judges;
#[cfg(test)]
mod peer;
#[cfg(test)]
#[cfg(unix)]
mod real_agent;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod scripted_agent;
