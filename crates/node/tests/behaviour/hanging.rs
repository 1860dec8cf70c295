//! A disk has a command and does not end it: what is late is told while that is so, and counts once.

use crate::driver::*;
use node::{DiskIndex, OldestCommand, Op, Placement, Reply, Status, StreamId};
use units::{Bytes, Duration, Rate};

fn film() -> Driver {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    driver
}

fn status(driver: &Driver) -> Status {
    driver.node.status(driver.now)
}

/// Requests, those that are late, and by how much at the most.
fn of_stream(driver: &Driver, stream: StreamId) -> (u64, u64, Duration) {
    let all = status(driver).streams;
    let told = all.into_iter().find(|one| one.stream == stream).expect("open");
    assert_eq!(driver.node.stream(stream).as_ref(), Some(&told));
    (told.account.requests, told.account.late_requests, told.account.late_max)
}

fn late_on_disk(driver: &Driver) -> u64 {
    status(driver).disks[0].account.late_requests
}

fn oldest(driver: &Driver) -> Option<OldestCommand> {
    status(driver).disks[0].oldest
}

/// The path to a disk was gone: all of its streams stood, and no request was late.
#[test]
fn a_block_that_does_not_come_is_late_from_its_deadline_on_and_its_command_has_an_age() {
    let mut driver = film();
    let stream = driver.reader("film", usual());
    driver.next(stream, BLOCK);
    driver.disks[0].holds = true;
    let waits = loop {
        let ticket = driver.begin(Op::StreamRead { stream, len_max: BLOCK });
        driver.run(Duration::from_secs(2));
        match driver.answer(ticket) {
            Some(Ok(Reply::Data { bytes: span, .. })) => {
                driver.done(Op::StreamAdvance { stream, len: span.len });
            }
            None => break ticket,
            other => panic!("{other:?}"),
        }
    };
    driver.run(Duration::from_secs(60));
    let given = driver.disks[0].flights.values().map(|flight| flight.started).min().unwrap();
    let age = |driver: &Driver| driver.now.saturating_since(given);
    let told = oldest(&driver).expect("it has one");
    assert!(told.age == age(&driver) && told.age > Duration::from_secs(60), "{told:?}");
    assert!(told.bound < Duration::from_secs(1), "{told:?}");
    let (requests, late, by) = of_stream(&driver, stream);
    assert!(late == 1 && by > Duration::from_secs(50) && by < told.age, "{late}: {by}");
    assert_eq!(late_on_disk(&driver), 1);
    driver.run(Duration::from_secs(1));
    assert_eq!(of_stream(&driver, stream), (requests, 1, by + Duration::from_secs(1)));
    // It comes back.
    driver.disks[0].holds = false;
    driver.wait(waits).expect("it was only late");
    assert_eq!(of_stream(&driver, stream), (requests, 1, by + Duration::from_secs(1)));
    driver.run(Duration::from_secs(5));
    assert_eq!(oldest(&driver), None);
}

/// As of a volume that is under contract itself.
#[test]
fn an_answer_that_does_not_come_is_late_from_its_deadline_on() {
    let mut driver = film();
    driver.done(service("film", in_time(BLOCK, ms(100), ms(100))));
    driver.run(Duration::from_secs(1));
    driver.disks[0].holds = true;
    let asked = driver.now;
    let ticket = driver.begin(read("film", Bytes::ZERO, BLOCK));
    let told = |driver: &Driver| {
        let account = status(driver).volumes[0].account;
        (account.requests, account.late_requests, account.late_max)
    };
    driver.run_to(asked + ms(100));
    assert_eq!(told(&driver), (0, 0, Duration::ZERO));
    driver.run_to(asked + ms(10_100));
    assert_eq!(told(&driver), (1, 1, ms(10_000)));
    driver.disks[0].holds = false;
    driver.wait(ticket).expect("it was only late");
    assert_eq!(told(&driver), (1, 1, ms(10_000)));
}

/// Writers that are written together are late each.
#[test]
fn each_of_those_that_are_written_by_one_command_is_late_once() {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(256)).open();
    let thin = Placement { disks: vec![DiskIndex(0)], thin: true, ..Placement::default() };
    let camera = contract(Rate::per_second(4 << 20), Bytes::MIB, Bytes::ZERO);
    let streams = ["one", "two"].map(|name| {
        driver.done(create(name, Bytes::mib(64), thin.clone()));
        driver.writer(name, camera)
    });
    // The first block goes by itself, later ones once a period together.
    for round in 0..4 {
        driver.disks[0].holds = round == 3;
        streams.iter().for_each(|&stream| driver.put_all(stream, 1, Bytes::MIB));
        driver.run(ms(250));
    }
    let late = |driver: &Driver| streams.map(|stream| of_stream(driver, stream).1);
    driver.run(Duration::from_secs(60));
    assert_eq!(late(&driver), [1, 1]);
    // What waits behind it is late when it ends.
    let command = *driver.disks[0].flights.keys().next().expect("it hangs");
    driver.end(0, command);
    assert_eq!(late(&driver), [1, 1]);
}
