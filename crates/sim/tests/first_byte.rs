//! How soon a reader that opens or jumps has its first byte, on idle and on busy disks, while
//! nobody is late; and what hundreds of them do to each other and to best effort.
//!
//! The table in docs/contracts.md is printed by
//! `a_first_byte_comes_soon_and_nobody_is_late` with
//! `SLACKLINE_FIRST_BYTES` jumps (100 where nothing is said).
#![allow(clippy::print_stdout)] // the table is the result

use crate::common;
use crate::common::{create, fill, late};
use disk::{HardDisk, Model, Profile};
use node::{
    Contract, DiskSetup, Error, Mode, Node, Op, Opening, Placement, Policy, Reply, StreamId,
};
use sim::{
    Context, Fault, Greedy, Metadata, Program, Random, SimDisk, Timing, World, pattern_matches,
};
use std::cell::RefCell;
use std::rc::Rc;
use store::{Blocks, EXTENT};
use units::{Bytes, Duration, Instant, Rate};

/// Volumes that lie apart on the disk.
const VOLUMES: u64 = 16;
/// What is recorded of each.
const LENGTH: Bytes = Bytes::mib(1024);
const MEMORY: Bytes = Bytes::mib(8192);

fn name(volume: u64) -> String {
    format!("v{}", volume % VOLUMES)
}

/// A disk with volumes over all of it.
fn world(model: &str) -> World<Metadata> {
    let model = Model::named(model).unwrap();
    let profile = Profile::of(&model);
    let timing = Timing::Drive(Box::new(HardDisk::new(&model)));
    let mut disks = vec![SimDisk::metadata_only(profile.capacity(), timing)];
    sim::format(&mut disks, "test", &profile, 1).unwrap();
    let mut store = sim::open(&mut disks).unwrap();
    let length = LENGTH.min((profile.capacity() / VOLUMES / 4).round_down(EXTENT));
    let apart = (profile.capacity() / 10 * 9 / VOLUMES - length).round_down(EXTENT);
    for volume in 0..VOLUMES {
        let id = store.create(&name(volume), length, &Placement::default()).unwrap();
        let extents = 0..length / EXTENT;
        extents.for_each(|extent| store.note_written(id, extent, &Blocks::first(EXTENT)));
        store.note_length(id, length);
        store.create(&format!("between{volume}"), apart, &Placement::default()).unwrap();
    }
    sim::commit(&mut disks, &mut store).unwrap();
    let config = node::Config { memory: MEMORY, ..common::config(Policy::SLACK) };
    let node = Node::new(config, vec![DiskSetup::new(profile)], store).unwrap();
    World::new(node, disks, MEMORY)
}

/// What all viewers saw.
#[derive(Debug, Default)]
struct Seen {
    opened: Vec<Duration>,
    jumped: Vec<Duration>,
    /// Bytes that were not there when they were due, from `steady` on.
    missed: u64,
    refused: u64,
}

/// Looks at its volume at its rate from when its contract holds, and jumps about.
struct Viewer {
    contract: Contract,
    volume: u64,
    /// So often, if at all, after `pause` on average; then it opens another volume.
    jumps: u64,
    pause: Duration,
    random: Random,
    stream: Option<StreamId>,
    left: u64,
    asked: Instant,
    opens: bool,
    is_first: bool,
    steady: Instant,
    moved: Bytes,
    next_jump: Instant,
    length: Bytes,
    seen: Rc<RefCell<Seen>>,
}

const OPEN: u64 = 0;
const BEGIN: u64 = 1;
const READ: u64 = 2;
const GIVE: u64 = 3;
const SEEK: u64 = 4;
const CLOSE: u64 = 5;

impl Viewer {
    fn new(contract: Contract, volume: u64, length: Bytes, seen: &Rc<RefCell<Seen>>) -> Self {
        Self {
            contract,
            volume,
            jumps: 0,
            pause: Duration::from_secs(1_000_000),
            random: Random::new(volume * 7 + 1),
            stream: None,
            left: 0,
            asked: Instant::EPOCH,
            opens: true,
            is_first: true,
            steady: Instant::EPOCH,
            moved: Bytes::ZERO,
            next_jump: Instant::MAX,
            length,
            seen: seen.clone(),
        }
    }

    fn jumping(self, jumps: u64, pause: Duration) -> Self {
        Self { jumps, pause, ..self }
    }

    fn stream(&self) -> StreamId {
        self.stream.unwrap()
    }

