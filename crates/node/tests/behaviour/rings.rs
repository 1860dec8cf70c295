//! Rings: a writer goes on where a volume would be full; readers are told what was given up as gaps,
//! and never other bytes in its place; nothing is written over what is not durably given up.

use crate::driver::*;
use disk::Kind;
use node::{Access, Contract, DiskAction, Error, Mode, Op, Placement, Region, Reply, StreamId};
use store::{Store, StoreError};
use units::{Bytes, Direction, Duration, Instant, Rate};

const PART: Bytes = Bytes::kib(256);
const SIZE: Bytes = Bytes::mib(48);

/// 4 MiB/s in blocks of 256 KiB.
fn camera() -> Contract {
    contract(Rate::per_second(4 << 20), PART, Bytes::ZERO)
}

fn create_ring(name: &str, size: Bytes) -> Op {
    let (placement, access) = (Placement::default(), Access::default());
    Op::RingCreate { name: name.into(), size, placement, access, keep: None }
}

/// A ring on so many disks, of a pool that commits ten times a second.
fn ring(disks: usize) -> Driver {
    ring_in(Setup::new(disks).with(|config| config.commit_interval = ms(100)), SIZE)
}

/// The same on a disk that has many commands at a time.
fn deep_ring() -> Driver {
    ring_in(deep(), SIZE)
}

fn deep() -> Setup {
    let mut setup = Setup::new(1).with(|config| config.commit_interval = ms(100));
    let Kind::Linear(linear) = &mut setup.profiles[0].kind else { panic!("as it was made") };
    linear.depth = 32;
    setup
}

fn ring_in(setup: Setup, size: Bytes) -> Driver {
    let mut driver = setup.open();
    driver.done(create_ring("ring", size));
    driver
}

fn opened(driver: &mut Driver, mode: Mode, start: Bytes) -> Result<StreamId, Error> {
    match driver.ask(open("ring", mode, camera(), start))? {
        Reply::Stream { stream, .. } => Ok(stream),
        other => panic!("{other:?}"),
    }
}

/// What is recorded in this MiB: the test's bytes would come again with each turn of the ring.
fn expected(at: Bytes, len: Bytes) -> Vec<u8> {
    pattern(at / Bytes::MIB, at, len)
}

/// Records on, up to here.
fn record(driver: &mut Driver, stream: StreamId, upto: Bytes) {
    while driver.node.stream(stream).unwrap().position < upto {
        let at = driver.node.stream(stream).unwrap().position;
        let len_max = (upto - at).min(PART);
        match driver.ask(Op::StreamRoom { stream, len_max }) {
            Ok(Reply::Room { room: span }) => {
                driver.memory.put(span.offset, &expected(at, span.len));
                driver.done(Op::StreamWrite { stream, len: span.len });
            }
            other => panic!("{other:?} is no room at {at}"),
        }
    }
}

/// The same at the contract's rate: what is quicker may have to wait for the ring to give up.
fn record_in_time(driver: &mut Driver, stream: StreamId, upto: Bytes) {
    let start = driver.now;
    let from = driver.node.stream(stream).unwrap().position;
    let mut at = from;
    while at < upto {
        at = (at + PART).min(upto);
        record(driver, stream, at);
        let due = start + camera().rate.time_for(at - from);
        driver.run(due.saturating_since(driver.now));
    }
}

/// Where what is held begins, and where it ends.
fn held(driver: &Driver) -> (Bytes, Bytes) {
    let ring = driver.node.volume("ring").unwrap();
    let start = ring.start.expect("a ring");
    assert_eq!(ring.end(), start + ring.size, "offsets only grow");
    (start, ring.length)
}

/// Every MiB that is held is what was recorded there.
fn check_held(driver: &mut Driver) {
    let (start, end) = held(driver);
    let mut at = start;
    while at < end {
        let len = (end - at).min(Bytes::MIB);
        let bytes = driver.read("ring", at, len.round_up(Bytes::kib(4))).unwrap();
        assert!(bytes[..len.as_usize()] == expected(at, len), "at {at}, of {start} to {end}");
        at += len;
    }
}

