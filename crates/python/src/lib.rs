//! The library for Python: a handle for `slackline/__init__.py`, which makes a file of
//! it.
//!
//! Invariants: every call that may wait does so without the interpreter's lock, and
//! takes the handle's lock only then; while a view of the bytes is in use, no call moves
//! them; a call on a closed handle is a `ValueError`; one by the handler of a signal on the handle
//! whose call it has interrupted is a `RuntimeError`, as with Python's own buffers.
#![allow(unsafe_code)] // what Python hands over as a buffer is a pointer

mod error;
mod interrupt;
mod lent;
mod view;

use client::control::Priority;
use client::units::{Bytes, Duration, Outside, Rate};
use client::{Contract, File, InTime, Peek, Piece, ReadRange};
use error::{Error, raise};
use lent::Lent;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyString};
use std::io::{Read, Seek, SeekFrom, Write};
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use view::View;

/// An open volume.
#[pyclass(frozen, module = "slackline._slackline")]
pub struct Handle {
    file: Mutex<Option<File>>,
    /// The thread that has the file.
    user: Mutex<Option<ThreadId>>,
    /// It has it no more.
    freed: Condvar,
    /// Views that are in use.
    views: AtomicUsize,
}

/// Why a call gives nothing.
enum Failure {
    Closed,
    Viewed,
    Nested,
    File(client::Error),
}

impl<E: Into<client::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::File(error.into())
    }
}

impl Failure {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Closed => PyValueError::new_err("the file is closed"),
            Self::Viewed => {
                PyBufferError::new_err("a view of the bytes is in use; release it first")
            }
            Self::Nested => {
                PyRuntimeError::new_err("a handler of a signal has interrupted a call of this file")
            }
            Self::File(error) => raise(py, &error),
        }
    }
}

/// The file, for one call.
struct Taken<'a> {
    file: MutexGuard<'a, Option<File>>,
    handle: &'a Handle,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.handle.user() = None;
        self.handle.freed.notify_one();
    }
}

/// Whoever waits for another thread's call looks so often whether a signal has come.
const LOOKS: std::time::Duration = std::time::Duration::from_millis(50);

impl Handle {
    /// The file, when no other thread has it.
    fn take(&self) -> Result<Taken<'_>, Failure> {
        let own = Some(std::thread::current().id());
        let mut user = self.user();
        while user.is_some() {
            if *user == own {
                return Err(Failure::Nested);
            }
            let waited = self.freed.wait_timeout(user, LOOKS);
            let (freed, ended) = waited.unwrap_or_else(PoisonError::into_inner);
            drop(freed); // a handler may look at the file
            if ended.timed_out() && interrupt::run_handlers() {
                return Err(Failure::File(client::Error::Interrupted));
            }
            user = self.user();
        }
        *user = own;
        drop(user);
        // Whoever had it has let it go by now, or is about to.
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Taken { file, handle: self })
    }

    fn user(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the file something, without the interpreter's lock.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&mut File) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut taken = self.take()?;
            what(taken.file.as_mut().ok_or(Failure::Closed)?)
        });
        done.map_err(|failure| failure.raise(py))
    }

    /// The same for what moves bytes.
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&mut File) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        self.ask(py, |file| {
            if self.views.load(Ordering::Acquire) > 0 {
                return Err(Failure::Viewed);
            }
            what(file)
        })
    }
}

