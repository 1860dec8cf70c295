//! `cello`: two levels; shares of the disk for classes, and an order within each.
//!
//! The coarse level gives each class device time in every [`INTERVAL`]: requests
//! under contract their utilisation, synchronous best effort two thirds of the rest,
//! asynchronous one third. A class that has used up its share waits for the others,
//! unless none of them wants the disk. The fine level orders: requests under
//! contract by deadline, moved ahead of all at their latest start time; synchronous
//! ones by arrival; asynchronous ones in sweeps. Best effort goes before requests
//! under contract only where it ends before the latest start time.
//!
//! Promises: everyone is served while tasks keep to their contracts. Does not: as
//! under `lst`, what is released meanwhile is not foreseen, so that requests of an
//! admitted set can be late. Cost: O(n) per decision in released requests, for the
//! latest start time. Source: Clockwise thesis, section 2.8; UCSB QoS scheduler,
//! section II.A (Shenoy and Vin 1998).

use super::c_scan::CScan;
use super::lst::latest_start;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Class;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Setting, Settings};
use units::{Duration, Instant};

/// How often the shares are dealt out: several requests of each class.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) const SETTINGS: &[Setting] = &[Setting::time(
    "interval",
    [Duration::from_millis(10), Duration::from_secs(60), INTERVAL],
    "How often each class gets its share of the disk.",
)];

/// The classes, by their place in [`Cello::left`].
const SYNCHRONOUS: usize = 0;
const ASYNCHRONOUS: usize = 1;
const CONTRACT: usize = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Cello {
    asynchronous: CScan,
    /// Device time that each class may still use before the interval ends.
    left: [Duration; 3],
    ends: Instant,
    interval: Duration,
}

impl Cello {
    pub(super) fn new(values: &Settings) -> Self {
        Self { interval: values.time(0), ..Self::default() }
    }

    fn deal(&mut self, view: &View<'_>) {
        let promised = view.tasks().utilisation().ppm().min(1_000_000);
        let contract = self.interval / 1_000_000 * promised;
        let rest = self.interval - contract;
        self.left = [rest / 3 * 2, rest / 3, contract];
        self.ends = view.now().saturating_add(self.interval);
    }

    /// The first request of each class that may go now.
    fn candidates(&mut self, view: &View<'_>) -> [Option<Waiting>; 3] {
        let queues = view.queues();
        let start = latest_start(view);
        let fits = |request: &Waiting| view.now().saturating_add(view.predicted(request)) <= start;
        let asynchronous = self.asynchronous.peek(view).filter(fits);
        let synchronous = queues.best_effort_oldest(true).copied().filter(fits);
        [synchronous, asynchronous, queues.ready_first().copied()]
    }

    /// The class whose turn it is: one with device time left, else any.
    fn class(&mut self, view: &View<'_>, candidates: &[Option<Waiting>; 3]) -> Option<usize> {
        let wants = |class: &usize| candidates[*class].is_some();
        let classes = || [SYNCHRONOUS, ASYNCHRONOUS, CONTRACT].into_iter().filter(wants);
        let has_time = |left: &[Duration; 3]| classes().find(|&class| !left[class].is_zero());
        has_time(&self.left).or_else(|| {
            self.deal(view);
            has_time(&self.left).or_else(|| classes().next())
        })
    }
}

impl Policy for Cello {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        if view.now() >= self.ends {
            self.deal(view);
        }
        let candidates = self.candidates(view);
        if let Some(class) = self.class(view, &candidates) {
            let request = candidates[class].expect("the class wants the disk");
            self.left[class] = self.left[class].saturating_sub(view.predicted(&request));
            self.asynchronous.took(&request);
            return Choice::Start(request.key);
        }
        let queues = view.queues();
        match queues.early_first().or_else(|| queues.background_first()) {
            Some(request) => Choice::Start(request.key),
            None => Choice::Wait { until: None },
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        let is_best_effort =
            matches!(request.class, Class::BestEffort { .. } | Class::Server { .. });
        if is_best_effort && !request.synchronous {
            self.asynchronous.insert(request);
        }
    }

    fn dropped(&mut self, request: &Waiting) {
        self.asynchronous.remove(request);
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.asynchronous.write_state(state);
        state.extend(self.left.map(Duration::as_nanos));
        state.push(self.ends.saturating_since(now).as_nanos());
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
