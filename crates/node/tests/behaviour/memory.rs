//! Who has memory, who waits for it, and in which order they get it.
//!
//! Of 32 MiB the lowest quarter is for contracts alone, 64 KiB are zeros, 4 KiB clear ends, and best effort can
//! have the rest: 24 MiB less 68 KiB, of which 1 MiB is kept for interactive requests.

use crate::driver::*;
use node::{Error, Mode, Op, Placement, Priority, Reply, Span, Ticket, Who, WriteRange, limits};
use units::{Bytes, Duration, Instant, Rate};

fn film() -> Driver {
    let mut driver = Setup::new(1).open();
    driver.recorded("film", Bytes::mib(8), Bytes::mib(8), 1);
    driver
}

fn span_of(answer: Option<Result<Reply, Error>>) -> Option<Span> {
    match answer? {
        Ok(Reply::Room { room: span } | Reply::Data { bytes: span, .. }) => Some(span),
        other => panic!("{other:?} is no memory"),
    }
}

fn user(uid: u32) -> Who {
    Who { uid, ..Who::root() }
}

/// However many windows are open, best effort has 4 MiB; however much best effort has, windows
/// have a quarter; no two have the same.
#[test]
fn windows_and_best_effort_leave_each_other_their_parts() {
    let mut driver = film();
    let spans = driver.all_rooms();
    for (at, one) in spans.iter().enumerate() {
        assert!(one.offset >= Bytes::mib(8), "the lowest quarter is for contracts");
        for other in &spans[..at] {
            assert!(one.offset + one.len <= other.offset || other.offset + other.len <= one.offset);
        }
    }
    let more = driver.begin(room(Bytes::MIB));
    assert_eq!(driver.answer(more), None, "the rest is kept for interactive requests");
    let status = driver.node.status(driver.now).memory;
    assert_eq!(status.best_effort, Bytes::mib(22));
    assert_eq!((status.total, status.free), (Bytes::mib(32), Bytes::mib(10) - Bytes::kib(68)));
    // A window of 8 MiB: a burst of two blocks less than that.
    let burst = |len: Bytes| contract(RATE / 8, BLOCK, len - BLOCK * 2);
    let (stream, window) =
        driver.stream(open("film", Mode::Read, burst(Bytes::mib(8)), Bytes::ZERO));
    assert_eq!(window, Bytes::mib(8));
    let told = driver.at_once(open("film", Mode::Read, burst(Bytes::mib(4)), Bytes::ZERO));
    assert!(no_memory(&told), "{told:?}");
    assert_eq!(driver.close(stream), Ok(Reply::Done));
    for span in spans {
        driver.done(Op::Release { span });
    }
    let Some(span) = span_of(driver.answer(more)) else { panic!("its turn") };
    driver.done(Op::Release { span });
    // All that windows can have: 28 MiB less 68 KiB.
    let free = Bytes::mib(28) - Bytes::kib(68);
    let most = free.round_down(BLOCK);
    let told = driver.at_once(open("film", Mode::Read, burst(most + BLOCK), Bytes::ZERO));
    assert_eq!(told, Err(Error::NoMemory { asked: most + BLOCK, free }));
    let before = driver.node.status(driver.now);
    assert_eq!(before.streams.len(), 0, "nothing stays of it");
    let (_, window) = driver.stream(open("film", Mode::Read, burst(most), Bytes::ZERO));
    assert_eq!(window, most);
    assert_eq!(driver.read("film", Bytes::ZERO, Bytes::MIB).unwrap().len(), 1 << 20);
}

