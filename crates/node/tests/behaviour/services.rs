//! Volumes under contract: what is promised of answers and of a rate is kept while others want
//! all of the disk, is accounted for, and goes when it is given back.

use crate::driver::*;
use node::{
    Access, Carrier, DeviceError, DiskAction, Error, Op, Placement, Policy, Priority, Reply,
    Service, ServiceAccount, Ticket, WriteRange,
};
use units::{Bytes, Direction, Duration, Instant, Rate};

const LEN: Bytes = Bytes::kib(64);

/// "film" has 8 MiB, and so has "other".
fn two() -> Driver {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(8), Bytes::mib(8), 1);
    driver.recorded("other", Bytes::mib(8), Bytes::mib(8), 2);
    driver
}

/// Keeps so many reads of a volume under way.
struct Greedy {
    volume: &'static str,
    len: Bytes,
    many: usize,
    reads: Vec<Ticket>,
    done: u64,
}

impl Greedy {
    fn new(volume: &'static str, len: Bytes, many: usize) -> Self {
        Self { volume, len, many, reads: Vec::new(), done: 0 }
    }

    fn pump(&mut self, driver: &mut Driver) {
        let before = self.reads.len();
        self.reads.retain(|&ticket| match driver.answer(ticket) {
            Some(Ok(Reply::Data { bytes: span, .. })) => {
                driver.done(Op::Release { span });
                false
            }
            Some(other) => panic!("{other:?}"),
            None => true,
        });
        self.done += (before - self.reads.len()) as u64;
        while self.reads.len() < self.many {
            self.reads.push(driver.begin(read(self.volume, Bytes::ZERO, self.len)));
        }
    }

    /// Time goes on until a ticket is answered.
    fn wait(&mut self, driver: &mut Driver, ticket: Ticket) -> Result<Reply, Error> {
        loop {
            self.pump(driver);
            if let Some(answer) = driver.answer(ticket) {
                return answer;
            }
            assert!(driver.step(Instant::MAX));
        }
    }

    fn run_to(&mut self, driver: &mut Driver, until: Instant) {
        while driver.step(until) {
            self.pump(driver);
        }
        driver.now = driver.now.max(until);
    }
}

fn account(driver: &Driver) -> ServiceAccount {
    driver.node.volume("film").unwrap().account
}

/// Answers in time: each read is there within 100 ms of the call, whatever others do, and no
/// memory is waited for. What it has of the disk is what it costs at the worst in its period.
#[test]
fn answers_in_time_are_in_time_beside_greedy_programs() {
    let mut driver = two();
    let latency = in_time(LEN, ms(100), ms(200));
    driver.done(service("film", latency));
    let status = driver.node.volume("film").unwrap();
    assert_eq!(status.service, latency);
    // 10.625 ms in 200.
    assert_eq!(status.shares, [(DISK, 53_125)]);
    // One operation, and one whose bytes are on their way; each 4 KiB longer than promised.
    assert_eq!((status.operations, status.memory), (2, (LEN + Bytes::kib(4)) * 2));
    assert_eq!(driver.node.status(driver.now).memory.services, status.memory);
    let mut greedy = Greedy::new("other", Bytes::MIB, PIECES + 4);
    greedy.pump(&mut driver);
    for round in 0..20 {
        let next = driver.now + ms(200);
        let asked = driver.now;
        let ticket = driver.begin(read("film", LEN * round, LEN));
        let Ok(Reply::Data { bytes: span, .. }) = greedy.wait(&mut driver, ticket) else {
            panic!()
        };
        assert!(driver.now - asked <= ms(100), "{:?}", driver.now - asked);
        assert!(driver.bytes(span) == pattern(1, LEN * round, LEN));
        driver.done(Op::Release { span });
        greedy.run_to(&mut driver, next);
    }
    let told = account(&driver);
    assert_eq!((told.requests, told.late_requests, told.late_max), (20, 0, Duration::ZERO));
    assert!(told.latency_max > Duration::ZERO && told.latency_max <= ms(100));
    // Sooner than promised: the second is due a period after the first, by its turn.
    let tickets = [0, 1].map(|round| driver.begin(read("film", LEN * round, LEN)));
    let asked = driver.now;
    for (number, ticket) in (0..).zip(tickets) {
        let Ok(Reply::Data { bytes: span, .. }) = greedy.wait(&mut driver, ticket) else {
            panic!()
        };
        assert!(driver.now - asked <= ms(100) + ms(200) * number);
        driver.done(Op::Release { span });
    }
    assert_eq!(account(&driver).late_requests, 0, "nobody promised it sooner");
    // A longer one has a turn for each piece of the promised length, which a disk that has the time
    // does in one command.
    let before = driver.journal.len();
    let ticket = driver.begin(read("film", Bytes::ZERO, LEN * 2));
    let Ok(Reply::Data { bytes: span, .. }) = greedy.wait(&mut driver, ticket) else { panic!() };
    driver.done(Op::Release { span });
    let own = driver.since(before).iter().filter(|done| {
        done.report.is_some_and(|report| report.whose == Carrier::Operation(Some(ticket)))
    });
    let lengths: Vec<_> = own.map(|done| done.action.transfer().unwrap().0).collect();
    assert_eq!(lengths.iter().map(|range| range.end - range.start).collect::<Vec<_>>(), [LEN * 2]);
    assert_eq!((account(&driver).requests, account(&driver).late_requests), (23, 0));
}