/// A ring that is long enough for its camera on a calm host stays so while the host is late: the
/// window is longer then, and more is given up ahead. Refused is what that leaves no room for.
#[test]
fn a_ring_that_is_long_enough_stays_so_while_the_host_is_late() {
    let setup = Setup::new(1).with(|config| config.memory = Bytes::mib(512));
    let mut driver = ring_in(setup, Bytes::mib(32));
    let contract = Contract { burst: Bytes::mib(8), ..camera() };
    let refused = driver.ask(open("ring", Mode::Write, contract, Bytes::ZERO));
    let Err(Error::RingTooSmall { least, .. }) = refused else { panic!("{refused:?}") };
    driver.done(delete("ring"));
    driver.done(create_ring("ring", least));
    let late = Duration::from_secs(4);
    driver.done(Op::HostLatency { latency: late });
    let stream = driver.writer("ring", contract);
    let window = driver.node.stream(stream).unwrap().window;
    assert!(window >= camera().rate.bytes_in(late), "{window}");
    record_in_time(&mut driver, stream, least * 2 + PART);
    let now = driver.node.stream(stream).unwrap();
    assert_eq!((now.account.underruns, now.account.late_requests), (0, 0));
    check_held(&mut driver);
    let (start, end) = held(&driver);
    assert!(end - start >= least / 4, "{} of {least}", end - start);
    driver.close(stream).unwrap();
    driver.done(Op::HostLatency { latency: Duration::from_secs(40) });
    let refused = driver.ask(open("ring", Mode::Write, contract, end.round_up(PART)));
    let Err(Error::RingTooSmall { size, least: more }) = refused else { panic!("{refused:?}") };
    assert!(size == least && more > least, "{more}");
}

#[test]
fn a_writer_goes_on_where_a_volume_would_be_full() {
    let size = Bytes::mib(96);
    for disks in [1, 3] {
        let setup = Setup::new(disks).with(|config| config.commit_interval = ms(100));
        let mut driver = ring_in(setup, size);
        let stream = driver.writer("ring", camera());
        record_in_time(&mut driver, stream, size * 4 + Bytes::kib(100));
        let now = driver.node.stream(stream).unwrap();
        assert_eq!((now.account.underruns, now.account.late_requests), (0, 0), "{disks} disks");
        let upto = driver.done_durable(stream);
        let (start, end) = held(&driver);
        assert_eq!((upto, end), (size * 4 + Bytes::kib(100), upto));
        let ahead = start + size - end;
        assert!(ahead <= Bytes::mib(8 + 16), "{ahead} are given up ahead");
        check_held(&mut driver);
        let before = driver.read("ring", start - Bytes::kib(4), Bytes::kib(4));
        assert_eq!(before, Err(Error::GivenUp { start }));
        let mut driver = driver.after_a_power_cut();
        assert_eq!(held(&driver), (start, end));
        check_held(&mut driver);
        // It goes on where it has ended, also after this.
        let again = opened(&mut driver, Mode::Write, end.round_up(PART)).unwrap();
        record(&mut driver, again, end + Bytes::mib(18));
        driver.done_durable(again);
        assert!(held(&driver).0 > start);
        let (last, lost) = (end.round_up(PART), held(&driver).0);
        assert!(lost < last, "what was recorded before is still held");
        let bytes = driver.read("ring", last, Bytes::MIB - PART).unwrap();
        assert!(bytes == expected(last, Bytes::MIB - PART));
    }
}

/// While no commit ends nothing more is given up durably: the writer waits, and nothing that is held
/// on the medium is written over. Planted: with the end of the space in place of what is
/// durable in `may_fill` this fails.
#[test]
fn a_writer_waits_for_the_commit_that_gives_up_what_it_writes_over() {
    let mut driver = deep_ring();
    let stream = driver.writer("ring", camera());
    record(&mut driver, stream, SIZE - Bytes::mib(12));
    driver.done_durable(stream);
    driver.run(Duration::from_secs(1));
    let durable = held(&driver);
    driver.disks[0].flush_takes = Some(Duration::from_secs(1000));
    // It comes to the end of what may be written, and no further.
    let mut waits = None;
    for _ in 0..4 * 60 {
        let at = driver.node.stream(stream).unwrap().position;
        let ticket = driver.begin(Op::StreamRoom { stream, len_max: PART });
        driver.run(ms(500));
        let Some(answer) = driver.answer(ticket) else {
            waits = Some(ticket);
            break;
        };
        let Ok(Reply::Room { room: span }) = answer else { panic!("{answer:?} is no room") };
        driver.memory.put(span.offset, &expected(at, span.len));
        driver.done(Op::StreamWrite { stream, len: span.len });
    }
    assert!(waits.is_some(), "it waits");
    let at = driver.node.stream(stream).unwrap().position;
    assert!(at <= durable.0 + SIZE, "{at} is in the place of what begins at {}", durable.0);
    assert!(held(&driver).0 > durable.0, "more is given up, and not durably");
    // Nothing was flushed since: all that was held then is there after a cut.
    let mut cut = driver.after_a_power_cut();
    assert_eq!(held(&cut), durable);
    check_held(&mut cut);
}

