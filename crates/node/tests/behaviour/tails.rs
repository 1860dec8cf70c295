//! Volumes that grow within a block that a reader has in its window already.

use crate::driver::*;
use node::{Mode, Op, Region, Reply, StreamId};
use units::{Bytes, Duration, Rate};

const HALF: Bytes = Bytes::new(BLOCK.get() / 2 + 100);

/// All that a reader gets up to the end, from where it is; in pieces of at most a block.
fn rest(driver: &mut Driver, stream: StreamId) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match driver.ask(Op::StreamRead { stream, len_max: BLOCK }) {
            Ok(Reply::Data { bytes: span, .. }) => {
                all.extend(driver.bytes(span));
                driver.done(Op::StreamAdvance { stream, len: span.len });
            }
            Ok(Reply::End) => return all,
            other => panic!("{other:?}"),
        }
    }
}

/// The same of a shared window.
fn told(driver: &mut Driver, stream: StreamId) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match driver.ask(Op::WindowNext { stream }) {
            Ok(Reply::Data { bytes: span, .. }) => all.extend(driver.bytes(span)),
            Ok(Reply::End) => return all,
            other => panic!("{other:?}"),
        }
    }
}

/// A reader has read to the end, which is within a block. Best effort appends to the volume, in
/// that block and beyond it: the reader finds these bytes, and not what its memory had.
#[test]
fn what_is_appended_to_the_last_block_is_read_and_not_what_the_window_had() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), BLOCK + HALF, 1);
    let reader = driver.reader("film", usual());
    let region = driver.stream(open_window("film", Mode::Read, usual(), 7)).0;
    assert!(rest(&mut driver, reader) == pattern(1, Bytes::ZERO, BLOCK + HALF));
    assert!(told(&mut driver, region) == pattern(1, Bytes::ZERO, BLOCK + HALF));
    driver.write("film", 2, BLOCK + HALF, Bytes::new(1_000));
    let more = pattern(2, BLOCK + HALF, Bytes::new(1_000));
    assert!(rest(&mut driver, reader) == more, "by the socket");
    assert!(told(&mut driver, region) == more, "in the shared window");
    let from = BLOCK + HALF + Bytes::new(1_000);
    driver.write("film", 3, from, BLOCK);
    assert!(rest(&mut driver, reader) == pattern(3, from, BLOCK));
    assert!(told(&mut driver, region) == pattern(3, from, BLOCK));
}

/// A reader that has read the last, partial block waits behind a writer that begins at this
/// block and goes beyond it.
#[test]
fn a_writer_that_begins_in_the_last_block_is_followed() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), BLOCK + HALF, 1);
    let reader = driver.reader("film", usual());
    assert!(rest(&mut driver, reader) == pattern(1, Bytes::ZERO, BLOCK + HALF));
    let writer = driver.stream(open("film", Mode::Write, usual(), BLOCK)).0;
    let few = Bytes::new(50);
    driver.put_all(writer, 2, HALF + few);
    driver.done_durable(writer);
    let waits = driver.begin(Op::StreamRead { stream: reader, len_max: BLOCK });
    driver.run(Duration::from_secs(1));
    assert_eq!(
        driver.answer(waits),
        None,
        "somebody writes this block: it is read when it is whole"
    );
    driver.put_all(writer, 2, BLOCK * 2 - HALF - few);
    driver.run(Duration::from_secs(2));
    driver.close(writer).expect("closed");
    let Ok(Reply::Data { bytes: span, offset }) = driver.wait(waits) else { panic!("no data") };
    assert_eq!(offset, BLOCK + HALF);
    let mut got = driver.bytes(span);
    driver.done(Op::StreamAdvance { stream: reader, len: span.len });
    got.extend(rest(&mut driver, reader));
    let wanted = pattern(2, BLOCK + HALF, BLOCK * 2 - HALF);
    assert!(got == wanted);
}

/// A writer goes elsewhere and stays open. What it has synced of the last block is read, by both
/// kinds of window, though the block is not whole; when it comes back to that block and goes on
/// beyond it, the rest is read.
#[test]
fn a_writer_that_went_elsewhere_hides_nothing_that_it_synced() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    let writer = driver.writer("film", usual());
    driver.put_all(writer, 1, BLOCK + HALF);
    driver.done_durable(writer);
    let reader = driver.reader("film", usual());
    let region = driver.stream(open_window("film", Mode::Read, usual(), 7)).0;
    let first = driver.ask(Op::StreamRead { stream: reader, len_max: BLOCK });
    assert!(matches!(first, Ok(Reply::Data { .. })), "{first:?}");
    driver.done(Op::StreamAdvance { stream: reader, len: BLOCK });
    driver.ask(Op::WindowNext { stream: region }).expect("the first block");
    let waits = [
        driver.begin(Op::StreamRead { stream: reader, len_max: BLOCK }),
        driver.begin(Op::WindowNext { stream: region }),
    ];
    driver.run(Duration::from_secs(1));
    assert!(waits.iter().all(|&waits| !driver.is_answered(waits)), "somebody fills this block");
    let sought = driver.ask(Op::StreamSeek { stream: writer, to: Bytes::ZERO });
    assert!(matches!(sought, Ok(Reply::Ready { .. })), "{sought:?}");
    for waits in waits {
        let Ok(Reply::Data { bytes: span, offset }) = driver.wait(waits) else { panic!("no data") };
        assert_eq!((offset, span.len), (BLOCK, HALF));
        assert!(driver.bytes(span) == pattern(1, BLOCK, HALF));
    }
    driver.done(Op::StreamAdvance { stream: reader, len: HALF });
    driver.put_all(writer, 2, BLOCK * 2);
    driver.close(writer).expect("closed");
    let more = pattern(2, BLOCK + HALF, BLOCK - HALF);
    assert!(rest(&mut driver, reader) == more, "by the socket");
    assert!(told(&mut driver, region) == more, "in the shared window");
}

