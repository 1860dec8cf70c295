//! The parts of a flash device: a queue, a curve by direction, and the pauses in
//! which it clears blocks.

use crate::error::ensure;
use crate::{Error, Line};
use alloc::string::ToString;
use units::{Bytes, Duration, SECTOR};

/// A device whose cost depends on size and direction alone, as a service curve.
///
/// A command takes `cost` of the device from the others (see [`Line`]) and spends
/// `latency` in its pipeline beside it, in which others are served. After each
/// `collect_every` of written data the device clears blocks for up to
/// `collect_stall`, in which nothing is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashModel {
    pub(crate) capacity: Bytes,
    pub(crate) read: Line,
    pub(crate) write: Line,
    /// In the pipeline, for reads and writes; up to `spread` more.
    pub(crate) read_latency: Duration,
    pub(crate) write_latency: Duration,
    pub(crate) spread: Duration,
    /// How many commands it takes in at once.
    pub(crate) depth: u32,
    pub(crate) collect_every: Bytes,
    pub(crate) collect_stall: Duration,
    pub(crate) flush: Duration,
    pub(crate) seed: u64,
}

/// The longest time from one pause to the next, at the rate of writes: so that sums of times fit.
const COLLECTS_WITHIN: Duration = Duration::from_secs(30 * 24 * 3_600);

impl FlashModel {
    pub(crate) fn check(&self) -> Result<(), Error> {
        ensure!(
            !self.capacity.is_zero() && self.capacity.is_multiple_of(SECTOR),
            "capacity is {}; give a whole number of sectors",
            self.capacity
        );
        ensure!(
            !self.read.rate.is_zero() && !self.write.rate.is_zero(),
            "read and write need rates above zero"
        );
        ensure!((1..=1_024).contains(&self.depth), "depth is {}; give 1 to 1024", self.depth);
        ensure!(
            !self.collect_every.is_zero(),
            "collect_every is 0; give the bytes written between two pauses"
        );
        let between = self.write.rate.time_for(self.collect_every);
        ensure!(
            between <= COLLECTS_WITHIN,
            "collect_every is {}, which takes {between} to write; give less than it writes in {}",
            self.collect_every,
            COLLECTS_WITHIN
        );
        Ok(())
    }

    pub(crate) fn scaled(&self, capacity: Bytes, name: &str) -> Result<Self, Error> {
        ensure!(
            capacity >= Bytes::MIB,
            "{name} of {capacity} is too small: give at least {}",
            Bytes::MIB.to_string()
        );
        Ok(Self { capacity: capacity.round_down(SECTOR), ..self.clone() })
    }
}
