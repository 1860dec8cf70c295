//! Thin volumes, and writers of them that are written together.

use crate::driver::*;
use node::{
    Contract, DeviceError, DiskAction, DiskIndex, Error, Mode, Op, Placement, Reply, StreamId,
    command_ended,
};
use units::{Bytes, Direction, Duration, Instant, Rate};

fn thin(disks: &[u16]) -> Placement {
    let disks = disks.iter().copied().map(DiskIndex).collect();
    Placement { disks, thin: true, ..Placement::default() }
}

/// A MiB each 250 ms, in blocks of a MiB.
fn camera() -> Contract {
    contract(Rate::per_second(4 << 20), Bytes::MIB, Bytes::ZERO)
}

const PERIOD: Duration = Duration::from_millis(250);

/// One disk, and so many thin volumes of 1 GiB, four times as much as it has.
fn cameras(count: usize) -> Driver {
    cameras_of(Setup::new(1), count)
}

fn cameras_of(setup: Setup, count: usize) -> Driver {
    let mut driver = setup.with(|config| config.memory = Bytes::mib(256)).open();
    for number in 0..count {
        driver.done(create(&name(number), Bytes::GIB, thin(&[0])));
    }
    driver
}

fn name(number: usize) -> String {
    format!("camera{number}")
}

fn record(driver: &mut Driver, count: usize) -> Vec<StreamId> {
    (0..count).map(|number| driver.writer(&name(number), camera())).collect()
}

fn data_writes(done: &[Done]) -> Vec<Bytes> {
    let data = done.iter().filter(|done| !matches!(done.action, DiskAction::WriteBytes { .. }));
    let transfers = data.filter_map(|done| done.action.transfer());
    let writes = transfers.filter(|(_, direction)| *direction == Direction::Write);
    writes.map(|(range, _)| range.end - range.start).collect()
}

fn taken(driver: &Driver, number: usize) -> Bytes {
    driver.node.volume(&name(number)).unwrap().taken
}

/// What is recorded of a camera is what was recorded, from the start to `upto`.
fn check(driver: &mut Driver, number: usize, upto: Bytes) {
    let mut at = Bytes::ZERO;
    while at < upto {
        let len = (upto - at).min(Bytes::MIB);
        let got = driver.read(&name(number), at, len.round_up(Bytes::kib(4))).unwrap();
        assert!(
            got[..len.as_usize()] == pattern(number as u64, at, len),
            "camera {number} at {at}"
        );
        at += len;
    }
}

/// Everything is free that no volume has.
fn check_space(driver: &mut Driver, count: usize) {
    driver.done(Op::Sync);
    driver.done(create("a change", Bytes::ZERO, Placement::default()));
    let space = driver.node.space();
    let all: Bytes = (0..count).map(|number| taken(driver, number)).sum();
    assert_eq!((space.used, space.freeing), (all, Bytes::ZERO), "{space:?}");
}

/// Blocks that are full at about the same time are one command, one behind the other, and what was
/// recorded is there after a power cut.
#[test]
fn what_is_full_at_the_same_time_is_one_command() {
    let mut driver = cameras(6);
    let streams = record(&mut driver, 6);
    for round in 0..5 {
        let from = driver.journal.len();
        for (number, &stream) in streams.iter().enumerate() {
            driver.put_all(stream, number as u64, Bytes::MIB);
        }
        driver.run(PERIOD);
        let writes = data_writes(driver.since(from));
        // The first of them finds the group idle.
        let want = if round == 0 { vec![1, 5] } else { vec![6] };
        let want: Vec<Bytes> = want.into_iter().map(Bytes::mib).collect();
        if round > 1 {
            assert_eq!(writes, want, "round {round}");
        }
    }
    driver.run(PERIOD * 2);
    for &stream in &streams {
        assert_eq!(driver.node.stream(stream).unwrap().account.late_requests, 0);
        assert_eq!(driver.done_durable(stream), Bytes::mib(5));
    }
    let mut driver = driver.after_a_power_cut();
    for number in 0..6 {
        assert_eq!(taken(&driver, number), Bytes::mib(5));
        check(&mut driver, number, Bytes::mib(5));
    }
    check_space(&mut driver, 6);
}

/// A group costs one placement and one transfer of all blocks, so that more are admitted than by
/// themselves; one more than fit is refused, and another takes the place of one that has left.
#[test]
fn more_are_admitted_together_than_by_themselves() {
    let quick = contract(Rate::per_second(8 << 20), Bytes::MIB, Bytes::ZERO);
    let admitted = |placement: &Placement| {
        let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(256)).open();
        let mut count = 0;
        loop {
            driver.done(create(&name(count), Bytes::mib(8), placement.clone()));
            match driver.ask(open(&name(count), Mode::Write, quick, Bytes::ZERO)) {
                Ok(_) => count += 1,
                refused => {
                    assert!(is_refused(&refused), "{refused:?}");
                    return (driver, count);
                }
            }
        }
    };
    let (_, alone) = admitted(&Placement::default());
    let (mut driver, together) = admitted(&thin(&[0]));
    // 20 ms each of 125 ms, or 10 ms and 10 ms for each.
    assert!((4..=5).contains(&alone) && (8..=10).contains(&together), "{alone}, {together}");
    let shares: u64 = (1..=together as u64)
        .map(|stream| driver.node.stream(StreamId(stream)).unwrap().shares[0].1)
        .sum();
    assert!(shares > 700_000 && shares < 1_000_000, "{shares}");
    driver.close(StreamId(1)).unwrap();
    assert!(driver.ask(open(&name(together), Mode::Write, quick, Bytes::ZERO)).is_ok());
}

