//! Several programs at once: what was answered is read by everybody from then on, what was
//! synced is there after any crash, and nobody ever sees bytes that are not his volume's.
//!
//! Each history is a few clients on three volumes, with best effort of every priority and
//! service, streams, resizes and deletions in each other's way, beside disks that fail now
//! and then, and with the power cut in between; [`sim::history::check`] looks for an order
//! that explains all that they were told. `SLACKLINE_HISTORIES`: how many,
//! `SLACKLINE_FIRST`: which the first.

mod client;

use crate::common::{MEMORY, config, model, world_of};
use client::{CELL, Client, Log, Shape, VOLUMES, name, placement, stamps};
use node::{Node, Op, Policy, Reply};
use sim::history::{Event, Kind, Violation, check};
use sim::{AnyOrder, Fault, Ordering, Random, SimDisk, Timing, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration};

/// How a history goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Of a million commands so many fail.
    Errors(u64),
    /// Exactly the one with this number, on disk 0.
    One(u64),
}

/// What a history came to.
#[derive(Debug, Default)]
struct Outcome {
    done: [u64; 8],
    reads: u64,
    shrunk_beside: u64,
    /// Commands that disk 0 has served before the first cut.
    commands: u64,
    /// The most commands that a disk had at a time.
    deepest: usize,
    /// What best effort had from memory.
    from_memory: Bytes,
}

/// One history; its violation where there is no order that explains it.
fn history(seed: u64, trouble: Trouble) -> Result<Outcome, Box<Violation>> {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut config = config(Policy::SLACK);
    config.commit_interval = Duration::from_millis(random.between(50, 800));
    // Little memory now and then, so that programs wait for it.
    config.memory = if random.chance(30) { node::limits::MEMORY_MIN } else { MEMORY };
    let model = model(Bytes::mib(96));
    // In every other history the disks have several commands, and serve them in any order.
    let in_any_order = Random::new(seed ^ 0x0dd).chance(50);
    let profile = disk::Profile::of(&model).with_queue(if in_any_order { 8 } else { 1 });
    let disks = random.between(1, 2) as usize;
    let mut world = world_of(config, disks, (&model, profile.clone()), |_, profile, index| {
        let random = Random::new(seed + index as u64);
        match in_any_order {
            true => Timing::Ordering(Ordering::Any(Box::new(AnyOrder::new(profile, random)))),
            false => Timing::WithinBound(Box::new(profile.clone()), random),
        }
    });
    // In every other history disks go on before the node hears of the ends, as with threads.
    let mut host = Random::new(seed ^ 0x1a7e);
    world.told_after = host.chance(50).then(|| host.span(Duration::from_millis(5)));
    let log = Rc::new(RefCell::new(Log::default()));
    // In two of three what best effort reads is cached, and read ahead.
    let is_cached = seed % 3 != 1;
    if is_cached {
        world.node.cache_reads();
    }
    // In every fourth history blocks are longer than extents, and lie in pieces: what is between
    // the volumes is taken and given back. In every fourth volumes are thin.
    let shape = [Shape::Usual, Shape::Thin, Shape::Usual, Shape::Long][(seed / 4 % 4) as usize];
    let is_long = shape == Shape::Long;
    let make = |world: &mut World, name: String, mib| {
        let (placement, access) =
            (placement(if mib > 1 { shape } else { Shape::Usual }), Default::default());
        let op = Op::VolumeCreate { name, size: Bytes::mib(mib), placement, access };
        assert!(matches!(world.call(op), Ok(Reply::Made { .. })));
    };
    if is_long {
        (0..6).for_each(|number| make(&mut world, format!("between{number}"), 1));
        for number in [0, 2, 3] {
            let name = format!("between{number}");
            assert_eq!(
                world.call(Op::VolumeDelete { name, only: None, keep_directory: false }),
                Ok(Reply::Done)
            );
        }
    }
    for volume in 0..VOLUMES {
        make(&mut world, name(volume), 3);
        log.borrow_mut().sized(volume, Bytes::mib(3));
    }
    let clients = random.between(2, 6) as u32;
    for number in 0..clients {
        let client = Client::new(number + 1, seed, random.between(10, 40), log.clone());
        world.add(client.of_shape(shape));
    }
    let mut outcome = Outcome::default();
    for round in 0..2 {
        world.disks[0].faults.extend(match trouble {
            Trouble::Errors(ppm) => Some(Fault::Errors { ppm, seed: seed + round }),
            Trouble::One(number) if round == 0 => Some(Fault::ErrorAt { number }),
            Trouble::One(_) => None,
        });
        world.run_for(random.span(Duration::from_secs(3)) + Duration::from_millis(200));
        if round == 0 {
            outcome.commands = world.disks[0].served();
        }
        for disk in &mut world.disks {
            disk.faults.clear();
        }
        let at = world.now() + Duration::from_secs(1);
        let setup = || node::DiskSetup::new(profile.clone());
        let open = |disks: &mut [SimDisk]| {
            let store = sim::open(disks).map_err(|error| error.to_string())?;
            let setups = disks.iter().map(|_| setup()).collect();
            let mut opened = Node::new(config, setups, store).map_err(|error| error.to_string());
            if let (true, Ok(node)) = (is_cached, &mut opened) {
                node.cache_reads();
            }
            opened
        };
        log.borrow_mut().crash();
        outcome.from_memory += world.node.status(world.now()).memory.from_memory;
        world.cut_and_return(at, &mut random, open).expect("the pool opens after a cut");
    }
    world.run_for(Duration::from_secs(20));
    read_all(&mut world, &log);
    let log = log.borrow();
    (outcome.done, outcome.shrunk_beside) = (log.done, log.shrunk_beside);
    outcome.reads = check(&log.events)?.reads;
    outcome.deepest = world.disks.iter().map(SimDisk::deepest).max().unwrap_or(0);
    Ok(outcome)
}

