//! Writers under contract: what they recorded is what is read, what is said to be durable is
//! on the medium, and what a disk does not take is said.

use crate::driver::*;
use node::{DeviceError, DiskAction, Error, Mode, Op, Priority, Reply, StreamId};
use units::{Bytes, Direction, Duration, Instant};

const PERIOD: Duration = Duration::from_micros(62_500);

fn film(disks: usize, size: Bytes) -> Driver {
    let mut driver = Setup::new(disks).open();
    driver.volume("film", size);
    driver
}

/// What was written through a stream is there after a power cut, as far as was said, at the
/// lengths that were said, over extents and disks.
#[test]
fn what_is_said_to_be_durable_is_there_after_a_power_cut() {
    for parts in [[100_000, 7, 300_000], [65_536, 65_536, 1 << 20], [3, 4_093, 1_000_001]] {
        let mut driver = film(2, Bytes::mib(4));
        let stream = driver.writer("film", usual());
        let mut written = Bytes::ZERO;
        for (number, part) in parts.into_iter().enumerate() {
            let part = Bytes::new(part);
            driver.put_all(stream, 1, part);
            written += part;
            // The first is synced, the second only waited for, the last closed.
            match number {
                0 => assert_eq!(driver.done_durable(stream), written),
                1 => driver.run(Duration::from_secs(10)),
                _ => {
                    let closed = driver.close(stream);
                    assert_eq!(closed, Ok(Reply::Durable { upto: written }));
                }
            }
        }
        let mut driver = driver.after_a_power_cut();
        assert_eq!(driver.node.volume("film").unwrap().length, written);
        let mut got = Vec::new();
        for mib in 0..4 {
            got.extend(driver.read("film", Bytes::mib(mib), Bytes::MIB).unwrap());
        }
        let mut want = pattern(1, Bytes::ZERO, written);
        want.resize(4 << 20, 0);
        assert!(got == want, "{parts:?}");
    }
}

/// Nothing is durable before its data is flushed and its record is: the answer comes behind a
/// flush of the data, a write of the log, and a flush of that.
#[test]
fn durable_is_said_after_the_data_the_record_and_both_flushes() {
    let mut driver = film(1, Bytes::mib(4));
    let stream = driver.writer("film", usual());
    driver.put_all(stream, 1, BLOCK);
    driver.run(ms(100));
    assert_eq!(driver.node.stream(stream).unwrap().durable, Bytes::ZERO);
    let before = driver.journal.len();
    assert_eq!(driver.done_durable(stream), BLOCK);
    let kinds: Vec<&str> = driver
        .since(before)
        .iter()
        .map(|done| match done.action {
            DiskAction::Flush => "flush",
            DiskAction::WriteBytes { .. } => "log",
            _ => "data",
        })
        .collect();
    assert_eq!(kinds, ["flush", "log", "flush"]);
    // Said again at once, without another commit.
    let before = driver.journal.len();
    assert_eq!(driver.at_once(Op::StreamSync { stream }), Ok(Reply::Durable { upto: BLOCK }));
    assert_eq!(driver.since(before).len(), 0);
    // Half a block: it is written, too.
    driver.put_all(stream, 1, BLOCK / 2);
    let before = driver.journal.len();
    assert_eq!(driver.done_durable(stream), BLOCK * 3 / 2);
    let first = &driver.since(before)[0].action;
    let want = (BLOCK / 2, Direction::Write);
    let (range, direction) = first.transfer().unwrap();
    assert_eq!((range.end - range.start, direction), want);
}

