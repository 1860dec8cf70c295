//! Windows that are shared with their programs: told ahead, used without asking, and
//! followed by the playout point as far as the contract allows.

use crate::driver::*;
use node::{Error, Mode, Op, Region, Reply, Span, StreamId, Ticket};
use units::{Bytes, Duration, Instant};

const PERIOD: Duration = Duration::from_micros(62_500);

fn film(size: u64) -> Driver {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(size), Bytes::mib(size), 1);
    driver
}

fn window(driver: &mut Driver, mode: Mode, burst: Bytes) -> StreamId {
    driver.stream(open_window("film", mode, contract(RATE, BLOCK, burst), 7)).0
}

/// The next piece of data, which is looked at.
fn told(driver: &mut Driver, stream: StreamId) -> (Span, Bytes) {
    match driver.ask(Op::WindowNext { stream }) {
        Ok(Reply::Data { bytes: span, offset }) => {
            assert_eq!(Region::of(&span).expect("in its region").0, Region(7));
            assert!(driver.bytes(span) == pattern(1, offset, span.len));
            (span, offset)
        }
        other => panic!("{other:?} is no data"),
    }
}

fn moved(driver: &mut Driver, stream: StreamId, len: Bytes) {
    driver.done(Op::WindowMoved { stream, len });
}

/// A reader is told all of its window, block by block in its region, without moving on; what
/// it has used is followed, and then it is told more.
#[test]
fn a_reader_is_told_ahead_and_its_playout_point_follows() {
    let mut driver = film(4);
    let (stream, memory) = driver.stream(open_window("film", Mode::Read, usual(), 7));
    assert_eq!(memory, BLOCK * 3);
    let status = driver.node.status(driver.now).memory;
    assert_eq!((status.regions, status.windows), (BLOCK * 3, Bytes::ZERO), "beside the arena");
    let mut spans = Vec::new();
    for block in 0..3 {
        let (span, offset) = told(&mut driver, stream);
        assert_eq!(offset, BLOCK * block);
        assert_eq!(span.offset, Region(7).offset() + BLOCK * block, "the lowest places");
        spans.push(span);
    }
    let waits = driver.begin(Op::WindowNext { stream });
    driver.run(Duration::from_secs(2));
    assert_eq!(driver.answer(waits), None, "it has used nothing");
    let again = driver.at_once(Op::WindowNext { stream });
    assert!(matches!(again, Err(Error::Invalid { what: "request", .. })), "{again:?}");
    // It uses all three at once, of which one is the contract's burst: the playout point follows while
    // the disk has time.
    moved(&mut driver, stream, BLOCK * 3);
    let status = driver.node.stream(stream).unwrap();
    assert_eq!((status.position, status.account.moved), (BLOCK * 3, BLOCK * 3));
    assert_eq!((status.account.throttled, status.account.excess), (0, BLOCK * 2));
    let Ok(Reply::Data { bytes: span, offset }) = driver.wait(waits) else { panic!("no data") };
    assert_eq!((span, offset), (spans[0], BLOCK * 3), "where the first was");
    let far = driver.at_once(Op::WindowMoved { stream, len: BLOCK + Bytes::new(1) });
    assert!(matches!(far, Err(Error::Invalid { what: "move", .. })), "what was told");
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    assert_eq!(driver.node.status(driver.now).memory.regions, Bytes::ZERO);
    assert_eq!(driver.freed, [], "of a stream that is closed nothing is said");
}

/// A program that keeps its contract never waits: it is told the next block when it has used
/// one. One that says that it waits is counted, where it has kept its contract.
#[test]
fn a_program_that_keeps_its_contract_does_not_wait() {
    let mut driver = film(8);
    let stream = window(&mut driver, Mode::Read, Bytes::ZERO);
    for _ in 0..3 {
        told(&mut driver, stream);
    }
    let mut at = driver.now;
    for block in 3..60 {
        at += PERIOD;
        driver.run_to(at);
        moved(&mut driver, stream, BLOCK);
        let (_, offset) = told(&mut driver, stream);
        assert_eq!(offset, BLOCK * block);
        assert!(driver.now < at + PERIOD, "within a period");
    }
    let account = driver.node.stream(stream).unwrap().account;
    assert_eq!((account.underruns, account.throttled, account.late_requests), (0, 0, 0));
    // The disk does nothing any more: all that was told is used up in time, and it waits.
    driver.disks[0].holds = true;
    for _ in 0..3 {
        at += PERIOD;
        driver.run_to(at);
        moved(&mut driver, stream, BLOCK);
    }
    let waits = driver.begin(Op::WindowNext { stream });
    driver.run(Duration::from_secs(1));
    for _ in 0..2 {
        driver.done(Op::WindowWaits { stream });
    }
    assert_eq!(driver.node.stream(stream).unwrap().account.underruns, 1, "once");
    driver.disks[0].holds = false;
    assert!(matches!(driver.wait(waits), Ok(Reply::Data { .. })));
}

