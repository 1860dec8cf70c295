//! `satf`: shortest access time first, whoever asks.
//!
//! Promises: nothing but the most work now: the request whose whole device time
//! (seek, rotation and transfer, as the prediction expects it) is shortest.
//! Does not: what is slow to reach can wait for ever.
//! Cost: O(n) per decision, with a prediction for each request.
//! Source: UCSB QoS scheduler, section II.A (Jacobson and Wilkes 1991).

use super::places::Places;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct Satf {
    places: Places,
}

impl Policy for Satf {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let access = |request: &&Waiting| {
            (view.expected(view.now(), view.head(), &request.command), request.arrival)
        };
        let Some(&request) = self.places.iter(view.queues()).min_by_key(access) else {
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