/// What a slow place takes never fits between the answers of a contract: who reads it hears that
/// after a time, in place of waiting for ever, and others pass it meanwhile.
#[test]
fn a_read_for_which_there_will_be_no_slack_is_told_so() {
    let mut driver = two();
    driver.done(service("other", in_time(LEN, ms(100), ms(150))));
    let before = driver.journal.len();
    driver.read("film", Bytes::ZERO, LEN).unwrap();
    let read_of = |done: &Done| done.action.transfer().map(|(range, _)| range.start);
    let place = driver.since(before).iter().find_map(read_of).expect("it is on the disk");
    driver.slow_at(DISK, place..place + Bytes::MIB, ms(300));
    // Until it is known to be slow.
    let slow = (0..48).find_map(|_| {
        (1..6).for_each(|at| drop(driver.read("film", Bytes::mib(at), LEN).unwrap()));
        let ticket = driver.begin(read("film", Bytes::ZERO, LEN));
        driver.run(Duration::from_secs(1));
        (!driver.is_answered(ticket)).then_some(ticket)
    });
    let slow = slow.expect("slow reads are noticed");
    for _ in 0..28 {
        driver.run(Duration::from_secs(1));
        driver.read("film", Bytes::mib(3), LEN).unwrap();
        assert!(!driver.is_answered(slow), "the contract may go soon");
    }
    driver.run(Duration::from_secs(40));
    let answer = driver.answer(slow).expect("it is told");
    assert_eq!(answer, Err(Error::Device { disk: DISK, error: DeviceError::NO_SLACK }));
    assert!(answer.unwrap_err().to_string().contains("never leave time"));
    driver.done(service("other", Service::default()));
    driver.read("film", Bytes::ZERO, LEN).unwrap();
}

/// Of a stream that reads there the block is a gap after that time, and late; the stream goes on
/// behind it.
#[test]
fn a_streams_block_for_which_there_will_be_no_slack_is_a_gap() {
    let mut driver = two();
    let before = driver.journal.len();
    driver.read("film", Bytes::ZERO, LEN).unwrap();
    let read_of = |done: &Done| done.action.transfer().map(|(range, _)| range.start);
    let place = driver.since(before).iter().find_map(read_of).expect("it is on the disk");
    driver.done(service("other", in_time(LEN, ms(100), ms(150))));
    driver.slow_at(DISK, place..place + Bytes::MIB, ms(300));
    let slow = (0..48).find_map(|_| {
        (1..6).for_each(|at| drop(driver.read("film", Bytes::mib(at), LEN).unwrap()));
        let ticket = driver.begin(read("film", Bytes::ZERO, LEN));
        driver.run(Duration::from_secs(1));
        (!driver.is_answered(ticket)).then_some(ticket)
    });
    let slow = slow.expect("slow reads are noticed");
    driver.run(Duration::from_secs(65));
    assert!(driver.is_answered(slow), "nothing of best effort waits any more");
    let film = driver.reader("film", usual());
    let asked = driver.begin(Op::StreamRead { stream: film, len_max: LEN });
    for _ in 0..28 {
        driver.run(Duration::from_secs(1));
        assert!(!driver.is_answered(asked), "the contract may go soon");
    }
    driver.run(Duration::from_secs(40));
    let answer = driver.answer(asked).expect("it is told");
    assert_eq!(answer, Ok(Reply::Gap { offset: Bytes::ZERO, len: LEN }));
    let account = driver.node.stream(film).unwrap().account;
    assert!(account.late_max >= Duration::from_secs(25), "{account:?}");
}

/// A request that had to wait counts from the program's call, and is late where the disk is.
#[test]
fn lateness_counts_from_the_call() {
    let mut driver = two();
    driver.done(service("film", in_time(LEN, ms(100), ms(100))));
    driver.run(Duration::from_secs(1));
    let arrived = driver.now - ms(40);
    driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), ms(80));
    let op = read("film", Bytes::ZERO, LEN);
    let ticket = driver.begin_since(arrived, op);
    let Ok(Reply::Data { .. }) = driver.wait(ticket) else { panic!() };
    // 40 ms before it came, and 10.625 + 80 on the disk.
    let latency = ms(40) + cost(LEN) + ms(80);
    let told = account(&driver);
    assert_eq!((told.requests, told.late_requests), (1, 1));
    assert_eq!((told.late_max, told.latency_max), (latency - ms(100), latency));
    let finished = driver.node.finished().expect("it was promised");
    assert_eq!(finished.whose, Carrier::Operation(Some(ticket)));
    assert_eq!(finished.latency, cost(LEN) + ms(80), "as the disk saw it");
    // Two at once: the second has its turn a period after the first.
    driver.disks[0].troubles.clear();
    driver.run(Duration::from_secs(1));
    driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), ms(50));
    let both = [2, 3].map(|at| driver.begin(read("film", LEN * at, LEN)));
    let asked = driver.now;
    for ticket in both {
        driver.wait(ticket).expect("read");
    }
    assert!(driver.now - asked > ms(100), "the second is there after 100 ms,");
    assert_eq!(account(&driver).late_requests, 1, "and nobody promised it sooner");
    // Served otherwise from now on, it counts anew.
    driver.done(service("film", Service::default()));
    assert_eq!(driver.node.volume("film").unwrap().memory, Bytes::kib(0));
}

