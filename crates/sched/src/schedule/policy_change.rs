//! Another policy, while contracts live.
//!
//! First the contracts are admitted by the analysis of the new policy; then what waits has
//! to bear the change as it is, for nobody's release is put off: nobody asked for it. Among
//! policies of the exact analysis it always does, since each of them leaves the exact slack
//! no less than nothing.

use super::Schedule;
use super::core::Core;
use crate::admission::{Admission, Cycle};
use crate::kind::PolicyKind;
use crate::slack::Meter;
use crate::task::Refusal;
use units::{Duration, Instant};

impl Schedule {
    /// Goes on under another policy, with the same requests, if its own analysis admits the
    /// contracts that there are; without admission, whatever it says. Under a policy that
    /// keeps nothing ([`Admission::Nothing`]) contracts stay admitted by the exact analysis,
    /// which promises nothing there: whoever calls sees to it that nobody counts on it.
    ///
    /// # Errors
    /// [`Refusal`] where admission is on and the contracts do not fit under the new policy,
    /// or not from the present state (undecided): then it can be tried again soon. The
    /// schedule is unchanged.
    pub fn change_policy(&mut self, now: Instant, policy: PolicyKind) -> Result<(), Refusal> {
        self.release(now);
        let admits = self.core.options.admission;
        let has_online_slack = admits && policy.start().has_online_slack();
        let tasks = self.core.tasks.under(policy.admission, has_online_slack, admits)?;
        let was_exact = self.core.options.by == Admission::Exact;
        let bears = match (policy.admission, tasks.cycle()) {
            (Admission::Cycles(_), Some(cycle)) => self.core.bears_cycle(now, &cycle),
            // Whoever is served in sweeps goes on with the old ones until he has left.
            (Admission::Sweeps(_), _) if tasks.has_sweeps() => false,
            (Admission::Exact | Admission::Sweeps(_), _) if !was_exact => {
                self.core.bears_deadlines(now)
            }
            _ => true,
        };
        if admits && !bears {
            let utilisation_ppm = tasks.utilisation().ppm();
            return Err(Refusal::undecided(utilisation_ppm));
        }
        self.core.tasks = tasks;
        if self.core.tasks.is_in_chunks() {
            self.core.charge_again(now);
        }
        self.core.options.by = policy.admission;
        self.core.meter = Meter::unknown();
        self.set_policy(policy);
        self.policy.joined();
        Ok(())
    }
}

impl Core {
    /// What was released is no more than one cycle serves, and waits for no longer than the
    /// first one bears, which begins once the disk is done with what it has. What costs more
    /// than its contract covers would come back to it, beyond what a cycle counts.
    fn bears_cycle(&self, now: Instant, cycle: &Cycle) -> bool {
        let done = now.saturating_add(cycle.in_the_way).saturating_add(cycle.length);
        let costs = self.queues.ready().map(|waiting| waiting.cost);
        let work = costs.fold(Duration::ZERO, Duration::saturating_add);
        !self.queues.has_over_cost()
            && work <= cycle.work
            && self.queues.ready_first().is_none_or(|first| first.times.deadline >= done)
    }

    /// Served by deadlines from here on, nobody is late.
    fn bears_deadlines(&mut self, now: Instant) -> bool {
        self.meter = Meter::unknown();
        self.is_at_rest(now) || self.nobody_is_late(now)
    }
}
