//! `c-scan`: the elevator that serves on its way up only, whoever asks.
//!
//! Promises: everyone is served, and no place on the disk is better than another,
//! unlike under `look`, which
//! passes the middle at even intervals and the edges twice in a row. Newcomers
//! ahead of the arm are taken along. Does not: contracts count for nothing.
//! Cost: O(log n) per decision, and those held back by the order of their flow.
//! Source: UCSB QoS scheduler, section II.A (Worthington et al. 1994).

use super::places::{Arm, Places};
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct CScan {
    places: Places,
    arm: Option<Arm>,
    newest: u64,
}

impl CScan {
    /// The next request of the sweep, for policies that serve some of theirs so.
    pub(super) fn take(&mut self, view: &View<'_>) -> Option<Waiting> {
        let request = self.peek(view)?;
        self.took(&request);
        Some(request)
    }

    /// The next request of the sweep.
    pub(super) fn peek(&self, view: &View<'_>) -> Option<Waiting> {
        let arm = self.arm.unwrap_or(Arm { place: view.head(), seen: self.newest });
        let ahead = self.places.upward(view.queues(), arm);
        ahead.or_else(|| self.places.lowest(view.queues())).copied()
    }

    /// The request is started. Nothing changes where it is none of the sweep.
    pub(super) fn took(&mut self, request: &Waiting) {
        if self.places.remove(request) {
            let at_arm = |arm: &Arm| request.place() == arm.place && request.arrival <= arm.seen;
            let new = Arm { place: request.place(), seen: self.newest };
            self.arm = Some(self.arm.filter(at_arm).unwrap_or(new));
        }
    }

    pub(super) fn insert(&mut self, request: &Waiting) {
        self.newest = self.newest.max(request.arrival);
        self.places.insert(request);
    }

    /// False where it was not here.
    pub(super) fn remove(&mut self, request: &Waiting) -> bool {
        self.places.remove(request)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn write_state(&self, state: &mut Vec<u64>) {
        Arm::remember(self.arm, state);
        self.places.remember(state);
    }
}

impl Policy for CScan {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        match self.take(view) {
            Some(request) => Choice::Start(request.key),
            None => Choice::Wait { until: None },
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        self.insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.remove(request);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.write_state(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