#[pymethods]
impl Handle {
    #[new]
    #[pyo3(signature = (target, flags, rate=None, block=None, burst=None, size=None, socket=None, priority=None, within=None, update=false, grow_to=None))]
    #[allow(clippy::too_many_arguments)] // Python's are named
    fn new(
        py: Python<'_>,
        target: &str,
        flags: i32,
        rate: Option<&Bound<'_, PyAny>>,
        block: Option<&Bound<'_, PyAny>>,
        burst: Option<&Bound<'_, PyAny>>,
        size: Option<&Bound<'_, PyAny>>,
        socket: Option<std::path::PathBuf>,
        priority: Option<&str>,
        within: Option<&str>,
        update: bool,
        grow_to: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        check_flags(flags)?;
        let mode = flags & libc::O_ACCMODE;
        let mut open = File::options();
        open.read(mode != libc::O_WRONLY).write(mode != libc::O_RDONLY);
        open.truncate(flags & libc::O_TRUNC != 0).append(flags & libc::O_APPEND != 0);
        if update && mode != libc::O_RDWR {
            return Err(PyValueError::new_err(
                "only what is open to be read and written is updated",
            ));
        }
        open.update(update);
        if let Some(socket) = socket {
            open.socket(socket);
        }
        if let Some(priority) = priority_named(priority)? {
            open.priority(priority);
        }
        if let Some(in_time) = in_time(within)? {
            open.in_time(in_time);
        }
        if let Some(rate) = rate {
            open.contract(contract(rate, block, burst)?);
        } else if block.or(burst).is_some() {
            return Err(PyValueError::new_err(
                "a contract has a rate: name it, too, or no block and no burst",
            ));
        }
        if let (Some(size), true) = (size, flags & libc::O_CREAT != 0) {
            open.create(bytes(size)?);
        }
        if let Some(limit) = grow_to {
            open.grow_to(bytes(limit)?);
        }
        let file = py.detach(|| open.open(target)).map_err(|error| raise(py, &error))?;
        Ok(Self {
            file: Mutex::new(Some(file)),
            user: Mutex::default(),
            freed: Condvar::new(),
            views: AtomicUsize::new(0),
        })
    }

    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let lent = Lent::to_fill(buffer)?;
        let (data, len) = (lent.address(), lent.len());
        self.change(py, |file| {
            if len == 0 {
                return Ok(0);
            }
            // SAFETY: the loan lasts until the end of this call, so that its memory
            // stays; it is writable and in one piece. A program that uses the same bytes
            // from another thread meanwhile finds some of them changed, as with any file.
            let buffer = unsafe { std::slice::from_raw_parts_mut(data as *mut u8, len) };
            Ok(file.read(buffer)?)
        })
    }

    /// Writes what stands behind the first `start` bytes.
    #[pyo3(signature = (buffer, start=0))]
    fn write(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, start: usize) -> PyResult<usize> {
        let lent = Lent::to_read(buffer)?;
        let (data, len) = (lent.address(), lent.len());
        self.change(py, |file| {
            if start >= len {
                return Ok(0);
            }
            // SAFETY: the loan lasts until the end of this call, so that its memory
            // stays; it is in one piece. What another thread changes in it meanwhile is
            // written as it is found.
            let all = unsafe { std::slice::from_raw_parts(data as *const u8, len) };
            Ok(file.write(&all[start..])?)
        })
    }

    fn seek(&self, py: Python<'_>, offset: i64, whence: i32) -> PyResult<u64> {
        let to = match (whence, u64::try_from(offset)) {
            (libc::SEEK_SET, Ok(place)) => SeekFrom::Start(place),
            // Nothing is before the start, wherever the file is.
            (libc::SEEK_SET, Err(_)) => SeekFrom::Current(i64::MIN),
            (libc::SEEK_CUR, _) => SeekFrom::Current(offset),
            (libc::SEEK_END, _) => SeekFrom::End(offset),
            _ => return Err(PyValueError::new_err("whence is none of 0, 1 and 2")),
        };
        self.change(py, |file| Ok(file.seek(to)?))
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |file| Ok(file.position().get()))
    }

    #[pyo3(signature = (len_max, whole=false))]
    fn peek<'py>(
        slf: &Bound<'py, Self>,
        len_max: usize,
        whole: bool,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let (py, handle) = (slf.py(), slf.get());
        let look = |file: &mut File| {
            let seen = if whole { file.peek_whole(len_max) } else { file.peek(len_max) };
            Ok::<_, Failure>(match seen? {
                Peek::Data(bytes) => Seen::Bytes(bytes.as_ptr() as usize, bytes.len()),
                Peek::Gap { offset, len } => Seen::Gap(offset, len),
                Peek::End => Seen::End,
            })
        };
        let (data, len) = handle.change(py, |file| match look(file)? {
            Seen::Bytes(data, len) => {
                debug_assert!(len > 0, "what has no bytes is the end");
                // From here on nothing moves the bytes, until the view is gone.
                handle.views.fetch_add(1, Ordering::AcqRel);
                Ok((data, len))
            }
            Seen::Gap(offset, len) => Err(client::Error::Gap { offset, len }.into()),
            Seen::End => Ok((std::ptr::NonNull::<u8>::dangling().as_ptr() as usize, 0)),
        })?;
        let view = Bound::new(py, View::new(slf.clone().unbind(), data, len))?;
        PyMemoryView::from(view.as_any())
    }

    fn read_at(&self, py: Python<'_>, place: u64, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let lent = Lent::to_fill(buffer)?;
        let (data, len) = (lent.address(), lent.len());
        let place = place_from(place)?;
        // What is held may be moved to make room for what comes.
        self.change(py, |file| {
            if len == 0 {
                return Ok(0);
            }
            // SAFETY: as in `readinto`.
            let buffer = unsafe { std::slice::from_raw_parts_mut(data as *mut u8, len) };
            match file.read_at(place, buffer)? {
                Piece::Data(read) => Ok(read),
                Piece::Gap { offset, len } => Err(client::Error::Gap { offset, len }.into()),
                Piece::End => Ok(0),
            }
        })
    }

    fn write_at(&self, py: Python<'_>, place: u64, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let lent = Lent::to_read(buffer)?;
        let (data, len) = (lent.address(), lent.len());
        let place = place_from(place)?;
        self.change(py, |file| {
            if len == 0 {
                return Ok(0);
            }
            // SAFETY: as in `write`.
            let all = unsafe { std::slice::from_raw_parts(data as *const u8, len) };
            Ok(file.write_at(place, all)?)
        })
    }

    fn read_ranges(
        &self,
        py: Python<'_>,
        ranges: Vec<(u64, Bound<'_, PyAny>)>,
    ) -> PyResult<Vec<usize>> {
        let lent: Vec<_> = lent(&ranges, Lent::to_fill)?;
        let memory: Vec<_> =
            lent.iter().map(|(place, lent)| (*place, lent.address(), lent.len())).collect();
        if !client::are_apart(memory.iter().map(|&(_, data, len)| (data, len))) {
            return Err(PyValueError::new_err(
                "two ranges have the same memory; give each its own",
            ));
        }
        self.ask(py, |file| {
            let mut all: Vec<_> = memory
                .iter()
                .map(|&(place, data, len)| {
                    let data = if len == 0 { std::ptr::dangling_mut() } else { data as *mut u8 };
                    // SAFETY: as in `readinto`; no two of them overlap.
                    let into = unsafe { std::slice::from_raw_parts_mut(data, len) };
                    ReadRange::new(place, into)
                })
                .collect();
            file.read_ranges(&mut all)?;
            Ok(all.iter().map(|range| range.filled).collect())
        })
    }

    fn write_ranges(
        &self,
        py: Python<'_>,
        ranges: Vec<(u64, Bound<'_, PyAny>)>,
    ) -> PyResult<usize> {
        let lent: Vec<_> = lent(&ranges, Lent::to_read)?;
        let memory: Vec<_> =
            lent.iter().map(|(place, lent)| (*place, lent.address(), lent.len())).collect();
        self.change(py, |file| {
            let all: Vec<_> = memory
                .iter()
                .map(|&(place, data, len)| {
                    let data = if len == 0 { std::ptr::dangling() } else { data as *const u8 };
                    // SAFETY: as in `write`.
                    (place, unsafe { std::slice::from_raw_parts(data, len) })
                })
                .collect();
            file.write_ranges(&all)?;
            Ok(all.iter().map(|(_, bytes)| bytes.len()).sum())
        })
    }

    fn set_playout(&self, py: Python<'_>, place: u64) -> PyResult<()> {
        let place = place_from(place)?;
        self.change(py, |file| Ok(file.set_playout(place)?))
    }

    fn keep(&self, py: Python<'_>, len: &Bound<'_, PyAny>) -> PyResult<()> {
        let len = bytes(len)?;
        self.change(py, |file| Ok(file.keep(len)?))
    }

    fn advance(&self, py: Python<'_>, len: usize) -> PyResult<()> {
        self.change(py, |file| Ok(file.advance(len)?))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |file| Ok(file.flush()?))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |file| Ok(file.sync()?))
    }

    fn truncate(&self, py: Python<'_>, len: u64) -> PyResult<()> {
        self.change(py, |file| Ok(file.set_len(Bytes::new(len))?))
    }

    fn length(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |file| Ok(file.length()?.get()))
    }

    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |file| Ok(file.size().get()))
    }

    fn durable(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.ask(py, |file| Ok(file.durable().map(Bytes::get)))
    }

    fn pause(&self, py: Python<'_>, nanoseconds: u64) -> PyResult<()> {
        self.change(py, |file| Ok(file.pause(Duration::from_nanos(nanoseconds))?))
    }

    fn sought(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        let sought = self.ask(py, |file| Ok(file.sought()))?;
        Ok(sought.map(|sought| (sought.ready.as_nanos(), sought.steady.as_nanos())))
    }

    fn stream(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.ask(py, |file| Ok(file.stream()))
    }

    fn contract(&self, py: Python<'_>) -> PyResult<Option<(u64, u64, u64)>> {
        let terms = self.ask(py, |file| Ok(file.contract().map(|contract| contract.terms())))?;
        Ok(terms.map(|terms| {
            let (block, burst) = (terms.block_bytes, terms.burst_bytes);
            (terms.rate_bytes_per_second.get(), block.get(), burst.get())
        }))
    }

    #[pyo3(signature = (rate, block=None, burst=None))]
    fn set_contract(
        &self,
        py: Python<'_>,
        rate: &Bound<'_, PyAny>,
        block: Option<&Bound<'_, PyAny>>,
        burst: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let contract = contract(rate, block, burst)?;
        self.change(py, |file| Ok(file.set_contract(Some(contract))?))
    }

    fn drop_contract(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |file| Ok(file.set_contract(None)?))
    }

    fn priority(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        let priority = self.ask(py, |file| Ok(file.priority()))?;
        let found = PRIORITIES.iter().find(|(_, known)| Some(*known) == priority);
        Ok(found.map(|(name, _)| *name))
    }

    #[pyo3(signature = (priority))]
    fn set_priority(&self, py: Python<'_>, priority: Option<&str>) -> PyResult<()> {
        let priority = priority_named(priority)?;
        self.ask(py, |file| Ok(file.set_priority(priority)?))
    }

    fn in_time(&self, py: Python<'_>) -> PyResult<Option<(u64, u64, u64)>> {
        let contract = self.ask(py, |file| Ok(file.in_time()))?;
        Ok(contract
            .map(|InTime { len, within, every }| (len.get(), within.as_nanos(), every.as_nanos())))
    }

    #[pyo3(signature = (within))]
    fn set_in_time(&self, py: Python<'_>, within: Option<&str>) -> PyResult<()> {
        let contract = in_time(within)?;
        self.ask(py, |file| Ok(file.set_in_time(contract)?))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| {
            let mut taken = self.take()?;
            if self.views.load(Ordering::Acquire) > 0 {
                return Err(Failure::Viewed);
            }
            Ok(taken.file.take().map_or(Ok(()), File::close)?)
        });
        closed.map_err(|failure| failure.raise(py))
    }
}

