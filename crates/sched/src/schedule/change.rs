//! Renegotiation: a contract that lives becomes another one, and nobody is late.
//!
//! The analysis takes the new set, with the new contract in the place of the old one;
//! then the state has to fit it, which the analysis knows nothing of:
//!
//! * What the old contract has released keeps its times. Its work is due and known to the
//!   slack. But it may also be *in the way* of others for longer than any request of the
//!   new set may: as long as it waits it is a carry-over request. [`Core::advance_carry_over`] gives it an
//!   earlier deadline to be served by, so near that it can be in the way of nothing that
//!   the new set would not bear; it is still late only by the one that was promised.
//! * What it had not released is released by the new contract: the first no sooner than
//!   the old or the new period after the last release, whichever is shorter, and put off
//!   from there for as long as the exact slack is negative.

use super::Schedule;
use super::core::Core;
use crate::admission::Admission;
use crate::containers::Renewal;
use crate::limits::BOUND_MAX;
use crate::queues::Waiting;
use crate::request::{Class, Contract, Times};
use crate::slack::Meter;
use crate::task::{Refusal, Task, TaskId};
use alloc::vec::Vec;
use units::{Duration, Instant};

impl Schedule {
    /// Puts a contract in the place of a live one, which keeps its name. Requests that
    /// are released keep their times; those that came early, and all later ones, follow
    /// the new contract; of the early ones, those that cost more than it covers are best
    /// effort from here on. A stream can become a server, then its early requests stand in
    /// the line; and a server a stream, then what waited for budget is best effort.
    ///
    /// # Errors
    /// As [`Schedule::join`], also where admission is off. The schedule is unchanged.
    ///
    /// # Panics
    /// Where there is no such task, or the new one is not valid.
    pub fn change(
        &mut self,
        now: Instant,
        id: TaskId,
        contract: impl Into<Contract>,
    ) -> Result<(), Refusal> {
        self.change_charging(now, id, contract, &[])
    }

    /// The same of a server of which requests that wait, by their keys, have other costs from
    /// here on, since the disk takes longer, or less, for them. Those that wait for budget keep
    /// their places in the line. Those that have it keep their times, by the exact analysis; what a
    /// cycle under way has room for was counted with the old costs, so that by cycles and by sweeps
    /// they stay at these: at their turn they leave the budget to others, where they cost more.
    ///
    /// # Errors
    /// As [`Schedule::change`].
    ///
    /// # Panics
    /// As [`Schedule::change`]; where a cost is zero.
    pub fn change_charging(
        &mut self,
        now: Instant,
        id: TaskId,
        contract: impl Into<Contract>,
        costs: &[(u64, Duration)],
    ) -> Result<(), Refusal> {
        self.release(now);
        let contract = contract.into();
        let old = self.core.tasks.get(id).expect("a task that has joined");
        let before = self.core.attempt();
        self.core.charge_requests(id, costs);
        if self.core.carries_into_cycle(id, &contract) {
            self.core.undo(before);
            let utilisation_ppm = self.core.tasks.utilisation().ppm();
            return Err(Refusal::undecided(utilisation_ppm));
        }
        let in_sweeps = self.core.tasks.sweep_rule().is_some();
        let is_server = self.core.servers.knows(id.index);
        let is_same =
            old == contract.task() && is_server == matches!(contract, Contract::Server(_));
        if in_sweeps && is_same && costs.is_empty() {
            self.core.keep(before);
            return Ok(()); // nobody is held up for nothing
        }
        let returns = self.core.tasks.returns();
        if let Err(refusal) = self.core.tasks.change(id, contract.task()) {
            self.core.undo(before);
            return Err(refusal);
        }
        let mut moves = self.core.put_in_place(now, id, &old, contract);
        if returns != self.core.tasks.returns() {
            self.core.charge_again(now);
        }
        let is_more = asks_more(&old, &contract.task());
        if !self.core.begin_changed(now, id, &mut moves, is_more) {
            self.core.undo(before);
            let utilisation_ppm = self.core.tasks.utilisation().ppm();
            return Err(Refusal::undecided(utilisation_ppm));
        }
        // What waits by a contract that was eased may take as much as before in the next cycle.
        let is_swept = [&old, &contract.task()].iter().any(|task| task.sweep.is_some());
        let is_less = asks_more(&contract.task(), &old);
        if let Some(rule) = self.core.tasks.sweep_rule().filter(|_| is_swept || is_less) {
            self.core.eased = self.core.eased.max(now.saturating_add(rule.cycle));
        }
        self.core.release_again(now, id, &mut moves);
        self.core.keep(before);
        self.tell_moves(&moves);
        self.policy.joined();
        self.tell_entered();
        Ok(())
    }

    /// Requests that wait elsewhere now than the policy was told.
    pub(super) fn tell_moves(&mut self, moves: &[Waiting]) {
        for old in moves {
            self.policy.dropped(old);
            let new = self.core.queues.get(old.key).expect("it waits");
            self.policy.submitted(new);
        }
    }
}