/// A block that the disk fails on is told as a gap, and one that does not come, when the
/// window's time has passed since the program said that it waits. Its end is told, again too.
#[test]
fn gaps_and_the_end_are_told() {
    let mut driver = film(1);
    let read = driver.begin(read("film", BLOCK, BLOCK));
    driver.run(ms(200));
    let Some(Ok(Reply::Data { bytes: span, .. })) = driver.answer(read) else { panic!("not read") };
    driver.done(Op::Release { span });
    let bad = driver.journal.last().unwrap().action.transfer().unwrap().0;
    driver.break_at(DISK, bad, None);
    let stream = window(&mut driver, Mode::Read, Bytes::ZERO);
    told(&mut driver, stream);
    let gap = driver.ask(Op::WindowNext { stream });
    assert_eq!(gap, Ok(Reply::Gap { offset: BLOCK, len: BLOCK }));
    told(&mut driver, stream);
    moved(&mut driver, stream, BLOCK * 3);
    let mut at = Bytes::kib(192);
    while at < Bytes::mib(1) {
        assert_eq!(told(&mut driver, stream).1, at);
        moved(&mut driver, stream, BLOCK);
        at += BLOCK;
    }
    for _ in 0..2 {
        assert_eq!(driver.ask(Op::WindowNext { stream }), Ok(Reply::End));
    }
    driver.done(Op::WindowWaits { stream });
    let account = driver.node.stream(stream).unwrap().account;
    assert_eq!((account.gaps, account.underruns), (BLOCK, 0), "nobody waits for the end");
}

/// A program that has used its whole window, and asks for more while its disk is at best effort
/// and does not end that; what hangs, and what the program waits for.
fn behind_a_disk_that_hangs() -> (Driver, StreamId, Ticket, Ticket) {
    let mut driver = film(4);
    let stream = window(&mut driver, Mode::Read, Bytes::ZERO);
    for _ in 0..3 {
        told(&mut driver, stream);
    }
    driver.run(Duration::from_secs(2));
    let hangs = driver.begin(read_as("film", Bytes::mib(3), BLOCK, node::Priority::Interactive));
    driver.disks[0].holds = true;
    moved(&mut driver, stream, BLOCK * 3);
    let waits = driver.begin(Op::WindowNext { stream });
    driver.run(PERIOD * 3);
    (driver, stream, hangs, waits)
}

/// A block that was given up never came into memory. A program that goes back to it has it read,
/// and is not told what its place had before.
#[test]
fn what_never_came_is_read_when_the_program_comes_back_to_it() {
    let (mut driver, stream, hangs, waits) = behind_a_disk_that_hangs();
    driver.done(Op::WindowWaits { stream });
    driver.run(PERIOD * 4);
    assert_eq!(driver.answer(waits), Some(Ok(Reply::Gap { offset: BLOCK * 3, len: BLOCK })));
    driver.disks[0].holds = false;
    driver.wait(hangs).expect("it was only late");
    let back = driver.ask(Op::StreamSeek { stream, to: BLOCK * 3 });
    assert!(matches!(back, Ok(Reply::Ready { .. })), "{back:?}");
    assert_eq!(told(&mut driver, stream).1, BLOCK * 3);
}

/// A disk that hangs does not hold it for ever.
#[test]
fn a_block_that_is_waited_for_too_long_is_a_gap() {
    let (mut driver, stream, hangs, waits) = behind_a_disk_that_hangs();
    assert_eq!(driver.answer(waits), None, "it has not said that it waits");
    driver.done(Op::WindowWaits { stream });
    let from = driver.now;
    driver.run_to(from + PERIOD * 3 - Duration::from_nanos(1));
    assert_eq!(driver.answer(waits), None);
    driver.run_to(from + PERIOD * 3);
    assert_eq!(driver.answer(waits), Some(Ok(Reply::Gap { offset: BLOCK * 3, len: BLOCK })));
    assert_eq!(driver.node.stream(stream).unwrap().account.gaps, BLOCK);
    driver.disks[0].holds = false;
    driver.wait(hangs).expect("read");
}