/// Who listens for what is durable does not hurry a commit; who syncs does. Both hear of no
/// less than they asked for.
#[test]
fn a_listener_hears_of_the_next_commit_and_a_sync_hurries_it() {
    let interval = Duration::from_secs(2);
    let mut driver = film(1, Bytes::mib(4));
    let stream = driver.writer("film", usual());
    driver.run(Duration::from_secs(20));
    driver.put_all(stream, 1, BLOCK * 2);
    let from = driver.now;
    let listens = driver.begin(Op::StreamDurable { stream, beyond: BLOCK });
    let far = driver.begin(Op::StreamDurable { stream, beyond: BLOCK * 2 });
    assert_eq!(driver.wait(listens), Ok(Reply::Durable { upto: BLOCK * 2 }));
    // The commit before it began with the first block.
    let took = driver.now - from;
    assert!(took >= interval - PERIOD * 2 && took <= interval + ms(100), "{took:?}");
    assert_eq!(driver.answer(far), None, "it wants more than two blocks");
    driver.put_all(stream, 1, BLOCK);
    let from = driver.now;
    assert_eq!(driver.done_durable(stream), BLOCK * 3);
    assert!(driver.now - from < interval / 2, "{:?}", driver.now - from);
    assert_eq!(driver.answer(far), Some(Ok(Reply::Durable { upto: BLOCK * 3 })));
    // A listener hears of what came after a commit began only with the next one.
    driver.put_all(stream, 1, BLOCK);
    driver.run(ms(100));
    let sync = driver.begin(Op::Sync);
    let from = driver.journal.len();
    while driver.since(from).is_empty() {
        driver.step(Instant::MAX);
    }
    assert_eq!(driver.since(from)[0].action, DiskAction::Flush, "the commit has begun");
    driver.put_all(stream, 1, BLOCK);
    driver.wait(sync).expect("committed");
    driver.run(Duration::ZERO);
    let durable = driver.node.stream(stream).unwrap().durable;
    assert_eq!(durable, BLOCK * 4, "and not the fifth, which was not flushed");
}

/// A writer is as fast as its contract, and has its window to fill, however slow the disk is;
/// one that finds the window full waits, and is counted.
#[test]
fn a_writer_has_its_window_and_its_rate() {
    let mut driver = film(1, Bytes::mib(16));
    let stream = driver.writer("film", usual());
    let from = driver.now;
    driver.put_all(stream, 1, BLOCK);
    assert_eq!(driver.now, from, "a burst is free");
    for block in 1..33u64 {
        driver.run_to(from + PERIOD * block);
        driver.put_all(stream, 1, BLOCK);
        assert_eq!(driver.now, from + PERIOD * block);
    }
    let account = driver.node.stream(stream).unwrap().account;
    assert_eq!((account.underruns, account.late_requests, account.throttled), (0, 0, 0));
    assert_eq!(account.excess, Bytes::ZERO);
    driver.run(Duration::from_secs(3));
    driver.disks[0].holds = true;
    // Three blocks of window: the fourth waits.
    for _ in 0..3 {
        driver.put_all(stream, 1, BLOCK);
        driver.run(PERIOD);
    }
    let ticket = driver.begin(Op::StreamRoom { stream, len_max: BLOCK });
    driver.run(Duration::from_secs(1));
    assert_eq!(driver.answer(ticket), None);
    assert_eq!(driver.node.stream(stream).unwrap().account.underruns, 1);
    driver.disks[0].holds = false;
    let told = driver.wait(ticket);
    assert!(matches!(told, Ok(Reply::Room { .. })), "{told:?}");
    let len = BLOCK + Bytes::new(1);
    let more = driver.at_once(Op::StreamWrite { stream, len });
    assert!(matches!(more, Err(Error::Invalid { what: "write", .. })));
    driver.done(Op::StreamWrite { stream, len: BLOCK });
    assert_eq!(driver.at_once(Op::StreamRead { stream, len_max: BLOCK }), Err(Error::WrongMode));
    assert_eq!(driver.at_once(Op::StreamAdvance { stream, len: BLOCK }), Err(Error::WrongMode));
    // It goes to a block's beginning, when what it wrote is on the medium, and writes on there.
    let inside = driver.at_once(Op::StreamSeek { stream, to: Bytes::new(1) });
    assert!(matches!(inside, Err(Error::Invalid { what: "offset", .. })), "{inside:?}");
    let ticket = driver.begin(Op::StreamSeek { stream, to: BLOCK });
    assert!(!driver.is_answered(ticket), "its last block is on its way");
    let told = driver.wait(ticket);
    assert!(matches!(told, Ok(Reply::Ready { .. })), "{told:?}");
    let last = driver.journal.last().map(|done| done.action.clone());
    assert_eq!(last, Some(DiskAction::Flush), "behind the record of the commit");
    let status = driver.node.stream(stream).unwrap();
    assert_eq!((status.position, status.durable), (BLOCK, BLOCK), "of the new place");
    driver.put_all(stream, 2, BLOCK);
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: BLOCK * 2 }));
    let mut want = pattern(1, Bytes::ZERO, BLOCK);
    want.extend(pattern(2, BLOCK, BLOCK));
    want.extend(pattern(1, BLOCK * 2, BLOCK));
    assert!(driver.read("film", Bytes::ZERO, BLOCK * 3).unwrap() == want);
}

