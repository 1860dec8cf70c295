//! Who holds which piece of the arena.
//!
//! Invariants: free pieces never overlap, never touch (neighbours are merged),
//! and free + windows + services + best effort + [`KEPT`] make the whole. What contracts
//! have, windows and what is set aside for services, comes from the
//! low end and best-effort spans from the high end, so that short-lived spans do not
//! leave holes between long-lived windows. The lowest quarter is for contracts alone, so
//! that programs without a contract cannot keep a stream from being opened, or a volume
//! from being served under contract. Services have no more than a quarter of the whole.
//!
//! Of what best effort can have, [`limits::INTERACTIVE_MEMORY`] is kept for interactive
//! requests: the others take nothing that would leave less than what is not in use of it.
//!
//! Windows in regions lie beside the arena, and are only counted here: all windows
//! together, here and there, and what is set aside for services are no more than the arena
//! has for windows.
//!
//! In free memory lie bytes that are kept for readers that come behind others ([`Rooms`]): they
//! stay free, and go when their memory is taken. Only while a command copies to or from them are
//! they nobody else's; that is never in the quarter that is for contracts alone.

use crate::api::{DiskAction, Error, MemoryStatus, Span};
use crate::limits;
use crate::memory::rooms::{Room, Rooms};
use sched::Sorted;
use units::Bytes;

/// What a span is for; each purpose has its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Window,
    /// Set aside for a volume under contract.
    Service,
    BestEffort,
    /// Of what is kept for interactive requests.
    Interactive,
}

#[derive(Clone, Debug)]
pub(crate) struct Arena {
    total: Bytes,
    /// Offset to length of every free piece.
    free: Sorted<u64, u64>,
    windows: Bytes,
    regions: Bytes,
    services: Bytes,
    best_effort: Bytes,
    interactive: Bytes,
    /// Best effort takes nothing below this.
    low: u64,
    zeros: Span,
    one_block: Span,
    rooms: Rooms,
    /// Memory has come back, and whoever waits for some was not told.
    pub has_returned: bool,
}

/// What nobody has: the zeros, and the one block.
const KEPT: Bytes = Bytes::new(limits::ZEROS.get() + limits::BLOCK_MIN.get());
/// The part of the arena that is for contracts alone.
const FOR_CONTRACTS: u64 = 4;
/// The part that services may have at the most.
const FOR_SERVICES: u64 = 4;

impl Arena {
    pub(crate) fn new(total: Bytes) -> Self {
        assert!(total >= limits::MEMORY_MIN, "arena below MEMORY_MIN");
        let usable = total.round_down(limits::BLOCK_MIN) - KEPT;
        let mut free = Sorted::default();
        free.insert(0, usable.get());
        let low = (total / FOR_CONTRACTS).round_down(limits::BLOCK_MIN).get();
        Self {
            total,
            free,
            windows: Bytes::ZERO,
            regions: Bytes::ZERO,
            services: Bytes::ZERO,
            best_effort: Bytes::ZERO,
            interactive: Bytes::ZERO,
            low,
            zeros: Span { offset: usable, len: limits::ZEROS },
            one_block: Span { offset: usable + limits::ZEROS, len: limits::BLOCK_MIN },
            rooms: Rooms::within(low..low * 3),
            has_returned: false,
        }
    }

    /// A span that holds zeros for ever.
    pub(crate) fn zeros(&self) -> Span {
        self.zeros
    }

    /// Whether that writes these.
    pub(crate) fn is_zeros(&self, action: &DiskAction) -> bool {
        matches!(action, DiskAction::Write { span, .. } if span.offset == self.zeros.offset)
    }

    /// A block that one operation after the other has which clears what lies behind an end.
    pub(crate) fn one_block(&self) -> Span {
        self.one_block
    }

    /// What a further window may take.
    pub(crate) fn free_for_windows(&self) -> Bytes {
        let held = self.best_effort + self.interactive;
        let kept = limits::BEST_EFFORT_MEMORY_MIN.saturating_sub(held);
        self.largest().saturating_sub(kept).min(self.free_beside())
    }

    /// What may be set aside for a further service on one disk.
    pub(crate) fn free_for_services(&self) -> Bytes {
        self.free_for_windows().min(self.left_for_services())
    }

