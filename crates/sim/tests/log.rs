//! The metadata log beside streams and greedy programs: its contract holds what it has to
//! write, and each sync is answered within the time that is stated.
#![allow(clippy::print_stdout)] // the figures, for whoever runs it with --nocapture

use crate::common::*;
use disk::{Model, Profile};
use node::{Contract, Error, Mode, Op, Policy, Reply, Span, StreamId, WriteRange};
use sim::{Context, Greedy, Program, Random, SimDisk, Timing, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration, Instant};

/// What a program saw of its syncs.
#[derive(Clone, Debug, Default)]
struct Seen {
    stream: Option<StreamId>,
    syncs: u64,
    wait_max: Duration,
    /// Syncs that took longer than was stated, and the first of them.
    over: u64,
    first_over: Option<(Instant, Duration, Duration)>,
    error: Option<Error>,
}

impl Seen {
    fn answered(&mut self, now: Instant, asked: Instant, stated: Option<Duration>) {
        let wait = now - asked;
        self.syncs += 1;
        self.wait_max = self.wait_max.max(wait);
        let stated = stated.expect("a time is stated");
        if wait > stated {
            self.over += 1;
            self.first_over.get_or_insert((now, wait, stated));
        }
    }
}

type Shared = Rc<RefCell<Seen>>;

const OPEN: u64 = 0;
const ROOM: u64 = 1;
const GIVE: u64 = 2;
const SYNC: u64 = 3;

/// Records at its rate, a piece at a time, and syncs after every so many pieces, one sync at a
/// time.
struct Writer {
    volume: String,
    contract: Contract,
    piece: Bytes,
    sync_every: u64,
    pieces: u64,
    began: Instant,
    room: Option<Span>,
    /// When a sync was asked for, and how long it may take.
    asked: Option<(Instant, Option<Duration>)>,
    seen: Shared,
}

impl Writer {
    fn new(volume: String, contract: Contract, piece: Bytes, sync_every: u64) -> Self {
        let (began, seen) = (Instant::EPOCH, Shared::default());
        let (pieces, room, asked) = (0, None, None);
        Self { volume, contract, piece, sync_every, pieces, began, room, asked, seen }
    }
    fn stream(&self) -> StreamId {
        self.seen.borrow().stream.expect("open")
    }
}

impl Program for Writer {
    fn start(&mut self, context: &mut Context<'_>) {
        let (volume, contract) = (self.volume.clone(), self.contract);
        let op = Op::StreamOpen { volume, mode: Mode::Write, contract, start: Bytes::ZERO };
        context.ask(OPEN, op);
    }
    fn alarm(&mut self, context: &mut Context<'_>) {
        context.ask(ROOM, Op::StreamRoom { stream: self.stream(), len_max: self.piece });
    }
    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        match (tag, result) {
            (OPEN, Ok(Reply::Stream { stream, .. })) => {
                self.seen.borrow_mut().stream = Some(stream);
                self.began = context.now;
                context.alarm_at(context.now);
            }
            (ROOM, Ok(Reply::Room { room: span })) => {
                self.room = Some(span);
                context.ask(GIVE, Op::StreamWrite { stream: self.stream(), len: span.len });
            }
            (GIVE, Ok(_)) => {
                self.room = None;
                self.pieces += 1;
                if self.pieces.is_multiple_of(self.sync_every) && self.asked.is_none() {
                    let stated = context.node.sync_time_max(Some(self.stream()));
                    self.asked = Some((context.now, stated));
                    context.ask(SYNC, Op::StreamSync { stream: self.stream() });
                }
                let written = self.piece * self.pieces;
                context.alarm_at(self.began + self.contract.rate.time_for(written));
            }
            (SYNC, Ok(Reply::Durable { .. })) => {
                let (asked, stated) = self.asked.take().expect("it was asked for");
                self.seen.borrow_mut().answered(context.now, asked, stated);
            }
            (_, Err(error)) => self.seen.borrow_mut().error = Some(error),
            (tag, Ok(other)) => unreachable!("{tag} was answered with {other:?}"),
        }
    }
}

