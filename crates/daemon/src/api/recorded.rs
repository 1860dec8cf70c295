//! When a volume was recorded: a place by its time, and a time by its place.

use super::extract::{Body, Failure, Text};
use super::{Answered, Control};
use crate::quotas::Peer;
use crate::view;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Query, State};
use node::{Act, Error, calls};
use serde::Deserialize;
use units::Bytes;
use utoipa::IntoParams;
use wire::control as api;
use wire::{Code, Problem};

/// Volumes of one answer: with their spans less than 2 MB.
const RECORDINGS_MAX: usize = 200;
/// Spans are told as one that are closer to each other than one part of so many of the time that
/// was asked for: at most one more of them are told of a volume, and a person sees no smaller ones.
const PARTS: i64 = 200;

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

/// Say that a volume is a copy of a part of another one: it was recorded when that was. Ask again
/// where less is known than of what was copied.
#[utoipa::path(put, path = "/v1/volumes/{name}/recorded", tag = "volumes",
    params(("name" = String, Path, description = "The name of the copy")),
    request_body = api::VolumeCopied,
    responses(
        (status = 200, description = "It is so, durably", body = api::CopyRecorded),
        (status = 400, description = "It is a ring", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "No volume has one of the names", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn copied(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    Body(request): Body<api::VolumeCopied>,
) -> Answered<Json<api::CopyRecorded>> {
    let api::VolumeCopied { of, start_bytes: start } = request;
    let copied = calls::VolumeCopied { name: name.clone(), of: of.clone(), start };
    control.by(&peer).call(copied).await?;
    let known = |name: String| {
        let recorded = control.entry.0.recorded(&name);
        recorded.map(|recorded| recorded.known()).ok_or(Error::NoSuchVolume { name })
    };
    let (known_bytes, of_bytes) = (known(name.clone())?, known(of)?.saturating_sub(start));
    let found = control.entry.0.volume(&name).ok_or(Error::NoSuchVolume { name })?;
    Ok(Json(api::CopyRecorded { known_bytes, of_bytes: of_bytes.min(found.length) }))
}

/// Of which time.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct During {
    /// From then on, in nanoseconds since 1970
    from_ns: i64,
    /// To then
    to_ns: i64,
    /// Only volumes whose names come after this one
    #[serde(default)]
    after: Option<String>,
}

/// Show when volumes were recorded between two times: of those that the asker may read or owns, the
/// first 200 by name. Pauses shorter than a two-hundredth of that time are left out.
#[utoipa::path(get, path = "/v1/recordings", tag = "volumes", params(During), responses(
    (status = 200, description = "What they hold of that time", body = api::Recordings),
    (status = 400, description = "The query cannot be read", body = Problem,
        content_type = "application/problem+json"),
))]
pub(super) async fn recordings(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    during: Result<Query<During>, QueryRejection>,
) -> Answered<Json<api::Recordings>> {
    let bad = |what| {
        let next = "ask for `from_ns=NANOSECONDS&to_ns=NANOSECONDS`, the first one smaller";
        Failure::from(Problem::new(Code::BadRequest, what, next))
    };
    let Query(During { from_ns, to_ns, after }) =
        during.map_err(|rejection| bad(rejection.body_text()))?;
    if from_ns >= to_ns {
        return Err(bad("the time ends before it begins".into()));
    }
    let mut volumes = control.shown(&peer).volumes;
    volumes.retain(|volume| volume.recorded.is_some());
    let left = first(&mut volumes, |volume| &*volume.name, after.as_deref(), RECORDINGS_MAX);
    let apart = to_ns.saturating_sub(from_ns) / PARTS;
    let recording = |volume: node::VolumeStatus| {
        // One that was deleted meanwhile is not there any more.
        let recorded = control.entry.0.recorded(&volume.name)?;
        let spans = recorded.spans(volume.start.unwrap_or_default(), from_ns..to_ns, apart);
        let span =
            |span: std::ops::Range<i64>| api::Span { begins_ns: span.start, ends_ns: span.end };
        Some(api::Recording { volume: volume.name, spans: spans.into_iter().map(span).collect() })
    };
    let recordings = volumes.into_iter().filter_map(recording).collect();
    Ok(Json(api::Recordings { recordings, left }))
}

/// Leaves the first ones by name of those that come after one, and tells how many come behind them.
fn first<T>(all: &mut Vec<T>, name: fn(&T) -> &str, after: Option<&str>, most: usize) -> u64 {
    all.retain(|one| after.is_none_or(|after| name(one) > after));
    all.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    let left = all.len().saturating_sub(most);
    all.truncate(most);
    left as u64
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_told_of_part_by_part_by_their_names() {
        let all = ["d", "a", "e", "c", "b"];
        let mut told = Vec::new();
        for left_then in [3, 1, 0] {
            let (mut some, last) = (all.to_vec(), told.last().copied());
            assert_eq!(first(&mut some, |name| name, last, 2), left_then);
            assert!(some.len() <= 2);
            told.extend(some);
        }
        assert_eq!(told, ["a", "b", "c", "d", "e"]);
    }
}