/// Each of them writes at its rate for a while, in turns that differ: no one waits, and each block is
/// there in time; the window is four blocks.
#[test]
fn who_keeps_his_rate_finds_room() {
    let mut driver = cameras(9);
    let streams = record(&mut driver, 9);
    for &stream in &streams {
        assert_eq!(driver.node.stream(stream).unwrap().window, Bytes::mib(4));
    }
    // A quarter of a MiB each 62.5 ms, each of them a little later than the one before.
    for step in 0..80u64 {
        for (number, &stream) in streams.iter().enumerate() {
            driver.run_to(Instant::EPOCH + ms(20_000) + PERIOD / 4 * step + ms(7) * number as u64);
            let room = driver.at_once(Op::StreamRoom { stream, len_max: Bytes::kib(256) });
            let Ok(Reply::Room { room: span }) = room else { panic!("{step} {number} {room:?}") };
            let from = driver.node.stream(stream).unwrap().position;
            driver.memory.put(span.offset, &pattern(number as u64, from, span.len));
            driver.done(Op::StreamWrite { stream, len: span.len });
            assert_eq!(span.len, Bytes::kib(256));
        }
    }
    for (number, &stream) in streams.iter().enumerate() {
        let status = driver.node.stream(stream).unwrap();
        assert_eq!((status.account.late_requests, status.account.underruns), (0, 0));
        assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::mib(20) }));
        check(&mut driver, number, Bytes::mib(20));
    }
}

/// A sync within a block is durable at once, at whatever byte; the block that is full afterwards goes to
/// another place, and the one before is free again.
#[test]
fn a_block_that_was_synced_goes_to_another_place() {
    let mut driver = cameras(3);
    let streams = record(&mut driver, 3);
    let (one, two) = (Bytes::new(300_001), Bytes::new(500_000));
    driver.put_all(streams[0], 0, one);
    driver.put_all(streams[1], 1, Bytes::MIB);
    assert_eq!(driver.done_durable(streams[0]), one);
    driver.put_all(streams[0], 0, two);
    assert_eq!(driver.done_durable(streams[0]), one + two);
    let before = driver.place(&name(0), Bytes::ZERO);
    driver.put_all(streams[0], 0, Bytes::mib(2) - one - two);
    driver.run(PERIOD * 3);
    assert_eq!(driver.done_durable(streams[0]), Bytes::mib(2));
    assert_ne!(driver.place(&name(0), Bytes::ZERO), before);
    for (number, &stream) in streams.iter().enumerate() {
        let upto = [Bytes::mib(2), Bytes::MIB, Bytes::ZERO][number];
        assert_eq!(driver.close(stream), Ok(Reply::Durable { upto }));
        check(&mut driver, number, upto);
    }
    assert_eq!((taken(&driver, 0), taken(&driver, 1)), (Bytes::mib(2), Bytes::MIB));
    check_space(&mut driver, 3);
    let mut driver = driver.after_a_power_cut();
    check(&mut driver, 0, Bytes::mib(2));
    check(&mut driver, 1, Bytes::MIB);
}

/// A command that read for two programs fails. Before the node hears of it, the place that it read is free,
/// since the block lies in another by then: what is tried again is read from there, and not from where
/// somebody else's bytes may lie.
#[test]
fn what_is_read_again_is_read_from_where_it_lies() {
    let piece = Bytes::kib(64);
    let mut driver = cameras(2);
    let streams = record(&mut driver, 2);
    let part = Bytes::kib(512);
    driver.put_all(streams[0], 0, part);
    assert_eq!(driver.done_durable(streams[0]), part);
    let old = driver.place(&name(0), Bytes::ZERO);
    driver.run(PERIOD * 3);
    // The block goes to another place, with the disk busy with that when the reads come.
    driver.put_all(streams[0], 0, Bytes::MIB - part);
    let is_data = |action: &DiskAction| match action.transfer() {
        Some((range, way)) => way == Direction::Write && range.end - range.start == Bytes::MIB,
        None => false,
    };
    while !driver.disks[0].flights.values().any(|flight| is_data(&flight.command.action)) {
        assert!(driver.step(Instant::MAX), "the block is never written");
    }
    let reads = [0, 1].map(|at| driver.begin(read(&name(0), piece * at, piece)));
    let reads_old = |action: &DiskAction| {
        action.transfer().is_some_and(|(range, way)| range.start == old && way == Direction::Read)
    };
    let (id, flight) = loop {
        let mut flights = driver.disks[0].flights.iter();
        if let Some((&id, _)) = flights.find(|(_, flight)| reads_old(&flight.command.action)) {
            break (id, driver.disks[0].flights.remove(&id).unwrap());
        }
        assert!(driver.step(Instant::MAX), "nobody reads");
    };
    let range = flight.command.action.transfer().unwrap().0;
    assert_eq!(range, old..old + piece * 2, "both are one command");
    driver.now = driver.now.max(flight.finished);
    let (now, started, failed) = (driver.now, flight.started, Err(DeviceError(5)));
    let ended = command_ended(driver.node.disk_queue(DISK), id, started, now, failed);
    // Meanwhile somebody else comes, and timers run.
    let other = driver.begin(read(&name(0), piece * 4, piece));
    driver.node.run_timers(now);
    let from = driver.journal.len();
    driver.node.command_ended(now, ended);
    for (at, ticket) in [(0, reads[0]), (1, reads[1]), (4, other)] {
        let Ok(Reply::Data { bytes: span, .. }) = driver.wait(ticket) else { panic!("no data") };
        assert!(driver.bytes(span) == pattern(0, piece * at, piece), "{at}");
        driver.done(Op::Release { span });
    }
    let new = driver.place(&name(0), Bytes::ZERO);
    assert_ne!(new, old);
    let reads: Vec<Bytes> = driver
        .since(from)
        .iter()
        .filter_map(|done| done.action.transfer())
        .filter_map(|(range, way)| (way == Direction::Read).then_some(range.start))
        .collect();
    assert!(
        reads.len() >= 3 && reads.iter().all(|at| (new..new + Bytes::MIB).contains(at)),
        "{reads:?}"
    );
}

