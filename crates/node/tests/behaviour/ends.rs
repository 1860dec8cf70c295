//! What lies behind the end of a volume, in the 4 KiB that it ends in, is nobody's: bytes that were cut
//! off, or that a crash left of a write that was never synced, do not come back when the end moves on.

use crate::driver::*;
use node::{DiskIndex, Error, Mode, Op, Placement, Priority, Reply, Target, Ticket, WriteRange};

use store::{Blocks, Store};
use units::{Bytes, Direction};

pub const FILE: &str = "file";
const OTHER: &str = "other";

pub fn bytes(n: u64) -> Bytes {
    Bytes::new(n)
}

pub fn extend(length: u64) -> Op {
    Op::VolumeExtend { name: FILE.into(), length: bytes(length) }
}

pub fn cut(length: u64) -> Op {
    Op::VolumeResize { name: FILE.into(), size: bytes(length), may_cut: true }
}

pub fn length(driver: &Driver) -> u64 {
    driver.node.volume(FILE).expect("it is there").length.get()
}

/// The program and the node are gone at once. What was written is on its disk, whether it was synced or
/// not.
pub fn killed(mut driver: Driver) -> Driver {
    driver.disks.iter_mut().for_each(|disk| disk.flush());
    driver.after_a_power_cut()
}

/// 100 bytes that are synced, and 3,000 that are not, before a crash.
fn appended_and_killed() -> Driver {
    let mut driver = Setup::new(1).open();
    driver.volume(FILE, Bytes::mib(4));
    driver.write(FILE, 1, bytes(0), bytes(100));
    driver.done(Op::Sync);
    driver.write(FILE, 2, bytes(100), bytes(3000));
    let driver = killed(driver);
    assert_eq!(length(&driver), 100);
    driver
}

/// The first 4 KiB are these 100 bytes, and zeros.
fn assert_clear(driver: &mut Driver, len: usize) {
    let found = driver.read(FILE, Bytes::ZERO, Bytes::kib(4)).expect("read");
    assert_eq!(found[..len], pattern(1, Bytes::ZERO, bytes(len as u64)));
    assert!(found[len..].iter().all(|&byte| byte == 0), "bytes from behind the end");
}

#[test]
fn what_was_never_synced_does_not_come_back_when_the_length_is_raised() {
    let mut driver = appended_and_killed();
    driver.done(extend(5000));
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), 5000);
    // Durable at once, in this order.
    let mut driver = driver.after_a_power_cut();
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), 5000);
}

/// The pool clears for itself: a contract's next operation has its turn when it would have had it.
#[test]
fn clearing_takes_no_turn_of_a_contract() {
    let mut driver = appended_and_killed();
    driver.done(service(FILE, in_time(Bytes::kib(4), ms(100), ms(1000))));
    driver.run(ms(1000));
    driver.write(FILE, 3, bytes(16 << 10), Bytes::kib(4));
    let before = driver.node.volume(FILE).unwrap().account;
    assert_eq!((before.requests, before.late_requests), (1, 0));
    driver.run(ms(1000));
    driver.slow_at(DISK, Bytes::ZERO..Bytes::mib(256), ms(150));
    driver.read(FILE, Bytes::ZERO, Bytes::kib(4)).unwrap();
    let after = driver.node.volume(FILE).unwrap().account;
    assert_eq!((after.requests, after.late_requests), (2, 1), "due after 100 ms, like all others");
    assert_clear(&mut driver, 100);
}

#[test]
fn nor_when_the_change_is_answered_before_it_is_durable() {
    let mut driver = appended_and_killed();
    driver.done(Op::Staged(Box::new(extend(5000))));
    assert_clear(&mut driver, 100);
}

#[test]
fn nor_when_something_is_written_further_on() {
    let mut driver = appended_and_killed();
    driver.write(FILE, 3, bytes(9000), bytes(50));
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), 9050);
    let found = driver.read(FILE, Bytes::kib(8), Bytes::kib(4)).expect("read");
    assert_eq!(found[808..858], pattern(3, bytes(9000), bytes(50)));
    assert!(found[..808].iter().chain(&found[858..]).all(|&byte| byte == 0));
}

