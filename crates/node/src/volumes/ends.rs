//! What lies behind the end of a volume's recorded bytes, in the 4 KiB block that they end in.
//!
//! Who reads takes nothing from behind the end. But the end moves on, and then it would be read: what
//! was cut off, or what a write left there that was not synced before a crash. So a block that is
//! merged takes nothing of the disk's from behind the end; and what moves the end over bytes that it
//! does not write itself (a write or a writer further on, a length that is said) waits until they are
//! zeros (`best_effort/behind_end.rs`).
//!
//! Invariant: a volume has an entry here only where zeros lie behind it, in its block.

use alloc::collections::BTreeMap;
use store::{Store, VolumeId};
use units::Bytes;

use crate::limits::BLOCK_MIN;

/// Where the bytes end that writes have left on disks since the pool was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends(BTreeMap<VolumeId, Bytes>);

impl Ends {
    /// The end of what is recorded, or was written by operations that have not ended.
    pub fn of(&self, store: &Store, volume: VolumeId) -> Bytes {
        let recorded = store.volume(volume).map_or(Bytes::ZERO, store::Volume::length);
        self.0.get(&volume).map_or(recorded, |&end| end.max(recorded))
    }

    /// A block that was merged, or whole ones, were written up to here.
    pub fn written(&mut self, store: &Store, volume: VolumeId, upto: Bytes) {
        if upto > self.of(store, volume) {
            self.0.insert(volume, upto);
        }
    }

    /// Zeros lie behind the end.
    pub fn cleared(&mut self, store: &Store, volume: VolumeId) {
        let end = self.of(store, volume);
        self.0.insert(volume, end);
    }

    /// Some of the volume is cut off, or all of it.
    pub fn cut(&mut self, volume: VolumeId) {
        self.0.remove(&volume);
    }

    /// The block that the volume ends in, where it is not known that zeros lie behind the end.
    pub fn unclear(&self, store: &Store, volume: VolumeId) -> Option<Bytes> {
        let end = self.of(store, volume);
        let block = end.round_down(BLOCK_MIN);
        // A ring ends where its one writer is, which begins at a whole block.
        if end == block || self.0.get(&volume) == Some(&end) || store.volume(volume)?.is_ring() {
            return None;
        }
        let location = store.locate(volume, block / store::EXTENT)?;
        let within = block % store::EXTENT;
        location.written.covers(&(within..within + BLOCK_MIN)).then_some(block)
    }
}
