//! `round-robin`: one released request of each stream in turn.
//!
//! Promises: everyone is served while tasks keep to their contracts, and between
//! two requests of a stream no other stream gets more than one. Does not: a stream
//! with a short period waits for all others; requests of an admitted set can be
//! late. Cost: O(log n) per decision.
//! Source: UCSB QoS scheduler, section II.A, cycle-based schedulers.

use super::ranked::Ranked;
use super::rest::Rest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::TaskId;
use sched::Waiting;
use sched::{Choice, Policy, View};
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct RoundRobin {
    streams: Streams,
    rest: Rest,
}

/// Released requests by stream, and whose turn it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    ranked: Ranked<TaskId>,
    last: Option<TaskId>,
}

impl Streams {
    /// The request of the stream whose turn it is.
    pub(super) fn next(&mut self, now: Instant) -> Option<u64> {
        self.ranked.release(now);
        let next = self.last.and_then(|last| self.ranked.after(last));
        next.or_else(|| self.ranked.first()).map(|(key, _)| key)
    }

    /// The request is started; its stream has had its turn.
    pub(super) fn took(&mut self, request: &Waiting) {
        if let Some(id) = request.contract() {
            self.ranked.remove(request, id);
            self.last = Some(id);
        }
    }

    pub(super) fn insert(&mut self, request: &Waiting) {
        if let Some(id) = request.contract() {
            self.ranked.insert(request, id);
        }
    }

    pub(super) fn remove(&mut self, request: &Waiting) {
        if let Some(id) = request.contract() {
            self.ranked.remove(request, id);
        }
    }

    pub(super) fn remember(&self, state: &mut Vec<u64>) {
        self.ranked.remember(state);
        state.extend(self.last.map(|id| u64::from(id.index())));
    }
}

impl Policy for RoundRobin {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let choice = match self.streams.next(view.now()) {
            Some(key) => Choice::Start(key),
            None => self.rest.choose(view),
        };
        if let Choice::Start(key) = choice {
            self.streams.took(view.queues().get(key).expect("what is chosen waits"));
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

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.rest.remember(state);
        self.streams.remember(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
