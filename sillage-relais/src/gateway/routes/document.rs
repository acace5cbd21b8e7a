//! The protocol as an OpenAPI document, made from the code.

use axum::Json;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, ResponseBuilder, SecurityRequirement};
use utoipa::{Modify, OpenApi as _, ToSchema as _};

use super::PROBLEM_JSON;
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
    components(schemas(wire::Event, Problem)),
    modifiers(&WithToken, &Guarded),
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

/// What is refused before a route is looked for: the guard stands before all of them, so that it is told here once. A
/// route that has more to say of a status says it itself.
struct Guarded;

impl Modify for Guarded {
    fn modify(&self, document: &mut OpenApi) {
        let told = [
            ("400", "The request is malformed."),
            ("401", "The token is missing or wrong."),
            ("403", "`Host` or `Origin` is foreign."),
        ];
        let problem = Ref::from_schema_name(Problem::name());
        let paths = document.paths.paths.values_mut();
        let operations = paths.flat_map(|path| [&mut path.get, &mut path.post, &mut path.delete]);
        for operation in operations.flatten() {
            for (status, description) in told {
                let content = Content::new(Some(problem.clone()));
                let refusal = ResponseBuilder::new().description(description);
                let refusal = refusal.content(PROBLEM_JSON, content);
                let known = operation.responses.responses.entry(status.to_owned());
                known.or_insert_with(|| refusal.into());
            }
        }
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
))]
pub(super) async fn document() -> Json<serde_json::Value> {
    Json(openapi())
}

#[cfg(test)]
mod tests;
