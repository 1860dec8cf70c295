//! The calls that move bytes, and the place where they do.

use crate::names::Place;
use crate::refusals::{self, Kind, refuse};
use crate::rules::rules;
use crate::table::{self, Open};
use crate::{guard, names, real, set_errno};
use client::{Code, Error, File, Problem, Target};
use libc::{c_char, c_int, c_void, iovec, off_t, size_t, ssize_t};
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::MutexGuard;

/// Bytes of the program's to fill.
///
/// # Safety
/// `data` points to `len` bytes that nobody else uses now, or `len` is 0.
pub unsafe fn bytes_mut<'a>(data: *mut c_void, len: size_t) -> &'a mut [u8] {
    if len == 0 || data.is_null() {
        return &mut [];
    }
    // SAFETY: as the caller promises; no slice is longer than `isize::MAX`.
    unsafe { std::slice::from_raw_parts_mut(data.cast(), len.min(isize::MAX as usize)) }
}

/// Bytes of the program's to take.
///
/// # Safety
/// `data` points to `len` bytes that nobody changes now, or `len` is 0.
pub unsafe fn bytes<'a>(data: *const c_void, len: size_t) -> &'a [u8] {
    if len == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises; no slice is longer than `isize::MAX`.
    unsafe { std::slice::from_raw_parts(data.cast(), len.min(isize::MAX as usize)) }
}

fn invalid(what: &str) -> Error {
    Error::Problem(Box::new(Problem::new(Code::Invalid, what, "see lseek(2)")))
}

/// The place that a whence of lseek(2) names.
fn place(offset: off_t, whence: c_int) -> Result<SeekFrom, Error> {
    match (whence, u64::try_from(offset)) {
        (libc::SEEK_SET, Ok(offset)) => Ok(SeekFrom::Start(offset)),
        (libc::SEEK_CUR, _) => Ok(SeekFrom::Current(offset)),
        (libc::SEEK_END, _) => Ok(SeekFrom::End(offset)),
        _ => Err(invalid("no such place")),
    }
}

/// Goes to a place; gives which it is. A volume is one piece of data, and the hole is at its end.
fn seek(file: &mut File, offset: off_t, whence: c_int) -> Result<off_t, Error> {
    let to = match whence {
        libc::SEEK_DATA | libc::SEEK_HOLE => {
            let end = file.length()?.get();
            match u64::try_from(offset) {
                Ok(offset) if offset < end && whence == libc::SEEK_DATA => SeekFrom::Start(offset),
                Ok(offset) if offset < end => SeekFrom::Start(end),
                _ => {
                    set_errno(libc::ENXIO);
                    return Ok(-1);
                }
            }
        }
        _ => place(offset, whence)?,
    };
    Ok(file.seek(to)? as off_t)
}

/// The file, at its end where it is open to append.
fn at_end(open: &Open) -> Result<MutexGuard<'_, File>, Error> {
    let mut file = open.file();
    open.told()?;
    if open.flags() & libc::O_APPEND != 0 {
        file.seek(SeekFrom::End(0))?;
    }
    Ok(file)
}

/// Does something at another place, and comes back.
fn at<T>(
    open: &Open,
    offset: off_t,
    what: impl FnOnce(&mut File) -> std::io::Result<T>,
) -> Result<T, Error> {
    let mut file = open.file();
    let before = file.position().get();
    file.seek(place(offset, libc::SEEK_SET)?)?;
    let done = what(&mut file);
    file.seek(SeekFrom::Start(before))?;
    Ok(done?)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, data: *mut c_void, len: size_t) -> ssize_t {
    match table::find(fd) {
        Some(open) => guard(-1, || {
            // SAFETY: read(2) asks for `len` bytes.
            let data = unsafe { bytes_mut(data, len) };
            Ok(open.file().read(data)? as ssize_t)
        }),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::read(fd, data, len) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, data: *const c_void, len: size_t) -> ssize_t {
    match table::find(fd) {
        Some(open) => guard(-1, || {
            // SAFETY: write(2) asks for `len` bytes.
            let data = unsafe { bytes(data, len) };
            Ok(at_end(&open)?.write(data)? as ssize_t)
        }),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::write(fd, data, len) },
    }
}

/// What a compiler makes of a read into an array whose size it knows: the C library
/// ends a program that reads more than fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    fd: c_int,
    data: *mut c_void,
    len: size_t,
    room: size_t,
) -> ssize_t {
    if len > room {
        std::process::abort();
    }
    // SAFETY: the caller's arguments, passed on.
    unsafe { read(fd, data, len) }
}

