//! `delta-l-1999`: best effort in the static slack, as printed. **Unsafe.**
//!
//! Kept for the reproduction of the thesis; never a default. It differs from
//! `delta-l` in two things that are wrong. The static slack is the least difference
//! up to the longest period only, though it can be smaller beyond: the sets
//! `(2,4) (2,6) (1,6)`, `(2,6) (3,9) (3,9)` and `(4,6) (2,9) (1,9)` have none and
//! get 1. And the budget is full whenever no released request waits, and a command
//! that starts then is not charged: with one stream `(5,10)` a command of 5 starts
//! just before the release, another of 5 follows, and the request ends at 15.
//!
//! Promises: everyone is served while tasks keep to their contracts and the slack is
//! as long as their requests. Does not: requests of an admitted set can be late.
//! Cost: O(log n) per decision; after each change of the tasks the slack, O(n) for
//! each of the sum of (longest period / period) points.
//! Source: Clockwise thesis, sections 6.2, 6.3.2 and 6.3.3.

use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::TaskSet;
use sched::limits::ANALYSIS_VISITS_MAX;
use sched::parts::oldest;
use sched::{Choice, Policy, View};
use sched::{Task, TaskId};
use units::{Duration, Instant};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeltaL1999 {
    /// By the printed definition; unknown after a change of the tasks.
    slack: Option<Duration>,
    /// What remains of it until no released request waits.
    remaining: Duration,
}

impl Policy for DeltaL1999 {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let slack = match self.slack {
            Some(slack) => slack,
            None => self.measure(view.tasks()),
        };
        let queues = view.queues();
        let ready = queues.ready_first();
        if ready.is_none() {
            self.remaining = slack;
        }
        // Streams that are ahead of their contracts go before best effort.
        let background = queues.background_first().filter(|_| ready.is_none());
        let best_effort = oldest(view);
        let order = [queues.early_first(), best_effort.as_ref(), background];
        for request in order.into_iter().flatten() {
            let cost = view.predicted(request);
            if let Some(left) = self.remaining.checked_sub(cost) {
                if ready.is_some() {
                    self.remaining = left;
                }
                return Choice::Start(request.key);
            }
        }
        match ready {
            Some(ready) => Choice::Start(ready.key),
            None => Choice::Wait { until: None },
        }
    }

    fn joined(&mut self) {
        *self = Self::default();
    }

    fn left(&mut self, _task: TaskId) {
        *self = Self::default();
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        state.push(self.remaining.as_nanos());
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(*self)
    }
}

impl DeltaL1999 {
    fn measure(&mut self, tasks: &TaskSet) -> Duration {
        let slack = printed_slack(tasks);
        (self.slack, self.remaining) = (Some(slack), slack);
        slack
    }
}

/// Definition 1 of section 6.2, at the scheduling points (theorem 2). Nothing where
/// there are too many of them.
fn printed_slack(tasks: &TaskSet) -> Duration {
    let mut tasks: Vec<Task> = tasks.iter().map(|(_, task)| task).collect();
    tasks.sort_by_key(|task| task.period);
    let [Some(first), Some(last)] = [tasks.first(), tasks.last()] else { return Duration::MAX };
    let [first, last] = [first, last].map(|task| task.period.as_nanos());
    let mut periods: Vec<u64> = tasks.iter().map(|task| task.period.as_nanos()).collect();
    periods.dedup();
    let points: u64 = periods.iter().map(|period| last / period).sum();
    if points.saturating_mul(tasks.len() as u64) > ANALYSIS_VISITS_MAX {
        return Duration::ZERO;
    }
    let points = periods.iter().flat_map(|&period| (period..=last).step_by(period as usize));
    let least = points.filter(|&at| at >= first).map(|at| least_at(&tasks, at)).min();
    Duration::from_nanos(least.unwrap_or(0).max(0) as u64)
}

/// The smaller of `M(at)` and all `N(i, at + 1)`; `tasks` by period.
fn least_at(tasks: &[Task], at: u64) -> i64 {
    let (mut demand, mut least) = (0, i64::MAX);
    for (i, task) in tasks.iter().enumerate() {
        let [cost, period] = [task.cost, task.period].map(Duration::as_nanos);
        if i > 0 && at + 1 < period {
            least = least.min((at + 1) as i64 - (cost + demand) as i64);
        }
        demand += at / period * cost;
    }
    least.min(at as i64 - demand as i64)
}
