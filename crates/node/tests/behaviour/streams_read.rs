//! Readers under contract: what they are given, when, and what becomes of them where a disk
//! fails, is late, or has nothing yet.
//!
//! A block of 64 KiB at 1 MiB/s is used up in 62.5 ms, and costs a disk 10.625 ms.

use crate::driver::*;
use node::{Contract, Error, Mode, Op, Placement, Priority, Reply, StreamId};
use units::{Bytes, Direction, Duration, Instant, Rate};

const PERIOD: Duration = Duration::from_micros(62_500);

fn film(disks: usize, size: u64) -> Driver {
    let mut driver = Setup::new(disks).open();
    driver.recorded("film", Bytes::mib(size), Bytes::mib(size), 1);
    driver
}

fn device(driver: &Driver, stream: StreamId) -> playout::Account {
    driver.node.stream(stream).expect("open").account
}

/// The window is three blocks: one in use, and two since a block is there a period after it
/// is released, which is up to a period after it was asked for. Of four blocks released a
/// period apart the first is there by one period; so playout begins after two.
#[test]
fn playout_begins_when_what_follows_will_be_in_time_and_goes_at_the_rate() {
    let mut driver = film(1, 4);
    let (stream, window) = driver.stream(open("film", Mode::Read, usual(), Bytes::ZERO));
    assert_eq!(window, BLOCK * 3);
    let opened = driver.now;
    let (offset, bytes) = driver.next(stream, Bytes::MIB);
    assert_eq!((offset, bytes), (Bytes::ZERO, pattern(1, Bytes::ZERO, BLOCK)), "a block");
    let began = driver.now - opened;
    // Up to half a block's time more, where that keeps it apart from other contracts.
    assert!((PERIOD * 2..=PERIOD * 5 / 2).contains(&began), "{began:?}");
    let started = driver.now;
    for block in 1..=40 {
        driver.run_to(started + PERIOD * block);
        let (offset, bytes) = driver.next(stream, BLOCK);
        assert_eq!(offset, BLOCK * block);
        assert!(bytes == pattern(1, offset, BLOCK));
        assert_eq!(driver.now - started, PERIOD * block, "no later");
    }
    let status = driver.node.stream(stream).unwrap();
    let account = status.account;
    assert_eq!((account.underruns, account.late_requests, account.gaps), (0, 0, Bytes::ZERO));
    assert_eq!((account.throttled, account.excess), (0, Bytes::ZERO));
    assert_eq!((account.moved, status.position), (BLOCK * 41, BLOCK * 41));
    assert_eq!((status.mode, status.contract, status.open_since), (Mode::Read, usual(), opened));
    assert!(account.latency_max <= PERIOD && account.requests >= 41);
}

/// A reader that asks for more than its rate has it while the disk has time; each of its turns
/// stays what it was. Where others want the disk as well it shares the slack with them, and
/// comes back to its rate after one wait.
#[test]
fn what_a_reader_asks_for_beyond_its_rate_it_has_while_the_disk_has_time() {
    let mut driver = film(1, 16);
    let stream = driver.reader("film", usual());
    driver.next(stream, BLOCK);
    let started = driver.now;
    (1..=40).for_each(|_| drop(driver.next(stream, BLOCK)));
    let took = driver.now - started;
    assert!(took <= cost(BLOCK) * 42, "{took:?}: as fast as the disk is, not in {:?}", PERIOD * 40);
    let account = device(&driver, stream);
    assert!(account.excess >= BLOCK * 30, "{account:?}");
    assert_eq!((account.underruns, account.late_requests), (0, 0));
    // Others take all the slack now. What it wants beyond that it has in turns with them.
    for at in 0..64 {
        driver.begin(read_as(
            "film",
            Bytes::mib(15) - BLOCK * at * 2,
            BLOCK,
            Priority::Interactive,
        ));
    }
    let busy = driver.now;
    // The window holds two blocks, and what follows is there by the second turn.
    (0..3).for_each(|_| drop(driver.next(stream, BLOCK)));
    assert!(driver.now - busy <= PERIOD * 2 + cost(BLOCK), "{:?}", driver.now - busy);
    let back = driver.now;
    for block in 1..=8 {
        driver.run_to((back + PERIOD * block).max(driver.now));
        driver.next(stream, BLOCK);
        assert!(driver.now <= back + PERIOD * (block + 1), "{:?}", driver.now - back);
    }
    let account = device(&driver, stream);
    assert_eq!((account.underruns, account.late_requests), (0, 0));
}

