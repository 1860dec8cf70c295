//! Blocks that are longer than an extent: in one run of neighbouring extents or in several,
//! read and written, and what becomes of them where a disk fails or the volume's map changes.
//!
//! On these disks a command costs 10 ms, and 10 ms for each MiB.

use crate::driver::*;
use node::{Contract, DiskAction, Error, Mode, Op, Placement, Reply, StreamId};
use units::{Bytes, Direction, Duration, Rate};

/// Blocks of so many MiB, one in a second.
fn each_second(mib: u64) -> Contract {
    contract(Rate::per_second(mib << 20), Bytes::mib(mib), Bytes::ZERO)
}

fn pool(disks: usize) -> Driver {
    Setup::new(disks).with(|config| config.memory = Bytes::mib(160)).open()
}

/// A pool whose only free space on disk 0 is in holes of so many MiB, with 1 MiB between them.
fn holes(mib: &[u64]) -> Driver {
    holes_in(pool(1), mib)
}

fn on(disk: u16) -> Placement {
    Placement { disks: vec![node::DiskIndex(disk)], ..Placement::default() }
}

fn holes_in(mut driver: Driver, mib: &[u64]) -> Driver {
    for (number, &mib) in mib.iter().enumerate() {
        driver.done(create(&format!("hole{number}"), Bytes::mib(mib), on(0)));
        driver.done(create(&format!("between{number}"), Bytes::MIB, on(0)));
    }
    let rest = driver.node.status(driver.now).disks[0].free;
    driver.done(create("rest", rest, on(0)));
    for number in 0..mib.len() {
        driver.done(delete(&format!("hole{number}")));
    }
    driver
}

/// A film of 16 MiB in runs of 6, 6 and 4 MiB, recorded.
fn film() -> Driver {
    let mut driver = holes(&[6, 6, 4]);
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    let status = driver.node.volume("film").unwrap();
    assert_eq!((status.stretches.count, status.stretches.shortest), (3, Bytes::mib(4)));
    driver
}

/// What a stream has of disk 0, in parts per million.
fn share(driver: &Driver, stream: StreamId) -> u64 {
    driver.node.stream(stream).unwrap().shares[0].1
}

/// The lengths in MiB of what disks transferred for streams since then.
fn transfers(driver: &Driver, from: usize, way: Direction) -> Vec<u64> {
    let long = |done: &Done| match &done.action {
        DiskAction::WriteBytes { .. } => None,
        action => action.transfer(),
    };
    let all = driver.since(from).iter().filter_map(long);
    let all = all.filter(|(_, direction)| *direction == way);
    all.map(|(range, _)| (range.end - range.start) / Bytes::MIB).collect()
}

/// Reads to the end: all bytes, with nothing in the place of gaps, and the gaps.
fn all_of(driver: &mut Driver, stream: StreamId) -> (Vec<u8>, Vec<(u64, u64)>) {
    let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
    loop {
        match driver.ask(Op::StreamRead { stream, len_max: Bytes::mib(16) }) {
            Ok(Reply::Data { bytes: span, offset }) => {
                assert_eq!(offset.get(), bytes.len() as u64);
                bytes.extend(driver.bytes(span));
                driver.done(Op::StreamAdvance { stream, len: span.len });
            }
            Ok(Reply::Gap { offset, len }) => {
                gaps.push((offset / Bytes::MIB, len / Bytes::MIB));
                bytes.extend(vec![0; len.as_usize()]);
            }
            Ok(Reply::End) => return (bytes, gaps),
            other => panic!("{other:?}"),
        }
    }
}

fn late(driver: &Driver) -> u64 {
    driver.node.status(driver.now).disks.iter().map(|disk| disk.account.late_requests).sum()
}

