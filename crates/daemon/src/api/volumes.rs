//! Volumes: made, shown, resized, given away, served, deleted.

use super::extract::{Body, Failure, Removal, Staged, Text, VolumeAndHandle};
use super::{Answered, Control};
use crate::quotas::{Asked, Peer};
use crate::sessions::Stop;
use crate::{convert, problem, scope, view};
use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use node::{Act, HandleId, Op, Reply, VolumeId, VolumeStatus, Wish, calls};
use token::Verb;
use units::Bytes;
use wire::control as api;
use wire::{Code, Problem};

/// List the volumes that the asker may read or owns.
#[utoipa::path(get, path = "/v1/volumes", tag = "volumes", responses(
    (status = 200, description = "All of them", body = api::Volumes),
))]
pub(super) async fn volume_list(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
) -> Json<api::Volumes> {
    let volumes = convert::volumes(control.shown(&peer).volumes, &control.quotas);
    Json(api::Volumes { volumes })
}

/// Make a volume and reserve its space. It is the asker's, and closed to others, where
/// nothing else is said.
#[utoipa::path(post, path = "/v1/volumes", tag = "volumes", request_body = api::VolumeCreate,
    params(("staged" = Option<bool>, Query, description = "Answer when everybody sees it; durable with \
            the next sync")),
    responses(
        (status = 201, description = "The volume is there, durably", body = api::Volume),
        (status = 403, description = "Only root gives a volume to another user", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "A volume has this name, or the quota is used up",
            body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The pool has not so much free space", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_create(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    staged: Staged,
    Body(request): Body<api::VolumeCreate>,
) -> Answered<Response> {
    scope::permit(&peer, &*control.entry.0, Verb::Create, &request.name)?;
    let mut placement = convert::placement(&request.placement);
    if placement.run.is_zero() {
        placement.run = control.entry.0.run_for(&placement, request.size_bytes);
    }
    let mut access = control.quotas.access(&request.access)?;
    let kind = convert::kind_bits(request.kind);
    access.mode = (kind != 0).then(|| access.mode.unwrap_or(0o600) | kind).or(access.mode);
    let (name, size) = (request.name.clone(), request.size_bytes);
    let keep = request.keep_ns;
    let op = match request.ring {
        true => {
            let size = ring_size(&control, size, &placement)?;
            Op::RingCreate { name, size, placement, access, keep }
        }
        false if keep.is_some() => return Err(node::Error::Store(store::StoreError::NoRing).into()),
        false => Op::VolumeCreate { name, size, placement, access },
    };
    let made = control.quotas.begin(&peer, &control.by(&peer), staged.op(op))?;
    let Reply::Made { volume } = made.end().await? else { unreachable!("a volume is made") };
    // By its number: somebody may have given its name to another one.
    let volume = control.after(&peer, &volume.as_name())?;
    Ok((StatusCode::CREATED, Json(volume)).into_response())
}

/// The size that a ring has which is asked for with this one: so much is held to the quotas.
fn ring_size(control: &Control, size: Bytes, placement: &node::Placement) -> Answered<Bytes> {
    let disks = match placement.disks.len() {
        0 => control.entry.0.description().devices.len(),
        some => some,
    };
    let run = placement.run.max(Bytes::MIB);
    Ok(node::ring_size(size, disks, run).map_err(node::Error::from)?)
}

/// To which size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resize {
    /// This one, if nothing recorded is lost.
    To,
    /// This one, whatever is recorded.
    Cut,
    /// This one at the least, and so much more where there is room for that.
    AtLeast(Bytes),
    /// This one, or more where others have asked for it, by one who has made it so large.
    GiveBack(Bytes),
}

/// Gives a volume another size, held to the quotas of space and to those of whose contracts it
/// has.
pub(crate) async fn resized(
    control: &Control,
    peer: &Peer,
    (name, size, how): (&str, Bytes, Resize),
    staged: Staged,
) -> Answered<()> {
    match how {
        Resize::AtLeast(ahead) if !ahead.is_zero() => {
            let larger = size.saturating_add(ahead);
            let ahead = resized_once(control, peer, (name, size, how), (larger, staged)).await;
            match ahead {
                Ok(()) => Ok(()),
                Err(_) => {
                    let how = Resize::AtLeast(Bytes::ZERO);
                    resized_once(control, peer, (name, size, how), (size, staged)).await
                }
            }
        }
        _ => resized_once(control, peer, (name, size, how), (size, staged)).await,
    }
}

