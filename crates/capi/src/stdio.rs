//! A handle as a `FILE *` of the C library, by `fopencookie`.
//!
//! Invariant: the buffer that the `FILE` uses lives until after its last use: glibc
//! flushes before it calls [`close`], and does not touch the buffer after that.

use crate::error::{guard, invalid};
use crate::options::{self, SlOptions};
use crate::{SlFile, bytes, bytes_mut, file, seek_from};
use libc::{FILE, c_char, c_int, c_void, off64_t, size_t, ssize_t};
use std::io::{Read, Seek, Write};
use std::sync::{Mutex, PoisonError};

/// A buffer of several sectors: what goes through it is whole sectors as a rule.
const BUFFER: usize = 64 << 10;

/// What a `FILE` of this library carries.
struct Cookie {
    file: SlFile,
    buffer: Box<[u8]>,
}

/// `cookie_io_functions_t`.
#[repr(C)]
struct Functions {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: unsafe extern "C" fn(*mut c_void, *mut off64_t, c_int) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_fopen(
    target: *const c_char,
    mode: *const c_char,
    options: *const SlOptions,
) -> *mut FILE {
    guard(std::ptr::null_mut(), || {
        // SAFETY: the header asks for two strings, and options or NULL.
        let file = unsafe { options::open(target, options::flags(mode)?, options) }?;
        let buffer = vec![0; BUFFER].into_boxed_slice();
        let cookie = Box::new(Cookie { file: SlFile(Mutex::new(file)), buffer });
        let cookie = Box::into_raw(cookie);
        // SAFETY: the functions take this cookie; it is theirs until `close`.
        let opened =
            unsafe { fopencookie(cookie.cast(), mode, Functions { read, write, seek, close }) };
        if opened.is_null() {
            // SAFETY: it was made above, and nobody has it.
            drop(unsafe { Box::from_raw(cookie) });
            return Err(invalid("the C library makes no FILE of this mode"));
        }
        // SAFETY: the FILE was made just now and has not been used; the buffer lives in
        // the cookie, and so as long as the FILE uses it.
        unsafe {
            let buffer = (*cookie).buffer.as_mut_ptr().cast();
            libc::setvbuf(opened, buffer, libc::_IOFBF, BUFFER);
        }
        Ok(opened)
    })
}

/// # Safety
/// `cookie` is what `sl_fopen` made, not closed yet.
unsafe fn handle(cookie: *mut c_void) -> *mut SlFile {
    // SAFETY: as the caller promises.
    unsafe { &raw mut (*cookie.cast::<Cookie>()).file }
}

unsafe extern "C" fn read(cookie: *mut c_void, data: *mut c_char, len: size_t) -> ssize_t {
    guard(-1, || {
        // SAFETY: glibc calls with the cookie and a buffer of `len` bytes.
        Ok(unsafe { file(handle(cookie))?.read(bytes_mut(data.cast(), len)?) }? as ssize_t)
    })
}

/// Gives 0 for an error, as fopencookie(3) asks.
unsafe extern "C" fn write(cookie: *mut c_void, data: *const c_char, len: size_t) -> ssize_t {
    guard(0, || {
        // SAFETY: glibc calls with the cookie and `len` bytes.
        unsafe { file(handle(cookie))?.write_all(bytes(data.cast(), len)?) }?;
        Ok(len as ssize_t)
    })
}

unsafe extern "C" fn seek(cookie: *mut c_void, place: *mut off64_t, whence: c_int) -> c_int {
    guard(-1, || {
        // SAFETY: glibc calls with the cookie and a place for the offset.
        let (mut file, place) = unsafe { (file(handle(cookie))?, &mut *place) };
        *place = file.seek(seek_from(*place, whence)?)? as off64_t;
        Ok(0)
    })
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: glibc closes once, with what `sl_fopen` made.
        let cookie = unsafe { Box::from_raw(cookie.cast::<Cookie>()) };
        let file = cookie.file.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        file.close().map(|()| 0)
    })
}
