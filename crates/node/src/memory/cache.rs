//! What best effort has read, kept in free memory for whoever reads it again (a block cache), and
//! what is read ahead of those who read a volume from one end to the other.
//!
//! An operation that reads gets memory of a [`Room`], and what it has read stays there when its
//! program gives it back. The memory is free then: whoever asks for some takes it as if nothing lay
//! there ([`rooms`](super::rooms)), so that no window, no service and no operation has less memory,
//! or gets it later, because something is cached. Who reads the same bytes again has the same
//! memory lent, without a copy and without the disk.
//!
//! What is cached is what the disk has. Bytes come to be cached only if nothing of them was claimed
//! by a write from before their read was asked for until it has ended; and a claim, and whatever
//! else changes bytes, makes what is cached of them void in the same step: so this is a part of
//! [`Writes`](crate::volumes::writes::Writes), through which all of them go.
//!
//! Users have equal shares: what makes way is what was used longest ago, of the user who has most.
//!
//! Invariants: cached blocks of a volume do not overlap; `order`, `places` and `users` have exactly
//! the blocks; memory in `taken` is taken, and nothing else of what is cached is; no byte is lent to
//! two at a time.

use crate::api::Span;
use crate::limits::{CACHE_LENT_DIVISOR, CACHE_LOOKS, CACHED_BLOCKS_MAX};
use crate::memory::arena::Arena;
use crate::memory::rooms::Room;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use store::VolumeId;
use units::Bytes;

/// A block that is cached.
#[derive(Clone, Copy, Debug)]
struct Block {
    end: Bytes,
    room: Room,
    /// For whom it was read.
    uid: u32,
    used: u64,
}

/// What a disk was asked for, of which nothing was written since.
#[derive(Clone, Copy, Debug)]
struct Coming {
    end: Bytes,
    /// Others may wait for it: it is read ahead.
    is_ahead: bool,
}

#[derive(Clone, Debug, Default)]
struct OnVolume {
    /// By where they begin.
    blocks: BTreeMap<Bytes, Block>,
    /// By where it begins, and the operation.
    coming: BTreeMap<(Bytes, u64), Coming>,
    /// The longest that came.
    longest: Bytes,
    /// Bytes that programs had from memory.
    served: Bytes,
}

/// Memory that programs have, or that an operation reads into.
#[derive(Clone, Copy, Debug)]
struct Taken {
    room: Room,
    /// To how many it is lent.
    loans: u64,
    /// It stays cached when the last of them has given it back.
    stays: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    volumes: BTreeMap<VolumeId, OnVolume>,
    /// All blocks: of each user by when they were used.
    order: BTreeMap<(u32, u64), (VolumeId, Bytes)>,
    /// All blocks: by where their rooms begin.
    places: BTreeMap<Bytes, (VolumeId, Bytes)>,
    users: BTreeMap<u32, Bytes>,
    /// By where the room begins.
    taken: BTreeMap<Bytes, Taken>,
    taken_bytes: Bytes,
    /// What is lent: from where to where, and in which room.
    lent: BTreeMap<Bytes, (Bytes, Bytes)>,
    /// Rooms of blocks that are not cached any more.
    void: Vec<Room>,
    uses: u64,
    served: Bytes,
    /// Anything is cached at all.
    pub is_on: bool,
}

impl Cache {
    /// Memory to read `len` bytes for a user into, where that can be cached: it is lent to the
    /// operation until it is [given back](Self::give).
    pub(crate) fn take(&mut self, arena: &mut Arena, len: Bytes) -> Option<Span> {
        self.tidy(arena);
        if !self.may_take(arena, len) {
            return None;
        }
        let mut room = None;
        if self.order.len() < CACHED_BLOCKS_MAX {
            room = arena.make_room(len);
        }
        let room = room.or_else(|| {
            let start = self.clear(arena, len)?;
            arena.make_room_at(start, len)
        })?;
        // What lay there lost its memory to somebody else before.
        if let Some(&(volume, start)) = self.places.get(&room.offset) {
            self.remove(volume, start);
        }
        self.taken_bytes += room.len;
        self.taken.insert(room.offset, Taken { room, loans: 1, stays: false });
        self.lent.insert(room.offset, (room.offset + len, room.offset));
        Some(Span { offset: room.offset, len })
    }

    /// Whether programs may have so much more: never what is kept for interactive requests.
    fn may_take(&self, arena: &Arena, len: Bytes) -> bool {
        let most = arena.kept_max() / CACHE_LENT_DIVISOR;
        self.taken_bytes + len <= most && len <= arena.free_for_best_effort()
    }

