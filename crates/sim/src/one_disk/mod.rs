//! One simulated disk under one *production* [`Schedule`], as fast as it goes.
//!
//! Where [`World`](crate::World) runs a whole node, here are only programs that ask,
//! the schedule, and a drive model. Time moves from event to event; nothing is
//! allocated once all programs run, so that memory does not depend on how long the
//! world lasts; everything is repeatable from the seed.
//!
//! Invariants: each stream and each load has at most one entry in the agenda; a key
//! of the schedule is a place in `asked` that is in use; the disk has at most one
//! command.

mod latency;
mod plans;
mod programs;

pub use latency::Latencies;
pub use plans::{Arrivals, LoadPlan, Pace, Places, StreamPlan};

use crate::Random;
use disk::{Drive, Emulated, Head, Model, Profile};
use programs::{Load, Stream};
use sched::{Class, Flow, Next, Options, PolicyKind, Predict, Refusal, Request, Schedule, Task};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{Access, Bytes, Command, Duration, Instant, Lba};

/// A program keeps no more requests outstanding; what it would ask for beyond that
/// is counted in [`Results::skipped`].
const OUTSTANDING_MAX: u64 = 4096;

/// How a world is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The drive.
    pub model: Model,
    /// Whether its cache serves reads and takes writes. Off, every command goes to
    /// the medium (force unit access).
    pub cache: bool,
    /// How the schedule orders.
    pub policy: PolicyKind,
    /// How it is set up; a depth of one.
    pub options: Options,
    /// Everything that looks random follows from it.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Requests under contract, from release to end.
    pub real_time: Latencies,
    /// Best effort for which somebody waits, from submission to end.
    pub synchronous: Latencies,
    /// Best effort for which nobody waits.
    pub asynchronous: Latencies,
    /// Requests under contract that were done after their deadline.
    pub late: u64,
    /// The most that one was late by.
    pub late_max: Duration,
    /// Commands that took longer than their bound.
    pub overruns: u64,
    /// How long the disk worked.
    pub busy: Duration,
    /// Requests that programs did not make since too many were outstanding.
    pub skipped: u64,
}

impl Results {
    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.real_time.count() + self.synchronous.count() + self.asynchronous.count()
    }
}

/// Names a stream of a world while it has not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamIndex(u32);

/// Somebody who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asker {
    Stream(u32),
    Load(u32),
}

/// A request that is not done.
#[derive(Clone, Copy, Debug)]
struct Asked {
    asker: Asker,
    command: Command,
    submitted: Instant,
}

/// The command that the disk works on.
#[derive(Clone, Copy, Debug)]
struct Busy {
    end: Instant,
    started: Instant,
    key: u64,
}

/// What bounds a command's time.
struct Bounds {
    profile: Profile,
    /// Where the heads may be, for a disk with a cache; without one they are where
    /// the schedule has them.
    head: Option<RefCell<Head>>,
}

impl Predict for Bounds {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        match &self.head {
            Some(head) => head.borrow().bound(&self.profile, command),
            None => self.profile.bound(from, command),
        }
    }
}

/// The world; see the top of this file.
pub struct OneDisk {
    schedule: Schedule,
    drive: Emulated,
    bounds: Bounds,
    cache: bool,
    reserve: Duration,
    random: Random,
    now: Instant,
    busy: Option<Busy>,
    /// When the schedule wants to be asked again.
    wake: Instant,
    agenda: BinaryHeap<Reverse<(Instant, Asker)>>,
    streams: Vec<Stream>,
    vacant_streams: Vec<u32>,
    loads: Vec<Load>,
    asked: Vec<Asked>,
    vacant: Vec<u32>,
    results: Results,
}

