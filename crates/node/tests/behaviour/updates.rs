//! Streams that read and write: what the volume holds is in the window before the program comes
//! to it, also where the volume ends within a block, grows, or the stream goes elsewhere.

use crate::driver::*;
use node::{Error, Mode, Op, Reply, StreamId};
use units::{Bytes, Duration, Rate};

/// A volume of so many MiB, all recorded, and a stream that changes it in blocks of 2 MiB.
fn updated(mib: u64) -> (Driver, StreamId) {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(160)).open();
    driver.recorded("film", Bytes::mib(mib), Bytes::mib(mib), 1);
    let contract = contract(Rate::per_second(2 << 20), Bytes::mib(2), Bytes::ZERO);
    let (stream, _) = driver.stream(open_window("film", Mode::Update, contract, 7));
    (driver, stream)
}

fn next(driver: &mut Driver, stream: StreamId) -> node::Span {
    let Ok(Reply::Room { room: span }) = driver.ask(Op::WindowNext { stream }) else {
        panic!("nothing is told")
    };
    span
}

/// The end of the volume lies within a block, whose bytes wait for a busy disk when the stream
/// ends or goes elsewhere: they are written first.
#[test]
fn what_is_before_the_volumes_end_is_written_before_the_stream_closes_or_goes() {
    for goes in [false, true] {
        let (mut driver, stream) = updated(3);
        let mut told = Bytes::ZERO;
        while told < Bytes::mib(3) {
            let span = next(&mut driver, stream);
            driver.memory.put(span.offset, &pattern(2, told, span.len));
            told += span.len;
        }
        driver.done(Op::WindowMoved { stream, len: Bytes::mib(2) });
        driver.run(Duration::from_secs(5));
        let busy = driver.begin(read("film", Bytes::ZERO, Bytes::MIB));
        driver.done(Op::WindowMoved { stream, len: Bytes::MIB });
        assert!(!driver.is_answered(busy), "the disk is busy");
        if goes {
            let went = driver.ask(Op::StreamSeek { stream, to: Bytes::ZERO });
            assert!(matches!(went, Ok(Reply::Ready { .. })), "{went:?}");
        }
        let closed = driver.close(stream);
        assert!(matches!(closed, Ok(Reply::Durable { .. })), "{closed:?}");
        let mut driver = driver.after_a_power_cut();
        for mib in 0..3 {
            let got = driver.read("film", Bytes::mib(mib), Bytes::MIB).unwrap();
            assert!(got == pattern(2, Bytes::mib(mib), Bytes::MIB));
        }
    }
}

/// The volume grows within a block that is loaded: what is new is zeros, not what the memory
/// held before.
#[test]
fn what_a_volume_grows_by_within_a_block_is_zeros() {
    let (mut driver, stream) = updated(31);
    let mut told = Bytes::ZERO;
    while told < Bytes::mib(31) {
        let span = next(&mut driver, stream);
        assert!(driver.bytes(span) == pattern(1, told, span.len));
        told += span.len;
        if told < Bytes::mib(31) {
            driver.done(Op::WindowMoved { stream, len: span.len });
        }
    }
    driver.done(resize("film", Bytes::mib(32)));
    let span = next(&mut driver, stream);
    assert!(driver.bytes(span).iter().all(|&byte| byte == 0), "nobody wrote there");
    driver.done(Op::WindowMoved { stream, len: Bytes::mib(2) });
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: Bytes::mib(32) }));
    let got = driver.read("film", Bytes::mib(30), Bytes::MIB).unwrap();
    assert!(got == pattern(1, Bytes::mib(30), Bytes::MIB));
    let got = driver.read("film", Bytes::mib(31), Bytes::MIB).unwrap();
    assert!(got.iter().all(|&byte| byte == 0));
}

/// A jump is refused while the first blocks are being loaded: they are loaded all the same.
#[test]
fn a_refused_jump_leaves_the_window_as_it_was() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(4));
    driver.recorded("other", Bytes::mib(1), Bytes::mib(1), 1);
    driver.write("film", 1, Bytes::ZERO, Bytes::MIB);
    driver.done(Op::Sync);
    let busy = driver.begin(read("other", Bytes::ZERO, Bytes::MIB));
    let (stream, _) = driver.stream(open_window("film", Mode::Update, usual(), 7));
    let ask = driver.begin(Op::WindowNext { stream });
    let jump = driver.begin(Op::StreamSeek { stream, to: Bytes::mib(1) + BLOCK });
    driver.run(Duration::from_secs(60));
    assert!(matches!(driver.answer(jump), Some(Err(Error::Invalid { .. }))));
    assert!(matches!(driver.answer(busy), Some(Ok(_))));
    let told = driver.answer(ask);
    assert!(matches!(told, Some(Ok(Reply::Room { .. }))), "{told:?}");
}
