//! The PCI bus of the thesis's machine (sections 4.1 and 4.3.6): 33 MHz, a word of four bytes
//! a cycle, and around the words of a transaction what it takes to begin and to end it.

use super::raw::MB;
use units::Duration;

/// Bytes that go over in a cycle.
pub(super) const WORD: u64 = 4;
/// What the bus could carry if nothing but words went over it, in MB/s.
pub(super) const FULL: f64 = 33e6 * WORD as f64 / MB;

/// A target that answers in the second cycle, as most do. The thesis does not say what its
/// memory does; this is what meets a write of 64 bytes.
pub(super) const MEDIUM: u64 = 2;
/// Read off figure 4.15, as printed beside it: until the first word comes from memory, since
/// the caches are asked first.
const SNOOP: Duration = Duration::from_nanos(340);
/// Of the same figure: 870 ns less the former and the two runs of words, 210 and 270 ns.
const PAUSE: Duration = Duration::from_nanos(50);
/// After so many words of a transaction EDO memory makes its pause (28 bytes).
const PAUSE_AFTER: u64 = 7;

/// What a read finds behind the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// Of 60 ns, which does not keep up with the bus.
    Edo,
    Sdram,
}

/// So many cycles.
pub(super) fn cycles(count: u64) -> Duration {
    Duration::from_nanos(count * 1_000 / 33)
}

/// The time of words alone.
pub(super) fn words(bytes: u64) -> Duration {
    cycles(bytes.div_ceil(WORD))
}

/// A transaction whose target answers in cycle `select`: the address, the words, and one
/// cycle in which the bus is idle. What memory costs is left out.
pub(super) fn burst(bytes: u64, select: u64) -> Duration {
    cycles(select + bytes.div_ceil(WORD) + 1)
}

/// A write to memory, which goes into the controller's buffer.
pub(super) fn to_memory(bytes: u64) -> Duration {
    burst(bytes, MEDIUM)
}

/// A read of memory that begins with a cache line.
pub(super) fn from_memory(bytes: u64, memory: Memory) -> Duration {
    let pauses = memory == Memory::Edo && bytes.div_ceil(WORD) > PAUSE_AFTER;
    let pause = if pauses { PAUSE } else { Duration::ZERO };
    SNOOP + pause + words(bytes)
}

/// What comes of so many bytes in such a time, in MB/s.
pub(super) fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / MB / time.as_secs_f64()
}
