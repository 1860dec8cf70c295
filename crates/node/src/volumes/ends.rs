//! What lies behind the end of a volume's recorded bytes, in the 4 KiB block that they end in.
//!
//! Who reads takes nothing from behind the end. But the end moves on, and then it would be read: what
//! was cut off, or what a write left there that was not synced before a crash. So a block that may hide
//! something is merged with nothing of the disk's from behind the end; and what moves the end over bytes
//! that it does not write itself (a write or a writer further on, a length that is said) waits until
//! they are zeros (`best_effort/behind_end.rs`).
//!
//! Blocks behind that one were written since the last cut by operations that had not ended, or had
//! failed. They are in no record, and nobody reads them, before the end has come to them
//! ([`Writes::raise`](super::writes::Writes::raise), `Volume::before_end` of the store).
//!
//! Invariant: where a stream that writes is open, the end hides nothing that was there before it, but for
//! one on a ring that began before the end: it writes the block that the end is in itself
//! ([`Ends::unclear_for`]).
//!
//! A block may hide something where the pool was opened with it, after a cut, after a write that has
//! failed, and after a stream: until all of it was written once more. Where the disk has failed on the block
//! itself, it does so at once. Where a write has failed elsewhere, its own bytes may lie in the block; but so may
//! those of other writes that have not ended, and these are not to be lost: it hides something when no
//! write of the volume is under way any more.

use crate::limits::BLOCK_MIN;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;
use store::{EXTENT, Store, VolumeId};
use units::Bytes;

#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Volumes, and the blocks that they ended in when these came to hide something, perhaps.
    hiding: BTreeMap<VolumeId, Bytes>,
    /// Volumes of which a write has failed while others were under way.
    failed: BTreeSet<VolumeId>,
}

impl Ends {
    /// Of a pool that was just opened. Cost: one look at each volume.
    pub fn found(store: &Store) -> Self {
        let mut ends = Self::default();
        let volumes: Vec<VolumeId> = store.volumes().map(|volume| volume.id()).collect();
        volumes.into_iter().for_each(|volume| ends.hides(store, volume));
        ends
    }

    /// The block that the volume ends in may hide something from now on.
    pub fn hides(&mut self, store: &Store, volume: VolumeId) {
        match end(store, volume) {
            Some((end, block)) if end > block => self.hiding.insert(volume, block),
            _ => self.hiding.remove(&volume),
        };
    }

    /// The disk has failed on a write of these whole blocks: they may hold anything.
    pub fn may_be_anything(&mut self, store: &Store, volume: VolumeId, blocks: &Range<Bytes>) {
        if end(store, volume).is_some_and(|(_, block)| blocks.contains(&block)) {
            self.hides(store, volume);
        }
    }

    /// A write of the volume has failed: what of it has come to the disk may lie behind the end.
    pub fn write_failed(&mut self, volume: VolumeId) {
        self.failed.insert(volume);
    }

    /// Whether a write has failed since the volume was last [at rest](Self::at_rest).
    pub fn has_failed(&self, volume: VolumeId) -> bool {
        self.failed.contains(&volume)
    }

    /// No write of the volume is under way.
    pub fn at_rest(&mut self, store: &Store, volume: VolumeId) {
        if self.failed.remove(&volume) {
            self.hides(store, volume);
        }
    }

    /// These whole blocks were written, with nothing from behind the end.
    pub fn written(&mut self, volume: VolumeId, blocks: &Range<Bytes>) {
        if self.hiding.get(&volume).is_some_and(|block| blocks.contains(block)) {
            self.hiding.remove(&volume);
        }
    }

    pub fn forget(&mut self, volume: VolumeId) {
        self.hiding.remove(&volume);
        self.failed.remove(&volume);
    }

    /// The block that the volume ends in, and the end, where it may hide something.
    pub fn unclear(&self, store: &Store, volume: VolumeId) -> Option<(Bytes, Bytes)> {
        let known = *self.hiding.get(&volume)?;
        let (end, block) = end(store, volume)?;
        let location = store.locate(volume, block / EXTENT)?;
        let within = block % EXTENT;
        let was_written = location.written.covers(&(within..within + BLOCK_MIN));
        (known == block && end > block && was_written).then_some((block, end))
    }

    /// The same, where it matters to a stream that would write from `start` on. A ring is gone on with in
    /// front of its end, too, where all of that block is written once more: it may go on where the disk
    /// cannot read it.
    pub fn unclear_for(&self, store: &Store, volume: VolumeId, start: Bytes) -> Option<Bytes> {
        let (block, end) = self.unclear(store, volume)?;
        let is_ring = store.volume(volume)?.is_ring();
        (!is_ring || start >= end).then_some(block)
    }

    /// How much of this block is the volume's: no less than what was written to it since it hides
    /// nothing.
    pub fn upto(&self, store: &Store, volume: VolumeId, block: Bytes) -> Bytes {
        match self.unclear(store, volume) {
            Some((hiding, end)) if hiding == block => end - block,
            _ => BLOCK_MIN,
        }
    }
}

/// Where the volume ends, and the block that this is in.
fn end(store: &Store, volume: VolumeId) -> Option<(Bytes, Bytes)> {
    let length = store.volume(volume)?.length();
    Some((length, length.round_down(BLOCK_MIN)))
}
