//! Who may join: exact admission and the static slack of a set of tasks.
//!
//! Requests are served earliest deadline first and never interrupted. From a
//! common start, `demand(L)` is the work that must be done by `L`, and
//! `blocking(L)` the longest request that may be in the way because it began
//! just before and is due later; of a request in several commands, its longest
//! command, for after each command the earliest deadline goes on. The set can be
//! kept iff the utilisation is at most 1 and `L - demand(L) - blocking(L) >= 0` at
//! every deadline `L` (Jeffay, Stanat and Martel 1991; George, Rivierre and Spuri
//! 1996 for deadlines within the period). The least of these differences is the
//! static slack. The Clockwise thesis (section 6.2) looks for it up to the longest
//! period only, and so finds too much.
//!
//! `search` finds the least difference exactly, at the price of several looks at
//! the whole set. `cells` is the summary of a large set, from which most decisions
//! about one task more follow at once, and with the same answer; the exact slack is
//! then found when somebody asks for it. A small set is searched at once.
//!
//! Invariants: `rows` and `blocking_steps` sum up the tasks; `cells`, where there is one, sums
//! up the rows; no difference is below `least`; `found`, where it is known, is the
//! analysis of exactly these rows.

mod cells;
mod odds;
mod returns;
mod rows;
mod search;
mod sweeps;

use crate::admission::{Admission, Cycle, CycleRule, SweepRule};
use crate::limits::{CELLS_FROM, PERIOD_MAX, TASKS_MAX};
use crate::task::{Analysis, Refusal, Task, TaskId, Utilisation, WHOLE};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cells::{Answer, Cells, Track, Weakest};
use core::cell::Cell;
pub(crate) use returns::Returns;
use rows::{BlockingSteps, Row, Rows, Sums};
use search::{Search, Verdict};
use units::Duration;

/// The tasks of one disk and their analysis; pure.
#[derive(Clone, Debug)]
pub struct TaskSet {
    reserve: u64,
    /// Best effort is served in the exact online slack: the reserve stands for as much of the
    /// blocking.
    has_online_slack: bool,
    /// What the host takes after each command.
    gap: u64,
    /// What requests may make others lose by going between their commands.
    returns: Returns,
    /// What else has to hold of the set: for a policy that works in cycles.
    cycles: Option<CycleRule>,
    /// The same for one that works in sweeps. Tasks that are served so are in no row.
    sweeps: Option<SweepRule>,
    /// Tasks that have to do with sweeps; see `sweeps.rs`.
    listed: Vec<Task>,
    /// The longest request of a sweep: what is left besides is no less.
    swept_longest: Option<u64>,
    /// Tasks whose requests may be late now and then; they are in no row. See `odds.rs`.
    at_odds: Vec<Task>,
    /// Commands that the disk may hold at once.
    depth: u32,
    vacant: Vec<u32>,
    /// Shared between copies until one of them changes, as the next two are: searches copy schedules often.
    slots: Arc<Vec<Slot>>,
    rows: Arc<Rows>,
    blocking_steps: Arc<BlockingSteps>,
    sums: Sums,
    cells: Option<Box<Cells>>,
    /// From so many classes on there are cells.
    cells_from: usize,
    /// No difference is less.
    least: i64,
    /// The exact analysis, once somebody has asked for it.
    found: Cell<Option<Verdict>>,
    /// Where the search begins: the last critical interval is likely to be critical
    /// again.
    hint: Cell<Option<u64>>,
}

#[derive(Clone, Debug)]
struct Slot {
    generation: u32,
    task: Option<Task>,
}

/// Why a task may join: what is known of the set with it.
struct Proof {
    least: i64,
    /// About where the least difference is, where that is not found.
    at: Option<u64>,
    found: Option<Verdict>,
    learned: Vec<Track>,
}

/// Nothing is in the way.
const NO_DIFFERENCE: i64 = i64::MAX;
/// Nothing is known.
const ANY_DIFFERENCE: i64 = i64::MIN;

