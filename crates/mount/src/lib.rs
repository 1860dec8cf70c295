//! Volumes as files: a directory whose files are the volumes of a pool, over FUSE, in a process of
//! its own that uses the client library as any program does.
//!
//! `tree` knows paths and inodes, `attributes` what the kernel is told of a file, `file` the bytes
//! of an open one, `overlaps` its reads and writes at the same time, `going` which files are opened and
//! removed at this moment, `known` which inodes the kernel has, `connections` the ways to the daemon, `contracts` the extended attributes,
//! `unsynced` what is not durable yet, `given_back` space that is not free yet, `slow` reads that wait for a stream, and
//! `server` speaks FUSE. Invariants: a call of a program that the daemon has answered is seen by
//! everybody, whichever door he uses; one that `fsync` has answered is durable, or `fsync` has
//! said that it is not; no call waits for a daemon that hangs for longer than
//! [`ANSWER_WITHIN`].

mod attributes;
mod cached;
mod connections;
pub mod contracts;
mod file;
mod given_back;
mod going;
mod known;
mod lengths;
mod lock;
mod overlaps;
mod removed;
mod server;
mod session;
mod slow;
pub mod tree;
mod unsynced;

pub use session::{Mount, NotMounted, NotUnmounted, Options, Unmounter, pool_at, unmount};

use std::time::Duration;

/// What a call waits for an answer of a daemon that hangs; then it fails with `EIO`.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// What a call waits for a daemon that is not there to come back, before it fails with `EIO`.
pub const BACK_WITHIN: Duration = Duration::from_secs(5);
