//! Rings: volumes of a fixed space that give up their oldest extents for what is recorded next.
//!
//! Offsets of a ring only grow. Its extents are counted from its beginning on, and extent `i` of
//! a ring of `N` extents lies where the volume's extent `i mod N` lies: its *place*. All else in
//! this crate knows places; what comes from outside is a number that only grows, and
//! [`Volume::place_of`] is where one becomes the other. So what is kept of a ring, in memory and on
//! the disks, does not grow however long it is recorded to.
//!
//! Invariants: a ring holds the extents from `first` to `first + N`, of which it has given up all
//! before `first`; what was written of an extent is forgotten when it is given up; nothing is
//! written to a place again before the commit that gave its last extent up is durable
//! (`giving_up.rs`), so that a pool that is opened after a power cut never shows other
//! bytes in the place of what it holds. `N` and `first` are multiples of [`GRAIN`], and `N` of
//! the runs of a turn over all disks: no block of a stream lies across the end of the space, nor is
//! one given up in part, and the rotation over the disks goes on.

use crate::api::{EXTENT, RUN_MAX};
use crate::blocks::Blocks;
use crate::change::Change;
use crate::error::StoreError;
use crate::format;
use crate::geometry::EXTENTS_MAX;
use crate::runs::Freed;
use crate::volume::Volume;
use units::{Bytes, Duration};

/// Extents that are given up at a time: the longest block of a stream on a ring.
pub(crate) const GRAIN: u32 = (RUN_MAX.get() / EXTENT.get()) as u32;

/// The least that a ring gives up at a time: it is a multiple of this.
pub const RING_GRAIN: Bytes = RUN_MAX;

/// The smallest ring: one grain is held while the next is written.
pub const RING_MIN: Bytes = Bytes::new(RING_GRAIN.get() * 2);

/// Offsets of a ring end here: 8 EiB, which 1 GB/s takes 290 years to reach.
pub(crate) const END_MAX: u64 = 1 << 63;

/// The bytes that a ring of `size` at least has on so many disks, with such runs.
///
/// # Errors
/// Where there is no such ring.
pub fn ring_size(size: Bytes, disks: usize, run: Bytes) -> Result<Bytes, StoreError> {
    ring_extents(size, disks, run).map(|extents| EXTENT * u64::from(extents))
}

/// Bytes that it takes that a volume is a ring, where that begins, for how long it keeps what it has,
/// and that its clock was set forward.
pub(crate) fn ring_described(ring: Option<u64>) -> u64 {
    let fixed = format::ring::LEN + format::given_up::LEN + format::keep::LEN;
    ring.map_or(0, |_| (fixed + format::stepped::LEN) as u64)
}

/// Whole extents for a ring of at least `size`: no block lies across its end, and the rotation
/// goes on there.
pub(crate) fn ring_extents(size: Bytes, disks: usize, run: Bytes) -> Result<u32, StoreError> {
    if size < RING_MIN {
        return Err(StoreError::RingTooSmall { size, least: RING_MIN });
    }
    let step = ring_step(disks, run);
    let extents = size.div_ceil(EXTENT).div_ceil(step).saturating_mul(step);
    let possible = u32::try_from(extents).ok().filter(|&n| u64::from(n) < EXTENTS_MAX);
    possible.ok_or(StoreError::TooLarge { size })
}

/// Of so many extents a ring is a whole number.
pub(crate) fn ring_step(disks: usize, run: Bytes) -> u64 {
    let turn = disks as u64 * (run / EXTENT);
    turn / greatest_common(turn, GRAIN.into()) * u64::from(GRAIN)
}

fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

impl Volume {
    /// Whether it is a ring.
    pub fn is_ring(&self) -> bool {
        self.ring.is_some()
    }
    /// Where what it holds begins: the bytes before this were given up. Zero where it is no ring.
    pub fn start(&self) -> Bytes {
        EXTENT * self.ring.unwrap_or(0)
    }
    /// Where its space ends, as it is now: a ring that gives up more goes on behind it.
    pub fn end(&self) -> Bytes {
        self.start() + self.size()
    }
    /// Where its space ends for good: a ring has no such end.
    pub fn limit(&self) -> Bytes {
        if self.is_ring() { Bytes::new(END_MAX) } else { self.size() }
    }
    /// For how long a ring keeps what is recorded to it, where it gives it up for its age as well.
    pub fn keep(&self) -> Option<Duration> {
        (self.keep > 0).then(|| Duration::from_secs(self.keep.into()))
    }
    /// What it holds of what was recorded.
    pub fn held(&self) -> Bytes {
        self.length().saturating_sub(self.start())
    }
    /// The place of an extent that it holds; the number itself where it is no ring.
    pub(crate) fn place_of(&self, extent: u64) -> Option<u32> {
        let (first, count) = (self.ring.unwrap_or(0), self.extents());
        let is_held = extent.checked_sub(first).is_some_and(|at| at < count);
        is_held.then(|| (extent % count) as u32)
    }
    /// The extent that has a place now.
    pub(crate) fn extent_at(&self, place: u64) -> u64 {
        let Some(first) = self.ring else { return place };
        let count = self.extents();
        first + (place + count - first % count) % count
    }
    /// [`Volume::forget_behind_end`] of a ring. Cost: one look at each extent behind the end.
    pub(crate) fn forget_behind_ring(&mut self) {
        let (length, behind) = (self.length(), self.end() / EXTENT);
        for extent in length / EXTENT..behind {
            let place = self.place_of(extent).expect("it is held");
            let before_end = Blocks::first(length.saturating_sub(EXTENT * extent));
            let blocks = self.blocks(place).expect("a place of the ring");
            self.set(place, blocks.intersection(&before_end));
        }
    }
    /// Gives up all extents before `first`; of a thin ring their places, too.
    pub(crate) fn give_up(&mut self, first: u64) -> Freed {
        let (count, before) = (self.extents(), self.ring.unwrap_or(0));
        let end = first.min(before + count);
        for extent in before..end {
            self.set((extent % count) as u32, Blocks::NONE);
        }
        let mut freed = Freed::new();
        if self.placement.thin && end > before {
            let (from, to) = ((before % count) as u32, before % count + (end - before));
            let upto = to.min(count) as u32;
            freed.extend(self.vacate(from..upto));
            freed.extend(self.vacate(0..(to - u64::from(upto)) as u32));
        }
        self.ring = Some(first);
        self.length = self.length.max(self.start().get());
        self.recorded.drop_before(self.start());
        freed
    }
}

/// The changes that make a ring of a volume.
pub(crate) fn described(volume: &Volume) -> impl Iterator<Item = Change> {
    let made = volume.ring.map(|_| Change::Ring { volume: volume.id });
    let first = volume.ring.filter(|&first| first > 0);
    let given_up = first.map(|first| match volume.placement.thin {
        // Its places are those of what it holds.
        true => Change::Begins { volume: volume.id, first },
        false => Change::GivenUp { volume: volume.id, first },
    });
    let keep =
        (volume.keep > 0).then_some(Change::Keep { volume: volume.id, seconds: volume.keep });
    let stepped = volume.stepped.map(|stepped| Change::Stepped { volume: volume.id, stepped });
    made.into_iter().chain(given_up).chain(keep).chain(stepped)
}
