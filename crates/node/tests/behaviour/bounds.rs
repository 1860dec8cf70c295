//! What a node keeps to: how far it asks ahead, how long a record may be, how late a host, what it
//! waits for before it ends.

use crate::driver::*;
use node::{Error, Mode, Op, Reply, limits};
use store::RecordContent;
use units::{Bytes, Duration};

/// Requests of a large window are with the disk as far as its rate is made of them, and some more:
/// the others would only be in the way of who comes later.
#[test]
fn of_a_large_window_only_the_next_blocks_are_asked_for() {
    for mode in [Mode::Read, Mode::Update] {
        let mut driver = Setup::new(1).open();
        driver.recorded("film", Bytes::mib(8), Bytes::mib(8), 1);
        driver.disks[0].holds = true;
        let burst = contract(RATE, BLOCK, BLOCK * 64);
        let (_, window) = driver.stream(open_window("film", mode, burst, 1));
        assert!(window > BLOCK * 64, "{window}");
        let waiting = driver.node.status(driver.now).disks[0].waiting_real_time;
        let asked = waiting + driver.disks[0].flights.len() as u64;
        let most = limits::EARLY_REQUESTS + 4;
        assert!((limits::EARLY_REQUESTS..=most).contains(&asked), "{mode:?}: {asked}");
    }
}

/// What a disk has begun is answered before the node ends, though nothing else is open.
#[test]
fn a_node_does_not_end_before_a_write_that_a_disk_has() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(2));
    driver.run(Duration::from_secs(5));
    driver.disks[0].holds = true;
    let write = driver.begin_write("film", 1, Bytes::ZERO, BLOCK);
    let end = driver.begin(Op::Shutdown);
    driver.run(ms(50));
    assert_eq!((driver.answer(end), driver.answer(write)), (None, None));
    driver.disks[0].holds = false;
    assert_eq!(driver.wait(end), Ok(Reply::Done));
    assert_eq!(driver.answer(write), Some(Ok(Reply::Done)), "before it");
    let mut driver = driver.after_a_power_cut();
    assert!(driver.read("film", Bytes::ZERO, BLOCK).unwrap() == pattern(1, Bytes::ZERO, BLOCK));
}

/// A pool is opened for a host that is a minute late, and for none that is later.
#[test]
fn a_host_is_a_minute_late_at_the_most() {
    let late = |by| Setup::new(1).with(|config| config.host_latency = by).try_open();
    assert!(late(limits::HOST_LATENCY_MAX).is_ok());
    let told = late(limits::HOST_LATENCY_MAX + Duration::from_nanos(1)).map(drop);
    assert!(matches!(told, Err(Error::Invalid { what: "host latency", .. })), "{told:?}");
}

/// The longest record is that of all writers, and of what best effort and changes may add; the log's
/// contracts grow for it.
#[test]
fn the_longest_record_is_that_of_all_writers_and_of_what_others_may_add() {
    let mut driver = Setup::new(1).open();
    let longest = |extents: u64, writers: u64| {
        let (changes, more) = (limits::RECORD_CHANGES, limits::RECORD_EXTENTS);
        let (extents, lengths, recorded) = (extents + more, writers + more, writers);
        RecordContent { changes, extents, placed: 0, lengths, recorded }.size_max()
    };
    let before = driver.node.log();
    assert_eq!(before.record_max, longest(0, 0));
    let slow = contract(RATE / 64, BLOCK, Bytes::ZERO);
    for number in 0..40 {
        let name = format!("w{number}");
        driver.volume(&name, Bytes::MIB);
        driver.writer(&name, slow);
        let log = driver.node.log();
        assert_eq!(log.record_max, longest(log.extents, number + 1));
    }
    assert!(driver.node.log().contract > before.contract);
}
