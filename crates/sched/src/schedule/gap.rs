//! Another gap between commands, or other commands in which requests are served, while
//! contracts live.
//!
//! First the analysis takes all contracts with the new gap. Then what waits is charged for
//! it, the budgets of servers too, and the state has to bear that as it is: nobody's release
//! is put off, for nobody asked for a change.

use super::Schedule;
use super::core::Core;
use crate::queues::Waiting;
use crate::slack::Meter;
use crate::task::{Refusal, Task, TaskId};
use alloc::vec::Vec;
use units::{Duration, Instant};

impl Schedule {
    /// Counts on up to `gap` between two commands from now on
    /// ([`Options::gap`](crate::Options::gap)).
    ///
    /// # Errors
    /// [`Refusal`] where admission is on and the contracts cannot all be kept with that gap,
    /// or not from the present state, as long as so much waits (undecided); it can be tried
    /// again later. The schedule is unchanged, and what it promises holds for the gap that it
    /// had. A smaller gap is never refused.
    ///
    /// # Panics
    /// Where the gap is above [`PERIOD_MAX`](crate::limits::PERIOD_MAX).
    pub fn set_gap(&mut self, now: Instant, gap: Duration) -> Result<(), Refusal> {
        self.release(now);
        let admission = self.core.options.admission;
        let (old, tasks) = (self.core.options.gap, self.core.tasks.in_gap(gap, admission)?);
        let before = self.core.attempt();
        self.core.tasks = tasks;
        self.core.options.gap = gap;
        let ends_in_time = self.core.lengthen(gap.saturating_sub(old));
        self.core.charge_again(now);
        let mut moves = Vec::new();
        let must_fit = admission && gap > old;
        if must_fit && !(ends_in_time && self.core.bears_gap(now, &mut moves)) {
            let utilisation_ppm = self.core.tasks.utilisation().ppm();
            self.core.undo(before);
            return Err(Refusal::undecided(utilisation_ppm));
        }
        self.core.keep(before);
        self.tell_moves(&moves);
        self.policy.joined();
        self.tell_entered();
        Ok(())
    }

    /// These contracts become others of the same periods and deadlines, all at once: their
    /// requests are served in other commands from now on. Admission leaves `reserve`.
    ///
    /// # Errors
    /// As [`Schedule::set_gap`], of all contracts with these.
    ///
    /// # Panics
    /// Where there is no such task, or one is not valid.
    pub fn set_commands(
        &mut self,
        now: Instant,
        tasks: &[(TaskId, Task)],
        reserve: Duration,
    ) -> Result<(), Refusal> {
        self.release(now);
        let admission = self.core.options.admission;
        if admission && self.core.has_begun_longer(tasks) {
            let utilisation_ppm = self.core.tasks.utilisation().ppm();
            return Err(Refusal::undecided(utilisation_ppm));
        }
        let set = self.core.tasks.replaced(tasks, reserve, admission)?;
        let before = self.core.attempt();
        self.core.tasks = set;
        self.core.options.reserve = reserve;
        self.core.charge_again(now);
        let mut moves = Vec::new();
        if admission && !self.core.bears_gap(now, &mut moves) {
            let utilisation_ppm = self.core.tasks.utilisation().ppm();
            self.core.undo(before);
            return Err(Refusal::undecided(utilisation_ppm));
        }
        self.core.keep(before);
        self.tell_moves(&moves);
        self.policy.joined();
        self.tell_entered();
        Ok(())
    }
}

impl Core {
    /// The gaps within what the disk works on are longer by this from now on. Says whether all of
    /// that ends in time so.
    fn lengthen(&mut self, longer: Duration) -> bool {
        // The gap behind the last command makes nobody late.
        let last = self.options.gap.saturating_sub(longer);
        let ends = |core: &Self| core.busy_until.saturating_sub(last);
        let before = ends(self);
        for flight in &mut self.in_flight {
            let more = longer.saturating_mul(flight.gaps_within.into());
            flight.predicted = flight.predicted.saturating_add(more);
            self.busy_until = self.busy_until.saturating_add(more);
        }
        ends(self) == before || !self.is_late_at(ends(self))
    }

    /// A request of one of these tasks has begun, and what is left of it is counted in fewer
    /// commands than it would be served in.
    fn has_begun_longer(&self, tasks: &[(TaskId, Task)]) -> bool {
        let is_shorter = |id: TaskId| {
            let new = tasks.iter().find(|(other, _)| *other == id).map(|(_, task)| task.commands);
            new.zip(self.tasks.get(id)).is_some_and(|(new, old)| new > old.commands)
        };
        let is_of = |waiting: &Waiting| waiting.class.task().is_some_and(is_shorter);
        let waits = self.queues.by_arrival().into_iter().any(|one| one.begun && is_of(one));
        let mut begun = self.in_flight.iter().filter(|one| one.rest.commands > 0);
        waits || begun.any(|one| is_of(self.queues.at(one.slot)))
    }

    /// Nobody is late for it, as far as the state goes. Those that had to move are added to
    /// `moves` as they were.
    fn bears_gap(&mut self, now: Instant, moves: &mut Vec<Waiting>) -> bool {
        self.advance_carry_over(now, moves);
        self.meter = Meter::unknown();
        self.is_at_rest(now) || self.nobody_is_late(now)
    }
}
