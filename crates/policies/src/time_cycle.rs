//! `time-cycle`: one sweep of requests under contract per cycle, a reserved gap for
//! interactive ones, and a register of slack for best effort.
//!
//! Where contracts were admitted by cycles, a cycle is half of the shortest deadline; else
//! it is the shortest period. At its beginning the requests that are released
//! are gathered and served in one sweep. In front of them may go: a synchronous
//! request within the bubble slot, a time of the schedule's reserve that each cycle
//! keeps free; and any best effort within the slack register, which holds what the
//! cycle has left beside its requests and the slot. Both are charged for the way back
//! to the sweep, too. Once the sweep is done, requests
//! released meanwhile go, then all else; what of it runs into the next cycle is
//! taken from that one's register.
//!
//! Promises: requests that are there when a cycle begins are done before it ends, if
//! the cycle is at least the sum of their costs, the slot, and the longest other
//! command, which may run into it (the inequality of section III.B leaves that out); so
//! requests of a set that was admitted by cycles are done within two, whenever they come;
//! everyone of best effort is served, while tasks keep to their contracts, whose request takes no
//! longer than admission counts with. Does not: background waits until nothing else does;
//! a request released within a cycle may wait for the next, so that those of a set
//! that was admitted for its deadlines can be late; what takes longer than admission counts with
//! waits for the register to cover what is beyond, perhaps for ever. A pool gives up reads and writes that wait so, 30 to 60 s
//! after they came, where the contracts will never leave the time for them, and their programs get an
//! error; others wait on. Cost: O(log n) per decision, and those of servers that wait
//! longer than an interactive one; O(n log n) once a cycle. Source: UCSB QoS scheduler, section III.B.

use super::beyond;
use super::rest::Rest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::parts::Elevator;
use sched::{Admission, Choice, CycleRule, Policy, Setting, Settings, View};
use units::{Duration, Instant};

/// A request waits for the cycle under way, and is done in the next; what is given away in
/// each is known when it begins.
pub(super) const ADMISSION: Admission = Admission::Cycles(RULE);
const RULE: CycleRule = CycleRule::new(2, 1);

pub(super) const SETTINGS: &[Setting] = &[
    super::ucsb::CYCLE,
    Setting::time(
        "bubble-slot",
        [Duration::ZERO, Duration::from_secs(10), Duration::ZERO],
        "Time of each cycle that is kept for interactive requests; where the pool's reserve is \
         more, that. Contracts are refused that do not leave it.",
    ),
    super::ucsb::REGISTER_MOST,
];

/// The slot is a part of the cycle that contracts leave over.
pub(super) fn admits(_: Admission, values: &Settings) -> Admission {
    let (length_max, register_least) = (values.time(0), values.time(1));
    Admission::Cycles(CycleRule { length_max, register_least, ..RULE })
}

#[derive(Clone, Debug, Default)]
pub(super) struct TimeCycle {
    /// Keys of the sweep, the next one last.
    sweep: Vec<u64>,
    downward: bool,
    ends: Instant,
    /// A contract has joined: the cycle under way may be longer than it bears.
    has_joined: bool,
    /// What is left of the bubble slot.
    bubble: Duration,
    /// The slack register.
    slack: Duration,
    elevator: Elevator,
    rest: Rest,
    length_max: Duration,
    slot: Duration,
    slack_most: Duration,
}

impl TimeCycle {
    pub(super) fn new(values: &Settings) -> Self {
        let [length_max, slot, slack_most] = [0, 1, 2].map(|at| values.time(at));
        Self { length_max, slot, slack_most, ..Self::default() }
    }

