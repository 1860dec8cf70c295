//! Memory that is set aside for volumes and handles under contract, so that no request within its
//! contract waits for memory that others hold (ABISS, section 3.2: guaranteed slots).
//!
//! A contract has a *lot* on each disk that it has a task on: slots of equal length, one for
//! each operation that the contract lets the disk begin in a period, and one for an operation
//! whose bytes are on their way between the pool and its program. A slot is lent to one
//! operation at a time.
//!
//! Invariants: a lot is one span of the arena, taken when the contract is admitted and given
//! back when the contract has ended and its last slot is back; `lent` has exactly the slots
//! that are not in their lot's `free`.

use crate::api::{DiskIndex, Error, Holder, MemoryHeld, Span};
use crate::limits;
use crate::memory::arena::{Arena, Use};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use units::{Bytes, Instant};

/// What a contract needs on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub disk: DiskIndex,
    /// How many operations,
    pub slots: u64,
    /// and the memory of each: whole 4 KiB.
    pub slot: Bytes,
}

impl Need {
    pub(crate) fn bytes(&self) -> Bytes {
        self.slot.saturating_mul(self.slots)
    }
}

/// Whose slots: a volume's, or a handle's, on one disk.
pub(crate) type Place = (Holder, DiskIndex);

#[derive(Clone, Debug)]
struct Lot {
    place: Place,
    need: Need,
    span: Span,
    /// Where the slots that nobody has begin.
    free: Vec<Bytes>,
    /// Slots of operations that have not ended: what has them is a disk, not a program.
    under_way: u64,
    /// When one was lent last, or came back.
    moved: Instant,
}

impl Lot {
    fn new(holder: Holder, need: Need, span: Span) -> Self {
        let free = (0..need.slots).rev().map(|number| span.offset + need.slot * number).collect();
        let (under_way, moved) = (0, Instant::EPOCH);
        Self { place: (holder, need.disk), need, span, free, under_way, moved }
    }

    /// None was lent, and none came back, for long.
    fn rests(&self, now: Instant) -> bool {
        self.moved.saturating_add(limits::MEMORY_WITHIN) <= now
    }

    fn is_whole(&self) -> bool {
        self.free.len() as u64 == self.need.slots
    }
}

/// All that is set aside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reserves {
    /// By a number of their own; also those whose contract has ended.
    lots: BTreeMap<u64, Lot>,
    /// Those of the contracts that are in force.
    current: BTreeMap<Place, u64>,
    /// Slots that operations have: by where they begin, of which lot.
    lent: BTreeMap<Bytes, u64>,
    next: u64,
}

impl Reserves {
    /// From now on `holder` has exactly this set aside; nothing where `needs` is empty. What
    /// operations have of the old goes back when they have ended.
    ///
    /// # Errors
    /// [`Error::NoServiceMemory`]; then nothing has changed.
    pub(crate) fn set(
        &mut self,
        arena: &mut Arena,
        holder: Holder,
        needs: &[Need],
    ) -> Result<(), Error> {
        let stays = |need: &Need| {
            let lot = self.current.get(&(holder, need.disk));
            lot.is_some_and(|lot| self.lots[lot].need == *need)
        };
        let (stay, fresh): (Vec<Need>, Vec<Need>) = needs.iter().partition(|need| stays(need));
        let asked: Bytes = fresh.iter().map(Need::bytes).fold(Bytes::ZERO, Bytes::saturating_add);
        let free = arena.free_for_services();
        let mut taken = Vec::with_capacity(fresh.len());
        for need in fresh {
            let Some(span) = arena.take(need.bytes(), Use::Service) else {
                taken.iter().for_each(|lot: &Lot| arena.give(lot.span, Use::Service));
                return Err(Error::NoServiceMemory { asked, free });
            };
            taken.push(Lot::new(holder, need, span));
        }
        let old: Vec<Place> = self.current.range(all_of(holder)).map(|(&place, _)| place).collect();
        for place in old.into_iter().filter(|place| stay.iter().all(|it| it.disk != place.1)) {
            let lot = self.current.remove(&place).expect("it was found");
            self.drop_if_whole(arena, lot);
        }
        for lot in taken {
            self.current.insert(lot.place, self.next);
            self.lots.insert(self.next, lot);
            self.next += 1;
        }
        Ok(())
    }

