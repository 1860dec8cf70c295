//! The schedule of one disk: contracts in, requests in, commands out in order.
//!
//! Invariants: every waiting request under contract belongs to a task of `tasks`;
//! a task's requests are released at least its period apart, whatever the caller
//! does; `live` holds exactly the streams of `tasks`, `servers` the servers.

mod advance;
mod attempt;
mod beside;
mod change;
pub(crate) mod core;
mod gap;
mod parts;
mod policy_change;

pub use self::attempt::Attempt;

use self::core::Core;
use crate::analysis::TaskSet;
use crate::kind::PolicyKind;
use crate::limits::{BESIDE_FOR, SLACK_CREDIT, SLACK_RETRY};
use crate::phases;
use crate::policy::{Choice, Policy, View};
use crate::queues::{Queues, Waiting};
use crate::request::{
    Class, Contract, Counts, EndTime, Next, Options, Outcome, Predict, Request, Rest, Times,
};
use crate::slack::Meter;
use crate::task::{Refusal, TaskId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::{Command, Duration, Instant, Lba};

/// The queue of one disk.
#[derive(Clone, Debug)]
pub struct Schedule {
    core: Core,
    policy: Box<dyn Policy>,
    /// It goes next ([`Schedule::insist`]).
    insisted: Option<u64>,
}

impl Schedule {
    /// An empty schedule under a policy.
    ///
    /// # Panics
    /// Where `options.depth` is zero.
    pub fn new(policy: PolicyKind, options: Options) -> Self {
        Self::with_policy(policy.start(), options)
    }

    /// An empty schedule under a policy in any state.
    ///
    /// # Panics
    /// Where `options.depth` is zero.
    pub fn with_policy(policy: Box<dyn Policy>, options: Options) -> Self {
        assert!(options.depth > 0, "a disk that takes no command");
        let mut core = Core::new(options);
        core.tasks = core.tasks.with_slack_of(options.admission && policy.has_online_slack());
        Self { core, policy, insisted: None }
    }

    /// Takes a contract. Its first request may be released now, or, where the disk
    /// is deep in other work, as soon after as the others allow; the regulator
    /// sees to that.
    ///
    /// # Errors
    /// [`Refusal`] where admission is on and the contract cannot be kept beside
    /// the others, or where the disk is too far behind with them to say when it
    /// could begin (undecided). The schedule is unchanged.
    ///
    /// # Panics
    /// Where the task is not valid ([`Task::is_valid`](crate::Task::is_valid)).
    pub fn join(&mut self, now: Instant, contract: impl Into<Contract>) -> Result<TaskId, Refusal> {
        self.join_within(now, contract, Duration::ZERO)
    }

    /// Takes a contract as [`Schedule::join`] does, for somebody who can wait: the
    /// first release is put off by up to `patience`, and by less than a period, where
    /// that keeps its requests apart from those of tasks with equal or harmonic
    /// periods. [`Schedule::next_release`] then says when it is.
    ///
    /// # Errors
    /// As [`Schedule::join`].
    ///
    /// # Panics
    /// Where the task is not valid ([`Task::is_valid`](crate::Task::is_valid)).
    pub fn join_within(
        &mut self,
        now: Instant,
        contract: impl Into<Contract>,
        patience: Duration,
    ) -> Result<TaskId, Refusal> {
        self.release(now);
        let contract = contract.into();
        let task = contract.task();
        let wants_returns = self.core.wants_returns(&task);
        let before = wants_returns.then(|| self.core.attempt());
        let id = if self.core.options.admission {
            match self.core.tasks.add(task) {
                Ok(id) => id,
                Err(refusal) => {
                    if let Some(before) = before {
                        self.core.undo(before);
                    }
                    return Err(refusal);
                }
            }
        } else {
            self.core.tasks.add_unchecked(task)
        };
        let first = now + phases::stagger(&self.core.live, &task, now, patience);
        self.core.enter(id, contract, first);
        if wants_returns {
            self.core.charge_again(now);
        }
        let mut moves = Vec::new();
        if self.core.options.admission && !self.core.begin(now, id, &mut moves) {
            let utilisation_ppm = self.core.tasks.utilisation().ppm();
            if let Some(before) = before {
                self.core.undo(before);
                return Err(Refusal::undecided(utilisation_ppm));
            }
            self.core.exit(id);
            self.core.tasks.remove(id);
            moves.iter().for_each(|old| self.core.queues.set_deadline(old.key, old.times.deadline));
            return Err(Refusal::undecided(utilisation_ppm));
        }
        if let Some(before) = before {
            self.core.keep(before);
        }
        self.core.meter = Meter::unknown();
        self.tell_moves(&moves);
        self.policy.joined();
        Ok(id)
    }

    /// Ends a contract. Its waiting requests are dropped and their keys returned, by
    /// arrival; one that the disk already has, or has begun with, ends as usual.
    ///
    /// # Panics
    /// Where there is no such task.
    pub fn leave(&mut self, id: TaskId) -> Vec<u64> {
        let waiting = self.core.queues.by_arrival().into_iter();
        let theirs = waiting.filter(|waiting| waiting.class.task() == Some(id));
        let (mut begun, mut keys) = (Vec::new(), Vec::new());
        theirs.for_each(|it| if it.begun { begun.push(it.key) } else { keys.push(it.key) });
        let returns = self.core.tasks.returns();
        self.core.tasks.remove(id);
        self.core.exit(id);
        for &key in &keys {
            self.cancel(key);
        }
        for &key in &begun {
            self.core.outlive(key);
        }
        if returns != self.core.tasks.returns() {
            self.core.charge_again(self.core.latest);
            self.tell_entered();
        }
        self.policy.left(id);
        keys
    }

    /// When the task releases its next request at the earliest; in the past where it
    /// could have come before. Of a server: when some of its budget is there.
    ///
    /// # Panics
    /// Where there is no such task.
    pub fn next_release(&self, id: TaskId) -> Instant {
        assert!(self.core.tasks.get(id).is_some(), "a task that has joined");
        self.core.next_release(id)
    }

    /// Takes a request. One under contract is released as soon as its contract
    /// allows: not before now, nor before a period after the one before it. One to a
    /// server is, as soon as there is budget for it and those that came before it; it has
    /// no deadline until then.
    ///
    /// # Panics
    /// Where the key is in use, where the task has left, or where a request to a server
    /// names a stream, or the other way round.
    pub fn submit(&mut self, now: Instant, key: u64, request: Request) -> Times {
        let core = &mut self.core;
        let in_flight = core.in_flight.iter().any(|flight| flight.key == key);
        assert!(!in_flight, "key {key} is in use");
        core.accept(now, key, request);
        let waiting = core.queues.get(key).expect("it waits");
        let times = waiting.times;
        self.policy.submitted(waiting);
        self.tell_entered();
        times
    }

    /// What the disk shall do now. Ask again after [`Next::Start`] until the answer
    /// is [`Next::Wait`], and after each event.
    pub fn next(&mut self, now: Instant, predict: &dyn Predict) -> Next {
        self.release(now);
        let core = &mut self.core;
        if core.in_flight.len() >= core.options.depth as usize {
            return self.next_beside(now, predict);
        }
        let insisted = self.insisted.take();
        let choice = match insisted.filter(|&key| core.waits_for_slack(key)) {
            Some(key) => {
                // It goes without the policy.
                self.policy.dropped(core.queues.get(key).expect("it waits"));
                Choice::Start(key)
            }
            None => self.policy.choose(&mut View { core, now, predict }),
        };
        match choice {
            Choice::Start(key) => {
                let predicted = self.core.start(now, key, predict);
                self.tell_entered();
                Next::Start { key, predicted }
            }
            Choice::Wait { until } => {
                let early = self.core.queues.early_first().map(|early| early.times.release);
                let budget = self.core.servers.next_fill();
                let until = until.into_iter().chain(early).chain(budget).min();
                debug_assert!(until.is_none_or(|at| at > now), "it waits for what is past");
                Next::Wait { until }
            }
        }
    }

    /// What the disk shall have besides what it works on.
    fn next_beside(&mut self, now: Instant, predict: &dyn Predict) -> Next {
        let core = &mut self.core;
        let key = if core.holds_more(now) {
            self.policy.beside(&mut View { core, now, predict })
        } else {
            None
        };
        let Some(key) = key else { return Next::Wait { until: None } };
        let predicted = self.core.start_beside(now, key, predict);
        self.tell_entered();
        Next::Start { key, predicted }
    }

    /// Lets the disk serve a request that waits in one command with `first`, which
    /// [`Schedule::next`] has just started and which alone the disk has, but for others that
    /// were added so: the command takes `more` than it was to take. False, and nothing has
    /// changed, where the slack does not cover that, where the policy does not look at the exact
    /// slack, or where either request has odds or is served in several commands. Each of them ends
    /// in a call of [`Schedule::finished`] of its own.
    ///
    /// # Panics
    /// Where the disk was not given `first`.
    pub fn start_with(&mut self, now: Instant, key: u64, first: u64, more: Duration) -> bool {
        let is_exact = self.policy.has_online_slack();
        let is_started = is_exact && self.core.start_with(now, key, first, more);
        self.tell_entered();
        is_started
    }

    /// The disk is done with a command; `now` is when it was, which may be before
    /// the time of other calls.
    ///
    /// # Panics
    /// Where the disk was not given this request.
    pub fn finished(&mut self, now: Instant, key: u64) -> Outcome {
        self.finished_within(EndTime::at(now), key)
    }

    /// The same, where it is not known when the disk was done, but between which two instants.
    ///
    /// What the request is told to have taken is judged by the earliest one: the disk is not blamed
    /// for the host's time. How long the disk works on what else it has is counted from the
    /// latest one.
    ///
    /// # Panics
    /// As [`Schedule::finished`].
    pub fn finished_within(&mut self, ended: EndTime, key: u64) -> Outcome {
        let (request, outcome) = self.core.finish(ended, key);
        self.policy.finished(request, &outcome);
        self.tell_entered();
        outcome
    }

    /// The disk is done with the command that [`Schedule::next`] gave it of a request of which
    /// more is left ([`Schedule::has_more`]): `command` is next, and `rest` what is left in all.
    /// It waits again, at the times that it has, and others may go first.
    ///
    /// # Panics
    /// Where the disk was not given this request, or all of it.
    pub fn finished_part(
        &mut self,
        now: Instant,
        key: u64,
        command: Command,
        rest: Rest,
    ) -> Outcome {
        assert!(self.has_more(key), "the disk was given all of it");
        let outcome = self.core.finish_part(now, key, (command, rest));
        self.policy.submitted(self.core.queues.get(key).expect("it waits again"));
        outcome
    }

    /// Whether the disk has a command of this request that is not all of it: others may go
    /// first before the next one.
    pub fn has_more(&self, key: u64) -> bool {
        // Asked of what was given last, mostly.
        let mut latest_first = self.core.in_flight.iter().rev();
        let flight = latest_first.find(|flight| flight.key == key);
        flight.is_some_and(|flight| flight.rest.commands > 0)
    }

    /// Drops a request that waits. False where it does not wait: it is with the
    /// disk, done, or was never there.
    pub fn cancel(&mut self, key: u64) -> bool {
        let Some(waiting) = self.core.drop(key) else { return false };
        self.policy.dropped(&waiting);
        self.tell_entered();
        true
    }

    /// Drops a request as [`Schedule::cancel`] does; where it is the last that its contract
    /// let through, the next one may come in its place. Whoever takes back all that waits,
    /// the newest first, stands as if none of it had been asked for. (The work that is due
    /// by any time only falls: what is released in its place is due no sooner.)
    pub fn take_back(&mut self, key: u64) -> bool {
        let Some(waiting) = self.core.queues.get(key).copied() else { return false };
        // Of another contract than the present one: its times say nothing about that.
        let carry_over = self.core.carry_over.contains(&key);
        let cancelled = self.cancel(key);
        if let (Class::RealTime(id), false) = (waiting.class, carry_over) {
            self.core.rewind(id, waiting.times.release);
        }
        cancelled
    }

    /// Lets a request of a stream that waits do another command within the same cost, at
    /// the times that it has. False where it does not wait, or is no stream's, or where the policy
    /// has no turn for it there ([`Policy::may_redirect`]): as a request that is
    /// [taken back](Schedule::take_back) and made anew it may go there.
    pub fn redirect(&mut self, now: Instant, key: u64, command: Command) -> bool {
        self.release(now);
        let Some(old) = self.core.queues.get(key).copied() else { return false };
        if !matches!(old.class, Class::RealTime(_)) || !self.policy.may_redirect(&old, &command) {
            return false;
        }
        self.core.queues.take(key);
        self.core.queues.insert(Waiting { command, ..old }, now);
        self.tell_moves(&[old]);
        true
    }

    /// The times of a request that waits, or that the disk has.
    pub fn times(&self, key: u64) -> Option<Times> {
        let Core { in_flight, queues, .. } = &self.core;
        let in_flight = || in_flight.iter().find(|flight| flight.key == key);
        let request = queues.get(key).or_else(|| Some(queues.at(in_flight()?.slot)))?;
        Some(Times { deadline: request.promised, ..request.times })
    }

    /// Gives a request that waits another class, keeping its key: one under best
    /// effort that a stream has come to need is upgraded, not repeated (ABISS,
    /// section 3.3); one that a volume has a contract for by now goes to its server. It counts as new: its times begin now. None where it does not
    /// wait.
    ///
    /// # Panics
    /// Where the task of `class` has left.
    pub fn upgrade(&mut self, now: Instant, key: u64, class: Class) -> Option<Times> {
        self.release(now);
        let command = self.core.queues.get(key)?.command;
        self.cancel(key);
        Some(self.submit(now, key, Request { class, command }))
    }

    /// The requests of streams that are best effort since their contracts were changed, for some of them may
    /// cost more than these cover; in the order in which they came, and once.
    pub fn take_demoted(&mut self) -> Vec<u64> {
        ::core::mem::take(&mut self.core.demoted)
    }

    /// Promises what the disk has for `by`: nothing goes beside it that would make it later. False, and
    /// nothing has changed, where the disk may be busy for longer than that, or does not have it.
    pub fn promise_with_disk(&mut self, key: u64, by: Instant) -> bool {
        self.core.promise_with_disk(key, by)
    }

    /// Time has come to `now`: what is released by then is, and enters its container.
    fn release(&mut self, now: Instant) {
        let core = &mut self.core;
        core.latest = core.latest.max(now);
        core.queues.release(now);
        core.servers.fill_due(now, &mut core.queues, &mut core.entered);
        self.tell_entered();
    }

    /// Lets the policy know of requests to servers that are under contract from here on.
    fn tell_entered(&mut self) {
        while let Some(key) = self.core.entered.pop() {
            let request = self.core.queues.get(key).expect("what has entered waits");
            self.policy.entered(request);
        }
    }

    /// Goes on under another policy, with the same contracts and requests.
    pub fn set_policy(&mut self, policy: PolicyKind) {
        self.follow(policy.start());
    }

    /// Goes on under a policy in any state, with the same contracts and requests.
    pub fn follow(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
        let has_online_slack = self.core.options.admission && self.policy.has_online_slack();
        if self.core.tasks.has_online_slack() != has_online_slack {
            // Contracts are kept under either; without online slack there may be less than
            // the reserve for best effort until some of them have left.
            self.core.tasks = self.core.tasks.with_slack_of(has_online_slack);
            self.core.meter = Meter::unknown();
            if self.core.tasks.is_in_chunks() {
                self.core.charge_again(self.core.latest);
            }
        }
        self.core.bring_back();
        for waiting in self.core.queues.by_arrival() {
            self.policy.submitted(waiting);
        }
    }

    /// The contracts and their analysis.
    pub fn tasks(&self) -> &TaskSet {
        &self.core.tasks
    }

    /// What waits.
    pub fn queues(&self) -> &Queues {
        &self.core.queues
    }

    /// Where the last command ends.
    pub fn head(&self) -> Lba {
        self.core.head
    }

    /// How many commands the disk takes at a time.
    pub fn depth(&self) -> u32 {
        self.core.options.depth
    }

    /// How many requests the disk has.
    pub fn in_flight(&self) -> usize {
        self.core.in_flight.len()
    }

    /// The keys of the requests that the disk has.
    pub fn with_disk(&self) -> impl Iterator<Item = u64> {
        self.core.in_flight.iter().map(|flight| flight.key)
    }

    /// Everything that was counted, and what waits now.
    pub fn counts(&self) -> Counts {
        let (real_time, best_effort) = self.core.queues.counts();
        Counts {
            tasks: self.core.tasks.len() as u64,
            waiting_real_time: real_time as u64,
            waiting_best_effort: best_effort as u64,
            ..self.core.counts
        }
    }

    /// The smaller of `enough` and the time that could be given away once the disk
    /// is done with what it has; zero where it is negative, None where it is not
    /// known in bounded work. Computed in full: for reports.
    pub fn slack_now(&self, now: Instant, enough: Duration) -> Option<Duration> {
        let enough = enough.as_nanos().min(1 << 60) as i64;
        let slack = self.core.slack(now, enough)?;
        Some(Duration::from_nanos(slack.max(0) as u64))
    }

    /// True where a request that waits for slack will not be served as long as the contracts
    /// stay: its bound is more than the slack can come to, even with every contract just
    /// served and nothing else there. (Where streams run further ahead of their contracts
    /// than they are now, it may be served all the same.) False for requests under contract,
    /// for what does not wait, and where it is not known in bounded work. Computed in full:
    /// for reports, and for answers to whoever waits.
    pub fn never_fits(&self, now: Instant, key: u64, predict: &dyn Predict) -> bool {
        let waiting = self.core.queues.get(key).filter(|waiting| !waiting.is_covered());
        waiting.is_some_and(|waiting| {
            let cost = predict.bound_of(self.core.head, waiting.key, &waiting.command);
            self.core.never_covers(now, self.core.with_gap(cost).as_nanos(), &mut 0)
        })
    }

    /// Lets a request that waits for slack go next, whatever the slack: others may be late for it. It is for
    /// what [never fits](Schedule::never_fits) and must be done all the same. Without effect on a request
    /// that waits for something else. One at a time: the last one that was named.
    pub fn insist(&mut self, key: u64) {
        self.insisted = Some(key).filter(|&key| self.core.waits_for_slack(key));
    }

    /// Appends everything that later answers depend on, times relative to `now`:
    /// what a search of all behaviours needs to tell two states apart. Left out
    /// are the place of the head, what the disk was given (but for the task), and
    /// what is only remembered to be quick.
    pub fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        let core = &self.core;
        for task in &core.live {
            state.push(task.release_next.saturating_sub(now.as_nanos()));
        }
        for waiting in core.queues.ready().chain(core.queues.early()) {
            let id = waiting.contract().expect("what has a deadline is under contract");
            let times = [waiting.times.release, waiting.times.deadline];
            state.extend([u64::from(id.index), waiting.cost.as_nanos()]);
            state.extend(times.map(|time| time.as_nanos().wrapping_sub(now.as_nanos())));
            if waiting.begun {
                let holds = core.holder == Some(waiting.key);
                state.extend([u64::MAX, u64::from(waiting.commands), u64::from(holds)]);
            }
        }
        let others = core.queues.by_arrival().into_iter().filter(|waiting| !waiting.is_covered());
        for waiting in others {
            state.push(waiting.key);
            if waiting.over_cost {
                let deadline = waiting.times.deadline.as_nanos();
                state.push(deadline.wrapping_sub(now.as_nanos()));
            }
            state.extend(waiting.long.then_some(u64::MAX));
        }
        for flight in &core.in_flight {
            let request = core.queues.at(flight.slot);
            let task = request.contract().map(|id| u64::from(id.index));
            state.push(task.unwrap_or(u64::MAX));
            if flight.rest.commands > 0 {
                state.extend([u64::from(flight.rest.commands), flight.rest.bound.as_nanos()]);
                state.push(request.times.deadline.as_nanos().wrapping_sub(now.as_nanos()));
            }
            if core.options.any_order > 1 {
                state.push(flight.predicted.as_nanos());
                state.push(request.times.deadline.as_nanos().wrapping_sub(now.as_nanos()));
                state.push(
                    now.saturating_since(flight.started).as_nanos().min(BESIDE_FOR.as_nanos()),
                );
            }
        }
        let unpaid_from = now.as_nanos().saturating_sub(SLACK_CREDIT.as_nanos());
        state.push(core.paid.saturating_sub(unpaid_from));
        core.servers.remember(now, state);
        state.extend(self.insisted);
        self.policy.remember(now, state);
    }

    /// Appends what is only remembered to be quick, relative to `now`. Later answers do
    /// not depend on it: a search that counts it in shows that.
    pub fn remember_bounds(&self, now: Instant, state: &mut Vec<u64>) {
        let (now, meter) = (now.as_nanos(), &self.core.meter);
        state.push(meter.least(now).max(0) as u64);
        if let Some(critical) = meter.critical.filter(|it| it.deadline > now) {
            let age = (now - critical.now).min(self.core.burst().as_nanos());
            state.extend([critical.deadline - now, age]);
            state.push(critical.difference_at(now) as u64);
        }
    }
}

impl View<'_> {
    /// When to look again at a request that slack did not cover on an idle disk.
    pub fn slack_may_grow(&self) -> Option<Instant> {
        Some(self.now.saturating_add(SLACK_RETRY))
    }
}
