//! The first bytes of a reader that has just begun or has jumped, ahead of its blocks.
//!
//! A block may take a tenth of a second and more to be transferred, and on a busy disk it has
//! time until its deadline. So a short piece of the first block, from the playout point on, is
//! read by itself, and told as soon as it is there; then as much again as is there, and so on,
//! until the disk has begun with the stream's own request for the block, which then reads only
//! the rest. These reads go in the slack, as interactive best effort does: they make no
//! contract late, take turns with others who wait, and nothing is promised of them. From when
//! on the contract holds does not depend on them. A drive that takes several commands at a time
//! is not asked for them.
//!
//! Invariants: an early read lies in one run of the disk, and in one block, for which the
//! stream's own request waits when the read is asked for. What was told is not transferred
//! again: the own request reads what lies behind it, and where it has begun before an early
//! read has ended, that read is not told. While an early read is with the disk, nothing of its
//! block is told but what other early reads have brought, and its memory is used for nothing
//! else.

use crate::api::*;
use crate::core::Core;
use crate::limits::{EARLY_FIRST, EARLY_LEAST};
use crate::streams::stream::{Early, Slot, Stream};
use crate::volumes::slack::in_slack;
use crate::work::Owner;
use store::BLOCK;
use units::{Bytes, Direction, Duration, Instant, Lba};

impl Stream {
    /// Asks for the first bytes at the playout point, where all of their block takes longer.
    pub(crate) fn begin_early(&mut self, core: &mut Core, now: Instant) {
        let block = self.block_at(self.position);
        if self.early.is_some() || self.contract.block < EARLY_LEAST {
            return;
        }
        let start = self.position.round_down(BLOCK);
        self.early = Some(Early { block, there: start..start, next: None });
        self.read_early(core, now);
        self.early.take_if(|early| early.next.is_none());
    }

    /// What the first early read takes at the most, where there is one.
    pub(crate) fn early_takes(&self, core: &Core, disk: DiskIndex) -> Duration {
        if self.early.is_none() {
            return Duration::ZERO;
        }
        let seen = &core.disks[disk.as_usize()].queue;
        let whole = Lba::new(0)..Lba::containing(seen.capacity());
        seen.profile().worst(whole, EARLY_FIRST, Direction::Read) + seen.gap()
    }

    /// Asks for as much again as is there, if the block itself is not being read yet.
    fn read_early(&mut self, core: &mut Core, now: Instant) {
        let Some(Early { block, there, next: None }) = self.early.clone() else { return };
        let Some(&Slot::Moving(own)) = self.window.get(block) else { return };
        if self.is_gone(core, block) {
            return;
        }
        let block_end = self.contract.block * (block + 1);
        // What is told is whole: of a last part of 4 KiB more may be written.
        let length = core.store.volume(self.volume).expect("open volumes stay").length();
        let end = block_end.min(length.round_down(BLOCK));
        let wanted = (there.end - there.start).max(EARLY_FIRST);
        let upto = (there.end + wanted).min(end);
        // The rest is the block's own; a read that is nearly all of it gains nothing.
        if core.waits_as(own).is_none() || upto <= there.end || upto + wanted > end {
            return;
        }
        let (disk, action, upto) = self.reading_early(core, there.end..upto);
        // A drive that has several commands at a time could be given both, into the same memory;
        // one that has them is soon done with a block.
        let takes_several = core.disks[disk.as_usize()].queue.profile().depth() > 1;
        if takes_several || action.needs_no_disk() {
            return;
        }
        let place = self.place(self.contract.block * block);
        let owner = Owner::Early { stream: self.id, block, place };
        let class = in_slack(Priority::Interactive, self.volume);
        let id = core.submit(now, disk, class, action, owner);
        self.early = Some(Early { block, there, next: Some((id, upto)) });
    }

