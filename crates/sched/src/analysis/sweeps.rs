//! Sets under a policy that works in sweeps: what is served by deadlines is analysed as ever,
//! beside a reserve as long as the longest request of a sweep with the longest way to it; the others fit iff all that a
//! cycle may have to serve fits into it ([`SweepRule`] has the inequality).
//!
//! Invariants: under such a policy `listed` has every task, charged for gaps; elsewhere those
//! that ask for sweeps, with which nothing can be kept.

use super::{NO_DIFFERENCE, Proof, TaskSet};
use crate::admission::{Cycle, SweepRule};
use crate::task::{Refusal, Sweep, Task, Utilisation, WHOLE};
use alloc::vec::Vec;
use units::Duration;

impl TaskSet {
    /// Whether it, or the task, has to do with sweeps.
    pub(super) fn sweeps_with(&self, task: Option<&Task>) -> bool {
        let asks = task.is_some_and(|task| task.sweep.is_some());
        self.sweeps.is_some() || asks || !self.listed.is_empty()
    }

    /// How the policy works in sweeps, where it does.
    pub fn sweep_rule(&self) -> Option<SweepRule> {
        self.sweeps
    }

    /// True where some of its tasks are served in sweeps.
    pub fn has_sweeps(&self) -> bool {
        self.swept_longest.is_some()
    }

    fn swept(&self) -> impl Iterator<Item = (&Task, Sweep)> {
        self.listed.iter().filter_map(|task| Some((task, task.sweep?)))
    }

    /// Notes a task that has to do with sweeps; true where it is in no row.
    pub(super) fn list(&mut self, charged: &Task) -> bool {
        if self.sweeps_with(Some(charged)) {
            self.listed.push(*charged);
            self.look_for_longest();
        }
        charged.sweep.is_some()
    }

    /// Forgets it; true where it is in no row.
    pub(super) fn unlist(&mut self, charged: &Task) -> bool {
        if let Some(at) = self.listed.iter().position(|task| task == charged) {
            self.listed.swap_remove(at);
            self.look_for_longest();
        }
        charged.sweep.is_some()
    }

    /// The longest time that a request of a sweep is in the way of others: its own, and the way to
    /// it from wherever the arm was, which it is not charged for alone.
    fn look_for_longest(&mut self) {
        let longest = self.swept().map(|(task, _)| task.command).max();
        let back = self.swept().map(|(_, sweep)| sweep.back).max();
        let longest = longest.zip(back).map(|(longest, back)| longest.saturating_add(back));
        self.swept_longest = longest.map(Duration::as_nanos);
    }

    /// What is known with `task` in the set, which is not changed.
    pub(super) fn joined_by(&self, task: &Task) -> Self {
        let mut set = self.clone();
        set.insert(task);
        set
    }

    /// Whether all tasks can be kept.
    pub(super) fn decide_all(&self) -> Result<Proof, Refusal> {
        self.keep_odds(None)?;
        if !self.sweeps_with(None) {
            if self.is_empty_of_rows() {
                let (at, found, learned) = (None, None, Vec::new());
                return Ok(Proof { least: NO_DIFFERENCE, at, found, learned });
            }
            return self.decide(&self.search_with(None));
        }
        let refused = |deadline| {
            let utilisation_ppm = self.utilisation().ppm();
            Refusal { utilisation_ppm, deadline, undecided: false }
        };
        let early = self.swept().map(|(task, _)| task.deadline).min();
        match (self.sweeps, early) {
            (None, _) => return Err(refused(None)),
            (Some(rule), Some(early)) if early < rule.response() => {
                return Err(refused(Some((early, rule.response() - early))));
            }
            (Some(_), Some(_)) => {
                self.sweep_cycle().map_err(|missing| refused(Some(missing)))?;
            }
            (Some(_), None) => {}
        }
        if self.is_empty_of_rows() {
            let (at, found, learned) = (None, None, Vec::new());
            return Ok(Proof { least: NO_DIFFERENCE, at, found, learned });
        }
        self.decide_exactly(&self.search_with(None))
    }

    /// The cycle of the sweeps; else the cycle and the time that is missing in it.
    pub(super) fn sweep_cycle(&self) -> Result<Cycle, (Duration, Duration)> {
        let length = self.sweeps.map_or(Duration::ZERO, |rule| rule.cycle);
        let sweep = self.swept().map(|(_, sweep)| sweep).fold(Sweep::default(), Sweep::max);
        let others = self.listed.iter().filter(|task| task.sweep.is_none());
        let others = others.map(|task| {
            let served = length.saturating_add(task.deadline);
            let times = served.as_nanos().div_ceil(task.period.as_nanos());
            task.cost.saturating_add(task.cost.max(sweep.back)).saturating_mul(times)
        });
        let others = others.fold(Duration::ZERO, Duration::saturating_add);
        let work = others.saturating_add(self.sweep_work(length));
        let longest = self.listed.iter().map(|task| task.command).max().unwrap_or_default();
        let reserve = if self.reserve == 0 { 0 } else { self.reserve + self.gap };
        let longest = longest.max(Duration::from_nanos(reserve));
        let in_the_way = longest.saturating_mul(u64::from(self.depth));
        let register = match self.reserve {
            0 => Duration::ZERO,
            reserve => Duration::from_nanos(reserve + self.gap).saturating_add(sweep.back),
        };
        let fixed = work.saturating_add(in_the_way);
        let needed = fixed.saturating_add(register);
        if needed > length {
            return Err((length, needed - length));
        }
        let register = length - fixed;
        Ok(Cycle { length, work, in_the_way, register, others, sweep })
    }

    /// What the sweep of one cycle takes at the most.
    fn sweep_work(&self, length: Duration) -> Duration {
        let requests = self.swept().map(|(task, _)| {
            task.cost.saturating_mul(length.as_nanos().div_ceil(task.period.as_nanos()))
        });
        let once = self.swept().map(|(_, sweep)| sweep.once).max().unwrap_or_default();
        requests.fold(once, Duration::saturating_add)
    }

    /// The share of the disk that sweeps have.
    pub(super) fn share_of_sweeps(&self) -> u128 {
        let Some(rule) = self.sweeps else { return 0 };
        let work = u128::from(self.sweep_work(rule.cycle).as_nanos());
        (work * WHOLE).div_ceil(u128::from(rule.cycle.as_nanos()).max(1))
    }

    /// The share of the disk that is promised by deadlines, in units of 2^-64.
    pub(crate) fn share_by_deadlines(&self) -> Utilisation {
        Utilisation(self.sums.share)
    }
}
