//! Rings: what they hold, what they give up, and that a power cut at any point between leaves
//! what was recorded and not given up, and nothing else in its place, with the times of its
//! recording. What is given up for its age is old enough, and nothing that is older stays.

use crate::common::{Cut, Disk, Random, at, check, commit, new_pool, open, owner};
use store::{Blocks, EXTENT, IoKind, Ownership, Placement, Store, StoreError, VolumeId};
use units::{Bytes, Duration};

const MIB: Bytes = Bytes::MIB;

fn ring(store: &mut Store, size: Bytes, placement: &Placement) -> VolumeId {
    store.create_ring("ring", size, placement, Ownership::ROOT).unwrap()
}

/// As if `len` bytes from the beginning of each of these extents on were recorded.
fn note(store: &mut Store, id: VolumeId, extents: std::ops::Range<u64>) {
    for extent in extents {
        store.note_written(id, extent, &Blocks::first(MIB));
        store.note_length(id, EXTENT * (extent + 1));
    }
}

#[test]
fn a_ring_gives_up_its_oldest_extents_and_holds_the_rest() {
    let mut disks = new_pool(1, &[Bytes::mib(100)]);
    let mut store = open(&mut disks).unwrap().store;
    let id = ring(&mut store, Bytes::mib(33), &Placement::default());
    let shape = |store: &Store| {
        let ring = store.volume(id).unwrap();
        [ring.start(), ring.end(), ring.length(), ring.held(), store.writable_end(id)]
            .map(|bytes| bytes / MIB)
    };
    assert_eq!(store.volume(id).unwrap().size(), Bytes::mib(48), "rounded up to 16 MiB");
    assert_eq!(shape(&store), [0, 48, 0, 0, 48]);
    note(&mut store, id, 0..48);
    assert!(commit(&mut store, &mut disks));
    let before: Vec<_> = (0..48).map(|extent| store.locate(id, extent).unwrap()).collect();
    assert_eq!(store.locate(id, 48), None);
    assert_eq!(store.give_up(id, Bytes::mib(48)), None, "there is room up to there");
    assert_eq!(store.give_up(id, Bytes::mib(50)), Some(Bytes::ZERO..Bytes::mib(16)));
    assert_eq!(shape(&store), [16, 64, 48, 32, 48], "no place is written again yet");
    assert_eq!(store.locate(id, 15), None);
    for extent in 16..48 {
        assert_eq!(store.locate(id, extent), Some(before[extent as usize]));
    }
    for extent in 48..64 {
        let (now, was) = (store.locate(id, extent).unwrap(), before[extent as usize - 48]);
        assert_eq!((now.disk, now.offset), (was.disk, was.offset));
        assert!(now.written.is_empty(), "nothing of what lay there is shown");
        assert_eq!(store.disk_of(id, extent - 48), Some(was.disk));
    }
    assert_eq!(store.locate(id, 64), None);
    // It counts as given up durably only with the end of the commit.
    store.commit().unwrap();
    assert_eq!(shape(&store), [16, 64, 48, 32, 48]);
    assert_eq!(store.give_up(id, Bytes::mib(80)), Some(Bytes::mib(16)..Bytes::mib(32)));
    while let Some(io) = store.poll() {
        let result = disks[io.disk.as_usize()].do_io(&io.kind);
        store.done(io.id, result);
    }
    assert_eq!(shape(&store), [32, 80, 48, 16, 64], "the second is in no commit yet");
    assert!(commit(&mut store, &mut disks));
    assert_eq!(shape(&store), [32, 80, 48, 16, 80]);
    note(&mut store, id, 48..80);
    // What is noted of an extent that was given up meanwhile is nobody's.
    store.note_written(id, 31, &Blocks::first(MIB));
    assert!(commit(&mut store, &mut disks));
    let again = open(&mut disks).unwrap().store;
    assert_eq!(again.volume(id), store.volume(id));
    assert_eq!(shape(&again), [32, 80, 80, 48, 80]);
    assert!(check(&disks).findings.is_empty());
}

