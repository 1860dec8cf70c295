//! What people watch: everything with what is found in it, once or each second, what happened, and
//! the last day.
//!
//! Invariants: what is made for all who watch takes at most a fiftieth of a processor; watching
//! ends with the daemon.

use crate::api::{Control, Failure};
use crate::control::Turn;
use crate::convert;
use crate::events::{About, Seen};
use crate::findings;
use crate::http::bad_query;
use crate::live::Watcher;
use crate::quotas::Peer;
use crate::was_late;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Extension, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use node::{STOOD_STILL, VolumeId};
use serde::Deserialize;
use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant as Clock;
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
    OpenApiRouter::new().routes(routes!(overview)).routes(routes!(history)).routes(routes!(events))
}

/// What this peer is shown.
fn seen(control: &Control, peer: &Peer) -> api::Overview {
    let (pool, shown) = (&*control.entry.0, control.shown(peer));
    let policy = convert::policy(&shown);
    let status = convert::status(pool, shown, &control.sessions, &control.quotas, control.since);
    let late = control.live.was_late(&status.disks);
    was_late::told(findings::overview(status, policy), late)
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
    Extension(turn): Extension<Turn>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|one| one.to_str().ok());
    if !accepted.any(|one| one.contains("text/event-stream")) {
        return Ok(Json(seen(&control, &peer)).into_response());
    }
    let watcher = control.live.watch(&peer)?;
    // Who watches is counted instead.
    turn.end();
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
fn pause(took: Duration, all: usize) -> Duration {
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
async fn history(State(control): State<Control>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], control.live.history())
}

/// Looks for events until the daemon stops.
pub async fn watch(control: Control, mut stopping: watch::Receiver<bool>) {
    let (mut seen, root) = (Seen::default(), Peer::known(0));
    let mut wait = Duration::ZERO;
    loop {
        tokio::select! {
            () = pass(wait) => {}
            _ = stopping.wait_for(|&stopping| stopping) => return,
        }
        let began = Instant::now();
        control.events.look(&mut seen, &self::seen(&control, &root));
        wait = pause(began.elapsed(), 1);
    }
}

/// Waits for so long; where the daemon stood still meanwhile, for a moment more: what its disks have ended is
/// noticed then, before it is told that they hang.
async fn pass(wait: Duration) {
    let until = Clock::now() + wait;
    tokio::time::sleep_until(until).await;
    if until.elapsed().as_nanos() > u128::from(STOOD_STILL.as_nanos()) {
        tokio::time::sleep(EVERY).await;
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct After {
    /// Only events with a larger number than this
    after: Option<u64>,
}

/// Show the last events, the oldest first: of streams and volumes, those of volumes that the asker may
/// see, or that were his when they went; of the pool, its disks and the host, to root. To follow, ask again with the last number.
#[utoipa::path(get, path = "/v1/events", tag = "daemon", params(After), responses(
    (status = 200, description = "The last events", body = api::Events),
    (status = 400, description = "The query cannot be read", body = Problem,
        content_type = "application/problem+json"),
))]
async fn events(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    query: Result<Query<After>, QueryRejection>,
) -> Result<Json<api::Events>, Failure> {
    let Query(After { after }) = query.map_err(|rejection| bad_query(rejection.body_text()))?;
    let (last, events) = control.events.after(after.unwrap_or(0));
    let all = control.quotas.who(&peer).is_superuser
        && peer.scope.as_deref().is_none_or(token::Grant::is_for_all);
    let shown: HashSet<u64> = match all || events.is_empty() {
        true => HashSet::new(),
        false => control.shown(&peer).volumes.into_iter().map(|one| one.id.0).collect(),
    };
    let uid = peer.scope.as_deref().is_none_or(token::Grant::is_for_all).then_some(peer.uid);
    let is_there = |volume| control.entry.0.volume(&VolumeId(volume).as_name()).is_some();
    let told = |about: About| about.is_told(&shown, uid, is_there);
    let is_shown = |about: Option<About>| all || about.is_some_and(told);
    let events = events.into_iter().filter(|(_, about)| is_shown(*about));
    let events = events.map(|(event, _)| event).collect();
    Ok(Json(api::Events { run: control.run, last, events }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the way back from a stop of the whole machine each disk that had been at work seemed to hang.
    #[tokio::test(start_paused = true)]
    async fn who_has_stood_still_looks_a_moment_later() {
        let took = async |more: Duration| {
            let since = Clock::now();
            let passes = tokio::spawn(pass(EVERY));
            tokio::task::yield_now().await;
            tokio::time::advance(EVERY + more).await;
            passes.await.unwrap();
            since.elapsed()
        };
        assert_eq!(took(Duration::from_millis(900)).await, EVERY + Duration::from_millis(900));
        assert_eq!(took(60 * EVERY).await, 62 * EVERY);
    }

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
