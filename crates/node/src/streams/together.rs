//! Streams on one volume that come close behind one another: what the first of them has read, or
//! written, the others have from memory ([`kept`](crate::memory::kept)).
//!
//! * A reader's block that has come whole from the disk, and a writer's that is whole on it, is
//!   copied to be kept before the stream goes on with it, where a reader comes behind. Of a writer
//!   that shares its window with its program nothing is copied: the program can change that memory,
//!   so that it may be other bytes than the disk's. What its first reader reads is kept.
//! * A reader asks for a block that is kept by a copy, in place of a read. Where it has asked its
//!   disk already, and that has not begun, it takes that back. So of readers that ask at the same
//!   time two read (the disk has begun with the second when the first one's bytes are kept), or as
//!   many as a drive has commands at a time, and all others have what was read.
//!
//! A copy takes no turn of the stream's tasks: the time is slack, as that of a block that was never
//! written. Nothing that is promised rests on it: a reader is admitted as if it had all from the
//! disk, and has it from there whenever memory is wanted elsewhere.
//!
//! But a copy takes time, too, and comes behind others ([`Kept::copied_by`]). So it is made only
//! where it has ended by when the disk was to have brought the block: of a block that is asked for
//! now, within the deadline of its task; of one that the disk was asked for, by when that request
//! is due; and a block is copied to be kept only where its own stream has it by when it was due
//! all the same. What is stated of a window counts each copy in it
//! ([`Core::there_by`](crate::core::Core::there_by)).
//!
//! [`Kept::copied_by`]: crate::memory::kept::Kept::copied_by
//!
//! A block that lies in several runs of its disk is neither kept nor copied, since it would take
//! several commands, and others could go between them: it is read.
//!
//! Invariants: while a block is copied to be kept its slot is [`Slot::Moving`], so that its memory
//! stays as it is; a block of which a part came early is neither kept nor copied over.

use crate::api::*;
use crate::core::Core;
use crate::limits;
use crate::node::Node;
use crate::streams::stream::{Slot, Stream};
use crate::volumes::slack::in_slack;
use crate::volumes::writes::{Writes, extents};
use crate::work::Owner;
use core::num::NonZeroU32;
use core::ops::Range;
use units::{Bytes, Duration, Instant};

impl Stream {
    /// A disk is asked for all of a block.
    pub(crate) fn expect(&self, core: &mut Core, block: u64, id: CommandId) {
        if core.writes.kept.is_shared(self.volume) {
            let range = self.range_of(core, block);
            let goes_on = |block, id| self.window.get(block) == Some(&Slot::Moving(id));
            core.writes.expect(self.volume, (self.id, block, id), range, goes_on);
        }
    }

    /// Says which bytes of the volume this reader lacks next.
    pub(crate) fn note_wanted(&self, core: &mut Core) {
        if !core.writes.kept.is_shared(self.volume) {
            return;
        }
        let has = |slot: &Slot| matches!(slot, Slot::Ready | Slot::Failed(..));
        let lacks = self.window.iter().find(|(_, slot)| !has(slot)).map(|(block, _)| block);
        let (len, end) = (self.contract.block, self.window.end());
        let wanted = len * lacks.unwrap_or(end)..len * end;
        core.writes.kept.wants(self.volume, self.id, wanted);
    }

    /// A reader's block has come with this command: it is copied to be kept, where that is of use.
    pub(crate) fn keep_read(&mut self, core: &mut Core, now: Instant, block: u64, id: CommandId) {
        let came = core.writes.kept.has_come(self.volume, self.id, (block, id));
        let is_whole = self.window.get(block) == Some(&Slot::Ready)
            && self.lost.iter().all(|lost| lost.block != block)
            && self.early.as_ref().is_none_or(|early| early.block != block);
        if let Some(range) = came.filter(|_| is_whole && !self.closing) {
            self.keep(core, now, block, &range);
        }
    }

    /// A writer's block is on the disk: it is copied to be kept, where that is of use.
    pub(crate) fn keep_written(&mut self, core: &mut Core, now: Instant, block: u64) {
        let is_its_own = self.mode == Mode::Write && self.shared.is_none();
        if is_its_own && !self.closing && self.going.is_none() {
            let range = self.range_of(core, block);
            // Behind a hole that its extent may not have it is not read yet (`writes.rs`).
            if self.is_read(core, &range) {
                self.keep(core, now, block, &range);
            }
        }
    }