/// A reader that is left behind by the ring is told what it has missed, and goes on at the
/// start of what is held; what its window had before is told as it was.
#[test]
fn a_reader_that_is_left_behind_hears_of_a_gap_and_goes_on() {
    let mut driver = ring(2);
    let writer = driver.writer("ring", camera());
    record(&mut driver, writer, Bytes::mib(8));
    driver.done_durable(writer);
    let reader = driver.reader("ring", camera());
    assert!(driver.next(reader, PART) == (Bytes::ZERO, expected(Bytes::ZERO, PART)));
    record(&mut driver, writer, SIZE * 3);
    let (start, _) = held(&driver);
    let (mut at, mut gap, mut told) = (PART, Bytes::ZERO, Bytes::ZERO);
    let began = driver.now;
    while at < start + Bytes::mib(4) {
        match driver.ask(Op::StreamRead { stream: reader, len_max: PART }).unwrap() {
            Reply::Data { bytes: span, offset } => {
                assert_eq!(offset, at);
                assert!(driver.bytes(span) == expected(at, span.len), "at {at}");
                driver.done(Op::StreamAdvance { stream: reader, len: span.len });
                (at, told) = (at + span.len, told + span.len);
            }
            Reply::Gap { offset, len } => {
                assert_eq!((offset, told > Bytes::ZERO), (at, true), "the window comes first");
                (at, gap) = (at + len, gap + len);
                assert!(at <= start, "what is held is no gap");
            }
            other => panic!("{other:?} at {at}"),
        }
    }
    assert_eq!(gap + told + PART, at);
    assert!(gap > SIZE, "{gap} were given up before it");
    // At its rate it would take longer to get over the gap than this.
    assert!(driver.now < began + camera().rate.time_for(told + Bytes::mib(4)));
    let account = driver.node.stream(reader).unwrap().account;
    assert_eq!((account.gaps, account.overtaken), (gap, gap), "no disk lost anything");
    let behind = opened(&mut driver, Mode::Read, Bytes::ZERO);
    assert_eq!(behind, Err(Error::GivenUp { start }));
    assert!(opened(&mut driver, Mode::Read, start).is_ok());
    let seek = driver.ask(Op::StreamSeek { stream: reader, to: start - PART });
    assert_eq!(seek, Err(Error::GivenUp { start }));
}

/// The same with a window that is shared: the gap costs the playout point nothing of its rate.
#[test]
fn a_shared_window_goes_over_a_gap_of_a_ring_at_once() {
    let mut driver = ring(1);
    let writer = driver.writer("ring", camera());
    record(&mut driver, writer, Bytes::mib(8));
    driver.done_durable(writer);
    let opening = open_window("ring", Mode::Read, camera(), 1);
    let (reader, _) = driver.stream(opening);
    driver.run(Duration::from_secs(2));
    record(&mut driver, writer, SIZE * 3);
    let (start, _) = held(&driver);
    let (mut at, mut gap, mut told) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
    let mut used = Bytes::ZERO;
    let began = driver.now;
    while at < start + Bytes::mib(2) {
        let len = match driver.ask(Op::WindowNext { stream: reader }).unwrap() {
            Reply::Data { bytes: span, offset } => {
                assert_eq!(offset, at);
                assert!(driver.bytes(span) == expected(at, span.len), "at {at}");
                told += span.len;
                span.len
            }
            Reply::Gap { offset, len } => {
                assert_eq!(offset, at);
                gap += len;
                len
            }
            other => panic!("{other:?} at {at}"),
        };
        at += len;
        used += len;
        // What lies before a gap is used up with the gap.
        if used > PART {
            driver.done(Op::WindowMoved { stream: reader, len: used });
            used = Bytes::ZERO;
        }
    }
    assert!(gap > SIZE, "{gap} were given up before it");
    let took = driver.now - began;
    assert!(took < camera().rate.time_for(told + Bytes::mib(4)), "{took} for {told}");
    let account = driver.node.stream(reader).unwrap().account;
    assert!(account.excess <= told, "{} of {told}: what was given up is no excess", account.excess);
}

