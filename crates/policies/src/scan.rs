//! `scan`: the elevator that goes from edge to edge, whoever asks.
//!
//! A disk moves its arm only to serve, so that the way to the edge costs nothing
//! here. What is left of it: a turn is not cut short. The requests of a turn are
//! those that waited when it began, as operating systems bound a turn; who comes
//! later waits for the next one, even ahead of the arm.
//!
//! Promises: everyone is served, in this turn or in the next. Does not: contracts
//! count for nothing. Cost: O(log n) per decision, and those held back by the
//! order of their flow. Source: UCSB QoS scheduler, section II.A.

use super::places::Places;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::{Choice, Policy, View};
use sched::{Queues, Waiting};
use units::Instant;

#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// What waited when the turn began.
    turn: Places,
    /// Came since.
    newcomers: Places,
    downward: bool,
}

impl Default for Scan {
    /// The first turn begins at the low edge, once there is something to do.
    fn default() -> Self {
        Self { turn: Places::default(), newcomers: Places::default(), downward: true }
    }
}

impl Scan {
    fn next<'a>(&'a self, queues: &'a Queues) -> Option<&'a Waiting> {
        if self.downward { self.turn.highest(queues) } else { self.turn.lowest(queues) }
    }
}

impl Policy for Scan {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        if self.next(view.queues()).is_none() {
            // The arm is at the edge. Those held back try again in the next turn.
            let mut held = core::mem::take(&mut self.turn);
            self.newcomers.append(&mut held);
            core::mem::swap(&mut self.turn, &mut self.newcomers);
            self.downward = !self.downward;
        }
        let Some(&request) = self.next(view.queues()) else { return Choice::Wait { until: None } };
        self.turn.remove(&request);
        Choice::Start(request.key)
    }

    fn submitted(&mut self, request: &Waiting) {
        self.newcomers.insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        if !self.turn.remove(request) {
            self.newcomers.remove(request);
        }
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        state.push(u64::from(self.downward));
        self.turn.remember(state);
        state.push(u64::MAX);
        self.newcomers.remember(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
