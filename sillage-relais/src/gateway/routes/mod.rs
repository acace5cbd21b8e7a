//! The routes, and the document that tells them.

mod agents;
mod body;
mod document;
mod events;
mod sessions;
mod status;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};

pub use document::openapi;

use super::failure::Failure;
use super::server::Bounds;
use super::{Inner, agents::AgentsError};
use crate::wire::{Problem, ProblemKind};

/// What a problem document says that it is (RFC 9457).
const PROBLEM_JSON: &str = "application/problem+json";

/// What handlers share.
#[derive(Clone)]
struct Desk {
    inner: Arc<Inner>,
    bounds: Bounds,
}

/// Every path with what it does: the one list of them.
fn table() -> Vec<(&'static str, MethodRouter<Desk>)> {
    vec![
        ("/api/status", get(status::status)),
        ("/api/models", get(status::models)),
        ("/api/accounts/{account}", get(status::account)),
        ("/api/sessions", get(sessions::list).post(sessions::create)),
        ("/api/sessions/{id}", get(sessions::show).delete(sessions::delete)),
        ("/api/sessions/{id}/messages", post(sessions::send)),
        ("/api/sessions/{id}/cancel", post(sessions::cancel)),
        ("/api/sessions/{id}/events", get(events::events)),
        (
            "/api/sessions/{id}/permissions/{permission_id}",
            post(sessions::answer_permission),
        ),
        ("/api/agents", get(agents::list)),
        ("/api/agents/{name}/start", post(agents::start)),
        ("/api/agents/{name}/stop", post(agents::stop)),
        ("/api/agents/{name}/restart", post(agents::restart)),
        ("/api/agents/{name}/logs", get(agents::logs)),
        ("/api/openapi.json", get(document::document)),
    ]
}

/// The routes of a gateway.
pub(super) fn router(inner: Arc<Inner>, bounds: Bounds) -> Router {
    let routes = table().into_iter().fold(Router::new(), |router, (path, does)| {
        router.route(path, does.fallback(no_such_method))
    });
    routes.fallback(no_such_path).with_state(Desk { inner, bounds })
}

async fn no_such_path(uri: Uri) -> Refused {
    let words = format!(
        "there is no {}: /api/openapi.json tells what there is",
        uri.path()
    );
    Refused::new(ProblemKind::NotFound, words)
}

async fn no_such_method(method: Method, uri: Uri) -> Refused {
    let words = format!(
        "{} takes no {method}: /api/openapi.json tells what it takes",
        uri.path()
    );
    Refused::new(ProblemKind::MethodNotAllowed, words)
}

/// A call that is answered with a problem.
struct Refused(Box<Problem>);

impl Refused {
    fn new(kind: ProblemKind, words: impl Into<String>) -> Refused {
        Refused(Box::new(kind.document(words)))
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Refused(Box::new(failure.into()))
    }
}

impl From<AgentsError> for Refused {
    fn from(error: AgentsError) -> Self {
        let kind = match &error {
            AgentsError::Unknown(_) => ProblemKind::NotFound,
            AgentsError::Refused(_) => ProblemKind::Busy,
            AgentsError::Failed(_) => ProblemKind::Permanent,
        };
        Refused::new(kind, error.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response<Body> {
        refused(&self.0)
    }
}

/// The answer with a problem document (RFC 9457).
pub(super) fn refused(problem: &Problem) -> Response<Body> {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = (status, Json(problem)).into_response();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    if let Some(seconds) = problem.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // What was not read of a request's body is not read later as another request.
    if matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::LENGTH_REQUIRED
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_TIMEOUT
    ) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}
