//! How much time can be given away now: the exact online slack.
//!
//! At an instant `t` at which the disk is free, for every deadline `D`:
//! `D - t - waiting(D) - future(D)`, where `waiting(D)` is the work that is there
//! and due by `D`, and `future(D)` what may still be released and be due by `D`,
//! each task from its earliest next release on. The least of these is the slack.
//!
//! **Why there is no blocking term.** Give away `E <= slack(t)`, then serve
//! earliest deadline first, and suppose that a request with deadline `D` is late.
//! Let `b` be the last instant before `D` at which no unfinished request due by
//! `D` was there. If `b <= t + E`, the disk did nothing from `t` to `D` but the
//! `E` and work due by `D`: no request due later begins while one due by `D`
//! waits. Then `E + waiting(D) + future(D) > D - t`, against the choice of `E`.
//! If `b > t + E`, the requests that count were all released from `b` on, and at
//! most one request due later was then in service, which began before `b`: the
//! case that admission has ruled out (`demand(D - b) + blocking(D - b) <= D - b`).
//! So admission keeps the slack of an admitted set from ever being negative,
//! and each command in slack keeps it so. The small-world search confirms it.
//!
//! **Gaps.** Each cost above has in it what the host takes after the command, which is
//! then part of the time that the disk is not free.
//!
//! **Commands in flight** are time that is spoken for: `t` is then the instant
//! by which they are all done, at their bounds.
//!
//! **Bounds in between.** `waiting + future` never grows while the set of tasks
//! stays, so that `slack(t') >= slack(t) - (t' - t)`. And whenever the disk is
//! free and nothing released waits, the slack is at least the static slack. From
//! above, the slack is at most the difference at any one deadline, for example at
//! the one that was critical last. [`Meter`] remembers the best of these; most
//! decisions need no more.
//!
//! **The computation.** All work up to a horizon is summed up by its deadline in
//! slots of equal width. The start of a slot minus all work up to its end bounds
//! every difference in the slot from below; only where that is too little are the
//! deadlines in the slot looked at one by one.

use crate::divide::Divisor;
use crate::limits::{
    HORIZON_MAX, SLACK_JOBS_PER_TASK, SLACK_LEDGES_MAX, SLACK_PERIODS, SLACK_SLOTS,
};
use crate::task::{Task, WHOLE};
use alloc::vec::Vec;
use units::Instant;

/// A task on a running schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    /// Its next request is released at this instant at the earliest.
    pub release_next: u64,
    pub deadline: u64,
    pub period: Divisor,
    pub cost: u64,
    /// `cost / period` in units of 2^-63, rounded up.
    share: u64,
    /// The index of its [`TaskId`](crate::TaskId).
    pub index: u32,
}

impl Live {
    pub(crate) fn new(task: &Task, index: u32, release_next: Instant) -> Self {
        let mut live = Self {
            release_next: release_next.as_nanos(),
            deadline: task.deadline.as_nanos(),
            period: Divisor::new(task.period.as_nanos()),
            cost: 0,
            share: 0,
            index,
        };
        live.set_cost(task.cost.as_nanos());
        live
    }

    pub(crate) fn set_cost(&mut self, cost: u64) {
        let share = (u128::from(cost) << 63).div_ceil(u128::from(self.period.get()));
        (self.cost, self.share) = (cost, u64::try_from(share).unwrap_or(u64::MAX));
    }

    /// The same task, but as if a request of it had been released at `now`.
    pub(crate) fn just_served(&self, now: u64) -> Self {
        let release_next = self.release_next.max(now + self.period.get());
        Self { release_next, ..*self }
    }

    /// Its share of the disk in units of 2^-30.
    pub(crate) fn share_30(&self) -> u64 {
        self.share >> 33
    }
}

/// A waiting request under contract.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub deadline: u64,
    pub cost: u64,
}

/// Memory that computations reuse. A copy starts without any.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// What waits, by rising deadline; then with the sums of the costs so far.
    pub due: Vec<Due>,
    slots: Vec<u64>,
    /// Tasks, requests and slots that were looked at last time.
    pub visits: u64,
}

