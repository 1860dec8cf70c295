//! Which pool is served, and by which run of the daemon: each request may say which pool it is about,
//! and each answer says which run has given it.

use crate::api::{Control, Failure};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use wire::control::{POOL_FIELD, RUN_FIELD};
use wire::{Code, Problem};

/// Refuses what is about another pool.
pub async fn hold(State(control): State<Control>, request: Request, next: Next) -> Response {
    let mut answer = match request.headers().get(POOL_FIELD) {
        Some(meant) if meant != control.entry.0.description().id.as_str() => {
            Failure::from(other_pool(meant, &control)).into_response()
        }
        _ => next.run(request).await,
    };
    answer.headers_mut().insert(RUN_FIELD, HeaderValue::from(control.run()));
    answer
}

fn other_pool(meant: &HeaderValue, control: &Control) -> Problem {
    let node = control.entry.0.description();
    let meant = String::from_utf8_lossy(meant.as_bytes());
    Problem::new(
        Code::OtherPool,
        format!(
            "the request is about the pool {meant}, and this daemon serves `{}`, {}",
            node.name, node.id
        ),
        "serve that pool at this socket again, or mount and connect anew",
    )
}
