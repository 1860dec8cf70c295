//! `fopen` of a volume: a `FILE` whose bytes go through a descriptor of ours.
//!
//! The C library's own `fopen` opens and reads by calls of its own, which no shim sees.

use crate::transfers::place;
use crate::{files, guard, names, opening, real, table, transfers};
use libc::{FILE, c_char, c_int, c_void, off64_t, size_t, ssize_t};
use std::io::Seek;

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

/// Flags of open(2) for a mode of fopen(3).
///
/// # Safety
/// `mode` is a string.
unsafe fn flags(mode: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    let mode = unsafe { std::ffi::CStr::from_ptr(mode) }.to_bytes();
    let (alone, make) = match mode.first() {
        Some(b'w') => (libc::O_WRONLY, libc::O_CREAT | libc::O_TRUNC),
        Some(b'a') => (libc::O_WRONLY, libc::O_CREAT | libc::O_APPEND),
        _ => (libc::O_RDONLY, 0),
    };
    make | if mode.contains(&b'+') { libc::O_RDWR } else { alone }
}

macro_rules! fopens {
    ($($fopen:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: fopen(3) asks for two strings.
            let Some(name) = (unsafe { names::volume(path) }) else {
                // SAFETY: the caller's arguments, passed on.
                return unsafe { real::fopen(path, mode) };
            };
            // SAFETY: the second string.
            let fd = opening::volume(name, unsafe { flags(mode) });
            if fd < 0 {
                return std::ptr::null_mut();
            }
            let functions = Functions { read, write, seek, close };
            // SAFETY: the functions take the descriptor's number as their cookie.
            unsafe { fopencookie(fd as usize as *mut c_void, mode, functions) }
        }
    )*};
}

fopens! { fopen fopen64 }

fn descriptor(cookie: *mut c_void) -> c_int {
    cookie as usize as c_int
}

unsafe extern "C" fn read(cookie: *mut c_void, data: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library calls with `len` bytes.
    unsafe { transfers::read(descriptor(cookie), data.cast(), len) }
}

/// Gives 0 for an error, as fopencookie(3) asks.
unsafe extern "C" fn write(cookie: *mut c_void, data: *const c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library calls with `len` bytes.
    unsafe { transfers::write(descriptor(cookie), data.cast(), len) }.max(0)
}

unsafe extern "C" fn seek(cookie: *mut c_void, to: *mut off64_t, whence: c_int) -> c_int {
    guard(-1, || {
        let Some(open) = table::find(descriptor(cookie)) else { return Ok(-1) };
        // SAFETY: the C library calls with a place for the offset.
        let to = unsafe { &mut *to };
        *to = open.file().seek(place(*to, whence)?)? as off64_t;
        Ok(0)
    })
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    // SAFETY: the descriptor is the FILE's.
    unsafe { files::close(descriptor(cookie)) }
}
