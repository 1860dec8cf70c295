//! What a scheduling algorithm is: a choice of what goes next.
//!
//! A policy sees the queues, the contracts and the slack, and answers with a
//! request or with patience. All else (release times, deadlines, bounds,
//! accounts) is the schedule's. Those that keep contracts are in `policies/`; all others
//! are in the crate `policies`, one file and one line of its table each.

use crate::admission::Cycle;
use crate::queues::{Queues, Waiting};
use crate::request::{Outcome, Predict};
use crate::schedule::core::Core;
use crate::{Options, TaskId, TaskSet};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use units::{Command, Duration, Instant, Lba};

/// A scheduling algorithm.
pub trait Policy: fmt::Debug + Send + Sync {
    /// What the disk shall do now. Called only when the disk can take a command.
    /// A request that is named here is started, always.
    fn choose(&mut self, view: &mut View<'_>) -> Choice;

    /// The disk works on what it was given, serves one command at a time, and may be given others
    /// beside that, of which it chooses itself: the next of them, where one
    /// [may go beside](View::may_go_beside) the others. What is named here is started, always.
    fn beside(&mut self, _view: &mut View<'_>) -> Option<u64> {
        None
    }

    /// A request has come. After a change of policy, called once for each request
    /// that waits, by arrival.
    fn submitted(&mut self, _request: &Waiting) {}

    /// A request to a server, which has been told of, has entered a container: it is
    /// released and has a deadline from here on ([`Waiting::contract`]).
    fn entered(&mut self, _request: &Waiting) {}

    /// Whether a request of a stream that waits may do `to` instead, within the same cost and at
    /// the times that it has. Where it may, it is dropped and submitted at once.
    fn may_redirect(&self, _request: &Waiting, _to: &Command) -> bool {
        true
    }

    /// A request left the queues without being started.
    fn dropped(&mut self, _request: &Waiting) {}

    /// A request that this or an earlier policy chose is done.
    fn finished(&mut self, _request: &Waiting, _outcome: &Outcome) {}

    /// A task has joined or changed; the static slack may be less than before.
    fn joined(&mut self) {}

    /// A task has left; none of its requests waits any more.
    fn left(&mut self, _task: TaskId) {}

    /// Whether best effort under it starts only where the exact online slack covers it
    /// ([`View::slack_covers`]). Admission then need not set aside the reserve and the
    /// blocking both ([`TaskSet::with_online_slack`]).
    fn has_online_slack(&self) -> bool {
        false
    }

    /// Appends everything that later choices depend on, times relative to `now`:
    /// what a search of all behaviours needs to tell two states apart.
    fn remember(&self, _now: Instant, _state: &mut Vec<u64>) {}

    /// A copy in the same state.
    fn clone_box(&self) -> Box<dyn Policy>;
}

impl Clone for Box<dyn Policy> {
    fn clone(&self) -> Self {
        self.as_ref().clone_box()
    }
}

/// The answer of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Start this waiting request, which may run.
    Start(u64),
    /// Nothing for now. The schedule asks again at every event, at the next
    /// release of a request that waits, and at `until`.
    Wait {
        /// When the answer may change without an event.
        until: Option<Instant>,
    },
}

/// What a policy can see.
pub struct View<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) now: Instant,
    pub(crate) predict: &'a dyn Predict,
}

