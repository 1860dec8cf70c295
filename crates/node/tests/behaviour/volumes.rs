//! Volumes are made, changed and taken away, and best effort reads and writes them: no
//! byte is lost, shown to somebody else or made up.

use crate::driver::*;
use node::{
    Blocks, DeviceError, DiskAction, DiskIndex, Error, Op, Placement, Reply, WriteRange, Writer,
    Zone,
};
use store::Store;
use units::{Bytes, Direction, Instant};

const KIB4: Bytes = Bytes::kib(4);

/// What is answered as done is on the medium: the power is cut right afterwards, and the
/// volume is there, with its place, and without what was not asked for.
#[test]
fn a_volume_that_was_made_changed_or_deleted_is_so_after_a_power_cut() {
    let mut driver = Setup::new(2).open();
    let placement =
        Placement { disks: vec![DiskIndex(1)], zone: Zone::Inner, run: Bytes::MIB, thin: false };
    driver.done(create("film", Bytes::mib(3), placement.clone()));
    let mut driver = driver.after_a_power_cut();
    let volume = driver.node.volume("film").expect("it was made");
    assert_eq!((volume.size, volume.length), (Bytes::mib(3), Bytes::ZERO));
    assert_eq!((volume.placement, volume.extents), (placement, vec![0, 3]));
    driver.done(resize("film", Bytes::mib(5)));
    let mut driver = driver.after_a_power_cut();
    assert_eq!(driver.node.volume("film").expect("still").size, Bytes::mib(5));
    driver.done(delete("film"));
    assert_eq!(driver.after_a_power_cut().node.volume("film"), None);
}

/// Each way of not making a volume has its own answer, and none leaves anything behind.
#[test]
fn a_volume_that_cannot_be_is_refused_and_nothing_changes() {
    let mut driver = Setup::new(2).open();
    driver.volume("film", Bytes::mib(4));
    let free = || Placement::default();
    let exists = Error::VolumeExists { name: "film".into() };
    assert_eq!(driver.at_once(create("film", Bytes::mib(1), free())), Err(exists));
    let before = driver.node.status(driver.now);
    let space: Bytes = before.disks.iter().map(|disk| disk.free).sum();
    let told = driver.at_once(create("big", space + Bytes::MIB, free()));
    assert!(matches!(told, Err(Error::PoolFull { .. })), "{told:?}");
    let elsewhere = Placement { disks: vec![DiskIndex(2)], ..free() };
    let no_disk = Error::NoSuchDisk { disk: DiskIndex(2), disks: 2 };
    assert_eq!(driver.at_once(create("far", Bytes::MIB, elsewhere)), Err(no_disk));
    let told = driver.at_once(create("no//name", Bytes::MIB, free()));
    assert!(matches!(told, Err(Error::Invalid { what: "volume name", .. })), "{told:?}");
    let none = |name: &str| Err(Error::NoSuchVolume { name: name.into() });
    assert_eq!(driver.at_once(delete("big")), none("big"));
    assert_eq!(driver.at_once(resize("big", Bytes::MIB)), none("big"));
    assert_eq!(driver.at_once(read("big", Bytes::ZERO, KIB4)), none("big"));
    let after = driver.node.status(driver.now);
    assert_eq!((before.disks, before.volumes), (after.disks, after.volumes));
    // All of the space can be had.
    driver.done(create("rest", space, free()));
    let told = driver.at_once(resize("film", Bytes::mib(5)));
    let Err(Error::PoolFull { disk, asked, free, fits, .. }) = told else { panic!("{told:?}") };
    assert_eq!((asked, free), (Bytes::MIB, Bytes::ZERO));
    assert!(disk.0 < 2 && fits.is_some_and(|fits| fits.most == Bytes::mib(4)));
}

