//! One disk at work: its schedule, the commands that it has been given, and what it is
//! seen to cost.
//!
//! One job: between whoever wants something of a disk and the device. A [`Queue`] takes
//! commands with what they are for ([`Queue::submit`]), says which one the device shall
//! have next ([`Queue::next`]), and is told what has ended ([`Queue::ended`]). Whoever
//! drives it starts the commands. It has no clock, no thread and no I/O; time is an
//! argument. Pools and files outside of pools use this same type. A pool may share it with
//! the disk's own thread ([`Handle`]).
#![no_std]

extern crate alloc;

mod account;
mod attempt;
mod begun;
mod by_key;
mod chunks;
mod classes;
mod filled;
mod gaps;
mod giving_up;
mod handle;
mod in_any_order;
pub mod limits;
mod measured;
mod merging;
mod not_ended;
mod one_command;
mod parts;
mod predictions;
mod queue;

pub use account::{Account, Traffic};
pub use attempt::Attempt;
pub use by_key::ByKey;
pub use chunks::{Chunks, Cut};
pub use handle::{Handle, Shared};
pub use measured::{HostTime, Measuring};
pub use merging::{Merging, Side};
pub use not_ended::Oldest;
pub use predictions::MayGoBeside;
pub use queue::{Device, DeviceTime, Ended, Next, Queue, Rest, Use};