/// An interactive request has the memory that is kept for such when all else is taken, but no
/// more than that; others wait, in the order in which they came.
#[test]
fn interactive_requests_do_not_wait_for_others_memory() {
    let mut driver = film();
    let spans = driver.all_rooms();
    let normal = driver.begin(read("film", Bytes::ZERO, Bytes::MIB));
    let interactive = driver.begin(read_as("film", Bytes::ZERO, Bytes::MIB, Priority::Interactive));
    let second = driver.begin(read_as("film", Bytes::ZERO, Bytes::MIB, Priority::Interactive));
    driver.run(ms(500));
    let Some(span) = span_of(driver.answer(interactive)) else { panic!("it waits") };
    assert!(!driver.is_answered(normal) && !driver.is_answered(second));
    driver.done(Op::Release { span });
    driver.run(ms(500));
    assert!(driver.is_answered(second) && !driver.is_answered(normal));
    driver.done(Op::Release { span: spans[0] });
    driver.run(ms(500));
    assert!(driver.is_answered(normal));
}

/// Nobody who asks for less goes before the one whose turn it is.
#[test]
fn whose_turn_it_is_waits_until_there_is_enough_for_him() {
    let mut driver = film();
    let mut spans = driver.all_rooms();
    // Less than 1 MiB is left.
    let left = driver.room(Bytes::kib(512));
    let large = driver.begin(room(Bytes::MIB));
    let small = driver.begin(room(Bytes::kib(4)));
    assert!(!driver.is_answered(large) && !driver.is_answered(small), "in their order");
    driver.done(Op::Release { span: left });
    assert!(!driver.is_answered(large) && !driver.is_answered(small), "not enough for him");
    driver.done(Op::Release { span: spans.pop().unwrap() });
    assert!(driver.is_answered(large) && driver.is_answered(small));
}

/// So many wait at the most: where one user does with all of them, and another comes, the last that
/// the first has asked for is refused. Before, it was whoever came, for as long as the first went on.
#[test]
fn who_has_most_of_those_who_wait_is_refused_for_whoever_comes() {
    let mut driver = film();
    let spans = driver.all_rooms();
    let one = |driver: &mut Driver, uid| driver.begin_as(user(uid), room(Bytes::MIB));
    let mine: Vec<Ticket> =
        (0..limits::BEST_EFFORT_WAITING_MAX).map(|_| one(&mut driver, 1)).collect();
    let over = one(&mut driver, 1);
    assert!(matches!(driver.answer(over), Some(Err(Error::Busy { .. }))), "he has all");
    assert!(mine.iter().all(|&one| !driver.is_answered(one)));
    let other: Vec<Ticket> = (0..3).map(|_| one(&mut driver, 2)).collect();
    assert!(other.iter().all(|&one| !driver.is_answered(one)), "they wait");
    for last in mine.iter().rev().take(3) {
        assert!(matches!(driver.answer(*last), Some(Err(Error::Busy { .. }))));
    }
    assert!(mine.iter().all(|&one| !driver.is_answered(one)), "and nobody else was refused");
    let over = one(&mut driver, 1);
    assert!(matches!(driver.answer(over), Some(Err(Error::Busy { .. }))), "he has most of them");
    for span in spans {
        driver.done(Op::Release { span });
    }
    assert!(other.iter().all(|&one| span_of(driver.answer(one)).is_some()));
    assert!(span_of(driver.answer(mine[0])).is_some());
}

