//! Statistical admission: more streams than the worst costs allow, each request late
//! with a probability that is stated.
//!
//! Requests are served earliest deadline first and never interrupted. Suppose that a
//! request due at `D` is late, and let `b` be the last instant before `D` at which
//! nothing due by `D` was there. From `b` to `D` the disk did nothing but work that
//! was released from `b` on and is due by `D`, and perhaps one command that began
//! before `b`: a request due later (at most `blocking(D - b)`) or one of best effort
//! (at most the reserve). So the costs of the requests that fit into the interval
//! `[b, D]` came to more than `D - b - blocking(D - b) - reserve`.
//!
//! **One event for many intervals.** With `D` fixed, a longer interval holds the
//! requests of every shorter one. So for all lengths from `from` to `until` the event
//! is that the costs of the longest come to more than what the shortest leaves, and
//! the probability that the request is late is at most the sum over such *cells* of
//! their probabilities. Where requests fit close to each other cells are narrow
//! ([`PER_OCTAVE`] in each doubling), so that 0.4 % of the time is given away; else one
//! reaches to the next length into which one more request fits, and gives nothing away.
//!
//! **One cell.** At most `floor((until - D_i) / T_i) + 1` requests of a task fit. Of
//! independent costs, none above its mean by more than `b`, with variances that sum up
//! to `V`, the sum exceeds its mean by `t` with a probability of at most
//! `exp(-V / b^2 ((1 + u) ln(1 + u) - u))` with `u = b t / V` (Bennett 1962), which is no more than
//! `exp(-t^2 / (2 (V + b t / 3)))` (Bernstein 1924; Boucheron, Lugosi and Massart 2013,
//! section 2.7 and 2.8), and much less where long costs are rare. Where even the bounds of all costs fit, it is zero. Beyond the last
//! cell that is computed the exponent grows in proportion to the length, and is so
//! large already that what is left does not count.
//!
//! **Beside contracts that are kept always** ([`StatisticalSet::beside`]) the disk may serve those
//! first, wherever they are due: as many as are released within `[b, D]`,
//! `floor((D - b) / T) + 1` of each task, at their bounds. Then `b` is the last instant at which
//! none of them waited either.
//!
//! **What is assumed.** Costs of different requests are independent, and so are the
//! instants at which requests come from the costs of others; a mean or deviation
//! that is given is no less than the true one; no cost exceeds its bound; what runs
//! beside (best effort) begins only while nothing under contract waits, and takes no
//! longer than the reserve. No number here is floating: exponents count in sixteenths of
//! a bit, probabilities in 2^-63, both rounded to the safe side.

use crate::chance::{Chance, LOG2_E, log2_below};
use crate::limits::{HORIZON_MAX, STATISTICAL_CLASSES_MAX};
use crate::task::{Task, Utilisation, WHOLE};
use alloc::vec::Vec;
use core::fmt;
use units::Duration;

/// Cells in each doubling of the interval, as a power of two.
const PER_OCTAVE_SHIFT: u32 = 8;
/// The same.
const PER_OCTAVE: u64 = 1 << PER_OCTAVE_SHIFT;

/// The exponent, in bits, from which on the rest of the cells does not count: each one
/// later then counts half of the one before or less.
const BITS_ENOUGH: u128 = 512;

/// A task of which more is known than the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatisticalTask {
    /// Period, deadline, and the bound of the cost.
    pub task: Task,
    /// The mean cost, or more; at most the bound.
    pub mean: Duration,
    /// The standard deviation of the cost, or more; at most the bound.
    pub deviation: Duration,
}

impl StatisticalTask {
    /// True where the limits that the fields name hold.
    pub fn is_valid(&self) -> bool {
        // Deadlines may be beyond the period: nothing above counts with less.
        let Task { period, deadline, .. } = self.task;
        let within = Task { deadline: deadline.min(period), cost: self.task.command, ..self.task };
        within.is_valid()
            && self.task.command <= self.task.cost
            && self.task.cost <= deadline
            && deadline <= crate::limits::PERIOD_MAX
            && self.mean <= self.task.cost
            && self.deviation <= self.task.cost
    }
}

/// What is promised of a set that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatisticalAnalysis {
    /// Each request by itself is late with at most this probability.
    pub miss: Chance,
    /// The share of the disk that the mean costs take.
    pub utilisation: Utilisation,
    /// The share that the bounds would take; above the whole disk more is promised than
    /// the worst costs allow.
    pub utilisation_bounds: Utilisation,
    /// The length of interval that is most likely to bring a request late.
    pub critical: Duration,
}

