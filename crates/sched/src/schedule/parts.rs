//! Requests that are served in several commands, between which those with nearer deadlines go.
//!
//! A request of which some commands are done waits again, at the times that it had, and costs
//! what is left. The one that was served last has the heads ([`Core::holder`]): whatever else
//! goes costs it a return, which is then added to what is left of it. For that return is paid:
//! by a request under contract, whose cost has one in it where it may go between the commands of
//! others (`analysis`); and out of the slack by what goes out of its turn ([`Core::lost_to`]).
//! Whatever is under contract and goes out of its turn is served whole, in slack for all of it;
//! so only what has the earliest deadline is ever interrupted, and by nothing but an earlier one.
//! A deadline that is brought forward pays for nothing, so that those who do that look at the
//! slack as if all that could be interrupted were.

use super::core::Core;
use crate::limits::BOUND_MAX;
use crate::queues::Waiting;
use crate::request::{Class, EndTime, First, Outcome, Predict, Rest, Times};
use crate::slack::Meter;
use crate::task::TaskId;
use alloc::vec::Vec;
use units::{Command, Duration, Instant, Lba};

impl Core {
    /// Nearer deadlines may go between the commands of this request.
    pub(super) fn makes_way(&self, request: &Waiting) -> bool {
        self.tasks.makes_way()
            && match request.class {
                Class::RealTime(_) => request.is_covered() && request.commands > 1,
                Class::BestEffort { ordered, .. } => !ordered,
                Class::Background => true,
                Class::Server { .. } => false,
            }
    }

    /// The first command of a request that is served in several, wherever the schedule lets
    /// others go between them.
    pub(super) fn first_of(&self, predict: &dyn Predict, request: &Waiting) -> Option<First> {
        let first = || predict.first_of(self.head, request.key, &request.command);
        if self.makes_way(request) { first().filter(|first| first.rest.commands > 0) } else { None }
    }

    /// What is given away for a request that goes out of its turn: all of one under contract,
    /// and of others the first command.
    pub(crate) fn bound_of(&self, predict: &dyn Predict, from: Lba, request: &Waiting) -> Duration {
        let first = if request.is_real_time() { None } else { self.first_of(predict, request) };
        let whole = || predict.bound_of(from, request.key, &request.command);
        first.map_or_else(whole, |first| first.bound)
    }

    /// What another one loses if this request goes next.
    pub(crate) fn lost_to(&self, key: u64) -> Duration {
        let holder = self.holder.filter(|&holder| holder != key);
        let holder = holder.and_then(|holder| self.queues.get(holder));
        holder.map_or(Duration::ZERO, |holder| holder.resume)
    }

    /// The request goes next: what has the heads loses them.
    pub(super) fn interrupt(&mut self, key: u64) {
        let Some(holder) = self.holder.take().filter(|&holder| holder != key) else { return };
        let Some(&Waiting { cost, resume, .. }) = self.queues.get(holder) else { return };
        self.queues.charge(holder, cost.saturating_add(resume));
        self.meter = Meter::unknown();
    }

    /// The disk is done with a command of a request, of which `rest` is left, beginning with
    /// `command`: that waits from here on, as it did before. Where its contract has ended
    /// meanwhile, it is best effort.
    pub(super) fn finish_part(
        &mut self,
        now: Instant,
        key: u64,
        (command, rest): (Command, Rest),
    ) -> Outcome {
        let (slot, outcome) = self.take_back_from_disk(EndTime::at(now), key);
        let request = *self.queues.at(slot);
        self.queues.vacate(slot);
        let totals = if request.is_real_time() {
            &mut self.counts.real_time
        } else {
            &mut self.counts.best_effort
        };
        totals.actual = totals.actual.saturating_add(outcome.actual);
        totals.predicted = totals.predicted.saturating_add(outcome.predicted);
        self.count_overrun(&outcome);
        let (commands, cost) = (rest.commands, self.cost_of(&rest));
        let overheads = cost.saturating_sub(rest.bound);
        let waiting = Waiting { command, begun: true, commands, cost, overheads, ..request };
        self.queues.insert(waiting, now);
        match request.class {
            Class::RealTime(id) if self.tasks.get(id).is_some() => self.holder = Some(key),
            Class::RealTime(_) => self.outlive(key),
            _ => {}
        }
        outcome
    }

