//! A volume knows when its bytes were recorded.
//!
//! A recording is made of arrivals, as a camera makes them: at a steady rate, at one that changes,
//! with pauses, with a clock that is set on and back, cut now and then. An oracle keeps every
//! arrival. What the store says by its few corners must be within a second of it, also after it
//! was opened again, and as long as nothing was thinned.
#![allow(clippy::print_stdout)] // the figures, for whoever runs it with --nocapture

use crate::common;
use crate::common::{Cut, Disk, Random, commit, new_pool, open};
use store::{BLOCK, Moment, Ownership, Placement, Recorded, Store, VolumeId};
use units::{Bytes, Duration};

const SECOND: i64 = 1_000_000_000;
/// What a line may be off by, what arrives together, and roundings.
const WITHIN: i64 = SECOND;
const NOON: i64 = 1_790_000_000 * SECOND;

/// Every arrival: bytes from the start of the volume, and when they were there.
#[derive(Default)]
struct Oracle {
    arrivals: Vec<(u64, u64, i64)>,
}

impl Oracle {
    fn cut(&mut self, size: u64) {
        self.arrivals.retain_mut(|(from, to, _)| {
            *to = (*to).min(size);
            from < to
        });
    }
    fn end(&self) -> u64 {
        self.arrivals.last().map_or(0, |(_, to, _)| *to)
    }
    fn at(&self, place: u64) -> Option<i64> {
        let holds = |(from, to, _): &&(u64, u64, i64)| (*from..*to).contains(&place);
        self.arrivals.iter().find(holds).map(|(.., at)| *at)
    }
    /// The latest place that was recorded at a time, by a second more or less.
    fn is_last(&self, place: u64, time: i64) -> bool {
        let behind =
            |(from, _, at): &&(u64, u64, i64)| *from > place && (at - time).abs() < 10_000_000;
        let last = self.arrivals.iter().rev().find(behind);
        // What is behind the place and of the same time is of the same second there.
        last.is_none_or(|(from, ..)| {
            self.at(*from).zip(self.at(place)).is_some_and(|(a, b)| (a - b).abs() <= WITHIN)
        })
    }
}

/// A volume in a pool of one disk, and what time it is.
struct World {
    random: Random,
    disks: Vec<Disk>,
    store: Store,
    volume: VolumeId,
    clock: i64,
    oracle: Oracle,
}

