//! What bounds the emulator, in one place.

use units::{Bytes, Duration};

/// The largest transfer that the kernel hands over at once: 256 pages, as it is set
/// everywhere (`/proc/sys/fs/fuse/max_pages_limit`). Larger ones arrive in parts.
pub(crate) const TRANSFER_MAX: Bytes = Bytes::MIB;
/// Requests of programs that the kernel lets through before it makes them wait; above
/// any queue of a loop device (128) and of a flash device (256).
pub(crate) const IN_FLIGHT_MAX: u16 = 512;
/// How much a drive keeps of what was written and not flushed; it writes the oldest
/// out when there is more. As much as the buffers of large drives.
pub(crate) const UNFLUSHED_MAX: Bytes = Bytes::mib(64);
/// Places that are slow or fail, each; every request is held against each.
pub(crate) const PLACES_MAX: usize = 64;
/// Bad sectors of one order: each is remembered by itself.
pub(crate) const BAD_SECTORS_MAX: u64 = 4_096;
/// How many times as long a command may take in a slow place.
pub(crate) const SLOWER_MAX: u64 = 10_000;
/// The longest stall, and the longest time without power that ends by itself.
pub(crate) const TROUBLE_MAX: Duration = Duration::from_secs(3_600);
/// So much of a wait is spun through, since timers are late by about as much.
pub(crate) const SPIN: Duration = Duration::from_micros(60);
/// Threads that take requests from the kernel: one may copy bytes while another
/// takes the next request.
pub(crate) const TAKERS: usize = 2;