impl Clone for Scratch {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Whether some slack is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There is at least this much, and no less than was asked for.
    AtLeast(i64),
    /// There is exactly this much, no less than was asked for, for this deadline.
    Exactly { deadline: u64, slack: i64 },
    /// There is less: the difference at this deadline is.
    Below { deadline: u64, difference: i64 },
    /// The whole disk is promised, or the bound on the work is reached: nothing can
    /// be given away.
    Unknown,
}

/// One computation of the slack.
pub(crate) struct Exact<'a> {
    /// Streams, and the budgets of servers in pieces.
    pub live: [&'a [Live]; 2],
    /// The promised share of the disk, in units of 2^-64.
    pub share: u128,
    pub now: u64,
    /// When the disk is free of what it was given; not before `now`.
    pub free_at: u64,
}

/// Work as a number that can be subtracted: more than there is time for, where it is more.
fn signed(work: u64) -> i64 {
    work.min(1 << 61) as i64
}

/// What one job more than `jobs` cost.
fn jobs_cost(jobs: u64, cost: u64) -> u64 {
    (jobs + 1).saturating_mul(cost)
}

/// Turns costs into sums of costs.
fn accumulate(due: &mut [Due]) -> u64 {
    let mut sum = 0;
    for due in due {
        sum = due.cost.saturating_add(sum);
        due.cost = sum;
    }
    sum
}

