//! The load in the simulator.

use super::Found;
use super::load::{self, Load, READ, film_name};
use disk::HardDisk;
use node::{
    DiskSetup, Error, Mode, Node, Op, Placement, Policy, Reply, StreamId, WriteRange, calls,
};
use sim::{Context, Metadata, Program, SimDisk, Timing, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration, Instant};

/// Runs the load with so many films.
///
/// # Errors
/// What went wrong, in words.
pub fn run(load: &Load, policy: Policy, films: usize) -> Result<Found, String> {
    let mut world = world(load, policy).map_err(|error| error.to_string())?;
    for film in 0..films {
        world.add(Film { volume: film_name(film), stream: None, began: None, blocks: 0 });
    }
    // Films are at their pace by then.
    world.run_for(Duration::from_secs(2));
    let begin = world.now();
    let seen = Rc::new(RefCell::new(Seen::default()));
    let times = load
        .reads
        .iter()
        .map(|read| (begin + Duration::from_nanos(read.at.as_nanos() as u64), read.offset));
    world.add(Reads { times: times.collect(), next: 0, seen: Rc::clone(&seen) });
    world.run_for(Duration::from_nanos(load.time.as_nanos() as u64) + Duration::from_secs(2));
    let late = world.node.status(world.now()).disks[0].account.late_requests;
    let seen = seen.borrow();
    assert_eq!(seen.answered, load.reads.len(), "every read is answered");
    Ok(Found { mean: seen.total.as_nanos() as f64 / 1e6 / seen.answered as f64, late })
}

fn world(load: &Load, policy: Policy) -> Result<World<Metadata>, Error> {
    let timing = Timing::Drive(Box::new(HardDisk::new(&load.model)));
    let mut disks = vec![SimDisk::metadata_only(load.profile.capacity, timing)];
    sim::format(&mut disks, "section-7.1", &load.profile, 1).expect("an empty disk");
    let store = sim::open(&mut disks).expect("just made");
    let config = load::config(policy);
    let setup = DiskSetup::new(load.profile.clone());
    let node = Node::new(config, vec![setup], store)?;
    let mut world = World::new(node, disks, config.memory);
    for (name, size) in load.volumes() {
        let placement = Placement::default();
        world.call(calls::VolumeCreate {
            name: name.clone(),
            size,
            placement,
            access: Default::default(),
        })?;
        if !name.starts_with("rest") {
            fill(&mut world, &name, size)?;
        }
    }
    Ok(world)
}

fn fill(world: &mut World<Metadata>, name: &str, size: Bytes) -> Result<(), Error> {
    for at in 0..size / Bytes::MIB {
        let span = world.call(calls::Room { len: Bytes::MIB, target: None })?;
        let offset = Bytes::MIB * at;
        world.call(calls::Write {
            volume: name.into(),
            range: WriteRange::new(offset, span.len),
            span,
            priority: None,
        })?;
    }
    world.call(calls::Sync {})
}

/// Reads a film at its rate.
struct Film {
    volume: String,
    stream: Option<StreamId>,
    began: Option<Instant>,
    /// Blocks that it was given whole.
    blocks: u64,
}

/// What asks: open, read, and move on.
const OPEN: u64 = 0;
const READS: u64 = 1;
const MOVES: u64 = 2;

impl Film {
    fn read(&self, context: &mut Context<'_, Metadata>) {
        let stream = self.stream.expect("open");
        context.ask(READS, Op::StreamRead { stream, len_max: load::contract().block });
    }
}

impl Program<Metadata> for Film {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        let (volume, contract) = (self.volume.clone(), load::contract());
        let op = Op::StreamOpen { volume, mode: Mode::Read, contract, start: Bytes::ZERO };
        context.ask(OPEN, op);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        match result.expect("an admitted film on a sound disk") {
            Reply::Stream { stream, .. } => {
                self.stream = Some(stream);
                self.read(context);
            }
            Reply::Data { bytes: span, .. } => {
                self.began.get_or_insert(context.now);
                let stream = self.stream.expect("open");
                context.ask(MOVES, Op::StreamAdvance { stream, len: span.len });
            }
            Reply::Done if tag == MOVES => {
                self.blocks += 1;
                let contract = load::contract();
                let played = contract.rate.time_for(contract.block * self.blocks);
                context.alarm_at(self.began.expect("it was given a block") + played);
            }
            Reply::End => {}
            other => unreachable!("{other:?} was not asked for"),
        }
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        self.read(context);
    }
}

/// Reads at given instants.
struct Reads {
    times: Vec<(Instant, Bytes)>,
    next: usize,
    seen: Rc<RefCell<Seen>>,
}

#[derive(Default)]
struct Seen {
    answered: usize,
    total: Duration,
}

/// The tags of reads begin here; what is below gives memory back.
const ASKED: u64 = 1;

impl Program<Metadata> for Reads {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        context.alarm_at(self.times[0].0);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        if let Reply::Data { bytes: span, .. } = result.expect("a sound disk") {
            let mut seen = self.seen.borrow_mut();
            seen.answered += 1;
            seen.total += context.now - self.times[(tag - ASKED) as usize].0;
            context.ask(0, Op::Release { span });
        }
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        while let Some(&(at, offset)) = self.times.get(self.next) {
            if at > context.now {
                return context.alarm_at(at);
            }
            let op = Op::Read { volume: "files".into(), offset, len: READ, priority: None };
            context.ask(ASKED + self.next as u64, op);
            self.next += 1;
        }
    }
}