/// What a disk has been asked for when it is given up, and reads when it is written over, is told
/// by nobody. Planted: without `unless_gone` the reader is told other bytes; without the look at
/// the end of an operation, best effort is.
#[test]
fn a_read_that_is_overtaken_by_the_ring_is_a_gap() {
    let mut driver = deep_ring();
    let writer = driver.writer("ring", camera());
    record(&mut driver, writer, SIZE / 2);
    driver.done_durable(writer);
    // Reads are with the disk while the ring goes once around.
    driver.slow_reads(Duration::from_secs(30));
    let reader = driver.reader("ring", camera());
    driver.run(ms(100));
    let plain = driver.begin(read("ring", Bytes::mib(2), Bytes::kib(64)));
    driver.run(ms(100));
    let under_way = driver.disks[0].flights.values();
    let reads = under_way.filter(|one| matches!(one.command.action, DiskAction::Read { .. }));
    assert!(reads.count() >= 2, "blocks of the reader, and the other one");
    driver.disks[0].troubles.clear();
    record(&mut driver, writer, SIZE * 2);
    let start = held(&driver).0;
    assert!(start > Bytes::mib(16) && !driver.is_answered(plain));
    match driver.ask(Op::StreamRead { stream: reader, len_max: PART }) {
        Ok(Reply::Gap { offset, len }) => assert!(offset.is_zero() && len >= PART),
        other => panic!("{other:?} is no gap"),
    }
    let now = held(&driver).0;
    assert_eq!(driver.wait(plain), Err(Error::GivenUp { start: now }));
}

/// The ring is gone on with behind its end, in whole blocks: what it ended with is still there, with
/// zeros up to these.
fn assert_zeros_behind(driver: &mut Driver, end: Bytes, contract: Contract) {
    let start = end.round_up(contract.block);
    let stream = match driver.ask(open("ring", Mode::Write, contract, start)) {
        Ok(Reply::Stream { stream, .. }) => stream,
        other => panic!("{other:?}"),
    };
    record(driver, stream, start + contract.block);
    driver.done_durable(stream);
    assert_eq!(held(driver).1, start + contract.block);
    let from = end.round_down(Bytes::MIB);
    let mut found = Vec::new();
    while from + Bytes::new(found.len() as u64) < start {
        let at = from + Bytes::new(found.len() as u64);
        found.extend(driver.read("ring", at, (start - at).min(Bytes::MIB)).unwrap());
    }
    let (recorded, behind) = found.split_at((end - from).as_usize());
    assert!(recorded == expected(from, end - from), "what was acknowledged");
    let shown = behind.iter().position(|&byte| byte != 0);
    assert_eq!(shown, None, "bytes that were never acknowledged, so far behind the end");
    driver.close(stream).unwrap();
}

/// The free space of the disk is in pieces of 2 MiB.
fn in_pieces(store: &mut Store) {
    let placement = Placement::default();
    let volumes: Vec<_> =
        (0..).map_while(|n| store.create(&n.to_string(), Bytes::mib(2), &placement).ok()).collect();
    volumes.iter().step_by(2).for_each(|volume| store.delete(*volume).unwrap());
}

/// Of a block in two runs the second one was written and committed, and the first one was not yet, when
/// the power failed: the ring ends in the first run. Then it is gone on with behind that block.
#[test]
fn a_run_that_a_crash_left_behind_the_end_does_not_come_back() {
    let (size, block) = (Bytes::mib(96), Bytes::mib(4));
    let mut setup = Setup { before: in_pieces, ..deep() };
    (setup.config.memory, setup.config.commit_interval) = (Bytes::mib(128), ms(1000));
    let mut driver = setup.open();
    let placement = Placement { run: block, ..Placement::default() };
    let (name, access) = (String::from("ring"), Access::default());
    driver.done(Op::RingCreate { name, size, placement, access, keep: None });
    let contract = contract(Rate::per_second(1 << 20), block, Bytes::ZERO);
    let end = Bytes::MIB + Bytes::new(100);
    for round in 0..2 {
        // The second time in places that were written before.
        let start = size * round;
        let writer = match driver.ask(open("ring", Mode::Write, contract, held(&driver).1)) {
            Ok(Reply::Stream { stream, .. }) => stream,
            other => panic!("{other:?}"),
        };
        record(&mut driver, writer, start + end);
        assert_eq!(driver.done_durable(writer), start + end);
        let [first, behind] = [start, start + Bytes::MIB].map(|at| driver.place("ring", at));
        assert_eq!(behind, first + Bytes::MIB, "of the same run");
        driver.slow_at(DISK, first..first + block / 2, Duration::from_secs(1000));
        record(&mut driver, writer, start + block);
        driver.run(Duration::from_secs(20));
        let second = driver.node.volume("ring").unwrap();
        assert_eq!(second.length, start + end, "the first run is on its way");
        driver = driver.after_a_power_cut();
        assert_eq!(held(&driver).1, start + end);
        assert_zeros_behind(&mut driver, start + end, contract);
    }
}