/// Whether a task may take more of any cycle than the one in whose place it is.
fn asks_more(old: &Task, new: &Task) -> bool {
    let has_more = new.commands > old.commands || new.parts > old.parts;
    new.cost > old.cost || new.command > old.command || has_more || new.period < old.period
}

impl Core {
    /// A released request of the task costs more than the new contract: a set that is
    /// admitted by cycles has no room for the difference.
    fn carries_into_cycle(&self, id: TaskId, contract: &Contract) -> bool {
        let by_cycles = matches!(self.options.by, Admission::Cycles(_));
        let cost = self.tasks.charged(&contract.task()).cost;
        let carried = |waiting: &Waiting| waiting.class.task() == Some(id) && waiting.cost > cost;
        by_cycles && self.options.admission && self.queues.ready().any(carried)
    }

    /// Requests to a server have these costs from here on. Whether nobody is late where those that
    /// have budget take more than they had, the exact slack says ([`Core::delay_first`]).
    fn charge_requests(&mut self, id: TaskId, costs: &[(u64, Duration)]) {
        let by_cycles = self.options.by != Admission::Exact && self.options.admission;
        for &(key, own) in costs {
            assert!(!own.is_zero(), "a request that costs nothing");
            let Some(&waiting) = self.queues.get(key) else { continue };
            let is_theirs = matches!(waiting.class, Class::Server { task, .. } if task == id);
            if !is_theirs || (by_cycles && waiting.is_real_time()) {
                continue;
            }
            let cost = own.saturating_add(waiting.overheads).min(BOUND_MAX);
            self.queues.charge_server(key, cost, own);
        }
    }

    /// The task as it is now in the place of `old`, from the earliest instant that both
    /// contracts know of. Returns its requests as they were.
    fn put_in_place(
        &mut self,
        now: Instant,
        id: TaskId,
        old: &Task,
        contract: Contract,
    ) -> Vec<Waiting> {
        let of_task = |waiting: &&Waiting| waiting.class.task() == Some(id);
        let moves: Vec<Waiting> = self.queues.early().filter(of_task).copied().collect();
        let released = self.queues.ready().filter(of_task).map(|waiting| waiting.key);
        let released: Vec<u64> = released.collect();
        if let Contract::Stream(_) = contract {
            let cost = self.kept_for(&contract.task());
            self.charge(&released, cost);
            if cost > self.kept_for(old) {
                let command = self.tasks.charged(&contract.task()).command;
                self.charge_begun(id, &released, (cost, command));
            }
        }
        self.carry_over.extend(released);
        for waiting in &moves {
            self.queues.take(waiting.key);
        }
        let sooner = |next: Instant| {
            let new = contract.task().period;
            now.max(next.min(next.saturating_sub(old.period).saturating_add(new)))
        };
        let renewal = if self.servers.knows(id.index) {
            self.servers.renewal(id.index, now, sooner)
        } else {
            let first = moves.first().map(|waiting| waiting.times.release);
            Renewal::new(sooner(first.unwrap_or(self.next_release(id))))
        };
        self.exit(id);
        match contract {
            Contract::Stream(_) => self.enter(id, contract, renewal.last()),
            Contract::Server(_) => {
                let charged = self.charged_server(&contract.task());
                self.servers.renew(id.index, &charged, renewal);
                let waits: Vec<u64> = self.queues.unentered(id).map(|one| one.key).collect();
                waits.into_iter().for_each(|key| self.push(key));
            }
        }
        moves
    }

    /// Requests of a stream that wait cost as much as its new contract says, where that is
    /// more: the disk may be slower than was thought. Those to a server say themselves what
    /// they cost ([`Core::charge_requests`]).
    fn charge(&mut self, keys: &[u64], cost: Duration) {
        for &key in keys {
            let waiting = *self.queues.get(key).expect("it waits");
            let is_whole = matches!(waiting.class, Class::RealTime(_)) && !waiting.begun;
            if is_whole && waiting.cost < cost {
                self.queues.charge(key, cost);
            }
        }
    }

    /// The same for those of which some commands are done. How long the rest takes by now is
    /// known when its next command begins; until then each of its commands counts as the longest,
    /// which has the way back to it in it, and all of them as no more than a whole request.
    fn charge_begun(&mut self, id: TaskId, keys: &[u64], (cost, command): (Duration, Duration)) {
        let rest_of = |commands: u32| command.saturating_mul(commands.into()).min(cost);
        for &key in keys {
            let waiting = *self.queues.get(key).expect("it waits");
            let rest = rest_of(waiting.commands);
            if waiting.begun && waiting.cost < rest {
                self.queues.charge(key, rest);
            }
        }
        for flight in &mut self.in_flight {
            let class = self.queues.at(flight.slot).class;
            if flight.rest.commands > 0 && class.task() == Some(id) {
                flight.rest.bound = flight.rest.bound.max(rest_of(flight.rest.commands));
            }
        }
    }