/// Of a block of 8 MiB, 6 lie in one run and 2 in another; of the next, 4 and 4.
#[test]
fn a_block_is_read_in_one_command_for_each_run_and_costs_their_sum() {
    let mut driver = film();
    let from = driver.journal.len();
    let (stream, window) = driver.stream(open("film", Mode::Read, each_second(8), Bytes::ZERO));
    assert_eq!(window, Bytes::mib(24));
    assert_eq!(share(&driver, stream), 100_000, "two placements, 8 MiB, in a second");
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert!(bytes == pattern(1, Bytes::ZERO, Bytes::mib(16)) && gaps.is_empty());
    assert_eq!(transfers(&driver, from, Direction::Read), [6, 2, 4, 4]);
    let account = driver.node.stream(stream).unwrap().account;
    assert_eq!((account.requests, account.late_requests, account.underruns), (2, 0, 0));
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    for (mib, cost) in [(1, 20_000), (2, 30_000), (4, 60_000), (16, 190_000)] {
        let stream = driver.reader("film", each_second(mib));
        assert_eq!(share(&driver, stream), cost, "{mib} MiB");
        assert_eq!(driver.close(stream), Ok(Reply::Done));
    }
}

/// Best effort asks all the time: it has the slack, and never comes between two parts.
#[test]
fn nothing_comes_between_the_parts_of_a_block() {
    let mut driver = film();
    let stream = driver.reader("film", each_second(8));
    let from = driver.journal.len();
    let mut waits: Vec<_> =
        (0..8).map(|n| driver.begin(read("rest", Bytes::mib(n), Bytes::kib(64)))).collect();
    for _ in 0..400 {
        driver.step(driver.now + Duration::from_secs(1));
        waits.retain(|&ticket| match driver.answer(ticket) {
            Some(Ok(Reply::Data { bytes: span, .. })) => {
                driver.done(Op::Release { span });
                false
            }
            Some(other) => panic!("{other:?}"),
            None => true,
        });
        while waits.len() < 8 {
            waits.push(driver.begin(read("rest", Bytes::ZERO, Bytes::kib(64))));
        }
    }
    driver.write("rest", 3, Bytes::ZERO, Bytes::MIB);
    let parts = transfers(&driver, from, Direction::Read);
    assert!(
        parts.windows(2).filter(|two| **two == [6, 2] || **two == [4, 4]).count() == 2,
        "{parts:?}"
    );
    assert_eq!((late(&driver), driver.node.stream(stream).unwrap().account.underruns), (0, 0));
}

/// The disk fails on 1 MiB of the run of 2 that ends the first block: these 2 are a gap, and
/// the rest of the block is not. After a jump back they are read again.
#[test]
fn where_a_run_fails_only_its_bytes_are_lost() {
    let mut driver = film();
    let from = driver.journal.len();
    driver.read("film", Bytes::mib(7), Bytes::kib(4)).unwrap();
    let place = driver.since(from)[0].action.transfer().unwrap().0;
    driver.break_at(DISK, place, Some(Direction::Read));
    let stream = driver.reader("film", each_second(8));
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert_eq!(gaps, [(6, 2)]);
    let mut want = pattern(1, Bytes::ZERO, Bytes::mib(16));
    want[6 << 20..8 << 20].fill(0);
    assert!(bytes == want);
    assert_eq!(driver.node.stream(stream).unwrap().account.gaps, Bytes::mib(2));
    driver.disks[0].troubles.clear();
    let told = driver.ask(Op::StreamSeek { stream, to: Bytes::mib(6) });
    assert!(matches!(told, Ok(Reply::Ready { .. })), "{told:?}");
    // The first bytes of a jump come by themselves.
    let mut place = Bytes::mib(6);
    while place < Bytes::mib(8) {
        let (offset, bytes) = driver.next(stream, Bytes::mib(8) - place);
        assert_eq!(offset, place);
        let len = Bytes::new(bytes.len() as u64);
        assert!(bytes == pattern(1, offset, len));
        place += len;
    }
}