/// Users take turns within a class, and one who has half of all comes after those who have
/// less.
#[test]
fn users_take_turns_and_nobody_has_more_than_half_while_others_wait() {
    let mut driver = film();
    let one = |driver: &mut Driver, uid| driver.begin_as(user(uid), room(Bytes::MIB));
    let mut mine: Vec<Span> = Vec::new();
    for _ in 0..PIECES {
        let ticket = one(&mut driver, 1);
        mine.extend(span_of(driver.answer(ticket)));
    }
    assert_eq!(mine.len(), PIECES, "while nobody waits he has all");
    let again: Vec<Ticket> = (0..3).map(|_| one(&mut driver, 1)).collect();
    let other: Vec<Ticket> = (0..3).map(|_| one(&mut driver, 2)).collect();
    let third = one(&mut driver, 3);
    let release = |driver: &mut Driver, mine: &mut Vec<Span>| {
        let from = driver.order.len();
        driver.begin(Op::Release { span: mine.pop().unwrap() });
        driver.order[from..]
            .iter()
            .copied()
            .filter(|ticket| again.contains(ticket) || other.contains(ticket) || *ticket == third)
            .collect::<Vec<Ticket>>()
    };
    let mut got = Vec::new();
    for _ in 0..4 {
        got.extend(release(&mut driver, &mut mine));
    }
    assert_eq!(got, [other[0], third, other[1], other[2]], "the first has his part and more");
    got.clear();
    got.extend(release(&mut driver, &mut mine));
    assert_eq!(got, [again[0]], "and waits for nobody who does not");
    // In turns, where nobody has his part.
    let mut driver = film();
    let spans: Vec<Span> = (0..PIECES)
        .map(|uid| {
            let ticket = one(&mut driver, 100 + uid as u32);
            span_of(driver.answer(ticket)).expect("there is some")
        })
        .collect();
    let first: Vec<Ticket> = (0..2).map(|_| one(&mut driver, 1)).collect();
    let second: Vec<Ticket> = (0..2).map(|_| one(&mut driver, 2)).collect();
    let from = driver.order.len();
    for &span in &spans[..4] {
        driver.begin(Op::Release { span });
    }
    let asked = [first[0], second[0], first[1], second[1]];
    let got: Vec<Ticket> =
        driver.order[from..].iter().copied().filter(|it| asked.contains(it)).collect();
    assert_eq!(got, asked);
}

/// Classes go in their order; a lower one that waits has its turn when memory was given eight
/// times to those above it. Background has no more than half.
#[test]
fn a_lower_class_waits_for_eight_turns_at_the_most_and_background_has_half() {
    let mut driver = film();
    driver.volume("low", Bytes::mib(4));
    driver.done(service("low", node::Service::BestEffort(Priority::Background)));
    let background = |driver: &mut Driver| driver.begin(room_for("low", Bytes::ZERO, Bytes::MIB));
    let mut spans = Vec::new();
    // Half of 24 MiB less 68 KiB: at twelve it has more than that.
    let waits = loop {
        let ticket = background(&mut driver);
        match span_of(driver.answer(ticket)) {
            Some(span) => spans.push(span),
            None => break ticket,
        }
    };
    assert_eq!(spans.len(), 12);
    driver.room(Bytes::MIB);
    assert!(!driver.is_answered(waits), "there is memory, but not for background");
    for span in spans.drain(..2) {
        driver.done(Op::Release { span });
    }
    let Some(span) = span_of(driver.answer(waits)) else { panic!("it has less than half now") };
    spans.push(span);
    let mut rest: Vec<Span> = (0..PIECES - 12).map(|_| driver.room(Bytes::MIB)).collect();
    let waits = background(&mut driver);
    let normals: Vec<Ticket> = (0..12).map(|_| driver.begin(room(Bytes::MIB))).collect();
    let mut given = 0;
    while !driver.is_answered(waits) {
        driver.done(Op::Release { span: rest.pop().unwrap() });
        given += 1;
        assert!(given <= 9, "it has waited for eight");
    }
    assert_eq!(given, 9, "eight times the others, and then it");
    assert!(driver.is_answered(normals[7]) && !driver.is_answered(normals[8]));
}

/// Where callers keep all memory and give none back for 10 s, who waits is refused; not while
/// something moves.
#[test]
fn who_waits_in_vain_is_refused_after_ten_seconds() {
    let mut driver = film();
    let mut spans = driver.all_rooms();
    let from = driver.now;
    let waits = driver.begin(read("film", Bytes::ZERO, Bytes::MIB));
    driver.run_to(from + Duration::from_secs(9));
    // One comes back, and is had by another user's who waited longer: it begins anew.
    driver.done(Op::Release { span: spans.pop().unwrap() });
    let Some(span) = span_of(Some(driver.wait(waits))) else { panic!("it is served") };
    spans.push(span);
    let from = driver.now;
    let waits = driver.begin(room(Bytes::MIB));
    driver.run_to(from + Duration::from_secs(10) - Duration::from_nanos(1));
    assert_eq!(driver.answer(waits), None);
    driver.run_to(from + Duration::from_secs(10));
    let free = Bytes::kib(956);
    assert_eq!(driver.answer(waits), Some(Err(Error::NoMemory { asked: Bytes::MIB, free })));
    // While a disk is at an operation with such memory nobody is refused.
    let span = spans.pop().unwrap();
    driver.disks[0].holds = true;
    let range = WriteRange::new(Bytes::ZERO, Bytes::MIB);
    let writes = driver.begin(write("film", range, span));
    let waits = driver.begin(room(Bytes::MIB));
    driver.run(Duration::from_secs(100));
    assert_eq!(driver.answer(waits), None, "some is on its way");
    driver.disks[0].holds = false;
    assert_eq!(driver.wait(writes), Ok(Reply::Done));
    assert!(driver.is_answered(waits));
}

