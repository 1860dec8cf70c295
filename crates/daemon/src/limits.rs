//! The bounds of this room, and the relations between them.

use std::time::Duration;
use units::Bytes;
use wire::frame::{BODY_MAX, OUTSTANDING_MAX};

/// Control connections at once; further ones wait in the listen queue.
pub const CONTROL_CONNECTIONS_MAX: usize = 64;
/// Data connections at once; further ones are told that the daemon is busy.
pub const DATA_CONNECTIONS_MAX: usize = 4096;
/// Longest body of a control request. The longest sensible one is under 1 KiB.
pub const CONTROL_BODY_MAX: usize = 64 << 10;
/// Memory that the unanswered requests of one best-effort connection may hold.
pub const BEST_EFFORT_BYTES_MAX: Bytes = Bytes::mib(8);
/// Unit of the account of [`BEST_EFFORT_BYTES_MAX`]: the smallest transfer.
pub const BEST_EFFORT_UNIT: Bytes = Bytes::kib(4);
/// A stream without a data connection is closed after this time: its program
/// has died between the two sockets, or never meant to come.
pub const ATTACH_WITHIN: Duration = Duration::from_secs(10);
/// A data connection that has not said what it wants is closed after this time.
pub const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// A best-effort program that does not take an answer for so long is let go: its
/// answers hold memory that others wait for. Streams hold only their own window.
pub const ANSWER_TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// The last words to a program are given up after this time: one that does not
/// read must not keep its stream open, or the daemon from stopping.
pub const GOODBYE_WITHIN: Duration = Duration::from_secs(1);
/// After the stop signal, control requests under way get this long to finish.
pub const CONTROL_STOP_WITHIN: Duration = Duration::from_secs(5);
/// After the stop signal, syncing every writer may take this long. systemd's
/// own patience (`TimeoutStopSec` of the unit file) is longer.
pub const STOP_WITHIN: Duration = Duration::from_secs(60);

const _: () = assert!(BEST_EFFORT_BYTES_MAX.get() >= BODY_MAX as u64, "one transfer must fit");
const _: () = assert!(BEST_EFFORT_BYTES_MAX.get() / BEST_EFFORT_UNIT.get() <= u32::MAX as u64);
const _: () = assert!(OUTSTANDING_MAX > 0);
