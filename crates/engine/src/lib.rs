//! The real world: io_uring, clock, threads, memory, emulated disks in real time.
//!
//! One job: drive a [`node::Node`]. A [`Pool`] is a node behind one lock, with a
//! thread for each disk that gives it commands and tells the node of their ends.
//! Programs ask with [`Pool::submit`] and are called back, or wait with
//! [`Pool::call`]; bytes stay in one arena and are reached through [`Chunk`] and
//! [`ChunkMut`], without a copy, or in a shared window ([`Pool::open_window`]). What was acknowledged as durable survives the
//! end of the process at any moment.
//!
//! `unsafe` is in `sys`, `lock`, `aligned`, `chunk` and the backends; each block says
//! why it is sound.

#![deny(unsafe_op_in_unsafe_fn)]

mod aligned;
mod arena;
mod backend;
mod beside;
mod buses;
mod calibrate;
mod callers;
mod chunk;
mod claim;
mod core;
mod create;
mod deliveries;
mod device;
mod disk_file;
mod drives;
mod error;
mod first_gap;
mod host_file;
mod last_words;
mod lateness;
mod lock;
mod metadata;
mod on_disk;
mod pieces;
mod pool;
mod profiling;
mod regions;
mod reply;
mod run_delay;
mod searches;
mod signature;
mod sys;
mod thread;

pub use arena::Pages;
pub use backend::{Backend, Completion, Stage};
pub use beside::beside;
pub use buses::BusSpec;
pub use chunk::{Chunk, ChunkMut};
pub use claim::open_to_others;
pub use create::{CreateOptions, Created};
pub use device::{DeviceSpec, Found};
pub use drives::pool_drives;
pub use error::PoolError;
pub use first_gap::first_gap;
pub use host_file::{BlockDevice, Buffer, FileError, HostFile};
pub use last_words::{keep_panics, say_panics_in_time};
pub use lateness::HostLateness;
pub use lock::{Condvar, Fatal, Mutex, MutexGuard};
pub use on_disk::on_a_disks_thread;
pub use pieces::Pieces;
pub use pool::{Description, Options, Pool, Wrap};
pub use profiling::{ProfileError, ProfileOptions, Profiled, profile};
pub use reply::{Answer, Reply, SharedWindow, Told, WindowReply};
pub use sys::Extent;
pub use thread::{IoClass, deliver_in_time, io_class, keep_time, wake_sharply};
pub use units::Distribution;

/// The time now, as a pool's clock tells it: nanoseconds since the boot of the machine.
pub fn now() -> units::Instant {
    sys::now()
}

/// What this thread has had of its processors so far.
pub fn thread_time() -> units::Duration {
    sys::thread_time()
}

/// The further groups of the process at the other end of a unix socket.
///
/// # Errors
/// Where the system does not say.
pub fn peer_groups(socket: std::os::fd::BorrowedFd<'_>) -> std::io::Result<Vec<u32>> {
    sys::peer_groups(socket)
}

/// Whether the system takes descriptors (`SCM_RIGHTS`) for this unix socket, and for those that a listening
/// one gives, from now on. Otherwise who sends some is refused. To let go of one can take as long as he
/// likes.
///
/// # Errors
/// Where the system cannot be told so (before Linux 6.16): it takes them.
pub fn take_descriptors(socket: std::os::fd::BorrowedFd<'_>, takes: bool) -> std::io::Result<()> {
    sys::take_descriptors(socket, takes)
}
