//! `abiss`: the ABISS elevator: priorities, guaranteed places in a bounded queue, and
//! streams that fetch together.
//!
//! Four priorities: requests under contract, synchronous and asynchronous best effort,
//! background. The elevator takes in [`SLOTS`] requests, of which each priority has
//! [`GUARANTEED`]; the others are whoever's comes first, and who finds no place waits
//! outside, by arrival. Inside, a higher priority goes before all lower ones, upward
//! sweeps within each. A request is upgraded with `Schedule::upgrade`.
//!
//! So as not to break into best effort for every stream, released requests under
//! contract are held until a stream has more than [`THRESHOLD`] of them; then those of
//! all streams with half as much go together. None is held on a disk that nobody else
//! wants, nor past half of its time.
//!
//! Promises: a request under contract enters the queue at once while fewer than its
//! guaranteed places are in use, and waits for lower priorities only as a stream is
//! held. Does not: a place is no time: a stream's window, asked for ahead, goes in one batch,
//! and a stream that comes a moment later has its place and is late, so that no admission by
//! places is a promise; lower priorities can wait
//! for ever behind higher ones. Cost: O(log n) per decision, O(tasks + n log n) when
//! streams are let go. Source: ABISS, sections 3.2 to 3.4.

use super::c_scan::CScan;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use sched::Class;
use sched::TaskId;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Setting, Settings};
use units::{Bytes, Command, Instant};

/// Requests in the elevator; ABISS measured with 200.
const SLOTS: u64 = 200;
/// Of these, only for each priority, highest first.
const GUARANTEED: [u64; 4] = [64, 16, 8, 4];
/// The batching threshold: ten pages.
const THRESHOLD: Bytes = Bytes::kib(40);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::number(
        "slots",
        [4, 65_536, SLOTS],
        "Requests that the elevator takes in; never fewer than are guaranteed in all.",
    ),
    Setting::number(
        "guaranteed-contract",
        [1, 16_384, GUARANTEED[0]],
        "Of these, only for requests under contract.",
    ),
    Setting::number(
        "guaranteed-synchronous",
        [1, 16_384, GUARANTEED[1]],
        "Of these, only for synchronous best effort.",
    ),
    Setting::number(
        "guaranteed-asynchronous",
        [1, 16_384, GUARANTEED[2]],
        "Of these, only for asynchronous best effort.",
    ),
    Setting::number(
        "guaranteed-background",
        [1, 16_384, GUARANTEED[3]],
        "Of these, only for background.",
    ),
    Setting::size(
        "threshold",
        [Bytes::ZERO, Bytes::mib(64), THRESHOLD],
        "A stream with more requests than this lets all streams go that have half as much.",
    ),
];

/// Priority of requests under contract, an index.
const CONTRACT: usize = 0;