    /// What services have not had of the part that they may have, windows aside.
    pub(crate) fn left_for_services(&self) -> Bytes {
        Self::for_services(self.total).saturating_sub(self.services)
    }

    /// The longest span that best effort of any class could have now.
    pub(crate) fn free_for_best_effort(&self) -> Bytes {
        Bytes::new(self.above_low().max().unwrap_or(0)).min(self.shared())
    }

    /// What best effort of any class may still take, in as many pieces as it is in.
    fn shared(&self) -> Bytes {
        let kept = limits::INTERACTIVE_MEMORY - self.interactive;
        Bytes::new(self.above_low().sum()).saturating_sub(kept)
    }

    /// What best effort can have when nobody has anything.
    pub(crate) fn for_best_effort(&self) -> Bytes {
        self.total.round_down(limits::BLOCK_MIN) - KEPT - Bytes::new(self.low)
    }

    /// How much of each free piece lies where best effort may take it.
    fn above_low(&self) -> impl Iterator<Item = u64> {
        self.free.range(..).map(|(start, &len)| (start + len).saturating_sub(start.max(self.low)))
    }

    /// What a further window in a region may take.
    pub(crate) fn free_beside(&self) -> Bytes {
        Self::for_windows(self.total).saturating_sub(self.windows + self.regions + self.services)
    }

    /// Counts a window in a region.
    pub(crate) fn take_beside(&mut self, asked: Bytes) -> Result<(), Error> {
        let free = self.free_beside();
        if asked > free {
            return Err(Error::NoMemory { asked, free });
        }
        self.regions += asked;
        Ok(())
    }

    /// A part of a window in a region is gone.
    pub(crate) fn give_beside(&mut self, len: Bytes) {
        self.regions -= len;
    }

    /// What a node of `total` memory has for windows.
    pub(crate) fn for_windows(total: Bytes) -> Bytes {
        total.round_down(limits::BLOCK_MIN) - KEPT - limits::BEST_EFFORT_MEMORY_MIN
    }

    /// What services may have together of a node of `total` memory.
    pub(crate) fn for_services(total: Bytes) -> Bytes {
        (total / FOR_SERVICES).round_down(limits::BLOCK_MIN)
    }

    pub(crate) fn status(&self) -> MemoryStatus {
        MemoryStatus {
            total: self.total,
            windows: self.windows,
            regions: self.regions,
            services: self.services,
            best_effort: self.best_effort + self.interactive,
            free: self.free.values().map(|&len| Bytes::new(len)).sum::<Bytes>()
                + self.rooms.copying(),
            kept: self.rooms.laid() + self.rooms.copying(),
            from_memory: Bytes::ZERO,
        }
    }

    /// Takes free memory where `len` bytes may be kept; `None` where there is none without
    /// other kept bytes, or too much is being copied. It is to be [laid](Self::lay) or
    /// [dropped](Self::drop_room).
    pub(crate) fn make_room(&mut self, len: Bytes) -> Option<Room> {
        let need = len.round_up(limits::BLOCK_MIN).get();
        let start = self.rooms.find(&self.free, need)?;
        self.cut_out(start, need);
        Some(self.rooms.made(start, need))
    }

    /// Where `len` bytes that lie at `near`, or as near as what may be kept reaches, could be kept
    /// but for what is: from there on all is free.
    pub(crate) fn room_for(&self, near: Bytes, len: Bytes) -> Option<Bytes> {
        let need = len.round_up(limits::BLOCK_MIN).get();
        let at = self.rooms.place_for(near.get(), need)?;
        let piece = self.free.range(..=at).next_back();
        piece.filter(|&(start, &len)| start + len >= at + need).map(|_| Bytes::new(at))
    }

    /// What is kept in any of `len` bytes from `at` on, but for what is being copied.
    pub(crate) fn laid_in(&self, at: Bytes, len: Bytes) -> impl Iterator<Item = Room> {
        self.rooms.laid_in(at.get()..(at + len).get())
    }

    /// As [`Arena::make_room`], where this is free and [nothing lies there](Self::laid_in).
    pub(crate) fn make_room_at(&mut self, at: Bytes, len: Bytes) -> Option<Room> {
        let need = len.round_up(limits::BLOCK_MIN).get();
        let may = self.rooms.may_copy(need) && self.room_for(at, len) == Some(at);
        if !may || self.laid_in(at, len).next().is_some() {
            return None;
        }
        self.cut_out(at.get(), need);
        Some(self.rooms.made(at.get(), need))
    }