/// A write of any bytes leaves those around it as they were: what was there, and zeros
/// where nothing was.
#[test]
fn a_write_within_blocks_keeps_what_is_around_it() {
    let mut driver = Setup::new(2).open();
    driver.recorded("film", Bytes::mib(4), Bytes::kib(64), 1);
    let write = |driver: &mut Driver, seed, offset, len| {
        driver.write("film", seed, Bytes::new(offset), Bytes::new(len));
    };
    let mut want = pattern(1, Bytes::ZERO, Bytes::kib(64));
    want.resize(Bytes::mib(3).as_usize(), 0);
    let edge = 1 << 20;
    let pieces = [
        (2, 5_000, 100),           // within one block
        (3, 8_000, 400),           // over the end of one
        (4, 12_288, 4_096),        // just one
        (5, 20_480, 5_000),        // from the start of one
        (6, 30_000, 6_864),        // to the end of one
        (7, 65_500, 10_000),       // from what was written on
        (8, 200_001, 3),           // where nothing was
        (9, edge - 3, 6),          // over two extents, on two disks
        (10, 2 * edge + 7, 4_090), // a block but for its first bytes and its last
    ];
    for (seed, offset, len) in pieces {
        write(&mut driver, seed, offset, len);
        let bytes = pattern(seed, Bytes::new(offset), Bytes::new(len));
        want[offset as usize..(offset + len) as usize].copy_from_slice(&bytes);
    }
    let length = Bytes::new(2 * edge + 7 + 4_090);
    assert_eq!(driver.node.volume("film").unwrap().length, length, "where the last one ends");
    driver.done(Op::Sync);
    let mut driver = driver.after_a_power_cut();
    for mib in 0..3 {
        let at = Bytes::mib(mib);
        let got = driver.read("film", at, Bytes::MIB).unwrap();
        assert!(got == want[at.as_usize()..][..1 << 20], "{mib}");
    }
    assert_eq!(driver.node.volume("film").unwrap().length, length);
}

/// What a deleted volume had is nobody's to see: another volume in the same place reads as
/// zeros, and the disk is not even asked.
#[test]
fn what_was_never_written_reads_as_zeros_whatever_the_disk_has_there() {
    let mut driver = Setup::new(1).open();
    driver.recorded("old", Bytes::mib(2), Bytes::mib(2), 1);
    driver.done(delete("old"));
    driver.volume("new", Bytes::mib(2));
    let before = driver.journal.len();
    assert_eq!(driver.read("new", Bytes::ZERO, Bytes::MIB).unwrap(), vec![0; 1 << 20]);
    let asked = driver.since(before);
    assert!(asked.iter().all(|done| done.action.needs_no_disk()), "{asked:?}");
    assert!(asked.iter().all(|done| done.action.transfer().is_none()));
    // A block in its middle shows itself, and nothing beside it.
    driver.write("new", 2, Bytes::kib(512), KIB4);
    let got = driver.read("new", Bytes::ZERO, Bytes::MIB).unwrap();
    let mut want = vec![0; 1 << 20];
    want[512 << 10..516 << 10].copy_from_slice(&pattern(2, Bytes::kib(512), KIB4));
    assert!(got == want);
    let last = driver
        .journal
        .iter()
        .rev()
        .find(|done| matches!(done.action.transfer(), Some((_, Direction::Read))));
    let (range, _) = last.expect("a block was read").action.transfer().unwrap();
    assert_eq!(range.end - range.start, KIB4, "and no more than that");
}

/// What a volume was cut by is gone for good.
#[test]
fn what_was_cut_does_not_come_back() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(3), 1);
    let told = driver.at_once(resize("film", Bytes::mib(2)));
    let (recorded, size) = (Bytes::mib(3), Bytes::mib(2));
    assert_eq!(told, Err(Error::WouldCut { name: "film".into(), recorded, size }));
    driver.done(resize("film", Bytes::mib(3)));
    driver.done(Op::VolumeResize { name: "film".into(), size, may_cut: true });
    assert_eq!(driver.node.volume("film").unwrap().length, size);
    let beyond = driver.at_once(read("film", Bytes::mib(2), KIB4));
    assert_eq!(beyond, Err(Error::BeyondEnd { size }));
    driver.done(resize("film", Bytes::mib(3)));
    assert_eq!(driver.read("film", Bytes::mib(2), KIB4).unwrap(), vec![0; 4096]);
    let kept = driver.read("film", Bytes::mib(1), KIB4).unwrap();
    assert_eq!(kept, pattern(1, Bytes::mib(1), KIB4));
}

