//! What a writer fills beyond its contract's rate: it is taken while its window has room for it,
//! and is written all the same in the time that the contract says.

use crate::driver::*;
use node::{Mode, Op, Priority, Reply, StreamId};
use units::{Bytes, Duration, Instant};

const PERIOD: Duration = Duration::from_micros(62_500);

fn pool(disks: usize) -> Driver {
    let mut driver = Setup::new(disks).with(|config| config.memory = Bytes::mib(128)).open();
    driver.recorded("other", Bytes::mib(40), Bytes::mib(24), 1);
    driver.volume("film", Bytes::mib(8));
    driver
}

/// The writer fills a block, where it is given room for it by this instant.
fn fill(driver: &mut Driver, stream: StreamId, len: Bytes, until: Instant) -> bool {
    let at = driver.node.stream(stream).expect("open").position;
    let ticket = driver.begin(Op::StreamRoom { stream, len_max: len });
    driver.run_to(until);
    match driver.answer(ticket) {
        Some(Ok(Reply::Room { room: span })) => {
            driver.memory.put(span.offset, &pattern(2, at, span.len));
            driver.done(Op::StreamWrite { stream, len: span.len });
            true
        }
        None => false,
        other => panic!("{other:?}"),
    }
}

/// Others want more of the disks than there is for half a second, nearer to where the heads are
/// than what the writer fills.
fn others_want_all(driver: &mut Driver) {
    for number in 0..driver.disks.len() as u64 * 40 {
        let at = Bytes::mib(number % 24);
        driver.begin(read_as("other", at, Bytes::MIB, Priority::Interactive));
    }
}

/// When the stream's blocks begin to be written, in the order of the journal.
fn written(driver: &Driver, from: usize) -> Vec<Instant> {
    let is_block = |done: &&Done| match done.action {
        node::DiskAction::Write { .. } => done.action.transfer().is_some(),
        _ => false,
    };
    driver.since(from).iter().filter(is_block).map(|done| done.started).collect()
}

/// Excess is taken from the first byte on while nothing waits that was filled before, and not
/// while something does: the program is at its contract's rate then.
#[test]
fn excess_is_taken_only_while_what_was_filled_before_does_not_wait() {
    let mut driver = pool(1);
    let stream = driver.writer("film", usual());
    driver.run(Duration::from_secs(1));
    driver.disks[0].holds = true;
    let from = driver.now;
    // The first is paid for; when the second is asked for the disk has the first; the third
    // would be the second that waits.
    assert!(fill(&mut driver, stream, BLOCK, from) && fill(&mut driver, stream, BLOCK, from));
    assert!(!fill(&mut driver, stream, BLOCK, from), "one waits");
    assert_eq!(driver.node.stream(stream).unwrap().account.excess, BLOCK);
}

/// A block of excess that still waits when the stream's turn comes has it, on one disk and on two: it
/// is written in the time that the contract says, whatever others want of the disks.
#[test]
fn excess_that_waits_has_the_turn_of_its_stream() {
    // On two disks the window has room for it where the program may touch two blocks at once.
    let waits = [(1, BLOCK, RATE, Bytes::ZERO), (2, Bytes::MIB, RATE * 8, Bytes::mib(2))];
    for (disks, block, rate, burst) in waits {
        let mut driver = pool(disks as usize);
        let stream = driver.writer("film", contract(rate, block, burst));
        driver.run(Duration::from_secs(1));
        let (from, before) = (driver.now, driver.journal.len());
        for _ in 0..disks {
            assert!(fill(&mut driver, stream, block, from), "paid for");
        }
        assert_eq!(driver.node.stream(stream).unwrap().account.excess, Bytes::ZERO);
        others_want_all(&mut driver);
        driver.run(rate.time_for(block) / 2);
        let now = driver.now;
        assert!(fill(&mut driver, stream, block, now), "the disks have what was filled before");
        assert!(driver.node.stream(stream).unwrap().account.excess >= block / 2);
        driver.run_to(from + rate.time_for(block) * disks * 2);
        assert_eq!(written(&driver, before).len() as u64, disks + 1);
    }
}

/// Also where nothing waits, excess is not taken while its turn on its disk is so far that the window
/// would be full before: on two disks a block that was paid for has a turn of two blocks' time.
#[test]
fn excess_is_not_taken_while_its_turn_is_too_far() {
    let (block, rate) = (Bytes::MIB, RATE * 8);
    let mut driver = pool(2);
    let stream = driver.writer("film", contract(rate, block, Bytes::ZERO));
    driver.run(Duration::from_secs(1));
    let (from, before) = (driver.now, driver.journal.len());
    for _ in 0..2 {
        assert!(fill(&mut driver, stream, block, from), "paid for, or with a turn at once");
    }
    let half = from + rate.time_for(block) / 2;
    driver.run_to(half);
    assert_eq!(written(&driver, before).len(), 2, "nothing waits");
    assert!(!fill(&mut driver, stream, block, half), "the next turn of the first disk is far");
}

