//! What was read or written once and is kept for readers of the same volume that come behind
//! (interval caching: Dan and Sitaram, "A generalized interval caching policy", 1996).
//!
//! A block that a reader's disk has brought, or that a writer's has taken, is copied into free
//! memory where a reader comes behind that lacks it; each reader behind copies it from there
//! into its own window, and the disk is not asked. The memory stays free ([`rooms`](super::rooms)):
//! what is kept goes when anybody needs its place, and its reader reads from the disk, as it was
//! admitted to. Where the room is not enough, blocks stay for which the reader is nearest: a short
//! interval between two readers takes the least memory for each read that it spares.
//!
//! What a reader gets so is what its disk would have brought in the same moment. A block comes to
//! be kept only if nothing of it was claimed by a write from before its read was asked for until
//! its copy has ended; and a claim, and whatever else changes bytes, makes what is kept of them
//! void in the same step: so this is a part of [`Writes`](crate::volumes::writes::Writes), through
//! which all of them go.
//!
//! Invariants: kept blocks of a volume do not overlap; each is wanted by an open reader of it;
//! `order` has exactly the blocks, by their intervals; `fronts` has exactly what `wanted` begins with; memory in `pinned` is taken, and nothing
//! else of what is kept is.

use crate::api::{CommandId, Span, StreamId};
use crate::limits::{KEPT_BLOCKS_MAX, KEPT_COPY_AHEAD, KEPT_COPY_RATE, KEPT_EVICTIONS};
use crate::memory::arena::Arena;
use crate::memory::cache::Cache;
use crate::memory::rooms::Room;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;
use store::{Numbered, VolumeId};
use units::{Bytes, Instant};

/// A block that is kept.
#[derive(Clone, Copy, Debug)]
struct Block {
    end: Bytes,
    /// How far the nearest reader that lacks it was behind when that was last looked at.
    interval: Bytes,
    room: Room,
}

/// A block that a disk brings to a stream, or that is copied to be kept, of which nothing was
/// written since that was asked for.
#[derive(Clone, Debug)]
struct Coming {
    stream: StreamId,
    block: u64,
    id: CommandId,
    range: Range<Bytes>,
}

/// A volume on which streams are open.
#[derive(Clone, Debug, Default)]
struct OnVolume {
    streams: BTreeSet<StreamId>,
    /// Of each reader, from the first byte that it lacks to the end of its window.
    wanted: BTreeMap<StreamId, Range<Bytes>>,
    /// Where these begin, and whose they are.
    fronts: BTreeSet<(Bytes, StreamId)>,
    /// The longest that one has been.
    longest: Bytes,
    coming: Vec<Coming>,
    /// By where they begin.
    blocks: BTreeMap<Bytes, Block>,
}

impl OnVolume {
    /// From now on a reader lacks this. Gives what it lacked before.
    fn lacks(&mut self, stream: StreamId, wanted: Option<Range<Bytes>>) -> Option<Range<Bytes>> {
        let before = self.wanted.remove(&stream);
        if let Some(before) = &before {
            self.fronts.remove(&(before.start, stream));
        }
        if let Some(wanted) = wanted {
            self.longest = self.longest.max(wanted.end - wanted.start);
            self.fronts.insert((wanted.start, stream));
            self.wanted.insert(stream, wanted);
        }
        before
    }

    /// How far the nearest reader that lacks some of a range, but for `but`, is behind its start.
    fn interval(&self, range: &Range<Bytes>, but: Option<StreamId>) -> Option<Bytes> {
        let mut lack = self.fronts.range(..(range.end, StreamId(0))).rev();
        let (front, _) = lack.find(|(_, id)| Some(*id) != but)?;
        Some(range.start.saturating_sub(*front))
    }
}