/// A write of this writer has failed in part, and others may have written meanwhile, before its end or behind it.
#[test]
fn what_is_cut_unless_others_have_changed_the_volume_stays_where_they_have() {
    let (me, recorded, length) = (Writer(7), Bytes::mib(3), Bytes::mib(2));
    for others in [None, Some(Bytes::ZERO), Some(Bytes::mib(2)), Some(recorded)] {
        let mut driver = Setup::new(1).open();
        driver.recorded("film", Bytes::mib(4), recorded, 1);
        let known = driver.node.volume("film").unwrap().changes.not_by(me);
        let range = WriteRange { writer: Some(me), ..WriteRange::new(Bytes::mib(2), KIB4) };
        let span = driver.room(range.room());
        driver.fill(span, 2, &range);
        driver.done(write("film", range, span));
        if let Some(at) = others {
            driver.write("film", 3, at, KIB4);
        }
        let cut = || {
            let (name, unless_changed) = ("film".into(), Some((me, known)));
            Op::Staged(Box::new(Op::VolumeTruncate { name, length, unless_changed }))
        };
        driver.done(cut());
        let found = driver.node.volume("film").unwrap();
        let left = match others {
            None => length,
            Some(at) => recorded.max(at + KIB4),
        };
        assert_eq!((found.size, found.length), (Bytes::mib(4), left), "{others:?}");
        // The cut is his own change; where nothing is left to be cut, that is no error.
        driver.done(cut());
        assert_eq!(driver.node.volume("film").unwrap().length, left);
    }
}

/// Writes of the same bytes are done in the order in which they came, however many wait, and
/// one that fails binds nobody else.
#[test]
fn the_last_write_to_come_is_the_one_that_stays() {
    for fails in [false, true] {
        let mut driver = Setup::new(1).open();
        driver.recorded("film", Bytes::mib(1), Bytes::kib(256), 1);
        driver.disks[0].holds = true;
        let ranges = [(0, 64), (32, 64), (64, 64), (16, 96), (0, 128)];
        let mut want = pattern(1, Bytes::ZERO, Bytes::kib(256));
        let mut tickets = Vec::new();
        for (seed, (from, len)) in (2..).zip(ranges) {
            let (from, len) = (Bytes::kib(from), Bytes::kib(len));
            tickets.push(driver.begin_write("film", seed, from, len));
            want[from.as_usize()..(from + len).as_usize()]
                .copy_from_slice(&pattern(seed, from, len));
        }
        if fails {
            let flight = driver.disks[0].flights.values().next().expect("the first");
            let (range, _) = flight.command.action.transfer().unwrap();
            driver.break_at(DISK, range, None);
            let id = *driver.disks[0].flights.keys().next().unwrap();
            driver.disks[0].holds = false;
            while driver.disks[0].flights.contains_key(&id) {
                assert!(driver.step(Instant::MAX));
            }
            driver.disks[0].troubles.clear();
            let error = DeviceError(5);
            let told = driver.wait(tickets.remove(0));
            assert_eq!(told, Err(Error::Device { disk: DISK, error }));
        }
        driver.disks[0].holds = false;
        for ticket in tickets {
            assert_eq!(driver.wait(ticket), Ok(Reply::Done));
        }
        assert!(driver.read("film", Bytes::ZERO, Bytes::kib(256)).unwrap() == want);
    }
}

/// The rest of a block that cannot be read is not replaced by anything else.
#[test]
fn a_write_whose_edge_cannot_be_read_is_not_done() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(1), Bytes::kib(64), 1);
    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(Direction::Read));
    let ticket = driver.begin_write("film", 2, Bytes::new(4_196), Bytes::new(100));
    let error = Error::Device { disk: DISK, error: DeviceError(5) };
    assert_eq!(driver.wait(ticket), Err(error.clone()));
    assert_eq!(driver.ask(read("film", Bytes::ZERO, KIB4)), Err(error));
    driver.disks[0].troubles.clear();
    let got = driver.read("film", Bytes::ZERO, Bytes::kib(64)).unwrap();
    assert!(got == pattern(1, Bytes::ZERO, Bytes::kib(64)));
    // Its memory came back: all of it can be had.
    assert_eq!(driver.node.status(driver.now).memory.best_effort, Bytes::ZERO);
}