/// A writer has room one after the other, as far as its window goes ahead of the playout
/// point; what it says it has filled is written, the rest of a block when somebody syncs, and
/// the whole block again when it is full.
#[test]
fn a_writer_fills_its_window_and_all_of_it_arrives() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(1));
    let stream = window(&mut driver, Mode::Write, Bytes::ZERO);
    let mut told = Bytes::ZERO;
    let mut rooms = Vec::new();
    let room = |driver: &mut Driver| match driver.ask(Op::WindowNext { stream }) {
        Ok(Reply::Room { room: span }) => span,
        other => panic!("{other:?} is no room"),
    };
    for number in 0..3 {
        let span = room(&mut driver);
        assert_eq!(span, Span { offset: Region(7).offset() + BLOCK * number, len: BLOCK });
        driver.memory.put(span.offset, &pattern(1, told, span.len));
        told += span.len;
        rooms.push(span);
    }
    let waits = driver.begin(Op::WindowNext { stream });
    driver.run(Duration::from_secs(1));
    assert_eq!(driver.answer(waits), None, "a window's length ahead");
    // A block and a half, of which the half is synced, and then filled on.
    moved(&mut driver, stream, BLOCK * 3 / 2);
    assert_eq!(driver.done_durable(stream), BLOCK * 3 / 2);
    let Some(Ok(Reply::Room { room: span })) = driver.answer(waits) else { panic!("no room") };
    assert_eq!(span, rooms[0], "the first block is on the disk");
    driver.memory.put(span.offset, &pattern(1, told, span.len));
    told += span.len;
    let sync = driver.begin(Op::StreamSync { stream });
    moved(&mut driver, stream, BLOCK / 2);
    driver.wait(sync).expect("synced");
    moved(&mut driver, stream, told - BLOCK * 2);
    while told < Bytes::mib(1) {
        let span = room(&mut driver);
        driver.memory.put(span.offset, &pattern(1, told, span.len));
        moved(&mut driver, stream, span.len);
        told += span.len;
    }
    let full = Err(Error::VolumeFull { size: Bytes::mib(1) });
    assert_eq!(driver.ask(Op::WindowNext { stream }), full);
    driver.done(Op::WindowWaits { stream });
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::mib(1) }));
    let mut driver = driver.after_a_power_cut();
    let got = driver.read("film", Bytes::ZERO, Bytes::mib(1)).unwrap();
    assert!(got == pattern(1, Bytes::ZERO, Bytes::mib(1)));
}

/// A writer fills the rest of a block while the first part of it is on its way to the disk:
/// the whole of it follows.
#[test]
fn a_block_that_is_filled_while_part_of_it_is_written_is_written_again() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(1));
    let stream = window(&mut driver, Mode::Write, BLOCK * 2);
    let Ok(Reply::Room { room: span }) = driver.ask(Op::WindowNext { stream }) else { panic!() };
    driver.memory.put(span.offset, &pattern(1, Bytes::ZERO, BLOCK));
    moved(&mut driver, stream, BLOCK / 2);
    driver.disks[0].holds = true;
    let sync = driver.begin(Op::StreamSync { stream });
    driver.run(ms(1));
    assert_eq!(driver.disks[0].flights.len(), 1, "half of it");
    moved(&mut driver, stream, BLOCK / 2);
    driver.disks[0].holds = false;
    let Ok(Reply::Durable { upto }) = driver.wait(sync) else { panic!("not synced") };
    assert!(upto >= BLOCK / 2);
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: BLOCK }));
    let mut driver = driver.after_a_power_cut();
    assert!(driver.read("film", Bytes::ZERO, BLOCK).unwrap() == pattern(1, Bytes::ZERO, BLOCK));
}

/// A writer of `film` that has filled the memory of its first two blocks, and what it filled
/// them with.
fn two_blocks(driver: &mut Driver) -> (StreamId, Vec<u8>) {
    let stream = window(driver, Mode::Write, Bytes::ZERO);
    let bytes = pattern(1, Bytes::ZERO, BLOCK * 2);
    for block in [0, 1] {
        let Ok(Reply::Room { room: span }) = driver.ask(Op::WindowNext { stream }) else {
            panic!()
        };
        let from = (BLOCK * block).as_usize();
        driver.memory.put(span.offset, &bytes[from..from + BLOCK.as_usize()]);
    }
    (stream, bytes)
}