    fn place(&mut self) -> Bytes {
        Bytes::new(self.random.below(self.length.get() / 8 * 7))
    }

    fn read(&self, context: &mut Context<'_, Metadata>) {
        context.ask(READ, Op::StreamRead { stream: self.stream(), len_max: Bytes::kib(64) });
    }

    fn jump(&mut self, context: &mut Context<'_, Metadata>) {
        (self.asked, self.opens) = (context.now, false);
        let to = self.place();
        context.ask(SEEK, Op::StreamSeek { stream: self.stream(), to });
    }

    fn begun(&mut self, context: &mut Context<'_, Metadata>, steady: Instant) {
        (self.is_first, self.steady, self.moved) = (true, steady, Bytes::ZERO);
        let pause = self.random.span(self.pause * 2);
        self.next_jump = context.now.saturating_add(pause);
        self.read(context);
    }

    /// When the next bytes are due.
    fn due(&self) -> Instant {
        self.steady.saturating_add(self.contract.rate.time_for(self.moved))
    }
}

impl Program<Metadata> for Viewer {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        (self.asked, self.opens, self.left) = (context.now, true, self.jumps);
        let (volume, mode, contract) = (name(self.volume), Mode::Read, self.contract);
        let start = self.place();
        let opening = Box::new(Opening { volume, mode, contract, start, early: true, miss: None });
        context.ask(OPEN, Op::Open { opening, region: None });
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        if context.now < self.next_jump {
            return self.read(context);
        }
        match self.left {
            0 => context.ask(CLOSE, Op::StreamClose { stream: self.stream() }),
            _ => {
                self.left -= 1;
                self.jump(context);
            }
        }
    }

    fn answer(&mut self, context: &mut Context<'_, Metadata>, tag: u64, of: Result<Reply, Error>) {
        match (tag, of) {
            (OPEN, Ok(Reply::Stream { stream, .. })) => {
                self.stream = Some(stream);
                context.ask(BEGIN, Op::StreamBegin { stream });
            }
            (OPEN, Err(_)) => self.seen.borrow_mut().refused += 1,
            (BEGIN | SEEK, Ok(Reply::Ready { steady, .. })) => self.begun(context, steady),
            (READ, Ok(Reply::Data { bytes: span, .. })) => {
                let mut seen = self.seen.borrow_mut();
                let wait = context.now - self.asked;
                if self.is_first {
                    let all = if self.opens { &mut seen.opened } else { &mut seen.jumped };
                    all.push(wait);
                }
                self.is_first = false;
                seen.missed += u64::from(context.now > self.due());
                self.moved += span.len;
                context.ask(GIVE, Op::StreamAdvance { stream: self.stream(), len: span.len });
            }
            (GIVE, Ok(_)) => context.alarm_at(self.due().min(self.next_jump)),
            (READ, Ok(Reply::End)) => self.jump(context),
            (CLOSE, Ok(_)) => {
                self.volume += 5;
                self.start(context);
            }
            (tag, of) => unreachable!("{tag} was answered with {of:?}"),
        }
    }
}

/// In blocks of at most `most`, or of those that are chosen.
fn contract(world: &mut World<Metadata>, rate: u64, most: Option<Bytes>) -> Contract {
    let (volume, mode, rate) = (name(0), Mode::Read, Rate::per_second(rate));
    let Ok(Reply::Block { block }) = world.call(Op::Block { volume, mode, rate }) else {
        panic!("no block")
    };
    Contract { rate, block: most.map_or(block, |most| block.min(most)), burst: Bytes::ZERO }
}

fn length(world: &World<Metadata>) -> Bytes {
    world.node.status(world.now()).volumes[0].length
}

/// How many such streams the disk takes.
fn admitted(model: &str, rate: u64, block: Option<Bytes>) -> u64 {
    let mut world = world(model);
    let contract = contract(&mut world, rate, block);
    // All in the place where they cost most: who comes and goes fits anywhere.
    let open = |_| {
        let (volume, mode, start) = (name(VOLUMES - 1), Mode::Read, Bytes::ZERO);
        world.call(Op::StreamOpen { volume, mode, contract, start }).is_ok()
    };
    (0..).map(open).take_while(|&good| good).count() as u64
}

fn quantile(all: &mut [Duration], of_thousand: usize) -> Duration {
    all.sort_unstable();
    all[(all.len() * of_thousand / 1000).min(all.len() - 1)]
}

