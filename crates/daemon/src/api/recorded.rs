//! When a volume was recorded: a place by its time, and a time by its place.

use super::extract::{Failure, Text};
use super::{Answered, Control};
use crate::quotas::Peer;
use crate::view;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Query, State};
use node::{Act, Error};
use serde::Deserialize;
use units::Bytes;
use utoipa::IntoParams;
use wire::control as api;
use wire::{Code, Problem};

/// What is looked up.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    /// A time of the wall clock, in nanoseconds since 1970: where what was recorded then is
    #[serde(default)]
    at_ns: Option<i64>,
    /// A place: when the byte there was recorded
    #[serde(default)]
    offset_bytes: Option<u64>,
}

/// Look up where a volume has what was recorded at a time, and when a place was recorded.
#[utoipa::path(get, path = "/v1/volumes/{name}/recorded", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"), Ask),
    responses(
        (status = 200, description = "What is known", body = api::RecordedFound),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn recorded(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Answered<Json<api::RecordedFound>> {
    let Query(ask) = ask.map_err(|rejection| bad_query(rejection.body_text()))?;
    let (found, who) = (control.entry.0.volume(&name), control.quotas.who(&peer));
    let volume = view::volume(found, &who, &name, &[Act::Read, Act::Own])?;
    let start = volume.start.unwrap_or_default();
    let recorded = control.entry.0.recorded(&name).ok_or(Error::NoSuchVolume { name })?;
    Ok(Json(api::RecordedFound {
        moment: ask.at_ns.map(|at| told(recorded.find(at, start))),
        at_ns: ask.offset_bytes.and_then(|place| recorded.time_at(Bytes::new(place))),
        within_ns: recorded.within(),
    }))
}

fn bad_query(what: String) -> Failure {
    let next = "ask for `at_ns=NANOSECONDS`, `offset_bytes=BYTES` or both";
    Problem::new(Code::BadRequest, what, next).into()
}

fn told(moment: node::Moment) -> api::Moment {
    match moment {
        node::Moment::Unknown => api::Moment::Unknown,
        node::Moment::Before { offset, begins } => {
            api::Moment::Before { offset_bytes: offset, begins_ns: begins }
        }
        node::Moment::At { offset } => api::Moment::At { offset_bytes: offset },
        node::Moment::Pause { offset, ended, resumes } => {
            api::Moment::Pause { offset_bytes: offset, ended_ns: ended, resumes_ns: resumes }
        }
        node::Moment::After { offset, ended } => {
            api::Moment::After { offset_bytes: offset, ended_ns: ended }
        }
    }
}
