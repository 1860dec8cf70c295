//! `fcfs`: first come, first served, whoever asks. Only ordered requests wait for
//! those before them in their flow.
//!
//! Promises: everyone is served. Does not: contracts count for nothing, nor do
//! seeks. Cost: O(log n) per decision, and those held back by the order of their
//! flow. Source: UCSB QoS scheduler, section II.A.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use sched::Waiting;
use sched::{Choice, Policy, View};
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct Fcfs {
    /// Keys by arrival.
    line: BTreeMap<u64, u64>,
}

impl Policy for Fcfs {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let queues = view.queues();
        let found = self.line.iter().find(|&(_, &key)| queues.may_run(key));
        match found.map(|(&arrival, &key)| (arrival, key)) {
            Some((arrival, key)) => {
                self.line.remove(&arrival);
                Choice::Start(key)
            }
            None => Choice::Wait { until: None },
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        self.line.insert(request.arrival, request.key);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.line.remove(&request.arrival);
    }

    fn remember(&self, _now: Instant, state: &mut alloc::vec::Vec<u64>) {
        state.extend(self.line.values());
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
