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
//! Users share it by ratio, equally where nothing is said: what makes way is what was used longest ago, of
//! the user who has most for his share.
//! What programs have, and what is read into, is bounded, for each user and in the background, too.
//!
//! Nothing here takes longer the more is cached, but for trees' depths: of what a change makes void,
//! a few blocks go at once, and where there are more all of the volume's are out of reach at once, and
//! go a few at a time.
//!
//! Invariants: blocks of a volume that can be found do not overlap; `order`, `places` and `users` have
//! exactly the blocks; memory in `taken` is taken, and nothing else of what is cached is; no byte is
//! lent to two at a time.

use crate::api::Span;
use crate::limits::{
    AHEAD_DIVISOR, BEST_EFFORT_MAX, BLOCK_MIN, CACHE_LENT_DIVISOR, CACHE_LOOKS, CACHE_PART_DIVISOR,
    CACHE_STEP, CACHED_BLOCKS_MAX, READ_AHEAD_MAX,
};
use crate::memory::arena::Arena;
use crate::memory::rooms::Room;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::num::NonZeroU32;
use core::ops::Range;
use store::{Numbered, VolumeId};
use units::Bytes;

/// A block that is cached.
#[derive(Clone, Copy, Debug)]
struct Block {
    volume: VolumeId,
    start: Bytes,
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
    /// The numbers of the blocks, by where they begin.
    blocks: BTreeMap<Bytes, u64>,
    /// By where it begins, and the operation.
    coming: BTreeMap<(Bytes, u64), Coming>,
    /// The longest that came.
    longest: Bytes,
    /// Bytes that programs had from memory.
    served: Bytes,
}

/// Who takes memory of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taker {
    pub uid: u32,
    /// It may wait for its disk for ever.
    pub in_background: bool,
}

/// Memory that programs have, or that an operation reads into.
#[derive(Clone, Copy, Debug)]
struct Taken {
    room: Room,
    taker: Taker,
    /// To how many it is lent.
    loans: u64,
    /// It stays cached when the last of them has given it back.
    stays: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    volumes: Numbered<VolumeId, OnVolume>,
    /// By their numbers.
    blocks: BTreeMap<u64, Block>,
    /// All blocks: of each user by when they were used.
    order: BTreeMap<(u32, u64), u64>,
    /// All blocks: by where their rooms begin.
    places: BTreeMap<Bytes, u64>,
    users: BTreeMap<u32, Bytes>,
    /// What users have of it beside each other, where that is not 1.
    shares: BTreeMap<u32, NonZeroU32>,
    /// Blocks that nobody can find any more, and that have not gone.
    unfound: Vec<BTreeMap<Bytes, u64>>,
    /// By where the room begins.
    taken: BTreeMap<Bytes, Taken>,
    taken_bytes: Bytes,
    taken_by: BTreeMap<u32, Bytes>,
    in_background: Bytes,
    /// What is lent: from where to where, and in which room.
    lent: BTreeMap<Bytes, (Bytes, Bytes)>,
    /// Rooms of blocks that are not cached any more.
    void: Vec<Room>,
    next: u64,
    uses: u64,
    served: Bytes,
    /// Anything is cached at all.
    pub is_on: bool,
}

impl Cache {
    /// Memory to read `len` bytes into, where that can be cached: it is lent to the operation until
    /// it is [given back](Self::give).
    pub(crate) fn take(&mut self, arena: &mut Arena, taker: Taker, len: Bytes) -> Option<Span> {
        self.tidy(arena);
        if !self.may_take(arena, taker, len) {
            return None;
        }
        let mut room = None;
        if self.blocks.len() < CACHED_BLOCKS_MAX {
            room = arena.make_room(len);
        }
        let room = room.or_else(|| {
            let start = self.clear(arena, len)?;
            arena.make_room_at(start, len)
        })?;
        // What lay there lost its memory to somebody else before.
        if let Some(&number) = self.places.get(&room.offset) {
            self.remove(number);
        }
        self.note_taken(Taken { room, taker, loans: 1, stays: false });
        self.lent.insert(room.offset, (room.offset + len, room.offset));
        Some(Span { offset: room.offset, len })
    }