    /// What programs have, and what is read into.
    pub(crate) fn taken(&self) -> Bytes {
        self.taken_bytes
    }

    /// Forgets the oldest of the user who has most, and what lies behind it as far as `len` bytes
    /// reach. Says from where on these are free.
    pub(crate) fn clear(&mut self, arena: &mut Arena, len: Bytes) -> Option<Bytes> {
        let mut after = 0;
        for _ in 0..CACHE_LOOKS {
            let (&most, _) = self.users.iter().max_by_key(|&(_, bytes)| *bytes)?;
            let (&(_, used), &(volume, start)) =
                self.order.range((most, after)..=(most, u64::MAX)).next()?;
            let room = self.volumes[&volume].blocks[&start].room;
            if !self.is_taken(room) && !arena.has_room(room) {
                // Somebody has its memory.
                self.remove(volume, start);
                continue;
            }
            let Some(at) = arena.room_for(room.offset, len) else {
                after = used + 1;
                continue;
            };
            let there: Vec<Room> = arena.laid_in(at, len).collect();
            let ours: Vec<_> = there.iter().filter_map(|&room| self.block_in(room)).collect();
            if ours.len() < there.len() {
                after = used + 1;
                continue;
            }
            ours.into_iter().for_each(|(volume, start)| self.remove(volume, start));
            self.tidy(arena);
            return Some(at);
        }
        None
    }

    /// The block that lies in a room.
    fn block_in(&self, room: Room) -> Option<(VolumeId, Bytes)> {
        let &(volume, start) = self.places.get(&room.offset)?;
        (self.volumes[&volume].blocks[&start].room == room).then_some((volume, start))
    }

    /// Whether this memory was [taken](Self::take), or is lent.
    pub(crate) fn has_taken(&self, span: &Span) -> bool {
        self.lent.contains_key(&span.offset)
    }

    /// Up to where what lies from `at` on is cached.
    pub(crate) fn reaches(&self, volume: VolumeId, at: Bytes) -> Bytes {
        let Some(on) = self.volumes.get(&volume) else { return at };
        let mut upto = at;
        while let Some((_, block)) = on.blocks.range(..=upto).next_back()
            && block.end > upto
        {
            upto = block.end;
        }
        upto
    }

    /// A disk is asked for a range by this operation. Nothing of it is claimed.
    pub(crate) fn expect(
        &mut self,
        volume: VolumeId,
        operation: u64,
        range: &Range<Bytes>,
        is_ahead: bool,
    ) {
        let on = self.volumes.entry(volume).or_default();
        on.longest = on.longest.max(range.end - range.start);
        on.coming.insert((range.start, operation), Coming { end: range.end, is_ahead });
    }

    /// The operation that reads all of a range ahead, if one does.
    pub(crate) fn ahead_of(&self, volume: VolumeId, range: &Range<Bytes>) -> Option<u64> {
        let on = self.volumes.get(&volume)?;
        let from = (range.end.saturating_sub(on.longest).min(range.start), 0);
        let mut near = on.coming.range(from..=(range.start, u64::MAX));
        let has_all = |coming: &Coming| coming.is_ahead && coming.end >= range.end;
        near.find(|(_, coming)| has_all(coming)).map(|(&(_, operation), _)| operation)
    }

    /// What an operation read for a user is in the memory that it [took](Self::take): it stays
    /// there, where `is_good` and nothing of it was written meanwhile.
    pub(crate) fn has_come(
        &mut self,
        (volume, operation): (VolumeId, u64),
        (offset, span): (Bytes, Span),
        uid: u32,
        is_good: bool,
    ) {
        let Some(on) = self.volumes.get_mut(&volume) else { return };
        let expected = on.coming.remove(&(offset, operation));
        let Some(taken) = self.taken.get_mut(&span.offset).filter(|_| is_good) else { return };
        let range = offset..offset + span.len;
        if expected.is_none() || overlaps(on, &range) {
            return;
        }
        taken.stays = true;
        let room = taken.room;
        self.uses += 1;
        let block = Block { end: range.end, room, uid, used: self.uses };
        on.blocks.insert(range.start, block);
        self.order.insert((uid, block.used), (volume, range.start));
        self.places.insert(room.offset, (volume, range.start));
        *self.users.entry(uid).or_default() += room.len;
    }