#[test]
fn nor_when_something_is_written_within_the_block() {
    let mut driver = appended_and_killed();
    driver.write(FILE, 3, bytes(200), bytes(50));
    let found = driver.read(FILE, Bytes::ZERO, Bytes::kib(4)).expect("read");
    assert_eq!(found[..100], pattern(1, Bytes::ZERO, bytes(100)));
    assert!(found[100..200].iter().chain(&found[250..]).all(|&byte| byte == 0));
    let from = driver.journal.len();
    driver.done(extend(5000));
    let asked = driver.since(from).iter().filter_map(|done| done.action.transfer());
    let reads = asked.filter(|(_, direction)| *direction == Direction::Read);
    assert_eq!(reads.count(), 0, "zeros are known to lie there");
}

#[test]
fn nor_when_a_writer_is_opened_further_on() {
    let mut driver = appended_and_killed();
    let opened = open(FILE, Mode::Write, usual(), Bytes::mib(1));
    let (writer, _) = driver.stream(opened);
    driver.put_all(writer, 5, BLOCK);
    driver.close(writer).unwrap();
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), (Bytes::mib(1) + BLOCK).get());
}

#[test]
fn nor_when_a_writer_goes_further_on_or_the_length_is_raised_beside_it() {
    for raises in [false, true] {
        let mut driver = appended_and_killed();
        let writer = driver.writer(FILE, usual());
        if raises {
            driver.done(extend(5000));
        }
        let told = driver.ask(Op::StreamSeek { stream: writer, to: Bytes::mib(1) });
        assert!(matches!(told, Ok(Reply::Ready { .. })), "{told:?}");
        driver.put_all(writer, 6, BLOCK);
        driver.close(writer).unwrap();
        assert_clear(&mut driver, 100);
    }
}

#[test]
fn what_was_cut_off_does_not_come_back() {
    let mut driver = Setup::new(1).open();
    driver.recorded(FILE, Bytes::mib(2), Bytes::mib(2), 1);
    driver.done(cut(100));
    driver.done(resize(FILE, Bytes::mib(2)));
    driver.done(extend(3000));
    assert_clear(&mut driver, 100);
    // Zeros are known to lie behind 3,000; behind 200 it is not known again.
    driver.write(FILE, 1, bytes(0), bytes(3000));
    driver.done(cut(200));
    driver.done(resize(FILE, Bytes::mib(2)));
    driver.write(FILE, 1, bytes(5000), bytes(10));
    assert_clear(&mut driver, 200);
}

#[test]
fn a_write_that_waits_for_that_loses_nothing_and_gives_its_memory_back() {
    for fails in [false, true] {
        let mut driver = appended_and_killed();
        if fails {
            let place = driver.place(FILE, Bytes::ZERO);
            driver.break_at(DISK, place..place + Bytes::kib(4), None);
        }
        let free = driver.node.status(driver.now).memory.free;
        let far: Vec<Ticket> =
            (1..9).map(|n| driver.begin_write(FILE, n, bytes(n * 9000), bytes(60))).collect();
        let answers: Vec<_> = far.iter().map(|&ticket| driver.wait(ticket)).collect();
        assert_eq!(driver.node.status(driver.now).memory.free, free);
        for (n, answer) in (1..9).zip(answers) {
            match fails {
                true => assert!(matches!(answer, Err(Error::Device { .. })), "{answer:?}"),
                false => {
                    assert_eq!(answer, Ok(Reply::Done));
                    let block = bytes(n * 9000).round_down(Bytes::kib(4));
                    let found = driver.read(FILE, block, Bytes::kib(8)).expect("read");
                    let at = (bytes(n * 9000) - block).as_usize();
                    assert_eq!(found[at..at + 60], pattern(n, bytes(n * 9000), bytes(60)));
                }
            }
        }
        assert_eq!(length(&driver), if fails { 100 } else { 72_060 });
    }
}

/// A stream that reads and writes loads its window: nothing from behind the end is in it.
#[test]
fn nor_when_a_stream_is_opened_that_changes_what_it_reads() {
    let mut driver = appended_and_killed();
    let (stream, _) = driver.stream(open_window(FILE, Mode::Update, usual(), 3));
    assert_clear(&mut driver, 100);
    driver.close(stream).unwrap();
}

