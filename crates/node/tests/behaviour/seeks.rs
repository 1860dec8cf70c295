//! A reader goes elsewhere: it has what is there by the instant that it is told, its contract
//! in full from the other one on, and nobody else is late for it.

use crate::driver::*;
use node::{Contract, Error, Mode, Op, Policy, Priority, Reply, StreamId};
use units::{Bytes, Duration, Instant};

const PERIOD: Duration = Duration::from_micros(62_500);

fn film(disks: usize) -> Driver {
    let mut driver = Setup::new(disks).open();
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    driver
}

pub fn seek(driver: &mut Driver, stream: StreamId, to: Bytes) -> (Instant, Instant) {
    match driver.at_once(Op::StreamSeek { stream, to }) {
        Ok(Reply::Ready { at, steady, .. }) => (at, steady),
        other => panic!("{other:?}"),
    }
}

/// From wherever to wherever: the bytes are those of the new place, by the time that was
/// stated; and from the instant from which the contract holds in full, it does.
#[test]
fn what_is_stated_of_a_seek_is_kept() {
    for disks in [1, 2] {
        for burst in [0, 1, 5] {
            let mut driver = film(disks);
            let contract = Contract { burst: BLOCK * burst, ..usual() };
            let stream = driver.reader("film", contract);
            let other = driver.reader("film", usual());
            let mut seed = 3u64;
            for step in 0..40u64 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let to = Bytes::new((seed >> 20) % (14 << 20));
                let (at, steady) = seek(&mut driver, stream, to);
                assert!(at >= driver.now && steady >= driver.now);
                // Before the disk has begun anything else, or in the middle of it.
                if step % 3 == 0 {
                    driver.run(ms(step));
                    continue;
                }
                let (offset, bytes) = driver.next(stream, Bytes::mib(1));
                assert_eq!(offset, to);
                assert!(bytes == pattern(1, to, Bytes::new(bytes.len() as u64)));
                assert!(driver.now <= at, "{step}: {:?} after it was stated", driver.now - at);
                driver.run_to(steady);
                // All of the burst at once was taken or can be; then the rate.
                let mut moved = Bytes::ZERO;
                for _ in 0..8 {
                    let before = driver.now;
                    let (_, bytes) = driver.next(stream, BLOCK);
                    moved += Bytes::new(bytes.len() as u64);
                    let _ = before;
                    assert!(driver.now <= steady.max(at) + RATE.time_for(moved) + PERIOD);
                }
                driver.next(other, BLOCK);
            }
            let account = driver.node.stream(stream).unwrap().account;
            assert_eq!((account.late_requests, account.underruns), (0, 0), "{disks} {burst}");
            let account = driver.node.stream(other).unwrap().account;
            assert_eq!((account.late_requests, account.underruns), (0, 0));
            assert_eq!(driver.close(stream), Ok(Reply::Done));
            assert_eq!(driver.close(other), Ok(Reply::Done));
            assert_eq!(driver.node.status(driver.now).memory.windows, Bytes::ZERO);
        }
    }
}

/// Where the new place is in the window already, it is there now, and no disk is asked for it
/// again.
#[test]
fn what_the_window_has_is_kept() {
    let mut driver = film(1);
    let contract = Contract { burst: BLOCK * 8, ..usual() };
    let stream = driver.reader("film", contract);
    driver.next(stream, BLOCK);
    driver.run(Duration::from_secs(2));
    let before = driver.journal.len();
    let to = BLOCK * 3 + Bytes::new(7);
    let (at, _) = seek(&mut driver, stream, to);
    assert_eq!(at, driver.now);
    let (offset, bytes) = driver.next(stream, BLOCK);
    assert!(offset == to && bytes == pattern(1, to, BLOCK - Bytes::new(7)));
    driver.run(Duration::from_secs(2));
    let asked: Vec<Bytes> = driver
        .since(before)
        .iter()
        .filter_map(|done| done.action.transfer())
        .map(|(range, _)| range.start)
        .collect();
    // The window of ten blocks has moved on by three, and by the one that was read.
    assert_eq!(asked.len(), 3, "{asked:?}");
}

