//! The bytes of volumes over HTTP, at `/v1/volumes/NAME/data`.
//!
//! What is served is what was recorded: the bytes from the volume's start to the end of its
//! recorded data, zeros where nothing was written. A read is best effort, or, with `rate`, a
//! stream under contract of its own. A write is answered when its bytes are durable.
//!
//! Invariants: the entity tag is strong: it is another one whenever bytes of the volume may have
//! changed since, also after the daemon was started again; who may read and write, the volume's
//! owner and mode say; bytes under way are counted as everybody's (`data::account`).

pub mod conditions;
mod read;
mod write;

use crate::api::{Control, Failure, Text};
use crate::control::{Carriage, Turn};
use crate::priority;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Extension, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use conditions::{Wanted, tag_of};
use node::{Act, VolumeStatus};
use serde::Deserialize;
use units::{Bytes, Rate};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::control as wire_api;
use wire::{Code, Problem};

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new().routes(routes!(data_get, data_put))
}

/// How the bytes of a read are to be served.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Service {
    /// A contract for this read alone, for example `2MB/s`: the bytes come at this rate at the
    /// least, or the request is refused
    #[serde(default)]
    rate: Option<String>,
    /// `interactive`, `normal` or `background`; as the volume's where nothing is said. Not with
    /// `rate`
    #[serde(default)]
    priority: Option<wire_api::Priority>,
}

/// How the bytes of a write are to be served.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Urgency {
    /// `interactive`, `normal` or `background`; as the volume's where nothing is said
    #[serde(default)]
    priority: Option<wire_api::Priority>,
}

/// So often a name is looked up that is given to another volume all the time.
const LOOKS: u32 = 8;

/// A volume that somebody may use, as it was when he asked.
struct Found {
    name: String,
    /// How the pool is asked for this very volume, whatever it is called meanwhile.
    known: String,
    status: VolumeStatus,
    tag: HeaderValue,
}

impl Found {
    fn new(
        control: &Control,
        peer: &crate::quotas::Peer,
        name: String,
        act: Act,
    ) -> Result<Self, Failure> {
        let who = control.quotas.who(peer);
        let status = crate::view::volume(control.entry.0.volume(&name), &who, &name, &[act])?;
        let (id, known) = (status.id, status.id.as_name());
        let tag = tag_of(id, control.run, status.changes.last);
        Ok(Self { name, known, status, tag })
    }

    /// What every answer about the volume says.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ETAG, self.tag.clone());
        headers::HeaderMapExt::typed_insert(&mut headers, headers::AcceptRanges::bytes());
        // Kept by whoever likes, and asked about each time.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // A page of others does not play them by what a player here was given.
        let policy = HeaderName::from_static("cross-origin-resource-policy");
        headers.insert(policy, HeaderValue::from_static("same-origin"));
        headers
    }
}