/// Reads all volumes once everybody has ended.
fn read_all(world: &mut World, log: &Rc<RefCell<Log>>) {
    for volume in 0..VOLUMES {
        let status = world.node.status(world.now());
        let size = status.volumes.iter().find(|found| found.name == name(volume)).map(|v| v.size);
        let mut offset = Bytes::ZERO;
        while offset < size.unwrap_or_default() {
            let at_invoke = log.borrow_mut().tick();
            let read = Op::Read { volume: name(volume), offset, len: Bytes::MIB, priority: None };
            let Ok(Reply::Data { bytes: span, .. }) = world.call(read) else {
                panic!("it can be read")
            };
            let stamps = stamps(world.bytes(span), volume, offset);
            let cells = offset / CELL..(offset + span.len) / CELL;
            let mut log = log.borrow_mut();
            let at_return = Some(log.tick());
            let kind = Kind::Read { stamps };
            log.events.push(Event { client: 0, at_invoke, at_return, kind, volume, cells });
            drop(log);
            world.call(Op::Release { span }).expect("its memory");
            offset += Bytes::MIB;
        }
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |number| number.parse().expect("a number"))
}

#[test]
fn whoever_else_writes_what_was_answered_is_read_and_what_was_synced_is_there() {
    let (mut done, mut shrunk_beside, mut deep, mut cached) = ([0; 8], 0, 0, 0);
    let (histories, first) = (number("SLACKLINE_HISTORIES", 300), number("SLACKLINE_FIRST", 0));
    for seed in first..first + histories {
        let trouble = Trouble::Errors([0, 0, 1_000, 20_000][seed as usize % 4]);
        let outcome = history(seed, trouble);
        let outcome = outcome.unwrap_or_else(|found| panic!("history {seed}: {found}"));
        for (sum, done) in done.iter_mut().zip(outcome.done) {
            *sum += done;
        }
        done[7] += outcome.reads;
        shrunk_beside += outcome.shrunk_beside;
        deep += u64::from(outcome.deepest > 2);
        cached += u64::from(!outcome.from_memory.is_zero());
        if (seed + 1).is_multiple_of(10_000) {
            eprintln!("{} of {histories} histories", seed + 1 - first);
        }
    }
    let [writes, changes, reads, syncs, streams, durable, played, cells] = done;
    eprintln!(
        "{histories} histories: {writes} writes, {changes} resizes and deletions, {reads} reads, \
         {syncs} syncs, {streams} streams, {durable} times durable, {played} pieces played, \
         {cells} cells read, {shrunk_beside} volumes made smaller while somebody recorded to them, \
         {deep} with three commands or more at a disk, {cached} in which best effort had something \
         from memory"
    );
    assert!(cached > histories / 10, "only {cached} had something from memory");
    assert!(deep > histories / 10, "only {deep} with several commands at a disk");
    assert!(shrunk_beside > histories / 100, "only {shrunk_beside} made smaller beside a writer");
    for (what, count) in
        [writes, changes, reads, syncs, streams, durable, played].iter().enumerate()
    {
        assert!(*count > histories / 4, "only {count} of kind {what}");
    }
}

/// Each command of a history fails once, for as many histories as there are commands.
#[test]
fn each_command_fails_once_and_nothing_that_was_acknowledged_is_lost() {
    for seed in 0..number("SLACKLINE_HISTORIES", 300).div_ceil(100) {
        let commands = history(seed, Trouble::Errors(0)).expect("nothing fails").commands;
        assert!(commands > 20, "only {commands} commands");
        for number in 0..commands {
            let outcome = history(seed, Trouble::One(number));
            outcome.unwrap_or_else(|found| panic!("history {seed}, command {number}: {found}"));
        }
        eprintln!("history {seed}: each of {commands} commands failed once");
    }
}