/// A rate is had whatever others do, and not only that: what is beyond it goes in the slack.
#[test]
fn a_rate_is_had_beside_greedy_programs_and_more_in_an_idle_pool() {
    let mut driver = two();
    // 4 operations of 64 KiB in half a second: 42.5 ms of 500.
    let rate = at_rate(Rate::per_second(512 << 10), LEN, ms(500));
    driver.done(service("film", rate));
    let status = driver.node.volume("film").unwrap();
    assert_eq!(status.shares, [(DISK, 85_000)]);
    assert_eq!((status.operations, status.memory), (5, (LEN + Bytes::kib(4)) * 5));
    let mut own = Greedy::new("film", LEN, 4);
    driver.done(service("other", Service::BestEffort(Priority::Interactive)));
    let mut greedy = Greedy::new("other", LEN, 12);
    own.pump(&mut driver);
    greedy.pump(&mut driver);
    let until = driver.now + Duration::from_secs(10);
    while driver.step(until) {
        own.pump(&mut driver);
        greedy.pump(&mut driver);
    }
    assert!(own.done >= 78, "{} of 80", own.done);
    assert!(greedy.done >= 400, "{} by the others", greedy.done);
    let told = account(&driver);
    assert_eq!(told.late_requests, 0);
    assert!(told.requests > 0 && told.latency_max > Duration::ZERO);
    // Alone it has all of the disk.
    while let Some(ticket) = greedy.reads.pop() {
        if let Ok(Reply::Data { bytes: span, .. }) = own.wait(&mut driver, ticket) {
            driver.done(Op::Release { span });
        }
    }
    let (before, until) = (own.done, driver.now + Duration::from_secs(2));
    own.run_to(&mut driver, until);
    assert!(own.done - before > 100, "{}", own.done - before);
}

/// An operation that is longer than those of the contract has a turn for each of its pieces. A disk
/// that has the time does them in one command; where others are promised more, in as many as the
/// slack wants.
#[test]
fn a_long_operation_under_a_rate_is_one_command_where_there_is_time() {
    let mut driver = two();
    driver.done(service("film", at_rate(Rate::per_second(512 << 10), LEN, ms(500))));
    let lengths = |driver: &Driver, from: usize| -> Vec<u64> {
        let is_data = |done: &&Done| !matches!(done.action, DiskAction::WriteBytes { .. });
        let all = driver.since(from).iter().filter(is_data);
        let all = all.filter_map(|done| done.action.transfer());
        all.map(|(range, _)| (range.end - range.start) / Bytes::kib(1)).collect()
    };
    let from = driver.journal.len();
    driver.write("film", 7, Bytes::MIB, Bytes::MIB);
    assert_eq!(lengths(&driver, from), [1024]);
    let from = driver.journal.len();
    assert!(
        driver.read("film", Bytes::MIB, Bytes::MIB).unwrap() == pattern(7, Bytes::MIB, Bytes::MIB)
    );
    assert_eq!(lengths(&driver, from), [1024]);
    let told = account(&driver);
    assert_eq!((told.requests, told.late_requests), (2, 0));
    // What was never written is not read.
    driver.volume("holes", Bytes::MIB);
    driver.done(service("holes", at_rate(Rate::per_second(128 << 10), LEN, ms(1_000))));
    driver.write("holes", 8, LEN * 2, LEN * 3);
    driver.write("holes", 8, LEN * 9, LEN);
    // Of a piece all but 4 KiB, of one only the middle, and of the next all but the last 4 KiB.
    let kib = Bytes::kib(4);
    driver.write("holes", 8, LEN * 5, kib * 7);
    driver.write("holes", 8, LEN * 5 + kib * 8, kib * 8);
    driver.write("holes", 8, LEN * 11 + kib * 3, kib);
    driver.write("holes", 8, LEN * 12, LEN - kib);
    let from = driver.journal.len();
    let bytes = driver.read("holes", Bytes::ZERO, Bytes::MIB).unwrap();
    let mut told = lengths(&driver, from);
    told.sort();
    assert_eq!(told, [4, 60, 64, 64, 192]);
    let all = pattern(8, Bytes::ZERO, Bytes::MIB);
    for (place, (&byte, &was)) in bytes.iter().zip(&all).enumerate() {
        let (piece, block) = (place as u64 / LEN.get(), place as u64 % LEN.get() / kib.get());
        let is_written = match piece {
            2 | 3 | 4 | 9 => true,
            5 => block != 7,
            11 => block == 3,
            12 => block < 15,
            _ => false,
        };
        assert_eq!(byte, if is_written { was } else { 0 }, "{place}");
    }
    // With an answer promised within 30 ms, of which 11 are its own, a MiB of 25 ms is too long.
    driver.done(service("other", in_time(LEN, ms(30), ms(60))));
    let from = driver.journal.len();
    driver.write("film", 10, Bytes::MIB, Bytes::MIB);
    let told = lengths(&driver, from);
    assert!(told.len() > 1 && told.iter().sum::<u64>() == 1024, "{told:?}");
    assert_eq!(account(&driver).late_requests, 0);
    // It fails as a whole.
    driver.break_at(DISK, Bytes::ZERO..Bytes::mib(256), Some(Direction::Write));
    let from = driver.journal.len();
    let ticket = driver.begin_write("film", 9, Bytes::MIB, Bytes::MIB);
    let told = driver.wait(ticket);
    assert!(matches!(told, Err(Error::Device { .. })), "{told:?}");
    assert!(lengths(&driver, from)[0] > 64);
}

