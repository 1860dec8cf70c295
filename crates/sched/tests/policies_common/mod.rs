//! A disk by hand for the tests of policies: a command takes as many milliseconds
//! as it has sectors, wherever the head is.
#![allow(dead_code)] // each test uses its part

use sched::TaskId;
use sched::{Class, Flow, Next, Options, Outcome, PolicyKind, Predict, Request, Schedule, Task};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// A millisecond a sector.
pub struct Plain;

impl Predict for Plain {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        match command {
            Command::Transfer(access) => ms(access.len / SECTOR),
            Command::Flush => ms(1),
        }
    }
}

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn transfer(place: u64, cost: u64, direction: Direction) -> Command {
    let len = Bytes::new(SECTOR.get() * cost);
    Command::Transfer(Access { lba: Lba::new(place), len, direction })
}

/// A read at `place` that takes `cost` milliseconds.
pub fn read(place: u64, cost: u64) -> Command {
    transfer(place, cost, Direction::Read)
}

/// A write at `place` that takes `cost` milliseconds.
pub fn write(place: u64, cost: u64) -> Command {
    transfer(place, cost, Direction::Write)
}

/// Best effort of one flow, without an order.
pub fn flow(flow: u64, synchronous: bool) -> Class {
    Class::BestEffort { synchronous, flow: Flow(flow), ordered: false }
}

/// A schedule, its clock, and what it did.
pub struct World {
    pub schedule: Schedule,
    pub now: Instant,
    /// Keys in the order in which they were started.
    pub started: Vec<u64>,
    pub outcomes: Vec<(u64, Outcome)>,
}

impl World {
    /// Without admission: a policy is looked at, not a promise.
    pub fn new(kind: PolicyKind) -> Self {
        Self::with(
            kind,
            Options { admission: false, reserve: Duration::ZERO, ..Options::default() },
        )
    }

    pub fn with(kind: PolicyKind, options: Options) -> Self {
        let schedule = Schedule::new(kind, options);
        Self { schedule, now: Instant::EPOCH, started: Vec::new(), outcomes: Vec::new() }
    }

    /// `(C, T)` in milliseconds.
    pub fn join(&mut self, cost: u64, period: u64) -> TaskId {
        let [cost, period] = [cost, period].map(ms);
        self.schedule.join(self.now, Task { period, deadline: period, cost }).expect("admitted")
    }

    pub fn submit(&mut self, key: u64, class: Class, command: Command) {
        self.schedule.submit(self.now, key, Request { class, command });
    }

    /// Asynchronous reads of a millisecond at these places; the key is the place.
    pub fn reads_at(&mut self, places: &[u64]) {
        for &place in places {
            self.submit(place, Class::best_effort(false), read(place, 1));
        }
    }

    /// Starts and ends one command if the policy has one now. Its key.
    pub fn step(&mut self, predict: &dyn Predict) -> Option<u64> {
        let Next::Start { key, predicted } = self.schedule.next(self.now, predict) else {
            return None;
        };
        self.started.push(key);
        self.now += predicted;
        let outcome = self.schedule.finished(self.now, key);
        self.outcomes.push((key, outcome));
        Some(key)
    }

    /// One command after the other; waits where the policy says so, until nothing
    /// waits or nothing can happen any more. The keys in order.
    pub fn run(&mut self, predict: &dyn Predict) -> Vec<u64> {
        loop {
            match self.schedule.next(self.now, predict) {
                Next::Start { key, predicted } => {
                    self.started.push(key);
                    self.now += predicted;
                    let outcome = self.schedule.finished(self.now, key);
                    self.outcomes.push((key, outcome));
                }
                Next::Wait { until: Some(until) } if self.waiting() > 0 => {
                    assert!(until > self.now, "a wait that ends before it begins");
                    self.now = until;
                }
                Next::Wait { .. } => return self.started.clone(),
            }
        }
    }

    pub fn waiting(&self) -> u64 {
        let counts = self.schedule.counts();
        counts.waiting_real_time + counts.waiting_best_effort
    }
}