/// A seek in an idle pool is served at once: the turn that an idle disk served ahead of its
/// time is not waited for.
#[test]
fn an_idle_disk_serves_a_seek_at_once_and_once_a_period() {
    let mut driver = film(1);
    let stream = driver.reader("film", Contract { burst: BLOCK * 30, ..usual() });
    driver.run(ms(400));
    let from = driver.now;
    // The disk may be at one block of the window before.
    let (at, _) = seek(&mut driver, stream, Bytes::mib(8));
    assert!(at - from <= PERIOD * 2, "{:?}", at - from);
    let (offset, _) = driver.next(stream, BLOCK);
    assert_eq!(offset, Bytes::mib(8));
    assert!(driver.now - from <= cost(BLOCK) * 2 + ms(20), "{:?}", driver.now - from);
    // Again and again, while others want the disk all the time: a request for each turn that
    // comes anew, once a period, and one that the disk serves with it ahead of its own.
    let others = |driver: &mut Driver, reads: &mut Vec<node::Ticket>| {
        reads.retain(|&ticket| match driver.answer(ticket) {
            Some(Ok(Reply::Data { bytes: span, .. })) => {
                driver.done(Op::Release { span });
                false
            }
            _ => true,
        });
        while reads.len() < 4 {
            reads.push(driver.begin(read("film", Bytes::mib(2), BLOCK)));
        }
    };
    let mut reads = Vec::new();
    driver.run(Duration::from_secs(1));
    others(&mut driver, &mut reads);
    let (from, before) = (driver.now, driver.node.stream(stream).unwrap().account.requests);
    for step in 0..400 {
        seek(&mut driver, stream, Bytes::mib(step % 14));
        others(&mut driver, &mut reads);
        driver.run(ms(5));
    }
    let periods = (driver.now - from).as_nanos() / PERIOD.as_nanos();
    let requests = driver.node.stream(stream).unwrap().account.requests - before;
    assert!((periods - 2..=periods * 2 + 2).contains(&requests), "{requests} in {periods}");
}

/// A seek takes the asks along that wait, and takes nothing else with it: beyond the data it is
/// refused, and all is as it was.
#[test]
fn who_waits_has_the_data_of_the_new_place_and_a_seek_beyond_the_end_changes_nothing() {
    let mut driver = film(1);
    let stream = driver.reader("film", usual());
    let waits = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
    let to = Bytes::mib(16) + Bytes::new(1);
    let beyond = Err(Error::BeyondEnd { size: Bytes::mib(16) });
    assert_eq!(driver.at_once(Op::StreamSeek { stream, to }), beyond);
    seek(&mut driver, stream, Bytes::mib(5));
    let Ok(Reply::Data { bytes: span, offset }) = driver.wait(waits) else { panic!("no data") };
    assert_eq!(offset, Bytes::mib(5));
    assert!(driver.bytes(span) == pattern(1, offset, span.len));
    // What was given before is void.
    seek(&mut driver, stream, Bytes::mib(16));
    let void = driver.at_once(Op::StreamAdvance { stream, len: span.len });
    assert!(matches!(void, Err(Error::Invalid { .. })), "{void:?}");
    assert_eq!(driver.ask(Op::StreamRead { stream, len_max: BLOCK }), Ok(Reply::End));
    seek(&mut driver, stream, Bytes::ZERO);
    assert_eq!(driver.next(stream, BLOCK).0, Bytes::ZERO);
}

/// A command that the disk has when the window leaves its block ends in memory that the new
/// window does without until then; and the stream is closed only when it has ended.
#[test]
fn a_command_under_way_keeps_its_memory() {
    let mut driver = film(1);
    let stream = driver.reader("film", usual());
    driver.run(ms(1));
    driver.disks[0].holds = true;
    driver.run(ms(1));
    assert_eq!(driver.disks[0].flights.len(), 1, "a block of the first window");
    seek(&mut driver, stream, Bytes::mib(8));
    let waits = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
    driver.disks[0].holds = false;
    for block in 0..12u64 {
        let waits = match block {
            0 => waits,
            _ => driver.begin(Op::StreamRead { stream, len_max: BLOCK }),
        };
        let Ok(Reply::Data { bytes: span, offset }) = driver.wait(waits) else { panic!("no data") };
        assert_eq!(offset, Bytes::mib(8) + BLOCK * block);
        assert!(driver.bytes(span) == pattern(1, offset, BLOCK));
        driver.done(Op::StreamAdvance { stream, len: BLOCK });
    }
    // Closed with a stray under way.
    seek(&mut driver, stream, Bytes::ZERO);
    while driver.disks[0].flights.is_empty() {
        driver.step(Instant::MAX);
    }
    driver.disks[0].holds = true;
    seek(&mut driver, stream, Bytes::mib(12));
    let closed = driver.begin(Op::StreamClose { stream });
    driver.run(Duration::from_secs(1));
    assert_eq!(driver.answer(closed), None, "a disk reads into its memory");
    driver.disks[0].holds = false;
    assert_eq!(driver.wait(closed), Ok(Reply::Done));
    assert_eq!(driver.node.status(driver.now).memory.windows, Bytes::ZERO);
}