    /// Whether somebody may have so much more: of all that may be lent no user has more than a part,
    /// nor has the background; and none of it is what is kept for interactive requests.
    fn may_take(&self, arena: &Arena, taker: Taker, len: Bytes) -> bool {
        let most = arena.kept_max() / CACHE_LENT_DIVISOR;
        let part = (most / CACHE_PART_DIVISOR).max(BEST_EFFORT_MAX * 2).min(most);
        let theirs = self.taken_by.get(&taker.uid).copied().unwrap_or_default();
        self.taken_bytes + len <= most
            && theirs + len <= part
            && (!taker.in_background || self.in_background + len <= part)
            && len <= arena.free_for_best_effort()
    }

    fn note_taken(&mut self, taken: Taken) {
        let (len, taker) = (taken.room.len, taken.taker);
        self.taken_bytes += len;
        *self.taken_by.entry(taker.uid).or_default() += len;
        if taker.in_background {
            self.in_background += len;
        }
        self.taken.insert(taken.room.offset, taken);
    }

    /// How much is read ahead at a time, at the most: while somebody has one such piece in his hands
    /// there is room for the next, and for another's.
    pub(crate) fn ahead_max(&self, arena: &Arena) -> Bytes {
        let part = arena.kept_max() / CACHE_LENT_DIVISOR / AHEAD_DIVISOR;
        part.round_down(BLOCK_MIN).min(READ_AHEAD_MAX)
    }

    /// What programs have, and what is read into.
    pub(crate) fn taken(&self) -> Bytes {
        self.taken_bytes
    }

    /// From now on a user has so much where another one has 1.
    pub(crate) fn set_share(&mut self, uid: u32, share: NonZeroU32) {
        self.shares.insert(uid, share);
    }

    /// Compares what two have, each for his share.
    fn compare(&self, (one, has): (u32, Bytes), (two, other_has): (u32, Bytes)) -> Ordering {
        let share = |uid| self.shares.get(&uid).map_or(1, |share| u128::from(share.get()));
        (u128::from(has.get()) * share(two)).cmp(&(u128::from(other_has.get()) * share(one)))
    }

    /// Forgets the oldest of the user who has most for his share, and what lies behind it as far as `len` bytes
    /// reach: of his, or older. Says from where on these are free. What is passed over because it
    /// is in use, or lies beside what stays, counts as used now.
    pub(crate) fn clear(&mut self, arena: &mut Arena, len: Bytes) -> Option<Bytes> {
        for _ in 0..CACHE_LOOKS {
            let users = self.users.iter().map(|(&uid, &bytes)| (uid, bytes));
            let (most, _) = users.max_by(|&one, &two| self.compare(one, two))?;
            let (_, &number) = self.order.range((most, 0)..=(most, u64::MAX)).next()?;
            let block = self.blocks[&number];
            if !self.is_taken(block.room) && !arena.has_room(block.room) {
                // Somebody has its memory.
                self.remove(number);
                continue;
            }
            let Some(at) = arena.room_for(block.room.offset, len) else {
                self.touch(number);
                continue;
            };
            let may_go = |room: Room| {
                let &number = self.places.get(&room.offset)?;
                let other = &self.blocks[&number];
                let may = other.room == room && (other.uid == most || other.used <= block.used);
                may.then_some(number)
            };
            let all: Option<Vec<u64>> = arena.laid_in(at, len).map(may_go).collect();
            let Some(all) = all else {
                self.touch(number);
                continue;
            };
            all.into_iter().for_each(|number| self.remove(number));
            self.tidy(arena);
            return Some(at);
        }
        None
    }

    /// A block is used now.
    fn touch(&mut self, number: u64) {
        self.uses += 1;
        let block = self.blocks.get_mut(&number).expect("it is cached");
        let before = core::mem::replace(&mut block.used, self.uses);
        self.order.remove(&(block.uid, before));
        self.order.insert((block.uid, self.uses), number);
    }

    /// Whether this memory was [taken](Self::take), or is lent.
    pub(crate) fn has_taken(&self, span: &Span) -> bool {
        self.lent.contains_key(&span.offset)
    }