impl World {
    fn new(seed: u64, size: Bytes) -> Self {
        let mut disks = new_pool(seed, &[size * 2 + Bytes::mib(64)]);
        let mut store = open(&mut disks).unwrap().store;
        let volume = store.create("cam1", size, &Placement::default()).unwrap();
        commit(&mut store, &mut disks);
        let (random, clock, oracle) = (Random::new(seed), NOON, Oracle::default());
        Self { random, disks, store, volume, clock, oracle }
    }
    /// The same of a ring that keeps things for so many seconds.
    fn ring(seed: u64, size: Bytes, keep: u64) -> Self {
        let mut disks = new_pool(seed, &[size * 2 + Bytes::mib(64)]);
        let mut store = open(&mut disks).unwrap().store;
        let root = Ownership::ROOT;
        let volume = store.create_ring("cam1", size, &Placement::default(), root).unwrap();
        store.keep_for(volume, Some(Duration::from_secs(keep))).unwrap();
        commit(&mut store, &mut disks);
        let (random, clock, oracle) = (Random::new(seed), NOON, Oracle::default());
        Self { random, disks, store, volume, clock, oracle }
    }
    fn start(&self) -> u64 {
        self.store.volume(self.volume).unwrap().start().get()
    }
    /// Clips of three seconds at a rate of 60 kB/s, each after a pause, as long as this takes; what is
    /// old is given up. What is told of what is held is as close as is said.
    fn clips(&mut self, pauses: i64, during: i64) {
        let until = self.clock + during;
        while self.clock < until {
            let pause = pauses + self.random.below(pauses.cast_unsigned() / 2).cast_signed();
            for after in [pause, SECOND, SECOND] {
                self.arrive_in_ring(after, 61_440);
            }
            self.commit(0);
            if self.random.once_in(8) {
                self.check_held();
            }
        }
        self.check_held();
    }
    /// Some bytes each minute, without a pause.
    fn steady(&mut self, during: i64) {
        let until = self.clock + during;
        while self.clock < until {
            for _ in 0..10 {
                self.arrive_in_ring(60 * SECOND, 102_400);
            }
            self.commit(0);
        }
        self.check_held();
    }
    fn arrive_in_ring(&mut self, after: i64, len: u64) {
        self.store.set_clock(self.clock + after);
        self.store.give_up_old(self.volume);
        self.store.give_up(self.volume, Bytes::new(self.oracle.end() + len));
        assert!(self.arrive(after, len));
    }
    fn check_held(&mut self) {
        let start = self.start();
        self.oracle.arrivals.retain(|(_, to, _)| *to > start);
        let (recorded, within) = (self.recorded(), self.recorded().within());
        let known = recorded.known().get();
        for pair in self.oracle.arrivals.windows(2) {
            let [(.., before), (from, to, at)] = pair else { unreachable!() };
            // What comes at a steady rate is told to have come all the time.
            let held = |place: &u64| (start..known).contains(place);
            for place in [*from, to - BLOCK.get()].into_iter().filter(held) {
                let told = recorded.time_at(Bytes::new(place)).expect("it is held");
                let may_be = before - within..=at + within;
                assert!(may_be.contains(&told), "{place}: {told}, {may_be:?}\n{recorded:?}");
            }
        }
    }
    fn recorded(&self) -> &Recorded {
        self.store.volume(self.volume).unwrap().recorded()
    }
    /// So many bytes arrive after so long. False where the volume is full.
    fn arrive(&mut self, after: i64, len: u64) -> bool {
        self.clock += after;
        let from = self.oracle.end();
        let to = from + len;
        if to > self.store.volume(self.volume).unwrap().end().get() {
            return false;
        }
        self.store.set_clock(self.clock);
        self.store.note_arrived(self.volume, Bytes::new(from), Bytes::new(to));
        self.oracle.arrivals.push((from, to, self.clock));
        true
    }
    /// All that has arrived is on the disk, but for a part of the last, and a commit has ended.
    fn commit(&mut self, left: u64) {
        let length = self.oracle.end().saturating_sub(left);
        self.store.note_length(self.volume, Bytes::new(length));
        commit(&mut self.store, &mut self.disks);
    }
    /// A part of it is copied: what is told of the copy is what is told of the part, and is still
    /// that when more is recorded behind it.
    fn copy(&mut self, number: u64) {
        let blocks = self.oracle.end() / BLOCK.get();
        let first = if number == 0 { 0 } else { self.random.below(blocks) };
        let len = 1 + self.random.below(blocks - first);
        let (start, len) = (BLOCK * first, BLOCK * len);
        let name = format!("part{number}");
        let copy = self.store.create(&name, len, &Placement::default()).unwrap();
        self.store.note_length(copy, len);
        commit(&mut self.store, &mut self.disks);
        let source = self.recorded().clone();
        let end = source.known().saturating_sub(start).min(len);
        let told = |store: &Store| store.volume(copy).unwrap().recorded().clone();
        self.store.set_clock(self.clock);
        let mut calls = 0;
        while told(&self.store).known() < end {
            self.store.copy_times(copy, self.volume, start).unwrap();
            commit(&mut self.store, &mut self.disks);
            calls += 1;
            assert!(calls < 50, "{start} {len} {end}: {:?}\n{source:?}", told(&self.store));
        }
        self.open_again();
        let copied = told(&self.store);
        assert!(copied.within() >= source.within(), "it is no more exact than its source");
        let exact = copied.within() == source.within();
        let within = if exact { SECOND / 500 } else { copied.within() };
        for _ in 0..100 {
            let place = BLOCK * self.random.below(len / BLOCK);
            match (copied.time_at(place), source.time_at(start + place)) {
                (Some(told), Some(truth)) => {
                    assert!((told - truth).abs() <= within, "{place}: {told}, {truth}");
                }
                (told, truth) => assert_eq!(told, truth, "{place}"),
            }
        }
        // Once more: nothing is new.
        self.store.set_clock(self.clock);
        self.store.copy_times(copy, self.volume, start).unwrap();
        commit(&mut self.store, &mut self.disks);
        assert_eq!(told(&self.store), copied);
        self.store.delete(copy).unwrap();
        commit(&mut self.store, &mut self.disks);
    }
    fn open_again(&mut self) {
        self.store = open(&mut self.disks).unwrap().store;
    }
    /// Looks up some hundred places and times.
    fn check(&mut self) {
        let end = self.oracle.end();
        let recorded = self.recorded().clone();
        for _ in 0..200.min(end) {
            let place = self.random.below(end) / BLOCK.get() * BLOCK.get();
            let (told, truth) = (recorded.time_at(Bytes::new(place)), self.oracle.at(place));
            let (told, truth) = (told.expect("it is known"), truth.expect("it is there"));
            assert!((told - truth).abs() <= WITHIN, "{place}: {told}, {truth}\n{recorded:?}");
        }
        for _ in 0..200.min(end) {
            let index = self.random.index(self.oracle.arrivals.len());
            let time = self.oracle.arrivals[index].2;
            match recorded.find(time, Bytes::ZERO) {
                Moment::At { offset } => {
                    let truth = self.oracle.at(offset.get().min(end - 1)).expect("it is there");
                    assert!(
                        (truth - time).abs() <= WITHIN,
                        "{offset}: {time}, {truth}\n{recorded:?}"
                    );
                    assert!(self.oracle.is_last(offset.get(), time), "{offset}: {time}");
                }
                // The ends of lines are in the door, not at the arrival.
                Moment::Pause { ended, resumes, .. } => {
                    assert!(time - ended <= WITHIN || resumes - time <= WITHIN, "{time}");
                }
                Moment::Before { begins, .. } => assert!(begins - time <= WITHIN, "{time}"),
                Moment::After { ended, .. } => assert!(time - ended <= WITHIN, "{time}"),
                Moment::Unknown => panic!("{time} is unknown"),
            }
            let away = SECOND * (1 + self.random.below(2_000).cast_signed());
            let time = if self.random.once_in(2) { time + away } else { time - away };
            self.check_outside(&recorded, time);
        }
    }
    /// Where it goes on at a time at which nothing was recorded, and where it had ended: the byte
    /// there, and the block before, are of the time that is told.
    fn check_outside(&self, recorded: &Recorded, time: i64) {
        let is_of = |place: u64, told: i64| {
            let truth = self.oracle.at(place).expect("it is there");
            assert!(
                (truth - told).abs() <= WITHIN,
                "{time}, {place}: {told}, {truth}\n{recorded:?}"
            );
        };
        match recorded.find(time, Bytes::ZERO) {
            Moment::Before { offset, begins: at } | Moment::Pause { offset, resumes: at, .. } => {
                // The next there is may be the end of a line, where a clock was set back.
                is_of(offset.get().min(self.oracle.end() - 1), at);
            }
            // A block is of the time at which its first byte came.
            Moment::After { offset, ended } => is_of((offset - BLOCK).get(), ended),
            Moment::At { .. } => {}
            Moment::Unknown => panic!("{time} is unknown"),
        }
    }
}

