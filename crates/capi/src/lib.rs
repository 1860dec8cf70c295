//! The library for C: each function of `include/slackline.h`, where its words are.
//!
//! Invariants: no panic leaves this crate; every function that fails sets `errno` and
//! this thread's words about it; a handle may be used from several threads, one call
//! after the other; a pointer that a peek gives is good until the next call with its
//! handle.
#![allow(unsafe_code)] // what C hands over is pointers
#![allow(clippy::missing_safety_doc, missing_docs)] // the header and the man pages say it

mod error;
mod options;
mod stdio;

use client::units::{Bytes, Duration, Outside};
use client::{Contract, Error, File, Peek, Piece, ReadRange};
use error::{SlRefusal, guard, invalid};
use libc::{c_char, c_int, c_void, size_t, ssize_t};
use options::{SlContract, SlInTime, SlOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a `sl_file *` points to.
pub struct SlFile(Mutex<File>);

impl SlFile {
    /// A call that panicked has told so; the next one sees what it left.
    fn lock(&self) -> MutexGuard<'_, File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file behind a handle, or the error that a null pointer is.
///
/// # Safety
/// `handle` is null, or came from `sl_open` and was not closed.
unsafe fn file<'a>(handle: *const SlFile) -> Result<MutexGuard<'a, File>, Error> {
    // SAFETY: as the caller promises.
    let handle = unsafe { handle.as_ref() };
    handle.map(SlFile::lock).ok_or_else(|| invalid("the handle is NULL"))
}

/// Bytes of the caller's to fill.
///
/// # Safety
/// `data` points to `len` bytes that nobody else uses now, or `len` is 0.
unsafe fn bytes_mut<'a>(data: *mut c_void, len: size_t) -> Result<&'a mut [u8], Error> {
    match (data.is_null(), len.min(isize::MAX as usize)) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(invalid("the buffer is NULL")),
        // SAFETY: as the caller promises; no slice is longer than `isize::MAX`.
        (false, len) => Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), len) }),
    }
}

