//! Readers of a volume close behind one another, and behind its writer, have from memory what one
//! of them has read or written: the bytes of the disk, and no time of it.
//!
//! Each copy in these worlds is held against the disk at the moment at which it is made
//! (`SimDisk::check_copy`), as in all others.

#![allow(clippy::print_stdout)] // what was measured

use crate::common::*;
use disk::{Kind, Line, LinearProfile, Profile};
use node::{Config, Contract, Error, Mode, Op, Policy, Region, Reply, StreamId};
use sim::{
    Context, Greedy, Metadata, Player, Program, Random, Recorder, Shared, SimDisk, Timing,
    WindowRecorder, World, pattern_matches,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::{Bytes, Duration, Instant, Rate};

const BLOCK: Bytes = Bytes::kib(256);
const RATE: u64 = 1 << 18;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn camera_world(policy: Policy) -> World {
    let config = Config { host_latency: Duration::from_millis(1), ..config(policy) };
    let mut world: World = world(config, 1, Bytes::mib(512), drive);
    world.node.share_reads();
    world
}

fn from_memory(world: &World) -> Bytes {
    world.node.status(world.now()).memory.from_memory
}

/// A camera of 256 KiB/s, and viewers that come 1 s behind it and every 400 ms from then on.
fn camera_and_viewers(world: &mut World, viewers: u64, length: Bytes) -> (Shared, Vec<Shared>) {
    create(world, "camera", length);
    let asked = contract(RATE, BLOCK, BLOCK);
    let camera = Recorder::new("camera", 3, asked, Bytes::kib(64), length);
    let told = camera.tally();
    world.add(camera);
    world.run_for(seconds(1));
    let watched = (0..viewers).map(|_| {
        let viewer = Player::new("camera", 3, asked, Bytes::kib(64), length);
        let told = viewer.tally();
        world.add(viewer);
        world.run_for(Duration::from_millis(400));
        told
    });
    (told, watched.collect())
}

/// Ten viewers of one live camera cost no read of the disk once they all are there, under each
/// policy that keeps contracts; every byte is right, nobody is late, by the program's clock neither,
/// and little memory is taken.
#[test]
fn ten_viewers_of_a_live_camera_cost_no_read() {
    for policy in [Policy::SLACK, Policy::DELTA_L] {
        let mut world = camera_world(policy);
        // An answer takes a while to its program, and who waits for the camera has nothing else.
        world.delivery = Some(Box::new(|| Duration::from_micros(300)));
        let length = Bytes::mib(18);
        let (camera, viewers) = camera_and_viewers(&mut world, 10, length);
        world.run_for(seconds(10));
        let (before, had) = (world.node.status(world.now()), from_memory(&world));
        let reads = count_reads(&mut world);
        world.run_for(seconds(30));
        let after = world.node.status(world.now());
        assert_eq!(reads.get(), 0, "reads of the disk under {policy:?}");
        for stream in &after.streams {
            let account = stream.account;
            let late = (account.late_requests, account.underruns);
            assert_eq!(late, (0, 0), "{policy:?}: {account:?}");
        }
        let had = from_memory(&world) - had;
        assert!(had >= Bytes::mib(70), "{had} of ten times 7.5 MiB");
        let kept = before.memory.kept.max(after.memory.kept);
        assert!(kept > Bytes::ZERO && kept <= Bytes::mib(3), "{kept} kept for 5 s");
        world.run_for(seconds(60));
        assert_eq!(camera.borrow().error, None);
        for viewer in viewers {
            let viewer = viewer.borrow();
            assert!(viewer.done && viewer.error.is_none(), "{viewer:?}");
            assert_eq!(
                (viewer.bytes, viewer.wrong, viewer.gaps),
                (length, Bytes::ZERO, Bytes::ZERO)
            );
        }
        assert_eq!(late(&world), 0);
        let memory = world.node.status(world.now()).memory;
        assert_eq!((memory.kept, memory.windows), (Bytes::ZERO, Bytes::ZERO), "all is given back");
    }
}

/// What a camera writes from memory that it shares with the daemon may be changed there by its
/// program: so its first viewers read from the disk. All ask at the same time, when a block is
/// whole; the disk has begun with the second when what it read for the first is kept.
#[test]
fn a_camera_that_shares_its_window_costs_two_reads() {
    let mut world = camera_world(Policy::SLACK);
    let (asked, length) = (contract(RATE, BLOCK, BLOCK), Bytes::mib(18));
    create(&mut world, "camera", length);
    let pieces = [Bytes::kib(64), length, length];
    world.add(WindowRecorder::new(("camera", 3), asked, Region(1), pieces));
    world.run_for(seconds(1));
    let viewers: Vec<Shared> = (0..10)
        .map(|_| {
            let viewer = Player::new("camera", 3, asked, Bytes::kib(64), length);
            let told = viewer.tally();
            world.add(viewer);
            world.run_for(Duration::from_millis(400));
            told
        })
        .collect();
    world.run_for(seconds(10));
    let reads = count_reads(&mut world);
    world.run_for(seconds(30));
    assert!((29..=62).contains(&reads.get()), "{} reads of 30 blocks", reads.get());
    world.run_for(seconds(60));
    for viewer in viewers {
        let viewer = viewer.borrow();
        assert_eq!((viewer.bytes, viewer.wrong, viewer.gaps), (length, Bytes::ZERO, Bytes::ZERO));
    }
    assert_eq!(late(&world), 0);
}

/// Counts what disks read for streams from now on.
fn count_reads(world: &mut World) -> Rc<Cell<u64>> {
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    world.observe = Some(Box::new(move |end| {
        if end.request.is_some() && !end.read.is_zero() {
            counted.set(counted.get() + 1);
        }
    }));
    count
}

/// A viewer that pauses once, for so long, when it has had so much.
struct Pausing {
    contract: Contract,
    /// It asks for more as soon as it has something, and so waits for the camera at its end.
    is_eager: bool,
    pause: Option<(Bytes, Duration)>,
    stream: Option<StreamId>,
    /// Bytes that it had, and that were wrong or lost; whether it is done.
    told: Rc<RefCell<(Bytes, Bytes, bool)>>,
}

const OPEN: u64 = 0;
const READ: u64 = 1;
const GIVE: u64 = 2;

impl Program for Pausing {
    fn start(&mut self, context: &mut Context<'_>) {
        let (volume, contract, start) = ("camera".into(), self.contract, Bytes::ZERO);
        context.ask(OPEN, Op::StreamOpen { volume, mode: Mode::Read, contract, start });
    }
    fn alarm(&mut self, context: &mut Context<'_>) {
        let (stream, len_max) = (self.stream.expect("open"), BLOCK);
        context.ask(READ, Op::StreamRead { stream, len_max });
    }
    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        match (tag, result) {
            (OPEN, Ok(Reply::Stream { stream, .. })) => {
                self.stream = Some(stream);
                self.alarm(context);
            }
            (READ, Ok(Reply::Data { bytes: span, offset })) => {
                let is_right = pattern_matches(3, offset, context.arena.bytes(&span));
                let mut told = self.told.borrow_mut();
                told.0 += span.len;
                told.1 += if is_right { Bytes::ZERO } else { span.len };
                let (stream, len) = (self.stream.expect("open"), span.len);
                context.ask(GIVE, Op::StreamAdvance { stream, len });
                let pause = self.pause.take_if(|(at, _)| *at <= told.0);
                let pause = pause.map_or(Duration::ZERO, |(_, pause)| pause);
                let takes = match self.is_eager {
                    true => Duration::ZERO,
                    false => self.contract.rate.time_for(len),
                };
                context.alarm_at(context.now + takes + pause);
            }
            (READ, Ok(Reply::Gap { len, .. })) => self.told.borrow_mut().1 += len,
            (READ, Ok(Reply::End)) => self.told.borrow_mut().2 = true,
            (GIVE, Ok(_)) => {}
            (tag, other) => panic!("{tag}: {other:?}"),
        }
    }
}