/// Memory that is being copied to or from.
#[derive(Clone, Copy, Debug)]
struct Pin {
    room: Room,
    copies: u64,
    /// It is kept when they have ended.
    stays: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    volumes: Numbered<VolumeId, OnVolume>,
    /// All blocks: by interval, volume and start.
    order: BTreeSet<(Bytes, VolumeId, Bytes)>,
    /// By where the room begins.
    pinned: BTreeMap<Bytes, Pin>,
    /// Rooms of blocks that are not kept any more.
    void: Vec<Room>,
    /// Bytes that readers had from memory.
    served: BTreeMap<VolumeId, Bytes>,
    served_in_all: Bytes,
    /// Memory that was being copied is free again, and whoever waits for some was not told.
    pub has_returned: bool,
    /// By when what was copied so far would be at the rate of [`KEPT_COPY_RATE`].
    copied_by: Instant,
    /// Anything is kept at all.
    pub is_on: bool,
}

impl Kept {
    /// A stream is open on the volume.
    pub(crate) fn opened(&mut self, volume: VolumeId, stream: StreamId) {
        self.volumes.or_default(volume).streams.insert(stream);
    }

    /// It is not any more, or will ask for nothing more.
    pub(crate) fn closed(&mut self, volume: VolumeId, stream: StreamId) {
        let Some(on) = self.volumes.get_mut(&volume) else { return };
        on.streams.remove(&stream);
        on.coming.retain(|coming| coming.stream != stream);
        if let Some(wanted) = on.lacks(stream, None) {
            self.look_anew(volume, wanted.start..Bytes::new(u64::MAX));
        }
        if self.volumes[&volume].streams.is_empty() {
            self.change_all(volume);
            self.volumes.remove(&volume);
        }
    }

    /// Several streams are open on the volume: one may have what another has read.
    pub(crate) fn is_shared(&self, volume: VolumeId) -> bool {
        self.is_on && self.volumes.get(&volume).is_some_and(|on| on.streams.len() > 1)
    }

    /// From now on a reader lacks what is behind the start of `wanted`, and its window ends there.
    pub(crate) fn wants(&mut self, volume: VolumeId, stream: StreamId, wanted: Range<Bytes>) {
        let Some(on) = self.volumes.get_mut(&volume) else { return };
        let start = wanted.start;
        let before = on.lacks(stream, Some(wanted));
        // What it has, or has passed, is the next one's or nobody's.
        if let Some(before) = before.filter(|before| before.start < start) {
            self.look_anew(volume, before.start..start);
        }
    }

    /// The readers that may have what is kept of this range, now that it is.
    pub(crate) fn waiting_for(&self, volume: VolumeId, range: &Range<Bytes>) -> Vec<StreamId> {
        let Some(on) = self.volumes.get(&volume) else { return Vec::new() };
        let from = range.start.saturating_sub(on.longest);
        let near = on.fronts.range((from, StreamId(0))..(range.end, StreamId(0)));
        near.map(|&(_, id)| id).filter(|id| range.start < on.wanted[id].end).collect()
    }

    /// A disk is asked for all of a block for a stream, or the block is copied to be kept.
    /// Nothing of it is claimed. `goes_on` says which of what was asked for before still is.
    pub(crate) fn expect(
        &mut self,
        volume: VolumeId,
        (stream, block, id): (StreamId, u64, CommandId),
        range: Range<Bytes>,
        goes_on: impl Fn(u64, CommandId) -> bool,
    ) {
        let Some(on) = self.volumes.get_mut(&volume) else { return };
        on.coming.retain(|it| it.stream != stream || it.id != id && goes_on(it.block, it.id));
        on.coming.push(Coming { stream, block, id, range });
    }

    /// Less than all of the block comes with this command.
    pub(crate) fn expect_no_more(&mut self, volume: VolumeId, id: CommandId) {
        if let Some(on) = self.volumes.get_mut(&volume) {
            on.coming.retain(|coming| coming.id != id);
        }
    }

    /// The block has come with this command. Gives what of the volume is there, unless it may
    /// have changed meanwhile.
    pub(crate) fn has_come(
        &mut self,
        volume: VolumeId,
        stream: StreamId,
        (block, id): (u64, CommandId),
    ) -> Option<Range<Bytes>> {
        let coming = &mut self.volumes.get_mut(&volume)?.coming;
        let is_it = |it: &Coming| (it.stream, it.block, it.id) == (stream, block, id);
        let at = coming.iter().position(is_it)?;
        Some(coming.swap_remove(at).range)
    }

