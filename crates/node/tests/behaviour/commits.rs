//! When the metadata is committed, who waits for it, and what the log is promised.

use crate::driver::*;
use node::{
    Contract, DeviceError, DiskAction, Error, Mode, Op, Placement, Policy, Priority, Reply,
    StreamId, Ticket, limits,
};
use units::{Bytes, Direction, Duration, Instant, Rate};

const INTERVAL: Duration = Duration::from_secs(2);

fn log_writes(driver: &Driver, from: usize) -> impl Iterator<Item = &Done> {
    let all = driver.since(from).iter();
    all.filter(|done| matches!(done.action, DiskAction::WriteBytes { .. }))
}

/// When each record of the log began to be written.
fn records(driver: &Driver, from: usize) -> Vec<Instant> {
    log_writes(driver, from).map(|done| done.started).collect()
}

/// With no stream open a commit begins at once, as often as somebody asks; it is a
/// write and a flush.
#[test]
fn while_no_stream_is_open_commits_begin_at_once() {
    let mut driver = Setup::new(1).open();
    for number in 0..5 {
        let from = driver.now;
        driver.volume(&format!("v{number}"), Bytes::MIB);
        let took = driver.now - from;
        // No data waits for the flush before it.
        assert!(took >= FLUSH + FIXED && took < FLUSH + FIXED + ms(1), "{took:?}");
    }
    let before = driver.journal.len();
    driver.done(Op::Sync);
    assert!(records(&driver, before).is_empty(), "there is nothing to record");
}

/// Whoever waits for a commit counts as his user's. Before, one user who asked for as many as might wait
/// in all had everybody else refused.
#[test]
fn one_user_who_waits_for_very_many_commits_leaves_room_for_others() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(2));
    driver.disks[0].holds = true;
    driver.begin(resize("film", Bytes::mib(4)));
    let user = |uid| node::Who { uid, ..node::Who::root() };
    let mut asked = Vec::new();
    let refused = loop {
        let one = driver.begin_as(user(1), Op::Sync);
        if driver.is_answered(one) {
            break driver.answer(one);
        }
        asked.push(one);
        assert!(asked.len() < limits::WAITERS_MAX, "he has all of them");
    };
    assert!(matches!(refused, Some(Err(Error::Busy { .. }))), "{refused:?}");
    let other = driver.begin_as(user(2), Op::Sync);
    assert!(!driver.is_answered(other), "he waits");
    driver.disks[0].holds = false;
    assert_eq!(driver.wait(other), Ok(Reply::Done));
    for one in asked {
        assert_eq!(driver.wait(one), Ok(Reply::Done));
    }
    assert_eq!(driver.ask(Op::Sync), Ok(Reply::Done), "nobody waits any more");
}

/// His place among those who wait is asked for first. Before, the change was made, and would be durable
/// with the next commit, though whoever asked for it was told that the pool was busy.
#[test]
fn a_change_that_is_refused_as_busy_was_not_made() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(2));
    driver.disks[0].holds = true;
    let user = || node::Who { uid: 1, ..node::Who::root() };
    let mut asked = vec![driver.begin_as(user(), resize("film", Bytes::mib(4)))];
    let refused = loop {
        let one = driver.begin_as(user(), Op::Sync);
        if driver.is_answered(one) {
            break driver.answer(one);
        }
        asked.push(one);
    };
    assert!(matches!(refused, Some(Err(Error::Busy { .. }))), "{refused:?}");
    let service = || node::Service::BestEffort(Priority::Background);
    let changes = || {
        let serve = Op::VolumeService { name: "film".into(), service: service() };
        let stage = Op::Staged(Box::new(resize("film", Bytes::mib(6))));
        [
            create("other", Bytes::MIB, Placement::default()),
            resize("film", Bytes::mib(8)),
            stage,
            serve,
        ]
    };
    for change in changes() {
        let told = driver.begin_as(user(), change);
        let refused = driver.answer(told);
        assert!(matches!(refused, Some(Err(Error::Busy { .. }))), "{refused:?}");
    }
    let film = driver.node.volume("film").unwrap();
    assert_eq!(film.size, Bytes::mib(4));
    assert_ne!(film.service, service());
    assert!(driver.node.volume("other").is_none());
    driver.disks[0].holds = false;
    for one in asked {
        assert_eq!(driver.wait(one), Ok(Reply::Done));
    }
    // One that is refused for itself has given its place back.
    for _ in 0..limits::WAITERS_MAX {
        let refused = driver.begin_as(user(), create("film", Bytes::MIB, Placement::default()));
        assert!(matches!(driver.answer(refused), Some(Err(Error::VolumeExists { .. }))));
    }
    for change in changes() {
        let made = driver.begin_as(user(), change);
        assert!(driver.wait(made).is_ok());
    }
}