/// Who waits for the camera at its end has nothing else when an answer comes, and each takes a while
/// to its program: what comes from memory is in time as what comes from the disk is.
#[test]
fn viewers_that_wait_for_the_camera_are_not_late_by_their_own_clock() {
    let mut world = camera_world(Policy::SLACK);
    world.delivery = Some(Box::new(|| Duration::from_micros(300)));
    let (asked, length) = (contract(RATE, BLOCK, BLOCK), Bytes::mib(12));
    create(&mut world, "camera", length);
    world.add(Recorder::new("camera", 3, asked, Bytes::kib(64), length));
    world.run_for(seconds(1));
    for _ in 0..4 {
        // Quicker than the camera, so that it comes to its end.
        let (contract, told) = (contract(RATE * 2, BLOCK, BLOCK), Rc::default());
        world.add(Pausing { contract, is_eager: true, pause: None, stream: None, told });
    }
    world.run_for(seconds(30));
    assert!(from_memory(&world) > Bytes::mib(20), "{}", from_memory(&world));
    let status = world.node.status(world.now());
    assert_eq!(status.streams.len(), 5);
    for stream in &status.streams {
        let account = stream.account;
        assert_eq!((account.late_requests, account.underruns), (0, 0), "{account:?}");
    }
}

/// Viewers that pause for 30 s and more are served from memory as far as that lasts, and from
/// their disk where it is taken: as they were admitted to, nobody late.
#[test]
fn viewers_that_drift_apart_are_served_as_they_were_admitted_to() {
    for is_taken in [false, true] {
        let mut config = config(Policy::SLACK);
        config.memory = Bytes::mib(28);
        let mut world: World = world(config, 1, Bytes::mib(512), drive);
        world.node.share_reads();
        let (asked, length) = (contract(RATE, BLOCK, BLOCK), Bytes::mib(30));
        create(&mut world, "camera", length);
        world.add(Recorder::new("camera", 3, asked, Bytes::kib(64), length));
        world.run_for(seconds(1));
        let viewers: Vec<_> = (0..8)
            .map(|number| {
                let told = Rc::default();
                let pause = Duration::from_secs(30) + seconds(4) * number;
                let pause = Some((Bytes::mib(5), pause));
                let (contract, told_it) = (asked, Rc::clone(&told));
                let is_eager = false;
                world.add(Pausing { contract, is_eager, pause, stream: None, told: told_it });
                world.run_for(Duration::from_millis(400));
                told
            })
            .collect();
        let reads = count_reads(&mut world);
        world.run_for(seconds(10));
        let mut held = Vec::new();
        let taken = if is_taken { 18 } else { 0 };
        for _ in 0..taken {
            let room = world.call(Op::Room { len: Bytes::MIB, target: None });
            held.extend(room.ok());
        }
        let before = from_memory(&world);
        world.run_for(seconds(200));
        let had = from_memory(&world) - before;
        for told in &viewers {
            let (had, wrong, done) = *told.borrow();
            assert_eq!((had, wrong, done), (length, Bytes::ZERO, true));
        }
        assert_eq!((late(&world), held.len()), (0, taken));
        println!("memory taken: {is_taken}; {had} from memory, {} reads", reads.get());
        match is_taken {
            true => assert!(reads.get() > 300, "{} reads", reads.get()),
            false => assert!(had > Bytes::mib(100), "{had}"),
        }
    }
}

