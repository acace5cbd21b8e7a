//! Agents outside of sessions (L9).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::body::In;
use super::{Desk, Refused};
use crate::wire::{AgentList, AgentLog, Problem};

/// The agents, in the order of the settings.
#[utoipa::path(get, path = "/api/agents", tag = "agents", responses(
    (status = 200, description = "The agents.", body = AgentList),
))]
pub(super) async fn list(State(desk): State<Desk>) -> Json<AgentList> {
    let agents = desk.inner.agents.list().await;
    Json(AgentList { agents })
}

/// Starts an agent, unless it is at work, and waits until it is ready.
#[utoipa::path(post, path = "/api/agents/{name}/start", tag = "agents",
    params(("name" = String, Path, description = "The agent.")), responses(
    (status = 204, description = "It is ready."),
    (status = 404, description = "There is no such agent.", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "It cannot be started now.", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "It did not start.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn start(State(desk): State<Desk>, In(name): In<String>) -> Result<StatusCode, Refused> {
    desk.inner.agents.start(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops an agent, if it is at work, and waits until its process is gone.
#[utoipa::path(post, path = "/api/agents/{name}/stop", tag = "agents",
    params(("name" = String, Path, description = "The agent.")), responses(
    (status = 204, description = "It is stopped."),
    (status = 404, description = "There is no such agent.", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "It cannot be stopped now.", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "It could not be ended.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn stop(State(desk): State<Desk>, In(name): In<String>) -> Result<StatusCode, Refused> {
    desk.inner.agents.stop(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops an agent, starts it again and waits until it is ready.
#[utoipa::path(post, path = "/api/agents/{name}/restart", tag = "agents",
    params(("name" = String, Path, description = "The agent.")), responses(
    (status = 204, description = "It is ready."),
    (status = 404, description = "There is no such agent.", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "It cannot be started now.", body = Problem, content_type = "application/problem+json"),
    (status = 422, description = "It did not start.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn restart(State(desk): State<Desk>, In(name): In<String>) -> Result<StatusCode, Refused> {
    desk.inner.agents.restart(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An agent's last lines.
#[utoipa::path(get, path = "/api/agents/{name}/logs", tag = "agents",
    params(("name" = String, Path, description = "The agent.")), responses(
    (status = 200, description = "The lines.", body = AgentLog),
    (status = 404, description = "There is no such agent.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn logs(State(desk): State<Desk>, In(name): In<String>) -> Result<Json<AgentLog>, Refused> {
    let lines = desk.inner.agents.logs(&name).await?;
    Ok(Json(AgentLog { lines }))
}
