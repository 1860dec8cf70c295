//! Tasks whose requests may be late now and then, beside those that are kept always.
//!
//! To those that are kept always such a request is best effort: it begins only where the exact
//! online slack covers the bound of its command, so that nobody else is late for it, whatever it
//! takes and however often it comes (`slack.rs`). So it is in no row, and all that is asked for
//! is that its command is no longer than the reserve: then there is slack for it whenever nothing
//! else that was released waits. To best effort it is a contract: none begins while it waits, and
//! while there are such tasks none goes before a released request of the others either. So the
//! disk is never without work that counts from when the last of both kinds was done until the
//! request is, and what is in its way at first is what the disk had then: `depth` commands, each
//! no longer than the reserve or the longest request of the others. That is what
//! [`StatisticalSet::beside`] takes.
//!
//! The odds of all such tasks are looked at together, at the strictest of what they ask for; and
//! again whenever one that is kept always joins or changes.
//!
//! Invariant: `at_odds` has exactly the tasks with odds, as they were given.

use super::TaskSet;
use crate::chance::Chance;
use crate::statistical::{StatisticalSet, StatisticalTask};
use crate::task::{Odds, Refusal, Task, Utilisation};
use units::Duration;

impl TaskSet {
    /// Whether requests of some tasks may be late now and then.
    pub fn has_odds(&self) -> bool {
        !self.at_odds.is_empty()
    }

    /// Notes a task; true where it has odds, and is in no row.
    pub(super) fn list_odds(&mut self, task: &Task) -> bool {
        if task.odds.is_some() {
            assert!(task.is_valid(), "not a task: {task:?}");
            self.at_odds.push(*task);
        }
        task.odds.is_some()
    }

    /// Forgets it; true where it was in no row.
    pub(super) fn unlist_odds(&mut self, task: &Task) -> bool {
        if let Some(at) = self.at_odds.iter().position(|one| one == task) {
            self.at_odds.swap_remove(at);
        }
        task.odds.is_some()
    }

    /// The share of the disk that tasks with odds take on average.
    pub(super) fn share_at_odds(&self) -> u128 {
        let share = |task: &Task| {
            let mean = task.odds.map_or(Duration::ZERO, |odds| odds.mean);
            let mean = u128::from(mean.as_nanos() + self.gap);
            (mean << 64).div_ceil(u128::from(task.period.as_nanos()))
        };
        self.at_odds.iter().map(share).sum()
    }

    /// Whether all odds hold with `joining` in the set as well, whichever kind it is.
    pub(super) fn keep_odds(&self, joining: Option<&Task>) -> Result<(), Refusal> {
        let with_odds = joining.filter(|task| task.odds.is_some());
        let all = || self.at_odds.iter().chain(with_odds);
        let of = |task: &Task| task.odds.expect("all of these have odds");
        let Some(miss) = all().map(|task| of(task).miss).min() else { return Ok(()) };
        let refusal =
            Refusal { utilisation_ppm: self.utilisation().ppm(), deadline: None, undecided: false };
        let longest = all().map(|task| task.cost.as_nanos() + self.gap).max();
        if !self.makes_way() || longest > Some(self.leaves()) {
            return Err(refusal);
        }
        let always = joining.filter(|task| task.odds.is_none()).map(|task| self.charged(task));
        // Of each command of the set what is beyond the reserve is known.
        let command = always.map_or(0, |task| task.command.as_nanos());
        let in_the_way = command.max(self.leaves() + self.blocking_steps.blocking(0));
        let in_the_way = in_the_way.saturating_mul(u64::from(self.depth));
        let rows = self.rows.list().iter().map(|row| (row.period.get(), row.cost));
        let rows =
            rows.map(|(period, cost)| (Duration::from_nanos(period), Duration::from_nanos(cost)));
        let rows = rows.chain(always.map(|task| (task.period, task.cost)));
        let mut set = StatisticalSet::new(Duration::from_nanos(in_the_way), miss).beside(rows);
        all().for_each(|task| set.insert(self.statistical(task, &of(task))));
        let analysis = set.analysis().map_err(|refused| Refusal {
            utilisation_ppm: refused.utilisation_ppm,
            deadline: refused.deadline,
            undecided: refused.undecided,
        })?;
        debug_assert!(analysis.miss <= miss && analysis.utilisation < Utilisation::WHOLE);
        Ok(())
    }

    /// A task as the statistical analysis takes it, with what the host takes after each command.
    /// What is in its way stands in the reserve.
    fn statistical(&self, task: &Task, odds: &Odds) -> StatisticalTask {
        let gap = self.gap();
        let most = odds.most.saturating_add(gap).min(task.deadline);
        let plain = Task::new(task.period, task.deadline, most);
        StatisticalTask {
            task: plain.in_commands(Duration::from_nanos(1)),
            mean: odds.mean.saturating_add(gap).min(most),
            deviation: odds.deviation,
        }
    }

    /// How often each of the requests with odds may be late, as all of them are promised.
    pub fn odds(&self) -> Option<Chance> {
        self.at_odds.iter().filter_map(|task| task.odds).map(|odds| odds.miss).min()
    }
}