/// A part of a block was synced, and the whole block was written when everything was gone at once: the
/// 4 KiB in which the ring ends have bytes behind the end.
#[test]
fn bytes_of_the_block_that_a_ring_ends_in_do_not_come_back() {
    let end = Bytes::new(100);
    let killed = || {
        let mut driver = ring_in(Setup::new(1), SIZE * 4);
        let writer = driver.writer("ring", camera());
        record(&mut driver, writer, end);
        driver.done_durable(writer);
        record(&mut driver, writer, PART);
        driver.run(ms(200));
        let place = driver.place("ring", Bytes::ZERO);
        driver.disks.iter_mut().for_each(|disk| disk.flush());
        let driver = driver.after_a_power_cut();
        assert_eq!(held(&driver).1, end, "nothing more was committed");
        assert!(driver.disks[0].read(place, PART) == expected(Bytes::ZERO, PART), "but written");
        (driver, place)
    };
    assert_zeros_behind(&mut killed().0, end, camera());
    // A writer that writes the block again needs nothing of it: also where the disk cannot read it.
    let (mut driver, place) = killed();
    driver.break_at(DISK, place..place + Bytes::kib(4), Some(Direction::Read));
    let behind = opened(&mut driver, Mode::Write, PART);
    assert!(matches!(behind, Err(Error::Device { .. })), "{behind:?}");
    let writer = opened(&mut driver, Mode::Write, Bytes::ZERO).unwrap();
    record(&mut driver, writer, PART * 2);
    driver.done_durable(writer);
    driver.disks[0].troubles.clear();
    check_held(&mut driver);
}

/// The same without a crash: a program fills more of its room than it says, and goes.
#[test]
fn what_the_writer_of_a_ring_filled_and_never_said_is_not_read() {
    let mut driver = ring(1);
    let writer = driver.writer("ring", camera());
    let room = driver.ask(Op::StreamRoom { stream: writer, len_max: PART });
    let Ok(Reply::Room { room }) = room else { panic!("{room:?}") };
    driver.memory.put(room.offset, &expected(Bytes::ZERO, Bytes::new(3000)));
    driver.done(Op::StreamWrite { stream: writer, len: Bytes::new(100) });
    driver.close(writer).unwrap();
    assert_zeros_behind(&mut driver, Bytes::new(100), camera());
}

#[test]
fn what_a_ring_is_not_is_said_with_what_to_do() {
    let mut driver = ring(1);
    let not_on_a_ring = |result: Result<Reply, Error>| match result {
        Err(Error::Invalid { rule, .. }) => assert!(rule.contains("ring"), "{rule}"),
        other => panic!("{other:?}"),
    };
    let size = Bytes::mib(64);
    let resized = Err(Error::from(StoreError::RingResized));
    assert_eq!(driver.ask(resize("ring", size)), resized);
    not_on_a_ring(driver.ask(Op::VolumeExtend { name: "ring".into(), length: PART }));
    not_on_a_ring(driver.ask(Op::VolumeTruncate {
        name: "ring".into(),
        length: Bytes::ZERO,
        unless_changed: None,
    }));
    let (offset, len) = (Bytes::ZERO, Bytes::kib(4));
    not_on_a_ring(driver.ask(room_for("ring", offset, len)));
    let span = driver.room(len);
    not_on_a_ring(driver.ask(write("ring", node::WriteRange::new(offset, len), span)));
    not_on_a_ring(driver.ask(open_window("ring", Mode::Update, camera(), 1)));
    not_on_a_ring(driver.ask(open("ring", Mode::Write, camera(), PART)));
    let long = Contract { block: Bytes::mib(32), ..camera() };
    not_on_a_ring(driver.ask(open("ring", Mode::Write, long, Bytes::ZERO)));
    not_on_a_ring(driver.ask(open("ring", Mode::Read, long, Bytes::ZERO)));
    let stream = driver.writer("ring", camera());
    not_on_a_ring(driver.ask(Op::StreamSeek { stream, to: PART }));
    // Half of it would be given up ahead of so fast a writer.
    let fast = Contract { rate: Rate::per_second(16 << 20), ..camera() };
    let refused = driver.ask(Op::StreamChange { stream, contract: fast });
    let Err(Error::RingTooSmall { size, least }) = refused else { panic!("{refused:?}") };
    assert!(size == SIZE && least > SIZE && least < SIZE * 2, "{size} {least}");
    driver.close(stream).unwrap();
    let refused = driver.ask(open("ring", Mode::Write, fast, Bytes::ZERO));
    assert_eq!(refused, Err(Error::RingTooSmall { size, least }));
    let small = driver.ask(create_ring("small", Bytes::mib(16)));
    let least = Bytes::mib(32);
    assert_eq!(small, Err(StoreError::RingTooSmall { size: Bytes::mib(16), least }.into()));
    let other = Op::WindowOpen {
        volume: "ring".into(),
        mode: Mode::Write,
        contract: camera(),
        start: Bytes::ZERO,
        region: Region(3),
    };
    assert!(driver.ask(other).is_ok(), "a window may be shared");
}

