//! A node, its disks and its programs, moved from event to event.
//!
//! A disk is asked what it shall do when the node says that it got work, when one of
//! its commands has ended, and at the instant that it named itself: as the engine's
//! threads ask, and no oftener. The node is told of the end of a command at once, or, as by
//! an engine whose host is late, some time after the disk's queue knows and has gone on
//! ([`World::told_after`]); and the disk's thread may notice the end some time after it, so
//! that the disk is idle although work waits ([`World::gap`]).

use crate::disk::Finished;
use crate::keeps::{Everything, Keeps};
use crate::{Random, SimDisk};
use node::{
    CommandEnded, DiskIndex, DiskPoll, Error, Event, Mode, Node, Op, Operation, Output, Reply,
    Span, Ticket, Who,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::convert::Infallible;
use units::{Bytes, Duration, Instant};

/// What this operation is answered with: spans of the world's memory, and nothing of shared windows.
pub type Answer<O> = <O as Operation>::Answer<Span, Span, Infallible>;

/// A program in the world: reacts to answers and to its own alarms.
pub trait Program<K: Keeps = Everything> {
    /// The world begins, or the program joins it.
    fn start(&mut self, context: &mut Context<'_, K>);
    /// An operation that it asked for with `tag` has ended.
    fn answer(&mut self, context: &mut Context<'_, K>, tag: u64, result: Result<Reply, Error>);
    /// The alarm that it set rings.
    fn alarm(&mut self, _context: &mut Context<'_, K>) {}
    /// The power was gone and is back: everything that it had is lost, and what it
    /// asked for is not answered.
    fn returned(&mut self, context: &mut Context<'_, K>) {
        self.start(context);
    }
}

/// What a program can do while it runs.
pub struct Context<'a, K: Keeps = Everything> {
    /// The time.
    pub now: Instant,
    /// The driver's memory; a program touches only what it was given.
    pub arena: &'a mut K::Memory,
    /// To look at, as a program looks at `slackline stream list`.
    pub node: &'a Node,
    asked: Vec<Asked>,
    alarm: Option<Instant>,
}

impl<K: Keeps> Context<'_, K> {
    /// Asks for something; the answer comes back with `tag`.
    pub fn ask(&mut self, tag: u64, op: Op) {
        self.ask_as(Who::root(), tag, op);
    }
    /// The same, on behalf of somebody.
    pub fn ask_as(&mut self, who: Who, tag: u64, op: Op) {
        self.ask_since(self.now, who, tag, op);
    }
    /// The same, where the program's call came to the driver at `arrived`, before now.
    pub fn ask_since(&mut self, arrived: Instant, who: Who, tag: u64, op: Op) {
        self.asked.push(Asked { tag, who, op, arrived });
    }
    /// What a span that the program has been given holds, to look at and to fill; nothing in
    /// a world without bytes.
    pub fn bytes(&mut self, span: &node::Span) -> Option<&mut [u8]> {
        K::place(self.arena, span)
    }
    /// Rings once at `at`.
    pub fn alarm_at(&mut self, at: Instant) {
        self.alarm = Some(at.max(self.now));
    }
}

/// What a program has asked for.
struct Asked {
    tag: u64,
    who: Who,
    op: Op,
    arrived: Instant,
}

/// How one command ended.
#[derive(Clone, Copy, Debug)]
pub struct CommandEnd {
    /// Where.
    pub disk: DiskIndex,
    /// The bound that the node had on its device time.
    pub predicted: Duration,
    /// When the disk began with it, and ended it.
    pub started: Instant,
    /// See `started`.
    pub finished: Instant,
    /// The device did not fail.
    pub good: bool,
    /// What it read of the disk.
    pub read: Bytes,
    /// Whose it was, and whether in time, where it was under contract.
    pub request: Option<node::Finished>,
    /// The program that asked, for operations on a volume under contract.
    pub program: Option<usize>,
}

/// The virtual world; see the crate's first paragraph.
pub struct World<K: Keeps = Everything> {
    /// The production type.
    pub node: Node,
    /// In the order of the pool.
    pub disks: Vec<SimDisk<K>>,
    /// Everybody who uses it.
    pub programs: Vec<Box<dyn Program<K>>>,
    arena: K::Memory,
    now: Instant,
    alarms: BinaryHeap<Reverse<(Instant, usize)>>,
    tickets: HashMap<Ticket, (usize, u64)>,
    /// Those that ask for room of a stream.
    rooms_of_streams: HashMap<Ticket, Mode>,
    next_ticket: u64,
    started: usize,
    idle_steps: u64,
    polls: Vec<Poll>,
    /// How long after the end of a command the node is told of it; none: at once, before
    /// the disk goes on.
    pub told_after: Option<Duration>,
    /// How long after the end of a command the disk's thread notices it and goes on, where
    /// it does not at once: what this says for each command.
    pub gap: Option<Box<dyn FnMut() -> Duration>>,
    /// What an answer takes from the node to its program, where it is not there at once: what
    /// this says for each. (Those to [`World::call`] are.)
    pub delivery: Option<Box<dyn FnMut() -> Duration>>,
    /// Answers on their way, in the order in which they come: to which program, its tag, what is
    /// owed of it, and how long it takes.
    carried: BTreeMap<(Instant, Ticket), OnItsWay>,
    /// Ends that the threads have not noticed, and when they will.
    unnoticed: BTreeMap<(Instant, u64), (usize, Finished)>,
    /// What it is to be told, and when, in that order.
    to_tell: VecDeque<(Instant, CommandEnded, Finished)>,
    /// Sees the disks after every event; what it learns it keeps.
    pub watch: Option<Watch<K>>,
    /// Sees the end of every command.
    pub observe: Option<Observe>,
}

/// An answer on its way to a program.
struct OnItsWay {
    index: usize,
    tag: u64,
    took: Duration,
    output: Output,
}

/// When a disk is to be asked what it shall do.
#[derive(Clone, Copy, Debug, Default)]
struct Poll {
    /// At once.
    now: bool,
    /// At this instant, if nothing happens before.
    at: Option<Instant>,
}

/// Learns how every command ended.
pub type Observe = Box<dyn FnMut(&CommandEnd)>;

/// Looks at the disks of a world after an event.
pub type Watch<K = Everything> = Box<dyn FnMut(&[SimDisk<K>])>;

impl<K: Keeps> World<K> {
    /// A world at time zero, with as much memory as the node was configured for.
    pub fn new(node: Node, disks: Vec<SimDisk<K>>, memory: units::Bytes) -> Self {
        let polls = vec![Poll { now: true, at: None }; disks.len()];
        let mut world = Self {
            node,
            disks,
            programs: Vec::new(),
            arena: K::memory(memory),
            now: Instant::EPOCH,
            alarms: BinaryHeap::new(),
            tickets: HashMap::new(),
            rooms_of_streams: HashMap::new(),
            next_ticket: 0,
            started: 0,
            idle_steps: 0,
            polls,
            told_after: None,
            gap: None,
            delivery: None,
            carried: BTreeMap::new(),
            unnoticed: BTreeMap::new(),
            to_tell: VecDeque::new(),
            watch: None,
            observe: None,
        };
        world.settle();
        world
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Adds a program; it starts at once.
    pub fn add(&mut self, program: impl Program<K> + 'static) {
        self.programs.push(Box::new(program));
        while self.started < self.programs.len() {
            let index = self.started;
            self.started += 1;
            self.run(index, |program, context| program.start(context));
        }
        self.settle();
    }

    /// Lets time pass until `end`, or until nothing can happen any more.
    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    /// Lets time pass for `span`.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Moves to the next event that is not after `end`. Says whether there was one.
    pub fn step(&mut self, end: Instant) -> bool {
        let moved = self.advance(end);
        self.settle();
        moved
    }

    /// One operation from outside, with the world running until it has ended.
    pub fn call<O: Operation>(&mut self, op: O) -> Result<Answer<O>, Error> {
        self.call_as(Who::root(), op)
    }

    /// The same, on behalf of somebody.
    pub fn call_as<O: Operation>(&mut self, who: Who, op: O) -> Result<Answer<O>, Error> {
        let (ticket, op) = (self.ticket(), op.into());
        self.tell(Event::Request { ticket, who, op, arrived: self.now });
        loop {
            if let Some(result) = self.settle_for(Some(ticket)) {
                return result.map(O::answer);
            }
            assert!(self.advance(Instant::MAX), "an operation that never ends");
        }
    }

    /// The power goes: the disks as they come back.
    pub fn cut(self, random: &mut Random) -> Vec<SimDisk<K>> {
        self.disks.into_iter().map(|disk| disk.cut(random)).collect()
    }

    /// The power went, and is back at `at` with another node over what the disks hold,
    /// which `open` makes. Programs are told.
    ///
    /// # Errors
    /// As `open` has them; the world is at its end then.
    pub fn cut_and_return<E>(
        &mut self,
        at: Instant,
        random: &mut Random,
        open: impl FnOnce(&mut [SimDisk<K>]) -> Result<Node, E>,
    ) -> Result<(), E> {
        let disks = core::mem::take(&mut self.disks);
        self.disks = disks.into_iter().map(|disk| disk.cut(random)).collect();
        self.alarms.clear();
        self.tickets.clear();
        self.carried.clear();
        self.to_tell.clear();
        self.unnoticed.clear();
        self.node = open(&mut self.disks)?;
        self.now = self.now.max(at);
        self.polls.fill(Poll { now: true, at: None });
        for index in 0..self.programs.len() {
            self.run(index, |program, context| program.returned(context));
        }
        self.settle();
        Ok(())
    }

    /// Tells everybody of everything that is due at the next instant at which
    /// anything is.
    fn advance(&mut self, end: Instant) -> bool {
        let Some(next) = self.next_event() else { return false };
        if next > end {
            return false;
        }
        self.idle_steps = if next > self.now { 0 } else { self.idle_steps + 1 };
        assert!(self.idle_steps < 1_000_000, "time stands still at {}", self.now);
        self.now = self.now.max(next);
        for index in 0..self.disks.len() {
            while let Some(finished) = self.disks[index].finish(self.now, &mut self.arena) {
                match &mut self.gap {
                    None => self.command_done(index, finished),
                    Some(gap) => {
                        let (at, number) = (self.now + gap(), finished.id.0);
                        self.unnoticed.insert((at, number), (index, finished));
                    }
                }
            }
        }
        while let Some(first) = self.unnoticed.first_entry()
            && first.key().0 <= self.now
        {
            let (index, finished) = first.remove();
            self.command_done(index, finished);
        }
        while let Some((_, ended, of)) = self.to_tell.pop_front_if(|(at, ..)| *at <= self.now) {
            self.node.command_ended(self.now, ended);
            self.note_wakes();
            self.observed(of);
        }
        while let Some(first) = self.carried.first_entry()
            && first.key().0 <= self.now
        {
            let OnItsWay { index, tag, took, output } = first.remove();
            if let Some(promise) = output.promise {
                let mut carried = node::Carried::default();
                carried.add(&promise, took);
                self.node.carried(promise.account(), &carried);
            }
            self.run(index, |program, context| program.answer(context, tag, output.result));
        }
        for poll in &mut self.polls {
            poll.now |= poll.at.is_some_and(|at| at <= self.now);
        }
        while let Some(&Reverse((at, index))) = self.alarms.peek()
            && at <= self.now
        {
            self.alarms.pop();
            self.run(index, |program, context| program.alarm(context));
        }
        if let Some(watch) = &mut self.watch {
            watch(&self.disks);
        }
        true
    }

    fn command_done(&mut self, index: usize, ended: Finished) {
        let Finished { id, started, finished, result, .. } = ended;
        let disk = DiskIndex(index as u16);
        self.polls[index].now = true;
        if let Some(after) = self.told_after {
            let queue = self.node.disk_queue(disk);
            let told = node::command_ended(queue, id, started, finished, result);
            return self.to_tell.push_back((self.now + after, told, ended));
        }
        self.tell(Event::CommandDone { disk, id, started, finished, result });
        self.observed(ended);
    }

    fn observed(&mut self, ended: Finished) {
        let Finished { id, predicted, started, finished, result, read } = ended;
        let disk = id.disk();
        if let Some(observe) = &mut self.observe {
            let request = self.node.finished();
            let program = match request.map(|request| request.whose) {
                Some(node::Carrier::Operation(Some(ticket))) => {
                    self.tickets.get(&ticket).map(|&(program, _)| program)
                }
                _ => None,
            };
            let good = result.is_ok();
            observe(&CommandEnd {
                disk,
                predicted,
                started,
                finished,
                good,
                read,
                request,
                program,
            });
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let commands = self.disks.iter().filter_map(SimDisk::next_finish).min();
        let alarm = self.alarms.peek().map(|Reverse((at, _))| *at);
        let waits = self.polls.iter().filter_map(|poll| poll.at).min();
        let told = self.to_tell.front().map(|(at, ..)| *at);
        let noticed = self.unnoticed.keys().next().map(|&(at, _)| at);
        let comes = self.carried.keys().next().map(|&(at, _)| at);
        [commands, alarm, waits, told, noticed, comes].into_iter().flatten().min()
    }

    fn settle(&mut self) {
        self.settle_for(None);
    }

    /// Starts what can be started and delivers what has ended, until neither
    /// is left. Stops early with the result of `wanted`.
    fn settle_for(&mut self, wanted: Option<Ticket>) -> Option<Result<Reply, Error>> {
        loop {
            self.start_commands();
            let output = self.node.poll_output()?.complete();
            let of_stream = self.rooms_of_streams.remove(&output.ticket);
            if let Ok(Reply::Room { room: span }) = &output.result
                && of_stream != Some(Mode::Update)
            {
                K::lent(&mut self.arena, span, of_stream.is_some());
            }
            if Some(output.ticket) == wanted {
                return Some(output.result);
            }
            let (index, tag) =
                self.tickets.remove(&output.ticket).expect("an answer to a question");
            if let Some(delivery) = &mut self.delivery {
                let took = delivery();
                let answer = OnItsWay { index, tag, took, output };
                self.carried.insert((self.now + took, answer.output.ticket), answer);
                continue;
            }
            self.run(index, |program, context| program.answer(context, tag, output.result));
        }
    }

    /// Gives every disk that is to be asked all that it shall start now.
    fn start_commands(&mut self) {
        while let Some(index) = self.polls.iter().position(|poll| poll.now) {
            let at = loop {
                match self.node.poll_disk(self.now, DiskIndex(index as u16)) {
                    DiskPoll::Start(command) => {
                        self.disks[index].start(self.now, command, &mut self.arena);
                    }
                    DiskPoll::Wait { until } => break until,
                }
            };
            self.polls[index] = Poll { now: false, at };
            // Disk 0's poll runs the timers, which make work for others.
            self.note_wakes();
        }
    }

    fn tell(&mut self, event: Event) {
        if let Event::Request { ticket, op, .. } = &event
            && let Op::StreamRoom { stream, .. } | Op::WindowNext { stream } = op
            && let Some(open) = self.node.stream(*stream)
        {
            self.rooms_of_streams.insert(*ticket, open.mode);
        }
        self.node.handle(self.now, event);
        self.note_wakes();
    }

    fn note_wakes(&mut self) {
        while let Some(span) = self.node.poll_freed() {
            K::freed(&mut self.arena, &span);
        }
        while let Some(disk) = self.node.next_wake() {
            self.polls[disk.as_usize()].now = true;
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    fn run(&mut self, index: usize, f: impl FnOnce(&mut dyn Program<K>, &mut Context<'_, K>)) {
        let mut context = Context {
            now: self.now,
            arena: &mut self.arena,
            node: &self.node,
            asked: Vec::new(),
            alarm: None,
        };
        f(&mut *self.programs[index], &mut context);
        let Context { asked, alarm, .. } = context;
        if let Some(at) = alarm {
            self.alarms.push(Reverse((at, index)));
        }
        for Asked { tag, who, op, arrived } in asked {
            let ticket = self.ticket();
            self.tickets.insert(ticket, (index, tag));
            self.tell(Event::Request { ticket, who, op, arrived });
        }
    }
}

impl<K: Keeps> World<K> {
    /// What a caller's span holds, to fill; nothing in a world without bytes.
    pub fn place(&mut self, span: &node::Span) -> Option<&mut [u8]> {
        K::place(&mut self.arena, span)
    }
}

impl World {
    /// What a caller's span holds now.
    pub fn bytes(&mut self, span: node::Span) -> &[u8] {
        self.arena.bytes(&span)
    }

    /// The same, to fill.
    pub fn bytes_mut(&mut self, span: node::Span) -> &mut [u8] {
        self.arena.bytes(&span)
    }
}
