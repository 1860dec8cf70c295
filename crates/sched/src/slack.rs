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
//! **Commands in flight** are time that is spoken for: `t` is then the instant
//! by which they are all done, at their bounds.
//!
//! **The bound in between.** `waiting + future` never grows while the set of tasks
//! stays, so that `slack(t') >= slack(t) - (t' - t)`. And whenever the disk is
//! free and nothing released waits, the slack is at least the static slack.
//! [`Meter`] remembers the best such bound; most decisions need no more.

use crate::divide::Divisor;
use crate::limits::{HORIZON_MAX, SLACK_LEDGES_MAX, SLACK_PERIODS};
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
        let (cost, period) = (task.cost.as_nanos(), task.period.as_nanos());
        let share = (u128::from(cost) << 63).div_ceil(u128::from(period));
        Self {
            release_next: release_next.as_nanos(),
            deadline: task.deadline.as_nanos(),
            period: Divisor::new(period),
            cost,
            share: share as u64,
            index,
        }
    }
}

/// A waiting request under contract.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub deadline: u64,
    pub cost: u64,
}

/// One computation of the slack.
pub(crate) struct Exact<'a> {
    pub live: &'a [Live],
    /// What waits, by rising deadline.
    pub due: &'a [Due],
    /// The promised share of the disk, in units of 2^-64.
    pub share: u128,
    pub now: u64,
    /// When the disk is free of what it was given; not before `now`.
    pub free_at: u64,
}

impl Exact<'_> {
    /// The smaller of the slack and `enough`, or a lower bound that is at least
    /// `needed`, over deadlines before `before`. None where the whole disk is
    /// promised or the bound on the work is reached: nothing can be given away then.
    pub(crate) fn slack(&self, needed: i64, enough: i64, before: Option<u64>) -> Option<i64> {
        debug_assert!(needed <= enough);
        let mut waiting = Vec::with_capacity(self.due.len());
        let mut sum = 0;
        for due in self.due {
            sum += due.cost;
            waiting.push((due.deadline, sum));
        }
        let (mut best, horizon) = self.horizon(needed, enough, sum)?;
        let mut limit = before.map_or(horizon, |before| before.min(horizon));
        let mut ledges = 0;
        while let Some((at, demand)) = self.ledge_below(limit, &waiting) {
            best = best.min(at as i64 - self.free_at as i64 - demand as i64);
            // Where `D - free_at - demand >= best`, nothing smaller is found.
            let harmless = (self.free_at + demand).saturating_add_signed(best);
            limit = at.min(harmless);
            ledges += 1;
            if ledges > SLACK_LEDGES_MAX {
                return None;
            }
        }
        Some(best)
    }

    /// The largest deadline before `limit`, and the work due by it.
    fn ledge_below(&self, limit: u64, waiting: &[(u64, u64)]) -> Option<(u64, u64)> {
        let below = waiting.partition_point(|&(deadline, _)| deadline < limit);
        let (mut at, mut demand) =
            below.checked_sub(1).map_or((None, 0), |last| (Some(waiting[last].0), waiting[last].1));
        let mut back = u64::MAX;
        for task in self.live {
            let first = task.release_next.max(self.now) + task.deadline;
            if let Some(span) = limit.checked_sub(first + 1) {
                let (jobs, rest) = task.period.divide(span);
                demand += (jobs + 1) * task.cost;
                back = back.min(rest);
            }
        }
        if back != u64::MAX {
            at = at.max(Some(limit - 1 - back));
        }
        at.map(|at| (at, demand))
    }

    /// A slack from `needed` to `enough`, and the deadline from which on every
    /// difference is at least that: the work of a task due by `D` is at most
    /// `share * (D - first deadline + period)`, once that is positive. As much slack
    /// is asked for as keeps the horizon within a few of the longest periods.
    fn horizon(&self, needed: i64, enough: i64, waiting: u64) -> Option<(i64, u64)> {
        let left = WHOLE.checked_sub(self.share).filter(|&left| left > 0)? as i128;
        let mut ahead: i128 = 0; // In units of 2^-63.
        let (mut positive, mut longest) = (0, 0);
        for task in self.live {
            let first = task.release_next.max(self.now) - self.now + task.deadline;
            let lead = task.period.get() as i64 - first as i64;
            // Where it counts in our favour the share is rounded down.
            let share = if lead < 0 { task.share - 1 } else { task.share };
            ahead += i128::from(lead) * i128::from(share);
            positive = positive.max(-lead);
            longest = longest.max(task.period.get());
        }
        let spoken_for = i128::from(self.free_at - self.now + waiting) + (ahead >> 63) + 1;
        let near = i128::from(longest) * SLACK_PERIODS;
        let within = ((near * left) >> 64) - spoken_for;
        let target = within.clamp(i128::from(needed), i128::from(enough)) as i64;
        let time = (i128::from(target) + spoken_for).max(0);
        let reach = u64::try_from(((time as u128) << 64).div_ceil(left as u128)).ok()?;
        (reach <= HORIZON_MAX.as_nanos())
            .then(|| (target, self.now + reach.max(positive as u64) + 1))
    }
}

/// What is known of the slack without computing it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    /// At `at` the slack was at least `slack`.
    slack: i64,
    at: u64,
}

impl Meter {
    /// Knows nothing.
    pub(crate) fn unknown() -> Self {
        Self { slack: i64::MIN / 2, at: 0 }
    }

    /// A lower bound of the slack when the disk is free at `free_at`.
    pub(crate) fn least(&self, free_at: u64) -> i64 {
        self.slack - (free_at as i64 - self.at as i64)
    }

    /// At `free_at` the slack is at least `slack`.
    pub(crate) fn learn(&mut self, slack: i64, free_at: u64) {
        if slack > self.least(free_at) {
            *self = Self { slack, at: free_at };
        }
    }

    /// The set of tasks has grown: all bounds are void.
    pub(crate) fn forget(&mut self) {
        *self = Self::unknown();
    }
}