/// How many records since then were written under the log's contracts, and how many in the slack.
fn classes(driver: &Driver, from: usize) -> [usize; 2] {
    let in_slack = log_writes(driver, from).filter(|done| done.report.is_none()).count();
    [log_writes(driver, from).count() - in_slack, in_slack]
}

/// With a stream open, those who sync all the time have two commits on credit under the log's
/// contracts; the others are in the slack, of which there is much here. Those who come while one
/// runs share the next.
#[test]
fn with_streams_open_commits_that_have_no_credit_are_in_the_slack() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(8), Bytes::mib(1), 1);
    driver.reader("film", contract(RATE / 8, BLOCK, Bytes::ZERO));
    driver.run(INTERVAL * 10);
    let (from, start) = (driver.journal.len(), driver.now);
    for number in 0..8 {
        driver.volume(&format!("v{number}"), Bytes::MIB);
    }
    let begun = records(&driver, from);
    assert_eq!(begun.len(), 8);
    let [counted, in_slack] = classes(&driver, from);
    assert!((2..=3).contains(&counted) && counted + in_slack == 8, "{counted} on credit");
    assert!(*begun.last().unwrap() - start < INTERVAL / 4, "{begun:?}");
    // Many at once share one.
    driver.run(INTERVAL * 10);
    let from = driver.journal.len();
    let many: Vec<_> = (0..20)
        .map(|number| driver.begin(create(&format!("w{number}"), Bytes::MIB, Placement::default())))
        .collect();
    for ticket in many {
        assert!(is_made(driver.wait(ticket)));
    }
    assert!(records(&driver, from).len() <= 2, "the first, and those who came meanwhile");
}

/// Whoever syncs all the time has one commit an interval under the log's contracts, and the credit;
/// those in the slack take none of it.
#[test]
fn commits_in_the_slack_leave_the_others_one_an_interval() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(8), Bytes::mib(1), 1);
    driver.reader("film", contract(RATE / 8, BLOCK, Bytes::ZERO));
    driver.run(INTERVAL * 10);
    let (start, from, intervals) = (driver.now, driver.journal.len(), 6);
    let mut number = 0;
    while driver.now - start < INTERVAL * intervals {
        driver.volume(&format!("v{number}"), Bytes::ZERO);
        number += 1;
    }
    let [counted, in_slack] = classes(&driver, from);
    assert!(counted <= 2 + 1 + intervals as usize, "{counted} in {intervals} intervals");
    assert!(in_slack > 100, "{in_slack} in the slack");
}

/// Uses the credit up, and begins a change whose commit waits for the disk.
fn waits_in_the_slack(driver: &mut Driver) -> Ticket {
    driver.recorded("film", Bytes::mib(8), Bytes::mib(1), 1);
    driver.reader("film", contract(RATE / 8, BLOCK, Bytes::ZERO));
    driver.run(INTERVAL * 10);
    for number in 0..4 {
        driver.volume(&format!("v{number}"), Bytes::ZERO);
    }
    // The disk has another's request, and does not end it.
    driver.begin(read_as("film", Bytes::ZERO, BLOCK, Priority::Normal));
    driver.disks[0].holds = true;
    driver.begin(create("last", Bytes::ZERO, Placement::default()))
}

/// A commit that waits in the slack comes under the log's contracts when it would have begun without
/// slack: an interval later at the most.
#[test]
fn a_commit_in_the_slack_comes_under_the_contracts_when_it_is_due() {
    for waits in [false, true] {
        let mut driver = Setup::new(1).open();
        let ticket = waits_in_the_slack(&mut driver);
        let from = driver.journal.len();
        if waits {
            driver.run(INTERVAL);
        }
        driver.disks[0].holds = false;
        assert!(is_made(driver.wait(ticket)));
        assert_eq!(classes(&driver, from), if waits { [1, 0] } else { [0, 1] });
        // It took the credit that there was then.
        let from = driver.journal.len();
        driver.volume("next", Bytes::ZERO);
        assert_eq!(classes(&driver, from), [0, 1]);
    }
}

