//! Playout windows in memory that two processes share.
//!
//! A window is two pieces of memory: the *data*, to and from which disks transfer,
//! and a *control page* with a ring of [`Piece`]s and a few counters. The daemon's
//! end ([`Daemon`]) tells the program, piece by piece, what it may read or fill; the
//! program's end ([`Client`]) says how far it has come. Neither makes a system call:
//! whoever wants to sleep says so in the control page, and is woken over the socket
//! that lies beside the window ([`page`] says who writes what, and in which order).
//!
//! Invariants: the daemon never reads back what it has published, and believes what
//! the program writes only within what it was told ([`Lie`] otherwise), so that a
//! program can spoil nothing but its own window. No Rust reference is ever made into
//! data on the daemon's side. Memory can neither shrink nor grow under whoever has
//! it mapped.

#![deny(unsafe_op_in_unsafe_fn)]

mod client;
mod daemon;
mod memory;
#[cfg(test)]
mod orders;
pub mod page;

pub use client::{Client, Garbled, Look, Watch};
pub use daemon::{Daemon, Further, Lie};
pub use memory::{Memory, Rights, Ring};
pub use page::{Kind, Mode, Piece, ring_for};
