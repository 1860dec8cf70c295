//! The bus between disks and host: one transfer at a time, whoever comes first.
//!
//! A disk that shares its bus sends in bursts (for a hard disk: what it has of
//! one track); while one sends the others keep reading the platters into their
//! caches and wait. Disks reserve their bursts ahead of time, in the order in
//! which their commands are served; a burst takes the first gap that holds it.
//!
//! Invariant: the reserved spans rise and do not overlap.

use alloc::vec::Vec;
use units::{Duration, Instant};

/// Reservations that are kept; those that are older end first.
const KEPT: usize = 64;

/// A bus, private to one disk or shared by several.
#[derive(Clone, Debug)]
pub struct Bus {
    busy: Vec<(Instant, Instant)>,
}

impl Default for Bus {
    fn default() -> Self {
        Self::new()
    }
}

impl Bus {
    /// An idle bus.
    pub fn new() -> Self {
        Self { busy: Vec::with_capacity(KEPT + 1) }
    }

    /// Reserves the first free `span` that begins at `from` or later, and returns
    /// its end.
    pub fn reserve(&mut self, from: Instant, span: Duration) -> Instant {
        if span.is_zero() {
            return from;
        }
        let mut index = self.busy.partition_point(|&(_, end)| end <= from);
        let mut begin = from;
        while let Some(&(busy, end)) = self.busy.get(index) {
            if begin + span <= busy {
                break;
            }
            (begin, index) = (begin.max(end), index + 1);
        }
        self.busy.insert(index, (begin, begin + span));
        if self.busy.len() > KEPT {
            self.busy.remove(0);
        }
        begin + span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_the_first_gap_that_holds_it() {
        let (at, ms) = (|ms: u64| Instant::from_nanos(ms * 1_000_000), Duration::from_millis);
        let mut bus = Bus::new();
        assert_eq!(bus.reserve(at(10), ms(5)), at(15));
        assert_eq!(bus.reserve(at(20), ms(5)), at(25));
        assert_eq!(bus.reserve(at(0), ms(5)), at(5), "before both");
        assert_eq!(bus.reserve(at(11), ms(6)), at(31), "too long for the gap at 15");
        assert_eq!(bus.reserve(at(11), ms(4)), at(19), "short enough for it");
    }
}