    /// What is set aside: operations, and their memory.
    pub(crate) fn of(&self, holder: Holder) -> (u64, Bytes) {
        let lots = self.current.range(all_of(holder)).map(|(_, lot)| &self.lots[lot].need);
        lots.fold((0, Bytes::ZERO), |(slots, bytes), need| {
            (slots + need.slots, bytes + need.bytes())
        })
    }

    /// Whether an operation of `len` bytes waits in vain for what is set aside for `place`:
    /// there is none so long, or programs have had all of it for long. What a disk has comes back
    /// when it is done.
    pub(crate) fn is_stuck(&self, now: Instant, place: Place, len: Bytes) -> bool {
        let lot = self.current.get(&place).map(|number| &self.lots[number]);
        let comes = |lot: &Lot| lot.under_way > 0 || !lot.rests(now);
        !lot.is_some_and(|lot| len <= lot.need.slot && comes(lot))
    }

    /// The first disk that has had slots of a holder's for long, while nobody could have one.
    pub(crate) fn held_by_disk(&self, now: Instant, holder: Holder) -> Option<MemoryHeld> {
        let mut lots = self.current.range(all_of(holder)).map(|(_, number)| &self.lots[number]);
        let lot = lots.find(|lot| lot.under_way > 0 && lot.free.is_empty() && lot.rests(now))?;
        let (disk, operations) = (lot.need.disk, lot.need.slots);
        Some(MemoryHeld { disk, with_disk: lot.under_way, operations })
    }

    /// An operation begins with memory: nothing where that is no slot.
    pub(crate) fn begin(&mut self, span: &Span) {
        if let Some(number) = self.lent.get(&span.offset) {
            self.lots.get_mut(number).expect("a lot outlives its slots").under_way += 1;
        }
    }

    /// One of these has ended.
    pub(crate) fn end(&mut self, now: Instant, span: &Span) {
        if let Some(number) = self.lent.get(&span.offset) {
            let lot = self.lots.get_mut(number).expect("a lot outlives its slots");
            lot.under_way -= 1;
            lot.moved = now;
        }
    }

    /// How long an operation may be that has the next slot; none where all are lent.
    pub(crate) fn free(&self, place: Place) -> Option<Bytes> {
        let lot = &self.lots[self.current.get(&place)?];
        (!lot.free.is_empty()).then_some(lot.need.slot)
    }

    /// A slot for an operation of `len` bytes; none where all are lent, or too short.
    pub(crate) fn take(&mut self, now: Instant, place: Place, len: Bytes) -> Option<Span> {
        let number = *self.current.get(&place)?;
        let lot = self.lots.get_mut(&number).expect("a lot in force");
        if len > lot.need.slot {
            return None;
        }
        let offset = lot.free.pop()?;
        lot.moved = now;
        self.lent.insert(offset, number);
        Some(Span { offset, len })
    }

    /// Whether memory that begins here is a slot that is lent.
    pub(crate) fn has_lent(&self, span: &Span) -> bool {
        self.lent.contains_key(&span.offset)
    }

    /// A slot comes back. Says whose, where it can be lent again.
    ///
    /// # Panics
    /// Where it is not [lent](Self::has_lent).
    pub(crate) fn give(&mut self, arena: &mut Arena, now: Instant, span: Span) -> Option<Place> {
        let number = self.lent.remove(&span.offset).expect("a slot that is lent");
        let lot = self.lots.get_mut(&number).expect("a lot outlives its slots");
        lot.free.push(span.offset);
        lot.moved = now;
        let place = lot.place;
        if self.current.get(&place) == Some(&number) {
            return Some(place);
        }
        self.drop_if_whole(arena, number);
        None
    }