/// The shared kind jumps, too, also one whose window is long; and under policies that do not
/// look at the exact slack, one of which keeps no contracts and takes them without admission.
#[test]
fn seeks_of_shared_windows_long_windows_and_other_policies() {
    let policies = [Policy::SLACK, Policy::DELTA_L, Policy::EDF];
    for policy in policies {
        let keeps = policy != Policy::EDF;
        let setup = Setup::new(1).with(|config| {
            (config.policy, config.admission) = (policy, keeps);
        });
        let mut driver = setup.open();
        driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
        let small = contract(RATE / 16, Bytes::kib(4), Bytes::mib(8) * 2 + Bytes::mib(1));
        let long = driver.stream(open_window("film", Mode::Read, small, 3)).0;
        let shared = driver.stream(open_window("film", Mode::Read, usual(), 4)).0;
        for stream in [long, shared] {
            assert_eq!(driver.node.stream(stream).unwrap().promised, keeps, "{policy:?}");
            let (at, steady) = seek(&mut driver, stream, Bytes::mib(9));
            assert!(at <= steady && steady > driver.now);
            let Ok(Reply::Data { bytes: span, offset }) = driver.ask(Op::WindowNext { stream })
            else {
                panic!("no data")
            };
            assert_eq!(offset, Bytes::mib(9));
            assert!(driver.bytes(span) == pattern(1, offset, span.len));
            assert!(driver.now <= at, "{policy:?}: {:?}", driver.now - at);
            let len = span.len;
            driver.done(Op::WindowMoved { stream, len });
            assert_eq!(driver.node.stream(stream).unwrap().position, Bytes::mib(9) + len);
        }
    }
}

/// A program that does not wait for its window begins at once. Where it plays already, that says
/// how it stands and changes nothing: what it was given stays given. A writer does not begin so.
#[test]
fn to_begin_at_once_changes_nothing_for_a_reader_that_plays() {
    let mut driver = film(1);
    let burst = Contract { burst: BLOCK * 30, ..usual() };
    let from = driver.now;
    let stream = driver.reader("film", burst);
    assert!(matches!(driver.at_once(Op::StreamBegin { stream }), Ok(Reply::Ready { .. })));
    assert_eq!(driver.next(stream, BLOCK).0, Bytes::ZERO);
    assert!(driver.now - from <= PERIOD * 2, "{:?}, not a window's time", driver.now - from);
    let Ok(Reply::Data { bytes: span, .. }) = driver.ask(Op::StreamRead { stream, len_max: BLOCK })
    else {
        panic!("no data")
    };
    assert!(matches!(driver.at_once(Op::StreamBegin { stream }), Ok(Reply::Ready { .. })));
    driver.done(Op::StreamAdvance { stream, len: span.len });
    assert_eq!(driver.next(stream, BLOCK).0, BLOCK * 2);
    driver.volume("new", Bytes::MIB);
    let stream = driver.writer("new", usual());
    assert_eq!(driver.at_once(Op::StreamBegin { stream }), Err(Error::WrongMode));
}

/// A jump within the first block, when the stream's next turn is a period away: the block behind
/// the window may come later than a program needs it that begins at once, and what is stated
/// counts with that.
#[test]
fn what_is_stated_of_a_seek_counts_with_the_block_behind_the_window() {
    let mut driver = film(1);
    let stream = driver.reader("film", usual());
    driver.run(Duration::from_secs(2));
    // The second jump has the stream's turn anew, and uses it.
    seek(&mut driver, stream, BLOCK);
    seek(&mut driver, stream, BLOCK * 2);
    driver.run(cost(BLOCK) * 2);
    for mib in 0..20 {
        let at = Bytes::mib(mib % 14);
        driver.begin(read_as("film", at, Bytes::MIB, Priority::Interactive));
    }
    let (_, steady) = seek(&mut driver, stream, BLOCK * 3 - Bytes::kib(4));
    // All of the window is there, and the next one is promised for two periods after that.
    assert!(steady > driver.now);
    driver.run_to(steady);
    let from = driver.now;
    let mut moved = Bytes::ZERO;
    for _ in 0..60 {
        // As soon as its contract lets it have them.
        moved += Bytes::kib(4);
        let allowed = from + RATE.time_for(moved.saturating_sub(BLOCK));
        driver.run_to(allowed.max(driver.now));
        let (_, bytes) = driver.next(stream, Bytes::kib(4));
        assert_eq!(bytes.len(), 4096);
        assert!(driver.now <= allowed + Duration::from_nanos(9), "{:?}", driver.now - allowed);
    }
    let account = driver.node.stream(stream).unwrap().account;
    assert_eq!((account.late_requests, account.underruns), (0, 0));
}

/// After a jump over two disks the contract holds in full when the window can have been filled by
/// both, however few of its blocks are asked for at first.
#[test]
fn a_window_over_two_disks_is_filled_by_both() {
    let mut driver = film(2);
    let burst = Contract { burst: BLOCK * 80, ..usual() };
    let (stream, window) = driver.stream(open("film", Mode::Read, burst, Bytes::ZERO));
    driver.run(Duration::from_secs(10));
    let (_, steady) = seek(&mut driver, stream, Bytes::mib(8));
    let took = steady - driver.now;
    assert!(took <= RATE.time_for(window), "{took:?} for {window}");
}