/// Tries it with this size.
async fn resized_once(
    control: &Control,
    peer: &Peer,
    (name, asked, how): (&str, Bytes, Resize),
    (mut size, staged): (Bytes, Staged),
) -> Answered<()> {
    let pool = &*control.entry.0;
    // Nobody opens anything while what everybody has is counted.
    let turn = control.quotas.turn(peer).await;
    // By the name that a status shows, whatever it was asked for by.
    let found = pool.volume(name);
    if let Some(VolumeStatus { id, size: has, length, .. }) = found {
        let is_there = |id: VolumeId| pool.volume(&id.as_name()).is_some();
        match how {
            Resize::AtLeast(_) if has >= asked => {
                control.ahead.asked(id, (has, asked), is_there);
                return Ok(());
            }
            Resize::AtLeast(_) if size > asked => {
                control.ahead.grows(id, (has, asked), is_there);
            }
            Resize::AtLeast(_) => control.ahead.asked(id, (asked, asked), is_there),
            Resize::GiveBack(from) => {
                let least = asked.max(length.round_up(Bytes::MIB));
                let Some(smaller) = control.ahead.given_back(id, has, (least, from)) else {
                    return Ok(());
                };
                control.ahead.forget(id);
                size = smaller;
            }
            Resize::To | Resize::Cut => control.ahead.forget(id),
        }
    }
    let cuts = how == Resize::Cut;
    // Another volume may get its name before this one is changed.
    let same = pool.known(name.to_owned());
    let name = &*found.map_or_else(|| name.to_owned(), |volume| volume.name);
    let rooms = control.quotas.rooms(name, pool, &control.sessions);
    let op = staged.op(rooms.resize(&same, size, cuts));
    let coming = control.quotas.begin(peer, &control.by(peer), op)?;
    drop(turn);
    if let Err(error) = coming.end().await {
        let beyond = control.quotas.beyond(rooms, &error, pool);
        return Err(beyond.map_or_else(|| error.into(), Into::into));
    }
    Ok(())
}

/// Does what is held to a quota of space.
pub(crate) async fn grown(control: &Control, peer: &Peer, op: impl Into<Op>) -> Answered<()> {
    let coming = control.quotas.begin(peer, &control.by(peer), op)?;
    coming.end().await?;
    Ok(())
}