/// A writer begins at a block, within the volume, and ends with the volume.
#[test]
fn a_writer_begins_at_a_block_and_ends_with_the_volume() {
    let size = Bytes::mib(1);
    let mut driver = film(1, size);
    let at = |start| open("film", Mode::Write, usual(), start);
    let told = driver.at_once(at(Bytes::kib(4)));
    assert!(matches!(told, Err(Error::Invalid { what: "start", .. })), "{told:?}");
    assert_eq!(driver.at_once(at(size)), Err(Error::VolumeFull { size }));
    let (stream, _) = driver.stream(at(size - BLOCK));
    driver.put_all(stream, 1, BLOCK);
    let full = driver.ask(Op::StreamRoom { stream, len_max: BLOCK });
    assert_eq!(full, Err(Error::VolumeFull { size }));
    // Grown meanwhile, it goes on.
    driver.done(resize("film", size * 2));
    driver.put_all(stream, 1, BLOCK);
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: size + BLOCK }));
    assert_eq!(driver.read("film", size, BLOCK).unwrap(), pattern(1, size, BLOCK));
}

/// A writer that begins in the middle of an extent finds zeros before it, on the disk: what was
/// there is nobody's to see. Where they cannot be written the stream is not opened, and
/// nothing of it stays.
#[test]
fn what_lies_before_a_writer_in_its_extent_is_zeros() {
    let mut driver = film(1, Bytes::mib(2));
    driver.recorded("old", Bytes::mib(2), Bytes::mib(2), 9);
    driver.done(delete("old"));
    driver.done(delete("film"));
    driver.volume("film", Bytes::mib(4));
    let start = Bytes::mib(2) + BLOCK * 3;
    let before = driver.node.status(driver.now);
    let at = driver.journal.len();
    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(Direction::Write));
    let failed = driver.ask(open("film", Mode::Write, usual(), start));
    assert_eq!(failed, Err(Error::Device { disk: DISK, error: DeviceError(5) }));
    driver.disks[0].troubles.clear();
    let after = driver.node.status(driver.now);
    assert_eq!((before.memory, after.streams.len()), (after.memory, 0));
    assert_eq!(before.disks[0].utilisation_ppm, after.disks[0].utilisation_ppm);
    let (stream, _) = driver.stream(open("film", Mode::Write, usual(), start));
    let zeros: Bytes = driver
        .since(at)
        .iter()
        .filter_map(|done| match done.action {
            DiskAction::Write { span, .. } if done.result.is_ok() => Some(span.len),
            _ => None,
        })
        .sum();
    assert_eq!(zeros, BLOCK * 3);
    driver.put_all(stream, 1, BLOCK);
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: start + BLOCK }));
    let mut driver = driver.after_a_power_cut();
    let got = driver.read("film", Bytes::mib(2), Bytes::MIB).unwrap();
    let mut want = vec![0; 1 << 20];
    want[(BLOCK * 3).as_usize()..(BLOCK * 4).as_usize()].copy_from_slice(&pattern(1, start, BLOCK));
    assert!(got == want);
    // Another that begins where this one ended has nothing to fill.
    let at = driver.journal.len();
    driver.stream(open("film", Mode::Write, usual(), start + BLOCK));
    assert_eq!(driver.since(at).len(), 0);
}

