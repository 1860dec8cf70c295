//! Who may join: exact admission and the static slack of a set of tasks.
//!
//! Requests are served earliest deadline first and never interrupted. From a
//! common start, `demand(L)` is the work that must be done by `L`, and
//! `blocking(L)` the longest request that may be in the way because it began
//! just before and is due later; of a request in several commands, its longest
//! command, for after each command the earliest deadline goes on. The set can be kept iff the utilisation is at
//! most 1 and `L - demand(L) - blocking(L) >= 0` at every deadline `L` (Jeffay,
//! Stanat and Martel 1991; George, Rivierre and Spuri 1996 for deadlines within
//! the period). The least of these differences is the static slack. The
//! Clockwise thesis (section 6.2) looks for it up to the longest period only,
//! and so finds too much.
//!
//! The search for the minimum generalises QPA (Zhang and Burns 2009), which
//! searches for a sign. It walks down from a horizon beyond which no `L` can
//! undercut the best difference `s` found so far. At a deadline `m` with demand
//! `h` every `L < m` with `L - blocking(L) >= h + s` is harmless, for its demand
//! is at most `h`. As `L - blocking(L)` grows with `L`, the harmless ones reach
//! down to one point, and the walk goes on at the largest deadline below it.
//!
//! Invariants: `rows` is sorted by (deadline, period), without duplicates and
//! sums up the tasks; `stair` is sorted by `until` with falling costs of commands; `found`
//! is the analysis of exactly these rows.

use crate::divide::Divisor;
use crate::limits::{ANALYSIS_VISITS_MAX, HORIZON_MAX, PERIOD_MAX, TASKS_MAX};
use crate::task::{Analysis, Refusal, Task, TaskId, Utilisation, WHOLE};
use alloc::vec::Vec;
use units::Duration;

/// The tasks of one disk and their analysis; pure.
#[derive(Clone, Debug)]
pub struct TaskSet {
    reserve: u64,
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    rows: Vec<Row>,
    stair: Vec<Step>,
    sums: Sums,
    found: Verdict,
}

#[derive(Clone, Debug)]
struct Slot {
    generation: u32,
    task: Option<Task>,
}

/// All tasks with one deadline and one period.
#[derive(Clone, Copy, Debug)]
struct Row {
    deadline: u64,
    period: Divisor,
    /// Sum of their costs.
    cost: u64,
}

/// `blocking(L)` is the `cost` of the first step with `until > L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    until: u64,
    cost: u64,
}

impl Step {
    fn of(task: &Task) -> Self {
        Self { until: task.deadline.as_nanos(), cost: task.command.as_nanos() }
    }
}

/// Sums over the rows, in units of 2^-64 of the disk, or in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Each share rounded up.
    share: u128,
    /// Each share rounded down.
    share_floor: u128,
    /// `cost * (period - deadline) / period`, rounded up: by how much demand may
    /// run ahead of the utilisation because deadlines are before the period.
    ahead: u128,
}

impl Sums {
    fn of(row: &Row) -> Self {
        let (period, cost) = (u128::from(row.period.get()), u128::from(row.cost));
        Self {
            share: (cost << 64).div_ceil(period),
            share_floor: (cost << 64) / period,
            ahead: (cost * (period - u128::from(row.deadline))).div_ceil(period),
        }
    }
    fn plus(self, other: Self) -> Self {
        Self {
            share: self.share + other.share,
            share_floor: self.share_floor + other.share_floor,
            ahead: self.ahead + other.ahead,
        }
    }
    fn minus(self, other: Self) -> Self {
        Self {
            share: self.share - other.share,
            share_floor: self.share_floor - other.share_floor,
            ahead: self.ahead - other.ahead,
        }
    }
}

/// What the search says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// No tasks.
    Empty,
    /// The least difference, possibly negative, and where.
    Least { difference: i64, at: u64, visits: u64 },
    /// Utilisation above 1.
    Overloaded,
    /// A bound of the search was reached first.
    Undecided,
}

