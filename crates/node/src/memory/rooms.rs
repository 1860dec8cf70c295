//! Where in free memory bytes are kept.
//!
//! What is laid here is no loan: its memory is free, whoever asks for it has it as if nothing
//! lay there, and what lay there is gone. So nobody gets less memory, or gets it later, because
//! something is kept; and what is kept is looked for again each time, by a number that no other
//! has. While a command copies to or from a room, its memory is taken.
//!
//! Invariants: rooms that are laid lie in free pieces and do not overlap; they and those that are
//! taken lie in the middle of the arena, in the order in which they were made: windows come from
//! the low end, and best effort from the high end, so that short loans seldom fall on them.

use crate::limits::{BLOCK_MIN, ROOM_LOOKS};
use alloc::collections::BTreeMap;
use core::ops::Range;
use sched::Sorted;
use units::Bytes;

/// The part of what may be kept that may be copied at a time.
const COPYING: u64 = 4;

/// Memory that bytes are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub offset: Bytes,
    pub len: Bytes,
    number: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Rooms {
    within: Range<u64>,
    /// By where they begin: how long, and their numbers.
    laid: BTreeMap<u64, (u64, u64)>,
    laid_bytes: u64,
    /// Bytes of those that are taken.
    copying: u64,
    /// Where the next one is looked for.
    cursor: u64,
    next: u64,
}

impl Rooms {
    pub(crate) fn within(within: Range<u64>) -> Self {
        let cursor = within.start;
        Self { within, laid: BTreeMap::new(), laid_bytes: 0, copying: 0, cursor, next: 0 }
    }

    pub(crate) fn laid(&self) -> Bytes {
        Bytes::new(self.laid_bytes)
    }

    pub(crate) fn copying(&self) -> Bytes {
        Bytes::new(self.copying)
    }

    /// The most that may be kept.
    pub(crate) fn most(&self) -> Bytes {
        Bytes::new(self.within.end - self.within.start).round_down(BLOCK_MIN)
    }

    /// Whether so much more may be copied.
    pub(crate) fn may_copy(&self, len: u64) -> bool {
        self.copying + len <= self.most().get() / COPYING
    }

    /// Where `need` bytes are free and nothing lies.
    pub(crate) fn find(&self, free: &Sorted<u64, u64>, need: u64) -> Option<u64> {
        if !self.may_copy(need) {
            return None;
        }
        let (mut at, mut is_again) = (self.cursor, false);
        for _ in 0..ROOM_LOOKS {
            if at + need > self.within.end {
                if is_again {
                    return None;
                }
                (at, is_again) = (self.within.start, true);
                continue;
            }
            let piece = free.range(..=at).next_back().map(|(start, &len)| start + len);
            if piece.is_none_or(|end| end < at + need) {
                let next = free.range(at + 1..).next().map(|(start, _)| start);
                at = next.unwrap_or(self.within.end);
                continue;
            }
            let before = self.laid.range(..at + need).next_back();
            match before.map(|(&start, &(len, _))| start + len).filter(|&end| end > at) {
                Some(end) => at = end,
                None => return Some(at),
            }
        }
        None
    }

    /// Where `need` bytes that begin at `near` lie, or as near to it as they may.
    pub(crate) fn place_for(&self, near: u64, need: u64) -> Option<u64> {
        let last = self.within.end.checked_sub(need)?;
        (last >= self.within.start).then(|| near.clamp(self.within.start, last))
    }

    /// What is laid that has some of this.
    pub(crate) fn laid_in(&self, range: Range<u64>) -> impl Iterator<Item = Room> {
        let before = self.laid.range(..range.start).next_back();
        let before = before.filter(|&(&start, &(len, _))| start + len > range.start);
        before.into_iter().chain(self.laid.range(range)).map(|(&start, &(len, number))| Room {
            offset: Bytes::new(start),
            len: Bytes::new(len),
            number,
        })
    }

    /// A room was made here, and is taken.
    pub(crate) fn made(&mut self, start: u64, len: u64) -> Room {
        (self.cursor, self.next) = (start + len, self.next + 1);
        self.copying += len;
        Room { offset: Bytes::new(start), len: Bytes::new(len), number: self.next }
    }

    /// A room that was taken is free again, and kept.
    pub(crate) fn lay(&mut self, room: Room) {
        self.drop_taken(room);
        self.laid_bytes += room.len.get();
        let before = self.laid.insert(room.offset.get(), (room.len.get(), room.number));
        assert!(before.is_none(), "nothing else lies there");
    }

    /// A room that was taken is free again, and not kept.
    pub(crate) fn drop_taken(&mut self, room: Room) {
        self.copying -= room.len.get();
    }

    pub(crate) fn has(&self, room: Room) -> bool {
        self.laid.get(&room.offset.get()) == Some(&(room.len.get(), room.number))
    }

    /// What is laid is to be taken. Says whether it is there, and may be.
    pub(crate) fn pick_up(&mut self, room: Room) -> bool {
        let may = self.may_copy(room.len.get()) && self.has(room);
        if may {
            self.forget(room);
            self.copying += room.len.get();
        }
        may
    }

    pub(crate) fn forget(&mut self, room: Room) {
        if self.has(room) {
            self.laid.remove(&room.offset.get());
            self.laid_bytes -= room.len.get();
            // What comes next finds this place.
            self.cursor = room.offset.get();
        }
    }

    /// Somebody has this memory now: what lay there is gone.
    pub(crate) fn taken(&mut self, range: Range<u64>) {
        while let Some((&start, &(len, _))) = self.laid.range(..range.end).next_back()
            && start + len > range.start
        {
            self.laid.remove(&start);
            self.laid_bytes -= len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who takes memory asks nobody what lies there; who looks for it later finds it gone, also where
    /// something else of that length lies in its place by then.
    #[test]
    fn what_lies_where_memory_is_taken_is_gone_and_nothing_else_is_taken_for_it() {
        let len = Bytes::kib(64).get();
        let mut rooms = Rooms::within(0..len * 64);
        let [first, second] = [rooms.made(0, len), rooms.made(len, len)];
        rooms.lay(first);
        rooms.lay(second);
        assert_eq!((rooms.laid(), rooms.copying()), (Bytes::new(len * 2), Bytes::ZERO));
        rooms.taken(len / 2..len);
        assert!(!rooms.has(first) && rooms.has(second));
        assert_eq!(rooms.laid(), Bytes::new(len));
        let other = rooms.made(0, len);
        rooms.lay(other);
        assert!(!rooms.has(first) && !rooms.pick_up(first));
        assert!(rooms.has(other) && rooms.pick_up(other));
        assert_eq!((rooms.laid(), rooms.copying()), (Bytes::new(len), Bytes::new(len)));
    }
}