/// A writer fills the rest of a block and all of the next while a part of the first is on its
/// way: both follow, also where the part had not begun.
#[test]
fn blocks_that_are_filled_while_a_part_is_written_follow_it() {
    for begins in [true, false] {
        let mut driver = Setup::new(1).open();
        driver.volume("film", Bytes::mib(1));
        let (stream, bytes) = two_blocks(&mut driver);
        moved(&mut driver, stream, BLOCK / 2);
        driver.disks[0].holds = true;
        let busy = (!begins).then(|| driver.begin(read("film", Bytes::ZERO, BLOCK)));
        let sync = driver.begin(Op::StreamSync { stream });
        driver.run(ms(1));
        moved(&mut driver, stream, BLOCK * 3 / 2);
        driver.disks[0].holds = false;
        let Ok(Reply::Durable { upto }) = driver.wait(sync) else { panic!("not synced") };
        assert!(upto >= BLOCK / 2);
        assert!(busy.is_none_or(|busy| driver.wait(busy).is_ok()));
        assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: BLOCK * 2 }));
        let mut driver = driver.after_a_power_cut();
        assert!(driver.read("film", Bytes::ZERO, BLOCK * 2).unwrap() == bytes);
    }
}

/// The same on a device that works on several commands at once: what comes behind the part in
/// its extent is not there before the part is, so that it is not forgotten.
#[test]
fn blocks_that_are_filled_while_a_part_is_written_do_not_overtake_it() {
    let mut setup = Setup::new(1);
    let disk::Kind::Linear(linear) = &mut setup.profiles[0].kind else { panic!("another kind") };
    linear.depth = 2;
    let mut driver = setup.open();
    driver.volume("film", Bytes::mib(2));
    let (stream, bytes) = two_blocks(&mut driver);
    driver.run(Duration::from_secs(5));
    driver.disks[0].holds = true;
    moved(&mut driver, stream, BLOCK / 2);
    let sync = driver.begin(Op::StreamSync { stream });
    driver.run(ms(1));
    let part = *driver.disks[0].flights.keys().next().expect("the part is with the disk");
    moved(&mut driver, stream, BLOCK * 3 / 2);
    driver.run(ms(1));
    // Whatever else the disk has ends before the part.
    let others: Vec<_> = driver.disks[0].flights.keys().copied().filter(|&id| id != part).collect();
    for other in others {
        driver.end(0, other);
        driver.poll();
    }
    driver.disks[0].holds = false;
    let Ok(Reply::Durable { upto }) = driver.wait(sync) else { panic!("not synced") };
    assert!(upto >= BLOCK / 2);
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: BLOCK * 2 }));
    let mut driver = driver.after_a_power_cut();
    assert!(driver.read("film", Bytes::ZERO, BLOCK * 2).unwrap() == bytes);
}

/// A block that cannot be written: the program hears it with what it does next.
#[test]
fn a_writer_hears_of_what_was_not_written() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(1));
    let stream = window(&mut driver, Mode::Write, Bytes::ZERO);
    driver.ask(Op::WindowNext { stream }).expect("room");
    driver.ask(Op::WindowNext { stream }).expect("room");
    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(units::Direction::Write));
    moved(&mut driver, stream, BLOCK);
    driver.run(ms(100));
    let told = driver.at_once(Op::WindowMoved { stream, len: BLOCK });
    assert!(matches!(told, Err(Error::Device { .. })), "{told:?}");
    assert!(driver.ask(Op::WindowNext { stream }).is_err());
    assert!(driver.close(stream).is_err());
}

/// The host is found to be later than it was: windows grow by what passes meanwhile, as far
/// as there is memory, and shrink again when it is not; what they give up is told, so that the
/// driver may have it back, and is not, where it is needed again.
#[test]
fn windows_follow_the_lateness_of_the_host() {
    let mut driver = film(8);
    let (stream, _) = driver.stream(open_window("film", Mode::Read, usual(), 7));
    let plain = driver.reader("film", usual());
    let sizes = |driver: &Driver| {
        [stream, plain].map(|stream| driver.node.stream(stream).unwrap().window / BLOCK)
    };
    assert_eq!(sizes(&driver), [3, 3]);
    // 200 ms: three blocks and a part pass meanwhile.
    driver.done(Op::HostLatency { latency: ms(200) });
    assert_eq!(sizes(&driver), [7, 7]);
    assert_eq!(driver.node.status(driver.now).memory.regions, BLOCK * 7);
    for block in 0..7 {
        assert_eq!(told(&mut driver, stream).1, BLOCK * block);
    }
    driver.run(Duration::from_secs(2));
    driver.done(Op::HostLatency { latency: Duration::ZERO });
    assert_eq!(sizes(&driver), [7, 7], "all of it is in use");
    assert_eq!(driver.freed, []);
    let mut at = BLOCK * 7;
    while at < Bytes::mib(1) {
        moved(&mut driver, stream, BLOCK);
        driver.next(plain, BLOCK);
        driver.run(PERIOD);
        if at >= BLOCK * 11 {
            assert_eq!(told(&mut driver, stream).1, at - BLOCK * 4);
        }
        at += BLOCK;
    }
    assert_eq!(sizes(&driver), [3, 3], "it went as they slid");
    assert_eq!(driver.freed.len(), 4);
    assert!(driver.freed.iter().all(|span| span.len == BLOCK));
    assert_eq!(driver.node.status(driver.now).memory.regions, BLOCK * 3);
    // What is never said of the host is a whole day; and windows are no shorter than what the
    // pool was set up for.
    driver.freed.clear();
    driver.done(Op::HostLatency { latency: ms(60) });
    assert_eq!(sizes(&driver), [4, 4]);
    let status = driver.node.status(driver.now).memory;
    assert_eq!((status.regions, status.windows), (BLOCK * 4, BLOCK * 4));
    let Ok(Reply::Planner(planner)) = driver.at_once(Op::Plan) else { panic!("no planner") };
    assert_eq!(planner.disks(), 1);
    // Many streams hear of it a few at a time.
    let slow = contract(RATE / 64, BLOCK, Bytes::ZERO);
    let many: Vec<StreamId> = (0..14).map(|_| driver.reader("film", slow)).collect();
    let (ticket, who, now) = (node::Ticket(1 << 40), node::Who::root(), driver.now);
    let op = Op::HostLatency { latency: Duration::from_secs(8) };
    driver.node.handle(now, node::Event::Request { ticket, who, op, arrived: now });
    assert_eq!(driver.node.next_timer(), Some(now), "the others are still to be told");
    driver.run(Duration::ZERO);
    for stream in many {
        let blocks = driver.node.stream(stream).unwrap().window / BLOCK;
        assert_eq!(blocks, 5, "a block passes in 4 s");
    }
}

