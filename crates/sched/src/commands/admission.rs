//! Who may join where requests are served in commands.
//!
//! Others wait for a command, no longer for a request ([`Task::command`]). In return
//! a request that made way has to be sought back, at most `resume` each time. Under
//! earliest deadline first, with the older request first among equal ones:
//!
//! * A request makes way only to one that begins while it is unfinished, and every
//!   request begins once. Requests that have begun and are unfinished stand in a
//!   stack; only the last of them has the heads. So each beginning takes the heads
//!   from at most one request, and no end of a request takes them from anybody:
//!   there are no more returns than beginnings.
//! * Who makes way has the later deadline though it came earlier, hence a task with
//!   a longer relative deadline, one of those that come in several commands.
//! * In the analysis of an interval that ends at a deadline, the returns that matter
//!   are those of requests due by then. Who took their heads was due earlier still
//!   and released within the interval: both are in its demand. Requests due later
//!   run for one command at most, in which `command` counts their return.
//!
//! So each return may be charged to either of the two, and the set keeps
//! its deadlines if [`TaskSet`] admits its tasks with the charges added to their
//! costs. To the one that takes the heads: once for each of its requests, at the
//! largest `resume` of a longer deadline. To the one that makes way: for each of its
//! requests as often as the others can be released early enough to be due before it.
//! The first is cheap where many may take the heads of one; the second spares a task
//! with a short deadline a return that does not delay it. Tasks with deadlines up to
//! a limit are spared, the others pay for what they take; several limits are tried.
//!
//! What a request had waited for in vain when it made way (a seek, part of a turn) it
//! has to do again, which is why `resume` bounds a whole positioning.

use crate::analysis::TaskSet;
use crate::task::{Analysis, Refusal, Task};
use alloc::vec;
use alloc::vec::Vec;
use units::Duration;

/// The most combinations that are all tried.
const TRIED_MAX: u64 = 512;
/// The most tasks whose way is changed one at a time, and how often.
const IMPROVED_TASKS: usize = 64;

/// One way to serve the requests of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Bound on all commands of a request that is not interrupted.
    pub cost: Duration,
    /// Bound on the longest command, a return of the heads included where it is not
    /// a command of its own. Below `cost`, or the request is one command.
    pub command: Duration,
    /// Bound on bringing the heads back to a request that made way.
    pub resume: Duration,
}

impl Way {
    /// A request as one command.
    pub const fn whole(cost: Duration) -> Self {
        Self { cost, command: cost, resume: Duration::ZERO }
    }

    /// A request in commands; as one where the longest of them is no shorter than the
    /// request (chunks so large, or a return so long, are no help).
    pub fn in_commands(cost: Duration, command: Duration, resume: Duration) -> Self {
        if command < cost { Self { cost, command, resume } } else { Self::whole(cost) }
    }

    /// True where others may go between.
    fn is_interrupted(&self) -> bool {
        self.command < self.cost
    }
}

/// A contract and the ways in which its requests can be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways {
    /// The least time between two releases.
    pub period: Duration,
    /// From release to completion at the most.
    pub deadline: Duration,
    /// At least one.
    pub ways: Vec<Way>,
}

/// Which way each task is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// Tasks with deadlines up to this do not pay for returns that they cause; those
    /// that make way for them do.
    pub spared: Duration,
    /// For each task, an index of its ways.
    pub ways: Vec<usize>,
    /// The tasks with what they may make others lose.
    pub tasks: Vec<Task>,
    /// What the analysis says of them.
    pub analysis: Analysis,
}

impl Chunking {
    /// The tasks served in these ways, and what the analysis says; returns charged so
    /// that the most slack is left.
    ///
    /// # Errors
    /// [`Refusal`] where that cannot be kept.
    ///
    /// # Panics
    /// Where there is no task, or not one way for each.
    pub fn of(contracts: &[Ways], ways: &[usize], reserve: Duration) -> Result<Self, Refusal> {
        let mut best = Self::sparing(Duration::ZERO, contracts, ways, reserve);
        for spared in limits(contracts, ways) {
            improve(&mut best, Self::sparing(spared, contracts, ways, reserve));
        }
        best
    }

