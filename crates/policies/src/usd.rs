//! `usd`: earliest deadline first, where whoever was late is served less.
//!
//! Each stream has a slice (its cost) every period. After a request that was late
//! its stream is punished: its next request goes after all other released ones. A
//! disk with no released request is given to streams that can use extra time, and
//! to best effort only when no stream wants it.
//!
//! Promises: everyone is served while tasks keep to their contracts. Does not: the
//! admission that belongs to it is that of requests that can be interrupted, a
//! utilisation of at most 1 (`usd_admits`), and takes sets that cannot be kept:
//! that of table 6.2 misses by 7 ms at 507. The stream that is punished need not be
//! the one that was at fault. Cost: O(log n) per decision, O(k) more for k requests
//! of punished streams. Source: Clockwise thesis, sections 2.7 and 6.4.1 (Barham
//! 1996).

use super::rest::Rest;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use sched::Outcome;
use sched::TaskSet;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{TaskId, Utilisation};
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct Usd {
    punished: BTreeSet<TaskId>,
    rest: Rest,
}

/// The admission test of the User-Safe Disk: the utilisation is at most 1. It keeps
/// no promise on a disk, which cannot interrupt a request.
pub fn usd_admits(tasks: &TaskSet) -> bool {
    let rounding = tasks.len() as u128; // each share was rounded up
    tasks.utilisation().parts() <= Utilisation::WHOLE.parts() + rounding
}

impl Usd {
    fn is_punished(&self, request: &Waiting) -> bool {
        request.contract().is_some_and(|id| self.punished.contains(&id))
    }
}

impl Policy for Usd {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let queues = view.queues();
        let good = queues.ready().find(|request| !self.is_punished(request));
        let Some(&request) = good.or_else(|| queues.ready_first()) else {
            return self.rest.choose(view);
        };
        if let Some(id) = request.contract() {
            self.punished.remove(&id);
        }
        Choice::Start(request.key)
    }

    fn finished(&mut self, request: &Waiting, outcome: &Outcome) {
        if let Some(id) = request.contract()
            && !outcome.late_by.is_zero()
        {
            self.punished.insert(id);
        }
    }

    fn left(&mut self, task: TaskId) {
        self.punished.remove(&task);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.rest.remember(state);
        state.extend(self.punished.iter().map(|id| u64::from(id.index())));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