/// Blocks behind the end are in records of a ring. When the pool is opened they were never written, and do
/// not come back when the end moves on: not by a later record either.
#[test]
fn what_was_written_behind_the_end_of_a_ring_is_forgotten_when_the_pool_is_opened() {
    for thin in [false, true] {
        let mut disks = new_pool(1, &[Bytes::mib(60), Bytes::mib(60)]);
        let mut store = open(&mut disks).unwrap().store;
        let id = ring(&mut store, Bytes::mib(48), &Placement { thin, ..Placement::default() });
        let mut put = |store: &mut Store, extents: std::ops::Range<u64>| {
            // Places are given up by one commit, and taken by the next.
            extents.clone().filter(|_| thin).for_each(|n| store.place(id, n).unwrap());
            note(store, id, extents);
            assert!(commit(store, &mut disks));
        };
        put(&mut store, 0..48);
        store.give_up(id, Bytes::mib(64)).unwrap();
        put(&mut store, 0..0);
        put(&mut store, 48..59);
        // In the extent that it ends in, behind that, with a hole, and in the last place.
        store.note_length(id, Bytes::mib(59) + Bytes::new(5000));
        for (extent, blocks) in [
            (59, Blocks::first(MIB)),
            (60, Blocks::first(Bytes::kib(12))),
            (61, Blocks::of(&(Bytes::kib(40)..Bytes::kib(80)))),
            (63, Blocks::first(MIB)),
        ] {
            if thin {
                store.place(id, extent).unwrap();
            }
            assert!(store.reserve_scattered());
            store.note_written(id, extent, &blocks);
            store.release_scattered();
        }
        assert!(commit(&mut store, &mut disks));
        let written = |store: &Store, extent: u64| store.locate(id, extent).unwrap().written;
        let check = |store: &Store| {
            (16..59).for_each(|n| assert_eq!(written(store, n), Blocks::first(MIB), "{n}"));
            assert_eq!(written(store, 59), Blocks::first(Bytes::kib(8)));
            (60..64).for_each(|n| assert_eq!(written(store, n), Blocks::NONE, "{n}"));
        };
        let mut store = open(&mut disks).unwrap().store;
        check(&store);
        store.note_length(id, Bytes::mib(64));
        assert!(commit(&mut store, &mut disks));
        check(&store);
        check(&open(&mut disks).unwrap().store);
    }
}

/// What is recorded while nobody says what time it is has no age: it is not taken for old because what
/// follows has one.
#[test]
fn what_has_no_time_is_not_given_up_for_its_age() {
    let mut disks = new_pool(1, &[Bytes::mib(100)]);
    let mut store = open(&mut disks).unwrap().store;
    let id = ring(&mut store, Bytes::mib(64), &Placement::default());
    store.keep_for(id, Some(Duration::from_millis(39_001))).unwrap();
    assert_eq!(store.volume(id).unwrap().keep(), Some(Duration::from_secs(KEEP as u64)));
    let mut clock = 1_790_000_000 * SECOND;
    let mut record = |store: &mut Store, extents: std::ops::Range<u64>| {
        store.note_arrived(id, EXTENT * extents.start, EXTENT * extents.end);
        note(store, id, extents);
        assert!(commit(store, &mut disks));
    };
    record(&mut store, 0..20);
    assert_eq!(store.give_up_old(id), None, "nobody has said what time it is");
    for extent in 20..40 {
        clock += SECOND;
        store.set_clock(clock);
        record(&mut store, extent..extent + 1);
    }
    assert_eq!(store.give_up_old(id), None, "what has a time is young");
    store.set_clock(clock + KEEP * SECOND);
    assert_eq!(store.give_up_old(id), Some(Bytes::ZERO..Bytes::mib(32)));
}

/// A ring whose clock may be set to another time.
struct Set {
    disks: Vec<Disk>,
    store: Store,
    id: VolumeId,
    clock: i64,
}

const DAY: i64 = 86_400 * SECOND;

impl Set {
    /// A ring of 96 MiB, which keeps things for two days.
    fn new() -> Self {
        let mut disks = new_pool(1, &[Bytes::mib(200)]);
        let mut store = open(&mut disks).unwrap().store;
        let id = ring(&mut store, Bytes::mib(96), &Placement::default());
        store.keep_for(id, Some(Duration::from_secs(2 * 86_400))).unwrap();
        Self { disks, store, id, clock: 1_790_000_000 * SECOND }
    }

    /// Records 16 MiB more, in as many seconds.
    fn record(&mut self) {
        let first = self.store.volume(self.id).unwrap().length() / EXTENT;
        for extent in first..first + 16 {
            self.clock += SECOND;
            self.store.set_clock(self.clock);
            self.store.note_arrived(self.id, EXTENT * extent, EXTENT * (extent + 1));
            note(&mut self.store, self.id, extent..extent + 1);
            assert!(commit(&mut self.store, &mut self.disks));
        }
    }

