//! What a schedule does beneath its policy: times, slack, accounts.

use crate::analysis::TaskSet;
use crate::containers::Servers;
use crate::limits::{
    BOUND_MAX, DELAYS_MAX, SLACK_BURSTS, SLACK_CREDIT, SLACK_FREE_TASKS, SLACK_VISIT,
};
use crate::queues::{Queues, Waiting};
use crate::request::{
    Class, Contract, Counts, EndTime, Options, Outcome, Predict, Request, Rest, Times, Totals,
};
use crate::slack::{Answer, Critical, Due, Exact, Live, Meter, Scratch};
use crate::task::{Task, TaskId, WHOLE};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use units::{Duration, Instant, Lba};

/// Everything but the policy, which looks at this.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub options: Options,
    pub tasks: TaskSet,
    pub queues: Queues,
    /// In the order in which they were given: most end so, too.
    pub in_flight: VecDeque<Flight>,
    pub head: Lba,
    /// The heads are where this request needs them, which waits, and of which some commands
    /// are done: whatever else goes now makes it lose its `resume`.
    pub holder: Option<u64>,
    /// By when the disk is done with what it was given, at the bounds.
    pub(super) busy_until: Instant,
    /// When the last command ended.
    pub(super) finished: Instant,
    /// The latest time that was told.
    pub(super) latest: Instant,
    pub(super) live: Vec<Live>,
    /// From the index of a task to its place in `live`.
    pub(super) places: Vec<u32>,
    pub(super) servers: Servers,
    /// Requests to servers that have entered containers, for the policy to know.
    pub(super) entered: Vec<u64>,
    /// Requests of a stream that are best effort since its contract has changed, for whoever asks.
    pub(super) demoted: Vec<u64>,
    /// Until then a sweep may gather what was asked for under contracts that have changed.
    pub(super) eased: Instant,
    /// Released requests that wait, of contracts that have changed since.
    pub(super) carry_over: Vec<u64>,
    pub(super) meter: Meter,
    /// Computations of the slack are paid up to here.
    pub(super) paid: u64,
    pub(super) scratch: Scratch,
    pub(super) arrivals: u64,
    pub(super) counts: Counts,
}

/// A command that the disk has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub key: u64,
    /// Where the request is in the queues.
    pub slot: u32,
    pub started: Instant,
    pub predicted: Duration,
    /// What is left of the request when the command has ended; nothing where it is one.
    pub rest: Rest,
    /// Gaps that are in `predicted`.
    pub gaps_within: u32,
    /// The bound wherever the heads are before; zero where another one's command serves it, too. None
    /// where no other command may be given to the disk beside it.
    pub anywhere: Option<Duration>,
}

/// Nothing is left.
pub(super) const DONE: Rest = Rest { bound: Duration::ZERO, commands: 0 };

/// A time that slack is held against: as good as never, where it is more than that.
fn bounded(time: u64) -> i64 {
    time.min(1 << 60) as i64
}

impl Core {
    pub(super) fn new(options: Options) -> Self {
        let tasks = TaskSet::new(options.reserve).with_gap(options.gap);
        Self {
            options,
            tasks: tasks.with_admission(options.by, options.depth),
            queues: Queues::default(),
            in_flight: VecDeque::new(),
            head: Lba::default(),
            holder: None,
            busy_until: Instant::EPOCH,
            finished: Instant::EPOCH,
            latest: Instant::EPOCH,
            live: Vec::new(),
            places: Vec::new(),
            servers: Servers::default(),
            entered: Vec::new(),
            demoted: Vec::new(),
            eased: Instant::EPOCH,
            carry_over: Vec::new(),
            meter: Meter::unknown(),
            paid: 0,
            scratch: Scratch::default(),
            arrivals: 0,
            counts: Counts::default(),
        }
    }