/// A program that takes pieces of a block has them, and holds one at a time.
#[test]
fn pieces_of_a_block_come_one_at_a_time() {
    let mut driver = film(1, 4);
    let stream = driver.reader("film", usual());
    let third = Bytes::kib(24);
    for (from, len) in [(0, 24), (24, 24), (48, 16), (64, 24)] {
        let ticket = driver.begin(Op::StreamRead { stream, len_max: third });
        let Ok(Reply::Data { bytes: span, offset }) = driver.wait(ticket) else {
            panic!("no data")
        };
        assert_eq!((offset, span.len), (Bytes::kib(from), Bytes::kib(len)));
        assert_eq!(driver.bytes(span), pattern(1, offset, span.len));
        let again = driver.at_once(Op::StreamRead { stream, len_max: third });
        assert!(matches!(again, Err(Error::Invalid { what: "request", .. })), "{again:?}");
        let len = span.len + Bytes::new(1);
        let too_far = driver.at_once(Op::StreamAdvance { stream, len });
        assert!(matches!(too_far, Err(Error::Invalid { what: "advance", .. })));
        driver.done(Op::StreamAdvance { stream, len: span.len });
        let twice = driver.at_once(Op::StreamAdvance { stream, len: Bytes::new(1) });
        assert!(matches!(twice, Err(Error::Invalid { .. })), "it was given back");
    }
    let nothing = driver.at_once(Op::StreamRead { stream, len_max: Bytes::ZERO });
    assert!(matches!(nothing, Err(Error::Invalid { what: "length", .. })));
    let wrong = [
        Op::StreamRoom { stream, len_max: third },
        Op::StreamWrite { stream, len: third },
        Op::StreamSync { stream },
        Op::StreamDurable { stream, beyond: Bytes::ZERO },
    ];
    for op in wrong {
        assert_eq!(driver.at_once(op), Err(Error::WrongMode));
    }
    // Part of what was given may be given back: the rest comes again.
    let Ok(Reply::Data { bytes: span, offset }) =
        driver.ask(Op::StreamRead { stream, len_max: third })
    else {
        panic!("no data")
    };
    driver.done(Op::StreamAdvance { stream, len: Bytes::new(10) });
    let (next, bytes) = driver.next(stream, third);
    assert_eq!(next, offset + Bytes::new(10));
    assert!(bytes == pattern(1, next, Bytes::new(bytes.len() as u64)) && span.len == third);
}

/// The end of the data is told, and again when asked again; a stream ends in the middle of a
/// block, and begins there.
#[test]
fn the_end_of_the_data_is_told() {
    let mut driver = Setup::new(1).open();
    let end = Bytes::kib(96) + Bytes::new(10);
    driver.recorded("film", Bytes::mib(1), end, 1);
    let beyond = open("film", Mode::Read, usual(), end + Bytes::new(1));
    assert_eq!(driver.at_once(beyond), Err(Error::BeyondEnd { size: end }));
    let (stream, _) = driver.stream(open("film", Mode::Read, usual(), Bytes::new(70_000)));
    let (from, bytes) = driver.next(stream, Bytes::MIB);
    assert_eq!(from, Bytes::new(70_000));
    assert_eq!(bytes, pattern(1, from, end - from));
    for _ in 0..2 {
        assert_eq!(driver.ask(Op::StreamRead { stream, len_max: BLOCK }), Ok(Reply::End));
    }
    // A reader of a volume without data.
    driver.volume("new", Bytes::mib(1));
    let stream = driver.reader("new", usual());
    assert_eq!(driver.ask(Op::StreamRead { stream, len_max: BLOCK }), Ok(Reply::End));
}