/// So many may wait, and no more: the work is handed back.
#[test]
fn more_than_so_many_are_handed_back() {
    let mut driver = film();
    let _spans = driver.all_rooms();
    for _ in 0..4_096 {
        let ticket = driver.begin(room(Bytes::MIB));
        assert!(!driver.is_answered(ticket));
    }
    assert_eq!(driver.at_once(room(Bytes::MIB)), Err(Error::Busy { waiting: 4_096 }));
    let interactive = read_as("film", Bytes::ZERO, Bytes::kib(4), Priority::Interactive);
    assert!(driver.ask(interactive).is_ok(), "another class");
}

/// What is set aside for a contract is lent to its operations alone, and comes back; who waits
/// for it does not wait for others' memory, and is refused only where none comes back.
#[test]
fn what_is_set_aside_for_a_contract_is_its_own() {
    let mut driver = film();
    let len = Bytes::kib(64);
    driver.done(service("film", in_time(len, ms(100), ms(200))));
    let before = driver.node.status(driver.now).memory;
    let slot = len + Bytes::kib(4);
    assert_eq!(before.services, slot * 2);
    let _spans = driver.all_rooms();
    let small = driver.room(Bytes::kib(956));
    let rooms = [0, 1].map(|_| driver.begin(room_for("film", Bytes::ZERO, len)));
    let rooms = rooms.map(|ticket| span_of(driver.answer(ticket)).expect("set aside"));
    assert!(rooms[0].offset != rooms[1].offset);
    assert!(rooms.iter().all(|span| span.offset + span.len <= Bytes::mib(8)));
    let third = driver.begin(room_for("film", Bytes::ZERO, len));
    assert!(!driver.is_answered(third));
    driver.fill(rooms[0], 3, &WriteRange::new(Bytes::ZERO, len));
    driver.done(write("film", WriteRange::new(Bytes::ZERO, len), rooms[0]));
    let Some(span) = span_of(driver.answer(third)) else { panic!("the slot that came back") };
    assert_eq!(span, rooms[0]);
    // The contract ends while both are lent: they are taken back when they come.
    driver.done(service("film", node::Service::default()));
    assert_eq!(driver.node.status(driver.now).memory.services, slot * 2);
    driver.done(Op::Release { span });
    driver.done(Op::Release { span: rooms[1] });
    assert_eq!(driver.node.status(driver.now).memory.services, Bytes::ZERO);
    assert_eq!(driver.node.volume("film").unwrap().operations, 0);
    // Waiting for a slot that nobody gives back.
    driver.done(service("film", in_time(len, ms(100), ms(200))));
    let lent = [0, 1].map(|_| driver.begin(room_for("film", Bytes::ZERO, len)));
    let lent = lent.map(|ticket| span_of(driver.answer(ticket)).expect("set aside"));
    let waits = driver.begin(room_for("film", Bytes::ZERO, len));
    driver.run(Duration::from_secs(9));
    driver.done(Op::Release { span: lent[0] });
    let Some(span) = span_of(driver.answer(waits)) else { panic!("its turn") };
    let waits = driver.begin(room_for("film", Bytes::ZERO, len));
    driver.run(Duration::from_secs(21));
    assert!(no_memory(&driver.answer(waits).expect("refused")));
    driver.done(Op::Release { span });
    driver.done(Op::Release { span: small });
}

