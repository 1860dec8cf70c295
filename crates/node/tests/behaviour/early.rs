//! The first bytes at a new place: they come ahead of their block, are not read again with it,
//! and a window that goes elsewhere holds nothing that only looks like a block.

use crate::driver::*;
use crate::seeks::seek;
use node::{Mode, Op, Reply, StreamId};
use units::{Bytes, Direction, Duration};

/// A reader in blocks of this length, whose window is full, in a pool that does nothing else.
fn reader(block: Bytes, is_shared: bool) -> (Driver, StreamId) {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(16), Bytes::mib(16), 1);
    let contract = contract(RATE, block, Bytes::ZERO);
    let stream = match is_shared {
        true => driver.stream(open_window("film", Mode::Read, contract, 3)).0,
        false => driver.reader("film", contract),
    };
    driver.run(Duration::from_secs(4));
    (driver, stream)
}

/// The next piece, of which the program uses so much at the most: where, and how long it is. Its
/// bytes are those of the film.
fn part(driver: &mut Driver, stream: StreamId, is_shared: bool, used: Bytes) -> (Bytes, Bytes) {
    let len_max = Bytes::mib(1);
    let ask =
        if is_shared { Op::WindowNext { stream } } else { Op::StreamRead { stream, len_max } };
    let Ok(Reply::Data { bytes: span, offset }) = driver.ask(ask) else { panic!("no data") };
    assert!(driver.bytes(span) == pattern(1, offset, span.len), "{span:?} at {offset}");
    let len = span.len.min(used);
    let done = match is_shared {
        true => Op::WindowMoved { stream, len },
        false => Op::StreamAdvance { stream, len },
    };
    driver.done(done);
    (offset, span.len)
}

/// All of the next piece is used.
fn piece(driver: &mut Driver, stream: StreamId, is_shared: bool) -> (Bytes, Bytes) {
    part(driver, stream, is_shared, Bytes::MAX)
}

/// What disks have read since, in the order in which they had done so.
fn reads(driver: &Driver, from: usize) -> Vec<Bytes> {
    let read = |done: &Done| match done.action.transfer()? {
        (range, Direction::Read) => Some(range.end - range.start),
        _ => None,
    };
    driver.since(from).iter().filter_map(read).collect()
}

#[test]
fn the_first_bytes_come_ahead_of_their_block_and_are_not_read_again() {
    let places = [Bytes::mib(8), Bytes::mib(8) + Bytes::kib(300) + Bytes::new(7)];
    for (to, is_shared) in places.into_iter().flat_map(|to| [(to, false), (to, true)]) {
        let (mut driver, stream) = reader(Bytes::MIB, is_shared);
        let (from, before) = (driver.now, driver.journal.len());
        seek(&mut driver, stream, to);
        let first = BLOCK - to % Bytes::kib(4);
        assert_eq!(piece(&mut driver, stream, is_shared), (to, first));
        assert_eq!(driver.now, from + cost(BLOCK));
        let rest = Bytes::mib(9) - to - first;
        assert_eq!(piece(&mut driver, stream, is_shared), (to + first, rest));
        assert_eq!(driver.now, from + cost(BLOCK) + cost(rest));
        assert_eq!(reads(&driver, before), [BLOCK, rest]);
    }
}

/// Where no more is read early, what was is told all the same, while the disk has the block.
#[test]
fn what_came_early_is_told_while_the_rest_of_the_block_is_on_its_way() {
    let (mut driver, stream) = reader(Bytes::kib(256), false);
    let to = Bytes::mib(8) + Bytes::kib(100);
    seek(&mut driver, stream, to);
    driver.run(cost(BLOCK) + ms(1));
    let from = driver.now;
    assert_eq!(piece(&mut driver, stream, false), (to, BLOCK));
    assert_eq!(driver.now, from, "it has been there for a millisecond");
}

/// Little that is left of a block comes with it.
#[test]
fn the_end_of_a_block_is_not_read_early() {
    let (mut driver, stream) = reader(Bytes::kib(256), false);
    let (to, before) = (Bytes::mib(8) + Bytes::kib(156), driver.journal.len());
    seek(&mut driver, stream, to);
    assert_eq!(piece(&mut driver, stream, false), (to, Bytes::kib(100)));
    assert_eq!(reads(&driver, before)[0], Bytes::kib(256));
}

/// Of a block of which only what lies behind early bytes was read, a program that goes on within it
/// has what is there; one that goes back before them has all of it read.
#[test]
fn who_goes_back_before_early_bytes_has_the_block_read_anew() {
    for is_shared in [false, true] {
        let (mut driver, stream) = reader(Bytes::MIB, is_shared);
        seek(&mut driver, stream, Bytes::mib(8) + Bytes::kib(300));
        driver.run(Duration::from_secs(4));
        let (to, before) = (Bytes::mib(8) + Bytes::kib(500), driver.journal.len());
        seek(&mut driver, stream, to);
        let there = part(&mut driver, stream, is_shared, BLOCK);
        assert_eq!(there, (to, Bytes::kib(524)));
        assert!(reads(&driver, before).is_empty(), "it was there");
        let mut at = Bytes::mib(8);
        seek(&mut driver, stream, at);
        while at < Bytes::mib(9) {
            let (offset, len) = piece(&mut driver, stream, is_shared);
            assert_eq!(offset, at);
            at += len;
        }
    }
}