impl TaskSet {
    /// An empty set. Admission leaves a static slack of `reserve`.
    ///
    /// # Panics
    /// Where `reserve` is above [`PERIOD_MAX`].
    pub fn new(reserve: Duration) -> Self {
        assert!(reserve <= PERIOD_MAX, "a reserve longer than any period admits nothing");
        Self {
            reserve: reserve.as_nanos(),
            slots: Vec::new(),
            vacant: Vec::new(),
            rows: Vec::new(),
            stair: Vec::new(),
            sums: Sums::default(),
            found: Verdict::Empty,
        }
    }

    /// What the analysis would say with `task` in the set; changes nothing.
    ///
    /// # Errors
    /// [`Refusal`] where the set could not be kept, or would keep less slack than
    /// the reserve.
    ///
    /// # Panics
    /// Where the task is not valid ([`Task::is_valid`]).
    pub fn check(&self, task: &Task) -> Result<Analysis, Refusal> {
        let search = Search::with(self, Some(task));
        let verdict = search.run(self.hint(), self.reserve);
        self.judge(&search, verdict)
    }

    /// Takes `task` into the set if it can be kept together with the others.
    ///
    /// # Errors
    /// As [`TaskSet::check`]; the set is unchanged. A disk has at most
    /// [`TASKS_MAX`] tasks; one more is refused as undecided.
    pub fn add(&mut self, task: Task) -> Result<TaskId, Refusal> {
        let search = Search::with(self, Some(&task));
        let verdict = search.run(self.hint(), self.reserve);
        self.judge(&search, verdict)?;
        if self.len() >= TASKS_MAX {
            let utilisation_ppm = self.utilisation().ppm();
            return Err(Refusal { utilisation_ppm, deadline: None, undecided: true });
        }
        self.insert(&task);
        self.found = verdict;
        Ok(self.occupy(task))
    }

    /// Takes `task` into the set whatever the analysis says.
    ///
    /// # Panics
    /// Where the task is not valid, or for more than [`TASKS_MAX`] tasks.
    pub fn add_unchecked(&mut self, task: Task) -> TaskId {
        assert!(task.is_valid(), "not a task: {task:?}");
        assert!(self.len() < TASKS_MAX, "more than {TASKS_MAX} tasks on one disk");
        self.insert(&task);
        self.found = Search::with(self, None).run(self.hint(), 0);
        self.occupy(task)
    }

    /// Takes the task out of the set.
    ///
    /// # Panics
    /// Where there is no such task.
    pub fn remove(&mut self, id: TaskId) -> Task {
        let task = self.get(id).expect("a task of this set");
        let slot = &mut self.slots[id.index as usize];
        slot.task = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(id.index);
        self.withdraw(&task);
        self.found = Search::with(self, None).run(self.hint(), 0);
        task
    }

    /// The task of this name, if it is still there.
    pub fn get(&self, id: TaskId) -> Option<Task> {
        self.slots.get(id.index as usize).filter(|slot| slot.generation == id.generation)?.task
    }

