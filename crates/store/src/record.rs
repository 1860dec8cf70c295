//! How long a record can be.

use crate::change::SCATTERED_SIZE;
use crate::format;
use crate::recording::{CORNERS, DROPPED_MAX, MORE_CORNERS, OTHERS};
use crate::sizes::BLOCK;
use crate::store::TIMES_MAX;
use units::Bytes;

/// What a commit has to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecordContent {
    /// Bytes of changes other than of watermarks and lengths: volumes made, resized, given
    /// away, served in another way and removed, extents moved, suspect extents.
    pub changes: Bytes,
    /// Extents of which blocks were written for the first time.
    pub extents: u64,
    /// Runs of thin volumes that get places: an extent each, or more.
    pub placed: u64,
    /// Volumes whose length rose.
    pub lengths: u64,
    /// Of these, volumes of which it is noted when they were recorded: those that streams record.
    pub recorded: u64,
}

impl RecordContent {
    /// What the rename of a volume is of [`RecordContent::changes`].
    pub fn rename(name: &str) -> Bytes {
        Bytes::new((format::rename::LEN + name.len()) as u64)
    }
    /// Bytes that are written on each disk at the most: a header, what stands
    /// before changes, the changes; for each extent a watermark as a change of its own, and a list of blocks as if
    /// it had holes; for each volume a length, for some when they were recorded, and the times of
    /// some; in whole blocks, and twice.
    pub fn size_max(&self) -> Bytes {
        let fixed = Bytes::new((format::header::LEN + format::changes::LEN) as u64);
        let extents = Bytes::new(format::written::LEN as u64 + SCATTERED_SIZE) * self.extents;
        let placed = Bytes::new(format::placed::LEN as u64) * self.placed;
        let lengths = Bytes::new(format::length::LEN as u64) * self.lengths;
        let times = Bytes::new((format::times::LEN * TIMES_MAX) as u64);
        let recorded = (format::recorded::LEN + format::point::LEN * CORNERS) as u64;
        let recorded = Bytes::new(recorded) * (self.recorded + OTHERS as u64);
        let more = Bytes::new((format::point::LEN * MORE_CORNERS).max(DROPPED_MAX) as u64);
        (fixed + self.changes + extents + placed + lengths + times + recorded + more)
            .round_up(BLOCK)
            * 2
    }
}