/// A program looks at the last bytes of a volume that grows within their block meanwhile: they stay
/// as they are for as long as it has them, and the rest is read when it has given them back.
#[test]
fn what_a_program_looks_at_is_not_read_again_under_it() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), HALF, 1);
    let stream = driver.reader("film", usual());
    let Ok(Reply::Data { bytes: span, .. }) = driver.ask(Op::StreamRead { stream, len_max: BLOCK })
    else {
        panic!("no data")
    };
    driver.write("film", 1, HALF, BLOCK);
    driver.done(Op::HostLatency { latency: ms(1) });
    driver.disks[0].holds = true;
    driver.run(Duration::from_secs(1));
    assert!(driver.bytes(span) == pattern(1, Bytes::ZERO, HALF));
    driver.disks[0].holds = false;
    driver.done(Op::StreamAdvance { stream, len: HALF });
    assert!(rest(&mut driver, stream) == pattern(1, HALF, BLOCK));
}

/// The device has failed on the last block, in which the volume ended. When the volume has grown
/// within it, what it has by then is read again.
#[test]
fn a_last_block_that_failed_is_read_again_when_the_volume_has_grown() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), BLOCK + HALF, 1);
    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(units::Direction::Read));
    let stream = driver.reader("film", usual());
    let gap = |driver: &mut Driver, offset, len| {
        let told = driver.ask(Op::StreamRead { stream, len_max: BLOCK });
        assert_eq!(told, Ok(Reply::Gap { offset, len }));
    };
    gap(&mut driver, Bytes::ZERO, BLOCK);
    gap(&mut driver, BLOCK, HALF);
    driver.disks[0].troubles.clear();
    driver.write("film", 1, BLOCK + HALF, BLOCK);
    assert!(rest(&mut driver, stream) == pattern(1, BLOCK + HALF, BLOCK));
}

/// The same beside a reader that comes behind and reads all of that block: what it read is not
/// copied over what the program looks at.
#[test]
fn what_a_program_looks_at_is_not_copied_again_under_it() {
    let mut driver = Setup::new(1).open();
    driver.node.share_reads();
    driver.recorded("film", Bytes::mib(4), BLOCK + HALF, 1);
    driver.recorded("noise", Bytes::mib(4), Bytes::mib(1), 3);
    // Its deadlines are far off, so that the disk has the other one's request first.
    let slow = contract(Rate::per_second(4_000), BLOCK, Bytes::ZERO);
    let region = driver.stream(open_window("film", Mode::Read, slow, 7)).0;
    let looked_at = told(&mut driver, region);
    assert!(looked_at == pattern(1, Bytes::ZERO, BLOCK + HALF));
    driver.write("film", 2, BLOCK, BLOCK);
    let from = driver.journal.len();
    driver.disks[0].holds = true;
    // Best effort goes before what is due only much later.
    for _ in 0..16 {
        driver.begin(read("noise", Bytes::ZERO, Bytes::kib(256)));
    }
    let opened = driver.begin(open("film", Mode::Read, usual(), Bytes::ZERO));
    let tail = driver.begin(Op::WindowNext { stream: region });
    driver.disks[0].holds = false;
    let Ok(Reply::Stream { stream, .. }) = driver.wait(opened) else { panic!("not opened") };
    let both = [pattern(1, Bytes::ZERO, BLOCK), pattern(2, BLOCK, BLOCK)].concat();
    assert!(rest(&mut driver, stream) == both);
    let Ok(Reply::Data { bytes: span, offset }) = driver.wait(tail) else { panic!("no data") };
    assert_eq!(offset, BLOCK + HALF);
    assert!(driver.bytes(span) == pattern(2, offset, span.len));
    let touched = driver.since(from).iter().filter_map(|done| match &done.action {
        node::DiskAction::Read { span, .. } | node::DiskAction::Copy { span, .. } => Some(*span),
        _ => None,
    });
    let touched: Vec<_> = touched.filter(|span| Region::of(span).is_some()).collect();
    assert!(!touched.is_empty());
    let first = span.offset.round_down(Bytes::kib(4));
    assert!(touched.iter().all(|touched| touched.offset >= first), "{touched:?}, from {first}");
}