/// A block that the disk does not take: everybody who waits hears it, whoever asks later, too,
/// and nothing behind it is ever said to be durable.
#[test]
fn a_block_that_is_not_taken_is_told_to_everybody() {
    let mut driver = film(1, Bytes::mib(4));
    let stream = driver.writer("film", usual());
    driver.put_all(stream, 1, BLOCK);
    assert_eq!(driver.done_durable(stream), BLOCK);
    let done = driver.journal.iter().rev();
    let block = done
        .filter_map(|done| match done.action {
            DiskAction::Write { offset, span, .. } => Some(offset + span.len),
            _ => None,
        })
        .next()
        .unwrap();
    driver.break_at(DISK, block..block + BLOCK, Some(Direction::Write));
    let waits = driver.begin(Op::StreamDurable { stream, beyond: BLOCK });
    let sync = driver.begin(Op::StreamSync { stream });
    assert_eq!(driver.answer(sync), Some(Ok(Reply::Durable { upto: BLOCK })), "all of it is");
    driver.put_all(stream, 1, BLOCK);
    let error = || Err(Error::Device { disk: DISK, error: DeviceError(5) });
    assert_eq!(driver.wait(waits), error());
    assert_eq!(driver.at_once(Op::StreamRoom { stream, len_max: BLOCK }), error());
    assert_eq!(driver.at_once(Op::StreamSync { stream }), error());
    driver.run(Duration::from_secs(5));
    assert_eq!(driver.node.stream(stream).unwrap().durable, BLOCK);
    assert_eq!(driver.close(stream), error());
    assert_eq!(driver.node.volume("film").unwrap().length, BLOCK);
    driver.disks[0].troubles.clear();
    let got = driver.read("film", Bytes::ZERO, BLOCK * 2).unwrap();
    assert!(got[..BLOCK.as_usize()] == pattern(1, Bytes::ZERO, BLOCK));
    assert!(got[BLOCK.as_usize()..].iter().all(|&byte| byte == 0), "as it was known");
}

/// What was written by a stream is read at once, by whoever asks.
#[test]
fn what_a_writer_has_written_is_read_before_it_is_durable() {
    let mut driver = film(1, Bytes::mib(4));
    let stream = driver.writer("film", usual());
    let asks = driver.begin(Op::StreamRoom { stream, len_max: BLOCK });
    driver.wait(asks).expect("room");
    let again = driver.at_once(Op::StreamRoom { stream, len_max: BLOCK });
    assert!(matches!(again, Err(Error::Invalid { what: "request", .. })), "one at a time");
    driver.done(Op::StreamWrite { stream, len: Bytes::ZERO });
    driver.put_all(stream, 1, BLOCK * 2);
    driver.run(ms(50));
    assert_eq!(driver.node.stream(stream).unwrap().durable, Bytes::ZERO);
    let got = driver.read("film", Bytes::ZERO, BLOCK * 2).unwrap();
    assert!(got == pattern(1, Bytes::ZERO, BLOCK * 2));
}

/// A stream that is closed with the disk at its last blocks ends when these are durable, and
/// not before; nobody else may write meanwhile.
#[test]
fn a_writer_that_closes_ends_when_all_of_it_is_durable() {
    let mut driver = film(1, Bytes::mib(4));
    let stream: StreamId = driver.writer("film", usual());
    driver.put_all(stream, 1, BLOCK * 3 + Bytes::new(5));
    driver.disks[0].holds = true;
    let closed = driver.begin(Op::StreamClose { stream });
    driver.run(Duration::from_secs(3));
    assert_eq!(driver.answer(closed), None);
    let gone = Err(Error::NoSuchStream { stream });
    assert_eq!(driver.at_once(Op::StreamClose { stream }), gone);
    let asks = driver.at_once(Op::StreamRoom { stream, len_max: BLOCK });
    assert_eq!(asks, gone);
    let busy = Err(Error::VolumeBusy { name: "film".into(), streams: 1 });
    assert_eq!(driver.at_once(open("film", Mode::Write, usual(), Bytes::ZERO)), busy);
    driver.disks[0].holds = false;
    let upto = BLOCK * 3 + Bytes::new(5);
    assert_eq!(driver.wait(closed), Ok(Reply::Durable { upto }));
    let stream = driver.writer("film", usual());
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::ZERO }));
}

