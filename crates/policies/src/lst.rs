//! `lst`: best effort until the latest start time of what waits.
//!
//! From the last deadline backward, each released request under contract must start
//! its cost before the next one starts, or before its own deadline. Best effort
//! goes, in order of arrival, while it ends before the first of these times.
//!
//! Promises: everyone is served while tasks keep to their contracts and leave time
//! before latest starts. Does not: what may be released while the best-effort
//! request runs is not foreseen, so that requests of an admitted set can be late:
//! `(10,40) (20,30)` with a best-effort 25. Cost: O(n) per decision in released
//! requests. Source: Clockwise thesis, sections 2.8 and 6.4.2 (Symphony; Shenoy and
//! Vin 1998).

use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::parts::oldest;
use sched::{Choice, Policy, View};
use units::Instant;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lst;

impl Policy for Lst {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let best_effort = oldest(view);
        let queues = view.queues();
        let Some(ready) = queues.ready_first() else {
            let order = [best_effort, queues.early_first(), queues.background_first()];
            return match order.into_iter().flatten().next() {
                Some(request) => Choice::Start(request.key),
                None => Choice::Wait { until: None },
            };
        };
        if let Some(request) = best_effort
            && view.now().saturating_add(view.predicted(request)) <= latest_start(view)
        {
            return Choice::Start(request.key);
        }
        Choice::Start(ready.key)
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(*self)
    }
}

/// When the first released request must start so that none of those that wait is
/// late; the end of time for none.
pub(super) fn latest_start(view: &View<'_>) -> Instant {
    let waiting = view.queues().ready();
    let waiting: Vec<_> = waiting.map(|request| (request.times.deadline, request.cost)).collect();
    let backward = waiting.into_iter().rev();
    backward.fold(Instant::MAX, |next, (deadline, cost)| next.min(deadline).saturating_sub(cost))
}
