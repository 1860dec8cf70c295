//! A load like that of *cello*, the file server of Hewlett-Packard Laboratories whose
//! disk trace of 1992 is the best-effort load of the Clockwise thesis (section 3.2.2).
//!
//! The trace itself cannot be had with this program, so this one is fitted to what the
//! thesis prints of it ([`figures`]): the loads of whole days, hours, minutes and of
//! the window of 1300 s are *made* to be those that are printed; the mix of reads and
//! writes, sizes, sequential accesses, times between requests and queues *come out* of
//! the groups that requests are made in, and `tests/cello.rs` says how near to print.
//!
//! Invariants: the load of a part of the trace does not depend on what else is asked
//! for; no more than one slot of 20 s is in memory for each disk, and one day's plan.

pub mod figures;
mod groups;
mod plan;

use super::{Demand, Merge, Source, merge};
use crate::Random;
use groups::Ground;
use std::ops::Range;
use units::{Bytes, Duration, SECTOR};

/// A load like cello's on disks of some size.
#[derive(Clone, Copy, Debug)]
pub struct Cello {
    seed: u64,
    capacity: Bytes,
}

/// One seed for each of many things.
fn mix(seed: u64, of: [u64; 3]) -> u64 {
    of.into_iter().fold(seed, |seed, part| {
        Random::new(seed ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93)).bits()
    })
}

/// One of several classes, each with its share of a thousand.
fn class(classes: &[(u64, u64)], random: &mut Random) -> (u64, u64) {
    let mut part = random.below(1000);
    for class in classes {
        match part.checked_sub(class.1) {
            Some(rest) => part = rest,
            None => return *class,
        }
    }
    unreachable!("shares add up to a thousand")
}

impl Cello {
    /// The load of this seed; each of the eight disks has `capacity` bytes.
    ///
    /// # Panics
    /// Where a disk holds less than 64 MiB.
    pub fn new(seed: u64, capacity: Bytes) -> Self {
        assert!(capacity >= Bytes::mib(64), "room for the load");
        Self { seed, capacity }
    }

    /// What one disk is asked for in a part of the 63 days, [`figures::BUSIEST`] for
    /// instance; times count from the begin of the part.
    ///
    /// # Panics
    /// Where there is no such disk or the part does not lie within the trace.
    pub fn disk(&self, disk: u32, part: Range<Duration>) -> CelloDisk {
        assert!(disk < figures::DISKS, "disks 0 to 7");
        let trace = Duration::from_secs(u64::from(figures::DAYS) * 86_400);
        assert!(part.start <= part.end && part.end <= trace, "63 days");
        let slot = part.start.as_nanos() / (plan::SLOT_SECONDS * 1_000_000_000);
        let ground = Ground { disk, sectors: self.capacity / SECTOR };
        let (day, demands) = (None, Vec::new().into_iter());
        CelloDisk { seed: self.seed, ground, part, slot, day, demands }
    }

    /// What some of the disks are asked for, in one sequence.
    ///
    /// # Panics
    /// As [`Cello::disk`].
    pub fn disks(&self, disks: &[u32], part: Range<Duration>) -> Merge {
        let one = |&disk: &u32| Box::new(self.disk(disk, part.clone())) as Box<dyn Source>;
        merge(disks.iter().map(one).collect())
    }
}

/// The load of one disk.
pub struct CelloDisk {
    seed: u64,
    ground: Ground,
    part: Range<Duration>,
    /// The slot of the trace that is made next.
    slot: u64,
    /// The plan of a day.
    day: Option<(u32, Vec<u64>)>,
    /// What is left of the slot before, with times since the begin of the trace.
    demands: std::vec::IntoIter<Demand>,
}

impl CelloDisk {
    /// Makes the next slot's demands; false at the end of the part.
    fn refill(&mut self) -> bool {
        let begin = Duration::from_secs(self.slot * plan::SLOT_SECONDS);
        if begin >= self.part.end {
            return false;
        }
        let day = (self.slot / plan::DAY as u64) as u32;
        let at = (self.slot % plan::DAY as u64) as usize;
        let disk = self.ground.disk;
        if self.day.as_ref().is_none_or(|(known, _)| *known != day) {
            self.day = Some((day, plan::day(self.seed, disk, day)));
        }
        let slots = &self.day.as_ref().expect("planned just now").1;
        let burst = burst(disk, day, at, slots);
        let random = Random::new(mix(self.seed, [u64::from(disk), self.slot, 3]));
        let mut demands = groups::slot(slots[at], burst, self.ground, random);
        demands.iter_mut().for_each(|demand| demand.at += begin);
        self.demands = demands.into_iter();
        self.slot += 1;
        true
    }
}

/// The window of table 7.1 prints the most requests of a second: one flush of so many,
/// in its fullest slot, and none larger elsewhere in it.
fn burst(disk: u32, day: u32, at: usize, slots: &[u64]) -> Option<u64> {
    if day != figures::BUSIEST_DAY || !plan::WINDOW.contains(&at) {
        return None;
    }
    let fullest = plan::WINDOW.max_by_key(|&at| (slots[at], std::cmp::Reverse(at)))?;
    let peak = figures::WINDOW_LOADS[disk as usize].peak;
    Some(if at == fullest { peak } else { peak / 2 })
}

impl Iterator for CelloDisk {
    type Item = Demand;

    fn next(&mut self) -> Option<Demand> {
        loop {
            for mut demand in self.demands.by_ref() {
                if demand.at >= self.part.end {
                    return None;
                }
                if demand.at >= self.part.start {
                    demand.at -= self.part.start;
                    return Some(demand);
                }
            }
            if !self.refill() {
                return None;
            }
        }
    }
}

impl Source for CelloDisk {}