/// The data is on the disk, and the record that names it, or a flush, fails: nobody hears that
/// it is durable, neither who waits for that nor who only listens nor who closes.
#[test]
fn what_could_not_be_recorded_is_never_said_to_be_durable() {
    for flushes in [false, true] {
        for hurries in [false, true] {
            let mut driver = film(1, Bytes::mib(4));
            let stream = driver.writer("film", usual());
            driver.run(Duration::from_secs(5));
            let before = driver.journal.len();
            driver.put_all(stream, 1, BLOCK);
            let written = |done: &Done| matches!(done.action, DiskAction::Write { .. });
            while !driver.since(before).iter().any(written) {
                assert!(driver.step(Instant::MAX));
            }
            let is_log = |done: &Done| matches!(done.action, DiskAction::WriteBytes { .. });
            assert!(!driver.since(before).iter().any(is_log), "no commit has begun");
            match flushes {
                true => driver.disks[0].flushes_fail = true,
                false => {
                    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(Direction::Write))
                }
            }
            let listens = driver.begin(Op::StreamDurable { stream, beyond: Bytes::ZERO });
            let syncs = hurries.then(|| driver.begin(Op::StreamSync { stream }));
            let error = || Err(Error::ReadOnly { disk: DISK, error: DeviceError(5) });
            for ticket in syncs.into_iter().chain([listens]) {
                assert_eq!(driver.wait(ticket), error());
            }
            assert_eq!(driver.node.stream(stream).unwrap().durable, Bytes::ZERO);
            assert_eq!(driver.close(stream), error());
            let driver = driver.after_a_power_cut();
            assert_eq!(driver.node.volume("film").unwrap().length, Bytes::ZERO);
        }
    }
}

/// While a part of a block is on its way to the disk, the program is given the rest of the block
/// at once, from within the part's last 4 KiB on: these are written again with the block.
#[test]
fn there_is_room_in_a_block_while_part_of_it_is_written() {
    let mut driver = film(1, Bytes::mib(4));
    let stream = driver.writer("film", usual());
    let part = Bytes::new(5_000);
    driver.put_all(stream, 1, part);
    driver.run(Duration::from_secs(1));
    driver.disks[0].holds = true;
    let sync = driver.begin(Op::StreamSync { stream });
    driver.run(ms(100));
    assert_eq!(driver.disks[0].flights.len(), 1, "the part is at the disk");
    let room = driver.at_once(Op::StreamRoom { stream, len_max: BLOCK });
    let Ok(Reply::Room { room: span }) = room else { panic!("no room") };
    driver.memory.put(span.offset, &pattern(1, part, span.len));
    assert_eq!(span.len, BLOCK - part);
    driver.done(Op::StreamWrite { stream, len: span.len });
    driver.disks[0].holds = false;
    assert!(matches!(driver.wait(sync), Ok(Reply::Durable { upto }) if upto >= part));
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: BLOCK }));
    let mut driver = driver.after_a_power_cut();
    assert!(driver.read("film", Bytes::ZERO, BLOCK).unwrap() == pattern(1, Bytes::ZERO, BLOCK));
}

