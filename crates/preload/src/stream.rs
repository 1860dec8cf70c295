//! `fopen` and `fdopen` of a volume: a `FILE` whose bytes go through a descriptor of ours.
//!
//! The C library's own `FILE`s open, read and close by calls of its own, which no shim sees.

use crate::{buffered, files, guard, names, opening, real, set_errno, table, transfers};
use libc::{FILE, c_char, c_int, c_void, off64_t, size_t, ssize_t};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

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

/// What the C library hands over with each call on one.
struct Cookie {
    descriptor: c_int,
    file: AtomicPtr<FILE>,
}

/// Flags of open(2) for a mode of fopen(3); none where it is no mode.
///
/// # Safety
/// `mode` is a string.
unsafe fn flags(mode: *const c_char) -> Option<c_int> {
    // SAFETY: as the caller promises.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let (alone, make) = match mode.first() {
        Some(b'r') => (libc::O_RDONLY, 0),
        Some(b'w') => (libc::O_WRONLY, libc::O_CREAT | libc::O_TRUNC),
        Some(b'a') => (libc::O_WRONLY, libc::O_CREAT | libc::O_APPEND),
        _ => {
            set_errno(libc::EINVAL);
            return None;
        }
    };
    // What follows a comma names characters.
    let more = mode.split(|&letter| letter == b',').next().unwrap_or_default();
    let also = |letter: u8, flag: c_int| if more.contains(&letter) { flag } else { 0 };
    let way = if more.contains(&b'+') { libc::O_RDWR } else { alone };
    Some(make | way | also(b'e', libc::O_CLOEXEC) | also(b'x', libc::O_EXCL))
}

/// A `FILE` on a descriptor, which it closes at its end.
fn buffered(descriptor: c_int, flags: c_int) -> *mut FILE {
    let way = flags & libc::O_ACCMODE;
    let mode = match (way, flags & libc::O_APPEND != 0) {
        (libc::O_RDONLY, _) => c"r",
        (libc::O_WRONLY, false) => c"w",
        (libc::O_WRONLY, true) => c"a",
        (_, false) => c"r+",
        (_, true) => c"a+",
    };
    let functions = Functions { read, write, seek, close };
    let cookie = Box::new(Cookie { descriptor, file: AtomicPtr::default() });
    let cookie = Box::into_raw(cookie);
    // SAFETY: the functions take such a cookie, and the last of them frees it.
    let file = unsafe { fopencookie(cookie.cast(), mode.as_ptr(), functions) };
    if file.is_null() {
        // SAFETY: made above, and nobody has it.
        drop(unsafe { Box::from_raw(cookie) });
        return file;
    }
    // SAFETY: it is freed when the FILE is closed, and nobody has that yet.
    unsafe { (*cookie).file.store(file, Ordering::Release) };
    buffered::insert(file, descriptor, way != libc::O_RDONLY);
    file
}

macro_rules! fopens {
    ($($fopen:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: fopen(3) asks for two strings.
            let Some(place) = (unsafe { names::place(path) }) else {
                // SAFETY: the caller's arguments, passed on.
                let file = unsafe { real::fopen(path, mode) };
                if !file.is_null() {
                    // SAFETY: it was opened just now.
                    table::untie(unsafe { real::fileno(file) });
                }
                return file;
            };
            // SAFETY: the second string.
            let Some(flags) = (unsafe { flags(mode) }) else { return std::ptr::null_mut() };
            let descriptor = opening::place(place, flags);
            if descriptor < 0 {
                return std::ptr::null_mut();
            }
            let file = buffered(descriptor, flags);
            if file.is_null() {
                // SAFETY: nobody else has it.
                unsafe { files::close(descriptor) };
            }
            file
        }
    )*};
}

fopens! { fopen fopen64 }

/// As fopen, on a descriptor that is open: the C library's own would close it unseen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(descriptor: c_int, mode: *const c_char) -> *mut FILE {
    let Some(open) = table::find(descriptor) else {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { real::fdopen(descriptor, mode) };
    };
    // SAFETY: fdopen(3) asks for a string.
    let Some(flags) = (unsafe { flags(mode) }) else { return std::ptr::null_mut() };
    if open.access() != libc::O_RDWR && open.access() != flags & libc::O_ACCMODE {
        set_errno(libc::EINVAL);
        return std::ptr::null_mut();
    }
    if flags & libc::O_APPEND != 0 {
        open.set_append(true);
    }
    buffered(descriptor, flags)
}

macro_rules! filenos {
    ($($fileno:ident)*) => {$(
        /// The library of C++ reads and writes the descriptor of a `FILE` that it opens.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fileno(file: *mut FILE) -> c_int {
            match buffered::descriptor(file) {
                Some(descriptor) => descriptor,
                // SAFETY: the caller's argument, passed on.
                None => unsafe { real::$fileno(file) },
            }
        }
    )*};
}

filenos! { fileno fileno_unlocked }

/// The descriptor, where it is a volume's; in a child of a fork it is none, and what has its number
/// then is not to be touched.
///
/// # Safety
/// `cookie` is a [`Cookie`].
unsafe fn descriptor(cookie: *mut c_void) -> Option<c_int> {
    // SAFETY: as the caller promises.
    let descriptor = unsafe { &*cookie.cast::<Cookie>() }.descriptor;
    if table::find(descriptor).is_none() {
        set_errno(libc::EBADF);
        return None;
    }
    Some(descriptor)
}

unsafe extern "C" fn read(cookie: *mut c_void, data: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library calls with the cookie.
    let Some(descriptor) = (unsafe { descriptor(cookie) }) else { return -1 };
    // SAFETY: and with `len` bytes.
    unsafe { transfers::read(descriptor, data.cast(), len) }
}

/// Writes all: the C library takes less for an error, and forgets the rest. Gives what went through
/// before one, as fopencookie(3) asks.
unsafe extern "C" fn write(cookie: *mut c_void, data: *const c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library calls with the cookie.
    let Some(descriptor) = (unsafe { descriptor(cookie) }) else { return 0 };
    let mut done = 0;
    while done < len {
        // SAFETY: it calls with `len` bytes.
        match unsafe { transfers::write(descriptor, data.add(done).cast(), len - done) } {
            written @ 1.. => done += written as size_t,
            _ => break,
        }
    }
    done as ssize_t
}

unsafe extern "C" fn seek(cookie: *mut c_void, to: *mut off64_t, whence: c_int) -> c_int {
    // SAFETY: the C library calls with the cookie.
    let Some(descriptor) = (unsafe { descriptor(cookie) }) else { return -1 };
    // SAFETY: and with a place for the offset.
    let to = unsafe { &mut *to };
    // SAFETY: it takes no memory.
    match unsafe { transfers::lseek(descriptor, *to, whence) } {
        place @ 0.. => {
            *to = place;
            0
        }
        _ => -1,
    }
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: it was a box's, and this is the last call with it.
        let cookie = unsafe { Box::from_raw(cookie.cast::<Cookie>()) };
        buffered::remove(cookie.file.load(Ordering::Acquire));
        // SAFETY: the descriptor is the FILE's.
        Ok(unsafe { files::close(cookie.descriptor) })
    })
}
