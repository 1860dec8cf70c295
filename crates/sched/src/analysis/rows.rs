//! The tasks of a set, summed up: classes, their sums, and who can be in the way.
//!
//! Invariants: one [`Row`] for each pair of deadline and period; `places` says where
//! in `list`; a [`BlockingSteps`] is sorted by `until` with falling costs, and `all` counts
//! every task that it was made of.

use crate::divide::Divisor;
use crate::task::{Task, WHOLE};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// All tasks with one deadline and one period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub deadline: u64,
    pub period: Divisor,
    /// Sum of their costs.
    pub cost: u64,
}

impl Row {
    pub fn of(task: &Task) -> Self {
        Self {
            deadline: task.deadline.as_nanos(),
            period: Divisor::new(task.period.as_nanos()),
            cost: task.cost.as_nanos(),
        }
    }

    /// The work that must be done by `interval` after a common start.
    pub fn demand(&self, interval: u64) -> u64 {
        let past = interval.checked_sub(self.deadline);
        past.map_or(0, |past| (self.period.divide(past).0 + 1) * self.cost)
    }

    fn key(&self) -> (u64, u64) {
        (self.deadline, self.period.get())
    }
}

/// Sums over the rows, in units of 2^-64 of the disk, or in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Each share rounded up.
    pub share: u128,
    /// Each share rounded down.
    pub share_floor: u128,
    /// `cost * (period - deadline) / period`, rounded up: by how much demand may
    /// run ahead of the utilisation because deadlines are before the period.
    pub ahead: u128,
}

impl Sums {
    pub fn of(row: &Row) -> Self {
        let (period, cost) = (u128::from(row.period.get()), u128::from(row.cost));
        Self {
            share: (cost << 64).div_ceil(period),
            share_floor: (cost << 64) / period,
            ahead: (cost * (period - u128::from(row.deadline))).div_ceil(period),
        }
    }
    pub fn plus(self, other: Self) -> Self {
        Self {
            share: self.share + other.share,
            share_floor: self.share_floor + other.share_floor,
            ahead: self.ahead + other.ahead,
        }
    }
    pub fn minus(self, other: Self) -> Self {
        Self {
            share: self.share - other.share,
            share_floor: self.share_floor - other.share_floor,
            ahead: self.ahead - other.ahead,
        }
    }
    /// `demand(interval)` of what was summed up is at most this.
    pub fn demand_most(&self, interval: u64) -> i64 {
        // Each share was rounded up.
        debug_assert!(self.share <= WHOLE + (1 << 32), "more than the disk");
        let work = (self.share * u128::from(interval)).div_ceil(WHOLE) + self.ahead;
        i64::try_from(work).unwrap_or(i64::MAX)
    }
}

/// The classes of a set, in no order.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    list: Vec<Row>,
    places: BTreeMap<(u64, u64), u32>,
}

impl Rows {
    pub fn list(&self) -> &[Row] {
        &self.list
    }

    /// The shortest deadline.
    pub fn deadline_min(&self) -> Option<u64> {
        self.places.first_key_value().map(|(key, _)| key.0)
    }

    /// Adds a task. Returns its class as it was before, and as it is now.
    pub fn insert(&mut self, one: Row) -> (Option<Row>, Row) {
        let next = self.list.len() as u32;
        let place = *self.places.entry(one.key()).or_insert(next);
        if place == next {
            self.list.push(one);
            return (None, one);
        }
        let row = &mut self.list[place as usize];
        let before = *row;
        row.cost += one.cost;
        (Some(before), *row)
    }

    /// Takes a task out. Returns its class as it was before, and as it is now.
    pub fn withdraw(&mut self, one: Row) -> (Row, Option<Row>) {
        let place = *self.places.get(&one.key()).expect("every task is in a row") as usize;
        let before = self.list[place];
        if before.cost > one.cost {
            self.list[place].cost -= one.cost;
            return (before, Some(self.list[place]));
        }
        self.places.remove(&one.key());
        self.list.swap_remove(place);
        if let Some(moved) = self.list.get(place) {
            self.places.insert(moved.key(), place as u32);
        }
        (before, None)
    }
}

/// `blocking(L)` is the `cost` of the first step with `until > L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub until: u64,
    pub cost: u64,
}

/// The longest request that can be in the way, by interval.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockingSteps {
    steps: Vec<Step>,
    /// How many tasks have this deadline and this cost.
    all: BTreeMap<(u64, u64), u32>,
}

impl BlockingSteps {
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The longest request that is due later than `interval` after its release.
    pub fn blocking(&self, interval: u64) -> u64 {
        blocking(&self.steps, interval)
    }

    pub fn insert(&mut self, until: u64, cost: u64) {
        *self.all.entry((until, cost)).or_insert(0) += 1;
        self.climb(Step { until, cost });
    }

    /// Takes a task out. Only what its step had covered is looked at again.
    pub fn withdraw(&mut self, until: u64, cost: u64) {
        let count = self.all.get_mut(&(until, cost)).expect("every task is counted");
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.all.remove(&(until, cost));
        let at = self.steps.partition_point(|step| step.until < until);
        if self.steps.get(at) != Some(&Step { until, cost }) {
            return;
        }
        self.steps.remove(at);
        let below = at.checked_sub(1).map_or(0, |below| self.steps[below].until);
        let mut highest = self.steps.get(at).map_or(0, |step| step.cost);
        // From the top down: each that is longer than all due later is a step.
        for &(until, cost) in
            self.all.range((below + 1, 0)..=(until, u64::MAX)).rev().map(|it| it.0)
        {
            if cost > highest {
                self.steps.insert(at, Step { until, cost });
                highest = cost;
            }
        }
    }

    /// Adds a step and drops those that it covers.
    fn climb(&mut self, step: Step) {
        let blocking_steps = &mut self.steps;
        let end = blocking_steps.partition_point(|other| other.until < step.until);
        if blocking_steps.get(end).is_some_and(|other| other.cost >= step.cost) {
            return;
        }
        let covered = blocking_steps.get(end).is_some_and(|other| other.until == step.until);
        let start = blocking_steps[..end].partition_point(|other| other.cost > step.cost);
        blocking_steps.splice(start..end + usize::from(covered), [step]);
    }
}

pub(super) fn blocking(blocking_steps: &[Step], interval: u64) -> u64 {
    blocking_steps
        .get(blocking_steps.partition_point(|step| step.until <= interval))
        .map_or(0, |step| step.cost)
}
