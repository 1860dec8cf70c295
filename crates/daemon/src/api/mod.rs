//! The control interface: HTTP with JSON on a unix socket.
//!
//! The addresses are put together in `routes`. Invariants: every bad answer is a [`Problem`]; a stream that
//! was opened is known to [`Sessions`] even if its program has gone by then.

mod extract;
mod naming;
mod player;
mod recorded;
mod tokens;
mod volumes;

use crate::ahead::Ahead;
use crate::asker::Asker;
use crate::convert;
use crate::events::Events;
use crate::files::Files;
use crate::limits::ATTACH_WITHIN;
use crate::live::Live;
use crate::metrics;
use crate::plans::Plans;
use crate::pool::{Ask, Entry};
use crate::problem;
use crate::quotas::{Asked, Peer, Quotas};
use crate::scope;
use crate::sessions::{Opened, Sessions, Stop};
use crate::shared::Shared;
use crate::tokens::Tokens;
use crate::view;
use axum::Json;
use axum::extract::{ConnectInfo, Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::SharedWindow;
pub use extract::Failure;
use extract::{Body, Number};
pub(crate) use extract::{Staged, Text};
use node::{Act, Capacity, DiskIndex, Opening, Ready, Status, StreamId, StreamStatus, Wish, calls};
use std::path::PathBuf;
use std::sync::Arc;
use units::{Bytes, Instant};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
pub(crate) use volumes::{Resize, resized};
use wire::control as api;
use wire::{Code, Problem};

/// What the handlers share.
#[derive(Clone)]
pub struct Control {
    /// The pool.
    pub entry: Entry,
    /// The streams opened here.
    pub sessions: Arc<Sessions>,
    /// Who may hold how much, and whose a stream is.
    pub quotas: Arc<Quotas>,
    /// Space ahead of those who write volumes.
    pub(crate) ahead: Arc<Ahead>,
    /// What-ifs.
    pub(crate) plans: Arc<Plans>,
    /// The files under contract.
    pub files: Arc<Files>,
    /// What lets others in.
    pub tokens: Arc<Tokens>,
    /// The last hours, and those who watch.
    pub live: Arc<Live>,
    /// What happened.
    pub events: Arc<Events>,
    /// The path of the data socket, for those who open streams.
    pub data_socket: PathBuf,
    /// When the pool was opened, on the pool's clock.
    pub since: Instant,
    /// Another number for each start of a daemon.
    pub run: u64,
}

type Answered<T> = Result<T, Failure>;

impl Control {
    /// Another number each time that the daemon starts.
    pub(crate) fn run(&self) -> u64 {
        self.since.as_nanos()
    }

    /// Asks the pool on a peer's behalf.
    pub(crate) fn by(&self, peer: &Peer) -> Ask {
        self.entry.by(self.quotas.who(peer))
    }

    /// What a peer is shown of the pool.
    pub(crate) fn shown(&self, peer: &Peer) -> Status {
        let (who, scope) = (self.quotas.who(peer), peer.scope.as_deref());
        view::shown(self.entry.0.status(), &who, scope, &self.sessions)
    }

    /// Refuses a peer what a volume does not let him do: before anything is said of it.
    /// What is done is held to the same once more, by the pool.
    fn permit(&self, peer: &Peer, name: &str, act: Act) -> Result<(), Box<Problem>> {
        let (found, who) = (self.entry.0.volume(name), self.quotas.who(peer));
        let permitted = view::volume(found, &who, name, &[act]).map(drop);
        permitted.map_err(|error| Box::new(problem::of(&error)))
    }

    /// A volume as it is after a peer did something with it.
    fn after(&self, peer: &Peer, name: &str) -> Result<api::Volume, node::Error> {
        let found = view::after(self.entry.0.volume(name), &self.quotas.who(peer), name)?;
        Ok(convert::volume(found, &self.quotas))
    }
}

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Control> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .routes(routes!(status))
        .routes(routes!(figures))
        .routes(routes!(volumes::volume_list, volumes::volume_create))
        .routes(routes!(volumes::volume_show, volumes::volume_resize, volumes::volume_delete))
        .routes(routes!(volumes::volume_access))
        .routes(routes!(naming::volume_rename))
        .routes(routes!(naming::volume_times))
        .routes(routes!(naming::volume_keep))
        .routes(routes!(naming::entries))
        .routes(routes!(recorded::recorded, recorded::copied))
        .routes(routes!(recorded::recordings))
        .routes(routes!(player::player))
        .routes(routes!(naming::file))
        .routes(routes!(naming::sync))
        .routes(routes!(volumes::volume_service))
        .routes(routes!(volumes::volume_block))
        .routes(routes!(volumes::handle_end))
        .routes(routes!(stream_list, stream_open))
        .routes(routes!(stream_show, stream_change, stream_close))
        .routes(routes!(policy_show, policy_set))
        .routes(routes!(bus_set))
        .routes(routes!(disk_profile))
        .routes(routes!(disk_reprofile))
        .routes(routes!(plan))
        .routes(routes!(quota_list))
        .routes(routes!(file_devices))
        .routes(routes!(tokens::token_list, tokens::token_make))
        .routes(routes!(tokens::token_revoke))
}