/// Writes as best effort, if it shall, and syncs, again and again.
struct Syncer {
    volume: Option<(String, Bytes)>,
    /// So many writes before each sync.
    writes: u64,
    written: u64,
    random: Random,
    asked: Instant,
    seen: Shared,
}

impl Syncer {
    fn new(volume: Option<(&str, Bytes)>, writes: u64, seed: u64) -> Self {
        let volume = volume.map(|(name, size)| (name.into(), size));
        let (random, asked, seen) = (Random::new(seed), Instant::EPOCH, Shared::default());
        Self { volume, writes, written: 0, random, asked, seen }
    }
    fn sync(&mut self, context: &mut Context<'_>) {
        self.asked = context.now;
        context.ask(SYNC, Op::Sync);
    }
}

impl Program for Syncer {
    fn start(&mut self, context: &mut Context<'_>) {
        self.alarm(context);
    }
    fn alarm(&mut self, context: &mut Context<'_>) {
        match self.volume {
            Some(_) => context.ask(ROOM, Op::Room { len: Bytes::kib(4), target: None }),
            None => self.sync(context),
        }
    }
    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        match (tag, result) {
            (ROOM, Ok(Reply::Room { room: span })) => {
                let (volume, size) = self.volume.clone().expect("it writes");
                let at = Bytes::kib(4) * self.random.below(size / Bytes::kib(4));
                let range = WriteRange::new(at, span.len);
                context.ask(GIVE, Op::Write { volume, range, span, priority: None });
            }
            (GIVE, Ok(_)) => {
                self.written += 1;
                match self.written.is_multiple_of(self.writes) {
                    true => self.sync(context),
                    false => self.alarm(context),
                }
            }
            (SYNC, Ok(_)) => {
                let stated = context.node.sync_time_max(None);
                self.seen.borrow_mut().answered(context.now, self.asked, stated);
                let pause = self.random.span(Duration::from_millis(700));
                context.alarm_at(context.now + pause);
            }
            (_, Err(error)) => self.seen.borrow_mut().error = Some(error),
            (tag, Ok(other)) => unreachable!("{tag} was answered with {other:?}"),
        }
    }
}

/// One disk as this model, as slow as its profile allows, holding an empty pool.
fn one_disk(model: &Model, interval: Duration, seed: u64) -> World {
    let profile = Profile::of(model);
    let timing = Timing::WithinBound(Box::new(profile.clone()), Random::new(seed));
    let mut disks = vec![SimDisk::new(profile.capacity(), timing)];
    sim::format(&mut disks, "test", &profile, 1).unwrap();
    let mut config = config(Policy::SLACK);
    config.commit_interval = interval;
    start(config, disks, &profile)
}

/// What all of them saw: how many syncs, and the longest. None took longer than was stated.
fn judged(what: &str, all: &[Shared]) -> (u64, Duration) {
    for seen in all {
        let seen = seen.borrow();
        assert_eq!(seen.error, None, "{what}");
        assert_eq!(seen.over, 0, "{what}: {:?}", seen.first_over);
    }
    let syncs = all.iter().map(|seen| seen.borrow().syncs).sum();
    let longest = all.iter().map(|seen| seen.borrow().wait_max).max();
    (syncs, longest.expect("somebody syncs"))
}

