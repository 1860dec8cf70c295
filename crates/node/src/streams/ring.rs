//! Streams on a ring (`store`'s `ring.rs`): its writer has it give up extents ahead, and its readers
//! hear of what was given up before them.
//!
//! **The writer.** What is given up can be written again when a commit has made that durable. So a
//! ring gives up enough for all that its writer may come to until then: its window, a block, and
//! what passes at its rate in the longest time from a change to the end of the commit that
//! has it ([`sync_max`]). That goes with the commits that there are for what is written:
//! no transfer of a disk is added. A writer that comes to the end all the same (its contract has just
//! become larger, or the disks are late with a commit) waits for room, and loses nothing.
//!
//! **The readers.** A block that is given up is not asked for; one that is with a disk when it is given
//! up may come to be other bytes, and is not told. A reader that comes to such blocks is told a gap,
//! of as many as its window has in a row, and goes on behind it at once: gaps cost it nothing of
//! its rate. What came before it was given up stays in the window, and is told as it was.
//!
//! Invariants: blocks are given up whole (`RING_GRAIN` is the longest), so that a block is held
//! or is not; a gap ends within the window; no block below it is under way.

use crate::api::*;
use crate::commits::times::sync_max;
use crate::core::Core;
use crate::streams::stream::{Slot, Stream};
use crate::volumes::rings::ahead;
use core::ops::Range;
use store::{EXTENT, RING_GRAIN, Volume, VolumeId};
use units::{Bytes, Instant};

/// What a block failed with that was given up: `ESTALE` of Linux.
const GIVEN_UP: DeviceError = DeviceError(116);

impl Core {
    /// A ring has given up these bytes: what is kept of them is void, and nothing of them moves.
    pub(crate) fn gave_up(&mut self, now: Instant, volume: VolumeId, range: &Range<Bytes>) {
        self.writes.note_change_of(volume, range);
        let (first, end) = (range.start / EXTENT, range.end / EXTENT);
        self.abandon_moves_of(|one| one.volume == volume && (first..end).contains(&one.index));
        self.changed(now);
    }
}

impl Stream {
    fn on<'a>(&self, core: &'a Core) -> &'a Volume {
        core.store.volume(self.volume).expect("open volumes stay")
    }

    /// Writer: the ring gives up what it takes to go on.
    pub(crate) fn give_up_ahead(&mut self, core: &mut Core, now: Instant) {
        let volume = self.on(core);
        if !volume.is_ring() || !self.mode.writes() || self.closing {
            return;
        }
        let window = self.window.memory(&self.contract);
        let wanted = self.position + ahead(&self.contract, window, sync_max(&core.config));
        // What is being written is never given up.
        let held = self.position.min(volume.length()).round_down(RING_GRAIN);
        let most = held + volume.size();
        if let Some(range) = core.store.give_up(self.volume, wanted.min(most)) {
            core.gave_up(now, self.volume, &range);
        }
        if core.store.writable_end(self.volume) < (self.position + window).min(most) {
            core.commit_soon(now);
        }
    }

    /// Writer: the block may be filled, since what lay in its place is given up durably.
    pub(crate) fn may_fill(&self, core: &Core, block: u64) -> bool {
        let end = self.contract.block * (block + 1);
        !self.on(core).is_ring() || end <= core.store.writable_end(self.volume)
    }

    /// Reader: the ring has given up the block.
    pub(crate) fn is_gone(&self, core: &Core, block: u64) -> bool {
        self.mode == Mode::Read && self.contract.block * block < self.on(core).start()
    }

    /// Reader: what came of a block, where it was not given up meanwhile.
    pub(crate) fn unless_gone(
        &self,
        core: &Core,
        block: u64,
        result: Result<(), (DiskIndex, DeviceError)>,
    ) -> Result<(), (DiskIndex, DeviceError)> {
        if self.is_gone(core, block) { Err((self.disk_of(core, block), GIVEN_UP)) } else { result }
    }

    /// Reader: a block that was given up before it was asked for.
    pub(crate) fn gone(&self, core: &Core, block: u64) -> Slot {
        Slot::Failed(self.disk_of(core, block), GIVEN_UP)
    }

    /// Reader: a gap of so many bytes is told, which begins in this block.
    pub(crate) fn note_gap(&mut self, core: &Core, block: u64, len: Bytes) {
        self.account.gaps += len;
        if self.is_gone(core, block) {
            self.account.overtaken += len;
        }
    }

    /// Reader: where the gap ends that begins in this block: behind it, or behind those that were
    /// given up with it, as far as the window knows of them.
    pub(crate) fn gap_end(&self, core: &Core, block: u64) -> Bytes {
        let is_gap = |&block: &u64| {
            let failed = matches!(self.window.get(block), Some(Slot::Failed(..)));
            failed && self.is_gone(core, block)
        };
        let more = (block..self.window.end()).take_while(is_gap).count() as u64;
        self.contract.block * (block + more.max(1))
    }
}