/// Tell that the daemon answers.
#[utoipa::path(get, path = "/v1/health", tag = "daemon", responses(
    (status = 200, description = "The daemon answers", body = api::Health),
))]
async fn health(State(control): State<Control>) -> Json<api::Health> {
    let (read_only, description) = (control.entry.0.is_read_only(), control.entry.0.description());
    let Capacity { total, free, volumes, volumes_free } = control.entry.0.capacity();
    Json(api::Health {
        run: control.run(),
        capacity_bytes: total,
        free_bytes: free,
        volumes,
        volumes_free,
        status: if read_only { "read_only" } else { "ok" }.into(),
        pool: description.name,
        pool_id: description.id,
        version: env!("CARGO_PKG_VERSION").into(),
    })
}

/// Show everything at one instant: of volumes and streams, those that the asker may see.
#[utoipa::path(get, path = "/v1/status", tag = "daemon", responses(
    (status = 200, description = "Everything at one instant", body = api::Status),
))]
async fn status(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
) -> Json<api::Status> {
    let (pool, shown) = (&*control.entry.0, control.shown(&peer));
    Json(convert::status(pool, shown, &control.sessions, &control.quotas, control.since))
}

/// Figures for whoever collects them over time: of volumes and streams, those that the asker may see.
/// As OpenMetrics where the request accepts that, else in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "daemon", responses(
    (status = 200, description = "Figures at one instant", content(
        (String = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (String = "text/plain; version=0.0.4; charset=utf-8"),
    )),
))]
async fn figures(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
) -> Response {
    let (pool, shown) = (&*control.entry.0, control.shown(&peer));
    let (sessions, quotas) = (&control.sessions, &control.quotas);
    metrics::answer(convert::status(pool, shown, sessions, quotas, control.since), &headers)
}