fn samples() -> u64 {
    let asked = std::env::var("SLACKLINE_FIRST_BYTES").ok();
    asked.map_or(100, |count| count.parse().expect("a number of jumps"))
}

/// A person who opens and jumps about, beside `others` who look on.
fn visit(model: &str, rate: u64, block: Option<Bytes>, others: u64) -> Seen {
    let mut world = world(model);
    let contract = contract(&mut world, rate, block);
    let length = length(&world);
    let (quiet, seen) = (Rc::default(), Rc::default());
    for number in 0..others {
        world.add(Viewer::new(contract, number, length, &quiet));
        world.run_for(Duration::from_millis(37));
    }
    world.run_for(Duration::from_secs(10));
    let viewer = Viewer::new(contract, 3, length, &seen).jumping(4, Duration::from_secs(2));
    world.add(viewer);
    while (seen.borrow().jumped.len() as u64) < samples() {
        world.run_for(Duration::from_secs(10));
        assert_eq!(quiet.borrow().refused + seen.borrow().refused, 0, "{model}: beside {others}");
    }
    assert_eq!(quiet.borrow().missed, 0, "{model}: those beside it");
    assert_eq!(late(&world), 0, "{model}: beside {others}");
    core::mem::take(&mut *seen.borrow_mut())
}

const DISKS: [(&str, u64, Option<Bytes>); 5] = [
    ("laptop-4200", 1_000_000, None),
    ("laptop-4200", 1_000_000, Some(Bytes::kib(512))),
    ("quantum-atlas-ii", 1_000_000, None),
    ("quantum-atlas-ii", 1_000_000, Some(Bytes::kib(512))),
    ("hdd-7200-20tb", 10_000_000, None),
];

/// With the block that is chosen an opening waits for no block of its own. A jump waits for what
/// the disk has, which may be a whole block: on old disks that are busy the shorter ones are for
/// those who jump.
#[test]
fn a_first_byte_comes_soon_and_nobody_is_late() {
    println!("| disk, rate, block | beside | open: p50 | p99.9 | jump: p50 | p99.9 |");
    println!("|---|---|---|---|---|---|");
    for (model, rate, block) in DISKS {
        let most = admitted(model, rate, block);
        for others in [0, (most * 9 / 10).min(most - 1)] {
            let mut seen = visit(model, rate, block, others);
            let ms = |all: &mut [Duration], of| {
                format!("{:.0} ms", quantile(all, of).as_nanos() as f64 / 1e6)
            };
            let named = block.map_or(String::from("chosen"), |block| block.to_string());
            println!(
                "| {model}, {rate} B/s, {named} | {others} of {most} | {} | {} | {} | {} |",
                ms(&mut seen.opened, 500),
                ms(&mut seen.opened, 999),
                ms(&mut seen.jumped, 500),
                ms(&mut seen.jumped, 999),
            );
            assert_eq!(seen.missed, 0, "{model}: it misses bytes beside {others}");
            let tenth = Duration::from_millis(100);
            assert!(quantile(&mut seen.opened, 500) <= tenth, "{model}: opens beside {others}");
            let waits_for_others = others > 0 && block.is_none();
            let within = if waits_for_others { tenth * 2 } else { tenth };
            assert!(quantile(&mut seen.jumped, 500) <= within, "{model}: jumps beside {others}");
        }
    }
}

/// Two hundred readers open at once, beside one who plays and a greedy program: those that are
/// admitted have their first bytes, nobody is late, and the greedy one is served all along.
#[test]
fn two_hundred_that_open_at_once_make_nobody_late_and_leave_best_effort_its_turns() {
    let mut world = world("hdd-7200-20tb");
    let contract = Contract { block: Bytes::mib(4), ..contract(&mut world, 200_000, None) };
    let length = length(&world);
    let (quiet, seen) = (Rc::default(), Rc::default());
    world.add(Viewer::new(contract, 0, length, &quiet));
    let greedy = Greedy::new(&name(1), length, Bytes::kib(64), 1, 5);
    let tally = greedy.tally();
    world.add(greedy);
    world.run_for(Duration::from_secs(5));
    for volume in 0..200 {
        let viewer = Viewer::new(contract, volume, length, &seen);
        world.add(viewer.jumping(1_000, Duration::from_secs(60)));
    }
    let mut before = tally.borrow().operations;
    for time in 0..12 {
        world.run_for(Duration::from_secs(10));
        let now = tally.borrow().operations;
        assert!(now > before, "best effort stands still for 10 s, time {time}");
        before = now;
    }
    let (seen, quiet) = (seen.borrow(), quiet.borrow());
    assert_eq!(seen.opened.len() as u64 + seen.refused, 200);
    assert!(seen.opened.len() >= 150, "{} admitted", seen.opened.len());
    assert!(seen.jumped.len() >= 150, "{} jumps", seen.jumped.len());
    assert_eq!((late(&world), quiet.missed, seen.missed), (0, 0, 0));
    let sum: Duration = seen.opened.iter().copied().sum();
    println!(
        "{} opened at once: first bytes after {} on average, {} at the most",
        seen.opened.len(),
        sum / seen.opened.len() as u64,
        seen.opened.iter().max().unwrap()
    );
}

