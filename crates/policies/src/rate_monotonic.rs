//! `rate-monotonic`: of the released requests, the one of the shortest period.
//!
//! Promises: everyone is served while tasks keep to their contracts. Does not:
//! admission here is that of earliest deadline first, which keeps more sets than
//! fixed priorities do (all up to a utilisation of 69 % if requests could be
//! interrupted), so that requests of an admitted set can be late.
//! Cost: O(log n) per decision. Source: Clockwise thesis, section 6.1.1 (Liu and
//! Layland 1973); UCSB QoS scheduler, table II.

use super::ranked::Ranked;
use super::rest::Rest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use units::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct RateMonotonic {
    ranked: Ranked<Duration>,
    rest: Rest,
}

impl Policy for RateMonotonic {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        self.ranked.release(view.now());
        let choice = match self.ranked.first() {
            Some((key, _)) => Choice::Start(key),
            None => self.rest.choose(view),
        };
        if let Choice::Start(key) = choice {
            let request = *view.queues().get(key).expect("what is chosen waits");
            self.dropped(&request);
        }
        choice
    }

    fn submitted(&mut self, request: &Waiting) {
        if request.is_real_time() {
            self.ranked.insert(request, request.period);
        }
    }

    fn entered(&mut self, request: &Waiting) {
        self.submitted(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.ranked.remove(request, request.period);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.rest.remember(state);
        self.ranked.remember(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
