//! Streams that read and write: a program looks at the bytes within its burst and changes some,
//! in any order, and only these change.

use crate::common::*;
use node::{Contract, Error, Mode, Op, Policy, Region, Reply, Span, StreamId};
use sim::{Greedy, Player, Random, SimDisk, Timing, World, pattern};
use std::collections::{HashMap, VecDeque};
use units::{Bytes, Instant};

const SIZE: Bytes = Bytes::mib(2);

fn open(world: &mut World, mode: Mode, contract: Contract, start: Bytes) -> StreamId {
    let op = Op::WindowOpen { volume: "v".into(), mode, contract, start, region: Region(7) };
    match world.call(op) {
        Ok(Reply::Stream { stream, .. }) => stream,
        other => panic!("{other:?}"),
    }
}

/// What the volume should hold: byte for byte, and what else each byte that is not known to be
/// on the medium may be after a power cut.
struct Oracle {
    bytes: Vec<u8>,
    /// What a byte was before, of those that were changed since they were last on the medium.
    before: HashMap<usize, Vec<u8>>,
}

impl Oracle {
    fn change(&mut self, at: usize, to: u8) {
        self.before.entry(at).or_default().push(self.bytes[at]);
        self.bytes[at] = to;
    }

    /// Everything in this range is on the medium as it is.
    fn settle(&mut self, from: usize, upto: usize) {
        self.before.retain(|at, _| !(from..upto).contains(at));
    }

    /// Whether these disks hold what they may.
    fn check(&self, mut disks: Vec<SimDisk>, what: &str) {
        let store = sim::open(&mut disks).expect("the pool opens");
        let volume = store.find("v").expect("it is there");
        let length = volume.length().as_usize();
        let mut found = vec![0; SIZE.as_usize()];
        for (extent, bytes) in (0u64..).zip(found.chunks_mut(store::EXTENT.as_usize())) {
            let location = store.locate(volume.id(), extent).expect("an extent");
            disks[location.disk.as_usize()].read(location.offset.unwrap(), bytes);
        }
        for (at, (&got, &wanted)) in found.iter().zip(&self.bytes).enumerate().take(length) {
            let may = self.before.get(&at).is_some_and(|before| before.contains(&got));
            assert!(got == wanted || may, "{what}: byte {at} is {got}, not {wanted}");
        }
    }
}

/// A program and what it knows.
struct Program {
    stream: StreamId,
    asked: Contract,
    /// What it was told of and has not handed over whole.
    rooms: VecDeque<(usize, Span)>,
    told: usize,
    /// Its playout point.
    line: usize,
    /// How far it may go on by now, and look ahead: `b` and the least that any moment before
    /// allows, less where it is.
    credit: Bytes,
    at: Instant,
    /// Its contract holds in full.
    is_steady: bool,
}

impl Program {
    fn time_passes(&mut self, now: Instant) {
        let earned = self.asked.rate.bytes_in(now - self.at);
        self.credit = (self.credit + earned).min(self.asked.burst.max(self.asked.block));
        self.at = now;
    }

    /// Hears of everything before `upto`, which is less than a burst ahead: at once.
    fn hear(&mut self, world: &mut World, oracle: &Oracle, upto: usize) {
        while self.told < upto {
            let before = world.now();
            let room = world.call(Op::WindowNext { stream: self.stream });
            let Ok(Reply::Room { room: span }) = room else { panic!("{room:?}") };
            assert!(!self.is_steady || world.now() == before, "it waited at {}", self.told);
            self.is_steady = true;
            self.time_passes(world.now());
            let (from, end) = (self.told, self.told + span.len.as_usize());
            let found = world.bytes(span).iter().zip(&oracle.bytes[from..end]);
            let wrong = found.enumerate().find(|(_, (got, wanted))| got != wanted);
            assert_eq!(wrong, None, "as the volume holds it, from {from}");
            self.rooms.push_back((from, span));
            self.told = end;
        }
    }

    /// The memory of one byte.
    fn place(&self, at: usize) -> Span {
        let found = self.rooms.iter().rev().find(|(from, _)| *from <= at);
        let (from, span) = found.expect("it is held");
        assert!(at < from + span.len.as_usize());
        Span { offset: span.offset + Bytes::new((at - from) as u64), len: Bytes::new(1) }
    }

    fn move_to(&mut self, world: &mut World, to: usize) {
        let len = Bytes::new((to - self.line) as u64);
        assert_eq!(world.call(Op::WindowMoved { stream: self.stream, len }), Ok(Reply::Done));
        self.line = to;
        self.rooms.retain(|(from, span)| from + span.len.as_usize() > to);
    }
}