/// One who waits for memory of its contract is served from what the contract becomes.
#[test]
fn who_waits_asks_anew_when_the_service_changes() {
    let mut driver = film();
    let len = Bytes::kib(64);
    let _spans = driver.all_rooms();
    let _rest = driver.room(Bytes::kib(956));
    let waits = driver.begin(room_for("film", Bytes::ZERO, len));
    assert!(!driver.is_answered(waits));
    driver.done(service("film", in_time(len, ms(100), ms(200))));
    assert!(driver.is_answered(waits), "memory is set aside from now on");
    assert!(driver.now > Instant::EPOCH);
    driver.done(create("more", Bytes::MIB, Placement::default()));
}

/// Of interactive requests that wait for the memory that is kept for them, too, those of users
/// who have their part come last.
#[test]
fn who_has_his_part_comes_last_for_what_is_kept_for_interactive_requests() {
    let mut driver = film();
    for number in 0..PIECES {
        let uid = if number < 12 { 1 } else { 100 + number as u32 };
        let ticket = driver.begin_as(user(uid), room(Bytes::MIB));
        assert!(driver.is_answered(ticket));
    }
    let read = |driver: &mut Driver, uid| {
        let read = read_as("film", Bytes::ZERO, Bytes::MIB, Priority::Interactive);
        driver.begin_as(user(uid), read)
    };
    let first = read(&mut driver, 3);
    let Some(kept) = span_of(Some(driver.wait(first))) else { panic!("it is kept for such") };
    let greedy = read(&mut driver, 1);
    let other = read(&mut driver, 2);
    driver.done(Op::Release { span: kept });
    driver.run(ms(500));
    assert!(driver.is_answered(other) && !driver.is_answered(greedy));
}

/// After eight turns of those above them the one that has waited longest of all lower classes has
/// his, and not the highest of these; and turns count only while somebody waits below.
#[test]
fn the_oldest_of_the_lower_classes_has_the_ninth_turn() {
    let mut driver = film();
    let mut spans = driver.all_rooms();
    let mut release = |driver: &mut Driver| {
        driver.done(Op::Release { span: spans.pop().expect("enough of them") });
    };
    let asked = |priority| read_as("film", Bytes::ZERO, Bytes::MIB, priority);
    let above: Vec<Ticket> = (0..20).map(|_| driver.begin(asked(Priority::Interactive))).collect();
    driver.run(ms(500));
    // The first has what is kept; nobody waits below the others.
    (0..9).for_each(|_| release(&mut driver));
    driver.run(ms(500));
    let served = |driver: &Driver| above.iter().filter(|&&one| driver.is_answered(one)).count();
    assert_eq!(served(&driver), 10);
    let background = driver.begin(asked(Priority::Background));
    let normal = driver.begin(asked(Priority::Normal));
    (0..8).for_each(|_| release(&mut driver));
    driver.run(ms(500));
    assert_eq!(served(&driver), 18, "eight more, who go before those below");
    release(&mut driver);
    driver.run(ms(500));
    assert!(driver.is_answered(background) && !driver.is_answered(normal));
    assert_eq!(served(&driver), 18);
}

/// Who waits for memory of his contract is refused ten seconds after it last moved, and not
/// when others' memory has not for so long; he is looked at when that may be, and not all the time.
#[test]
fn who_waits_for_his_contracts_memory_waits_while_it_moves() {
    let mut driver = film();
    let len = Bytes::kib(64);
    driver.done(service("film", in_time(len, ms(100), ms(200))));
    let _all = driver.all_rooms();
    let _rest = driver.room(Bytes::kib(956));
    let asked = [0; 4].map(|_| driver.begin(room_for("film", Bytes::ZERO, len)));
    let [Some(first), Some(_), None, None] = asked.map(|one| span_of(driver.answer(one))) else {
        panic!("two slots")
    };
    driver.run(Duration::from_secs(5));
    driver.done(Op::Release { span: first });
    assert!(driver.is_answered(asked[2]) && !driver.is_answered(asked[3]));
    driver.run(Duration::from_millis(5_500));
    assert!(!driver.is_answered(asked[3]), "some came back 5.5 s ago");
    assert!(driver.node.next_timer() > Some(driver.now));
    driver.run(Duration::from_secs(10));
    assert!(no_memory(&driver.answer(asked[3]).expect("refused")));
}