    /// The contract of a request that waits with some of its commands done has ended: what is
    /// left of it is best effort.
    pub(super) fn outlive(&mut self, key: u64) {
        let Some(waiting) = self.queues.take(key) else { return };
        self.holder = self.holder.filter(|&holder| holder != key);
        self.carry_over.retain(|&other| other != key);
        let (times, cost) = (Times { deadline: Instant::MAX, ..waiting.times }, Duration::ZERO);
        let (class, promised) = (Class::best_effort(true), Instant::MAX);
        let waiting = Waiting { class, times, cost, promised, synchronous: true, ..waiting };
        let waiting = Waiting { over_cost: false, resume: Duration::ZERO, ..waiting };
        self.queues.insert(waiting, self.latest);
    }

    /// What waits and what may come costs what it does by the present set.
    pub(super) fn charge_again(&mut self, now: Instant) {
        self.meter = Meter::unknown();
        let contracts: Vec<_> = self.tasks.iter().collect();
        let all: Vec<u64> = self.queues.by_arrival().into_iter().map(|one| one.key).collect();
        for key in all {
            let waiting = *self.queues.get(key).expect("it waits");
            let Some(task) = waiting.class.task().and_then(|id| self.tasks.get(id)) else {
                continue;
            };
            if self.is_swept(&waiting) {
                continue; // time is kept for it in each cycle
            }
            let own = waiting.cost.saturating_sub(waiting.overheads);
            let is_carry_over = self.carry_over.contains(&waiting.key);
            let gaps = |commands: u32| self.options.gap.saturating_mul(commands.into());
            // A task that has changed since may have fewer.
            let more = || gaps(waiting.gaps.saturating_sub(task.gaps()));
            let with_gaps = || self.tasks.charged(&task).cost.saturating_sub(task.cost);
            let overheads = match waiting.class {
                _ if waiting.begun => gaps(waiting.commands),
                Class::RealTime(_) => with_gaps().saturating_add(more()),
                _ => self.overheads_in(&task),
            };
            let own = match waiting.class {
                Class::RealTime(_) if waiting.begun => own,
                Class::RealTime(_) if is_carry_over => own.max(task.cost),
                Class::RealTime(_) => task.cost,
                _ => own,
            };
            let cost = own.saturating_add(overheads).min(BOUND_MAX);
            if (cost, overheads) != (waiting.cost, waiting.overheads) {
                self.queues.charge_anew(key, cost, overheads);
            }
            let way = (task.commands, task.resume);
            if !waiting.begun && way != (waiting.commands, waiting.resume) {
                self.queues.set_way(key, task.commands, task.resume);
            }
        }
        for (id, task) in contracts {
            if self.servers.knows(id.index) {
                let renewal = self.servers.renewal(id.index, now, |next| next);
                self.exit(id);
                self.servers.renew(id.index, &self.charged_server(&task), renewal);
                self.line_up_all(id);
            } else {
                let place = self.places[id.index as usize] as usize;
                let kept = self.kept_for(&task);
                self.live[place].set_cost(kept.as_nanos());
            }
        }
    }

    /// Requests to a server that was made anew stand in its line.
    fn line_up_all(&mut self, id: TaskId) {
        let waits: Vec<u64> = self.queues.unentered(id).map(|one| one.key).collect();
        waits.into_iter().for_each(|key| self.push(key));
        self.servers.fill(id.index, self.latest, &mut self.queues, &mut self.entered);
    }
}