    /// A new cycle, from the end of the last one where that was just now.
    fn begin(&mut self, view: &mut View<'_>) {
        beyond::set_aside(view);
        // Without an admission by cycles, as the paper has it: requests come with the cycle.
        let cycle = view.cycle();
        let periods = view.tasks().iter().map(|(_, task)| task.period);
        let Some(length) = cycle.map(|cycle| cycle.length).or_else(|| periods.min()) else {
            return;
        };
        let length = length.min(self.length_max);
        // Later than that the disk was idle, and nothing of the cycle is lost.
        let late_max = cycle.map_or(length, |cycle| cycle.in_the_way);
        let late = view.now().saturating_since(self.ends);
        let late = if late <= late_max { late } else { Duration::ZERO };
        let late = if late < length { late } else { Duration::ZERO };
        let mut sweep: Vec<_> = view.queues().ready().collect();
        sweep.sort_by_key(|request| (request.place(), request.arrival));
        if !self.downward {
            sweep.reverse();
        }
        let work: Duration = sweep.iter().map(|request| request.cost).sum();
        // What a disk with a queue still has of the last cycle.
        let gap = view.options().gap;
        let held = view.in_flight().map(|(_, bound)| bound.saturating_add(gap));
        let held = held.fold(Duration::ZERO, Duration::saturating_add);
        self.sweep = sweep.iter().map(|request| request.key).collect();
        self.downward = !self.downward;
        self.ends = view.now().saturating_add(length).saturating_sub(late);
        self.bubble = view.options().reserve.max(self.slot);
        let left = length.saturating_sub(late + held + work + self.bubble);
        self.slack = left.min(self.slack_most);
    }

    /// Best effort that goes before the sweep.
    fn before_sweep(&mut self, view: &mut View<'_>) -> Option<Waiting> {
        // What servers may ask for waits there, too; it is in the sweep, and would use up the slot.
        let interactive =
            view.queues().best_effort_by_age(true).find(|request| !request.is_real_time()).copied();
        if let Some(interactive) = interactive
            && let Some(left) = self.bubble.checked_sub(self.interruption(view, &interactive))
        {
            self.bubble = left;
            return Some(interactive);
        }
        let (mut elevator, mut slack) = (self.elevator, self.slack);
        let may = |view: &mut View<'_>, request: &Waiting| {
            let left = slack.checked_sub(self.interruption(view, request));
            left.inspect(|left| slack = *left).is_some()
        };
        let picked = beyond::pick(view, &mut elevator, may, |view, one| {
            !beyond::uncounted(view, one).is_zero()
        });
        (self.elevator, self.slack) = (elevator, slack);
        picked
    }

    /// What the sweep loses to a request in front of its next one: its own time, and
    /// the way back. Without the second a sweep that was bounded as a whole (see
    /// [`SweepCosts`](sched::SweepCosts)) would end late.
    fn interruption(&self, view: &View<'_>, request: &Waiting) -> Duration {
        let own = view.predicted(request).saturating_add(view.options().gap);
        let next = self.sweep.last().and_then(|&key| view.queues().get(key));
        let Some((next, end)) = next.zip(request.command.end()) else { return own };
        let back = view.predicted_from(end, next);
        own.saturating_add(back.saturating_sub(view.predicted(next)))
    }
}

impl Policy for TimeCycle {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        if core::mem::take(&mut self.has_joined) && view.cycle().is_some() {
            self.ends = Instant::EPOCH;
        }
        if self.sweep.is_empty() && view.now() >= self.ends {
            self.begin(view);
        }
        if !self.sweep.is_empty() {
            if let Some(request) = self.before_sweep(view) {
                self.dropped(&request); // A server's may be in the sweep too.
                return Choice::Start(request.key);
            }
            return Choice::Start(self.sweep.pop().expect("it is not empty"));
        }
        match beyond::ready_first(view) {
            Some(ready) => Choice::Start(ready.key),
            None => {
                let (ends, slack) = (self.ends, &mut self.slack);
                self.rest.choose_of(view, ends, |view, one| beyond::pays(view, one, slack))
            }
        }
    }

    fn dropped(&mut self, request: &Waiting) {
        self.sweep.retain(|&key| key != request.key);
    }

    fn joined(&mut self) {
        // Register and slot were cut for the smaller set.
        (self.bubble, self.slack) = (Duration::ZERO, Duration::ZERO);
        self.has_joined = true;
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.elevator.remember(state);
        self.rest.remember(state);
        state.extend([u64::from(self.downward), self.ends.saturating_since(now).as_nanos()]);
        state.extend([self.bubble, self.slack].map(Duration::as_nanos));
        state.extend(self.has_joined.then_some(1));
        state.extend(&self.sweep);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
