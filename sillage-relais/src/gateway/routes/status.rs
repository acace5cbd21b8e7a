//! What the gateway is, can do and offers (L2, L9).

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use sillage_core::ports::runtime::AccountState as Known;

use super::body::In;
use super::{Desk, Refused};
use crate::gateway::failure::Failure;
use crate::wire::{Account, AccountState, Model, ModelList, PROTOCOL, Problem, Status, capability};

/// What the gateway is and can do.
#[utoipa::path(get, path = "/api/status", tag = "gateway", responses(
    (status = 200, description = "The status.", body = Status),
))]
pub(super) async fn status(State(desk): State<Desk>) -> Json<Status> {
    let sessions = desk.inner.state().book.counts();
    let can = [
        // A runtime takes messages alone, and starts no servers of a client's.
        (capability::WORKING_CONTEXT, false),
        (capability::FILESYSTEM_SCOPE, true),
        (capability::IDEMPOTENT_SESSION_CREATION, true),
        (capability::MCP_HTTP, false),
        (capability::MCP_HTTP_AUTO, false),
    ];
    let can: BTreeMap<String, bool> = can
        .into_iter()
        .map(|(name, can)| (name.to_owned(), can))
        .collect();
    Json(Status {
        name: "relais".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        uptime_seconds: desk.inner.started.elapsed().as_secs(),
        sessions,
        capabilities: can,
    })
}

/// Models and efforts on offer, by agent.
#[utoipa::path(get, path = "/api/models", tag = "gateway", responses(
    (status = 200, description = "The models.", body = ModelList),
    (status = 503, description = "It may work later.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn models(State(desk): State<Desk>) -> Result<Json<ModelList>, Refused> {
    let status = desk.inner.runtime.status().await.map_err(Failure::from)?;
    let offers = status.models.into_iter();
    let models = offers.map(|offer| Model {
        agent: offer.agent,
        model: offer.model,
        efforts: offer.efforts,
        account: offer.account,
    });
    Ok(Json(ModelList {
        models: models.collect(),
    }))
}

/// What is known of a provider account, without trying it.
#[utoipa::path(get, path = "/api/accounts/{account}", tag = "gateway",
    params(("account" = String, Path, description = "The account, as `GET /api/models` names it.")), responses(
    (status = 200, description = "The account.", body = Account),
    (status = 404, description = "The path is none.", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "It may work later.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn account(
    State(desk): State<Desk>,
    In(account): In<String>,
) -> Result<Json<Account>, Refused> {
    let state = match desk
        .inner
        .runtime
        .account(&account)
        .await
        .map_err(Failure::from)?
    {
        Known::Unknown => AccountState::Unknown,
        Known::Available => AccountState::Available,
        Known::Unavailable => AccountState::Unavailable,
    };
    Ok(Json(Account { account, state }))
}