/// The disk fails on a commit in the slack: whoever waits hears it, and nothing is due any more.
#[test]
fn a_commit_that_fails_in_the_slack_is_told_and_not_begun_again() {
    let mut driver = Setup::new(1).open();
    let ticket = waits_in_the_slack(&mut driver);
    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(Direction::Write));
    driver.disks[0].holds = false;
    let error = || Err(Error::ReadOnly { disk: DISK, error: DeviceError(5) });
    assert_eq!(driver.wait(ticket), error());
    assert_eq!(driver.ask(create("later", Bytes::ZERO, Placement::default())), error());
    driver.run(ms(1));
    let next = driver.node.next_timer();
    assert!(next.is_none_or(|next| next > driver.now), "{next:?} at {:?}", driver.now);
}

/// One who comes while a commit runs waits for the next one, and nobody is told that something
/// is done before it is on the medium.
#[test]
fn one_commit_runs_at_a_time_and_each_is_waited_for() {
    for has_stream in [false, true] {
        let mut driver = Setup::new(1).open();
        driver.recorded("film", Bytes::mib(1), Bytes::mib(1), 1);
        if has_stream {
            driver.reader("film", contract(RATE / 8, BLOCK, Bytes::ZERO));
            driver.run(INTERVAL * 10);
        }
        let before = driver.journal.len();
        let first = driver.begin(create("first", Bytes::MIB, Placement::default()));
        driver.disks[0].holds = true;
        driver.run(ms(100));
        let second = driver.begin(create("second", Bytes::MIB, Placement::default()));
        driver.run(ms(100));
        assert!(!driver.is_answered(first) && !driver.is_answered(second), "nothing has ended");
        driver.disks[0].holds = false;
        assert!(is_made(driver.wait(first)));
        assert_eq!(records(&driver, before).len(), 1, "the first does not wait for the second");
        assert!(!driver.is_answered(second));
        assert!(is_made(driver.wait(second)));
        assert_eq!(records(&driver, before).len(), 2);
        let driver = driver.after_a_power_cut();
        assert!(["first", "second"].iter().all(|name| driver.node.volume(name).is_some()));
    }
}

/// What nobody waits for is committed within the interval all the same.
#[test]
fn what_was_written_is_committed_within_the_interval() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(8));
    driver.run(INTERVAL * 3);
    let before = driver.journal.len();
    driver.write("film", 1, Bytes::ZERO, BLOCK);
    driver.run(INTERVAL + ms(100));
    assert_eq!(records(&driver, before).len(), 1);
    let before = driver.journal.len();
    driver.run(INTERVAL * 5);
    assert!(records(&driver, before).is_empty(), "and nothing more");
    let mut driver = driver.after_a_power_cut();
    assert!(driver.read("film", Bytes::ZERO, BLOCK).unwrap() == pattern(1, Bytes::ZERO, BLOCK));
}

