//! `ucsb`: the meta-scheduler of the UCSB QoS scheduler: priorities above and below a
//! best-effort scheduler that is left as it is.
//!
//! Requests under contract, those of servers among them while there is budget, are of high
//! priority, in order of release; then best effort, in
//! the order of the kernel's `deadline`; background is of low priority. A slack
//! register, which a program would set every cycle, lets best effort go before
//! requests under contract while it lasts. Where contracts were admitted by cycles it is
//! set to what the cycle, the shortest deadline, has left; else to the static slack, each
//! shortest period.
//!
//! Promises: requests of a set that was admitted by cycles are done within one, also beside
//! commands that began on an idle disk: the sum of the costs of all tasks, what may be in
//! the way, and two registers fit into it (a register is set anew once in the time that a
//! request waits; the inequality of section III.B leaves that, and what is in the way, to
//! the part that is not for contracts); everyone of best effort is served,
//! while tasks keep to their contracts, whose request takes no longer than admission counts with.
//! Does not: background can wait for ever; priorities are no deadlines, so that requests of a set that
//! was admitted for its deadlines can be late; what takes longer than admission counts with waits
//! for the register to cover what is beyond, perhaps for ever,
//! unless somebody insists, as a pool does for its log. A low-priority request
//! is one command here: whoever submits it cuts it into chunks. Cost: O(log n) per decision, O(tasks) once a
//! cycle. Source: UCSB QoS scheduler, sections III.A and III.B.

use super::beyond;
use super::deadline::{self, Deadline};
use super::ranked::Ranked;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use sched::Class;
use sched::Waiting;
use sched::{Admission, Choice, CycleRule, Policy, Setting, Settings, View};
use units::{Duration, Instant};

/// A request waits for one of each other task at the most; the register is set anew once in
/// that time, so that two may be spent.
pub(super) const ADMISSION: Admission = Admission::Cycles(RULE);
const RULE: CycleRule = CycleRule::new(1, 2);

/// No cycle is longer, and nothing that is given away in one.
const LONGEST: Duration = Duration::from_secs(86_400);

pub(super) const CYCLE: Setting = Setting::time(
    "cycle",
    [Duration::from_millis(10), LONGEST, LONGEST],
    "A cycle is no longer than this, also where the deadlines of the contracts would bear it: a \
     shorter one serves best effort more often, and holds fewer contracts.",
);

pub(super) const REGISTER_MOST: Setting = Setting::time(
    "register-most",
    [Duration::ZERO, LONGEST, LONGEST],
    "No more than this is given to best effort in a cycle before requests under contract, also \
     where contracts leave more.",
);

pub(super) const SETTINGS: &[Setting] = &[
    CYCLE,
    Setting::time(
        "register-least",
        [Duration::ZERO, Duration::from_secs(10), Duration::ZERO],
        "The slack register is at least this in each cycle, and at least the pool's reserve. \
         Contracts are refused that do not leave it.",
    ),
    REGISTER_MOST,
];