/// A program fills more of its room than it says, and goes.
#[test]
fn what_a_writer_filled_and_never_said_is_not_read() {
    let mut driver = Setup::new(1).open();
    driver.volume(FILE, Bytes::mib(4));
    let writer = driver.writer(FILE, usual());
    let room = driver.ask(Op::StreamRoom { stream: writer, len_max: BLOCK });
    let Ok(Reply::Room { room }) = room else { panic!("{room:?}") };
    driver.memory.put(room.offset, &pattern(1, Bytes::ZERO, bytes(3000)));
    driver.done(Op::StreamWrite { stream: writer, len: bytes(100) });
    driver.close(writer).unwrap();
    driver.done(extend(5000));
    assert_clear(&mut driver, 100);
}

/// Two pieces of one write, of which the second ends first: the block of the first is not clear yet.
#[test]
fn an_end_is_not_clear_because_a_later_piece_of_a_write_has_ended() {
    for slow in [0, 1].map(DiskIndex) {
        let mut driver = Setup::new(2).open();
        driver.recorded(FILE, Bytes::mib(4), Bytes::mib(2), 1);
        let mib = Bytes::MIB.get();
        let places = [Bytes::ZERO, Bytes::MIB].map(|at| driver.place(FILE, at));
        driver.done(cut(mib - 3996));
        driver.done(resize(FILE, Bytes::mib(4)));
        for place in places {
            driver.slow_at(slow, place..place + Bytes::MIB, ms(3000));
        }
        let over = driver.begin_write(FILE, 2, bytes(mib - 3896), bytes(3896 + 4096));
        driver.run(ms(200));
        let raised = driver.begin(extend(mib - 96));
        let further = driver.begin_write(FILE, 3, bytes(2 * mib + 10), bytes(10));
        for ticket in [over, raised, further] {
            assert_eq!(driver.wait(ticket), Ok(Reply::Done));
        }
        let found = driver.read(FILE, bytes(mib - 4096), Bytes::kib(4)).expect("read");
        assert_eq!(found[..100], pattern(1, bytes(mib - 4096), bytes(100)));
        assert!(found[100..200].iter().all(|&byte| byte == 0), "bytes from behind the end");
        assert_eq!(found[200..], pattern(2, bytes(mib - 3896), bytes(3896)));
    }
}

/// A write of which one half has failed: the other half lies behind the end.
#[test]
fn what_a_write_left_that_failed_is_not_read_in_the_block_of_the_end() {
    let mut driver = Setup::new(2).open();
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(2), 1);
    let mib = Bytes::MIB.get();
    let [_, place] = [Bytes::ZERO, Bytes::MIB].map(|at| driver.place(FILE, at));
    driver.done(cut(mib - 3996));
    driver.done(resize(FILE, Bytes::mib(4)));
    driver.break_at(DiskIndex(1), place..place + Bytes::MIB, None);
    let ticket = driver.begin_write(FILE, 2, bytes(mib - 3896), bytes(3896 + 4096));
    assert!(matches!(driver.wait(ticket), Err(Error::Device { .. })));
    driver.done(extend(mib));
    let found = driver.read(FILE, bytes(mib - 4096), Bytes::kib(4)).expect("read");
    assert_eq!(found[..100], pattern(1, bytes(mib - 4096), bytes(100)));
    assert!(found[100..].iter().all(|&byte| byte == 0), "bytes from behind the end");
}

/// The same of a write that was answered before.
#[test]
fn what_a_write_left_that_failed_after_its_answer_is_not_read_either() {
    let mut driver = Setup::new(2).open();
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(2), 1);
    let mib = Bytes::MIB.get();
    let place = driver.place(FILE, Bytes::MIB);
    driver.done(cut(mib - 3996));
    driver.done(resize(FILE, Bytes::mib(4)));
    driver.break_at(DiskIndex(1), place..place + Bytes::MIB, None);
    let range =
        WriteRange { behind: true, ..WriteRange::new(bytes(mib - 3896), bytes(3896 + 4096)) };
    let span = driver.room(range.room());
    driver.fill(span, 2, &range);
    driver.done(write(FILE, range, span));
    let synced = driver.ask(Op::SyncVolume { volume: FILE.into(), told: Some(0) });
    assert!(matches!(synced, Err(Error::WriteBehind { .. })), "{synced:?}");
    driver.done(extend(mib));
    let found = driver.read(FILE, bytes(mib - 4096), Bytes::kib(4)).expect("read");
    assert!(found[100..].iter().all(|&byte| byte == 0), "bytes from behind the end");
}

