//! The structs of the header, and how a file is opened by them.
//!
//! Invariant: each struct has the fields of the one in `include/slackline.h`, in its
//! order.

use crate::error::invalid;
use client::control::{self, Priority};
use client::units::{Bytes, Duration, Rate};
use client::{Contract, Error, File, InTime, OpenOptions};
use libc::{c_char, c_int};
use std::ffi::CStr;

/// `struct sl_contract`: zero is what was not said.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SlContract {
    rate: u64,
    block: u64,
    burst: u64,
}

impl SlContract {
    pub fn contract(&self) -> Result<Contract, Error> {
        if self.rate == 0 {
            return Err(invalid("the contract has no rate"));
        }
        let mut contract = Contract::at(Rate::per_second(self.rate));
        if self.block != 0 {
            contract = contract.block(Bytes::new(self.block));
        }
        if self.burst != 0 {
            contract = contract.burst(Bytes::new(self.burst));
        }
        Ok(contract)
    }
}

impl From<control::Contract> for SlContract {
    fn from(terms: control::Contract) -> Self {
        Self {
            rate: terms.rate_bytes_per_second.get(),
            block: terms.block_bytes.get(),
            burst: terms.burst_bytes.get(),
        }
    }
}

/// `struct sl_in_time`: zero is what was not said.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SlInTime {
    len: u64,
    within_ns: u64,
    every_ns: u64,
}

impl SlInTime {
    pub fn contract(&self) -> Result<Option<InTime>, Error> {
        if self.within_ns == 0 {
            let said = self.len != 0 || self.every_ns != 0;
            return if said {
                Err(invalid("the contract has no time to answer in"))
            } else {
                Ok(None)
            };
        }
        let mut contract = InTime::within(Duration::from_nanos(self.within_ns));
        if self.len != 0 {
            contract = contract.of(Bytes::new(self.len));
        }
        if self.every_ns != 0 {
            contract = contract.every(Duration::from_nanos(self.every_ns));
        }
        Ok(Some(contract))
    }
}

impl From<InTime> for SlInTime {
    fn from(contract: InTime) -> Self {
        let InTime { len, within, every } = contract;
        Self { len: len.get(), within_ns: within.as_nanos(), every_ns: every.as_nanos() }
    }
}

/// `struct sl_options`.
#[repr(C)]
pub struct SlOptions {
    socket: *const c_char,
    size: u64,
    contract: SlContract,
    priority: u64,
    in_time: SlInTime,
    update: u64,
    grow_to: u64,
}

/// The priorities, each at its number in the header.
const PRIORITIES: [Option<Priority>; 4] =
    [None, Some(Priority::Interactive), Some(Priority::Normal), Some(Priority::Background)];

/// The priority behind a number of the header.
pub fn priority(number: u64) -> Result<Option<Priority>, Error> {
    let known = PRIORITIES.get(usize::try_from(number).unwrap_or(usize::MAX));
    known.copied().ok_or_else(|| invalid("the priority is none of SL_PRIORITY_..."))
}

/// The number of a priority in the header.
pub fn number_of(priority: Option<Priority>) -> c_int {
    let at = PRIORITIES.iter().position(|known| *known == priority);
    at.expect("the header has them all") as c_int
}

/// Opens a file as `sl_open` says.
///
/// # Safety
/// `target` is null or a string; `options` is null or points to options whose `socket`
/// is null or a string.
pub unsafe fn open(
    target: *const c_char,
    flags: c_int,
    options: *const SlOptions,
) -> Result<File, Error> {
    // SAFETY: as the caller promises.
    let (target, options) = unsafe { (text(target)?, options.as_ref()) };
    let target = target.ok_or_else(|| invalid("the name is NULL"))?;
    let mut open = access(flags)?;
    if let Some(options) = options {
        // SAFETY: as the caller promises.
        if let Some(socket) = unsafe { text(options.socket) }? {
            open.socket(socket);
        }
        if let Some(contract) = options.in_time.contract()? {
            open.in_time(contract);
        }
        if let Some(priority) = priority(options.priority)? {
            open.priority(priority);
        }
        if options.update != 0 {
            if flags & libc::O_ACCMODE != libc::O_RDWR {
                return Err(invalid("only what is open by O_RDWR is updated"));
            }
            open.update(true);
        }
        let terms = &options.contract;
        if [terms.rate, terms.block, terms.burst] != [0; 3] {
            open.contract(terms.contract()?);
        }
        if flags & libc::O_CREAT != 0 && options.size > 0 {
            open.create(Bytes::new(options.size));
        }
        if options.grow_to > 0 {
            open.grow_to(Bytes::new(options.grow_to));
        }
    }
    open.open(target)
}

/// Flags of `open(2)` as options.
fn access(flags: c_int) -> Result<OpenOptions, Error> {
    // What says nothing about a volume.
    let silent = libc::O_CLOEXEC | libc::O_LARGEFILE | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let known = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND | silent;
    if flags & !known != 0 {
        return Err(invalid("a flag is none of those that a volume knows"));
    }
    let mode = flags & libc::O_ACCMODE;
    let mut open = File::options();
    open.read(mode != libc::O_WRONLY).write(mode != libc::O_RDONLY);
    open.truncate(flags & libc::O_TRUNC != 0).append(flags & libc::O_APPEND != 0);
    Ok(open)
}

/// A string of C's; none for null.
///
/// # Safety
/// `text` is null, or ends in a zero byte and stays while the result is used.
unsafe fn text<'a>(text: *const c_char) -> Result<Option<&'a str>, Error> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| invalid("a name is not UTF-8"))
}

/// Flags of `open(2)` for a mode of `fopen(3)`.
///
/// # Safety
/// `mode` is null or a string.
pub unsafe fn flags(mode: *const c_char) -> Result<c_int, Error> {
    // SAFETY: as the caller promises.
    let mode = unsafe { text(mode) }?.unwrap_or_default();
    let (read_too, plain): (Vec<char>, Vec<char>) =
        mode.chars().filter(|c| !matches!(c, 'b' | 'e')).partition(|&c| c == '+');
    let make = libc::O_CREAT;
    let (alone, both) = match plain.as_slice() {
        ['r'] => (libc::O_RDONLY, libc::O_RDWR),
        ['w'] => (libc::O_WRONLY | make | libc::O_TRUNC, libc::O_RDWR | make | libc::O_TRUNC),
        ['a'] => (libc::O_WRONLY | make | libc::O_APPEND, libc::O_RDWR | make | libc::O_APPEND),
        _ => return Err(invalid("the mode is none of r, w, a, r+, w+ and a+")),
    };
    Ok(if read_too.is_empty() { alone } else { both })
}