    /// True where `cost` may be spent now.
    pub(crate) fn slack_covers(&mut self, now: Instant, cost: u64) -> bool {
        if self.is_beyond_odds(cost) {
            return false;
        }
        let cost = bounded(cost);
        let free_at = self.free_at(now).as_nanos();
        if self.slack_least(free_at) >= cost {
            return true;
        }
        if self.owes(now) {
            return false;
        }
        if let Some(critical) = self.meter.critical.filter(|it| it.deadline > free_at) {
            self.pay(now, (self.live.len() + self.servers.pieces().len()) as u64);
            let due = self.due(false);
            let difference = self.exact(now).difference(critical.deadline, due);
            let now = now.as_nanos();
            self.meter.critical =
                difference.map(|difference| Critical { difference, free_at, now, ..critical });
            if difference.is_some_and(|difference| difference < cost) {
                return false;
            }
        }
        self.compute(now, cost)
    }

    /// The slack that ends a run of requests under contract; zero where best effort goes
    /// whenever the slack covers it.
    pub(crate) fn burst(&self) -> Duration {
        self.burst_of(self.options.burst)
    }

    pub(crate) fn burst_of(&self, burst: Duration) -> Duration {
        let burst_requests = self.options.burst_requests;
        let longest = self.tasks.blocking(Duration::ZERO);
        let requests = longest.as_nanos().saturating_mul(burst_requests);
        if burst.is_zero() { burst } else { burst.max(Duration::from_nanos(requests)) }
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
        let is_low = fresh.is_some_and(|it| it.difference_at(free_at) < bounded(threshold));
        !is_low && self.slack_covers(now, threshold - threshold / 4)
    }

    /// True where `cost` may be spent as far as deadlines before `by` go.
    pub(crate) fn slack_covers_before(&mut self, now: Instant, cost: u64, by: Instant) -> bool {
        let cost = bounded(cost);
        if self.meter.least(self.free_at(now).as_nanos()) >= cost {
            return true;
        }
        if self.nothing_is_due_before(now, by) {
            return true;
        }
        // Not to know would be safe, but would keep what is promised from a disk that works
        // on several commands at once: these computations are neither refused nor paid for.
        let mut scratch = ::core::mem::take(&mut self.scratch);
        self.collect_due(&mut scratch.due, false);
        let slack = self.exact(now).slack(cost, Some(by.as_nanos()), &mut scratch);
        self.scratch = scratch;
        slack.is_some_and(|slack| slack >= cost)
    }

    /// Nothing under contract waits that is due before `by`, and what is still to be released
    /// cannot be: no task has so short a deadline. (Budgets of servers are not looked at.)
    fn nothing_is_due_before(&self, now: Instant, by: Instant) -> bool {
        self.servers.pieces().is_empty()
            && self.in_flight.iter().all(|flight| flight.rest.commands == 0)
            && self.queues.ready_first().is_none_or(|first| first.times.deadline >= by)
            && self
                .tasks
                .shortest_deadline()
                .is_none_or(|shortest| now.saturating_add(shortest) >= by)
    }

    /// The slack was looked for so often of late, among so many tasks, that it is not
    /// looked for now: what is not known counts as nothing, which is safe.
    fn owes(&self, now: Instant) -> bool {
        self.paid > now.as_nanos()
    }

    /// A computation has looked at so much.
    pub(crate) fn pay(&mut self, now: Instant, visits: u64) {
        if self.live.len() > SLACK_FREE_TASKS {
            let since = now.as_nanos().saturating_sub(SLACK_CREDIT.as_nanos());
            self.paid = self.paid.max(since) + visits * SLACK_VISIT.as_nanos();
        }
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
        let burst = bounded(self.options.burst.max(self.options.reserve).as_nanos());
        let enough = cost.max(burst).saturating_mul(SLACK_BURSTS);
        let mut scratch = ::core::mem::take(&mut self.scratch);
        self.collect_due(&mut scratch.due, false);
        let answer = self.exact(now).covers(cost, enough, &mut scratch);
        let visits = scratch.visits;
        self.scratch = scratch;
        self.pay(now, visits);
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

    pub(super) fn free_at(&self, now: Instant) -> Instant {
        now.max(self.busy_until)
    }

    /// The same where the host may still be about the last command.
    fn free_after_gap(&self, now: Instant) -> Instant {
        let is_new = self.finished == Instant::EPOCH;
        let host = if is_new { now } else { self.finished.saturating_add(self.options.gap) };
        self.free_at(now).max(host)
    }

    /// How long a command of this bound keeps others from beginning.
    pub(crate) fn with_gap(&self, bound: Duration) -> Duration {
        bound.saturating_add(self.options.gap).min(BOUND_MAX)
    }

    pub(super) fn exact(&self, now: Instant) -> Exact<'_> {
        Exact {
            live: [&self.live, self.servers.pieces()],
            share: self.tasks.share_by_deadlines().0,
            now: now.as_nanos(),
            free_at: self.free_at(now).as_nanos(),
        }
    }