/// What a look has shown.
enum Seen {
    Bytes(usize, usize),
    Gap(Bytes, Bytes),
    End,
}

/// What is asked for and cannot be done is refused, as the library for C refuses it.
fn check_flags(flags: i32) -> PyResult<()> {
    // What says nothing about a volume.
    let silent = libc::O_CLOEXEC | libc::O_LARGEFILE | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let known = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND | silent;
    if flags & libc::O_EXCL != 0 {
        return Err(PyValueError::new_err(
            "the flag O_EXCL: whether this open has made the volume cannot be told; make it with \
             `slackline volume create`, which refuses a name that another has",
        ));
    }
    match flags & !known {
        0 => Ok(()),
        other => Err(PyValueError::new_err(format!("a volume knows no flag {other:#o}"))),
    }
}

/// The memory of several ranges, each with its place.
fn lent(
    ranges: &[(u64, Bound<'_, PyAny>)],
    lend: impl Fn(&Bound<'_, PyAny>) -> PyResult<Lent>,
) -> PyResult<Vec<(Bytes, Lent)>> {
    ranges.iter().map(|(place, memory)| Ok((place_from(*place)?, lend(memory)?))).collect()
}

/// A place of a volume, which is not beyond what can be one.
fn place_from(place: u64) -> PyResult<Bytes> {
    Bytes::from_outside(place).map_err(|_| PyValueError::new_err("no volume has such a place"))
}

const PRIORITIES: [(&str, Priority); 3] = [
    ("interactive", Priority::Interactive),
    ("normal", Priority::Normal),
    ("background", Priority::Background),
];

fn priority_named(name: Option<&str>) -> PyResult<Option<Priority>> {
    let Some(name) = name else { return Ok(None) };
    let found = PRIORITIES.iter().find(|(known, _)| *known == name);
    found.map(|(_, priority)| Some(*priority)).ok_or_else(|| {
        PyValueError::new_err(format!("{name:?} is none of interactive, normal and background"))
    })
}

/// A contract of answers in time as a text.
fn in_time(text: Option<&str>) -> PyResult<Option<InTime>> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: client::NoInTime| PyValueError::new_err(error.to_string()))
}

fn contract(
    rate: &Bound<'_, PyAny>,
    block: Option<&Bound<'_, PyAny>>,
    burst: Option<&Bound<'_, PyAny>>,
) -> PyResult<Contract> {
    let mut contract = Contract::at(Rate::per_second(quantity(rate, Rate::get)?));
    if let Some(block) = block {
        contract = contract.block(bytes(block)?);
    }
    if let Some(burst) = burst {
        contract = contract.burst(bytes(burst)?);
    }
    Ok(contract)
}

fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    quantity(value, Bytes::get).map(Bytes::new)
}

/// A number, or a text with a unit.
fn quantity<T>(value: &Bound<'_, PyAny>, get: impl Fn(T) -> u64) -> PyResult<u64>
where
    T: FromStr<Err: std::fmt::Display>,
{
    match value.cast::<PyString>() {
        Ok(text) => {
            let text = text.to_cow()?;
            let quantity = text.parse().map(get);
            quantity.map_err(|error| PyValueError::new_err(format!("{text:?}: {error}")))
        }
        Err(_) => value.extract(),
    }
}

#[pymodule]
fn _slackline(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interrupt::begin();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add_class::<Handle>()
}