/// The disk turns out slower while operations of a rate wait that have their budget: they are
/// served by when they were due before, and those behind them under the contract, too.
#[test]
fn what_waits_under_a_rate_is_due_as_before_when_the_disk_is_slower() {
    let mut driver = two();
    let period = ms(500);
    driver.done(service("film", at_rate(Rate::per_second(512 << 10), LEN, period)));
    driver.done(service("other", Service::BestEffort(Priority::Interactive)));
    let mut greedy = Greedy::new("other", LEN, 12);
    greedy.pump(&mut driver);
    let mut waited = 0;
    for round in 0..20 {
        // What it had is there again.
        let until = driver.now + ms(2_000);
        greedy.run_to(&mut driver, until);
        let begun = driver.now;
        let mut own: Vec<_> = (0..4).map(|_| driver.begin(read("film", LEN, LEN))).collect();
        let until = begun + ms(20 * round);
        greedy.run_to(&mut driver, until);
        own.retain(|&ticket| !driver.is_answered(ticket));
        waited += own.len();
        let fixed = FIXED + ms(round + 1) / 4;
        let slower = Box::new(profile(Bytes::mib(256), fixed, FLUSH));
        let set = driver.begin(Op::ProfileSet { disk: DISK, profile: slower });
        for ticket in own {
            greedy.wait(&mut driver, ticket).unwrap();
            assert!(driver.now <= begun + period, "round {round}: {}", driver.now - begun);
        }
        greedy.wait(&mut driver, set).unwrap();
    }
    assert!(waited > 20, "{waited}");
    assert_eq!(account(&driver).late_requests, 0);
}

/// What does not fit is refused with what would not, and changes nothing: neither the disk's
/// part, nor the memory, nor the service.
#[test]
fn a_service_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut driver = two();
    let first = in_time(LEN, ms(100), ms(200));
    driver.done(service("film", first));
    let before = driver.node.status(driver.now);
    // Slack for 64 KiB is left to best effort at the least; another's command may be in the way,
    // but not both.
    let told = driver.at_once(service("film", in_time(LEN, ms(20), ms(40))));
    let Err(Error::Refused(refusal)) = told else { panic!("{told:?}") };
    let shortest = cost(Bytes::kib(64));
    assert_eq!(refusal.deadline, Some((ms(20), shortest + cost(LEN) - ms(20))));
    // Shorter than the command itself takes.
    let told = driver.at_once(service("film", in_time(LEN, ms(10), ms(40))));
    let Err(Error::Refused(refusal)) = told else { panic!("{told:?}") };
    assert_eq!(refusal.deadline, Some((ms(10), cost(LEN) - ms(10))));
    // More than a quarter of all memory: 32 MiB of 64 KiB and 4.
    let rate = at_rate(Rate::per_second(3 << 20), LEN, Duration::from_secs(10));
    let told = driver.at_once(service("other", rate));
    assert!(no_memory(&told), "{told:?}");
    let after = driver.node.status(driver.now);
    assert_eq!((before.volumes, before.memory), (after.volumes, after.memory));
    for (before, after) in before.disks.iter().zip(&after.disks) {
        assert_eq!(before.utilisation_ppm, after.utilisation_ppm);
        assert_eq!(before.slack, after.slack);
    }
    // It is still kept.
    let mut greedy = Greedy::new("other", Bytes::MIB, 4);
    greedy.pump(&mut driver);
    let asked = driver.now;
    let ticket = driver.begin(read("film", Bytes::ZERO, LEN));
    greedy.wait(&mut driver, ticket).expect("read");
    assert!(driver.now - asked <= ms(100));
    let mut invalid = |service_: Service, what: &str| {
        let told = driver.at_once(service("film", service_));
        assert!(matches!(told, Err(Error::Invalid { what: other, .. }) if other == what));
    };
    let rate = Rate::per_second;
    invalid(at_rate(rate(0), LEN, ms(10)), "rate");
    invalid(at_rate(rate(u64::MAX), LEN, ms(10)), "rate");
    invalid(at_rate(rate(9), Bytes::kib(5), ms(10)), "size of an operation");
    invalid(in_time(Bytes::ZERO, ms(10), ms(10)), "size of an operation");
    invalid(in_time(Bytes::mib(2), ms(10), ms(10)), "size of an operation");
    invalid(in_time(LEN, ms(10), Duration::from_micros(999)), "period");
    invalid(in_time(LEN, ms(10), Duration::from_micros(60_000_001)), "period");
    invalid(in_time(LEN, ms(11), ms(10)), "time within");
}