const NOON: i64 = 1_790_000_000_000_000_000;

/// A ring that keeps things for a minute gives up what is older though it has room: also when nobody
/// records to it any more, after a power cut, and no more when that is taken back. A reader goes on behind
/// it. Planted: where a pool that is opened does not begin with a look, the part after the power cut
/// fails.
/// A clock that was a month ahead for a minute, before the network had set it, was the end of all that was
/// recorded in that month.
#[test]
fn a_clock_that_is_set_forward_makes_nothing_old_before_it_has_stood() {
    let mut driver = Setup::new(1).with(|config| config.commit_interval = ms(100)).open();
    driver.node.set_wall_clock(NOON);
    let (placement, access, size) = (Placement::default(), Access::default(), Bytes::mib(208));
    let keep = Some(Duration::from_secs(7_200));
    let made = driver.ask(Op::RingCreate { name: "ring".into(), size, placement, access, keep });
    assert!(is_made(made));
    let stream = opened(&mut driver, Mode::Write, Bytes::ZERO).unwrap();
    for mib in (0..64).step_by(2) {
        record(&mut driver, stream, Bytes::mib(mib + 2));
        driver.run(Duration::from_secs(1));
    }
    driver.done_durable(stream);
    driver.close(stream).unwrap();
    let all = held(&driver);
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
    driver.run(minute);
    let doubt = |driver: &mut Driver| driver.node.status(driver.now).clock_doubt;
    assert_eq!(doubt(&mut driver), None);

    // A day ahead, for a minute.
    driver.node.set_wall_clock(NOON + DAY);
    driver.run(minute);
    assert_eq!(held(&driver), all);
    let told = doubt(&mut driver).unwrap();
    assert_eq!(told.ahead, hour * 24);
    assert!(told.until > driver.now + hour - minute && told.until <= driver.now + hour);
    driver.node.set_wall_clock(NOON);
    driver.run(minute);
    assert_eq!((held(&driver), doubt(&mut driver)), (all, None));

    // A daemon that begins meanwhile does not believe it either.
    let (mut driver, epoch) = cut_and_open(driver, NOON);
    driver.node.set_wall_clock(epoch + DAY);
    driver.run(minute);
    assert_eq!(held(&driver), all);
    assert!(doubt(&mut driver).unwrap().ahead > hour * 23);
    // It stays so: what is set by a little is no other clock.
    driver.run(hour / 2);
    driver.node.set_wall_clock(epoch + DAY + 60_000_000_000);
    driver.run(hour / 2 - minute * 2);
    assert_eq!(held(&driver), all);
    driver.run(minute * 2);
    assert_eq!((held(&driver).0, doubt(&mut driver)), (all.1, None));
}

const DAY: i64 = 86_400_000_000_000;

/// A ring that keeps things for two hours.
fn two_hours() -> Driver {
    let mut driver = Setup::new(1).with(|config| config.commit_interval = ms(100)).open();
    let (placement, access, size) = (Placement::default(), Access::default(), Bytes::mib(208));
    let keep = Some(Duration::from_secs(7_200));
    let made = driver.ask(Op::RingCreate { name: "ring".into(), size, placement, access, keep });
    assert!(is_made(made));
    driver
}

/// Records 64 MiB more, 2 MiB each second, and is done.
fn record_more(driver: &mut Driver) {
    let (_, end) = held(driver);
    let stream = opened(driver, Mode::Write, end).unwrap();
    for mib in (2..=64).step_by(2) {
        record(driver, stream, end + Bytes::mib(mib));
        driver.run(Duration::from_secs(1));
    }
    driver.done_durable(stream);
    driver.close(stream).unwrap();
}

/// Since the pool was opened.
fn passed(driver: &Driver) -> i64 {
    driver.now.saturating_since(Instant::EPOCH).as_nanos().cast_signed()
}

/// The power is cut, and the pool opened again, by the same clock.
fn cut_and_open(driver: Driver, epoch: i64) -> (Driver, i64) {
    let before = passed(&driver);
    let mut driver = driver.after_a_power_cut();
    let epoch = epoch + before - passed(&driver);
    driver.node.set_wall_clock(epoch);
    (driver, epoch)
}

