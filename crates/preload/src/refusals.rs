//! What volumes do not have here, though files do: it is refused, and standard error says once of each
//! kind where it is to be had, since `errno` cannot.
//!
//! What is asked for and is so already is done: a program that gives a file its own owner goes on.

use crate::names::{self, Place};
use crate::rules::rules;
use crate::status::{self, MODE};
use crate::{guard, real, say, set_errno, table};
use libc::{DIR, c_char, c_int, c_void, dev_t, gid_t, mode_t, uid_t};
use std::sync::atomic::{AtomicU32, Ordering};

/// What is refused.
#[derive(Clone, Copy)]
pub enum Kind {
    Directory,
    Link,
    Special,
    Rights,
    Owner,
    Longer,
}

impl Kind {
    const fn what(self) -> &'static str {
        match self {
            Self::Directory => {
                "the preload library neither lists, makes, enters nor removes directories (names of volumes may \
                 have slashes without)"
            }
            Self::Link => "the preload library makes no links",
            Self::Special => "the preload library makes no pipes, sockets and devices",
            Self::Rights => "the preload library does not change who may do what",
            Self::Owner => "the preload library gives volumes to nobody else",
            Self::Longer => {
                "the preload library makes a volume longer only by bytes that are written"
            }
        }
    }

    const fn errno(self) -> c_int {
        match self {
            Self::Directory => libc::ENOTSUP,
            Self::Link | Self::Special | Self::Rights | Self::Owner => libc::EPERM,
            Self::Longer => libc::EINVAL,
        }
    }
}

/// Which kinds this process has told of.
static TOLD: AtomicU32 = AtomicU32::new(0);

/// Says, the first time, who can do what is asked for of this name (empty: of the prefix); fails always.
pub fn refuse(kind: Kind, name: &str) -> c_int {
    let bit = 1 << kind as u32;
    if TOLD.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        let (prefix, what) = (rules().prefix(), kind.what());
        let slash = if name.is_empty() { "" } else { "/" };
        say(&format!(
            "slackline: {prefix}{slash}{name}: {what}: only `slackline mount DIR` can do this\n  \
             next: run `slackline mount DIR`, and give the program DIR{slash}{name}\n"
        ));
    }
    set_errno(kind.errno());
    -1
}

fn fail(errno: c_int) -> c_int {
    set_errno(errno);
    -1
}

/// Whether there is something under a name, and whether it is a directory.
fn is_directory(place: Place<'_>) -> Result<bool, client::Error> {
    match place {
        Place::Top => Ok(true),
        _ => Ok(names::is_directory(&names::found(&rules().client(), place)?)),
    }
}

/// Opens, lists or enters a directory: not here.
pub fn directory(place: Place<'_>) -> c_int {
    guard(-1, || {
        let is_directory = is_directory(place)?;
        Ok(if is_directory { refuse(Kind::Directory, place.name()) } else { fail(libc::ENOTDIR) })
    })
}

/// Writes to what is a directory, or is called one by a slash.
pub fn is_no_file(place: Place<'_>) -> c_int {
    guard(-1, || is_directory(place).map(|_| fail(libc::EISDIR)))
}

/// Makes what is refused, under a name that may be taken.
fn make(kind: Kind, place: Place<'_>) -> c_int {
    guard(-1, || match is_directory(place) {
        Ok(_) => Ok(fail(libc::EEXIST)),
        Err(error) if error.errno() == libc::ENOENT => Ok(refuse(kind, place.name())),
        Err(error) => Err(error),
    })
}

/// Changes what is refused, of something that must be there, unless it is so already.
fn change(kind: Kind, place: Place<'_>, is_so: bool) -> c_int {
    guard(-1, || {
        let is_directory = is_directory(place)?;
        Ok(if is_so && !is_directory { 0 } else { refuse(kind, place.name()) })
    })
}

/// Removes a directory, which what is under the name may not be.
pub fn remove_directory(place: Place<'_>) -> c_int {
    match place {
        Place::Top => fail(libc::EBUSY),
        _ => directory(place),
    }
}

fn has_mode(mode: mode_t) -> bool {
    mode & 0o7777 == MODE & 0o7777
}

/// Whether a volume is told as theirs.
fn has_owner(user: uid_t, group: gid_t) -> bool {
    // SAFETY: questions without arguments.
    let (own, own_group) = unsafe { (libc::geteuid(), libc::getegid()) };
    (user == uid_t::MAX || user == own) && (group == gid_t::MAX || group == own_group)
}