/// A refusal says what would be admitted, and that is.
#[test]
fn a_refusal_tells_a_time_and_a_rate_that_fit() {
    let mut driver = two();
    let refusal = |driver: &mut Driver, service_| match driver.at_once(service("film", service_)) {
        Err(Error::Refused(refusal)) => refusal,
        told => panic!("{told:?}"),
    };
    let refused = refusal(&mut driver, at_rate(Rate::per_second(1 << 40), LEN, ms(500)));
    let (largest, more) = (refused.rate_max, Rate::per_second(refused.rate_max.get() + 1));
    refusal(&mut driver, at_rate(more, LEN, ms(500)));
    driver.done(service("film", at_rate(largest, LEN, ms(500))));
    // In the place of what it has, and beside another.
    driver.done(service("film", Service::BestEffort(Priority::Normal)));
    driver.done(service("other", in_time(LEN, ms(100), ms(200))));
    driver.done(service("film", in_time(LEN, ms(100), ms(200))));
    let refused = refusal(&mut driver, in_time(LEN, ms(5), ms(200)));
    let within = refused.within.expect("there is one");
    assert!(within > ms(5) && within < ms(100), "{within}");
    driver.done(service("film", in_time(LEN, within, ms(200))));
    // No time is long enough.
    assert_eq!(refusal(&mut driver, in_time(Bytes::MIB, ms(10), ms(20))).within, None);
}

/// Where one disk of several cannot keep it, none of them does.
#[test]
fn a_contract_is_on_all_disks_or_on_none() {
    let mut driver = Setup::new(2).open();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    let placement = Placement { disks: vec![node::DiskIndex(1)], ..Placement::default() };
    driver.done(create("other", Bytes::mib(2), placement));
    let stream = driver.reader("film", usual());
    driver.done(service("film", in_time(LEN, ms(150), ms(200))));
    // The second disk is full: nothing that is as short as these is taken there.
    let slow = contract(RATE / 4, BLOCK, Bytes::ZERO);
    for rate in [usual(), slow] {
        let op = open("other", node::Mode::Read, rate, Bytes::ZERO);
        while driver.ask(op.clone()).is_ok() {}
    }
    let before = driver.node.status(driver.now);
    let told = driver.at_once(service("film", in_time(LEN, ms(60), ms(60))));
    assert!(is_refused(&told), "{told:?}");
    let faster = contract(RATE * 2, BLOCK, Bytes::ZERO);
    let told = driver.at_once(Op::StreamChange { stream, contract: faster });
    assert!(is_refused(&told), "{told:?}");
    let after = driver.node.status(driver.now);
    for (before, after) in before.disks.iter().zip(&after.disks) {
        assert_eq!(before.utilisation_ppm, after.utilisation_ppm);
        assert_eq!(before.slack, after.slack);
    }
    assert_eq!((before.memory, before.volumes), (after.memory, after.volumes));
}

/// What waits and is longer than a new contract allows for does not come under it.
#[test]
fn what_waits_and_is_longer_than_promised_is_not_under_the_contract() {
    let mut driver = two();
    driver.disks[0].holds = true;
    driver.begin(read("other", Bytes::ZERO, LEN));
    let long = driver.begin(read("film", Bytes::ZERO, Bytes::MIB));
    let set = driver.begin(service("film", in_time(LEN, ms(100), ms(200))));
    assert!(!driver.is_answered(set), "it is not durable yet, and in force at once");
    assert_eq!(driver.node.volume("film").unwrap().shares, [(DISK, 53_125)]);
    driver.disks[0].holds = false;
    let from = driver.journal.len();
    driver.wait(long).expect("read");
    assert_eq!(driver.wait(set), Ok(Reply::Done));
    let promised = driver.since(from).iter().filter_map(|done| done.report);
    assert!(promised.into_iter().all(|report| report.whose == Carrier::Pool));
}

/// A volume under contract is not made smaller; it is grown with its contract on more disks,
/// and gives everything back when it goes.
#[test]
fn a_volume_under_contract_grows_with_it_and_gives_it_back() {
    let mut driver = Setup::new(2).open();
    driver.recorded("film", Bytes::mib(1), Bytes::mib(1), 1);
    let before = driver.node.status(driver.now);
    driver.done(service("film", in_time(LEN, ms(100), ms(200))));
    assert_eq!(driver.node.volume("film").unwrap().shares.len(), 1);
    let cut = Op::VolumeResize { name: "film".into(), size: Bytes::kib(512), may_cut: true };
    let told = driver.at_once(cut);
    assert!(matches!(&told, Err(Error::UnderContract { name }) if name == "film"), "{told:?}");
    driver.done(resize("film", Bytes::mib(3)));
    let status = driver.node.volume("film").unwrap();
    assert_eq!(status.shares, [(DISK, 53_125), (node::DiskIndex(1), 53_125)]);
    assert_eq!((status.operations, status.memory), (4, (LEN + Bytes::kib(4)) * 4));
    driver.done(delete("film"));
    let after = driver.node.status(driver.now);
    assert_eq!(before.memory, after.memory);
    for (before, after) in before.disks.iter().zip(&after.disks) {
        assert_eq!(before.utilisation_ppm, after.utilisation_ppm);
    }
}