/// A part of a block that a sync waits for is no request of the contract: it goes in the slack,
/// and the whole block comes in its turn. Where it still waits for its disk when the block is
/// full, the block alone is written.
#[test]
fn a_part_of_a_block_takes_no_turn_and_is_written_with_the_block_where_that_is_full() {
    let mut driver = film(1, Bytes::mib(4));
    // A block lasts ten seconds: nothing of what follows comes to its turn.
    let slow = contract(units::Rate::per_second(BLOCK.get() / 10), BLOCK, BLOCK * 3);
    let stream = driver.writer("film", slow);
    driver.put_all(stream, 1, BLOCK);
    assert_eq!(driver.done_durable(stream), BLOCK);
    let data = |driver: &Driver, from: usize| -> Vec<(Bytes, bool)> {
        let writes = driver.since(from).iter().filter_map(|done| match done.action {
            DiskAction::Write { span, .. } => Some((span.len, done.report.is_some())),
            _ => None,
        });
        writes.collect()
    };
    // Three syncs within a block, at odd offsets; room is there while a part is with its disk.
    let before = driver.journal.len();
    let mut upto = BLOCK;
    for part in [5_000, 3, 20_000] {
        let part = Bytes::new(part);
        driver.put_all(stream, 1, part);
        upto += part;
        driver.disks[0].holds = true;
        let sync = driver.begin(Op::StreamSync { stream });
        let room = driver.at_once(Op::StreamRoom { stream, len_max: Bytes::new(1) });
        assert!(matches!(room, Ok(Reply::Room { .. })), "{room:?}");
        driver.done(Op::StreamWrite { stream, len: Bytes::ZERO });
        driver.disks[0].holds = false;
        assert_eq!(driver.wait(sync), Ok(Reply::Durable { upto }));
    }
    let kib = |kib| (Bytes::kib(kib), false);
    assert_eq!(data(&driver, before), [kib(8), kib(8), kib(28)], "under no contract");
    // The disk is at something else: the part waits, and so it is not written by itself.
    let before = driver.journal.len();
    driver.disks[0].holds = true;
    let busy = driver.begin(read("film", Bytes::ZERO, BLOCK));
    driver.put_all(stream, 1, Bytes::new(100));
    let sync = driver.begin(Op::StreamSync { stream });
    driver.put_all(stream, 1, Bytes::new(100));
    let again = driver.begin(Op::StreamSync { stream });
    driver.put_all(stream, 1, BLOCK * 2 - upto - Bytes::new(200));
    driver.disks[0].holds = false;
    driver.wait(busy).expect("read");
    for sync in [sync, again] {
        assert_eq!(driver.wait(sync), Ok(Reply::Durable { upto: BLOCK * 2 }));
    }
    assert_eq!(data(&driver, before), [(BLOCK, true)]);
    // One that still waits when the stream's turn comes has it.
    let before = driver.journal.len();
    driver.disks[0].holds = true;
    let busy = driver.begin(read("film", Bytes::ZERO, BLOCK));
    driver.put_all(stream, 1, Bytes::new(100));
    let sync = driver.begin(Op::StreamSync { stream });
    driver.run(Duration::from_secs(30));
    driver.disks[0].holds = false;
    driver.wait(busy).expect("read");
    driver.wait(sync).expect("synced");
    assert_eq!(data(&driver, before), [(Bytes::kib(4), true)], "under the contract");
    let mut driver = driver.after_a_power_cut();
    let length = BLOCK * 2 + Bytes::new(100);
    let got = driver.read("film", Bytes::ZERO, BLOCK * 3).unwrap();
    assert!(got[..length.as_usize()] == pattern(1, Bytes::ZERO, length));
}

/// A writer that goes to a place and writes nothing there has recorded nothing up to it.
#[test]
fn a_writer_that_goes_elsewhere_and_writes_nothing_records_nothing() {
    let mut driver = film(1, Bytes::mib(8));
    let stream = driver.writer("film", usual());
    driver.put_all(stream, 1, BLOCK);
    let gone = driver.ask(Op::StreamSeek { stream, to: Bytes::mib(4) });
    assert!(matches!(gone, Ok(Reply::Ready { .. })), "{gone:?}");
    driver.run(Duration::from_secs(5));
    assert!(driver.close(stream).is_ok());
    assert_eq!(driver.node.volume("film").unwrap().length, BLOCK);
    let driver = driver.after_a_power_cut();
    assert_eq!(driver.node.volume("film").unwrap().length, BLOCK);
}

/// A writer goes elsewhere when it holds nothing, and once at a time.
#[test]
fn a_writer_that_holds_room_or_goes_already_is_not_sent_elsewhere() {
    let mut driver = film(1, Bytes::mib(8));
    let stream = driver.writer("film", usual());
    let invalid = |told: Result<Reply, Error>| {
        assert!(matches!(told, Err(Error::Invalid { what: "request", .. })), "{told:?}");
    };
    let Ok(Reply::Room { room: span }) = driver.ask(Op::StreamRoom { stream, len_max: BLOCK })
    else {
        panic!("no room")
    };
    invalid(driver.at_once(Op::StreamSeek { stream, to: Bytes::mib(1) }));
    driver.memory.put(span.offset, &pattern(1, Bytes::ZERO, BLOCK));
    driver.done(Op::StreamWrite { stream, len: BLOCK });
    let goes = driver.begin(Op::StreamSeek { stream, to: Bytes::mib(1) });
    invalid(driver.at_once(Op::StreamSeek { stream, to: Bytes::mib(2) }));
    assert!(matches!(driver.wait(goes), Ok(Reply::Ready { .. })));
    assert_eq!(driver.node.stream(stream).unwrap().position, Bytes::mib(1));
}

