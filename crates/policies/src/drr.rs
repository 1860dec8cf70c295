//! `drr`: deficit round robin between streams and flows, as in MARS.
//!
//! Every stream, every flow of best effort and the background have a line of their
//! own, served in order of arrival. In each round a line may use a quantum of device
//! time, and what it did not use in the rounds before while it had work: a stream
//! the cost of one request, a flow [`QUANTUM`], the background [`QUANTUM_BACKGROUND`].
//!
//! Promises: everyone is served, whoever else asks for how much; in the long run
//! lines that always have work use the disk in proportion to their quanta. Does not:
//! deadlines count for nothing. Cost: O(log n) per decision where quanta cover
//! requests; a round of the busy lines more for each quantum that is missing.
//! Source: UCSB QoS scheduler, section II.A (Buddhikot et al. 1994; Shreedhar and
//! Varghese 1995).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use sched::TaskId;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Class, Flow};
use sched::{Setting, Settings};
use units::{Duration, Instant};

/// A few requests of 64 KiB on the papers' disks.
const QUANTUM: Duration = Duration::from_millis(50);

/// A tenth of that: background is served, but hardly felt.
const QUANTUM_BACKGROUND: Duration = Duration::from_millis(5);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::time(
        "quantum",
        [Duration::from_millis(1), Duration::from_secs(10), QUANTUM],
        "Device time that each flow of best effort gets in a round.",
    ),
    Setting::time(
        "quantum-background",
        [Duration::from_millis(1), Duration::from_secs(10), QUANTUM_BACKGROUND],
        "Device time that the background gets in a round.",
    ),
];

/// Who has a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Stream(TaskId),
    Flow(Flow),
    Background,
}

#[derive(Clone, Debug, Default)]
struct Line {
    /// Keys by arrival.
    waiting: BTreeMap<u64, u64>,
    deficit: Duration,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Drr {
    /// Lines with work.
    lines: BTreeMap<Source, Line>,
    /// Those lines in the order of their turns.
    turns: VecDeque<Source>,
    /// The first line has got its quantum for this turn.
    dealt: bool,
    quantum: Duration,
    quantum_background: Duration,
}

pub(super) fn source(request: &Waiting) -> Source {
    match request.class {
        Class::RealTime(id) | Class::Server { task: id, .. } => Source::Stream(id),
        Class::BestEffort { flow, .. } => Source::Flow(flow),
        Class::Background => Source::Background,
    }
}

impl Drr {
    pub(super) fn new(values: &Settings) -> Self {
        let (quantum, quantum_background) = (values.time(0), values.time(1));
        Self { quantum, quantum_background, ..Self::default() }
    }

    fn quantum(&self, request: &Waiting) -> Duration {
        match request.class {
            Class::RealTime(_) | Class::Server { .. } => request.cost,
            Class::BestEffort { .. } => self.quantum,
            Class::Background => self.quantum_background,
        }
    }

    /// The first request of a line that may run.
    fn first(&self, source: Source, view: &View<'_>) -> Option<Waiting> {
        let queues = view.queues();
        let mut waiting = self.lines[&source].waiting.values();
        let key = waiting.find(|&&key| queues.may_run(key))?;
        queues.get(*key).copied()
    }

    fn pass(&mut self) {
        self.turns.rotate_left(1);
        self.dealt = false;
    }
}

impl Policy for Drr {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        // Lines in a row that hold only what waits for something in flight.
        let mut stuck = 0;
        while let Some(&source) = self.turns.front()
            && stuck < self.turns.len()
        {
            let Some(request) = self.first(source, view) else {
                stuck += 1;
                self.pass();
                continue;
            };
            stuck = 0;
            let quantum = self.quantum(&request);
            let line = self.lines.get_mut(&source).expect("a line with a turn");
            if !self.dealt {
                line.deficit = line.deficit.saturating_add(quantum);
                self.dealt = true;
            }
            match line.deficit.checked_sub(view.predicted(&request)) {
                Some(left) => {
                    line.deficit = left;
                    self.dropped(&request);
                    return Choice::Start(request.key);
                }
                None => self.pass(),
            }
        }
        Choice::Wait { until: None }
    }

    fn submitted(&mut self, request: &Waiting) {
        let source = source(request);
        if !self.lines.contains_key(&source) {
            self.turns.push_back(source);
        }
        self.lines.entry(source).or_default().waiting.insert(request.arrival, request.key);
    }

    fn dropped(&mut self, request: &Waiting) {
        let source = source(request);
        let Some(line) = self.lines.get_mut(&source) else { return };
        line.waiting.remove(&request.arrival);
        if line.waiting.is_empty() {
            self.lines.remove(&source);
            let at = self.turns.iter().position(|&other| other == source);
            let at = at.expect("every line has a turn");
            self.turns.remove(at);
            self.dealt &= at != 0;
        }
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        state.push(u64::from(self.dealt));
        for line in self.turns.iter().map(|source| &self.lines[source]) {
            state.push(line.deficit.as_nanos());
            state.extend(line.waiting.values());
        }
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