    /// All tasks.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, Task)> + '_ {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let id = TaskId { index: index as u32, generation: slot.generation };
            Some((id, slot.task?))
        })
    }

    /// How many tasks.
    pub fn len(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// True for no tasks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slack that admission leaves.
    pub fn reserve(&self) -> Duration {
        Duration::from_nanos(self.reserve)
    }

    /// The static slack; [`Duration::MAX`] for no tasks. Zero for a set that
    /// cannot be kept or could not be decided (both only with
    /// [`TaskSet::add_unchecked`]).
    pub fn slack(&self) -> Duration {
        match self.found {
            Verdict::Empty => Duration::MAX,
            Verdict::Least { difference, .. } => Duration::from_nanos(difference.max(0) as u64),
            Verdict::Overloaded | Verdict::Undecided => Duration::ZERO,
        }
    }

    /// The promised share of the disk.
    pub fn utilisation(&self) -> Utilisation {
        Utilisation(self.sums.share)
    }

    /// The work that must be done by `interval` after a common start;
    /// [`Duration::MAX`] where that does not fit.
    pub fn demand(&self, interval: Duration) -> Duration {
        let mut work = 0u128;
        for row in &self.rows {
            if let Some(past) = interval.as_nanos().checked_sub(row.deadline) {
                work += u128::from(past / row.period.get() + 1) * u128::from(row.cost);
            }
        }
        Duration::from_nanos(u64::try_from(work).unwrap_or(u64::MAX))
    }

    /// The longest command of those that are due later than `interval` after their
    /// release.
    pub fn blocking(&self, interval: Duration) -> Duration {
        Duration::from_nanos(blocking(&self.stair, interval.as_nanos()))
    }

    /// Where the search begins: the last critical interval is likely to be
    /// critical again.
    fn hint(&self) -> Option<u64> {
        match self.found {
            Verdict::Least { at, .. } => Some(at),
            _ => None,
        }
    }

    fn judge(&self, search: &Search<'_>, verdict: Verdict) -> Result<Analysis, Refusal> {
        let utilisation = Utilisation(search.sums.share);
        let refusal =
            Refusal { utilisation_ppm: utilisation.ppm(), deadline: None, undecided: false };
        match verdict {
            Verdict::Empty => unreachable!("a set with a candidate is not empty"),
            Verdict::Overloaded => Err(refusal),
            Verdict::Undecided => Err(Refusal { undecided: true, ..refusal }),
            Verdict::Least { difference, at, .. } if difference < self.reserve as i64 => {
                let found = search.earliest_below(self.reserve, at);
                let deadline = found.map(|(interval, excess)| {
                    (Duration::from_nanos(interval), Duration::from_nanos(excess))
                });
                Err(Refusal { deadline, ..refusal })
            }
            Verdict::Least { difference, at, visits } => Ok(Analysis {
                utilisation,
                slack: Duration::from_nanos(difference as u64),
                critical: Duration::from_nanos(at),
                visits,
            }),
        }
    }

    fn occupy(&mut self, task: Task) -> TaskId {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, task: None });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.task = Some(task);
        TaskId { index, generation: slot.generation }
    }

    fn row_of(&self, task: &Task) -> Result<usize, usize> {
        let key = (task.deadline.as_nanos(), task.period.as_nanos());
        self.rows.binary_search_by_key(&key, |row| (row.deadline, row.period.get()))
    }

    fn insert(&mut self, task: &Task) {
        let one = Row::of(task);
        match self.row_of(task) {
            Ok(at) => {
                let old = Sums::of(&self.rows[at]);
                self.rows[at].cost += one.cost;
                self.sums = self.sums.minus(old).plus(Sums::of(&self.rows[at]));
            }
            Err(at) => {
                self.rows.insert(at, one);
                self.sums = self.sums.plus(Sums::of(&one));
            }
        }
        climb(&mut self.stair, Step::of(task));
    }

    fn withdraw(&mut self, task: &Task) {
        let at = self.row_of(task).expect("every task is in a row");
        self.sums = self.sums.minus(Sums::of(&self.rows[at]));
        self.rows[at].cost -= task.cost.as_nanos();
        if self.rows[at].cost == 0 {
            self.rows.remove(at);
        } else {
            self.sums = self.sums.plus(Sums::of(&self.rows[at]));
        }
        self.stair.clear();
        for task in self.slots.iter().filter_map(|slot| slot.task) {
            climb(&mut self.stair, Step::of(&task));
        }
    }
}

impl Row {
    fn of(task: &Task) -> Self {
        assert!(task.is_valid(), "not a task: {task:?}");
        Self {
            deadline: task.deadline.as_nanos(),
            period: Divisor::new(task.period.as_nanos()),
            cost: task.cost.as_nanos(),
        }
    }
}

fn blocking(stair: &[Step], interval: u64) -> u64 {
    stair.get(stair.partition_point(|step| step.until <= interval)).map_or(0, |step| step.cost)
}

/// Adds a step and drops those that it covers.
fn climb(stair: &mut Vec<Step>, step: Step) {
    let end = stair.partition_point(|other| other.until < step.until);
    if stair.get(end).is_some_and(|other| other.cost >= step.cost) {
        return;
    }
    let covered = stair.get(end).is_some_and(|other| other.until == step.until);
    let start = stair[..end].partition_point(|other| other.cost > step.cost);
    stair.splice(start..end + usize::from(covered), [step]);
}

/// One run of the search, over the rows and perhaps one candidate.
struct Search<'a> {
    rows: &'a [Row],
    stair: &'a [Step],
    candidate: Option<Row>,
    /// The longest command of the candidate.
    command: u64,
    sums: Sums,
}

/// A step of the walk: the largest deadline below a limit, and the demand there.
struct Ledge {
    at: u64,
    demand: u64,
}