    /// The clock is set forward by so much; gives what is noted of that.
    fn step(&mut self, by: i64) -> bool {
        self.clock += by;
        self.store.set_clock(self.clock);
        let is_noted = self.store.note_step(self.id, self.clock - by / 2, by);
        assert_eq!(commit(&mut self.store, &mut self.disks), is_noted);
        is_noted
    }

    /// The pool is closed by a power cut, and opened again.
    fn open_again(&mut self) {
        let before = self.store.volume(self.id).cloned();
        self.store = open(&mut self.disks).unwrap().store;
        assert_eq!(self.store.volume(self.id), before.as_ref());
    }

    /// So many MiB are given up for their age when so much time has passed; they are given up.
    fn old_after(&mut self, time: i64) -> u64 {
        self.clock += time;
        self.store.set_clock(self.clock);
        let given_up = self.store.give_up_old(self.id).map_or(0, |range| range.end / EXTENT);
        commit(&mut self.store, &mut self.disks);
        given_up
    }
}

/// What a clock that was behind had noted was old when it was set right.
#[test]
fn a_step_of_the_clock_is_no_age() {
    let mut one = Set::new();
    one.record();
    assert!(one.step(20 * DAY));
    one.open_again();
    one.record();
    one.open_again();
    assert_eq!(one.old_after(2 * DAY - 20 * SECOND), 0);
    assert_eq!(one.old_after(12 * SECOND), 16);
    assert_eq!(one.old_after(16 * SECOND), 32);

    // Back where it was: nothing is noted of it, and all that was recorded is old after two days.
    let mut back = Set::new();
    back.record();
    assert!(back.step(20 * DAY));
    back.clock -= 20 * DAY;
    assert!(back.store.note_step(back.id, back.clock, 0));
    assert!(commit(&mut back.store, &mut back.disks));
    back.open_again();
    assert_eq!(back.old_after(2 * DAY + 2 * SECOND), 16);

    // Where nothing was recorded since the pool was opened, nothing is known.
    let mut other = Set::new();
    other.record();
    other.open_again();
    assert!(!other.step(20 * DAY));
    assert_eq!(other.old_after(0), 16);
    let plain = other.store.create("plain", EXTENT, &Placement::default()).unwrap();
    assert!(!other.store.note_step(plain, other.clock, DAY));
}

/// While one daemon runs they add up; of several the largest counts, and none of what is gone.
#[test]
fn of_several_steps_each_is_reckoned() {
    let mut one = Set::new();
    one.record();
    assert!(one.step(20 * DAY));
    // Not two of them, as long as it does not stand.
    assert!(one.store.note_step(one.id, one.clock, 30 * DAY));
    assert!(one.store.note_step(one.id, one.clock - 10 * DAY, 20 * DAY));
    one.store.steps_stand();
    assert!(one.step(10 * DAY));
    one.store.steps_stand();
    assert_eq!(one.old_after(2 * DAY - 20 * SECOND), 0);
    assert_eq!(one.old_after(40 * SECOND), 16);

    // Each day it is switched off for an hour, after a week once.
    let mut daily = Set::new();
    daily.record();
    assert!(daily.step(7 * DAY));
    daily.store.steps_stand();
    for _ in 0..4 {
        daily.open_again();
        daily.record();
        assert!(daily.step(3_600 * SECOND));
        daily.store.steps_stand();
        assert_eq!(daily.old_after(DAY / 4), 0);
    }
    // The first goes when it is old; what was recorded since then is kept for the week more, and no longer.
    assert_eq!(daily.old_after(DAY), 16);
    assert_eq!(daily.old_after(6 * DAY), 0);
    assert_eq!(daily.old_after(2 * DAY), 80);
    // The week is forgotten.
    daily.open_again();
    daily.record();
    assert!(daily.step(3_600 * SECOND));
    assert_eq!(daily.old_after(2 * DAY + 20 * SECOND), 96);
}

/// No program has recorded anything before 2026.
#[test]
fn what_a_clock_in_1970_has_noted_has_no_age() {
    let mut one = Set::new();
    (one.clock, _) = (0, one.store.set_clock(0));
    one.record();
    one.clock = 1_790_000_000 * SECOND;
    one.open_again();
    assert_eq!(one.old_after(100 * DAY), 0);
    one.record();
    assert_eq!(one.old_after(2 * DAY - 20 * SECOND), 0);
    assert_eq!(one.old_after(40 * SECOND), 32);
}