/// Windows are never shorter than for the lateness that the pool was set up for, nor made for
/// more than a minute.
#[test]
fn windows_are_made_for_a_lateness_within_bounds() {
    let mut driver = Setup::new(1).with(|config| config.host_latency = ms(10)).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    let slow = contract(RATE / 64, BLOCK, Bytes::ZERO);
    let stream = driver.reader("film", slow);
    let blocks = |driver: &Driver| driver.node.stream(stream).unwrap().window / BLOCK;
    let first = blocks(&driver);
    driver.done(Op::HostLatency { latency: Duration::ZERO });
    driver.run(ms(1));
    assert_eq!(blocks(&driver), first);
    // A block passes in 4 s.
    driver.done(Op::HostLatency { latency: Duration::from_secs(60) });
    driver.run(ms(1));
    let minute = blocks(&driver);
    assert_eq!(minute, first - 1 + 15);
    driver.done(Op::HostLatency { latency: Duration::from_secs(120) });
    driver.run(ms(1));
    assert_eq!(blocks(&driver), minute);
}

/// A writer that runs ahead of its contract goes on while the disk keeps up, and is not slowed.
/// Where the disk does nothing else but what it must, it has room at its contract's rate: here
/// the disk is held, and gives nothing.
#[test]
fn a_writer_ahead_of_its_contract_goes_on_while_the_disk_keeps_up() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let stream = window(&mut driver, Mode::Write, Bytes::ZERO);
    let from = driver.now;
    for block in 0..24u64 {
        let Ok(Reply::Room { room: span }) = driver.ask(Op::WindowNext { stream }) else {
            panic!()
        };
        driver.memory.put(span.offset, &pattern(1, BLOCK * block, span.len));
        moved(&mut driver, stream, span.len);
    }
    assert!(driver.now - from < PERIOD * 12, "{:?}", driver.now - from);
    let account = driver.node.stream(stream).unwrap().account;
    assert!(account.excess > BLOCK * 10, "{account:?}");
    assert_eq!((account.underruns, account.late_requests), (0, 0));
    assert_eq!(driver.done_durable(stream), BLOCK * 24);
    assert!(
        driver.read("film", Bytes::ZERO, BLOCK * 4).unwrap() == pattern(1, Bytes::ZERO, BLOCK * 4)
    );
    driver.disks[0].holds = true;
    let mut told = 0;
    let waits = loop {
        let ticket = driver.begin(Op::WindowNext { stream });
        driver.run(Duration::ZERO);
        let Some(answer) = driver.answer(ticket) else { break ticket };
        let Ok(Reply::Room { room: span }) = answer else { panic!("{answer:?}") };
        told += 1;
        moved(&mut driver, stream, span.len);
    };
    assert!(told <= 4, "{told} blocks though nothing is written");
    driver.disks[0].holds = false;
    assert!(matches!(driver.wait(waits), Ok(Reply::Room { .. })));
}