/// The log's contract holds the longest record that the writers can make: it grows with them,
/// and shrinks when they have gone; a writer with whom it does not fit is refused.
#[test]
fn the_logs_contract_grows_with_writers_and_shrinks_when_they_have_gone() {
    let mut driver = Setup::new(1).open();
    let first = driver.node.log();
    assert_eq!(first.contract, Bytes::kib(64));
    assert!(first.record_max <= first.contract && first.extents == 0);
    let before = driver.node.status(driver.now).disks[0].utilisation_ppm;
    let slow = contract(Rate::per_second(10_000), Bytes::kib(4), Bytes::mib(64));
    driver.volume("film", Bytes::mib(100));
    let mut setup = Setup::new(1).with(|config| config.memory = Bytes::mib(512));
    setup.profiles = vec![profile(Bytes::mib(1024), FIXED, FLUSH)];
    let mut driver = setup.open();
    // A window of 64 MiB: two extents more than it has at its ends, and what passes in four
    // intervals; of one disk.
    let mut streams: Vec<StreamId> = Vec::new();
    let mut extents = 0;
    for number in 0.. {
        let name = format!("v{number}");
        driver.volume(&name, Bytes::mib(80));
        let op = open(&name, Mode::Write, slow, Bytes::ZERO);
        let (stream, window) = driver.stream(op);
        assert_eq!(window, Bytes::mib(64) + Bytes::kib(8));
        streams.push(stream);
        // 64 MiB, 2 and 3 blocks for a late host, 80 kB in 8 s, from the middle of one on.
        extents += 67 - 1;
        let log = driver.node.log();
        assert_eq!(log.extents, extents);
        assert!(log.contract >= log.record_max, "{log:?}");
        assert!(log.contract.is_multiple_of(Bytes::kib(64)));
        if log.contract > Bytes::kib(64) || number == 6 {
            break;
        }
    }
    let log = driver.node.log();
    let status = driver.node.status(driver.now);
    let streams_ppm: u64 =
        status.streams.iter().flat_map(|stream| &stream.shares).map(|(_, ppm)| ppm).sum();
    let longer = cost(log.contract) - cost(Bytes::kib(64));
    let ppm = longer.as_nanos().div_ceil(2_000);
    let own = status.disks[0].utilisation_ppm - streams_ppm;
    assert!(own.abs_diff(before + ppm) <= streams.len() as u64 + 1, "{own} {before} {ppm}");
    for stream in streams {
        assert!(driver.close(stream).is_ok());
    }
    driver.run(INTERVAL);
    let last = driver.node.log();
    assert_eq!((last.contract, last.extents), (Bytes::kib(64), 0));
    assert_eq!(driver.node.status(driver.now).disks[0].utilisation_ppm, before);
    assert!(last.record_longest > Bytes::ZERO && last.record_longest <= log.record_max);
}

/// A writer for whom the log's contract cannot grow is refused, and nothing stays of him.
#[test]
fn a_writer_for_whom_the_log_cannot_grow_is_refused() {
    let mut setup = Setup::new(1).with(|config| config.memory = Bytes::mib(512));
    setup.profiles = vec![profile(Bytes::mib(1024), FIXED, FLUSH)];
    let mut driver = setup.open();
    driver.volume("film", Bytes::mib(300));
    driver.volume("read", Bytes::mib(1));
    // Readers take what the disk has, but for what one slow writer takes.
    let mut rate = RATE * 2;
    while rate.get() > 4_000 {
        let op = open("read", Mode::Read, contract(rate, BLOCK, Bytes::ZERO), Bytes::ZERO);
        if driver.ask(op).is_err() {
            rate = rate / 2;
        }
    }
    let before = driver.node.status(driver.now);
    let log = driver.node.log();
    let slow = |rate| contract(Rate::per_second(rate), Bytes::mib(1), Bytes::mib(64));
    let mut refused = None;
    for rate in [3_000, 2_000, 1_000, 500, 250, 125, 60, 30, 16, 13] {
        let told = driver.ask(open("film", Mode::Write, slow(rate), Bytes::ZERO));
        match told {
            Err(Error::LogRefused { record, .. }) => refused = refused.or(Some(record)),
            Err(Error::Refused(_)) => {}
            Ok(Reply::Stream { stream, .. }) => {
                assert!(driver.close(stream).is_ok());
            }
            other => panic!("{other:?}"),
        }
    }
    driver.run(INTERVAL);
    let after = driver.node.status(driver.now);
    assert_eq!(before.memory, after.memory);
    assert_eq!(before.disks[0].utilisation_ppm, after.disks[0].utilisation_ppm);
    assert_eq!(log.contract, driver.node.log().contract);
    assert_eq!(driver.node.log().extents, 0);
    let _ = refused;
}

/// The longest time to an answer is stated, and kept: of a sync, and of a stream's with its
/// window still to be written.
#[test]
fn syncs_take_no_longer_than_is_stated() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(8));
    assert_eq!(driver.node.sync_time_max(None), Some(INTERVAL * limits::SYNC_INTERVALS));
    let stream = driver.writer("film", usual());
    let period = Duration::from_micros(62_500);
    // Three blocks of window, and one in part, each there a period later.
    let stated = INTERVAL * limits::SYNC_INTERVALS + period * 6;
    assert_eq!(driver.node.sync_time_max(Some(stream)), Some(stated));
    for _ in 0..10 {
        driver.put_all(stream, 1, BLOCK + Bytes::new(100));
        let from = driver.now;
        driver.done_durable(stream);
        assert!(driver.now - from <= stated);
    }
    driver.volume("other", Bytes::mib(1));
    let reader = driver.reader("other", usual());
    assert_eq!(driver.node.sync_time_max(Some(reader)), None);
    assert_eq!(driver.node.sync_time_max(Some(StreamId(99))), None);
}