/// One recording with all that may happen to it.
fn record(seed: u64) -> (usize, usize) {
    let mut world = World::new(seed, Bytes::mib(400));
    let mut rate = 200_000;
    for _ in 0..40 {
        match world.random.below(10) {
            0 => world.clock += SECOND * (1 + world.random.below(5_000).cast_signed()),
            1 => world.clock -= SECOND * (2 + world.random.below(5_000).cast_signed()),
            2 => rate = 20_000 + world.random.below(400_000),
            3 => {
                let size = world.oracle.end() - world.random.below(world.oracle.end() / 3 + 1);
                let whole = world.store.volume(world.volume).unwrap().size();
                world.commit(0);
                world.store.resize(world.volume, Bytes::new(size)).unwrap();
                commit(&mut world.store, &mut world.disks);
                world.store.resize(world.volume, whole).unwrap();
                world.oracle.cut(size);
            }
            4 => {
                world.commit(0);
                world.open_again();
            }
            5 => world.commit(0),
            _ => {}
        }
        // Now and then all of a stretch arrives at once.
        let arrivals = if world.random.once_in(3) { 1 } else { world.random.below(100) };
        for _ in 0..arrivals {
            let after = 50_000_000 + world.random.below(200_000_000).cast_signed();
            // By up to a tenth more or less than the rate.
            let len = rate * after.cast_unsigned() / SECOND.cast_unsigned();
            let len = len * (90 + world.random.below(20)) / 100;
            if !world.arrive(after, len) {
                break;
            }
            if world.random.once_in(20) {
                let left = world.random.below(300_000);
                world.commit(left);
            }
        }
    }
    world.commit(0);
    world.check();
    world.open_again();
    world.check();
    for part in 0..4 {
        world.copy(part);
    }
    (world.recorded().len(), world.oracle.arrivals.len())
}