    /// The same with tasks spared that have deadlines up to `spared`.
    ///
    /// # Errors
    /// [`Refusal`] where that cannot be kept.
    ///
    /// # Panics
    /// Where there is no task, or not one way for each.
    pub fn sparing(
        spared: Duration,
        contracts: &[Ways],
        ways: &[usize],
        reserve: Duration,
    ) -> Result<Self, Refusal> {
        let tasks = charged(spared, contracts, ways);
        if let Some(task) = tasks.iter().find(|task| !task.is_valid()) {
            // More than its whole deadline.
            let cost = u128::from(task.cost.as_nanos()) * 1_000_000;
            let ppm = cost.div_ceil(u128::from(task.period.as_nanos().max(1)));
            let utilisation_ppm = u64::try_from(ppm).unwrap_or(u64::MAX);
            let deadline = Some((task.deadline, task.cost.saturating_sub(task.deadline)));
            return Err(Refusal { utilisation_ppm, deadline, undecided: false });
        }
        let set = TaskSet::of(reserve, &tasks)?;
        let analysis = set.analysis().expect("at least one task, and they can be kept");
        Ok(Self { spared, ways: ways.to_vec(), tasks, analysis })
    }

    /// The ways that leave the most slack; of equal ones the first of each task's. All
    /// are tried where there are no more than some hundreds; else one bound on
    /// commands for all tasks, and from the best of these one change at a time.
    ///
    /// # Errors
    /// The refusal of all requests as they come first in their ways.
    pub fn best(contracts: &[Ways], reserve: Duration) -> Result<Self, Refusal> {
        let first = vec![0; contracts.len()];
        let mut best = Self::of(contracts, &first, reserve);
        let all = contracts.iter().try_fold(1u64, |all, contract| {
            let ways = contract.ways.len() as u64;
            all.checked_mul(ways).filter(|&all| all <= TRIED_MAX)
        });
        match all {
            Some(all) => {
                for index in 1..all {
                    improve(
                        &mut best,
                        Self::of(contracts, &combination(contracts, index), reserve),
                    );
                }
            }
            None => {
                for bound in bounds(contracts) {
                    let ways = within(contracts, bound);
                    improve(&mut best, Self::of(contracts, &ways, reserve));
                }
                while let Some(better) =
                    best.as_ref().ok().and_then(|best| best.improved(contracts, reserve))
                {
                    best = Ok(better);
                }
            }
        }
        best
    }

    /// The best that one change makes of it, where that is better.
    fn improved(&self, contracts: &[Ways], reserve: Duration) -> Option<Self> {
        let mut best: Result<Self, Refusal> = Ok(self.clone());
        for (task, contract) in contracts.iter().enumerate().take(IMPROVED_TASKS) {
            for way in 0..contract.ways.len() {
                let mut ways = self.ways.clone();
                ways[task] = way;
                improve(&mut best, Self::of(contracts, &ways, reserve));
            }
        }
        best.ok().filter(|best| best.analysis.slack > self.analysis.slack)
    }
}

fn improve(best: &mut Result<Chunking, Refusal>, other: Result<Chunking, Refusal>) {
    let better = match (&best, &other) {
        (Ok(best), Ok(other)) => other.analysis.slack > best.analysis.slack,
        (Err(_), Ok(_)) => true,
        (_, Err(_)) => false,
    };
    if better {
        *best = other;
    }
}