/// More writers than hear of a commit in one call all hear of it, in the end.
#[test]
fn all_writers_hear_of_a_commit() {
    let mut driver = Setup::new(1).open();
    let slow = contract(RATE / 64, BLOCK, Bytes::ZERO);
    let writers: Vec<StreamId> = (0..20)
        .map(|number| {
            let name = format!("v{number}");
            driver.volume(&name, Bytes::mib(1));
            driver.writer(&name, slow)
        })
        .collect();
    driver.run(INTERVAL * 4);
    for &stream in &writers {
        driver.put_all(stream, 1, BLOCK);
    }
    let asks: Vec<_> = writers
        .iter()
        .map(|&stream| driver.begin(Op::StreamDurable { stream, beyond: Bytes::ZERO }))
        .collect();
    driver.run(Duration::from_secs(12));
    for ask in asks {
        assert_eq!(driver.answer(ask), Some(Ok(Reply::Durable { upto: BLOCK })));
    }
}

/// A few writers hear of a commit in one call; until all have, a timer is due, so that nobody
/// has to ask a disk for the others to hear.
#[test]
fn a_timer_is_due_until_all_writers_have_heard() {
    let mut driver = Setup::new(1).open();
    let slow = contract(RATE / 64, BLOCK, Bytes::ZERO);
    let writers: Vec<StreamId> = (0..limits::ROUND_STEP * 4)
        .map(|number| {
            let name = format!("v{number}");
            driver.volume(&name, Bytes::mib(1));
            driver.writer(&name, slow)
        })
        .collect();
    driver.run(INTERVAL * 4);
    let mut asks = Vec::new();
    for &stream in &writers {
        driver.put_all(stream, 1, BLOCK);
        asks.push(driver.begin(Op::StreamDurable { stream, beyond: Bytes::ZERO }));
    }
    let heard = |driver: &Driver| asks.iter().filter(|&&ask| driver.is_answered(ask)).count();
    assert_eq!(heard(&driver), 0);
    driver.disks[0].holds = true;
    for _ in 0..10_000 {
        driver.run(ms(1));
        // The disk's next command ends, and nobody asks the disk anything afterwards.
        if let Some(&id) = driver.disks[0].flights.keys().next() {
            driver.end(0, id);
        }
        if heard(&driver) > 0 {
            break;
        }
    }
    assert!((1..asks.len()).contains(&heard(&driver)), "a few in one call");
    assert_eq!(driver.node.next_timer(), Some(driver.now), "the others are to be told");
    driver.disks[0].holds = false;
    driver.run(INTERVAL * 4);
    assert_eq!(heard(&driver), asks.len());
}

/// Who closes the last stream leaves nobody to be harmed: what is asked for from then on is
/// committed at once, however many commits there were before.
#[test]
fn with_the_last_stream_gone_commits_begin_at_once_again() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(1), Bytes::mib(1), 1);
    let stream = driver.reader("film", contract(RATE / 8, BLOCK, Bytes::ZERO));
    driver.run(INTERVAL * 10);
    let from = driver.now;
    for number in 0..6 {
        driver.volume(&format!("v{number}"), Bytes::MIB);
    }
    assert!(driver.now - from < INTERVAL, "those without credit are in the slack");
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    let from = driver.now;
    driver.volume("last", Bytes::MIB);
    assert!(driver.now - from < INTERVAL / 4, "{:?}", driver.now - from);
}

/// The record is counted with what a writer moves while commits are as far apart as they can
/// be: 1 MiB/s in 10 s, its window, and one extent more for where it begins.
#[test]
fn a_record_has_room_for_what_a_writer_moves_between_two_commits() {
    let mut driver = Setup::new(1).open();
    driver.volume("film", Bytes::mib(64));
    driver.writer("film", usual());
    // 3 blocks and 16 for a host that is a second late: 1.2 MiB.
    assert_eq!(driver.node.log().extents, 13);
}

/// What a writer of this contract may come to between two commits is long.
fn slow() -> Contract {
    contract(Rate::per_second(10_000), Bytes::kib(4), Bytes::mib(64))
}

