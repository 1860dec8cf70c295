//! What one caller is shown of the pool: his own, what he may read, and figures of the
//! whole. Nobody reads the names of what others keep to themselves, in whatever list,
//! account or message they come.

use crate::files::FIRST_STREAM;
use crate::sessions::Sessions;
use node::permission::{check, knows, sees};
use node::{Act, Error, Outcome, Status, StreamStatus, VolumeStatus, Who};
use std::collections::HashSet;
use token::Grant;

/// The part of a status that `who` is shown: volumes that he may read or owns, the streams
/// on them, and his own streams. A file under contract is named to whoever opened it. Of all that
/// a token shows what is on volumes that it is for.
pub fn shown(mut status: Status, who: &Who, scope: Option<&Grant>, sessions: &Sessions) -> Status {
    let scope = scope.filter(|scope| !scope.is_for_all());
    if who.is_superuser && scope.is_none() {
        return status;
    }
    let is_for = |name: &str| scope.is_none_or(|scope| scope.names(name));
    status
        .volumes
        .retain(|volume| is_for(&volume.name) && (who.is_superuser || sees(who, volume.ownership)));
    let names: HashSet<&str> = status.volumes.iter().map(|volume| &*volume.name).collect();
    let is_own = |stream: &StreamStatus| {
        scope.is_none() && sessions.owner(stream.stream).is_some_and(|owner| owner.uid == who.uid)
    };
    let is_shown = |stream: &StreamStatus| {
        is_own(stream) || (stream.stream.0 < FIRST_STREAM && names.contains(&*stream.volume))
    };
    status.streams.retain(is_shown);
    for disk in &mut status.disks {
        disk.moves.stuck.retain(|stuck| names.contains(&*stuck.volume));
        if let Some(measured) = &mut disk.measured
            && let Outcome::Refused(error) = &mut measured.outcome
            && let Error::ProfileRefused { refusal, .. } = &**error
        {
            **error = Error::Refused((**refusal).clone());
        }
        if let Some(error) = &mut disk.gap_refused
            && let Error::GapRefused { refusal, .. } = &**error
        {
            **error = Error::Refused((**refusal).clone());
        }
    }
    if let Some(error) = &mut status.delivery_refused
        && let Error::DeliveryRefused { refusal, .. } = &**error
    {
        **error = Error::Refused((**refusal).clone());
    }
    status
}

/// The volume of this name, where there is one and `who` may do one of these things with it.
///
/// # Errors
/// As the pool would say when he tried the first.
pub fn volume(
    found: Option<VolumeStatus>,
    who: &Who,
    name: &str,
    acts: &[Act],
) -> Result<VolumeStatus, Error> {
    let found = found.ok_or_else(|| Error::NoSuchVolume { name: name.into() })?;
    let checked: Vec<_> = acts.iter().map(|&act| check(who, name, found.ownership, act)).collect();
    match checked.iter().any(Result::is_ok) {
        true => Ok(found),
        false => Err(checked.into_iter().find_map(Result::err).expect("at least one is asked for")),
    }
}

/// The volume of this name as it is after something was done with it.
pub fn after(found: Option<VolumeStatus>, who: &Who, name: &str) -> Result<VolumeStatus, Error> {
    let found = found.filter(|volume| knows(who, volume.ownership));
    found.ok_or_else(|| Error::NoSuchVolume { name: name.into() })
}