    /// The contract of this lot has ended.
    fn drop_if_whole(&mut self, arena: &mut Arena, number: u64) {
        if self.lots[&number].is_whole() {
            let lot = self.lots.remove(&number).expect("looked at above");
            arena.give(lot.span, Use::Service);
        }
    }
}

fn all_of(holder: Holder) -> core::ops::RangeInclusive<Place> {
    (holder, DiskIndex(0))..=(holder, DiskIndex(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: Holder = Holder { volume: store::VolumeId(7), handle: None };
    const NOW: Instant = Instant::EPOCH;

    fn need(disk: u16, slots: u64) -> Need {
        Need { disk: DiskIndex(disk), slots, slot: Bytes::kib(8) }
    }

    #[test]
    fn a_contract_has_its_slots_and_no_more_and_gives_them_back_with_the_last() {
        let mut arena = Arena::new(Bytes::mib(32));
        let mut reserves = Reserves::default();
        reserves.set(&mut arena, VOLUME, &[need(0, 2), need(1, 2)]).unwrap();
        assert_eq!(arena.status().services, Bytes::kib(32));
        let place = (VOLUME, DiskIndex(0));
        let first = reserves.take(NOW, place, Bytes::kib(4)).unwrap();
        let second = reserves.take(NOW, place, Bytes::kib(8)).unwrap();
        assert!(first.offset != second.offset);
        assert_eq!(reserves.take(NOW, place, Bytes::kib(4)), None, "two and no third");
        assert_eq!(reserves.take(NOW, (VOLUME, DiskIndex(1)), Bytes::kib(12)), None, "too long");
        let (soon, later) = (NOW, NOW + limits::MEMORY_WITHIN);
        assert!(!reserves.is_stuck(soon, place, Bytes::kib(4)));
        assert!(reserves.is_stuck(soon, place, Bytes::kib(12)), "never");
        assert!(reserves.is_stuck(later, place, Bytes::kib(4)), "nobody gives any back");
        assert_eq!(reserves.give(&mut arena, NOW, first), Some(place));
        // The contract ends while an operation has the other slot.
        reserves.set(&mut arena, VOLUME, &[]).unwrap();
        assert_eq!(reserves.take(NOW, place, Bytes::kib(4)), None, "it is over");
        assert_eq!(arena.status().services, Bytes::kib(16), "what is lent is still held");
        assert!(reserves.has_lent(&second) && !reserves.has_lent(&first));
        assert_eq!(reserves.give(&mut arena, NOW, second), None, "nobody may have it now");
        assert_eq!(arena.status().services, Bytes::ZERO);
        assert!(reserves.lots.is_empty() && reserves.lent.is_empty());
    }

    #[test]
    fn what_does_not_fit_changes_nothing_and_what_stays_the_same_is_not_taken_twice() {
        let mut arena = Arena::new(Bytes::mib(32));
        let mut reserves = Reserves::default();
        reserves.set(&mut arena, VOLUME, &[need(0, 600)]).unwrap();
        let before = arena.status();
        let most = arena.free_for_services();
        let refused = reserves.set(&mut arena, VOLUME, &[need(0, 1), need(1, 1000)]);
        let asked = Bytes::kib(8) * 1001;
        assert_eq!(refused, Err(Error::NoServiceMemory { asked, free: most }));
        assert_eq!((arena.status(), reserves.of(VOLUME)), (before, (600, Bytes::kib(4800))));
        reserves.set(&mut arena, VOLUME, &[need(0, 600)]).unwrap();
        assert_eq!(arena.status(), before, "nothing changes where nothing is new");
        assert!(most > limits::BLOCK_MIN);
    }
}