/// Jumps within a block, to and fro, at all moments, also while an early read is under way or
/// fails: every byte that is given is the right one, and all memory comes back.
#[test]
fn whatever_comes_early_is_right_wherever_a_reader_jumps() {
    const SIZE: Bytes = Bytes::mib(12);
    let (mut early, mut gaps) = (0, 0);
    for seed in 0..20u64 {
        let mut random = Random::new(seed);
        let disks = 1 + seed as usize % 2;
        let mut world =
            common::world(common::config(Policy::SLACK), disks, Bytes::mib(64), common::drive);
        create(&mut world, "v", SIZE);
        fill(&mut world, "v", seed, SIZE);
        let block = Bytes::kib(256) * (1 << random.below(3));
        let rate = Rate::per_second(400_000);
        let contract = Contract { rate, block, burst: block };
        let shared = seed % 3 != 0;
        let (volume, mode, start) = ("v".to_owned(), Mode::Read, Bytes::new(seed * 70_000));
        let region = shared.then_some(node::Region(1));
        let opening =
            Box::new(Opening { volume, mode, contract, start, early: seed % 5 != 0, miss: None });
        let op = Op::Open { opening, region };
        let Ok(Reply::Stream { stream, .. }) = world.call(op) else { panic!("refused") };
        assert!(matches!(world.call(Op::StreamBegin { stream }), Ok(Reply::Ready { .. })));
        if seed % 4 == 3 {
            world.disks[0].faults = vec![Fault::Errors { ppm: 50_000, seed }];
        }
        let mut at = start;
        for round in 0..150 {
            for _ in 0..random.below(4) {
                let op = match shared {
                    true => Op::WindowNext { stream },
                    false => Op::StreamRead { stream, len_max: Bytes::kib(256) },
                };
                let len = match world.call(op) {
                    Ok(Reply::Data { bytes: span, offset }) => {
                        assert_eq!(offset, at, "seed {seed} round {round}");
                        let bytes = world.bytes_mut(span);
                        assert!(pattern_matches(seed, offset, bytes), "seed {seed} at {offset}");
                        early += u64::from(!((offset + span.len) % block).is_zero());
                        span.len
                    }
                    Ok(Reply::Gap { offset, len }) => {
                        assert_eq!(offset, at);
                        gaps += 1;
                        at += len;
                        if shared {
                            world.call(Op::WindowMoved { stream, len }).unwrap();
                        }
                        continue;
                    }
                    Ok(Reply::End) => break,
                    other => panic!("{other:?}"),
                };
                at += len;
                let op = match shared {
                    true => Op::WindowMoved { stream, len },
                    false => Op::StreamAdvance { stream, len },
                };
                assert_eq!(world.call(op), Ok(Reply::Done));
            }
            world.run_for(random.span(Duration::from_millis(60)));
            // Near where it is, or anywhere.
            let back = random.below(2 * block.get());
            let to = match random.below(3) {
                0 => Bytes::new(random.below(SIZE.get())),
                1 => Bytes::new(at.get().saturating_sub(back)),
                _ => Bytes::new((at.get() + back).min(SIZE.get())),
            };
            assert!(matches!(world.call(Op::StreamSeek { stream, to }), Ok(Reply::Ready { .. })));
            at = to;
            world.run_for(random.span(Duration::from_millis(40)));
        }
        assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
        let memory = world.node.status(world.now()).memory;
        assert_eq!((memory.regions, memory.windows), (Bytes::ZERO, Bytes::ZERO));
        assert!(late(&world) == 0 || seed % 4 == 3, "seed {seed}");
    }
    println!("{early} pieces of less than a block, {gaps} gaps");
    assert!(early > 500 && gaps > 2, "{early} {gaps}");
}