/// A write fails while one piece of another has ended: what that one wrote is its own.
#[test]
fn a_write_that_fails_takes_nothing_from_one_that_is_under_way() {
    let mut driver = Setup::new(2).open();
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(4), 1);
    let mib = Bytes::MIB.get();
    let from = driver.place(FILE, Bytes::ZERO);
    driver.done(cut(mib - 3996));
    driver.done(resize(FILE, Bytes::mib(4)));
    // Extents 0 and 2 lie on the first disk, 1 and 3 on the other.
    driver.slow_at(DiskIndex(1), from..Bytes::mib(256), ms(3000));
    driver.break_at(DISK, from + Bytes::MIB..Bytes::mib(256), Some(Direction::Write));
    let over = driver.begin_write(FILE, 2, bytes(mib - 3896), bytes(3896 + 4096));
    driver.run(ms(300));
    let fails = driver.begin_write(FILE, 3, bytes(2 * mib), Bytes::kib(4));
    let failed = driver.wait(fails);
    assert!(matches!(failed, Err(Error::Device { .. })), "{failed:?}");
    let near = driver.begin_write(FILE, 4, bytes(mib - 3990), bytes(50));
    assert!(!driver.is_answered(over), "its other half is on its way");
    for ticket in [over, near] {
        assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    }
    let found = driver.read(FILE, bytes(mib - 4096), Bytes::kib(4)).expect("read");
    assert_eq!(found[200..], pattern(2, bytes(mib - 3896), bytes(3896)), "it was answered");
}

/// Nobody gives memory back: the ends of several volumes are cleared one after the other.
#[test]
fn ends_are_cleared_without_memory_and_while_the_node_ends() {
    for ends in [false, true] {
        let mut driver = Setup::new(1).open();
        let names = ["a", "b", "c"];
        for name in names {
            driver.recorded(name, Bytes::mib(1), bytes(100), 1);
        }
        let mut driver = killed(driver);
        let target = Target {
            volume: "a".into(),
            offset: Bytes::ZERO,
            priority: Some(Priority::Interactive),
        };
        let room = driver.ask(Op::Room { len: Bytes::MIB, target: Some(target) });
        assert!(matches!(room, Ok(Reply::Room { .. })), "{room:?}");
        driver.disks[0].holds = true;
        let raised = names
            .map(|name| driver.begin(Op::VolumeExtend { name: name.into(), length: bytes(5000) }));
        driver.run(ms(20));
        let shutdown = ends.then(|| driver.begin(Op::Shutdown));
        driver.disks[0].holds = false;
        for ticket in raised {
            match (driver.wait(ticket), ends) {
                (Ok(Reply::Done), _) | (Err(Error::ShuttingDown), true) => {}
                other => panic!("{other:?}"),
            }
        }
        if let Some(shutdown) = shutdown {
            assert_eq!(driver.wait(shutdown), Ok(Reply::Done));
        }
    }
}

/// Of two writes of the same bytes the later one stays, also where the first one waits for zeros.
#[test]
fn writes_of_the_same_bytes_keep_their_order() {
    let mut driver = appended_and_killed();
    let first = driver.begin_write(FILE, 5, bytes(9000), bytes(50));
    let second = driver.begin_write(FILE, 6, bytes(200), bytes(9300));
    for ticket in [first, second] {
        assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    }
    let found = driver.read(FILE, Bytes::kib(8), Bytes::kib(4)).expect("read");
    assert_eq!(found[808..858], pattern(6, bytes(9000), bytes(50)));
}

