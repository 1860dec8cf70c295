//! Volumes as files have them: renames, times, directories.

use super::extract::{Body, Failure, Staged, Text};
use super::volumes::grown;
use super::{Answered, Control};
use crate::quotas::Peer;
use crate::{convert, scope, view};
use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use node::{Act, Error, VolumeId, Writer, calls};
use std::num::NonZeroU64;
use wire::Problem;
use wire::control as api;

// What programs are told is what the node keeps to.
const _: () = assert!(api::RENAMED_MAX == node::limits::RENAMED_MAX.get());

/// As many entries as one answer has.
const ENTRIES_MAX: usize = 1000;

/// Give a volume another name, also while it is open, and those that lie under it as under a
/// directory.
#[utoipa::path(post, path = "/v1/volumes/{name}/rename", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume, or of a directory"),
        ("staged" = Option<bool>, Query, description = "Answer when everybody sees it; durable \
            with the next sync")),
    request_body = api::VolumeRename,
    responses(
        (status = 204, description = "It has that name, durably"),
        (status = 403, description = "Not permitted", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "A volume has that name, or is in use, another directory is not \
            empty, or it is another volume", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_rename(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    staged: Staged,
    Body(request): Body<api::VolumeRename>,
) -> Answered<StatusCode> {
    let api::VolumeRename { to, replace, keep_as, is, only, keep_directory } = request;
    let [is, only] = [is, only].map(|number| number.map(VolumeId));
    let rename = scope::Rename { from: &name, to: &to, replace, keep_as: keep_as.as_deref() };
    scope::permit_rename(&peer, &*control.entry.0, rename)?;
    // What would be removed may be under somebody's contract. Who may not remove it hears so of the pool.
    let is_removed = |name: &str| scope::is_removed(&*control.entry.0, name);
    let replaced = replace && keep_as.as_deref().is_none_or(is_removed);
    for removed in [(replaced, &to), (is_removed(&to), &name)] {
        if let (true, name) = removed {
            let who = control.quotas.who(&peer);
            let removed = view::volume(control.entry.0.volume(name), &who, name, &[Act::Own]);
            control.quotas.owns_service(&peer, removed.ok().as_ref())?;
        }
    }
    let keep_directory =
        keep_directory && scope::permits_directory(&peer, &*control.entry.0, &name);
    let rename = calls::VolumeRename { name, to, replace, keep_as, is, only, keep_directory };
    grown(&control, &peer, staged.op(rename)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Say when a volume was last used.
#[utoipa::path(put, path = "/v1/volumes/{name}/times", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"),
        ("staged" = Option<bool>, Query, description = "Answer when everybody sees it; durable \
            with the next sync")),
    request_body = api::VolumeTimes,
    responses(
        (status = 204, description = "It is so, durably"),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_times(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    staged: Staged,
    Body(request): Body<api::VolumeTimes>,
) -> Answered<StatusCode> {
    let api::VolumeTimes { accessed_ns: accessed, modified_ns: modified } = request;
    control.by(&peer).call(staged.op(calls::VolumeTimes { name, accessed, modified })).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Say for how long a ring keeps what is recorded, from now on.
#[utoipa::path(put, path = "/v1/volumes/{name}/keep", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume"),
        ("staged" = Option<bool>, Query, description = "Answer when everybody sees it; durable \
            with the next sync")),
    request_body = api::VolumeKeep,
    responses(
        (status = 204, description = "It is so, durably"),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = 400, description = "It is no ring, or no such time is possible", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn volume_keep(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    staged: Staged,
    Body(request): Body<api::VolumeKeep>,
) -> Answered<StatusCode> {
    let keep = request.keep_ns;
    control.by(&peer).call(staged.op(calls::RingKeep { name, keep })).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show what lies directly under a directory. Changes nothing.
#[utoipa::path(post, path = "/v1/entries", tag = "volumes", request_body = api::EntriesAsk,
    responses(
        (status = 200, description = "The first of it", body = api::Entries),
        (status = "default", description = "Any bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn entries(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Body(request): Body<api::EntriesAsk>,
) -> Json<api::Entries> {
    let api::EntriesAsk { directory, after, most } = request;
    let who = control.quotas.who(&peer);
    let most = most.map_or(ENTRIES_MAX, |most| most.get().into()).min(ENTRIES_MAX);
    let found = control.entry.0.entries(&who, &directory, &after, most);
    let told = |entry: node::Entry| api::Entry {
        name: entry.name,
        file: entry.volume.map(|volume| convert::file_facts(volume, &control.quotas)),
        directory: entry.directory.map(convert::directory_facts),
    };
    Json(api::Entries { entries: found.into_iter().map(told).collect() })
}

/// A version of a volume for one of its writers. Each start of the daemon counts changes anew.
fn version(control: &Control, changes: u64) -> String {
    format!("{:x}-{changes:x}", control.run)
}

/// Which changes a writer knew of; none where he was told that by another start of the daemon.
pub(super) fn known_version(
    control: &Control,
    known: &api::UnlessChanged,
) -> Option<(Writer, u64)> {
    let (_, changes) = known.version.split_once('-')?;
    let changes = u64::from_str_radix(changes, 16).ok()?;
    (version(control, changes) == known.version).then_some((Writer(known.writer.get()), changes))
}

/// Show a volume as a file has it: quick to tell. Changes nothing.
#[utoipa::path(post, path = "/v1/file", tag = "volumes", request_body = api::FileAsk,
    responses(
        (status = 200, description = "The volume, or that it is a directory", body = api::FileFound),
        (status = 404, description = "Nothing has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn file(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Body(request): Body<api::FileAsk>,
) -> Answered<Json<api::FileFound>> {
    let (who, name) = (control.quotas.who(&peer), request.name);
    let acts = [Act::Read, Act::Own, Act::Write];
    match view::volume(control.entry.0.volume(&name), &who, &name, &acts) {
        Ok(volume) => {
            let version_for =
                |writer: NonZeroU64| version(&control, volume.changes.not_by(Writer(writer.get())));
            let version = request.writer.map(version_for);
            let facts = convert::file_facts(volume, &control.quotas);
            Ok(Json(api::FileFound::Volume(api::FileFacts { version, ..facts })))
        }
        Err(error @ Error::NoSuchVolume { .. }) => {
            let directory = control.entry.0.directory(&who, &name);
            let found = directory
                .map(|found| Json(api::FileFound::Directory(convert::directory_facts(found))));
            found.ok_or_else(|| Failure::from(error))
        }
        Err(error) => Err(Failure::from(error)),
    }
}

/// Make durable everything that was answered before, whoever asked for it.
#[utoipa::path(post, path = "/v1/sync", tag = "daemon",
    responses(
        (status = 200, description = "It is durable", body = api::Synced),
        (status = "default", description = "Any bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn sync(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
) -> Answered<Json<api::Synced>> {
    control.by(&peer).call(calls::Sync {}).await?;
    Ok(Json(api::Synced { run: control.run() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_the_node_mean_the_same_names() {
        assert_eq!(api::REMOVED_DIRECTORY, node::REMOVED_DIRECTORY);
        assert_eq!(api::REMOVED_NAME_MAX, store::REMOVED_NAME_MAX);
        for name in ["a", "some/longer/name"] {
            let counted = store::RecordContent::rename(name).get();
            assert_eq!(api::renamed_size(name.len()), counted);
        }
    }
}