/// The tasks in their ways, with the returns charged.
fn charged(spared: Duration, contracts: &[Ways], ways: &[usize]) -> Vec<Task> {
    assert_eq!(contracts.len(), ways.len(), "one way for each task");
    let chosen: Vec<(&Ways, Way)> =
        contracts.iter().zip(ways).map(|(contract, &way)| (contract, contract.ways[way])).collect();
    let returns = returns(&chosen);
    chosen
        .iter()
        .map(|&(contract, way)| {
            let own = if contract.deadline > spared {
                let longer =
                    returns.partition_point(|&(deadline, _)| deadline <= contract.deadline);
                returns.get(longer).map_or(Duration::ZERO, |&(_, resume)| resume)
            } else {
                Duration::ZERO
            };
            let others = if way.is_interrupted() {
                let others = chosen.iter().map(|&(other, _)| other);
                let others = others.filter(|other| other.deadline <= spared);
                let times = others.map(|other| interruptions(contract, other));
                let times = times.fold(0, u64::saturating_add);
                Duration::from_nanos(way.resume.as_nanos().saturating_mul(times))
            } else {
                Duration::ZERO
            };
            let charge = own.saturating_add(others);
            let cost = way.cost.saturating_add(charge);
            Task::new(contract.period, contract.deadline, cost).in_commands(way.command)
        })
        .collect()
}

/// The deadlines up to which it may be best to spare tasks: the shortest, the one below
/// the widest gap, and all. None where nobody makes way.
fn limits(contracts: &[Ways], ways: &[usize]) -> Vec<Duration> {
    let makes_way = |(contract, &way): (&Ways, &usize)| contract.ways[way].is_interrupted();
    if !contracts.iter().zip(ways).any(makes_way) {
        return Vec::new();
    }
    let mut deadlines: Vec<Duration> = contracts.iter().map(|it| it.deadline).collect();
    deadlines.sort_unstable();
    deadlines.dedup();
    let ratio = |pair: &&[Duration]| pair[1].as_nanos() / pair[0].as_nanos().max(1);
    let gap = deadlines.windows(2).max_by_key(ratio).map(|pair| pair[0]);
    let mut limits = vec![deadlines[0], gap.unwrap_or(deadlines[0]), Duration::MAX];
    limits.dedup();
    limits
}

/// By deadline: the largest return among tasks with this deadline and longer ones.
fn returns(chosen: &[(&Ways, Way)]) -> Vec<(Duration, Duration)> {
    let mut returns: Vec<(Duration, Duration)> = chosen
        .iter()
        .filter(|(_, way)| way.is_interrupted())
        .map(|(contract, way)| (contract.deadline, way.resume))
        .collect();
    returns.sort_unstable();
    for later in (1..returns.len()).rev() {
        returns[later - 1].1 = returns[later - 1].1.max(returns[later].1);
    }
    returns
}

/// How many requests of `other` can come after one of `contract` and be due before
/// it: their releases lie strictly between its release and the difference of the
/// deadlines.
fn interruptions(contract: &Ways, other: &Ways) -> u64 {
    let between = contract.deadline.saturating_sub(other.deadline).as_nanos();
    between.div_ceil(other.period.as_nanos())
}

/// The `index`-th of all combinations; 0 is the first way of each.
fn combination(contracts: &[Ways], index: u64) -> Vec<usize> {
    let mut rest = index;
    let digit = |contract: &Ways| {
        let ways = contract.ways.len() as u64;
        let way = rest % ways;
        rest /= ways;
        way as usize
    };
    contracts.iter().map(digit).collect()
}

/// The different lengths of commands, at most so many as are worth trying.
fn bounds(contracts: &[Ways]) -> Vec<Duration> {
    let mut bounds: Vec<Duration> =
        contracts.iter().flat_map(|contract| contract.ways.iter().map(|way| way.command)).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let step = bounds.len().div_ceil(IMPROVED_TASKS).max(1);
    bounds.into_iter().step_by(step).collect()
}

/// For each task its cheapest way with commands of at most `bound`, or else the one
/// with the shortest.
fn within(contracts: &[Ways], bound: Duration) -> Vec<usize> {
    let choose = |contract: &Ways| {
        let ways = || contract.ways.iter().enumerate();
        let fitting = ways().filter(|(_, way)| way.command <= bound);
        let cheapest = fitting.min_by_key(|(_, way)| way.cost);
        let shortest = || ways().min_by_key(|(_, way)| way.command);
        cheapest.or_else(shortest).expect("a task has a way").0
    };
    contracts.iter().map(choose).collect()
}