/// The same in a shared window.
#[test]
fn in_a_shared_window_a_failed_run_is_a_gap_between_pieces() {
    let mut driver = film();
    let from = driver.journal.len();
    driver.read("film", Bytes::mib(1), Bytes::kib(4)).unwrap();
    let place = driver.since(from)[0].action.transfer().unwrap().0;
    driver.break_at(DISK, place, Some(Direction::Read));
    let (stream, _) = driver.stream(open_window("film", Mode::Read, each_second(8), 3));
    let mut pieces = Vec::new();
    loop {
        let (kind, offset, len) = match driver.ask(Op::WindowNext { stream }) {
            Ok(Reply::Data { bytes: span, offset }) => {
                assert!(driver.bytes(span) == pattern(1, offset, span.len));
                ("data", offset, span.len)
            }
            Ok(Reply::Gap { offset, len }) => ("gap", offset, len),
            Ok(Reply::End) => break,
            other => panic!("{other:?}"),
        };
        pieces.push((kind, offset / Bytes::MIB, len / Bytes::MIB));
        driver.done(Op::WindowMoved { stream, len });
    }
    assert_eq!(pieces, [("gap", 0, 6), ("data", 6, 2), ("data", 8, 8)]);
}

/// A recorder fills blocks of 8 MiB that lie in two runs each; the power fails behind the sync.
#[test]
fn what_is_written_in_long_blocks_is_there_after_a_power_cut() {
    let mut driver = holes(&[6, 6, 4]);
    driver.volume("film", Bytes::mib(16));
    let stream = driver.writer("film", each_second(8));
    let from = driver.journal.len();
    driver.put_all(stream, 5, Bytes::kib(11_000));
    assert_eq!(driver.done_durable(stream), Bytes::kib(11_000));
    let written = transfers(&driver, from, Direction::Write);
    assert_eq!(written, [6, 2, 2], "a block, and what there is of the next: less than 3 MiB");
    assert_eq!(late(&driver), 0);
    let mut driver = driver.after_a_power_cut();
    let status = driver.node.volume("film").unwrap();
    assert_eq!(status.length, Bytes::kib(11_000));
    let stream = driver.reader("film", each_second(8));
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert!(bytes == pattern(5, Bytes::ZERO, Bytes::kib(11_000)) && gaps.is_empty());
}

/// A volume of 12 MiB ends in the middle of its second block: what fills it is durable without
/// anybody asking for it.
#[test]
fn a_volume_that_ends_within_a_block_is_filled_to_its_end() {
    let mut driver = pool(1);
    driver.volume("film", Bytes::mib(12));
    let stream = driver.writer("film", each_second(8));
    let durable =
        driver.begin(Op::StreamDurable { stream, beyond: Bytes::mib(12) - Bytes::new(1) });
    driver.put_all(stream, 5, Bytes::mib(12));
    assert_eq!(driver.wait(durable), Ok(Reply::Durable { upto: Bytes::mib(12) }));
    let full = driver.ask(Op::StreamRoom { stream, len_max: Bytes::MIB });
    assert!(matches!(full, Err(Error::VolumeFull { .. })), "{full:?}");
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::mib(12) }));
    let stream = driver.reader("film", each_second(8));
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert!(bytes == pattern(5, Bytes::ZERO, Bytes::mib(12)) && gaps.is_empty());
}

/// The disk fails on the first run of a block that is written: the stream hears it and nothing
/// of the block is durable; what is on the disk of the second run is the volume's.
#[test]
fn where_a_run_of_a_written_block_fails_the_writer_hears_it() {
    let mut driver = holes(&[6, 6, 4]);
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    let from = driver.journal.len();
    driver.read("film", Bytes::mib(5), Bytes::kib(4)).unwrap();
    let place = driver.since(from)[0].action.transfer().unwrap().0;
    driver.break_at(DISK, place, Some(Direction::Write));
    let stream = driver.writer("film", each_second(8));
    driver.put_all(stream, 5, Bytes::mib(8));
    let told = driver.ask(Op::StreamSync { stream });
    assert!(matches!(told, Err(Error::Device { .. })), "{told:?}");
    let told = driver.close(stream);
    assert!(matches!(told, Err(Error::Device { .. })), "{told:?}");
    driver.disks[0].troubles.clear();
    for (mib, seed) in [(6, 5), (7, 5), (8, 1)] {
        let read = driver.read("film", Bytes::mib(mib), Bytes::MIB).unwrap();
        assert!(read == pattern(seed, Bytes::mib(mib), Bytes::MIB), "{mib}");
    }
}

