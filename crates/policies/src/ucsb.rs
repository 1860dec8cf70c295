//! `ucsb`: the meta-scheduler of the UCSB QoS scheduler: priorities above and below a
//! best-effort scheduler that is left as it is.
//!
//! Requests under contract are of high priority, in order of release; then best effort, in
//! the order of the kernel's `deadline`; background is of low priority. A slack
//! register, which a program would set every cycle, lets best effort go before
//! requests under contract while it lasts; here each cycle (the shortest period)
//! sets it to the static slack.
//!
//! Promises: everyone but background is served while tasks keep to their contracts.
//! Does not: priorities are no deadlines, and a command on an idle disk is not held
//! against them, so that requests of an admitted set can be late. A low-priority
//! request is one command here: whoever submits it cuts it into chunks. Cost:
//! O(log n) per decision, O(tasks) once a cycle. Source: UCSB QoS scheduler,
//! sections III.A and III.B.

use super::deadline::Deadline;
use super::ranked::Ranked;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Class;
use sched::Waiting;
use sched::{Choice, Policy, View};
use units::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct Ucsb {
    high: Ranked<Instant>,
    best_effort: Deadline,
    /// Goes next of the best effort, once the register covers it or nothing is above.
    next: Option<Waiting>,
    register: Duration,
    ends: Instant,
}

impl Ucsb {
    fn set_register(&mut self, view: &View<'_>) {
        let cycle = view.tasks().iter().map(|(_, task)| task.period).min();
        self.register = view.tasks().slack();
        self.ends = cycle.map_or(Instant::MAX, |cycle| view.now().saturating_add(cycle));
    }

    fn high_priority(&mut self, view: &View<'_>) -> Option<u64> {
        self.high.release(view.now());
        Some(self.high.first()?.0)
    }
}

impl Policy for Ucsb {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        if view.now() >= self.ends {
            self.set_register(view);
        }
        self.next = self.next.take().or_else(|| self.best_effort.take(view));
        let high = self.high_priority(view);
        if let Some(next) = self.next {
            let left = self.register.checked_sub(view.predicted(&next));
            if high.is_none() || left.is_some() {
                self.register = if high.is_none() { self.register } else { left.unwrap() };
                self.next = None;
                return Choice::Start(next.key);
            }
        }
        let queues = view.queues();
        let early = queues.early_first().or_else(|| queues.background_first());
        match high.or_else(|| early.map(|request| request.key)) {
            Some(key) => {
                self.dropped(&queues.get(key).copied().expect("what is chosen waits"));
                Choice::Start(key)
            }
            None => Choice::Wait { until: None },
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        match request.class {
            Class::RealTime(_) => self.high.insert(request, request.times.release),
            Class::BestEffort { .. } | Class::Server { .. } => self.best_effort.insert(request),
            Class::Background => {}
        }
    }

    fn dropped(&mut self, request: &Waiting) {
        self.high.remove(request, request.times.release);
        self.best_effort.remove(request);
        self.next = self.next.filter(|next| next.key != request.key);
    }

    fn joined(&mut self) {
        // The register was set for the smaller set.
        (self.register, self.ends) = (Duration::ZERO, Instant::EPOCH);
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.high.remember(state);
        self.best_effort.write_state(state);
        state.extend(self.next.map(|next| next.key));
        state.extend([self.register, self.ends.saturating_since(now)].map(Duration::as_nanos));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
