//! `delta-l-1999`: best effort in the static slack, as printed. **Unsafe.**
//!
//! Kept for the reproduction of the thesis; never a default. Released requests under
//! contract go by deadline. In the slack, before them or where none is there, go first those
//! that have a deadline but are best effort for now, the one that is due first next: of
//! streams ahead of their contracts (sections 6.3.2 and 6.3.3), and of servers, released or
//! not (section 6.5.4). Then best effort by arrival. What goes before a released request is
//! charged to the slack at what it is expected to take, `E` (section 6.3.2): here the bound
//! from where the heads are. A server's request that goes at its turn is charged to its
//! slice instead, at the same `E`; `containers_1999.rs` says why.
//!
//! Promises: everyone is served while streams and servers keep to their contracts and the
//! slack is as long as their requests. Does not: requests of an admitted set can be late, for
//! three things that are wrong. The static slack is the least difference up to the longest
//! period only, though it can be smaller beyond: the sets `(2,4) (2,6) (1,6)`, `(2,6) (3,9)
//! (3,9)` and `(4,6) (2,9) (1,9)` have none and get 1. The budget is full whenever no released
//! request waits, and a command that starts then is not charged: with one stream `(5,10)` a
//! command of 5 starts just before the release, another of 5 follows, and the request ends at
//! 15. What comes late may use what a server's slice has left, and is due with what came
//! first: a server `(50,100)` is asked for 10 at 0, for 40 at 95 and for 50 at 100; a request
//! of a stream `(50,110)` that comes at 96 ends at 235, 29 late.
//! Cost: O(s log n) per decision for s servers, and O(k) where k requests of servers wait;
//! after each change of the tasks the slack, O(n) for each of the sum of (longest period /
//! period) points.
//! Source: Clockwise thesis, sections 6.2, 6.3.2, 6.3.3 and 6.5.4.

use super::containers_1999::{Containers, First};
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::TaskSet;
use sched::limits::ANALYSIS_VISITS_MAX;
use sched::{Choice, Policy, View};
use sched::{Class, Outcome, Queues, Waiting};
use sched::{Task, TaskId};
use units::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct DeltaL1999 {
    /// By the printed definition; unknown after a change of the tasks.
    slack: Option<Duration>,
    /// No task has a shorter deadline, where the slack is known.
    shortest: Duration,
    /// What remains of the slack until no released request waits.
    remaining: Duration,
    containers: Containers,
}

/// A request with a deadline: of a stream, or the first of a server's line.
#[derive(Clone, Copy)]
struct Due {
    key: u64,
    deadline: Instant,
    arrival: u64,
    first: Option<First>,
}

impl From<&Waiting> for Due {
    fn from(request: &Waiting) -> Self {
        let Waiting { key, arrival, times, .. } = *request;
        Self { key, deadline: times.deadline, arrival, first: None }
    }
}

impl From<&First> for Due {
    fn from(first: &First) -> Self {
        let First { key, arrival, deadline, .. } = *first;
        Self { key, deadline, arrival, first: Some(*first) }
    }
}

fn soonest(all: impl Iterator<Item = Due>) -> Option<Due> {
    all.min_by_key(|due| (due.deadline, due.arrival))
}

impl Policy for DeltaL1999 {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let slack = match self.slack {
            Some(slack) => slack,
            None => self.measure(view.tasks()),
        };
        let (now, queues) = (view.now(), view.queues());
        let firsts = self.containers.firsts(view);
        let released = firsts.iter().filter(|first| first.release <= now).map(Due::from);
        let streams = queues.ready().find(|request| is_of_stream(request)).map(Due::from);
        let ready = soonest(streams.into_iter().chain(released));
        if ready.is_none() {
            self.remaining = slack;
        }
        // What is best effort but has a deadline goes before all other, in that order.
        let early = self.early(queues).map(Due::from);
        let ahead = soonest(early.into_iter().chain(firsts.iter().map(Due::from)));
        if let Some(ahead) = ahead {
            if ready.is_some_and(|ready| ready.key == ahead.key) {
                return self.start(&ahead);
            }
            if self.spend(view, ahead.key, ready.is_some()) {
                self.containers.take(ahead.first.as_ref());
                return Choice::Start(ahead.key);
            }
        }
        let background = queues.background_first().filter(|_| ready.is_none());
        for request in [oldest_without_contract(queues), background].into_iter().flatten() {
            if self.spend(view, request.key, ready.is_some()) {
                return Choice::Start(request.key);
            }
        }
        match ready {
            Some(ready) => self.start(&ready),
            None => Choice::Wait { until: firsts.iter().map(|first| first.release).min() },
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        self.containers.insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.containers.remove(request);
    }

    fn finished(&mut self, request: &Waiting, _outcome: &Outcome) {
        // A policy around this one may have started it.
        self.containers.remove(request);
    }

    fn joined(&mut self) {
        (self.slack, self.remaining) = (None, Duration::ZERO);
    }

    fn left(&mut self, task: TaskId) {
        self.containers.left(task);
        self.joined();
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        state.push(self.remaining.as_nanos());
        self.containers.remember(now, state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

fn is_of_stream(request: &Waiting) -> bool {
    matches!(request.class, Class::RealTime(_))
}

/// The first of the queue of best effort.
fn oldest_without_contract(queues: &Queues) -> Option<&Waiting> {
    let oldest = |synchronous| {
        queues.best_effort_by_age(synchronous).find(|request| request.class.task().is_none())
    };
    [true, false].into_iter().filter_map(oldest).min_by_key(|request| request.arrival)
}

impl DeltaL1999 {
    /// True where the slack has room for the request, which is then charged if others under
    /// contract wait.
    fn spend(&mut self, view: &View<'_>, key: u64, is_charged: bool) -> bool {
        let cost = view.predicted(view.queues().get(key).expect("it waits"));
        let left = self.remaining.checked_sub(cost);
        if is_charged {
            self.remaining = left.unwrap_or(self.remaining);
        }
        left.is_some()
    }

    /// At its turn.
    fn start(&mut self, due: &Due) -> Choice {
        self.containers.take_charged(due.first.as_ref());
        Choice::Start(due.key)
    }

    /// Of the requests of streams ahead of their contracts, the one that is due first.
    fn early<'a>(&self, queues: &'a Queues) -> Option<&'a Waiting> {
        let mut first: Option<&Waiting> = None;
        for request in queues.early() {
            // They come by release.
            let soonest = request.times.release.saturating_add(self.shortest);
            let due = first.map_or(Instant::MAX, |first| first.times.deadline);
            if soonest >= due {
                break;
            }
            first = first.filter(|_| due <= request.times.deadline).or(Some(request));
        }
        first
    }

    fn measure(&mut self, tasks: &TaskSet) -> Duration {
        let slack = printed_slack(tasks);
        (self.slack, self.remaining) = (Some(slack), slack);
        self.shortest = tasks.iter().map(|(_, task)| task.deadline).min().unwrap_or_default();
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
