//! Relais: sessions with agents, held by a gateway and reached over HTTP on loopback.
//!
//! [`wire`] is the protocol: documented types, version [`wire::PROTOCOL`]. [`RelaisClient`] speaks it as an
//! [`AgentRuntime`](sillage_core::ports::AgentRuntime). With the feature `gateway`, `Gateway` serves any runtime over
//! it, and `openapi` tells the protocol as an OpenAPI document.
//!
//! ```no_run
//! use sillage_relais::{ClientOptions, RelaisClient};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let token = std::fs::read_to_string("token")?;
//! let options = ClientOptions::new("My application");
//! let runtime = RelaisClient::new("http://127.0.0.1:7433", token.trim(), options)?;
//! # Ok(())
//! # }
//! ```
//!
//! The gateway knows sessions, messages and capabilities, and nothing of what they are for.

pub mod client;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod placement;
mod translate;
pub mod wire;

pub use client::{BadAddress, ClientOptions, RelaisClient};
#[cfg(feature = "gateway")]
pub use gateway::{Gateway, GatewayOptions, openapi};
pub use placement::Gateways;
