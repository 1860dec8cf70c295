//! `sweeps`: streams in one sweep over the disk per cycle, all other contracts by deadlines.
//!
//! Cycles begin at instants that are `cycle` apart while the disk has work. At each of them
//! the requests of streams that were released by then are gathered, and served in one sweep,
//! upwards and downwards in turn. Other requests under contract (the log's, those of volumes'
//! contracts) go before, earliest deadline first. Best effort goes between the requests of a sweep
//! within a register, which has what the cycle has left beside all that it may have to serve;
//! all of it is charged for the way back to the sweep, too. Once the sweep is done, requests
//! that were released meanwhile go, then early ones and best effort, where they run no further into
//! the next cycle than is counted there; what does is taken from that one's register. On a disk with a queue one command is there at
//! a time, as soon as there is a contract.
//!
//! A request of the sweep that is to do something else goes on in it where the sweep comes to the
//! new place, behind the next request; otherwise it has to come anew, for the next cycle.
//!
//! What a request of a sweep takes longer than its contract covers (on a slow place of the disk) is the
//! register's, however short the way to it is: ways of the arm are charged to all requests of a
//! sweep together. Where the register does not cover that, it waits among best effort.
//!
//! Promises: a request of a stream that was admitted for sweeps is done within two cycles: it
//! waits for the next one to begin, and is done by its end; all others by their deadlines; everyone
//! of best effort is served, while tasks keep to their contracts, whose request takes no longer than
//! the reserve of admission. Does not: keep streams that were admitted for
//! deadlines with long ways of the arm for each request any cheaper than these; background waits
//! until nothing else does; what takes longer than its contract covers, or than the reserve, waits until
//! neither the cycle nor a deadline suffers, perhaps for
//! ever. A pool gives up reads and writes that wait so, 30 to 60 s
//! after they came, where the contracts will never leave the time for them, and their programs get an
//! error; others wait on. Cost: O(log n)
//! per decision and O(n) for each request of a stream, O(n log n) once a cycle. Source: UCSB QoS scheduler,
//! section III.B, and Clockwise thesis; the bound is that of Gemmell and Christodoulakis 1992 and
//! of Chen, Kandlur and Yu 1993.

use super::beyond;
use super::rest::Rest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::parts::Elevator;
use sched::{Admission, Choice, Policy, Setting, Settings, SweepRule, View};
use units::{Command, Duration, Instant, Lba};

/// With cycles of four seconds: ten streams of 2 MB/s in blocks of 8 MiB have one block in each.
pub(super) const ADMISSION: Admission =
    Admission::Sweeps(SweepRule { cycle: Duration::from_secs(4) });

pub(super) const SETTINGS: &[Setting] = &[Setting::time(
    "cycle",
    [Duration::from_millis(100), Duration::from_secs(60), Duration::from_secs(4)],
    "From one sweep to the next. In a longer cycle more streams fit, each takes more memory (what \
     it moves in two cycles, and two blocks), and begins later. Best is what a block of the \
     streams lasts, or a multiple of that.",
)];

