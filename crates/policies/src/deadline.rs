//! `deadline`: the 2.6 kernel's one-way elevator with expiry times, whoever asks.
//!
//! Reads and writes each stand in two lines, by place and by arrival. Up to
//! [`BATCH`] requests of one direction go upward in a batch. A new batch reads, unless
//! writes have been passed over [`WRITES_STARVED`] times; it begins with the oldest
//! request where that is over its time (500 ms for reads, 5 s for writes) or where
//! nothing is ahead, else goes on upward.
//!
//! Promises: everyone is served. Does not: the expiry times are no deadlines, only
//! where the next batch begins; contracts count for nothing. Cost: O(log n) per
//! decision, and those held back by the order of their flow. Source: ABISS, figures
//! of its measurements; Linux 2.6, `deadline-iosched.c` and its documentation.

use super::places::Places;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use sched::{Choice, Policy, View};
use sched::{Queues, Waiting};
use sched::{Setting, Settings};
use units::{Command, Direction, Duration, Instant, Lba};

/// `fifo_batch`.
const BATCH: u64 = 16;
/// `writes_starved`.
const WRITES_STARVED: u64 = 2;
/// `read_expire`.
const READ_EXPIRE: Duration = Duration::from_millis(500);
/// `write_expire`.
const WRITE_EXPIRE: Duration = Duration::from_secs(5);

pub(super) const SETTINGS: &[Setting] = &[
    Setting::number("batch", [1, 1000, BATCH], "Requests of one direction that go in a batch."),
    Setting::number(
        "writes-starved",
        [0, 1000, WRITES_STARVED],
        "How often writes are passed over before a batch writes.",
    ),
    Setting::time(
        "read-expire",
        [Duration::ZERO, Duration::from_secs(60), READ_EXPIRE],
        "A read that has waited so long begins the next batch of reads.",
    ),
    Setting::time(
        "write-expire",
        [Duration::ZERO, Duration::from_secs(60), WRITE_EXPIRE],
        "A write that has waited so long begins the next batch of writes.",
    ),
];

/// The requests of one direction, by place and by arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    pub places: Places,
    line: BTreeMap<u64, u64>,
}

impl Side {
    pub(super) fn insert(&mut self, request: &Waiting) {
        self.places.insert(request);
        self.line.insert(request.arrival, request.key);
    }

    /// False where it was not here.
    pub(super) fn remove(&mut self, request: &Waiting) -> bool {
        self.line.remove(&request.arrival);
        self.places.remove(request)
    }

    /// The oldest that may run.
    pub(super) fn oldest<'a>(&self, queues: &'a Queues) -> Option<&'a Waiting> {
        let key = self.line.values().find(|&&key| queues.may_run(key))?;
        queues.get(*key)
    }

    /// The oldest, if it has waited for `time`.
    pub(super) fn expired<'a>(&self, view: &'a View<'_>, time: Duration) -> Option<&'a Waiting> {
        let expired = |request: &&Waiting| request.submitted.saturating_add(time) <= view.now();
        self.oldest(view.queues()).filter(expired)
    }

    pub(super) fn remember(&self, state: &mut Vec<u64>) {
        state.extend(self.line.values());
    }
}

/// True for what changes the disk; a flush belongs with the writes before it.
pub(super) fn writes(request: &Waiting) -> bool {
    match request.command {
        Command::Transfer(access) | Command::Forced(access) => access.direction == Direction::Write,
        Command::Flush => true,
        Command::Seek(_) => false,
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Deadline {
    /// Reads, writes.
    sides: [Side; 2],
    writing: bool,
    /// Where the batch has got to; none where its direction has changed since.
    at: Option<Lba>,
    batched: u64,
    starved: u64,
    batch: u64,
    writes_starved: u64,
    /// Of reads, of writes.
    expire: [Duration; 2],
}

impl Deadline {
    pub(super) fn new(values: &Settings) -> Self {
        let [batch, writes_starved] = [0, 1].map(|at| values.get(at));
        let expire = [2, 3].map(|at| values.time(at));
        Self { batch, writes_starved, expire, ..Self::default() }
    }

    /// The next request, for policies that use this one below theirs.
    pub(super) fn take(&mut self, view: &View<'_>) -> Option<Waiting> {
        let request = self.ahead(view.queues()).filter(|_| self.batched < self.batch).copied();
        let request = request.or_else(|| self.new_batch(view))?;
        self.batched += 1;
        self.at = Some(request.place());
        self.remove(&request);
        Some(request)
    }

    pub(super) fn insert(&mut self, request: &Waiting) {
        self.sides[usize::from(writes(request))].insert(request);
    }

    pub(super) fn remove(&mut self, request: &Waiting) {
        self.sides[usize::from(writes(request))].remove(request);
    }

    fn ahead<'a>(&'a self, queues: &'a Queues) -> Option<&'a Waiting> {
        self.sides[usize::from(self.writing)].places.above(queues, self.at?)
    }

    fn new_batch(&mut self, view: &View<'_>) -> Option<Waiting> {
        let queues = view.queues();
        let [reads, writes] = [0, 1].map(|side| self.sides[side].oldest(queues).is_some());
        if !reads && !writes {
            return None;
        }
        self.starved += u64::from(reads && writes);
        let writing = !reads || (writes && self.starved > self.writes_starved);
        if writing {
            self.starved = 0;
        }
        if writing != self.writing {
            (self.writing, self.at) = (writing, None);
        }
        self.batched = 0;
        let side = &self.sides[usize::from(writing)];
        let expired = side.expired(view, self.expire[usize::from(writing)]);
        expired.or_else(|| self.ahead(queues)).or_else(|| side.oldest(queues)).copied()
    }

    pub(super) fn write_state(&self, state: &mut Vec<u64>) {
        for side in &self.sides {
            side.remember(state);
        }
        state.extend([u64::from(self.writing), self.batched, self.starved]);
        state.extend(self.at.map(Lba::get));
    }
}

impl Policy for Deadline {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        match self.take(view) {
            Some(request) => Choice::Start(request.key),
            None => Choice::Wait { until: None },
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        self.insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.remove(request);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.write_state(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