/// 900 writers that sync, beside programs that read all the time and one that syncs all the
/// time: records are longer than the least that the log has a contract for, and fit.
#[test]
fn the_syncs_of_900_writers_beside_greedy_programs_are_answered_in_time() {
    let model = Model::named("ssd-sata").unwrap().scaled(Bytes::GIB * 8).unwrap();
    let mut world = one_disk(&model, Duration::from_secs(1), 3);
    for number in 0..900 {
        create(&mut world, &format!("v{number}"), Bytes::mib(2));
    }
    create(&mut world, "g", Bytes::mib(64));
    fill(&mut world, "g", 9, Bytes::mib(64));
    let least = world.node.log().contract;
    let mut writers = Vec::new();
    for number in 0..900 {
        let contract = contract(6_000 + number, Bytes::kib(4), Bytes::ZERO);
        let writer = Writer::new(format!("v{number}"), contract, Bytes::kib(2), 3 + number % 5);
        writers.push(writer.seen.clone());
        world.add(writer);
    }
    for number in 0..3 {
        world.add(Greedy::new("g", Bytes::mib(64), Bytes::kib(64), 4, number));
    }
    // As many extents as best effort may write to for the first time between two commits.
    let size = Bytes::mib(node::limits::RECORD_EXTENTS);
    create(&mut world, "b", size);
    let mut syncers = Vec::new();
    for (volume, writes, seed) in
        [(None, 1, 5), (Some(("b", size)), 100, 6), (Some(("b", size)), 300, 7)]
    {
        let syncer = Syncer::new(volume, writes, seed);
        syncers.push(syncer.seen.clone());
        world.add(syncer);
    }
    world.run_for(Duration::from_secs(20));
    let log = world.node.log();
    let (syncs, longest) = judged("writers", &writers);
    let (more, longest_alone) = judged("syncs alone", &syncers);
    println!("{syncs} syncs, longest {longest}; {more} alone, longest {longest_alone}; {log:?}");
    assert!(syncs > 900 * 4 && more > 5, "{syncs} {more}");
    assert_eq!(late(&world), 0);
    assert!(least < log.record_longest, "no record was long: {log:?}");
    assert!(log.record_longest <= log.record_max && log.record_max <= log.contract, "{log:?}");
}

/// A log that is full again and again, of a pool with so many volumes that its checkpoint is
/// many times what the log may write in a commit.
#[test]
fn syncs_are_answered_in_time_while_checkpoints_are_written() {
    let mut world = one_disk(&model(Bytes::GIB * 64), Duration::from_millis(500), 4);
    for number in 0..4_500 {
        create(&mut world, &format!("{number:060}"), Bytes::ZERO);
    }
    create(&mut world, "g", Bytes::mib(64));
    fill(&mut world, "g", 9, Bytes::mib(64));
    create(&mut world, "b", Bytes::mib(64));
    let (mut writers, mut all) = (Vec::new(), Vec::new());
    for number in 0..4 {
        create(&mut world, &format!("v{number}"), Bytes::mib(64));
        let contract = contract(12_000, Bytes::kib(4), Bytes::ZERO);
        let writer = Writer::new(format!("v{number}"), contract, Bytes::kib(6), 1);
        writers.push(writer.seen.clone());
        world.add(writer);
    }
    for number in 0..3 {
        world.add(Greedy::new("g", Bytes::mib(64), Bytes::kib(64), 4, number));
    }
    for (volume, seed) in [(None, 6), (Some(("b", Bytes::mib(64))), 7)] {
        let syncer = Syncer::new(volume, 1, seed);
        all.push(syncer.seen.clone());
        world.add(syncer);
    }
    let checkpoints = Rc::new(RefCell::new((0, 0)));
    let found = checkpoints.clone();
    world.watch = Some(Box::new(move |disks| {
        // The generation of the newest checkpoint, of which none is lost.
        let mut found = found.borrow_mut();
        let generation = newest_generation(&disks[0]);
        if generation > found.1 {
            *found = (found.0 + 1, generation);
        }
    }));
    world.run_for(Duration::from_secs(1_200));
    let (syncs, longest) = judged("writers", &writers);
    let (more, longest_alone) = judged("syncs alone", &all);
    let (checkpoints, _) = *checkpoints.borrow();
    let log = world.node.log();
    println!(
        "{syncs} syncs of writers, longest {longest}; {more} alone, longest {longest_alone}; \
         {checkpoints} checkpoints; {log:?}"
    );
    let syncs = syncs.min(more);
    assert!(syncs > 1_000 && checkpoints > 3, "{syncs} syncs, {checkpoints} checkpoints");
    assert_eq!(late(&world), 0);
}

