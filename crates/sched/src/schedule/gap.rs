//! Another gap between commands, while contracts live.
//!
//! First the analysis takes all contracts with the new gap. Then what waits is charged for
//! it, the budgets of servers too, and the state has to bear that as it is: nobody's release
//! is put off, for nobody asked for a change.

use super::Schedule;
use super::core::Core;
use crate::queues::Waiting;
use crate::slack::Meter;
use crate::task::{Refusal, TaskId};
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
        let before = self.core.clone();
        self.core.tasks = tasks;
        self.core.options.gap = gap;
        self.core.charge_gaps(now, old);
        let mut moves = Vec::new();
        let must_fit = admission && gap > old;
        if must_fit && !self.core.bears_gap(now, &mut moves) {
            let utilisation_ppm = self.core.tasks.utilisation().ppm();
            self.core = before;
            return Err(Refusal { utilisation_ppm, deadline: None, undecided: true });
        }
        self.tell_moves(&moves);
        self.policy.joined();
        self.tell_entered();
        Ok(())
    }
}

impl Core {
    /// Everything that waits, and all that may come, costs what it does with the gap of now.
    fn charge_gaps(&mut self, now: Instant, old: Duration) {
        self.meter = Meter::unknown();
        let contracts: Vec<_> = self.tasks.iter().collect();
        let under_contract: Vec<_> = self.queues.by_arrival().into_iter().copied().collect();
        for waiting in under_contract {
            if waiting.class.task().is_some() && !self.is_swept(&waiting) {
                let cost = waiting.cost.saturating_sub(old);
                self.queues.charge(waiting.key, self.with_gap(cost));
            }
        }
        for (id, task) in contracts {
            let charged = self.tasks.charged(&task);
            if self.servers.knows(id.index) {
                let renewal = self.servers.renewal(id.index, now, |next| next);
                self.exit(id);
                self.servers.renew(id.index, &charged, renewal);
                self.line_up_all(id);
            } else {
                let place = self.places[id.index as usize] as usize;
                let kept = self.kept_for(&task);
                self.live[place].set_cost(kept.as_nanos());
            }
        }
    }

    /// Nobody is late for it, as far as the state goes. Those that had to move are added to
    /// `moves` as they were.
    fn bears_gap(&mut self, now: Instant, moves: &mut Vec<Waiting>) -> bool {
        self.advance_carry_over(now, moves);
        self.meter = Meter::unknown();
        self.is_at_rest(now) || self.nobody_is_late(now)
    }

    /// Requests to a server that was made anew stand in its line.
    fn line_up_all(&mut self, id: TaskId) {
        let waits: Vec<u64> = self.queues.unentered(id).map(|one| one.key).collect();
        waits.into_iter().for_each(|key| self.push(key));
        self.servers.fill(id.index, self.latest, &mut self.queues, &mut self.entered);
    }
}
