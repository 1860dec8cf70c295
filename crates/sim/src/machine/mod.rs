//! A simulated machine: disks, each under a *production* [`Schedule`], perhaps with buses
//! that they share, and programs that only ask, as fast as it goes.
//!
//! Where [`World`](crate::World) runs a whole node, here are only programs, schedules and
//! drive models. Time moves from event to event; nothing is allocated once all programs
//! run, so that memory does not depend on how long the machine runs; everything is
//! repeatable from the seed.
//!
//! Invariants: each stream and each load has at most one entry in the agenda; a key
//! of a schedule is a place in `asked` that is in use; a disk has at most one command;
//! `next[disk]` is when its command ends, or, of an idle disk, when its schedule wants to
//! be asked again.

mod disk;
mod latency;
mod plans;
mod programs;
mod results;

pub use latency::Latencies;
pub use plans::{Arrivals, LoadPlan, Pace, Places, PlayPlan, StreamPlan, Target};
pub use results::{Results, Runs, Tally};

use self::disk::Disk;
use crate::{Random, traces};
use ::disk::{Bus, BusShare, Model, Profile};
use programs::{Asks, Load, Part, Planned, Player, Stream};
use sched::{
    Class, Contract, Flow, Options, Outcome, PolicyKind, Refusal, Request, Schedule, Task, TaskId,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{Access, Bytes, Command, Duration, Instant, Lba};

/// A program keeps no more requests outstanding; what it would ask for beyond that
/// is counted in [`Results::skipped`].
const OUTSTANDING_MAX: u64 = 4096;

/// How a disk of a machine is made.
#[derive(Clone, Debug)]
pub struct DiskSetup {
    /// The drive.
    pub model: Model,
    /// Whether its cache serves reads and takes writes. Off, every command goes to
    /// the medium (force unit access).
    pub cache: bool,
    /// How its schedule orders.
    pub policy: PolicyKind,
    /// How that is set up; a depth of one.
    pub options: Options,
    /// Which of the machine's buses it shares with others; none where it has one for
    /// itself.
    pub bus: Option<u32>,
    /// What its profile says of that bus; none for a disk that counts nothing for it.
    pub share: Option<BusShare>,
    /// Added to every bound: what the profile of one disk does not know.
    pub margin: Duration,
}

impl DiskSetup {
    /// A disk with a bus for itself, without its cache, under one of the policies.
    pub fn new(model: Model, policy: PolicyKind, options: Options) -> Self {
        let margin = Duration::ZERO;
        Self { model, cache: false, policy, options, bus: None, share: None, margin }
    }
}

/// How a machine is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its disks, at least one.
    pub disks: Vec<DiskSetup>,
    /// Everything that programs do that looks random follows from it.
    pub seed: u64,
}

impl Setup {
    /// A machine of `count` disks that are alike but for what varies in each, which
    /// follows from the model's seed and the disk's number.
    pub fn alike(disk: &DiskSetup, count: u32, seed: u64) -> Self {
        let one = |at: u32| match at {
            0 => disk.clone(),
            at => DiskSetup { model: disk.model.clone().with_seed(u64::from(at)), ..disk.clone() },
        };
        Self { disks: (0..count).map(one).collect(), seed }
    }
}

/// Names a stream of a machine while it has not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamIndex(u32);

/// Names a load of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadIndex(u32);

/// Somebody who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    /// With a contract.
    Stream(StreamIndex),
    /// Without one, or out of the budget of one.
    Load(LoadIndex),
}

/// A request that is done, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// When it was.
    pub at: Instant,
    /// On which disk.
    pub disk: u32,
    /// Whose it was.
    pub asker: Asker,
    /// What it moved.
    pub access: Access,
    /// When it was asked for.
    pub submitted: Instant,
    /// What the schedule says of it.
    pub outcome: Outcome,
}

/// A request that is not done.
#[derive(Clone, Copy, Debug)]
struct Asked {
    asker: Asker,
    command: Command,
    submitted: Instant,
}

impl Asked {
    fn access(&self) -> &Access {
        self.command.access().expect("programs ask for bytes")
    }
}

/// The machine; see the top of this file.
pub struct Machine {
    disks: Vec<Disk>,
    buses: Vec<Bus>,
    next: Vec<Instant>,
    random: Random,
    now: Instant,
    agenda: BinaryHeap<Reverse<(Instant, Asker)>>,
    streams: Vec<Stream>,
    vacant_streams: Vec<u32>,
    loads: Vec<Load>,
    asked: Vec<Asked>,
    vacant: Vec<u32>,
    watcher: Option<Watcher>,
}