/// A recorder without a battery of its own begins at the time at which it was last, until the network sets
/// its clock. An hour after that all went that it had recorded before, of the same day.
#[test]
fn a_clock_that_was_behind_makes_nothing_older_than_it_is() {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
    let mut driver = two_hours();
    driver.node.set_wall_clock(NOON - DAY * 20);
    record_more(&mut driver);
    let recorded = passed(&driver);
    let all = held(&driver);
    assert_eq!(all, (Bytes::ZERO, Bytes::mib(64)));
    driver.run(minute);
    driver.node.set_wall_clock(NOON);
    driver.run(minute);
    assert!(driver.node.status(driver.now).clock_doubt.is_some());
    // Whoever begins now knows of the step as well.
    let (mut driver, epoch) = cut_and_open(driver, NOON);
    driver.run(hour + minute);
    assert_eq!(driver.node.status(driver.now).clock_doubt, None);
    assert_eq!(held(&driver), all);
    record_more(&mut driver);
    let end = Bytes::mib(128);
    assert_eq!(held(&driver), (Bytes::ZERO, end));
    let (mut driver, epoch_2) = cut_and_open(driver, epoch);
    driver.run(minute);
    assert_eq!(held(&driver), (Bytes::ZERO, end));
    // They go when they are as old as the ring keeps things, and the clock is believed again; what came
    // later stays.
    let age = epoch_2 + passed(&driver) - (NOON + recorded);
    driver.run(hour * 2 + minute * 10 - Duration::from_nanos(age.cast_unsigned()));
    let (start, _) = held(&driver);
    assert_eq!(start, Bytes::mib(64));
    driver.run(hour * 2);
    assert_eq!(held(&driver), (end, end));
}

/// The same by a clock that begins in 1970: also if somebody else is the one who sees it right.
#[test]
fn what_was_recorded_in_1970_goes_with_what_comes_later() {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
    for is_seen in [true, false] {
        let mut driver = two_hours();
        driver.node.set_wall_clock(0);
        record_more(&mut driver);
        let all = held(&driver);
        if is_seen {
            driver.run(minute);
            driver.node.set_wall_clock(NOON);
            driver.run(minute);
        }
        let (mut driver, _) = cut_and_open(driver, NOON);
        driver.run(hour * 3);
        assert_eq!(driver.node.status(driver.now).clock_doubt, None);
        assert_eq!(held(&driver), all, "{is_seen}");
        record_more(&mut driver);
        driver.run(hour + minute * 50);
        assert_eq!(held(&driver), (Bytes::ZERO, Bytes::mib(128)));
        driver.run(minute * 20);
        assert_eq!(held(&driver), (Bytes::mib(128), Bytes::mib(128)));
    }
}

/// A machine that sleeps does not keep what is old for longer: that time has passed.
#[test]
fn what_was_recorded_before_the_machine_slept_is_so_much_older() {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
    let mut driver = two_hours();
    driver.node.set_wall_clock(NOON);
    record_more(&mut driver);
    let all = held(&driver);
    driver.run(minute);
    driver.node.set_slept(hour * 3);
    driver.node.set_wall_clock(NOON + 3 * 3_600_000_000_000);
    driver.run(hour - minute);
    assert_eq!(held(&driver), all, "it may be wrong all the same");
    driver.run(minute * 2);
    assert_eq!(held(&driver), (all.1, all.1));
}

/// A clock that is set forward step by step, back in part, and forward again: what was recorded is as old
/// as it is, by the clock that stands in the end.
#[test]
fn steps_of_the_clock_add_up() {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
    let mut driver = two_hours();
    let behind = |driver: &mut Driver, days: i64| {
        driver.node.set_wall_clock(NOON - DAY * days);
        driver.run(minute);
    };
    behind(&mut driver, 20);
    record_more(&mut driver);
    behind(&mut driver, 5);
    behind(&mut driver, 10);
    driver.run(hour + minute);
    record_more(&mut driver);
    behind(&mut driver, 0);
    driver.run(minute * 45);
    assert_eq!(held(&driver).0, Bytes::ZERO, "the first are not two hours old");
    driver.run(minute * 25);
    assert_eq!(held(&driver), (Bytes::mib(64), Bytes::mib(128)));
    // What came between two of them is kept for longer, by the first.
    driver.run(hour * 24 * 9);
    assert_eq!(held(&driver), (Bytes::mib(64), Bytes::mib(128)));
    driver.run(hour * 24 + hour);
    assert_eq!(held(&driver), (Bytes::mib(128), Bytes::mib(128)));
}