/// What best effort reads beside eight players in 30 s: all of one film, or each of a film of its
/// own.
fn best_effort_beside(films: u64) -> u64 {
    let mut world = camera_world(Policy::SLACK);
    let (asked, length) = (contract(RATE, BLOCK, BLOCK), Bytes::mib(16));
    for film in 0..films {
        create(&mut world, &format!("film{film}"), length);
        fill(&mut world, &format!("film{film}"), film, length);
    }
    create(&mut world, "other", Bytes::mib(64));
    fill(&mut world, "other", 77, Bytes::mib(64));
    for player in 0..8 {
        let film = player % films;
        let player = Player::new(&format!("film{film}"), film, asked, Bytes::kib(64), length);
        world.add(player);
        world.run_for(Duration::from_millis(300));
    }
    let greedy = Greedy::new("other", Bytes::mib(64), Bytes::kib(64), 4, 5);
    let told = greedy.tally();
    world.add(greedy);
    world.run_for(seconds(10));
    let before = told.borrow().operations;
    world.run_for(seconds(30));
    assert_eq!(late(&world), 0);
    told.borrow().operations - before
}

/// The time that readers together do not use is best effort's.
#[test]
fn what_is_spared_is_best_efforts() {
    let (apart, together) = (best_effort_beside(8), best_effort_beside(1));
    println!("{apart} reads beside eight films, {together} beside one that eight watch");
    assert!(together * 10 > apart * 12, "{together} and {apart}");
}

/// Reads at its rate, and jumps now and then.
struct Jumper {
    contract: Contract,
    length: Bytes,
    random: Random,
    stream: Option<StreamId>,
    /// Blocks to the next jump.
    left: u64,
    /// When it has used up what it has.
    next: Instant,
    is_open: Rc<Cell<u64>>,
}

const JUMP: u64 = 3;