/// While something greedy has the slack, a part goes with the group's next request.
#[test]
fn a_sync_is_answered_beside_something_greedy() {
    let mut driver = cameras(4);
    driver.volume("greedy", Bytes::mib(32));
    let streams = record(&mut driver, 4);
    driver.run(ms(3_000));
    let mut waits = Vec::new();
    for round in 0..8 {
        // Reads of what was never written cost nothing: it writes.
        while waits.len() < 12 {
            let offset = Bytes::mib((round * 5 + waits.len() as u64) % 32);
            waits.push(driver.begin_write("greedy", 9, offset, Bytes::MIB));
        }
        for (number, &stream) in streams.iter().enumerate() {
            driver.put_all(stream, number as u64, Bytes::kib(300));
        }
        let (stream, from) = (streams[round as usize % 4], driver.now);
        driver.done_durable(stream);
        let most = driver.node.sync_time_max(Some(stream)).unwrap();
        assert!(driver.now - from <= most, "{:?} of {most:?}", driver.now - from);
        waits.retain(|&ticket| driver.answer(ticket).is_none());
    }
    for (number, stream) in streams.into_iter().enumerate() {
        assert_eq!(driver.node.stream(stream).unwrap().account.late_requests, 0);
        assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::kib(2_400) }));
        check(&mut driver, number, Bytes::kib(2_400));
    }
}

/// A disk that is full says so before bytes are taken: all that was taken is durable, and what a closed
/// writer was promised is others'.
#[test]
fn a_full_disk_refuses_before_bytes_are_taken() {
    let mut driver = cameras(3);
    let streams = record(&mut driver, 3);
    let mut written = [Bytes::ZERO; 3];
    let mut full = [false; 3];
    while full.iter().any(|full| !full) {
        for (number, &stream) in streams.iter().enumerate() {
            if full[number] {
                continue;
            }
            match driver.ask(Op::StreamRoom { stream, len_max: Bytes::MIB }) {
                Ok(Reply::Room { room: span }) => {
                    let bytes = pattern(number as u64, written[number], span.len);
                    driver.memory.put(span.offset, &bytes);
                    driver.done(Op::StreamWrite { stream, len: span.len });
                    written[number] += span.len;
                }
                Err(Error::PoolFull { .. }) => full[number] = true,
                other => panic!("{other:?}"),
            }
        }
    }
    for (number, &stream) in streams.iter().enumerate() {
        assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: written[number] }));
    }
    let space = driver.node.space();
    // A stretch of 16 extents at the frontier's end may be too short for a group.
    assert!(space.free <= Bytes::mib(48), "{space:?}");
    check_space(&mut driver, 3);
    let mut driver = driver.after_a_power_cut();
    for (number, &upto) in written.iter().enumerate() {
        check(&mut driver, number, upto);
    }
    // One goes, and another has its space.
    let before = driver.node.space().free;
    driver.done(delete(&name(1)));
    driver.done(Op::Sync);
    let free = driver.node.space().free;
    assert_eq!(free, before + written[1], "its space is free");
    let stream = driver.stream(open(&name(0), Mode::Write, camera(), written[0])).0;
    driver.put_all(stream, 0, Bytes::mib(20));
    assert!(driver.close(stream).is_ok());
    check(&mut driver, 0, written[0] + Bytes::mib(20));
}

/// Where the device fails on one member's block, the others' are written.
#[test]
fn a_bad_place_is_one_members() {
    let mut driver = cameras(4);
    let streams = record(&mut driver, 4);
    driver.put_all(streams[0], 0, Bytes::MIB);
    driver.run(PERIOD);
    let first = driver.place(&name(0), Bytes::ZERO);
    // The next request has four blocks from behind this one on.
    let bad = first + Bytes::mib(2);
    driver.break_at(DiskIndex(0), bad..bad + Bytes::kib(4), Some(Direction::Write));
    for (number, &stream) in streams.iter().enumerate().skip(1) {
        driver.put_all(stream, number as u64, Bytes::MIB);
    }
    let results: Vec<_> =
        streams.iter().map(|&stream| driver.ask(Op::StreamSync { stream })).collect();
    let failed: Vec<_> = results.iter().filter(|result| result.is_err()).collect();
    assert_eq!(failed, [&Err(Error::Device { disk: DISK, error: DeviceError(5) })], "{results:?}");
    for (number, result) in results.iter().enumerate() {
        if result.is_ok() {
            check(&mut driver, number, Bytes::MIB);
        }
    }
    let closed = streams.iter().filter(|&&stream| driver.close(stream).is_ok()).count();
    assert_eq!(closed, 3);
    // Its place is to blame, and not those of the others in the same command.
    let suspects = driver.node.status(driver.now).disks[0].observed.suspects.clone();
    assert_eq!(suspects.len(), 1, "{suspects:?}");
    check_space(&mut driver, 4);
}