    /// The same at any instant, not only where the disk may be given a command.
    pub(super) fn exact_any_time(&self, now: Instant) -> Exact<'_> {
        Exact { free_at: self.free_after_gap(now).as_nanos(), ..self.exact(now) }
    }

    /// Nothing that was released waits, and disk and host are done: what the offline test
    /// assumes.
    pub(super) fn is_at_rest(&self, now: Instant) -> bool {
        let is_idle = self.in_flight.is_empty() && self.queues.ready_first().is_none();
        is_idle && self.free_after_gap(now) <= now
    }

    /// Work that is there: what waits, what is left of what the disk has, and what may come
    /// into containers. `moved`: what has the heads is to lose them to one that is not charged
    /// for it, since its deadline is brought forward.
    fn due(&self, moved: bool) -> impl Iterator<Item = Due> {
        let of = |request: &Waiting, cost: Duration| Due {
            deadline: request.times.deadline.as_nanos(),
            cost: cost.as_nanos(),
        };
        let left = self.in_flight.iter().filter(|flight| flight.rest.commands > 0);
        let left = left.map(|flight| (self.queues.at(flight.slot), flight.rest));
        let left = left.filter(|(request, _)| request.is_covered());
        let left = left.map(move |(request, rest)| {
            let resume = if moved { request.resume } else { Duration::ZERO };
            of(request, self.cost_of(&rest).saturating_add(resume))
        });
        let holder = self.holder.filter(|_| moved).and_then(|key| self.queues.get(key));
        let returns = holder.map(move |holder| of(holder, holder.resume));
        self.queues.due().chain(self.servers.rooms()).chain(left).chain(returns)
    }

    /// What is left of a request, with what the host takes after each command.
    pub(super) fn cost_of(&self, rest: &Rest) -> Duration {
        let gaps = self.options.gap.saturating_mul(u64::from(rest.commands));
        rest.bound.saturating_add(gaps).min(BOUND_MAX)
    }

    pub(super) fn collect_due(&self, due: &mut Vec<Due>, moved: bool) {
        due.clear();
        self.due(moved).for_each(|one| due.push(one));
        if !due.is_sorted_by_key(|due| due.deadline) {
            due.sort_unstable_by_key(|due| due.deadline);
        }
    }

    /// The smaller of the slack and `enough`, by the plain walk.
    pub(super) fn slack(&self, now: Instant, enough: i64) -> Option<i64> {
        let mut scratch = Scratch::default();
        self.collect_due(&mut scratch.due, false);
        self.exact_any_time(now).slack(enough, None, &mut scratch)
    }

    /// What the slack is at least whenever nothing under contract waits.
    pub(crate) fn slack_always(&self) -> Duration {
        let admission = self.options.admission;
        let reserve = if admission { self.tasks.left() } else { Duration::ZERO };
        let is_at_odds = admission && self.tasks.has_odds();
        if is_at_odds { reserve } else { reserve.max(self.tasks.slack_least()) }
    }

    /// Longer, with its gap, than what the odds of those that may be late now and then allow to be
    /// in their way (`analysis/odds.rs`): nothing like it begins in the slack while they are there.
    fn is_beyond_odds(&self, cost: u64) -> bool {
        let promised = self.options.admission && self.tasks.has_odds();
        promised && cost > self.tasks.left().as_nanos()
    }

    /// It waits for a server that serves it, sooner or later, out of its budget, as long as
    /// it takes no longer than it says.
    pub(crate) fn has_budget(&self, waiting: &Waiting, bound: Duration) -> bool {
        let Class::Server { task, .. } = waiting.class else { return false };
        bound <= waiting.cost && self.servers.serves(task.index, waiting.cost)
    }

    /// It waits, to be served in the slack, and behind nothing of its flow.
    pub(super) fn waits_for_slack(&self, key: u64) -> bool {
        let waiting = self.queues.get(key).filter(|waiting| !waiting.is_covered());
        waiting.is_some() && self.queues.may_run(key)
    }

    /// True where the slack cannot come to cover `cost` from now on, however little waits
    /// and however soon it is served: were every contract served a moment ago, and nothing
    /// else there, it would be less. (Only streams that are served further ahead of their
    /// contracts than they are now could make it more.) False where that is not known in
    /// bounded work, and where slack is not asked for. Says in `visits` what it looked at.
    pub(crate) fn never_covers(&self, now: Instant, cost: u64, visits: &mut u64) -> bool {
        if !self.options.admission && self.tasks.cannot_be_kept() {
            return false;
        }
        if self.is_beyond_odds(cost) {
            return true;
        }
        let just_served = |live: &Live| live.just_served(now.as_nanos());
        let live: Vec<Live> = self.live.iter().map(just_served).collect();
        let pieces: Vec<Live> = self.servers.pieces().iter().map(just_served).collect();
        let share = self.tasks.share_by_deadlines().0;
        if share >= WHOLE {
            return true;
        }
        let now = now.as_nanos();
        let exact = Exact { live: [&live, &pieces], share, now, free_at: now };
        let mut below = |needed: u64| {
            let mut scratch = Scratch::default();
            let needed = bounded(needed);
            let most = exact.slack(needed, None, &mut scratch);
            *visits += scratch.visits;
            most.is_some_and(|most| most < needed)
        };
        // Where it is too little, that most often shows among the first deadlines.
        let longest = live.iter().chain(&pieces).map(|live| live.period.get()).max();
        below(cost.min(longest.unwrap_or(0) * 4)) || below(cost)
    }

    /// Puts a request where it waits.
    pub(super) fn accept(&mut self, now: Instant, key: u64, request: Request) {
        let Request { class, command } = request;
        let task =
            class.task().map(|id| self.tasks.get(id).expect("a request of a task that has joined"));
        let is_server = class.task().is_some_and(|id| self.servers.knows(id.index));
        let mut times = Times { release: now, deadline: Instant::MAX };
        let (cost, overheads) = match class {
            Class::RealTime(id) => {
                assert!(!is_server, "a request of a stream to a server");
                let task = task.expect("it has one");
                times = self.regulate(now, id, &task);
                let cost = self.kept_for(&task);
                (cost, cost.saturating_sub(task.cost))
            }
            Class::Server { cost, .. } => {
                assert!(is_server, "a request of a server to a stream");
                assert!(!cost.is_zero(), "a request that costs nothing");
                let overheads = self.overheads_in(&task.expect("it has one"));
                (cost.saturating_add(overheads).min(BOUND_MAX), overheads)
            }
            Class::BestEffort { .. } | Class::Background => (Duration::ZERO, Duration::ZERO),
        };
        let resume = task.map_or(Duration::ZERO, |task| task.resume);
        let commands = task.map_or(1, |task| task.commands);
        let gaps = task.map_or(1, |task| task.gaps());
        let period = task.map_or(Duration::ZERO, |task| task.period);
        let swept = task.filter(|task| task.sweep.is_some());
        let in_sweep = swept.map_or(Duration::ZERO, |task| self.tasks.charged(&task).cost);
        let ways = swept.and_then(|task| task.sweep).map_or(Duration::ZERO, |sweep| sweep.ways);
        let beside_ways = in_sweep.saturating_sub(ways);
        let synchronous = class.is_synchronous();
        let (arrival, submitted, promised) = (self.arrivals, now, times.deadline);
        self.arrivals += 1;
        self.latest = self.latest.max(now);
        let waiting = Waiting {
            key,
            arrival,
            submitted,
            class,
            command,
            times,
            cost,
            in_sweep,
            beside_ways,
            overheads,
            begun: false,
            commands,
            gaps,
            resume,
            period,
            synchronous,
            promised,
            over_cost: false,
            long: false,
        };
        self.queues.insert(waiting, now);
        if is_server && self.queues.may_run(key) {
            self.line_up(key);
        }
    }

    /// A request that may run now stands in the line of its server, if it has one.
    fn line_up(&mut self, key: u64) {
        self.push(key);
        let Some(Class::Server { task, .. }) = self.queues.get(key).map(|it| it.class) else {
            return;
        };
        self.servers.fill(task.index, self.latest, &mut self.queues, &mut self.entered);
    }

    pub(super) fn push(&mut self, key: u64) {
        let waiting = self.queues.get(key).expect("it waits");
        let Class::Server { task, .. } = waiting.class else { return };
        self.servers.push(task.index, self.latest, waiting.arrival, key, waiting.cost);
    }

    /// Takes a request out that waits. None where it does not.
    pub(super) fn drop(&mut self, key: u64) -> Option<Waiting> {
        let waiting = self.queues.take(key)?;
        self.holder = self.holder.filter(|&holder| holder != key);
        self.carry_over.retain(|&other| other != key);
        if let Class::Server { task, .. } = waiting.class {
            if waiting.is_real_time() {
                self.servers.refund(task.index, waiting.times, waiting.cost);
            }
            self.took(waiting.class, waiting.arrival, waiting.times);
        }
        if let Some(next) = self.queues.settle(key, waiting.class) {
            self.line_up(next);
        }
        Some(waiting)
    }

    /// A released request under contract costs more than its contract covers. From here on
    /// it is served in slack, and nothing is kept for it.
    pub(crate) fn set_over_cost(&mut self, key: u64) {
        let waiting = *self.queues.get(key).expect("it waits");
        self.carry_over.retain(|&other| other != key);
        if let Class::Server { task, .. } = waiting.class {
            // It leaves its container, and the budget to others.
            self.servers.refund(task.index, waiting.times, waiting.cost);
            self.queues.leave(key);
            self.took(waiting.class, waiting.arrival, waiting.times);
            self.meter = Meter::unknown();
        } else {
            self.meter.served(waiting.times.deadline.as_nanos(), waiting.cost.as_nanos());
            self.queues.set_over_cost(key);
        }
    }

    /// Nothing is set aside any more: another policy may know nothing of that.
    pub(super) fn bring_back(&mut self) {
        self.queues.call_long();
        if self.queues.bring_back(self.latest) {
            self.meter = Meter::unknown();
        }
    }

    /// A request does not wait for its server any more, if it has one.
    fn took(&mut self, class: Class, arrival: u64, times: Times) {
        let now = self.latest;
        let Class::Server { task, .. } = class else { return };
        self.servers.took(task.index, now, arrival, times);
        self.servers.fill(task.index, now, &mut self.queues, &mut self.entered);
    }

    /// What is kept for a request of this task by its deadline: what it costs, with the gap;
    /// nothing where it is served in a sweep, for which time is kept in each cycle, or in slack.
    pub(super) fn kept_for(&self, task: &Task) -> Duration {
        let is_kept = task.sweep.is_none() && task.odds.is_none();
        if is_kept { self.tasks.charged(task).cost } else { Duration::ZERO }
    }

    /// A request of a task that has odds: it may be late now and then.
    pub(crate) fn is_at_odds(&self, waiting: &Waiting) -> bool {
        let Class::RealTime(id) = waiting.class else { return false };
        self.tasks.has_odds() && self.tasks.get(id).is_some_and(|task| task.odds.is_some())
    }

    /// A request for which nothing is kept by its deadline: it is served in a sweep, or in slack.
    pub(super) fn is_served_otherwise(&self, waiting: &Waiting) -> bool {
        self.is_swept(waiting) || self.is_at_odds(waiting)
    }

    /// The same of all requests of a task.
    pub(super) fn is_not_kept(&self, id: TaskId) -> bool {
        self.tasks.get(id).is_some_and(|task| task.sweep.is_some() || task.odds.is_some())
    }

    /// A request of a task that is served in sweeps.
    pub(crate) fn is_swept(&self, waiting: &Waiting) -> bool {
        matches!(waiting.class, Class::RealTime(id) if self.is_in_sweeps(id))
    }

    /// A task whose requests are served in sweeps.
    pub(super) fn is_in_sweeps(&self, id: TaskId) -> bool {
        self.tasks.get(id).is_some_and(|task| task.sweep.is_some())
    }

    /// The regulator.
    pub(super) fn regulate(&mut self, now: Instant, id: TaskId, task: &Task) -> Times {
        let live = &mut self.live[self.places[id.index as usize] as usize];
        let release = now.max(Instant::from_nanos(live.release_next));
        live.release_next = release.saturating_add(task.period).as_nanos();
        Times { release, deadline: release.saturating_add(task.deadline) }
    }

    /// The last request that was let through was not made: it was to be released then.
    pub(super) fn rewind(&mut self, id: TaskId, release: Instant) {
        let live = &mut self.live[self.places[id.index as usize] as usize];
        if live.release_next == (release.as_nanos()).saturating_add(live.period.get()) {
            live.release_next = release.as_nanos();
        }
    }

    /// A task that joins or changes may release its first request only when no other
    /// can be late for it: the state may owe slack that was given away under the
    /// other set. False where no such time is found in bounded work, or where
    /// others are late already.
    pub(super) fn delay_first(&mut self, now: Instant, id: TaskId) -> bool {
        if self.is_at_rest(now) {
            return true;
        }
        let deadline = self.tasks.get(id).expect("it has joined").deadline.as_nanos();
        let first = self.next_release(id).max(now);
        for attempt in 0..DELAYS_MAX {
            let mut scratch = ::core::mem::take(&mut self.scratch);
            self.collect_due(&mut scratch.due, true);
            let answer = self.exact_any_time(now).covers(0, 0, &mut scratch);
            self.scratch = scratch;
            match answer {
                Answer::AtLeast(_) | Answer::Exactly { .. } => return true,
                Answer::Below { .. } => {
                    let delay = (deadline / 8).max(1) << attempt;
                    self.hold(id, first.saturating_add(Duration::from_nanos(delay)));
                }
                Answer::Unknown => return false,
            }
        }
        false
    }

    pub(super) fn next_release(&self, id: TaskId) -> Instant {
        if self.servers.knows(id.index) {
            return self.servers.next_release(id.index);
        }
        let place = self.places[id.index as usize];
        Instant::from_nanos(self.live[place as usize].release_next)
    }

    /// Nothing of the task is released before `until`.
    pub(super) fn hold(&mut self, id: TaskId, until: Instant) {
        if self.servers.knows(id.index) {
            self.servers.hold(id.index, until);
        } else {
            let live = &mut self.live[self.places[id.index as usize] as usize];
            live.release_next = live.release_next.max(until.as_nanos());
        }
    }

    pub(super) fn enter(&mut self, id: TaskId, contract: Contract, first: Instant) {
        let (index, charged) = (id.index as usize, self.tasks.charged(&contract.task()));
        if self.places.len() <= index {
            self.places.resize(index + 1, u32::MAX);
        }
        match contract {
            Contract::Stream(_) => {
                self.places[index] = self.live.len() as u32;
                let mut live = Live::new(&charged, id.index, first);
                live.set_cost(self.kept_for(&contract.task()).as_nanos());
                self.live.push(live);
            }
            Contract::Server(task) => {
                self.servers.join(id.index, &self.charged_server(&task), first)
            }
        }
    }

    /// Others are charged for more if this task joins.
    pub(super) fn wants_returns(&self, task: &Task) -> bool {
        self.tasks.wants_returns(task)
    }

    /// What each request of such a server has on top of its own cost.
    pub(super) fn overheads_in(&self, task: &Task) -> Duration {
        self.options.gap.saturating_add(self.tasks.returns().of(task.deadline))
    }

    /// A server's task as its containers count: its longest request may go between the commands
    /// of others.
    pub(super) fn charged_server(&self, task: &Task) -> Task {
        let charged = self.tasks.charged(task);
        let command = task.command.saturating_add(self.overheads_in(task)).min(charged.cost);
        Task { command, ..charged }
    }

    pub(super) fn exit(&mut self, id: TaskId) {
        if self.servers.knows(id.index) {
            self.servers.leave(id.index);
            return;
        }
        let place = ::core::mem::replace(&mut self.places[id.index as usize], u32::MAX) as usize;
        self.live.swap_remove(place);
        if let Some(moved) = self.live.get(place) {
            self.places[moved.index as usize] = place as u32;
        }
    }

    pub(super) fn start(&mut self, now: Instant, key: u64, predict: &dyn Predict) -> Duration {
        let ready_first = self.queues.ready_first().map(|first| first.key);
        let in_slack = ready_first.is_some();
        let slot = self.take_to_start(key);
        self.interrupt(key);
        let request = self.queues.at(slot);
        let may_run = self.queues.is_first_of_flow(request);
        assert!(may_run, "the policy chose a request that may not run: {key}");
        // What goes out of turn was given the time for all of it, and is not interrupted.
        let makes_way =
            self.makes_way(request) && (!request.is_real_time() || ready_first == Some(key));
        let first = self.first_of(predict, request).filter(|_| makes_way);
        let whole = || predict.bound_of(self.head, request.key, &request.command);
        let predicted = first.map_or_else(whole, |first| first.bound);
        let rest = first.map_or(DONE, |first| first.rest);
        let gaps_within = if first.is_some() { 0 } else { predict.gaps_within(request.key) };
        if request.is_real_time() {
            let is_kept = !self.is_swept(request) && !self.is_at_odds(request);
            let over_cost = self.with_gap(predicted) > request.cost && is_kept;
            self.counts.over_cost += u64::from(over_cost);
        } else {
            self.counts.in_slack += u64::from(in_slack);
        }
        if let Some(end) = first.map_or(request.command, |first| first.command).end() {
            self.head = end;
        }
        self.busy_until = self.free_at(now).saturating_add(self.with_gap(predicted));
        let anywhere = self.anywhere(predict, request).filter(|_| rest.commands == 0);
        let started = now;
        self.in_flight.push_back(Flight {
            key,
            slot,
            started,
            predicted,
            rest,
            gaps_within,
            anywhere,
        });
        predicted
    }

    /// As [`Schedule::start_with`](crate::Schedule::start_with). The command that the disk has may
    /// become longer as long as it ends by the deadlines of those that it serves, and as the slack
    /// covers what it takes longer: to all that wait, also to what is added, that is time given
    /// away.
    pub(super) fn start_with(
        &mut self,
        now: Instant,
        key: u64,
        first: u64,
        more: Duration,
    ) -> bool {
        let flight = |core: &Self| core.in_flight.iter().position(|it| it.key == first);
        let at = flight(self).expect("the disk was given this request");
        let Flight { slot, rest, predicted, .. } = self.in_flight[at];
        let is_one = |core: &Self, it: &Waiting| !it.begun && !core.is_at_odds(it);
        let may = rest.commands == 0
            && is_one(self, self.queues.at(slot))
            && self.queues.may_run(key)
            && self.queues.get(key).is_some_and(|waiting| is_one(self, waiting));
        let whole = self.with_gap(predicted.saturating_add(more)).as_nanos();
        let ends = self.busy_until.saturating_add(more);
        let may = may && !self.is_late_at(ends);
        if !may || self.is_beyond_odds(whole) || !self.slack_covers(now, more.as_nanos()) {
            return false;
        }
        let slot = self.take_to_start(key);
        let flight = &mut self.in_flight[at];
        flight.predicted = predicted.saturating_add(more);
        flight.anywhere = flight.anywhere.map(|bound| bound.saturating_add(more));
        self.busy_until = self.busy_until.saturating_add(more);
        // What goes before the first leaves the heads where that does.
        let command = self.queues.at(slot).command;
        if let Some(access) = command.access().filter(|access| access.lba == self.head) {
            self.head = access.end();
        }
        let (started, predicted, anywhere) = (now, Duration::ZERO, Some(Duration::ZERO));
        let added = Flight { key, slot, started, predicted, rest: DONE, gaps_within: 0, anywhere };
        self.in_flight.push_back(added);
        true
    }

    /// A request waits no more: the disk is given it.
    pub(super) fn take_to_start(&mut self, key: u64) -> u32 {
        let slot = self.queues.take_to_start(key).expect("a request that may run waits");
        self.carry_over.retain(|&other| other != key);
        let request = self.queues.at(slot);
        if request.is_covered() {
            self.meter.served(request.times.deadline.as_nanos(), request.cost.as_nanos());
        }
        self.took(request.class, request.arrival, request.times);
        slot
    }

    /// Whether any of those that the disk has is late if it ends then.
    pub(super) fn is_late_at(&self, ends: Instant) -> bool {
        let mut requests = self.in_flight.iter().map(|flight| self.queues.at(flight.slot));
        requests.any(|request| ends > request.promised.min(request.times.deadline))
    }

    pub(super) fn finish(&mut self, ended: EndTime, key: u64) -> (&Waiting, Outcome) {
        let (slot, outcome) = self.take_back_from_disk(ended, key);
        if let Some(next) = self.queues.settle(key, outcome.class) {
            self.line_up(next);
        }
        self.count(&outcome, self.queues.at(slot).is_real_time());
        self.queues.vacate(slot);
        (self.queues.at(slot), outcome)
    }

    /// The disk is done with a command. The slot of its request is not free yet.
    pub(super) fn take_back_from_disk(&mut self, ended: EndTime, key: u64) -> (u32, Outcome) {
        let EndTime { earliest, latest } = ended;
        let at = self.in_flight.iter().position(|flight| flight.key == key);
        let flight = at.and_then(|at| self.in_flight.remove(at));
        let Flight { slot, started, predicted, .. } =
            flight.expect("the disk was given this request");
        let actual = earliest.saturating_since(started.max(self.finished));
        self.finished = self.finished.max(latest);
        let overrun = actual.saturating_sub(predicted);
        let left = self.in_flight.iter().map(|flight| self.with_gap(flight.predicted));
        // The disk may have begun the next one as late as that.
        let done_by = left.fold(latest, Instant::saturating_add);
        // After an overrun the others may need all of their bounds still.
        self.busy_until = if overrun.is_zero() { self.busy_until.min(done_by) } else { done_by };
        let request = self.queues.at(slot);
        let outcome = Outcome {
            class: request.class,
            times: Times { deadline: request.promised, ..request.times },
            started,
            predicted,
            actual,
            late_by: earliest.saturating_since(request.promised),
            overrun,
        };
        (slot, outcome)
    }

    fn count(&mut self, outcome: &Outcome, real_time: bool) {
        let counts = &mut self.counts;
        let totals = if real_time { &mut counts.real_time } else { &mut counts.best_effort };
        *totals = Totals {
            requests: totals.requests + 1,
            actual: totals.actual.saturating_add(outcome.actual),
            predicted: totals.predicted.saturating_add(outcome.predicted),
        };
        counts.late += u64::from(!outcome.late_by.is_zero());
        counts.late_max = counts.late_max.max(outcome.late_by);
        self.count_overrun(outcome);
    }

    pub(super) fn count_overrun(&mut self, outcome: &Outcome) {
        let counts = &mut self.counts;
        counts.overruns += u64::from(!outcome.overrun.is_zero());
        counts.overrun_max = counts.overrun_max.max(outcome.overrun);
    }
}
