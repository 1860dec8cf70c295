//! A load's addresses on a disk of another size.
//!
//! Both disks are thought of as extents of 1 MiB. Each extent of the load's disk has
//! its place at the same fraction of the other disk, and what lies in an extent keeps
//! its distance from the extent's begin. So near stays near and far stays far, requests
//! that follow each other still do (except from one extent to the next), and the load
//! covers the whole of the other disk. Where that is smaller, several extents share a
//! place.

use super::{Demand, Source};
use crate::traces;
use std::ops::Range;
use units::{Bytes, Lba, SECTOR};

const EXTENT_SECTORS: u64 = Bytes::MIB.get() / SECTOR.get();

/// A source on disks of another size; see [`fit`].
pub struct Fit<S> {
    source: S,
    from: Vec<Bytes>,
    onto: Range<Lba>,
}

/// The demands of `source`, whose disk `i` has `from[i]` bytes (the last entry holds
/// for all that follow), on the sectors `onto` of whatever disk plays it.
///
/// # Panics
/// Where `from` is empty or `onto` holds no whole extent of 1 MiB.
pub fn fit<S: Source>(source: S, from: Vec<Bytes>, onto: Range<Lba>) -> Fit<S> {
    assert!(!from.is_empty(), "the size of at least one disk");
    assert!(onto.start.get() + EXTENT_SECTORS <= onto.end.get(), "room for an extent");
    Fit { source, from, onto }
}

impl<S> Fit<S> {
    fn place(&self, demand: &Demand) -> Demand {
        let disk = (demand.disk as usize).min(self.from.len() - 1);
        let extents = |sectors: u64| u128::from(sectors / EXTENT_SECTORS).max(1);
        let room = self.onto.start.distance(self.onto.end);
        let from = extents(self.from[disk].get() / SECTOR.get());
        let sector = demand.access.lba.get();
        // What lies beyond the size that was told starts again at the begin.
        let extent = u128::from(sector / EXTENT_SECTORS) % from;
        let place = (extent * extents(room) / from) as u64 * EXTENT_SECTORS;
        let mut moved = *demand;
        moved.access.len = moved.access.len.min(Bytes::new(room * SECTOR.get()));
        let last = room - moved.access.len.div_ceil(SECTOR);
        let place = (place + sector % EXTENT_SECTORS).min(last);
        moved.access.lba = Lba::new(self.onto.start.get() + place);
        moved
    }
}

impl<S: Source> Iterator for Fit<S> {
    type Item = Demand;

    fn next(&mut self) -> Option<Demand> {
        self.source.next().map(|demand| self.place(&demand))
    }
}

impl<S: Source> Source for Fit<S> {
    fn error(&self) -> Option<&traces::Error> {
        self.source.error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Access, Direction, Duration};

    fn at(sector: u64, len: Bytes) -> Demand {
        let access = Access { lba: Lba::new(sector), len, direction: Direction::Read };
        Demand { at: Duration::ZERO, disk: 0, access, synchronous: true }
    }

    fn fitted(demands: Vec<Demand>, from: Bytes, onto: Range<u64>) -> Vec<(u64, Bytes)> {
        let onto = Lba::new(onto.start)..Lba::new(onto.end);
        let moved = fit(demands.into_iter(), vec![from], onto);
        moved.map(|it| (it.access.lba.get(), it.access.len)).collect()
    }

    #[test]
    fn a_place_keeps_its_fraction_of_the_disk_and_neighbours_stay_neighbours() {
        let len = Bytes::kib(8);
        let demands = vec![at(0, len), at(16, len), at(5 * 2048, len), at(9 * 2048 + 7, len)];
        let moved = fitted(demands, Bytes::mib(10), 100..100 + 40 * 2048);
        let sectors: Vec<u64> = moved.iter().map(|(sector, _)| sector - 100).collect();
        assert_eq!(sectors, [0, 16, 20 * 2048, 36 * 2048 + 7]);
    }

    #[test]
    fn nothing_leaves_a_smaller_disk_whatever_the_load_asks_for() {
        let mut random = crate::Random::new(1);
        for _ in 0..10_000 {
            let len = Bytes::new(512 * random.between(1, 10_000));
            let demand = at(random.below(1 << 40), len);
            let room = random.between(2048, 9000);
            for (sector, len) in fitted(vec![demand], Bytes::mib(random.below(500)), 7..7 + room) {
                assert!(sector >= 7 && sector + len.div_ceil(SECTOR) <= 7 + room, "{demand:?}");
                assert!(!len.is_zero());
            }
        }
    }
}