    /// Up to where what lies from `at` on is cached.
    pub(crate) fn reaches(&self, volume: VolumeId, at: Bytes) -> Bytes {
        let Some(on) = self.volumes.get(&volume) else { return at };
        let mut upto = at;
        for _ in 0..CACHE_STEP {
            let before = on.blocks.range(..=upto).next_back();
            let Some((_, number)) = before.filter(|(_, number)| self.blocks[number].end > upto)
            else {
                break;
            };
            upto = self.blocks[number].end;
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
        let on = self.volumes.or_default(volume);
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
        (start, span): (Bytes, Span),
        uid: u32,
        is_good: bool,
    ) {
        let Some(on) = self.volumes.get_mut(&volume) else { return };
        let expected = on.coming.remove(&(start, operation));
        let end = start + span.len;
        let before = on.blocks.range(..end).next_back();
        let overlaps = before.is_some_and(|(_, number)| self.blocks[number].end > start);
        let Some(taken) = self.taken.get_mut(&span.offset).filter(|_| is_good) else { return };
        if expected.is_none() || overlaps {
            return;
        }
        taken.stays = true;
        let room = taken.room;
        (self.next, self.uses) = (self.next + 1, self.uses + 1);
        let block = Block { volume, start, end, room, uid, used: self.uses };
        self.blocks.insert(self.next, block);
        on.blocks.insert(start, self.next);
        self.order.insert((uid, block.used), self.next);
        self.places.insert(room.offset, self.next);
        *self.users.entry(uid).or_default() += room.len;
    }

    /// The memory where the bytes of a range are, where one block that is cached has all of them:
    /// it is lent, to be [given back](Self::give).
    pub(crate) fn lend(
        &mut self,
        arena: &mut Arena,
        taker: Taker,
        volume: VolumeId,
        range: &Range<Bytes>,
    ) -> Option<Span> {
        let on = self.volumes.get(&volume)?;
        let (_, &number) = on.blocks.range(..=range.start).next_back()?;
        let Block { start, end, room, .. } = self.blocks[&number];
        if end < range.end {
            return None;
        }
        let len = range.end - range.start;
        let span = Span { offset: room.offset + (range.start - start), len };
        match self.is_taken(room) {
            true if self.is_lent(&span) => return None,
            true => self.taken.get_mut(&room.offset).expect("just seen").loans += 1,
            false => {
                if !self.may_take(arena, taker, room.len) || !arena.pick_up(room) {
                    if !arena.has_room(room) {
                        self.remove(number);
                    }
                    return None;
                }
                self.note_taken(Taken { room, taker, loans: 1, stays: true });
            }
        }
        self.lent.insert(span.offset, (span.offset + len, room.offset));
        self.volumes.get_mut(&volume).expect("just seen").served += len;
        self.served += len;
        self.touch(number);
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
            let Taken { room, taker, stays, .. } = self.taken.remove(&place).expect("just seen");
            self.taken_bytes -= room.len;
            let theirs = self.taken_by.get_mut(&taker.uid).expect("he had it");
            *theirs -= room.len;
            if theirs.is_zero() {
                self.taken_by.remove(&taker.uid);
            }
            if taker.in_background {
                self.in_background -= room.len;
            }
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
        for _ in 0..CACHE_STEP {
            let before = self.volumes[&volume].blocks.range(..range.end).next_back();
            let Some((_, &number)) =
                before.filter(|(_, number)| self.blocks[number].end > range.start)
            else {
                return;
            };
            self.remove(number);
        }
        // There may be more.
        self.lose(volume);
    }

    /// Nothing of a volume is found any more.
    fn lose(&mut self, volume: VolumeId) {
        if let Some(on) = self.volumes.get_mut(&volume) {
            let blocks = core::mem::take(&mut on.blocks);
            if !blocks.is_empty() {
                self.unfound.push(blocks);
            }
        }
    }

    /// The volume is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.lose(volume);
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
    fn remove(&mut self, number: u64) {
        let Some(block) = self.blocks.remove(&number) else { return };
        if let Some(on) = self.volumes.get_mut(&block.volume)
            && on.blocks.get(&block.start) == Some(&number)
        {
            on.blocks.remove(&block.start);
        }
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
        for _ in 0..CACHE_STEP {
            let Some(last) = self.unfound.last_mut() else { break };
            match last.pop_last() {
                Some((_, number)) => self.remove(number),
                None => drop(self.unfound.pop()),
            }
        }
        self.void.drain(..).for_each(|room| arena.forget_room(room));
    }
}