/// A window that shrank and grows again has the places that it gave up, and no others of its
/// region; where the driver was not told yet that they are free, it is not told.
#[test]
fn a_window_that_grows_again_has_the_places_that_it_gave_up() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let stream = window(&mut driver, Mode::Write, Bytes::ZERO);
    let mut hosts = 0;
    let mut host = |driver: &mut Driver, latency| {
        hosts += 1;
        let (ticket, who, now) = (node::Ticket((1 << 40) + hosts), node::Who::root(), driver.now);
        let op = Op::HostLatency { latency };
        driver.node.handle(now, node::Event::Request { ticket, who, op, arrived: now });
    };
    let blocks = |driver: &Driver| driver.node.stream(stream).unwrap().window / BLOCK;
    let places = |range: std::ops::Range<u64>| -> Vec<Span> {
        let place = |number| Span { offset: Region(7).offset() + BLOCK * number, len: BLOCK };
        range.map(place).collect()
    };
    host(&mut driver, ms(200));
    host(&mut driver, Duration::ZERO);
    driver.poll();
    driver.freed.sort_by_key(|span| span.offset);
    assert_eq!((blocks(&driver), &driver.freed), (3, &places(3..7)), "told once");
    driver.freed.clear();
    // Up and down again before the driver looks, and up: nothing is free.
    for latency in [200, 0, 200] {
        host(&mut driver, ms(latency));
    }
    driver.poll();
    assert_eq!((blocks(&driver), &driver.freed), (7, &vec![]));
    assert_eq!(driver.node.status(driver.now).memory.regions, BLOCK * 7);
    let mut told = Vec::new();
    for _ in 0..7 {
        match driver.ask(Op::WindowNext { stream }) {
            Ok(Reply::Room { room: span }) => told.push(span),
            other => panic!("{other:?} is no room"),
        }
    }
    told.sort_by_key(|span| span.offset);
    assert_eq!(told, places(0..7), "no more of the region than it had");
}

/// How late the host is said to be, without a look at what is free by then.
fn host(driver: &mut Driver, latency: u64) {
    let (ticket, who, now) = (node::Ticket((1 << 40) + latency), node::Who::root(), driver.now);
    let op = Op::HostLatency { latency: ms(latency) };
    driver.node.handle(now, node::Event::Request { ticket, who, op, arrived: now });
    while driver.node.poll_output().is_some() {}
}

/// A block of the region in these tests.
fn place(number: u64) -> Span {
    Span { offset: Region(7).offset() + BLOCK * number, len: BLOCK }
}

/// What a driver gives back to the system at that moment, without the pool's lock, is no block of a
/// window that grows again: its bytes would be lost.
#[test]
fn a_window_that_grows_does_not_have_a_place_that_is_being_given_back() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let stream = window(&mut driver, Mode::Write, Bytes::ZERO);
    [200, 0].into_iter().for_each(|latency| host(&mut driver, latency));
    assert!(driver.node.has_freed());
    let (number, span) = driver.node.release_next().expect("four blocks are free");
    assert_eq!((span, driver.node.release_next()), (place(3), None), "one at a time");
    host(&mut driver, 200);
    let mut told: Vec<Span> = (0..7)
        .map(|_| match driver.ask(Op::WindowNext { stream }) {
            Ok(Reply::Room { room: span }) => span,
            other => panic!("{other:?} is no room"),
        })
        .collect();
    told.sort_by_key(|span| span.offset);
    let all = [0, 1, 2, 4, 5, 6, 7].map(place);
    assert_eq!(told, all);
    driver.node.released(number);
    assert_eq!((driver.node.release_next(), driver.node.has_freed()), (None, false));
}

/// The next part is there to be given back when the driver has said that the one before is.
#[test]
fn parts_of_a_region_are_given_back_one_after_the_other() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    window(&mut driver, Mode::Write, Bytes::ZERO);
    [200, 0].into_iter().for_each(|latency| host(&mut driver, latency));
    let mut given = Vec::new();
    while let Some((number, span)) = driver.node.release_next() {
        given.push(span);
        assert_eq!(driver.node.release_next(), None, "one at a time");
        driver.node.released(number);
    }
    assert_eq!(given, [3, 4, 5, 6].map(place));
    assert!(!driver.node.has_freed());
}