/// The metadata has no room for more extents with holes. The block that is cleared lies behind one.
#[test]
fn clearing_an_end_shows_nothing_of_the_hole_before_it() {
    let full = |store: &mut Store| {
        let file = store.create(FILE, Bytes::mib(2), &Placement::default()).unwrap();
        let holes = store.create("holes", Bytes::mib(5_000), &Placement::default()).unwrap();
        let hole = Blocks::of(&(Bytes::kib(256)..Bytes::kib(260)));
        let volumes = std::iter::once((file, 0)).chain((0..).map(|extent| (holes, extent)));
        for (volume, extent) in volumes {
            if !store.reserve_scattered() {
                break;
            }
            store.note_written(volume, extent, &hole);
            store.release_scattered();
        }
        store.note_length(holes, Bytes::mib(5_000));
        store.note_length(file, Bytes::kib(256) + Bytes::new(100));
    };
    let profiles = vec![profile(Bytes::mib(6_000), ms(1), ms(1))];
    let mut driver = Setup { profiles, before: full, ..Setup::new(1) }.open();
    let place = driver.place(FILE, Bytes::kib(256));
    driver.disks[0].write(place - Bytes::kib(256), &vec![9; 260 << 10]);
    driver.done(extend(512 << 10));
    let found = driver.read(FILE, Bytes::ZERO, Bytes::kib(260)).expect("read");
    assert!(found[..256 << 10].iter().all(|&byte| byte == 0), "what another volume had");
    let last = &found[256 << 10..];
    assert!(last[..100].iter().all(|&byte| byte == 9) && last[100..].iter().all(|&byte| byte == 0));
}

/// However many wait for the same end, each is answered.
#[test]
fn thousands_that_wait_for_one_end_are_answered() {
    let mut driver = appended_and_killed();
    driver.disks[0].holds = true;
    let extensions = (0..5_000).map(|n| driver.begin(extend(5_000 + n))).collect::<Vec<_>>();
    driver.disks[0].holds = false;
    for ticket in extensions {
        assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    }
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), 9_999);
}

/// What is asked of a volume whose end is being cleared waits, and is not refused.
#[test]
fn a_volume_whose_end_is_being_cleared_is_not_called_busy() {
    let mut driver = appended_and_killed();
    driver.disks[0].holds = true;
    let raised = driver.begin(extend(5_000));
    let opened = driver.begin(open(FILE, Mode::Write, usual(), Bytes::ZERO));
    driver.run(ms(50));
    assert!(!driver.is_answered(raised) && !driver.is_answered(opened));
    driver.disks[0].holds = false;
    assert_eq!(driver.wait(raised), Ok(Reply::Done));
    let Ok(Reply::Stream { stream, .. }) = driver.wait(opened) else { panic!("not opened") };
    driver.close(stream).unwrap();
    assert_clear(&mut driver, 100);
}

/// The block of the end cannot be read, or not be written: whoever would move the end on is told, and it
/// stays where it is. When the disk does it again, the end moves on and zeros lie there.
#[test]
fn an_end_that_cannot_be_cleared_stays() {
    for way in [Direction::Read, Direction::Write] {
        type Asks<'a> = (&'static str, &'a dyn Fn(&mut Driver) -> Ticket);
        let asks: [Asks<'_>; 5] = [
            ("extend", &|driver| driver.begin(extend(5_000))),
            ("staged", &|driver| driver.begin(Op::Staged(Box::new(extend(5_000))))),
            ("write", &|driver| driver.begin_write(FILE, 3, bytes(9_000), bytes(50))),
            ("behind", &|driver| {
                let range = WriteRange::new(bytes(9_000), bytes(50));
                let range = WriteRange { behind: true, ..range };
                let span = driver.room(range.room());
                driver.fill(span, 3, &range);
                driver.begin(write(FILE, range, span))
            }),
            ("open", &|driver| driver.begin(open(FILE, Mode::Write, usual(), Bytes::mib(1)))),
        ];
        for (what, ask) in asks {
            let mut driver = appended_and_killed();
            let place = driver.place(FILE, Bytes::ZERO);
            driver.break_at(DISK, place..place + Bytes::kib(4), Some(way));
            let both = [ask(&mut driver), ask(&mut driver)];
            let answers = both.map(|ticket| driver.wait(ticket));
            let synced = driver.ask(Op::SyncVolume { volume: FILE.into(), told: Some(0) });
            let is_told = answers.iter().all(Result::is_err) || synced.is_err();
            assert!(is_told, "{what} {way:?}: {answers:?}, {synced:?}");
            assert_eq!(length(&driver), 100, "{what} {way:?}");
            driver.disks[0].troubles.clear();
            let again = ask(&mut driver);
            let again = driver.wait(again);
            assert!(again.is_ok(), "{what} {way:?}: {again:?}");
            if let Ok(Reply::Stream { stream, .. }) = again {
                driver.put_all(stream, 5, BLOCK);
                driver.close(stream).unwrap();
            }
            driver.done(Op::Sync);
            assert_raised(&mut driver, way);
            assert_raised(&mut driver.after_a_power_cut(), way);
        }
    }
}