/// A service without a contract says who goes first among those without one; what waits
/// already is served in the new way, too. A handle's own priority counts as far as the
/// volume's lets it.
#[test]
fn priorities_decide_who_goes_first_also_of_what_waits() {
    let first = |before: fn(&mut Driver), stated: [Option<Priority>; 2]| {
        let mut driver = two();
        before(&mut driver);
        driver.disks[0].holds = true;
        let busy = driver.begin(read("other", Bytes::mib(4), Bytes::MIB));
        let begin = |driver: &mut Driver, volume, priority| match priority {
            Some(priority) => driver.begin(read_as(volume, Bytes::ZERO, LEN, priority)),
            None => driver.begin(read(volume, Bytes::ZERO, LEN)),
        };
        let other = begin(&mut driver, "other", stated[1]);
        let film = begin(&mut driver, "film", stated[0]);
        (driver, busy, film, other)
    };
    let film_is_first = |(mut driver, _, film, other): (Driver, Ticket, Ticket, Ticket)| {
        driver.disks[0].holds = false;
        while !driver.is_answered(film) && !driver.is_answered(other) {
            assert!(driver.step(Instant::MAX));
        }
        driver.is_answered(film)
    };
    use Priority::*;
    let plain = |_: &mut Driver| {};
    assert!(!film_is_first(first(plain, [None, None])), "as they came");
    assert!(film_is_first(first(plain, [Some(Interactive), None])));
    assert!(film_is_first(first(plain, [None, Some(Background)])));
    let background = |driver: &mut Driver| {
        driver.done(service("other", Service::BestEffort(Background)));
    };
    assert!(film_is_first(first(background, [None, None])));
    assert!(film_is_first(first(background, [None, Some(Interactive)])), "no more than it has");
    let contract = |driver: &mut Driver| {
        driver.done(service("film", in_time(LEN, ms(100), ms(200))));
    };
    assert!(!film_is_first(first(contract, [Some(Background), None])), "left to the others");
    // While they wait, the volume of the one behind becomes more urgent, or the other less.
    let (mut driver, busy, film, other) = first(plain, [None, None]);
    driver.disks[0].holds = true;
    driver.begin(service("other", Service::BestEffort(Background)));
    assert!(film_is_first((driver, busy, film, other)));
    let (mut driver, busy, film, other) = first(plain, [None, None]);
    let set = driver.begin(service("film", in_time(LEN, ms(100), ms(200))));
    driver.disks[0].holds = false;
    for ticket in [busy, film, other] {
        driver.wait(ticket).expect("read");
    }
    assert_eq!(driver.wait(set), Ok(Reply::Done));
    // The commit that keeps the service is under the log's contract.
    let reports = driver.journal.iter().filter_map(|done| done.report);
    let whose = reports.map(|report| report.whose);
    let whose: Vec<_> = whose.filter(|whose| *whose != Carrier::Pool).collect();
    assert_eq!(whose, [Carrier::Operation(Some(film))], "it came under the contract");
    let (mut driver, busy, film, other) = first(contract, [None, None]);
    driver.begin(service("film", Service::BestEffort(Background)));
    assert!(!film_is_first((driver, busy, film, other)), "the contract is gone");
    assert_eq!(Service::BestEffort(Normal).granted(Interactive), Some(Normal));
    assert_eq!(Service::BestEffort(Normal).granted(Background), Some(Background));
    let latency = in_time(LEN, ms(100), ms(200));
    assert_eq!(
        (latency.granted(Interactive), latency.granted(Background)),
        (None, Some(Background))
    );
}

/// A background write that somebody's own write waits for is done in its stead at once.
#[test]
fn who_waits_for_a_background_write_lifts_it() {
    let order = |second: Priority| {
        let mut driver = two();
        driver.disks[0].holds = true;
        driver.begin(read("other", Bytes::mib(4), Bytes::MIB));
        let range = node::WriteRange::new(Bytes::ZERO, LEN);
        let span = driver.room(LEN);
        let below = driver.begin(write_as("film", range, span, Priority::Background));
        let others: Vec<Ticket> =
            (0..6).map(|number| driver.begin(read("other", LEN * number, LEN))).collect();
        let span = driver.room(LEN);
        let above = driver.begin(write_as("film", range, span, second));
        driver.disks[0].holds = false;
        assert_eq!(driver.wait(above), Ok(Reply::Done));
        assert_eq!(driver.wait(below), Ok(Reply::Done));
        others.iter().filter(|&&ticket| driver.is_answered(ticket)).count()
    };
    assert!(order(Priority::Interactive) < 6, "before the reads that wait");
    assert_eq!(order(Priority::Background), 6, "nobody is in a hurry");
}

/// A contract lasts as long as its volume: another one of the same name has none.
#[test]
fn a_contract_goes_with_its_volume() {
    let mut driver = two();
    driver.done(service("film", in_time(LEN, ms(100), ms(200))));
    driver.done(delete("film"));
    let access = Access::default();
    let (size, placement) = (Bytes::mib(1), Placement::default());
    driver.done(Op::VolumeCreate { name: "film".into(), size, placement, access });
    let status = driver.node.volume("film").unwrap();
    assert_eq!((status.service, status.shares, status.operations), Default::default());
}

