//! `scan-edf`: earliest deadline first; among deadlines that are as good as equal,
//! sweep order.
//!
//! Deadlines count in steps of [`STEP`]. Of the released requests whose deadlines
//! fall into the earliest step, the next one upward of the head goes, and from the
//! highest back to the lowest.
//!
//! Promises: everyone is served while tasks keep to their contracts. Does not:
//! what runs on an idle disk, and the order within a step, can make requests of an
//! admitted set late. Cost: O(log n) per decision.
//! Source: Reddy and Wyllie 1993, as cited in the Clockwise thesis, section 2.8,
//! and UCSB QoS scheduler, table II.

use super::ranked::Ranked;
use super::rest::Rest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Setting, Settings};
use units::{Duration, Instant, Lba};

/// About the time of one block of 1 MiB on the papers' disks: requests that are due
/// within it of each other are worth a sweep.
const STEP: Duration = Duration::from_millis(100);

pub(super) const SETTINGS: &[Setting] = &[Setting::time(
    "step",
    [Duration::from_millis(1), Duration::from_secs(60), STEP],
    "Deadlines within one step of this length count as equal, and are served in a sweep.",
)];

#[derive(Clone, Debug, Default)]
pub(super) struct ScanEdf {
    ranked: Ranked<(u64, Lba)>,
    rest: Rest,
    step: Duration,
}

impl ScanEdf {
    pub(super) fn new(values: &Settings) -> Self {
        Self { step: values.time(0), ..Self::default() }
    }

    fn rank(&self, request: &Waiting) -> (u64, Lba) {
        (request.times.deadline.as_nanos() / self.step.as_nanos(), request.place())
    }
}

impl Policy for ScanEdf {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        self.ranked.release(view.now());
        let choice = match self.ranked.first() {
            Some((lowest, (step, _))) => {
                let ahead = self.ranked.from((step, view.head()));
                let key = ahead.filter(|(_, rank)| rank.0 == step).map_or(lowest, |(key, _)| key);
                Choice::Start(key)
            }
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
            self.ranked.insert(request, self.rank(request));
        }
    }

    fn entered(&mut self, request: &Waiting) {
        self.submitted(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.ranked.remove(request, self.rank(request));
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.rest.remember(state);
        self.ranked.remember(state);
        state.push(now.as_nanos() % self.step.as_nanos());
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
