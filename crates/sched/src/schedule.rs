//! The schedule of one disk: contracts in, requests in, commands out in order.
//!
//! Invariants: every waiting request under contract belongs to a task of `tasks`;
//! a task's requests are released at least its period apart, whatever the caller
//! does; `live` holds exactly the tasks of `tasks`.

use crate::analysis::TaskSet;
use crate::limits::{DELAYS_MAX, SLACK_BURSTS, SLACK_RETRY};
use crate::phases;
use crate::policies::PolicyKind;
use crate::policy::{Choice, Policy, View};
use crate::queues::{Queues, Waiting};
use crate::request::{Class, Counts, Next, Options, Outcome, Predict, Request, Times, Totals};
use crate::slack::{Answer, Critical, Due, Exact, Live, Meter, Scratch};
use crate::task::{Refusal, Task, TaskId};
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::{Duration, Instant, Lba};

/// The queue of one disk.
#[derive(Clone, Debug)]
pub struct Schedule {
    core: Core,
    policy: Box<dyn Policy>,
}

/// Everything but the policy, which looks at this.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub options: Options,
    pub tasks: TaskSet,
    pub queues: Queues,
    pub in_flight: Vec<Flight>,
    pub head: Lba,
    /// By when the disk is done with what it was given, at the bounds.
    busy_until: Instant,
    /// When the last command ended.
    finished: Instant,
    live: Vec<Live>,
    /// From the index of a task to its place in `live`.
    places: Vec<u32>,
    meter: Meter,
    scratch: Scratch,
    arrivals: u64,
    counts: Counts,
}

/// A command that the disk has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub request: Waiting,
    pub started: Instant,
    pub predicted: Duration,
}

impl Schedule {
    /// An empty schedule under one of the known policies.
    ///
    /// # Panics
    /// Where `options.depth` is zero.
    pub fn new(policy: PolicyKind, options: Options) -> Self {
        Self::with_policy(policy.start(), options)
    }

