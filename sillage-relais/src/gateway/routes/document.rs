//! The protocol as an OpenAPI document, made from the code.

use axum::Json;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, SecurityRequirement};
use utoipa::{Modify, OpenApi as _};

use crate::wire::{self, Problem};

const TOKEN: &str = "token";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Relais",
        description = "Sessions with agents over HTTP on loopback. Every route asks for the token.",
        version = "1"
    ),
    paths(
        super::status::status,
        super::status::models,
        super::status::account,
        super::sessions::list,
        super::sessions::create,
        super::sessions::show,
        super::sessions::delete,
        super::sessions::send,
        super::sessions::cancel,
        super::events::events,
        super::sessions::answer_permission,
        super::agents::list,
        super::agents::start,
        super::agents::stop,
        super::agents::restart,
        super::agents::logs,
        document,
    ),
    components(schemas(wire::Event)),
    modifiers(&WithToken),
)]
struct Document;

struct WithToken;

impl Modify for WithToken {
    fn modify(&self, document: &mut OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let components = document.components.get_or_insert_default();
        components.add_security_scheme(TOKEN, SecurityScheme::Http(scheme.build()));
        document.security = Some(vec![SecurityRequirement::new::<_, [String; 0], String>(
            TOKEN,
            [],
        )]);
    }
}

/// The protocol, version [`wire::PROTOCOL`], as an OpenAPI document.
#[must_use]
pub fn openapi() -> serde_json::Value {
    // Plain data is always JSON.
    serde_json::to_value(Document::openapi()).unwrap_or_default()
}

/// This document.
#[utoipa::path(get, path = "/api/openapi.json", tag = "gateway", responses(
    (status = 200, description = "The document.", body = serde_json::Value),
    (status = 400, description = "The request is malformed.", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "The token is missing or wrong.", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "`Host` or `Origin` is foreign.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn document() -> Json<serde_json::Value> {
    Json(openapi())
}

#[cfg(test)]
mod tests;