/// A disk fails on one block: the program hears of a gap there, in its turn, and has all
/// that is before and behind it.
#[test]
fn a_block_that_cannot_be_read_is_a_declared_gap() {
    let mut driver = film(1, 2);
    let read = driver.begin(read("film", BLOCK * 2, BLOCK));
    driver.run(ms(200));
    let bad = driver.journal.last().unwrap().action.transfer().unwrap().0;
    let Some(Ok(Reply::Data { bytes: span, .. })) = driver.answer(read) else { panic!("not read") };
    driver.done(Op::Release { span });
    driver.break_at(DISK, bad, Some(Direction::Read));
    let stream = driver.reader("film", usual());
    for block in [0, 1] {
        assert_eq!(driver.next(stream, BLOCK).1, pattern(1, BLOCK * block, BLOCK));
    }
    let half = BLOCK * 2;
    let gap = driver.ask(Op::StreamRead { stream, len_max: BLOCK });
    assert_eq!(gap, Ok(Reply::Gap { offset: half, len: BLOCK }));
    let (offset, bytes) = driver.next(stream, BLOCK);
    assert_eq!(offset, BLOCK * 3, "the playout point has moved past it");
    assert_eq!(bytes, pattern(1, offset, BLOCK));
    assert_eq!(device(&driver, stream).gaps, BLOCK);
}

