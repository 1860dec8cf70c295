//! What the description of a volume takes in a checkpoint: the one sum that says what there is room
//! for, and how much of a checkpoint is still to be written.

use crate::change::{
    WATERMARK_SIZE, name_size, ownership_size, run_size, service_size, thin_described, times_size,
    volume_size_max,
};
use crate::ring::ring_described;
use crate::volume::Volume;

/// What volumes take in a checkpoint at the most, however their watermarks come to lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Bytes, but for extents that were written with holes.
    pub(crate) counted: u64,
    /// The same, without what is kept for longer names.
    pub(crate) bare: u64,
    /// Extents that were written with holes.
    pub(crate) scattered: u64,
}

impl Taken {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            counted: self.counted + other.counted,
            bare: self.bare + other.bare,
            scattered: self.scattered + other.scattered,
        }
    }
    /// A volume takes this where it took that.
    pub(crate) fn changed(self, from: Self, to: Self) -> Self {
        Self {
            counted: self.counted + to.counted - from.counted,
            bare: self.bare + to.bare - from.bare,
            scattered: self.scattered + to.scattered - from.scattered,
        }
    }
}

impl Volume {
    pub(crate) fn taken_of_checkpoint(&self) -> Taken {
        let watermarks = self.extents() * WATERMARK_SIZE;
        Taken {
            counted: self.described_max() + watermarks,
            bare: self.described_bare() + watermarks,
            scattered: self.scattered.len() as u64,
        }
    }
    /// Bytes that its description takes in a checkpoint at the most, but for watermarks, and for
    /// extents that were written with holes.
    pub(crate) fn described_max(&self) -> u64 {
        self.described_by(name_size(self.name.len(), self.ownership))
    }
    /// The same, without what is kept for a longer name.
    pub(crate) fn described_bare(&self) -> u64 {
        self.described_by(self.name.len())
    }
    fn described_by(&self, name: usize) -> u64 {
        let runs = self.slots.iter().map(|slot| slot.runs()).sum();
        volume_size_max(name, self.slots.len(), runs, 0)
            + ownership_size(self.ownership)
            + service_size(self.service)
            + run_size(self.placement.run)
            + thin_described((self.placement.thin, self.is_ring()), self.slots.len())
            + times_size(self.times)
            + ring_described(self.ring)
            + self.recorded.size()
    }
}
