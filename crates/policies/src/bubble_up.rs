//! `bubble-up`: a cycle of slots with the free ones kept next.
//!
//! A cycle is the shortest period; its slots are as long as the longest cost; each
//! stream fills one slot, in turn. The free slots of the cycle are kept in front:
//! a synchronous request takes the next slot at once and moves the streams back,
//! as long as one is left, as does one that has waited for too long. Other best effort runs where no released request under
//! contract waits, and uses slots up, too.
//!
//! Promises: everyone is served while tasks keep to their contracts; a synchronous
//! request waits for at most one other while slots are free. Does not: periods that
//! differ, and requests released within a cycle, are not what the cycle is made
//! for, so that requests of an admitted set can be late.
//! Cost: O(log n) per decision, O(tasks) once a cycle.
//! Source: UCSB QoS scheduler, section II.A (Chang and Garcia-Molina 1997).

use super::rest::Rest;
use super::round_robin::Streams;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use units::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct BubbleUp {
    streams: Streams,
    rest: Rest,
    /// When the cycle ends.
    ends: Instant,
    slot: Duration,
    /// Slots of this cycle that no stream fills.
    free: u64,
}

impl BubbleUp {
    fn begin(&mut self, view: &View<'_>) {
        let tasks = || view.tasks().iter().map(|(_, task)| task);
        let Some(cycle) = tasks().map(|task| task.period).min() else { return };
        self.slot = tasks().map(|task| task.cost).max().unwrap_or_default();
        let slots = cycle.as_nanos() / self.slot.as_nanos();
        self.free = slots.saturating_sub(view.tasks().len() as u64);
        self.ends = view.now().saturating_add(cycle);
    }

    /// Uses up the slots that a request fills. False where not enough are free.
    fn fill(&mut self, cost: Duration) -> bool {
        let slots = cost.as_nanos().div_ceil(self.slot.as_nanos().max(1));
        let left = self.free.checked_sub(slots);
        self.free = left.unwrap_or(self.free);
        left.is_some()
    }
}

impl Policy for BubbleUp {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        if view.now() >= self.ends {
            self.begin(view);
        }
        let stream = self.streams.next(view.now());
        let interactive = self.rest.elevator.pick(view);
        let interactive = interactive.filter(|(request, pick)| request.synchronous || pick.aged);
        if let (Some(_), Some((request, pick))) = (stream, interactive)
            && self.fill(view.predicted(request))
        {
            self.rest.elevator.took(&pick);
            self.streams.remove(request);
            return Choice::Start(pick.key);
        }
        let choice = match stream {
            Some(key) => Choice::Start(key),
            None => self.rest.choose(view),
        };
        if let Choice::Start(key) = choice {
            let request = *view.queues().get(key).expect("what is chosen waits");
            self.streams.took(&request);
            if !request.is_real_time() {
                self.fill(view.predicted(&request));
            }
        }
        choice
    }

    fn submitted(&mut self, request: &Waiting) {
        self.streams.insert(request);
    }

    fn entered(&mut self, request: &Waiting) {
        self.streams.insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.streams.remove(request);
    }

    fn joined(&mut self) {
        // The cycle was cut for the smaller set.
        self.ends = Instant::EPOCH;
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.rest.remember(state);
        self.streams.remember(state);
        state.extend([self.ends.saturating_since(now).as_nanos(), self.free]);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