/// Opens such writers; with one more the log's contract would have to grow. Its volume.
fn until_the_log_grows(driver: &mut Driver) -> String {
    for number in 0..8 {
        let name = format!("v{number}");
        driver.volume(&name, Bytes::mib(80));
        let (stream, _) = driver.stream(open(&name, Mode::Write, slow(), Bytes::ZERO));
        if driver.node.log().contract > Bytes::kib(64) {
            assert!(driver.close(stream).is_ok());
            driver.run(INTERVAL * 2);
            return name;
        }
    }
    panic!("the log grows with so many");
}

/// Readers take all that the disk can promise.
fn readers_take_the_disk(driver: &mut Driver) {
    driver.volume("film", Bytes::mib(4));
    driver.write("film", 1, Bytes::ZERO, Bytes::MIB);
    let mut rate = RATE;
    while rate == RATE {
        let op = open("film", Mode::Read, usual(), Bytes::ZERO);
        if let Err(Error::Refused(refusal)) = driver.ask(op) {
            rate = refusal.rate_max;
        }
    }
    driver.reader("film", contract(rate, BLOCK, Bytes::ZERO));
}

/// A writer for whom the log's contract cannot grow is refused, and is not counted from then
/// on: whoever comes after him is not refused for what he would have written.
#[test]
fn a_writer_that_is_refused_for_the_log_is_not_counted() {
    // By the sum of blocking and reserve, so that readers leave nothing that a longer log fits in.
    let mut setup = Setup::new(1).with(|config| {
        (config.memory, config.policy) = (Bytes::mib(512), Policy::DELTA_L);
    });
    setup.profiles = vec![profile(Bytes::mib(1024), FIXED, FLUSH)];
    let mut driver = setup.open();
    let name = until_the_log_grows(&mut driver);
    let before = driver.node.log();
    assert_eq!(before.contract, Bytes::kib(64), "it has shrunk again");
    readers_take_the_disk(&mut driver);
    let full = driver.node.status(driver.now);
    let told = driver.ask(open(&name, Mode::Write, slow(), Bytes::ZERO));
    let Err(Error::LogRefused { record, .. }) = told else { panic!("{told:?}") };
    assert!(record > before.contract);
    let after = driver.node.log();
    assert_eq!((after.extents, after.contract), (before.extents, before.contract));
    let status = driver.node.status(driver.now);
    assert_eq!(full.memory, status.memory);
    assert_eq!(full.disks[0].utilisation_ppm, status.disks[0].utilisation_ppm);
    assert_eq!(full.disks[0].slack, status.disks[0].slack);
}

/// A writer that asks for another contract, for which the log's cannot grow, has the one that it
/// had: also the disk's promise to it is the old one, though the new one would be less.
#[test]
fn a_change_that_is_refused_for_the_log_changes_nothing() {
    let mut setup = Setup::new(1).with(|config| {
        (config.memory, config.policy) = (Bytes::mib(512), Policy::DELTA_L);
    });
    setup.profiles = vec![profile(Bytes::mib(1024), FIXED, FLUSH)];
    let mut driver = setup.open();
    let name = until_the_log_grows(&mut driver);
    let fast = contract(Rate::per_second(40_000), Bytes::kib(4), Bytes::ZERO);
    let (stream, _) = driver.stream(open(&name, Mode::Write, fast, Bytes::ZERO));
    readers_take_the_disk(&mut driver);
    let before = driver.node.status(driver.now);
    let told = driver.ask(Op::StreamChange { stream, contract: slow() });
    assert!(matches!(told, Err(Error::LogRefused { .. })), "{told:?}");
    let after = driver.node.status(driver.now);
    assert_eq!(before.streams, after.streams);
    assert_eq!(before.memory, after.memory);
    assert_eq!(before.disks[0].utilisation_ppm, after.disks[0].utilisation_ppm);
    assert_eq!(before.disks[0].slack, after.disks[0].slack);
}