/// What is written without a stream takes its space first, and gives it back when it is removed. What
/// was never written reads as zeros, and no disk is asked.
#[test]
fn a_thin_volume_takes_what_is_written_to_it() {
    let mut driver = Setup::new(2).open();
    let placement = Placement { run: Bytes::mib(2), thin: true, ..Placement::default() };
    driver.done(create("thin", Bytes::GIB, placement));
    let taken = |driver: &Driver| driver.node.volume("thin").unwrap().taken;
    assert_eq!(taken(&driver), Bytes::ZERO);
    let from = driver.journal.len();
    let read = driver.read("thin", Bytes::mib(700), Bytes::kib(64)).unwrap();
    assert!(read.iter().all(|&byte| byte == 0));
    let asked = driver.since(from).iter().filter(|done| done.action.transfer().is_some());
    assert_eq!(asked.count(), 0);
    driver.write("thin", 5, Bytes::mib(700) + Bytes::kib(4), Bytes::kib(8));
    assert_eq!(taken(&driver), Bytes::mib(2), "a run of it");
    driver.write("thin", 5, Bytes::mib(702) - Bytes::kib(4), Bytes::kib(8));
    assert_eq!(taken(&driver), Bytes::mib(4), "and the next one, on the other disk");
    driver.done(Op::Sync);
    let mut driver = driver.after_a_power_cut();
    let mut all = vec![0; 2 << 20];
    all[4 << 10..12 << 10].copy_from_slice(&pattern(
        5,
        Bytes::mib(700) + Bytes::kib(4),
        Bytes::kib(8),
    ));
    let mut got = driver.read("thin", Bytes::mib(700), Bytes::MIB).unwrap();
    got.extend(driver.read("thin", Bytes::mib(701), Bytes::MIB).unwrap());
    let last = all.len() - (4 << 10);
    all[last..].copy_from_slice(&pattern(5, Bytes::mib(702) - Bytes::kib(4), Bytes::kib(4)));
    assert!(got == all);
    // Until it is full: that is said, and nothing is written.
    let mut at = Bytes::ZERO;
    let full = loop {
        let range = node::WriteRange::new(at, Bytes::kib(4));
        let span = driver.room(range.room());
        match driver.ask(write("thin", range, span)) {
            Ok(_) => at += Bytes::mib(2),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::PoolFull { .. }), "{full:?}");
    assert!(driver.node.space().free < Bytes::mib(4), "{:?}", driver.node.space());
    driver.done(delete("thin"));
    driver.done(Op::Sync);
    assert_eq!(driver.node.space().used, Bytes::ZERO);
}

/// Streams that are not written together have a place for a block before there is room for it.
#[test]
fn other_streams_on_a_thin_volume_find_places() {
    let mut driver = Setup::new(2).open();
    driver.done(create("film", Bytes::mib(64), thin(&[])));
    let stream = driver.writer("film", usual());
    driver.put_all(stream, 3, Bytes::new(5_000_000));
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::new(5_000_000) }));
    assert_eq!(driver.node.volume("film").unwrap().taken, Bytes::mib(5));
    let reader = driver.reader("film", usual());
    let mut got = Vec::new();
    while got.len() < 5_000_000 {
        got.extend(driver.next(reader, BLOCK).1);
    }
    assert!(got == pattern(3, Bytes::ZERO, Bytes::new(5_000_000)));
}

/// A thin ring gives its oldest places back to the disk, and goes on at the frontier.
#[test]
fn a_thin_ring_gives_its_places_back() {
    let quick = Setup::new(1).with(|config| config.commit_interval = ms(500));
    let mut driver = cameras_of(quick, 0);
    for number in 0..2 {
        let (name, placement) = (name(number), thin(&[0]));
        let (size, access, keep) = (Bytes::mib(96), node::Access::default(), None);
        driver.done(Op::RingCreate { name, size, placement, access, keep });
    }
    let streams = record(&mut driver, 2);
    // Twice around, and more than the disk has.
    for _ in 0..200 {
        for (number, &stream) in streams.iter().enumerate() {
            driver.put_all(stream, number as u64, Bytes::MIB);
        }
        assert!((0..2).all(|number| taken(&driver, number) <= Bytes::mib(96)));
    }
    for (number, &stream) in streams.iter().enumerate() {
        assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::mib(200) }));
        let volume = driver.node.volume(&name(number)).unwrap();
        let (start, end) = (volume.start.unwrap(), volume.length);
        assert!(end - start >= Bytes::mib(48), "{start} {end}");
        assert_eq!(taken(&driver, number), end - start);
        let mut at = start;
        while at < end {
            let got = driver.read(&name(number), at, Bytes::MIB).unwrap();
            assert!(got == pattern(number as u64, at, Bytes::MIB), "{number} at {at}");
            at += Bytes::MIB;
        }
    }
    check_space(&mut driver, 2);
}