    /// The memory where the bytes of a range are, where one block that is cached has all of them:
    /// it is lent, to be [given back](Self::give).
    pub(crate) fn lend(
        &mut self,
        arena: &mut Arena,
        volume: VolumeId,
        range: &Range<Bytes>,
    ) -> Option<Span> {
        let on = self.volumes.get(&volume)?;
        let (&start, &Block { end, room, .. }) = on.blocks.range(..=range.start).next_back()?;
        if end < range.end {
            return None;
        }
        let len = range.end - range.start;
        let span = Span { offset: room.offset + (range.start - start), len };
        match self.is_taken(room) {
            true if self.is_lent(&span) => return None,
            true => self.taken.get_mut(&room.offset).expect("just seen").loans += 1,
            false => {
                if !self.may_take(arena, room.len) || !arena.pick_up(room) {
                    if !arena.has_room(room) {
                        self.remove(volume, start);
                    }
                    return None;
                }
                self.taken_bytes += room.len;
                self.taken.insert(room.offset, Taken { room, loans: 1, stays: true });
            }
        }
        self.lent.insert(span.offset, (span.offset + len, room.offset));
        self.uses += 1;
        let on = self.volumes.get_mut(&volume).expect("just seen");
        on.served += len;
        self.served += len;
        let block = on.blocks.get_mut(&start).expect("just seen");
        let before = core::mem::replace(&mut block.used, self.uses);
        let key = self.order.remove(&(block.uid, before)).expect("it has all blocks");
        self.order.insert((block.uid, block.used), key);
        Some(span)
    }

    /// Some of a span is lent.
    fn is_lent(&self, span: &Span) -> bool {
        let before = self.lent.range(..span.offset + span.len).next_back();
        before.is_some_and(|(_, &(end, _))| end > span.offset)
    }

    fn is_taken(&self, room: Room) -> bool {
        // Where its memory was taken by somebody else, another room may lie there.
        self.taken.get(&room.offset).is_some_and(|taken| taken.room == room)
    }

    /// Memory comes back, if it is of the cache; false where it is not.
    pub(crate) fn give(&mut self, arena: &mut Arena, span: &Span) -> bool {
        let Some((_, place)) = self.lent.remove(&span.offset) else { return false };
        let taken = self.taken.get_mut(&place).expect("it is lent");
        taken.loans -= 1;
        if taken.loans == 0 {
            let Taken { room, stays, .. } = self.taken.remove(&place).expect("just seen");
            self.taken_bytes -= room.len;
            match stays {
                true => arena.lay(room),
                false => arena.drop_room(room),
            }
        }
        true
    }

    /// These bytes of a volume may be others from now on.
    pub(crate) fn change(&mut self, volume: VolumeId, range: &Range<Bytes>) {
        let Some(on) = self.volumes.get_mut(&volume) else { return };
        if !on.coming.is_empty() {
            let from = (range.start.saturating_sub(on.longest), 0);
            let near = on.coming.range(from..(range.end, 0));
            let gone = near.filter(|(_, coming)| coming.end > range.start);
            for key in gone.map(|(&key, _)| key).collect::<Vec<_>>() {
                on.coming.remove(&key);
            }
        }
        while let Some(on) = self.volumes.get(&volume)
            && let Some((&start, block)) = on.blocks.range(..range.end).next_back()
            && block.end > range.start
        {
            self.remove(volume, start);
        }
    }

    /// The volume is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.change(volume, &(Bytes::ZERO..Bytes::new(u64::MAX)));
        self.volumes.remove(&volume);
    }

    /// What programs have had of a volume from memory since the pool was opened.
    pub(crate) fn served(&self, volume: VolumeId) -> Bytes {
        self.volumes.get(&volume).map_or(Bytes::ZERO, |on| on.served)
    }

    /// The same of all volumes.
    pub(crate) fn served_in_all(&self) -> Bytes {
        self.served
    }

    /// A block is not cached any more.
    fn remove(&mut self, volume: VolumeId, start: Bytes) {
        let on = self.volumes.get_mut(&volume).expect("it has a block");
        let block = on.blocks.remove(&start).expect("a block that is cached");
        self.order.remove(&(block.uid, block.used));
        self.places.remove(&block.room.offset);
        let has = self.users.get_mut(&block.uid).expect("it has a block");
        *has -= block.room.len;
        if has.is_zero() {
            self.users.remove(&block.uid);
        }
        match self.taken.get_mut(&block.room.offset).filter(|taken| taken.room == block.room) {
            Some(taken) => taken.stays = false,
            None => self.void.push(block.room),
        }
    }

    /// Forgets the rooms of what is not cached any more.
    pub(crate) fn tidy(&mut self, arena: &mut Arena) {
        self.void.drain(..).for_each(|room| arena.forget_room(room));
    }
}

fn overlaps(on: &OnVolume, range: &Range<Bytes>) -> bool {
    on.blocks.range(..range.end).next_back().is_some_and(|(_, block)| block.end > range.start)
}