/// Of 16 MiB somebody has written 4 KiB here and there, over what others left on the disk.
#[test]
fn what_was_never_written_of_a_long_block_is_zeros() {
    let mut driver = pool(1);
    driver.recorded("old", Bytes::mib(16), Bytes::mib(16), 9);
    driver.done(delete("old"));
    driver.volume("film", Bytes::mib(16));
    let places = [0, 300, 1020, 1024, 5_000, 8_188, 9_000, 12_000, 16_380];
    for kib in places {
        driver.write("film", 2, Bytes::kib(kib / 4 * 4), Bytes::kib(4));
    }
    let mut want = vec![0; 16 << 20];
    for kib in places {
        let at = (kib as usize / 4 * 4) << 10;
        want[at..at + 4096].copy_from_slice(&pattern(2, Bytes::new(at as u64), Bytes::kib(4)));
    }
    for mib in [16, 8, 2, 1] {
        let stream = driver.reader("film", each_second(mib));
        let (bytes, gaps) = all_of(&mut driver, stream);
        assert!(bytes == want && gaps.is_empty(), "{mib}");
        assert_eq!(driver.close(stream), Ok(Reply::Done));
    }
}

/// Over three disks, in runs of 4 MiB.
#[test]
fn over_several_disks_a_block_is_at_most_a_run() {
    let mut driver = pool(3);
    let placement = Placement { run: Bytes::mib(4), ..Placement::default() };
    driver.done(create("film", Bytes::mib(40), placement));
    for mib in 0..40 {
        driver.write("film", 1, Bytes::mib(mib), Bytes::MIB);
    }
    for mib in [8, 16] {
        let refused = driver.ask(open("film", Mode::Read, each_second(mib), Bytes::ZERO));
        let Err(Error::Invalid { what, rule }) = refused else { panic!("{refused:?}") };
        assert_eq!(what, "block size");
        assert!(rule.contains("longer run"), "{rule}");
    }
    for mib in [4, 2, 1] {
        let from = driver.journal.len();
        let (stream, window) =
            driver.stream(open("film", Mode::Read, each_second(mib), Bytes::ZERO));
        // Blocks in a row on one disk come a turn apart: the window holds what they are ahead.
        let (gap, row) = (3, 4 / mib);
        assert_eq!(window, Bytes::mib(mib) * (gap + 1 + (row - 1) * (gap - 1) + 1));
        let (bytes, gaps) = all_of(&mut driver, stream);
        assert!(bytes == pattern(1, Bytes::ZERO, Bytes::mib(40)) && gaps.is_empty());
        assert!(transfers(&driver, from, Direction::Read).iter().all(|&len| len == mib));
        let account = driver.node.stream(stream).unwrap().account;
        assert_eq!((account.late_requests, account.underruns), (0, 0), "{mib}");
        assert_eq!(driver.close(stream), Ok(Reply::Done));
    }
    let used = |disk: u16| driver.node.volume("film").unwrap().extents[usize::from(disk)];
    assert_eq!([0, 1, 2].map(used), [16, 12, 12]);
}

/// As much as the disk can still be asked for, in operations of 64 KiB for others.
fn others_take_the_rest(driver: &mut Driver) {
    for (volume, seconds) in [("rest", 1), ("between0", 20)] {
        let fits = (1..100).rev().any(|operations| {
            let rate = Rate::per_second((operations << 16) / seconds);
            let asked = at_rate(rate, Bytes::kib(64), Duration::from_secs(seconds));
            driver.ask(service(volume, asked)) == Ok(Reply::Done)
        });
        assert!(fits, "{volume}");
    }
}