/// The highest generation in the header of a checkpoint, by the two places where one lies.
/// A program beside a stream writes a block and syncs, again and again, while the log is filled
/// several times, with a list of volumes that is short, and with one that is written in parts:
/// as long as the disk has time no sync waits for the next interval.
#[test]
fn syncs_beside_a_stream_are_quick_while_the_disk_has_time() {
    for volumes in [1, 900] {
        let config = config(Policy::SLACK);
        let mut world = world(config, 1, Bytes::GIB * 4, drive);
        let size = Bytes::mib(8);
        for number in 0..volumes {
            create(&mut world, &format!("{number:0>50}"), Bytes::MIB);
        }
        create(&mut world, "film", size);
        create(&mut world, "database", size);
        fill(&mut world, "film", 1, size);
        let contract = Contract {
            rate: units::Rate::per_second(100_000),
            ..contract(1, Bytes::kib(64), Bytes::ZERO)
        };
        let (volume, start) = ("film".into(), Bytes::ZERO);
        let open = Op::StreamOpen { volume, mode: Mode::Read, contract, start };
        assert!(matches!(world.call(open), Ok(Reply::Stream { .. })));
        let (mut waits, before) = (Vec::new(), newest_generation(&world.disks[0]));
        for number in 0..3_000 {
            let Ok(Reply::Room { room: span }) =
                world.call(Op::Room { len: Bytes::kib(4), target: None })
            else {
                panic!("no room")
            };
            let range = WriteRange::new(Bytes::kib(4 * (number * 7 % 2_048)), span.len);
            let write = Op::Write { volume: "database".into(), range, span, priority: None };
            assert_eq!(world.call(write), Ok(Reply::Done));
            let asked = world.now();
            assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
            waits.push(world.now() - asked);
        }
        let generations = newest_generation(&world.disks[0]) - before;
        let longest = *waits.iter().max().expect("many syncs");
        println!("{volumes} volumes, {generations} generations: longest {longest}");
        assert!(generations >= 2, "{generations} checkpoints");
        assert!(longest < config.commit_interval / 4, "{longest}");
        assert_eq!(late(&world), 0);
    }
}

fn newest_generation(disk: &SimDisk) -> u64 {
    let mut block = [0; 4096];
    let mut newest = 0;
    for at in [Bytes::kib(64), area_b(disk)] {
        disk.read(at, &mut block);
        if block.starts_with(b"SLKCHECK") {
            newest = newest.max(u64::from_le_bytes(block[48..56].try_into().unwrap()));
        }
    }
    newest
}

/// Where the second area begins: docs/on-disk-format.md.
fn area_b(disk: &SimDisk) -> Bytes {
    let mut label = [0; 4096];
    disk.read(Bytes::ZERO, &mut label);
    let number = |at: usize| Bytes::new(u64::from_le_bytes(label[at..at + 8].try_into().unwrap()));
    let (checkpoint, log) = (number(96 + 70), number(96 + 78));
    let end = number(96 + 86 + 16).round_down(Bytes::MIB);
    end - Bytes::kib(64) - checkpoint - log
}

fn open(
    world: &mut World,
    volume: &str,
    mode: Mode,
    contract: Contract,
) -> Result<StreamId, Error> {
    let op = Op::StreamOpen { volume: volume.into(), mode, contract, start: Bytes::ZERO };
    world.call(op).map(|reply| match reply {
        Reply::Stream { stream, .. } => stream,
        other => unreachable!("opening was answered with {other:?}"),
    })
}