    /// An early read has ended.
    pub(crate) fn early_ended(
        &mut self,
        core: &mut Core,
        now: Instant,
        (block, place): (u64, Bytes),
        is_good: bool,
        has_writer: bool,
    ) {
        let is_good = is_good && !self.is_gone(core, block);
        if !self.stray_ended(core, place)
            && let Some((_, upto)) = self.early.as_mut().and_then(|early| early.next.take())
        {
            let is_noted = is_good && self.note_early(core, now, block, upto);
            self.forget_early();
            if is_noted && !self.closing {
                self.read_early(core, now);
            }
        }
        self.pump_reader(core, now, has_writer);
    }

    /// The block's own request need not bring what has come up to here, where it has not begun and
    /// may leave that out. Where it brings it again, no more is read early.
    fn note_early(&mut self, core: &mut Core, now: Instant, block: u64, upto: Bytes) -> bool {
        let Some(&Slot::Moving(own)) = self.window.get(block) else { return false };
        if core.waits_as(own).is_none() {
            return false;
        }
        let (disk, rest) = self.reading_from(core, block, upto - self.contract.block * block);
        core.writes.kept.expect_no_more(self.volume, own);
        let is_less = core.redirect(now, own, self.class(disk), rest);
        if let Some(early) = self.early.as_mut().filter(|_| is_less) {
            early.there.end = upto;
        }
        is_less
    }

    /// Where the bytes from `offset` on end that are there, although their block is not.
    pub(crate) fn early_upto(&self, offset: Bytes) -> Option<Bytes> {
        let early = self.early.as_ref().filter(|early| early.there.contains(&offset))?;
        let is_whole = matches!(self.window.get(early.block), Some(Slot::Ready));
        (!is_whole || early.next.is_some()).then_some(early.there.end)
    }

    /// The block is there or lost, and an early read of it is with the disk still.
    pub(crate) fn is_early_with_disk(&self, block: u64) -> bool {
        let is_over = matches!(self.window.get(block), Some(Slot::Ready | Slot::Failed(..)));
        is_over && self.early_with_disk() == Some(block)
    }

    /// The block has come, or will not: what waits to be read of it early is not wanted.
    pub(crate) fn stop_early(&mut self, core: &mut Core, block: u64) {
        let Some(early) = self.early.as_mut().filter(|early| early.block == block) else { return };
        early.next.take_if(|(id, _)| core.cancel(*id));
        self.forget_early();
    }

    /// Nothing needs to be known any more of early bytes before which nothing is missing, once
    /// the block is there.
    fn forget_early(&mut self) {
        let Some(early) = &self.early else { return };
        let is_whole = early.there.start == self.contract.block * early.block
            && self.window.get(early.block) == Some(&Slot::Ready);
        if early.next.is_none() && (early.there.is_empty() || is_whole) {
            self.early = None;
        }
    }

    /// No early read goes on, whatever it is of.
    pub(crate) fn stop_all_early(&mut self, core: &mut Core) {
        if let Some(block) = self.early.as_ref().map(|early| early.block) {
            self.stop_early(core, block);
        }
    }

    /// The block for which an early read is with the disk, or waits for it.
    pub(crate) fn early_with_disk(&self) -> Option<u64> {
        let early = self.early.as_ref()?;
        early.next.map(|_| early.block)
    }

    /// The block of which the own request reads only what lies behind early bytes: it is read
    /// anew, unless the program goes to a place behind where they begin.
    pub(crate) fn incomplete(&self, to: Bytes) -> Option<u64> {
        let early = self.early.as_ref().filter(|early| !early.there.is_empty())?;
        let is_behind = self.block_at(to) == early.block && to >= early.there.start;
        (!is_behind).then_some(early.block)
    }

    /// The window was moved; of these blocks the slots stayed as they were.
    pub(crate) fn keep_early(&mut self, kept: impl Fn(u64) -> bool) {
        self.early.take_if(|early| !kept(early.block));
    }
}
