//! A file system on a volume with a contract, as a block device has it, beside a film, a recording and
//! eight programs that copy without a pause, four of them in that file system: `slackline demo mixed
//! --copies 8` in simulated time, where no host is late and every request counts.
#![allow(clippy::print_stdout)] // the figures are part of the result

use crate::common::*;
use node::{Op, Policy, Priority, Reply, Service, Span, Target, WriteRange};
use sim::{Context, Keeps, Player, Program, Random, Recorder, World};
use std::cell::Cell;
use std::rc::Rc;
use units::{Bytes, Duration, Rate};

/// What the device has at least, whatever others do: as the demo's database.
const RATE: Rate = Rate::per_second(1 << 20);
const BLOCK: Bytes = Bytes::kib(256);
const SIZE: Bytes = Bytes::mib(96);
/// What a program copies before it syncs, and how much at a time.
const FILE: Bytes = Bytes::mib(4);
const PIECE: Bytes = Bytes::MIB;
const TIME: Duration = Duration::from_secs(60);

/// What somebody wants of a volume next.
#[derive(Clone, Copy)]
enum Step {
    Read(Bytes, Bytes),
    Write(Bytes, Bytes),
    Sync,
}

/// A program that has one request under way, as a file on nbdfuse has: the steps that it names, over and over.
struct OneByOne<N> {
    volume: String,
    next: N,
    now: Step,
    /// What it has moved.
    moved: Rc<Cell<Bytes>>,
}

const ASKED: u64 = 0;
const ROOM: u64 = 1;
const RELEASED: u64 = 2;

impl<N: FnMut() -> Step> OneByOne<N> {
    fn new(volume: &str, next: N) -> Self {
        Self { volume: volume.into(), next, now: Step::Sync, moved: Rc::default() }
    }

    fn begin<K: Keeps>(&mut self, context: &mut Context<'_, K>) {
        self.now = (self.next)();
        let (volume, priority) = (self.volume.clone(), None::<Priority>);
        match self.now {
            Step::Read(offset, len) => {
                context.ask(ASKED, Op::Read { volume, offset, len, priority })
            }
            Step::Write(offset, len) => {
                let target = Some(Target { volume, offset, priority });
                context.ask(ROOM, Op::Room { len, target });
            }
            Step::Sync => context.ask(ASKED, Op::SyncVolume { volume, told: Some(0) }),
        }
    }

    fn write<K: Keeps>(&self, context: &mut Context<'_, K>, span: Span) {
        let Step::Write(offset, len) = self.now else { panic!("room for nothing") };
        let range = WriteRange { behind: true, ..WriteRange::new(offset, len) };
        let volume = self.volume.clone();
        context.ask(ASKED, Op::Write { volume, range, span, priority: None });
    }
}

impl<K: Keeps, N: FnMut() -> Step> Program<K> for OneByOne<N> {
    fn start(&mut self, context: &mut Context<'_, K>) {
        self.begin(context);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, K>,
        tag: u64,
        result: Result<Reply, node::Error>,
    ) {
        match (tag, result.expect("it is served")) {
            (RELEASED, _) => return,
            (ROOM, Reply::Room { room: span }) => return self.write(context, span),
            (ROOM, other) => panic!("{other:?} is no room"),
            (_, Reply::Data { bytes: span, .. }) => context.ask(RELEASED, Op::Release { span }),
            (_, _) => {}
        }
        if let Step::Read(_, len) | Step::Write(_, len) = self.now {
            self.moved.set(self.moved.get() + len);
        }
        self.begin(context);
    }
}

/// Reads a file and writes it elsewhere, and syncs: over and over.
fn copier(from: Bytes, to: Bytes) -> impl FnMut() -> Step {
    let (mut at, mut turn) = (Bytes::ZERO, 0u64);
    move || {
        turn += 1;
        match turn % 2 {
            1 if at == FILE => {
                (at, turn) = (Bytes::ZERO, 0);
                Step::Sync
            }
            1 => Step::Read(from + at, PIECE),
            _ => {
                at += PIECE;
                Step::Write(to + at - PIECE, PIECE)
            }
        }
    }
}

/// Short reads and writes anywhere in the first part of a volume, with a sync now and then: a database and
/// the journal under it.
fn database(seed: u64) -> impl FnMut() -> Step {
    let mut random = Random::new(seed);
    move || {
        let len = Bytes::kib(4) * random.between(1, 16);
        let offset = Bytes::kib(4) * random.below((Bytes::mib(64) - len) / Bytes::kib(4));
        match random.below(10) {
            0 => Step::Sync,
            1..5 => Step::Read(offset, len),
            _ => Step::Write(offset, len),
        }
    }
}