impl<'a> Search<'a> {
    fn with(set: &'a TaskSet, task: Option<&Task>) -> Self {
        let candidate = task.map(Row::of);
        let sums = candidate.map_or(set.sums, |row| set.sums.plus(Sums::of(&row)));
        let command = task.map_or(0, |task| task.command.as_nanos());
        Self { rows: &set.rows, stair: &set.stair, candidate, command, sums }
    }

    fn visits_per_ledge(&self) -> u64 {
        self.rows.len() as u64 + 1
    }

    /// The least difference over all deadlines; any one below `enough` as soon as
    /// one is found. `hint` is an interval that is likely to be critical.
    fn run(&self, hint: Option<u64>, enough: u64) -> Verdict {
        if self.rows.is_empty() && self.candidate.is_none() {
            return Verdict::Empty;
        }
        let whole = match self.fullness() {
            Fullness::Above => return Verdict::Overloaded,
            Fullness::Unknown => return Verdict::Undecided,
            Fullness::Whole => true,
            Fullness::Below => false,
        };
        let mut visits = 0;
        let mut best = Best { difference: i64::MAX, at: 0 };
        for interval in self.guesses(hint) {
            visits += self.visits_per_ledge();
            if let Some(ledge) = self.ledge_below(interval + 1) {
                best.improve(self.difference(&ledge), ledge.at);
            }
        }
        let horizon = if whole {
            let Some(end) = self.busy_period(&mut visits) else { return Verdict::Undecided };
            // With the whole disk promised nothing is left when all periods end
            // together; whether less than nothing is left shows until `end`.
            best.improve(0, end);
            Some(end.max(self.deadline_max() + 1))
        } else {
            self.horizon(best.difference)
        };
        let Some(mut limit) = horizon else { return Verdict::Undecided };
        while best.difference >= enough as i64 {
            let Some(ledge) = self.ledge_below(limit) else { break };
            visits += self.visits_per_ledge();
            if visits > ANALYSIS_VISITS_MAX {
                return Verdict::Undecided;
            }
            best.improve(self.difference(&ledge), ledge.at);
            limit = ledge.at.min(self.harmless_from(ledge.demand, best.difference));
        }
        Verdict::Least { difference: best.difference, at: best.at, visits }
    }

    /// The smallest deadline up to `known` whose difference is below `reserve`, and
    /// by how much. Bounded as the search is; then the smallest one seen.
    fn earliest_below(&self, reserve: u64, known: u64) -> Option<(u64, u64)> {
        let reserve = reserve as i64;
        let mut earliest = None;
        let mut limit = known + 1;
        let mut visits = 0;
        while let Some(ledge) = self.ledge_below(limit) {
            visits += self.visits_per_ledge();
            let difference = self.difference(&ledge);
            if difference < reserve {
                earliest = Some((ledge.at, (reserve - difference) as u64));
            }
            if visits > ANALYSIS_VISITS_MAX {
                break;
            }
            limit = ledge.at.min(self.harmless_from(ledge.demand, reserve));
        }
        earliest
    }

    fn each(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(&self.candidate)
    }

    /// Intervals at which the difference is often small.
    fn guesses(&self, hint: Option<u64>) -> impl Iterator<Item = u64> {
        let count = self.rows.len();
        let spread = (0..8).filter_map(move |part| self.rows.get(count * part / 8));
        let candidate = self.candidate.map(|row| row.deadline);
        hint.into_iter().chain(candidate).chain(spread.map(|row| row.deadline))
    }

    fn deadline_max(&self) -> u64 {
        let candidate = self.candidate.map_or(0, |row| row.deadline);
        self.rows.last().map_or(0, |row| row.deadline).max(candidate)
    }

    fn cost_max(&self) -> u64 {
        self.stair.first().map_or(0, |step| step.cost).max(self.command)
    }

    fn ledge_below(&self, limit: u64) -> Option<Ledge> {
        let last = limit.checked_sub(1)?;
        let mut demand = 0;
        let mut back = u64::MAX;
        let mut visit = |row: &Row| {
            let (jobs, rest) = row.period.divide(last - row.deadline);
            demand += (jobs + 1) * row.cost;
            back = back.min(rest);
        };
        self.rows.iter().take_while(|row| row.deadline <= last).for_each(&mut visit);
        self.candidate.iter().filter(|row| row.deadline <= last).for_each(&mut visit);
        last.checked_sub(back).map(|at| Ledge { at, demand })
    }

