//! Bodies of requests: JSON by their content type, of bounded size, within a bounded time.

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header;
use axum::http::request::Parts;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::{Desk, Refused};
use crate::wire::{LARGEST_BODY, ProblemKind};

/// A body of this type.
pub(super) struct Body<T>(pub(super) T);

fn refuse(kind: ProblemKind, words: impl Into<String>) -> Refused {
    Refused::new(kind, words)
}

impl<T: DeserializeOwned> FromRequest<Desk> for Body<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, desk: &Desk) -> Result<Self, Refused> {
        let (head, body) = request.into_parts();
        if !is_json(&head) {
            let words = "the body is not JSON by its content type: write `Content-Type: application/json`";
            return Err(refuse(ProblemKind::UnsupportedMediaType, words));
        }
        let too_large = || {
            let words = format!("the body is larger than {LARGEST_BODY} bytes");
            refuse(ProblemKind::TooLarge, words)
        };
        let told = head
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok());
        let told = told.and_then(|length| length.parse::<u64>().ok());
        if told.is_some_and(|length| length > LARGEST_BODY as u64) {
            return Err(too_large());
        }
        let read = Limited::new(body, LARGEST_BODY).collect();
        let Ok(read) = tokio::time::timeout(desk.bounds.body, read).await else {
            let words = format!("the body did not arrive within {} s", desk.bounds.body.as_secs());
            return Err(refuse(ProblemKind::Timeout, words));
        };
        let bytes = match read {
            Ok(read) => read.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
            Err(error) => {
                let words = format!("the body cannot be read: {error}");
                return Err(refuse(ProblemKind::BadRequest, words));
            }
        };
        serde_json::from_slice(&bytes).map(Body).map_err(|error| {
            let words = format!("the body is not what this route takes: {error}");
            refuse(ProblemKind::BadRequest, words)
        })
    }
}

fn is_json(head: &Parts) -> bool {
    let told = head
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|told| told.to_str().ok());
    let kind = told.and_then(|told| told.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// The session that a path names.
pub(super) struct Named(pub(super) Uuid);

impl FromRequestParts<Desk> for Named {
    type Rejection = Refused;

    async fn from_request_parts(head: &mut Parts, desk: &Desk) -> Result<Self, Refused> {
        let In(parts) =
            In::<std::collections::HashMap<String, String>>::from_request_parts(head, desk).await?;
        let text = parts.get("id").map(String::as_str).unwrap_or_default();
        // What is no identifier is none that anybody has.
        text.parse().map(Named).map_err(|_| {
            refuse(
                ProblemKind::NotFound,
                format!("`{text}` is no session: sessions are named by UUIDs"),
            )
        })
    }
}

/// What a path names.
pub(super) struct In<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Desk> for In<T> {
    type Rejection = Refused;

    async fn from_request_parts(head: &mut Parts, desk: &Desk) -> Result<Self, Refused> {
        let Path(value) = Path::from_request_parts(head, desk)
            .await
            .map_err(|error| refuse(ProblemKind::NotFound, format!("there is no such path: {error}")))?;
        Ok(In(value))
    }
}

/// What stands after the question mark.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Desk> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(head: &mut Parts, desk: &Desk) -> Result<Self, Refused> {
        let Query(value) = Query::from_request_parts(head, desk).await.map_err(|error| {
            let words = format!("the query is not what this route takes: {error}");
            refuse(ProblemKind::BadRequest, words)
        })?;
        Ok(Asked(value))
    }
}