/// Why a task cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatisticalRefusal {
    /// Utilisation by mean costs with the task, in parts per million, rounded up.
    pub utilisation_ppm: u64,
    /// A request would be late with up to this probability, as far as it was counted.
    pub miss: Chance,
    /// The interval that counts most, and by how much the mean demand is more than
    /// there is in it (zero where the means alone fit). None where the utilisation
    /// alone leaves too little.
    pub deadline: Option<(Duration, Duration)>,
    /// A bound of the computation was reached first.
    pub undecided: bool,
}

impl fmt::Display for StatisticalRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let utilisation = Utilisation(u128::from(self.utilisation_ppm) * WHOLE / 1_000_000);
        write!(f, "the disk would be promised to {utilisation} on average")?;
        match self.deadline {
            Some((interval, Duration::ZERO)) => {
                write!(
                    f,
                    "; a request could be late {}, most likely within {interval}",
                    self.miss
                )?;
            }
            Some((interval, excess)) => {
                write!(f, "; within {interval} it would be asked for {excess} more than there is")?;
            }
            None => {}
        }
        if self.undecided {
            write!(f, "; too close to the limit to promise it")?;
        }
        Ok(())
    }
}
impl core::error::Error for StatisticalRefusal {}

/// The tasks of one disk that are admitted by what their requests mostly cost.
#[derive(Clone, Debug)]
pub struct StatisticalSet {
    reserve: u64,
    miss: Chance,
    /// Equal tasks, and how many.
    classes: Vec<(StatisticalTask, u64)>,
    /// Periods and costs of what may go first always.
    first: Vec<(u64, u64)>,
}

/// Sums over the requests that fit into an interval, or over tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    pub mean: u128,
    variance: u128,
    bound: u128,
    /// The most that one cost is above its mean.
    above: u64,
}

impl Costs {
    pub(crate) fn add(&mut self, one: &StatisticalTask, requests: u128) {
        let deviation = u128::from(one.deviation.as_nanos());
        self.mean += requests * u128::from(one.mean.as_nanos());
        self.variance += requests * deviation * deviation;
        self.bound += requests * u128::from(one.task.cost.as_nanos());
        self.above = self.above.max((one.task.cost - one.mean).as_nanos());
    }

    /// The probability that the costs come to more than `room`; None where their mean
    /// does.
    fn exceed(&self, room: u64) -> Option<Chance> {
        if self.bound <= u128::from(room) {
            return Some(Chance::NEVER);
        }
        let over = u128::from(room).checked_sub(self.mean)?;
        Some(Chance::of_sixteenths(self.sixteenths(over)))
    }

    /// The larger of both exponents in sixteenths of a bit, rounded down.
    pub(crate) fn sixteenths(&self, over: u128) -> u128 {
        self.by_bernstein(over).max(self.by_bennett(over).unwrap_or(0))
    }

    /// The exponent of Bennett's inequality: `((V + b t) log2(1 + b t / V) / b - t log2 e) / b`.
    /// None where its terms are too large to be multiplied.
    fn by_bennett(&self, over: u128) -> Option<u128> {
        let above = u128::from(self.above);
        let sum = self.variance.checked_add(above.checked_mul(over)?)?;
        if self.variance == 0 || above == 0 {
            return None;
        }
        let ratio = log2_below(sum).saturating_sub(log2_below(self.variance) + 2);
        let gained = sum.checked_mul(ratio)? / above;
        Some((gained.saturating_sub(over.checked_mul(LOG2_E)?) / above) >> 8)
    }

    /// The exponent of Bernstein's inequality. `16 * 3 / (2 ln 2) = 34.62`, here 1107 / 32.
    fn by_bernstein(&self, over: u128) -> u128 {
        let spread = 3 * self.variance + u128::from(self.above) * over;
        (over * over * 1_107).checked_div(spread).map_or(u128::MAX, |quotient| quotient >> 5)
    }
}

/// What was found.
struct Found {
    miss: Chance,
    worst: Chance,
    critical: u64,
}

impl StatisticalSet {
    /// An empty set. Each request may be late with a probability of `miss`; `reserve` is
    /// the longest command that may be in the way of all.
    pub fn new(reserve: Duration, miss: Chance) -> Self {
        Self { reserve: reserve.as_nanos(), miss, classes: Vec::new(), first: Vec::new() }
    }

    /// The same beside requests that may go first whenever they wait: of each period, what those
    /// cost at the most that are released together. None of the periods is zero.
    #[must_use]
    pub fn beside(self, first: impl IntoIterator<Item = (Duration, Duration)>) -> Self {
        let nanos = |(period, cost): (Duration, Duration)| (period.as_nanos(), cost.as_nanos());
        Self { first: first.into_iter().map(nanos).collect(), ..self }
    }

