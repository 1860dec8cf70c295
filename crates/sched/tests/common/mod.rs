//! What the tests of this crate share: random numbers, random sets of tasks, and
//! the definitions of the analysis, written down without any cleverness.
#![allow(dead_code)] // each test uses its part

use sched::Task;
use units::Duration;

/// xorshift64* (Vigna 2016): the same numbers on every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }
    /// From `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
    pub fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.within(0, from.len() as u64 - 1) as usize]
    }
}

/// Periods of small worlds.
pub const SMALL: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

/// A task in whole ticks: cost, deadline, period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticks {
    pub cost: u64,
    pub deadline: u64,
    pub period: u64,
}

impl Ticks {
    /// A rate contract, as the papers write it: `(C, T)`.
    pub const fn rate(cost: u64, period: u64) -> Self {
        Self { cost, deadline: period, period }
    }
    pub fn task(&self) -> Task {
        let [cost, deadline, period] =
            [self.cost, self.deadline, self.period].map(Duration::from_nanos);
        Task::new(period, deadline, cost)
    }
}

pub fn common_multiple(set: &[Ticks]) -> u64 {
    fn divisor(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    set.iter().fold(1, |all, task| all / divisor(all, task.period) * task.period)
}

/// `demand(interval)` by its definition.
pub fn demand(set: &[Ticks], interval: u64) -> u64 {
    let due = set.iter().filter(|task| task.deadline <= interval);
    due.map(|task| ((interval - task.deadline) / task.period + 1) * task.cost).sum()
}

/// `blocking(interval)` by its definition.
pub fn blocking(set: &[Ticks], interval: u64) -> u64 {
    set.iter().filter(|task| task.deadline > interval).map(|task| task.cost).max().unwrap_or(0)
}

/// `L - demand(L) - blocking(L)`.
pub fn difference(set: &[Ticks], interval: u64) -> i64 {
    interval as i64 - demand(set, interval) as i64 - blocking(set, interval) as i64
}

/// What there is to know of a set, from every deadline of one common multiple of
/// the periods past the longest deadline: from there on everything repeats, the
/// difference growing by what the utilisation leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brute {
    pub work: u64,
    pub common: u64,
    pub least: i64,
}

pub fn brute(set: &[Ticks]) -> Brute {
    let common = common_multiple(set);
    let work = set.iter().map(|task| common / task.period * task.cost).sum();
    let least = deadlines(set, common).map(|at| difference(set, at)).min().unwrap();
    Brute { work, common, least }
}

/// The first deadline with a difference below `reserve`, and the shortage.
pub fn brute_earliest(set: &[Ticks], reserve: i64) -> Option<(u64, u64)> {
    let mut all: Vec<u64> = deadlines(set, common_multiple(set)).collect();
    all.sort_unstable();
    let at = all.into_iter().find(|&at| difference(set, at) < reserve)?;
    Some((at, (reserve - difference(set, at)) as u64))
}

fn deadlines(set: &[Ticks], common: u64) -> impl Iterator<Item = u64> + '_ {
    let end = common + set.iter().map(|task| task.deadline).max().unwrap();
    set.iter().flat_map(move |task| (task.deadline..=end).step_by(task.period as usize))
}

/// A random set of `tasks` with periods out of `periods`; rate contracts, or with
/// deadlines within the period too.
pub fn random_set(
    random: &mut Random,
    tasks: u64,
    periods: &[u64],
    constrained: bool,
) -> Vec<Ticks> {
    let share = random.within(1, 3);
    (0..tasks)
        .map(|_| {
            let period = *random.pick(periods);
            let cost = random.within(1, (share * period / tasks).clamp(1, period));
            let tight = constrained && !random.one_in(3);
            let deadline = if tight { random.within(cost, period) } else { period };
            Ticks { cost, deadline, period }
        })
        .collect()
}

/// `delta-L` by the thesis's Definition 1 (section 6.2): up to the longest period,
/// and the blocking request begins one tick early.
pub fn thesis_slack(set: &[Ticks]) -> i64 {
    let mut set = set.to_vec();
    set.sort_by_key(|task| task.period);
    let (first, last) = (set[0].period, set[set.len() - 1].period);
    let all = |at: u64| set.iter().map(|task| at / task.period * task.cost).sum::<u64>();
    let unblocked = (first..=last).map(|at| at as i64 - all(at) as i64).min();
    let blocked = (1..set.len()).flat_map(|i| {
        let (before, own) = (&set[..i], set[i]);
        (first + 1..own.period).map(move |at| {
            let work = before.iter().map(|task| (at - 1) / task.period * task.cost);
            at as i64 - (own.cost + work.sum::<u64>()) as i64
        })
    });
    blocked.chain(unblocked).min().unwrap()
}