/// Whoever wants something of the pool does not wait until all of a large ring is given up.
#[test]
fn a_large_ring_gives_up_what_is_old_part_by_part() {
    let gib = |n: u64| Bytes::mib(n << 10);
    let mut disks = new_pool(1, &[gib(40)]);
    let mut store = open(&mut disks).unwrap().store;
    let id = ring(&mut store, gib(33), &Placement::default());
    store.keep_for(id, Some(Duration::from_secs(KEEP as u64))).unwrap();
    let mut clock = 1_790_000_000 * SECOND;
    for part in 0..33 {
        clock += SECOND;
        store.set_clock(clock);
        store.note_arrived(id, gib(part), gib(part + 1));
        note(&mut store, id, part << 10..(part + 1) << 10);
        assert!(commit(&mut store, &mut disks));
    }
    store.set_clock(clock + 2 * KEEP * SECOND);
    for (from, to) in [(0, 16), (16, 32), (32, 33)] {
        assert_eq!(store.give_up_old(id), Some(gib(from)..gib(to)));
    }
    assert_eq!(store.give_up_old(id), None);
}

#[test]
fn a_ring_is_of_whole_turns_over_its_disks_and_keeps_its_size() {
    let mut disks = new_pool(1, &[Bytes::mib(300); 3]);
    let mut store = open(&mut disks).unwrap().store;
    let run = Bytes::mib(4);
    let id = ring(&mut store, Bytes::mib(50), &Placement { run, ..Placement::default() });
    assert_eq!(store.volume(id).unwrap().size(), Bytes::mib(96), "of 48 MiB and of 12 MiB");
    assert_eq!(store::ring_size(Bytes::mib(50), 3, run), Ok(Bytes::mib(96)));
    // From the last place to the first the rotation goes on.
    store.give_up(id, Bytes::mib(96 + 16)).unwrap();
    let disk = |extent| store.locate(id, extent).unwrap().disk.as_usize() as u64;
    (16..112).for_each(|extent| assert_eq!(disk(extent), extent / 4 % 3, "extent {extent}"));
    let refused = Err(StoreError::RingResized);
    assert_eq!(store.resize(id, Bytes::mib(192)), refused);
    assert_eq!(store.resize(id, Bytes::mib(48)), refused);
    let small = store.create_ring("s", Bytes::mib(31), &Placement::default(), Ownership::ROOT);
    let (size, least) = (Bytes::mib(31), Bytes::mib(32));
    assert_eq!(small, Err(StoreError::RingTooSmall { size, least }));
    // All of its space is free again when it is deleted.
    let used = store.space().used;
    store.delete(id).unwrap();
    assert!(commit(&mut store, &mut disks));
    assert_eq!(used - store.space().used, Bytes::mib(96));
    assert!(open(&mut disks).unwrap().store.volumes().next().is_none());
}

/// An extent that lies in a suspect place is moved, and is the one that the ring has there now.
#[test]
fn an_extent_of_a_ring_moves_to_another_place() {
    let mut disks = new_pool(1, &[Bytes::mib(100)]);
    let mut store = open(&mut disks).unwrap().store;
    let id = ring(&mut store, Bytes::mib(32), &Placement::default());
    store.give_up(id, Bytes::mib(32 + 16)).unwrap();
    assert!(commit(&mut store, &mut disks));
    note(&mut store, id, 16..48);
    assert!(commit(&mut store, &mut disks));
    for extent in [16, 31, 32, 47] {
        let was = store.locate(id, extent).unwrap();
        assert_eq!(owner(&store, was.disk, was.offset.unwrap() / EXTENT), Some((id, extent)));
        let to = store.reserve(id, extent).unwrap();
        store.relocate(id, extent, to).unwrap();
        let now = store.locate(id, extent).unwrap();
        assert_eq!((now.offset, now.written), (Some(to), was.written));
    }
    assert!(commit(&mut store, &mut disks));
    assert_eq!(open(&mut disks).unwrap().store.volume(id), store.volume(id));
}

/// Bytes that the record of one commit comes to on the first disk. What is written of checkpoints
/// is a block at a time.
fn wrote(store: &mut Store, disks: &mut [Disk]) -> usize {
    let mut wrote = 0;
    if store.commit().is_none() {
        return wrote;
    }
    while let Some(io) = store.poll() {
        if let IoKind::Write { bytes, .. } = &io.kind {
            match bytes.starts_with(b"SLKRECOR") {
                true => wrote += bytes.len(),
                false => assert_eq!(bytes.len(), 4096),
            }
        }
        let result = disks[io.disk.as_usize()].do_io(&io.kind);
        store.done(io.id, result);
    }
    wrote
}