/// The end has moved on. A write of the block that failed has destroyed what was there.
fn assert_raised(driver: &mut Driver, failed: Direction) {
    assert!(length(driver) >= 5_000);
    match failed {
        Direction::Read => assert_clear(driver, 100),
        Direction::Write => {
            let found = driver.read(FILE, Bytes::ZERO, Bytes::kib(4)).expect("read");
            assert!(is_zeros(&found[100..]));
        }
    }
}

/// A write over two extents of which one half was committed by another program's sync, and which had not
/// ended at the crash.
#[test]
fn half_of_a_write_that_had_not_ended_does_not_come_back() {
    for slow in [0, 1].map(DiskIndex) {
        half_of_a_write(slow);
    }
}

fn half_of_a_write(slow: DiskIndex) {
    let mut driver = Setup::new(2).open();
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(2), 1);
    let places = [Bytes::ZERO, Bytes::MIB].map(|at| driver.place(FILE, at));
    driver.done(cut(0));
    driver.done(resize(FILE, Bytes::mib(4)));
    for place in places {
        driver.slow_at(slow, place..place + Bytes::MIB, ms(5000));
    }
    driver.begin_write(FILE, 2, Bytes::MIB - Bytes::kib(4), Bytes::kib(8));
    driver.run(ms(500));
    driver.done(Op::Sync);
    let mut driver = killed(driver);
    assert_eq!(length(&driver), 0);
    driver.done(extend(2 << 20));
    let found = driver.read(FILE, Bytes::MIB - Bytes::kib(4), Bytes::kib(8)).expect("read");
    assert!(found.iter().all(|&byte| byte == 0), "bytes of a write that never ended");
}

/// A write over two extents, on a disk each, of which the first is slow by five seconds: the other half has
/// ended.
fn half_done(cached: bool, behind: bool) -> (Driver, Ticket) {
    half_done_beside(cached, behind, 0)
}

/// The same beside so many runs on the slow disk that are answered ahead.
fn half_done_beside(cached: bool, behind: bool, others: u64) -> (Driver, Ticket) {
    let mut driver = Setup::new(2).open();
    if cached {
        driver.node.cache_reads();
    }
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(4), 1);
    let from = driver.place(FILE, Bytes::ZERO);
    driver.done(cut(0));
    driver.done(resize(FILE, Bytes::mib(4)));
    driver.recorded(OTHER, Bytes::MIB, Bytes::MIB, 1);
    driver.slow_at(DISK, from..Bytes::mib(256), ms(5000));
    for run in 0..others {
        let ahead = WriteRange { behind: true, ..WriteRange::new(Bytes::kib(64) * run, HALF) };
        let span = driver.room(ahead.room());
        let ticket = driver.begin(write(OTHER, ahead, span));
        assert!(driver.is_answered(ticket));
    }
    let range = WriteRange { behind, ..WriteRange::new(Bytes::MIB - HALF, HALF * 2) };
    let span = driver.room(range.room());
    driver.fill(span, 2, &range);
    let begun = driver.journal.len();
    let ticket = driver.begin(write(FILE, range, span));
    driver.run(ms(500));
    assert_eq!(driver.is_answered(ticket), behind && others == 0);
    let is_written = |done: &Done| {
        let written = done.action.transfer().filter(|(_, way)| *way == Direction::Write);
        written.is_some_and(|(range, _)| range.start >= from && range.end - range.start == HALF)
    };
    assert!(driver.since(begun).iter().any(is_written));
    (driver, ticket)
}

const HALF: Bytes = Bytes::kib(8);

