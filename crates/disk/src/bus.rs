//! The bus between disks and host: one transfer at a time, whoever comes first.
//!
//! A disk that shares its bus sends in bursts (for a hard disk: what it has of
//! one track); while one sends the others keep reading the platters into their
//! caches and wait. Disks reserve their bursts ahead of time, in the order in
//! which their commands are served; a burst takes the gaps that the others leave.
//!
//! Invariant: the reserved spans rise and do not overlap.

use alloc::vec::Vec;
use core::ops::Range;
use units::{Duration, Instant};

/// Reservations that are kept; those that are older end first.
const KEPT: usize = 64;
/// For less than this a disk does not take the bus. Chosen to meet what a third
/// Cheetah on a bus adds (Clockwise thesis, section 4.3.7), whose disks send some
/// 100 KB at a time: this is 60.
pub(crate) const SHORTEST: Duration = Duration::from_micros(1_500);

/// A bus, private to one disk or shared by several.
#[derive(Clone, Debug)]
pub struct Bus {
    /// Nothing is kept for a disk that is alone: it sends one command at a time.
    busy: Option<Vec<(Instant, Instant)>>,
}

impl Default for Bus {
    fn default() -> Self {
        Self::new()
    }
}

impl Bus {
    /// An idle bus for several disks.
    pub fn new() -> Self {
        Self { busy: Some(Vec::with_capacity(4 * KEPT)) }
    }

    /// A bus that one disk has for itself.
    pub(crate) const fn private() -> Self {
        Self { busy: None }
    }

    /// The bursts that are reserved, from when to when, in order of time: the last 64 of
    /// them; none of a bus that one disk has for itself.
    pub fn bursts(&self) -> impl Iterator<Item = Range<Instant>> + '_ {
        self.busy.iter().flatten().map(|&(begin, end)| begin..end)
    }

    /// Reserves `span` of the bus at `from` or later, and returns its end. What does
    /// not fit before the next reserved burst is sent after it, if at least
    /// 1.5 ms fit before; the disk gives the bus up in between.
    pub fn reserve(&mut self, from: Instant, span: Duration) -> Instant {
        let Some(busy) = &mut self.busy else { return from + span };
        let (mut begin, mut left) = (from, span);
        let mut index = busy.partition_point(|&(_, end)| end <= from);
        while !left.is_zero() {
            let gap = match busy.get(index) {
                Some(&(next, _)) => next.saturating_since(begin),
                None => Duration::MAX,
            };
            if gap >= left.min(SHORTEST) {
                let part = left.min(gap);
                busy.insert(index, (begin, begin + part));
                (begin, left) = (begin + part, left - part);
            } else {
                begin = begin.max(busy[index].1);
            }
            index += 1;
        }
        if busy.len() > KEPT {
            busy.drain(..busy.len() - KEPT);
        }
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_fills_the_gaps_that_others_leave() {
        let (at, ms) = (|ms: u64| Instant::from_nanos(ms * 1_000_000), Duration::from_millis);
        let mut bus = Bus::new();
        assert_eq!(bus.reserve(at(10), ms(5)), at(15));
        assert_eq!(bus.reserve(at(20), ms(5)), at(25));
        assert_eq!(bus.reserve(at(0), ms(5)), at(5), "before both");
        let us = Duration::from_micros(9_800);
        assert_eq!(bus.clone().reserve(Instant::EPOCH + us, ms(1)), at(16), "too short a gap");
        assert_eq!(bus.reserve(at(11), ms(6)), at(26), "5 in the gap at 15, 1 at 25");
        assert_eq!(bus.reserve(at(24), ms(1)), at(27), "after them all");
    }
}
