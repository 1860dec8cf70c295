//! What people watch: everything with what is found in it, once or each second, and the last day.
//!
//! Invariants: what is made for all who watch takes at most a fiftieth of a processor; watching
//! ends with the daemon.

use crate::api::{Control, Failure};
use crate::convert;
use crate::findings;
use crate::live::Watcher;
use crate::quotas::Peer;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::Problem;
use wire::control as api;

/// How often those who watch hear.
const EVERY: Duration = Duration::from_secs(1);
/// What is made for all of them is made so seldom that it takes one part of so many.
const PART: u32 = 50;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(overview)).routes(routes!(history))
}

/// What this peer is shown.
pub fn seen(control: &Control, peer: &Peer) -> api::Overview {
    let (pool, shown) = (&*control.entry.0, control.shown(peer));
    let policy = convert::policy(&shown);
    let status = convert::status(pool, shown, &control.sessions, &control.quotas, control.since);
    findings::overview(status, policy)
}

/// Show everything at one instant with what a person should know of it: of volumes and streams,
/// those that the asker may see. With `accept: text/event-stream` the same comes as a server-sent
/// event each second, or more seldom where there is much to tell, until the daemon stops.
#[utoipa::path(get, path = "/v1/overview", tag = "daemon", responses(
    (status = 200, description = "Everything, and what is found in it", content(
        (api::Overview = "application/json"),
        (String = "text/event-stream"),
    )),
    (status = 503, description = "Too many watch already", body = Problem,
        content_type = "application/problem+json"),
))]
async fn overview(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|one| one.to_str().ok());
    if !accepted.any(|one| one.contains("text/event-stream")) {
        return Ok(Json(seen(&control, &peer)).into_response());
    }
    let watcher = control.live.watch(&peer)?;
    let (events, taken) = mpsc::channel(1);
    tokio::spawn(tell(control, peer, watcher, events));
    let kept = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((kept, Body::new(Events(taken))).into_response())
}

/// Tells until nobody listens or the daemon stops.
async fn tell(control: Control, peer: Peer, watcher: Watcher, events: mpsc::Sender<Bytes>) {
    loop {
        let began = Instant::now();
        let told = serde_json::to_string(&seen(&control, &peer)).expect("messages are JSON");
        let pause = pause(began.elapsed(), watcher.all());
        let next = async {
            events.send(format!("data: {told}\n\n").into()).await.ok()?;
            tokio::time::sleep(pause).await;
            Some(())
        };
        tokio::select! {
            next = next => if next.is_none() { return },
            () = events.closed() => return,
            () = watcher.over() => return,
        }
    }
}

/// How long one of `all` waits after what was made for him took so long.
pub fn pause(took: Duration, all: usize) -> Duration {
    EVERY.max(took.saturating_mul(PART).saturating_mul(u32::try_from(all).unwrap_or(u32::MAX)))
}

/// Events on their way to one who watches.
struct Events(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

/// Show what the disks did in the last day, in steps of 20 s.
#[utoipa::path(get, path = "/v1/history", tag = "daemon", responses(
    (status = 200, description = "The last day", body = api::History),
))]
async fn history(State(control): State<Control>) -> Json<api::History> {
    Json(control.live.history())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_watch_take_a_fiftieth_of_a_processor_however_many_they_are() {
        assert_eq!(pause(Duration::from_millis(1), 1), EVERY);
        for all in [1, 8, 64] {
            let took = Duration::from_millis(40);
            let each = took.as_secs_f64() / pause(took, all).as_secs_f64();
            assert!((each * all as f64 - 0.02).abs() < 1e-9, "{all}");
        }
        pause(Duration::MAX, usize::MAX);
    }
}