    /// Finds the first release of a task that joins or changes. The requests that had to
    /// move for it are added to `moves` as they were. False where it can have none.
    pub(super) fn begin(&mut self, now: Instant, id: TaskId, moves: &mut Vec<Waiting>) -> bool {
        self.begin_changed(now, id, moves, true)
    }

    /// The same for a task that takes the place of another, and asks for more of a cycle or not.
    fn begin_changed(
        &mut self,
        now: Instant,
        id: TaskId,
        moves: &mut Vec<Waiting>,
        is_more: bool,
    ) -> bool {
        self.advance_carry_over(now, moves);
        self.meter = Meter::unknown();
        self.begin_in_sweeps(now, id, is_more) || self.delay_first(now, id)
    }

    /// Under a policy that works in sweeps: what the cycle under way leaves was given away for
    /// the set as it was. A task of sweeps has part in the next one, where no other has eased its
    /// contract since this one began: what that one had asked for is gathered then. Any other
    /// task that asks for more waits for the cycle after this one. True where there is nothing more
    /// to look at.
    fn begin_in_sweeps(&mut self, now: Instant, id: TaskId, is_more: bool) -> bool {
        let Some(rule) = self.tasks.sweep_rule().filter(|_| self.options.admission) else {
            return false;
        };
        let is_swept = self.is_in_sweeps(id);
        if is_swept {
            self.hold(id, self.eased);
        } else if is_more && self.tasks.has_sweeps() {
            self.hold(id, self.eased.max(now.saturating_add(rule.cycle)));
        }
        is_swept
    }

    /// What came early comes under the new contract.
    fn release_again(&mut self, now: Instant, id: TaskId, moves: &mut [Waiting]) {
        let task = self.tasks.get(id).expect("it has been changed");
        let (is_server, charged) = (self.servers.knows(id.index), self.tasks.charged(&task));
        for old in moves.iter().filter(|old| old.class == Class::RealTime(id)) {
            if self.queues.get(old.key).is_some() {
                continue; // It was released, and only hurried.
            }
            let without = Times { release: now, deadline: Instant::MAX };
            let (class, times) = if is_server {
                (Class::server(id, old.cost.saturating_sub(old.overheads)), without)
            } else if old.cost.max(old.in_sweep) > charged.cost {
                self.demoted.push(old.key);
                (Class::best_effort(true), without)
            } else {
                (old.class, self.regulate(now, id, &task))
            };
            let cost = if is_server { old.cost } else { old.cost.max(self.kept_for(&task)) };
            let (period, promised) = (task.period, times.deadline);
            let synchronous = class.is_synchronous();
            let waiting = Waiting { class, times, cost, period, promised, synchronous, ..*old };
            self.queues.insert(waiting, now);
            self.push(old.key);
        }
        self.servers.fill(id.index, self.latest, &mut self.queues, &mut self.entered);
    }

    /// Sees to it that no request of a contract that was changed can be in the way of
    /// others for longer than the analysis of the present set allows for.
    ///
    /// A request of `cost` that is due within `L` can only be in the way of intervals
    /// shorter than `L`. In these the set bears it if it leaves as much slack in all
    /// intervals, or if a task of the set is as long and due as late; and in intervals
    /// shorter than the shortest deadline nothing is due.
    pub(super) fn advance_carry_over(&mut self, now: Instant, moves: &mut Vec<Waiting>) {
        for key in self.carry_over.clone() {
            let waiting = *self.queues.get(key).expect("it is still there");
            let by = now.saturating_add(self.bears(self.in_the_way(&waiting)));
            if by < waiting.times.deadline {
                moves.push(waiting);
                self.queues.set_deadline(key, by);
            }
        }
    }

    /// For how long a request that waits can be in the way of nearer deadlines: one that makes way
    /// between its commands, for one of these.
    fn in_the_way(&self, waiting: &Waiting) -> Duration {
        let task = waiting.class.task().filter(|_| self.makes_way(waiting));
        let task = task.and_then(|id| self.tasks.get(id));
        task.map_or(waiting.cost, |task| waiting.cost.min(self.tasks.charged(&task).command))
    }

    /// The set bears a carry-over request of `cost` that is due within this.
    fn bears(&self, cost: Duration) -> Duration {
        if self.tasks.slack() >= cost {
            return Duration::MAX;
        }
        let shortest = self.tasks.iter().map(|(_, task)| task.deadline).min();
        let as_long =
            self.tasks.iter().filter(|(_, task)| self.tasks.charged(task).command >= cost);
        let latest = as_long.map(|(_, task)| task.deadline).max();
        latest.max(shortest).unwrap_or(Duration::MAX)
    }
}
