//! The calls on descriptors as such: closing and doubling them, flags and advice.

use crate::table;
use crate::{guard, real, set_errno};
use libc::{c_int, c_uint, c_void, off_t, size_t, ssize_t};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    let open = table::remove(fd);
    // SAFETY: the caller's argument, passed on.
    let closed = unsafe { real::close(fd) };
    match open {
        Some(open) => guard(-1, || open.close().map(|()| 0)),
        None => closed,
    }
}

/// Volumes in the range are closed as close(2) does it, one by one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let number = |number: c_uint| c_int::try_from(number).unwrap_or(c_int::MAX);
    // With other flags nothing is closed, or nothing is done.
    if flags & !(libc::CLOSE_RANGE_UNSHARE as c_int) == 0 && first <= last {
        for descriptor in table::between(number(first), number(last)) {
            if let Some(open) = table::remove(descriptor) {
                open.close_and_say();
            }
        }
    }
    // SAFETY: the caller's arguments, passed on.
    unsafe { real::close_range(first, last, flags) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: it closes what the caller wants closed.
    unsafe { close_range(first.max(0).cast_unsigned(), c_uint::MAX, 0) };
}

/// Ties `to` to what `fd` is; what `to` was before is closed, as dup2(2) does it.
fn follow(fd: c_int, to: c_int) -> c_int {
    if to == fd || to < 0 {
        return to;
    }
    let before = table::remove(to);
    if let Some(open) = table::find(fd)
        && !table::insert(to, open)
    {
        // SAFETY: the kernel has just made it for this call.
        unsafe { real::close(to) };
        set_errno(libc::EMFILE);
        return -1;
    }
    if let Some(before) = before {
        before.close_and_say();
    }
    to
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: the caller's argument, passed on.
    follow(fd, unsafe { real::dup(fd) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    follow(fd, unsafe { real::dup2(fd, to) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    follow(fd, unsafe { real::dup3(fd, to, flags) })
}

macro_rules! fcntls {
    ($($fcntl:ident)*) => {$(
        /// The argument may be left out, as for open.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
            match (command, table::find(fd)) {
                (libc::F_GETFL, Some(open)) => open.flags(),
                (libc::F_SETFL, Some(open)) => {
                    // Nothing else of it has a meaning for a volume.
                    open.set_append(argument.addr() & libc::O_APPEND as usize != 0);
                    0
                }
                (libc::F_DUPFD | libc::F_DUPFD_CLOEXEC, Some(_)) => {
                    // SAFETY: the caller's arguments, passed on.
                    follow(fd, unsafe { real::fcntl(fd, command, argument) })
                }
                // SAFETY: the caller's arguments, passed on.
                _ => unsafe { real::fcntl(fd, command, argument) },
            }
        }
    )*};
}

fcntls! { fcntl fcntl64 }

macro_rules! advices {
    ($($advise:ident $allocate:ident $posix_allocate:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $advise(fd: c_int, at: off_t, len: off_t, advice: c_int) -> c_int {
            match table::find(fd) {
                Some(_) => 0, // the contract knows better
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::posix_fadvise(fd, at, len, advice) },
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $allocate(fd: c_int, mode: c_int, at: off_t, len: off_t) -> c_int {
            if table::find(fd).is_some() {
                set_errno(libc::EOPNOTSUPP);
                return -1;
            }
            // SAFETY: the caller's arguments, passed on.
            unsafe { real::fallocate(fd, mode, at, len) }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $posix_allocate(fd: c_int, at: off_t, len: off_t) -> c_int {
            match table::find(fd) {
                Some(_) => libc::EOPNOTSUPP,
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::posix_fallocate(fd, at, len) },
            }
        }
    )*};
}

advices! {
    posix_fadvise fallocate posix_fallocate
    posix_fadvise64 fallocate64 posix_fallocate64
}

/// Refused with what makes a program read and write instead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_file_range(
    from: c_int,
    at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    if table::find(from).is_some() || table::find(to).is_some() {
        set_errno(libc::EXDEV);
        return -1;
    }
    // SAFETY: the caller's arguments, passed on.
    unsafe { real::copy_file_range(from, at, to, to_at, len, flags) }
}

macro_rules! sendfiles {
    ($($sendfile:ident)*) => {$(
        /// Refused with what makes a program read and write instead.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $sendfile(to: c_int, from: c_int, at: *mut off_t, len: size_t) -> ssize_t {
            if table::find(from).is_some() || table::find(to).is_some() {
                set_errno(libc::EINVAL);
                return -1;
            }
            // SAFETY: the caller's arguments, passed on.
            unsafe { real::sendfile(to, from, at, len) }
        }
    )*};
}

sendfiles! { sendfile sendfile64 }