impl OneDisk {
    /// A world at time zero in which nobody asks for anything.
    ///
    /// # Panics
    /// Where the schedule would give the disk more than one command at a time.
    pub fn new(setup: Setup) -> Self {
        assert_eq!(setup.options.depth, 1, "a drive model serves one command at a time");
        let profile = Profile::of(&setup.model);
        let head = setup.cache.then(|| RefCell::new(Head::at(Lba::default())));
        Self {
            schedule: Schedule::new(setup.policy, setup.options),
            drive: Emulated::new(&setup.model),
            bounds: Bounds { profile, head },
            cache: setup.cache,
            reserve: setup.options.reserve,
            random: Random::new(setup.seed),
            now: Instant::EPOCH,
            busy: None,
            wake: Instant::MAX,
            agenda: BinaryHeap::new(),
            streams: Vec::new(),
            vacant_streams: Vec::new(),
            loads: Vec::new(),
            asked: Vec::new(),
            vacant: Vec::new(),
            results: Results::default(),
        }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The production type.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// What bounds every command here.
    pub fn profile(&self) -> &Profile {
        &self.bounds.profile
    }

    /// What came of it since the last call of [`OneDisk::forget`].
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Results count from now on, as after a warm-up.
    pub fn forget(&mut self) {
        self.results = Results::default();
    }

    /// The contract of a stream as a task of this disk.
    pub fn task(&self, plan: &StreamPlan) -> Task {
        let period = plan.rate.time_for(plan.block);
        let cost = self.bounds.profile.worst(plan.places.range(), plan.block, plan.direction);
        Task::new(period, plan.deadline.unwrap_or(period), cost)
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// [`Refusal`] where its contract cannot be kept.
    pub fn join(&mut self, plan: StreamPlan) -> Result<StreamIndex, Refusal> {
        let task = self.task(&plan);
        let id = self.schedule.join_within(self.now, task, plan.patience)?;
        let first = self.schedule.next_release(id).max(self.now) + plan.phase;
        let stream = Stream::new(id, plan, task.period, first, &mut self.random);
        let index = match self.vacant_streams.pop() {
            Some(index) => {
                self.streams[index as usize] = stream;
                index
            }
            None => {
                self.streams.push(stream);
                self.streams.len() as u32 - 1
            }
        };
        self.agenda.push(Reverse((first, Asker::Stream(index))));
        Ok(StreamIndex(index))
    }

    /// Closes a stream: what waits is dropped.
    ///
    /// # Panics
    /// Where it has left already.
    pub fn leave(&mut self, index: StreamIndex) {
        let id = self.streams[index.0 as usize].id.take().expect("a stream that has not left");
        for key in self.schedule.leave(id) {
            self.streams[index.0 as usize].outstanding -= 1;
            self.vacant.push(key as u32);
        }
        self.reclaim(index.0);
    }

    /// Starts a load.
    pub fn load(&mut self, plan: LoadPlan) {
        let index = self.loads.len() as u32;
        let load = Load::new(plan, &mut self.random);
        let first = load.first(self.now, &mut self.random);
        self.loads.push(load);
        self.agenda.push(Reverse((first, Asker::Load(index))));
    }

    /// Lets time pass until `end`.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let agenda = self.agenda.peek().map_or(Instant::MAX, |Reverse((at, _))| *at);
            let done = self.busy.map_or(Instant::MAX, |busy| busy.end);
            let next = agenda.min(done).min(self.wake);
            if next > end {
                break;
            }
            debug_assert!(next >= self.now, "time goes on");
            self.now = next;
            if done == next {
                self.finish();
            }
            while let Some(Reverse((at, asker))) = self.agenda.peek().copied()
                && at <= next
            {
                self.agenda.pop();
                self.ask(asker);
            }
            if self.busy.is_none() {
                self.start();
            }
        }
        self.now = end;
    }

    /// Lets time pass for `span`.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Gives the disk what the schedule wants it to have.
    fn start(&mut self) {
        match self.schedule.next(self.now, &self.bounds) {
            Next::Wait { until } => {
                self.wake = until.unwrap_or(Instant::MAX);
                assert!(self.wake > self.now, "the schedule waits for what is past");
            }
            Next::Start { key, .. } => {
                let command = self.asked[key as usize].command;
                let time = self.drive.serve(self.now, &command);
                self.busy = Some(Busy { end: self.now + time, started: self.now, key });
                self.wake = Instant::MAX;
            }
        }
    }

    fn finish(&mut self) {
        let Busy { started, key, .. } = self.busy.take().expect("the disk ends what it began");
        let outcome = self.schedule.finished(self.now, key);
        let asked = self.asked[key as usize];
        let access = *asked.command.access().expect("programs ask for bytes");
        if let Some(head) = &self.bounds.head {
            head.borrow_mut().completed(&self.bounds.profile, &access, self.now - started);
        }
        let results = &mut self.results;
        results.busy += self.now - started;
        results.overruns += u64::from(!outcome.overrun.is_zero());
        match outcome.class {
            Class::RealTime(_) => {
                let latency = self.now.saturating_since(outcome.times.release);
                results.real_time.add(latency, access.len);
                results.late += u64::from(!outcome.late_by.is_zero());
                results.late_max = results.late_max.max(outcome.late_by);
            }
            Class::BestEffort { synchronous: true, .. } => {
                results.synchronous.add(self.now - asked.submitted, access.len);
            }
            _ => results.asynchronous.add(self.now - asked.submitted, access.len),
        }
        self.vacant.push(key as u32);
        self.answered(asked.asker);
    }

    /// The request that somebody waited for is done.
    fn answered(&mut self, asker: Asker) {
        match asker {
            Asker::Stream(index) => {
                let stream = &mut self.streams[index as usize];
                stream.outstanding -= 1;
                if stream.id.is_none() {
                    self.reclaim(index);
                } else if stream.is_eager() {
                    self.ask(asker);
                }
            }
            Asker::Load(index) => {
                let load = &mut self.loads[index as usize];
                load.outstanding -= 1;
                if load.is_closed() {
                    self.ask(asker);
                }
            }
        }
    }