impl View<'_> {
    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// Where the last command ended.
    pub fn head(&self) -> Lba {
        self.core.head
    }
    /// Whether it matters to the disk where a command lies ([`Options::place_matters`]).
    ///
    /// [`Options::place_matters`]: crate::Options::place_matters
    pub fn place_matters(&self) -> bool {
        self.core.options.place_matters
    }
    /// What waits.
    pub fn queues(&self) -> &Queues {
        &self.core.queues
    }
    /// The contracts.
    pub fn tasks(&self) -> &TaskSet {
        &self.core.tasks
    }
    /// The cycle of the contracts, where they were admitted by cycles: what is promised holds
    /// in cycles of this length. One look at each class of tasks.
    pub fn cycle(&self) -> Option<Cycle> {
        if self.core.options.admission { self.core.tasks.cycle() } else { None }
    }
    /// True for a request of a task that is served in sweeps.
    pub fn is_swept(&self, request: &Waiting) -> bool {
        self.core.is_swept(request)
    }
    /// The released request with the earliest deadline of those that may be late now and then
    /// ([`Odds`](crate::Odds)).
    pub fn first_at_odds(&self) -> Option<Waiting> {
        let of = |one: &&Waiting| self.core.is_at_odds(one);
        self.tasks().has_odds().then(|| self.queues().ready().find(of).copied()).flatten()
    }
    /// The released request with the earliest deadline of those that may not.
    pub fn first_kept(&self) -> Option<Waiting> {
        let of = |one: &&Waiting| !self.core.is_at_odds(one);
        self.queues().ready().find(of).copied()
    }
    /// What a request takes in a sweep at the most, with what the host takes after it: by the
    /// contract under which it came, or by the present one where that says more. What is kept for it
    /// where it is in none.
    pub fn cost_in_sweep(&self, request: &Waiting) -> Duration {
        let task = request.class.task().and_then(|id| self.core.tasks.get(id));
        let present = task.map_or(request.cost, |task| self.core.tasks.charged(&task).cost);
        present.max(request.in_sweep)
    }
    /// By how much a request of a sweep takes longer than its contract covers, wherever the arm
    /// comes from: ways are charged to all requests of a sweep together, and say nothing of one.
    pub fn beyond_sweep(&self, request: &Waiting) -> Duration {
        let task = request.class.task().and_then(|id| self.core.tasks.get(id));
        let covered = task.map_or(request.beside_ways, |task| {
            let ways = task.sweep.map_or(Duration::ZERO, |sweep| sweep.ways);
            let present = self.core.tasks.charged(&task).cost.saturating_sub(ways);
            present.max(request.beside_ways)
        });
        let takes = match request.command.end() {
            Some(end) => self.predicted_from(end, request),
            None => self.predicted(request),
        };
        self.core.with_gap(takes).saturating_sub(covered)
    }
    /// How the schedule is set up.
    pub fn options(&self) -> &Options {
        &self.core.options
    }
    /// How long a run of requests under contract goes on: until so much slack is there.
    /// Zero where best effort goes whenever the slack covers it.
    pub fn burst(&self) -> Duration {
        self.core.burst()
    }
    /// The same, were the schedule set up with this burst; zero stays zero.
    pub fn burst_of(&self, burst: Duration) -> Duration {
        let burst = if self.core.options.burst.is_zero() { Duration::ZERO } else { burst };
        self.core.burst_of(burst)
    }
    /// What the disk holds: each request and the bound on its device time.
    pub fn in_flight(&self) -> impl ExactSizeIterator<Item = (&Waiting, Duration)> {
        let Core { in_flight, queues, .. } = &*self.core;
        in_flight.iter().map(|flight| (queues.at(flight.slot), flight.predicted))
    }
    /// Bound on the device time that is given away for a request, were it started next: with
    /// what another one loses that it interrupts.
    pub fn predicted(&self, request: &Waiting) -> Duration {
        self.with_lost_to(request.key, self.bound_of(request))
    }
    /// The same of the request of this key, whose own bound is known.
    pub(crate) fn with_lost_to(&self, key: u64, bound: Duration) -> Duration {
        bound.saturating_add(self.core.lost_to(key))
    }
    pub(crate) fn bound_of(&self, request: &Waiting) -> Duration {
        self.core.bound_of(self.predict, self.core.head, request)
    }
    /// True where another request waits that has the heads, so that this one would interrupt it.
    pub fn interrupts(&self, request: &Waiting) -> bool {
        self.core.holder.is_some_and(|holder| holder != request.key)
    }
    /// The same with the head at `from`.
    pub fn predicted_from(&self, from: Lba, request: &Waiting) -> Duration {
        self.predict.bound_of(from, request.key, &request.command)
    }
    /// True where a request under contract would take longer than the contract covers: to
    /// start it at its turn would make others late for it. Never where nothing is promised.
    pub fn is_over_cost(&self, request: &Waiting) -> bool {
        let bound = self.core.with_gap(self.bound_of(request));
        !request.begun && bound > request.cost && !self.is_overcommitted()
    }
    /// A released request under contract waits among best effort from here on. It keeps its
    /// deadline, but nothing is kept for it: whoever starts it asks the slack for all of it.
    pub fn set_over_cost(&mut self, key: u64) {
        self.core.set_over_cost(key);
    }
    /// True where best effort may wait for ever: the slack does not always come to its bound,
    /// however the contracts are used. Never where nothing is promised, nor for a request
    /// that a server has the budget for.
    pub fn is_long(&self, request: &Waiting) -> bool {
        self.is_long_at(request, self.bound_of(request))
    }
    /// The same, where the request's own bound is known.
    pub(crate) fn is_long_at(&self, request: &Waiting, bound: Duration) -> bool {
        let bound = self.core.with_gap(bound);
        let has_budget = self.core.has_budget(request, bound);
        bound > self.core.slack_always() && !has_budget && !self.is_overcommitted()
    }
    /// Other best effort passes this request from here on, until [`View::call_long`] or until
    /// it is started ([`Queues::long_from`]).
    pub fn set_long(&mut self, key: u64) {
        self.core.queues.set_long(key);
    }
    /// No best effort is passed by others any more.
    pub fn call_long(&mut self) {
        self.core.queues.call_long();
    }
    /// True where the slack cannot come to cover `cost`, as long as the contracts stay and
    /// no stream runs further ahead of its own.
    pub fn never_covers(&mut self, cost: Duration) -> bool {
        let mut visits = 0;
        let cost = self.core.with_gap(cost).as_nanos();
        let never = self.core.never_covers(self.now, cost, &mut visits);
        self.core.pay(self.now, visits);
        never
    }
    /// The device time that a command is likely to need, started at `at` with the
    /// head at `from`.
    pub fn expected(&self, at: Instant, from: Lba, command: &Command) -> Duration {
        self.predict.expected(at, from, command)
    }
    /// True where the disk, which orders what it has itself, may be given this request too: each
    /// that it has, and this one, ends by its deadline in any order, and the slack covers what
    /// others wait for it.
    pub fn may_go_beside(&mut self, request: &Waiting) -> bool {
        self.core.may_go_beside(self.now, self.predict, request)
    }
    /// True where a command of `cost`, started now, cannot make any request under
    /// contract late.
    pub fn slack_covers(&mut self, cost: Duration) -> bool {
        self.core.slack_covers(self.now, self.core.with_gap(cost).as_nanos())
    }
    /// True where contracts were taken that cannot all be kept, which only happens
    /// without admission: nothing is promised, and best effort that waited for slack
    /// would wait for ever.
    pub fn is_overcommitted(&self) -> bool {
        !self.core.options.admission && self.core.tasks.cannot_be_kept()
    }
    /// True where the slack has grown to about `threshold` (three quarters of it at
    /// least), for a policy that serves requests under contract until it has. Cheap;
    /// may say no for as long as `threshold` when it need not.
    pub fn slack_recovered(&mut self, threshold: Duration) -> bool {
        self.core.slack_recovered(self.now, threshold.as_nanos())
    }
    /// True where a request under contract of `cost` and `deadline` may be given
    /// to a disk that still works on others.
    pub fn slack_covers_before(&mut self, cost: Duration, deadline: Instant) -> bool {
        let cost = self.core.with_gap(cost).as_nanos();
        self.core.slack_covers_before(self.now, cost, deadline)
    }
}