/// A member has another contract: it is in another group, or the same with a larger burst, and what it has
/// on its way is not lost. One that does not fit changes nothing.
#[test]
fn a_member_may_have_another_contract() {
    let mut driver = cameras(4);
    let streams = record(&mut driver, 4);
    let mut written = Bytes::ZERO;
    let mut goes_on = |driver: &mut Driver, len: Bytes| {
        driver.put_all(streams[0], 0, len);
        written += len;
        written
    };
    goes_on(&mut driver, Bytes::kib(2_500));
    let change = |contract| Op::StreamChange { stream: streams[0], contract };
    let same = driver.ask(change(camera()));
    assert_eq!(same, Ok(Reply::Stream { stream: streams[0], window: Bytes::mib(4) }));
    let burst = Contract { burst: Bytes::mib(3), ..camera() };
    let longer = driver.ask(change(burst));
    assert_eq!(longer, Ok(Reply::Stream { stream: streams[0], window: Bytes::mib(6) }));
    let quick = contract(Rate::per_second(8 << 20), Bytes::MIB, Bytes::ZERO);
    goes_on(&mut driver, Bytes::kib(1_500));
    driver.ask(change(quick)).expect("another group");
    for _ in 0..20 {
        goes_on(&mut driver, Bytes::kib(700));
    }
    let most = contract(Rate::per_second(90 << 20), Bytes::MIB, Bytes::ZERO);
    let before = driver.node.stream(streams[0]).unwrap();
    assert!(driver.ask(change(most)).is_err());
    let after = driver.node.stream(streams[0]).unwrap();
    assert_eq!((after.contract, after.shares), (before.contract, before.shares));
    let slow = contract(Rate::per_second(1 << 20), Bytes::MIB, Bytes::ZERO);
    driver.ask(change(slow)).expect("a third group");
    let all = goes_on(&mut driver, Bytes::kib(300));
    assert_eq!(driver.close(streams[0]), Ok(Reply::Durable { upto: all }));
    for &stream in &streams[1..] {
        assert!(driver.close(stream).is_ok());
    }
    check(&mut driver, 0, all);
    check_space(&mut driver, 4);
    // All groups are gone with their members.
    assert_eq!(record(&mut driver, 4).len(), 4);
}

/// The disk is full and busy: who syncs within a block, and who closes, is answered all the same, and the
/// rest of the block finds its place.
#[test]
fn a_sync_on_a_full_disk_is_answered() {
    for ends in [false, true] {
        let mut driver = cameras(2);
        let streams = record(&mut driver, 2);
        let mut written = [Bytes::ZERO; 2];
        let mut room = |driver: &mut Driver, number: usize, len: Bytes| {
            let ticket = driver.begin(Op::StreamRoom { stream: streams[number], len_max: len });
            let Ok(Reply::Room { room: span }) = driver.wait(ticket) else { return false };
            driver.memory.put(span.offset, &pattern(number as u64, written[number], span.len));
            driver.done(Op::StreamWrite { stream: streams[number], len: span.len });
            written[number] += span.len;
            true
        };
        assert!(room(&mut driver, 1, Bytes::kib(100)));
        while room(&mut driver, 0, Bytes::kib(600)) {}
        assert!(room(&mut driver, 1, Bytes::kib(200)), "its block has a place");
        driver.disks[0].holds = true;
        let syncs: Vec<_> =
            streams.iter().map(|&stream| driver.begin(Op::StreamSync { stream })).collect();
        driver.run(PERIOD * 3);
        driver.disks[0].holds = false;
        for sync in syncs {
            driver.wait(sync).unwrap();
        }
        if !ends {
            while room(&mut driver, 1, Bytes::kib(300)) {}
        }
        for (number, &stream) in streams.iter().enumerate() {
            assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: written[number] }));
        }
        let mut driver = driver.after_a_power_cut();
        check(&mut driver, 0, written[0]);
        check(&mut driver, 1, written[1]);
        check_space(&mut driver, 2);
    }
}

/// A member with a shared window that goes elsewhere while its program still fills what it was told.
#[test]
fn a_shared_window_is_filled_while_its_writer_goes_elsewhere() {
    let mut driver = cameras(1);
    let stream = driver.stream(open_window(&name(0), Mode::Write, camera(), 3)).0;
    let mut told = Bytes::ZERO;
    for number in 0..3 {
        let Ok(Reply::Room { room: span }) = driver.ask(Op::WindowNext { stream }) else {
            panic!("no room for block {number}")
        };
        driver.memory.put(span.offset, &pattern(0, told, span.len));
        told += span.len;
    }
    driver.done(Op::WindowMoved { stream, len: Bytes::kib(2_500) });
    let seek = driver.begin(Op::StreamSeek { stream, to: Bytes::mib(9) });
    driver.run(ms(1));
    let moved = driver.begin(Op::WindowMoved { stream, len: Bytes::kib(572) });
    driver.run(PERIOD * 4);
    assert_eq!(driver.wait(moved), Ok(Reply::Done));
    assert!(driver.wait(seek).is_ok());
    let Ok(Reply::Room { room: span }) = driver.ask(Op::WindowNext { stream }) else {
        panic!("no room there")
    };
    driver.memory.put(span.offset, &pattern(0, Bytes::mib(9), span.len));
    driver.done(Op::WindowMoved { stream, len: span.len });
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::mib(10) }));
    let mut driver = driver.after_a_power_cut();
    check(&mut driver, 0, Bytes::mib(3));
    let got = driver.read(&name(0), Bytes::mib(9), Bytes::MIB).unwrap();
    assert!(got == pattern(0, Bytes::mib(9), Bytes::MIB));
    check_space(&mut driver, 1);
}