    /// An empty schedule under any policy.
    ///
    /// # Panics
    /// Where `options.depth` is zero.
    pub fn with_policy(policy: Box<dyn Policy>, options: Options) -> Self {
        assert!(options.depth > 0, "a disk that takes no command");
        let core = Core {
            options,
            tasks: TaskSet::new(options.reserve),
            queues: Queues::default(),
            in_flight: Vec::new(),
            head: Lba::default(),
            busy_until: Instant::EPOCH,
            finished: Instant::EPOCH,
            live: Vec::new(),
            places: Vec::new(),
            meter: Meter::unknown(),
            scratch: Scratch::default(),
            arrivals: 0,
            counts: Counts::default(),
        };
        Self { core, policy }
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
    /// Where the task is not valid ([`Task::is_valid`]).
    pub fn join(&mut self, now: Instant, task: Task) -> Result<TaskId, Refusal> {
        self.join_within(now, task, Duration::ZERO)
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
    /// Where the task is not valid ([`Task::is_valid`]).
    pub fn join_within(
        &mut self,
        now: Instant,
        task: Task,
        patience: Duration,
    ) -> Result<TaskId, Refusal> {
        self.core.queues.release(now);
        let task = task.whole(); // each request is served as one command here
        let id = if self.core.options.admission {
            self.core.tasks.add(task)?
        } else {
            self.core.tasks.add_unchecked(task)
        };
        let first = now + phases::stagger(&self.core.live, &task, now, patience);
        self.core.enter(id, Live::new(&task, id.index, first));
        if self.core.options.admission && !self.core.delay_first(now, first) {
            let utilisation_ppm = self.core.tasks.utilisation().ppm();
            self.core.exit(id);
            self.core.tasks.remove(id);
            return Err(Refusal { utilisation_ppm, deadline: None, undecided: true });
        }
        self.core.meter = Meter::unknown();
        self.policy.joined();
        Ok(id)
    }

    /// Ends a contract. Its waiting requests are dropped and their keys returned, by
    /// arrival; one that the disk already has ends as usual.
    ///
    /// # Panics
    /// Where there is no such task.
    pub fn leave(&mut self, id: TaskId) -> Vec<u64> {
        let waiting = self.core.queues.by_arrival().into_iter();
        let theirs = waiting.filter(|waiting| waiting.class == Class::RealTime(id));
        let keys: Vec<u64> = theirs.map(|waiting| waiting.key).collect();
        for &key in &keys {
            self.cancel(key);
        }
        self.core.tasks.remove(id);
        self.core.exit(id);
        self.policy.left(id);
        keys
    }

    /// When the task releases its next request at the earliest; in the past where it
    /// could have come before.
    ///
    /// # Panics
    /// Where there is no such task.
    pub fn next_release(&self, id: TaskId) -> Instant {
        assert!(self.core.tasks.get(id).is_some(), "a task that has joined");
        let place = self.core.places[id.index as usize];
        Instant::from_nanos(self.core.live[place as usize].release_next)
    }

    /// Takes a request. One under contract is released as soon as its contract
    /// allows: not before now, nor before a period after the one before it.
    ///
    /// # Panics
    /// Where the key is in use, or where the task has left.
    pub fn submit(&mut self, now: Instant, key: u64, request: Request) -> Times {
        let core = &mut self.core;
        let in_flight = core.in_flight.iter().any(|flight| flight.request.key == key);
        assert!(!in_flight, "key {key} is in use");
        let (mut cost, mut period) = (Duration::ZERO, Duration::ZERO);
        let times = match request.class {
            Class::RealTime(id) => {
                let task = core.tasks.get(id).expect("a request of a task that has joined");
                (cost, period) = (task.cost, task.period);
                core.regulate(now, id, &task)
            }
            _ => Times { release: now, deadline: Instant::MAX },
        };
        let Request { class, command } = request;
        let synchronous = matches!(class, Class::BestEffort { synchronous: true, .. });
        let arrival = core.arrivals;
        core.arrivals += 1;
        let submitted = now;
        let waiting =
            Waiting { key, arrival, submitted, class, command, times, cost, period, synchronous };
        core.queues.insert(waiting, now);
        self.policy.submitted(&waiting);
        times
    }

    /// What the disk shall do now. Ask again after [`Next::Start`] until the answer
    /// is [`Next::Wait`], and after each event.
    pub fn next(&mut self, now: Instant, predict: &dyn Predict) -> Next {
        let core = &mut self.core;
        core.queues.release(now);
        if core.in_flight.len() >= core.options.depth as usize {
            return Next::Wait { until: None };
        }
        match self.policy.choose(&mut View { core, now, predict }) {
            Choice::Start(key) => {
                let predicted = self.core.start(now, key, predict);
                Next::Start { key, predicted }
            }
            Choice::Wait { until } => {
                let early = self.core.queues.early_first().map(|early| early.times.release);
                Next::Wait { until: until.into_iter().chain(early).min() }
            }
        }
    }

    /// The disk is done with a command; `now` is when it was, which may be before
    /// the time of other calls.
    ///
    /// # Panics
    /// Where the disk was not given this request.
    pub fn finished(&mut self, now: Instant, key: u64) -> Outcome {
        let (request, outcome) = self.core.finish(now, key);
        self.policy.finished(&request, &outcome);
        outcome
    }

    /// Drops a request that waits. False where it does not wait: it is with the
    /// disk, done, or was never there.
    pub fn cancel(&mut self, key: u64) -> bool {
        let Some(waiting) = self.core.queues.take(key) else { return false };
        self.core.queues.settle(key, waiting.class);
        self.policy.dropped(&waiting);
        true
    }

    /// Gives a request that waits another class, keeping its key: one under best
    /// effort that a stream has come to need is upgraded, not repeated (ABISS,
    /// section 3.3). It counts as new: its times begin now. None where it does not
    /// wait.
    ///
    /// # Panics
    /// Where the task of `class` has left.
    pub fn upgrade(&mut self, now: Instant, key: u64, class: Class) -> Option<Times> {
        let command = self.core.queues.get(key)?.command;
        self.cancel(key);
        Some(self.submit(now, key, Request { class, command }))
    }

    /// Goes on under another policy, with the same contracts and requests.
    pub fn set_policy(&mut self, policy: PolicyKind) {
        self.policy = policy.start();
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

    /// How many commands the disk has.
    pub fn in_flight(&self) -> usize {
        self.core.in_flight.len()
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
        let enough = enough.as_nanos() as i64;
        let slack = self.core.slack(now, enough, None)?;
        Some(Duration::from_nanos(slack.max(0) as u64))
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
            let Class::RealTime(id) = waiting.class else { continue };
            let times = [waiting.times.release, waiting.times.deadline];
            state.push(u64::from(id.index));
            state.extend(times.map(|time| time.as_nanos().wrapping_sub(now.as_nanos())));
        }
        let others = core.queues.by_arrival().into_iter().filter(|waiting| !waiting.is_real_time());
        state.extend(others.map(|waiting| waiting.key));
        for flight in &core.in_flight {
            state.push(match flight.request.class {
                Class::RealTime(id) => u64::from(id.index),
                _ => u64::MAX,
            });
        }
        self.policy.remember(now, state);
    }

    /// Appends what is only remembered to be quick, relative to `now`. Later answers do
    /// not depend on it: a search that counts it in shows that.
    pub fn remember_bounds(&self, now: Instant, state: &mut Vec<u64>) {
        let (now, meter) = (now.as_nanos(), &self.core.meter);
        state.push(meter.least(now).max(0) as u64);
        if let Some(critical) = meter.critical.filter(|it| it.deadline > now) {
            let age = (now - critical.now).min(self.core.options.burst.as_nanos());
            state.extend([critical.deadline - now, age]);
            state.push(critical.difference_at(now) as u64);
        }
    }
}

impl Core {
    /// True where `cost` may be spent now.
    pub(crate) fn slack_covers(&mut self, now: Instant, cost: u64) -> bool {
        let cost = cost as i64;
        let free_at = self.free_at(now).as_nanos();
        if self.slack_least(free_at) >= cost {
            return true;
        }
        if let Some(critical) = self.meter.critical.filter(|it| it.deadline > free_at) {
            let difference = self.exact(now).difference(critical.deadline, self.queues.due());
            let now = now.as_nanos();
            self.meter.critical =
                difference.map(|difference| Critical { difference, free_at, now, ..critical });
            if difference.is_some_and(|difference| difference < cost) {
                return false;
            }
        }
        self.compute(now, cost)
    }

    /// True where the slack has grown to about `threshold`: to three quarters of it
    /// at least. Asked before each of a run of requests under contract; may say no
    /// for as long as `threshold` when it need not. The difference at the critical
    /// deadline alone is followed; only when it has passed the threshold are the
    /// others looked at, which are then most often within the quarter.
    pub(crate) fn slack_recovered(&mut self, now: Instant, threshold: u64) -> bool {
        let free_at = self.free_at(now).as_nanos();
        let fresh = self.meter.critical.filter(|it| {
            it.deadline > free_at && now.as_nanos() < it.now.saturating_add(threshold)
        });
        let is_low = fresh.is_some_and(|it| it.difference_at(free_at) < threshold as i64);
        !is_low && self.slack_covers(now, threshold - threshold / 4)
    }

    /// True where `cost` may be spent as far as deadlines before `by` go.
    pub(crate) fn slack_covers_before(&mut self, now: Instant, cost: u64, by: Instant) -> bool {
        let cost = cost as i64;
        self.meter.least(self.free_at(now).as_nanos()) >= cost
            || self.slack(now, cost, Some(by)).is_some_and(|slack| slack >= cost)
    }

    /// What is known of the slack without looking.
    fn slack_least(&mut self, free_at: u64) -> i64 {
        if self.in_flight.is_empty() && self.queues.ready_first().is_none() {
            // Nothing that was released waits: the offline test covers the rest. It
            // says zero also of a set that was taken without asking it.
            let slack = self.tasks.slack_least().as_nanos().min(i64::MAX as u64 / 2);
            if slack > 0 {
                self.meter.learn(slack as i64, free_at);
            }
        }
        self.meter.least(free_at)
    }

    /// Computes whether the slack covers `cost`, and remembers what it learns. False
    /// where that is not known in bounded work.
    fn compute(&mut self, now: Instant, cost: i64) -> bool {
        self.counts.slack_computed += 1;
        let free_at = self.free_at(now).as_nanos();
        let burst = self.options.burst.max(self.options.reserve).as_nanos() as i64;
        let enough = cost.max(burst).saturating_mul(SLACK_BURSTS);
        let mut scratch = core::mem::take(&mut self.scratch);
        self.collect_due(&mut scratch.due);
        let answer = self.exact(now).covers(cost, enough, &mut scratch);
        self.scratch = scratch;
        let now = now.as_nanos();
        let critical = |deadline, difference| Critical { deadline, difference, free_at, now };
        self.meter.critical = None;
        match answer {
            Answer::AtLeast(slack) => self.meter.learn(slack, free_at),
            Answer::Exactly { deadline, slack } => {
                self.meter.learn(slack, free_at);
                self.meter.critical = Some(critical(deadline, slack));
            }
            Answer::Below { deadline, difference } => {
                debug_assert!(self.meter.least(free_at) <= difference, "a bound that was none");
                self.meter.critical = Some(critical(deadline, difference));
                return false;
            }
            Answer::Unknown => return false,
        }
        true
    }

    fn free_at(&self, now: Instant) -> Instant {
        now.max(self.busy_until)
    }

    fn exact(&self, now: Instant) -> Exact<'_> {
        Exact {
            live: &self.live,
            share: self.tasks.utilisation().0,
            now: now.as_nanos(),
            free_at: self.free_at(now).as_nanos(),
        }
    }

    fn collect_due(&self, due: &mut Vec<Due>) {
        due.clear();
        due.extend(self.queues.due());
        if !due.is_sorted_by_key(|due| due.deadline) {
            due.sort_unstable_by_key(|due| due.deadline);
        }
    }

    /// The smaller of the slack and `enough`, by the plain walk.
    fn slack(&self, now: Instant, enough: i64, before: Option<Instant>) -> Option<i64> {
        let mut due = Vec::new();
        self.collect_due(&mut due);
        self.exact(now).slack(enough, before.map(Instant::as_nanos), &mut due)
    }

    /// The regulator.
    fn regulate(&mut self, now: Instant, id: TaskId, task: &Task) -> Times {
        let live = &mut self.live[self.places[id.index as usize] as usize];
        let release = now.max(Instant::from_nanos(live.release_next));
        live.release_next = (release + task.period).as_nanos();
        Times { release, deadline: release + task.deadline }
    }

    /// The task that came last may release its first request, from `first` on, only
    /// when no other can be late for it: the state may owe slack that was given away
    /// under the smaller set. False where no such time is found in bounded work, or where
    /// others are late already.
    fn delay_first(&mut self, now: Instant, first: Instant) -> bool {
        if self.in_flight.is_empty() && self.queues.ready_first().is_none() {
            return true; // What the offline test assumes.
        }
        let last = self.live.len() - 1;
        let mut delay = 0;
        for attempt in 0..DELAYS_MAX {
            self.live[last].release_next = first.as_nanos().saturating_add(delay);
            let mut scratch = core::mem::take(&mut self.scratch);
            self.collect_due(&mut scratch.due);
            let answer = self.exact(now).covers(0, 0, &mut scratch);
            self.scratch = scratch;
            match answer {
                Answer::AtLeast(_) | Answer::Exactly { .. } => return true,
                Answer::Below { .. } => delay = (self.live[last].deadline / 8).max(1) << attempt,
                Answer::Unknown => return false,
            }
        }
        false
    }

    fn enter(&mut self, id: TaskId, live: Live) {
        let index = id.index as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, u32::MAX);
        }
        self.places[index] = self.live.len() as u32;
        self.live.push(live);
    }

    fn exit(&mut self, id: TaskId) {
        let place = core::mem::replace(&mut self.places[id.index as usize], u32::MAX) as usize;
        self.live.swap_remove(place);
        if let Some(moved) = self.live.get(place) {
            self.places[moved.index as usize] = place as u32;
        }
    }

    fn start(&mut self, now: Instant, key: u64, predict: &dyn Predict) -> Duration {
        assert!(self.queues.may_run(key), "the policy chose a request that may not run: {key}");
        let in_slack = self.queues.ready_first().is_some();
        let request = self.queues.take(key).expect("a request that may run waits");
        let predicted = predict.bound(self.head, &request.command);
        if request.is_real_time() {
            self.meter.served(request.times.deadline.as_nanos(), request.cost.as_nanos());
            self.counts.over_cost += u64::from(predicted > request.cost);
        } else {
            self.counts.in_slack += u64::from(in_slack);
        }
        if let Some(end) = request.command.end() {
            self.head = end;
        }
        self.busy_until = self.free_at(now).saturating_add(predicted);
        self.in_flight.push(Flight { request, started: now, predicted });
        predicted
    }

    fn finish(&mut self, now: Instant, key: u64) -> (Waiting, Outcome) {
        let at = self.in_flight.iter().position(|flight| flight.request.key == key);
        let Flight { request, started, predicted } =
            self.in_flight.remove(at.expect("the disk was given this request"));
        self.queues.settle(key, request.class);
        let actual = now.saturating_since(started.max(self.finished));
        self.finished = self.finished.max(now);
        let overrun = actual.saturating_sub(predicted);
        let left: Duration = self.in_flight.iter().map(|flight| flight.predicted).sum();
        let done_by = now.saturating_add(left);
        // After an overrun the others may need all of their bounds still.
        self.busy_until = if overrun.is_zero() { self.busy_until.min(done_by) } else { done_by };
        let outcome = Outcome {
            class: request.class,
            times: request.times,
            started,
            predicted,
            actual,
            late_by: now.saturating_since(request.times.deadline),
            overrun,
        };
        self.count(&outcome, request.is_real_time());
        (request, outcome)
    }

    fn count(&mut self, outcome: &Outcome, real_time: bool) {
        let counts = &mut self.counts;
        let totals = if real_time { &mut counts.real_time } else { &mut counts.best_effort };
        *totals = Totals {
            requests: totals.requests + 1,
            actual: totals.actual + outcome.actual,
            predicted: totals.predicted + outcome.predicted,
        };
        counts.late += u64::from(!outcome.late_by.is_zero());
        counts.late_max = counts.late_max.max(outcome.late_by);
        counts.overruns += u64::from(!outcome.overrun.is_zero());
        counts.overrun_max = counts.overrun_max.max(outcome.overrun);
    }
}

impl View<'_> {
    /// When to look again at a request that slack did not cover on an idle disk.
    pub fn slack_may_grow(&self) -> Option<Instant> {
        Some(self.now.saturating_add(SLACK_RETRY))
    }
}
