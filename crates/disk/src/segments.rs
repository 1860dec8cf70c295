//! What a hard disk's cache holds: runs of sectors, one per segment.
//!
//! Invariants: no more segments than the model has; the most recently used one
//! comes first; at most one is `live`, that is, the arm stands where it ends and
//! reads on into it until it is told to go elsewhere.

use crate::model::Cache;
use alloc::vec::Vec;
use units::Instant;

/// A run of sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub first: u64,
    /// The sector after those that were in at `since`.
    pub held: u64,
    /// Where reading ahead will end.
    pub planned: u64,
    pub since: Instant,
    pub live: bool,
    pub written: bool,
}

/// All segments, the last used first.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    list: Vec<Segment>,
    most: usize,
}

impl Segments {
    pub fn new(cache: Option<Cache>) -> Self {
        let most = cache.map_or(0, |cache| cache.segments);
        Self { list: Vec::with_capacity(most), most }
    }

    /// The segment that has, or will have, the sectors from `first` to `end`.
    pub fn find(&self, first: u64, end: u64) -> Option<usize> {
        self.list.iter().position(|segment| segment.first <= first && end <= segment.planned)
    }

    pub fn get_mut(&mut self, index: usize) -> &mut Segment {
        &mut self.list[index]
    }

    pub fn live(&self) -> Option<usize> {
        self.list.iter().position(|segment| segment.live)
    }

    /// Makes a segment the most recently used one.
    pub fn touch(&mut self, index: usize) {
        self.list[..=index].rotate_right(1);
    }

    /// True where forgetting these sectors, or making room, ends the live one.
    pub fn ends_live(&self, first: u64, end: u64) -> bool {
        self.live().is_some_and(|index| {
            let segment = &self.list[index];
            (segment.first < end && first < segment.planned) || index + 1 == self.most
        })
    }

    /// Forgets every segment that holds some of these sectors.
    pub fn forget(&mut self, first: u64, end: u64) {
        self.list.retain(|segment| segment.planned <= first || end <= segment.first);
    }

    /// Puts a segment in the place of the one that was not used for longest.
    pub fn insert(&mut self, segment: Segment) {
        if self.most == 0 {
            return;
        }
        self.list.truncate(self.most - 1);
        self.list.insert(0, segment);
    }

    /// Adds written sectors: to the segment that they continue, or to a new one.
    pub fn write(&mut self, first: u64, end: u64, most: u64, since: Instant) {
        let continued =
            self.list.iter().find(|segment| segment.written && segment.planned == first);
        let start = continued.map_or(first, |segment| segment.first);
        if start < first {
            self.list.retain(|segment| !(segment.written && segment.planned == first));
        }
        self.forget(first, end);
        let first = start.max(end.saturating_sub(most));
        let (held, planned) = (end, end);
        self.insert(Segment { first, held, planned, since, live: false, written: true });
    }
}