/// Best effort says what is wrong with it before anything is done.
#[test]
fn best_effort_that_cannot_be_is_refused_and_gives_its_memory_back() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(1));
    let invalid = |what| move |told: &Result<Reply, Error>| matches!(told, Err(Error::Invalid { what: other, .. }) if *other == what);
    for len in [Bytes::ZERO, Bytes::new(4_097), Bytes::MIB + KIB4] {
        let told = driver.at_once(read("film", Bytes::ZERO, len));
        assert!(invalid("length")(&told), "{told:?}");
        assert!(invalid("length")(&driver.at_once(room(len))));
    }
    let told = driver.at_once(read("film", Bytes::new(512), KIB4));
    assert!(invalid("offset")(&told), "{told:?}");
    let beyond = Err(Error::BeyondEnd { size: Bytes::MIB });
    assert_eq!(driver.at_once(read("film", Bytes::kib(1_020), Bytes::kib(8))), beyond);
    let refused = [
        (WriteRange::new(Bytes::ZERO, Bytes::ZERO), "length"),
        (WriteRange::new(Bytes::new(1), Bytes::kib(8)), "length"),
    ];
    for (range, what) in refused {
        let span = driver.room(Bytes::kib(8));
        let told = driver.at_once(write("film", range, span));
        assert!(invalid(what)(&told), "{told:?}");
    }
    let span = driver.room(KIB4);
    let range = WriteRange::new(Bytes::MIB - Bytes::new(1), Bytes::new(2));
    assert_eq!(driver.at_once(write("film", range, span)), beyond);
    assert_eq!(driver.node.status(driver.now).memory.best_effort, Bytes::ZERO);
}

/// A record that cannot be written makes the pool read-only, and everybody hears why: nothing
/// is said to be durable that is not.
#[test]
fn a_pool_whose_metadata_cannot_be_written_is_read_only_and_says_so() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    let stream = driver.writer("film", usual());
    driver.put_all(stream, 2, BLOCK);
    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(Direction::Write));
    let error = Error::ReadOnly { disk: DISK, error: DeviceError(5) };
    let made = driver.begin(create("more", Bytes::MIB, Placement::default()));
    let durable = driver.begin(Op::StreamDurable { stream, beyond: Bytes::ZERO });
    assert_eq!(driver.wait(made), Err(error.clone()));
    assert!(driver.wait(durable).is_err());
    assert!(driver.node.is_read_only() && driver.node.status(driver.now).read_only);
    assert_eq!(driver.ask(Op::Sync), Err(error.clone()));
    let span = driver.room(BLOCK);
    let told = driver.ask(write("film", WriteRange::new(Bytes::mib(2), BLOCK), span));
    assert!(told.is_err());
    let told = driver.close(stream);
    assert!(told.is_err(), "{told:?}");
    let writer = driver.at_once(open("film", node::Mode::Write, usual(), Bytes::ZERO));
    assert_eq!(writer, Err(error.clone()));
    let got = driver.read("film", Bytes::kib(64), KIB4).unwrap();
    assert_eq!(got, pattern(1, Bytes::kib(64), KIB4), "it is still read");
    assert_eq!(driver.ask(Op::Shutdown), Err(error));
}

/// A volume that goes away while somebody waits for memory to read it: he is told so, and
/// does not come to read another of the same name.
#[test]
fn who_waits_to_read_a_volume_that_is_deleted_is_told_that_it_is_gone() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    let spans = driver.all_rooms();
    let waits = driver.begin(read("film", Bytes::ZERO, Bytes::MIB));
    assert!(!driver.is_answered(waits));
    driver.done(delete("film"));
    assert_eq!(driver.answer(waits), Some(Err(Error::NoSuchVolume { name: "film".into() })));
    driver.volume("film", Bytes::mib(4));
    spans.into_iter().for_each(|span| driver.done(Op::Release { span }));
}