    fn difference(&self, ledge: &Ledge) -> i64 {
        ledge.at as i64 - ledge.demand as i64 - self.blocking(ledge.at) as i64
    }

    fn blocking(&self, interval: u64) -> u64 {
        let candidate = self.candidate.filter(|row| row.deadline > interval);
        blocking(self.stair, interval).max(candidate.map_or(0, |_| self.command))
    }

    /// The smallest `L` with `L - blocking(L) >= demand + slack`.
    fn harmless_from(&self, demand: u64, slack: i64) -> u64 {
        let wanted = demand.saturating_add_signed(slack);
        let step = self.stair.partition_point(|step| step.until <= wanted + step.cost);
        let below = step.checked_sub(1).map_or(0, |below| self.stair[below].until);
        let from = below.max(wanted + self.stair.get(step).map_or(0, |step| step.cost));
        // The candidate blocks up to its deadline.
        from.max(self.candidate.map_or(0, |row| row.deadline.min(wanted + self.command)))
    }

    /// Every `L` from here on has a difference of at least `slack`:
    /// `demand(L) <= L * utilisation + ahead`, and blocking ends at the last
    /// deadline. None where that is beyond [`HORIZON_MAX`].
    fn horizon(&self, slack: i64) -> Option<u64> {
        let free = WHOLE - self.sums.share;
        let reach = |time: u128| (time << 64).div_ceil(free);
        let time = (self.sums.ahead as i128 + i128::from(slack)).max(0) as u128;
        let unblocked = reach(time).max(u128::from(self.deadline_max()));
        let blocked = reach(time + u128::from(self.cost_max()));
        let horizon = u64::try_from(unblocked.min(blocked)).ok()?;
        (horizon <= HORIZON_MAX.as_nanos()).then_some(horizon)
    }

    /// The end of the busy period from a common start. Only called with
    /// utilisation 1, where a first violation lies within it or within the
    /// longest deadline. None where a bound is reached first.
    fn busy_period(&self, visits: &mut u64) -> Option<u64> {
        let mut end: u64 = self.each().map(|row| row.cost).sum();
        loop {
            *visits += self.visits_per_ledge();
            let ceil = |row: &Row| (row.period.divide(end - 1).0 + 1) * row.cost;
            let next: u64 = self.each().map(ceil).sum();
            if next == end {
                return Some(end);
            }
            if next > HORIZON_MAX.as_nanos() || *visits > ANALYSIS_VISITS_MAX {
                return None;
            }
            end = next;
        }
    }

    /// Compares the utilisation with the whole disk, exactly.
    fn fullness(&self) -> Fullness {
        if self.sums.share < WHOLE {
            Fullness::Below
        } else if self.sums.share_floor > WHOLE {
            Fullness::Above
        } else {
            // Within rounding of 1: over a common denominator, where one fits.
            self.fraction().unwrap_or(Fullness::Unknown)
        }
    }

    fn fraction(&self) -> Option<Fullness> {
        let mut common = 1u128;
        for row in self.each() {
            let period = u128::from(row.period.get());
            common = common.checked_mul(period / greatest_common_divisor(common, period))?;
        }
        let mut work = 0u128;
        for row in self.each() {
            let times = common / u128::from(row.period.get());
            work = work.checked_add(times.checked_mul(u128::from(row.cost))?)?;
        }
        Some(match work.cmp(&common) {
            core::cmp::Ordering::Equal => Fullness::Whole,
            core::cmp::Ordering::Greater => Fullness::Above,
            // So near that the horizon is out of reach.
            core::cmp::Ordering::Less => Fullness::Unknown,
        })
    }
}

struct Best {
    difference: i64,
    at: u64,
}

impl Best {
    fn improve(&mut self, difference: i64, at: u64) {
        if difference < self.difference {
            *self = Self { difference, at };
        }
    }
}

/// The utilisation against the whole disk.
enum Fullness {
    Below,
    Whole,
    Above,
    /// Too near to tell in 128 bits.
    Unknown,
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