    /// From now on this is kept as long as nobody takes its memory.
    pub(crate) fn lay(&mut self, room: Room) {
        self.rooms.lay(room);
        self.give_piece(room.offset.get(), room.len.get());
    }

    /// This is not kept any more, and nobody copies it.
    pub(crate) fn drop_room(&mut self, room: Room) {
        self.rooms.drop_taken(room);
        self.give_piece(room.offset.get(), room.len.get());
    }

    /// Takes what was laid, to be copied; false where it is gone, or too much is being copied.
    pub(crate) fn pick_up(&mut self, room: Room) -> bool {
        let is_there = self.rooms.pick_up(room);
        if is_there {
            self.cut_out(room.offset.get(), room.len.get());
        }
        is_there
    }

    /// What was laid is not wanted any more.
    pub(crate) fn forget_room(&mut self, room: Room) {
        self.rooms.forget(room);
    }

    /// Whether what was laid there is there still.
    pub(crate) fn has_room(&self, room: Room) -> bool {
        self.rooms.has(room)
    }

    /// The most that is kept at a time.
    pub(crate) fn kept_max(&self) -> Bytes {
        self.rooms.most()
    }

    /// Takes a part of a free piece.
    fn cut_out(&mut self, start: u64, len: u64) {
        let piece = self.free.range(..=start).next_back().map(|(at, &len)| (at, len));
        let (at, whole) = piece.expect("it lies in free memory");
        assert!(start + len <= at + whole, "it lies in free memory");
        self.free.remove(at);
        if start > at {
            self.free.insert(at, start - at);
        }
        if start + len < at + whole {
            self.free.insert(start + len, at + whole - start - len);
        }
    }

    /// A span of `len`, rounded up to the disk's alignment in the account but
    /// not in the answer; `None` where no piece is long enough.
    pub(crate) fn take(&mut self, len: Bytes, purpose: Use) -> Option<Span> {
        assert!(!len.is_zero());
        let need = len.round_up(limits::BLOCK_MIN).get();
        let fits = |piece: &(u64, &u64)| *piece.1 >= need;
        let may_have = match purpose {
            Use::Window => self.free_for_windows(),
            Use::Service => self.free_for_services(),
            Use::BestEffort => self.shared(),
            Use::Interactive => limits::INTERACTIVE_MEMORY - self.interactive,
        };
        if may_have.get() < need {
            return None;
        }
        let (start, have, taken) = match purpose {
            Use::Window | Use::Service => {
                let (start, &have) = self.free.range(..).find(fits)?;
                (start, have, start)
            }
            Use::BestEffort | Use::Interactive => {
                let above = |piece: &(u64, &u64)| piece.0 + piece.1 >= self.low + need;
                let mut pieces = self.free.range(..).rev();
                let (start, &have) = pieces.find(|piece| fits(piece) && above(piece))?;
                (start, have, start + have - need)
            }
        };
        if taken > start {
            self.free.insert(start, have - need);
        } else {
            self.free.remove(start);
            if have > need {
                self.free.insert(start + need, have - need);
            }
        }
        self.rooms.taken(taken..taken + need);
        *self.account(purpose) += Bytes::new(need);
        Some(Span { offset: Bytes::new(taken), len })
    }

    /// Gives a span back; it must be one that [`Arena::take`] gave for `purpose`, or
    /// whole blocks of one.
    pub(crate) fn give(&mut self, span: Span, purpose: Use) {
        let len = span.len.round_up(limits::BLOCK_MIN).get();
        *self.account(purpose) -= Bytes::new(len);
        self.give_piece(span.offset.get(), len);
    }

    fn give_piece(&mut self, start: u64, len: u64) {
        self.has_returned = true;
        let (mut from, mut end) = (start, start + len);
        let after = self.free.range(start..).next().map(|(after, &len)| (after, len));
        if let Some((after, len)) = after {
            assert!(end <= after, "memory given back twice");
            if end == after {
                self.free.remove(after);
                end += len;
            }
        }
        let before =
            self.free.range(..start).next_back().map(|(before, &len)| (before, before + len));
        if let Some((before, its_end)) = before {
            assert!(its_end <= start, "memory given back twice");
            if its_end == start {
                from = before;
            }
        }
        self.free.insert(from, end - from);
    }