impl Exact<'_> {
    /// The smaller of the slack and `enough`, over deadlines before `before`. None
    /// where the whole disk is promised or the bound on the work is reached. The
    /// plain walk down from the horizon; [`Exact::covers`] is quicker.
    pub(crate) fn slack(
        &self,
        enough: i64,
        before: Option<u64>,
        scratch: &mut Scratch,
    ) -> Option<i64> {
        let mut ledges = 0;
        let slack = self.slack_in(enough, before, &mut scratch.due, &mut ledges);
        scratch.visits = (self.tasks().count() + scratch.due.len()) as u64 * (ledges + 1);
        slack
    }

    fn slack_in(
        &self,
        enough: i64,
        before: Option<u64>,
        due: &mut [Due],
        ledges: &mut u64,
    ) -> Option<i64> {
        let sum = accumulate(due);
        let (target, limit) = match (before, self.horizon(enough, enough, sum)) {
            (Some(before), Some((target, horizon, _))) => (target, before.min(horizon)),
            // More may be promised than there is: what is due by then is known all the same.
            (Some(before), None) => (enough, before),
            (None, horizon) => horizon.map(|(target, horizon, _)| (target, horizon))?,
        };
        let mut least = Least { difference: target, deadline: None };
        self.refine(0, limit, due, &mut least, ledges).then_some(least.difference)
    }

    /// Whether the slack is at least `needed`; and if so, how much of `enough`.
    pub(crate) fn covers(&self, needed: i64, enough: i64, scratch: &mut Scratch) -> Answer {
        let (mut ledges, mut jobs) = (0, 0);
        let answer = self.covers_in(needed, enough, scratch, &mut jobs, &mut ledges);
        let each = (self.tasks().count() + scratch.due.len()) as u64;
        scratch.visits = each * (ledges + 1) + jobs;
        answer
    }

    fn covers_in(
        &self,
        needed: i64,
        enough: i64,
        scratch: &mut Scratch,
        spread: &mut u64,
        ledges: &mut u64,
    ) -> Answer {
        let Scratch { due, slots, .. } = scratch;
        let sum = accumulate(due);
        let Some((target, horizon, jobs)) = self.horizon(needed, enough, sum) else {
            return Answer::Unknown;
        };
        let mut least = Least { difference: target, deadline: None };
        if jobs > SLACK_JOBS_PER_TASK * (self.tasks().count() as u64 + 64) {
            let known = self.refine(0, horizon, due, &mut least, ledges);
            return if known { least.answer(needed) } else { Answer::Unknown };
        }
        *spread = jobs + SLACK_SLOTS as u64;
        let shift = (horizon - self.now).ilog2().saturating_sub(SLACK_SLOTS.ilog2() - 1);
        let (worst, bound) = self.fill(horizon, shift, due, slots);
        if bound >= needed.saturating_mul(2) {
            return Answer::AtLeast(target.min(bound));
        }
        // Most often the slot that looks worst is. Then those that may be worse.
        let mut before = 0;
        let slots = slots.iter().enumerate().filter(|&(_, &work)| {
            // A slot without work of its own has no deadline.
            core::mem::replace(&mut before, work) != work
        });
        for (at, &work) in core::iter::once((worst, &u64::MAX)).chain(slots) {
            if work != u64::MAX && self.bound(at, shift, work, due) >= least.difference {
                continue;
            }
            let from = if at == 0 { 0 } else { self.now + ((at as u64) << shift) };
            let until = horizon.min(self.now + ((at as u64 + 1) << shift));
            if !self.refine(from, until, due, &mut least, ledges) {
                return Answer::Unknown;
            }
            if least.difference < needed {
                break;
            }
        }
        least.answer(needed)
    }

    /// The difference at one instant: an upper bound of the slack. None where nothing
    /// can be due by then, so that it bounds nothing (requests that did not come
    /// have moved their deadlines past it).
    pub(crate) fn difference(&self, at: u64, due: impl Iterator<Item = Due>) -> Option<i64> {
        let waiting = due.filter(|due| due.deadline <= at).map(|due| due.cost);
        let mut demand = waiting.fold(0, u64::saturating_add);
        self.tasks().for_each(|task| {
            if let Some(span) = at.checked_sub(self.first(task)) {
                demand = demand.saturating_add(jobs_cost(task.period.divide(span).0, task.cost));
            }
        });
        (demand > 0).then(|| at as i64 - self.free_at as i64 - signed(demand))
    }

    /// Both slices one after the other; `for_each` makes two plain loops of it.
    fn tasks(&self) -> impl Iterator<Item = &Live> {
        self.live.into_iter().flatten()
    }

    /// The first deadline of what the task may still release.
    fn first(&self, task: &Live) -> u64 {
        task.release_next.max(self.now).saturating_add(task.deadline)
    }

    /// Sums up all work due before `horizon`: afterwards `slots[i]` is the work due
    /// before the end of slot `i`. Returns the slot with the least bound, and that.
    fn fill(&self, horizon: u64, shift: u32, due: &[Due], slots: &mut Vec<u64>) -> (usize, i64) {
        slots.clear();
        slots.resize(((horizon - 1 - self.now) >> shift) as usize + 1, 0);
        let mut before = 0;
        for due in due {
            if due.deadline < horizon {
                slots[(due.deadline.saturating_sub(self.now) >> shift) as usize] +=
                    due.cost - before;
            }
            before = due.cost;
        }
        self.tasks().for_each(|task| {
            let mut deadline = self.first(task);
            while deadline < horizon {
                slots[((deadline - self.now) >> shift) as usize] += task.cost;
                deadline += task.period.get();
            }
        });
        let mut least = (0, i64::MAX);
        let mut work = 0;
        for (slot, sum) in slots.iter_mut().enumerate() {
            let is_empty = *sum == 0;
            work += *sum;
            *sum = work;
            let bound = self.bound(slot, shift, work, due);
            if !is_empty && bound < least.1 {
                least = (slot, bound);
            }
        }
        least
    }

    /// No difference in the slot is less: its start, minus all work up to its end.
    fn bound(&self, slot: usize, shift: u32, work: u64, due: &[Due]) -> i64 {
        let start = if slot == 0 {
            // What is late already counts in the first slot.
            due.first().map_or(self.now, |due| due.deadline.min(self.now))
        } else {
            self.now + ((slot as u64) << shift)
        };
        start as i64 - self.free_at as i64 - signed(work)
    }

    /// Looks at the deadlines in a slot one by one, for a difference below `least`.
    /// False where the bound on the work is reached.
    fn refine(
        &self,
        from: u64,
        until: u64,
        due: &[Due],
        least: &mut Least,
        ledges: &mut u64,
    ) -> bool {
        self.walk(until, due, ledges, |deadline, difference| {
            if deadline < from {
                return None;
            }
            if difference < least.difference {
                *least = Least { difference, deadline: Some(deadline) };
            }
            Some(least.difference)
        });
        *ledges <= SLACK_LEDGES_MAX
    }

    /// Visits deadlines downward from `limit`, with their differences, until `visit`
    /// has enough or the bound on the work is passed. `visit` answers with the
    /// difference from which on others are of no interest.
    fn walk(
        &self,
        mut limit: u64,
        due: &[Due],
        ledges: &mut u64,
        mut visit: impl FnMut(u64, i64) -> Option<i64>,
    ) {
        while let Some((at, demand)) = self.ledge_below(limit, due) {
            *ledges += 1;
            let difference = at as i64 - self.free_at as i64 - signed(demand);
            let Some(best) = visit(at, difference).filter(|_| *ledges <= SLACK_LEDGES_MAX) else {
                return;
            };
            // Where `D - free_at - demand >= best`, nothing smaller is found.
            let harmless = self.free_at.saturating_add(demand).saturating_add_signed(best);
            limit = at.min(harmless);
        }
    }

    /// The largest deadline before `limit`, and the work due by it.
    fn ledge_below(&self, limit: u64, due: &[Due]) -> Option<(u64, u64)> {
        let below = due.partition_point(|due| due.deadline < limit);
        let last = below.checked_sub(1).map(|last| due[last]);
        let (mut at, mut demand) = last.map_or((None, 0), |due| (Some(due.deadline), due.cost));
        let mut back = u64::MAX;
        self.tasks().for_each(|task| {
            if let Some(span) = limit.checked_sub(self.first(task).saturating_add(1)) {
                let (jobs, rest) = task.period.divide(span);
                demand = demand.saturating_add(jobs_cost(jobs, task.cost));
                back = back.min(rest);
            }
        });
        if back != u64::MAX {
            at = at.max(Some(limit - 1 - back));
        }
        at.map(|at| (at, demand))
    }

    /// A slack from `needed` to `enough`, and the deadline from which on every
    /// difference is at least that: the work of a task due by `D` is at most
    /// `share * (D - first deadline + period)`, once that is positive. As much slack
    /// is asked for as keeps the horizon within a few of the longest periods. And
    /// about how many requests are due by then.
    fn horizon(&self, needed: i64, enough: i64, waiting: u64) -> Option<(i64, u64, u64)> {
        let left = WHOLE.checked_sub(self.share).filter(|&left| left > 0)? as i128;
        let mut ahead: i128 = 0; // In units of 2^-63.
        let (mut positive, mut longest, mut frequency) = (0, 0, 0u128);
        for task in self.tasks() {
            let first = self.first(task) - self.now;
            let lead = task.period.get() as i64 - signed(first);
            // Where it counts in our favour the share is rounded down.
            let share = if lead < 0 { task.share.saturating_sub(1) } else { task.share };
            ahead += i128::from(lead) * i128::from(share);
            positive = positive.max(-lead);
            longest = longest.max(task.period.get());
            frequency += u128::from(task.period.reciprocal());
        }
        let spoken_for =
            i128::from(self.free_at - self.now) + i128::from(waiting) + (ahead >> 63) + 1;
        let near = i128::from(longest) * SLACK_PERIODS;
        let within = ((near * left) >> 64) - spoken_for;
        let target = within.clamp(i128::from(needed), i128::from(enough)) as i64;
        let time = (i128::from(target) + spoken_for).max(0);
        let reach = u64::try_from(((time as u128) << 64).div_ceil(left as u128)).ok()?;
        if reach > HORIZON_MAX.as_nanos() {
            return None;
        }
        let reach = reach.max(positive as u64) + 1;
        let jobs = (frequency * u128::from(reach)) >> 64;
        Some((target, self.now + reach, u64::try_from(jobs).unwrap_or(u64::MAX)))
    }
}