/// A volume grows while it is read: its second block falls into two parts by it, which is
/// admitted first; where there is no time for that, it does not grow.
#[test]
fn growing_into_another_run_is_admitted_first_or_refused() {
    for fits in [true, false] {
        let mut driver = holes(&[12, 12]);
        driver.recorded("film", Bytes::mib(12), Bytes::mib(12), 1);
        let stream = driver.reader("film", each_second(8));
        assert_eq!(share(&driver, stream), 90_000);
        if !fits {
            others_take_the_rest(&mut driver);
        }
        let grown = driver.ask(resize("film", Bytes::mib(16)));
        if fits {
            assert_eq!(grown, Ok(Reply::Done));
            assert_eq!(share(&driver, stream), 100_000);
        } else {
            let Err(Error::Refused(refusal)) = &grown else { panic!("{grown:?}") };
            assert_eq!(refusal.parts, 2);
            assert_eq!(share(&driver, stream), 90_000);
            assert_eq!(driver.node.volume("film").unwrap().size, Bytes::mib(12));
        }
        let (bytes, gaps) = all_of(&mut driver, stream);
        assert!(bytes == pattern(1, Bytes::ZERO, Bytes::mib(12)) && gaps.is_empty());
        assert_eq!(late(&driver), 0);
    }
}

/// An extent in the middle of a block is suspect and moves while the volume is read: from then
/// on the block is in three parts, which was admitted before it moved.
#[test]
fn an_extent_of_a_long_block_moves_once_its_parts_are_admitted() {
    let mut driver = pool(1);
    driver.recorded("film", Bytes::mib(32), Bytes::mib(32), 1);
    let stream = driver.reader("film", each_second(8));
    assert_eq!(share(&driver, stream), 90_000);
    let from = driver.journal.len();
    driver.read("film", Bytes::mib(19), Bytes::kib(4)).unwrap();
    let done = driver.since(from).iter().find_map(|done| {
        done.action.transfer().filter(|(range, _)| range.end - range.start == Bytes::kib(4))
    });
    driver.break_at(DISK, done.unwrap().0, None);
    let told = driver.ask(read("film", Bytes::mib(19), Bytes::kib(4)));
    assert!(matches!(told, Err(Error::Device { .. })), "{told:?}");
    driver.disks[0].troubles.clear();
    assert_eq!(share(&driver, stream), 110_000, "while it moves");
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert!(bytes == pattern(1, Bytes::ZERO, Bytes::mib(32)) && gaps.is_empty());
    driver.run(Duration::from_secs(5));
    let status = driver.node.status(driver.now);
    assert_eq!((status.disks[0].moves.moved, late(&driver)), (1, 0));
    assert_eq!(share(&driver, stream), 110_000, "7 of 8 are where they were, and one is not");
    let told = driver.ask(Op::StreamSeek { stream, to: Bytes::ZERO });
    assert!(matches!(told, Ok(Reply::Ready { .. })), "{told:?}");
    let from = driver.journal.len();
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert!(bytes == pattern(1, Bytes::ZERO, Bytes::mib(32)) && gaps.is_empty());
    assert!(transfers(&driver, from, Direction::Read).contains(&1));
    assert_eq!(late(&driver), 0);
}

/// A reader whose second block lies in two runs, of which the first cannot be read.
fn behind_a_bad_run(length: Bytes, start: Bytes) -> (Driver, StreamId, usize) {
    let mut driver = holes(&[20, 20, 20]);
    driver.recorded("film", Bytes::mib(60), length, 1);
    let from = driver.journal.len();
    driver.read("film", Bytes::mib(16), Bytes::kib(4)).unwrap();
    let place = driver.since(from)[0].action.transfer().unwrap().0;
    driver.break_at(DISK, place, Some(Direction::Read));
    let from = driver.journal.len();
    let contract = contract(Rate::per_second(8 << 20), Bytes::mib(8), Bytes::ZERO);
    let (stream, _) = driver.stream(open("film", Mode::Read, contract, start));
    (driver, stream, from)
}

