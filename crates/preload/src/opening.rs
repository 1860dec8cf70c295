//! The calls that give a descriptor: open and its kin.

use crate::names::Place;
use crate::rules::rules;
use crate::table::{self, Open};
use crate::{guard, names, real, refusals, set_errno};
use libc::{c_char, c_int, mode_t};
use std::sync::Arc;

/// A descriptor that nothing can be read from or written to. To open it again, by `/dev/stdout` or
/// `/proc/self/fd`, fails with `ELOOP`: `/dev/null` would take all bytes and keep none.
fn placeholder(flags: c_int) -> c_int {
    // SAFETY: both paths are strings; the mode is not looked at.
    unsafe {
        let link = libc::O_PATH | libc::O_NOFOLLOW | flags;
        match real::open(c"/proc/self/exe".as_ptr(), link, 0) {
            fd if fd >= 0 => fd,
            // Where there is no /proc nobody opens it again.
            _ => real::open(c"/dev/null".as_ptr(), libc::O_PATH | flags, 0),
        }
    }
}

/// Opens a volume, and takes a descriptor of the kernel's for it.
fn volume(name: &str, flags: c_int) -> c_int {
    if flags & libc::O_DIRECTORY != 0 {
        // So programs find out whether they shall copy into it.
        return refusals::directory(Place::Below(name));
    }
    guard(-1, || {
        let file = rules().open(name, flags)?;
        let open = Arc::new(Open::new(file, flags, name));
        let fd = placeholder(flags & libc::O_CLOEXEC);
        if fd >= 0 && !table::insert(fd, open) {
            // SAFETY: it was opened just now and nobody has it.
            unsafe { real::close(fd) };
            set_errno(libc::EMFILE);
            return Ok(-1);
        }
        Ok(fd)
    })
}

/// Opens what a path names, as far as that can be.
pub fn place(place: Place<'_>, flags: c_int) -> c_int {
    match place {
        Place::Below(name) => volume(name, flags),
        _ if flags & libc::O_ACCMODE == libc::O_RDONLY => refusals::directory(place),
        _ => refusals::is_no_file(place),
    }
}

// In C these have an argument that may be left out. The machines that this is built for
// pass it in the same register in either case, and what is there is only looked at where
// the flags say that it was passed.
macro_rules! opens {
    ($($open:ident, $openat:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: open(2) asks for a string.
            match unsafe { names::place(path) } {
                Some(found) => place(found, flags),
                // SAFETY: the caller's arguments, passed on.
                None => table::untie(unsafe { real::open(path, flags, mode) }),
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: openat(2) asks for a string.
            match unsafe { names::place(path) } {
                Some(found) => place(found, flags),
                // SAFETY: the caller's arguments, passed on.
                None => table::untie(unsafe { real::openat(dir, path, flags, mode) }),
            }
        }
    )*};
}

// Large files are no other calls on machines of 64 bits, and `_2` is what a compiler makes
// of a call without a mode.
opens! {
    open, openat;
    open64, openat64;
    __open_2, __openat_2;
    __open64_2, __openat64_2;
}

macro_rules! creats {
    ($($creat:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $creat(path: *const c_char, mode: mode_t) -> c_int {
            // SAFETY: creat(2) asks for a string.
            unsafe { open(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
        }
    )*};
}

creats! { creat creat64 }
