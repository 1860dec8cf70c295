//! Sources made of other sources.

use super::{Demand, Source};
use crate::traces;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Duration;

/// Several sources as one; see [`merge`].
pub struct Merge {
    sources: Vec<Box<dyn Source>>,
    /// The next demand of each source that has one, the earliest first. Of demands
    /// at the same time, that of the source that was named first.
    next: BinaryHeap<Reverse<(Duration, usize)>>,
    waiting: Vec<Option<Demand>>,
}

/// All demands of all `sources` in the order of their times; each keeps the number of
/// its disk.
pub fn merge(mut sources: Vec<Box<dyn Source>>) -> Merge {
    let waiting: Vec<_> = sources.iter_mut().map(Iterator::next).collect();
    let first = waiting.iter().enumerate();
    let next = first.filter_map(|(index, it)| Some(Reverse(((*it)?.at, index)))).collect();
    Merge { sources, next, waiting }
}

impl Iterator for Merge {
    type Item = Demand;

    fn next(&mut self) -> Option<Demand> {
        let Reverse((_, index)) = self.next.pop()?;
        let demand = self.waiting[index].take();
        self.waiting[index] = self.sources[index].next();
        if let Some(following) = self.waiting[index] {
            self.next.push(Reverse((following.at, index)));
        }
        demand
    }
}

impl Source for Merge {
    fn error(&self) -> Option<&traces::Error> {
        self.sources.iter().find_map(Source::error)
    }
}

/// The begin of a source; see [`first_demands`].
pub struct First<S> {
    source: S,
    until: Duration,
    ended: bool,
}

/// The demands of `source` before `until`.
pub fn first_demands<S: Source>(source: S, until: Duration) -> First<S> {
    First { source, until, ended: false }
}

impl<S: Source> Iterator for First<S> {
    type Item = Demand;

    fn next(&mut self) -> Option<Demand> {
        if self.ended {
            return None;
        }
        let demand = self.source.next().filter(|demand| demand.at < self.until);
        self.ended = demand.is_none();
        demand
    }
}

impl<S: Source> Source for First<S> {
    fn error(&self) -> Option<&traces::Error> {
        self.source.error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Access, Direction, Lba, SECTOR};

    fn demands(disk: u32, times: &[u64]) -> Box<dyn Source> {
        let access = Access { lba: Lba::new(0), len: SECTOR, direction: Direction::Read };
        let at = |&ms| Demand { at: Duration::from_millis(ms), disk, access, synchronous: true };
        Box::new(times.iter().map(at).collect::<Vec<_>>().into_iter())
    }

    fn times(source: impl Source) -> Vec<(u64, u32)> {
        source.map(|demand| (demand.at.as_millis(), demand.disk)).collect()
    }

    #[test]
    fn merged_sources_keep_the_order_of_time_and_the_first_goes_first() {
        let merged = merge(vec![demands(0, &[1, 5, 5, 9]), demands(1, &[]), demands(2, &[0, 5])]);
        assert_eq!(times(merged), [(0, 2), (1, 0), (5, 0), (5, 0), (5, 2), (9, 0)]);
    }

    #[test]
    fn the_begin_of_a_source_ends_before_its_time_and_stays_ended() {
        let mut first = first_demands(demands(0, &[1, 4, 5, 2]), Duration::from_millis(5));
        assert_eq!(times(first.by_ref().collect::<Vec<_>>().into_iter()), [(1, 0), (4, 0)]);
        assert_eq!(first.next(), None);
    }
}
