//! Requests of several programs that lie one behind the other, served by one command: what becomes
//! of each of them is its own.

use crate::driver::*;
use node::{DiskAction, Error, Op, Reply, Ticket};
use std::ops::Range;
use units::{Bytes, Direction};

const PIECE: Bytes = Bytes::kib(64);
const START: Bytes = Bytes::mib(2);

fn film() -> Driver {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    driver
}

/// Asks for these pieces while the disk is busy with another, so that they wait together.
fn together(
    driver: &mut Driver,
    pieces: Range<u64>,
    mut ask: impl FnMut(&mut Driver, Bytes) -> Ticket,
) -> Vec<Ticket> {
    driver.disks[0].holds = true;
    let busy = driver.begin(read("film", Bytes::ZERO, Bytes::kib(4)));
    let tickets = pieces.map(|piece| ask(driver, START + PIECE * piece)).collect();
    driver.disks[0].holds = false;
    let Ok(Reply::Data { bytes: span, .. }) = driver.wait(busy) else { panic!("no data") };
    driver.done(Op::Release { span });
    tickets
}

/// How long the commands were that transferred data this way, and of how many spans.
fn commands(driver: &Driver, from: usize, way: Direction) -> Vec<(Bytes, usize)> {
    let moved = |action: &DiskAction| match action {
        DiskAction::WriteBytes { .. } => None,
        DiskAction::Several { spans, .. } => Some(spans.len()),
        DiskAction::Read { .. } | DiskAction::Write { .. } => Some(1),
        _ => None,
    };
    let all = driver.since(from).iter().filter_map(|done| {
        let (range, direction) = done.action.transfer()?;
        let spans = moved(&done.action)?;
        (direction == way).then_some((range.end - range.start, spans))
    });
    all.collect()
}

#[test]
fn writes_of_several_operations_are_one_command() {
    let mut driver = film();
    let from = driver.journal.len();
    let writes = together(&mut driver, 0..8, |driver, at| driver.begin_write("film", 7, at, PIECE));
    for write in writes {
        assert_eq!(driver.wait(write), Ok(Reply::Done));
    }
    let told = commands(&driver, from, Direction::Write);
    assert!(told.len() == 1 && told[0].0 == PIECE * 8, "{told:?}");
    assert!(driver.read("film", START, PIECE * 8).unwrap() == pattern(7, START, PIECE * 8));
    driver.done(Op::Sync);
    let mut driver = driver.after_a_power_cut();
    assert!(driver.read("film", START, PIECE * 8).unwrap() == pattern(7, START, PIECE * 8));
}

/// Wherever their memory lies.
#[test]
fn reads_of_several_operations_are_one_command() {
    let mut driver = film();
    // Rooms between them, so that their memory does not lie in a row.
    let mut rooms = Vec::new();
    let from = driver.journal.len();
    let reads = together(&mut driver, 0..8, |driver, at| {
        let ticket = driver.begin(read("film", at, PIECE));
        rooms.push(driver.room(Bytes::kib(4)));
        ticket
    });
    for (piece, read) in (0..).zip(reads) {
        let Ok(Reply::Data { bytes: span, offset }) = driver.wait(read) else { panic!("no data") };
        assert_eq!(offset, START + PIECE * piece);
        assert!(driver.bytes(span) == pattern(1, offset, PIECE));
        driver.done(Op::Release { span });
    }
    let told = commands(&driver, from, Direction::Read);
    assert_eq!(told, [(Bytes::kib(4), 1), (PIECE * 8, 8)]);
}

/// What the device fails on is one program's: all others have what they asked for.
#[test]
fn who_is_served_together_with_what_fails_is_served_by_himself() {
    let mut driver = film();
    let bad = driver.place("film", START + PIECE * 3);
    driver.break_at(DISK, bad..bad + Bytes::kib(4), None);
    let from = driver.journal.len();
    let writes = together(&mut driver, 0..8, |driver, at| driver.begin_write("film", 7, at, PIECE));
    for (piece, write) in writes.into_iter().enumerate() {
        let told = driver.wait(write);
        match piece {
            3 => assert!(matches!(told, Err(Error::Device { .. })), "{told:?}"),
            _ => assert_eq!(told, Ok(Reply::Done), "{piece}"),
        }
    }
    let told = commands(&driver, from, Direction::Write);
    assert!(told.len() == 9 && told[0].0 == PIECE * 8, "all, and each by itself: {told:?}");
    let reads = together(&mut driver, 0..8, |driver, at| driver.begin(read("film", at, PIECE)));
    for (piece, read) in (0..).zip(reads) {
        match driver.wait(read) {
            Ok(Reply::Data { bytes: span, offset }) => {
                assert!(piece != 3 && driver.bytes(span) == pattern(7, offset, PIECE), "{piece}");
                driver.done(Op::Release { span });
            }
            told => assert!(piece == 3 && matches!(told, Err(Error::Device { .. })), "{told:?}"),
        }
    }
    // A sync says nothing of what failed: its program was told.
    driver.disks[0].troubles.clear();
    driver.done(Op::Sync);
    let memory = driver.node.status(driver.now).memory;
    assert_eq!(memory.best_effort, Bytes::ZERO, "all of it came back");
}

/// Who comes while the pool ends is not begun again.
#[test]
fn what_fails_together_while_the_pool_ends_is_told_so() {
    let mut driver = film();
    let bad = driver.place("film", START);
    driver.break_at(DISK, bad..bad + Bytes::kib(4), None);
    let writes = together(&mut driver, 0..4, |driver, at| driver.begin_write("film", 7, at, PIECE));
    assert!(!driver.disks[0].flights.is_empty(), "the disk has begun with them");
    let end = driver.begin(Op::Shutdown);
    for write in writes {
        assert!(driver.wait(write).is_err());
    }
    assert_eq!(driver.wait(end), Ok(Reply::Done));
}

/// Writes of the same bytes are done in the order in which they came, whatever lies beside them.
#[test]
fn writes_of_the_same_bytes_stay_in_their_order() {
    let mut driver = film();
    let mut seed = 6;
    let writes = together(&mut driver, 0..8, |driver, at| {
        seed += 1;
        driver.begin_write("film", seed, START.max(at - PIECE / 2 * (at / PIECE % 2)), PIECE)
    });
    for write in writes {
        assert_eq!(driver.wait(write), Ok(Reply::Done));
    }
    // The even ones at their places; the odd ones half a piece before theirs, over those before.
    for piece in 0..8u64 {
        let (at, half) = (START + PIECE * piece, PIECE / 2);
        let begins = if piece % 2 == 0 { at } else { at - half };
        let len = if piece % 2 == 0 { half } else { PIECE };
        let got = driver.read("film", begins, len).unwrap();
        assert!(got == pattern(7 + piece, begins, len), "{piece}");
    }
}