    /// Whether the disks' threads have time to copy more.
    pub(crate) fn may_copy(&self, now: Instant) -> bool {
        self.copied_by <= now.saturating_add(KEPT_COPY_AHEAD)
    }

    /// They copy so much. It is there by [`Kept::copied_by`] of before.
    pub(crate) fn copies(&mut self, now: Instant, len: Bytes) {
        self.copied_by = self.copied_by(now, len);
    }

    /// By when a copy of so much is made that is asked for now: behind all others, as if one
    /// thread made all of them. All that were asked for are made by that of none.
    pub(crate) fn copied_by(&self, now: Instant, len: Bytes) -> Instant {
        self.copied_by.max(now).saturating_add(KEPT_COPY_RATE.time_for(len))
    }

    /// Memory for a block that a stream has, where it is worth keeping: a reader comes behind and
    /// lacks it, and there is room for all between them, or what is cached of best effort, or is
    /// further from its reader, goes.
    pub(crate) fn make_room(
        &mut self,
        arena: &mut Arena,
        cache: &mut Cache,
        volume: VolumeId,
        (range, stream): (&Range<Bytes>, StreamId),
    ) -> Option<Room> {
        self.tidy(arena);
        let on = self.volumes.get(&volume)?;
        let (interval, len) = (on.interval(range, Some(stream))?, range.end - range.start);
        if interval.saturating_add(len) > arena.kept_max() || self.overlapping(volume, range) {
            return None;
        }
        let mut room = None;
        if self.order.len() < KEPT_BLOCKS_MAX {
            room = arena.make_room(len).or_else(|| {
                let start = cache.clear(arena, len)?;
                arena.make_room_at(start, len)
            });
        }
        for _ in 0..KEPT_EVICTIONS {
            let longest = self.order.last().filter(|(longest, ..)| *longest > interval);
            let Some(&(_, of, start)) = longest.filter(|_| room.is_none()) else { break };
            self.remove(of, start);
            self.tidy(arena);
            room = arena.make_room(len);
        }
        let room = room?;
        self.pinned.insert(room.offset, Pin { room, copies: 1, stays: false });
        Some(room)
    }

    fn overlapping(&self, volume: VolumeId, range: &Range<Bytes>) -> bool {
        let before = self
            .volumes
            .get(&volume)
            .and_then(|on| on.blocks.range(..range.end).next_back().map(|(_, block)| block.end));
        before.is_some_and(|end| end > range.start)
    }

    /// The copy to a room has ended: it is kept, where it is that of the volume and still wanted.
    pub(crate) fn keep(
        &mut self,
        arena: &mut Arena,
        volume: VolumeId,
        (range, offset): (Option<Range<Bytes>>, Bytes),
    ) -> bool {
        let room = self.pinned[&offset].room;
        let fits = range.filter(|range| !self.overlapping(volume, range));
        let wanted = fits.and_then(|range| {
            let interval = self.volumes.get(&volume)?.interval(&range, None)?;
            Some((range, interval))
        });
        let is_kept = wanted.is_some();
        if let Some((range, interval)) = wanted {
            let block = Block { end: range.end, interval, room };
            let on = self.volumes.get_mut(&volume).expect("looked at above");
            on.blocks.insert(range.start, block);
            self.order.insert((interval, volume, range.start));
            self.pinned.get_mut(&offset).expect("looked at above").stays = true;
        }
        self.unpin(arena, offset);
        is_kept
    }

    /// Where the bytes of a range are, where one block that is kept has all of them. They stay
    /// there until [`Kept::copied`] has been called.
    pub(crate) fn find(
        &mut self,
        arena: &mut Arena,
        volume: VolumeId,
        range: &Range<Bytes>,
    ) -> Option<Span> {
        let blocks = &self.volumes.get(&volume)?.blocks;
        let (&start, &Block { end, room, .. }) = blocks.range(..=range.start).next_back()?;
        if end < range.end {
            return None;
        }
        if !self.pin(arena, room) {
            if !arena.has_room(room) {
                self.remove(volume, start);
            }
            return None;
        }
        let len = range.end - range.start;
        Some(Span { offset: room.offset + (range.start - start), len })
    }