/// What an idle disk wrote of excess took no turn of the contract: what is filled after it at the
/// contract's rate is written at once, also where others want all of the disk by then.
#[test]
fn excess_takes_no_turn_that_the_contract_needs() {
    let mut driver = pool(1);
    let stream = driver.writer("film", usual());
    driver.run(Duration::from_secs(1));
    for _ in 0..12 {
        let until = driver.now + ms(12);
        assert!(fill(&mut driver, stream, BLOCK, until));
        driver.run_to(until);
    }
    driver.run(ms(30));
    assert!(driver.node.stream(stream).unwrap().account.excess >= BLOCK * 8);
    others_want_all(&mut driver);
    for _ in 0..3 {
        let (from, before) = (driver.now, driver.journal.len());
        assert!(fill(&mut driver, stream, BLOCK, from));
        driver.run(PERIOD);
        assert_eq!(written(&driver, before).len(), 1);
    }
}

/// A block of excess that waits has the turn of the next block, which then waits: a writer that is
/// within its rate again, and so has a block for each turn before that comes, never fills its
/// window behind a block that has none.
#[test]
fn the_oldest_block_has_the_turn() {
    let mut driver = pool(1);
    let stream = driver.writer("film", contract(RATE, BLOCK, BLOCK * 2));
    driver.run(Duration::from_secs(1));
    let start = driver.now;
    for _ in 0..2 {
        assert!(fill(&mut driver, stream, BLOCK, start), "paid for");
    }
    driver.run(ms(40));
    let from = driver.now;
    // Others have the disk until the next block is there, which is before its turn.
    driver.begin(read_as("other", Bytes::ZERO, Bytes::MIB, Priority::Interactive));
    driver.disks[0].holds = true;
    assert!(fill(&mut driver, stream, BLOCK, from), "the disk has had time");
    assert!(driver.node.stream(stream).unwrap().account.excess > Bytes::ZERO);
    driver.run_to(from + PERIOD);
    let before = driver.journal.len();
    assert!(fill(&mut driver, stream, BLOCK, from + PERIOD), "at its time");
    driver.disks[0].holds = false;
    driver.run(PERIOD);
    let write = |done: &Done| match done.action {
        node::DiskAction::Write { offset, .. } => Some((offset, done.report.is_some())),
        _ => None,
    };
    let mut writes: Vec<(Bytes, bool)> = driver.since(before).iter().filter_map(write).collect();
    writes.sort_unstable();
    let had_turn: Vec<bool> = writes.into_iter().map(|(_, turn)| turn).collect();
    assert_eq!(had_turn, [true, false], "excess has the turn, and the block behind it the slack");
}

/// What a program has filled ahead of its playout point comes under contract when the playout point
/// has come past it, also where its turn is later: it goes before best effort then.
#[test]
fn a_block_is_under_contract_once_the_playout_point_is_past_it() {
    let mut driver = pool(1);
    let burst = contract(RATE, BLOCK, BLOCK * 2);
    let stream = driver.stream(open_window("film", Mode::Write, burst, 3)).0;
    driver.run(Duration::from_secs(1));
    let (from, before) = (driver.now, driver.journal.len());
    for at in 0..4 {
        driver.begin(read_as("other", Bytes::mib(at), Bytes::MIB, Priority::Interactive));
    }
    driver.disks[0].holds = true;
    for block in 0..3 {
        let Ok(Reply::Room { room: span }) = driver.at_once(Op::WindowNext { stream }) else {
            panic!("no room for block {block}")
        };
        driver.memory.put(span.offset, &pattern(2, BLOCK * block, span.len));
        driver.done(Op::WindowMoved { stream, len: span.len });
    }
    // Two blocks are paid for, with turns at once and in a period; the third comes to be then.
    assert_eq!(driver.node.stream(stream).unwrap().account.excess, Bytes::ZERO);
    driver.run_to(from + PERIOD * 3 / 2);
    driver.disks[0].holds = false;
    driver.run(PERIOD * 4);
    let is_write = |done: &Done| matches!(done.action, node::DiskAction::Write { .. });
    let kinds: Vec<bool> = driver.since(before).iter().take(4).map(is_write).collect();
    assert_eq!(kinds, [false, true, true, true], "behind the read that the disk had");
}

/// A writer that goes elsewhere gains nothing by it: while it goes nothing more of what it has
/// filled counts as excess, so that it is there when its contract has come up with it.
#[test]
fn a_writer_that_goes_elsewhere_gains_no_excess_by_it() {
    let mut driver = pool(1);
    let slow = contract(RATE / 8, BLOCK, Bytes::ZERO);
    let stream = driver.stream(open_window("film", Mode::Write, slow, 3)).0;
    driver.run(Duration::from_secs(10));
    driver.disks[0].holds = true;
    let from = driver.now;
    for block in 0..3 {
        let Ok(Reply::Room { room: span }) = driver.at_once(Op::WindowNext { stream }) else {
            panic!("no room for block {block}")
        };
        driver.memory.put(span.offset, &pattern(2, BLOCK * block, span.len));
        driver.done(Op::WindowMoved { stream, len: span.len });
    }
    assert_eq!(driver.node.stream(stream).unwrap().account.excess, BLOCK, "the third lags");
    let gone = driver.begin(Op::StreamSeek { stream, to: Bytes::mib(1) });
    driver.disks[0].holds = false;
    assert!(matches!(driver.wait(gone), Ok(Reply::Ready { .. })));
    assert!(driver.now - from >= PERIOD * 8, "{:?}", driver.now - from);
    assert_eq!(driver.node.stream(stream).unwrap().account.excess, BLOCK);
}