pub(super) fn admits(_: Admission, values: &Settings) -> Admission {
    Admission::Sweeps(SweepRule { cycle: values.time(0) })
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sweeps {
    cycle: Duration,
    /// Requests of the sweep in the order of their places, the next one last.
    sweep: Vec<Turn>,
    /// What was taken out of the sweep last, and where it was: it may come back at once.
    dropped: Option<(Waiting, usize)>,
    /// The way that the next sweep goes.
    downward: bool,
    /// When the next cycle begins, if there is work.
    ends: Instant,
    /// The slack register.
    slack: Duration,
    elevator: Elevator,
    rest: Rest,
}

/// A request in a sweep.
#[derive(Clone, Copy, Debug)]
struct Turn {
    key: u64,
    place: Lba,
}

impl Sweeps {
    pub(super) fn new(values: &Settings) -> Self {
        Self { cycle: values.time(0), ..Self::default() }
    }

    /// A new cycle, from the end of the last one; where the disk had nothing to do for a whole
    /// one, from now.
    fn begin(&mut self, view: &View<'_>) {
        let late = view.now().saturating_since(self.ends);
        let (begins, late) = match late < self.cycle {
            true => (self.ends, late),
            false => (view.now(), Duration::ZERO),
        };
        let ready = view.queues().ready();
        let mut sweep: Vec<&Waiting> = ready
            .filter(|request| request.times.release <= begins && view.is_swept(request))
            .collect();
        sweep.sort_by_key(|request| (request.place(), request.arrival));
        if !self.downward {
            sweep.reverse();
        }
        self.downward = !self.downward;
        self.ends = begins.saturating_add(self.cycle);
        let work: Duration = sweep.iter().map(|request| view.cost_in_sweep(request)).sum();
        // Without contracts in sweeps, nothing is kept for others beside their deadlines.
        let kept = view.cycle().filter(|_| !sweep.is_empty());
        let kept = kept.map_or(Duration::ZERO, |cycle| cycle.others + cycle.sweep.once);
        self.slack = self.cycle.saturating_sub(late + work + kept);
        let turn = |request: &&Waiting| Turn { key: request.key, place: request.place() };
        self.sweep = sweep.iter().map(turn).collect();
    }

    /// Best effort that goes before the next request of the sweep.
    fn within_register(&mut self, view: &mut View<'_>) -> Option<Waiting> {
        let (mut elevator, mut slack) = (self.elevator, self.slack);
        let may = |view: &mut View<'_>, request: &Waiting| {
            let left = slack.checked_sub(self.interruption(view, request));
            let Some(left) = left.filter(|_| deadlines_bear(view, request)) else { return false };
            slack = left;
            true
        };
        let picked = beyond::pick(view, &mut elevator, may, is_long);
        (self.elevator, self.slack) = (elevator, slack);
        picked
    }

    /// The request with the earliest deadline of those that are in no sweep. One that costs more
    /// than its contract covers waits among best effort.
    fn by_deadline(&self, view: &mut View<'_>) -> Option<u64> {
        loop {
            let mut ready = view.queues().ready();
            let other = *ready.find(|request| !view.is_swept(request))?;
            drop(ready);
            if !view.options().admission || !view.is_over_cost(&other) {
                return Some(other.key);
            }
            view.set_over_cost(other.key);
        }
    }

    /// Where the sweep is done, and nothing under contract waits.
    fn idle(&mut self, view: &mut View<'_>) -> Choice {
        let ends = self.ends;
        let until = ends.max(view.now().saturating_add(self.cycle / 8));
        self.rest.choose_of(view, until, |view, request| ends_in_time(view, request, ends))
    }

    /// A request that was released after the sweep began goes when that is done, where it runs no
    /// further into the next cycle than is counted there. Else it is in the sweep of that one; where
    /// it takes longer than its contract covers, it waits among best effort.
    fn released_meanwhile(&self, view: &mut View<'_>) -> Option<u64> {
        let ready: Vec<Waiting> = view.queues().ready().copied().collect();
        for request in ready {
            if ends_in_time(view, &request, self.ends) {
                return Some(request.key);
            }
            if !view.beyond_sweep(&request).is_zero() {
                view.set_over_cost(request.key);
            }
        }
        None
    }

    /// The next request of the sweep; one that takes longer than its contract covers is the
    /// register's beyond that, or waits among best effort.
    fn next_of_sweep(&mut self, view: &mut View<'_>) -> Option<u64> {
        while let Some(Turn { key, .. }) = self.sweep.pop() {
            let Some(request) = view.queues().get(key).copied() else { continue };
            let beyond = match view.cycle() {
                Some(_) => view.beyond_sweep(&request),
                None => Duration::ZERO, // nothing is promised
            };
            if beyond.is_zero() {
                return Some(key);
            }
            if let Some(left) = self.slack.checked_sub(beyond)
                && deadlines_bear(view, &request)
            {
                self.slack = left;
                return Some(key);
            }
            view.set_over_cost(key);
        }
        None
    }

    /// What the sweep loses to a request in front of its next one: its own time, and
    /// the way back.
    fn interruption(&self, view: &View<'_>, request: &Waiting) -> Duration {
        let own = view.predicted(request).saturating_add(view.options().gap);
        let next = self.sweep.last().and_then(|next| view.queues().get(next.key));
        let Some((next, end)) = next.zip(request.command.end()) else {
            let back = view.cycle().map_or(Duration::ZERO, |cycle| cycle.sweep.back);
            return own.saturating_add(back);
        };
        let back = view.predicted_from(end, next);
        own.saturating_add(back.saturating_sub(view.predicted(next)))
    }

    /// The sweep under way comes to `place` no sooner than to `other`.
    fn is_behind(&self, place: Lba, other: Lba) -> bool {
        let is_upward = self.downward;
        if is_upward { place >= other } else { place <= other }
    }

    /// Where in the sweep a request of this place goes: behind all that it comes to no later, and
    /// behind the next one.
    fn turn_of(&self, place: Lba) -> usize {
        let at = self.sweep.partition_point(|turn| !self.is_behind(place, turn.place));
        at.min(self.sweep.len().saturating_sub(1))
    }
}

