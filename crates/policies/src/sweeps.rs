//! `sweeps`: streams in one sweep over the disk per cycle, all other contracts by deadlines.
//!
//! Cycles begin at instants that are `cycle` apart while the disk has work. At each of them
//! the requests of streams that were released by then are gathered, and served in one sweep,
//! upwards and downwards in turn. Other requests under contract (the log's, those of volumes'
//! contracts) go before, earliest deadline first. Best effort goes between the requests of a sweep
//! within a register, which has what the cycle has left beside all that it may have to serve;
//! all of it is charged for the way back to the sweep, too. Once the sweep is done, requests
//! that were released meanwhile go, then early ones and best effort; what of it runs into the
//! next cycle is taken from that one's register. On a disk with a queue one command is there at
//! a time, as soon as there is a contract.
//!
//! Promises: a request of a stream that was admitted for sweeps is done within two cycles: it
//! waits for the next one to begin, and is done by its end; all others by their deadlines; everyone
//! is served while tasks keep to their contracts. Does not: keep streams that were admitted for
//! deadlines with long ways of the arm for each request any cheaper than these. Cost: O(log n)
//! per decision and O(n) for each request of a stream, O(n log n) once a cycle. Source: UCSB QoS scheduler,
//! section III.B, and Clockwise thesis; the bound is that of Gemmell and Christodoulakis 1992 and
//! of Chen, Kandlur and Yu 1993.

use super::rest::Rest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::parts::Elevator;
use sched::{Admission, Choice, Policy, Setting, Settings, SweepRule, View};
use units::{Duration, Instant};

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
    /// Keys of the sweep, the next one last.
    sweep: Vec<u64>,
    /// What was taken out of the sweep last, and where it was: it may come back at once.
    dropped: Option<(u64, usize)>,
    downward: bool,
    /// When the next cycle begins, if there is work.
    ends: Instant,
    /// The slack register.
    slack: Duration,
    elevator: Elevator,
    rest: Rest,
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
        self.sweep = sweep.iter().map(|request| request.key).collect();
    }

    /// Best effort that goes before the next request of the sweep.
    fn within_register(&mut self, view: &View<'_>) -> Option<Waiting> {
        let pick = self.elevator.pick(view)?;
        self.slack = self.slack.checked_sub(self.interruption(view, &pick.request))?;
        self.elevator.took(&pick);
        Some(pick.request)
    }

    /// What the sweep loses to a request in front of its next one: its own time, and
    /// the way back.
    fn interruption(&self, view: &View<'_>, request: &Waiting) -> Duration {
        let own = view.predicted(request).saturating_add(view.options().gap);
        let next = self.sweep.last().and_then(|&key| view.queues().get(key));
        let Some((next, end)) = next.zip(request.command.end()) else {
            let back = view.cycle().map_or(Duration::ZERO, |cycle| cycle.sweep.back);
            return own.saturating_add(back);
        };
        let back = view.predicted_from(end, next);
        own.saturating_add(back.saturating_sub(view.predicted(next)))
    }
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
        if let Some(other) = view.queues().ready().find(|request| !view.is_swept(request)) {
            return Choice::Start(other.key);
        }
        if !self.sweep.is_empty() {
            if let Some(request) = self.within_register(view) {
                return Choice::Start(request.key);
            }
            return Choice::Start(self.sweep.pop().expect("it is not empty"));
        }
        match view.queues().ready_first() {
            Some(ready) => Choice::Start(ready.key),
            None => self.rest.choose(view),
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        // One that waits as before, for less of the same block or for another place: its turn
        // stays, since this cycle has room for it and the next one may not have.
        if let Some((_, at)) = self.dropped.take().filter(|(key, _)| *key == request.key) {
            self.sweep.insert(at.min(self.sweep.len()), request.key);
        }
    }

    fn dropped(&mut self, request: &Waiting) {
        self.dropped = self.sweep.iter().position(|&key| key == request.key).map(|at| {
            self.sweep.remove(at);
            (request.key, at)
        });
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
        state.extend(&self.sweep);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
