//! Every address of the control interface, and the document that tells them.
//!
//! Both come from the same attributes: those of the handlers in `api`, `http` and `overview`.

use crate::api::{self, Control, Failure};
use crate::identity::{self, Identity};
use crate::limits::CONTROL_BODY_MAX;
use crate::{by_token, http, overview};
use axum::extract::DefaultBodyLimit;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::{Code, Problem};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Slackline control",
        description = "Control of one Slackline daemon, as HTTP on a unix socket, and over TLS for \
            those who show a token (docs/tcp.md). Quantities are \
            integers whose unit ends the field's name. The bytes of streams travel on the data \
            socket, see data-protocol.md. Every bad answer is a Problem.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((url = "http://localhost", description = "The unix socket; the host is not looked at")),
    tags(
        (name = "daemon", description = "The daemon and its pool"),
        (name = "volumes", description = "Sequences of extents that grow and shrink while in use"),
        (name = "tokens", description = "What lets others do less over TCP"),
        (name = "streams", description = "Open volumes with a contract"),
    )
)]
struct Document;

fn all() -> OpenApiRouter<Control> {
    let known = OpenApiRouter::with_openapi(Document::openapi());
    known
        .merge(api::routes())
        .merge(http::routes())
        .merge(overview::routes())
        .routes(routes!(document))
}

/// The router that serves the interface.
pub fn router(control: Control) -> axum::Router {
    let (router, _) = all().split_for_parts();
    let meant = axum::middleware::from_fn_with_state(Identity::of(&control), identity::hold);
    router
        .fallback(|uri: Uri| async move { Failure::from(nothing_here(uri.path())) })
        .method_not_allowed_fallback(|| async { Failure::from(not_with_this_method()) })
        .layer(DefaultBodyLimit::max(CONTROL_BODY_MAX))
        .layer(meant)
        .with_state(control)
}

/// The same for those who show tokens: each request is held to its own.
pub fn router_by_token(control: Control) -> axum::Router {
    let held = axum::middleware::from_fn_with_state(control.clone(), by_token::hold);
    router(control).layer(held)
}

/// The OpenAPI document, as JSON with a line break at its end.
pub fn openapi_json() -> String {
    let mut text = all().into_openapi().to_pretty_json().expect("the document is JSON");
    text.push('\n');
    text
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "daemon", responses(
    (status = 200, description = "The OpenAPI document", body = serde_json::Value),
))]
async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}

fn nothing_here(path: &str) -> Problem {
    // As `slackline volume show ""` asks.
    if path
        .strip_prefix("/v1/volumes/")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    {
        return Problem::new(
            Code::NotFound,
            "no volume is named: the name is empty",
            "list those that you may see with `slackline volume list`",
        );
    }
    let next_step = "GET /v1/openapi.json tells the addresses there are";
    Problem::new(Code::NotFound, "there is nothing at this address", next_step)
}

fn not_with_this_method() -> Problem {
    let next_step = "GET /v1/openapi.json tells the methods of each address";
    Problem::new(Code::MethodNotAllowed, "the address has no such method", next_step)
}