/// Random accesses within section 2.3, beside others that have much of the disks: every byte is
/// in memory as the volume holds it, no request is late, and wherever the power goes nothing
/// that was synced is lost and nothing but what was written has changed.
#[test]
fn a_program_changes_what_it_likes_within_its_burst_and_nothing_else_changes() {
    let (mut changes, mut cuts, mut seeks) = (0, 0, 0);
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let disks = 1 + seed as usize % 3;
        let mut world = world(config(Policy::SLACK), disks, Bytes::mib(96), |_, profile, index| {
            match seed % 2 {
                0 => Timing::Percent(Box::new(profile.clone()), 100),
                _ => {
                    let random = Random::new(seed + index as u64);
                    Timing::WithinBound(Box::new(profile.clone()), random)
                }
            }
        });
        create(&mut world, "v", SIZE);
        create(&mut world, "other", Bytes::mib(8));
        fill(&mut world, "other", 6, Bytes::mib(8));
        // Recorded to the end, or to somewhere.
        let length = match seed % 3 {
            0 => SIZE,
            _ => Bytes::mib(1) + Bytes::kib(4) * random.between(1, 200),
        };
        fill(&mut world, "v", 5, length);
        let mut bytes = vec![0; SIZE.as_usize()];
        pattern(5, Bytes::ZERO, &mut bytes[..length.as_usize()]);
        let mut oracle = Oracle { bytes, before: HashMap::new() };
        let block = Bytes::kib(16) * (1 << random.below(3));
        let asked = contract(block.get() * 4, block, block * random.below(5));
        let start = block * random.below(4);
        let stream = open(&mut world, Mode::Update, asked, start);
        let player = contract(400_000, Bytes::kib(128), Bytes::ZERO);
        world.add(Player::new("other", 6, player, Bytes::kib(32), Bytes::mib(8)));
        world.add(Greedy::new("other", Bytes::mib(8), Bytes::kib(64), 4, seed));
        let (at, line) = (world.now(), start.as_usize());
        let mut program = Program {
            stream,
            asked,
            rooms: VecDeque::new(),
            told: line,
            line,
            credit: Bytes::ZERO,
            at,
            is_steady: false,
        };
        let (mut durable, end) = (line, SIZE.as_usize());
        for round in 0..110u32 {
            world.run_for(random.span(asked.period() / 2));
            program.time_passes(world.now());
            // The playout point goes on, as far as its rate has brought it.
            let to = program.line + random.below(program.credit.get() + 1) as usize;
            let to = to.min(end);
            program.hear(&mut world, &oracle, to);
            program.credit -= Bytes::new((to - program.line) as u64);
            program.move_to(&mut world, to);
            // Looks, and changes, as far ahead of it as the contract says.
            let most = program.line + program.credit.as_usize();
            for _ in 0..random.below(4) {
                let from = program.line + random.below(program.credit.get() + 1) as usize;
                let upto = (from + random.between(1, 9_000) as usize).min(most);
                let (from, upto) = (from.min(end), upto.min(end));
                program.hear(&mut world, &oracle, upto);
                for at in from..upto {
                    let place = program.place(at);
                    assert_eq!(world.bytes(place)[0], oracle.bytes[at], "seed {seed} at {at}");
                    if random.chance(60) {
                        let byte = random.bits() as u8;
                        world.bytes_mut(place)[0] = byte;
                        oracle.change(at, byte);
                        changes += 1;
                    }
                }
            }
            if random.chance(25) {
                let synced = world.call(Op::StreamSync { stream });
                let Ok(Reply::Durable { upto }) = synced else { panic!("{synced:?}") };
                assert!(upto.as_usize() >= program.line, "seed {seed}");
                oracle.settle(durable, program.line);
                durable = program.line;
            }
            if random.chance(30) {
                let disks = world.disks.iter().map(|disk| disk.clone().cut(&mut random));
                oracle.check(disks.collect(), &format!("seed {seed} round {round}"));
                cuts += 1;
            }
            if program.line == end || random.chance(6) {
                // What was changed is handed over before it goes elsewhere.
                let changed = oracle.before.keys().map(|at| at + 1).max().unwrap_or(0);
                program.move_to(&mut world, changed.max(program.line));
                let to = block * random.below(length.get() / block.get());
                let sought = world.call(Op::StreamSeek { stream, to });
                assert!(matches!(sought, Ok(Reply::Ready { .. })), "{sought:?}");
                oracle.before.clear();
                program.rooms.clear();
                (program.told, program.line) = (to.as_usize(), to.as_usize());
                (program.credit, program.is_steady) = (Bytes::ZERO, false);
                program.at = world.now();
                durable = program.line;
                seeks += 1;
            }
        }
        let account = world.node.stream(stream).expect("open").account;
        assert_eq!((account.underruns, account.late_requests), (0, 0), "seed {seed}");
        let changed = oracle.before.keys().map(|at| at + 1).max().unwrap_or(0);
        program.move_to(&mut world, changed.max(program.line));
        let closed = world.call(Op::StreamClose { stream });
        assert!(matches!(closed, Ok(Reply::Durable { .. })), "{closed:?}");
        oracle.before.clear();
        oracle.check(world.disks.clone(), "at the end");
        assert_eq!(late(&world), 0, "seed {seed}");
        let memory = world.node.status(world.now()).memory;
        assert_eq!((memory.regions, memory.windows), (Bytes::ZERO, Bytes::ZERO));
    }
    eprintln!("{changes} changes, {cuts} cuts, {seeks} seeks");
    assert!(changes > 1_000_000 && cuts > 200 && seeks > 40);
}

