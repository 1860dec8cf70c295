//! A node, its disks and its programs, moved from event to event.

use crate::{Random, SimDisk};
use node::{DiskPoll, Error, Event, Node, Op, Reply, Ticket};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use units::{Duration, Instant};

/// A program in the world: reacts to answers and to its own alarms.
pub trait Program {
    /// The world begins, or the program joins it.
    fn start(&mut self, context: &mut Context<'_>);
    /// An operation that it asked for with `tag` has ended.
    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>);
    /// The alarm that it set rings.
    fn alarm(&mut self, _context: &mut Context<'_>) {}
}

/// What a program can do while it runs.
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// The driver's memory; a program touches only what it was given.
    pub arena: &'a mut [u8],
    asked: Vec<(u64, Op)>,
    alarm: Option<Instant>,
}

impl Context<'_> {
    /// Asks for something; the answer comes back with `tag`.
    pub fn ask(&mut self, tag: u64, op: Op) {
        self.asked.push((tag, op));
    }
    /// Rings once at `at`.
    pub fn alarm_at(&mut self, at: Instant) {
        self.alarm = Some(at.max(self.now));
    }
}

/// The virtual world; see the crate's first paragraph.
pub struct World {
    /// The production type.
    pub node: Node,
    /// In the order of the pool.
    pub disks: Vec<SimDisk>,
    /// Everybody who uses it.
    pub programs: Vec<Box<dyn Program>>,
    arena: Vec<u8>,
    now: Instant,
    alarms: BinaryHeap<Reverse<(Instant, usize)>>,
    tickets: HashMap<Ticket, (usize, u64)>,
    next_ticket: u64,
    started: usize,
    idle_steps: u64,
    /// Sees the disks after every event; what it learns it keeps.
    pub watch: Option<Watch>,
}

/// Looks at the disks of a world after an event.
pub type Watch = Box<dyn FnMut(&[SimDisk])>;

impl World {
    /// A world at time zero, with as much memory as the node was configured for.
    pub fn new(node: Node, disks: Vec<SimDisk>, memory: units::Bytes) -> Self {
        let mut world = Self {
            node,
            disks,
            programs: Vec::new(),
            arena: vec![0; memory.as_usize()],
            now: Instant::EPOCH,
            alarms: BinaryHeap::new(),
            tickets: HashMap::new(),
            next_ticket: 0,
            started: 0,
            idle_steps: 0,
            watch: None,
        };
        world.settle();
        world
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Adds a program; it starts at once.
    pub fn add(&mut self, program: impl Program + 'static) {
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
    pub fn call(&mut self, op: Op) -> Result<Reply, Error> {
        let ticket = self.ticket();
        self.node.handle(self.now, Event::Request { ticket, op });
        loop {
            if let Some(result) = self.settle_for(Some(ticket)) {
                return result;
            }
            assert!(self.advance(Instant::MAX), "an operation that never ends");
        }
    }

    /// What a caller's span holds now.
    pub fn bytes(&self, span: node::Span) -> &[u8] {
        &self.arena[span.offset.as_usize()..][..span.len.as_usize()]
    }

    /// The same, to fill.
    pub fn bytes_mut(&mut self, span: node::Span) -> &mut [u8] {
        &mut self.arena[span.offset.as_usize()..][..span.len.as_usize()]
    }

    /// The power goes: the disks as they come back.
    pub fn cut(self, random: &mut Random) -> Vec<SimDisk> {
        self.disks.into_iter().map(|disk| disk.cut(random)).collect()
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
        for disk in 0..self.disks.len() {
            while let Some((id, started, finished, result)) =
                self.disks[disk].finish(self.now, &mut self.arena)
            {
                let disk = node::DiskIndex(disk as u16);
                self.node
                    .handle(self.now, Event::CommandDone { disk, id, started, finished, result });
            }
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

    fn next_event(&mut self) -> Option<Instant> {
        let commands = self.disks.iter().filter_map(SimDisk::next_finish).min();
        let alarm = self.alarms.peek().map(|Reverse((at, _))| *at);
        let waits = (0..self.disks.len()).filter_map(|disk| self.start_commands(disk)).min();
        // Commands that were started just now end as well.
        let started = self.disks.iter().filter_map(SimDisk::next_finish).min();
        [commands, alarm, waits, started].into_iter().flatten().min()
    }

    fn settle(&mut self) {
        self.settle_for(None);
    }

    /// Starts what can be started and delivers what has ended, until neither
    /// is left. Stops early with the result of `wanted`.
    fn settle_for(&mut self, wanted: Option<Ticket>) -> Option<Result<Reply, Error>> {
        loop {
            for disk in 0..self.disks.len() {
                self.start_commands(disk);
            }
            let output = self.node.poll_output()?;
            if Some(output.ticket) == wanted {
                return Some(output.result);
            }
            let (index, tag) =
                self.tickets.remove(&output.ticket).expect("an answer to a question");
            self.run(index, |program, context| program.answer(context, tag, output.result));
        }
    }

    /// Gives a disk all that it shall start now; when to ask again.
    fn start_commands(&mut self, disk: usize) -> Option<Instant> {
        loop {
            match self.node.poll_disk(self.now, node::DiskIndex(disk as u16)) {
                DiskPoll::Start(command) => {
                    self.disks[disk].start(self.now, command.id, command.action, &mut self.arena);
                }
                DiskPoll::Wait { until } => return until,
            }
        }
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    fn run(&mut self, index: usize, f: impl FnOnce(&mut dyn Program, &mut Context<'_>)) {
        let mut context =
            Context { now: self.now, arena: &mut self.arena, asked: Vec::new(), alarm: None };
        f(&mut *self.programs[index], &mut context);
        let Context { asked, alarm, .. } = context;
        if let Some(at) = alarm {
            self.alarms.push(Reverse((at, index)));
        }
        for (tag, op) in asked {
            let ticket = self.ticket();
            self.tickets.insert(ticket, (index, tag));
            self.node.handle(self.now, Event::Request { ticket, op });
        }
    }
}