#[test]
fn what_is_kept_of_a_ring_does_not_grow() {
    let mut disks = new_pool(1, &[Bytes::mib(100)]);
    let mut store = open(&mut disks).unwrap().store;
    let id = ring(&mut store, Bytes::mib(64), &Placement::default());
    let mut most = [0; 5];
    for most in &mut most {
        for _ in 0..40 {
            let at = store.volume(id).unwrap().length();
            store.give_up(id, at + Bytes::mib(16));
            wrote(&mut store, &mut disks);
            note(&mut store, id, at / EXTENT..at / EXTENT + 16);
            *most = wrote(&mut store, &mut disks).max(*most);
        }
        // A pool that is opened begins with a checkpoint.
        store = open(&mut disks).unwrap().store;
    }
    assert_eq!(store.volume(id).unwrap().length(), Bytes::mib(5 * 40 * 16));
    assert!(most.iter().all(|&most| most == 8192), "one record of 4 KiB, twice: {most:?}");
}

/// A program that records to a ring on disks that may be cut off.
struct World {
    disks: Vec<Disk>,
    store: Store,
    id: VolumeId,
    /// Planted: places are written again as soon as they are given up.
    reuses_at_once: bool,
    /// Up to here what is recorded was acknowledged.
    durable: u64,
    random: Random,
    /// What time it is, and when each extent was recorded, in nanoseconds.
    clock: i64,
    times: Vec<i64>,
    /// Extents that were given up for their age.
    aged: u64,
    cuts: u64,
    /// Extents that were found right after a cut.
    found: u64,
}

const SIZE: u64 = 48;
const SECOND: i64 = 1_000_000_000;
/// The ring keeps an extent for so many seconds.
const KEEP: i64 = 40;
/// A recording tells its times so exactly.
const WITHIN: i64 = SECOND;

impl World {
    fn new(seed: u64, reuses_at_once: bool) -> Self {
        let mut disks = new_pool(seed, &[Bytes::mib(60), Bytes::mib(60)]);
        let mut store = open(&mut disks).unwrap().store;
        let id = ring(&mut store, Bytes::mib(SIZE), &Placement::default());
        store.keep_for(id, Some(Duration::from_secs(KEEP as u64))).unwrap();
        assert!(commit(&mut store, &mut disks));
        let (random, clock, times) = (Random::new(seed), 1_790_000_000 * SECOND, Vec::new());
        let (durable, aged, cuts, found) = (0, 0, 0, 0);
        Self { disks, store, id, reuses_at_once, durable, random, clock, times, aged, cuts, found }
    }

    fn length(&self) -> u64 {
        self.store.volume(self.id).unwrap().length() / EXTENT
    }

    /// Records the next extents, as far as their places may be written; of each its first 4 KiB
    /// say which it is.
    fn record(&mut self) {
        let volume = self.store.volume(self.id).unwrap();
        let durable = self.store.writable_end(self.id);
        let end = if self.reuses_at_once { volume.end() } else { durable };
        for extent in self.length()..(self.length() + self.random.below(12)).min(end / EXTENT) {
            let place = self.store.locate(self.id, extent).unwrap();
            let mut bytes = vec![0; 4096];
            bytes[..8].copy_from_slice(&(extent + 1).to_le_bytes());
            self.disks[place.disk.as_usize()].write(at(&place), bytes);
            let next = 600_000_000 + self.random.below(800_000_000) as i64;
            self.clock += if self.random.once_in(40) { 30 * SECOND } else { next };
            self.store.set_clock(self.clock);
            self.times.push(self.clock);
            self.store.note_arrived(self.id, EXTENT * extent, EXTENT * (extent + 1));
            self.store.note_written(self.id, extent, &Blocks::first(Bytes::kib(4)));
            self.store.note_length(self.id, EXTENT * (extent + 1));
        }
        if self.random.once_in(4) {
            self.give_up_old();
        }
        let ahead = Bytes::mib(self.length() + 1 + self.random.below(14));
        self.store.give_up(self.id, ahead);
    }

