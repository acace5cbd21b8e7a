//! Sessions, messages and permissions (L3–L5, L7).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use uuid::Uuid;

use super::body::{Asked, Body, In, Named};
use super::{Desk, Refused};
use crate::gateway::calls::Done;
use crate::gateway::failure::Failure;
use crate::wire::{
    CreateSession, MessageAccepted, PermissionAnswer, Problem, SendMessage, Session, SessionList,
};

/// What a list is cut down to.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Sessions of this application alone.
    application_name: Option<String>,
    /// The session of this identifier alone.
    client_session_id: Option<Uuid>,
}

/// Opens a session, or gives back the one that was opened under its identifier.
#[utoipa::path(post, path = "/api/sessions", tag = "sessions", request_body = CreateSession, responses(
    (status = 201, description = "It was opened.", body = Session),
    (status = 200, description = "It was opened before, and this is how it is now.", body = Session),
    (status = 408, description = "The body is too slow.", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "The identifier came before with another request: `fields` says in what.", body = Problem, content_type = "application/problem+json"),
    (status = 410, description = "It is gone.", body = Problem, content_type = "application/problem+json"),
    (status = 411, description = "The body has no length.", body = Problem, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large.", body = Problem, content_type = "application/problem+json"),
    (status = 415, description = "The body is not JSON.", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "It is refused for good, or needs a missing capability.", body = Problem, content_type = "application/problem+json"),
    (status = 429, description = "A quota is used up.", body = Problem, content_type = "application/problem+json"),
    (status = 502, description = "Someone must sign in.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "It may work later, or there is no place.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn create(
    State(desk): State<Desk>,
    Body(request): Body<CreateSession>,
) -> Result<(StatusCode, Json<Session>), Refused> {
    let (done, session) = desk.inner.create(request).await?;
    let status = match done {
        Done::Now => StatusCode::CREATED,
        Done::Before => StatusCode::OK,
    };
    Ok((status, Json(session)))
}

/// The sessions, the oldest first; those that are over as well, for seven days.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions", params(Wanted), responses(
    (status = 200, description = "The sessions.", body = SessionList),
    (status = 400, description = "The query is malformed.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "Nothing can be made durable.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(desk): State<Desk>,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<SessionList>, Refused> {
    let sessions = {
        let state = desk.inner.state();
        let used = |id: Uuid| state.lives.get(&id).is_some_and(|live| live.used());
        let is_wanted = |application: &str, id: Uuid| {
            wanted
                .application_name
                .as_deref()
                .is_none_or(|name| name == application)
                && wanted.client_session_id.is_none_or(|named| named == id)
        };
        state.book.sessions(is_wanted, used)
    };
    desk.inner.settled().await.map_err(Failure::from)?;
    Ok(Json(SessionList { sessions }))
}

/// A session as it is.
#[utoipa::path(get, path = "/api/sessions/{id}", tag = "sessions",
    params(("id" = Uuid, Path, description = "The session.")), responses(
    (status = 200, description = "The session.", body = Session),
    (status = 404, description = "There is no such session.", body = Problem, content_type = "application/problem+json"),
    (status = 429, description = "A quota is used up.", body = Problem, content_type = "application/problem+json"),
    (status = 502, description = "Someone must sign in.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "It could not be looked for this time.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn show(State(desk): State<Desk>, Named(id): Named) -> Result<Json<Session>, Refused> {
    desk.inner.known(id).await?;
    let session = desk.inner.session(id)?;
    desk.inner.settled().await.map_err(Failure::from)?;
    Ok(Json(session))
}

/// Closes a session, and ends what was started for it. One that is over, or that nobody knows, is closed already.
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "sessions",
    params(("id" = Uuid, Path, description = "The session.")), responses(
    (status = 204, description = "It is closed."),
    (status = 404, description = "It is no identifier.", body = Problem, content_type = "application/problem+json"),
    (status = 500, description = "A process could not be ended.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "It may work later.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn delete(State(desk): State<Desk>, Named(id): Named) -> Result<StatusCode, Refused> {
    desk.inner.close(id, "a client closed it").await?;
    desk.inner.settled().await.map_err(Failure::from)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a message. Its answer comes as an event.
#[utoipa::path(post, path = "/api/sessions/{id}/messages", tag = "sessions",
    params(("id" = Uuid, Path, description = "The session.")), request_body = SendMessage, responses(
    (status = 202, description = "It was taken.", body = MessageAccepted),
    (status = 200, description = "It was taken before.", body = MessageAccepted),
    (status = 404, description = "There is no such session.", body = Problem, content_type = "application/problem+json"),
    (status = 408, description = "The body is too slow.", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "`conflict`: the identifier came before with another content. `busy`: another message is being answered.", body = Problem, content_type = "application/problem+json"),
    (status = 410, description = "The session is over.", body = Problem, content_type = "application/problem+json"),
    (status = 411, description = "The body has no length.", body = Problem, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large.", body = Problem, content_type = "application/problem+json"),
    (status = 415, description = "The body is not JSON.", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "It is refused for good.", body = Problem, content_type = "application/problem+json"),
    (status = 429, description = "A quota is used up.", body = Problem, content_type = "application/problem+json"),
    (status = 502, description = "Someone must sign in.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "It may work later.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn send(
    State(desk): State<Desk>,
    Named(id): Named,
    Body(message): Body<SendMessage>,
) -> Result<(StatusCode, Json<MessageAccepted>), Refused> {
    let client_message_id = message.client_message_id;
    let status = match desk.inner.send(id, message).await? {
        Done::Now => StatusCode::ACCEPTED,
        Done::Before => StatusCode::OK,
    };
    Ok((status, Json(MessageAccepted { client_message_id })))
}

/// Asks a session to stop what it does. Its message still ends with an answer or an error; an idle session is left as
/// it is.
#[utoipa::path(post, path = "/api/sessions/{id}/cancel", tag = "sessions",
    params(("id" = Uuid, Path, description = "The session.")), responses(
    (status = 204, description = "It was asked."),
    (status = 404, description = "There is no such session.", body = Problem, content_type = "application/problem+json"),
    (status = 410, description = "The session is over.", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "It is refused for good.", body = Problem, content_type = "application/problem+json"),
    (status = 429, description = "A quota is used up.", body = Problem, content_type = "application/problem+json"),
    (status = 502, description = "Someone must sign in.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "It may work later.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn cancel(State(desk): State<Desk>, Named(id): Named) -> Result<StatusCode, Refused> {
    desk.inner.cancel(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers a permission request with one of its options, once.
#[utoipa::path(post, path = "/api/sessions/{id}/permissions/{permission_id}", tag = "sessions",
    params(("id" = Uuid, Path, description = "The session."), ("permission_id" = String, Path, description = "The request.")),
    request_body = PermissionAnswer, responses(
    (status = 204, description = "It was answered."),
    (status = 404, description = "There is no such session.", body = Problem, content_type = "application/problem+json"),
    (status = 408, description = "The body is too slow.", body = Problem, content_type = "application/problem+json"),
    (status = 410, description = "The session is over.", body = Problem, content_type = "application/problem+json"),
    (status = 411, description = "The body has no length.", body = Problem, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large.", body = Problem, content_type = "application/problem+json"),
    (status = 415, description = "The body is not JSON.", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "The request is not open, or has no such option.", body = Problem, content_type = "application/problem+json"),
    (status = 429, description = "A quota is used up.", body = Problem, content_type = "application/problem+json"),
    (status = 502, description = "Someone must sign in.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "It may work later.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn answer_permission(
    State(desk): State<Desk>,
    Named(id): Named,
    In(parts): In<std::collections::HashMap<String, String>>,
    Body(answer): Body<PermissionAnswer>,
) -> Result<StatusCode, Refused> {
    let permission = parts.get("permission_id").map(String::as_str).unwrap_or_default();
    desk.inner
        .answer_permission(id, permission, &answer.option)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