    /// How many tasks.
    pub fn len(&self) -> u64 {
        self.classes.iter().map(|(_, count)| count).sum()
    }

    /// True for no tasks.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// All tasks: each kind, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (StatisticalTask, u64)> + '_ {
        self.classes.iter().copied()
    }

    /// What would be promised with `task` in the set; changes nothing.
    ///
    /// # Errors
    /// [`StatisticalRefusal`] where a request could be late more often than it may.
    ///
    /// # Panics
    /// Where the task is not valid ([`StatisticalTask::is_valid`]).
    pub fn check(&self, task: &StatisticalTask) -> Result<StatisticalAnalysis, StatisticalRefusal> {
        self.with(task).analysis()
    }

    /// Takes `task` into the set if the promise can be kept with it.
    ///
    /// # Errors
    /// As [`StatisticalSet::check`]; the set is unchanged.
    ///
    /// # Panics
    /// As [`StatisticalSet::check`].
    pub fn add(
        &mut self,
        task: StatisticalTask,
    ) -> Result<StatisticalAnalysis, StatisticalRefusal> {
        let with = self.with(&task);
        let analysis = with.analysis()?;
        *self = with;
        Ok(analysis)
    }

    /// Takes one such task out of the set; false where there is none.
    pub fn remove(&mut self, task: &StatisticalTask) -> bool {
        let Some(at) = self.classes.iter().position(|(one, _)| one == task) else { return false };
        self.classes[at].1 -= 1;
        if self.classes[at].1 == 0 {
            self.classes.swap_remove(at);
        }
        true
    }

    fn with(&self, task: &StatisticalTask) -> Self {
        assert!(task.is_valid(), "not a task: {task:?}");
        let mut set = self.clone();
        set.insert(*task);
        set
    }

    /// Takes a task into the set whatever the analysis says.
    pub(crate) fn insert(&mut self, task: StatisticalTask) {
        match self.classes.iter_mut().find(|(one, _)| *one == task) {
            Some((_, count)) => *count += 1,
            None => self.classes.push((task, 1)),
        }
    }

    /// What is promised of the set as it is.
    ///
    /// # Errors
    /// As [`StatisticalSet::check`].
    pub fn analysis(&self) -> Result<StatisticalAnalysis, StatisticalRefusal> {
        let (mean, bounds) = self.shares();
        let refusal = StatisticalRefusal {
            utilisation_ppm: Utilisation(mean).ppm(),
            miss: Chance::ALWAYS,
            deadline: None,
            undecided: false,
        };
        if self.classes.len() + self.first.len() > STATISTICAL_CLASSES_MAX {
            return Err(StatisticalRefusal { undecided: true, ..refusal });
        }
        if mean >= WHOLE {
            return Err(refusal);
        }
        let found = self.search(refusal)?;
        Ok(StatisticalAnalysis {
            miss: found.miss,
            utilisation: Utilisation(mean),
            utilisation_bounds: Utilisation(bounds),
            critical: Duration::from_nanos(found.critical),
        })
    }

    /// Sums over all cells; gives up as soon as it is too much.
    fn search(&self, refusal: StatisticalRefusal) -> Result<Found, StatisticalRefusal> {
        let deadlines = || self.classes.iter().map(|(one, _)| one.task.deadline.as_nanos());
        let mut found = Found { miss: Chance::NEVER, worst: Chance::NEVER, critical: 0 };
        let (Some(first), Some(last)) = (deadlines().min(), deadlines().max()) else {
            return Ok(found);
        };
        let mut from = first;
        loop {
            // Up to the next multiple of the width, and on while nothing more fits.
            let shift = from.max(PER_OCTAVE).ilog2() - PER_OCTAVE_SHIFT;
            let until = self.next_deadline(((from >> shift) + 1) << shift);
            if until > HORIZON_MAX.as_nanos() {
                return Err(StatisticalRefusal { undecided: true, ..refusal });
            }
            let costs = self.costs(until - 1);
            let room = from.saturating_sub(self.blocking(from) + self.reserve);
            let Some(chance) = costs.exceed(room) else {
                let excess = (costs.mean - u128::from(room)).min(u128::from(u64::MAX)) as u64;
                let deadline = Some((Duration::from_nanos(from), Duration::from_nanos(excess)));
                return Err(StatisticalRefusal { deadline, ..refusal });
            };
            found.miss = found.miss.plus(chance);
            if chance > found.worst {
                (found.worst, found.critical) = (chance, from);
            }
            if found.miss > self.miss {
                let deadline = Some((Duration::from_nanos(found.critical), Duration::ZERO));
                return Err(StatisticalRefusal { miss: found.miss, deadline, ..refusal });
            }
            if from >= last
                && let Some(rest) = self.rest(until)
            {
                found.miss = found.miss.plus(rest);
                if found.miss <= self.miss {
                    return Ok(found);
                }
                let deadline = Some((Duration::from_nanos(found.critical), Duration::ZERO));
                return Err(StatisticalRefusal { miss: found.miss, deadline, ..refusal });
            }
            from = until;
        }
    }

    /// The costs of all requests that fit into an interval.
    fn costs(&self, interval: u64) -> Costs {
        let mut costs = Costs::default();
        for (period, cost) in &self.first {
            let all = u128::from(interval / period + 1) * u128::from(*cost);
            costs.mean += all;
            costs.bound += all;
        }
        for (one, count) in &self.classes {
            let (deadline, period) = (one.task.deadline.as_nanos(), one.task.period.as_nanos());
            if let Some(past) = interval.checked_sub(deadline) {
                costs.add(one, u128::from(past / period + 1) * u128::from(*count));
            }
        }
        costs
    }

    /// The first length from `from` on into which one more request fits.
    fn next_deadline(&self, from: u64) -> u64 {
        let next = self.classes.iter().map(|(one, _)| {
            let (deadline, period) = (one.task.deadline.as_nanos(), one.task.period.as_nanos());
            from.checked_sub(deadline)
                .map_or(deadline, |past| from + (period - past % period) % period)
        });
        let first = self.first.iter();
        let first = first.map(|(period, _)| from.next_multiple_of(*period));
        next.chain(first).min().unwrap_or(from)
    }

    fn blocking(&self, interval: u64) -> u64 {
        let later = self.classes.iter().filter(|(one, _)| one.task.deadline.as_nanos() > interval);
        later.map(|(one, _)| one.task.command.as_nanos()).max().unwrap_or(0)
    }

    /// What all cells from `from` on, past every deadline, come to, once that is one unit
    /// or nothing. Counted with lines: requests of a task are at most
    /// `(interval - deadline) / period + 1`, and no more than `interval / period` where the deadline is
    /// beyond the period; a cell begins at no less than 255 parts of 256 of its end. So the lines of mean
    /// and variance begin at zero or above, and that of the room below: for each part of the length there
    /// is no more of the first two, and no less left over, the longer it is. The exponent grows at least
    /// in proportion to the length.
    fn rest(&self, from: u64) -> Option<Chance> {
        let mut costs = Costs::default();
        let mut bound = 0u128;
        for (period, cost) in &self.first {
            let length = u128::from(from) + u128::from(*period);
            let all = (u128::from(*cost) * length).div_ceil(u128::from(*period));
            costs.mean += all;
            bound += all;
        }
        for (one, count) in &self.classes {
            let (deadline, period) = (one.task.deadline.as_nanos(), one.task.period.as_nanos());
            // With no less than through the origin: where the deadline is beyond the period the line of the
            // requests begins below it, and means and variances grow faster than the length.
            let length = u128::from(from) + u128::from(period.saturating_sub(deadline));
            let per = |cost: u64| {
                (u128::from(cost) * u128::from(*count) * length).div_ceil(u128::from(period))
            };
            let deviation = one.deviation.as_nanos();
            costs.mean += per(one.mean.as_nanos());
            costs.variance += per(deviation) * u128::from(deviation);
            bound += per(one.task.cost.as_nanos());
            costs.above = costs.above.max((one.task.cost - one.mean).as_nanos());
        }
        let room = (from - from / PER_OCTAVE - 1).saturating_sub(self.reserve);
        let fits =
            bound <= u128::from(room) && self.shares().1 < WHOLE - WHOLE / u128::from(PER_OCTAVE);
        let over = u128::from(room).checked_sub(costs.mean);
        if fits {
            return Some(Chance::NEVER);
        }
        over.filter(|&over| costs.sixteenths(over) >= 16 * BITS_ENOUGH).map(|_| Chance::LEAST)
    }

    /// The shares of the disk by means and by bounds, rounded up.
    fn shares(&self) -> (u128, u128) {
        let share = |cost: Duration, one: &StatisticalTask, count: u64| {
            let period = u128::from(one.task.period.as_nanos());
            (u128::from(cost.as_nanos()) << 64).div_ceil(period) * u128::from(count)
        };
        let first = self
            .first
            .iter()
            .map(|(period, cost)| (u128::from(*cost) << 64).div_ceil(u128::from(*period)));
        let first: u128 = first.sum();
        self.classes.iter().fold((first, first), |(mean, bound), (one, count)| {
            (mean + share(one.mean, one, *count), bound + share(one.task.cost, one, *count))
        })
    }
}