/// The log's contract grows beyond what one of its writes holds, by one write after the other, and
/// shrinks again. In a pool that then promises nothing to anybody a bad extent is read at once, as in
/// one that never has: nobody is harmed by waiting for it.
#[test]
fn the_logs_contract_grows_to_several_writes() {
    let mut setup = Setup::new(1).with(|config| config.memory = Bytes::mib(4096));
    setup.profiles = vec![profile(Bytes::mib(4096), FIXED, FLUSH)];
    let mut driver = setup.open();
    driver.recorded("film", Bytes::MIB, Bytes::MIB, 1);
    let most = limits::METADATA_COMMAND_MAX;
    let mut streams = Vec::new();
    while driver.node.log().contract <= most {
        let name = format!("v{}", streams.len());
        driver.volume(&name, Bytes::mib(80));
        streams.push(driver.stream(open(&name, Mode::Write, slow(), Bytes::ZERO)).0);
        assert!(driver.node.log().contract >= driver.node.log().record_max);
    }
    assert_eq!(driver.node.log().contract, most * 2);
    for stream in streams {
        assert!(driver.close(stream).is_ok());
    }
    driver.run(INTERVAL);
    assert_eq!(driver.node.log().contract, Bytes::kib(64));
    // The disk tries for 5 s, longer than the log can wait for.
    let at = Bytes::ZERO..Bytes::mib(4096);
    let extra = Duration::from_secs(5);
    let trouble = medium::Trouble { at, direction: Some(Direction::Read), error: Some(5), extra };
    driver.disks[0].troubles.push(trouble);
    assert!(driver.read("film", Bytes::ZERO, BLOCK).is_err());
    driver.disks[0].troubles.clear();
    let from = driver.now;
    let got = driver.read("film", Bytes::ZERO, BLOCK).unwrap();
    assert!(got == pattern(1, Bytes::ZERO, BLOCK));
    assert!(driver.now - from < Duration::from_secs(1), "{:?}", driver.now - from);
}

/// A node that is shut down ends after what a disk has begun, also where that is a read, and the disk
/// takes the last commit beside it.
#[test]
fn a_node_does_not_end_before_a_read_that_a_disk_has() {
    let mut setup = Setup::new(1);
    let disk::Kind::Linear(drive) = &mut setup.profiles[0].kind else { panic!("a line") };
    drive.depth = 4;
    let mut driver = setup.open();
    driver.recorded("film", Bytes::mib(2), Bytes::mib(2), 1);
    driver.run(INTERVAL * 2);
    driver.slow_at(DISK, Bytes::mib(1)..Bytes::mib(256), Duration::from_secs(1));
    let from = driver.now;
    let read = driver.begin(read("film", Bytes::ZERO, BLOCK));
    assert_eq!(driver.disks[0].flights.len(), 1);
    let end = driver.begin(Op::Shutdown);
    assert_eq!(driver.wait(end), Ok(Reply::Done));
    assert!(matches!(driver.answer(read), Some(Ok(Reply::Data { .. }))), "before it");
    assert!(driver.now - from >= Duration::from_secs(1));
}

/// Where the log cannot be written all writers hear so, once: a pool of which nothing is written
/// any more has nothing more to do for them.
#[test]
fn writers_hear_once_that_nothing_is_committed_any_more() {
    let mut driver = Setup::new(1).open();
    let slow = contract(RATE / 64, BLOCK, Bytes::ZERO);
    let writers: Vec<StreamId> = (0..limits::ROUND_STEP * 2)
        .map(|number| {
            let name = format!("v{number}");
            driver.volume(&name, Bytes::mib(1));
            driver.writer(&name, slow)
        })
        .collect();
    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(Direction::Write));
    let made = driver.begin(create("more", Bytes::MIB, Placement::default()));
    let asks: Vec<_> = writers
        .iter()
        .map(|&stream| driver.begin(Op::StreamDurable { stream, beyond: Bytes::ZERO }))
        .collect();
    assert!(driver.wait(made).is_err());
    for ask in asks {
        assert!(driver.wait(ask).is_err());
    }
    driver.run(ms(10));
    assert_ne!(driver.node.next_timer(), Some(driver.now));
}