/// Where a disk has no time for longer records, a writer is refused, hears that it is for the
/// log, and nothing has changed; when there is time it is taken, and the contracts of the log
/// grow with it, on every disk. When writers have gone they shrink again.
#[test]
fn a_writer_whose_records_do_not_fit_the_log_is_refused() {
    let mut world = world(config(Policy::SLACK), 2, Bytes::GIB, drive);
    let few = Bytes::kib(4);
    let slow = contract(7, few, Bytes::ZERO);
    for number in 0..40 {
        create(&mut world, &format!("v{number}"), Bytes::MIB);
    }
    create(&mut world, "s", Bytes::mib(64));
    fill(&mut world, "s", 1, Bytes::mib(64));
    let least = world.node.log();
    let mut writers = Vec::new();
    // Beside best effort and changes there is room for some writers of four extents each.
    while world.node.log().contract == least.contract {
        let name = format!("v{}", writers.len());
        writers.push(open(&mut world, &name, Mode::Write, slow).unwrap());
    }
    world.call(Op::StreamClose { stream: writers.pop().expect("one was too many") }).unwrap();
    assert_eq!(world.node.log().contract, least.contract);
    assert!(writers.len() > 3, "{}", writers.len());
    // Readers take what time there is.
    let mut readers = Vec::new();
    let mut rate = 8_000_000;
    while rate > 20_000 {
        let wish = contract(rate, Bytes::kib(256), Bytes::ZERO);
        match open(&mut world, "s", Mode::Read, wish) {
            Ok(reader) => readers.push(reader),
            Err(Error::Refused(_) | Error::NoMemory { .. }) => rate = rate * 199 / 200,
            Err(error) => panic!("{error}"),
        }
    }
    let used = |world: &World| {
        let disks = world.node.status(world.now()).disks;
        disks.iter().map(|disk| (disk.utilisation_ppm, disk.slack)).collect::<Vec<_>>()
    };
    let mut refused = None;
    while refused.is_none() && writers.len() < 40 {
        let (before, log) = (used(&world), world.node.log());
        let name = format!("v{}", writers.len());
        match open(&mut world, &name, Mode::Write, slow) {
            Ok(writer) => writers.push(writer),
            Err(error) => {
                assert_eq!((used(&world), world.node.log()), (before, log), "nothing changed");
                refused = Some(error);
            }
        }
    }
    let error = refused.expect("the log's contract cannot grow");
    let Error::LogRefused { record, .. } = &error else { panic!("{error}") };
    assert!(*record > least.contract && error.to_string().contains("log"), "{error}");
    for reader in readers.drain(..) {
        world.call(Op::StreamClose { stream: reader }).unwrap();
    }
    let before = used(&world);
    let name = format!("v{}", writers.len());
    writers.push(open(&mut world, &name, Mode::Write, slow).expect("there is time now"));
    assert!(world.node.log().contract > least.contract);
    for (after, before) in used(&world).iter().zip(&before) {
        assert!(after.0 > before.0, "the log grows on every disk");
    }
    let most = world.node.log().contract;
    for writer in writers {
        let changed = world.call(Op::StreamClose { stream: writer });
        assert!(changed.is_ok(), "{changed:?}");
    }
    assert!(most > world.node.log().contract);
    assert_eq!(world.node.log().contract, least.contract, "no writer is open");
    assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
}