/// The least difference found so far; without a deadline, none is below it.
struct Least {
    difference: i64,
    deadline: Option<u64>,
}

impl Least {
    fn answer(&self, needed: i64) -> Answer {
        match self.deadline {
            None => Answer::AtLeast(self.difference),
            Some(deadline) if self.difference < needed => {
                Answer::Below { deadline, difference: self.difference }
            }
            Some(deadline) => Answer::Exactly { deadline, slack: self.difference },
        }
    }
}

/// What is known of the slack without computing it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    /// With the disk free at `at` the slack was at least `slack`.
    slack: i64,
    at: u64,
    /// A deadline whose difference was too small, and what is known of it.
    pub critical: Option<Critical>,
}

/// A deadline that bounds the slack from above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Critical {
    pub deadline: u64,
    /// Its difference with the disk free at `free_at`; grown since by what was
    /// due by then and is done, but not by requests that could have come and did not.
    pub difference: i64,
    pub free_at: u64,
    /// When it was last computed.
    pub now: u64,
}

impl Meter {
    /// Knows nothing.
    pub(crate) fn unknown() -> Self {
        Self { slack: i64::MIN / 2, at: 0, critical: None }
    }

    /// A lower bound of the slack when the disk is free at `free_at`.
    pub(crate) fn least(&self, free_at: u64) -> i64 {
        self.slack - (free_at as i64 - self.at as i64)
    }