/// Read the recorded bytes of a volume, or a range of them. HEAD tells how many there are.
#[utoipa::path(get, path = "/v1/volumes/{name}/data", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"), Service),
    responses(
        (status = 200, description = "The bytes", content_type = "application/octet-stream"),
        (status = 206, description = "The range that was asked for",
            content_type = "application/octet-stream"),
        (status = 304, description = "The bytes are those of `if-none-match`"),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "The contract does not fit, with the figures", body = Problem,
            content_type = "application/problem+json"),
        (status = 410, description = "A ring has given up the first of these bytes: ask for a \
            range from where it begins",
            body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "The bytes are not those of `if-match`", body = Problem,
            content_type = "application/problem+json"),
        (status = 416, description = "The range begins behind the recorded bytes", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn data_get(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<crate::quotas::Peer>,
    Text(name): Text,
    service: Result<Query<Service>, QueryRejection>,
    method: Method,
    (Extension(carriage), Extension(turn)): (Extension<Carriage>, Extension<Turn>),
    asked: HeaderMap,
) -> Result<Response, Failure> {
    let answer = looked(&control, &peer, name, told(service)?, (&method, carriage, &asked)).await?;
    // The bytes of the body are counted instead.
    turn.end();
    Ok(answer)
}

/// What the name gives, whichever volume has it meanwhile.
async fn looked(
    control: &Control,
    peer: &crate::quotas::Peer,
    name: String,
    service: Told,
    (method, carriage, asked): (&Method, Carriage, &HeaderMap),
) -> Result<Response, Failure> {
    for _ in 1..LOOKS {
        let (carriage, before) = (carriage.clone(), control.entry.0.volume_id(&name));
        let is_another = || control.entry.0.volume_id(&name) != before;
        match get(control, peer, name.clone(), &service, (method, carriage, asked)).await {
            // Nothing of the one before was given yet.
            Err(failure) if is_gone(&failure) && is_another() => {}
            ended => return ended,
        }
    }
    get(control, peer, name, &service, (method, carriage, asked)).await
}

/// One look at the name, and what it gives.
async fn get(
    control: &Control,
    peer: &crate::quotas::Peer,
    name: String,
    service: &Told,
    (method, carriage, asked): (&Method, Carriage, &HeaderMap),
) -> Result<Response, Failure> {
    let found = Found::new(control, peer, name, Act::Read)?;
    let mut headers = found.headers();
    if let Some(status) = conditions::precondition(asked, &found.tag) {
        return match status {
            StatusCode::NOT_MODIFIED => Ok((status, headers).into_response()),
            _ => Err(changed()),
        };
    }
    let length = found.status.length;
    let (status, range) = match conditions::range(asked, &found.tag, length) {
        Wanted::All => (StatusCode::OK, Bytes::ZERO..length),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::Nothing => return Ok(unsatisfiable(length, headers)),
    };
    let start = found.status.start.unwrap_or_default();
    if range.start < start && *method != Method::HEAD {
        return Ok(given_up(start, headers));
    }
    if status == StatusCode::PARTIAL_CONTENT {
        let range = headers::ContentRange::bytes(range.start.get()..range.end.get(), length.get());
        headers::HeaderMapExt::typed_insert(&mut headers, range.expect("a range with bytes in it"));
    }
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    let len = headers::ContentLength(range.end.saturating_sub(range.start).get());
    headers::HeaderMapExt::typed_insert(&mut headers, len);
    if *method == Method::HEAD || range.is_empty() {
        return Ok((status, headers, Body::empty()).into_response());
    }
    let body = match service.rate {
        Some(rate) => read::under_contract(control, peer, found, range, (rate, carriage)).await?,
        None => {
            let how = (service.priority, carriage);
            read::best_effort(control, peer, found, range, how).await?
        }
    };
    Ok((status, headers, body).into_response())
}

/// Write bytes into a volume: all of them, or, with `content-range`, some of them anywhere. The
/// volume grows where it is too short. Answered when the bytes are durable; where the connection
/// breaks, what came is kept, and HEAD tells how far that is.
#[utoipa::path(put, path = "/v1/volumes/{name}/data", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"), Urgency),
    request_body(content_type = "application/octet-stream"),
    responses(
        (status = 204, description = "The bytes are durable"),
        (status = 403, description = "Not permitted", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "More is recorded than would be written, the quota is used up, \
            or another volume has the name by now", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "The bytes are not those of `if-match`", body = Problem,
            content_type = "application/problem+json"),
        (status = 507, description = "The pool has not so much free space", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn data_put(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<crate::quotas::Peer>,
    Text(name): Text,
    urgency: Result<Query<Urgency>, QueryRejection>,
    (Extension(turn), Extension(carriage)): (Extension<Turn>, Extension<Carriage>),
    asked: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let Query(urgency) = urgency.map_err(|rejection| bad_query(rejection.body_text()))?;
    let priority = urgency.priority.map(priority::priority);
    let found = Found::new(&control, &peer, name, Act::Write)?;
    if conditions::precondition(&asked, &found.tag).is_some() {
        return Err(changed());
    }
    let place = conditions::place(&asked)?;
    let (known, name) = (found.known.clone(), found.name.clone());
    let sent = write::Sent { body, turn, other_end: carriage.other_end };
    let written = write::write(&control, &peer, found, place, priority, sent).await;
    let after = written.and_then(|()| Found::new(&control, &peer, known, Act::Write));
    let after = after.map_err(|failure| match is_gone(&failure) {
        true => Failure::from(node::Error::OtherVolume { name }),
        false => failure,
    })?;
    Ok((StatusCode::NO_CONTENT, after.headers()).into_response())
}

/// Whether the volume that was found by its name is there no more.
fn is_gone(failure: &Failure) -> bool {
    failure.code() == Code::NoSuchVolume
}

/// The service that was asked for; its rate as a quantity.
struct Told {
    rate: Option<Rate>,
    priority: Option<node::Priority>,
}

fn told(service: Result<Query<Service>, QueryRejection>) -> Result<Told, Failure> {
    let bad = bad_query;
    let Query(service) = service.map_err(|rejection| bad(rejection.body_text()))?;
    let rate = service
        .rate
        .as_deref()
        .map(|text| text.parse::<Rate>().map_err(|error| bad(format!("rate \"{text}\": {error}"))));
    let rate = rate.transpose()?;
    if rate.is_some() && service.priority.is_some() {
        return Err(bad("a read under a contract of its own has no priority".into()));
    }
    Ok(Told { rate, priority: service.priority.map(priority::priority) })
}

pub(crate) fn bad_query(what: String) -> Failure {
    let next = "a read has `rate=2MB/s`, `priority=interactive` or neither; a write no rate";
    Problem::new(Code::BadRequest, what, next).into()
}

fn changed() -> Failure {
    let next = "read the volume's `etag` again, and decide anew";
    Problem::new(Code::Precondition, "the volume's bytes are not those that you know", next).into()
}

/// What was asked for a ring has given up.
fn given_up(start: Bytes, headers: HeaderMap) -> Response {
    let problem = crate::problem::of(&node::Error::GivenUp { start });
    let next_step = format!("ask for `range: bytes={}-`", start.get());
    let mut answer = Failure::from(Problem { next_step, ..problem }).into_response();
    answer.headers_mut().extend(headers);
    answer
}

fn unsatisfiable(length: Bytes, mut headers: HeaderMap) -> Response {
    let known = headers::ContentRange::unsatisfied_bytes(length.get());
    headers::HeaderMapExt::typed_insert(&mut headers, known);
    let detail =
        format!("the volume has {} bytes recorded, and the range begins behind", length.get());
    let problem = Problem::new(Code::BeyondEnd, detail, "ask for bytes that there are");
    (headers, Failure::from(problem)).into_response()
}