/// Where the free space lies in short pieces, a writer by itself is admitted, members go on, and nobody is
/// told that more is promised than is.
#[test]
fn a_group_goes_on_where_free_space_is_in_pieces() {
    let mut driver = cameras(3);
    for number in 0..100 {
        driver.done(create(&format!("between{number}"), Bytes::mib(2), Placement::default()));
    }
    let streams = record(&mut driver, 2);
    assert!(streams.iter().all(|&stream| driver.node.stream(stream).unwrap().promised));
    for number in (0..100).step_by(2) {
        driver.done(delete(&format!("between{number}")));
    }
    let rest = driver.node.space().free;
    let mut written = Bytes::ZERO;
    while written * 2 + Bytes::mib(20) < rest {
        for (number, &stream) in streams.iter().enumerate() {
            driver.put_all(stream, number as u64, Bytes::MIB);
        }
        written += Bytes::MIB;
    }
    assert!(streams.iter().all(|&stream| !driver.node.stream(stream).unwrap().promised));
    let third = driver.writer(&name(2), camera());
    assert!(driver.node.stream(third).unwrap().promised, "it has a contract of its own");
    driver.put_all(third, 2, Bytes::mib(2));
    assert_eq!(driver.close(third), Ok(Reply::Durable { upto: Bytes::mib(2) }));
    for (number, &stream) in streams.iter().enumerate() {
        assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: written }));
        check(&mut driver, number, written);
    }
    check(&mut driver, 2, Bytes::mib(2));
}

/// What a program of the next test does.
struct Camera {
    stream: StreamId,
    number: usize,
    start: Bytes,
    written: Bytes,
    next: Instant,
    sync: Option<node::Ticket>,
}

impl Camera {
    /// How much of its volume is recorded, of which so much was before: who began further on and wrote
    /// nothing has recorded nothing.
    fn recorded(&self, before: Bytes) -> Bytes {
        if self.written > self.start { self.written } else { before }
    }
}

/// Cameras open, close, sync and go on at any time beside something greedy, on a host that may be late:
/// whoever keeps his rate finds room at once, each block is on the disk in its time, and what was recorded
/// is there.
#[test]
fn whoever_comes_and_goes_the_others_are_in_time() {
    let counts = (0..12).map(|seed| come_and_go(seed, false));
    let (opened, blocks) = counts.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert!(opened > 100 && blocks > 500, "{opened} cameras, {blocks} blocks");
}

/// The same where the free space is in short pieces: they may be late, and nothing is lost.
#[test]
fn whoever_comes_and_goes_on_a_scattered_disk_nothing_is_lost() {
    let counts = (0..12).map(|seed| come_and_go(seed, true));
    let (opened, blocks) = counts.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert!(opened > 60 && blocks > 300, "{opened} cameras, {blocks} blocks");
}

/// Cameras that were opened, and blocks that were written.
fn come_and_go(seed: u64, is_scattered: bool) -> (u64, u64) {
    let (mut opened, mut blocks) = (0, 0);
    {
        let mut random = sim_random(seed);
        let late = ms([0, 3, 40][seed as usize % 3]);
        let setup = Setup::new(1).with(|config| config.host_latency = late);
        let mut driver = cameras_of(setup, 8);
        driver.volume("greedy", Bytes::mib(16));
        let between = |number| format!("between{number}");
        let pieces = if is_scattered { 75 } else { 0 };
        for number in 0..pieces {
            driver.done(create(&between(number), Bytes::mib(3), Placement::default()));
        }
        let mut cameras: Vec<Camera> = Vec::new();
        let mut lengths = [Bytes::ZERO; 8];
        // What lies between where one ended and the block at which the next one began.
        let mut gaps: Vec<(usize, Bytes)> = Vec::new();
        let mut greedy = Vec::new();
        for step in 0..400 {
            if is_scattered && step == 40 {
                for number in (0..pieces).step_by(2) {
                    driver.done(delete(&between(number)));
                }
            }
            let until = driver.now + ms(random(40));
            driver.run_to(until);
            greedy.retain(|&ticket| driver.answer(ticket).is_none());
            while seed.is_multiple_of(2) && greedy.len() < 3 {
                let offset = Bytes::mib(random(16));
                greedy.push(driver.begin_write("greedy", 9, offset, Bytes::MIB));
            }
            let number = random(8) as usize;
            let open = cameras.iter().position(|camera| camera.number == number);
            match (random(10), open) {
                (0..3, None) if step < 300 => {
                    let start = lengths[number].round_up(Bytes::MIB);
                    gaps.push((number, lengths[number]));
                    let op = open_at(&name(number), start);
                    if let Ok(Reply::Stream { stream, .. }) = driver.ask(op) {
                        let (next, sync) = (driver.now + PERIOD * 2, None);
                        cameras.push(Camera { stream, number, start, written: start, next, sync });
                        opened += 1;
                    }
                }
                (0, Some(at)) if cameras[at].sync.is_none() => {
                    let camera = cameras.swap_remove(at);
                    let status = driver.node.stream(camera.stream).unwrap();
                    let late = status.account.late_requests;
                    assert!(is_scattered || late == 0, "seed {seed}, camera {number}: {late}");
                    blocks += status.account.requests;
                    let closed = driver.close(camera.stream);
                    assert_eq!(closed, Ok(Reply::Durable { upto: camera.written }));
                    lengths[number] = camera.recorded(lengths[number]);
                }
                (1, Some(at)) if cameras[at].sync.is_none() => {
                    let stream = cameras[at].stream;
                    cameras[at].sync = Some(driver.begin(Op::StreamSync { stream }));
                }
                _ => {}
            }
            for camera in &mut cameras {
                if let Some(sync) = camera.sync
                    && let Some(answer) = driver.answer(sync)
                {
                    answer.unwrap();
                    camera.sync = None;
                }
                // An eighth of a block each eighth of a period. Where the test has waited for another, it
                // catches up by its burst at the most.
                let latest = driver.now.saturating_since(Instant::EPOCH).saturating_sub(PERIOD / 2);
                camera.next = camera.next.max(Instant::EPOCH + latest);
                while camera.next <= driver.now {
                    camera.next += PERIOD / 8;
                    let (stream, len_max) = (camera.stream, Bytes::kib(128));
                    let asked = Op::StreamRoom { stream, len_max };
                    let room = match is_scattered {
                        true => Some(driver.ask(asked)),
                        false => driver.at_once_or_none(asked),
                    };
                    let span = match room {
                        Some(Ok(Reply::Room { room: span })) => span,
                        Some(Err(Error::PoolFull { .. })) if is_scattered => {
                            camera.next = Instant::MAX;
                            break;
                        }
                        _ => panic!("seed {seed}, step {step}, camera {}: {room:?}", camera.number),
                    };
                    let bytes = pattern(camera.number as u64, camera.written, span.len);
                    driver.memory.put(span.offset, &bytes);
                    driver.done(Op::StreamWrite { stream, len: span.len });
                    camera.written += span.len;
                    if camera.written >= Bytes::mib(20) {
                        camera.next = Instant::MAX;
                    }
                }
            }
        }
        for camera in cameras {
            let account = driver.node.stream(camera.stream).unwrap().account;
            let wrong = account.late_requests + account.underruns;
            assert!(is_scattered || wrong == 0, "seed {seed}, camera {}", camera.number);
            driver.close(camera.stream).unwrap();
            lengths[camera.number] = camera.recorded(lengths[camera.number]);
        }
        let mut driver = driver.after_a_power_cut();
        for (number, &length) in lengths.iter().enumerate() {
            let volume = driver.node.volume(&name(number)).unwrap();
            assert_eq!(volume.length, length, "seed {seed}, camera {number}");
            let mut at = Bytes::ZERO;
            while at < length {
                let got = driver.read(&name(number), at, Bytes::MIB).unwrap();
                let mut want = pattern(number as u64, at, Bytes::MIB.min(length - at));
                let is_here = |&&(of, from): &&(usize, Bytes)| {
                    of == number && from > at && from < at + Bytes::MIB && from < length
                };
                if let Some((_, from)) = gaps.iter().find(is_here) {
                    want[(*from - at).as_usize()..].fill(0);
                }
                let same = got.iter().zip(&want).take_while(|(a, b)| a == b).count();
                assert!(same == want.len(), "seed {seed}, camera {number} at {at} and {same}");
                at += Bytes::MIB;
            }
        }
        for number in (0..pieces).skip(1).step_by(2) {
            driver.done(delete(&between(number)));
        }
        driver.done(delete("greedy"));
        check_space(&mut driver, 8);
    }
    (opened, blocks)
}

