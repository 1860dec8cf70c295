//! Requests by place, and an arm that moves over them; shared by the plain orders.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use sched::{Queues, Waiting};
use units::Lba;

type Entry = (Lba, u64, u64);

/// Waiting requests by place, then by arrival. Those that may not run yet, for
/// the order of their flow, are passed over.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    entries: BTreeSet<Entry>,
}

/// Where a sweep has got to: what came to `place` after `seen` is behind it, so
/// that nobody holds a sweep up by asking for one place again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arm {
    pub place: Lba,
    /// The newest arrival when the arm came here.
    pub seen: u64,
}

impl Arm {
    pub(super) fn remember(arm: Option<Self>, state: &mut Vec<u64>) {
        state.extend(arm.map(|arm| arm.place.get()));
    }
}

impl Places {
    pub(super) fn insert(&mut self, request: &Waiting) {
        self.entries.insert(entry(request));
    }

    /// False where it was not here.
    pub(super) fn remove(&mut self, request: &Waiting) -> bool {
        self.entries.remove(&entry(request))
    }

    pub(super) fn append(&mut self, other: &mut Self) {
        self.entries.append(&mut other.entries);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every request that may run, by place.
    pub(super) fn iter<'a>(&'a self, queues: &'a Queues) -> impl Iterator<Item = &'a Waiting> {
        self.entries.iter().filter_map(|&entry| runs(queues, entry))
    }

    /// The nearest at `from` or above.
    pub(super) fn above<'a>(&'a self, queues: &'a Queues, from: Lba) -> Option<&'a Waiting> {
        self.entries.range((from, 0, 0)..).find_map(|&entry| runs(queues, entry))
    }

    /// The nearest below `from`.
    pub(super) fn below<'a>(&'a self, queues: &'a Queues, from: Lba) -> Option<&'a Waiting> {
        self.entries.range(..(from, 0, 0)).rev().find_map(|&entry| runs(queues, entry))
    }

    /// The lowest.
    pub(super) fn lowest<'a>(&'a self, queues: &'a Queues) -> Option<&'a Waiting> {
        self.above(queues, Lba::default())
    }

    /// The highest.
    pub(super) fn highest<'a>(&'a self, queues: &'a Queues) -> Option<&'a Waiting> {
        self.below(queues, Lba::new(u64::MAX))
    }

    /// The next one upward of the arm; of those at its place, the ones it has seen.
    pub(super) fn upward<'a>(&'a self, queues: &'a Queues, arm: Arm) -> Option<&'a Waiting> {
        let here = self.entries.range((arm.place, 0, 0)..=(arm.place, arm.seen, u64::MAX));
        let found = here.copied().find_map(|entry| runs(queues, entry));
        found.or_else(|| self.above(queues, Lba::new(arm.place.get() + 1)))
    }

    /// The nearest in either direction; upward where both are as near.
    pub(super) fn nearest<'a>(&'a self, queues: &'a Queues, from: Lba) -> Option<&'a Waiting> {
        let both = [self.above(queues, from), self.below(queues, from)];
        both.into_iter().flatten().min_by_key(|request| request.place().distance(from))
    }

    /// As 2.6 kernels weigh it: the nearest above `from`, or the nearest below if it is
    /// at most `back_max` sectors away and less than half as far; from the top back
    /// to the lowest.
    pub(super) fn one_way<'a>(
        &'a self,
        queues: &'a Queues,
        from: Lba,
        back_max: u64,
    ) -> Option<&'a Waiting> {
        let above = self.above(queues, from);
        let below = self.below(queues, from);
        let below = below.filter(|request| request.place().distance(from) <= back_max);
        match (above, below) {
            (Some(above), Some(below)) => {
                let [up, down] = [above, below].map(|request| request.place().distance(from));
                Some(if up <= down.saturating_mul(2) { above } else { below })
            }
            (above, below) => above.or(below).or_else(|| self.lowest(queues)),
        }
    }

    pub(super) fn remember(&self, state: &mut Vec<u64>) {
        state.extend(self.entries.iter().map(|entry| entry.2));
    }
}

fn entry(request: &Waiting) -> Entry {
    (request.place(), request.arrival, request.key)
}

fn runs(queues: &Queues, entry: Entry) -> Option<&Waiting> {
    queues.get(entry.2).filter(|request| queues.may_run(request.key))
}