/// What came of it.
#[derive(Debug)]
struct Seen {
    /// Requests of the device's contract, and those that were late.
    device: [u64; 2],
    /// The same of the film and the recording together.
    streams: [u64; 2],
    late_on_disk: u64,
    /// How long the film's or the recording's program waited at the most.
    longest_wait: Duration,
    /// What the device, and the copies beside it, moved in a second.
    device_rate: Rate,
    beside_rate: Rate,
}

fn scene(
    policy: Policy,
    seed: u64,
    timing: fn(&disk::Model, &disk::Profile, usize) -> sim::Timing,
) -> Seen {
    let config = config(policy);
    let mut world: World = world(config, 1, Bytes::GIB, timing);
    let film = Bytes::mib(96);
    for (name, size) in [("film", film), ("recording", film), ("device", SIZE), ("home", SIZE)] {
        create(&mut world, name, size);
        if name != "recording" {
            fill(&mut world, name, 1, size);
        }
    }
    let period = Duration::from_secs(1);
    let service = Service::Rate { rate: RATE, block: BLOCK, period };
    let given = world.call(Op::VolumeService { name: "device".into(), service });
    assert_eq!(given, Ok(Reply::Done));
    // As the demo's: 1 MB/s each, in blocks of 512 KiB.
    let stream = contract(1_000_000, Bytes::kib(512), Bytes::kib(64));
    let player = Player::new("film", 1, stream, Bytes::kib(64), film);
    let recorder = Recorder::new("recording", 2, stream, Bytes::kib(64), film);
    let streams = [player.tally(), recorder.tally()];
    world.add(player);
    world.add(recorder);
    let mut moved: [Vec<Rc<Cell<Bytes>>>; 2] = [Vec::new(), Vec::new()];
    let client = OneByOne::new("device", database(seed));
    moved[0].push(client.moved.clone());
    world.add(client);
    for copy in 0..8 {
        let volume = ["device", "home"][copy as usize % 2];
        let from = Bytes::mib(64) + FILE * (copy / 2 * 2);
        let client = OneByOne::new(volume, copier(from, from + FILE));
        moved[copy as usize % 2].push(client.moved.clone());
        world.add(client);
    }
    let moved = || moved.each_ref().map(|all| all.iter().map(|one| one.get()).sum::<Bytes>());
    world.run_for(Duration::from_secs(5));
    let before = moved();
    world.run_for(TIME);
    let after = moved();
    let rate = |of: usize| Rate::of(after[of] - before[of], TIME);
    let status = world.node.status(world.now());
    let device = world.node.volume("device").unwrap().account;
    let of_streams = status.streams.iter().map(|stream| &stream.account);
    let of_streams = of_streams
        .fold([0, 0], |sum: [u64; 2], one| [sum[0] + one.requests, sum[1] + one.late_requests]);
    let tallies = streams.each_ref().map(|tally| tally.borrow());
    for tally in &tallies {
        assert!(tally.error.is_none() && tally.wrong.is_zero(), "{tally:?}");
        assert!(!tally.done, "the film is longer");
    }
    Seen {
        device: [device.requests, device.late_requests],
        streams: of_streams,
        late_on_disk: late(&world),
        longest_wait: tallies.iter().map(|tally| tally.wait_max).max().unwrap(),
        device_rate: rate(0),
        beside_rate: rate(1),
    }
}

#[test]
fn a_device_with_a_contract_a_film_and_a_recording_keep_theirs_beside_eight_copies() {
    for (seed, timing) in [(1, drive as fn(&_, &_, _) -> _), (2, within_bound), (3, at_bound)] {
        let seen = scene(Policy::SLACK, seed, timing);
        println!("{seen:?}");
        let [device, streams] = [seen.device, seen.streams];
        assert_eq!((device[1], streams[1], seen.late_on_disk), (0, 0, 0), "{seed}: {seen:?}");
        assert!(device[0] > 100 && streams[0] > 100, "{seed}: {seen:?}");
        assert!(seen.longest_wait.is_zero(), "{seed}: {seen:?}");
        // Its requests are not many short ones alone, and the copies beside it are under way.
        assert!(seen.device_rate >= RATE && seen.beside_rate >= RATE, "{seed}: {seen:?}");
    }
}

/// The load is one: without contracts it makes everybody late.
#[test]
fn without_deadlines_the_same_copies_make_a_film_late() {
    let seen = scene(policies::FCFS, 1, drive);
    assert!(seen.streams[1] > 10 && seen.late_on_disk > 10, "{seen:?}");
}