fn open_at(volume: &str, start: Bytes) -> Op {
    open(volume, Mode::Write, camera(), start)
}

/// Numbers below what is asked for.
fn sim_random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) % below
    }
}

/// A member has another contract, or none any more, while its group's command waits for the disk.
#[test]
fn a_groups_command_that_waits_is_not_lost_with_its_last_member() {
    for refused in [false, true] {
        let mut driver = cameras(2);
        driver.volume("other", Bytes::mib(4));
        let streams = record(&mut driver, 1);
        driver.run(PERIOD * 4);
        driver.disks[0].holds = true;
        let other = driver.begin_write("other", 9, Bytes::ZERO, Bytes::MIB);
        driver.put_all(streams[0], 0, Bytes::mib(1));
        let rate = if refused { 95 << 20 } else { 2 << 20 };
        let other_rate = contract(Rate::per_second(rate), Bytes::MIB, Bytes::ZERO);
        let change = Op::StreamChange { stream: streams[0], contract: other_rate };
        let changed = driver.at_once(change);
        assert_eq!(changed.is_err(), refused, "{changed:?}");
        driver.disks[0].holds = false;
        driver.wait(other).unwrap();
        driver.put_all(streams[0], 0, Bytes::mib(2));
        assert_eq!(driver.done_durable(streams[0]), Bytes::mib(3));
        assert_eq!(driver.close(streams[0]), Ok(Reply::Durable { upto: Bytes::mib(3) }));
        check(&mut driver, 0, Bytes::mib(3));
        // Its groups are over: as many as ever are admitted.
        let quick = contract(Rate::per_second(8 << 20), Bytes::MIB, Bytes::ZERO);
        let (one, two) = (name(0), name(1));
        for volume in [&one, &two] {
            driver.stream(open(volume, Mode::Write, quick, Bytes::mib(3)));
        }
    }
}

/// On a full disk, within the room that its program was told already: every sync is answered, and the close.
#[test]
fn each_sync_within_a_block_is_answered_on_a_full_disk() {
    let mut driver = cameras(2);
    let other = driver.writer(&name(1), camera());
    let stream = driver.stream(open_window(&name(0), Mode::Write, camera(), 3)).0;
    let Ok(Reply::Room { room: span }) = driver.ask(Op::WindowNext { stream }) else {
        panic!("no room")
    };
    driver.memory.put(span.offset, &pattern(0, Bytes::ZERO, span.len));
    while let Ok(Reply::Room { room: span }) =
        driver.ask(Op::StreamRoom { stream: other, len_max: Bytes::MIB })
    {
        driver.done(Op::StreamWrite { stream: other, len: span.len });
    }
    assert_eq!(driver.node.space().free, Bytes::ZERO);
    let mut upto = Bytes::ZERO;
    for len in [100, 200, 300].map(Bytes::kib) {
        driver.done(Op::WindowMoved { stream, len });
        upto += len;
        assert_eq!(driver.done_durable(stream), upto);
    }
    driver.done(Op::WindowMoved { stream, len: Bytes::kib(100) });
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::kib(700) }));
    assert!(driver.close(other).is_ok());
    let mut driver = driver.after_a_power_cut();
    check(&mut driver, 0, Bytes::kib(700));
}