/// A window does not grow beyond its region, behind which another program's begins: where the
/// host's lateness would have it do so, it stays as it is.
#[test]
fn a_window_never_grows_beyond_its_region() {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::GIB * 8).open();
    driver.recorded("film", Bytes::mib(8), Bytes::mib(8), 1);
    let wanted = contract(RATE * 60, Bytes::mib(16), Bytes::ZERO);
    let stream = driver.stream(open_window("film", Mode::Read, wanted, 3)).0;
    let window_at = |driver: &mut Driver, seconds| {
        driver.done(Op::HostLatency { latency: Duration::from_secs(seconds) });
        driver.run(ms(1));
        driver.node.stream(stream).unwrap().window
    };
    let window = window_at(&mut driver, 25);
    assert!(window > Bytes::GIB && window < Bytes::GIB * 2, "{window}");
    assert_eq!(window_at(&mut driver, 45), window);
}

/// A disk hangs with all that is set aside for a contract: who asks within it is not refused, as
/// long as it is the disk that has it, and the status says so. What programs keep is refused.
#[test]
fn who_waits_for_his_contracts_memory_waits_as_long_as_a_disk_has_it() {
    let mut driver = film();
    driver.done(service("film", in_time(BLOCK, ms(100), ms(100))));
    let _others = (driver.all_rooms(), driver.room(Bytes::kib(956)));
    driver.disks[0].holds = true;
    let asked: Vec<_> = (0..3).map(|_| driver.begin(read("film", Bytes::ZERO, BLOCK))).collect();
    let held = |driver: &Driver| driver.node.volume("film").unwrap().memory_held;
    assert_eq!(held(&driver), None, "for a moment only");
    driver.run(Duration::from_secs(60));
    assert!(!asked.iter().any(|&ticket| driver.is_answered(ticket)));
    let two = node::MemoryHeld { disk: DISK, with_disk: 2, operations: 2 };
    assert_eq!(held(&driver), Some(two));
    driver.disks[0].holds = false;
    // The program keeps what it is given, so that there is none for its third.
    driver.run(Duration::from_secs(60));
    let told = asked.iter().map(|&ticket| driver.answer(ticket).expect("it is answered"));
    let told: Vec<_> = told.collect();
    assert!(told[..2].iter().all(|told| matches!(told, Ok(Reply::Data { .. }))), "{told:?}");
    assert!(no_memory(&told[2]), "{told:?}");
    assert_eq!(held(&driver), None);
}

/// Whoever waits for memory has what a window that is closed gives back.
#[test]
fn who_waits_for_memory_has_that_of_a_window_that_is_closed() {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(16)).open();
    driver.recorded("film", Bytes::mib(8), Bytes::mib(8), 1);
    let contract = contract(Rate::per_second(10_000), Bytes::kib(256), Bytes::ZERO);
    let mut streams = Vec::new();
    while let Ok(Reply::Stream { stream, .. }) =
        driver.ask(open("film", Mode::Read, contract, Bytes::ZERO))
    {
        streams.push(stream);
    }
    assert!(streams.len() > 3, "{}", streams.len());
    let mut waiting = driver.begin(room(Bytes::kib(64)));
    while driver.is_answered(waiting) {
        waiting = driver.begin(room(Bytes::kib(64)));
    }
    driver.run(Duration::from_secs(1));
    assert!(!driver.is_answered(waiting));
    driver.close(streams.pop().expect("several")).expect("it is open");
    driver.run(Duration::from_millis(100));
    let answer = driver.answer(waiting);
    assert!(matches!(answer, Some(Ok(Reply::Room { .. }))), "{answer:?}");
}
