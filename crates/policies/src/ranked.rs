//! Requests under contract in an order of the policy's own; shared.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};
use sched::Waiting;
use units::Instant;

/// Released requests by rank, then by arrival; and those released in the future.
#[derive(Clone, Debug)]
pub(super) struct Ranked<R> {
    ready: BTreeSet<(R, u64, u64)>,
    early: BTreeSet<(Instant, R, u64, u64)>,
}

impl<R> Default for Ranked<R> {
    fn default() -> Self {
        Self { ready: BTreeSet::new(), early: BTreeSet::new() }
    }
}

impl<R: Copy + Ord> Ranked<R> {
    pub(super) fn insert(&mut self, request: &Waiting, rank: R) {
        self.early.insert((request.times.release, rank, request.arrival, request.key));
    }

    pub(super) fn remove(&mut self, request: &Waiting, rank: R) {
        let (arrival, key) = (request.arrival, request.key);
        if !self.ready.remove(&(rank, arrival, key)) {
            self.early.remove(&(request.times.release, rank, arrival, key));
        }
    }

    /// Brings up to date what is released.
    pub(super) fn release(&mut self, now: Instant) {
        while let Some(&(release, rank, arrival, key)) = self.early.first() {
            if release > now {
                return;
            }
            self.early.pop_first();
            self.ready.insert((rank, arrival, key));
        }
    }

    /// The key of the released request of the lowest rank, and the rank.
    pub(super) fn first(&self) -> Option<(u64, R)> {
        self.ready.first().map(|&(rank, _, key)| (key, rank))
    }

    /// The same among ranks from `from` on.
    pub(super) fn from(&self, from: R) -> Option<(u64, R)> {
        self.ready.range((from, 0, 0)..).next().map(|&(rank, _, key)| (key, rank))
    }

    /// The same among ranks above `rank`.
    pub(super) fn after(&self, rank: R) -> Option<(u64, R)> {
        let above = (Excluded((rank, u64::MAX, u64::MAX)), Unbounded);
        self.ready.range(above).next().map(|&(rank, _, key)| (key, rank))
    }

    pub(super) fn remember(&self, state: &mut Vec<u64>) {
        state.extend(self.ready.iter().map(|entry| entry.2));
        state.extend(self.early.iter().map(|entry| entry.3));
    }
}