macro_rules! places {
    ($($pread:ident $pread_chk:ident $pwrite:ident $lseek:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pread(fd: c_int, data: *mut c_void, len: size_t, offset: off_t) -> ssize_t {
            match table::find(fd) {
                Some(open) => guard(-1, || {
                    // SAFETY: pread(2) asks for `len` bytes.
                    let data = unsafe { bytes_mut(data, len) };
                    at(&open, offset, |file| file.read(data)).map(|read| read as ssize_t)
                }),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::pread(fd, data, len, offset) },
            }
        }
        /// As for read.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pread_chk(fd: c_int, data: *mut c_void, len: size_t, offset: off_t, room: size_t) -> ssize_t {
            if len > room {
                std::process::abort();
            }
            // SAFETY: the caller's arguments, passed on.
            unsafe { $pread(fd, data, len, offset) }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pwrite(fd: c_int, data: *const c_void, len: size_t, offset: off_t) -> ssize_t {
            match table::find(fd) {
                Some(open) => guard(-1, || {
                    // SAFETY: pwrite(2) asks for `len` bytes.
                    let data = unsafe { bytes(data, len) };
                    at(&open, offset, |file| file.write(data)).map(|written| written as ssize_t)
                }),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::pwrite(fd, data, len, offset) },
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $lseek(fd: c_int, offset: off_t, whence: c_int) -> off_t {
            match table::find(fd) {
                Some(open) => guard(-1, || seek(&mut open.file(), offset, whence)),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::lseek(fd, offset, whence) },
            }
        }
    )*};
}

places! {
    pread __pread_chk pwrite lseek;
    pread64 __pread64_chk pwrite64 lseek64;
}

/// The parts of a call with several buffers.
///
/// # Safety
/// `parts` points to `count` parts.
unsafe fn parts<'a>(parts: *const iovec, count: c_int) -> &'a [iovec] {
    match usize::try_from(count) {
        Ok(count) if count > 0 && !parts.is_null() => {
            // SAFETY: as the caller promises.
            unsafe { std::slice::from_raw_parts(parts, count) }
        }
        _ => &[],
    }
}

/// Fills the parts one behind the other, as far as there is something.
///
/// # Safety
/// `into` points to `count` parts, and each to as many bytes as it says.
unsafe fn fill(file: &mut File, into: *const iovec, count: c_int) -> std::io::Result<ssize_t> {
    let mut done = 0;
    // SAFETY: as the caller promises.
    for part in unsafe { parts(into, count) } {
        // SAFETY: as the caller promises.
        let data = unsafe { bytes_mut(part.iov_base, part.iov_len) };
        let before = file.position().get();
        let read = match file.read(data) {
            // What is there is told, and the error to the next call: a gap, which was passed by
            // being told, is met again.
            Err(_) if done > 0 => {
                file.seek(SeekFrom::Start(before))?;
                break;
            }
            read => read?,
        };
        done += read as ssize_t;
        if read < data.len() {
            break;
        }
    }
    Ok(done)
}

