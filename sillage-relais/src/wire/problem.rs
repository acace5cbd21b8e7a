//! What went wrong, as RFC 9457 problem documents (`application/problem+json`).

use serde::{Deserialize, Serialize};

/// A problem document (RFC 9457, section 3), with the members that some types add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "gateway", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Which problem it is: one of [`ProblemKind`], as a URI that does not change.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words; the same for all of its kind.
    pub title: String,
    /// The status code of the answer.
    pub status: u16,
    /// What is wrong this time, and what to do.
    pub detail: String,
    /// `conflict`: the fields that differ from the request that came before under the identifier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Seconds to wait before it is tried again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// `quota`: when it is given back, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "gateway", schema(format = DateTime))]
    pub resets_at: Option<String>,
    /// `unstoppable`: the process that could not be ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// Kinds of problems, each with its `type` and the status that it is usually told with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The request is malformed.
    BadRequest,
    /// The token is missing or wrong.
    Unauthorized,
    /// `Host` or `Origin` is not the gateway's own.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// The path has no such method.
    MethodNotAllowed,
    /// The body did not arrive in time.
    Timeout,
    /// The identifier came before with another request.
    Conflict,
    /// Another message is being answered.
    Busy,
    /// The session is over, and cannot do what is asked.
    Lost,
    /// The body has no length.
    LengthRequired,
    /// The body is too large.
    TooLarge,
    /// The body is not JSON by its content type.
    UnsupportedMediaType,
    /// It will not work however often it is tried.
    Permanent,
    /// The gateway lacks what the request needs.
    Capability,
    /// A quota is used up.
    Quota,
    /// Someone must sign in.
    SignIn,
    /// It may work later.
    Temporary,
    /// As many sessions are held as can be.
    Capacity,
    /// A process could not be ended.
    Unstoppable,
    /// What was asked cannot be made durable, so it was not done.
    Storage,
}

impl ProblemKind {
    /// All kinds.
    pub const ALL: [ProblemKind; 20] = [
        ProblemKind::BadRequest,
        ProblemKind::Unauthorized,
        ProblemKind::Forbidden,
        ProblemKind::NotFound,
        ProblemKind::MethodNotAllowed,
        ProblemKind::Timeout,
        ProblemKind::Conflict,
        ProblemKind::Busy,
        ProblemKind::Lost,
        ProblemKind::LengthRequired,
        ProblemKind::TooLarge,
        ProblemKind::UnsupportedMediaType,
        ProblemKind::Permanent,
        ProblemKind::Capability,
        ProblemKind::Quota,
        ProblemKind::SignIn,
        ProblemKind::Temporary,
        ProblemKind::Capacity,
        ProblemKind::Unstoppable,
        ProblemKind::Storage,
    ];

    /// The `type`, its usual status and its title.
    #[must_use]
    pub fn told(self) -> (&'static str, u16, &'static str) {
        match self {
            ProblemKind::BadRequest => ("urn:relais:problem:bad-request", 400, "malformed request"),
            ProblemKind::Unauthorized => ("urn:relais:problem:unauthorized", 401, "missing or wrong token"),
            ProblemKind::Forbidden => ("urn:relais:problem:forbidden", 403, "foreign host or origin"),
            ProblemKind::NotFound => ("urn:relais:problem:not-found", 404, "no such thing"),
            ProblemKind::MethodNotAllowed => ("urn:relais:problem:method-not-allowed", 405, "no such method"),
            ProblemKind::Timeout => ("urn:relais:problem:timeout", 408, "body too slow"),
            ProblemKind::Conflict => (
                "urn:relais:problem:conflict",
                409,
                "same identifier, other request",
            ),
            ProblemKind::Busy => (
                "urn:relais:problem:busy",
                409,
                "another message is being answered",
            ),
            ProblemKind::Lost => ("urn:relais:problem:lost", 410, "session over"),
            ProblemKind::LengthRequired => {
                ("urn:relais:problem:length-required", 411, "body without a length")
            }
            ProblemKind::TooLarge => ("urn:relais:problem:too-large", 413, "body too large"),
            ProblemKind::UnsupportedMediaType => {
                ("urn:relais:problem:unsupported-media-type", 415, "not JSON")
            }
            ProblemKind::Permanent => ("urn:relais:problem:permanent", 422, "refused for good"),
            ProblemKind::Capability => ("urn:relais:problem:capability", 422, "missing capability"),
            ProblemKind::Quota => ("urn:relais:problem:quota", 429, "quota used up"),
            ProblemKind::SignIn => ("urn:relais:problem:sign-in", 502, "sign-in needed"),
            ProblemKind::Temporary => ("urn:relais:problem:temporary", 503, "not now"),
            ProblemKind::Capacity => ("urn:relais:problem:capacity", 503, "no place for another session"),
            ProblemKind::Unstoppable => (
                "urn:relais:problem:unstoppable",
                500,
                "process could not be ended",
            ),
            ProblemKind::Storage => ("urn:relais:problem:storage", 503, "cannot be made durable"),
        }
    }

    /// The kind of a `type`; none for one that this version does not know.
    #[must_use]
    pub fn of(kind: &str) -> Option<ProblemKind> {
        ProblemKind::ALL.into_iter().find(|known| known.told().0 == kind)
    }

    /// A document of this kind.
    #[must_use]
    pub fn document(self, detail: impl Into<String>) -> Problem {
        let (kind, status, title) = self.told();
        Problem {
            kind: kind.to_owned(),
            title: title.to_owned(),
            status,
            detail: detail.into(),
            fields: Vec::new(),
            retry_after: None,
            resets_at: None,
            pid: None,
        }
    }
}