    /// Whether all of a range is written, for whoever reads it.
    fn is_read(&self, core: &Core, range: &Range<Bytes>) -> bool {
        extents(range).all(|(extent, part)| {
            let at = core.store.locate(self.volume, extent);
            at.is_some_and(|at| at.written.intersection(&Blocks::of(&part)) == Blocks::of(&part))
        })
    }

    fn keep(&mut self, core: &mut Core, now: Instant, block: u64, range: &Range<Bytes>) {
        if !core.writes.kept.is_shared(self.volume) || *range != self.range_of(core, block) {
            return;
        }
        let (disk, read) = self.reading_from(core, block, Bytes::ZERO);
        let [(DiskAction::Read { offset, span: from, written }, _)] = &read[..] else { return };
        let len = range.end - range.start;
        // Until it is copied its stream does without it.
        let due = self.was_due(block).unwrap_or(now);
        let by = due.saturating_sub(core.disks[disk.as_usize()].queue.advance());
        if !self.is_worth_copying(core, (now, by), block, len) {
            return;
        }
        let Core { arena, writes, .. } = core;
        let Writes { kept, cache, .. } = writes;
        let Some(room) = kept.make_room(arena, cache, self.volume, (range, self.id)) else {
            return;
        };
        writes.kept.copies(now, len);
        let (place, room) = (from.offset, room.offset);
        let span = Span { offset: room, len: from.len };
        let (from, offset, written) = (*from, *offset, written.clone());
        let copy = DiskAction::Copy { from, offset, span, written };
        let owner = Owner::Keep { stream: self.id, block, place, room };
        let class = in_slack(Priority::Interactive, self.volume);
        let id = core.submit(now, disk, class, copy, owner);
        *self.window.get_mut(block).expect("a block of the window") = Slot::Moving(id);
        self.expect(core, block, id);
    }

    /// Whether a disk's thread copies a block: not one that would take it long, nor one that its disk
    /// reads about as soon, nor while it has much to copy as it is, nor where it would not be done
    /// by when the block is to be there.
    fn is_worth_copying(
        &self,
        core: &Core,
        (now, by): (Instant, Instant),
        block: u64,
        len: Bytes,
    ) -> bool {
        let disk = self.disk_of(core, block);
        let task = self.tasks.iter().find(|joined| joined.disk == disk);
        len <= limits::KEPT_BLOCK_MAX
            && task.is_some_and(|own| own.task.cost > limits::KEPT_READ_RATE.time_for(len))
            && core.writes.kept.may_copy(now)
            && core.writes.kept.copied_by(now, len) <= by
    }

    /// The copy of a block has ended. Says what of the volume is kept by it.
    fn kept(
        &mut self,
        core: &mut Core,
        now: Instant,
        (block, place, room): (u64, Bytes, Bytes),
    ) -> Option<Range<Bytes>> {
        let mut range = None;
        if !self.stray_ended(core, place)
            && let Some(slot) = self.window.get_mut(block)
            && let Slot::Moving(id) = core::mem::replace(slot, Slot::Ready)
        {
            range = core.writes.kept.has_come(self.volume, self.id, (block, id));
            // Its stream had it by the end of the disk's command only as far as the account goes.
            let late_by =
                self.was_due(block).map_or(Duration::ZERO, |due| now.saturating_since(due));
            self.account.late_max = self.account.late_max.max(late_by);
            self.account.late_requests += u64::from(!late_by.is_zero());
        }
        let Core { arena, writes, .. } = core;
        let is_kept = writes.kept.keep(arena, self.volume, (range.clone(), room));
        range.filter(|_| is_kept)
    }

    /// Asks for a block that is kept, in place of what its disk was asked for, if it was; false
    /// where it is not kept, or would come later than from the disk.
    pub(crate) fn recall(
        &mut self,
        core: &mut Core,
        now: Instant,
        block: u64,
        waiting: Option<CommandId>,
    ) -> bool {
        let range = self.range_of(core, block);
        let len = range.end - range.start;
        let disk = self.disk_of(core, block);
        let (deadline, advance) =
            (self.task_on(disk).task.deadline, core.disks[disk.as_usize()].queue.advance());
        let due = waiting.and_then(|id| core.due(id)).map(|due| due.saturating_sub(advance));
        let by = due.unwrap_or(now.saturating_add(deadline));
        if !self.is_worth_copying(core, (now, by), block, len) {
            return false;
        }
        let Some((disk, copy, owner)) = self.recalling(core, block) else { return false };
        core.writes.kept.copies(now, len);
        let asked = by.saturating_sub(deadline);
        let id = core.submit_copy(asked, disk, self.class(disk), copy, owner);
        self.forget_lost(block, Bytes::ZERO);
        *self.window.get_mut(block).expect("a block of the window") = Slot::Moving(id);
        self.note_end(core, block);
        true
    }