impl Program<Metadata> for Jumper {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        let volume = format!("v{}", self.random.below(2));
        let (contract, start) = (self.contract, Bytes::ZERO);
        context.ask(OPEN, Op::StreamOpen { volume, mode: Mode::Read, contract, start });
    }
    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        let (stream, len_max) = (self.stream.expect("open"), self.contract.block);
        if self.left > 0 {
            self.left -= 1;
            return context.ask(READ, Op::StreamRead { stream, len_max });
        }
        self.left = self.random.between(1, 30);
        // Close to where others are, too.
        let within = if self.random.chance(50) { self.length / 16 } else { self.length };
        let to = Bytes::new(self.random.below(within.get()));
        context.ask(JUMP, Op::StreamSeek { stream, to });
    }
    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        match (tag, result) {
            (OPEN, Ok(Reply::Stream { stream, .. })) => {
                self.stream = Some(stream);
                self.is_open.set(self.is_open.get() + 1);
                self.alarm(context);
            }
            (OPEN, Err(Error::Refused(_) | Error::NoMemory { .. })) => {}
            (READ, Ok(Reply::Data { bytes: span, .. })) => {
                let (stream, len) = (self.stream.expect("open"), span.len);
                context.ask(GIVE, Op::StreamAdvance { stream, len });
                self.next = self.next.max(context.now) + self.contract.rate.time_for(len);
                context.alarm_at(self.next);
            }
            (READ, Ok(Reply::End)) => {
                self.left = 0;
                self.alarm(context);
            }
            (JUMP, Ok(Reply::Ready { steady, .. })) => {
                self.next = steady.max(context.now);
                context.alarm_at(self.next);
            }
            (GIVE, Ok(_)) => {}
            (tag, other) => panic!("{tag}: {other:?}"),
        }
    }
}

/// A device that brings 256 KiB in less than a millisecond.
fn quick() -> Profile {
    let line = Line { fixed: Duration::from_micros(100), rate: Rate::per_second(400 << 20) };
    let linear =
        LinearProfile { read: line, write: line, depth: 1, latency: Duration::ZERO, spread: None };
    Profile { kind: Kind::Linear(linear), ..Profile::of(&model(Bytes::mib(512))) }
}

/// Readers on a fast disk, whose blocks are due within milliseconds, jump so that whole windows
/// are copied at once, as slowly as is counted for it. What would be copied later than the disk
/// brings it is asked of the disk: nobody is late, nor does anybody find his window empty.
#[test]
fn nothing_comes_later_from_memory_than_from_the_disk() {
    let histories = std::env::var("SLACKLINE_HISTORIES").ok().and_then(|it| it.parse().ok());
    let histories: u64 = histories.unwrap_or(20);
    let (mut had, mut read, mut with) = (Bytes::ZERO, Bytes::ZERO, 0);
    // Seed 103 has a request that is due before what is to be copied already is.
    for seed in 100..100 + histories {
        let mut random = Random::new(seed);
        let profile = quick();
        let timing = match random.chance(50) {
            true => Timing::Percent(Box::new(profile.clone()), 100),
            false => Timing::WithinBound(Box::new(profile.clone()), Random::new(seed)),
        };
        let mut disks = vec![SimDisk::metadata_only(profile.capacity(), timing)];
        sim::format(&mut disks, "test", &profile, 1).unwrap();
        disks[0].copies = Some(node::limits::KEPT_COPY_RATE);
        let mut config = config(Policy::SLACK);
        config.memory = Bytes::mib(64);
        let mut world: World<Metadata> = start(config, disks, &profile);
        world.node.share_reads();
        let length = Bytes::mib(8);
        for name in ["v0", "v1"] {
            create(&mut world, name, length);
            fill(&mut world, name, 1, length);
        }
        let is_open = Rc::new(Cell::new(0));
        let block = Bytes::kib(64) * (1 << random.below(3));
        for _ in 0..12 {
            let rate = random.between(10_000_000, 60_000_000);
            world.add(Jumper {
                contract: contract(rate, block, block * random.below(24)),
                length,
                random: Random::new(random.bits()),
                stream: None,
                left: 5,
                next: Instant::EPOCH,
                is_open: is_open.clone(),
            });
        }
        world.run_for(seconds(1));
        with += u64::from(is_open.get() > 1);
        let status = world.node.status(world.now());
        for stream in &status.streams {
            let (account, asked) = (stream.account, stream.contract);
            let late = (account.late_requests, account.underruns);
            assert_eq!(late, (0, 0), "seed {seed}: {asked:?} {account:?}");
            read += account.moved;
        }
        assert_eq!(late(&world), 0, "seed {seed}");
        had += status.memory.from_memory;
    }
    println!("{histories} histories, {with} with several readers, {read} read, {had} from memory");
    assert!(with * 2 > histories, "{with} of {histories} have several readers");
    assert!(had * 20 > read, "{had} of {read}");
}
