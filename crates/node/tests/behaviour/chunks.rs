//! Blocks of streams in chunks, where a contract of answers in time is on their disk: who goes
//! between, what becomes of a chunk that fails, and of streams that leave in the middle.
//!
//! On these disks a command costs 10 ms, and 10 ms for each MiB.

use crate::driver::*;
use node::{
    Contract, DiskAction, Error, Mode, Op, Placement, Policy, Priority, Reply, Service, StreamId,
};
use units::{Bytes, Direction, Duration, Rate};

const BLOCK: Bytes = Bytes::mib(8);
const CHUNK: Bytes = Bytes::mib(2);

fn each_second() -> Contract {
    contract(Rate::per_second(8 << 20), BLOCK, Bytes::ZERO)
}

/// A film of two blocks, and a volume for answers.
fn film() -> Driver {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(160)).open();
    driver.recorded("film", BLOCK * 2, BLOCK * 2, 1);
    driver.volume("answers", Bytes::MIB);
    driver.write("answers", 3, Bytes::ZERO, Bytes::MIB);
    driver
}

/// 4 KiB within 60 ms: 10 ms for themselves, and 50 for what is in the way.
fn promise(driver: &mut Driver) {
    let promise = in_time(Bytes::kib(4), ms(60), Duration::from_secs(1));
    driver.done(service("answers", promise));
}

/// A stream that is then served in chunks.
fn in_chunks(driver: &mut Driver, mode: Mode) -> StreamId {
    let (stream, _) = driver.stream(open("film", mode, each_second(), Bytes::ZERO));
    assert_eq!(chunk(driver), Some(CHUNK));
    stream
}

fn promise_no_more(driver: &mut Driver) {
    driver.done(service("answers", Service::BestEffort(Priority::Normal)));
    assert_eq!(chunk(driver), None);
}

fn chunk(driver: &Driver) -> Option<Bytes> {
    driver.node.status(driver.now).disks[0].chunk
}

fn late(driver: &Driver) -> u64 {
    driver.node.status(driver.now).disks[0].account.late_requests
}

/// The lengths in KiB of what the disk transferred this way since then, of at least 64 KiB.
fn transfers(driver: &Driver, from: usize, way: Direction) -> Vec<u64> {
    let long = |done: &Done| match &done.action {
        DiskAction::WriteBytes { .. } => None,
        action => action.transfer(),
    };
    let all = driver.since(from).iter().filter_map(long);
    let all = all.filter(|(_, direction)| *direction == way);
    let all = all.map(|(range, _)| (range.end - range.start) / Bytes::kib(1));
    all.filter(|&kib| kib >= 64).collect()
}