    fn largest(&self) -> Bytes {
        Bytes::new(self.free.values().copied().max().unwrap_or(0))
    }

    fn account(&mut self, purpose: Use) -> &mut Bytes {
        match purpose {
            Use::Window => &mut self.windows,
            Use::Service => &mut self.services,
            Use::BestEffort => &mut self.best_effort,
            Use::Interactive => &mut self.interactive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn spans_never_overlap_and_all_memory_comes_back() {
        // A small generator, so that the test needs no crate: Knuth's MMIX.
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        let mut arena = Arena::new(Bytes::mib(32));
        let free = arena.status().free;
        let mut held: Vec<(Span, Use)> = Vec::new();
        for _ in 0..20_000 {
            if random(2) == 0 {
                let all = [Use::Window, Use::Service, Use::BestEffort, Use::Interactive];
                let purpose = all[random(4) as usize];
                let len = Bytes::new(1 + random(1 << 20));
                if let Some(span) = arena.take(len, purpose) {
                    for (other, _) in &held {
                        let apart = span.offset + span.len <= other.offset
                            || other.offset + other.len <= span.offset;
                        assert!(apart, "{span:?} overlaps {other:?}");
                    }
                    held.push((span, purpose));
                }
            } else if !held.is_empty() {
                let (span, purpose) = held.swap_remove(random(held.len() as u64) as usize);
                arena.give(span, purpose);
            }
        }
        for (span, purpose) in held {
            arena.give(span, purpose);
        }
        let end = arena.status();
        let held = (end.windows, end.services, end.best_effort);
        assert_eq!((end.free, held), (free, (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO)));
        assert_eq!(arena.free.len(), 1, "neighbours are merged");
    }

    #[test]
    fn windows_leave_memory_for_best_effort() {
        let mut arena = Arena::new(Bytes::mib(16));
        while arena.take(Bytes::mib(1), Use::Window).is_some() {}
        assert!(arena.take(limits::BEST_EFFORT_MAX, Use::BestEffort).is_some());
    }

    #[test]
    fn best_effort_leaves_a_quarter_to_windows_and_regions_count_as_windows() {
        let mut arena = Arena::new(Bytes::mib(32));
        while arena.take(Bytes::mib(1), Use::BestEffort).is_some() {}
        assert!(arena.take(Bytes::mib(8), Use::Window).is_some());
        let free = arena.free_beside();
        assert_eq!(free, Arena::for_windows(Bytes::mib(32)) - Bytes::mib(8));
        assert_eq!(arena.take_beside(free), Ok(()));
        assert!(arena.take_beside(limits::BLOCK_MIN).is_err());
        arena.give_beside(free);
        assert_eq!(arena.status().regions, Bytes::ZERO);
    }

    #[test]
    fn best_effort_leaves_what_is_kept_for_interactive_requests_and_memory_for_services() {
        let mut arena = Arena::new(Bytes::mib(32));
        while arena.take(Bytes::kib(64), Use::BestEffort).is_some() {}
        assert_eq!(arena.free_for_best_effort(), Bytes::kib(60), "beside the zeros and one block");
        let kept = limits::INTERACTIVE_MEMORY;
        let mut had = Bytes::ZERO;
        while arena.take(Bytes::kib(64), Use::Interactive).is_some() {
            had += Bytes::kib(64);
        }
        assert_eq!(had, kept);
        assert_eq!(arena.free_for_services(), Bytes::mib(8), "a quarter of all");
        assert!(arena.take(Bytes::mib(8), Use::Service).is_some());
        assert_eq!(arena.take(limits::BLOCK_MIN, Use::Service), None, "and no more");
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn memory_given_back_twice_is_a_programmer_error() {
        let mut arena = Arena::new(Bytes::mib(16));
        let keep = arena.take(Bytes::mib(1), Use::Window).unwrap();
        let span = arena.take(Bytes::mib(1), Use::Window).unwrap();
        arena.give(keep, Use::Window);
        arena.windows += keep.len;
        arena.give(span, Use::Window);
        arena.give(keep, Use::Window);
    }
}
