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
            _ => ms(1),
        }
    }
}

/// A nanosecond a sector: for the papers' sets in whole ticks.
pub struct Ticks;

impl Predict for Ticks {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        match command {
            Command::Transfer(access) => Duration::from_nanos(access.len / SECTOR),
            _ => Duration::from_nanos(1),
        }
    }
}

/// A request of a script: when it comes (in units of the prediction), its key, its
/// class and its command.
pub type Arrival = (u64, u64, Class, Command);

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
    /// A policy that never serves something may say for ever that it will look again.
    const PATIENCE: Duration = Duration::from_secs(10);

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
        self.schedule.join(self.now, Task::new(period, period, cost)).expect("admitted")
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
        let end = self.now + Self::PATIENCE;
        loop {
            match self.schedule.next(self.now, predict) {
                Next::Start { key, predicted } => {
                    self.started.push(key);
                    self.now += predicted;
                    let outcome = self.schedule.finished(self.now, key);
                    self.outcomes.push((key, outcome));
                }
                Next::Wait { until: Some(until) } if self.waiting() > 0 && self.now < end => {
                    assert!(until > self.now, "a wait that ends before it begins");
                    self.now = until;
                }
                Next::Wait { .. } => return self.started.clone(),
            }
        }
    }

    /// Plays a script on a disk that is never told more than it must know: requests
    /// come while others are in service. `unit` is what the script's times count in.
    /// Ends when all is done.
    pub fn play(&mut self, unit: Duration, script: &[Arrival], predict: &dyn Predict) {
        let mut script = script.to_vec();
        script.sort_by_key(|arrival| arrival.0);
        let when = |arrival: &Arrival| Instant::EPOCH + unit * arrival.0;
        let end = self.now + Self::PATIENCE;
        let mut coming = script.into_iter().peekable();
        let mut busy: Option<(u64, Instant)> = None;
        loop {
            while let Some((_, key, class, command)) =
                coming.next_if(|arrival| when(arrival) <= self.now)
            {
                self.submit(key, class, command);
            }
            let mut wake = coming.peek().map(when);
            if let Some((key, ends)) = busy.filter(|&(_, ends)| ends <= self.now) {
                let outcome = self.schedule.finished(ends, key);
                self.outcomes.push((key, outcome));
                busy = None;
            }
            if busy.is_none() {
                match self.schedule.next(self.now, predict) {
                    Next::Start { key, predicted } => {
                        self.started.push(key);
                        busy = Some((key, self.now + predicted));
                    }
                    Next::Wait { until } if self.waiting() > 0 && self.now < end => {
                        wake = wake.into_iter().chain(until).min();
                    }
                    Next::Wait { .. } => {}
                }
            }
            let ends = busy.map(|(_, ends)| ends);
            match wake.into_iter().chain(ends).min() {
                Some(next) => self.now = next,
                None => return,
            }
        }
    }

    /// By how much each request was late, of those that were.
    pub fn late(&self) -> Vec<(u64, Duration)> {
        let all = self.outcomes.iter().map(|(key, outcome)| (*key, outcome.late_by));
        all.filter(|(_, late)| !late.is_zero()).collect()
    }

    /// When a request was done.
    pub fn done_at(&self, key: u64) -> Instant {
        let found = self.outcomes.iter().find(|outcome| outcome.0 == key);
        let outcome = found.expect("it was done").1;
        outcome.started + outcome.actual
    }

    pub fn waiting(&self) -> u64 {
        let counts = self.schedule.counts();
        counts.waiting_real_time + counts.waiting_best_effort
    }
}