    /// A stream that has left, and of which nothing is left, makes room for another.
    fn reclaim(&mut self, index: u32) {
        let stream = &self.streams[index as usize];
        if stream.id.is_none() && stream.outstanding == 0 && !stream.is_scheduled {
            self.vacant_streams.push(index);
        }
    }

    /// Somebody's time has come.
    fn ask(&mut self, asker: Asker) {
        match asker {
            Asker::Stream(index) => self.stream_asks(index),
            Asker::Load(index) => self.load_asks(index),
        }
    }

    fn stream_asks(&mut self, index: u32) {
        let stream = &mut self.streams[index as usize];
        stream.is_scheduled = false;
        let Some(id) = stream.id else { return self.reclaim(index) };
        let class = Class::RealTime(id);
        loop {
            let stream = &mut self.streams[index as usize];
            let access = stream.next_access(&mut self.random);
            if stream.outstanding < OUTSTANDING_MAX {
                stream.outstanding += 1;
                self.submit(Asker::Stream(index), class, access);
            } else {
                self.results.skipped += 1;
            }
            let stream = &mut self.streams[index as usize];
            match stream.next_ask(self.now, &mut self.random) {
                Some(at) if at <= self.now => {}
                Some(at) => {
                    stream.is_scheduled = true;
                    self.agenda.push(Reverse((at, Asker::Stream(index))));
                    return;
                }
                None => return,
            }
        }
    }

    fn load_asks(&mut self, index: u32) {
        let load = &mut self.loads[index as usize];
        let class = Class::BestEffort {
            synchronous: load.plan.synchronous,
            flow: Flow(u64::from(index)),
            ordered: false,
        };
        for _ in 0..load.burst(&mut self.random) {
            let adversary =
                matches!(self.loads[index as usize].plan.arrivals, Arrivals::Adversary(_));
            let access = if adversary {
                self.worst_access(index)
            } else {
                self.loads[index as usize].next_access(&mut self.random)
            };
            let load = &mut self.loads[index as usize];
            if load.outstanding < OUTSTANDING_MAX {
                load.outstanding += 1;
                self.submit(Asker::Load(index), class, access);
            } else {
                self.results.skipped += 1;
            }
        }
        let load = &mut self.loads[index as usize];
        if let Some(at) = load.next_burst(self.now, &mut self.random) {
            self.agenda.push(Reverse((at, Asker::Load(index))));
        }
    }

    /// What hurts most: as long as the reserve covers, and as far away as it can be.
    fn worst_access(&self, index: u32) -> Access {
        let plan = &self.loads[index as usize].plan;
        let range = plan.places.range();
        let sectors = range.start.distance(range.end);
        let cost = |sectors: u64| {
            self.bounds.profile.worst(range.clone(), units::SECTOR * sectors, plan.direction)
        };
        let (mut good, mut bad) = (1, sectors + 1);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            *(if cost(middle) <= self.reserve { &mut good } else { &mut bad }) = middle;
        }
        let middle = range.start.get() + sectors / 2;
        let far_below = self.schedule.head().get() > middle;
        let lba = if far_below { range.start.get() } else { range.end.get() - good };
        Access { lba: Lba::new(lba), len: units::SECTOR * good, direction: plan.direction }
    }

    fn submit(&mut self, asker: Asker, class: Class, access: Access) {
        let command = if self.cache { Command::Transfer(access) } else { Command::Forced(access) };
        let asked = Asked { asker, command, submitted: self.now };
        let key = match self.vacant.pop() {
            Some(key) => {
                self.asked[key as usize] = asked;
                key
            }
            None => {
                self.asked.push(asked);
                self.asked.len() as u32 - 1
            }
        };
        self.schedule.submit(self.now, u64::from(key), Request { class, command });
    }
}

/// A block at a random place of a range, or the one after the last.
fn place(places: &Places, cursor: &mut Lba, len: Bytes, random: &mut Random) -> Lba {
    let sectors = len.div_ceil(units::SECTOR);
    let range = places.range();
    assert!(sectors <= range.start.distance(range.end), "a request longer than its range");
    match places {
        Places::Random(range) => {
            let blocks = range.start.distance(range.end) / sectors;
            Lba::new(range.start.get() + random.below(blocks) * sectors)
        }
        Places::Sequential(range) => {
            if cursor.get() + sectors > range.end.get() {
                *cursor = range.start;
            }
            let lba = *cursor;
            *cursor = Lba::new(lba.get() + sectors);
            lba
        }
    }
}