/// What a stream has written is durable within an interval, though nobody asks for it; and a
/// writer that writes nothing more has nothing committed.
#[test]
fn what_a_stream_wrote_is_committed_within_the_interval_and_nothing_after_it() {
    let mut driver = film(1, Bytes::mib(8));
    let interval = Duration::from_secs(2);
    let stream = driver.writer("film", usual());
    driver.run(interval * 4);
    driver.put_all(stream, 1, BLOCK * 2);
    driver.run(interval + ms(200));
    assert_eq!(driver.node.stream(stream).unwrap().durable, BLOCK * 2);
    let before = driver.journal.len();
    let room = driver.ask(Op::StreamRoom { stream, len_max: BLOCK });
    assert!(matches!(room, Ok(Reply::Room { .. })), "{room:?}");
    driver.run(interval * 5);
    assert_eq!(driver.since(before).len(), 0, "{:?}", driver.since(before));
    let closed = driver.begin(Op::StreamClose { stream });
    assert_eq!(driver.wait(closed), Ok(Reply::Durable { upto: BLOCK * 2 }));
    let mut driver = driver.after_a_power_cut();
    let got = driver.read("film", Bytes::ZERO, BLOCK * 2).unwrap();
    assert!(got == pattern(1, Bytes::ZERO, BLOCK * 2));
}

/// Who closes a writer waits for what is not durable yet, and no interval long.
#[test]
fn a_writer_that_is_closed_is_committed_soon() {
    let mut driver = film(1, Bytes::mib(8));
    let stream = driver.writer("film", usual());
    driver.run(Duration::from_secs(10));
    // The first is committed at once, since nothing was for long; the second would be in 2 s.
    driver.put_all(stream, 1, BLOCK);
    driver.run(ms(100));
    driver.put_all(stream, 1, BLOCK);
    driver.run(ms(100));
    let from = driver.now;
    assert_eq!(driver.node.stream(stream).unwrap().durable, BLOCK);
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: BLOCK * 2 }));
    assert!(driver.now - from < ms(200), "{:?}", driver.now - from);
}

/// A part that somebody synced had the stream's turn, since it waited until then. The whole block has
/// that anew: it is due a period after it is filled, and goes before what is due later.
#[test]
fn a_block_is_not_put_off_by_the_part_that_had_its_turn() {
    let mut driver = Setup::new(1).open();
    driver.recorded("other", Bytes::mib(40), Bytes::mib(24), 2);
    driver.volume("film", Bytes::mib(8));
    let stream = driver.writer("film", usual());
    driver.run(Duration::from_secs(10));
    for mib in 0..20 {
        driver.begin(read_as("other", Bytes::mib(mib), Bytes::MIB, Priority::Interactive));
    }
    driver.disks[0].holds = true;
    driver.put_all(stream, 1, BLOCK + BLOCK / 2);
    let before = driver.journal.len();
    let sync = driver.begin(Op::StreamSync { stream });
    driver.run(PERIOD);
    driver.disks[0].holds = false;
    let valid = |done: &Done| match &done.action {
        DiskAction::Write { valid, .. } => Some(*valid),
        _ => None,
    };
    while !driver.since(before).iter().any(|done| valid(done) == Some(BLOCK / 2)) {
        driver.step(Instant::MAX);
    }
    driver.put_all(stream, 1, BLOCK / 2);
    let before = driver.journal.len();
    driver.disks[0].holds = true;
    driver.run(PERIOD - cost(BLOCK) - ms(4));
    driver.disks[0].holds = false;
    assert!(driver.wait(sync).is_ok());
    // After what the disk had when the block was filled.
    assert_eq!(valid(&driver.since(before)[1]), Some(BLOCK), "{:?}", driver.since(before)[1]);
}