type Watcher = Box<dyn FnMut(&Done) + Send>;

impl Machine {
    /// A machine at time zero in which nobody asks for anything.
    ///
    /// # Panics
    /// Where it has no disk, or where a schedule would give a disk more than one command
    /// at a time.
    pub fn new(setup: Setup) -> Self {
        assert!(!setup.disks.is_empty(), "a machine without disks");
        let buses = setup.disks.iter().filter_map(|disk| disk.bus).max().map_or(0, |bus| bus + 1);
        Self {
            disks: setup.disks.iter().map(Disk::new).collect(),
            buses: (0..buses).map(|_| Bus::new()).collect(),
            next: vec![Instant::MAX; setup.disks.len()],
            random: Random::new(setup.seed),
            now: Instant::EPOCH,
            agenda: BinaryHeap::new(),
            streams: Vec::new(),
            vacant_streams: Vec::new(),
            loads: Vec::new(),
            asked: Vec::new(),
            vacant: Vec::new(),
            watcher: None,
        }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The production type, of one disk.
    pub fn schedule(&self, disk: u32) -> &Schedule {
        &self.disks[disk as usize].schedule
    }

    /// What bounds every command of one disk, but for its margin.
    pub fn profile(&self, disk: u32) -> &Profile {
        self.disks[disk as usize].profile()
    }

    /// What came of all disks together since the last call of [`Machine::forget`].
    pub fn results(&self) -> Results {
        let mut all = self.disks[0].results.clone();
        self.disks[1..].iter().for_each(|disk| all.merge(&disk.results));
        all
    }

    /// What came of one disk since then.
    pub fn disk_results(&self, disk: u32) -> &Results {
        &self.disks[disk as usize].results
    }

    /// What came of a stream since then; of one that has left, until the next one joins.
    pub fn stream_results(&self, stream: StreamIndex) -> &Tally {
        &self.streams[stream.0 as usize].tally
    }

    /// What came of a load since then.
    pub fn load_results(&self, load: LoadIndex) -> &Tally {
        &self.loads[load.0 as usize].tally
    }

    /// Results count from now on, as after a warm-up.
    pub fn forget(&mut self) {
        self.disks.iter_mut().for_each(|disk| disk.results = Results::default());
        self.streams.iter_mut().for_each(|stream| stream.tally = Tally::default());
        self.loads.iter_mut().for_each(|load| load.tally = Tally::default());
    }

    /// Lets time pass for `span`, and forgets what came of it.
    pub fn warm_up(&mut self, span: Duration) {
        self.run_for(span);
        self.forget();
    }

    /// Tells `watcher` of every request that is done from now on: for distributions by
    /// place, time lines, and causes.
    pub fn watch(&mut self, watcher: impl FnMut(&Done) + Send + 'static) {
        self.watcher = Some(Box::new(watcher));
    }

    /// The contract of a stream as a task of one of its disks.
    pub fn task(&self, plan: &StreamPlan, disk: u32) -> Task {
        self.disks[disk as usize].task(plan)
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// [`Refusal`] of the first of its disks on which its contract cannot be kept.
    ///
    /// # Panics
    /// Where the plan names no disk, or one twice, or where one of its tasks
    /// ([`Machine::task`]) is not valid.
    pub fn join(&mut self, plan: StreamPlan) -> Result<StreamIndex, Refusal> {
        let parts = self.join_disks(&plan)?;
        let period = plan.rate.time_for(plan.block);
        // The block of each disk is asked for when that disk releases it, or later.
        let first = parts.iter().zip(0..).map(|(part, turn)| {
            self.disks[part.disk as usize]
                .schedule
                .next_release(part.task)
                .saturating_sub(period * turn)
        });
        let first = first.max().expect("at least one disk").max(self.now) + plan.phase;
        let stream = Stream::new(parts, plan, period, first, &mut self.random);
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
        self.agenda.push(Reverse((first, Asker::Stream(StreamIndex(index)))));
        Ok(StreamIndex(index))
    }

    /// Its tasks, on all of its disks or on none.
    fn join_disks(&mut self, plan: &StreamPlan) -> Result<Vec<Part>, Refusal> {
        assert!(!plan.disks.is_empty(), "a stream without a disk");
        let mut parts: Vec<Part> = Vec::with_capacity(plan.disks.len());
        for &at in &plan.disks {
            assert!(parts.iter().all(|part| part.disk != at), "disk {at} twice");
            let disk = &mut self.disks[at as usize];
            let task = disk.task(plan);
            match disk.schedule.join_within(self.now, task, plan.patience) {
                Ok(task) => parts.push(Part { disk: at, task }),
                Err(refusal) => {
                    for part in parts {
                        self.disks[part.disk as usize].schedule.leave(part.task);
                    }
                    return Err(refusal);
                }
            }
        }
        Ok(parts)
    }

    /// Closes a stream: what waits is dropped.
    ///
    /// # Panics
    /// Where it has left already.
    pub fn leave(&mut self, index: StreamIndex) {
        let stream = &mut self.streams[index.0 as usize];
        assert!(!stream.has_left, "a stream that has left");
        stream.has_left = true;
        for part in &stream.parts {
            for key in self.disks[part.disk as usize].schedule.leave(part.task) {
                stream.outstanding -= 1;
                self.vacant.push(key as u32);
            }
        }
        self.reclaim(index);
    }

    /// Starts a load.
    pub fn load(&mut self, plan: LoadPlan) -> LoadIndex {
        let (synchronous, flow) = (plan.synchronous, self.next_flow());
        self.start_planned(plan, Class::BestEffort { synchronous, flow, ordered: false })
    }

    /// Starts a load under a contract of its own: its requests come out of a budget of
    /// `contract.cost` every `contract.period`, and have deadlines from when there is
    /// budget for them (Clockwise thesis, section 6.5.4).
    ///
    /// # Errors
    /// [`Refusal`] where the contract cannot be kept.
    pub fn load_under(&mut self, plan: LoadPlan, contract: Task) -> Result<LoadIndex, Refusal> {
        let disk = &mut self.disks[plan.disk as usize];
        let cost = disk.worst(&plan.places.range(), plan.size, plan.direction);
        let task = disk.schedule.join(self.now, Contract::Server(contract))?;
        let (synchronous, flow) = (plan.synchronous, self.next_flow());
        let class = Class::Server { task, cost, synchronous, flow, ordered: false };
        Ok(self.start_planned(plan, class))
    }

    fn start_planned(&mut self, plan: LoadPlan, class: Class) -> LoadIndex {
        let planned = Planned::new(plan, class, &mut self.random);
        self.start_load(Asks::Planned(planned))
    }

    /// Plays a load from now on.
    ///
    /// # Errors
    /// [`Refusal`] where the contract of one of its targets cannot be kept.
    ///
    /// # Panics
    /// Where its speed is zero.
    pub fn play(&mut self, plan: PlayPlan) -> Result<LoadIndex, Refusal> {
        let mut servers: Vec<Option<TaskId>> = Vec::with_capacity(plan.targets.len());
        for target in &plan.targets {
            let schedule = &mut self.disks[target.disk as usize].schedule;
            let joined =
                target.contract.map(|task| schedule.join(self.now, Contract::Server(task)));
            match joined.transpose() {
                Ok(server) => servers.push(server),
                Err(refusal) => {
                    for (server, target) in servers.iter().zip(&plan.targets) {
                        let schedule = &mut self.disks[target.disk as usize].schedule;
                        server.map(|task| schedule.leave(task));
                    }
                    return Err(refusal);
                }
            }
        }
        let player = Player::new(plan, servers, self.next_flow(), self.now);
        Ok(self.start_load(Asks::Played(player)))
    }

    fn next_flow(&self) -> Flow {
        Flow(self.loads.len() as u64)
    }

    fn start_load(&mut self, asks: Asks) -> LoadIndex {
        let index = LoadIndex(self.loads.len() as u32);
        let load = Load::new(asks);
        let first = match load.next_burst(self.now, &mut self.random) {
            None if load.is_closed() => Some(self.now),
            first => first,
        };
        self.loads.push(load);
        if let Some(first) = first {
            self.agenda.push(Reverse((first, Asker::Load(index))));
        }
        index
    }

    /// Why a load that is played has ended, where that is not its own end.
    pub fn load_error(&self, load: LoadIndex) -> Option<&traces::Error> {
        self.loads[load.0 as usize].error()
    }

    /// Lets time pass until `end`.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let agenda = self.agenda.peek().map_or(Instant::MAX, |Reverse((at, _))| *at);
            let next = self.next.iter().fold(agenda, |least, &at| least.min(at));
            if next > end {
                break;
            }
            debug_assert!(next >= self.now, "time goes on");
            self.now = next;
            for disk in 0..self.disks.len() {
                if self.next[disk] == next {
                    self.disks[disk].stirred = true;
                    if self.disks[disk].busy.is_some() {
                        self.finish(disk);
                    }
                }
            }
            while let Some(Reverse((at, asker))) = self.agenda.peek().copied()
                && at <= next
            {
                self.agenda.pop();
                self.ask(asker);
            }
            for (disk, next) in self.disks.iter_mut().zip(&mut self.next) {
                if disk.stirred && disk.busy.is_none() {
                    disk.stirred = false;
                    *next = disk.start(self.now, &self.asked, &mut self.buses);
                }
            }
        }
        self.now = end;
    }