    fn pin(&mut self, arena: &mut Arena, room: Room) -> bool {
        // Where its memory was taken meanwhile, another room may lie there.
        if let Some(pin) = self.pinned.get_mut(&room.offset).filter(|pin| pin.room == room) {
            pin.copies += 1;
            return true;
        }
        let is_there = arena.pick_up(room);
        if is_there {
            self.pinned.insert(room.offset, Pin { room, copies: 1, stays: true });
        }
        is_there
    }

    fn unpin(&mut self, arena: &mut Arena, offset: Bytes) {
        let pin = self.pinned.get_mut(&offset).expect("it is being copied");
        pin.copies -= 1;
        if pin.copies == 0 {
            let Pin { room, stays, .. } = *pin;
            self.pinned.remove(&offset);
            match stays {
                true => arena.lay(room),
                false => arena.drop_room(room),
            }
            self.has_returned = true;
        }
    }

    /// A copy to or from the room that this lies in has ended, or will not be made.
    pub(crate) fn copied(&mut self, arena: &mut Arena, at: Bytes) {
        let (&offset, _) = self.pinned.range(..=at).next_back().expect("it is being copied");
        self.unpin(arena, offset);
    }

    /// A reader has had so much from memory.
    pub(crate) fn note_served(&mut self, volume: VolumeId, len: Bytes) {
        *self.served.entry(volume).or_default() += len;
        self.served_in_all += len;
    }

    /// What readers of a volume have had from memory since the pool was opened.
    pub(crate) fn served(&self, volume: VolumeId) -> Bytes {
        self.served.get(&volume).copied().unwrap_or_default()
    }

    /// The same of all volumes.
    pub(crate) fn served_in_all(&self) -> Bytes {
        self.served_in_all
    }

    /// These bytes of a volume may be others from now on.
    pub(crate) fn change(&mut self, volume: VolumeId, range: &Range<Bytes>) {
        let Some(on) = self.volumes.get_mut(&volume) else { return };
        on.coming.retain(|it| it.range.end <= range.start || range.end <= it.range.start);
        if on.blocks.is_empty() {
            return;
        }
        while let Some(on) = self.volumes.get(&volume)
            && let Some((&start, block)) = on.blocks.range(..range.end).next_back()
            && block.end > range.start
        {
            self.remove(volume, start);
        }
    }

    /// All bytes of a volume may be.
    pub(crate) fn change_all(&mut self, volume: VolumeId) {
        self.change(volume, &(Bytes::ZERO..Bytes::new(u64::MAX)));
    }

    /// The volume is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.change_all(volume);
        self.served.remove(&volume);
    }

    /// Who wants what begins in this range is looked at again.
    fn look_anew(&mut self, volume: VolumeId, range: Range<Bytes>) {
        let Some(on) = self.volumes.get_mut(&volume) else { return };
        // The one that begins before may reach into it.
        let first = on.blocks.range(..range.start).next_back().map_or(range.start, |(&at, _)| at);
        let starts: Vec<Bytes> = on.blocks.range(first..range.end).map(|(&at, _)| at).collect();
        for start in starts {
            let on = self.volumes.get_mut(&volume).expect("looked at above");
            let end = on.blocks[&start].end;
            let Some(interval) = on.interval(&(start..end), None) else {
                self.remove(volume, start);
                continue;
            };
            let block = on.blocks.get_mut(&start).expect("just seen");
            let before = core::mem::replace(&mut block.interval, interval);
            self.order.remove(&(before, volume, start));
            self.order.insert((interval, volume, start));
        }
    }

    /// A block is not kept any more.
    fn remove(&mut self, volume: VolumeId, start: Bytes) {
        let on = self.volumes.get_mut(&volume).expect("it has a block");
        let block = on.blocks.remove(&start).expect("a block that is kept");
        self.order.remove(&(block.interval, volume, start));
        let pin = self.pinned.get_mut(&block.room.offset);
        match pin.filter(|pin| pin.room == block.room) {
            Some(pin) => pin.stays = false,
            None => self.void.push(block.room),
        }
    }

    /// Forgets the rooms of what is not kept any more.
    pub(crate) fn tidy(&mut self, arena: &mut Arena) {
        self.void.drain(..).for_each(|room| arena.forget_room(room));
    }
}