/// Bytes of the caller's to take.
///
/// # Safety
/// `data` points to `len` bytes that nobody changes now, or `len` is 0.
unsafe fn bytes<'a>(data: *const c_void, len: size_t) -> Result<&'a [u8], Error> {
    match (data.is_null(), len.min(isize::MAX as usize)) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(invalid("the buffer is NULL")),
        // SAFETY: as the caller promises; no slice is longer than `isize::MAX`.
        (false, len) => Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) }),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_open(
    target: *const c_char,
    flags: c_int,
    options: *const SlOptions,
) -> *mut SlFile {
    guard(std::ptr::null_mut(), || {
        // SAFETY: the header asks for a string, and options or NULL.
        let file = unsafe { options::open(target, flags, options) }?;
        Ok(Box::into_raw(Box::new(SlFile(Mutex::new(file)))))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_close(handle: *mut SlFile) -> c_int {
    guard(-1, || {
        if handle.is_null() {
            return Err(invalid("the handle is NULL"));
        }
        // SAFETY: it came from `sl_open` and is closed once, as the header asks.
        let handle = unsafe { Box::from_raw(handle) };
        handle.0.into_inner().unwrap_or_else(PoisonError::into_inner).close()?;
        Ok(0)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_read(handle: *mut SlFile, data: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: the header asks for an open handle and `len` bytes.
    guard(-1, || Ok(unsafe { file(handle)?.read(bytes_mut(data, len)?) }? as ssize_t))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_write(
    handle: *mut SlFile,
    data: *const c_void,
    len: size_t,
) -> ssize_t {
    // SAFETY: the header asks for an open handle and `len` bytes.
    guard(-1, || Ok(unsafe { file(handle)?.write(bytes(data, len)?) }? as ssize_t))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_write_all(
    handle: *mut SlFile,
    data: *const c_void,
    len: size_t,
) -> c_int {
    // SAFETY: the header asks for an open handle and `len` bytes.
    guard(-1, || Ok(unsafe { file(handle)?.write_all(bytes(data, len)?) }.map(|()| 0)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_seek(handle: *mut SlFile, offset: i64, whence: c_int) -> i64 {
    guard(-1, || {
        let to = seek_from(offset, whence)?;
        // SAFETY: the header asks for an open handle.
        let place = unsafe { file(handle) }?.seek(to)?;
        i64::try_from(place).map_err(|_| invalid("the place has no number in 63 bits"))
    })
}

fn seek_from(offset: i64, whence: c_int) -> Result<SeekFrom, Error> {
    match (whence, u64::try_from(offset)) {
        (libc::SEEK_SET, Ok(place)) => Ok(SeekFrom::Start(place)),
        (libc::SEEK_CUR, _) => Ok(SeekFrom::Current(offset)),
        (libc::SEEK_END, _) => Ok(SeekFrom::End(offset)),
        (libc::SEEK_SET, Err(_)) => Err(invalid("the offset is negative")),
        _ => Err(invalid("whence is none of SEEK_SET, SEEK_CUR and SEEK_END")),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_read_at(
    handle: *mut SlFile,
    place: u64,
    data: *mut c_void,
    len: size_t,
) -> ssize_t {
    guard(-1, || {
        let place = place_from(place)?;
        // SAFETY: the header asks for an open handle and `len` bytes.
        match unsafe { file(handle)?.read_at(place, bytes_mut(data, len)?) }? {
            Piece::Data(read) => Ok(read as ssize_t),
            Piece::Gap { offset, len } => Err(Error::Gap { offset, len }),
            Piece::End => Ok(0),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_write_at(
    handle: *mut SlFile,
    place: u64,
    data: *const c_void,
    len: size_t,
) -> ssize_t {
    guard(-1, || {
        let place = place_from(place)?;
        // SAFETY: the header asks for an open handle and `len` bytes.
        unsafe { file(handle)?.write_at(place, bytes(data, len)?) }.map(|len| len as ssize_t)
    })
}

/// As in the header.
#[repr(C)]
pub struct SlRange {
    place: u64,
    data: *mut c_void,
    len: size_t,
    moved: size_t,
}

/// # Safety
/// `ranges` points to `count` ranges.
unsafe fn ranges<'a>(ranges: *mut SlRange, count: size_t) -> Result<&'a mut [SlRange], Error> {
    match (ranges.is_null(), count) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(invalid("ranges is NULL")),
        _ if count > isize::MAX as usize / size_of::<SlRange>() => Err(invalid("too many ranges")),
        // SAFETY: as the caller promises.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(ranges, count) }),
    }
}

fn total(moved: impl Iterator<Item = usize>) -> Result<ssize_t, Error> {
    let total = moved.fold(0, usize::saturating_add);
    ssize_t::try_from(total).map_err(|_| invalid("the ranges are longer than SSIZE_MAX"))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_read_ranges(
    handle: *mut SlFile,
    wanted: *mut SlRange,
    count: size_t,
) -> ssize_t {
    guard(-1, || {
        // SAFETY: the header asks for that many ranges.
        let wanted = unsafe { ranges(wanted, count) }?;
        total(wanted.iter().map(|range| range.len))?;
        if !client::are_apart(wanted.iter().map(|range| (range.data as usize, range.len))) {
            return Err(invalid("two ranges have the same memory"));
        }
        let mut all = Vec::with_capacity(wanted.len());
        for range in wanted.iter() {
            // SAFETY: the header asks for so many bytes, and they are nobody else's.
            let into = unsafe { bytes_mut(range.data, range.len) }?;
            all.push(ReadRange::new(place_from(range.place)?, into));
        }
        // SAFETY: the header asks for an open handle.
        unsafe { file(handle) }?.read_ranges(&mut all)?;
        let filled: Vec<usize> = all.iter().map(|range| range.filled).collect();
        for (range, filled) in wanted.iter_mut().zip(&filled) {
            range.moved = *filled;
        }
        total(filled.into_iter())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_write_ranges(
    handle: *mut SlFile,
    given: *mut SlRange,
    count: size_t,
) -> ssize_t {
    guard(-1, || {
        // SAFETY: the header asks for that many ranges.
        let given = unsafe { ranges(given, count) }?;
        let all = total(given.iter().map(|range| range.len))?;
        let mut parts = Vec::with_capacity(given.len());
        for range in given.iter() {
            // SAFETY: the header asks for so many bytes.
            parts.push((place_from(range.place)?, unsafe { bytes(range.data, range.len) }?));
        }
        // SAFETY: the header asks for an open handle.
        unsafe { file(handle) }?.write_ranges(&parts)?;
        given.iter_mut().for_each(|range| range.moved = range.len);
        Ok(all)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_playout_set(handle: *mut SlFile, place: u64) -> c_int {
    // SAFETY: the header asks for an open handle.
    guard(-1, || unsafe { file(handle) }?.set_playout(place_from(place)?).map(|()| 0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_keep(handle: *mut SlFile, len: u64) -> c_int {
    // SAFETY: the header asks for an open handle.
    guard(-1, || unsafe { file(handle) }?.keep(Bytes::new(len)).map(|()| 0))
}

/// A place of a volume, which is not beyond what can be one.
fn place_from(place: u64) -> Result<Bytes, Error> {
    Bytes::from_outside(place).map_err(|_| invalid("no volume has such a place"))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_peek(
    handle: *mut SlFile,
    data: *mut *const c_void,
    len_max: size_t,
) -> ssize_t {
    // SAFETY: the header asks for an open handle and a place for a pointer.
    unsafe { show(handle, data, |file| file.peek(len_max)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_peek_whole(
    handle: *mut SlFile,
    data: *mut *const c_void,
    len: size_t,
) -> ssize_t {
    // SAFETY: the header asks for an open handle and a place for a pointer.
    unsafe { show(handle, data, |file| file.peek_whole(len)) }
}

/// Points to what a look shows.
///
/// # Safety
/// As for `file`; `data` is null or a place for a pointer.
unsafe fn show(
    handle: *mut SlFile,
    data: *mut *const c_void,
    look: impl FnOnce(&mut File) -> Result<Peek<'_>, Error>,
) -> ssize_t {
    guard(-1, || {
        // SAFETY: as the caller promises.
        let (mut file, data) = unsafe { (file(handle)?, data.as_mut()) };
        let data = data.ok_or_else(|| invalid("there is no place for the pointer"))?;
        match look(&mut file)? {
            Peek::Data(bytes) => {
                *data = bytes.as_ptr().cast();
                Ok(bytes.len() as ssize_t)
            }
            Peek::Gap { offset, len } => Err(Error::Gap { offset, len }),
            Peek::End => Ok(0),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_advance(handle: *mut SlFile, len: size_t) -> c_int {
    // SAFETY: the header asks for an open handle.
    guard(-1, || unsafe { file(handle) }?.advance(len).map(|()| 0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_flush(handle: *mut SlFile) -> c_int {
    // SAFETY: the header asks for an open handle.
    guard(-1, || Ok(unsafe { file(handle) }?.flush().map(|()| 0)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_sync(handle: *mut SlFile) -> c_int {
    // SAFETY: the header asks for an open handle.
    guard(-1, || unsafe { file(handle) }?.sync().map(|()| 0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_truncate(handle: *mut SlFile, len: u64) -> c_int {
    // SAFETY: the header asks for an open handle.
    guard(-1, || unsafe { file(handle) }?.set_len(Bytes::new(len)).map(|()| 0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_length(handle: *mut SlFile) -> i64 {
    // SAFETY: the header asks for an open handle.
    guard(-1, || unsafe { file(handle) }?.length().map(|len| len.get() as i64))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_size(handle: *mut SlFile) -> i64 {
    // SAFETY: the header asks for an open handle.
    guard(-1, || Ok(unsafe { file(handle) }?.size().get() as i64))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_durable(handle: *mut SlFile) -> i64 {
    guard(-1, || {
        // SAFETY: the header asks for an open handle.
        let durable = unsafe { file(handle) }?.durable();
        durable.map(|upto| upto.get() as i64).ok_or_else(|| invalid("no stream carries writes"))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_stream(handle: *mut SlFile) -> u64 {
    // SAFETY: the header asks for an open handle.
    guard(0, || Ok(unsafe { file(handle) }?.stream().unwrap_or(0)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_pause(handle: *mut SlFile, nanoseconds: u64) -> c_int {
    guard(-1, || {
        let span = Duration::from_nanos(nanoseconds);
        // SAFETY: the header asks for an open handle.
        unsafe { file(handle) }?.pause(span)?;
        Ok(0)
    })
}

/// `struct sl_sought`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SlSought {
    ready_ns: u64,
    steady_ns: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_sought(handle: *mut SlFile, into: *mut SlSought) -> c_int {
    guard(-1, || {
        // SAFETY: the header asks for an open handle, and a place for the times or NULL.
        let (sought, into) = unsafe { (file(handle)?.sought(), into.as_mut()) };
        let Some(sought) = sought else { return Ok(0) };
        if let Some(into) = into {
            let (ready_ns, steady_ns) = (sought.ready.as_nanos(), sought.steady.as_nanos());
            *into = SlSought { ready_ns, steady_ns };
        }
        Ok(1)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_contract_get(handle: *mut SlFile, into: *mut SlContract) -> c_int {
    guard(-1, || {
        // SAFETY: the header asks for an open handle, and a contract or NULL.
        let (file, into) = unsafe { (file(handle)?, into.as_mut()) };
        let contract = file.contract();
        if let Some(into) = into {
            *into = contract.map_or_else(SlContract::default, |contract| contract.terms().into());
        }
        Ok(contract.is_some().into())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_contract_set(handle: *mut SlFile, asked: *const SlContract) -> c_int {
    guard(-1, || {
        // SAFETY: the header asks for an open handle, and a contract or NULL.
        let (mut file, asked) = unsafe { (file(handle)?, asked.as_ref()) };
        let contract: Option<Contract> = asked.map(SlContract::contract).transpose()?;
        file.set_contract(contract).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_priority_get(handle: *mut SlFile) -> c_int {
    // SAFETY: the header asks for an open handle.
    guard(-1, || Ok(options::number_of(unsafe { file(handle) }?.priority())))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_priority_set(handle: *mut SlFile, number: c_int) -> c_int {
    guard(-1, || {
        // SAFETY: the header asks for an open handle.
        let mut file = unsafe { file(handle) }?;
        let priority = options::priority(u64::try_from(number).unwrap_or(u64::MAX))?;
        file.set_priority(priority).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_in_time_get(handle: *mut SlFile, into: *mut SlInTime) -> c_int {
    guard(-1, || {
        // SAFETY: the header asks for an open handle, and a place for the terms or NULL.
        let (file, into) = unsafe { (file(handle)?, into.as_mut()) };
        let contract = file.in_time();
        if let Some(into) = into {
            *into = contract.map_or_else(SlInTime::default, SlInTime::from);
        }
        Ok(contract.is_some().into())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_in_time_set(handle: *mut SlFile, asked: *const SlInTime) -> c_int {
    guard(-1, || {
        // SAFETY: the header asks for an open handle, and a contract or NULL.
        let (mut file, asked) = unsafe { (file(handle)?, asked.as_ref()) };
        let contract = match asked.map(SlInTime::contract).transpose()? {
            Some(None) => return Err(error::invalid("the contract has no time to answer in")),
            contract => contract.flatten(),
        };
        file.set_in_time(contract).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn sl_error() -> *const c_char {
    error::words()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sl_refused(into: *mut SlRefusal) -> c_int {
    // SAFETY: the header asks for a place for the figures, or NULL.
    let into = unsafe { into.as_mut() };
    match (error::refusal(), into) {
        (Some(refusal), Some(into)) => *into = refusal,
        (Some(_), None) => {}
        (None, _) => return 0,
    }
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn sl_try_again() -> c_int {
    c_int::from(error::may_be_tried_again())
}

#[unsafe(no_mangle)]
pub extern "C" fn sl_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
