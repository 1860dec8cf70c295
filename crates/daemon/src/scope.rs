//! What a token lets its holder do with volumes and contracts, wherever he asks for it.
//!
//! Invariants: a volume is held to what everybody calls it, whatever it was asked for by, and a
//! refusal tells no name that was not given. All of this comes before what the pool itself permits
//! the token's user, which is asked as for everybody.

use crate::pool::Pool;
use crate::quotas::Peer;
use node::{Service, Who};
use token::{Asked, Grant, Refusal, Verb};
use units::Rate;
use wire::{Code, Problem};

/// What a volume is called by everybody, whatever it was asked for by; or would be, where there is
/// none yet in a directory that is given by its number.
pub fn shown_name(pool: &dyn Pool, name: &str) -> String {
    if let Some(volume) = pool.volume(name) {
        return volume.name;
    }
    let whole = || {
        let (directory, last) = name.starts_with('/').then(|| name.rsplit_once('/'))??;
        let volume = || Some(pool.volume(directory)?.name);
        let other = || Some(pool.directory(&Who::root(), directory)?.name);
        Some(format!("{}/{last}", volume().or_else(other)?))
    };
    whole().unwrap_or_else(|| name.to_owned())
}

/// Whether what has this name was removed while it was open, and goes when nobody has it open any
/// more: to give it such a name is to delete it.
pub fn is_removed(pool: &dyn Pool, name: &str) -> bool {
    let shown = shown_name(pool, name);
    let below = shown.strip_prefix(node::REMOVED_DIRECTORY);
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// Whether a grant lets somebody do this with what is known by this name. A refusal has the name
/// that was given: by its number a volume does not tell its name.
///
/// # Errors
/// It does not.
pub fn permits(grant: &Grant, pool: &dyn Pool, verb: Verb, name: &str) -> Result<(), Refusal> {
    let shown = shown_name(pool, name);
    grant.permits(Asked { verb, volume: Some(&shown) }).map_err(|refusal| match refusal {
        Refusal::Volume(_) => Refusal::Volume(name.to_owned()),
        other => other,
    })
}

/// The same, as a problem.
///
/// # Errors
/// As above.
pub fn permitted(
    grant: &Grant,
    pool: &dyn Pool,
    verb: Verb,
    name: &str,
) -> Result<(), Box<Problem>> {
    permits(grant, pool, verb, name).map_err(|refusal| refused(&refusal))
}

/// Refuses what the token that a peer has shown does not let him do with a volume.
///
/// # Errors
/// Which of its restrictions does not.
pub fn permit(peer: &Peer, pool: &dyn Pool, verb: Verb, name: &str) -> Result<(), Box<Problem>> {
    peer.scope.as_deref().map_or(Ok(()), |grant| permitted(grant, pool, verb, name))
}

/// Whether the token that a peer has shown lets him make a volume for the directory that what has this
/// name lies in.
pub fn permits_directory(peer: &Peer, pool: &dyn Pool, name: &str) -> bool {
    let shown = shown_name(pool, name);
    let directory = shown.rsplit_once('/').map(|(directory, _)| directory);
    directory.is_none_or(|directory| permit(peer, pool, Verb::Create, directory).is_ok())
}

/// What a rename is asked to do.
pub struct Rename<'a> {
    /// What is called something else from then on, with whatever lies under it.
    pub from: &'a str,
    /// What it is called then.
    pub to: &'a str,
    /// Whether it may take the place of what has that name,
    pub replace: bool,
    /// and what that is called then; none: it is deleted.
    pub keep_as: Option<&'a str>,
}

/// The same of a rename: whatever lies under a directory goes with it.
///
/// # Errors
/// As above.
pub fn permit_rename(
    peer: &Peer,
    pool: &dyn Pool,
    Rename { from, to, replace, keep_as }: Rename<'_>,
) -> Result<(), Box<Problem>> {
    let Some(grant) = peer.scope.as_deref() else { return Ok(()) };
    for other in [Some(to), keep_as].into_iter().flatten() {
        permitted(grant, pool, Verb::Manage, other)?;
    }
    if replace && keep_as.is_none() {
        // Asked for also where nothing has that name yet: somebody may give it to something now.
        permitted(grant, pool, Verb::Create, to)?;
    }
    // Who removes a file in steps deletes it, too.
    let kept_away = keep_as.is_some_and(|kept| is_removed(pool, kept));
    for (is_deleted, name) in [(is_removed(pool, to), from), (replace && kept_away, to)] {
        if is_deleted {
            permitted(grant, pool, Verb::Create, name)?;
        }
    }
    if grant.is_for_all() {
        return Ok(());
    }
    let names = pool.names();
    let names = names.iter().map(|(name, _)| &**name);
    // What is there of it may be a directory, also where a volume has the same name.
    for directory in [Some(from), Some(to), keep_as].into_iter().flatten() {
        let under = format!("{}/", shown_name(pool, directory));
        if names.clone().any(|found| found.starts_with(&under) && !grant.names(found)) {
            return Err(refused(&Refusal::Volume(format!("{directory}/..."))));
        }
    }
    let under = format!("{}/", shown_name(pool, from));
    match renamed(names, &under, to).all(|name| grant.names(&name)) {
        true => Ok(()),
        false => Err(refused(&Refusal::Volume(format!("{to}/...")))),
    }
}

/// What the volumes under a directory are called when the directory is called `to`.
fn renamed<'a>(
    names: impl Iterator<Item = &'a str>,
    under: &str,
    to: &str,
) -> impl Iterator<Item = String> {
    names.filter_map(move |name| Some(format!("{to}/{}", name.strip_prefix(under)?)))
}

/// Refuses a contract that is larger than the token that a peer has shown.
///
/// # Errors
/// It is.
pub fn promise(peer: &Peer, rate: Rate) -> Result<(), Box<Problem>> {
    let promised = peer.scope.as_deref().map_or(Ok(()), |grant| grant.promises(rate));
    promised.map_err(|refusal| refused(&refusal))
}

/// The same of a contract for a volume.
///
/// # Errors
/// As above; and for answers in time, which have no rate to hold against the token's.
pub fn promise_service(peer: &Peer, service: &Service) -> Result<(), Box<Problem>> {
    match (service, peer.scope.as_deref().and_then(Grant::rate_max)) {
        (Service::BestEffort(_), _) | (_, None) => Ok(()),
        (Service::Rate { rate, .. }, _) => promise(peer, *rate),
        (Service::Latency { .. }, Some(most)) => {
            let what = format!(
                "the token is for contracts of at most {most}, and one of answers in time has no \
                 such number"
            );
            Err(Box::new(Problem::new(Code::TokenScope, what, NEXT)))
        }
    }
}

/// What is to be done about it.
pub const NEXT: &str =
    "`slackline token show` says what a token lets you do; ask who made it for another";

/// What is said to who asks for more than his token has.
pub fn refused(refusal: &Refusal) -> Box<Problem> {
    let code = match refusal {
        Refusal::Expired { .. } => Code::NoToken,
        _ => Code::TokenScope,
    };
    Box::new(Problem::new(code, refusal.to_string(), NEXT))
}