    /// So much has come from memory.
    pub(crate) fn note_from_memory(&mut self, core: &mut Core, len: Bytes) {
        if !len.is_zero() {
            self.account.from_memory += len;
            core.writes.kept.note_served(self.volume, len);
        }
    }

    /// Where a block is kept by now that a disk was asked for and has not begun, it is not asked.
    pub(crate) fn recall_waiting(
        &mut self,
        core: &mut Core,
        now: Instant,
        block: u64,
        id: CommandId,
    ) {
        let is_early = self.early.as_ref().is_some_and(|early| early.block == block);
        let may = core.writes.kept.is_shared(self.volume) && !is_early;
        // Of a block that is read on from where the volume ended, the program has what lies before.
        let is_whole = || core.transfers(id) == Some(&self.range_of(core, block));
        let waits = may && core.waits_as(id).is_some() && is_whole();
        if waits && self.recall(core, now, block, Some(id)) {
            let is_out = core.cancel(id);
            assert!(is_out, "it waits");
        }
    }

    /// What copies a block into its place from where it is kept; none where not all of it is.
    fn recalling(&self, core: &mut Core, block: u64) -> Option<(DiskIndex, DiskAction, Owner)> {
        if !core.writes.kept.is_shared(self.volume) {
            return None;
        }
        let range = self.range_of(core, block);
        let (disk, mut read) = self.reading_from(core, block, Bytes::ZERO);
        let (DiskAction::Read { offset, span, written }, owner) = read.pop()? else {
            unreachable!("a block is read")
        };
        if !read.is_empty() {
            return None;
        }
        let Core { arena, writes, .. } = core;
        let from = writes.kept.find(arena, self.volume, &range)?;
        Some((disk, DiskAction::Copy { from, offset, span, written }, owner))
    }
}

impl Node {
    /// From now on streams have from memory what others of their volume have just read or written.
    pub fn share_reads(&mut self) {
        self.core.writes.kept.is_on = true;
    }

    /// From now on what best effort has read is cached in free memory, and read ahead.
    pub fn cache_reads(&mut self) {
        self.core.writes.cache.is_on = true;
    }

    /// From now on a user has so much of what is cached where another one has 1, as long as both want
    /// more than there is.
    pub fn set_cache_share(&mut self, uid: u32, share: NonZeroU32) {
        self.core.writes.cache.set_share(uid, share);
    }

    /// Memory is free again: who waits for memory may have it.
    pub(crate) fn settle_memory(&mut self, now: Instant) {
        let Writes { kept, cache, .. } = &mut self.core.writes;
        kept.tidy(&mut self.core.arena);
        cache.tidy(&mut self.core.arena);
        if core::mem::take(&mut self.core.arena.has_returned) {
            self.best_effort.memory_is_back(&mut self.core, now);
        }
        if core::mem::take(&mut self.core.writes.kept.has_returned) {
            self.given_back(now);
        }
    }

    /// A block has been copied to be kept: readers behind that lack it have it.
    pub(crate) fn block_kept(&mut self, now: Instant, id: StreamId, what: (u64, Bytes, Bytes)) {
        let has_writer = self.streams.has_writer(id);
        let stream = self.streams.get_mut(id).expect("a stream outlives its commands");
        let (mode, volume) = (stream.mode, stream.volume);
        let kept = stream.kept(&mut self.core, now, what);
        stream.pump(&mut self.core, now, has_writer);
        stream.leave_retired(&mut self.core);
        self.after(now, id);
        match kept {
            _ if mode.writes() => self.pump_readers(now, volume),
            Some(range) => {
                let waiting = self.core.writes.kept.waiting_for(volume, &range);
                waiting.into_iter().filter(|&other| other != id).for_each(|id| self.pump(now, id));
            }
            None => {}
        }
    }
}