/// A pool tells many rings of a step some at a time, and gives up nothing meanwhile.
#[test]
fn all_rings_are_told_of_a_step() {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3_600));
    let setup = Setup {
        profiles: vec![profile(Bytes::mib(4_096), FIXED, FLUSH)],
        ..Setup::new(1).with(|config| config.commit_interval = ms(100))
    };
    let mut driver = setup.open();
    let names: Vec<String> = (0..40).map(|number| format!("ring{number}")).collect();
    driver.node.set_wall_clock(NOON - DAY * 20);
    let (size, upto) = (Bytes::mib(96), Bytes::mib(16));
    for name in &names {
        let (placement, access, keep) = (Placement::default(), Access::default(), Some(hour * 24));
        let made = Op::RingCreate { name: name.clone(), size, placement, access, keep };
        assert!(is_made(driver.ask(made)));
        let told = driver.ask(open(name, Mode::Write, camera(), Bytes::ZERO));
        let Ok(Reply::Stream { stream, .. }) = told else { panic!("{told:?}") };
        record(&mut driver, stream, upto);
        driver.done_durable(stream);
        driver.close(stream).unwrap();
    }
    driver.node.set_wall_clock(NOON);
    driver.run(hour + minute * 2);
    let start = |driver: &Driver, name: &str| driver.node.volume(name).unwrap().start.unwrap();
    names.iter().for_each(|name| assert_eq!(start(&driver, name), Bytes::ZERO, "{name}"));
    driver.run(hour * 24);
    names.iter().for_each(|name| assert_eq!(start(&driver, name), upto, "{name}"));
}

#[test]
fn a_ring_gives_up_what_is_older_than_it_keeps_things() {
    let mut driver = Setup::new(1).with(|config| config.commit_interval = ms(100)).open();
    driver.node.set_wall_clock(NOON);
    let minute = Some(Duration::from_secs(60));
    let (placement, access, size) = (Placement::default(), Access::default(), Bytes::mib(208));
    let mut create = |name: &str, keep| {
        let (name, placement) = (name.into(), placement.clone());
        driver.ask(Op::RingCreate { name, size, placement, access, keep })
    };
    assert_eq!(create("bad", Some(ms(999))), Err(StoreError::BadKeep.into()));
    assert!(is_made(create("ring", minute)));
    assert!(driver.node.volume("bad").is_none());
    driver.volume("plain", Bytes::mib(16));
    let refused = driver.ask(Op::RingKeep { name: "plain".into(), keep: minute });
    assert_eq!(refused, Err(StoreError::NoRing.into()));

    let stream = driver.writer("ring", camera());
    // When each 2 MiB were recorded.
    let paced = |driver: &mut Driver, stream, mib: u64| -> Vec<Instant> {
        let mut times = Vec::new();
        for _ in 0..mib / 2 {
            let at = driver.node.stream(stream).unwrap().position;
            record(driver, stream, at + Bytes::mib(2));
            times.push(driver.now);
            driver.run(Duration::from_secs(1));
        }
        times
    };
    // 2 MiB a second, for two minutes and more.
    let times = paced(&mut driver, stream, 240);
    let (start, end) = held(&driver);
    let age = driver.now.saturating_since(times[(start / Bytes::mib(2)) as usize]);
    // It looks every 10 s, and 16 MiB are recorded in 12.
    assert!((58..84).contains(&(age.as_nanos() / 1_000_000_000)), "{age} at {start} of {end}");
    check_held(&mut driver);
    let reader = opened(&mut driver, Mode::Read, start).unwrap();
    let now = driver.node.stream(stream).unwrap();
    assert_eq!((now.account.underruns, now.account.late_requests), (0, 0));
    driver.done_durable(stream);
    driver.close(stream).unwrap();
    driver.run(Duration::from_secs(30));
    let before = driver.now;
    let mut driver = driver.after_a_power_cut();
    assert!(driver.node.stream(reader).is_none());
    let passed = before.saturating_since(Instant::EPOCH).as_nanos().cast_signed();
    let since = driver.now.saturating_since(Instant::EPOCH).as_nanos().cast_signed();
    driver.node.set_wall_clock(NOON + passed - since);
    assert_eq!(driver.node.volume("ring").unwrap().keep, minute);
    driver.run(Duration::from_secs(1));
    let (later, same) = held(&driver);
    assert!(later > start && same == end, "{later} to {same} is held");
    // Half a minute later nothing is young any more.
    driver.run(Duration::from_secs(60));
    assert_eq!(held(&driver), (end.round_down(Bytes::mib(16)), end));

    driver.done(Op::RingKeep { name: "ring".into(), keep: None });
    let stream = opened(&mut driver, Mode::Write, end).unwrap();
    paced(&mut driver, stream, 64);
    driver.close(stream).unwrap();
    driver.run(Duration::from_secs(300));
    assert_eq!(held(&driver), (end.round_down(Bytes::mib(16)), end + Bytes::mib(64)));
    assert_eq!(driver.node.next_timer(), None, "nobody looks for what is old");
    driver.done(Op::RingKeep { name: "ring".into(), keep: minute });
    driver.run(Duration::from_secs(1));
    assert_eq!(held(&driver).0, (end + Bytes::mib(64)).round_down(Bytes::mib(16)));
}