fn priority(request: &Waiting) -> usize {
    match request.class {
        Class::RealTime(_) => CONTRACT,
        Class::BestEffort { synchronous: true, .. } | Class::Server { synchronous: true, .. } => 1,
        Class::BestEffort { .. } | Class::Server { .. } => 2,
        Class::Background => 3,
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Abiss {
    /// By priority: what may be served. Of those under contract: what was let go.
    inside: [CScan; 4],
    /// Requests in the elevator, by priority.
    taken: [usize; 4],
    /// By priority: what found no place, by arrival.
    outside: [BTreeMap<u64, Waiting>; 4],
    /// In the elevator, not yet let go.
    held: BTreeMap<TaskId, Held>,
    slots: usize,
    guaranteed: [usize; 4],
    threshold: Bytes,
}

/// Requests of one stream, by arrival.
#[derive(Clone, Debug, Default)]
struct Held {
    requests: BTreeMap<u64, Waiting>,
    bytes: Bytes,
}

fn bytes(request: &Waiting) -> Bytes {
    match request.command {
        Command::Transfer(access) | Command::Forced(access) => access.len,
        Command::Flush | Command::Seek(_) => Bytes::ZERO,
    }
}

impl Abiss {
    pub(super) fn new(values: &Settings) -> Self {
        let guaranteed = [1, 2, 3, 4].map(|at| values.number(at));
        let slots = values.number(0).max(guaranteed.iter().sum());
        Self { slots, guaranteed, threshold: Bytes::new(values.get(5)), ..Self::default() }
    }

    fn has_place(&self, priority: usize) -> bool {
        let over = |(taken, guaranteed): (&usize, usize)| taken.saturating_sub(guaranteed);
        let shared: usize = self.taken.iter().zip(self.guaranteed).map(over).sum();
        let places = self.slots - self.guaranteed.iter().sum::<usize>();
        self.taken[priority] < self.guaranteed[priority] || shared < places
    }

    fn enter(&mut self, request: &Waiting, priority: usize) {
        self.taken[priority] += 1;
        match request.class {
            Class::RealTime(id) => {
                let held = self.held.entry(id).or_default();
                held.requests.insert(request.arrival, *request);
                held.bytes += bytes(request);
            }
            _ => self.inside[priority].insert(request),
        }
    }

    /// Takes a request out of wherever it is. False where it is nowhere here.
    fn remove(&mut self, request: &Waiting, priority: usize) -> bool {
        if self.outside[priority].remove(&request.arrival).is_some() {
            return true;
        }
        let mut found = self.inside[priority].remove(request);
        if let Class::RealTime(id) = request.class
            && let Some(held) = self.held.get_mut(&id)
            && held.requests.remove(&request.arrival).is_some()
        {
            found = true;
            held.bytes -= bytes(request);
            if held.requests.is_empty() {
                self.held.remove(&id);
            }
        }
        self.taken[priority] -= usize::from(found);
        self.admit();
        found
    }

    /// Lets in who waits outside, by arrival, as far as there are places.
    fn admit(&mut self) {
        loop {
            let first = |priority: usize| {
                let (&arrival, _) = self.outside[priority].first_key_value()?;
                self.has_place(priority).then_some((arrival, priority))
            };
            let Some((arrival, priority)) = (0..4).filter_map(first).min() else { return };
            let request = self.outside[priority].remove(&arrival).expect("it is the first");
            self.enter(&request, priority);
        }
    }

    /// Lets streams go: all that are at half the threshold, if one is at it, or is
    /// pressed for time, or if nobody else wants the disk.
    fn batch(&mut self, view: &View<'_>) {
        let pressed = view.queues().ready_first().filter(|request| {
            let half = (request.times.deadline - request.times.release) / 2;
            view.now() >= request.times.release.saturating_add(half)
        });
        let alone = self.inside[1..].iter().all(CScan::is_empty);
        let full = self.held.values().any(|held| held.bytes > self.threshold);
        let due = |id: TaskId| pressed.is_some_and(|first| first.class == Class::RealTime(id));
        if !(alone || full || pressed.is_some()) {
            return;
        }
        let goes =
            |&(&id, held): &(&TaskId, &Held)| alone || held.bytes >= self.threshold / 2 || due(id);
        let going: Vec<TaskId> = self.held.iter().filter(goes).map(|(&id, _)| id).collect();
        for id in going {
            let held = self.held.remove(&id).expect("it is held");
            held.requests.values().for_each(|request| self.inside[CONTRACT].insert(request));
        }
    }
}

impl Policy for Abiss {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        if self.inside[CONTRACT].is_empty() && !self.held.is_empty() {
            self.batch(view);
        }
        for priority in 0..4 {
            if let Some(request) = self.inside[priority].take(view) {
                self.taken[priority] -= 1;
                self.admit();
                return Choice::Start(request.key);
            }
        }
        Choice::Wait { until: None }
    }

    fn submitted(&mut self, request: &Waiting) {
        self.outside[priority(request)].insert(request.arrival, *request);
        self.admit();
    }

    fn dropped(&mut self, request: &Waiting) {
        // One that somebody came to wait for stands where it was put first.
        if !self.remove(request, priority(request)) && request.synchronous {
            self.remove(request, 2);
        }
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.inside.iter().for_each(|inside| inside.write_state(state));
        for held in self.held.values() {
            state.push(u64::MAX);
            state.extend(held.requests.values().map(|request| request.key));
        }
        state.extend(self.outside.iter().flat_map(BTreeMap::values).map(|request| request.key));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
