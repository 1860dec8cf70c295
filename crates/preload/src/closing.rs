//! The calls that close descriptors.

use crate::{guard, real, table};
use libc::{c_int, c_uint};

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