/// Each kind of window has its own operations, and no region is longer than it is.
#[test]
fn each_kind_of_window_has_its_own_operations() {
    let mut driver = film(2);
    let shared = window(&mut driver, Mode::Read, Bytes::ZERO);
    let plain = driver.reader("film", usual());
    let len = BLOCK;
    let mixed = [
        Op::StreamRead { stream: shared, len_max: len },
        Op::WindowNext { stream: plain },
        Op::WindowMoved { stream: plain, len },
        Op::WindowWaits { stream: plain },
    ];
    for op in mixed {
        let told = driver.at_once(op);
        assert!(matches!(told, Err(Error::Invalid { what: "request", .. })), "{told:?}");
    }
    let stream = StreamId(77);
    assert_eq!(driver.at_once(Op::WindowNext { stream }), Err(Error::NoSuchStream { stream }));
    let before = driver.node.status(driver.now);
    // All windows together have what the arena has for windows: 32 MiB but 4 MiB and 68 KiB.
    let free = Bytes::mib(28) - Bytes::kib(68) - BLOCK * 6;
    let most = free.round_down(BLOCK);
    let burst = contract(RATE, BLOCK, most - BLOCK * 2 + Bytes::new(1));
    let told = driver.at_once(open_window("film", Mode::Read, burst, 8));
    assert_eq!(told, Err(Error::NoMemory { asked: most + BLOCK, free }));
    let burst = contract(RATE, BLOCK, most - BLOCK * 2);
    let (stream, memory) = driver.stream(open_window("film", Mode::Read, burst, 8));
    assert_eq!(memory, most);
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    let after = driver.node.status(driver.now);
    assert_eq!(before.memory, after.memory);
    assert!(driver.now > Instant::EPOCH);
}

/// A program that waits is told why it does: its contract, or that what it waits for is not there.
/// It is counted once, and not where there is nothing to wait for but others.
#[test]
fn what_a_program_waits_for_is_counted_as_what_it_is() {
    let mut driver = film(4);
    let counted = |driver: &Driver, stream| {
        let account = driver.node.stream(stream).unwrap().account;
        (account.throttled, account.underruns)
    };
    // It has used all that its contract allows so far, and the rest of the window is told.
    let stream = window(&mut driver, Mode::Read, Bytes::ZERO);
    for _ in 0..3 {
        told(&mut driver, stream);
    }
    driver.disks[0].holds = true;
    moved(&mut driver, stream, BLOCK);
    for _ in 0..2 {
        driver.done(Op::WindowWaits { stream });
        assert_eq!(counted(&driver, stream), (1, 0));
    }
    driver.disks[0].holds = false;
    driver.close(stream).expect("closed");
    // What follows was not written yet by somebody who writes it.
    driver.volume("new", Bytes::mib(4));
    let writer = driver.writer("new", usual());
    driver.put_all(writer, 1, BLOCK + BLOCK / 2);
    driver.done_durable(writer);
    let stream = driver.stream(open_window("new", Mode::Read, usual(), 7)).0;
    told(&mut driver, stream);
    driver.run(Duration::from_secs(1));
    moved(&mut driver, stream, BLOCK);
    driver.run(Duration::from_secs(1));
    let waits = driver.begin(Op::WindowNext { stream });
    driver.done(Op::WindowWaits { stream });
    assert_eq!((counted(&driver, stream), driver.answer(waits)), ((0, 0), None));
}

/// A writer whose window is full waits for its disk; at the end of its volume for nothing.
#[test]
fn a_writer_that_waits_is_counted_unless_its_volume_is_full() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::MIB);
    let stream = window(&mut driver, Mode::Write, Bytes::ZERO);
    let fill = |driver: &mut Driver| match driver.ask(Op::WindowNext { stream }) {
        Ok(Reply::Room { room: span }) => {
            let at = driver.node.stream(stream).unwrap().position;
            driver.memory.put(span.offset, &pattern(1, at, span.len));
            moved(driver, stream, span.len);
        }
        other => panic!("{other:?} is no room"),
    };
    driver.disks[0].holds = true;
    (0..3).for_each(|_| fill(&mut driver));
    driver.run(Duration::from_secs(1));
    let waits = driver.begin(Op::WindowNext { stream });
    driver.done(Op::WindowWaits { stream });
    assert_eq!(driver.node.stream(stream).unwrap().account.underruns, 1);
    driver.disks[0].holds = false;
    assert!(matches!(driver.wait(waits), Ok(Reply::Room { .. })));
    moved(&mut driver, stream, BLOCK);
    (4..16).for_each(|_| fill(&mut driver));
    driver.done(Op::WindowWaits { stream });
    let account = driver.node.stream(stream).unwrap().account;
    assert_eq!((account.moved, account.underruns), (Bytes::MIB, 1));
}

