//! Drives a node over disks of memory in a time of its own: what a disk is told takes as
//! long as was predicted, unless a test says otherwise. The tests' helpers make each
//! operation and each configuration in one place.

pub mod asks;
pub mod medium;

pub use asks::*;
use disk::{Kind, Line, LinearProfile, Profile};
use medium::{Flight, MemoryDisk, Pages, Trouble};
use node::{
    Config, DeviceError, DiskAction, DiskCommand, DiskIndex, DiskPoll, DiskSetup, Error, Event,
    Finished, Node, Op, Policy, Promise, Reply, Span, Ticket, Who,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use store::{Formatting, Id, Io, IoError, IoKind, NewDisk, NewPool, Opening, Store};
use units::{Bytes, Direction, Duration, Instant, Rate};

/// What every transfer costs on the disks of the tests, beside its bytes.
pub const FIXED: Duration = Duration::from_millis(10);
/// 1 MiB passes in 10 ms, 64 KiB in 625 us.
pub const SPEED: Rate = Rate::per_second(100 << 20);
pub const FLUSH: Duration = Duration::from_millis(5);
pub const DISK: DiskIndex = DiskIndex(0);

/// What a transfer of so many bytes costs.
pub fn cost(len: Bytes) -> Duration {
    FIXED + SPEED.time_for(len)
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A profile by which time is easily told.
pub fn profile(capacity: Bytes, fixed: Duration, flush: Duration) -> Profile {
    let line = Line { fixed, rate: SPEED };
    let kind =
        LinearProfile { read: line, write: line, depth: 1, latency: Duration::ZERO, spread: None };
    Profile {
        source: "a test".into(),
        confidence: "by definition".into(),
        capacity,
        flush,
        bus: None,
        kind: Kind::Linear(kind),
    }
}

/// How a pool begins.
#[derive(Clone)]
pub struct Setup {
    pub config: Config,
    pub profiles: Vec<Profile>,
    /// What the host is taken to need between two commands, at first. It needs nothing.
    pub gap: Duration,
    /// What is done to the store before the node has it.
    pub before: fn(&mut Store),
}

impl Setup {
    /// So many disks of 256 MiB.
    pub fn new(disks: usize) -> Self {
        let config = Config {
            policy: Policy::SLACK,
            admission: true,
            memory: Bytes::mib(32),
            host_latency: Duration::ZERO,
            commit_interval: Duration::from_secs(2),
            remeasure: false,
        };
        Self {
            config,
            profiles: vec![profile(Bytes::mib(256), FIXED, FLUSH); disks],
            gap: Duration::ZERO,
            before: |_| {},
        }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Makes the pool and opens it.
    pub fn open(self) -> Driver {
        self.try_open().expect("a pool that can be opened")
    }

    pub fn try_open(self) -> Result<Driver, Error> {
        let disk = |profile: &Profile| MemoryDisk::new(profile.capacity, profile.depth());
        let mut disks: Vec<MemoryDisk> = self.profiles.iter().map(disk).collect();
        let new = NewPool {
            name: "pool".into(),
            pool_id: Id([9; 16]),
            disks: (0u8..)
                .zip(&self.profiles)
                .map(|(number, profile)| NewDisk {
                    id: Id([number; 16]),
                    capacity: profile.capacity,
                    profile: profile.to_toml().into_bytes(),
                })
                .collect(),
        };
        let mut machine = Formatting::new(new).expect("a pool of such disks");
        while let Some(io) = machine.poll() {
            let result = perform(&mut disks, &io);
            machine.done(io.id, result);
        }
        machine.finish().expect("formatted");
        let mut store = store_on(&mut disks);
        (self.before)(&mut store);
        while store.dirty() {
            store.commit();
            while let Some(io) = store.poll() {
                let result = perform(&mut disks, &io);
                store.done(io.id, result);
            }
        }
        Driver::over(self, disks)
    }
}

fn perform(disks: &mut [MemoryDisk], io: &Io) -> Result<Vec<u8>, IoError> {
    let disk = &mut disks[io.disk.as_usize()];
    match &io.kind {
        IoKind::Read { offset, len } => return Ok(disk.read(*offset, *len)),
        IoKind::Write { offset, bytes } => disk.write(*offset, bytes),
        IoKind::Flush => disk.flush(),
    }
    Ok(Vec::new())
}

fn store_on(disks: &mut [MemoryDisk]) -> Store {
    let capacities: Vec<Bytes> = disks.iter().map(|disk| disk.capacity).collect();
    let mut machine = Opening::new(&capacities);
    while let Some(io) = machine.poll() {
        let result = perform(disks, &io);
        machine.done(io.id, result);
    }
    machine.finish().expect("a pool that was formatted").store
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Done {
    pub action: DiskAction,
    pub started: Instant,
    pub result: Result<(), DeviceError>,
    pub report: Option<Finished>,
}

/// A node with its disks, its memory and its time.
pub struct Driver {
    pub node: Node,
    pub now: Instant,
    pub disks: Vec<MemoryDisk>,
    pub memory: Pages,
    /// All commands, in the order in which they ended.
    pub journal: Vec<Done>,
    /// Parts of regions that were given back.
    pub freed: Vec<Span>,
    /// In the order in which they came.
    pub order: Vec<Ticket>,
    /// What is owed of answers under contract.
    pub promises: BTreeMap<Ticket, Promise>,
    answers: BTreeMap<Ticket, (Instant, Result<Reply, Error>)>,
    answered: BTreeSet<Ticket>,
    tickets: u64,
    setup: Setup,
    /// Who asks.
    pub who: Who,
}

impl Driver {
    fn over(setup: Setup, mut disks: Vec<MemoryDisk>) -> Result<Self, Error> {
        let store = store_on(&mut disks);
        let profiles = setup.profiles.iter().cloned();
        let gap = setup.gap;
        let setups = profiles.map(|profile| DiskSetup { profile, gap }).collect();
        Ok(Self {
            node: Node::new(setup.config, setups, store)?,
            now: Instant::EPOCH,
            disks,
            memory: Pages::default(),
            journal: Vec::new(),
            freed: Vec::new(),
            order: Vec::new(),
            promises: BTreeMap::new(),
            answers: BTreeMap::new(),
            answered: BTreeSet::new(),
            tickets: 0,
            setup,
            who: Who::root(),
        })
    }

    /// The power is cut, and the pool opened again: with what was flushed.
    pub fn after_a_power_cut(mut self) -> Self {
        self.disks.iter_mut().for_each(MemoryDisk::cut_power);
        self.disks.iter_mut().for_each(|disk| disk.troubles.clear());
        Self::over(self.setup, self.disks).expect("as before")
    }

    /// The same, on a host that is taken to need so much between two commands.
    pub fn after_a_power_cut_with_gaps_of(mut self, gap: Duration) -> Self {
        self.setup.gap = gap;
        self.after_a_power_cut()
    }

    /// The same, on disks that are found to be of this profile.
    pub fn after_a_power_cut_on(mut self, profile: Profile) -> Self {
        self.setup.profiles.fill(profile);
        self.after_a_power_cut()
    }

    /// Asks for something, of which the program asked at `arrived`.
    pub fn begin_since(&mut self, arrived: Instant, op: Op) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let who = self.who.clone();
        self.tell(Event::Request { ticket, who, op, arrived });
        self.poll();
        ticket
    }

    /// Tells the node something: where a timer is due sooner for it, disk 0 is woken.
    fn tell(&mut self, event: Event) {
        let before = self.node.next_timer();
        self.node.handle(self.now, event);
        let mut woken = Vec::new();
        while let Some(disk) = self.node.next_wake() {
            woken.push(disk);
        }
        let timer = self.node.next_timer();
        let is_sooner = timer.is_some_and(|timer| before.is_none_or(|before| timer < before));
        assert!(!is_sooner || woken.contains(&DISK), "nobody waits for the timer {timer:?}");
    }

    /// Asks for something now.
    pub fn begin(&mut self, op: Op) -> Ticket {
        self.begin_since(self.now, op)
    }

    /// The same for another user.
    pub fn begin_as(&mut self, who: Who, op: Op) -> Ticket {
        let before = std::mem::replace(&mut self.who, who);
        let ticket = self.begin(op);
        self.who = before;
        ticket
    }

    /// The answer, if there is one by now.
    pub fn answer(&mut self, ticket: Ticket) -> Option<Result<Reply, Error>> {
        self.answers.remove(&ticket).map(|(_, result)| result)
    }

    /// Whether it was answered, and the answer not yet looked at.
    pub fn is_answered(&self, ticket: Ticket) -> bool {
        self.answers.contains_key(&ticket)
    }

    /// Asks for what is answered at once.
    pub fn at_once(&mut self, op: Op) -> Result<Reply, Error> {
        let ticket = self.begin(op);
        self.answer(ticket).expect("answered at once")
    }

    /// The answer to what may be answered at once.
    pub fn at_once_or_none(&mut self, op: Op) -> Option<Result<Reply, Error>> {
        let ticket = self.begin(op);
        self.answer(ticket)
    }

    /// Lets time pass until an operation is answered.
    pub fn wait(&mut self, ticket: Ticket) -> Result<Reply, Error> {
        for _ in 0..100_000 {
            if let Some(answer) = self.answer(ticket) {
                return answer;
            }
            assert!(self.step(Instant::MAX), "{ticket:?} is never answered");
        }
        panic!("{ticket:?} is not answered");
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, op: Op) -> Result<Reply, Error> {
        let ticket = self.begin(op);
        self.wait(ticket)
    }

    /// Asks for what shall go well.
    pub fn done(&mut self, op: Op) {
        let said = format!("{op:?}");
        let answer = self.ask(op);
        assert!(matches!(answer, Ok(Reply::Done | Reply::Made { .. })), "{said}: {answer:?}");
    }

    /// Polls all disks, and gathers what is said.
    pub fn poll(&mut self) -> Option<Instant> {
        let mut alarm: Option<Instant> = None;
        for number in 0..self.disks.len() {
            loop {
                match self.node.poll_disk(self.now, DiskIndex(number as u16)) {
                    DiskPoll::Wait { until } => {
                        let timer = self.node.next_timer().filter(|_| number == 0);
                        let waits = timer.is_none_or(|timer| until.is_some_and(|at| at <= timer));
                        assert!(waits, "until {until:?}, though a timer is due {timer:?}");
                        alarm = alarm.into_iter().chain(until).min();
                        break;
                    }
                    DiskPoll::Start(command) => self.start(number, command),
                }
                self.gather();
            }
        }
        self.gather();
        alarm
    }

    fn start(&mut self, number: usize, command: DiskCommand) {
        assert_eq!(command.id.disk(), DiskIndex(number as u16));
        let is_instant = command.action.needs_no_disk();
        let has_room = self.disks[number].flights.len() < self.disks[number].depth as usize;
        assert!(is_instant || has_room, "a disk has no more commands than its depth");
        let id = command.id;
        self.disks[number].begin(self.now, &mut self.memory, command);
        if is_instant {
            self.end(number, id);
        }
    }

    /// Ends a command that a disk has, now.
    pub fn end(&mut self, number: usize, id: node::CommandId) {
        let flight: Flight = self.disks[number].flights.remove(&id).expect("under way");
        let result = self.disks[number].end(&mut self.memory, &flight);
        let (disk, finished) = (DiskIndex(number as u16), self.now);
        let started = flight.started;
        self.tell(Event::CommandDone { disk, id, started, finished, result });
        let (action, report) = (flight.command.action, self.node.finished());
        self.journal.push(Done { action, started, result, report });
        self.gather();
    }

    fn gather(&mut self) {
        while let Some(span) = self.node.poll_freed() {
            self.freed.push(span);
        }
        while let Some(output) = self.node.poll_output() {
            let output = output.complete();
            assert!(self.answered.insert(output.ticket), "{:?} is answered twice", output.ticket);
            self.order.push(output.ticket);
            self.promises.extend(output.promise.map(|promise| (output.ticket, promise)));
            self.answers.insert(output.ticket, (self.now, output.result));
        }
    }

    /// Time goes on to what happens next, at `until` at the latest; false where that is
    /// nothing.
    pub fn step(&mut self, until: Instant) -> bool {
        let alarm = self.poll().map(|alarm| alarm.max(self.now));
        let busy = self.disks.iter().enumerate().filter(|(_, disk)| !disk.holds);
        let flights = busy.flat_map(|(number, disk)| {
            disk.flights.iter().map(move |(&id, flight)| (flight.finished, number, id))
        });
        let next = flights.min();
        match next {
            Some((finished, number, id)) if alarm.is_none_or(|alarm| finished <= alarm) => {
                if finished > until {
                    return false;
                }
                self.now = self.now.max(finished);
                self.end(number, id);
            }
            _ => match alarm {
                Some(alarm) if alarm <= until && alarm < Instant::MAX => self.now = alarm,
                _ => return false,
            },
        }
        self.poll();
        true
    }

    /// Time goes on to this.
    pub fn run_to(&mut self, until: Instant) {
        let mut steps = 0;
        while self.step(until) {
            steps += 1;
            assert!(steps < 1_000_000, "time stands still at {:?}", self.now);
        }
        self.now = self.now.max(until);
        self.poll();
    }

    /// Time goes on by this.
    pub fn run(&mut self, span: Duration) {
        self.run_to(self.now + span);
    }

    /// A disk fails on what touches this.
    pub fn break_at(&mut self, disk: DiskIndex, at: Range<Bytes>, only: Option<Direction>) {
        let trouble = Trouble { at, direction: only, error: Some(5), extra: Duration::ZERO };
        self.disks[disk.as_usize()].troubles.push(trouble);
    }

    /// A disk is slow by so much on what touches this.
    pub fn slow_at(&mut self, disk: DiskIndex, at: Range<Bytes>, extra: Duration) {
        let trouble = Trouble { at, direction: None, error: None, extra };
        self.disks[disk.as_usize()].troubles.push(trouble);
    }

    /// The first disk is slow by so much on all reads.
    pub fn slow_reads(&mut self, extra: Duration) {
        let (at, direction) = (Bytes::ZERO..Bytes::new(u64::MAX), Some(Direction::Read));
        self.disks[0].troubles.push(Trouble { at, direction, error: None, extra });
    }

    /// What a program sees in memory.
    pub fn bytes(&self, span: Span) -> Vec<u8> {
        self.memory.get(span.offset, span.len)
    }

    /// What has ended on the disks since the journal had so many entries.
    pub fn since(&self, from: usize) -> &[Done] {
        &self.journal[from..]
    }
}

/// The bytes that a test writes from this place of a volume on.
pub fn pattern(seed: u64, offset: Bytes, len: Bytes) -> Vec<u8> {
    let byte =
        |at: u64| (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(29) ^ seed.wrapping_mul(97)) as u8;
    (offset.get()..offset.get() + len.get()).map(byte).collect()
}