    /// The ring gives up what is old: only that, and all of it that is 16 extents together and
    /// durable.
    fn give_up_old(&mut self) {
        self.store.set_clock(self.clock);
        let given_up = self.store.give_up_old(self.id);
        let old = |extent: u64| self.times[extent as usize] - (self.clock - KEEP * SECOND);
        if let Some(range) = given_up {
            let range = range.start / EXTENT..range.end / EXTENT;
            self.aged += range.end - range.start;
            range.for_each(|extent| assert!(old(extent) <= 0, "extent {extent} is young"));
        }
        let start = self.store.volume(self.id).unwrap().start() / EXTENT;
        if start + 16 <= self.durable {
            assert!(old(start + 15) > -WITHIN, "extents {start} to {} are old", start + 16);
        }
    }

    /// One step of a commit; the power may be cut within.
    fn live(&mut self, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            self.record();
            let (upto, cuts) = (self.length(), self.cuts);
            let began = self.store.commit();
            while let Some(io) = self.store.poll() {
                if self.random.once_in(40) {
                    self.cut()?;
                    break;
                }
                if self.random.once_in(3) {
                    self.record(); // beside a commit that is under way
                }
                let result = self.disks[io.disk.as_usize()].do_io(&io.kind);
                self.store.done(io.id, result);
            }
            // Not of one that was cut off: the pool that is open since counts anew.
            if began.is_some_and(|id| self.cuts == cuts && self.store.committed() >= id) {
                self.durable = self.durable.max(upto);
            }
        }
        Ok(())
    }

    /// The power is cut, and the pool is opened again.
    fn cut(&mut self) -> Result<(), String> {
        let start = self.store.volume(self.id).unwrap().start() / EXTENT;
        let cut = |disk: &Disk, random: &mut Random| disk.cut(Cut::Any, random);
        let disks = self.disks.iter().map(|disk| cut(disk, &mut self.random)).collect();
        self.disks = disks;
        self.store = open(&mut self.disks).map_err(|error| format!("{error:?}"))?.store;
        let volume = self.store.volume(self.id).unwrap();
        let (from, to) = (volume.start() / EXTENT, volume.length() / EXTENT);
        if to < self.durable || from > start {
            return Err(format!("{from}..{to} is held, of {start}..{}", self.durable));
        }
        if volume.keep() != Some(Duration::from_secs(KEEP as u64)) {
            return Err(format!("it keeps {:?}", volume.keep()));
        }
        self.times.truncate(to as usize);
        for extent in from..to {
            // The end of the extent, which arrived as one.
            let told = volume.recorded().time_at(EXTENT * (extent + 1) - Bytes::kib(4));
            let is_off = |told: i64| (told - self.times[extent as usize]).abs() > WITHIN;
            if told.is_none_or(is_off) {
                return Err(format!("extent {extent} of {from}..{to} was recorded at {told:?}"));
            }
            let place = self.store.locate(self.id, extent).unwrap();
            let block = self.disks[place.disk.as_usize()].block(at(&place));
            let is = u64::from_le_bytes(block[..8].try_into().unwrap());
            if place.written.is_empty() || is != extent + 1 {
                return Err(format!("extent {extent} is extent {is} less one"));
            }
        }
        self.durable = to;
        self.cuts += 1;
        self.found += to - from;
        Ok(())
    }
}

fn lived(seed: u64, reuses_at_once: bool, steps: u64) -> Result<World, String> {
    let mut world = World::new(seed, reuses_at_once);
    world.live(steps)?;
    world.cut()?;
    Ok(world)
}

#[test]
fn a_cut_leaves_what_was_recorded_and_not_given_up() {
    let histories = std::env::var("SLACKLINE_HISTORIES").ok().and_then(|n| n.parse().ok());
    let (mut wraps, mut cuts, mut found, mut aged) = (0, 0, 0, 0);
    for seed in 0..histories.unwrap_or(20) {
        let world = lived(seed, false, 150).unwrap_or_else(|error| panic!("{seed}: {error}"));
        wraps += world.length() / SIZE;
        cuts += world.cuts;
        found += world.found;
        aged += world.aged;
    }
    let all = format!("{wraps} {cuts} {found} {aged}");
    assert!(wraps > 100 && cuts > 300 && found > 10_000 && aged > 1_000, "{all}");
}

/// A ring whose places are written before it is durable that they were given up shows, after a
/// cut, other bytes than were recorded.
#[test]
fn the_checker_finds_a_place_that_is_written_too_early() {
    let missed = (0..20).filter(|&seed| lived(seed, true, 150).is_ok()).count();
    assert!(missed < 5, "{missed} of 20 histories show nothing");
}