pub(super) fn admits(_: Admission, values: &Settings) -> Admission {
    let [length_max, register_least, register_most] = [0, 1, 2].map(|at| values.time(at));
    Admission::Cycles(CycleRule { length_max, register_least, register_most, ..RULE })
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ucsb {
    high: Ranked<Instant>,
    best_effort: Deadline,
    /// Goes next of the best effort, once the register covers it or nothing is above.
    next: Option<Waiting>,
    /// Best effort that the register does not cover even where nothing is above, by arrival: others
    /// pass it.
    long: BTreeMap<u64, Waiting>,
    /// The next one of those that is looked at arrived at this or later.
    from: u64,
    register: Duration,
    ends: Instant,
    has_joined: bool,
    length_max: Duration,
    register_most: Duration,
}

impl Ucsb {
    pub(super) fn new(values: &Settings) -> Self {
        let [length_max, register_least, register_most] = [0, 1, 2].map(|at| values.time(at));
        let register_most = register_most.max(register_least);
        let best_effort = Deadline::new(&Settings::of(deadline::SETTINGS));
        Self { best_effort, length_max, register_most, ..Self::default() }
    }

    fn set_register(&mut self, view: &View<'_>) {
        let (register, length) = match view.cycle() {
            Some(cycle) => (cycle.register, Some(cycle.length)),
            // As in the paper, where a program sets it.
            None => {
                let length = view.tasks().iter().map(|(_, task)| task.period).min();
                let length = length.map(|length| length.min(self.length_max));
                (view.tasks().slack().min(self.register_most), length)
            }
        };
        self.register = register;
        self.ends = length.map_or(Instant::MAX, |length| view.now().saturating_add(length));
    }

    fn starts(&mut self, request: &Waiting) -> Choice {
        self.dropped(request);
        Choice::Start(request.key)
    }

    /// The register was set for a smaller set. It is empty until the cycle ends: set anew
    /// with each of many contracts it could be spent as often.
    fn shorten(&mut self, view: &View<'_>) {
        self.register = Duration::ZERO;
        self.ends = match view.cycle() {
            Some(cycle) => self.ends.min(view.now().saturating_add(cycle.length)),
            None => Instant::EPOCH,
        };
    }

    fn high_priority(&mut self, view: &mut View<'_>) -> Option<u64> {
        self.high.release(view.now());
        while let Some((key, _)) = self.high.first() {
            let request = *view.queues().get(key).expect("it waits");
            if !view.is_over_cost(&request) || view.cycle().is_none() {
                return Some(key);
            }
            // It costs more than its contract covers: it is best effort, and late alone.
            self.high.remove(&request, request.times.release);
            view.set_over_cost(key);
            self.best_effort.insert(&request);
        }
        None
    }

    /// Best effort where nothing under contract waits: what is beyond what a cycle counts for it
    /// is the register's, or it is set aside.
    fn unhindered(&mut self, view: &mut View<'_>) -> Option<u64> {
        let long = self.long.range(self.from..).next().or(self.long.first_key_value());
        if let Some((&arrival, &long)) = long {
            self.from = arrival + 1;
            if beyond::pays(view, &long, &mut self.register) {
                self.long.remove(&arrival);
                return Some(long.key);
            }
            // What joins and leaves takes that back.
            view.set_long(long.key);
        }
        for _ in 0..beyond::TRIES {
            let next = self.next.take().or_else(|| self.best_effort.take(view))?;
            if beyond::pays(view, &next, &mut self.register) {
                return Some(next.key);
            }
            self.set_long(view, next);
        }
        None
    }

    /// Sets it aside, so that others pass it, and tells so.
    fn set_long(&mut self, view: &mut View<'_>, request: Waiting) {
        self.long.insert(request.arrival, request);
        view.set_long(request.key);
    }
}

impl Policy for Ucsb {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        if core::mem::take(&mut self.has_joined) {
            self.shorten(view);
        }
        if view.now() >= self.ends {
            self.set_register(view);
        }
        let high = self.high_priority(view);
        if high.is_none() {
            if let Some(key) = self.unhindered(view) {
                return Choice::Start(key);
            }
            let early = view.queues().early_first().into_iter();
            let rest = early.chain(view.queues().background().take(beyond::TRIES)).copied();
            let rest: Vec<Waiting> = rest.collect();
            let waits = !rest.is_empty() || !self.long.is_empty();
            let register = &mut self.register;
            return match rest.into_iter().find(|one| beyond::pays(view, one, register)) {
                Some(request) => self.starts(&request),
                None => Choice::Wait { until: Some(self.ends).filter(|_| waits) },
            };
        }
        self.next = self.next.take().or_else(|| self.best_effort.take(view));
        if let Some(next) = self.next {
            let cost = view.predicted(&next).saturating_add(view.options().gap);
            if let Some(left) = self.register.checked_sub(cost) {
                (self.register, self.next) = (left, None);
                return Choice::Start(next.key);
            }
            if !beyond::uncounted(view, &next).is_zero() {
                self.set_long(view, next);
                self.next = None;
            }
        }
        let key = high.expect("one is above");
        self.starts(&view.queues().get(key).copied().expect("what is chosen waits"))
    }

    fn submitted(&mut self, request: &Waiting) {
        match request.class {
            _ if request.is_real_time() => self.high.insert(request, request.times.release),
            Class::RealTime(_) => {}
            Class::BestEffort { .. } | Class::Server { .. } => self.best_effort.insert(request),
            Class::Background => {}
        }
    }

    fn entered(&mut self, request: &Waiting) {
        self.dropped(request);
        self.high.insert(request, request.times.release);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.high.remove(request, request.times.release);
        self.best_effort.remove(request);
        self.long.remove(&request.arrival);
        self.next = self.next.filter(|next| next.key != request.key);
    }

    fn joined(&mut self) {
        self.has_joined = true;
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.high.remember(state);
        self.best_effort.write_state(state);
        state.extend(self.has_joined.then_some(1));
        state.extend(self.next.map(|next| next.key));
        state.extend(self.long.values().map(|long| long.key));
        state.extend([self.register, self.ends.saturating_since(now)].map(Duration::as_nanos));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