/// A program that was ahead of its rate says that it waits, and the disk stands still. From when its
/// rate lets it have the next byte that counts as an underrun.
#[test]
fn a_wait_that_began_beyond_the_rate_counts_when_the_rate_has_come() {
    let mut driver = film(4);
    let stream = window(&mut driver, Mode::Read, Bytes::ZERO);
    for _ in 0..3 {
        told(&mut driver, stream);
    }
    driver.disks[0].holds = true;
    moved(&mut driver, stream, BLOCK * 3);
    let waits = driver.begin(Op::WindowNext { stream });
    driver.done(Op::WindowWaits { stream });
    let account = |driver: &Driver| driver.node.stream(stream).unwrap().account;
    let before = account(&driver);
    assert_eq!((before.underruns, before.throttled), (0, 1), "it is ahead");
    assert!(before.excess >= BLOCK, "{before:?}");
    driver.run(PERIOD * 6);
    assert_eq!(account(&driver).underruns, 1, "it is not any more");
    driver.disks[0].holds = false;
    let Ok(Reply::Data { offset, .. }) = driver.wait(waits) else { panic!("no data") };
    assert_eq!(offset, BLOCK * 3, "what the disk had comes yet");
}

/// Before its contract holds in full a program has its burst, and the playout point waits there;
/// nobody has to say anything for it to go on.
#[test]
fn before_the_contract_holds_a_program_that_runs_ahead_has_its_burst() {
    let mut driver = film(4);
    let stream = window(&mut driver, Mode::Read, BLOCK * 4);
    for _ in 0..6 {
        told(&mut driver, stream);
    }
    driver.run(Duration::from_secs(2));
    // After a jump the contract holds in full from a moment on, and there is no excess before.
    let Ok(Reply::Ready { steady, .. }) = driver.ask(Op::StreamSeek { stream, to: Bytes::mib(2) })
    else {
        panic!("no jump")
    };
    assert!(steady > driver.now + PERIOD);
    for _ in 0..6 {
        told(&mut driver, stream);
    }
    moved(&mut driver, stream, BLOCK * 6);
    let position = driver.node.stream(stream).unwrap().position;
    assert_eq!(position, Bytes::mib(2) + BLOCK * 4, "the burst");
    // It is looked at when the rate alone would let it come to the next block.
    driver.run_to(steady + PERIOD);
    let account = driver.node.stream(stream).unwrap().account;
    assert!(account.throttled == 1 && account.excess >= BLOCK, "the rest from then on");
    assert_eq!(driver.node.stream(stream).unwrap().position, Bytes::mib(2) + BLOCK * 6);
}

/// A window that is made smaller keeps the room that its program was told of, until it is used.
#[test]
fn room_that_a_program_knows_of_stays_when_its_window_shrinks() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let stream = window(&mut driver, Mode::Write, Bytes::ZERO);
    driver.done(Op::HostLatency { latency: ms(200) });
    driver.run(ms(1));
    let blocks = driver.node.stream(stream).unwrap().window / BLOCK;
    assert!(blocks > 3);
    let spans: Vec<Span> = (0..blocks)
        .map(|_| match driver.ask(Op::WindowNext { stream }) {
            Ok(Reply::Room { room: span }) => span,
            other => panic!("{other:?} is no room"),
        })
        .collect();
    driver.done(Op::HostLatency { latency: Duration::ZERO });
    driver.run(ms(1));
    assert_eq!(driver.freed, [], "all of it is the program's");
    for (block, span) in (0..).zip(spans) {
        driver.memory.put(span.offset, &pattern(1, BLOCK * block, span.len));
        moved(&mut driver, stream, span.len);
        driver.run(PERIOD);
    }
    assert_eq!(driver.done_durable(stream), BLOCK * blocks);
    assert_eq!(driver.node.stream(stream).unwrap().window, BLOCK * 3);
    let got = driver.read("film", Bytes::ZERO, BLOCK * blocks).unwrap();
    assert!(got == pattern(1, Bytes::ZERO, BLOCK * blocks));
}

/// What a program was told of stays, also where that is little; the rest goes at once.
#[test]
fn room_that_a_program_does_not_know_of_goes_when_its_window_shrinks() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let stream = window(&mut driver, Mode::Write, Bytes::ZERO);
    driver.done(Op::HostLatency { latency: ms(400) });
    driver.run(ms(1));
    let blocks = driver.node.stream(stream).unwrap().window / BLOCK;
    assert!(blocks > 6);
    for _ in 0..4 {
        let told = driver.ask(Op::WindowNext { stream });
        assert!(matches!(told, Ok(Reply::Room { .. })), "{told:?}");
    }
    driver.done(Op::HostLatency { latency: Duration::ZERO });
    driver.run(ms(1));
    assert_eq!(driver.node.stream(stream).unwrap().window, BLOCK * 4);
    assert_eq!(driver.freed.iter().map(|span| span.len).sum::<Bytes>(), BLOCK * (blocks - 4));
}