/// A disk that hangs cannot hold a program for ever: the block that it has not begun is given
/// up when the program has waited for as long as the window lasts. One that it has begun ends
/// in its own time.
#[test]
fn a_block_that_does_not_come_is_given_up_after_the_windows_time() {
    let mut driver = film(1, 4);
    let stream = driver.reader("film", usual());
    driver.next(stream, BLOCK);
    driver.disks[0].holds = true;
    let account = loop {
        let ticket = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
        let asked = driver.now;
        driver.run(Duration::from_secs(2));
        match driver.answer(ticket) {
            Some(Ok(Reply::Data { bytes: span, .. })) => {
                driver.done(Op::StreamAdvance { stream, len: span.len });
            }
            // The disk has it.
            None => {
                let account = device(&driver, stream);
                assert_eq!(account.underruns, 1, "and it was within its rate");
                assert!(asked < driver.now);
                driver.disks[0].holds = false;
                let Ok(Reply::Data { bytes: span, .. }) = driver.wait(ticket) else {
                    panic!("a gap")
                };
                driver.done(Op::StreamAdvance { stream, len: span.len });
                break account;
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(account.gaps, Bytes::ZERO);
    // Best effort is at the disk, so that no block is begun.
    let mut driver = film(1, 4);
    let stream = driver.reader("film", usual());
    driver.next(stream, BLOCK);
    driver.run(Duration::from_secs(1));
    let _ = driver.begin(read_as("film", Bytes::mib(3), BLOCK, node::Priority::Interactive));
    driver.run(Duration::ZERO);
    driver.disks[0].holds = true;
    assert_eq!(driver.disks[0].flights.len(), 1, "best effort");
    let mut since = None;
    for _ in 0..4 {
        let ticket = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
        let asked = driver.now;
        driver.run(Duration::from_secs(1));
        match driver.answer(ticket) {
            Some(Ok(Reply::Data { bytes: span, .. })) => {
                driver.done(Op::StreamAdvance { stream, len: span.len });
            }
            Some(Ok(Reply::Gap { offset, len })) => {
                assert_eq!((offset, len), (BLOCK * 4, BLOCK));
                since = Some(asked);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(since.is_some(), "a gap");
    let account = device(&driver, stream);
    assert_eq!((account.gaps, account.underruns), (BLOCK, 1));
}

/// With a writer on the volume a reader has whole blocks only, hears no end, and goes on by
/// itself when more is written; when the writer has closed, it has the rest and the end.
#[test]
fn a_reader_follows_a_writer() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let writer = driver.writer("film", usual());
    let reader = driver.reader("film", usual());
    let waits = driver.begin(Op::StreamRead { stream: reader, len_max: BLOCK });
    driver.put_all(writer, 1, BLOCK / 2);
    driver.done_durable(writer);
    driver.run(Duration::from_secs(1));
    assert_eq!(driver.answer(waits), None, "half a block, and no end");
    driver.put_all(writer, 1, BLOCK / 2);
    driver.run(Duration::from_secs(1));
    let Some(Ok(Reply::Data { bytes: span, offset })) = driver.answer(waits) else {
        panic!("none")
    };
    assert_eq!((offset, span.len), (Bytes::ZERO, BLOCK));
    assert_eq!(driver.bytes(span), [pattern(1, Bytes::ZERO, BLOCK)].concat());
    driver.done(Op::StreamAdvance { stream: reader, len: BLOCK });
    driver.put_all(writer, 1, Bytes::new(100));
    let waits = driver.begin(Op::StreamRead { stream: reader, len_max: BLOCK });
    driver.run(Duration::from_secs(1));
    assert_eq!(driver.answer(waits), None);
    driver.close(writer).expect("closed");
    let Ok(Reply::Data { bytes: span, offset }) = driver.wait(waits) else { panic!("no rest") };
    assert_eq!((offset, span.len), (BLOCK, Bytes::new(100)));
    assert_eq!(driver.bytes(span), pattern(1, BLOCK, Bytes::new(100)));
    driver.done(Op::StreamAdvance { stream: reader, len: Bytes::new(100) });
    assert_eq!(driver.ask(Op::StreamRead { stream: reader, len_max: BLOCK }), Ok(Reply::End));
}

/// A stream that is closed gives all back: its window, its part of the disk, its number.
#[test]
fn a_stream_that_is_closed_gives_all_back() {
    let mut driver = film(2, 4);
    let before = driver.node.status(driver.now);
    let stream = driver.reader("film", usual());
    let during = driver.node.status(driver.now);
    // Extents rotate over two disks: 2 + 1 blocks, and 15 (2 - 1) for 16 blocks in a row,
    // and one in use.
    assert_eq!(during.memory.windows, BLOCK * 19);
    assert_eq!(during.memory.free, before.memory.free - BLOCK * 19);
    assert_eq!(during.volumes[0].streams, 1);
    for (after, before) in during.disks.iter().zip(&before.disks) {
        // Every other block of the stream: 10.625 ms in 125.
        assert_eq!(after.utilisation_ppm, before.utilisation_ppm + 85_000);
    }
    let asks = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    let gone = Err(Error::NoSuchStream { stream });
    assert_eq!(driver.answer(asks), Some(gone.clone()));
    assert_eq!(driver.at_once(Op::StreamClose { stream }), gone);
    assert_eq!(driver.at_once(Op::StreamRead { stream, len_max: BLOCK }), gone);
    let after = driver.node.status(driver.now);
    assert_eq!((after.memory, after.volumes), (before.memory, before.volumes));
    for (after, before) in after.disks.iter().zip(&before.disks) {
        assert_eq!(after.utilisation_ppm, before.utilisation_ppm);
        assert_eq!(after.slack, before.slack);
    }
    driver.run(Duration::from_secs(3));
    let more = driver.reader("film", usual());
    assert!(more != stream, "a number is never used again");
    assert_eq!(driver.close(more), Ok(Reply::Done));
    driver.done(delete("film"));
}

/// Another rate: slower at once, faster when the window can follow; more than the disk has is
/// refused, and so are other blocks, and then all is as it was.
#[test]
fn a_contract_is_changed_while_the_stream_is_open() {
    let mut driver = film(1, 8);
    let stream = driver.reader("film", usual());
    let change = |rate: u64, burst: Bytes, block: Bytes| Op::StreamChange {
        stream,
        contract: contract(Rate::per_second(rate), block, burst),
    };
    driver.next(stream, BLOCK);
    let told = driver.at_once(change(1 << 20, Bytes::ZERO, BLOCK * 2));
    assert!(matches!(told, Err(Error::Invalid { what: "block size", .. })), "{told:?}");
    let told = driver.at_once(change(8 << 20, Bytes::ZERO, BLOCK));
    let Err(Error::Refused(refusal)) = told else { panic!("{told:?}") };
    // A block in 7.8 ms, which costs 10.625: the figure is of the disk without the old one.
    assert!(refusal.rate_max > RATE, "{refusal:?}");
    let best = refusal.rate_max.get();
    assert!(is_refused(&driver.at_once(change(best + 1, Bytes::ZERO, BLOCK))));
    let status = driver.node.stream(stream).unwrap();
    assert_eq!((status.contract, status.window), (usual(), BLOCK * 3), "nothing has changed");
    assert_eq!(status.shares, [(DISK, 170_000)]);
    let told = driver.at_once(change(best, Bytes::ZERO, BLOCK));
    assert!(matches!(told, Ok(Reply::Stream { .. })), "{told:?}");
    // Half as fast, at once: a block in 125 ms.
    let told = driver.at_once(change(1 << 19, BLOCK * 2, BLOCK));
    assert_eq!(told, Ok(Reply::Stream { stream, window: BLOCK * 4 }), "a burst of two blocks");
    // Blocks a time apart: how much of them went beyond the rate, and how long they took.
    let blocks = |driver: &mut Driver, count: u64, apart: Duration| {
        let (from, before) = (driver.now, device(driver, stream).excess);
        for block in 0..count {
            driver.run_to((from + apart * block).max(driver.now));
            driver.next(stream, BLOCK);
        }
        (device(driver, stream).excess - before, driver.now - from)
    };
    let (excess, _) = blocks(&mut driver, 8, PERIOD);
    assert!(excess >= BLOCK * 2 && excess <= BLOCK * 6, "{excess}: of eight at twice the rate");
    driver.run(PERIOD * 4);
    assert_eq!(blocks(&mut driver, 8, PERIOD * 2), (Bytes::ZERO, PERIOD * 2 * 7));
    let told = driver.at_once(change(3 << 19, Bytes::ZERO, BLOCK));
    assert_eq!(told, Ok(Reply::Stream { stream, window: BLOCK * 3 }), "the burst has gone");
    let faster = PERIOD * 2 / 3 + Duration::from_nanos(1);
    let (excess, _) = blocks(&mut driver, 8, faster);
    assert!(!excess.is_zero(), "the rate is another one from when the window follows");
    driver.run(PERIOD * 4);
    assert_eq!(blocks(&mut driver, 16, faster), (Bytes::ZERO, faster * 15));
    let account = device(&driver, stream);
    assert_eq!((account.underruns, account.late_requests), (0, 0));
    assert_eq!(driver.node.status(driver.now).memory.windows, BLOCK * 3);
}

/// What even an idle disk could not keep is refused as that: by how much a block takes longer than it
/// may.
#[test]
fn what_no_disk_could_keep_is_refused_with_what_it_lacks() {
    let mut driver = film(1, 4);
    let told =
        driver.ask(open("film", Mode::Read, contract(RATE * 8, BLOCK, Bytes::ZERO), Bytes::ZERO));
    let Err(Error::Refused(refusal)) = told else { panic!("{told:?}") };
    let period = PERIOD / 8;
    assert_eq!(refusal.deadline, Some((period, cost(BLOCK) - period)));
}

/// Another contract of a reader that has not begun yet: it begins when the window follows that one,
/// all of which holds from then on.
#[test]
fn a_contract_that_is_changed_before_playout_holds_in_full_when_it_begins() {
    let mut driver = film(1, 8);
    let stream = driver.reader("film", usual());
    let slow = contract(RATE / 8, BLOCK, BLOCK * 4);
    let told = driver.at_once(Op::StreamChange { stream, contract: slow });
    assert!(matches!(told, Ok(Reply::Stream { .. })), "{told:?}");
    let fast = contract(RATE * 2, BLOCK, BLOCK * 6);
    let told = driver.at_once(Op::StreamChange { stream, contract: fast });
    assert!(matches!(told, Ok(Reply::Stream { .. })), "{told:?}");
    driver.next(stream, BLOCK);
    let from = driver.now;
    (1..6).for_each(|_| drop(driver.next(stream, BLOCK)));
    assert_eq!(driver.now, from, "its burst is there at once");
    (0..16).for_each(|_| drop(driver.next(stream, BLOCK)));
    let account = device(&driver, stream);
    assert_eq!((account.underruns, account.late_requests), (0, 0));
}

/// A volume of one extent lies on one disk; grown, on two. Its reader goes on under a contract
/// on both, with the window that this takes, and gives the old one up; or the volume stays as
/// it is where that would not fit.
#[test]
fn a_volume_grows_under_a_reader_with_its_contract_or_not_at_all() {
    let mut driver = film(2, 1);
    let stream = driver.reader("film", usual());
    let (disk, other) = match driver.node.volume("film").unwrap().extents[0] {
        1 => (0, 1),
        _ => (1, 0),
    };
    let free = |driver: &Driver| {
        let status = driver.node.status(driver.now);
        [disk, other].map(|disk| status.disks[disk].utilisation_ppm)
    };
    let before = free(&driver);
    assert_eq!(before[0], before[1] + 170_000, "all of its blocks are there");
    // Another volume has what the second disk has to promise.
    let on = Placement { disks: vec![node::DiskIndex(other as u16)], ..Placement::default() };
    driver.done(create("greedy", Bytes::mib(1), on));
    let greedy = contract(Rate::per_second(3 << 20), Bytes::kib(256), Bytes::ZERO);
    let (greedy, _) = driver.stream(open("greedy", Mode::Read, greedy, Bytes::ZERO));
    let fill: Vec<StreamId> = std::iter::from_fn(|| {
        let op = open("greedy", Mode::Read, contract(RATE / 8, BLOCK, Bytes::ZERO), Bytes::ZERO);
        match driver.ask(op) {
            Ok(Reply::Stream { stream, .. }) => Some(stream),
            _ => None,
        }
    })
    .collect();
    let full = driver.node.status(driver.now);
    let told = driver.at_once(resize("film", Bytes::mib(4)));
    assert!(is_refused(&told), "{told:?}");
    driver.run(Duration::from_secs(5));
    let after = driver.node.status(driver.now);
    let space = |status: &node::Status| status.disks.iter().map(|disk| disk.free).sum::<Bytes>();
    assert_eq!(space(&full), space(&after), "its space is free again");
    let promised = |status: &node::Status| -> Vec<_> {
        status.disks.iter().map(|disk| (disk.utilisation_ppm, disk.slack)).collect()
    };
    assert_eq!((promised(&full), full.memory), (promised(&after), after.memory));
    assert_eq!(full.volumes, after.volumes);
    for stream in fill.into_iter().chain([greedy]) {
        assert_eq!(driver.close(stream), Ok(Reply::Done));
    }
    driver.done(delete("greedy"));
    driver.next(stream, BLOCK);
    driver.done(resize("film", Bytes::mib(4)));
    assert_eq!(driver.node.stream(stream).unwrap().window, BLOCK * 19);
    driver.next(stream, BLOCK);
    driver.run(Duration::from_secs(1));
    driver.next(stream, BLOCK);
    driver.run(Duration::from_secs(1));
    assert_eq!(free(&driver), [before[1] + 85_000; 2], "half of them are, and the old is left");
    for mib in 1..4 {
        driver.write("film", 1, Bytes::mib(mib), Bytes::MIB);
    }
    let mut at = BLOCK * 3;
    while at < Bytes::mib(4) {
        let (offset, bytes) = driver.next(stream, BLOCK);
        assert!(offset == at && bytes == pattern(1, at, BLOCK), "{at}");
        at += BLOCK;
    }
    let account = device(&driver, stream);
    assert_eq!((account.late_requests, account.gaps), (0, Bytes::ZERO));
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    assert_eq!(free(&driver), [before[1]; 2], "nothing of it stays");
}

/// A volume grows while its reader's requests wait for the disk: they were promised on the old
/// map, end under that promise, and all their bytes come.
#[test]
fn requests_that_wait_while_a_volume_grows_are_served_as_promised() {
    let mut driver = film(2, 1);
    let before = driver.node.status(driver.now);
    let stream = driver.reader("film", contract(RATE, BLOCK, BLOCK * 4));
    let old: Vec<u64> = promised(&driver);
    let told = driver.begin(resize("film", Bytes::mib(4)));
    let both: u64 = promised(&driver).iter().sum::<u64>() - old.iter().sum::<u64>();
    assert_eq!(both, 170_000, "half of it on each disk, beside what there was");
    assert_eq!(driver.wait(told), Ok(Reply::Done));
    let mut at = Bytes::ZERO;
    while at < Bytes::mib(1) {
        let (offset, bytes) = driver.next(stream, BLOCK);
        assert!(offset == at && bytes == pattern(1, at, BLOCK), "{at}");
        at += BLOCK;
    }
    assert_eq!(driver.node.stream(stream).unwrap().account.gaps, Bytes::ZERO);
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    let after = driver.node.status(driver.now);
    let ppm = |status: &node::Status| -> Vec<u64> {
        status.disks.iter().map(|disk| disk.utilisation_ppm).collect()
    };
    assert_eq!(ppm(&before), ppm(&after));
}

fn promised(driver: &Driver) -> Vec<u64> {
    let status = driver.node.status(driver.now);
    status.disks.iter().map(|disk| disk.utilisation_ppm).collect()
}

/// A request that is late is counted, with how late it was; and the program that finds its
/// window empty for it, once an ask.
#[test]
fn lateness_and_empty_windows_are_counted() {
    let mut driver = film(1, 4);
    let stream = driver.reader("film", usual());
    for _ in 0..4 {
        driver.next(stream, BLOCK);
    }
    // From now on a block takes 300 ms more.
    driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), ms(300));
    let ticket = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
    let first = driver.wait(ticket);
    assert!(first.is_ok());
    for _ in 0..3 {
        if let Some(held) = driver.node.stream(stream) {
            assert!(held.account.gaps.is_zero());
        }
        driver.done(Op::StreamAdvance { stream, len: BLOCK });
        let ticket = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
        assert!(matches!(driver.wait(ticket), Ok(Reply::Data { .. })));
    }
    let account = device(&driver, stream);
    assert!(account.underruns >= 1 && account.underruns <= 4, "{account:?}");
    assert!(account.late_requests >= 1 && account.late_max >= ms(310) - PERIOD * 2, "{account:?}");
    assert!(account.latency_max >= ms(310) - PERIOD && driver.now > Instant::EPOCH);
    let whole: Contract = usual();
    assert_eq!(driver.node.stream(stream).unwrap().contract, whole);
}

/// The rate that a refusal names is the one that the stream could have in the place of its own.
#[test]
fn the_rate_that_a_refused_change_names_does_not_count_the_streams_own_twice() {
    let mut driver = film(1, 4);
    let [stream, ..] = [0, 1, 2].map(|_| driver.reader("film", usual()));
    let change = |rate: u64| Op::StreamChange {
        stream,
        contract: contract(Rate::per_second(rate), BLOCK, Bytes::ZERO),
    };
    let told = driver.at_once(change(8 << 20));
    let Err(Error::Refused(refusal)) = told else { panic!("{told:?}") };
    let best = refusal.rate_max.get();
    assert!(best >= RATE.get(), "{refusal:?}");
    assert!(is_refused(&driver.at_once(change(best + 1))));
    assert!(driver.at_once(change(best)).is_ok());
}

/// A stream over what was never written has zeros there, and not what a deleted volume left on
/// the disk; what was written between has its place.
#[test]
fn a_stream_shows_nothing_of_what_the_disk_had_before() {
    let mut driver = film(1, 2);
    driver.done(Op::VolumeDelete { name: "film".into(), only: None, keep_directory: false });
    driver.volume("new", Bytes::mib(2));
    let mut want = vec![0; Bytes::MIB.as_usize()];
    for kib in [0, 320, 516, 1_020] {
        let (at, len) = (Bytes::kib(kib), Bytes::kib(4));
        driver.write("new", 2, at, len);
        want[at.as_usize()..(at + len).as_usize()].copy_from_slice(&pattern(2, at, len));
    }
    let old = driver.journal.iter().rev().find_map(|done| done.action.transfer());
    let place = old.expect("written").0.start;
    let byte = driver.disks[0].read(place - Bytes::kib(8), Bytes::kib(4));
    assert!(byte.iter().any(|&byte| byte != 0), "the old volume was here");
    let stream = driver.reader("new", usual());
    let mut got = Vec::new();
    while got.len() < want.len() {
        got.extend(driver.next(stream, BLOCK).1);
    }
    assert!(got == want);
}

/// A volume with two readers grows onto a disk that takes one of them more, but not both: it
/// stays as it is, and so does the first of them.
#[test]
fn a_growth_that_fits_one_reader_and_not_the_other_changes_neither() {
    let mut driver = film(2, 1);
    let streams = [0, 1].map(|_| driver.reader("film", usual()));
    let full = usize::from(driver.node.volume("film").unwrap().extents[0] == 1);
    let on = Placement { disks: vec![node::DiskIndex(full as u16)], ..Placement::default() };
    driver.done(create("other", Bytes::mib(1), on));
    // Others have all that the second disk can promise, in parts that are less and less.
    let mut rate = RATE;
    while rate.get() > 10_000 {
        let op = open("other", Mode::Read, contract(rate, BLOCK, Bytes::ZERO), Bytes::ZERO);
        if driver.ask(op).is_err() {
            rate = rate / 2;
        }
    }
    let mut last = None;
    let mut grown = false;
    for _ in 0..64 {
        let before = driver.node.status(driver.now);
        let told = driver.at_once_or_none(resize("film", Bytes::mib(4)));
        if told.is_none() {
            grown = true;
            break;
        }
        let after = driver.node.status(driver.now);
        assert_eq!(before.memory, after.memory);
        for (before, after) in before.disks.iter().zip(&after.disks) {
            assert_eq!(
                (before.utilisation_ppm, before.slack),
                (after.utilisation_ppm, after.slack)
            );
        }
        for stream in streams {
            assert_eq!(driver.node.stream(stream).unwrap().window, BLOCK * 3);
        }
        // One of the others goes, so that a little more fits next time.
        last = before.streams.iter().rev().find(|one| one.volume == "other").map(|one| one.stream);
        let Some(stream) = last else { break };
        assert_eq!(driver.close(stream), Ok(Reply::Done));
        driver.run(Duration::from_secs(3));
    }
    assert!(grown && last.is_some(), "in the end it fits, and did not at first");
    for stream in streams {
        let (offset, bytes) = driver.next(stream, BLOCK);
        assert!(bytes == pattern(1, offset, BLOCK));
    }
}

/// A change that the disk refuses takes none of the memory that its window would have had.
#[test]
fn a_change_that_is_refused_gives_its_memory_back() {
    let mut driver = film(1, 4);
    let stream = driver.reader("film", usual());
    let before = driver.node.status(driver.now).memory;
    let contract = contract(RATE * 5, BLOCK, BLOCK * 20);
    assert!(is_refused(&driver.at_once(Op::StreamChange { stream, contract })));
    assert_eq!(driver.node.status(driver.now).memory, before);
}