/// A volume that is cut while somebody waits for memory to read behind the cut.
#[test]
fn who_waits_to_read_what_is_cut_is_told_so() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(1), 1);
    let mut spans = driver.all_rooms();
    let waits = driver.begin(read("film", Bytes::mib(3), Bytes::MIB));
    driver.done(resize("film", Bytes::mib(3)));
    assert_eq!(driver.answer(waits), None);
    driver.done(Op::Release { span: spans.remove(0) });
    assert_eq!(driver.wait(waits), Err(Error::BeyondEnd { size: Bytes::mib(3) }));
}

/// Where the metadata has no room for another extent with holes, what lies before a write is
/// filled with zeros, so that it can be read, and nobody sees what the disk had there.
#[test]
fn where_holes_are_too_many_zeros_are_written_and_nothing_old_is_seen() {
    let full = |store: &mut Store| {
        let holes = store.create("holes", Bytes::mib(5_000), &Placement::default()).unwrap();
        let hole = Blocks::of(&(KIB4..KIB4 * 2));
        for extent in 0.. {
            if !store.reserve_scattered() {
                return store.note_length(holes, Bytes::mib(5_000));
            }
            store.note_written(holes, extent, &hole);
            store.release_scattered();
        }
    };
    let profiles = vec![profile(Bytes::mib(6_000), FIXED, FLUSH)];
    let mut driver = Setup { profiles, before: full, ..Setup::new(1) }.open();
    driver.recorded("old", Bytes::mib(2), Bytes::mib(2), 1);
    driver.done(delete("old"));
    driver.volume("new", Bytes::mib(2));
    let before = driver.journal.len();
    let hole = Bytes::kib(256);
    driver.write("new", 2, hole, KIB4);
    let written = |from: usize, driver: &Driver| -> Bytes {
        let spans = driver.since(from).iter().filter_map(|done| match &done.action {
            DiskAction::Write { span, .. } => Some(span.len),
            _ => None,
        });
        spans.sum()
    };
    assert_eq!(written(before, &driver), hole + KIB4, "all before it, and it itself");
    // Two at a time: the second waits for the first, which fills what is before both.
    let before = driver.journal.len();
    let later = driver.begin_write("new", 3, Bytes::kib(384), KIB4);
    let last = driver.begin_write("new", 4, Bytes::kib(512), KIB4);
    assert_eq!((driver.wait(later), driver.wait(last)), (Ok(Reply::Done), Ok(Reply::Done)));
    assert_eq!(written(before, &driver), Bytes::kib(256), "nothing twice");
    // Where the zeros fail, the write is not done, and shows nothing of the disk.
    let (range, _) = driver.journal.last().unwrap().action.transfer().unwrap();
    let behind = range.end..range.end + KIB4;
    driver.break_at(DISK, behind, Some(Direction::Write));
    let failed = driver.begin_write("new", 5, Bytes::kib(640), KIB4);
    let error = DeviceError(5);
    assert_eq!(driver.wait(failed), Err(Error::Device { disk: DISK, error }));
    driver.done(Op::Sync);
    let mut driver = driver.after_a_power_cut();
    let got = driver.read("new", Bytes::ZERO, Bytes::MIB).unwrap();
    let mut want = vec![0; 1 << 20];
    for (seed, kib) in [(2, 256), (3, 384), (4, 512)] {
        let at = kib << 10;
        want[at..at + 4096].copy_from_slice(&pattern(seed, Bytes::kib(kib as u64), KIB4));
    }
    assert!(got == want);
}

/// Where "new" lies, of which a block is written: over what a deleted volume had there.
fn over_an_old_volume() -> (Driver, Bytes) {
    let mut driver = Setup::new(1).open();
    driver.recorded("old", Bytes::mib(2), Bytes::mib(2), 1);
    driver.done(delete("old"));
    driver.volume("new", Bytes::mib(1));
    driver.write("new", 2, Bytes::ZERO, KIB4);
    let mut done = driver.journal.iter().rev().map(|done| &done.action);
    let place = done.find_map(|action| match action {
        DiskAction::Write { offset, .. } => Some(*offset),
        _ => None,
    });
    let place = place.expect("it was written");
    let old = |at| pattern(1, at, Bytes::MIB - KIB4);
    let there = driver.disks[0].read(place + KIB4, Bytes::MIB - KIB4);
    assert!([KIB4, Bytes::MIB + KIB4].iter().any(|&at| there == old(at)), "the old bytes");
    (driver, place)
}

