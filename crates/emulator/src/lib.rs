//! A drive model as a file, in real time: served over FUSE, so that the kernel's own
//! schedulers, its file systems and any program can be run against it.
//!
//! One job: answer each read, write and sync of one file when the modelled drive
//! would have. [`Emulator::start`] mounts a directory with `disk.img` (the disk),
//! `control` (faults on request, see [`Order`]), `status` and `status.json` (what
//! was served, and how late the emulator itself was).
//!
//! `device` is the drive with time as an argument and has all that is decided;
//! `medium` its bytes; `server` brings clock and threads; `files` speaks FUSE.

mod clock;
mod device;
mod error;
mod files;
mod limits;
mod medium;
mod order;
mod random;
mod reply;
mod server;
mod shared;
mod status;

pub use error::Error;
pub use order::{Failure, HELP as ORDERS, Later, Order, Place, Wrong};
pub use server::{Emulator, Options};
pub use status::{Served, Status};
