//! Which pool is served, and by which run of the daemon: each request may say which pool it is about,
//! and each answer says which run has given it.

use crate::api::{Control, Failure};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use wire::control::{POOL_FIELD, RUN_FIELD};
use wire::{Code, Problem};

/// What never changes while the daemon runs.
pub struct Identity {
    pool: String,
    name: String,
    run: HeaderValue,
}

impl Identity {
    /// Of what is served here.
    pub fn of(control: &Control) -> Arc<Self> {
        let served = control.entry.0.description();
        let run = HeaderValue::from(control.run());
        Arc::new(Self { pool: served.id, name: served.name, run })
    }

    fn other_pool(&self, meant: &HeaderValue) -> Problem {
        let meant = String::from_utf8_lossy(meant.as_bytes());
        let Self { pool, name, .. } = self;
        Problem::new(
            Code::OtherPool,
            format!(
                "the request is about the pool {meant}, and this daemon serves `{name}`, {pool}"
            ),
            "serve that pool at this socket again, or mount and connect anew",
        )
    }
}

/// Refuses what is about another pool.
pub async fn hold(State(own): State<Arc<Identity>>, request: Request, next: Next) -> Response {
    let mut answer = match request.headers().get(POOL_FIELD) {
        Some(meant) if *meant != *own.pool => Failure::from(own.other_pool(meant)).into_response(),
        _ => next.run(request).await,
    };
    answer.headers_mut().insert(RUN_FIELD, own.run.clone());
    answer
}