/// It begins within what the request transfers: it is a part of that, or more of it.
fn is_of_the_same(request: &Waiting, to: &Command) -> bool {
    let (from, end) = (request.place(), request.command.end());
    to.access().is_some_and(|to| from <= to.lba && end.is_some_and(|end| to.lba < end))
}

/// It takes longer than admission counts with for best effort.
fn is_long(view: &View<'_>, request: &Waiting) -> bool {
    let options = view.options();
    let takes = view.predicted(request).saturating_add(options.gap);
    options.admission && !view.tasks().is_empty() && takes > view.tasks().left()
}

/// It runs no further into the next cycle, which begins at `ends`, than is counted there. The
/// register of that cycle is no help: who joins meanwhile takes of it.
fn ends_in_time(view: &mut View<'_>, request: &Waiting, ends: Instant) -> bool {
    let takes = view.predicted(request).saturating_add(view.options().gap);
    let done = view.now().saturating_add(takes);
    let fits = |cycle: sched::Cycle| {
        takes <= cycle.in_the_way || done <= ends.saturating_add(cycle.in_the_way)
    };
    let is_kept = !view.tasks().has_sweeps() || view.cycle().is_none_or(fits);
    is_kept && deadlines_bear(view, request)
}

/// Contracts with deadlines bear it, where it is started now.
fn deadlines_bear(view: &mut View<'_>, request: &Waiting) -> bool {
    let takes = view.predicted(request);
    !is_long(view, request) || view.slack_covers(takes)
}

impl Policy for Sweeps {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        // What the disk holds is in nobody's sum; without contracts that is nobody's concern.
        if view.in_flight().len() > 0 && !view.tasks().is_empty() {
            return Choice::Wait { until: None };
        }
        if self.sweep.is_empty() && view.now() >= self.ends {
            self.begin(view);
        }
        if let Some(key) = self.by_deadline(view) {
            return Choice::Start(key);
        }
        if !self.sweep.is_empty() {
            if let Some(request) = self.within_register(view) {
                return Choice::Start(request.key);
            }
            if let Some(key) = self.next_of_sweep(view) {
                return Choice::Start(key);
            }
        }
        if let Some(key) = self.released_meanwhile(view) {
            return Choice::Start(key);
        }
        let waits = view.queues().ready_first().is_some();
        match self.idle(view) {
            Choice::Wait { until } if waits => {
                // For the next sweep.
                let begins = self.ends.max(view.now().saturating_add(Duration::from_nanos(1)));
                Choice::Wait { until: Some(until.map_or(begins, |until| until.min(begins))) }
            }
            choice => choice,
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        let key = request.key;
        let Some((old, at)) = self.dropped.take().filter(|(old, _)| old.key == key) else { return };
        // One that waits as before, or for other bytes of the same block: its turn stays, since
        // this cycle has room for it and the next one may not have. For another place it has a turn
        // where the sweep comes to that.
        if is_of_the_same(&old, &request.command) {
            self.sweep.insert(at, Turn { key, place: old.place() });
        } else {
            let place = request.place();
            self.sweep.insert(self.turn_of(place), Turn { key, place });
        }
    }

    fn dropped(&mut self, request: &Waiting) {
        self.dropped = self.sweep.iter().position(|turn| turn.key == request.key).map(|at| {
            self.sweep.remove(at);
            (*request, at)
        });
    }

    /// The sweep goes over the disk once: a place where the arm has been waits for the next one.
    /// So does all that is before the next request, and that request itself: best effort in front
    /// of it was charged for the way back to it, and not to another place.
    fn may_redirect(&self, request: &Waiting, to: &Command) -> bool {
        let Some(at) = self.sweep.iter().position(|turn| turn.key == request.key) else {
            return true; // it is gathered by its place
        };
        let Some((next, others)) = self.sweep.split_last() else { return true };
        let place = to.access().map(|access| access.lba);
        let is_ahead = at < others.len() && place.is_some_and(|at| self.is_behind(at, next.place));
        is_ahead || is_of_the_same(request, to)
    }

    fn joined(&mut self) {
        // The register was cut for the smaller set.
        self.slack = Duration::ZERO;
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.elevator.remember(state);
        self.rest.remember(state);
        state.extend([u64::from(self.downward), self.ends.saturating_since(now).as_nanos()]);
        state.push(self.slack.as_nanos());
        state.extend(self.sweep.iter().map(|turn| turn.key));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