/// A program jumps twice while a block of which a run has failed is under way.
#[test]
fn jumps_beside_a_run_that_failed_are_answered() {
    let (mut driver, stream, from) = behind_a_bad_run(Bytes::mib(60), Bytes::mib(16));
    while !driver.since(from).iter().any(|done| done.result.is_err()) {
        driver.step(units::Instant::MAX);
    }
    for to in [Bytes::mib(48), Bytes::ZERO] {
        let jump = driver.ask(Op::StreamSeek { stream, to });
        assert!(matches!(jump, Ok(Reply::Ready { .. })), "{jump:?}");
    }
    let Ok(Reply::Data { bytes: span, offset }) =
        driver.ask(Op::StreamRead { stream, len_max: Bytes::MIB })
    else {
        panic!("no data")
    };
    assert!(driver.bytes(span) == pattern(1, offset, span.len));
}

/// What the device failed on is read again by a program that jumps, also where the rest of the block
/// is in its window: it may have been written anew since, and here it has been.
#[test]
fn what_a_run_failed_on_is_read_again_after_a_jump() {
    let (mut driver, stream, _) = behind_a_bad_run(Bytes::mib(60), Bytes::mib(8));
    driver.run(Duration::from_secs(5));
    driver.disks[0].troubles.clear();
    let jump = driver.ask(Op::StreamSeek { stream, to: Bytes::mib(15) });
    assert!(matches!(jump, Ok(Reply::Ready { .. })), "{jump:?}");
    let mut at = Bytes::mib(15);
    while at < Bytes::mib(24) {
        let (offset, bytes) = driver.next(stream, Bytes::mib(8));
        assert!(offset == at && bytes == pattern(1, at, Bytes::new(bytes.len() as u64)), "{at}");
        at += Bytes::new(bytes.len() as u64);
    }
}