/// What the half of the write is that has ended.
fn other_half(driver: &mut Driver) -> Vec<u8> {
    driver.read(FILE, Bytes::MIB, HALF).expect("read")
}

pub fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

#[test]
fn half_of_a_write_is_read_when_the_other_half_has_ended_and_synced_with_it() {
    for (cached, syncs) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut driver, ticket) = half_done(cached, false);
        assert!(is_zeros(&other_half(&mut driver)));
        assert!(!driver.is_answered(ticket));
        // The commit begins now, and has the one half.
        let sync = syncs.then(|| driver.begin(Op::Sync));
        assert_eq!(driver.wait(ticket), Ok(Reply::Done));
        assert_eq!(other_half(&mut driver), pattern(2, Bytes::MIB, HALF), "it was answered");
        if let Some(sync) = sync {
            assert_eq!(driver.wait(sync), Ok(Reply::Done));
        }
        driver.done(Op::Sync);
        let mut driver = driver.after_a_power_cut();
        let found = driver.read(FILE, Bytes::MIB - HALF, HALF * 2).expect("read");
        assert_eq!(found, pattern(2, Bytes::MIB - HALF, HALF * 2), "it was synced");
    }
}

#[test]
fn half_of_a_write_that_was_answered_before_is_waited_for() {
    let (mut driver, ticket) = half_done(false, true);
    assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    assert_eq!(other_half(&mut driver), pattern(2, Bytes::MIB, HALF));
}

/// It is answered ahead when there is room for that: the zeros that were read before are nobody's then.
#[test]
fn half_of_a_write_that_found_no_room_to_be_answered_ahead_is_read_when_it_was() {
    let (mut driver, ticket) = half_done_beside(true, true, 4);
    assert!(is_zeros(&other_half(&mut driver)));
    assert_eq!(driver.wait(ticket), Ok(Reply::Done));
    assert_eq!(other_half(&mut driver), pattern(2, Bytes::MIB, HALF));
    driver.done(Op::Sync);
    assert_eq!(other_half(&mut driver), pattern(2, Bytes::MIB, HALF));
}

/// Bytes of a write that has failed in part are shown by a read and lost by a crash, or neither.
#[test]
fn half_of_a_write_whose_other_half_has_failed_is_not_read() {
    for behind in [false, true] {
        let mut driver = Setup::new(2).open();
        driver.recorded(FILE, Bytes::mib(4), Bytes::mib(4), 1);
        let from = driver.place(FILE, Bytes::ZERO);
        driver.done(cut(0));
        driver.done(resize(FILE, Bytes::mib(4)));
        driver.break_at(DISK, from..Bytes::mib(256), Some(Direction::Write));
        let range = WriteRange { behind, ..WriteRange::new(Bytes::MIB - HALF, HALF * 2) };
        let span = driver.room(range.room());
        driver.fill(span, 2, &range);
        let ticket = driver.begin(write(FILE, range, span));
        assert!(is_zeros(&other_half(&mut driver)));
        assert_eq!(driver.wait(ticket).is_ok(), behind);
        driver.done(Op::Sync);
        assert!(is_zeros(&other_half(&mut driver)));
        let (stream, _) = driver.stream(open_window(FILE, Mode::Update, usual(), 3));
        driver.close(stream).unwrap();
        let mut driver = killed(driver);
        driver.done(extend(4 << 20));
        assert!(is_zeros(&other_half(&mut driver)));
    }
}

/// The end goes over the half that has ended: then it is the volume's.
#[test]
fn half_of_a_write_before_the_end_is_read_and_synced() {
    for ends in [false, true] {
        let (mut driver, ticket) = half_done(true, false);
        assert!(is_zeros(&other_half(&mut driver)));
        match ends {
            true => driver.write(FILE, 3, Bytes::mib(3), Bytes::kib(4)),
            false => driver.done(Op::Staged(Box::new(extend(3 << 20)))),
        }
        assert_eq!(other_half(&mut driver), pattern(2, Bytes::MIB, HALF));
        assert!(!driver.is_answered(ticket));
        driver.done(Op::Sync);
        let mut driver = driver.after_a_power_cut();
        assert_eq!(other_half(&mut driver), pattern(2, Bytes::MIB, HALF), "it was read and synced");
    }
}