#[test]
fn each_moment_is_found_within_a_second() {
    let (mut corners, mut arrivals) = (0, 0);
    for seed in 0..8 {
        let (of, kept) = record(seed);
        corners += of;
        arrivals += kept;
    }
    println!("{corners} corners for {arrivals} arrivals");
    assert!(corners * 10 < arrivals, "{corners} corners for {arrivals} arrivals");
}

/// A camera of a steady rate, whose frames come early and late by a tenth of a second.
#[test]
fn a_steady_recording_has_a_few_corners() {
    let mut world = World::new(1, Bytes::mib(2048));
    let mut late = 0;
    for step in 0..20_000 {
        let next = world.random.below(200_000_000).cast_signed() - 100_000_000;
        world.arrive(100_000_000 + next - late, 100_000);
        late = next;
        if step % 20 == 0 {
            world.commit(0);
        }
    }
    world.commit(0);
    println!("{} corners in {} s", world.recorded().len(), 2000);
    assert!(world.recorded().len() <= 8, "{:?}", world.recorded());
    world.check();
}

/// What was synced is found by its time after a power cut.
#[test]
fn after_a_power_cut_the_times_cover_what_was_synced() {
    for seed in 0..30 {
        let mut world = World::new(seed, Bytes::mib(64));
        for _ in 0..world.random.below(60) {
            world.arrive(200_000_000, 50_000);
            if world.random.once_in(5) {
                world.commit(0);
            }
        }
        world.arrive(6 * SECOND, 50_000);
        world.commit(0);
        let (synced, at) = (world.oracle.end(), world.clock);
        for _ in 0..world.random.below(10) {
            world.arrive(200_000_000, 50_000);
        }
        // The power goes while the next commit is on its way.
        world.store.note_length(world.volume, Bytes::new(world.oracle.end()));
        world.store.commit();
        for _ in 0..world.random.below(4) {
            let Some(io) = world.store.poll() else { break };
            let result = world.disks[io.disk.as_usize()].do_io(&io.kind);
            world.store.done(io.id, result);
        }
        let (mut random, how) = (Random::new(seed), [Cut::Dropped, Cut::Applied, Cut::Any]);
        let how = how[seed as usize % 3];
        world.disks = world.disks.iter().map(|disk| disk.cut(how, &mut random)).collect();
        world.open_again();
        let recorded = world.recorded();
        let last = recorded.time_at(Bytes::new(synced - 1)).expect("it was synced");
        assert!((last - at).abs() <= WITHIN, "{last}, {at}");
        assert!(recorded.ends().expect("it is known") >= at - WITHIN);
    }
}