/// A record that is longer than one write of the log is durable when all of its writes are; and
/// where one of them fails, nothing of it is said to be.
#[test]
fn a_record_of_several_writes_is_done_when_all_of_them_are() {
    for fails in [None, Some(0), Some(1)] {
        let mut driver = Setup::new(1).open();
        driver.disks[0].holds = true;
        let name = |number: u64| format!("{number:0>64}");
        let first = driver.begin(create(&name(0), Bytes::MIB, Placement::default()));
        let op = |number| create(&name(number), Bytes::ZERO, Placement::default());
        let asked: Vec<_> = (1..1_200).map(|number| driver.begin(op(number))).collect();
        driver.disks[0].holds = false;
        assert!(is_made(driver.wait(first)));
        let before = driver.journal.len();
        let mut ended = 0;
        while !driver.is_answered(asked[0]) {
            let of_record = |flight: &medium::Flight| {
                matches!(flight.command.action, DiskAction::WriteBytes { .. })
            };
            driver.disks[0].troubles.clear();
            if fails == Some(ended) && driver.disks[0].flights.values().any(of_record) {
                driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(Direction::Write));
            }
            assert!(driver.step(Instant::MAX));
            ended = records(&driver, before).len();
        }
        assert!(ended > 1, "in several writes");
        let is_good = fails.is_none();
        for ticket in asked {
            assert_eq!(driver.wait(ticket).is_ok(), is_good);
        }
        let driver = driver.after_a_power_cut();
        let there = (1..1_200).filter(|&number| driver.node.volume(&name(number)).is_some());
        assert_eq!(there.count(), if is_good { 1_199 } else { 0 });
    }
}

/// A node that is shut down refuses what is new, hands back what no disk has begun, syncs what
/// was written, and ends when all is on the medium.
#[test]
fn a_node_that_is_shut_down_ends_in_order() {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(8), Bytes::mib(1), 1);
    let stream = driver.writer("film", usual());
    driver.put_all(stream, 2, BLOCK + Bytes::new(10));
    driver.run(ms(300));
    driver.disks[0].holds = true;
    let begun = driver.begin(read("film", BLOCK * 4, BLOCK));
    let waits = driver.begin(read("film", BLOCK * 5, BLOCK));
    let rest = driver.all_rooms_but(2);
    let no_memory = driver.begin(room(Bytes::MIB));
    let more = driver.begin(room(Bytes::MIB));
    let ended = driver.begin(Op::Shutdown);
    let ending = || Err(Error::ShuttingDown);
    let told = [waits, more].map(|ticket| driver.answer(ticket));
    assert!(told.iter().any(|told| *told == Some(ending())), "{told:?}");
    assert_eq!(driver.at_once(create("new", Bytes::MIB, Placement::default())), ending());
    assert_eq!(driver.at_once(Op::Shutdown), ending());
    assert_eq!(driver.answer(ended), None);
    driver.disks[0].holds = false;
    assert!(matches!(driver.wait(begun), Ok(Reply::Data { .. })), "a disk had begun with it");
    for span in rest {
        driver.done(Op::Release { span });
    }
    let _ = no_memory;
    assert_eq!(driver.wait(ended), Ok(Reply::Done));
    let mut driver = driver.after_a_power_cut();
    let got = driver.read("film", Bytes::ZERO, Bytes::kib(128)).unwrap();
    let end = (BLOCK + Bytes::new(10)).as_usize();
    assert!(got[..end] == pattern(2, Bytes::ZERO, Bytes::new(end as u64)));
}

/// Where flushes come to take so long that commits are further apart, writers that are open come
/// further between two of them: the log's contract holds what they add then.
#[test]
fn records_of_open_writers_are_counted_anew_where_commits_come_to_be_further_apart() {
    let capacity = Bytes::mib(256);
    let rate = contract(Rate::per_second(4 << 20), Bytes::mib(4), Bytes::mib(4));
    let slow = || profile(capacity, FIXED, ms(600));
    let writer = |driver: &mut Driver| {
        driver.volume("film", Bytes::mib(100));
        driver.stream(open("film", Mode::Write, rate, Bytes::ZERO))
    };
    let mut driver = Setup::new(1).open();
    writer(&mut driver);
    let before = driver.node.log();
    driver.done(Op::ProfileSet { disk: DISK, profile: Box::new(slow()) });
    let now = driver.node.log();

    let mut setup = Setup::new(1);
    setup.profiles = vec![slow()];
    let mut driver = setup.open();
    writer(&mut driver);
    let from_the_start = driver.node.log();
    assert!(now.extents > before.extents, "{before:?} {now:?}");
    assert_eq!((now.extents, now.record_max), (from_the_start.extents, from_the_start.record_max));
    assert!(now.contract >= now.record_max, "{now:?}");
}