/// Writes the parts one behind the other, as far as there is room.
///
/// # Safety
/// `from` as for [`fill`].
unsafe fn put(
    open: &Open,
    file: &mut File,
    from: *const iovec,
    count: c_int,
) -> std::io::Result<ssize_t> {
    let mut done = 0;
    // SAFETY: as the caller promises.
    for part in unsafe { parts(from, count) } {
        // SAFETY: as the caller promises.
        let data = unsafe { bytes(part.iov_base, part.iov_len) };
        let before = file.position();
        let written = match file.write(data) {
            // What is written is told, and the error to the next call.
            Err(error) if done > 0 => {
                if file.position() < before {
                    // Bytes of before are lost, which no other call would tell again.
                    open.keep(error.into());
                }
                break;
            }
            written => written?,
        };
        done += written as ssize_t;
        if written < data.len() {
            break;
        }
    }
    Ok(done)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(fd: c_int, into: *const iovec, count: c_int) -> ssize_t {
    match table::find(fd) {
        // SAFETY: readv(2) asks for the parts.
        Some(open) => guard(-1, || Ok(unsafe { fill(&mut open.file(), into, count) }?)),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::readv(fd, into, count) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, from: *const iovec, count: c_int) -> ssize_t {
    match table::find(fd) {
        Some(open) => guard(-1, || {
            let mut file = at_end(&open)?;
            // SAFETY: writev(2) asks for the parts.
            Ok(unsafe { put(&open, &mut file, from, count) }?)
        }),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::writev(fd, from, count) },
    }
}

macro_rules! parts_at_places {
    ($($preadv:ident $pwritev:ident $preadv2:ident $pwritev2:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $preadv(fd: c_int, into: *const iovec, count: c_int, offset: off_t) -> ssize_t {
            match table::find(fd) {
                // SAFETY: preadv(2) asks for the parts.
                Some(open) => guard(-1, || at(&open, offset, |file| unsafe { fill(file, into, count) })),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::preadv(fd, into, count, offset) },
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pwritev(fd: c_int, from: *const iovec, count: c_int, offset: off_t) -> ssize_t {
            match table::find(fd) {
                // SAFETY: pwritev(2) asks for the parts.
                Some(open) => guard(-1, || at(&open, offset, |file| unsafe { put(&open, file, from, count) })),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::pwritev(fd, from, count, offset) },
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $preadv2(fd: c_int, into: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t {
            if table::find(fd).is_none() {
                // SAFETY: the caller's arguments, passed on.
                return unsafe { real::preadv2(fd, into, count, offset, flags) };
            }
            if known(flags).is_none() {
                return -1;
            }
            // SAFETY: the caller's arguments; -1 is the place of the descriptor.
            unsafe { if offset == -1 { readv(fd, into, count) } else { $preadv(fd, into, count, offset) } }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pwritev2(fd: c_int, from: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t {
            if table::find(fd).is_none() {
                // SAFETY: the caller's arguments, passed on.
                return unsafe { real::pwritev2(fd, from, count, offset, flags) };
            }
            let Some(is_synced) = known(flags) else { return -1 };
            // SAFETY: as above.
            let written = unsafe { if offset == -1 { writev(fd, from, count) } else { $pwritev(fd, from, count, offset) } };
            // SAFETY: it takes no memory.
            if is_synced && written > 0 && unsafe { fsync(fd) } < 0 { -1 } else { written }
        }
    )*};
}

parts_at_places! {
    preadv pwritev preadv2 pwritev2;
    preadv64 pwritev64 preadv64v2 pwritev64v2;
}

/// Whether a write with these flags is to be on the medium; none, and `errno`, where one of them would
/// change something else.
fn known(flags: c_int) -> Option<bool> {
    let synced = libc::RWF_SYNC | libc::RWF_DSYNC;
    if flags & !(synced | libc::RWF_HIPRI) != 0 {
        set_errno(libc::EOPNOTSUPP);
        return None;
    }
    Some(flags & synced != 0)
}

macro_rules! syncs {
    ($($sync:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $sync(fd: c_int) -> c_int {
            match table::find(fd) {
                Some(open) => guard(-1, || {
                    let synced = open.file().sync();
                    open.told().and(synced).map(|()| 0)
                }),
                // SAFETY: the caller's argument, passed on.
                None => unsafe { real::$sync(fd) },
            }
        }
    )*};
}

syncs! { fsync fdatasync }

/// Cuts what is recorded; there is no other way to make it longer than to write.
fn set_length(file: &mut File, name: &str, len: off_t) -> Result<c_int, Error> {
    let len = u64::try_from(len).map_err(|_| invalid("a negative length"))?;
    if len > file.length()?.get() {
        return Ok(refuse(Kind::Longer, name));
    }
    file.set_len(client::units::Bytes::new(len)).map(|()| 0)
}

macro_rules! truncates {
    ($($truncate:ident $by_path:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $truncate(fd: c_int, len: off_t) -> c_int {
            let Some(open) = table::find(fd) else {
                // SAFETY: the caller's arguments, passed on.
                return unsafe { real::ftruncate(fd, len) };
            };
            if !open.writes() {
                set_errno(libc::EINVAL);
                return -1;
            }
            guard(-1, || set_length(&mut open.file(), &open.name, len))
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $by_path(path: *const c_char, len: off_t) -> c_int {
            // SAFETY: truncate(2) asks for a string.
            let name = match unsafe { names::place(path) } {
                Some(Place::Below(name)) => name,
                Some(place) => return refusals::is_no_file(place),
                // SAFETY: the caller's arguments, passed on.
                None => return unsafe { real::truncate(path, len) },
            };
            guard(-1, || {
                let mut options = File::options();
                options.socket(rules().socket()).read(false).write(true);
                let mut file = options.open_target(Target::Volume(name.into()))?;
                let cut = set_length(&mut file, name, len)?;
                file.close().map(|()| cut)
            })
        }
    )*};
}

truncates! {
    ftruncate truncate;
    ftruncate64 truncate64;
}
