//! `sstf`: shortest seek time first, whoever asks.
//!
//! Promises: nothing but short seeks, taking the distance in sectors for the
//! seek. Does not: what is far from the head can wait for ever.
//! Cost: O(log n) per decision, and those held back by the order of their flow.
//! Source: UCSB QoS scheduler, section II.A (Worthington et al. 1994).

use super::places::Places;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct Sstf {
    places: Places,
}

impl Policy for Sstf {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let Some(&request) = self.places.nearest(view.queues(), view.head()) else {
            return Choice::Wait { until: None };
        };
        self.places.remove(&request);
        Choice::Start(request.key)
    }

    fn submitted(&mut self, request: &Waiting) {
        self.places.insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.places.remove(request);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.places.remember(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