/// What is promised within a part of the period is late after that part, not after the period.
#[test]
fn an_answer_is_late_after_the_promised_time_not_after_the_period() {
    let mut driver = two();
    driver.done(service("film", in_time(LEN, ms(100), ms(400))));
    driver.run(Duration::from_secs(1));
    driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), ms(150));
    driver.read("film", Bytes::ZERO, LEN).unwrap();
    let told = account(&driver);
    assert_eq!((told.requests, told.late_requests), (1, 1));
    assert_eq!(told.late_max, cost(LEN) + ms(150) - ms(100));
}

/// A write that had begun before there was a contract is none of it, though its last command
/// comes under it.
#[test]
fn what_began_without_a_contract_is_not_counted_under_it() {
    let mut driver = two();
    driver.disks[0].holds = true;
    let range = WriteRange::new(Bytes::new(100), Bytes::new(50));
    let span = driver.room(range.room());
    driver.fill(span, 1, &range);
    let ticket = driver.begin(write("film", range, span));
    driver.run(ms(1));
    assert_eq!(driver.disks[0].flights.len(), 1, "the rest of its block is read");
    // In force at once, and answered when it is durable.
    let given = driver.begin(service("film", in_time(LEN, ms(100), ms(200))));
    driver.disks[0].holds = false;
    assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    assert_eq!(driver.wait(given), Ok(Reply::Done));
    assert_eq!(account(&driver).requests, 0);
    driver.read("film", Bytes::ZERO, LEN).unwrap();
    assert_eq!(account(&driver).requests, 1);
}

/// A handle is promised nothing under a policy that keeps nothing, as a volume is not, and a
/// service that the pool has kept is not in force under one; it is where that is another again.
#[test]
fn handles_and_kept_services_are_held_to_the_policy() {
    use node::Policy;
    let mut driver = Setup::new(1).with(|config| config.policy = Policy::EDF).open();
    driver.volume("film", Bytes::mib(4));
    let service = in_time(LEN, ms(100), ms(200));
    let keeps_nothing = Err(Error::KeepsNothing { policy: Policy::EDF.into() });
    let asked = driver.at_once(Op::HandleOpen { volume: "film".into(), service });
    assert_eq!(asked, keeps_nothing);
    assert_eq!(driver.at_once(crate::driver::service("film", service)), keeps_nothing);
    driver.done(Op::PolicySet { policy: Policy::SLACK.into(), keep: true });
    assert!(driver.ask(Op::HandleOpen { volume: "film".into(), service }).is_ok());
}

/// "film" and "other" have answers in time, a command of neither is under way, and the disk is at one
/// of somebody else.
fn two_in_time(within: [u64; 2]) -> Driver {
    in_time_both(two(), within)
}

fn in_time_both(mut driver: Driver, within: [u64; 2]) -> Driver {
    driver.recorded("plain", Bytes::MIB, Bytes::MIB, 3);
    for (name, within) in ["film", "other"].into_iter().zip(within) {
        driver.done(service(name, in_time(LEN, ms(within), ms(200))));
    }
    driver.run(Duration::from_secs(1));
    driver
}

/// Which of these was answered first.
fn first_of(driver: &mut Driver, tickets: [Ticket; 2]) -> Ticket {
    for ticket in tickets {
        assert!(driver.wait(ticket).is_ok());
    }
    let first = driver.order.iter().find(|ticket| tickets.contains(ticket));
    *first.expect("both were answered")
}

/// What has waited before its command was asked for is due in the promised time after the call: it
/// goes before another that is due sooner after its own call, but later.
#[test]
fn who_called_earlier_goes_first_where_he_is_due_first() {
    let mut driver = two_in_time([100, 80]);
    driver.disks[0].holds = true;
    driver.begin(read("plain", Bytes::ZERO, LEN));
    let other = driver.begin(read("other", Bytes::ZERO, LEN));
    let film = driver.begin_since(driver.now - ms(60), read("film", Bytes::ZERO, LEN));
    driver.disks[0].holds = false;
    assert_eq!(first_of(&mut driver, [film, other]), film);
    assert_eq!(account(&driver).late_requests, 0);
}

/// An operation that was asked for late has its turn at its call. So has the next one, a period
/// after that call and not a period after the first was asked for.
#[test]
fn the_next_turn_is_a_period_after_the_call() {
    let mut driver = two_in_time([100, 100]);
    let called = driver.now - ms(60);
    let first = driver.begin_since(called, read("film", Bytes::ZERO, LEN));
    assert!(driver.wait(first).is_ok());
    driver.run_to(called + ms(200));
    driver.disks[0].holds = true;
    driver.begin(read("plain", Bytes::ZERO, LEN));
    let film = driver.begin(read("film", LEN, LEN));
    driver.run(ms(5));
    let other = driver.begin(read("other", Bytes::ZERO, LEN));
    driver.disks[0].holds = false;
    assert_eq!(first_of(&mut driver, [film, other]), film);
    assert_eq!(account(&driver).late_requests, 0);
}