const SECOND: Duration = Duration::from_secs(1);

/// One disk of 8 GiB on which a command costs 60 ms, and 10 ms for each MiB, and so many cameras that are written
/// together, a MiB in a period each. What is set aside for best effort is less than a MiB costs; and others are
/// promised nearly all that the disk has left, and ask for nothing. So a MiB goes in the slack only for a period
/// behind a command of the group.
fn on_a_slow_disk(count: usize, period: Duration) -> (Driver, Vec<StreamId>) {
    let mut setup = Setup::new(1).with(|config| {
        (config.memory, config.commit_interval) = (Bytes::GIB, SECOND * 12);
    });
    setup.profiles = vec![profile(Bytes::GIB * 8, FIXED * 6, FLUSH)];
    let mut driver = setup.open();
    let rate = Rate::per_second((1 << 20) * 1_000 / period.as_millis());
    let camera = contract(rate, Bytes::MIB, Bytes::ZERO);
    let mut streams = Vec::new();
    for number in 0..count {
        driver.done(create(&name(number), Bytes::mib(256), thin(&[0])));
        streams.push(driver.writer(&name(number), camera));
    }
    let idle = |number: u64| format!("idle{number}");
    let volumes = 24;
    (0..volumes).for_each(|number| driver.volume(&idle(number), Bytes::MIB));
    let mut promise = |number, kib| {
        let answer = driver.ask(service(&idle(number), in_time(Bytes::kib(kib), period, period)));
        assert!(answer.is_ok() || is_refused(&answer), "{answer:?}");
        answer.is_ok()
    };
    let count = (0..volumes).take_while(|&number| promise(number, 4)).count() as u64;
    // As much as fits, to 64 KiB: they take 60 to 70 ms each.
    let longest: Vec<Option<u64>> = (0..count)
        .map(|number| (1..=16).rev().map(|units| 64 * units).find(|&kib| promise(number, kib)))
        .collect();
    assert_ne!(longest.last(), Some(&Some(1024)), "{longest:?}");
    driver.run(period * 4);
    (driver, streams)
}

/// More members have something to be written within a block than go in one command, and than the slack covers
/// until the group's next turn: they go then, though nobody asks for anything more.
#[test]
fn all_members_may_sync_at_once() {
    let (mut driver, streams) = on_a_slow_disk(62, SECOND);
    driver.volume("greedy", Bytes::mib(64));
    let mut greedy = Vec::new();
    let mut go_on = |driver: &mut Driver| {
        greedy.retain(|&ticket| driver.answer(ticket).is_none());
        for number in greedy.len()..12 {
            let offset = Bytes::mib(number as u64 * 5 % 64);
            greedy.push(driver.begin_write("greedy", 9, offset, Bytes::kib(64)));
        }
    };
    go_on(&mut driver);
    let (asked, upto) = (driver.now, Bytes::kib(800));
    let mut syncs = Vec::new();
    for (number, &stream) in streams.iter().enumerate() {
        driver.put_all(stream, number as u64, upto);
        let most = driver.node.sync_time_max(Some(stream)).unwrap();
        syncs.push((driver.begin(Op::StreamSync { stream }), most));
    }
    while !syncs.is_empty() {
        assert!(driver.step(Instant::MAX));
        go_on(&mut driver);
        let (now, open) = (driver.now, syncs.len());
        syncs.retain(|&(ticket, most)| {
            assert!(now - asked <= most, "{open} are not answered after {most:?}");
            driver.answer(ticket).is_none()
        });
    }
    for (number, stream) in streams.into_iter().enumerate() {
        assert_eq!(driver.node.stream(stream).unwrap().account.late_requests, 0);
        assert_eq!(driver.close(stream), Ok(Reply::Durable { upto }));
        check(&mut driver, number, upto);
    }
}

/// The device fails on a command of a group of which each block is then tried by itself, and the slack covers
/// only a few of them. The others go all the same.
#[test]
fn a_block_that_is_tried_by_itself_needs_no_slack() {
    let (mut driver, streams) = on_a_slow_disk(40, SECOND);
    driver.put_all(streams[0], 0, Bytes::MIB);
    driver.run(SECOND * 2);
    let bad = driver.place(&name(0), Bytes::ZERO) + Bytes::mib(5);
    driver.break_at(DISK, bad..bad + Bytes::kib(4), Some(Direction::Write));
    for (number, &stream) in streams.iter().enumerate() {
        driver.put_all(stream, number as u64, Bytes::MIB);
    }
    let syncs: Vec<_> =
        streams.iter().map(|&stream| driver.begin(Op::StreamSync { stream })).collect();
    driver.run(SECOND * 200);
    let results: Vec<_> = syncs.into_iter().map(|ticket| driver.answer(ticket)).collect();
    let count = |is: fn(&Option<Result<Reply, Error>>) -> bool| {
        results.iter().filter(|result| is(result)).count()
    };
    let (good, failed) =
        (count(|it| matches!(it, Some(Ok(_)))), count(|it| matches!(it, Some(Err(_)))));
    assert_eq!((good, failed), (39, 1), "the others are not answered");
}