impl TaskSet {
    /// An empty set. Admission leaves a static slack of `reserve`.
    ///
    /// # Panics
    /// Where `reserve` is above [`PERIOD_MAX`].
    pub fn new(reserve: Duration) -> Self {
        assert!(reserve <= PERIOD_MAX, "a reserve longer than any period admits nothing");
        Self {
            reserve: reserve.as_nanos(),
            has_online_slack: false,
            gap: 0,
            returns: Returns::default(),
            cycles: None,
            sweeps: None,
            listed: Vec::new(),
            swept_longest: None,
            at_odds: Vec::new(),
            depth: 1,
            slots: Arc::default(),
            vacant: Vec::new(),
            rows: Arc::default(),
            blocking_steps: Arc::default(),
            sums: Sums::default(),
            cells: None,
            cells_from: CELLS_FROM,
            least: NO_DIFFERENCE,
            found: Cell::new(Some(Verdict::Empty)),
            hint: Cell::new(None),
        }
    }

    /// An empty set of tasks after each of whose commands up to `gap` goes by until the next
    /// one begins. Every command is charged for that, the reserve's one included (where there
    /// is a reserve); tasks are stated without it.
    ///
    /// # Panics
    /// Where `gap` is above [`PERIOD_MAX`], or the set is not empty.
    #[must_use]
    pub fn with_gap(mut self, gap: Duration) -> Self {
        assert!(gap <= PERIOD_MAX, "a gap longer than any period admits nothing");
        assert!(self.is_empty(), "only an empty set can be told");
        self.gap = gap.as_nanos();
        self
    }

    /// An empty set for a policy that serves best effort in the exact online slack
    /// (`slack.rs`). It needs `demand(L) + blocking(L) <= L`, so that contracts
    /// are kept, and `demand(L) + reserve <= L`, so that a command as long as the reserve can
    /// go whenever nothing released waits: what is given away is charged when it is given,
    /// so that no request is behind both. Of the blocking, then, only what is longer than the
    /// reserve is charged beside the reserve. Any other policy needs the sum of both.
    ///
    /// # Panics
    /// Where the set is not empty.
    #[must_use]
    pub fn with_online_slack(mut self, has_it: bool) -> Self {
        assert!(self.is_empty(), "only an empty set can be told");
        self.has_online_slack = has_it;
        self
    }

    /// An empty set of tasks for a policy that keeps those which are admitted so, on a disk
    /// that holds `depth` commands at once. Where it keeps nothing, the exact analysis is
    /// made all the same.
    ///
    /// # Panics
    /// Where the set is not empty.
    #[must_use]
    pub fn with_admission(mut self, admission: Admission, depth: u32) -> Self {
        assert!(self.is_empty(), "only an empty set can be told");
        (self.cycles, self.sweeps) = match admission {
            Admission::Cycles(rule) => (Some(rule), None),
            Admission::Sweeps(rule) => (None, Some(rule)),
            Admission::Exact | Admission::Nothing => (None, None),
        };
        self.depth = depth;
        self
    }

    /// The same tasks, by the same names, admitted otherwise. Where `admits`, only if they
    /// can be kept so.
    ///
    /// # Errors
    /// As [`TaskSet::add_all`].
    pub(crate) fn under(
        &self,
        admission: Admission,
        has_online_slack: bool,
        admits: bool,
    ) -> Result<Self, Refusal> {
        let set = Self::new(self.reserve()).with_gap(self.gap());
        let mut set = set.with_admission(admission, self.depth).with_online_slack(has_online_slack);
        set.returns = self.returns;
        self.filled_in(set, admits)
    }

    /// The same tasks, by the same names, under a policy that has online slack or has none;
    /// not admitted again.
    pub(crate) fn with_slack_of(&self, has_online_slack: bool) -> Self {
        let mut set = Self::new(self.reserve()).with_gap(self.gap());
        (set.cycles, set.sweeps) = (self.cycles, self.sweeps);
        (set.depth, set.returns) = (self.depth, self.returns);
        let set = self.filled_in(set.with_online_slack(has_online_slack), false);
        set.expect("nothing is admitted")
    }

    /// Whether it was made so ([`TaskSet::with_online_slack`]).
    pub(crate) fn has_online_slack(&self) -> bool {
        self.has_online_slack
    }

    /// What a command is in the way for beside the reserve.
    fn in_the_way(&self, command: u64) -> u64 {
        if self.has_online_slack { command.saturating_sub(self.leaves()) } else { command }
    }

    /// The same tasks, by the same names, with another gap. Where `admits`, only if they can
    /// be kept.
    ///
    /// # Errors
    /// As [`TaskSet::add_all`].
    ///
    /// # Panics
    /// As [`TaskSet::with_gap`].
    pub(crate) fn in_gap(&self, gap: Duration, admits: bool) -> Result<Self, Refusal> {
        let mut set = Self::new(self.reserve()).with_gap(gap);
        (set.cycles, set.sweeps) = (self.cycles, self.sweeps);
        (set.depth, set.returns) = (self.depth, self.returns);
        set.has_online_slack = self.has_online_slack;
        self.filled_in(set, admits)
    }