    /// With the disk free at `free_at` the slack is at least `slack`.
    pub(crate) fn learn(&mut self, slack: i64, free_at: u64) {
        if slack > self.least(free_at) {
            (self.slack, self.at) = (slack, free_at);
        }
    }

    /// A request under contract leaves what waits, for the disk.
    pub(crate) fn served(&mut self, deadline: u64, cost: u64) {
        if let Some(critical) = self.critical.as_mut().filter(|it| deadline <= it.deadline) {
            critical.difference += cost as i64;
        }
    }
}

impl Critical {
    /// The difference when the disk is free at `free_at`, but for requests that
    /// could have come since and did not.
    pub(crate) fn difference_at(&self, free_at: u64) -> i64 {
        self.difference - (free_at as i64 - self.free_at as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use units::Duration;

    /// Memory with this work in it.
    fn with(due: &[Due]) -> Scratch {
        Scratch { due: due.to_vec(), ..Scratch::default() }
    }

    /// The quick computation and the plain walk, on random states, some near the
    /// whole disk, some with late work, in nanoseconds and in ticks.
    #[test]
    fn covers_is_what_the_plain_walk_finds() {
        let mut seed = 1u64;
        let mut random = |low: u64, high: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            low + (seed >> 33) % (high - low + 1)
        };
        let (mut covered, mut not, mut scratch) = (0, 0, Scratch::default());
        for round in 0..4_000 {
            let unit = [1, 1_000, 1_000_000][round % 3];
            let now = random(1_000, 100_000) * unit + random(0, unit - 1);
            let tasks = random(1, 40);
            let mut share = 0;
            let live: Vec<Live> = (0..tasks)
                .map(|index| {
                    let period = random(20, 3_000) * unit;
                    let cost = (period / tasks * random(1, 20) / 21).max(1);
                    let deadline = if random(0, 2) == 0 { random(cost, period) } else { period };
                    let [period, deadline, cost] =
                        [period, deadline, cost].map(Duration::from_nanos);
                    let release =
                        now.saturating_add_signed(random(0, 900) as i64 * unit as i64 - 300);
                    let task = Task::new(period, deadline, cost);
                    share += (u128::from(cost.as_nanos()) << 64).div_ceil(period.as_nanos().into());
                    Live::new(&task, index as u32, Instant::from_nanos(release))
                })
                .collect();
            let mut due: Vec<Due> = (0..random(0, 10))
                .map(|_| Due {
                    deadline: now - 20 * unit + random(0, 900) * unit,
                    cost: random(1, 40) * unit,
                })
                .collect();
            due.sort_unstable_by_key(|due| due.deadline);
            let exact = Exact {
                live: live.split_at(live.len() / 3).into(),
                share,
                now,
                free_at: now + random(0, 30) * unit,
            };
            let needed = random(0, 300) as i64 * unit as i64;
            let enough = needed + random(0, 900) as i64 * unit as i64;
            let walked = exact.slack(needed, None, &mut with(&due));
            scratch.due.clone_from(&due);
            let answer = exact.covers(needed, enough, &mut scratch);
            match answer {
                Answer::AtLeast(slack) => {
                    covered += 1;
                    assert_eq!(walked, Some(needed));
                    assert!(slack >= needed && slack <= enough);
                    assert_eq!(exact.slack(slack, None, &mut with(&due)), Some(slack));
                }
                Answer::Exactly { deadline, slack } => {
                    covered += 1;
                    assert!(slack >= needed && slack <= enough);
                    assert_eq!(exact.slack(enough, None, &mut with(&due)), Some(slack));
                    assert_eq!(exact.difference(deadline, due.iter().copied()), Some(slack));
                }
                Answer::Below { deadline, difference } => {
                    not += 1;
                    assert!(walked.unwrap() < needed && difference < needed);
                    assert_eq!(exact.difference(deadline, due.iter().copied()), Some(difference));
                }
                Answer::Unknown => assert!(walked.is_none() || share >= WHOLE),
            }
        }
        assert!(covered > 800 && not > 800, "{covered} {not}");
    }
}
