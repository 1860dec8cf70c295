//! What a stream that reads and writes has more than a writer: what the volume holds is in a
//! block's memory before the program is told of it.
//!
//! ABISS, section 2.3, has one formal service for all accesses of a program, reads and writes,
//! in any order. Such a stream keeps it for both: a program finds every byte within its burst
//! in memory, looks at it, changes it or leaves it as it is; when its playout point has passed
//! a block, that is written as the program left it. So bytes that nobody changed stay, in the
//! same block, in the same 4 KiB, and where a power cut comes between: what is written over a
//! byte is the byte. Under contract it is two tasks on each disk, a read and a write for each
//! block, and a window that is longer by the blocks that are under way (`contract.rs`).
//!
//! Invariants: a block is told of only when it is [`Slot::Loaded`]; nothing of it is read again
//! before it has left the window, since until then memory is newer than the disk; while the
//! stream goes elsewhere or closes nothing is read.

use crate::api::*;
use crate::core::Core;
use crate::limits::EARLY_REQUESTS;
use crate::streams::stream::{Slot, Stream};
use crate::work::BlockPart;
use units::Instant;

impl Stream {
    /// What a block is that the program may fill or change.
    pub(crate) fn fillable(&self) -> Slot {
        if self.mode == Mode::Update { Slot::Loaded } else { Slot::Open }
    }

    /// The first reads of a window that has just been put somewhere, and by when the first
    /// block is in memory and the contract holds in full; a writer's holds at once.
    pub(crate) fn load_window(&mut self, core: &mut Core, now: Instant) -> (Instant, Instant) {
        if self.mode != Mode::Update {
            return (now, now);
        }
        self.primed = false;
        self.load(core, now);
        self.steady = self.steady_from(core, now, false);
        (self.steady, self.steady)
    }

    /// Asks for what the volume holds in blocks of the window, in their order, up to as many at
    /// a time as a reader does.
    pub(crate) fn load(&mut self, core: &mut Core, now: Instant) {
        if self.mode != Mode::Update || self.closing || self.going.is_some() {
            return;
        }
        let size = core.store.volume(self.volume).expect("open volumes stay").size();
        let end = self.window.end().min(size.div_ceil(self.contract.block));
        let needed = self.window.target.saturating_sub(self.contract.blocks_ahead(core.late));
        let moving = self.window.iter().filter(|(_, slot)| matches!(slot, Slot::Moving(_)));
        let moving = moving.count() as u64;
        let mut room = (needed + EARLY_REQUESTS).saturating_sub(moving);
        for block in self.window.first()..end {
            if room == 0 {
                break;
            }
            if self.window.get(block) != Some(&Slot::Open) {
                continue;
            }
            room -= 1;
            let (disk, parts) = self.loading(core, block);
            let id = core.submit_parts(now, disk, self.class(disk), parts);
            *self.window.get_mut(block).expect("looked at above") = Slot::Moving(id);
        }
    }

    /// A block has been read, or a part of it, or the device failed on it: such a one can be
    /// neither shown nor written.
    pub(crate) fn block_loaded(
        &mut self,
        core: &mut Core,
        now: Instant,
        block: u64,
        (part, is_last): (BlockPart, bool),
        result: Result<(), (DiskIndex, DeviceError)>,
    ) {
        let Some(result) = self.of_all_parts(block, (&part, is_last), result) else { return };
        *self.window.get_mut(block).expect("a block of the window") = match result {
            Ok(()) => Slot::Loaded,
            Err((disk, error)) => Slot::Failed(disk, error),
        };
        self.pump_writer(core, now);
    }

    /// Whether the program can be told of this block; a plain writer's is room as it is.
    pub(crate) fn is_loaded(&mut self, core: &mut Core, now: Instant, block: u64) -> bool {
        if self.mode != Mode::Update {
            return true;
        }
        let is_there = self.window.get(block) == Some(&Slot::Loaded);
        is_there && (self.primed || self.begin_playout(core, now))
    }

    /// Reads that no disk has begun are not wanted any more.
    pub(crate) fn take_loads_back(&mut self, core: &mut Core) {
        let told = self.block_at(self.shared.map_or(self.position, |shared| shared.told));
        if self.mode != Mode::Update {
            return;
        }
        // The newest first, so that each is the last that was released.
        for block in (told..self.window.end()).rev() {
            // Where the volume ends within the block, a part of it may wait to be written.
            let is_part = |id| self.partial.is_some_and(|part| part.id == id);
            if let Some(&Slot::Moving(id)) = self.window.get(block)
                && !is_part(id)
                && core.take_back(id)
            {
                *self.window.get_mut(block).expect("looked at above") = Slot::Open;
            }
        }
    }
}