/// A few bytes are written where nothing was: the rest of their blocks is zeros, and not what
/// a deleted volume left on the disk.
#[test]
fn beside_a_few_bytes_nothing_is_seen_of_what_the_disk_had_there() {
    let (mut driver, _) = over_an_old_volume();
    let mut want = pattern(2, Bytes::ZERO, KIB4);
    want.resize(1 << 20, 0);
    // In one block; over the ends of two; from the end of one on, all of the next.
    for (seed, from, len) in [(3, 9_000, 100), (4, 20_000, 9_000), (5, 49_000, 4_248)] {
        driver.write("new", seed, Bytes::new(from), Bytes::new(len));
        let bytes = pattern(seed, Bytes::new(from), Bytes::new(len));
        want[from as usize..(from + len) as usize].copy_from_slice(&bytes);
    }
    assert!(driver.read("new", Bytes::ZERO, Bytes::MIB).unwrap() == want);
    driver.done(Op::Sync);
    let mut driver = driver.after_a_power_cut();
    assert!(driver.read("new", Bytes::ZERO, Bytes::MIB).unwrap() == want);
}

/// A write that the disk fails on, where nothing was written before: whatever came to be there,
/// it is not the volume's. Written again, it is.
#[test]
fn a_write_that_failed_has_written_nothing() {
    let (mut driver, place) = over_an_old_volume();
    let at = Bytes::kib(512);
    driver.break_at(DISK, place + at..place + at + BLOCK, Some(Direction::Write));
    let failed = driver.begin_write("new", 3, at, BLOCK);
    let error = DeviceError(5);
    assert_eq!(driver.wait(failed), Err(Error::Device { disk: DISK, error }));
    driver.disks[0].troubles.clear();
    let mut want = pattern(2, Bytes::ZERO, KIB4);
    want.resize(1 << 20, 0);
    assert!(driver.read("new", Bytes::ZERO, Bytes::MIB).unwrap() == want);
    assert_eq!(driver.node.volume("new").unwrap().length, KIB4, "nothing more is recorded");
    driver.done(Op::Sync);
    let mut driver = driver.after_a_power_cut();
    assert!(driver.read("new", Bytes::ZERO, Bytes::MIB).unwrap() == want);
    driver.write("new", 3, at, BLOCK);
    want[at.as_usize()..(at + BLOCK).as_usize()].copy_from_slice(&pattern(3, at, BLOCK));
    assert!(driver.read("new", Bytes::ZERO, Bytes::MIB).unwrap() == want);
}

/// Room in the metadata for an extent with holes is taken while it is written to, and given back
/// when it turns out to have none.
#[test]
fn room_for_holes_is_given_back_where_there_are_none() {
    let all_but_one = |store: &mut Store| {
        let holes = store.create("holes", Bytes::mib(5_000), &Placement::default()).unwrap();
        let hole = Blocks::of(&(KIB4..KIB4 * 2));
        let mut last = None;
        for extent in 0.. {
            if !store.reserve_scattered() {
                break;
            }
            store.note_written(holes, extent, &hole);
            store.release_scattered();
            last = Some(extent);
        }
        let last = last.expect("there was room");
        store.note_written(holes, last, &Blocks::of(&(Bytes::ZERO..KIB4)));
        assert!(store.reserve_scattered(), "room for one");
        store.release_scattered();
    };
    let profiles = vec![profile(Bytes::mib(6_000), FIXED, FLUSH)];
    let mut driver = Setup { profiles, before: all_but_one, ..Setup::new(1) }.open();
    driver.volume("new", Bytes::mib(2));
    for number in 0..3 {
        driver.write("new", 2, KIB4 * number, KIB4);
    }
    let before = driver.journal.len();
    driver.write("new", 3, Bytes::kib(512), KIB4);
    let writes =
        driver.since(before).iter().filter(|done| matches!(done.action, DiskAction::Write { .. }));
    assert_eq!(writes.count(), 1, "a hole is before it, and no zeros");
}