/// A recording grows within a block of which a run has failed: the run stays a gap, although
/// the block is read again from where it ended.
#[test]
fn what_was_lost_of_a_block_stays_lost_where_the_volume_grows_within_it() {
    let (mut driver, stream, _) = behind_a_bad_run(Bytes::mib(22), Bytes::mib(8));
    driver.run(Duration::from_secs(5));
    driver.write("film", 1, Bytes::mib(22), Bytes::MIB);
    driver.write("film", 1, Bytes::mib(23), Bytes::MIB);
    let (mut at, mut gaps) = (Bytes::mib(8), Vec::new());
    while at < Bytes::mib(24) {
        match driver.ask(Op::StreamRead { stream, len_max: Bytes::mib(8) }) {
            Ok(Reply::Data { bytes: span, offset }) => {
                assert!(driver.bytes(span) == pattern(1, offset, span.len), "at {offset}");
                driver.done(Op::StreamAdvance { stream, len: span.len });
                at += span.len;
            }
            Ok(Reply::Gap { offset, len }) => {
                gaps.push((offset / Bytes::MIB, len / Bytes::MIB));
                at += len;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(gaps, [(16, 4)]);
}

/// A volume of one extent lies on one disk, so that any block will do. It does not grow over
/// several disks under a stream whose blocks would then lie on two.
#[test]
fn a_volume_does_not_grow_so_that_a_block_lies_on_two_disks() {
    let mut driver = Setup::new(2).with(|config| config.memory = Bytes::mib(160)).open();
    driver.volume("film", Bytes::MIB);
    let contract = contract(Rate::per_second(2 << 20), Bytes::mib(2), Bytes::ZERO);
    let (stream, _) = driver.stream(open("film", Mode::Write, contract, Bytes::ZERO));
    let grown = driver.ask(resize("film", Bytes::mib(32)));
    assert!(matches!(grown, Err(Error::Invalid { what: "block size", .. })), "{grown:?}");
    assert_eq!(driver.node.volume("film").unwrap().size, Bytes::MIB);
    assert!(driver.close(stream).is_ok());
    driver.done(resize("film", Bytes::mib(32)));
}

/// A block in several runs, served in chunks: its stream is promised the time of all of them, also
/// where each run ends with a short one.
#[test]
fn in_chunks_a_block_in_several_runs_has_the_time_of_all_its_chunks() {
    let mut driver = holes(&[3, 3, 3, 3, 4]);
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    let contract = contract(Rate::per_second(8 << 20), Bytes::mib(16), Bytes::ZERO);
    let used = |driver: &Driver| driver.node.status(driver.now).disks[0].utilisation_ppm;
    let promise = in_time(Bytes::kib(4), ms(60), Duration::from_secs(1));
    driver.done(service("between0", promise));
    let before = used(&driver);
    driver.stream(open("film", Mode::Read, contract, Bytes::ZERO));
    assert_eq!(driver.node.status(driver.now).disks[0].chunk, Some(Bytes::mib(2)));
    // One of 2 MiB and one of 1 MiB of the first four runs, two of 2 MiB of the last.
    let each = cost(Bytes::mib(2)) * 6 + cost(Bytes::MIB) * 4;
    let promised = Duration::from_micros((used(&driver) - before) * 2);
    assert!(promised >= each, "{promised:?}, not {each:?}");
}

/// The most chunks that a block in four runs can be: each run but the last ends with a short one. No
/// more is charged for than those.
#[test]
fn in_chunks_a_block_in_several_runs_is_charged_for_no_more_chunks_than_there_are() {
    let mut driver = holes(&[5, 5, 5, 1]);
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    let contract = contract(Rate::per_second(8 << 20), Bytes::mib(16), Bytes::ZERO);
    let used = |driver: &Driver| driver.node.status(driver.now).disks[0].utilisation_ppm;
    let promise = in_time(Bytes::kib(4), ms(85), Duration::from_secs(1));
    driver.done(service("between0", promise));
    let before = used(&driver);
    let (stream, _) = driver.stream(open("film", Mode::Read, contract, Bytes::ZERO));
    assert_eq!(driver.node.status(driver.now).disks[0].chunk, Some(Bytes::mib(4)));
    let from = driver.journal.len();
    let (bytes, _) = all_of(&mut driver, stream);
    assert!(bytes == pattern(1, Bytes::ZERO, Bytes::mib(16)));
    let chunks = transfers(&driver, from, Direction::Read);
    assert_eq!((chunks.len(), late(&driver)), (7, 0), "{chunks:?}");
    let most = cost(Bytes::mib(4)) * 7;
    let promised = Duration::from_micros((used(&driver) - before) * 2);
    assert!(promised <= most, "{promised:?}, not {most:?}");
}

/// What the host takes between two commands it takes after each run of a block.
#[test]
fn a_block_is_charged_for_the_gap_after_each_of_its_runs() {
    for (runs, parts) in [(&[17][..], 1), (&[3, 3, 3, 3, 4], 5)] {
        let used = |gap: Duration| {
            let mut driver = holes(runs).after_a_power_cut_with_gaps_of(gap);
            driver.done(create("film", Bytes::mib(16), on(0)));
            let used = |driver: &Driver| driver.node.status(driver.now).disks[0].utilisation_ppm;
            let every = contract(Rate::per_second(16 << 20), Bytes::mib(16), Bytes::ZERO);
            let before = used(&driver);
            driver.stream(open("film", Mode::Read, every, Bytes::ZERO));
            used(&driver) - before
        };
        assert_eq!(used(ms(4)) - used(Duration::ZERO), 4_000 * parts, "{parts} in a second");
    }
}

/// A block in two runs of which one has become slow: there will never be slack for all of it beside
/// what others are promised, and the program hears that its bytes are lost, as it does of a block in
/// one run.
#[test]
fn a_block_in_several_runs_for_which_there_will_be_no_slack_is_a_gap() {
    let mut driver = holes(&[1, 1]);
    driver.recorded("film", Bytes::mib(2), Bytes::mib(2), 1);
    let from = driver.journal.len();
    driver.read("film", Bytes::ZERO, Bytes::kib(4)).unwrap();
    let place = driver.since(from)[0].action.transfer().unwrap().0.start;
    let every = Rate::per_second(4096 * 1000 / 150);
    driver.done(service("between0", at_rate(every, Bytes::kib(4), ms(150))));
    driver.slow_at(node::DiskIndex(0), place..place + Bytes::MIB, ms(300));
    let slow = (0..48).find_map(|_| {
        (0..5).for_each(|_| drop(driver.read("between1", Bytes::ZERO, Bytes::kib(64)).unwrap()));
        let ticket = driver.begin(read("film", Bytes::ZERO, Bytes::kib(64)));
        driver.run(Duration::from_secs(1));
        (!driver.is_answered(ticket)).then_some(ticket)
    });
    let slow = slow.expect("slow reads are noticed");
    driver.run(Duration::from_secs(65));
    assert!(driver.is_answered(slow), "nothing of best effort waits any more");
    // Its window lasts for minutes.
    let rate = contract(Rate::per_second(40_000), Bytes::mib(2), Bytes::ZERO);
    let film = driver.reader("film", rate);
    assert_eq!(driver.node.status(driver.now).disks[0].chunk, None);
    let mut lost = Bytes::ZERO;
    while lost < Bytes::mib(2) {
        let asked = driver.begin(Op::StreamRead { stream: film, len_max: Bytes::mib(2) });
        driver.run(Duration::from_secs(90));
        match driver.answer(asked) {
            Some(Ok(Reply::Gap { offset, len })) if offset == lost => lost += len,
            other => panic!("{other:?} at {lost}"),
        }
    }
    let account = driver.node.stream(film).unwrap().account;
    assert_eq!((account.requests, account.gaps), (1, Bytes::mib(2)), "{account:?}");
}

/// The longest block there is, in two runs: written, and read again, in one command for each.
#[test]
fn the_longest_block_is_written_and_read_in_its_runs() {
    let pool = Setup::new(1).with(|config| {
        (config.memory, config.commit_interval) = (Bytes::GIB, Duration::from_secs(6));
    });
    let mut driver = holes_in(pool.open(), &[20, 12]);
    let (block, size) = (node::limits::BLOCK_MAX, Bytes::mib(32));
    assert_eq!(block, size);
    driver.done(create("film", size, on(0)));
    let contract = contract(Rate::per_second(8 << 20), block, Bytes::ZERO);
    let from = driver.journal.len();
    let writer = driver.writer("film", contract);
    let room = driver.ask(Op::StreamRoom { stream: writer, len_max: block });
    let Ok(Reply::Room { room: span }) = room else { panic!("{room:?}") };
    assert_eq!(span.len, block);
    driver.memory.put(span.offset, &pattern(5, Bytes::ZERO, block));
    driver.done(Op::StreamWrite { stream: writer, len: block });
    driver.close(writer).unwrap();
    assert_eq!(transfers(&driver, from, Direction::Write), [20, 12]);
    let from = driver.journal.len();
    let (reader, window) = driver.stream(open("film", Mode::Read, contract, Bytes::ZERO));
    assert_eq!(window, block * 3);
    let (bytes, gaps) = all_of(&mut driver, reader);
    assert!(bytes == pattern(5, Bytes::ZERO, size) && gaps.is_empty());
    // The first run begins with short reads, so that its first bytes are there soon.
    let read: u64 = transfers(&driver, from, Direction::Read).iter().sum();
    assert_eq!((read, late(&driver)), (32, 0));
    let longer = Contract { block: block * 2, ..contract };
    let refused = driver.ask(open("film", Mode::Read, longer, Bytes::ZERO));
    assert!(matches!(refused, Err(Error::Invalid { what: "block size", .. })), "{refused:?}");
}