/// Writers of many kinds come, change and go; programs write as best effort, and make and
/// remove volumes. No record is longer than it may be, and none longer than the log's contract.
#[test]
fn no_record_is_longer_than_what_the_contracts_of_the_log_hold() {
    let (mut long, mut grown, mut shrunk) = (0, 0, 0);
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let disks = 1 + random.below(3) as usize;
        let mut world = world(config(Policy::SLACK), disks, Bytes::GIB * 2, drive);
        for number in 0..120 {
            create(&mut world, &format!("v{number}"), Bytes::mib(6));
        }
        create(&mut world, "b", Bytes::mib(200));
        create(&mut world, "g", Bytes::mib(64));
        fill(&mut world, "g", 9, Bytes::mib(64));
        // Best effort uses what slack there is: contracts have to grow all the same.
        world.add(Greedy::new("g", Bytes::mib(64), Bytes::kib(64), 2, seed));
        for seed in 0..3 {
            world.add(Syncer::new(Some(("b", Bytes::mib(200))), 10, seed));
        }
        let mut all: Vec<Shared> = Vec::new();
        let mut longest = Bytes::ZERO;
        for step in 0..60 {
            let before = world.node.log();
            let streams = world.node.status(world.now()).streams;
            match random.below(6) {
                0..=3 => {
                    let name = format!("v{}", random.below(120));
                    let block = Bytes::kib(4) * (1 << random.below(3));
                    let rate = random.between(500, 6_000);
                    let burst = block * random.below(3);
                    let writer = Writer::new(name, contract(rate, block, burst), Bytes::kib(2), 2);
                    all.push(writer.seen.clone());
                    world.add(writer);
                }
                4 if !streams.is_empty() => {
                    let stream = random.pick(&streams).stream;
                    let _ = world.call(Op::StreamClose { stream });
                }
                _ => {
                    let name = format!("x{step}");
                    create(&mut world, &name, Bytes::MIB);
                    assert_eq!(
                        world.call(Op::VolumeDelete { name, only: None, keep_directory: false }),
                        Ok(Reply::Done)
                    );
                }
            }
            world.run_for(random.span(Duration::from_secs(2)));
            let now = world.node.log();
            grown += u64::from(now.contract > before.contract);
            shrunk += u64::from(now.contract < before.contract);
            if now.record_longest > longest {
                longest = now.record_longest;
                let most = before.record_max.max(now.record_max);
                assert!(longest <= most, "seed {seed}, step {step}: {longest} of {most}");
                long += 1;
            }
            assert!(now.record_max <= now.contract, "{now:?}");
        }
        // When all have gone the log needs no more than it did.
        let most = world.node.log().contract;
        for one in world.node.status(world.now()).streams {
            let _ = world.call(Op::StreamClose { stream: one.stream });
        }
        world.run_for(Duration::from_secs(5));
        let least = world.node.log();
        assert!(least.record_max <= least.contract && least.contract < most, "{least:?}");
        assert_eq!(late(&world), 0);
        for seen in &all {
            let error = seen.borrow().error.clone();
            assert!(!matches!(error, Some(Error::LogRefused { .. })), "there is time: {error:?}");
        }
    }
    println!("{long} records were the longest yet; {grown} times grown, {shrunk} shrunk");
    assert!(long >= 4 && grown >= 4 && shrunk > 0, "{long} {grown} {shrunk}");
}

/// Records of writers alone are no longer than what is counted for these writers.
#[test]
fn the_records_of_many_writers_are_counted() {
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let model = Model::named("ssd-sata").unwrap().scaled(Bytes::GIB * 8).unwrap();
        let mut world = one_disk(&model, Duration::from_millis(random.between(300, 1_500)), seed);
        let writers = random.between(300, 700);
        for number in 0..writers {
            create(&mut world, &format!("v{number}"), Bytes::mib(8));
        }
        for number in 0..writers {
            let block = Bytes::kib(4) * (1 << random.below(3));
            let rate = random.between(5_000, 30_000);
            let contract = contract(rate, block, block * random.below(3));
            // Nobody syncs: each record has what all have written in an interval.
            world.add(Writer::new(format!("v{number}"), contract, Bytes::kib(2), u64::MAX));
        }
        assert_eq!(world.node.status(world.now()).streams.len() as u64, writers);
        world.run_for(Duration::from_secs(6));
        let log = world.node.log();
        let (changes, extents) = (Bytes::ZERO, log.extents);
        let (lengths, recorded) = (writers, writers);
        let most =
            store::RecordContent { changes, extents, placed: 0, lengths, recorded }.size_max();
        println!("{writers} writers: {} of {most}", log.record_longest);
        assert!(log.record_longest <= most, "{writers} writers: {log:?}, counted {most}");
        assert!(log.record_longest * 10 > most, "{writers} writers: {log:?}, counted {most}");
        assert_eq!(late(&world), 0);
    }
}