/// Reads to the end: all bytes, with nothing in the place of gaps, and the gaps in MiB.
fn all_of(driver: &mut Driver, stream: StreamId) -> (Vec<u8>, Vec<(u64, u64)>) {
    let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
    loop {
        match driver.ask(Op::StreamRead { stream, len_max: BLOCK }) {
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

/// Runs until the disk has done so many commands of at least 64 KiB since then.
fn run_until_done(driver: &mut Driver, from: usize, way: Direction, count: usize) {
    for _ in 0..1_000 {
        if transfers(driver, from, way).len() >= count {
            return;
        }
        driver.step(driver.now + Duration::from_secs(1));
    }
    panic!("only {:?}", transfers(driver, from, way));
}

/// A stream is served in chunks, an answer comes between them, and
/// blocks are whole again when nothing short is promised any more.
#[test]
fn an_answer_in_time_comes_between_the_chunks_of_a_block() {
    let mut driver = film();
    promise(&mut driver);
    assert_eq!(chunk(&driver), None, "nothing is in the way");
    let stream = in_chunks(&mut driver, Mode::Read);
    let share = driver.node.status(driver.now).disks[0].utilisation_ppm;
    let from = driver.journal.len();
    run_until_done(&mut driver, from, Direction::Read, 1);
    assert_eq!(transfers(&driver, from, Direction::Read), [2048]);
    let asked = driver.now;
    driver.read("answers", Bytes::ZERO, Bytes::kib(4)).unwrap();
    assert!(driver.now - asked <= ms(60), "{}", driver.now - asked);
    let between = driver.since(from).last().unwrap().action.transfer().unwrap().0;
    assert_eq!(between.end - between.start, Bytes::kib(4), "the rest of the block waits");
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert!(bytes == pattern(1, Bytes::ZERO, BLOCK * 2) && gaps.is_empty());
    // The second comes before its time, when there is slack for all of it.
    assert_eq!(transfers(&driver, from, Direction::Read), [2048, 2048, 2048, 2048, 8192]);
    let account = driver.node.stream(stream).unwrap().account;
    assert_eq!((account.requests, account.late_requests, account.underruns), (2, 0, 0));
    promise_no_more(&mut driver);
    assert!(driver.node.status(driver.now).disks[0].utilisation_ppm < share);
    let from = driver.journal.len();
    let told = driver.ask(Op::StreamSeek { stream, to: Bytes::ZERO });
    assert!(matches!(told, Ok(Reply::Ready { .. })), "{told:?}");
    all_of(&mut driver, stream);
    // But for the first, which is short so that the answer comes soon.
    let whole = transfers(&driver, from, Direction::Read);
    assert!(whole.iter().sum::<u64>() == 16_384 && whole.len() <= 3, "{whole:?}");
    assert_eq!(late(&driver), 0);
}

/// Best effort that waits for a disk is cut as well.
#[test]
fn best_effort_goes_in_pieces_no_longer_than_a_chunk() {
    let mut driver = film();
    promise_shorter(&mut driver);
    let from = driver.journal.len();
    let read = driver.read("film", Bytes::ZERO, Bytes::MIB).unwrap();
    assert!(read == pattern(1, Bytes::ZERO, Bytes::MIB));
    driver.write("film", 9, Bytes::ZERO, Bytes::MIB);
    for way in [Direction::Read, Direction::Write] {
        let all = transfers(&driver, from, way);
        assert!(all.len() >= 2 && all.iter().all(|&kib| kib <= 512), "{way:?}: {all:?}");
    }
    assert!(
        driver.read("film", Bytes::ZERO, Bytes::MIB).unwrap()
            == pattern(9, Bytes::ZERO, Bytes::MIB)
    );
}

/// 4 KiB within 26 ms: 15 for what is in the way.
fn promise_shorter(driver: &mut Driver) {
    let promise = in_time(Bytes::kib(4), ms(26), Duration::from_secs(1));
    driver.done(service("answers", promise));
    assert_eq!(chunk(driver), Some(Bytes::kib(512)));
}

/// What waits when the chunks come is cut when it is started, and is one answer.
#[test]
fn what_waits_already_is_cut_too_and_answered_once() {
    let mut driver = film();
    let reads: Vec<_> =
        (0..6).map(|n| driver.begin(read("film", Bytes::mib(n), Bytes::MIB))).collect();
    let (span, range) = (driver.room(Bytes::MIB), node::WriteRange::new(Bytes::mib(9), Bytes::MIB));
    driver.fill(span, 4, &range);
    let written = driver.begin(write("film", range, span));
    let from = driver.journal.len();
    promise_shorter(&mut driver);
    for (n, ticket) in (0u64..).zip(reads) {
        let Ok(Reply::Data { bytes: span, .. }) = driver.wait(ticket) else { panic!("no data") };
        assert!(driver.bytes(span) == pattern(1, Bytes::mib(n), Bytes::MIB), "{n}");
        driver.done(Op::Release { span });
    }
    assert_eq!(driver.wait(written), Ok(Reply::Done));
    let behind = transfers(&driver, from, Direction::Read);
    // The first may have been with the disk.
    assert!(behind.iter().skip(2).all(|&kib| kib <= 512), "{behind:?}");
    let read = driver.read("film", Bytes::mib(9), Bytes::MIB).unwrap();
    assert!(read == pattern(4, Bytes::mib(9), Bytes::MIB));
}

/// The disk fails on the second chunk of a block: these 2 MiB are a gap, and no more.
#[test]
fn a_chunk_that_cannot_be_read_is_a_gap_and_the_rest_of_the_block_is_not() {
    let mut driver = film();
    let from = driver.journal.len();
    driver.read("film", Bytes::mib(3), Bytes::kib(4)).unwrap();
    let place = driver.since(from)[0].action.transfer().unwrap().0;
    driver.break_at(DISK, place, Some(Direction::Read));
    promise(&mut driver);
    let stream = in_chunks(&mut driver, Mode::Read);
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert_eq!(gaps, [(2, 2)]);
    let mut want = pattern(1, Bytes::ZERO, BLOCK * 2);
    want[2 << 20..4 << 20].fill(0);
    assert!(bytes == want);
}

/// The disk fails on the first, a middle or the last chunk of a block that is written: the
/// stream hears it, and nothing of the block counts as written.
#[test]
fn a_chunk_that_cannot_be_written_fails_its_block() {
    for bad in [0, 3, 7] {
        let mut driver = film();
        let from = driver.journal.len();
        driver.read("film", Bytes::mib(bad), Bytes::kib(4)).unwrap();
        let place = driver.since(from)[0].action.transfer().unwrap().0;
        driver.break_at(DISK, place, Some(Direction::Write));
        promise(&mut driver);
        let stream = in_chunks(&mut driver, Mode::Write);
        let from = driver.journal.len();
        driver.put_all(stream, 5, BLOCK);
        let told = driver.ask(Op::StreamSync { stream });
        assert!(matches!(told, Err(Error::Device { .. })), "{bad}: {told:?}");
        assert_eq!(transfers(&driver, from, Direction::Write), [2048; 4], "{bad}");
        let told = driver.close(stream);
        assert!(matches!(told, Err(Error::Device { .. })), "{bad}: {told:?}");
    }
}

/// A part of an operation of best effort that fails fails all of it, whichever chunk it is.
#[test]
fn an_operation_fails_where_any_chunk_of_it_does() {
    for bad in [0, 1] {
        let mut driver = film();
        let from = driver.journal.len();
        driver.read("film", Bytes::kib(512) * bad, Bytes::kib(4)).unwrap();
        let place = driver.since(from)[0].action.transfer().unwrap().0;
        driver.break_at(DISK, place, None);
        // One is with the disk, and one waits as a whole when chunks come.
        let first = driver.begin(read("film", Bytes::mib(4), Bytes::MIB));
        let second = driver.begin(read("film", Bytes::ZERO, Bytes::MIB));
        promise_shorter(&mut driver);
        let Ok(Reply::Data { bytes: span, .. }) = driver.wait(first) else { panic!("no data") };
        driver.done(Op::Release { span });
        let told = driver.wait(second);
        assert!(matches!(told, Err(Error::Device { .. })), "{bad}: {told:?}");
    }
}

/// Streams that close or jump while some chunks of a block are done and others wait.
#[test]
fn in_the_middle_of_a_block_streams_close_and_jump() {
    let mut driver = film();
    promise(&mut driver);
    for count in 1..4 {
        let from = driver.journal.len();
        let stream = in_chunks(&mut driver, Mode::Read);
        run_until_done(&mut driver, from, Direction::Read, count);
        let told = driver.ask(Op::StreamSeek { stream, to: BLOCK });
        assert!(matches!(told, Ok(Reply::Ready { .. })), "{told:?}");
        let (offset, bytes) = driver.next(stream, Bytes::MIB);
        assert!(bytes == pattern(1, offset, Bytes::MIB) && offset == BLOCK);
        assert_eq!(driver.close(stream), Ok(Reply::Done));
        let from = driver.journal.len();
        let stream = in_chunks(&mut driver, Mode::Read);
        run_until_done(&mut driver, from, Direction::Read, count);
        assert_eq!(driver.close(stream), Ok(Reply::Done));
    }
    assert_eq!(late(&driver), 0);
    promise_no_more(&mut driver);
    let disk = &driver.node.status(driver.now).disks[0];
    assert_eq!((disk.waiting_real_time, disk.waiting_best_effort), (0, 0));
}

/// Chunks come and go while a block is under way.
#[test]
fn a_block_that_began_in_chunks_ends_whole_when_they_go() {
    for count in 1..4 {
        let mut driver = film();
        promise(&mut driver);
        let from = driver.journal.len();
        let stream = in_chunks(&mut driver, Mode::Read);
        run_until_done(&mut driver, from, Direction::Read, count);
        promise_no_more(&mut driver);
        let (bytes, gaps) = all_of(&mut driver, stream);
        assert!(bytes == pattern(1, Bytes::ZERO, BLOCK * 2) && gaps.is_empty());
        assert_eq!(late(&driver), 0);
    }
}

/// What was written in chunks and synced is there after a power cut.
#[test]
fn what_is_written_in_chunks_is_there_after_a_power_cut() {
    let mut driver = film();
    promise(&mut driver);
    let stream = in_chunks(&mut driver, Mode::Write);
    let from = driver.journal.len();
    driver.put_all(stream, 5, Bytes::mib(11));
    assert_eq!(driver.done_durable(stream), Bytes::mib(11));
    let all = transfers(&driver, from, Direction::Write);
    // What is synced within a block goes in the slack: whole, so that it ends when it has begun.
    assert_eq!(all, [2048, 2048, 2048, 2048, 3072]);
    let mut driver = driver.after_a_power_cut();
    let stream = driver.reader("film", each_second());
    let (bytes, gaps) = all_of(&mut driver, stream);
    let mut want = pattern(5, Bytes::ZERO, Bytes::mib(11));
    want.extend(pattern(1, Bytes::mib(11), Bytes::mib(5)));
    assert!(bytes == want && gaps.is_empty());
}

/// What no chunk is short enough for is refused, and all is as it was.
#[test]
fn what_does_not_fit_in_chunks_either_changes_nothing() {
    let mut driver = film();
    let stream = driver.reader("film", each_second());
    let before = driver.node.status(driver.now);
    let told = driver.at_once(service("answers", in_time(Bytes::kib(4), ms(20), ms(1000))));
    assert!(is_refused(&told), "{told:?}");
    let after = driver.node.status(driver.now);
    assert_eq!(after.disks[0].chunk, None);
    assert_eq!(before.disks[0].utilisation_ppm, after.disks[0].utilisation_ppm);
    assert_eq!(before.disks[0].slack, after.disks[0].slack);
    let from = driver.journal.len();
    let (bytes, gaps) = all_of(&mut driver, stream);
    assert!(bytes == pattern(1, Bytes::ZERO, BLOCK * 2) && gaps.is_empty());
    assert!(transfers(&driver, from, Direction::Read).iter().all(|&kib| kib == 8192));
}

/// Who is promised answers in time on a disk where a stream is served whole: it is served in chunks
/// from then on, and whole again when nothing is promised any more.
#[test]
fn a_stream_that_was_there_before_the_promise_is_served_in_chunks_for_it() {
    let mut driver = film();
    let (stream, _) = driver.stream(open("film", Mode::Read, each_second(), Bytes::ZERO));
    let used = |driver: &Driver| driver.node.status(driver.now).disks[0].utilisation_ppm;
    let share = |driver: &Driver| driver.node.stream(stream).unwrap().shares[0].1;
    let (whole, before) = (used(&driver), share(&driver));
    promise(&mut driver);
    assert_eq!(chunk(&driver), Some(CHUNK));
    // Three commands more of 10 ms in each second, and the answers.
    assert!(used(&driver) > whole + 30_000);
    assert_eq!(share(&driver), before + 30_000);
    all_of(&mut driver, stream);
    assert_eq!(late(&driver), 0);
    promise_no_more(&mut driver);
    assert_eq!((used(&driver), share(&driver)), (whole, before));
}

/// Nothing is in chunks under a policy that does not look at the exact slack, and on a bus, which is
/// counted by the commands that there are: what is in the way of an answer in time is in its way.
#[test]
fn under_other_policies_and_on_a_bus_a_promise_beside_long_blocks_is_refused() {
    for (policy, is_on_bus) in [(Policy::DELTA_L, false), (Policy::SLACK, true)] {
        let setup = Setup::new(2).with(|config| {
            (config.memory, config.policy) = (Bytes::mib(160), policy);
        });
        let mut driver = setup.open();
        let on = Placement { disks: vec![DISK], ..Placement::default() };
        for name in ["film", "answers"] {
            driver.done(create(name, BLOCK * 2, on.clone()));
            driver.write(name, 1, Bytes::ZERO, Bytes::MIB);
        }
        if is_on_bus {
            let plan = disk::BusPlan::new("shelf", Rate::per_second(200 << 20), 2);
            let disks = vec![DISK, node::DiskIndex(1)];
            driver.done(Op::BusSet { disks, bus: Some(Box::new(plan)) });
        }
        let second = contract(Rate::per_second(1 << 20), Bytes::MIB, Bytes::ZERO);
        driver.stream(open("film", Mode::Read, second, Bytes::ZERO));
        // In chunks 24 ms would do, and 12 for what goes between others'.
        let mut within = 12;
        let refused = loop {
            let promise = in_time(Bytes::kib(4), ms(within), Duration::from_secs(1));
            let told = driver.ask(service("answers", promise));
            assert_eq!(chunk(&driver), None, "{policy:?} {within}");
            match told {
                Ok(_) => break within,
                Err(_) => within += 1,
            }
        };
        assert!(refused > 30, "{policy:?}: {refused}");
    }
}

/// A stream that was opened whole and is in chunks since asks for less: that is given, also while
/// what deliveries take does not fit.
#[test]
fn less_is_given_to_a_stream_in_chunks_beside_deliveries_that_do_not_fit() {
    let mut driver = film();
    let (stream, _) = driver.stream(open("film", Mode::Read, each_second(), Bytes::ZERO));
    assert_eq!(chunk(&driver), None);
    let tightest = |within| {
        let promise = in_time(Bytes::kib(4), ms(within), Duration::from_secs(1));
        driver.ask(service("answers", promise)).is_ok()
    };
    assert!((15..300).any(tightest));
    assert!(chunk(&driver).is_some());
    let told = driver.at_once(Op::Delivery { takes: ms(9) });
    assert!(matches!(told, Err(Error::DeliveryRefused { .. })), "{told:?}");
    let less = contract(Rate::per_second(4 << 20), BLOCK, Bytes::ZERO);
    let told = driver.at_once(Op::StreamChange { stream, contract: less });
    assert!(told.is_ok(), "{told:?}");
}

/// What deliveries take does not fit on another disk, and so is charged nowhere. Here a stream fits
/// with it in shorter chunks than it would be in without: it is given in those.
#[test]
fn a_stream_that_fits_with_what_was_measured_in_shorter_chunks_is_given_in_those() {
    let mut driver = Setup::new(2).with(|config| config.memory = Bytes::mib(160)).open();
    let on = |disk| Placement { disks: vec![node::DiskIndex(disk)], ..Placement::default() };
    for (name, disk) in [("film", 0), ("answers", 0), ("far", 1)] {
        driver.done(create(name, BLOCK * 2, on(disk)));
    }
    let far = |within| service("far", in_time(Bytes::kib(4), ms(within), ms(300)));
    assert!((15..300).any(|within| driver.ask(far(within)).is_ok()));
    // 10 ms for themselves, and 37 for what is in the way: 30 are, or 20 where 9 are missing.
    driver.done(service("answers", in_time(Bytes::kib(4), ms(47), Duration::from_secs(1))));
    let film = || open("film", Mode::Read, each_second(), Bytes::ZERO);
    let (stream, _) = driver.stream(film());
    assert_eq!(chunk(&driver), Some(CHUNK));
    driver.close(stream).unwrap();
    driver.done(service("answers", Service::default()));
    driver.done(service("answers", in_time(Bytes::kib(4), ms(47), Duration::from_secs(1))));
    assert_eq!(chunk(&driver), None);
    let told = driver.at_once(Op::Delivery { takes: ms(9) });
    assert!(matches!(told, Err(Error::DeliveryRefused { .. })), "{told:?}");
    driver.stream(film());
    assert_eq!(chunk(&driver), Some(Bytes::MIB));
}

/// What deliveries take does not fit on another disk. A film was given with it in chunks; when the
/// answers in time leave, its blocks do not become so long that it would not fit with it any more.
#[test]
fn what_was_given_with_what_was_measured_fits_with_it_also_when_chunks_become_longer() {
    let mut driver = Setup::new(2).with(|config| config.memory = Bytes::mib(160)).open();
    let on = |disk| Placement { disks: vec![node::DiskIndex(disk)], ..Placement::default() };
    for (name, disk) in [("film", 0), ("answers", 0), ("rate", 0), ("far", 1)] {
        driver.done(create(name, BLOCK * 2, on(disk)));
    }
    let far = |within| service("far", in_time(Bytes::kib(4), ms(within), ms(300)));
    assert!((15..300).any(|within| driver.ask(far(within)).is_ok()));
    // 10 ms for themselves, and 95 for what is in the way: 90 are where blocks are whole, and as
    // much is not left where 9 are missing.
    let rate = Rate::per_second(4096 * 1000 / 105);
    driver.done(service("rate", at_rate(rate, Bytes::kib(4), ms(105))));
    promise(&mut driver);
    let told = driver.at_once(Op::Delivery { takes: ms(9) });
    assert!(matches!(told, Err(Error::DeliveryRefused { .. })), "{told:?}");
    driver.stream(open("film", Mode::Read, each_second(), Bytes::ZERO));
    driver.done(service("answers", Service::default()));
    assert_eq!(chunk(&driver), Some(Bytes::mib(4)));
    driver.done(service("far", Service::default()));
    let status = driver.node.status(driver.now);
    assert_eq!((status.delivery, status.delivery_refused), (ms(9), None));
}