/// Show how the disks are scheduled, and what that promises.
#[utoipa::path(get, path = "/v1/policy", tag = "daemon",
    responses(
        (status = 200, description = "The policy of the pool", body = api::PolicyState),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn policy_show(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
) -> Json<api::PolicyState> {
    Json(convert::policy(&control.shown(&peer)))
}

/// Schedule the disks by another policy from now on, or with other settings, and keep that
/// with the pool. Every open
/// contract is admitted again, by the analysis that this policy keeps. Refused, and nothing
/// changes, where one would not fit.
#[utoipa::path(put, path = "/v1/policy", tag = "daemon",
    request_body = api::PolicySet,
    responses(
        (status = 200, description = "The disks follow it", body = api::PolicyState),
        (status = 400, description = "No policy has this name, or it has no such setting, or the \
            value is beyond its limits", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "Open contracts would not be kept; which, with the figures",
            body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn policy_set(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Body(request): Body<api::PolicySet>,
) -> Answered<Json<api::PolicyState>> {
    control.quotas.only_administrator(&peer, "the policy of the pool")?;
    let policy = match &request.policy {
        None => control.entry.0.policy(),
        Some(name) => {
            policies::named(name).map_err(|error| Failure::from(problem::of_policy(error)))?
        }
    };
    let mut settings = request.settings.iter();
    let policy = settings.try_fold(policy, |policy, (name, text)| {
        policy.with(name, text).map_err(|error| Failure::from(problem::of_setting(error)))
    })?;
    let keep = request.keep.unwrap_or(true);
    control.by(&peer).call(calls::PolicySet { policy: Box::new(policy), keep }).await?;
    Ok(Json(convert::policy(&control.shown(&peer))))
}

/// Say which disks share a bus from now on, and keep that in their profiles. Every open contract
/// on them is admitted again with the wait for the bus. Refused, and nothing changes, where one
/// would not fit.
#[utoipa::path(put, path = "/v1/bus", tag = "daemon",
    request_body = api::BusSet,
    responses(
        (status = 200, description = "It is so, durably: all disks of the pool",
            body = Vec<api::Disk>),
        (status = 400, description = "There can be no such bus", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "No disk has such a number", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "Open contracts would not fit, with the figures",
            body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn bus_set(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Body(request): Body<api::BusSet>,
) -> Answered<Json<Vec<api::Disk>>> {
    control.quotas.only_administrator(&peer, "a bus of the pool")?;
    let (disks, bus) = match request {
        api::BusSet::Shared(text) => {
            let spec: engine::BusSpec = text.parse().map_err(|error: engine::PoolError| {
                let next = "describe it as `slackline help pool create` says";
                Failure::from(Problem::new(Code::Invalid, error.to_string(), next))
            })?;
            let (disks, plan) = spec.into_parts();
            (disks, Some(Box::new(plan)))
        }
        api::BusSet::None(disks) => (disks.into_iter().map(DiskIndex).collect(), None),
    };
    control.by(&peer).call(calls::BusSet { disks, bus }).await?;
    let (pool, status) = (&*control.entry.0, control.shown(&peer));
    let description = pool.description();
    let disks = status.disks.into_iter().map(|one| convert::disk(one, &description));
    Ok(Json(disks.collect()))
}

/// Use another profile for a disk from now on, and store it. Refused, and nothing
/// changes, where an open contract would not fit. One of another depth is only stored,
/// for the next start.
#[utoipa::path(put, path = "/v1/disks/{disk}/profile", tag = "daemon",
    params(("disk" = u64, Path, description = "The number of the disk, from 0")),
    request_body = api::DiskProfile,
    responses(
        (status = 200, description = "The profile is stored, durably", body = api::Disk),
        (status = 404, description = "No disk has this number", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "Open contracts would not fit, with the figures",
            body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn disk_profile(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Number(disk): Number,
    Body(request): Body<api::DiskProfile>,
) -> Answered<Json<api::Disk>> {
    control.quotas.only_administrator(&peer, "the profile of a disk")?;
    let profile = disk::Profile::parse(&request.profile);
    let profile = Box::new(profile.map_err(|error| Failure::from(problem::of_profile(&error)))?);
    let at = disk_index(disk);
    control.by(&peer).call(calls::ProfileSet { disk: at, profile }).await?;
    find_disk(&control, &peer, at)
}

/// Measure a disk again in the background, with reads. What comes of it is in its status.
#[utoipa::path(post, path = "/v1/disks/{disk}/reprofile", tag = "daemon",
    params(("disk" = u64, Path, description = "The number of the disk, from 0")),
    responses(
        (status = 200, description = "It has begun, or was on its way", body = api::Disk),
        (status = 404, description = "No disk has this number", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn disk_reprofile(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Number(disk): Number,
) -> Answered<Json<api::Disk>> {
    control.quotas.only_administrator(&peer, "measuring a disk again")?;
    let at = disk_index(disk);
    control.by(&peer).call(calls::Reprofile { disk: at }).await?;
    find_disk(&control, &peer, at)
}

fn disk_index(number: u64) -> DiskIndex {
    DiskIndex(u16::try_from(number).unwrap_or(u16::MAX))
}

fn find_disk(control: &Control, peer: &Peer, disk: DiskIndex) -> Answered<Json<api::Disk>> {
    let status = control.shown(peer);
    let found = status.disks.into_iter().find(|one| one.disk == disk);
    let found = found.expect("the pool has just answered for it");
    Ok(Json(convert::disk(found, &control.entry.0.description())))
}

/// List the asker's streams, and those on volumes that he may read or owns.
#[utoipa::path(get, path = "/v1/streams", tag = "streams", responses(
    (status = 200, description = "All of them", body = api::Streams),
))]
async fn stream_list(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
) -> Json<api::Streams> {
    let status = control.shown(&peer);
    let streams = convert::streams(status.streams, status.now, &control.sessions, &control.quotas);
    Json(api::Streams { streams })
}

/// Open a stream under contract; admission decides.
#[utoipa::path(post, path = "/v1/streams", tag = "streams", request_body = api::StreamOpen,
    responses(
        (status = 201, description = "The contract is taken", body = api::StreamOpened),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "Admission refused, with the figures", body = Problem,
            content_type = "application/problem+json"),
        (status = 507, description = "No memory for the window", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn stream_open(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Body(request): Body<api::StreamOpen>,
) -> Answered<Response> {
    let opened = open_stream(&control, peer, request).await?;
    Ok((StatusCode::CREATED, Json(opened)).into_response())
}

/// Opens a stream, and makes it known to the sessions. The asker may go at any moment: this is done
/// to its end all the same, as every request (`control`).
pub(crate) async fn open_stream(
    control: &Control,
    owner: Peer,
    request: api::StreamOpen,
) -> Result<api::StreamOpened, Box<Problem>> {
    let mut turn = Some(control.quotas.turn(&owner).await);
    let ask = control.by(&owner);
    let mode = convert::mode(request.mode);
    let (volume, contract) = (request.volume, convert::contract(&request.contract));
    scope::promise(&owner, contract.rate)?;
    let miss = request.miss_per_billion.map(node::Chance::of_billion);
    let wish = match miss {
        Some(miss) => Wish::StreamAtOdds(mode, contract, miss),
        None => Wish::Stream(mode, contract),
    };
    // Only of what he may open: else it would tell him of a volume that he may not know of.
    let acts: &[Act] = match mode {
        node::Mode::Read => &[Act::Read],
        node::Mode::Write => &[Act::Write],
        node::Mode::Update => &[Act::Read, Act::Write],
    };
    if acts.iter().all(|&act| control.permit(&owner, &volume, act).is_ok())
        && let Some(terms) = ask.0.terms(&volume, &wish)
    {
        let asked = Asked::Open(terms);
        let exceeded = control.quotas.exceeded(&owner, &*ask.0, &control.sessions, &asked);
        exceeded.map_or(Ok(()), Err)?;
    }
    let early = request.early && mode == node::Mode::Read;
    let begins_at = || started_at(&ask, &volume, mode);
    let mut start = request.start_bytes.unwrap_or_else(begins_at);
    let opened = loop {
        let opening = Opening { volume: volume.clone(), mode, contract, start, early, miss };
        let opened = async {
            match request.shared_window {
                true => open_window(&ask, opening).await,
                false => open_carried(&ask, opening).await,
            }
        };
        let opened = control.quotas.decided(&mut turn, &owner, opened).await;
        // A ring may have given up its first bytes since.
        match opened {
            Err(node::Error::GivenUp { start: now }) if request.start_bytes.is_none() => {
                start = now;
            }
            opened => break opened,
        }
    };
    let (stream, window, shared) = opened.map_err(|error| refused(control, &error))?;
    let shared_window = shared.is_some();
    let (buffered, grows_to) = (request.buffered, request.grows_to_bytes);
    let owned = owner.clone();
    let known = Opened { stream, mode, volume, start, owner: owned, buffered, grows_to, shared };
    control.sessions.add(known);
    // The volume may have changed since its terms were looked at.
    let now_has = &Asked::Nothing;
    let exceeded = control.quotas.exceeded(&owner, &*control.entry.0, &control.sessions, now_has);
    // The sessions know whose it is, and for so long it counts: a writer is synced before it is
    // closed, and a disk may hang. Nobody else waits for that.
    drop(turn);
    if let Some(problem) = exceeded {
        // What goes wrong then has been told to whom it concerns, which is nobody yet.
        let _ = control.sessions.close(stream, Stop::Closed).await;
        return Err(problem);
    }
    let begins = if early { begins(&ask, stream).await } else { None };
    Ok(api::StreamOpened {
        id: stream.0,
        window_bytes: window,
        data_socket: control.data_socket.display().to_string(),
        attach_within_ms: ATTACH_WITHIN.as_millis() as u64,
        shared_window,
        begins,
    })
}

/// Where a stream begins that names no place: a reader where what a ring holds begins.
fn started_at(ask: &Ask, volume: &str, mode: node::Mode) -> Bytes {
    let held_from = || ask.0.volume(volume).and_then(|found| found.start);
    let start = if mode == node::Mode::Read { held_from() } else { None };
    start.unwrap_or_default()
}

/// When a reader that has what is there as soon as it is has its first bytes, and its contract.
async fn begins(ask: &Ask, stream: StreamId) -> Option<api::StreamBegins> {
    let Ok(Ready { at, steady, .. }) = ask.call(calls::StreamBegin { stream }).await else {
        // Nobody knows of the stream but the pool, which may be ending.
        return None;
    };
    let now = ask.0.now();
    let (ready_ns, steady_ns) = (at.saturating_since(now), steady.saturating_since(now));
    Some(api::StreamBegins { ready_ns, steady_ns })
}

/// A refusal, with whose the disk is.
fn refused(control: &Control, error: &node::Error) -> Box<Problem> {
    let mut problem = Box::new(problem::of(error));
    if let node::Error::Refused(refusal) = error {
        let (number, name) =
            (format!("disk {}", refusal.disk.0), control.entry.0.disk_name(refusal.disk));
        problem.detail = problem.detail.replace(&number, &name);
        problem.next_step = problem.next_step.replace(&number, &name);
        let who = control.quotas.who_has(refusal.disk, &*control.entry.0, &control.sessions);
        if !who.is_empty() {
            problem.detail = format!("{}; of its time, contracts have: {who}", problem.detail);
        }
    }
    problem
}

/// What was opened: its number, its window's size, and the window where it is shared.
type Open = (StreamId, units::Bytes, Option<Arc<Shared>>);

/// Opens a stream whose bytes are carried over the socket.
async fn open_carried(ask: &Ask, opening: Opening) -> Result<Open, node::Error> {
    let op = calls::Open { opening: Box::new(opening), region: None };
    let node::Opened { stream, window } = ask.call(op).await?;
    Ok((stream, window, None))
}

/// Opens a stream whose window the program can map; where the system has no such
/// memory, one that is carried.
async fn open_window(ask: &Ask, opening: Opening) -> Result<Open, node::Error> {
    let (mode, block) = (opening.mode, opening.contract.block);
    let Some(opened) = ask.open_window(opening.clone()).await else {
        return open_carried(ask, opening).await;
    };
    let SharedWindow { stream, window, memory } = opened?;
    let Ok(shared) = Shared::new(memory, mode, window, block) else {
        let _ = ask.call(calls::StreamClose { stream }).await;
        return open_carried(ask, opening).await;
    };
    let shared = Arc::new(shared);
    settle(&shared, window).await;
    Ok((stream, window, Some(shared)))
}

/// Brings a window into memory, beside other work.
async fn settle(shared: &Arc<Shared>, window: units::Bytes) {
    let shared = Arc::clone(shared);
    // A panic there has said why; the window is brought in as it is used.
    let _ = tokio::task::spawn_blocking(move || shared.settle(window)).await;
}

/// Show one stream.
#[utoipa::path(get, path = "/v1/streams/{id}", tag = "streams",
    params(("id" = u64, Path, description = "The number of the stream")),
    responses(
        (status = 200, description = "The stream", body = api::Stream),
        (status = 404, description = "No stream has this number", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn stream_show(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Number(id): Number,
) -> Answered<Json<api::Stream>> {
    find_stream(&control, &peer, id)
}

/// Give an open stream another rate or burst; admission decides, and a refusal changes
/// nothing. A program may go faster when the window can follow, about its time later.
#[utoipa::path(patch, path = "/v1/streams/{id}", tag = "streams",
    params(("id" = u64, Path, description = "The number of the stream")),
    request_body = api::StreamChange,
    responses(
        (status = 200, description = "The contract is taken", body = api::Stream),
        (status = 404, description = "No stream has this number", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "Admission refused, with the figures", body = Problem,
            content_type = "application/problem+json"),
        (status = 507, description = "No memory for the window", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn stream_change(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Number(id): Number,
    Body(request): Body<api::StreamChange>,
) -> Answered<Json<api::Stream>> {
    let contract = convert::contract(&request.contract);
    change_stream(&control, &peer, StreamId(id), contract).await?;
    find_stream(&control, &peer, id)
}

async fn change_stream(
    control: &Control,
    peer: &Peer,
    stream: StreamId,
    contract: node::Contract,
) -> Result<(), Box<Problem>> {
    let Control { sessions, quotas, .. } = control;
    scope::promise(peer, contract.rate)?;
    let ask = control.by(peer);
    let mut turn = Some(quotas.turn(peer).await);
    quotas.owns_stream(peer, sessions, stream)?;
    let owner = sessions.owner(stream).unwrap_or_else(|| peer.clone());
    let before = ask.0.stream(stream);
    let wish = |found: &StreamStatus| Wish::Stream(found.mode, contract);
    let terms = before.as_ref().and_then(|found| ask.0.terms(&found.volume, &wish(found)));
    if let Some(terms) = terms {
        let asked = Asked::Change(stream, terms);
        quotas.exceeded(&owner, &*ask.0, sessions, &asked).map_or(Ok(()), Err)?;
    }
    let changed = ask.call(calls::StreamChange { stream, contract });
    let changed = quotas.decided(&mut turn, peer, changed).await;
    let changed = changed.map_err(|error| refused(control, &error))?;
    let exceeded = quotas.exceeded(&owner, &*ask.0, sessions, &Asked::Nothing);
    let back = exceeded.zip(before).map(|(problem, before)| {
        let change = calls::StreamChange { stream, contract: before.contract };
        (problem, ask.begin(change))
    });
    // To clear memory, or to bring it in, may take long: nobody else waits for it.
    drop(turn);
    if let Some((problem, back)) = back {
        // What it had before fits again, unless the stream has ended meanwhile.
        let _ = back.end().await;
        return Err(problem);
    }
    if let Some(shared) = sessions.shared(stream) {
        settle(&shared, changed.window).await;
    }
    Ok(())
}

/// Close a stream; a writer is synced first.
#[utoipa::path(delete, path = "/v1/streams/{id}", tag = "streams",
    params(("id" = u64, Path, description = "The number of the stream")),
    responses(
        (status = 200, description = "The stream is closed", body = api::StreamClosed),
        (status = 404, description = "No stream has this number", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn stream_close(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Number(id): Number,
) -> Answered<Json<api::StreamClosed>> {
    control.quotas.owns_stream(&peer, &control.sessions, StreamId(id))?;
    let durable_bytes = control.sessions.close(StreamId(id), Stop::Closed).await?;
    Ok(Json(api::StreamClosed { id, durable_bytes }))
}

/// Show who may hold how much, and holds.
#[utoipa::path(get, path = "/v1/quota", tag = "daemon", responses(
    (status = 200, description = "Everybody who has something or a quota of their own",
        body = api::Quotas),
))]
async fn quota_list(State(control): State<Control>) -> Json<api::Quotas> {
    Json(control.quotas.told(&*control.entry.0, &control.sessions))
}

/// Show the devices that have files under contract, and what disturbed them.
#[utoipa::path(get, path = "/v1/files", tag = "streams", responses(
    (status = 200, description = "All devices in the order of their first use",
        body = api::FileDevices),
))]
async fn file_devices(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
) -> Json<api::FileDevices> {
    Json(control.files.told(&control.quotas.who(&peer)))
}

/// Tell whether a list of streams would fit, and what would. Changes nothing.
#[utoipa::path(post, path = "/v1/plan", tag = "streams", request_body = api::PlanRequest,
    responses(
        (status = 200, description = "What would become of the list", body = api::Plan),
        (status = 413, description = "The list is too much to compare", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
async fn plan(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(asker): Extension<Asker>,
    Body(request): Body<api::PlanRequest>,
) -> Answered<Json<api::Plan>> {
    let planned = control.plans.plan(&peer, &control.by(&peer), request, asker).await;
    Ok(Json(planned?))
}

fn find_stream(control: &Control, peer: &Peer, id: u64) -> Answered<Json<api::Stream>> {
    let status = control.shown(peer);
    let stream = StreamId(id);
    let found = status.streams.into_iter().find(|one| one.stream == stream);
    let found = found.ok_or(node::Error::NoSuchStream { stream })?;
    Ok(Json(convert::stream(found, status.now, &control.sessions, &control.quotas)))
}