/// It costs a read and a write for each block, and is refused where there is room for only one
/// of them; it shares its window, or is not opened.
#[test]
fn reading_and_writing_is_admitted_as_both() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::mib(96), |_, profile, _| {
        Timing::Percent(Box::new(profile.clone()), 100)
    });
    create(&mut world, "v", SIZE);
    let block = Bytes::kib(64);
    let share = |world: &mut World, mode| {
        let stream = open(world, mode, contract(300_000, block, Bytes::ZERO), Bytes::ZERO);
        let status = world.node.stream(stream).expect("open");
        assert!(world.call(Op::StreamClose { stream }).is_ok());
        (status.shares[0].1, status.window / block)
    };
    let [read, write, both] =
        [Mode::Read, Mode::Write, Mode::Update].map(|mode| share(&mut world, mode));
    assert_eq!(both.0, read.0 + write.0);
    assert_eq!((read.1, write.1, both.1), (3, 3, 5));
    // Fits one way, and not both.
    let much = contract(500_000, block, Bytes::ZERO);
    let ask = |mode| {
        let (volume, start, region) = ("v".into(), Bytes::ZERO, Region(7));
        Op::WindowOpen { volume, mode, contract: much, start, region }
    };
    for mode in [Mode::Read, Mode::Write] {
        let opened = world.call(ask(mode));
        let Ok(Reply::Stream { stream, .. }) = opened else { panic!("{mode:?}: {opened:?}") };
        assert!(world.call(Op::StreamClose { stream }).is_ok());
    }
    let refused = world.call(ask(Mode::Update));
    let Err(Error::Refused(refusal)) = refused else { panic!("{refused:?}") };
    let fits = contract(refusal.rate_max.get(), block, Bytes::ZERO);
    let stream = open(&mut world, Mode::Update, fits, Bytes::ZERO);
    assert!(world.call(Op::StreamClose { stream }).is_ok());
    let (volume, mode, start) = ("v".into(), Mode::Update, Bytes::ZERO);
    let alone = world.call(Op::StreamOpen { volume, mode, contract: fits, start });
    assert!(matches!(alone, Err(Error::Invalid { what: "mode", .. })), "{alone:?}");
}

/// A program that runs ahead of its contract waits, and is told of no block before what the
/// volume holds is in it.
#[test]
fn what_was_not_read_is_not_told() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::mib(96), |_, profile, _| {
        Timing::Percent(Box::new(profile.clone()), 100)
    });
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 5, SIZE);
    let block = Bytes::kib(64);
    let asked = contract(200_000, block, Bytes::ZERO);
    let stream = open(&mut world, Mode::Update, asked, Bytes::ZERO);
    let mut at = Bytes::ZERO;
    while at < SIZE {
        let room = world.call(Op::WindowNext { stream });
        let Ok(Reply::Room { room: span }) = room else { panic!("{room:?}") };
        assert!(sim::pattern_matches(5, at, world.bytes(span)), "at {at}");
        at += span.len;
        let moved = world.call(Op::WindowMoved { stream, len: span.len });
        assert_eq!(moved, Ok(Reply::Done));
    }
    let full = world.call(Op::WindowNext { stream });
    assert_eq!(full, Err(Error::VolumeFull { size: SIZE }));
    assert!(world.node.stream(stream).expect("open").account.throttled > 0);
    assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Durable { upto: SIZE }));
}
