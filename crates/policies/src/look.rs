//! `look`: the elevator that turns at the last request, whoever asks.
//!
//! Promises: everyone is served: what waits ahead is passed in this sweep, what
//! waits behind in the next. Newcomers ahead are taken along. Does not: no
//! request has a bound on its time; contracts count for nothing.
//! Cost: O(log n) per decision, and those held back by the order of their flow.
//! Source: Clockwise thesis, section 6.3.3; the usual form of SCAN (Worthington
//! et al. 1994).

use super::places::{Arm, Places};
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::{Choice, Policy, View};
use sched::{Queues, Waiting};
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    places: Places,
    arm: Option<Arm>,
    downward: bool,
    newest: u64,
}

impl Look {
    /// The next request, and whether the arm goes down to it.
    fn next<'a>(&'a self, queues: &'a Queues, arm: Arm) -> Option<(&'a Waiting, bool)> {
        let up = || self.places.upward(queues, arm).map(|request| (request, false));
        let down = || self.places.below(queues, arm.place).map(|request| (request, true));
        let found = if self.downward { down().or_else(up) } else { up().or_else(down) };
        // All that is left came to the arm's own place after it did.
        found.or_else(|| Some((self.places.lowest(queues)?, self.downward)))
    }
}

impl Policy for Look {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let arm = self.arm.unwrap_or(Arm { place: view.head(), seen: self.newest });
        let Some((&request, downward)) = self.next(view.queues(), arm) else {
            return Choice::Wait { until: None };
        };
        if request.place() != arm.place || request.arrival > arm.seen {
            self.arm = Some(Arm { place: request.place(), seen: self.newest });
        }
        self.downward = downward;
        self.places.remove(&request);
        Choice::Start(request.key)
    }

    fn submitted(&mut self, request: &Waiting) {
        self.newest = request.arrival;
        self.places.insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.places.remove(request);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        Arm::remember(self.arm, state);
        state.push(u64::from(self.downward));
        self.places.remember(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