    /// What each request is charged for that may go between the commands of others.
    pub(crate) fn returns(&self) -> Returns {
        if self.makes_way() { self.returns } else { Returns::default() }
    }

    /// Some requests are served in several commands, between which others may go.
    pub(crate) fn is_in_chunks(&self) -> bool {
        self.iter().any(|(_, task)| task.commands > 1)
    }

    /// Others are charged for more with this task in the set.
    pub(crate) fn wants_returns(&self, task: &Task) -> bool {
        self.makes_way() && self.returns.with(task) != self.returns
    }

    /// The same set with these returns charged; not admitted again. None where they are.
    fn with_returns(&self, returns: Returns) -> Option<Self> {
        if returns == self.returns {
            return None;
        }
        let mut set = self.emptied();
        set.returns = returns;
        Some(self.filled_in(set, false).expect("nothing is admitted"))
    }

    /// Ready to take this task in: the others are charged for coming between its commands.
    fn with_returns_of<'a>(&self, tasks: impl IntoIterator<Item = &'a Task>) -> Option<Self> {
        self.with_returns(tasks.into_iter().fold(self.returns, Returns::with))
    }

    /// An empty set for which all else is the same.
    fn emptied(&self) -> Self {
        let mut set = Self::new(self.reserve()).with_gap(self.gap());
        (set.cycles, set.sweeps) = (self.cycles, self.sweeps);
        (set.depth, set.returns) = (self.depth, self.returns);
        set.has_online_slack = self.has_online_slack;
        set
    }

    /// Requests that come in several commands make way: best effort goes by the exact slack, and
    /// contracts by their deadlines alone.
    pub(crate) fn makes_way(&self) -> bool {
        self.has_online_slack && self.cycles.is_none() && self.sweeps.is_none()
    }

    /// The same set with these tasks in the place of those of the same names, and with another
    /// reserve. Where `admits`, only if they can be kept.
    ///
    /// # Errors
    /// As [`TaskSet::add_all`].
    pub(crate) fn replaced(
        &self,
        tasks: &[(TaskId, Task)],
        reserve: Duration,
        admits: bool,
    ) -> Result<Self, Refusal> {
        let mut named = self.clone();
        for (id, task) in tasks {
            assert!(self.get(*id).is_some(), "a task of this set");
            Arc::make_mut(&mut named.slots)[id.index as usize].task = Some(*task);
        }
        let mut set = self.emptied();
        set.reserve = reserve.as_nanos();
        set.returns = named.iter().fold(Returns::default(), |all, (_, task)| all.with(&task));
        named.filled_in(set, admits)
    }

    /// These tasks, by the same names, in an empty set.
    fn filled_in(&self, mut set: Self, admits: bool) -> Result<Self, Refusal> {
        set.cells_from = self.cells_from;
        self.iter().for_each(|(_, task)| set.insert(&task));
        if admits && !self.is_empty() {
            let proof = set.decide_all()?;
            set.settle(proof);
        } else {
            set.look();
        }
        (set.slots, set.vacant) = (self.slots.clone(), self.vacant.clone());
        Ok(set)
    }

    /// The same set with a summary from so many classes on, for the tests: in a world
    /// so small that the definition can be computed, there would be none.
    #[doc(hidden)]
    #[must_use]
    pub fn with_cells_from(mut self, classes: usize) -> Self {
        assert!(self.is_empty() && classes > 0, "only an empty set can be told");
        self.cells_from = classes;
        self
    }

    /// A set of all these tasks, if they can be kept together; one at a time with
    /// [`TaskSet::add`] the answer is the same.
    ///
    /// # Errors
    /// As [`TaskSet::add_all`].
    ///
    /// # Panics
    /// As [`TaskSet::new`] and [`TaskSet::add`].
    pub fn of(reserve: Duration, tasks: &[Task]) -> Result<Self, Refusal> {
        let mut set = Self::new(reserve);
        set.add_all(tasks)?;
        Ok(set)
    }

    /// What the analysis would say with `task` in the set; changes nothing. Finds the
    /// exact slack; where only the decision matters, [`TaskSet::admits`] is quicker.
    ///
    /// # Errors
    /// [`Refusal`] where the set could not be kept, or would keep less slack than
    /// the reserve.
    ///
    /// # Panics
    /// Where the task is not valid ([`Task::is_valid`]).
    pub fn check(&self, task: &Task) -> Result<Analysis, Refusal> {
        if let Some(ready) = self.with_returns_of([task]) {
            return ready.check(task);
        }
        if self.sweeps_with(Some(task)) {
            let set = self.joined_by(task);
            let proof = set.decide_all()?;
            let search = set.search_with(None);
            let verdict = proof.found.unwrap_or_else(|| search.run(proof.at, self.leaves()));
            return Ok(analysis(&search, verdict, proof.least));
        }
        if task.odds.is_some() {
            let proof = self.decide_with(task)?;
            return Ok(analysis(&self.search_with(None), self.verdict(), proof.least));
        }
        let search = self.search_with(Some(task));
        let proof = self.decide(&search)?;
        self.keep_odds(Some(task))?;
        let hint = proof.at.or(self.hint.get());
        let verdict = proof.found.unwrap_or_else(|| search.run(hint, self.leaves()));
        Ok(analysis(&search, verdict, proof.least))
    }

    /// Whether `task` could join; changes nothing.
    ///
    /// # Errors
    /// As [`TaskSet::check`].
    ///
    /// # Panics
    /// As [`TaskSet::check`].
    pub fn admits(&self, task: &Task) -> Result<(), Refusal> {
        if let Some(ready) = self.with_returns_of([task]) {
            return ready.admits(task);
        }
        self.decide_with(task).map(|_| ())
    }

    /// The analysis of the set as it is; None for no tasks, and for one that cannot be
    /// kept or could not be decided (only with [`TaskSet::add_unchecked`]).
    pub fn analysis(&self) -> Option<Analysis> {
        let verdict = self.verdict();
        let known = match verdict {
            Verdict::Least { difference, .. } => difference >= 0,
            Verdict::Undecided => self.least >= 0,
            Verdict::Empty | Verdict::Overloaded => false,
        };
        known.then(|| analysis(&self.search_with(None), verdict, self.least))
    }

    /// Takes `task` into the set if it can be kept together with the others.
    ///
    /// # Errors
    /// As [`TaskSet::check`]; the set is unchanged. A disk has at most
    /// [`TASKS_MAX`] tasks; one more is refused as undecided.
    ///
    /// # Panics
    /// As [`TaskSet::check`].
    pub fn add(&mut self, task: Task) -> Result<TaskId, Refusal> {
        if let Some(mut ready) = self.with_returns_of([&task]) {
            let id = ready.add(task)?;
            *self = ready;
            return Ok(id);
        }
        let proof = self.decide_with(&task)?;
        if self.len() >= TASKS_MAX {
            return Err(self.too_many());
        }
        self.insert(&task);
        self.settle(proof);
        Ok(self.occupy(task))
    }

    /// Takes all of `tasks` or none, with one look at the whole.
    ///
    /// # Errors
    /// As [`TaskSet::add`], of the set with all of them.
    ///
    /// # Panics
    /// As [`TaskSet::check`].
    pub fn add_all(&mut self, tasks: &[Task]) -> Result<Vec<TaskId>, Refusal> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        if self.len() + tasks.len() > TASKS_MAX {
            return Err(self.too_many());
        }
        if let Some(mut ready) = self.with_returns_of(tasks) {
            let ids = ready.add_all(tasks)?;
            *self = ready;
            return Ok(ids);
        }
        let always = tasks.iter().filter(|task| task.odds.is_none());
        let shares = always.map(|task| Sums::of(&Row::of(&self.charged(task))));
        let sums = shares.fold(self.sums, Sums::plus);
        if sums.share_floor > WHOLE {
            // They could not be added up, if there are enough of them.
            let utilisation_ppm = Utilisation(sums.share).ppm();
            return Err(Refusal { utilisation_ppm, deadline: None, undecided: false });
        }
        let before = self.clone();
        tasks.iter().for_each(|task| self.insert(task));
        let decided = self.decide_all();
        match decided {
            Ok(proof) => {
                self.settle(proof);
                Ok(tasks.iter().map(|&task| self.occupy(task)).collect())
            }
            Err(refusal) => {
                *self = before;
                Err(refusal)
            }
        }
    }

    /// Puts `task` in the place of the one of this name, which keeps its name.
    ///
    /// # Errors
    /// As [`TaskSet::check`], of the set with the one in the place of the other; the
    /// set is unchanged.
    ///
    /// # Panics
    /// As [`TaskSet::check`], and where there is no such task.
    pub fn change(&mut self, id: TaskId, task: Task) -> Result<(), Refusal> {
        if let Some(mut ready) = self.with_returns_of([&task]) {
            ready.change(id, task)?;
            *self = ready;
            return Ok(());
        }
        let old = self.get(id).expect("a task of this set");
        let known = (self.cells.clone(), self.least, self.found.get());
        self.withdraw(&old);
        let decided = self.decide_with(&task);
        match decided {
            Ok(proof) => {
                self.insert(&task);
                self.settle(proof);
                Arc::make_mut(&mut self.slots)[id.index as usize].task = Some(task);
                Ok(())
            }
            Err(refusal) => {
                self.insert(&old);
                (self.cells, self.least) = (known.0, known.1);
                self.found.set(known.2);
                Err(refusal)
            }
        }
    }

    /// Takes `task` into the set whatever the analysis says.
    ///
    /// # Panics
    /// Where the task is not valid, or for more than [`TASKS_MAX`] tasks.
    pub fn add_unchecked(&mut self, task: Task) -> TaskId {
        assert!(self.len() < TASKS_MAX, "more than {TASKS_MAX} tasks on one disk");
        if let Some(ready) = self.with_returns_of([&task]) {
            *self = ready;
        }
        self.insert(&task);
        self.look();
        self.occupy(task)
    }

    /// Takes the task out of the set.
    ///
    /// # Panics
    /// Where there is no such task.
    pub fn remove(&mut self, id: TaskId) -> Task {
        let task = self.get(id).expect("a task of this set");
        let slot = &mut Arc::make_mut(&mut self.slots)[id.index as usize];
        slot.task = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(id.index);
        self.withdraw(&task);
        let returns = || self.iter().fold(Returns::default(), |all, (_, task)| all.with(&task));
        match (!task.resume.is_zero()).then(returns).and_then(|it| self.with_returns(it)) {
            Some(without) => *self = without,
            None => self.look(),
        }
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

    /// The longest best-effort command that admission leaves time for.
    pub fn reserve(&self) -> Duration {
        Duration::from_nanos(self.reserve)
    }

    /// The slack that admission leaves: the reserve, and what the host takes after it; no less than
    /// the longest request of a sweep.
    pub fn left(&self) -> Duration {
        Duration::from_nanos(self.leaves())
    }

    fn leaves(&self) -> u64 {
        let reserve = if self.reserve == 0 { 0 } else { self.reserve + self.gap };
        reserve.max(self.swept_longest.unwrap_or(0))
    }

    /// What goes by after each command.
    pub fn gap(&self) -> Duration {
        Duration::from_nanos(self.gap)
    }

    /// The task with what the host takes after each of its commands, and with what it makes
    /// others lose. A request of `cost` in commands of up to `command` has at least as many as
    /// these fit into it. Without online slack no request makes way.
    ///
    /// # Panics
    /// Where the task is not valid ([`Task::is_valid`]).
    pub(crate) fn charged(&self, task: &Task) -> Task {
        assert!(task.is_valid(), "not a task: {task:?}");
        let [cost, command] = [task.cost, task.command].map(Duration::as_nanos);
        let pieces = cost.div_ceil(command);
        let (beginnings, commands) = match (task.commands, task.parts) {
            (1, parts) => (pieces, pieces.saturating_mul(parts.into())),
            (more, _) => (1, u64::from(more)),
        };
        let is_whole = task.parts > 1 || task.commands > 1 && !self.makes_way();
        let (command, after) = if is_whole { (cost, commands) } else { (command, 1) };
        let returns = self.returns().of(task.deadline).as_nanos().saturating_mul(beginnings);
        let gaps = self.gap.saturating_mul(commands).saturating_add(returns);
        // More than any deadline, and small enough to be added up.
        let most = 2 * PERIOD_MAX.as_nanos();
        let charged = |time: u64, gaps| Duration::from_nanos(time.saturating_add(gaps).min(most));
        Task {
            cost: charged(cost, gaps),
            command: charged(command, self.gap.saturating_mul(after)),
            ..*task
        }
    }

    /// The static slack, exactly; [`Duration::MAX`] for no tasks. Zero for a set that
    /// cannot be kept (only with [`TaskSet::add_unchecked`]). Where that is not known
    /// in bounded work, [`TaskSet::slack_least`].
    ///
    /// Looks at the whole set once after each change of it.
    pub fn slack(&self) -> Duration {
        match self.verdict() {
            Verdict::Empty => Duration::MAX,
            Verdict::Least { difference, .. } => Duration::from_nanos(difference.max(0) as u64),
            Verdict::Overloaded => Duration::ZERO,
            Verdict::Undecided => Duration::from_nanos(self.least.max(0) as u64),
        }
    }

    /// Takes over what was found out about a copy of this set, where neither has changed
    /// since it was copied: so that whoever has to look for long can do so elsewhere.
    pub fn learn_from(&self, copy: &Self) {
        let same = Arc::ptr_eq(&self.rows, &copy.rows)
            && Arc::ptr_eq(&self.blocking_steps, &copy.blocking_steps);
        if let (true, Some(found)) = (same, copy.found.get()) {
            self.know(Some(found));
        }
    }

    /// True where it is known that in the worst case not every deadline of the set can be
    /// kept (only with [`TaskSet::add_unchecked`]).
    pub fn cannot_be_kept(&self) -> bool {
        match self.verdict() {
            Verdict::Overloaded => true,
            Verdict::Least { difference, .. } => difference < 0,
            Verdict::Empty | Verdict::Undecided => false,
        }
    }

    /// A lower bound of the static slack that is known without looking; exact for a
    /// small set, and after [`TaskSet::slack`].
    pub fn slack_least(&self) -> Duration {
        match self.found.get() {
            Some(_) => self.slack(),
            None => Duration::from_nanos(self.least.max(0) as u64),
        }
    }

    /// The shortest deadline of a task; `None` for no tasks.
    pub fn shortest_deadline(&self) -> Option<Duration> {
        self.rows.deadline_min().map(Duration::from_nanos)
    }

    /// The promised share of the disk.
    pub fn utilisation(&self) -> Utilisation {
        Utilisation(self.sums.share + self.share_of_sweeps() + self.share_at_odds())
    }

    /// The work that must be done by `interval` after a common start;
    /// [`Duration::MAX`] where that does not fit.
    pub fn demand(&self, interval: Duration) -> Duration {
        let mut work = 0u128;
        for row in self.rows.list() {
            if let Some(past) = interval.as_nanos().checked_sub(row.deadline) {
                work += u128::from(past / row.period.get() + 1) * u128::from(row.cost);
            }
        }
        Duration::from_nanos(u64::try_from(work).unwrap_or(u64::MAX))
    }

    /// The longest command of those that are due later than `interval` after their
    /// release; with online slack, what it has beyond the reserve.
    pub fn blocking(&self, interval: Duration) -> Duration {
        Duration::from_nanos(self.blocking_steps.blocking(interval.as_nanos()))
    }

    /// The cycle of a set that is admitted by cycles or by sweeps; `None` where it is not, where it has
    /// no tasks, and where they do not fit into one (only with [`TaskSet::add_unchecked`]).
    /// One look at each class.
    pub fn cycle(&self) -> Option<Cycle> {
        if self.sweeps.is_some() {
            return self.sweep_cycle().ok();
        }
        self.cycle_of(&self.search_with(None))?.ok()
    }

    /// The cycle of the set that is searched, if it has one; else the cycle and the time that
    /// is missing.
    fn cycle_of(&self, search: &Search<'_>) -> Option<Result<Cycle, (Duration, Duration)>> {
        let candidate = search.candidate;
        let deadlines = self.rows.deadline_min().into_iter();
        let deadline = deadlines.chain(candidate.map(|row| row.deadline)).min()?;
        let costs = self.rows.list().iter().chain(&candidate).map(|row| row.cost);
        let work = costs.fold(0, u64::saturating_add);
        let longest = self.blocking_steps.blocking(0).max(search.command).max(self.leaves());
        let in_the_way = longest.saturating_mul(u64::from(self.depth));
        let [deadline, work, in_the_way, least] =
            [deadline, work, in_the_way, self.leaves()].map(Duration::from_nanos);
        Some(self.cycles?.cycle(deadline, work, in_the_way, least))
    }

    /// Whether the set can be kept with `task` in it.
    /// The search of this set, and of one task more.
    fn search_with(&self, task: Option<&Task>) -> Search<'_> {
        let task = task.map(|task| self.charged(task));
        let candidate = task.as_ref().map(Row::of);
        let sums = candidate.map_or(self.sums, |row| self.sums.plus(Sums::of(&row)));
        let command = task.map_or(0, |task| self.in_the_way(task.command.as_nanos()));
        let (rows, blocking_steps) = (self.rows.list(), self.blocking_steps.steps());
        Search { rows, blocking_steps, candidate, command, sums }
    }

    fn decide_with(&self, task: &Task) -> Result<Proof, Refusal> {
        if self.sweeps_with(Some(task)) {
            return self.joined_by(task).decide_all();
        }
        if task.odds.is_some() {
            self.keep_odds(Some(task))?;
            let (least, found) = (self.least, self.found.get());
            return Ok(Proof { least, at: None, found, learned: Vec::new() });
        }
        let proof = self.decide(&self.search_with(Some(task)))?;
        self.keep_odds(Some(task))?;
        Ok(proof)
    }

    /// Whether the set that is searched leaves the reserve, and what that shows; where it is
    /// admitted by cycles, whether it fits into one, too.
    fn decide(&self, search: &Search<'_>) -> Result<Proof, Refusal> {
        let proof = self.decide_exactly(search)?;
        match self.cycle_of(search) {
            Some(Err(missing)) => {
                let utilisation_ppm = Utilisation(search.sums.share).ppm();
                Err(Refusal { utilisation_ppm, deadline: Some(missing), undecided: false })
            }
            _ => Ok(proof),
        }
    }

    fn decide_exactly(&self, search: &Search<'_>) -> Result<Proof, Refusal> {
        // Two ways to the same answer, each bounded: what one gives up on the other may
        // find. Whether the least difference is below the reserve is mostly easier to say
        // than where and what it is.
        let below_whole = search.sums.share < WHOLE;
        let decided = match &self.cells {
            Some(cells) if below_whole => self.decide_by(cells, search),
            _ => self.decide_alone(search),
        };
        let whole = || self.leaves() == 0 && search.is_whole_at_rates();
        match decided {
            Err(Refusal { undecided: true, .. }) if below_whole => match &self.cells {
                Some(_) => self.decide_alone(search),
                None => self.decide_by(&Cells::of(self.rows.list()), search),
            },
            Err(Refusal { undecided: true, .. }) if whole() => match &self.cells {
                Some(cells) => self.decide_by(cells, search),
                None => self.decide_by(&Cells::of(self.rows.list()), search),
            },
            decided => decided,
        }
    }

    fn decide_alone(&self, search: &Search<'_>) -> Result<Proof, Refusal> {
        self.judge(search, search.run(self.hint.get(), self.leaves()))
    }

    fn decide_by(&self, cells: &Cells, search: &Search<'_>) -> Result<Proof, Refusal> {
        match cells.decide(&self.rows, search, self.leaves()) {
            Answer::Fits { weakest, learned } => {
                let Weakest { least, at } = weakest;
                Ok(Proof { least, at: Some(at), found: None, learned })
            }
            Answer::Below(at) => Err(self.refusal(search, Some(at), false)),
            Answer::Undecided => Err(self.refusal(search, None, true)),
        }
    }

    fn judge(&self, search: &Search<'_>, verdict: Verdict) -> Result<Proof, Refusal> {
        match verdict {
            Verdict::Empty => unreachable!("a set with a candidate is not empty"),
            Verdict::Overloaded => Err(self.refusal(search, None, false)),
            Verdict::Undecided => Err(self.refusal(search, None, true)),
            Verdict::Least { difference, at, .. } if difference < self.leaves() as i64 => {
                Err(self.refusal(search, Some(at), false))
            }
            Verdict::Least { difference, .. } => {
                let learned = Vec::new();
                Ok(Proof { least: difference, at: None, found: Some(verdict), learned })
            }
        }
    }

    /// `below` is a deadline by which too much is asked for.
    fn refusal(&self, search: &Search<'_>, below: Option<u64>, undecided: bool) -> Refusal {
        let found = below.and_then(|at| search.earliest_below(self.leaves(), at));
        let deadline = found.map(|(interval, excess)| {
            (Duration::from_nanos(interval), Duration::from_nanos(excess))
        });
        Refusal { utilisation_ppm: Utilisation(search.sums.share).ppm(), deadline, undecided }
    }

    fn too_many(&self) -> Refusal {
        let utilisation_ppm = self.utilisation().ppm();
        Refusal::undecided(utilisation_ppm)
    }

    /// Takes over what was known of the set with the task that has joined.
    fn settle(&mut self, proof: Proof) {
        self.least = proof.least;
        if let Some(cells) = &mut self.cells {
            cells.learn(proof.learned);
        }
        self.know(proof.found);
        self.hint.set(proof.at.or(self.hint.get()));
    }

    fn know(&self, found: Option<Verdict>) {
        self.found.set(found);
        if let Some(Verdict::Least { at, .. }) = found {
            self.hint.set(Some(at));
        }
    }

    /// What is known of the set, now that it has changed without a decision.
    fn look(&mut self) {
        let search = self.search_with(None);
        self.least = match &self.cells {
            _ if self.is_empty_of_rows() => NO_DIFFERENCE,
            Some(cells) if self.sums.share < WHOLE => {
                let weakest = cells.least(&self.rows, &search);
                self.hint.set(Some(weakest.at));
                weakest.least
            }
            Some(_) => ANY_DIFFERENCE,
            None => {
                let verdict = search.run(self.hint.get(), 0);
                self.know(Some(verdict));
                match verdict {
                    Verdict::Least { difference, .. } => difference,
                    _ => ANY_DIFFERENCE,
                }
            }
        };
    }

    fn is_empty_of_rows(&self) -> bool {
        self.rows.list().is_empty()
    }

    /// The exact analysis of the set as it is.
    fn verdict(&self) -> Verdict {
        self.found.get().unwrap_or_else(|| {
            let verdict = self.search_with(None).run(self.hint.get(), 0);
            self.know(Some(verdict));
            verdict
        })
    }

    fn occupy(&mut self, task: Task) -> TaskId {
        let slots = Arc::make_mut(&mut self.slots);
        let index = self.vacant.pop().unwrap_or_else(|| {
            slots.push(Slot { generation: 0, task: None });
            slots.len() as u32 - 1
        });
        let slot = &mut slots[index as usize];
        slot.task = Some(task);
        TaskId { index, generation: slot.generation }
    }

    fn insert(&mut self, task: &Task) {
        if self.list_odds(task) {
            return;
        }
        let task = self.charged(task);
        if self.list(&task) {
            return;
        }
        let (one, command) = (Row::of(&task), self.in_the_way(task.command.as_nanos()));
        let (before, after) = Arc::make_mut(&mut self.rows).insert(one);
        self.sums = self.sums.plus(Sums::of(&after));
        self.sums = before.map_or(self.sums, |before| self.sums.minus(Sums::of(&before)));
        if let Some(cells) = &mut self.cells {
            cells.insert(&one, command, &self.blocking_steps, (before, after));
        } else if self.rows.list().len() >= self.cells_from {
            self.cells = Some(Box::new(Cells::of(self.rows.list())));
        }
        Arc::make_mut(&mut self.blocking_steps).insert(one.deadline, command);
        self.found.set(None);
    }

    fn withdraw(&mut self, task: &Task) {
        if self.unlist_odds(task) {
            return;
        }
        let task = self.charged(task);
        if self.unlist(&task) {
            return;
        }
        let one = Row::of(&task);
        let (before, after) = Arc::make_mut(&mut self.rows).withdraw(one);
        self.sums = self.sums.minus(Sums::of(&before));
        self.sums = after.map_or(self.sums, |after| self.sums.plus(Sums::of(&after)));
        if self.rows.list().len() < self.cells_from / 2 || self.is_empty_of_rows() {
            self.cells = None;
        } else if let Some(cells) = &mut self.cells {
            cells.withdraw(&one, (before, after));
        }
        let command = self.in_the_way(task.command.as_nanos());
        Arc::make_mut(&mut self.blocking_steps).withdraw(one.deadline, command);
        self.found.set(None);
    }
}

/// The analysis of a set that can be kept, of which `least` is known for certain.
fn analysis(search: &Search<'_>, verdict: Verdict, least: i64) -> Analysis {
    let (difference, at, visits, exact) = match verdict {
        Verdict::Least { difference, at, visits } => (difference, at, visits, true),
        _ => (least, 0, 0, false),
    };
    Analysis {
        utilisation: Utilisation(search.sums.share),
        slack: Duration::from_nanos(difference.max(0) as u64),
        critical: Duration::from_nanos(at),
        exact,
        visits,
    }
}
