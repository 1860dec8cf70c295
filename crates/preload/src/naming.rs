//! Volumes lose their names and get others: `unlink`, `rename` and their kin.
//!
//! Invariants: what is told as done is durable; nothing that this process has open loses its name or its
//! place to another, since it is asked for by its name later; of what others change meanwhile nothing is
//! removed that was not looked at.

use crate::names::{self, Place, is_directory};
use crate::rules::rules;
use crate::{guard, real, refusals, say, set_errno, table};
use client::control::{FileFacts, FileKind};
use client::{Client, Durable, Error, Found, Replace};
use libc::{c_char, c_int, c_uint};

/// So often something is looked at again that others change meanwhile.
const TRIES: u32 = 20;

/// What a call on names ends with, where it is no error of the daemon's.
type Ended = Result<Result<(), c_int>, Error>;

/// Runs a call on a name; says why it fails where `errno` does not tell.
fn named(name: &str, body: impl FnOnce(&Client) -> Ended) -> c_int {
    guard(-1, || match body(&rules().client()) {
        Ok(Ok(())) => Ok(0),
        Ok(Err(errno)) => {
            set_errno(errno);
            Ok(-1)
        }
        Err(error) => {
            if !matches!(
                error.errno(),
                libc::ENOENT | libc::EEXIST | libc::ENOTEMPTY | libc::ENOTDIR
            ) {
                say(&format!("slackline: {name}: {error}\n  next: {}\n", error.next_step()));
            }
            Err(error)
        }
    })
}

/// Does it again, where others have changed what it looked at.
fn again(mut what: impl FnMut() -> Ended) -> Ended {
    for _ in 1..TRIES {
        match what() {
            Err(error) if matches!(error.errno(), libc::ESTALE | libc::EEXIST) => {}
            ended => return ended,
        }
    }
    what()
}

/// The volume, where something is no directory.
fn file(found: Found) -> Option<FileFacts> {
    match found {
        Found::Volume(facts) if facts.kind != FileKind::Directory => Some(facts),
        _ => None,
    }
}

fn number(found: &Found) -> Option<u64> {
    match found {
        Found::Volume(facts) => Some(facts.number),
        Found::Directory(_) => None,
    }
}

/// Whether this process has it open, or something below it; says so.
fn is_open(name: &str) -> bool {
    let is_open = table::has(|open| {
        open.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if is_open {
        say(&format!(
            "slackline: {name}: this program has it open, and its name is not changed meanwhile\n  \
             next: close it first\n"
        ));
    }
    is_open
}

fn unlinked(place: Place<'_>) -> c_int {
    if let Place::Top = place {
        set_errno(libc::EISDIR);
        return -1;
    }
    let name = place.name();
    named(name, |client| {
        again(|| {
            let Some(facts) = file(names::found(client, place)?) else {
                return Ok(Err(libc::EISDIR));
            };
            if is_open(name) {
                return Ok(Err(libc::EBUSY));
            }
            client.remove_volume((name, Some(facts.number)), Durable::Now).map(Ok)
        })
    })
}

macro_rules! unlinks {
    ($($unlink:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $unlink(path: *const c_char) -> c_int {
            // SAFETY: the call asks for a string.
            match unsafe { names::place(path) } {
                Some(place) => unlinked(place),
                // SAFETY: the caller's argument, passed on.
                None => unsafe { real::$unlink(path) },
            }
        }
    )*};
}

unlinks! { unlink remove }

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(dir: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: unlinkat(2) asks for a string.
    match unsafe { names::place(path) } {
        Some(place) if flags & libc::AT_REMOVEDIR != 0 => refusals::remove_directory(place),
        Some(place) => unlinked(place),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::unlinkat(dir, path, flags) },
    }
}

fn renamed(client: &Client, from: Place<'_>, to: Place<'_>, may_replace: bool) -> Ended {
    let source = names::found(client, from)?;
    let target = match names::found(client, to) {
        Ok(found) => Some(found),
        Err(error) if error.errno() == libc::ENOENT => match to {
            Place::Directory(_) if !is_directory(&source) => return Ok(Err(libc::ENOTDIR)),
            _ => None,
        },
        Err(error) => return Err(error),
    };
    let (from, to) = (from.name(), to.name());
    let which = (from, number(&source));
    if from == to && may_replace {
        return Ok(Ok(()));
    }
    let replace = match &target {
        None => Replace::Nothing,
        Some(_) if !may_replace => return Ok(Err(libc::EEXIST)),
        Some(target) => match (is_directory(&source), is_directory(target), number(target)) {
            (true, false, _) => return Ok(Err(libc::ENOTDIR)),
            (false, true, _) => return Ok(Err(libc::EISDIR)),
            // A directory that no volume stands for has something in it.
            (_, _, None) => return Ok(Err(libc::ENOTEMPTY)),
            (_, _, Some(number)) => Replace::Remove(number),
        },
    };
    if is_open(from) || is_open(to) {
        return Ok(Err(libc::EBUSY));
    }
    client.volume_rename(which, to, replace, Durable::Now).map(Ok)
}

/// Renames where at least one of the two is ours; none where neither is.
///
/// # Safety
/// Both are strings, or null.
unsafe fn rename_ours(
    (dir, from): (c_int, *const c_char),
    to: *const c_char,
    flags: c_uint,
) -> Option<c_int> {
    // SAFETY: as the caller promises.
    let places = unsafe { (names::place(from), names::place(to)) };
    let fail = |errno: c_int| {
        set_errno(errno);
        Some(-1)
    };
    match places {
        (None, None) => None,
        (Some(Place::Top), _) | (_, Some(Place::Top)) => fail(libc::EBUSY),
        (Some(from), Some(to)) => {
            if flags & !libc::RENAME_NOREPLACE != 0 {
                return fail(libc::EINVAL);
            }
            let may_replace = flags & libc::RENAME_NOREPLACE == 0;
            Some(named(from.name(), |client| again(|| renamed(client, from, to, may_replace))))
        }
        // Whoever moves something across the border copies it.
        (Some(from), None) => {
            Some(named(from.name(), |client| names::found(client, from).map(|_| Err(libc::EXDEV))))
        }
        (None, Some(_)) => {
            // SAFETY: zeros are a stat.
            let mut is: libc::stat = unsafe { std::mem::zeroed() };
            // SAFETY: a string, as the caller promises, and a place for the answer.
            let found = unsafe { real::fstatat(dir, from, &raw mut is, libc::AT_SYMLINK_NOFOLLOW) };
            if found == 0 { fail(libc::EXDEV) } else { Some(-1) }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: rename(2) asks for two strings.
    match unsafe { rename_ours((libc::AT_FDCWD, from), to, 0) } {
        Some(ended) => ended,
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::rename(from, to) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(
    dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
) -> c_int {
    // SAFETY: renameat(2) asks for two strings.
    match unsafe { rename_ours((dir, from), to, 0) } {
        Some(ended) => ended,
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::renameat(dir, from, to_dir, to) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: renameat2(2) asks for two strings.
    match unsafe { rename_ours((dir, from), to, flags) } {
        Some(ended) => ended,
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::renameat2(dir, from, to_dir, to, flags) },
    }
}