/// Calls with a path: what is done where it is one of ours, and else the C library's own.
macro_rules! by_path {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) of $path:ident: $ours:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            // SAFETY: the call asks for a string.
            match unsafe { names::place($path) } {
                #[allow(clippy::redundant_closure_call)]
                Some(place) => $ours(place),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::$name($($argument),*) },
            }
        }
    )*};
}

by_path! {
    fn mkdir(path: *const c_char, mode: mode_t) of path: |place| make(Kind::Directory, place);
    fn mkdirat(dir: c_int, path: *const c_char, mode: mode_t) of path: |place| make(Kind::Directory, place);
    fn rmdir(path: *const c_char) of path: remove_directory;
    fn chdir(path: *const c_char) of path: directory;
    fn scandir(path: *const c_char, list: *mut c_void, wanted: *mut c_void, order: *mut c_void) of path: directory;
    fn scandir64(path: *const c_char, list: *mut c_void, wanted: *mut c_void, order: *mut c_void) of path: directory;
    fn symlink(text: *const c_char, path: *const c_char) of path: |place| make(Kind::Link, place);
    fn symlinkat(text: *const c_char, dir: c_int, path: *const c_char) of path: |place| make(Kind::Link, place);
    fn mkfifo(path: *const c_char, mode: mode_t) of path: |place| make(Kind::Special, place);
    fn mkfifoat(dir: c_int, path: *const c_char, mode: mode_t) of path: |place| make(Kind::Special, place);
    fn mknod(path: *const c_char, mode: mode_t, device: dev_t) of path: |place| make(Kind::Special, place);
    fn mknodat(dir: c_int, path: *const c_char, mode: mode_t, device: dev_t) of path: |place| make(Kind::Special, place);
    fn chmod(path: *const c_char, mode: mode_t) of path: |place| change(Kind::Rights, place, has_mode(mode));
    fn fchmodat(dir: c_int, path: *const c_char, mode: mode_t, flags: c_int) of path:
        |place| change(Kind::Rights, place, has_mode(mode));
    fn chown(path: *const c_char, user: uid_t, group: gid_t) of path:
        |place| change(Kind::Owner, place, has_owner(user, group));
    fn lchown(path: *const c_char, user: uid_t, group: gid_t) of path:
        |place| change(Kind::Owner, place, has_owner(user, group));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fchownat(
    dir: c_int,
    path: *const c_char,
    user: uid_t,
    group: gid_t,
    flags: c_int,
) -> c_int {
    // SAFETY: fchownat(2) asks for a string.
    match unsafe { (names::place(path), status::is_empty(path, flags)) } {
        (Some(place), _) => change(Kind::Owner, place, has_owner(user, group)),
        // SAFETY: the caller's arguments, passed on.
        (None, true) => unsafe { fchown(dir, user, group) },
        // SAFETY: the caller's arguments, passed on.
        (None, false) => unsafe { real::fchownat(dir, path, user, group, flags) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fchmod(fd: c_int, mode: mode_t) -> c_int {
    match table::find(fd) {
        Some(_) if has_mode(mode) => 0,
        Some(open) => refuse(Kind::Rights, &open.name),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::fchmod(fd, mode) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fchown(fd: c_int, user: uid_t, group: gid_t) -> c_int {
    match table::find(fd) {
        Some(_) if has_owner(user, group) => 0,
        Some(open) => refuse(Kind::Owner, &open.name),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::fchown(fd, user, group) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    // SAFETY: opendir(3) asks for a string.
    match unsafe { names::place(path) } {
        Some(place) => {
            directory(place);
            std::ptr::null_mut()
        }
        // SAFETY: the caller's argument, passed on.
        None => unsafe { real::opendir(path) },
    }
}

/// A link leads to nothing of the other side of the border.
fn link_to(from: Option<Place<'_>>, to: Option<Place<'_>>) -> c_int {
    match (from, to) {
        (Some(_), Some(to)) => make(Kind::Link, to),
        _ => fail(libc::EXDEV),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: link(2) asks for two strings.
    match unsafe { (names::place(from), names::place(to)) } {
        // SAFETY: the caller's arguments, passed on.
        (None, None) => unsafe { real::link(from, to) },
        (from, to) => link_to(from, to),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn linkat(
    dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: linkat(2) asks for two strings.
    match unsafe { (names::place(from), names::place(to)) } {
        // SAFETY: the caller's arguments, passed on.
        (None, None) => unsafe { real::linkat(dir, from, to_dir, to, flags) },
        (from, to) => link_to(from, to),
    }
}