/// Only the policy that looks at the exact slack can bring a turn forward. Under another one the
/// same program's turn is a period after the one before it, and who is due sooner goes first.
#[test]
fn under_other_policies_a_turn_is_a_period_after_the_one_before() {
    let mut driver = two();
    let policy = Op::PolicySet { policy: Policy::DELTA_L.into(), keep: true };
    driver.done(policy);
    let mut driver = in_time_both(driver, [100, 100]);
    let called = driver.now - ms(60);
    let first = driver.begin_since(called, read("film", Bytes::ZERO, LEN));
    assert!(driver.wait(first).is_ok());
    driver.run_to(called + ms(200));
    driver.disks[0].holds = true;
    driver.begin(read("plain", Bytes::ZERO, LEN));
    let film = driver.begin(read("film", LEN, LEN));
    driver.run(ms(5));
    let other = driver.begin(read("other", Bytes::ZERO, LEN));
    driver.disks[0].holds = false;
    assert_eq!(first_of(&mut driver, [film, other]), other);
    assert_eq!(account(&driver).late_requests, 0);
}

/// A volume comes under contract while an operation of it waits: what is promised of that counts from
/// then on. What others were promised counts from their calls, as before.
#[test]
fn what_waits_counts_anew_when_its_volume_is_served_in_another_way() {
    let mut driver = two();
    driver.done(service("other", in_time(LEN, ms(100), ms(200))));
    let _all = driver.all_rooms();
    let _rest = driver.room(Bytes::kib(956));
    let film = driver.begin(read("film", Bytes::ZERO, LEN));
    driver.run(ms(300));
    assert!(!driver.is_answered(film), "there is no memory");
    driver.disks[0].holds = true;
    let other = driver.begin_since(driver.now - ms(60), read("other", Bytes::ZERO, LEN));
    driver.run(ms(5));
    let given = driver.begin(service("film", in_time(LEN, ms(100), ms(200))));
    driver.disks[0].holds = false;
    for ticket in [film, other, given] {
        let told = driver.wait(ticket);
        assert!(told.is_ok(), "{told:?}");
    }
    let [film, other] = ["film", "other"].map(|name| driver.node.volume(name).unwrap().account);
    assert_eq!((film.requests, film.late_requests), (1, 0), "{film:?}");
    assert_eq!((other.requests, other.late_requests), (1, 0), "{other:?}");
    assert!(film.latency_max < ms(50) && other.latency_max > ms(60), "{film:?} {other:?}");
}

/// A volume grows to the size that it has, beside whoever uses it.
#[test]
fn to_the_size_that_it_has_a_volume_is_resized_whoever_uses_it() {
    let mut driver = two();
    driver.reader("film", contract(RATE / 8, BLOCK, Bytes::ZERO));
    driver.done(resize("film", Bytes::mib(8)));
}

/// A volume and a handle on it are both under contract. It grows to a disk that has room for one of
/// them only: nothing of either stays there.
#[test]
fn where_one_of_several_contracts_does_not_fit_a_larger_volume_none_stays_on_it() {
    let mut driver = Setup::new(2).open();
    driver.recorded("film", Bytes::mib(1), Bytes::mib(1), 1);
    let given = in_time(LEN, ms(100), ms(100));
    driver.done(service("film", given));
    assert!(driver.ask(Op::HandleOpen { volume: "film".into(), service: given }).is_ok());
    let mine = driver.node.volume("film").unwrap().shares[0].0;
    let other = node::DiskIndex(1 - mine.0);
    let on = Placement { disks: vec![other], ..Placement::default() };
    for number in 0.. {
        let name = format!("v{number}");
        driver.done(create(&name, Bytes::mib(1), on.clone()));
        if driver.ask(service(&name, given)).is_err() {
            // There is room for one more.
            driver.done(service(&format!("v{}", number - 1), Service::default()));
            break;
        }
    }
    let shares = |driver: &Driver| -> Vec<u64> {
        driver.node.status(driver.now).disks.iter().map(|disk| disk.utilisation_ppm).collect()
    };
    let before = shares(&driver);
    let told = driver.ask(resize("film", Bytes::mib(2)));
    assert!(is_refused(&told), "{told:?}");
    driver.run(Duration::from_secs(5));
    assert_eq!(shares(&driver), before);
    driver.read("film", Bytes::ZERO, LEN).unwrap();
}

/// Of a volume whose runs are longer than an extent neighbours may all be one disk's: each of its
/// disks promises all of the rate, and not its part of it.
#[test]
fn a_rate_over_long_runs_is_promised_by_each_disk() {
    let share = |run| {
        let mut driver = Setup::new(2).open();
        let placement = Placement { run, ..Placement::default() };
        driver.done(create("film", Bytes::mib(32), placement));
        driver.done(service("film", at_rate(RATE * 2, LEN, ms(500))));
        driver.node.volume("film").unwrap().shares
    };
    let (short, long) = (share(Bytes::mib(1)), share(Bytes::mib(4)));
    assert_eq!(short.len(), 2);
    for ((_, part), (_, all)) in short.into_iter().zip(long) {
        assert_eq!(part * 2, all);
    }
}