/// Clips of some seconds with pauses between them, for ever: the number of corners stays within
/// the volume's limit, and what is found stays as close as the tolerance has become.
#[test]
fn corners_are_bounded_and_become_less_exact() {
    let mut world = World::new(1, Bytes::mib(256));
    for _ in 0..400 {
        world.clock += SECOND * (10 + world.random.below(600).cast_signed());
        for _ in 0..8 {
            world.arrive(SECOND, 60_000);
        }
        world.commit(0);
        assert!(world.recorded().len() <= 64 + 256 / 8, "{}", world.recorded().len());
    }
    let recorded = world.recorded().clone();
    assert!(recorded.len() > 8 && recorded.within() > SECOND, "{recorded:?}");
    for place in (0..world.oracle.end()).step_by(100_000) {
        let (told, truth) =
            (recorded.time_at(Bytes::new(place)).unwrap(), world.oracle.at(place).unwrap());
        assert!((told - truth).abs() <= recorded.within() + WITHIN, "{place}: {told}, {truth}");
    }
    world.copy(0);
    assert_eq!(world.recorded(), &recorded);
}

/// One bad night makes a ring less exact, and not for good: when it has given up what it noted of that
/// night, it is as exact as ever, and gives up what is older than it keeps things when it is.
#[test]
fn what_a_ring_notes_after_a_bad_night_is_exact_again() {
    let hour = 3_600 * SECOND;
    for opens in [false, true] {
        let mut world = World::ring(1, Bytes::mib(256), 24 * 3_600);
        let exact = world.recorded().within();
        world.steady(6 * hour);
        assert_eq!(world.recorded().within(), exact, "a good evening has no pauses");
        world.clips(20 * SECOND, 6 * hour);
        let coarse = world.recorded().within();
        assert!(coarse > 20 * SECOND, "{coarse}");
        if opens {
            world.open_again();
            assert_eq!(world.recorded().within(), coarse);
        }
        world.steady(36 * hour);
        assert_eq!(world.recorded().within(), exact, "{:?}", world.recorded());
        world.open_again();
        assert_eq!(world.recorded().within(), exact);
    }
}

/// Nights that are all bad: what is noted anew becomes less exact by itself, and not more and more.
#[test]
fn a_ring_that_is_never_exact_does_not_become_less_and_less_so() {
    let hour = 3_600 * SECOND;
    let mut world = World::ring(2, Bytes::mib(256), 6 * 3_600);
    let mut most = 0;
    for night in 0..24 {
        world.clips(20 * SECOND, 3 * hour);
        let within = world.recorded().within();
        most = if night < 4 { within.max(most) } else { most };
        assert!(within <= most * 2, "{night}: {within}, {most}");
    }
}

/// To write over what is there moves no corner, and no clock makes none.
#[test]
fn what_is_written_over_keeps_its_time_and_without_a_clock_there_is_none() {
    let mut world = World::new(1, Bytes::mib(64));
    world.store.note_arrived(world.volume, Bytes::ZERO, Bytes::mib(1));
    world.store.note_length(world.volume, Bytes::mib(1));
    commit(&mut world.store, &mut world.disks);
    assert_eq!(world.recorded().find(NOON, Bytes::ZERO), Moment::Unknown);
    world.oracle.arrivals.push((0, 1 << 20, 0));
    for _ in 0..10 {
        world.arrive(SECOND, 100_000);
    }
    world.commit(0);
    let before = world.recorded().clone();
    assert!(!before.is_empty());
    assert_eq!(before.time_at(Bytes::ZERO), None, "nobody had said what time it was");
    world.store.set_clock(NOON + 1000 * SECOND);
    world.store.note_arrived(world.volume, Bytes::ZERO, Bytes::mib(1));
    world.commit(0);
    assert_eq!(world.recorded(), &before);
}

/// Where the metadata is full, recordings go on; what has no room is not noted, or less exactly.
#[test]
fn full_metadata_keeps_nobody_from_recording() {
    let mut world = World::new(1, Bytes::mib(64));
    common::fill_with_volumes(&mut world.store, "v");
    commit(&mut world.store, &mut world.disks);
    for _ in 0..200 {
        world.arrive(10 * SECOND, 4096);
        world.arrive(SECOND, 4096);
        world.commit(0);
    }
    assert!(world.recorded().len() <= 64, "{}", world.recorded().len());
    world.open_again();
    assert_eq!(world.store.volume(world.volume).unwrap().length().get(), world.oracle.end());
}
