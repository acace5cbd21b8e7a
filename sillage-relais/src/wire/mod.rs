//! The protocol, version [`PROTOCOL`]: what goes over the wire, as JSON in snake case.
//!
//! Within a version fields are only added. A reader ignores fields of an answer that it does not know; a request with
//! an unknown field is refused, because it could not be compared with its replay. Instants are RFC 3339 in UTC,
//! durations whole seconds, identifiers UUIDs. Errors are [`Problem`] documents (RFC 9457).
//!
//! Many of these types look like those of [`sillage_core::ports::runtime`], and are of their own on purpose: what a trait
//! of this workspace may change from one day to the next, a client of another make goes on reading. `translate` stands
//! between them.

mod event;
mod message;
mod problem;
mod session;
mod status;

pub use event::{ErrorClass, Event, EventBody, PermissionAnswer, PermissionOption, PermissionRequest, Usage};
pub use message::{ContentBlock, LastMessage, MessageAccepted, MessageState, SendMessage};
pub use problem::{Problem, ProblemKind};
pub use session::{
    CreateSession, FilesystemScope, LONGEST_TTL_SECONDS, McpServer, Permissions, ProtectedPlaces, Session,
    SessionList, SessionState, USUAL_TTL_SECONDS,
};
pub use status::{
    Account, AccountState, Agent, AgentList, AgentLog, Model, ModelList, SessionCounts, Status, capability,
};

/// The version of the protocol, told by `GET /api/status`.
pub const PROTOCOL: u32 = 1;

/// The largest body of a request, in bytes.
pub const LARGEST_BODY: usize = 4 << 20;
