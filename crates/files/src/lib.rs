//! Contracts on ordinary files, which lie on file systems of others: who may join, and
//! which block of which file is read next.
//!
//! One job: decide. A [`Device`] is everything under contract on one block device, as a
//! state machine without clock, thread or I/O: it is told what happened, asked what to
//! read next ([`Device::next`]) and what programs shall hear ([`Device::poll_output`]).
//! The bytes are its driver's. Admission and order are those of a pool's disks (the same
//! schedule, the same profiles); what is not the same is the promise, because others use
//! the device as they like: `Options::others` is what they are allowed for, and what goes
//! beyond that is counted.
#![no_std]

extern crate alloc;

mod charging;
mod device;
mod host;
mod map;
mod stream;

pub use device::{Device, Next, Options, Output, READS_MAX, Reply};
pub use map::{FileMap, MapError, Piece};
pub use queue::limits::GAP_MAX;
pub use queue::{Account, HostTime, Measuring};