    /// Lets time pass for `span`.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    fn finish(&mut self, disk: usize) {
        let (key, outcome) = self.disks[disk].finish(self.now, &self.asked);
        let asked = self.asked[key as usize];
        let (asker, submitted, access) = (asked.asker, asked.submitted, *asked.access());
        let (tally, since) = match asker {
            Asker::Stream(index) => {
                (&mut self.streams[index.0 as usize].tally, outcome.times.release)
            }
            Asker::Load(index) => (&mut self.loads[index.0 as usize].tally, submitted),
        };
        tally.latencies.add(self.now.saturating_since(since), access.len);
        tally.late += u64::from(!outcome.late_by.is_zero());
        tally.late_max = tally.late_max.max(outcome.late_by);
        if let Some(watcher) = &mut self.watcher {
            let (at, disk) = (self.now, disk as u32);
            watcher(&Done { at, disk, asker, access, submitted, outcome });
        }
        self.vacant.push(key as u32);
        self.answered(asker);
    }

    /// The request that somebody waited for is done.
    fn answered(&mut self, asker: Asker) {
        match asker {
            Asker::Stream(index) => {
                let stream = &mut self.streams[index.0 as usize];
                stream.outstanding -= 1;
                if stream.has_left {
                    self.reclaim(index);
                } else if stream.is_eager() {
                    self.ask(asker);
                }
            }
            Asker::Load(index) => {
                let load = &mut self.loads[index.0 as usize];
                load.outstanding -= 1;
                if !load.think().is_zero() {
                    self.agenda.push(Reverse((self.now + load.think(), asker)));
                } else if load.is_closed() {
                    self.ask(asker);
                }
            }
        }
    }

    /// A stream that has left, and of which nothing is left, makes room for another.
    fn reclaim(&mut self, index: StreamIndex) {
        let stream = &self.streams[index.0 as usize];
        if stream.has_left && stream.outstanding == 0 && !stream.is_scheduled {
            self.vacant_streams.push(index.0);
        }
    }

    /// Somebody's time has come.
    fn ask(&mut self, asker: Asker) {
        match asker {
            Asker::Stream(index) => self.stream_asks(index),
            Asker::Load(index) => self.load_asks(index),
        }
    }

    fn stream_asks(&mut self, index: StreamIndex) {
        let stream = &mut self.streams[index.0 as usize];
        stream.is_scheduled = false;
        if stream.has_left {
            return self.reclaim(index);
        }
        loop {
            let stream = &mut self.streams[index.0 as usize];
            let (part, access) = stream.next_access(&mut self.random);
            if stream.outstanding < OUTSTANDING_MAX {
                stream.outstanding += 1;
                self.submit(part.disk, Asker::Stream(index), Class::RealTime(part.task), access);
            } else {
                stream.tally.skipped += 1;
                self.disks[part.disk as usize].results.skipped += 1;
            }
            let stream = &mut self.streams[index.0 as usize];
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

    fn load_asks(&mut self, index: LoadIndex) {
        let load = &mut self.loads[index.0 as usize];
        for _ in 0..load.burst(&mut self.random) {
            let load = &mut self.loads[index.0 as usize];
            let Some(wanted) = load.next(self.now, &self.disks, &mut self.random) else { break };
            if load.outstanding < OUTSTANDING_MAX {
                load.outstanding += 1;
                self.submit(wanted.disk, Asker::Load(index), wanted.class, wanted.access);
            } else {
                load.tally.skipped += 1;
                self.disks[wanted.disk as usize].results.skipped += 1;
            }
        }
        let load = &mut self.loads[index.0 as usize];
        if let Some(next) = load.next_burst(self.now, &mut self.random) {
            self.agenda.push(Reverse((next, Asker::Load(index))));
        }
    }

    fn submit(&mut self, disk: u32, asker: Asker, class: Class, access: Access) {
        let disk = &mut self.disks[disk as usize];
        let command = disk.command(access);
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
        disk.stirred = true;
        disk.schedule.submit(self.now, u64::from(key), Request { class, command });
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