/// Show one volume.
#[utoipa::path(get, path = "/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume")),
    responses(
        (status = 200, description = "The volume", body = api::Volume),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_show(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
) -> Answered<Json<api::Volume>> {
    let (found, who) = (control.entry.0.volume(&name), control.quotas.who(&peer));
    let found = view::volume(found, &who, &name, &[Act::Read, Act::Own])?;
    Ok(Json(convert::volume(found, &control.quotas)))
}

/// Grow or shrink a volume, also while it is in use. To less than what is recorded only
/// where the request says that it may be cut, and nobody uses it; else to a size behind which
/// nobody is at work, and which leaves each writer room for 10 s of its contract. What open streams
/// were promised holds on the new size, or the request is refused. Or cut what is recorded alone
/// (`keep_space`), in one step: nobody else gets the space; where it is wished, only if nobody else has
/// changed the volume since a version of it (`unless_changed`), in one step with the look.
#[utoipa::path(patch, path = "/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"),
        ("staged" = Option<bool>, Query, description = "Answer when everybody sees it; durable with \
            the next sync")),
    request_body = api::VolumeResize,
    responses(
        (status = 200, description = "The volume has its new size, durably", body = api::Volume),
        (status = 403, description = "Not permitted", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "Recorded data would be lost, a quota is used up, or that of \
            somebody who has a contract on the volume",
            body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The pool has not so much free space", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_resize(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    staged: Staged,
    Body(request): Body<api::VolumeResize>,
) -> Answered<Json<api::Volume>> {
    let (size, may_cut) = (request.size_bytes, request.may_cut);
    let how = match (request.given_back_from_bytes, request.grow_only, may_cut) {
        (Some(from), ..) => Resize::GiveBack(from),
        (None, true, _) => Resize::AtLeast(request.ahead_bytes),
        (None, false, true) => Resize::Cut,
        (None, false, false) => Resize::To,
    };
    control.permit(&peer, &name, Act::Write)?;
    // The same one to the end, whatever has its name by then.
    let name = control.entry.0.known(name);
    if request.keep_space {
        let known = request.unless_changed.map(|it| super::naming::known_version(&control, &it));
        // Of another start of the daemon: others may have changed it since.
        let is_old = known == Some(None);
        if !is_old {
            let (name, unless_changed) = (name.clone(), known.flatten());
            let cut = calls::VolumeTruncate { name, length: size, unless_changed };
            control.by(&peer).call(staged.op(cut)).await?;
        }
        return Ok(Json(control.after(&peer, &name)?));
    }
    resized(&control, &peer, (&name, size, how), staged).await?;
    if !request.length_bytes.is_zero() {
        let extend = calls::VolumeExtend { name: name.clone(), length: request.length_bytes };
        control.by(&peer).call(staged.op(extend)).await?;
    }
    Ok(Json(control.after(&peer, &name)?))
}

/// Say whose a volume is and who may do what with it, from now on. What is open stays open.
#[utoipa::path(put, path = "/v1/volumes/{name}/access", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"),
        ("staged" = Option<bool>, Query, description = "Answer when everybody sees it; durable with \
            the next sync")),
    request_body = api::Access,
    responses(
        (status = 200, description = "It is so, durably", body = api::Volume),
        (status = 403, description = "Not permitted", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_access(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    staged: Staged,
    Body(request): Body<api::Access>,
) -> Answered<Json<api::Volume>> {
    let access = control.quotas.access(&request)?;
    control.permit(&peer, &name, Act::Own)?;
    let known = control.entry.0.known(name.clone());
    let change = Op::VolumeAccess { name, access };
    grown(&control, &peer, staged.op(change)).await?;
    Ok(Json(control.after(&peer, &known)?))
}

/// Serve what no stream of a volume carries in this way from now on, also what waits.
/// A refusal changes nothing. Kept with the volume, durably, and in force again when the pool
/// is served again, where it fits; setting it to best effort of normal priority removes it.
#[utoipa::path(put, path = "/v1/volumes/{name}/service", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume")),
    request_body = api::Service,
    responses(
        (status = 200, description = "The volume is served in this way", body = api::Volume),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "Admission refused, with the figures", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_service(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    Body(request): Body<api::Service>,
) -> Answered<Json<api::Volume>> {
    let known = control.entry.0.known(name.clone());
    serve_volume(&control, &peer, name, request).await?;
    Ok(Json(control.after(&peer, &known)?))
}

/// The program may go at any moment: a quota is held to all the same, since this is done to its end.
async fn serve_volume(
    control: &Control,
    peer: &Peer,
    name: String,
    request: api::Service,
) -> Result<(), Box<Problem>> {
    let Control { sessions, quotas, .. } = control;
    let ask = control.by(peer);
    let turn = quotas.turn(peer).await;
    control.permit(peer, &name, Act::Own)?;
    let before = ask.0.volume(&name);
    quotas.owns_service(peer, before.as_ref())?;
    let service = convert::service(&request);
    scope::promise_service(peer, &service)?;
    quotas.over_priority(peer, &request)?;
    if let Some(terms) = ask.0.terms(&name, &Wish::Service(service)) {
        let shown = before.as_ref().map_or(&name, |volume| &volume.name);
        let asked = Asked::Service(shown.clone(), terms);
        quotas.exceeded(peer, &*ask.0, sessions, &asked).map_or(Ok(()), Err)?;
    }
    quotas.note_groups(peer);
    let served = ask.begin(calls::VolumeService { name: name.clone(), service });
    // The pool shows at once what it changed, and nothing where it refused.
    let now = ask.0.volume(&name);
    let what = |volume: &Option<VolumeStatus>| volume.as_ref().map(|v| (v.service, v.given_by));
    let is_changed = what(&now) != what(&before);
    // The volume may have changed since its terms were looked at.
    let exceeded = quotas.exceeded(peer, &*ask.0, sessions, &Asked::Nothing);
    let back = (is_changed && exceeded.is_some()).then(|| {
        let before_user = before.as_ref().and_then(|volume| volume.given_by).unwrap_or(peer.uid);
        let service = before.map(|volume| volume.service).unwrap_or_default();
        // Whose it was it is again.
        let whose = node::Who { uid: before_user, ..node::Who::root() };
        control.entry.by(whose).begin(calls::VolumeService { name: name.clone(), service })
    });
    // A commit may take long: nobody else waits for it.
    drop(turn);
    let refused = |error| {
        let streams_are_open = !control.entry.0.status().streams.is_empty();
        Box::new(problem::of_service(&error, &request, streams_are_open))
    };
    served.end().await.map_err(refused)?;
    if let Some(back) = back {
        back.end().await.map_err(|error| Box::new(problem::of(&error)))?;
    }
    exceeded.map_or(Ok(()), Err)
}

/// Tell which block suits a stream of a rate on a volume, by the profiles of its disks.
/// Changes nothing.
#[utoipa::path(post, path = "/v1/volumes/{name}/block", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume")),
    request_body = api::BlockAsk,
    responses(
        (status = 200, description = "The block", body = api::BlockChosen),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_block(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    Body(request): Body<api::BlockAsk>,
) -> Answered<Json<api::BlockChosen>> {
    let (mode, rate) = (convert::mode(request.mode), request.rate_bytes_per_second);
    let block = control.by(&peer).call(calls::Block { volume: name, mode, rate }).await?;
    Ok(Json(api::BlockChosen { block_bytes: block }))
}

/// Remove a volume and its data.
#[utoipa::path(delete, path = "/v1/volumes/{name}", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"),
        ("staged" = Option<bool>, Query, description = "Answer when everybody sees it; durable with \
            the next sync"),
        ("only" = Option<u64>, Query, description = "The number of the volume that is meant: \
            another one of this name stays"),
        ("keep_directory" = Option<bool>, Query, description = "The directory that it leaves stays, \
            where nothing else lies under that, if there is room for a volume that stands for it")),
    responses(
        (status = 204, description = "The volume is gone, durably"),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "Streams are open on it, something lies under it, or it is \
            another volume", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_delete(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    Removal { staged, only, keep_directory }: Removal,
) -> Answered<StatusCode> {
    control.permit(&peer, &name, Act::Own)?;
    let found = control.entry.0.volume(&name);
    let Some(found) = found else { return Err(node::Error::NoSuchVolume { name }.into()) };
    control.quotas.owns_service(&peer, Some(&found))?;
    // Another one may get the name since.
    let only = Some(only.map_or(found.id, VolumeId));
    let keep_directory =
        keep_directory && scope::permits_directory(&peer, &*control.entry.0, &name);
    let delete = calls::VolumeDelete { name, only, keep_directory };
    grown(&control, &peer, staged.op(delete)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End the contract of a handle on a volume, and its connection: by the volume's owner, the
/// handle's user, or an administrator. What it has asked for is answered as best effort.
#[utoipa::path(delete, path = "/v1/volumes/{name}/handles/{handle}", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"),
        ("handle" = u64, Path, description = "The number of the handle")),
    responses(
        (status = 200, description = "It has no contract any more", body = api::Volume),
        (status = 403, description = "Not permitted", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "No volume has this name, or no such handle", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn handle_end(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    VolumeAndHandle(name, handle): VolumeAndHandle,
) -> Answered<Json<api::Volume>> {
    let (handle, same) = (HandleId(handle), control.entry.0.known(name.clone()));
    let (found, who) = (control.entry.0.volume(&name), control.quotas.who(&peer));
    let found = view::volume(found, &who, &name, &[Act::Read, Act::Own])?;
    let known = found.handles.iter().find(|one| one.handle == handle);
    let known = known.ok_or_else(|| Failure::from(no_such_handle(&name, handle)))?;
    if known.uid != peer.uid {
        control.permit(&peer, &name, Act::Own)?;
    }
    control.sessions.end_handle(handle, Stop::HandleEnded);
    // Its connection closes it, too, when nothing of it is under way: that finds it closed.
    control.entry.own().call(calls::HandleClose { handle }).await?;
    control.quotas.forget_handle(handle);
    Ok(Json(control.after(&peer, &same)?))
}

fn no_such_handle(volume: &str, handle: HandleId) -> Problem {
    let what = format!("volume \"{volume}\" has no handle {} with a contract", handle.0);
    Problem::new(Code::NotFound, what, "`slackline volume show` lists those that there are")
}
